# SPDX-License-Identifier: Apache-2.0
# graph: tensors, the op table, gradients.
libyokecore_la_SOURCES += \
	src/graph/api_along.c \
	src/graph/api_at.c \
	src/graph/api_list.c \
	src/graph/api_map.c \
	src/graph/api_matmul.c \
	src/graph/api_move.c \
	src/graph/api_nn.c \
	src/graph/api_optim.c \
	src/graph/api_stat.c \
	src/graph/autocast.c \
	src/graph/autocast.h \
	src/graph/backward.c \
	src/graph/context.c \
	src/graph/context.h \
	src/graph/decompose.c \
	src/graph/decompose_attention.c \
	src/graph/failure.c \
	src/graph/grad_rules.c \
	src/graph/graph.c \
	src/graph/graph.h \
	src/graph/handle.c \
	src/graph/handle.h \
	src/graph/leaf.c \
	src/graph/list.h \
	src/graph/op.c \
	src/graph/op.h \
	src/graph/path.c \
	src/graph/history.c \
	src/graph/origin.c \
	src/graph/pack.c \
	src/graph/record.c \
	src/graph/record.h \
	src/graph/rows_along.c \
	src/graph/rows_at.c \
	src/graph/rows_list.c \
	src/graph/rows_order.c \
	src/graph/rows_rope.c \
	src/graph/scaler.c \
	src/graph/shape.c \
	src/graph/shape.h \
	src/graph/site.c \
	src/graph/site.h \
	src/graph/storage.c \
	src/graph/tensor.c \
	src/graph/wrap.c
