// SPDX-License-Identifier: Apache-2.0
// Allocates and frees the memory of a caller that encodes.
#include "config.h"

#include "tokenizer/encode_cache.h"

#include <stdlib.h>

struct yk_encode_cache *yk_encode_cache_new(void)
{
	struct yk_encode_cache *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->entry = calloc(YK_ENCODE_ENTRIES, sizeof *w->entry);
	w->bytes = malloc(YK_ENCODE_POOL_BYTES);
	w->ids = malloc(YK_ENCODE_POOL_IDS * sizeof *w->ids);
	if (!w->entry || !w->bytes || !w->ids) {
		yk_encode_cache_free(w);
		return NULL;
	}
	return w;
}

void yk_encode_cache_free(struct yk_encode_cache *w)
{
	if (!w)
		return;
	yk_scratch_fini(&w->scratch);
	yk_string_fini(&w->normal);
	yk_string_fini(&w->swap);
	yk_pieces_fini(&w->pieces);
	yk_pieces_fini(&w->pieces_swap);
	free(w->entry);
	free(w->bytes);
	free(w->ids);
	free(w);
}
