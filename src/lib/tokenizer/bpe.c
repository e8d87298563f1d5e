// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: a piece begins as characters; the adjacent pair of lowest rank, leftmost
// first, is merged until no pair has a merge.  A heap of candidate pairs makes this O(n log n);
// entries whose symbols have changed meanwhile are recognized when they are taken out.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tokenizer/model.h"
#include "tokenizer/pieces.h"

struct yk_symbol {
	int32_t id;          // -1: merged into the symbol before it, or no token (scored)
	uint32_t prev, next; // NONE: at the ends
	uint32_t at, n;      // interval of the piece
	bool frozen;         // never merged
};

struct yk_heap_entry {
	double cost;
	uint32_t left, bytes; // bytes of both symbols, which recognizes outdated entries
	int32_t to;
};

#define NONE UINT32_MAX

// ---- merges ----

static size_t slot_of(const struct yk_token_model *m, uint64_t pair)
{
	size_t i = (pair * 0x9e3779b97f4a7c15u >> 24) & (m->merge_size - 1);

	while (m->merge[i].to >= 0 && m->merge[i].pair != pair)
		i = (i + 1) & (m->merge_size - 1);
	return i;
}

int yk_bpe_merge(struct yk_token_model *m, int32_t left, int32_t right, int32_t rank, int32_t to)
{
	if (2 * (m->merges + 1) > m->merge_size) {
		struct yk_merge *before = m->merge;
		const size_t size = m->merge_size, wanted = size ? 2 * size : 1024;
		struct yk_merge *merge = malloc(wanted * sizeof *merge);
		if (!merge)
			return YOKE_ENOMEM;
		for (size_t i = 0; i < wanted; i++)
			merge[i].to = -1;
		m->merge = merge;
		m->merge_size = wanted;
		for (size_t i = 0; i < size; i++)
			if (before[i].to >= 0)
				merge[slot_of(m, before[i].pair)] = before[i];
		free(before);
	}
	const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
	struct yk_merge *x = &m->merge[slot_of(m, pair)];
	m->merges += x->to < 0;
	*x = (struct yk_merge){ .pair = pair, .rank = rank, .to = to };
	return 0;
}

// ---- the heap, lowest cost first, then leftmost ----

static bool before(const struct yk_heap_entry *a, const struct yk_heap_entry *b)
{
	return a->cost < b->cost || (a->cost == b->cost && a->left < b->left);
}

