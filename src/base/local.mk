# SPDX-License-Identifier: Apache-2.0
# base: errors, log, settings, arena, hash, JSON, files, signals.
libyokecore_la_SOURCES += \
	src/base/arena.c \
	src/base/arena.h \
	src/base/clock.h \
	src/base/complex.h \
	src/base/error.c \
	src/base/error.h \
	src/base/file.c \
	src/base/file.h \
	src/base/half.h \
	src/base/hash.c \
	src/base/hash.h \
	src/base/json.c \
	src/base/json.h \
	src/base/kind.c \
	src/base/kind.h \
	src/base/log.c \
	src/base/log.h \
	src/base/names.c \
	src/base/number.c \
	src/base/number.h \
	src/base/param.c \
	src/base/param.h \
	src/base/shared.c \
	src/base/shared.h \
	src/base/scan.c \
	src/base/scan.h \
	src/base/sized.c \
	src/base/sized.h \
	src/base/stop.c \
	src/base/stop.h
