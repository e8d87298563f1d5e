// SPDX-License-Identifier: Apache-2.0
// Lists of token ids, each as wide as its vocabulary asks for.
#ifndef YK_TOKENS_H
#define YK_TOKENS_H

#include <stddef.h>
#include <stdint.h>

// A growing list.  All zeros is empty.
struct yk_tokens {
	void *ids;
	size_t count, capacity; // tokens
	int width;              // bytes of one id: 1, 2 or 4
};

// Bytes of an id of a vocabulary of that size.
int yk_tokens_width(int32_t size);
// Room for `more` ids of a vocabulary of `size`, which sets the width of an empty list.
// ENOMEM leaves the list as it was.
int yk_tokens_reserve(struct yk_tokens *, int32_t size, size_t more);
// Appends one id; there must be room.
void yk_tokens_add(struct yk_tokens *, int32_t id);
int32_t yk_tokens_get(const struct yk_tokens *, size_t i);
// Copies n ids from `first` on, widened to 32 bits.
void yk_tokens_copy(const struct yk_tokens *, size_t first, size_t n, int32_t *to);
// Each id becomes to[id], of a vocabulary of `size`, no wider than the one before.
void yk_tokens_renumber(struct yk_tokens *, const int32_t *to, int32_t size);
void yk_tokens_fini(struct yk_tokens *);

#endif
