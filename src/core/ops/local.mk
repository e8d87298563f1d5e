# SPDX-License-Identifier: Apache-2.0
# ops: one file for each family of operations.
libyokecore_la_SOURCES += \
	src/core/ops/attention.c \
	src/core/ops/barrier.c \
	src/core/ops/chain.c \
	src/core/ops/chain.h \
	src/core/ops/check.c \
	src/core/ops/conv.c \
	src/core/ops/conv.h \
	src/core/ops/cross_entropy.c \
	src/core/ops/custom.c \
	src/core/ops/custom.h \
	src/core/ops/custom_record.c \
	src/core/ops/elementwise.c \
	src/core/ops/gather_scatter.c \
	src/core/ops/grouped.c \
	src/core/ops/linalg.c \
	src/core/ops/list.c \
	src/core/ops/list.h \
	src/core/ops/loss.c \
	src/core/ops/matmul.c \
	src/core/ops/moments.c \
	src/core/ops/movement.c \
	src/core/ops/norm.c \
	src/core/ops/op.c \
	src/core/ops/optimizer.c \
	src/core/ops/pairs.c \
	src/core/ops/pairs.h \
	src/core/ops/pool.c \
	src/core/ops/program.c \
	src/core/ops/random.c \
	src/core/ops/ranks.c \
	src/core/ops/reduce.c \
	src/core/ops/resize.c \
	src/core/ops/resolvent.c \
	src/core/ops/resolvent.h \
	src/core/ops/rope.c \
	src/core/ops/rules.c \
	src/core/ops/rules.h \
	src/core/ops/scan.c \
	src/core/ops/slice_at.c \
	src/core/ops/softmax.c \
	src/core/ops/sort.c \
	src/core/ops/source.c \
	src/core/ops/special.c \
	src/core/ops/statistics.c \
	src/core/ops/window.c
