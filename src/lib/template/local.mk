# SPDX-License-Identifier: Apache-2.0
# template: the interpreter of chat templates.
libyokecore_la_SOURCES += \
	src/lib/template/containers.c \
	src/lib/template/eval.c \
	src/lib/template/eval.h \
	src/lib/template/expression.c \
	src/lib/template/filters.c \
	src/lib/template/format.c \
	src/lib/template/functions.c \
	src/lib/template/functions.h \
	src/lib/template/lex.c \
	src/lib/template/origin.c \
	src/lib/template/parser.c \
	src/lib/template/parser.h \
	src/lib/template/sequences.c \
	src/lib/template/statements.c \
	src/lib/template/strings.c \
	src/lib/template/syntax.h \
	src/lib/template/template.c \
	src/lib/template/template.h \
	src/lib/template/text.c \
	src/lib/template/value.c \
	src/lib/template/value.h
