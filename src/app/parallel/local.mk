# SPDX-License-Identifier: Apache-2.0
# parallel: training on several ranks.
libyokecore_la_SOURCES += \
	src/app/parallel/bucket.c \
	src/app/parallel/bucket.h \
	src/app/parallel/check.c \
	src/app/parallel/check.h \
	src/app/parallel/compress.c \
	src/app/parallel/compress.h \
	src/app/parallel/consistency.c \
	src/app/parallel/consistency.h \
	src/app/parallel/gather_checkpoint.c \
	src/app/parallel/gather_checkpoint.h \
	src/app/parallel/grid.c \
	src/app/parallel/grid.h \
	src/app/parallel/host_list.c \
	src/app/parallel/host_list.h \
	src/app/parallel/load_states.c \
	src/app/parallel/load_states.h \
	src/app/parallel/ranks.c \
	src/app/parallel/ranks.h \
	src/app/parallel/replica.h \
	src/app/parallel/shared_load.c \
	src/app/parallel/shared_load.h \
	src/app/parallel/stages.c \
	src/app/parallel/stages.h \
	src/app/parallel/sums.c \
	src/app/parallel/sums.h \
	src/app/parallel/tensor.c \
	src/app/parallel/tensor.h \
	src/app/parallel/zero.c \
	src/app/parallel/zero.h
