# SPDX-License-Identifier: Apache-2.0
# runs: the files of a run, written and read.
libyokecore_la_SOURCES += \
	src/runs/api.c \
	src/runs/flat.c \
	src/runs/flat.h \
	src/runs/read.c \
	src/runs/read.h \
	src/runs/tfevents.c \
	src/runs/tfevents.h \
	src/runs/write.c \
	src/runs/write.h
