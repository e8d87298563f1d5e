// SPDX-License-Identifier: Apache-2.0
// Restricts the tokens of a choice to texts of a JSON schema.
#ifndef YK_SERVE_MASK_H
#define YK_SERVE_MASK_H

#include "schema/schema.h"

struct yk_mask {
	struct yk_schema_state *state; // NULL: any text
	int64_t n;                     // tokens that it has advanced by
};

// As the mask of a request to the engine: tokens [n] are those so far.
int yk_mask_apply(struct yk_mask *, int64_t n, const int32_t *tokens, uint32_t *bits, size_t words);

#endif
