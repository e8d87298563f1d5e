// SPDX-License-Identifier: Apache-2.0
// ATTENTION and ATTENTION_BACKWARD on GPUs (cl/attention*.cl): f32, f16 and bf16; lse is f32, the
// mask f32 or the dtype of q. On devices with matrix units for the dtype, the forward pass takes
// one launch that uses them, and the backward pass two.
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "contract.h"
#include "report.h"
#include "rows.h"

#define MAX_HEAD 256 // max head size; larger ones would need too much private and local memory
#define MAX_ROWS (1 << 30) // max number of queries and of keys for matrix units
#define FEW 4         // max number of queries for which the kernel by rows is faster
#define PART 512      // as in cl/attention_rows.cl
#define SUM_ROWS 64   // as in cl/attention_backward.cl

enum { ROWS_IMPL, MATRIX_IMPL, TILES_IMPL, WGMMA_IMPL }; // implementations of ATTENTION
enum { BACK_MATRIX_IMPL, HEADS_IMPL, TWICE_IMPL };     // implementations of ATTENTION_BACKWARD
#define WIDE_HEAD 128 // head size above which groups of the gradient divide the columns among them
#define HEADS_ENOUGH 4 // min number of k/v heads over all batch entries for one head per group

// Matches struct attention_args of cl/attention.cl.
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

// How the work is divided on a device.
struct cut {
	size_t items;
	int nv, width, block, rows;
	int parts;     // items that share a lane (one query or key)
	int head;      // D rounded up to a compiled head size
	int64_t tile;  // lanes per group
	bool registers;
};

static struct cut cut_of(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	struct cut c = {
		.items = 64, .nv = 1, .width = 1, .block = 16, .rows = 8, .head = 32, .parts = 1
	};
	const int D = (int)op->in[0].dims[3];

	c.registers = d->info.kind != YOKE_DEVICE_CPU;
	if (d->cpu_like) {
		c.items = 1;
		c.width = 16;
		c.nv = 2;
		c.block = 64;
		c.registers = false;
		c.rows = d->vector < 16 ? 4 : 8;
	}
	// The head elements of a lane are distributed over several items so that they fit in
	// registers: gradients hold four such arrays, the forward pass two.
	if (!d->cpu_like && op->code == YOKE_OP_ATTENTION_BACKWARD)
		c.parts = 2; // even for heads of 16 elements
	while (!d->cpu_like && c.parts * (op->code == YOKE_OP_ATTENTION_BACKWARD ? 16 : 32) < D)
		c.parts *= 2;
	if (c.parts > 1)
		c.items = c.parts > 4 ? 256 : 128;
	if (!d->cpu_like && op->code == YOKE_OP_ATTENTION_BACKWARD)
		c.block = 8; // its local memory holds rows of three more arrays
	while (c.items > 1 && (c.items > d->max_group || c.items > d->max_items[0]))
		c.items /= 2;
	while (c.head < D) // round up: each size is a program of its own
		c.head *= 2;
	if (c.registers && D > 0) // less padding, because columns beyond D are computed too
		c.head = c.parts > 1 ? (D + 8 * c.parts - 1) / (8 * c.parts) * 8 * c.parts :
				       (D + 15) / 16 * 16;
	if (op->code == YOKE_OP_ATTENTION && !d->cpu_like && c.head == 24 * c.parts)
		c.rows = 4; // three times 8 of them spill registers on gfx11
	c.tile = (int64_t)c.items / c.parts * c.nv * c.width;
	return c;
}

// Bytes of local memory of the kernel that needs most.
static uint64_t local_of(const struct cut *c)
{
	return sizeof(float) * ((uint64_t)c->head * (uint64_t)(2 * c->block + c->nv * c->width) +
				(uint64_t)(2 * c->block + PART + c->width + 1) +
				c->items * (c->parts > 4 ? 4 : 16 / (size_t)c->parts));
}

// Division of work for matrix units: a group has `tile` rows of its own side, 16 * stack per warp,
// and processes `block` rows of the other side at a time.
struct blocks {
	int warps, block, stack, head;
	int slices; // number of slices of the head, divided among groups of the gradient
	int stages; // blocks in local memory at a time
	int64_t tile;
	size_t sized; // bytes of local memory that the launch assigns; 0: the kernel declares it
};

// True if weights stay in registers between two products (MATRIX_A_OF_SUMS). Kernels for other
// devices and drivers decide for themselves.
static bool in_registers(const struct yk_gpu_device *d, int dtype)
{
	return d->tf32 && dtype != yoke_f32;
}

