// SPDX-License-Identifier: Apache-2.0
// Rows of a profile.
#include "config.h"

#include "observe/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

double yk_step_flops(const struct yk_plan *p, uint64_t step)
{
	const struct yk_step *s = &p->step[step];
	if (s->kind != YK_STEP_RUN || s->op.code != YOKE_OP_CONTRACT)
		return 0;
	const struct yoke_view *y = &p->view[s->view], *a = y + s->op.nout;
	double flops = 2 * (double)a->dims[a->rank - 1];
	for (int i = 0; i < y->rank; i++)
		flops *= (double)y->dims[i];
	return flops;
}

// ---- the text of a step's nodes ----

struct text {
	char *s;
	size_t n, cap;
};

static bool add(struct text *t, const char *s)
{
	size_t n = strlen(s);
	if (yk_grow(&t->s, &t->cap, t->n + n + 1, 1) < 0)
		return false;
	memcpy(t->s + t->n, s, n + 1);
	t->n += n;
	return true;
}

// "layer0/mlp: mul add; layer0: add"
static bool nodes_text(struct text *t, const struct yk_paths *paths,
		       const struct yk_step *s)
{
	bool good = add(t, "");
	for (uint32_t i = 0; i < s->nodes && good; i++) {
		const struct yk_part *p = &s->part[i];
		const char *path = yk_path_name(paths, p->scope);
		if (!i || p->scope != p[-1].scope)
			good = (!i || add(t, "; ")) && add(t, *path ? path : "-") &&
			       add(t, ":");
		good = good && add(t, " ") && add(t, yk_op_row(p->opcode)->name);
	}
	return good;
}

// ---- interning ----

static bool same(const struct yk_row *a, const struct yk_row *b)
{
	return a->bytes == b->bytes && !strcmp(a->op, b->op) &&
	       !strcmp(a->impl, b->impl) && !strcmp(a->device, b->device) &&
	       !strcmp(a->scope, b->scope) && !strcmp(a->nodes, b->nodes);
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
	const char *part[] = { x->op, x->impl, x->device, x->scope, x->nodes };
	uint64_t h = x->bytes;
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
	y.op = yk_arena_strdup(&r->text, x->op);
	y.impl = yk_arena_strdup(&r->text, x->impl);
	y.device = yk_arena_strdup(&r->text, x->device);
	y.scope = yk_arena_strdup(&r->text, x->scope);
	y.nodes = yk_arena_strdup(&r->text, x->nodes);
	if (!y.op || !y.impl || !y.device || !y.scope || !y.nodes)
		return YK_NIL;
	r->row[r->n] = y;
	r->hash[r->n] = hash;
	r->table[at] = (uint32_t)++r->n;
	return (uint32_t)r->n - 1;
}

// ---- rows ----

static uint32_t make_row(struct yk_rows *r, const struct yoke_context *ctx,
			 const struct yk_plan *p, uint64_t step)
{
	const struct yk_step *s = &p->step[step];
	const struct yk_device *d = ctx->slot[s->slot].device;
	struct text nodes = { 0 };
	uint32_t at = YK_NIL;
	const char *impl = "";
	if (s->kind == YK_STEP_RUN &&
	    !(impl = d->ops->impl_name(d->index, &s->op, s->impl)))
		impl = "";
	if (nodes_text(&nodes, &ctx->paths, s)) {
		struct yk_row x = {
			.op = s->kind == YK_STEP_RUN ? yk_op_row(s->opcode)->name :
						       yk_step_kind_name[s->kind],
			.impl = impl,
			.device = d->id,
			.scope = yk_path_name(&ctx->paths, s->scope),
			.nodes = nodes.s,
			.bytes = s->bytes,
			.flops = yk_step_flops(p, step),
		};
		at = intern(r, &x);
	}
	free(nodes.s);
	return at;
}

uint32_t yk_row_of_step(struct yk_rows *r, const struct yoke_context *ctx,
			const struct yk_plan *p, uint64_t step)
{
	struct yk_seen *seen = &r->seen[p->serial % (sizeof r->seen / sizeof *r->seen)];
	if (!seen->row || seen->serial != p->serial) {
		uint32_t *row = malloc(p->steps * sizeof *row);
		if (!row)
			return YK_NIL;
		for (size_t i = 0; i < p->steps; i++)
			row[i] = make_row(r, ctx, p, i);
		free(seen->row);
		*seen = (struct yk_seen){ .serial = p->serial, .row = row };
	}
	return seen->row[step];
}

uint32_t yk_row_of(struct yk_rows *r, const char *op, const char *device)
{
	struct yk_row x = {
		.op = op, .impl = "", .device = device, .scope = "", .nodes = ""
	};
	return intern(r, &x);
}

void yk_rows_fini(struct yk_rows *r)
{
	for (size_t i = 0; i < sizeof r->seen / sizeof *r->seen; i++)
		free(r->seen[i].row);
	free(r->row);
	free(r->hash);
	free(r->table);
	yk_arena_fini(&r->text);
}
