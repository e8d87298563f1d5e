// SPDX-License-Identifier: Apache-2.0
// RECURRENT and RECURRENT_BACKWARD: a layer's steps in order, each divided among units and rows by
// shape alone.
#include "config.h"

#include <string.h>

#include "../algebra/matrix.h"
#include "../vector/vfun.h"

enum { TANH_CELL, RELU_CELL, LSTM, GRU };
enum {
	MAX_ROWS = VF == 16 ? 6 : 3, // sums of so many rows and four vectors stay in registers
	ROWS_OF_ITEM = 16,
	SMALL = 30000 // products in a step below which the team is not woken
};

struct layer {
	int64_t steps, rows, units, blocks; // blocks: items along the units
	int cell, gates, span, nv; // span: vectors of units in an item, nv of all gates
	bool reverse;
	const int64_t *lengths; // NULL: all rows take all steps
	int64_t stride;         // of lengths
};

static int64_t length_of(const struct layer *l, int64_t b)
{
	return l->lengths && l->lengths[b * l->stride] < l->steps ? l->lengths[b * l->stride] :
								    l->steps;
}

// Rows that are computed together, of n: even groups of up to MAX_ROWS
static int64_t next_rows(int64_t n)
{
	const int64_t groups = (n + MAX_ROWS - 1) / MAX_ROWS;
	return (n + groups - 1) / groups;
}

static int64_t padded(int64_t n)
{
	return (n + 63) & ~(int64_t)63;
}

static void each(const struct layer *l, int64_t n, void (*fn)(void *, int64_t), void *arg)
{
	if (l->rows * l->units * l->gates * l->units >= SMALL)
		yk_team_run(n, fn, arg);
	else
		for (int64_t i = 0; i < n; i++)
			fn(arg, i);
}

static inline __attribute__((always_inline)) void sigmoid_f64(vd *x, const int n)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < VD; i++)
			x[j][i] = yk_sigmoid_f64(x[j][i]);
}

static inline __attribute__((always_inline)) void tanh_f64(vd *x, const int n)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < VD; i++)
			x[j][i] = yk_tanh_f64(x[j][i]);
}

#include "../vector/vec_f32.h"
#define RNN(name) name##_f32
#define SIGMOID v_sigmoid
#define TANH v_tanh
#include "kern_recurrent_steps.h"
#undef RNN
#undef SIGMOID
#undef TANH

#include "../vector/vec_f64.h"
#define RNN(name) name##_f64
#define SIGMOID sigmoid_f64
#define TANH tanh_f64
#include "kern_recurrent_steps.h"

// ---- the kernels ----

static bool is_backward(const struct yoke_op *op)
{
	return op->code == YOKE_OP_RECURRENT_BACKWARD;
}

static struct layer layer_of(const struct yoke_op *op)
{
	const bool back = is_backward(op);
	const struct yoke_view *y = back ? &op->in[4] : &op->in[0], *w = &op->in[!back];
	static const int gates[] = { 1, 1, 4, 3 };
	struct layer l = { .steps = y->dims[0],
			   .rows = y->dims[1],
			   .units = w->dims[1],
			   .cell = (int)op->attr[0].i,
			   .reverse = op->attr[1].i };
	const int lanes = w->dtype == yoke_f64 ? VD : VF;
	l.gates = gates[l.cell];
	l.span = l.gates == 1 ? 4 : 1;
	l.nv = l.gates * l.span;
	l.blocks = (l.units + l.span * lanes - 1) / (l.span * lanes);
	return l;
}

static bool is_operand(const struct yoke_view *v, int dtype)
{
	return v->kind == YOKE_VIEW_NONE || (v->kind == YOKE_VIEW_BUFFER && v->dtype == dtype);
}

static uint64_t can(const struct yoke_op *op)
{
	const bool back = is_backward(op);
	const int dtype = op->in[!back].dtype;
	const uint32_t lengths = back ? 3 : 5;
	if ((dtype != yoke_f32 && dtype != yoke_f64) || op->nattr != 2 || op->attr[0].i < 0 ||
	    op->attr[0].i > GRU)
		return 0;
	for (uint32_t i = 0; i < op->nin; i++)
		if (!is_operand(&op->in[i], i == lengths ? yoke_i64 : dtype))
			return 0;
	for (uint32_t i = 0; i < op->nout; i++)
		if (!is_operand(&op->out[i], dtype))
			return 0;
	return 1;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	const struct layer l = layer_of(op);
	(void)impl;
	return op->in[!is_backward(op)].dtype == yoke_f64 ? work_f64(&l, is_backward(op)) :
							    work_f32(&l, is_backward(op));
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const bool back = is_backward(op), wide = op->in[!back].dtype == yoke_f64;
	const struct yoke_view *lengths = &op->in[back ? 3 : 5];
	struct layer l = layer_of(op);
	(void)impl, (void)prepared;
	if (!l.rows || !l.units)
		return 0;
	if (lengths->kind != YOKE_VIEW_NONE) {
		l.lengths = yk_ptr(lengths);
		l.stride = lengths->strides[0];
	}
	if (back)
		return wide ? backward_f64(op, &l) : backward_f32(op, &l);
	return wide ? forward_f64(op, &l) : forward_f32(op, &l);
}

YK_KERNEL(recurrent, RECURRENT, RECURRENT_BACKWARD) = {
	.can = can, .workspace = workspace, .run = run, .impl = { "steps" }
};
