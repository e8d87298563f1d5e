# SPDX-License-Identifier: Apache-2.0
# conform: what the ops of the plugin ABI have to give, and whether a device does.
libyokecore_la_SOURCES += \
	src/lib/conform/case.c \
	src/lib/conform/case.h \
	src/lib/conform/cases_algebra.c \
	src/lib/conform/cases_attention.c \
	src/lib/conform/cases_contract.c \
	src/lib/conform/cases_conv.c \
	src/lib/conform/cases_largest.c \
	src/lib/conform/cases_list.c \
	src/lib/conform/cases_map.c \
	src/lib/conform/cases_moments.c \
	src/lib/conform/cases_move.c \
	src/lib/conform/cases_resolvent.c \
	src/lib/conform/cases_rows.c \
	src/lib/conform/cases_scan.c \
	src/lib/conform/cases_source.c \
	src/lib/conform/cases_sum.c \
	src/lib/conform/conform.c \
	src/lib/conform/conform.h \
	src/lib/conform/draw_program.c \
	src/lib/conform/draw_program.h \
	src/lib/conform/program.c \
	src/lib/conform/program.h \
	src/lib/conform/run.c \
	src/lib/conform/run.h \
	src/lib/conform/sample.h \
	src/lib/conform/selftest.c \
	src/lib/conform/selftest.h \
	src/lib/conform/tune.c \
	src/lib/conform/tune.h
