# SPDX-License-Identifier: Apache-2.0
# fit: statistics of streams, pipelines of nodes fitted by them.
libyokecore_la_SOURCES += \
	src/fit/node.h \
	src/fit/nodes.c \
	src/fit/phase1.c \
	src/fit/pipeline.c \
	src/fit/statistic.c \
	src/fit/statistic.h
