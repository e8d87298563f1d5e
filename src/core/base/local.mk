# SPDX-License-Identifier: Apache-2.0
# base: errors, log, settings, arena, hash, JSON, files, signals.
libyokecore_la_SOURCES += \
	src/core/base/arena.c \
	src/core/base/arena.h \
	src/core/base/clock.h \
	src/core/base/complex.h \
	src/core/base/endian.c \
	src/core/base/endian.h \
	src/core/base/error.c \
	src/core/base/error.h \
	src/core/base/file.c \
	src/core/base/file.h \
	src/core/base/fixed.h \
	src/core/base/half.h \
	src/core/base/hash.c \
	src/core/base/hash.h \
	src/core/base/json.c \
	src/core/base/json.h \
	src/core/base/kind.c \
	src/core/base/kind.h \
	src/core/base/log.c \
	src/core/base/log.h \
	src/core/base/names.c \
	src/core/base/num.c \
	src/core/base/num.h \
	src/core/base/number.c \
	src/core/base/number.h \
	src/core/base/param.c \
	src/core/base/param.h \
	src/core/base/philox.h \
	src/core/base/shared.c \
	src/core/base/shared.h \
	src/core/base/scan.c \
	src/core/base/scan.h \
	src/core/base/sized.c \
	src/core/base/sized.h \
	src/core/base/stop.c \
	src/core/base/stop.h \
	src/core/base/system.c \
	src/core/base/socket.h \
	src/core/base/system.h \
	src/core/base/wire.c \
	src/core/base/wire.h
