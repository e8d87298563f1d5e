// SPDX-License-Identifier: Apache-2.0
// Sources: the leaves that a kept value was computed from, so far as gradients would go.  They follow
// from the structure, so a plan knows them once; an evaluation notes what those leaves were (origin.c).

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "plan/plan.h"

// Variables are named by the application, and mean their values alone; kept values have a past.
static bool has_past(const struct yoke_context *ctx, const struct yk_root *r)
{
	return r->handle->kind == YK_VALUE && yk_is_float(ctx->graph.value[r->id].dtype);
}

// One pass backwards for up to 64 of the roots, a bit of mask for each.
static void spread(const struct yoke_context *ctx, const struct yk_marks *m, uint64_t *mask)
{
	const struct yk_graph *g = &ctx->graph;
	for (size_t k = m->nodes; k-- > 0;) {
		const struct yk_node *n = &g->node[m->node[k]];
		if (!mask[k] || !yk_differentiable(g, n))
			continue;
		for (uint32_t i = 0; i < n->nin; i++) {
			yk_id v = yk_ins(g, n)[i];
			if (v != YK_NIL)
				mask[m->number[g->value[v].node]] |= mask[k];
		}
	}
}

// The leaves with the bit.
static int list(const struct yoke_context *ctx, const struct yk_marks *m, const uint64_t *mask, int bit,
		struct yk_sources **to)
{
	const struct yk_graph *g = &ctx->graph;
	for (size_t i = 0; i < m->leaves; i++) {
		yk_id id = ctx->leaf[m->leaf[i]].id;
		const struct yk_node *node = yk_maker(g, id);
		if (node->op != YK_LEAF || !yk_is_float(g->value[id].dtype) ||
		    !(mask[m->number[g->value[id].node]] >> bit & 1))
			continue;
		if (!*to && !(*to = yk_sources_new((uint32_t)m->leaves)))
			return YOKE_ENOMEM;
		(*to)->bit[i / 64] |= 1ull << i % 64;
	}
	return 0;
}

void yk_sources_free(struct yk_sources **s, size_t roots)
{
	for (size_t i = 0; s && i < roots; i++)
		yk_sources_unref(s[i]);
	free(s);
}

int yk_sources_find(const struct yk_planner *pl, struct yk_sources ***to)
{
	const struct yoke_context *ctx = pl->ctx;
	const struct yk_marks *m = &pl->marks;
	size_t with = 0;
	bool good = true;
	*to = NULL;
	for (size_t i = 0; i < pl->roots; i++)
		with += has_past(ctx, &pl->root[i]);
	if (!with)
		return 0;
	uint64_t *mask = malloc((m->nodes + 1) * sizeof *mask);
	struct yk_sources **s = calloc(pl->roots, sizeof *s);
	for (size_t from = 0; from < pl->roots && mask && s;) {
		size_t i = from;
		memset(mask, 0, m->nodes * sizeof *mask);
		for (int bit = 0; i < pl->roots && bit < 64; i++)
			if (has_past(ctx, &pl->root[i]))
				mask[m->number[ctx->graph.value[pl->root[i].id].node]] |= 1ull << bit++;
		spread(ctx, m, mask);
		for (int bit = 0; from < i; from++)
			if (has_past(ctx, &pl->root[from]))
				good &= !list(ctx, m, mask, bit++, &s[from]);
	}
	int err = mask && s && good ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	free(mask);
	*to = s;
	return err;
}

int yk_sources_seen(const struct yk_planner *pl, struct yk_sources *const *s, struct yk_evaluated **to)
{
	bool any = false;
	for (size_t i = 0; s && i < pl->roots && !any; i++)
		any = s[i];
	*to = any ? yk_evaluated_new(pl->ctx, (uint32_t)pl->marks.leaves, pl->marks.leaf) : NULL;
	return any && !*to ? YOKE_ENOMEM : 0;
}

void yk_sources_note(const struct yk_planner *pl, struct yk_sources *const *s, struct yk_evaluated *seen)
{
	for (size_t i = 0; seen && i < pl->roots; i++)
		if (s[i])
			yk_past_set(pl->root[i].handle, seen, s[i]);
	yk_evaluated_unref(seen);
}
