// SPDX-License-Identifier: Apache-2.0
// Offsets in an arena: places spans, largest first, each at the lowest offset that is free
// throughout its lifetime.
//
// Occupied intervals are kept in a segment tree over the steps (Bentley 1977): a span is stored in
// the few nodes that cover its lifetime, so that 20,000 values with the same lifetime cost little
// more than 20,000 consecutive ones.  Adjacent intervals are merged, so a node has few.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/param.h"
#include "plan/spans.h"

YK_PARAM(arena, "arena", YK_BOOL, "1",
	 "share memory between values whose lifetimes do not overlap", .debug = true);

struct interval {
	uint64_t from, to;
};

struct taken { // occupied intervals, disjoint, not adjacent, ascending
	struct interval *part;
	size_t n, cap;
};

struct tree { // node 1 is the root, 2k and 2k + 1 are children of k, leaf + s is step s
	struct taken *cover; // by node: spans that live through all its steps, but not its parent's
	struct taken *any;   // spans that live in at least one of its steps
	uint32_t leaf;
};

enum { SETS = 4 * 33 }; // two nodes per level, of two kinds

// ---- intervals ----

// The first interval that ends after `at`.
static size_t first_after(const struct taken *t, uint64_t at)
{
	size_t lo = 0, hi = t->n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (t->part[mid].to > at)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static int take(struct taken *t, uint64_t from, uint64_t to)
{
	size_t i = from ? first_after(t, from - 1) : 0, end = i; // intervals i .. end - 1 touch it
	for (; end < t->n && t->part[end].from <= to; end++) {
		from = t->part[end].from < from ? t->part[end].from : from;
		to = t->part[end].to > to ? t->part[end].to : to;
	}
	if (end == i && yk_grow(&t->part, &t->cap, t->n + 1, sizeof *t->part) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	memmove(t->part + i + 1, t->part + end, (t->n - end) * sizeof *t->part);
	t->part[i] = (struct interval){ from, to };
	t->n += 1 + i - end;
	return 0;
}

// ---- the tree ----

static int tree_init(struct tree *t, uint32_t steps)
{
	for (t->leaf = 1; t->leaf < steps;)
		t->leaf *= 2;
	t->cover = calloc(2 * (size_t)t->leaf, sizeof *t->cover);
	t->any = calloc(2 * (size_t)t->leaf, sizeof *t->any);
	return t->cover && t->any ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
}

static void tree_fini(struct tree *t)
{
	for (size_t k = 1; k < 2 * (size_t)t->leaf && t->cover && t->any; k++) {
		free(t->cover[k].part);
		free(t->any[k].part);
	}
	free(t->cover);
	free(t->any);
}

// The nodes that cover steps born .. dies; returns their number.
static int nodes_of(const struct tree *t, uint32_t born, uint32_t dies, uint32_t *node)
{
	uint32_t l = born + t->leaf, r = dies + t->leaf + 1;
	int n = 0;
	for (; l < r; l /= 2, r /= 2) {
		if (l & 1)
			node[n++] = l++;
		if (r & 1)
			node[n++] = --r;
	}
	return n;
}

static int tree_add(struct tree *t, const struct yk_span *s)
{
	uint64_t from = *s->offset, to = from + s->bytes;
	uint32_t node[SETS];
	int err = 0, n = nodes_of(t, s->born, s->dies, node);
	for (int i = 0; i < n && !err; i++) {
		err = take(&t->cover[node[i]], from, to);
		err = err ? err : take(&t->any[node[i]], from, to);
	}
	for (uint32_t k = s->born + t->leaf; k && !err; k /= 2)
		err = take(&t->any[k], from, to);
	for (uint32_t k = s->dies + t->leaf; k && !err; k /= 2)
		err = take(&t->any[k], from, to);
	return err;
}

// All intervals occupied during the span's life: `any` of its nodes, and `cover` of their
// ancestors.
static int beside(const struct tree *t, const struct yk_span *s, const struct taken **set)
{
	uint32_t node[SETS];
	int n = nodes_of(t, s->born, s->dies, node), sets = 0;
	for (int i = 0; i < n; i++)
		set[sets++] = &t->any[node[i]];
	for (uint32_t k = s->born + t->leaf; k; k /= 2)
		set[sets++] = &t->cover[k];
	for (uint32_t k = s->dies + t->leaf; k; k /= 2)
		set[sets++] = &t->cover[k];
	return sets;
}

// ---- placing ----

// The lowest offset from `at` on that is free in all sets, within one chunk.
static uint64_t lowest(const struct taken *const *set, int sets, uint64_t at, uint64_t bytes,
		       uint64_t largest)
{
	for (bool moved = true; moved;) {
		if (at / largest != (at + bytes - 1) / largest)
			at = (at / largest + 1) * largest;
		moved = false;
		for (int i = 0; i < sets; i++) {
			size_t k = first_after(set[i], at);
			if (k == set[i]->n || set[i]->part[k].from >= at + bytes)
				continue;
			at = set[i]->part[k].to;
			moved = true;
		}
	}
	return at;
}

static int by_size(const void *x, const void *y)
{
	const struct yk_span *a = x, *b = y;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->born != b->born ? (a->born > b->born ? 1 : -1) : 0;
}

int yk_spans_assign(struct yk_span *span, size_t n, uint32_t steps, uint64_t largest, uint64_t *top)
{
	bool share = yk_param_bool(&arena);
	const struct taken *set[SETS];
	struct tree t = { 0 };
	int err = share ? tree_init(&t, steps) : 0;
	if (share && !err)
		qsort(span, n, sizeof *span, by_size);
	for (size_t i = 0; i < n && !err; i++) {
		int sets = share ? beside(&t, &span[i], set) : 0;
		uint64_t at = lowest(set, sets, share ? 0 : *top, span[i].bytes, largest);
		*span[i].offset = at;
		if (at + span[i].bytes > *top)
			*top = at + span[i].bytes;
		err = share ? tree_add(&t, &span[i]) : 0;
	}
	tree_fini(&t);
	return err;
}
