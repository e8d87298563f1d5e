# SPDX-License-Identifier: Apache-2.0
# conform: what the ops of the plugin ABI have to give, and whether a device does.
libyokecore_la_SOURCES += \
	src/conform/case.c \
	src/conform/case.h \
	src/conform/cases_algebra.c \
	src/conform/cases_attention.c \
	src/conform/cases_contract.c \
	src/conform/cases_conv.c \
	src/conform/cases_largest.c \
	src/conform/cases_list.c \
	src/conform/cases_map.c \
	src/conform/cases_moments.c \
	src/conform/cases_move.c \
	src/conform/cases_resolvent.c \
	src/conform/cases_rows.c \
	src/conform/cases_scan.c \
	src/conform/cases_source.c \
	src/conform/cases_sum.c \
	src/conform/conform.c \
	src/conform/conform.h \
	src/conform/draw_program.c \
	src/conform/draw_program.h \
	src/conform/num.c \
	src/conform/num.h \
	src/conform/program.c \
	src/conform/program.h \
	src/conform/run.c \
	src/conform/run.h \
	src/conform/sample.h \
	src/conform/selftest.c \
	src/conform/selftest.h \
	src/conform/tune.c \
	src/conform/tune.h
