// SPDX-License-Identifier: Apache-2.0
// PAGED_ATTENTION: cl/attention_paged.cl; q and the cache in f32, f16 or bf16.  A step with few
// tokens has a group for each part of a query's positions, other steps one for each span; the bits
// are the same.
#include "config.h"

#include <string.h>

#include "report.h"
#include "rows.h"

// PAGE, PART, SPAN and AT_ONCE as in cl/attention_paged.cl.
enum {
	PAGE = 16,
	PART = 256,
	SPAN = 16,
	MAX_HEAD = 256,
	ITEMS = 128,
	MAX_ROWS = 8,        // queries times heads of a group
	// min tokens for groups of several queries, and max for groups of a part
	TILED = 64,
	MAX_SPLIT = 64 << 20 // max bytes of workspace for groups of a part
};

// Matches struct paged_args of cl/attention_paged.cl.
struct paged_args {
	int64_t qt, qh, ot, oh;
	int64_t kp, ks, kg, vp, vs, vg;
	int64_t T, H, G, heads, tiles;
	int64_t pages, M, rows;
	int64_t window, queries, units;
	float scale, cap;
	int32_t D, split;
};

struct cut {
	int64_t items, head, rows, keys, lanes;
	int width;
};

static struct cut cut_of(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *const rows[] = { &op->in[0], &op->in[1], &op->in[2], &op->out[0],
						 NULL };
	const int64_t D = op->in[0].dims[2];
	struct cut c = { .items = d->cpu_like ? 1 : ITEMS,
			 .head = yk_gpu_ceil_div(D, 16) * 16,
			 .keys = 16,
			 .lanes = 1,
			 .width = yk_gpu_row_width(d, rows, D) };
	if (d->cpu_like)
		return c;
	// more keys at a time as far as local memory permits
	while (c.keys < 64 && c.keys * c.head <= 2048)
		c.keys *= 2;
	while (c.lanes * c.width < c.head)
		c.lanes *= 2;
	return c;
}

static int64_t slot_bytes(const struct cut *c)
{
	return (c->head + 4) * (int64_t)sizeof(float);
}

static int64_t max_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static uint64_t local_of(const struct cut *c)
{
	const int64_t slices = c->items > c->keys ? c->items / c->keys : 1,
		      subsets = c->items / c->lanes / 2;
	const int64_t stage =
		max_of(c->keys * (c->head + c->width), max_of(subsets, 1) * MAX_ROWS * c->head);
	return (uint64_t)(MAX_ROWS * (c->head + PART + slices * c->keys + (c->items > 1 ? 32 : 1) +
				      6) +
			  stage + PART / PAGE) *
	       sizeof(float);
}

static bool is_i32(const struct yoke_view *v, int rank)
{
	return v->rank == rank && yk_gpu_dense_of(v, yoke_i32);
}

static bool same_dims(const struct yoke_view *a, const struct yoke_view *b)
{
	return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *q = &op->in[0], *k = &op->in[1], *v = &op->in[2], *o = &op->out[0];

	if (op->nin != 6 || op->nout != 1 || op->nattr != 3 || op->alias_mask ||
	    !yk_gpu_is_rows(q) || !yk_gpu_is_rows(k) || !yk_gpu_is_rows(v) || !yk_gpu_is_rows(o) ||
	    q->rank != 3 || k->rank != 4 || !same_dims(q, o) || !same_dims(k, v) ||
	    q->dtype != o->dtype || k->dtype != v->dtype)
		return 0;
	if (k->dims[1] != PAGE || k->dims[2] < 1 || q->dims[1] % k->dims[2] ||
	    k->dims[3] != q->dims[2] || q->dims[2] < 1 || q->dims[2] > MAX_HEAD ||
	    !is_i32(&op->in[3], 2) || !is_i32(&op->in[4], 1) || !is_i32(&op->in[5], 1) ||
	    op->in[3].dims[1] > INT32_MAX / PAGE - PART * SPAN)
		return 0;
	const struct cut c = cut_of(d, op);
	return (size_t)c.items <= d->max_group && (size_t)c.items <= d->max_items[0] &&
	       c.lanes <= c.items && d->local_bytes >= local_of(&c) &&
	       d->info.max_args >= sizeof(struct paged_args) + 10 * 16;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const struct cut *c,
		     const char *name, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "attention_paged.cl", .name = name };

	yk_gpu_row_defines(&b, d, (size_t)c->items, c->width, &op->in[0]);
	yk_gpu_beside_define(&b, op->in[1].dtype);
	yk_gpu_define(&b, "HEAD", c->head);
	yk_gpu_define(&b, "ROWS", c->rows);
	yk_gpu_define(&b, "KEYS", c->keys);
	yk_gpu_define(&b, "LANES", c->lanes);
	return yk_gpu_kernel_file(d, &b, to);
}

