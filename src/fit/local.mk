# SPDX-License-Identifier: Apache-2.0
# fit: statistics of streams, pipelines of nodes fitted by them.
libyokecore_la_SOURCES += \
	src/fit/auc.c \
	src/fit/auc.h \
	src/fit/config.c \
	src/fit/node.h \
	src/fit/nodes.c \
	src/fit/parse.h \
	src/fit/phase1.c \
	src/fit/pipeline.c \
	src/fit/statistic.c \
	src/fit/statistic.h \
	src/fit/train.c \
	src/fit/train.h
