# SPDX-License-Identifier: Apache-2.0
# report: what is said of runs: plots, reports.
libyokecore_la_SOURCES += \
	src/report/conditions.c \
	src/report/conditions.h \
	src/report/html.c \
	src/report/html.h \
	src/report/plots.c \
	src/report/plots.h \
	src/report/summary.c \
	src/report/summary.h \
	src/report/svg.c \
	src/report/svg.h \
	src/report/text.c \
	src/report/trend.c