// The number of tensors of which a warp has its rows in registers: HELD of the kernels.
static int held_of(const struct yk_gpu_device *d, const struct blocks *b, int dtype)
{
	const int elements = b->stack * b->head;

	if (!in_registers(d, dtype) || elements > 128)
		return 0;
	return elements > 64 ? 1 : 2;
}

static int larger(int a, int b)
{
	return a > b ? a : b;
}

// Local memory as attention_matrix*.cl allocate it; the 4 counts lse, r and possibly more.
static uint64_t blocks_local(const struct yk_gpu_device *d, const struct blocks *b, int dtype,
			     bool back)
{
	const int per = dtype == yoke_f32 ? 4 : 8, rows = (int)b->tile, held = held_of(d, b, dtype);
	const int own = rows * (b->head + per), block = b->block * (b->head + per),
		  weights = rows * (b->block + per);
	int elements = own + 2 * block + weights;

	if (back) {
		elements = larger((2 - held) * own + b->stages * 2 * block, 2 * own) + weights;
	} else if (in_registers(d, dtype)) {
		elements = b->stages > 1 ? larger(b->stages * 2 * block, 2 * block + weights) :
					   block + larger(block, weights);
		elements = held ? larger(elements, own) : elements + own;
	}
	return (uint64_t)(elements * (16 / per) + (back ? 4 * 4 * b->stages * b->block : 16));
}

// True if rows of a head are aligned to 16 bytes and their size is a multiple of it.
static bool has_quads(const struct yoke_view *v)
{
	const int per = v->dtype == yoke_f32 ? 4 : 8;

	return v->dims[3] % per == 0 && v->strides[0] % per == 0 && v->strides[1] % per == 0 &&
	       v->strides[2] % per == 0 && yk_gpu_aligned(v, 16);
}

static bool reads_quads(const struct yoke_op *op)
{
	return has_quads(&op->in[0]) && has_quads(&op->in[1]) && has_quads(&op->in[2]) &&
	       (op->code == YOKE_OP_ATTENTION || has_quads(&op->in[8]));
}

enum side { FORWARD, KEYS, QUERIES }; // the forward kernel, and those of the gradient

// Chooses a division for which the launch assigns local memory, so that asynchronous copies run
// ahead; false: none. A unit should have 8 warps, in as many groups, which is what registers
// permit. With 32 queries per warp fragments of keys and values are loaded half as often as with
// 16.
static bool sized_of(const struct yk_gpu_device *d, const struct yoke_op *op, enum side side,
		     struct blocks *b)
{
	static const struct {
		int warps, block, stack, stages, groups;
		int max_head[QUERIES + 1]; // by registers, for each side
	} cuts[] = {
		{ 4, 64, 2, 2, 2, { 128, 0, 0 } },     { 4, 64, 2, 1, 2, { 128, 0, 0 } },
		{ 8, 64, 1, 2, 1, { 256, 0, 0 } },     { 8, 64, 1, 1, 1, { 256, 0, 0 } },
		{ 4, 64, 1, 2, 2, { 256, 96, 128 } },  { 4, 32, 1, 2, 2, { 256, 128, 128 } },
		{ 8, 32, 1, 2, 1, { 0, 128, 128 } },   { 4, 32, 1, 1, 2, { 256, 256, 256 } },
		{ 8, 16, 1, 1, 1, { 0, 256, 256 } },   { 4, 32, 1, 1, 1, { 256, 0, 0 } },
		{ 4, 16, 1, 1, 1, { 0, 256, 256 } },
	};
	// bytes that a kernel declares, and that the driver takes
	enum { STATIC = 1024, RESERVED = 1024 };
	const int D = (int)op->in[0].dims[3], dtype = op->in[0].dtype;
	const bool masked = yk_gpu_present(&op->in[3]);

	if (!d->sized_bytes || !in_registers(d, dtype) || !reads_quads(op) || op->attr[2].f > 0 ||
	    (side != FORWARD && masked))
		return false;
	b->slices = side == FORWARD ? 1 : (D + WIDE_HEAD - 1) / WIDE_HEAD;
	b->head = (D + 16 * b->slices - 1) / (16 * b->slices) * 16 * b->slices;
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
		b->warps = cuts[i].warps;
		b->block = cuts[i].block;
		b->stack = cuts[i].stack;
		b->stages = cuts[i].stages;
		b->tile = b->warps * 16 * b->stack;
		b->sized = blocks_local(d, b, dtype, side != FORWARD);
		if (b->head <= cuts[i].max_head[side] &&
		    (b->tile <= 64 || side != FORWARD || op->in[0].dims[1] > b->tile / 2) &&
		    (!masked ||
		     (b->stack == 1 && b->head * b->block <= 128 * 64)) && // a mask takes registers
		    (size_t)cuts[i].groups * (b->sized + STATIC + RESERVED) <=
			    d->sized_bytes + RESERVED &&
		    (size_t)(b->warps * d->warp) <= d->max_group)
			return true;
	}
	return false;
}

