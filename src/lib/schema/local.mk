# SPDX-License-Identifier: Apache-2.0
# schema: restricts generated text to the JSON values of a schema.
libyokecore_la_SOURCES += \
	src/lib/schema/automaton.c \
	src/lib/schema/automaton.h \
	src/lib/schema/compile.c \
	src/lib/schema/compile.h \
	src/lib/schema/containers.c \
	src/lib/schema/format.c \
	src/lib/schema/format.h \
	src/lib/schema/mask.c \
	src/lib/schema/mask.h \
	src/lib/schema/members.c \
	src/lib/schema/number.c \
	src/lib/schema/number.h \
	src/lib/schema/pattern.c \
	src/lib/schema/pattern.h \
	src/lib/schema/program.c \
	src/lib/schema/program.h \
	src/lib/schema/scalars.c \
	src/lib/schema/schema.h \
	src/lib/schema/sequence.c \
	src/lib/schema/states.c \
	src/lib/schema/states.h \
	src/lib/schema/vocab.c \
	src/lib/schema/vocab.h
