// SPDX-License-Identifier: Apache-2.0
// Growing lists of token ids, stored in 1, 2 or 4 bytes each, depending on the size of the
// vocabulary.
#ifndef YK_TOKENS_H
#define YK_TOKENS_H

#include <stddef.h>
#include <stdint.h>

// All zeros is an empty list.
struct yk_tokens {
	void *ids;
	size_t count, capacity; // tokens
	int width;              // bytes of one id: 1, 2 or 4
};

// Bytes per id for a vocabulary of that size.
int yk_tokens_width(int32_t size);
// Reserves memory for `more` ids of a vocabulary of `size`, which sets the width of an empty list.
// ENOMEM leaves the list unchanged.
int yk_tokens_reserve(struct yk_tokens *, int32_t size, size_t more);
// Appends one id; memory must be reserved.
void yk_tokens_add(struct yk_tokens *, int32_t id);
int32_t yk_tokens_get(const struct yk_tokens *, size_t i);
// Copies n ids from index `first`, widened to 32 bits.
void yk_tokens_copy(const struct yk_tokens *, size_t first, size_t n, int32_t *to);
// Replaces each id by to[id], an id of a vocabulary of `size` that needs no wider ids.
void yk_tokens_renumber(struct yk_tokens *, const int32_t *to, int32_t size);
void yk_tokens_fini(struct yk_tokens *);

#endif
