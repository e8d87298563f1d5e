// SPDX-License-Identifier: Apache-2.0
// The past of kept values: from which handles' values each was computed, so that a gradient that would
// have to go on behind one is refused instead of being 0.
//
// An evaluation notes its leaves once, as handles, which are never used again (handle.h); each value that
// it leaves behind has a bit for each of them, which follow from the structure and so are the plan's
// (plan/sources.c).  What the leaves themselves were computed from is one list for the evaluation: it
// holds handles that are still there, so a value that is fed back for ever does not grow.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"

struct yk_evaluated {
	uint32_t refs, leaves;
	uint64_t *inherits; // by leaf, a bit: it has a past itself; NULL: none has
	uint64_t *inherited; // handles of those pasts, ascending
	size_t n, cap;
	uint64_t handle[]; // by leaf, 0: no tensor
};

struct yk_sources *yk_sources_new(uint32_t leaves)
{
	struct yk_sources *s = calloc(1, sizeof *s + (leaves / 64 + 1) * sizeof *s->bit);
	if (s)
		s->refs = 1;
	return s;
}

void yk_sources_unref(struct yk_sources *s)
{
	if (s && !--s->refs)
		free(s);
}

void yk_evaluated_unref(struct yk_evaluated *e)
{
	if (!e || --e->refs)
		return;
	free(e->inherits);
	free(e->inherited);
	free(e);
}

static struct yk_past past_ref(const struct yk_past *p)
{
	if (p->evaluated) {
		p->evaluated->refs++;
		p->sources->refs++;
	}
	return *p;
}

void yk_past_drop(struct yk_past *p)
{
	yk_evaluated_unref(p->evaluated);
	yk_sources_unref(p->sources);
	*p = (struct yk_past){ 0 };
}

