// SPDX-License-Identifier: Apache-2.0
// Recurrent layers (Elman, LSTM, GRU): one op for all steps of a layer in one direction, so that a
// plan does not grow with the sequence. The products of the inputs are one contraction before it.
// There is no decomposition: where a device has no kernel the CPU runs the op.
#include "config.h"

#include <string.h>

#include "base/sized.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

enum { CELLS = YOKE_CELL_GRU + 1 };
enum { X, W, B, H0, C0, LENGTHS, INPUTS }; // operands
enum { Y, H, C, GATES, MORE, RESULTS };    // results
enum { OPERANDS = 9 };                     // of yoke_recurrent

static int64_t gates_of(int64_t cell)
{
	static const int64_t gates[CELLS] = { 1, 1, 4, 3 };
	return gates[cell];
}

// attr: cell, reverse
static int shape_recurrent(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(X), *w = IN(W);
	const int64_t count = gates_of(c->attr[0].i);
	if (x->dtype != yoke_f32 && x->dtype != yoke_f64)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32 or f64, got", x);
	if (w->dtype != x->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", x, w);
	if (x->rank != 3 || w->rank != 2 || w->dims[0] != count * w->dims[1] ||
	    x->dims[2] != w->dims[0])
		return fail_two(g, c, YOKE_ESHAPE,
				"inputs [T,B,I] and weights [G H,I], [G H,H] do not fit:", x, w);
	struct yk_value state = *x, bias = *w;
	state.rank = 2;
	state.dims[0] = x->dims[1];
	state.dims[1] = w->dims[1];
	bias.rank = 1;
	int err = want_like(g, c, B, &bias);
	if (!err)
		err = want_like(g, c, H0, &state);
	if (!err)
		err = want_like(g, c, C0, &state);
	if (!err && has(c, LENGTHS) &&
	    (IN(LENGTHS)->dtype != yoke_i64 || IN(LENGTHS)->rank != 1 ||
	     IN(LENGTHS)->dims[0] != x->dims[1]))
		err = fail_two(g, c, YOKE_ESHAPE, "takes lengths i64 [B], got", x, IN(LENGTHS));
	if (err)
		return err;
	out[Y] = out[GATES] = out[MORE] = *x;
	out[Y].dims[2] = out[MORE].dims[2] = w->dims[1];
	out[H] = out[C] = state;
	return want_size(g, c, &out[GATES]);
}

// w, h0, c0, lengths, y, gates, more, dy, dh, dc -> dx, dp, dh0, dc0
static int shape_backward(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *y = IN(4), *gates = IN(5);
	out[0] = out[1] = *gates;
	out[2] = *y;
	out[2].rank = 2;
	out[2].dims[0] = y->dims[1];
	out[2].dims[1] = y->dims[2];
	out[3] = out[2];
	(void)g;
	return 0;
}

// The states before each step [T,B,H]: those of y, one step later, and h0
static yk_id states(struct yk_graph *g, const struct yk_node_copy *n, bool reverse)
{
	const struct yk_value y = g->value[n->y];
	const int64_t steps = y.dims[0];
	yk_id first = n->in[H0];
	if (first == YK_NIL)
		first = yk_broadcast(g, yk_lit(g, y.dtype, 0), 2, y.dims + 1);
	first = yk_reshape(g, first, 3, (int64_t[]){ 1, y.dims[1], y.dims[2] });
	if (steps < 2)
		return first;
	yk_id part[2] = { first, yk_slice_axis(g, n->y, 0, 0, steps - 1) };
	if (reverse) {
		part[0] = yk_slice_axis(g, n->y, 0, 1, steps - 1);
		part[1] = first;
	}
	const yk_id all = yk_record(g, YK_CONCAT, 2, part, 1, &(union yoke_attr){ .i = 0 });
	if (!reverse || n->in[LENGTHS] == YK_NIL)
		return all;
	// the first step of row b is the last one below its length
	yk_id step = yk_reshape(g, yk_counting(g, steps), 3, (int64_t[]){ steps, 1, 1 });
	yk_id last = yk_bin_lit(
		g, YK_SUB, yk_reshape(g, n->in[LENGTHS], 3, (int64_t[]){ 1, y.dims[1], 1 }), 1);
	return yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, step, last), first, all);
}

static void grad_recurrent(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const yk_id in[] = { n.in[W],     n.in[H0],   n.in[C0], n.in[LENGTHS], n.y,
			     n.y + GATES, n.y + MORE, gout[Y],  gout[H],       gout[C] };
	const yk_id out = yk_record(g, YK_RECURRENT_BACKWARD, 10, in, 2, n.attr);
	const struct yk_value y = g->value[n.y];
	if (out == YK_BAD)
		return;
	const int64_t rows = y.dims[0] * y.dims[1], size = g->value[out].dims[2];
	const yk_id dp = yk_reshape(g, out + 1, 2, (int64_t[]){ rows, size });
	const yk_id before =
		yk_reshape(g, states(g, &n, n.attr[1].i), 2, (int64_t[]){ rows, y.dims[2] });
	gin[X] = out;
	gin[W] = yk_matmul(g, dp, before, YOKE_TA);
	if (n.in[B] != YK_NIL)
		gin[B] = yk_reduce(g, YK_SUM, dp, 1, false);
	if (n.in[H0] != YK_NIL)
		gin[H0] = out + 2;
	if (n.in[C0] != YK_NIL)
		gin[C0] = out + 3;
}

