# SPDX-License-Identifier: Apache-2.0
# live: views of runs while they live.  Only the command has them: the library links no server and no terminal.
yoke_SOURCES += \
	src/live/answers.c \
	src/live/answers.h \
	src/live/guard.c \
	src/live/guard.h \
	src/live/live.h \
	src/live/page.h \
	src/live/process.c \
	src/live/process.h \
	src/live/prometheus.c \
	src/live/prometheus.h \
	src/live/sha256.c \
	src/live/sha256.h \
	src/live/top.c \
	src/live/top.h
nodist_yoke_SOURCES += src/live/pagetext.c
if MICROHTTPD
yoke_SOURCES += src/live/server.c
endif
if NCURSES
yoke_SOURCES += src/live/screen.c
endif
yoke_CPPFLAGS = $(AM_CPPFLAGS) $(MICROHTTPD_CFLAGS) $(NCURSES_CFLAGS)
yoke_LDADD += $(MICROHTTPD_LIBS) $(NCURSES_LIBS)
EXTRA_DIST += build-aux/arrays.sh src/live/page.css src/live/page.js
CLEANFILES += src/live/pagetext.c

src/live/pagetext.c: build-aux/arrays.sh src/live/page.css src/live/page.js
	$(AM_V_GEN)$(MKDIR_P) src/live && $(SHELL) $(srcdir)/build-aux/arrays.sh live/page.h \
		yk_page_css $(srcdir)/src/live/page.css yk_page_js $(srcdir)/src/live/page.js >$@.$$$$ && mv $@.$$$$ $@
