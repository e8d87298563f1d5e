// SPDX-License-Identifier: Apache-2.0
// A mask is found by walking the trees of tokens and states at once.  Most tokens are plain; inside
// a string all of them follow, or those that are not too long, and their tree is not walked.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "schema/mask.h"
#include "yoke.h"

#define CACHE_BYTES ((size_t)8 << 20)
enum { MIN_SLOTS = 16, MAX_SLOTS = 4096 };

void yk_masks_init(struct yk_masks *m, const struct yk_schema_vocab *v)
{
	*m = (struct yk_masks){ .vocab = v };
	if (v && v->words) {
		m->slots = CACHE_BYTES / (v->words * sizeof *m->bits);
		m->slots = m->slots < MIN_SLOTS ? MIN_SLOTS :
			   m->slots > MAX_SLOTS ? MAX_SLOTS :
						  m->slots;
	}
}

void yk_masks_fini(struct yk_masks *m)
{
	free(m->bits);
	free(m->owner);
}

void yk_masks_clear(struct yk_masks *m)
{
	if (m->owner)
		memset(m->owner, 0, m->slots * sizeof *m->owner);
}

const char *yk_masks_text(const struct yk_masks *m, int32_t token, size_t *n)
{
	if (!m->vocab || token < 0 || token >= m->vocab->ids || !m->vocab->token[token].n)
		return NULL;
	*n = m->vocab->token[token].n;
	return m->vocab->bytes + m->vocab->token[token].at;
}

bool yk_masks_ends(const struct yk_masks *m, int32_t token)
{
	return m->vocab && token >= 0 && token < m->vocab->ids && m->vocab->token[token].ends;
}

static void set(uint32_t *bits, uint32_t id)
{
	bits[id / 32] |= (uint32_t)1 << id % 32;
}

// Adds the tokens of a tree whose bytes lead to a living state.
static int walk(const struct yk_token_tree *t, struct yk_states *s, uint32_t state, uint32_t *bits)
{
	uint32_t at[YK_TOKEN_BYTES + 1] = { state }; // before the byte of each depth

	for (size_t i = 0; i < t->nodes;) {
		const struct yk_token_node *n = &t->node[i];
		uint32_t to;
		const int e = yk_states_step(s, at[n->depth], n->byte, &to);
		if (e < 0)
			return e;
		if (to == YK_STATE_DEAD) {
			i = n->end;
			continue;
		}
		at[n->depth + 1] = to;
		for (uint32_t j = n->token; j < n[1].token; j++)
			set(bits, t->id[j]);
		i++;
	}
	return 0;
}

// How many plain characters may follow, whichever they are, up to those of the longest plain token;
// -1: some may follow and others not.
static int plain_length(const struct yk_schema_vocab *v, struct yk_states *s, uint32_t state,
			int *to)
{
	*to = -1;
	for (size_t n = 0; n <= v->plain_max; n++) {
		uint32_t next = s->state[state].plain;
		if (next == YK_STATE_UNKNOWN) {
			const int e = yk_states_plain(s, state, &next);
			if (e < 0)
				return e;
			if (next == YK_STATE_UNKNOWN)
				return 0;
			s->state[state].plain = next;
		}
		if (next == YK_STATE_DEAD || n == v->plain_max || next == state) {
			*to = next == YK_STATE_DEAD ? (int)n : (int)v->plain_max;
			return 0;
		}
		state = next;
	}
	return 0;
}

static int compute(const struct yk_schema_vocab *v, struct yk_states *s, uint32_t state,
		   uint32_t *bits)
{
	int chars, e = plain_length(v, s, state, &chars);

	if (e < 0)
		return e;
	if (chars == (int)v->plain_max) {
		memcpy(bits, v->plain_bits, v->words * sizeof *bits);
	} else {
		memset(bits, 0, v->words * sizeof *bits);
		for (size_t i = 0; chars >= 0 && i < v->plain.ids && v->plain_chars[i] <= chars;
		     i++)
			set(bits, v->plain_id[i]);
		if (chars < 0)
			e = walk(&v->plain, s, state, bits);
	}
	if (e == 0)
		e = walk(&v->other, s, state, bits);
	for (size_t i = 0; e == 0 && s->state[state].complete && i < v->words; i++)
		bits[i] |= v->end_bits[i];
	return e;
}

int yk_masks_fill(struct yk_masks *m, struct yk_states *s, uint32_t state, bool finished,
		  uint32_t *bitmap)
{
	const struct yk_schema_vocab *v = m->vocab;

	if (!v || !v->words)
		return 0;
	if (finished) {
		memcpy(bitmap, v->end_bits, v->words * sizeof *bitmap);
		return 0;
	}
	if (!m->bits) {
		m->bits = malloc(m->slots * v->words * sizeof *m->bits);
		m->owner = calloc(m->slots, sizeof *m->owner);
		if (!m->bits || !m->owner) {
			yk_masks_fini(m);
			m->bits = m->owner = NULL;
			return YOKE_ENOMEM;
		}
	}
	if (!s->state[state].slot) {
		const size_t slot = m->next;
		uint32_t *bits = m->bits + slot * v->words;
		if (m->owner[slot])
			s->state[m->owner[slot]].slot = 0;
		m->owner[slot] = 0;
		const int e = compute(v, s, state, bits);
		if (e < 0)
			return e;
		m->owner[slot] = state;
		s->state[state].slot = (uint32_t)slot + 1;
		m->next = (slot + 1) % m->slots;
	}
	memcpy(bitmap, m->bits + (s->state[state].slot - 1) * v->words, v->words * sizeof *bitmap);
	return 0;
}
