# SPDX-License-Identifier: Apache-2.0
# text: tokenizers and lists of tokens.
libyokecore_la_SOURCES += \
	src/lib/text/stops.c \
	src/lib/text/stops.h \
	src/lib/text/tokenizer.c \
	src/lib/text/tokenizer.h \
	src/lib/text/tokens.c \
	src/lib/text/tokens.h \
	src/lib/text/words.c \
	src/lib/text/words.h
