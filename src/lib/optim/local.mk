# SPDX-License-Identifier: Apache-2.0
# optim: optimizers, clipping, schedules.
libyokecore_la_SOURCES += \
	src/lib/optim/adafactor.c \
	src/lib/optim/map.c \
	src/lib/optim/muon.c \
	src/lib/optim/optim.c \
	src/lib/optim/optim.h \
	src/lib/optim/options.h \
	src/lib/optim/passes.c \
	src/lib/optim/intervals.c \
	src/lib/optim/scaler.c \
	src/lib/optim/scaled.c \
	src/lib/optim/scaled.h \
	src/lib/optim/schedule.c \
	src/lib/optim/schedule.h \
	src/lib/optim/settings.c \
	src/lib/optim/state.c \
	src/lib/optim/step.c \
	src/lib/optim/table.c
