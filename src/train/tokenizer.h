// SPDX-License-Identifier: Apache-2.0
// Tokenizers: text to token ids and back.  The "byte" tokenizer has one id for each byte.
// Ids are 0 .. size - 1.
#ifndef YK_TOKENIZER_H
#define YK_TOKENIZER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct yk_tokenizer;

// A growing list of ids, as wide as the vocabulary asks for.  All zeros but width is
// empty.
struct yk_tokens {
	void *ids;
	size_t count, capacity; // tokens
	int width;              // bytes of one id: 1, 2 or 4
};

// By name; NULL with ENOENT naming the nearest.
struct yk_tokenizer *yk_tokenizer_new(const char *name);
void yk_tokenizer_free(struct yk_tokenizer *); // NULL is fine
const char *yk_tokenizer_name(const struct yk_tokenizer *);
int32_t yk_tokenizer_size(const struct yk_tokenizer *); // ids in the vocabulary
// Appends the ids of a text; sets the list's width when it is empty.  ENOMEM leaves the
// list as it was.
int yk_tokenizer_encode(const struct yk_tokenizer *, const char *text, size_t bytes,
			struct yk_tokens *to);
// The bytes that one id stands for, valid as long as the tokenizer; NULL for an id
// outside.
const char *yk_tokenizer_decode(const struct yk_tokenizer *, int32_t id, size_t *bytes);
// As the object that a manifest holds, and back; `what` is for messages.  NULL: EFORMAT,
// ENOENT, ENOMEM.
json_t *yk_tokenizer_save(const struct yk_tokenizer *);
struct yk_tokenizer *yk_tokenizer_load(const json_t *, const char *what);

int32_t yk_tokens_get(const struct yk_tokens *, size_t i);
// Copies n ids from `first` on, widened to 32 bits.
void yk_tokens_copy(const struct yk_tokens *, size_t first, size_t n, int32_t *to);
void yk_tokens_fini(struct yk_tokens *);

#endif