void yk_past_copy(struct yk_past *to, const struct yk_past *from)
{
	struct yk_past was = *to;
	*to = past_ref(from);
	yk_past_drop(&was);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static size_t sort_unique(uint64_t *handle, size_t n)
{
	size_t kept = 0;
	if (n)
		qsort(handle, n, sizeof *handle, ascending);
	for (size_t i = 0; i < n; i++)
		if (!kept || handle[kept - 1] != handle[i])
			handle[kept++] = handle[i];
	return kept;
}

static uint64_t bits_of(const yoke_tensor *t)
{
	return (uintptr_t)t;
}

static int inherit(struct yk_evaluated *e, uint64_t handle)
{
	if (!handle || !yk_is_alive((const yoke_tensor *)(uintptr_t)handle))
		return 0;
	if (yk_grow(&e->inherited, &e->cap, e->n + 1, sizeof *e->inherited) < 0)
		return YOKE_ENOMEM;
	e->inherited[e->n++] = handle;
	return 0;
}

// The handles that the pasts of leaves from `first` on name which are of the same evaluation; these
// leaves are done then.
static int inherit_from(struct yk_evaluated *e, const struct yoke_context *ctx, const uint32_t *leaf,
			uint32_t first, uint8_t *done)
{
	const struct yk_evaluated *by = ctx->leaf[leaf[first]].past.evaluated;
	size_t words = by->leaves / 64 + 1;
	uint64_t *bit = calloc(words, sizeof *bit);
	bool further = false;
	int err = bit ? 0 : YOKE_ENOMEM;
	for (uint32_t i = first; i < e->leaves && !err; i++) {
		const struct yk_past *p = &ctx->leaf[leaf[i]].past;
		if (p->evaluated != by)
			continue;
		done[i] = 1;
		for (size_t k = 0; k < words; k++) {
			bit[k] |= p->sources->bit[k];
			further |= by->inherits && p->sources->bit[k] & by->inherits[k];
		}
	}
	for (uint32_t i = 0; i < by->leaves && !err; i++)
		err = bit[i / 64] >> i % 64 & 1 ? inherit(e, by->handle[i]) : 0;
	for (size_t i = 0; i < by->n && further && !err; i++)
		err = inherit(e, by->inherited[i]);
	free(bit);
	return err;
}

static int inherit_all(struct yk_evaluated *e, const struct yoke_context *ctx, const uint32_t *leaf)
{
	uint8_t *done = calloc(e->leaves + (size_t)1, 1);
	int err = done && (e->inherits = calloc(e->leaves / 64 + 1, sizeof *e->inherits)) ? 0 : YOKE_ENOMEM;
	for (uint32_t i = 0; i < e->leaves && !err; i++) {
		if (!ctx->leaf[leaf[i]].past.evaluated)
			continue;
		e->inherits[i / 64] |= 1ull << i % 64;
		err = done[i] ? 0 : inherit_from(e, ctx, leaf, i, done);
	}
	free(done);
	e->n = sort_unique(e->inherited, e->n);
	return err;
}

struct yk_evaluated *yk_evaluated_new(const struct yoke_context *ctx, uint32_t n, const uint32_t *leaf)
{
	struct yk_evaluated *e = malloc(sizeof *e + n * sizeof *e->handle);
	bool any = false;
	int err = e ? 0 : YOKE_ENOMEM;
	if (e)
		*e = (struct yk_evaluated){ .refs = 1, .leaves = n };
	for (uint32_t i = 0; i < n && e; i++) {
		e->handle[i] = bits_of(ctx->leaf[leaf[i]].handle);
		any |= ctx->leaf[leaf[i]].past.evaluated != NULL;
	}
	if (any)
		err = inherit_all(e, ctx, leaf);
	if (!err)
		return e;
	yk_evaluated_unref(e);
	yk_fail(YOKE_ENOMEM, "no memory to evaluate");
	return NULL;
}

void yk_past_set(struct yk_tensor *t, struct yk_evaluated *e, struct yk_sources *s)
{
	yk_past_copy(&t->past, &(struct yk_past){ .evaluated = e, .sources = s });
}

// ---- gradients ----

static const struct yk_leaf *leaf_of(const struct yoke_context *ctx, yk_id v)
{
	const struct yk_node *n = yk_maker(&ctx->graph, v);
	return n->op == YK_LEAF ? &ctx->leaf[yk_attrs(&ctx->graph, n)[0].i] : NULL;
}

static bool is_among(uint64_t handle, const uint64_t *of, size_t n)
{
	return handle && bsearch(&handle, of, n, sizeof *of, ascending);
}

// Was a value computed from one of these handles' values?
static bool came_of(const struct yk_past *p, const uint64_t *of, size_t n)
{
	const struct yk_evaluated *e = p->evaluated;
	bool further = false;
	for (uint32_t i = 0; i < e->leaves; i++) {
		if (!(p->sources->bit[i / 64] >> i % 64 & 1))
			continue;
		if (is_among(e->handle[i], of, n))
			return true;
		further |= e->inherits && e->inherits[i / 64] >> i % 64 & 1;
	}
	for (size_t i = 0; i < e->n && further; i++)
		if (is_among(e->inherited[i], of, n))
			return true;
	return false;
}

static int refuse(const struct yoke_context *ctx, const struct yk_leaf *l, const char *what)
{
	const char *scope = yk_path_name(&ctx->paths, l->path);
	return yk_fail(YOKE_ESPENT,
		       "grad: %s a result of %s%s%s%s that was evaluated before, and so has no gradient any "
		       "more; take gradients before yoke_read and yoke_eval (or yoke_stop_grad it)",
		       what, yk_ops[l->op].name, *scope ? " in scope \"" : "", scope,
		       *scope ? "\"" : "");
}

// Looks at the leaves that y's gradient goes to.
static int look_behind(const struct yoke_context *ctx, yk_id y, const uint64_t *of, size_t n)
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
		if (l && l->past.evaluated && came_of(&l->past, of, n))
			err = refuse(ctx, l, "it goes through");
	}
	free(reached);
	return err;
}

int yk_past_check(const struct yoke_context *ctx, yk_id y, uint32_t n, yoke_tensor *const *p,
		  const yk_id *in)
{
	const struct yk_leaf *l = leaf_of(ctx, y);
	bool any = false, itself = false;
	for (size_t i = 0; i < ctx->leaves && !any; i++)
		any = ctx->leaf[i].past.evaluated;
	if (!any)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		itself |= in[i] == y;
	if (l && l->past.evaluated && !itself)
		return refuse(ctx, l, "of");
	uint64_t *of = malloc(n * sizeof *of);
	if (!of)
		return yk_fail(YOKE_ENOMEM, "grad: no memory");
	for (uint32_t i = 0; i < n; i++)
		of[i] = bits_of(p[i]);
	int err = look_behind(ctx, y, of, sort_unique(of, n));
	free(of);
	return err;
}