// Chooses the most warps and rows that fit in local memory; false: none fit.
static bool blocks_of(const struct yk_gpu_device *d, const struct yoke_op *op, enum side side,
		      struct blocks *b)
{
	static const struct {
		int warps, block, stack;
	} cuts[] = { { 4, 64, 2 }, { 8, 64, 1 }, { 4, 64, 1 }, { 4, 32, 1 },
		     { 4, 16, 1 }, { 2, 32, 1 }, { 2, 16, 1 }, { 1, 16, 1 } };
	// of them are for many queries whose rows are held; the first has no registers for more
	enum { LARGE = 2 };
	const bool more = yk_gpu_present(&op->in[3]) || op->attr[2].f > 0; // masks or dropout
	const bool back = side != FORWARD;
	const int D = (int)op->in[0].dims[3], dtype = op->in[0].dtype;

	const int wide = d->head_columns ? d->head_columns : WIDE_HEAD;

	if (sized_of(d, op, side, b))
		return true;
	b->sized = 0;
	b->slices = back ? (D + wide - 1) / wide : 1;
	b->head = (D + 16 * b->slices - 1) / (16 * b->slices) * 16 * b->slices;
	// the gradient's sums of two products at a time limit it by registers
	const int max_head = in_registers(d, dtype) && !more && reads_quads(op) ? 128 : 64;
	const size_t first = back ? LARGE + (b->head <= max_head ? 1 : 2) : 0;
	for (size_t i = first; i < sizeof cuts / sizeof *cuts; i++) {
		b->warps = cuts[i].warps;
		b->block = cuts[i].block;
		b->stack = cuts[i].stack;
		b->tile = b->warps * 16 * b->stack;
		if (i < LARGE && (op->in[0].dims[1] <= b->tile / 2 || !held_of(d, b, dtype) ||
				  (b->stack > 1 && more)))
			continue;
		const size_t items = (size_t)(b->warps * d->warp);
		if (items > d->max_group || items > d->max_items[0])
			continue;
		for (b->stages = back && in_registers(d, dtype) ? 2 : 1; b->stages; b->stages--)
			if (blocks_local(d, b, dtype, back) <= d->local_bytes)
				return true;
	}
	return false;
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

// True if absent, or i64: one number, or one per batch entry.
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
	    !is_heads(&in[2], t) || in[0].dims[3] > MAX_HEAD || op->alias_mask)
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

// True if the matrix-unit kernel supports the op; its shapes have been checked.
static bool fits_blocks(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const enum side side = op->code == YOKE_OP_ATTENTION ? FORWARD : KEYS;
	struct blocks b;

	return d->warp && op->in[0].dims[3] > 0 && op->in[0].dims[1] < MAX_ROWS &&
	       op->in[1].dims[1] < MAX_ROWS && blocks_of(d, op, side, &b) &&
	       yk_gpu_units(d, op->in[0].dtype);
}

// Blocks for warp groups (cl/attention_wgmma.cl): heads of up to 64 elements by three groups, up to
// 128 by two, which the registers and the local memory of a unit hold.
static struct blocks wgmma_of(const struct yoke_op *op)
{
	const bool wide = op->in[0].dims[3] > 64;
	struct blocks b = { .warps = wide ? 8 : 12,
			    .block = 128,
			    .stack = 1,
			    .slices = 1,
			    .stages = wide ? 3 : 4 };

	b.head = wide ? 128 : 64;
	b.tile = b.warps * 16;
	return b;
}

static size_t wgmma_local(const struct blocks *b)
{
	return (size_t)(((int)b->tile + b->stages * 2 * b->block) * b->head * 2);
}

