# SPDX-License-Identifier: Apache-2.0
# text: tokenizers, lists of tokens.
libyokecore_la_SOURCES += \
	src/text/tokenizer.c \
	src/text/tokenizer.h \
	src/text/tokens.c \
	src/text/tokens.h \
	src/text/words.c \
	src/text/words.h
