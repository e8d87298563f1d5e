# SPDX-License-Identifier: Apache-2.0
# report: summaries, plots and diagnoses of runs.
libyokecore_la_SOURCES += \
	src/app/report/columns.c \
	src/app/report/columns.h \
	src/app/report/conditions.c \
	src/app/report/conditions.h \
	src/app/report/ended.c \
	src/app/report/finding.c \
	src/app/report/finding.h \
	src/app/report/headline.c \
	src/app/report/headline.h \
	src/app/report/html.c \
	src/app/report/html.h \
	src/app/report/html_plots.c \
	src/app/report/plots.c \
	src/app/report/plots.h \
	src/app/report/quantity.c \
	src/app/report/quantity.h \
	src/app/report/speed.c \
	src/app/report/summary.c \
	src/app/report/summary.h \
	src/app/report/svg.c \
	src/app/report/svg.h \
	src/app/report/text.c \
	src/app/report/trend.c
nodist_libyokecore_la_SOURCES += src/app/report/styletext.c
EXTRA_DIST += src/app/report/page.css
CLEANFILES += src/app/report/styletext.c

src/app/report/styletext.c: build-aux/arrays.sh src/app/report/page.css
	$(AM_V_GEN)$(MKDIR_P) src/app/report && $(SHELL) $(srcdir)/build-aux/arrays.sh report/html.h yk_html_style \
		$(srcdir)/src/app/report/page.css >$@.$$$$ && mv $@.$$$$ $@
