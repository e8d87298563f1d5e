# SPDX-License-Identifier: Apache-2.0
# graph: tensors, the op table, gradients.
libyokecore_la_SOURCES += \
	src/core/graph/across.c \
	src/core/graph/ahead.c \
	src/core/graph/autocast.c \
	src/core/graph/autocast.h \
	src/core/graph/backward.c \
	src/core/graph/lifetime.c \
	src/core/graph/scope.c \
	src/core/graph/append.c \
	src/core/graph/slot.h \
	src/core/graph/context.h \
	src/core/graph/failure.c \
	src/core/graph/graph.c \
	src/core/graph/graph.h \
	src/core/graph/handle.c \
	src/core/graph/handle.h \
	src/core/graph/history.c \
	src/core/graph/leaf.c \
	src/core/graph/move.c \
	src/core/graph/observe.c \
	src/core/graph/op.h \
	src/core/graph/origin.c \
	src/core/graph/pack.c \
	src/core/graph/path.c \
	src/core/graph/profiler.c \
	src/core/graph/record.c \
	src/core/graph/record.h \
	src/core/graph/record_list.c \
	src/core/graph/site.c \
	src/core/graph/site.h \
	src/core/graph/site_line.c \
	src/core/graph/storage.c \
	src/core/graph/tensor.c \
	src/core/graph/trim.c \
	src/core/graph/version.c \
	src/core/graph/wait.c \
	src/core/graph/wrap.c
