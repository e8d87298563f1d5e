# SPDX-License-Identifier: Apache-2.0
# optim: optimizers, clipping, schedules.
libyokecore_la_SOURCES += \
	src/optim/map.c \
	src/optim/optim.c \
	src/optim/optim.h \
	src/optim/options.h \
	src/optim/passes.c \
	src/optim/pieces.c \
	src/optim/scaled.c \
	src/optim/scaled.h \
	src/optim/schedule.c \
	src/optim/schedule.h \
	src/optim/settings.c \
	src/optim/state.c \
	src/optim/step.c \
	src/optim/table.c
