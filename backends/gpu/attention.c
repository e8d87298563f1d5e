// SPDX-License-Identifier: Apache-2.0
// ATTENTION and ATTENTION_BACK: cl/attention*.cl, f32, f16 and bf16; lse is f32, the mask too or as q.
#include "config.h"

#include <stddef.h>

#include "report.h"
#include "rows.h"

#define MOST_HEAD 256 // elements, for which private and local arrays are in reason
#define FEW 4         // queries at most, for which rows are faster
#define PART 512      // as in cl/attention_rows.cl
#define SUM_ROWS 64   // as in cl/attention_back.cl

enum { ROWS_IMPL, TILES_IMPL };    // of ATTENTION
enum { HEADS_IMPL, TWICE_IMPL };   // of its gradient
#define HEADS_ENOUGH 4 // heads of k and v of all batches, for which a group may take a whole one

// struct attention_args of cl/attention.cl.
struct heads {
	int64_t b, t, h;
};
struct attention_args {
	struct heads q, k, v, o, g, dq, dk, dv;
	int64_t mask_b, mask_h, mask_t, mask_s;
	int64_t B, T, H, S, G, parts, seen_b;
	struct yk_gpu_number key, step, seen;
	float scale, dropout;
	int32_t D, causal, masked, pad;
};

// How the work of a device is cut.
struct cut {
	size_t items;
	int nv, width, block, rows;
	int parts;     // items that share a lane
	int head;      // D rounded up
	int64_t tile;  // lanes of a group
	bool registers;
};

static struct cut cut_of(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	struct cut c = { .items = 64, .nv = 1, .width = 1, .block = 16, .rows = 8, .head = 32, .parts = 1 };
	const int D = (int)op->in[0].dims[3];

	c.registers = d->info.kind != YOKE_DEVICE_CPU;
	if (d->loops) {
		c.items = 1;
		c.width = 16;
		c.nv = 2;
		c.block = 64;
		c.registers = false;
		c.rows = d->vector < 16 ? 4 : 8;
	}
	// A lane's head elements are dealt out among items, so that registers suffice: gradients have four arrays of
	// them, the forward direction two.
	while (!d->loops && c.parts * (op->code == YOKE_OP_ATTENTION_BACK ? 16 : 32) < D)
		c.parts *= 2;
	if (c.parts > 1)
		c.items = c.parts > 4 ? 256 : 128;
	if (!d->loops && op->code == YOKE_OP_ATTENTION_BACK)
		c.block = 8; // rows of three more arrays
	while (c.items > 1 && (c.items > d->max_group || c.items > d->max_items[0]))
		c.items /= 2;
	while (c.head < D) // few sizes: each is a program
		c.head *= 2;
	if (c.registers && D > 0) // where what is beyond D is computed too
		c.head = c.parts > 1 ? (D + 8 * c.parts - 1) / (8 * c.parts) * 8 * c.parts : (D + 15) / 16 * 16;
	c.tile = (int64_t)c.items / c.parts * c.nv * c.width;
	return c;
}

// Bytes of local memory that the most demanding kernel takes.
static uint64_t local_of(const struct cut *c)
{
	return sizeof(float) * ((uint64_t)c->head * (uint64_t)(2 * c->block + c->nv * c->width) +
				(uint64_t)(2 * c->block + PART + c->width) + c->items * (c->parts > 4 ? 4 : 16 / (size_t)c->parts));
}

static bool is_heads(const struct yoke_view *v, int dtype)
{
	return v->kind == YOKE_VIEW_BUFFER && v->rank == 4 && v->dtype == dtype &&
	       (v->strides[3] == 1 || v->dims[3] <= 1);
}

static const struct yoke_view *seen_of(const struct yoke_op *op)
{
	static const struct yoke_view none = { .kind = YOKE_VIEW_NONE };
	const uint32_t at = op->code == YOKE_OP_ATTENTION ? 6 : 9;

	return op->nin > at ? &op->in[at] : &none;
}

// None, or i64: one number, or one for each row of the batch?
static bool is_keys_or_none(const struct yoke_view *v, int64_t batch)
{
	return !yk_gpu_present(v) ||
	       (v->dtype == yoke_i64 &&
		(v->kind == YOKE_VIEW_SCALAR || !v->rank || (v->rank == 1 && v->dims[0] == batch)));
}

