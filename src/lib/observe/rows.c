// SPDX-License-Identifier: Apache-2.0
// Maintains the rows of a profile in a hash table by their identity.
#include "config.h"

#include "observe/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "observe/flops.h"
#include "observe/occupancy.h"
#include "plan/planner.h"

// ---- texts of a step ----

struct text {
	char *s;
	size_t n, cap;
	bool failed;
};

static void add(struct text *t, const char *s)
{
	size_t n = strlen(s);
	if (t->failed || yk_grow(&t->s, &t->cap, t->n + n + 1, 1) < 0) {
		t->failed = true;
		return;
	}
	memcpy(t->s + t->n, s, n + 1);
	t->n += n;
}

// "layer0/mlp: mul add; layer0: add"
static void add_nodes(struct text *t, const struct yk_paths *paths, const struct yk_step *s)
{
	for (uint32_t i = 0; i < s->nodes; i++) {
		const struct yk_step_node *p = &s->part[i];
		const char *path = yk_path_name(paths, p->scope);
		if (!i || p->scope != p[-1].scope) {
			add(t, i ? "; " : "");
			add(t, *path ? path : "-");
			add(t, ":");
		}
		add(t, " ");
		add(t, yk_op_def(p->opcode)->name);
	}
}

// "f32 [2,3] f32 [3] -> f32 [2,3]": operands and results in memory; for lists, the first tensor.
static void add_shapes(struct text *t, const struct yk_plan *p, const struct yk_step *s)
{
	const uint32_t outs = s->kind == YK_STEP_RUN ? s->op.nout : 1;
	for (uint32_t i = 0; i < s->views; i++) {
		const uint32_t k = (i + outs) % s->views; // operands first
		const struct yoke_view *v = &p->view[s->view + k];
		const bool out = k < outs;
		char one[32];
		if (k == 0)
			add(t, " ->");
		if (v->kind != YOKE_VIEW_BUFFER ||
		    (s->op.list && (out ? k : k - outs) % s->op.list))
			continue;
		add(t, t->n ? " " : "");
		add(t, yoke_dtype_name(v->dtype));
		add(t, " [");
		for (int d = 0; d < v->rank; d++) {
			snprintf(one, sizeof one, "%s%lld", d ? "," : "", (long long)v->dims[d]);
			add(t, one);
		}
		add(t, "]");
	}
}

// ---- interning ----

static bool same(const struct yk_row *a, const struct yk_row *b)
{
	return a->dtype == b->dtype && !strcmp(a->op, b->op) && !strcmp(a->impl, b->impl) &&
	       !strcmp(a->device, b->device) && !strcmp(a->scope, b->scope) &&
	       !strcmp(a->nodes, b->nodes) && !strcmp(a->shapes, b->shapes) &&
	       !strcmp(a->range, b->range) && !strcmp(a->site, b->site);
}

static bool table_grow(struct yk_rows *r)
{
	if (2 * (r->n + 1) <= r->table_size)
		return true;
	size_t size = r->table_size ? 2 * r->table_size : 256;
	uint32_t *table = calloc(size, sizeof *table);
	if (!table)
		return false;
	for (size_t i = 0; i < r->n; i++) {
		size_t at = r->hash[i] & (size - 1);
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = (uint32_t)i + 1;
	}
	free(r->table);
	r->table = table;
	r->table_size = size;
	return true;
}

static uint64_t hash_of(const struct yk_row *x)
{
	const char *part[] = { x->op,    x->impl,   x->device, x->scope,
			       x->nodes, x->shapes, x->range,  x->site };
	uint64_t h = (uint64_t)x->dtype;
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		h = yk_hash(part[i], strlen(part[i]) + 1, h);
	return h;
}

static uint32_t intern(struct yk_rows *r, const struct yk_row *x)
{
	if (!table_grow(r) || yk_grow(&r->row, &r->cap, r->n + 1, sizeof *r->row) < 0 ||
	    yk_grow(&r->hash, &r->hash_cap, r->n + 1, sizeof *r->hash) < 0)
		return YK_NIL;
	uint64_t hash = hash_of(x);
	size_t at = hash & (r->table_size - 1);
	for (; r->table[at]; at = (at + 1) & (r->table_size - 1))
		if (same(&r->row[r->table[at] - 1], x))
			return r->table[at] - 1;
	struct yk_row y = *x;
	const char **part[] = { &y.op,    &y.impl,   &y.device, &y.scope,
				&y.nodes, &y.shapes, &y.range,  &y.site };
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (!(*part[i] = yk_arena_strdup(&r->text, *part[i])))
			return YK_NIL;
	r->row[r->n] = y;
	r->hash[r->n] = hash;
	r->table[at] = (uint32_t)++r->n;
	return (uint32_t)r->n - 1;
}

// ---- rows ----

static const char *range_name(const struct yk_rows *r, const struct yoke_context *ctx,
			      uint32_t range)
{
	return r->flags & YOKE_PROFILE_RANGES ? yk_path_name(&ctx->observe.ranges, range) : "";
}

