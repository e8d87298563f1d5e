# SPDX-License-Identifier: Apache-2.0
# fit: statistics of streams, pipelines of nodes fitted by them.
libyokecore_la_SOURCES += \
	src/fit/config.c \
	src/fit/flow.c \
	src/fit/flow.h \
	src/fit/fold.c \
	src/fit/fold.h \
	src/fit/keys.c \
	src/fit/keys.h \
	src/fit/losses.c \
	src/fit/losses.h \
	src/fit/metrics.c \
	src/fit/metrics.h \
	src/fit/node.h \
	src/fit/nodes.c \
	src/fit/parse.h \
	src/fit/phase1.c \
	src/fit/pipeline.c \
	src/fit/place.c \
	src/fit/place.h \
	src/fit/resume.c \
	src/fit/resume.h \
	src/fit/scores.c \
	src/fit/scores.h \
	src/fit/states.c \
	src/fit/statistic.c \
	src/fit/statistic.h \
	src/fit/train.c \
	src/fit/train.h \
	src/fit/tune.c \
	src/fit/tune.h \
	src/fit/values.c
