// SPDX-License-Identifier: Apache-2.0
// RECURRENT and RECURRENT_BACKWARD: cl/recurrent.cl. Layers of few units take all steps in one
// launch, others a launch per step.
#include "config.h"

#include "launch.h"
#include "rows.h"

enum { Y, H, C, VALUES, MORE, X, W, B, H0, C0, LENGTHS, DX, DP, DH0, DC0, DY, DH, DC, OPERANDS };
enum { LSTM = 2, GRU };
enum {
	ONE_LAUNCH = 256, // units up to which a group has all of them
	ITEMS = 128,      // of a group
	SPAN = 32,        // units of a group, if it has not all
	ROWS = 4,         // of an item, if there are enough
	BUSY = 128        // groups that keep a GPU busy
};

// The operands in the order of the op, and the kernels' parameters.
static const unsigned char forward[] = { Y, H, C, VALUES, MORE, X, W, B, H0, C0, LENGTHS },
			   backward[] = { DX, DP,     DH0,  DC0, W,  H0, C0,
					  LENGTHS, Y, VALUES, MORE, DY, DH, DC };

// Matches struct recurrent of cl/recurrent.cl.
struct recurrent {
	int64_t steps, rows, units, reverse, given;
	int64_t begin, end, span, blocks, tiles;
	int64_t strides[OPERANDS][3];
};

static bool is_backward(const struct yoke_op *op)
{
	return op->code == YOKE_OP_RECURRENT_BACKWARD;
}

static const struct yoke_view *operand(const struct yoke_op *op, uint32_t i)
{
	return i < op->nout ? &op->out[i] : &op->in[i - op->nout];
}

static int gates_of(const struct yoke_op *op)
{
	static const int gates[] = { 1, 1, 4, 3 };
	return gates[op->attr[0].i];
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const bool back = is_backward(op);
	const unsigned char *order = back ? backward : forward;
	const uint32_t nin = back ? 10 : 6, nout = back ? 4 : 5;

	if (op->nin != nin || op->nout != nout || op->nattr != 2 || op->attr[0].i < 0 ||
	    op->attr[0].i > GRU)
		return 0;
	const struct yoke_view *w = &op->in[!back];
	if (w->kind != YOKE_VIEW_BUFFER || !yk_gpu_f32_or_f64(d, w->dtype))
		return 0;
	for (uint32_t i = 0; i < nin + nout; i++) {
		const struct yoke_view *v = operand(op, i);
		const int dtype = order[i] == LENGTHS ? yoke_i64 : w->dtype;
		if (v->kind != YOKE_VIEW_NONE && (v->kind != YOKE_VIEW_BUFFER || v->dtype != dtype))
			return 0;
		const bool needed = order[i] == Y || order[i] == (back ? VALUES : X);
		if (v->kind == YOKE_VIEW_NONE && needed)
			return 0;
	}
	return (back ? &op->in[4] : &op->out[0])->dims[0] > 0 &&
	       d->info.max_args >= sizeof(struct recurrent) + (nin + nout + 1) * 16 &&
	       yk_gpu_fits_group(d, ONE_LAUNCH);
}

static void set_strides(struct recurrent *a, const struct yoke_op *op)
{
	const unsigned char *order = is_backward(op) ? backward : forward;

	for (uint32_t i = 0; i < op->nout + op->nin; i++) {
		const struct yoke_view *v = operand(op, i);
		int64_t *to = a->strides[order[i]];
		if (v->kind == YOKE_VIEW_NONE)
			continue;
		a->given |= (int64_t)1 << order[i];
		for (int k = 0; k < v->rank; k++)
			to[3 - v->rank + k] = v->strides[k];
		if (order[i] == LENGTHS)
			to[0] = v->strides[0];
	}
}