YK_OP(RECURRENT) = { .name = "recurrent",
		     .code = YOKE_OP_RECURRENT,
		     .flags = YK_F_FLOAT | YK_F_PARTIAL,
		     .cast = YK_CAST_F32,
		     .min_in = INPUTS,
		     .max_in = INPUTS,
		     .nout = RESULTS,
		     .shape = shape_recurrent,
		     .grad = grad_recurrent };
YK_OP(RECURRENT_BACKWARD) = { .name = "recurrent_backward",
			      .code = YOKE_OP_RECURRENT_BACKWARD,
			      .flags = YK_F_FLOAT | YK_F_PARTIAL,
			      .min_in = 10,
			      .max_in = 10,
			      .nout = 4,
			      .shape = shape_backward };

// Is operand i absent, or of this dtype and shape [rows,columns]?  Else an error beside operand
// `of`.
static bool want_matrix(struct yk_rec *r, int i, int of, int64_t rows, int64_t columns,
			const char *what)
{
	char a[160], b[160];
	const struct yk_value *w = &r->g->value[r->in[of]], *v;
	if (r->in[i] == YK_NIL)
		return true;
	v = &r->g->value[r->in[i]];
	if (v->rank == 2 && v->dims[0] == rows && v->dims[1] == columns && v->dtype == w->dtype)
		return true;
	yk_rec_fail(r, v->dtype == w->dtype ? YOKE_ESHAPE : YOKE_EDTYPE, "takes %s, got %s and %s",
		    what, yk_describe(w, a), yk_describe(v, b));
	return false;
}

// Do the projection, and the states beside it, have the shapes of a layer with weights w_hh [4
// H,P]?
static bool want_projection(struct yk_rec *r, int cell)
{
	const struct yk_value *x = &r->g->value[r->in[0]], *u = &r->g->value[r->in[2]];
	if (cell != YOKE_CELL_LSTM) {
		yk_rec_fail(r, YOKE_EINVAL,
			    "takes a projection w_hr with the cell LSTM alone, got cell %d", cell);
		return false;
	}
	return want_matrix(r, 8, 2, u->dims[1], u->dims[0] / 4,
			   "weights [4 H,P] and a projection [P,H]") &&
	       want_matrix(r, 5, 2, x->dims[1], u->dims[1],
			   "weights [4 H,P] and a state h0 [B,P]") &&
	       want_matrix(r, 6, 2, x->dims[1], u->dims[0] / 4,
			   "weights [4 H,P] and a state c0 [B,H]");
}

// Do inputs and weights have the shapes of a layer?  Else an error.
static bool want_layer(struct yk_rec *r, int cell)
{
	char a[160], b[160];
	for (int i = 0; i < OPERANDS; i++)
		if (r->in[i] == YK_BAD)
			return false;
	if (cell < 0 || cell >= CELLS) {
		yk_rec_fail(r, YOKE_EINVAL, "cell %d is none of yoke_cell, 0 to %d", cell,
			    CELLS - 1);
		return false;
	}
	const struct yk_value *x = &r->g->value[r->in[0]], *w = &r->g->value[r->in[1]],
			      *u = &r->g->value[r->in[2]];
	const struct yk_value *other = w->dtype != x->dtype ? w : u;
	if ((x->dtype != yoke_f32 && x->dtype != yoke_f64) || w->dtype != x->dtype ||
	    u->dtype != x->dtype) {
		yk_rec_fail(r, YOKE_EDTYPE, "takes operands of f32 or of f64, got %s and %s",
			    yk_describe(x, a), yk_describe(other, b));
		return false;
	}
	if (x->rank != 3 || w->rank != 2 || w->dims[1] != x->dims[2]) {
		yk_rec_fail(r, YOKE_ESHAPE,
			    "takes inputs [T,B,I] and weights [G H,I], got %s and %s",
			    yk_describe(x, a), yk_describe(w, b));
		return false;
	}
	if (u->rank != 2 || u->dims[0] != w->dims[0] || u->dims[0] % gates_of(cell) ||
	    (r->in[8] == YK_NIL && u->dims[0] != gates_of(cell) * u->dims[1])) {
		yk_rec_fail(r, YOKE_ESHAPE,
			    "takes weights [G H,I] and [G H,H] with G = %lld, got %s and %s",
			    (long long)gates_of(cell), yk_describe(w, a), yk_describe(u, b));
		return false;
	}
	for (int i = 3; i < 5; i++) {
		const struct yk_value *v = r->in[i] == YK_NIL ? NULL : &r->g->value[r->in[i]];
		if (v && (v->rank != 1 || v->dims[0] != w->dims[0] || v->dtype != x->dtype)) {
			yk_rec_fail(r, YOKE_ESHAPE,
				    "takes weights [G H,I] and biases [G H], got %s and %s",
				    yk_describe(w, a), yk_describe(v, b));
			return false;
		}
	}
	return r->in[8] == YK_NIL || want_projection(r, cell);
}

