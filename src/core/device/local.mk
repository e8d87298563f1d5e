# SPDX-License-Identifier: Apache-2.0
# device: plugins, devices, pool, queues.
libyokecore_la_SOURCES += \
	src/core/device/child.c \
	src/core/device/child.h \
	src/core/device/choose.c \
	src/core/device/chunk.c \
	src/core/device/chunk.h \
	src/core/device/compact.c \
	src/core/device/device.c \
	src/core/device/device.h \
	src/core/device/dry.c \
	src/core/device/facts.c \
	src/core/device/facts.h \
	src/core/device/pool_history.c \
	src/core/device/pool_history.h \
	src/core/device/host.c \
	src/core/device/guard.c \
	src/core/device/guard.h \
	src/core/device/icd.c \
	src/core/device/icd.h \
	src/core/device/installed.c \
	src/core/device/installed.h \
	src/core/device/nodes.c \
	src/core/device/nodes.h \
	src/core/device/plugin.c \
	src/core/device/plugin.h \
	src/core/device/pool.c \
	src/core/device/pool.h \
	src/core/device/pool_priv.h \
	src/core/device/pool_record.c \
	src/core/device/probe.c \
	src/core/device/probe.h \
	src/core/device/queue.c \
	src/core/device/quirks.c \
	src/core/device/quirks.h \
	src/core/device/refuse.c \
	src/core/device/stubs.c \
	src/core/device/trust.c \
	src/core/device/trust.h \
	src/core/device/tuning.c \
	src/core/device/tuning.h \
	src/core/device/tuning_class.c \
	src/core/device/verdict.c \
	src/core/device/verdict.h \
	src/core/device/verdict_key.c \
	src/core/device/warmup.c \
	src/core/device/warmup.h
