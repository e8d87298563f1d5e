# SPDX-License-Identifier: Apache-2.0
# live: views of active runs, linked into the command only.
# The library needs none of libmicrohttpd, ncurses and libedit.
yoke_SOURCES += \
	src/app/live/answers.c \
	src/app/live/answers.h \
	src/app/live/find.c \
	src/app/live/find.h \
	src/app/live/hardware.c \
	src/app/live/hardware.h \
	src/app/live/live.h \
	src/app/live/pace.c \
	src/app/live/pace.h \
	src/app/live/page.h \
	src/app/live/process.c \
	src/app/live/process.h \
	src/app/live/prometheus.c \
	src/app/live/prometheus.h \
	src/app/live/runset.c \
	src/app/live/top.c \
	src/app/live/top.h
nodist_yoke_SOURCES += src/app/live/pagetext.c
if MICROHTTPD
yoke_SOURCES += src/app/live/server.c
endif
if NCURSES
yoke_SOURCES += src/app/live/screen.c
endif
yoke_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS) $(LIBEDIT_CFLAGS)
yoke_LDADD += $(NCURSES_LIBS) $(LIBEDIT_LIBS)
live_page = src/app/live/page.html src/app/live/page.css
live_scripts = src/app/live/page_units.js src/app/live/page_charts.js src/app/live/page_tables.js src/app/live/page.js
EXTRA_DIST += build-aux/arrays.sh $(live_page) $(live_scripts)
CLEANFILES += src/app/live/pagetext.c src/app/live/page_all.js

# one script: the page's security policy has a hash for each
src/app/live/page_all.js: $(live_scripts)
	$(AM_V_GEN)$(MKDIR_P) src/app/live && for file in $(live_scripts); do cat $(srcdir)/$$file || exit 1; done >$@.$$$$ && mv $@.$$$$ $@

src/app/live/pagetext.c: build-aux/arrays.sh $(live_page) src/app/live/page_all.js
	$(AM_V_GEN)$(SHELL) $(srcdir)/build-aux/arrays.sh live/page.h yk_page_html $(srcdir)/src/app/live/page.html \
		yk_page_css $(srcdir)/src/app/live/page.css yk_page_js src/app/live/page_all.js \
		hash:yk_page_css_hash $(srcdir)/src/app/live/page.css hash:yk_page_js_hash src/app/live/page_all.js >$@.$$$$ && mv $@.$$$$ $@
