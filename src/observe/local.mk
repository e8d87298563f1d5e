# SPDX-License-Identifier: Apache-2.0
# observe: profiler, reports, monitors.
libyokecore_la_SOURCES += \
	src/observe/kernels.c \
	src/observe/kernels.h \
	src/observe/memory.c \
	src/observe/memory.h \
	src/observe/misaligned.c \
	src/observe/misaligned.h \
	src/observe/profile.c \
	src/observe/profile.h \
	src/observe/profile_priv.h \
	src/observe/report.c \
	src/observe/report.h \
	src/observe/rows.c \
	src/observe/rows.h \
	src/observe/trace.c
