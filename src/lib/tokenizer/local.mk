# SPDX-License-Identifier: Apache-2.0
# tokenizer: published tokenizers and chat templates.
libyokecore_la_SOURCES += \
	src/lib/tokenizer/added.c \
	src/lib/tokenizer/added.h \
	src/lib/tokenizer/bpe.c \
	src/lib/tokenizer/charsmap.c \
	src/lib/tokenizer/charsmap.h \
	src/lib/tokenizer/decoders.c \
	src/lib/tokenizer/encode.c \
	src/lib/tokenizer/encode_cache.c \
	src/lib/tokenizer/encode_cache.h \
	src/lib/tokenizer/folder.c \
	src/lib/tokenizer/gguf.c \
	src/lib/tokenizer/gguf.h \
	src/lib/tokenizer/gguf_file.c \
	src/lib/tokenizer/json.c \
	src/lib/tokenizer/json_steps.c \
	src/lib/tokenizer/model.c \
	src/lib/tokenizer/model.h \
	src/lib/tokenizer/normalize.c \
	src/lib/tokenizer/pieces.c \
	src/lib/tokenizer/pieces.h \
	src/lib/tokenizer/segments.h \
	src/lib/tokenizer/regex.c \
	src/lib/tokenizer/regex.h \
	src/lib/tokenizer/split.c \
	src/lib/tokenizer/spm.c \
	src/lib/tokenizer/spm.h \
	src/lib/tokenizer/spm_file.c \
	src/lib/tokenizer/steps.h \
	src/lib/tokenizer/tokenizer.c \
	src/lib/tokenizer/tokenizer.h \
	src/lib/tokenizer/train.c \
	src/lib/tokenizer/train.h \
	src/lib/tokenizer/train_words.c \
	src/lib/tokenizer/trie.c \
	src/lib/tokenizer/trie.h \
	src/lib/tokenizer/unicode.c \
	src/lib/tokenizer/unicode.h \
	src/lib/tokenizer/unicode_newer.h \
	src/lib/tokenizer/unigram.c \
	src/lib/tokenizer/vocab.c \
	src/lib/tokenizer/vocab.h
