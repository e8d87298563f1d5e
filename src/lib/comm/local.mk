# SPDX-License-Identifier: Apache-2.0
# comm: groups of ranks and their collectives.
libyokecore_la_SOURCES += \
	src/lib/comm/adapt.c \
	src/lib/comm/adapt.h \
	src/lib/comm/api.c \
	src/lib/comm/carrier.c \
	src/lib/comm/carrier.h \
	src/lib/comm/group.c \
	src/lib/comm/launch_env.c \
	src/lib/comm/launch_env.h \
	src/lib/comm/mpi_load.c \
	src/lib/comm/mpi_load.h \
	src/lib/comm/rendezvous.c \
	src/lib/comm/message.c \
	src/lib/comm/mpi_module.h \
	src/lib/comm/native.c \
	src/lib/comm/native_join.c \
	src/lib/comm/native.h \
	src/lib/comm/post.c \
	src/lib/comm/process.c \
	src/lib/comm/process.h \
	src/lib/comm/progress.c \
	src/lib/comm/queue.c \
	src/lib/comm/ranks.h \
	src/lib/comm/record.c \
	src/lib/comm/run.c \
	src/lib/comm/sampler.c \
	src/lib/comm/schedule.c \
	src/lib/comm/schedule.h \
	src/lib/comm/segment.c \
	src/lib/comm/segment.h \
	src/lib/comm/share.c \
	src/lib/comm/shared.c \
	src/lib/comm/started.h \
	src/lib/comm/sums.c \
	src/lib/comm/simulate.c \
	src/lib/comm/simulate.h \
	src/lib/comm/simulate_step.c \
	src/lib/comm/simulate_step.h \
	src/lib/comm/turns.c \
	src/lib/comm/turns.h \
	src/lib/comm/sums.h \
	src/lib/comm/tuned.c \
	src/lib/comm/tuned.h \
	src/lib/comm/world.c
