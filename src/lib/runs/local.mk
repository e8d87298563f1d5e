# SPDX-License-Identifier: Apache-2.0
# runs: writes and reads the files of a run.
libyokecore_la_SOURCES += \
	src/lib/runs/api.c \
	src/lib/runs/flat.c \
	src/lib/runs/flat.h \
	src/lib/runs/read.c \
	src/lib/runs/read.h \
	src/lib/runs/tfevents.c \
	src/lib/runs/tfevents.h \
	src/lib/runs/write.c \
	src/lib/runs/write.h
