# SPDX-License-Identifier: Apache-2.0
# device: plugins, devices, pool, queues.
libyokecore_la_SOURCES += \
	src/device/child.c \
	src/device/child.h \
	src/device/choose.c \
	src/device/chunk.c \
	src/device/chunk.h \
	src/device/compact.c \
	src/device/device.c \
	src/device/device.h \
	src/device/dry.c \
	src/device/facts.c \
	src/device/facts.h \
	src/device/pool_history.c \
	src/device/pool_history.h \
	src/device/host.c \
	src/device/guard.c \
	src/device/guard.h \
	src/device/icd.c \
	src/device/icd.h \
	src/device/installed.c \
	src/device/installed.h \
	src/device/nodes.c \
	src/device/nodes.h \
	src/device/plugin.c \
	src/device/plugin.h \
	src/device/pool.c \
	src/device/pool.h \
	src/device/pool_priv.h \
	src/device/pool_record.c \
	src/device/probe.c \
	src/device/probe.h \
	src/device/queue.c \
	src/device/quirks.c \
	src/device/quirks.h \
	src/device/refuse.c \
	src/device/stubs.c \
	src/device/trust.c \
	src/device/trust.h \
	src/device/tuning.c \
	src/device/tuning.h \
	src/device/tuning_class.c \
	src/device/verdict.c \
	src/device/verdict.h \
	src/device/verdict_key.c \
	src/device/warmup.c \
	src/device/warmup.h