// w [G H,H] transposed to the beginning of the workspace
static int pack(struct yk_gpu_record *r, const struct yoke_op *op, const struct yoke_view *w)
{
	struct yoke_view from = *w, to = r->op.workspace;

	for (int k = 0; k < 2; k++) {
		from.dims[k] = w->dims[1 - k];
		from.strides[k] = w->strides[1 - k];
	}
	to.dtype = w->dtype;
	to.rank = 2;
	to.dims[0] = from.dims[0];
	to.dims[1] = to.strides[0] = from.dims[1];
	to.strides[1] = 1;
	return yk_gpu_move_record(r, op, &from, &to);
}

static int launch(struct yk_gpu_record *r, const struct yoke_op *op,
		  const struct yk_gpu_entry *kernel, const struct recurrent *a, int items)
{
	const bool back = is_backward(op);
	const struct yoke_view *any = &op->in[!back];

	yk_gpu_begin(r, kernel);
	for (uint32_t i = 0; i < op->nout + op->nin; i++)
		if (back || forward[i] != W)
			yk_gpu_arg_view_or(r, operand(op, i), any);
	yk_gpu_arg_view(r, &op->workspace);
	yk_gpu_arg_struct(r, a, sizeof *a);
	return yk_gpu_launch_groups(r, yk_gpu_max_groups(r->device, a->blocks * a->tiles),
				    (size_t)items, kernel->build.name);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const bool back = is_backward(op), cpu_like = r->device->cpu_like;
	const struct yoke_view *y = back ? &op->in[4] : &op->out[0], *w = &op->in[!back];
	struct recurrent a = { .steps = y->dims[0],
			       .rows = y->dims[1],
			       .units = y->dims[2],
			       .reverse = op->attr[1].i };
	const int64_t gates = gates_of(op), state = a.rows * a.units;
	int64_t items = cpu_like ? 1 : ITEMS, across = cpu_like ? 1 : SPAN;
	struct yk_gpu_entry *kernel;

	(void)impl;
	if (!state)
		return 0;
	set_strides(&a, op);
	const bool at_once = a.units <= ONE_LAUNCH;
	while (at_once && !cpu_like && across < a.units)
		across *= 2;
	items = across > items ? across : items;
	a.span = at_once ? a.units : SPAN;
	a.blocks = yk_gpu_ceil_div(a.units, a.span);
	a.tiles = yk_gpu_ceil_div(a.rows, items / across * ROWS);
	const int64_t rows = a.tiles * a.blocks >= BUSY || cpu_like ? ROWS : 1;
	a.tiles = yk_gpu_ceil_div(a.rows, items / across * rows);

	yk_gpu_workspace(r, (uint64_t)(back ? state * (2 + 2 * gates) :
					      gates * a.units * a.units + 3 * state) *
				    yk_gpu_bytes(w->dtype));
	struct yk_gpu_build b = { .file = "recurrent.cl",
				  .name = back ? "recurrent_backward" : "recurrent" };
	yk_gpu_define(&b, "CELL", op->attr[0].i);
	yk_gpu_define(&b, "DTYPE", w->dtype);
	yk_gpu_flag(&b, "USE_F64", w->dtype == yoke_f64);
	yk_gpu_flag(&b, "BACK", back);
	yk_gpu_define(&b, "ITEMS", items);
	yk_gpu_define(&b, "ACROSS", across);
	yk_gpu_define(&b, "ROWS", rows);
	int err = back ? 0 : pack(r, op, w);
	if (!err)
		err = yk_gpu_kernel_file(r->device, &b, &kernel);
	// a further step for the derivatives by the states before the first
	const int64_t last = a.steps + back;
	for (int64_t s = 0; s < last && !err; s = a.end) {
		a.begin = s;
		a.end = at_once ? last : s + 1;
		err = launch(r, op, kernel, &a, (int)items);
	}
	return err;
}

static const char *const names[] = { "steps" };
YK_GPU_OP(recurrent, RECURRENT,
	  RECURRENT_BACKWARD) = { .names = names, .nimpl = 1, .can = can, .record = record };