static bool fits_wgmma(const struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct blocks b = wgmma_of(op);
	const int64_t D = op->in[0].dims[3], T = op->in[0].dims[1], S = op->in[1].dims[1];
	const int dtype = op->in[0].dtype;

	return d->wgmma_options && (dtype == yoke_f16 || dtype == yoke_bf16) && D > 0 &&
	       D <= b.head && b.head <= 128 && reads_quads(op) && !yk_gpu_present(&op->in[3]) &&
	       !(op->attr[2].f > 0) && (float)op->attr[1].f > 0 && T < MAX_ROWS && S < MAX_ROWS &&
	       wgmma_local(&b) <= d->sized_bytes && (size_t)(b.warps * d->warp) <= d->max_group &&
	       yk_gpu_units(d, dtype);
}

bool yk_gpu_wgmma_enabled(void)
{
	static const struct yoke_setting attention = {
		sizeof attention, "attention", "string", "matrix",
		"attention on GPUs of compute capability 9.0: matrix, or wgmma where it is possible"
	};
	const char *value = yk_gpu_host->setting(&attention);

	return value && !strcmp(value, "wgmma");
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *q = &op->in[0];

	if (!fits(d, op) || !is_heads(&op->out[0], q->dtype) ||
	    !yk_gpu_dense_of(&op->out[1], yoke_f32))
		return 0;
	const bool groups = fits_wgmma(d, op);
	if (groups && q->dims[1] > FEW && yk_gpu_wgmma_enabled())
		return 1u << WGMMA_IMPL;
	return 1u << TILES_IMPL | fits_blocks(d, op) << MATRIX_IMPL |
	       (q->dims[1] <= FEW) << ROWS_IMPL | groups << WGMMA_IMPL;
}

static uint64_t can_backward(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *in = op->in, *k = &in[1];
	const int t = in[0].dtype;

	if (!fits(d, op) || !is_heads(&in[6], t) || !yk_gpu_dense_of(&in[7], yoke_f32) ||
	    !is_heads(&in[8], t) || !is_heads(&op->out[0], t) || !is_heads(&op->out[1], t) ||
	    !is_heads(&op->out[2], t))
		return 0;
	return 1u << TWICE_IMPL | fits_blocks(d, op) << BACK_MATRIX_IMPL |
	       (d->cpu_like && k->dims[0] * k->dims[2] >= HEADS_ENOUGH) << HEADS_IMPL;
}

static struct heads heads_of(const struct yoke_view *v)
{
	return (struct heads){ v->strides[0], v->strides[1], v->strides[2] };
}

// A host value is checked here; a value in device memory is clamped and reported by the kernels.
static int check_seen(const struct yoke_op *op, struct yoke_view *part)
{
	const int64_t S = op->in[1].dims[1], seen = yk_gpu_number_of(seen_of(op), 0).whole;

	(void)part;
	return seen >= 0 && seen <= S ?
		       0 :
		       yk_gpu_error(
			       YOKE_ERANGE,
			       "attention (step %llu): the number of keys, %lld, is not in 0..%lld",
			       (unsigned long long)op->id, (long long)seen, (long long)S);
}

static struct attention_args args_of(const struct yoke_op *op)
{
	const struct yoke_view *in = op->in, *m = &in[3], *seen = seen_of(op);
	const bool back = op->code == YOKE_OP_ATTENTION_BACKWARD;
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
	a.parts = a.S > PART ? yk_gpu_ceil_div(a.S, PART) : 1;
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

// Launches `groups` groups with these views as arguments, followed by the struct.
static int enqueue(struct yk_gpu_record *r, const struct yoke_op *op,
		   const struct attention_args *a, const struct yk_gpu_entry *kernel,
		   const char *name, int64_t groups, size_t items,
		   const struct yoke_view *const *views)
{
	yk_gpu_begin(r, kernel);
	for (; *views; views++) // absent views are not read
		yk_gpu_arg_view(r, (*views)->kind == YOKE_VIEW_BUFFER ? *views : &op->out[0]);
	yk_gpu_arg_struct(r, a, sizeof *a);
	yk_gpu_arg_number(r, offsetof(struct attention_args, key), &op->in[4]);
	yk_gpu_arg_number(r, offsetof(struct attention_args, step), &op->in[5]);
	yk_gpu_arg_number(r, offsetof(struct attention_args, seen), seen_of(op));
	return yk_gpu_launch_groups(r, groups, items, name);
}

// Launches a kernel of `file`.
static int launch(struct yk_gpu_record *r, const struct yoke_op *op,
		  const struct attention_args *a, const char *file, int with_dq,
		  const char *name, int64_t groups, const struct yoke_view *const *views)
{
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, op, file, with_dq, name, &kernel);