static struct paged_args args_of(const struct yoke_op *op, const struct cut *c)
{
	const struct yoke_view *q = &op->in[0], *k = &op->in[1], *v = &op->in[2], *o = &op->out[0],
			       *table = &op->in[3];
	struct paged_args a = {
		.qt = q->strides[0],
		.qh = q->strides[1],
		.ot = o->strides[0],
		.oh = o->strides[1],
		.kp = k->strides[0],
		.ks = k->strides[1],
		.kg = k->strides[2],
		.vp = v->strides[0],
		.vs = v->strides[1],
		.vg = v->strides[2],
		.T = q->dims[0],
		.H = q->dims[1],
		.G = k->dims[2],
		.pages = k->dims[0],
		.M = table->dims[1],
		.rows = table->dims[0],
		.window = op->attr[1].i,
		.cap = (float)op->attr[2].f,
		.D = (int32_t)q->dims[2],
	};
	const int64_t shared = a.H / a.G, parts = yk_gpu_ceil_div(a.M * PAGE, PART);
	a.scale = (float)(a.cap > 0 ? op->attr[0].f / op->attr[2].f : op->attr[0].f);
	a.tiles = yk_gpu_ceil_div(shared, MAX_ROWS);
	a.heads = yk_gpu_ceil_div(shared, a.tiles);
	a.queries = a.T >= TILED ? MAX_ROWS / a.heads : 1;
	a.split = a.T <= TILED && parts > 1 && a.T * a.H * parts <= MAX_SPLIT / slot_bytes(c);
	a.units = a.split ? parts : max_of(yk_gpu_ceil_div(parts, SPAN), 1);
	return a;
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *in = op->in, *o = &op->out[0];
	struct cut c = cut_of(r->device, op);
	const struct paged_args a = args_of(op, &c);
	struct yk_gpu_entry *kernel;

	(void)impl;
	if (!a.T || !a.H)
		return 0;
	c.rows = a.heads * a.queries;
	if (a.units > 1)
		yk_gpu_workspace(r, (uint64_t)(a.T * a.H * a.units) * (uint64_t)slot_bytes(&c));
	yk_gpu_reports(r, YK_GPU_PAGES, "paged_attention", a.T);
	int err = kernel_of(r->device, op, &c, "attention_paged", &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, o);
	for (int i = 0; i < 6; i++)
		yk_gpu_arg_view(r, &in[i]);
	yk_gpu_arg_view_or(r, &op->workspace, o);
	yk_gpu_arg_struct(r, &a, sizeof a);
	yk_gpu_arg_slot(r);
	err = yk_gpu_launch_groups(r, yk_gpu_ceil_div(a.T, a.queries) * a.G * a.tiles * a.units,
				   (size_t)c.items, "attention_paged");
	if (err || a.units == 1)
		return err;
	if ((err = kernel_of(r->device, op, &c, "attention_paged_join", &kernel)))
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, o);
	yk_gpu_arg_view(r, &in[4]);
	yk_gpu_arg_view(r, &in[5]);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, &a, sizeof a);
	return yk_gpu_launch_groups(r, a.T * a.H, (size_t)c.items, "attention_paged_join");
}

static const char *const names[] = { "pages" };
YK_GPU_OP(attention_paged,
	  PAGED_ATTENTION) = { .names = names, .nimpl = 1, .can = can, .record = record };
