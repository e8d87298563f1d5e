// SPDX-License-Identifier: Apache-2.0
// A vocabulary: tokens by id, and ids by token.  Ids may have gaps.
#ifndef YK_VOCAB_H
#define YK_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { YK_VOCAB_MAX = 1 << 24, YK_VOCAB_TOKEN = 1 << 20 }; // ids; bytes of a token

struct yk_token {
	const char *s; // NUL-terminated; NULL: no token has this id
	uint32_t n;
	uint32_t special : 1;
};

struct yk_vocab {
	struct yk_arena arena; // the bytes of the tokens
	struct yk_token *token;
	size_t count, cap; // ids
	uint32_t *table;   // id + 1, open addressing; several ids may have equal tokens
	size_t table_size, used;
	size_t longest; // bytes of a token
};

// Gives an id its token.  A later id with the same token does not change what yk_vocab_id
// finds.  EFORMAT: the id has another token, or a limit is exceeded; ENOMEM.
int yk_vocab_add(struct yk_vocab *, const char *what, int64_t id, const char *s, size_t n);
// The id of a token, -1 if unknown.
int32_t yk_vocab_id(const struct yk_vocab *, const char *s, size_t n);
void yk_vocab_fini(struct yk_vocab *);

#endif
