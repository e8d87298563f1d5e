// SPDX-License-Identifier: Apache-2.0
// Origins: from which other storages the bytes of a kept value were computed, so that a gradient that
// would have to go on behind them is refused instead of being 0.
//
// A storage that others were computed from has a mark, a slot and that slot's generation; an origin is
// a list of marks.  Marks of storages that are gone are recognised and dropped, so a value that is fed
// back for ever does not grow.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"

struct yk_origin {
	uint16_t op;   // what computed it, ..
	uint32_t path; // .. and in which scope
	uint32_t n;
	uint64_t mark[]; // ascending
};

static uint64_t mark_at(const struct yk_origins *o, uint32_t slot)
{
	return (uint64_t)o->generation[slot] << 32 | slot;
}

static bool is_there(const struct yk_origins *o, uint64_t mark)
{
	return o->generation[(uint32_t)mark] == mark >> 32;
}

static int take_slot(struct yk_origins *o, uint32_t *slot)
{
	if (o->spares) {
		*slot = o->spare[--o->spares];
		return 0;
	}
	// room in both at once: giving a slot back does not fail
	if (yk_grow(&o->generation, &o->cap, o->slots + 1, sizeof *o->generation) < 0 ||
	    yk_grow(&o->spare, &o->spare_cap, o->slots + 1, sizeof *o->spare) < 0)
		return YOKE_ENOMEM;
	o->generation[o->slots] = 0;
	*slot = (uint32_t)o->slots++;
	return 0;
}

// The storage's mark, made if it has none; 0: no memory.
static uint64_t mark_of(struct yk_storage *s)
{
	uint32_t slot;
	struct yk_origins *o = &s->ctx->origins;
	if (!s->mark && take_slot(o, &slot) == 0) {
		o->generation[slot]++; // never 0
		s->mark = mark_at(o, slot);
	}
	return s->mark;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static size_t sort_unique(uint64_t *mark, size_t n)
{
	size_t kept = 0;
	qsort(mark, n, sizeof *mark, ascending);
	for (size_t i = 0; i < n; i++)
		if (!kept || mark[kept - 1] != mark[i])
			mark[kept++] = mark[i];
	return kept;
}

void yk_origin_note(struct yk_storage *to, uint16_t op, uint32_t path, uint32_t n,
		    const struct yk_leaf *const *leaf)
{
	const struct yk_origins *o = &to->ctx->origins;
	size_t most = n, kept = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!leaf[i]->variable && leaf[i]->storage->origin)
			most += leaf[i]->storage->origin->n;
	struct yk_origin *r = malloc(sizeof *r + most * sizeof *r->mark);
	if (!r) // a gradient that is cut here is 0 then, as it is by yoke_stop_grad
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t mark = mark_of(leaf[i]->storage);
		// a variable is what it was assigned, whatever that was computed from
		const struct yk_origin *by = leaf[i]->variable ? NULL : leaf[i]->storage->origin;
		if (mark)
			r->mark[kept++] = mark;
		for (uint32_t k = 0; by && k < by->n; k++)
			if (is_there(o, by->mark[k]))
				r->mark[kept++] = by->mark[k];
	}
	r->op = op;
	r->path = path;
	r->n = (uint32_t)sort_unique(r->mark, kept);
	free(to->origin);
	to->origin = r;
}

void yk_origin_drop(struct yk_storage *s)
{
	struct yk_origins *o = &s->ctx->origins;
	free(s->origin);
	if (!s->mark)
		return;
	uint32_t slot = (uint32_t)s->mark;
	o->generation[slot]++;
	o->spare[o->spares++] = slot;
}

void yk_origins_fini(struct yk_origins *o)
{
	free(o->generation);
	free(o->spare);
}

// ---- gradients ----

static const struct yk_leaf *leaf_of(const struct yoke_context *ctx, yk_id v)
{
	const struct yk_node *n = yk_maker(&ctx->graph, v);
	return n->op == YK_LEAF ? &ctx->leaf[yk_attrs(&ctx->graph, n)[0].i] : NULL;
}

// The marks of those p that are leaves, ascending.  NULL: no memory.
static uint64_t *marks_of(const struct yoke_context *ctx, uint32_t n, const yk_id *p, size_t *count)
{
	uint64_t *mark = malloc((n + (size_t)1) * sizeof *mark);
	*count = 0;
	for (uint32_t i = 0; i < n && mark; i++) {
		const struct yk_leaf *l = leaf_of(ctx, p[i]);
		if (l && l->storage->mark)
			mark[(*count)++] = l->storage->mark;
	}
	if (mark)
		*count = sort_unique(mark, *count);
	return mark;
}

static bool share(const struct yk_origin *o, const uint64_t *mark, size_t n)
{
	size_t i = 0, k = 0;
	while (i < n && k < o->n && mark[i] != o->mark[k])
		mark[i] < o->mark[k] ? i++ : k++;
	return i < n && k < o->n;
}

static int refuse(const struct yoke_context *ctx, const struct yk_origin *o, const char *what)
{
	const char *scope = yk_path_name(&ctx->paths, o->path);
	return yk_fail(YOKE_ESPENT,
		       "grad: %s a result of %s%s%s%s that was evaluated before, and so has no gradient any "
		       "more; take gradients before yoke_read and yoke_eval (or yoke_stop_grad it)",
		       what, yk_ops[o->op].name, *scope ? " in scope \"" : "", scope,
		       *scope ? "\"" : "");
}

// Marks the nodes that y's gradient goes through; the leaves among them are looked at.
static int look_behind(const struct yoke_context *ctx, yk_id y, const uint64_t *mark, size_t n)
{
	const struct yk_graph *g = &ctx->graph;
	size_t nodes = g->value[y].node + (size_t)1;
	uint8_t *reached = calloc(nodes, 1);
	if (!reached)
		return yk_fail(YOKE_ENOMEM, "grad: no memory");
	int err = 0;
	reached[nodes - 1] = 1;
	for (size_t k = nodes; k-- > 0 && !err;) {
		const struct yk_node *node = &g->node[k];
		if (!reached[k] || !yk_differentiable(g, node))
			continue;
		for (uint32_t i = 0; i < node->nin; i++)
			if (yk_ins(g, node)[i] != YK_NIL)
				reached[g->value[yk_ins(g, node)[i]].node] = 1;
		const struct yk_leaf *l = node->op == YK_LEAF ? leaf_of(ctx, node->out) : NULL;
		if (l && !l->variable && l->storage->origin && share(l->storage->origin, mark, n))
			err = refuse(ctx, l->storage->origin, "it goes through");
	}
	free(reached);
	return err;
}

int yk_origin_check(const struct yoke_context *ctx, yk_id y, uint32_t n, const yk_id *p)
{
	const struct yk_leaf *l = leaf_of(ctx, y);
	bool any = false, itself = false;
	for (size_t i = 0; i < ctx->leaves && !any; i++)
		any = ctx->leaf[i].storage && ctx->leaf[i].storage->origin;
	if (!any)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		itself |= p[i] == y;
	if (l && !l->variable && l->storage->origin && !itself)
		return refuse(ctx, l->storage->origin, "of");
	size_t marks;
	uint64_t *mark = marks_of(ctx, n, p, &marks);
	if (!mark)
		return yk_fail(YOKE_ENOMEM, "grad: no memory");
	int err = marks ? look_behind(ctx, y, mark, marks) : 0;
	free(mark);
	return err;
}
