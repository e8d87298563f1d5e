// SPDX-License-Identifier: Apache-2.0
// Bitmaps of the tokens that may follow a state, and a bounded cache of them.
#ifndef YK_SCHEMA_MASK_H
#define YK_SCHEMA_MASK_H

#include "schema/states.h"
#include "schema/vocab.h"

struct yk_masks {
	const struct yk_schema_vocab *vocab; // NULL: no tokens
	uint32_t *bits;                      // [slots, words]
	uint32_t *owner;                     // the state of each slot, 0: unused
	size_t slots, next;                  // next: the slot to be reused
};

void yk_masks_init(struct yk_masks *, const struct yk_schema_vocab *);
void yk_masks_fini(struct yk_masks *);
void yk_masks_clear(struct yk_masks *); // forgets all masks
// Fills a bitmap; `finished`: a token has ended the text.  ERANGE, ENOMEM, not reported.
int yk_masks_fill(struct yk_masks *, struct yk_states *, uint32_t state, bool finished,
		  uint32_t *bitmap);
// The bytes of a token of text; NULL: another one.
const char *yk_masks_text(const struct yk_masks *, int32_t token, size_t *n);
bool yk_masks_ends(const struct yk_masks *, int32_t token);

#endif