static int push(struct yk_scratch *w, struct yk_heap_entry x)
{
	if (yk_grow(&w->heap, &w->heap_cap, w->heaped + 1, sizeof *w->heap) < 0)
		return YOKE_ENOMEM;
	size_t i = w->heaped++;
	for (; i && before(&x, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = x;
	return 0;
}

static struct yk_heap_entry pop(struct yk_scratch *w)
{
	const struct yk_heap_entry top = w->heap[0], last = w->heap[--w->heaped];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < w->heaped; i = child) {
		if (child + 1 < w->heaped && before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = last;
	return top;
}

// Puts the pair that begins at a symbol on the heap, if it can be merged.
static int consider(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
		    struct yk_scratch *w, uint32_t left)
{
	if (left == NONE || w->symbol[left].next == NONE)
		return 0;
	const struct yk_symbol *a = &w->symbol[left], *b = &w->symbol[a->next];
	struct yk_heap_entry x = { .left = left, .bytes = a->n + b->n };

	if (m->scored) {
		if (a->frozen || b->frozen)
			return 0;
		x.to = yk_vocab_id(v, s + a->at, x.bytes);
		if (x.to < 0 || isnan(m->score[x.to])) // no token, or a reserved one
			return 0;
		x.cost = -m->score[x.to];
		return push(w, x);
	}
	if (!m->merge_size || a->id < 0 || b->id < 0)
		return 0;
	const struct yk_merge *found =
		&m->merge[slot_of(m, (uint64_t)(uint32_t)a->id << 32 | (uint32_t)b->id)];
	if (found->to < 0)
		return 0;
	x.to = found->to;
	x.cost = found->rank;
	return push(w, x);
}

static int merge_all(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
		     struct yk_scratch *w)
{
	w->heaped = 0;
	for (size_t i = 0; i + 1 < w->symbols; i++)
		if (consider(m, v, s, w, (uint32_t)i) < 0)
			return YOKE_ENOMEM;
	while (w->heaped) {
		const struct yk_heap_entry x = pop(w);
		struct yk_symbol *a = &w->symbol[x.left];
		if (!a->n || a->next == NONE || a->n + w->symbol[a->next].n != x.bytes)
			continue;
		struct yk_symbol *b = &w->symbol[a->next];
		a->id = x.to;
		a->n = x.bytes;
		a->next = b->next;
		b->n = 0;
		if (a->next != NONE)
			w->symbol[a->next].prev = x.left;
		if (consider(m, v, s, w, a->prev) < 0 || consider(m, v, s, w, x.left) < 0)
			return YOKE_ENOMEM;
	}
	return 0;
}

// ---- symbols ----

static int symbol_add(struct yk_scratch *w, int32_t id, size_t at, size_t n, bool frozen)
{
	if (yk_grow(&w->symbol, &w->symbol_cap, w->symbols + 1, sizeof *w->symbol) < 0)
		return YOKE_ENOMEM;
	const uint32_t i = (uint32_t)w->symbols++;
	w->symbol[i] = (struct yk_symbol){ .id = id,
					   .prev = i ? i - 1 : NONE,
					   .next = NONE,
					   .at = (uint32_t)at,
					   .n = (uint32_t)n,
					   .frozen = frozen };
	if (i)
		w->symbol[i - 1].next = i;
	return 0;
}

// The id of a character with the prefix or suffix that its position in the piece requires.
static int32_t affixed(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
		       size_t n, bool first, bool last, struct yk_scratch *w)
{
	const size_t before_n = first ? 0 : m->prefix_bytes, after_n = last ? m->suffix_bytes : 0;

	if (!before_n && !after_n)
		return n == 1 ? m->ascii[(unsigned char)*s & 0x7f] : yk_vocab_id(v, s, n);
	if (yk_grow(&w->text, &w->text_cap, before_n + n + after_n, 1) < 0)
		return YOKE_ENOMEM;
	if (before_n)
		memcpy(w->text, m->prefix, before_n);
	memcpy(w->text + before_n, s, n);
	if (after_n)
		memcpy(w->text + before_n + n, m->suffix, after_n);
	return yk_vocab_id(v, w->text, before_n + n + after_n);
}

// Do all of the bytes have tokens?
static bool has_bytes(const struct yk_token_model *m, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m->byte[(unsigned char)s[i]] < 0)
			return false;
	return true;
}

// An unknown interval is added when it can grow no more.
struct unknown {
	bool open;
	size_t at, n;
};

static int unknown_end(const struct yk_token_model *m, struct unknown *u, struct yk_scratch *w)
{
	if (!u->open)
		return 0;
	u->open = false;
	return symbol_add(w, m->unknown, u->at, u->n, false);
}

static int symbols(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
		   size_t n, struct yk_scratch *w)
{
	struct unknown u = { 0 };
	int e = 0;

	w->symbols = 0;
	for (size_t i = 0, size; e == 0 && i < n; i += size) {
		size = yk_char_size(s[i]);
		const int32_t id = affixed(m, v, s + i, size, i == 0, i + size == n, w);
		if (id == YOKE_ENOMEM) {
			e = YOKE_ENOMEM;
		} else if (id >= 0) {
			e = unknown_end(m, &u, w);
			if (e == 0)
				e = symbol_add(w, id, i, size, false);
		} else if (m->fallback && has_bytes(m, s + i, size)) {
			for (size_t j = 0; e == 0 && j < size; j++)
				e = symbol_add(w, m->byte[(unsigned char)s[i + j]], i + j, 1,
					       false);
		} else if (m->unknown >= 0) {
			if (u.open && m->fuse) {
				u.n += size;
				continue;
			}
			e = unknown_end(m, &u, w);
			u = (struct unknown){ true, i, size };
		}
	}
	return e < 0 ? e : unknown_end(m, &u, w);
}

// SentencePiece: characters without a token take part in merges too; user-defined symbols do not.
static int scored_symbols(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
			  size_t n, struct yk_scratch *w)
{
	w->symbols = 0;
	for (size_t i = 0, size; i < n; i += size) {
		const int32_t user = yk_trie_longest(&m->user, s + i, s + n, &size);
		if (user < 0)
			size = yk_char_size(s[i]);
		const int32_t id = user >= 0 ? user : yk_vocab_id(v, s + i, size);
		if (symbol_add(w, id, i, size, user >= 0) < 0)
			return YOKE_ENOMEM;
	}
	return 0;
}

int yk_bpe_encode(const struct yk_token_model *m, const struct yk_vocab *v, const char *s, size_t n,
		  struct yk_scratch *w, struct yk_ids *to)
{
	bool unknown = false;

	if (n >= NONE)
		return yk_fail(YOKE_ERANGE,
			       "a piece of text has %zu bytes, less than 4 GiB is possible", n);
	if (m->whole && !m->scored) {
		const int32_t id = yk_vocab_id(v, s, n);
		if (id >= 0) {
			yk_ids_add(to, id);
			return 0;
		}
	}
	int e = m->scored ? scored_symbols(m, v, s, n, w) : symbols(m, v, s, n, w);
	if (e == 0)
		e = merge_all(m, v, s, w);
	if (e < 0)
		return yk_fail(e, "no memory to tokenize %zu bytes", n);
	for (uint32_t i = 0; w->symbols && i != NONE; i = w->symbol[i].next) {
		const struct yk_symbol *x = &w->symbol[i];
		const bool was = unknown;
		unknown = m->scored && (x->id < 0 || x->id == m->unknown);
		if (!unknown)
			yk_ids_add(to, x->id);
		else if (m->fallback)
			for (uint32_t j = 0; j < x->n; j++)
				yk_ids_add(to, m->byte[(unsigned char)s[x->at + j]]);
		else if (!was)
			yk_ids_add(to, m->unknown);
	}
	return 0;
}
