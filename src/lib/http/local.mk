# SPDX-License-Identifier: Apache-2.0
# http: HTTP for servers of models.
libyokecore_la_SOURCES += \
	src/lib/http/arrays.c \
	src/lib/http/arrays.h \
	src/lib/http/client.c \
	src/lib/http/client.h \
	src/lib/http/exchange.c \
	src/lib/http/exchange.h \
	src/lib/http/function.c \
	src/lib/http/guard.c \
	src/lib/http/guard.h \
	src/lib/http/http.h \
	src/lib/http/page.c \
	src/lib/http/page.h
if MICROHTTPD
libyokecore_la_SOURCES += \
	src/lib/http/admit.c \
	src/lib/http/reply.c \
	src/lib/http/server.c \
	src/lib/http/server.h
else
libyokecore_la_SOURCES += src/lib/http/none.c
endif