static uint32_t make_row(struct yk_rows *r, const struct yoke_context *ctx, const struct yk_plan *p,
			 uint64_t step, const struct yk_step_row *of)
{
	const struct yk_step *s = &p->step[step];
	const struct yk_device *d = ctx->stream[s->stream].device;
	struct text nodes = { 0 }, shapes = { 0 };
	uint32_t at = YK_NIL;
	const char *impl = "";
	char site[YK_SITE_TEXT] = "";
	if (r->flags & YOKE_PROFILE_IMPLEMENTATIONS && s->kind == YK_STEP_RUN &&
	    !(impl = d->ops->impl_name(d->index, &s->op, s->impl)))
		impl = "";
	add(&nodes, "");
	add(&shapes, "");
	if (r->flags & YOKE_PROFILE_SCOPES)
		add_nodes(&nodes, &ctx->scopes.paths, s);
	if (r->flags & YOKE_PROFILE_SHAPES)
		add_shapes(&shapes, p, s);
	if (r->flags & YOKE_PROFILE_SITES)
		yk_site_line(&ctx->observe.sites, of->site, site);
	if (!nodes.failed && !shapes.failed) {
		struct yk_row x = {
			.op = s->kind == YK_STEP_RUN ? yk_op_def(s->opcode)->name :
						       yk_step_kind_name[s->kind],
			.impl = impl,
			.device = d->id,
			.scope = r->flags & YOKE_PROFILE_SCOPES ?
					 yk_path_name(&ctx->scopes.paths, s->scope) :
					 "",
			.nodes = nodes.s,
			.shapes = shapes.s,
			.range = range_name(r, ctx, of->range),
			.site = site,
			.dtype = yk_step_dtype(p, step),
			.occupancy = yk_step_occupancy(ctx, p, step),
		};
		at = intern(r, &x);
	}
	free(nodes.s);
	free(shapes.s);
	return at;
}

// The range in which all nodes of the step were recorded, and the call site of the last of them.
static void look_up(const struct yoke_context *ctx, const struct yk_step *s, uint32_t *range,
		    uint32_t *site)
{
	const struct yk_marks *m = &ctx->planner->marks;
	*range = ctx->graph.range;
	*site = 0;
	for (uint32_t i = 0; i < s->nodes; i++) {
		if (s->part[i].recorded >= m->nodes)
			continue;
		const struct yk_node *n = &ctx->graph.node[m->node[s->part[i].recorded]];
		*range = i ? yk_path_common(&ctx->observe.ranges, *range, n->range) : n->range;
		*site = n->site;
	}
}

const struct yk_step_row *yk_row_of_step(struct yk_rows *r, const struct yoke_context *ctx,
					 const struct yk_plan *p, uint64_t step, uint64_t launch)
{
	struct yk_seen *seen = &r->seen[p->serial % (sizeof r->seen / sizeof *r->seen)];
	bool fresh = !seen->step || seen->serial != p->serial;
	if (fresh) {
		struct yk_step_row *all = malloc(p->steps * sizeof *all);
		if (!all)
			return NULL;
		for (size_t i = 0; i < p->steps; i++)
			all[i] = (struct yk_step_row){ .row = YK_NIL, .bytes = p->step[i].bytes,
						       .flops = yk_step_flops(p, i) };
		free(seen->step);
		*seen = (struct yk_seen){ .serial = p->serial, .launch = ~launch, .step = all };
	}
	for (size_t i = 0; i < p->steps && seen->launch != launch; i++) {
		struct yk_step_row *s = &seen->step[i];
		const struct yk_step_row was = *s;
		look_up(ctx, &p->step[i], &s->range, &s->site);
		const bool other = (r->flags & YOKE_PROFILE_RANGES && s->range != was.range) ||
				   (r->flags & YOKE_PROFILE_SITES && s->site != was.site);
		if ((s->row == YK_NIL || other) && (s->row = make_row(r, ctx, p, i, s)) == YK_NIL)
			return NULL;
	}
	seen->launch = launch;
	return &seen->step[step];
}

uint32_t yk_row_of(struct yk_rows *r, const struct yoke_context *ctx, const char *op,
		   const char *device)
{
	struct yk_row x = { .op = op,
			    .impl = "",
			    .device = device,
			    .scope = "",
			    .nodes = "",
			    .shapes = "",
			    .site = "",
			    .range = range_name(r, ctx, ctx->graph.range),
			    .occupancy = NAN };
	return intern(r, &x);
}

void yk_rows_clear(struct yk_rows *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct yk_row *x = &r->row[i];
		x->cpu_ns = x->cpu_of_ns = x->count = x->ns = x->host_ns = x->min = x->max =
			x->bytes = 0;
		x->flops = 0;
		x->growth = 0;
	}
}

void yk_rows_fini(struct yk_rows *r)
{
	for (size_t i = 0; i < sizeof r->seen / sizeof *r->seen; i++)
		free(r->seen[i].step);
	free(r->row);
	free(r->hash);
	free(r->table);
	yk_arena_fini(&r->text);
}
