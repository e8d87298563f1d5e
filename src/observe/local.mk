# SPDX-License-Identifier: Apache-2.0
# observe: profiler, reports, memory, limits, telemetry.
libyokecore_la_SOURCES += \
	src/observe/cycle.c \
	src/observe/cycle.h \
	src/observe/flops.c \
	src/observe/flops.h \
	src/observe/machine.c \
	src/observe/machine.h \
	src/observe/leaks.c \
	src/observe/roof.c \
	src/observe/roof.h \
	src/observe/limits_cpu.c \
	src/observe/kernels.c \
	src/observe/kernels.h \
	src/observe/memory.c \
	src/observe/memory.h \
	src/observe/misaligned.c \
	src/observe/misaligned.h \
	src/observe/occupancy.c \
	src/observe/occupancy.h \
	src/observe/peak.c \
	src/observe/pieces.c \
	src/observe/pieces.h \
	src/observe/profile.c \
	src/observe/profile.h \
	src/observe/profile_priv.h \
	src/observe/ranges.c \
	src/observe/report.c \
	src/observe/report.h \
	src/observe/rows.c \
	src/observe/rows.h \
	src/observe/sampler.c \
	src/observe/sysfs.c \
	src/observe/sysfs.h \
	src/observe/table.c \
	src/observe/table.h \
	src/observe/telemetry.c \
	src/observe/telemetry.h \
	src/observe/telemetry_system.c \
	src/observe/topology.c \
	src/observe/topology.h \
	src/observe/trace.c
