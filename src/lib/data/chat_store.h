// SPDX-License-Identifier: Apache-2.0
// Files of tokenized conversations: safetensors with
//     tokens   U8, U16 or U32 [N]
//     targets  U8 [N]: 1: to be learned
//     samples  I64 [S]: the token at which each sample begins
//     kinds    U8 [S]: 0: a text, 1: the first sample of a conversation, 2: another one of the
//              same conversation
// and metadata:
//     format      "yoke conversations 1"
//     vocabulary  XXH64 of all that decides the tokens, 16 hexadecimal digits: the tokenizer's
//                 file (tokenizer.json without its formatting, tokenizer.model, or the tokenizer.*
//                 keys of a GGUF file), its special tokens, and the chat template
//     xxh64       hash of all bytes of the arrays, in file order
//     sources     JSON: the files that were read, as in checkpoint manifests
// Samples are not cut, so that the file suits each length of the context.
#ifndef YK_DATA_CHAT_STORE_H
#define YK_DATA_CHAT_STORE_H

#include "data/chat_tokens.h"
#include "data/source.h"
#include "data/tokenfile.h"

enum yk_chat_kind { YK_CHAT_TEXT, YK_CHAT_FIRST, YK_CHAT_FURTHER };

// All zeros is empty.
struct yk_chat_store {
	struct yk_tokens ids;
	unsigned char *target, *kind; // [ids.count], [count]
	int64_t *begin;               // [count]
	size_t count, target_cap, kind_cap, begin_cap;
};

// Adds a sample of a vocabulary of `size`.  ENOMEM.
int yk_chat_store_add(struct yk_chat_store *, int32_t size, enum yk_chat_kind,
		      const struct yk_chat_tokens *);
void yk_chat_store_fini(struct yk_chat_store *);
// Writes the file atomically.
int yk_chat_store_write(const struct yk_chat_store *, const struct yk_tokenizer *,
			const struct yk_sources *, const char *path);
// Calls fn with each sample of a file and adds the bytes of its arrays to *bytes.  EFORMAT:
// damaged; EINVAL: of another tokenizer; ERANGE: *bytes would exceed data.max; ENOENT, EIO, ENOMEM.
int yk_chat_store_read(const char *path, const struct yk_tokenizer *, uint64_t *bytes,
		       int (*fn)(void *arg, enum yk_chat_kind, const struct yk_chat_tokens *),
		       void *arg);
// Counts of a file; lines: conversations and texts.
struct yk_chats_prepared {
	int64_t lines, samples, tokens, targets;
};
void yk_chats_summarize(const unsigned char *target, size_t tokens, const unsigned char *kind,
			size_t samples, struct yk_chats_prepared *);
// Checks hash and order of a file, and counts what it has.  Errors as yk_chat_store_read's.
int yk_chat_store_check(const char *path, struct yk_chats_prepared *);
// Is it such a file, by its header?
bool yk_chat_store_is(const char *path);

#endif
