# SPDX-License-Identifier: Apache-2.0
# dist: groups of ranks and what they do together.
libyokecore_la_SOURCES += \
	src/dist/adapt.c \
	src/dist/adapt.h \
	src/dist/api.c \
	src/dist/carrier.c \
	src/dist/carrier.h \
	src/dist/group.c \
	src/dist/hub.c \
	src/dist/message.c \
	src/dist/mpi.c \
	src/dist/mpi_module.h \
	src/dist/native.c \
	src/dist/native_join.c \
	src/dist/native.h \
	src/dist/place.c \
	src/dist/place.h \
	src/dist/post.c \
	src/dist/process.c \
	src/dist/process.h \
	src/dist/progress.c \
	src/dist/queue.c \
	src/dist/ranks.h \
	src/dist/record.c \
	src/dist/run.c \
	src/dist/sampler.c \
	src/dist/schedule.c \
	src/dist/schedule.h \
	src/dist/segment.c \
	src/dist/segment.h \
	src/dist/share.c \
	src/dist/shared.c \
	src/dist/sums.c \
	src/dist/simulate.c \
	src/dist/simulate.h \
	src/dist/simulate_step.c \
	src/dist/simulate_step.h \
	src/dist/turns.c \
	src/dist/turns.h \
	src/dist/sums.h \
	src/dist/tuned.c \
	src/dist/tuned.h \
	src/dist/world.c
