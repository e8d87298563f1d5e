// SPDX-License-Identifier: Apache-2.0
// Sources: the leaves that a kept value was computed from, so far as gradients would go.  They follow
// from the structure, so a plan knows them once; a launch notes the storages that they were (origin.c).

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

// The leaves with the bit, by place.
static int list(const struct yoke_context *ctx, const struct yk_marks *m, const uint64_t *mask, int bit,
		struct yk_plan *p, struct yk_sources *to)
{
	const struct yk_graph *g = &ctx->graph;
	uint32_t n = 0;
	for (int pass = 0; pass < 2; pass++) {
		if (pass && !(to->place = yk_arena_alloc(&p->memory, n * sizeof *to->place)))
			return yk_fail(YOKE_ENOMEM, "no memory to plan");
		n = 0;
		for (size_t i = 0; i < m->leaves; i++) {
			yk_id id = ctx->leaf[m->leaf[i]].id;
			const struct yk_node *node = yk_maker(g, id);
			if (node->op != YK_LEAF || !yk_is_float(g->value[id].dtype) ||
			    !(mask[m->number[g->value[id].node]] >> bit & 1))
				continue;
			if (pass)
				to->place[n] = (uint32_t)i;
			n++;
		}
		if (!n)
			return 0;
	}
	to->n = n;
	return 0;
}

int yk_sources_find(struct yk_planner *pl, struct yk_plan *p)
{
	const struct yoke_context *ctx = pl->ctx;
	const struct yk_marks *m = &pl->marks;
	size_t with = 0;
	for (size_t i = 0; i < pl->roots; i++)
		with += has_past(ctx, &pl->root[i]);
	if (!with)
		return 0;
	uint64_t *mask = malloc((m->nodes + 1) * sizeof *mask);
	p->sources = yk_arena_alloc(&p->memory, pl->roots * sizeof *p->sources);
	int err = mask && p->sources ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t from = 0; from < pl->roots && !err;) {
		size_t i = from;
		memset(mask, 0, m->nodes * sizeof *mask);
		for (int bit = 0; i < pl->roots && bit < 64; i++)
			if (has_past(ctx, &pl->root[i]))
				mask[m->number[ctx->graph.value[pl->root[i].id].node]] |= 1ull << bit++;
		spread(ctx, m, mask);
		for (int bit = 0; from < i && !err; from++)
			if (has_past(ctx, &pl->root[from]))
				err = list(ctx, m, mask, bit++, p, &p->sources[from]);
	}
	free(mask);
	return err;
}

void yk_sources_note(struct yk_planner *pl, const struct yk_plan *p)
{
	const struct yoke_context *ctx = pl->ctx;
	const struct yk_graph *g = &ctx->graph;
	for (size_t i = 0; p->sources && i < pl->roots; i++) {
		const struct yk_sources *s = &p->sources[i];
		const struct yk_node *n = yk_maker(g, pl->root[i].id);
		if (!s->n || p->block[p->root_block[i]].leaf != YK_NIL) // it is a leaf, unchanged
			continue;
		if (yk_grow(&pl->source, &pl->source_cap, s->n, sizeof *pl->source) < 0)
			return; // as yk_origin_note
		for (uint32_t k = 0; k < s->n; k++)
			pl->source[k] = &ctx->leaf[pl->marks.leaf[s->place[k]]];
		yk_origin_note(pl->root[i].handle->storage, n->op, n->scope, s->n, pl->source);
	}
}