	return err ? err :
		     enqueue(r, op, a, kernel, name, groups, cut_of(r->device, op).items, views);
}

static int launch_blocks(struct yk_gpu_record *r, const struct yoke_op *op,
			 const struct attention_args *a, const struct blocks *b, const char *file,
			 const char *name, int64_t groups, const struct yoke_view *const *views)
{
	const struct yoke_view *in = op->in;
	const bool back = op->code == YOKE_OP_ATTENTION_BACKWARD;
	const size_t items = (size_t)(b->warps * r->device->warp);
	struct yk_gpu_build build = { .file = file, .name = name, .sized = b->sized };
	struct yk_gpu_entry *kernel;

	yk_gpu_row_defines(&build, r->device, items, 1, &in[0]);
	yk_gpu_beside_define(&build, yk_gpu_present(&in[3]) ? in[3].dtype : in[0].dtype);
	yk_gpu_define(&build, "MATRIX", in[0].dtype);
	yk_gpu_define(&build, "HEAD", b->head);
	yk_gpu_define(&build, "BLOCK", b->block);
	yk_gpu_define(&build, "STACK", b->stack);
	yk_gpu_flag(&build, "QUADS", reads_quads(op));
	yk_gpu_flag(&build, "QUADS_OUT",
		    has_quads(&op->out[0]) &&
			    (!back || (has_quads(&op->out[1]) && has_quads(&op->out[2]))));
	yk_gpu_flag(&build, "MASKED", a->masked);
	yk_gpu_flag(&build, "DROPOUT", a->dropout > 0);
	if (b->slices > 1)
		yk_gpu_define(&build, "SLICES", b->slices);
	if (b->stages > 1)
		yk_gpu_define(&build, "STAGES", b->stages);
	if (b->sized)
		yk_gpu_define(&build, "SIZED", (int64_t)b->sized);
	int err = yk_gpu_kernel_file(r->device, &build, &kernel);
	return err ? err : enqueue(r, op, a, kernel, name, groups, items, views);
}

// ---- forward ----

static int record_wgmma(struct yk_gpu_record *r, const struct yoke_op *op,
			const struct attention_args *a)
{
	const struct yoke_view *in = op->in;
	const struct blocks b = wgmma_of(op);
	const size_t items = (size_t)(b.warps * r->device->warp);
	struct yk_gpu_build build = { .file = "attention_wgmma.cl",
				      .name = "attention_wgmma",
				      .sized = wgmma_local(&b),
				      .wgmma = true };
	struct yk_gpu_entry *kernel;

	yk_gpu_row_defines(&build, r->device, items, 1, &in[0]);
	yk_gpu_define(&build, "MATRIX", in[0].dtype);
	yk_gpu_define(&build, "HEAD", b.head);
	yk_gpu_define(&build, "BLOCK", b.block);
	yk_gpu_define(&build, "STAGES", b.stages);
	yk_gpu_define(&build, "SIZED", (int64_t)build.sized);
	yk_gpu_flag(&build, "QUADS_OUT", has_quads(&op->out[0]));
	const int err = yk_gpu_kernel_file(r->device, &build, &kernel);
	return err ? err :
		     enqueue(r, op, a, kernel, build.name,
			     a->B * a->H * yk_gpu_ceil_div(a->T, b.tile), items,
			     (const struct yoke_view *[]){ &op->out[0], &op->out[1], &in[0], &in[1],
							   &in[2], seen_of(op), NULL });
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *in = op->in, *o = &op->out[0], *lse = &op->out[1];
	const struct yoke_view *space = &op->workspace;
	const struct attention_args a = args_of(op);
	const int64_t rows = a.B * a.H * a.T;
	struct blocks b;
	int err = 0;

	if (seen_of(op)->kind == YOKE_VIEW_SCALAR)
		r->bind = check_seen;
	else if (yk_gpu_present(seen_of(op)))
		err = yk_gpu_report_length(r, "attention", seen_of(op), a.S);
	if (err)
		return err;
	if (impl == WGMMA_IMPL)
		return record_wgmma(r, op, &a);
	if (impl == MATRIX_IMPL)
		return !blocks_of(r->device, op, FORWARD, &b) ?
			       YOKE_EUNSUPPORTED :
			       launch_blocks(
				       r, op, &a, &b, "attention_matrix.cl", "attention_matrix",
				       a.B * a.H * yk_gpu_ceil_div(a.T, b.tile),
				       (const struct yoke_view *[]){ o, lse, &in[0], &in[1], &in[2],
								     &in[3], &in[4], &in[5],
								     seen_of(op), NULL });
	if (impl == TILES_IMPL)
		return launch(r, op, &a, "attention_tiles.cl", 0, "attention_tiles",
			      a.B * a.H * yk_gpu_ceil_div(a.T, cut_of(r->device, op).tile),
			      (const struct yoke_view *[]){ o, lse, &in[0], &in[1], &in[2], &in[3],
							    &in[4], &in[5], seen_of(op), NULL });
	if (a.parts > 1)
		yk_gpu_workspace(r,
				 (uint64_t)(rows * a.parts) * (uint64_t)(2 + a.D) * sizeof(float));
	err = launch(r, op, &a, "attention_rows.cl", 0, "attention_rows", rows * a.parts,
		     (const struct yoke_view *[]){ o, lse, &in[0], &in[1], &in[2], &in[3], &in[4],
						   &in[5], seen_of(op), space, NULL });
	return err || a.parts == 1 ? err :
		launch(r, op, &a, "attention_rows.cl", 0, "attention_join", rows,
		       (const struct yoke_view *[]){ o, lse, space, NULL });
}

