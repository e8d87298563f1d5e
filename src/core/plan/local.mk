# SPDX-License-Identifier: Apache-2.0
# plan: the scheduler, from recorded nodes to launched steps.
libyokecore_la_SOURCES += \
	src/core/plan/align.c \
	src/core/plan/build.c \
	src/core/plan/build.h \
	src/core/plan/ranges.c \
	src/core/plan/clones.c \
	src/core/plan/eager.c \
	src/core/plan/edit.c \
	src/core/plan/emit.c \
	src/core/plan/cache.c \
	src/core/plan/eval.c \
	src/core/plan/passes.c \
	src/core/plan/read.c \
	src/core/plan/ranks.c \
	src/core/plan/recompute.c \
	src/core/plan/regather.c \
	src/core/plan/remat.c \
	src/core/plan/replay.c \
	src/core/plan/donors.c \
	src/core/plan/roots.c \
	src/core/plan/fallback.c \
	src/core/plan/check.c \
	src/core/plan/fuse.c \
	src/core/plan/key.c \
	src/core/plan/launch.c \
	src/core/plan/layout.c \
	src/core/plan/lower.c \
	src/core/plan/miss.c \
	src/core/plan/order.c \
	src/core/plan/parts.c \
	src/core/plan/lower.h \
	src/core/plan/pieces.c \
	src/core/plan/plan.h \
	src/core/plan/print.c \
	src/core/plan/program.c \
	src/core/plan/spans.c \
	src/core/plan/spill.c \
	src/core/plan/strides.c \
	src/core/plan/uses.c \
	src/core/plan/waits.c \
	src/core/plan/where.c