static bool fits(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *in = op->in, *m = &in[3];
	const int t = in[0].dtype;

	if (!yk_gpu_float(t) || !is_heads(&in[0], t) || !is_heads(&in[1], t) ||
	    !is_heads(&in[2], t) || in[0].dims[3] > MOST_HEAD || op->alias_mask)
		return false;
	if (yk_gpu_present(m) && (m->kind != YOKE_VIEW_BUFFER || m->rank != 4 ||
				  !yk_gpu_serves_beside(m->dtype, t)))
		return false;
	const struct cut c = cut_of(d, op);
	return c.tile && yk_gpu_is_value_or_none(&in[4]) && yk_gpu_is_value_or_none(&in[5]) &&
	       is_keys_or_none(seen_of(op), in[0].dims[0]) &&
	       (!(op->attr[2].f > 0) || yk_gpu_present(&in[4])) &&
	       d->info.max_args >= sizeof(struct attention_args) + 13 * 16 &&
	       d->local_bytes >= local_of(&c);
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *q = &op->in[0];

	if (!fits(d, op) || !is_heads(&op->out[0], q->dtype) ||
	    !yk_gpu_dense_of(&op->out[1], yoke_f32))
		return 0;
	return 1u << TILES_IMPL | (q->dims[1] <= FEW) << ROWS_IMPL;
}

static uint64_t can_back(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *in = op->in, *k = &in[1];
	const int t = in[0].dtype;

	if (!fits(d, op) || !is_heads(&in[6], t) || !yk_gpu_dense_of(&in[7], yoke_f32) ||
	    !is_heads(&in[8], t) || !is_heads(&op->out[0], t) || !is_heads(&op->out[1], t) ||
	    !is_heads(&op->out[2], t))
		return 0;
	return 1u << TWICE_IMPL |
	       (d->loops && k->dims[0] * k->dims[2] >= HEADS_ENOUGH) << HEADS_IMPL;
}

static struct heads heads_of(const struct yoke_view *v)
{
	return (struct heads){ v->strides[0], v->strides[1], v->strides[2] };
}

// One in memory is clamped by the kernels, and reported.
static int check_seen(const struct yoke_op *op, struct yoke_view *part)
{
	const int64_t S = op->in[1].dims[1], seen = yk_gpu_number_of(seen_of(op), 0).whole;

	(void)part;
	return seen >= 0 && seen <= S ? 0 :
		yk_gpu_error(YOKE_ERANGE, "attention (step %llu): %lld keys are not in 0..%lld",
			     (unsigned long long)op->id, (long long)seen, (long long)S);
}

static struct attention_args args_of(const struct yoke_op *op)
{
	const struct yoke_view *in = op->in, *m = &in[3], *seen = seen_of(op);
	const bool back = op->code == YOKE_OP_ATTENTION_BACK;
	struct attention_args a = {
		.B = in[0].dims[0],
		.T = in[0].dims[1],
		.H = in[0].dims[2],
		.D = (int32_t)in[0].dims[3],
		.S = in[1].dims[1],
		.G = in[1].dims[2],
		.q = heads_of(&in[0]),
		.k = heads_of(&in[1]),
		.v = heads_of(&in[2]),
		.o = heads_of(back ? &in[6] : &op->out[0]),
		.key = yk_gpu_number_of(&in[4], 0),
		.step = yk_gpu_number_of(&in[5], 0),
		.seen = yk_gpu_number_of(seen, (double)in[1].dims[1]),
		.seen_b = seen->kind == YOKE_VIEW_BUFFER && seen->rank ? seen->strides[0] : 0,
		.causal = op->attr[0].i != 0,
		.scale = (float)op->attr[1].f,
		.dropout = (float)op->attr[2].f,
		.masked = yk_gpu_present(m),
	};
	a.parts = a.S > PART ? yk_gpu_pieces(a.S, PART) : 1;
	if (a.masked) {
		a.mask_b = m->dims[0] == 1 ? 0 : m->strides[0];
		a.mask_h = m->dims[1] == 1 ? 0 : m->strides[1];
		a.mask_t = m->strides[2];
		a.mask_s = m->strides[3];
	}
	if (back) {
		a.g = heads_of(&in[8]);
		a.dq = heads_of(&op->out[0]);
		a.dk = heads_of(&op->out[1]);
		a.dv = heads_of(&op->out[2]);
	}
	return a;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const char *file,
		     int with_dq, const char *name, struct yk_gpu_entry **to)
{
	const struct cut c = cut_of(d, op);
	struct yk_gpu_build b = { .file = file, .name = name };

	yk_gpu_row_defines(&b, d, c.items, c.width, &op->in[0]);
	yk_gpu_beside_define(&b, yk_gpu_present(&op->in[3]) ? op->in[3].dtype : op->in[0].dtype);
	yk_gpu_define(&b, "HEAD", c.head);
	yk_gpu_define(&b, "NV", c.nv);
	yk_gpu_define(&b, "BLOCK", c.block);
	yk_gpu_define(&b, "ROWS", c.rows);
	yk_gpu_define(&b, "REGISTERS", c.registers);
	if (c.parts > 1)
		yk_gpu_define(&b, "PARTS", c.parts);
	yk_gpu_flag(&b, "WITH_DQ", with_dq);
	return yk_gpu_kernel_file(d, &b, to);
}