// p [T,B,G H] with q [B,G H] added to the first step of each row
static yk_id add_to_first(struct yk_graph *g, yk_id p, yk_id q, yk_id lengths, bool reverse)
{
	const struct yk_value v = g->value[p];
	const int64_t steps = v.dims[0], rows = v.dims[1];
	const yk_id step = yk_reshape(g, yk_counting(g, steps), 3, (int64_t[]){ steps, 1, 1 });
	yk_id first = yk_lit(g, yoke_i64, reverse ? (double)(steps - 1) : 0);
	if (reverse && lengths != YK_NIL)
		first = yk_bin(g, YK_MIN, first,
			       yk_bin_lit(g, YK_SUB,
					  yk_reshape(g, lengths, 3, (int64_t[]){ 1, rows, 1 }), 1));
	q = yk_reshape(g, q, 3, (int64_t[]){ 1, rows, v.dims[2] });
	return yk_bin(
		g, YK_ADD, p,
		yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, step, first), q, yk_lit(g, v.dtype, 0)));
}

// The last states [B,P] of projected ones, which are 0 in rows without a step
static yk_id last_projected(struct yk_graph *g, yk_id h, yk_id h0, yk_id lengths, int64_t steps)
{
	if (h0 == YK_NIL || (steps && lengths == YK_NIL))
		return h;
	if (!steps)
		return yk_broadcast(g, h0, 2, g->value[h].dims); // a view
	const yk_id any = yk_bin_lit(
		g, YK_GT, yk_reshape(g, lengths, 2, (int64_t[]){ g->value[h].dims[0], 1 }), 0);
	return yk_tri(g, YK_SELECT, any, h, h0);
}

yoke_tensor *yoke_recurrent(yoke_tensor *x, const struct yoke_recurrent *l, yoke_tensor *h0,
			    yoke_tensor *c0, yoke_tensor *lengths, yoke_tensor **h, yoke_tensor **c)
{
	struct yoke_recurrent o = { .size = sizeof o, .w_ih = NULL };
	if (h)
		*h = NULL;
	if (c)
		*c = NULL;
	if (yk_sized_read(&o, sizeof o, l, "recurrent", "yoke_recurrent") < 0)
		return NULL;
	yoke_tensor *const operands[] = {
		x,  o.w_ih, o.w_hh,  o.b_ih ? o.b_ih : YOKE_NONE, o.b_hh ? o.b_hh : YOKE_NONE,
		h0, c0,     lengths, o.w_hr ? o.w_hr : YOKE_NONE
	};
	struct yk_rec r = yk_rec_begin_with(YK_RECURRENT, 0x1f8u, OPERANDS, operands);
	struct yk_graph *g = r.g;
	if (!want_layer(&r, o.cell))
		return yk_rec_end(&r, YK_BAD);
	const bool gru = o.cell == YOKE_CELL_GRU;
	const struct yk_value v = g->value[r.in[0]], w = g->value[r.in[1]];
	yk_id p = yk_matmul(
		g, yk_reshape(g, r.in[0], 2, (int64_t[]){ v.dims[0] * v.dims[1], v.dims[2] }),
		r.in[1], YOKE_TB);
	if (r.in[3] != YK_NIL)
		p = yk_bin(g, YK_ADD, p, r.in[3]);
	if (r.in[4] != YK_NIL && !gru)
		p = yk_bin(g, YK_ADD, p, r.in[4]);
	p = yk_reshape(g, p, 3, (int64_t[]){ v.dims[0], v.dims[1], w.dims[0] });
	// With a projection R the op computes the states u before it: w_hh h = (w_hh R) u, except
	// for the first h.
	const yk_id project = r.in[8], h_first = r.in[5];
	if (project != YK_NIL && h_first != YK_NIL)
		p = add_to_first(g, p, yk_matmul(g, h_first, r.in[2], YOKE_TB), r.in[7], o.reverse);
	const yk_id in[INPUTS] = { p,
				   project == YK_NIL ? r.in[2] : yk_matmul(g, r.in[2], project, 0),
				   gru ? r.in[4] : YK_NIL,
				   project == YK_NIL ? h_first : YK_NIL,
				   o.cell == YOKE_CELL_LSTM ? r.in[6] : YK_NIL,
				   r.in[7] };
	const yk_id out =
		yk_record(g, YK_RECURRENT, INPUTS, in, 2,
			  (union yoke_attr[]){ { .i = o.cell }, { .i = o.reverse != 0 } });
	if (out == YK_BAD)
		return yk_rec_end(&r, out);
	yk_id y = out, last = out + H;
	if (project != YK_NIL) {
		y = yk_matmul(g, y, project, YOKE_TB);
		last = last_projected(g, yk_matmul(g, last, project, YOKE_TB), h_first, r.in[7],
				      v.dims[0]);
	}
	return yk_rec_end_with(&r, y, 2, (struct yk_rec_result[]){ { h, last }, { c, out + C } });
}
