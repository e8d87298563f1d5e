# SPDX-License-Identifier: Apache-2.0
# The sub-command serve: language models with OpenAI's API over HTTP.  Linked into the command only.
yoke_SOURCES += \
	src/app/serve/batch.c \
	src/app/serve/call.h \
	src/app/serve/choice.c \
	src/app/serve/choice.h \
	src/app/serve/completions.c \
	src/app/serve/embeddings.c \
	src/app/serve/fields.c \
	src/app/serve/fields.h \
	src/app/serve/mask.c \
	src/app/serve/mask.h \
	src/app/serve/metrics.c \
	src/app/serve/metrics.h \
	src/app/serve/open.c \
	src/app/serve/open.h \
	src/app/serve/page.c \
	src/app/serve/page.h \
	src/app/serve/prompt.c \
	src/app/serve/prompt.h \
	src/app/serve/reply.c \
	src/app/serve/reply.h \
	src/app/serve/request.c \
	src/app/serve/request.h \
	src/app/serve/routes.c \
	src/app/serve/routes.h \
	src/app/serve/run.c \
	src/app/serve/serve.h \
	src/app/serve/state.h \
	src/app/serve/work.c
nodist_yoke_SOURCES += src/app/serve/pagetext.c
chat_page = src/app/serve/page.html src/app/serve/page.css src/app/serve/page.js
EXTRA_DIST += $(chat_page)
CLEANFILES += src/app/serve/pagetext.c

src/app/serve/pagetext.c: build-aux/arrays.sh $(chat_page)
	$(AM_V_GEN)$(MKDIR_P) src/app/serve && $(SHELL) $(srcdir)/build-aux/arrays.sh serve/page.h \
		yk_chat_page_html $(srcdir)/src/app/serve/page.html yk_chat_page_css $(srcdir)/src/app/serve/page.css \
		yk_chat_page_js $(srcdir)/src/app/serve/page.js hash:yk_chat_page_css_hash $(srcdir)/src/app/serve/page.css \
		hash:yk_chat_page_js_hash $(srcdir)/src/app/serve/page.js >$@.$$$$ && mv $@.$$$$ $@