// ---- backward ----

static int record_backward(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *in = op->in, *out = op->out, *space = &op->workspace;
	const struct yoke_view *o = &in[6], *lse = &in[7], *g = &in[8], *seen = seen_of(op);
	const int64_t tile = cut_of(r->device, op).tile;
	const bool heads = impl == HEADS_IMPL, sums = heads && in[0].dtype != yoke_f32;
	const struct attention_args a = args_of(op);
	const int64_t rows = a.B * a.H * a.T;

	struct blocks b;
	if (seen->kind == YOKE_VIEW_SCALAR)
		r->bind = check_seen;
	yk_gpu_workspace(r, sizeof(float) * (uint64_t)rows * (sums ? 1 + (uint64_t)a.D : 1));
	int err = launch(r, op, &a, "attention_backward.cl", heads, "attention_sums",
			 yk_gpu_ceil_div(rows, SUM_ROWS),
			 (const struct yoke_view *[]){ space, o, g, NULL });
	if (!err && impl == BACK_MATRIX_IMPL) {
		if (!blocks_of(r->device, op, KEYS, &b))
			return YOKE_EUNSUPPORTED;
		err = launch_blocks(r, op, &a, &b, "attention_matrix_backward.cl",
				    "attention_matrix_keys",
				    b.slices * a.B * a.G * yk_gpu_ceil_div(a.S, b.tile),
				    (const struct yoke_view *[]){ &out[1], &out[2], &in[0], &in[1],
								  &in[2], space, g, lse, &in[3],
								  &in[4], &in[5], seen, NULL });
		if (!err && !blocks_of(r->device, op, QUERIES, &b))
			return YOKE_EUNSUPPORTED;
		return err ? err :
			     launch_blocks(r, op, &a, &b, "attention_matrix_backward.cl",
					   "attention_matrix_queries",
					   b.slices * a.B * a.H * yk_gpu_ceil_div(a.T, b.tile),
					   (const struct yoke_view *[]){
						   &out[0], &in[0], &in[1], &in[2], space, g, lse,
						   &in[3], &in[4], &in[5], seen, NULL });
	}
	if (!err)
		err = launch(r, op, &a, "attention_backward.cl", heads, "attention_back_keys",
			     a.B * a.G * (heads ? 1 : yk_gpu_ceil_div(a.S, tile)),
			     (const struct yoke_view *[]){ &out[1], &out[2], &out[0], space, &in[0],
							   &in[1], &in[2], g, lse, &in[3], &in[4],
							   &in[5], seen, NULL });
	if (!err && !heads)
		err = launch(r, op, &a, "attention_backward.cl", heads, "attention_back_queries",
			     a.B * a.H * yk_gpu_ceil_div(a.T, tile),
			     (const struct yoke_view *[]){ &out[0], space, &in[0], &in[1], &in[2],
							   g, lse, &in[3], &in[4], &in[5], seen,
							   NULL });
	return err;
}

static const char *const names[] = { "rows", "matrix", "tiles", "wgmma" };
static const char *const backward_names[] = { "matrix", "heads", "twice" };
YK_GPU_OP(attention, ATTENTION) = { .names = names, .nimpl = 4, .can = can, .record = record };
YK_GPU_OP(attention_backward, ATTENTION_BACKWARD) = {
	.names = backward_names, .nimpl = 3, .can = can_backward, .record = record_backward,
};