// A launch of `groups` groups: these views, then the struct.
static int launch(struct yk_gpu_record *r, const struct yoke_op *op,
		  const struct attention_args *a, const char *file, int with_dq,
		  const char *name, int64_t groups, const struct yoke_view *const *views)
{
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, op, file, with_dq, name, &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	for (; *views; views++) // absent ones are not read
		yk_gpu_arg_view(r, (*views)->kind == YOKE_VIEW_BUFFER ? *views : &op->out[0]);
	yk_gpu_arg_struct(r, a, sizeof *a);
	yk_gpu_arg_number(r, offsetof(struct attention_args, key), &op->in[4]);
	yk_gpu_arg_number(r, offsetof(struct attention_args, step), &op->in[5]);
	yk_gpu_arg_number(r, offsetof(struct attention_args, seen), seen_of(op));
	return yk_gpu_launch_groups(r, groups, cut_of(r->device, op).items, name);
}

// ---- forward ----

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *in = op->in, *o = &op->out[0], *lse = &op->out[1];
	const struct yoke_view *space = &op->workspace;
	const struct attention_args a = args_of(op);
	const int64_t rows = a.B * a.H * a.T;
	int err = 0;

	if (seen_of(op)->kind == YOKE_VIEW_SCALAR)
		r->bind = check_seen;
	else if (yk_gpu_present(seen_of(op)))
		err = yk_gpu_report_length(r, "attention", seen_of(op), a.S);
	if (err)
		return err;
	if (impl == TILES_IMPL)
		return launch(r, op, &a, "attention_tiles.cl", 0, "attention_tiles",
			      a.B * a.H * yk_gpu_pieces(a.T, cut_of(r->device, op).tile),
			      (const struct yoke_view *[]){ o, lse, &in[0], &in[1], &in[2], &in[3],
							    &in[4], &in[5], seen_of(op), NULL });
	if (a.parts > 1)
		yk_gpu_workspace(r, (uint64_t)(rows * a.parts) * (uint64_t)(2 + a.D) * sizeof(float));
	err = launch(r, op, &a, "attention_rows.cl", 0, "attention_rows", rows * a.parts,
		     (const struct yoke_view *[]){ o, lse, &in[0], &in[1], &in[2], &in[3], &in[4],
						   &in[5], seen_of(op), space, NULL });
	return err || a.parts == 1 ? err :
		launch(r, op, &a, "attention_rows.cl", 0, "attention_join", rows,
		       (const struct yoke_view *[]){ o, lse, space, NULL });
}

// ---- backward ----

static int record_back(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *in = op->in, *out = op->out, *space = &op->workspace;
	const struct yoke_view *o = &in[6], *lse = &in[7], *g = &in[8], *seen = seen_of(op);
	const int64_t tile = cut_of(r->device, op).tile;
	const bool heads = impl == HEADS_IMPL, sums = heads && in[0].dtype != yoke_f32;
	const struct attention_args a = args_of(op);
	const int64_t rows = a.B * a.H * a.T;

	if (seen->kind == YOKE_VIEW_SCALAR)
		r->bind = check_seen;
	yk_gpu_workspace(r, sizeof(float) * (uint64_t)rows * (sums ? 1 + (uint64_t)a.D : 1));
	int err = launch(r, op, &a, "attention_back.cl", heads, "attention_sums",
			 yk_gpu_pieces(rows, SUM_ROWS),
			 (const struct yoke_view *[]){ space, o, g, NULL });
	if (!err)
		err = launch(r, op, &a, "attention_back.cl", heads, "attention_back_keys",
			     a.B * a.G * (heads ? 1 : yk_gpu_pieces(a.S, tile)),
			     (const struct yoke_view *[]){ &out[1], &out[2], &out[0], space, &in[0],
							   &in[1], &in[2], g, lse, &in[3], &in[4],
							   &in[5], seen, NULL });
	if (!err && !heads)
		err = launch(r, op, &a, "attention_back.cl", heads, "attention_back_queries",
			     a.B * a.H * yk_gpu_pieces(a.T, tile),
			     (const struct yoke_view *[]){ &out[0], space, &in[0], &in[1], &in[2], g,
							   lse, &in[3], &in[4], &in[5], seen,
							   NULL });
	return err;
}

static const char *const names[] = { "rows", "tiles" };
static const char *const back_names[] = { "heads", "twice" };
const struct yk_gpu_op yk_gpu_attention = { .names = names, .nimpl = 2, .can = can, .record = record };
const struct yk_gpu_op yk_gpu_attention_back = {
	.names = back_names, .nimpl = 2, .can = can_back, .record = record_back,
};
