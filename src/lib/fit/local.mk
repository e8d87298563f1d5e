# SPDX-License-Identifier: Apache-2.0
# fit: statistics of streams, pipelines of nodes fitted by them.
libyokecore_la_SOURCES += \
	src/lib/fit/config.c \
	src/lib/fit/flow.c \
	src/lib/fit/flow.h \
	src/lib/fit/fold.c \
	src/lib/fit/fold.h \
	src/lib/fit/keys.c \
	src/lib/fit/keys.h \
	src/lib/fit/local_rx.c \
	src/lib/fit/local_rx.h \
	src/lib/fit/local_rx_node.c \
	src/lib/fit/losses.c \
	src/lib/fit/losses.h \
	src/lib/fit/metrics.c \
	src/lib/fit/metrics.h \
	src/lib/fit/node.h \
	src/lib/fit/node_registry.c \
	src/lib/fit/nodes.c \
	src/lib/fit/parse.h \
	src/lib/fit/phase1.c \
	src/lib/fit/pipeline.c \
	src/lib/fit/pipeline_context.c \
	src/lib/fit/pipeline_context.h \
	src/lib/fit/resume.c \
	src/lib/fit/resume.h \
	src/lib/fit/scores.c \
	src/lib/fit/scores.h \
	src/lib/fit/states.c \
	src/lib/fit/statistic.c \
	src/lib/fit/statistic.h \
	src/lib/fit/train.c \
	src/lib/fit/training.h \
	src/lib/fit/tune.c \
	src/lib/fit/tune.h \
	src/lib/fit/values.c
