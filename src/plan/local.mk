# SPDX-License-Identifier: Apache-2.0
# plan: the scheduler.
libyokecore_la_SOURCES += \
	src/plan/align.c \
	src/plan/build.c \
	src/plan/build.h \
	src/plan/ranges.c \
	src/plan/clones.c \
	src/plan/eager.c \
	src/plan/edit.c \
	src/plan/emit.c \
	src/plan/cache.c \
	src/plan/eval.c \
	src/plan/passes.c \
	src/plan/read.c \
	src/plan/ranks.c \
	src/plan/recompute.c \
	src/plan/regather.c \
	src/plan/remat.c \
	src/plan/replay.c \
	src/plan/donors.c \
	src/plan/roots.c \
	src/plan/fallback.c \
	src/plan/check.c \
	src/plan/fuse.c \
	src/plan/key.c \
	src/plan/launch.c \
	src/plan/layout.c \
	src/plan/lower.c \
	src/plan/miss.c \
	src/plan/order.c \
	src/plan/parts.c \
	src/plan/lower.h \
	src/plan/pieces.c \
	src/plan/plan.h \
	src/plan/print.c \
	src/plan/program.c \
	src/plan/spans.c \
	src/plan/spill.c \
	src/plan/strides.c \
	src/plan/uses.c \
	src/plan/waits.c \
	src/plan/where.c
