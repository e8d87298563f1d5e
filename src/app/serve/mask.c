// SPDX-License-Identifier: Apache-2.0
// From the state of a schema to the tokens that the engine may sample.
#include "config.h"

#include "serve/mask.h"

int yk_mask_apply(struct yk_mask *m, int64_t n, const int32_t *tokens, uint32_t *bits, size_t words)
{
	bool any = false;
	int e = 0;
	if (!m->state)
		return 0;
	while (m->n < n && e == 0)
		e = yk_schema_advance(m->state, tokens[m->n++]);
	if (e < 0 || yk_schema_finished(m->state))
		return e < 0 ? e : 1;
	e = yk_schema_allowed(m->state, bits);
	for (size_t i = 0; i < words && !any; i++)
		any = bits[i];
	// A tokenizer may have no token that ends a text.
	return e == 0 && !any && yk_schema_complete(m->state) ? 1 : e;
}
