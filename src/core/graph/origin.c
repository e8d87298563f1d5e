// SPDX-License-Identifier: Apache-2.0
// Origins: where a gradient would be 0 only because what it goes through is not known any more, it is
// refused.  A value that was made a leaf when the graph was collected notes from which tensors it was
// computed, by their handles, which are never used again (handle.h).

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t bits_of(const yoke_tensor *t)
{
	return (uintptr_t)t;
}

static bool is_among(uint64_t handle, const uint64_t *of, size_t n)
{
	return handle && bsearch(&handle, of, n, sizeof *of, ascending);
}

static const struct yk_leaf *leaf_of(const struct yoke_context *ctx, const struct yk_node *n)
{
	return n->op == YK_LEAF ? &ctx->leaf[yk_attrs(&ctx->graph, n)[0].i] : NULL;
}

// Which nodes up to this one its gradient goes to; the caller frees it, NULL: no memory.
static uint8_t *reach(const struct yk_graph *g, uint32_t node)
{
	uint8_t *reached = calloc(node + (size_t)1, 1);
	if (!reached)
		return NULL;
	reached[node] = 1;
	for (uint32_t k = node + 1; k-- > 0;) {
		const struct yk_node *n = &g->node[k];
		if (!reached[k] || !yk_differentiable(g, n))
			continue;
		for (uint32_t i = 0; i < n->nin; i++)
			if (yk_ins(g, n)[i] != YK_NIL)
				reached[g->value[yk_ins(g, n)[i]].node] = 1;
	}
	return reached;
}

// ---- values that become leaves ----

struct origins {
	uint64_t *handle;
	size_t n, cap;
};

static int add(struct origins *o, uint64_t handle)
{
	if (!handle || !yk_is_alive((const yoke_tensor *)(uintptr_t)handle))
		return 0;
	if (yk_grow(&o->handle, &o->cap, o->n + 1, sizeof *o->handle) < 0)
		return YOKE_ENOMEM;
	o->handle[o->n++] = handle;
	return 0;
}

static int find_origins(const struct yoke_context *ctx, uint32_t node, bool named, struct origins *o)
{
	uint8_t *reached = reach(&ctx->graph, node);
	int err = reached ? 0 : YOKE_ENOMEM;
	for (uint32_t k = 0; k <= node && !err; k++) {
		const struct yk_leaf *l = reached[k] ? leaf_of(ctx, &ctx->graph.node[k]) : NULL;
		if (l && (!named || yk_leaf_is_named(ctx, l)))
			err = add(o, bits_of(l->handle));
		for (uint32_t i = 0; l && i < l->npast && !err; i++)
			err = add(o, l->past[i]);
	}
	// variables whose version, now or before, is on the way
	for (const struct yk_tensor *t = ctx->handles; t && !err; t = t->next) {
		const yk_id v = t->kind == YK_VARIABLE ? yk_version_of(t) : YK_NIL;
		const uint32_t k = v == YK_NIL ? YK_NIL : ctx->graph.value[v].node;
		if (k < node && reached[k])
			err = add(o, bits_of(yk_handle(t)));
	}
	for (size_t i = 0; i < ctx->formers && !named && !err; i++) {
		const uint32_t k = ctx->graph.value[ctx->former[i].value].node;
		if (k <= node && reached[k])
			err = add(o, bits_of(ctx->former[i].variable));
	}
	free(reached);
	size_t kept = 0;
	if (o->n)
		qsort(o->handle, o->n, sizeof *o->handle, ascending);
	for (size_t i = 0; i < o->n; i++)
		if (!kept || o->handle[kept - 1] != o->handle[i])
			o->handle[kept++] = o->handle[i];
	o->n = kept;
	return err;
}

int yk_past_note(struct yoke_context *ctx, uint32_t node, bool version)
{
	const struct yk_graph *g = &ctx->graph;
	const struct yk_node *n = &g->node[node];
	struct origins o = { 0 };
	int err = find_origins(ctx, node, version, &o);
	for (uint32_t i = 0; i < n->nout && o.n && !err; i++) {
		if (g->value[n->out + i].made == YK_NIL || !yk_is_float(g->value[n->out + i].dtype))
			continue;
		struct yk_leaf *l = &ctx->leaf[g->value[n->out + i].made];
		free(l->past);
		l->npast = 0;
		if (!(l->past = malloc(o.n * sizeof *l->past))) {
			err = YOKE_ENOMEM;
			break;
		}
		memcpy(l->past, o.handle, o.n * sizeof *l->past);
		l->npast = (uint32_t)o.n;
	}
	free(o.handle);
	return err;
}

// ---- gradients ----

static int refuse(const struct yoke_context *ctx, const struct yk_leaf *l)
{
	const char *scope = yk_path_name(&ctx->paths, l->path);
	return yk_fail(YOKE_ERELEASED,
		       "grad: it goes through a result of %s%s%s%s that was evaluated long ago, and how it was "
		       "computed is forgotten; yoke_stop_grad what is carried from step to step, or take "
		       "gradients sooner", yk_op_row(l->op)->name, *scope ? " in scope \"" : "", scope,
		       *scope ? "\"" : "");
}

static int refuse_former(const struct yk_tensor *t)
{
	return yk_fail(YOKE_ERELEASED,
		       "grad: it depends on variable %s as it was before, which has a new version by now; take "
		       "gradients before yoke_assign and yoke_put, and within the scope of the assignment",
		       t->name ? t->name : "unnamed");
}

int yk_past_check(const struct yoke_context *ctx, yk_id y, uint32_t n, yoke_tensor *const *p,
		  const yk_id *in)
{
	const struct yk_graph *g = &ctx->graph;
	uint64_t *of = malloc((n + (size_t)1) * sizeof *of);
	uint8_t *reached = reach(g, g->value[y].node);
	size_t later = 0; // of p: y does not depend on them
	int err = of && reached ? 0 : yk_fail(YOKE_ENOMEM, "grad: no memory");
	for (uint32_t i = 0; i < n && !err; i++)
		of[i] = bits_of(p[i]);
	if (!err)
		qsort(of, n, sizeof *of, ascending);
	for (uint32_t k = 0; k <= g->value[y].node && !err; k++) {
		const struct yk_leaf *l = reached[k] ? leaf_of(ctx, &g->node[k]) : NULL;
		for (uint32_t i = 0; l && i < l->npast && !err; i++)
			if (is_among(l->past[i], of, n))
				err = refuse(ctx, l);
	}
	for (uint32_t i = 0; i < n && !err; i++) {
		bool depends = g->value[in[i]].node <= g->value[y].node && reached[g->value[in[i]].node];
		if (!depends)
			of[later++] = bits_of(p[i]);
	}
	if (later)
		qsort(of, later, sizeof *of, ascending);
	for (uint32_t k = 0; later && k <= g->value[y].node && !err; k++) {
		const struct yk_leaf *l = reached[k] ? leaf_of(ctx, &g->node[k]) : NULL;
		if (l && l->variable && is_among(bits_of(l->handle), of, later))
			err = refuse_former(l->variable);
	}
	for (size_t i = 0; later && i < ctx->formers && !err; i++) {
		const struct yk_former *f = &ctx->former[i];
		const uint32_t k = g->value[f->value].node;
		if (k <= g->value[y].node && reached[k] && is_among(bits_of(f->variable), of, later))
			err = refuse_former(yk_tensor_in(ctx, f->variable));
	}
	free(reached);
	free(of);
	return err;
}
