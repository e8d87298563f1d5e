# SPDX-License-Identifier: Apache-2.0
# dist: groups of ranks and what they do together.
libyokecore_la_SOURCES += \
	src/dist/schedule.c \
	src/dist/schedule.h
