# SPDX-License-Identifier: Apache-2.0
# observe: profiler, reports, memory, limits, telemetry.
libyokecore_la_SOURCES += \
	src/lib/observe/cycle.c \
	src/lib/observe/cycle.h \
	src/lib/observe/flops.c \
	src/lib/observe/flops.h \
	src/lib/observe/machine.c \
	src/lib/observe/machine.h \
	src/lib/observe/leaks.c \
	src/lib/observe/roof.c \
	src/lib/observe/roof.h \
	src/lib/observe/limits_cpu.c \
	src/lib/observe/kernels.c \
	src/lib/observe/kernels.h \
	src/lib/observe/memory.c \
	src/lib/observe/memory.h \
	src/lib/observe/misaligned.c \
	src/lib/observe/misaligned.h \
	src/lib/observe/occupancy.c \
	src/lib/observe/occupancy.h \
	src/lib/observe/peak.c \
	src/lib/observe/activity.c \
	src/lib/observe/activity.h \
	src/lib/observe/profile.c \
	src/lib/observe/profile.h \
	src/lib/observe/profile_state.h \
	src/lib/observe/ranges.c \
	src/lib/observe/report.c \
	src/lib/observe/report.h \
	src/lib/observe/rows.c \
	src/lib/observe/rows.h \
	src/lib/observe/sampler.c \
	src/lib/observe/sysfs.c \
	src/lib/observe/sysfs.h \
	src/lib/observe/table.c \
	src/lib/observe/table.h \
	src/lib/observe/telemetry.c \
	src/lib/observe/telemetry.h \
	src/lib/observe/telemetry_system.c \
	src/lib/observe/topology.c \
	src/lib/observe/topology.h \
	src/lib/observe/trace.c
