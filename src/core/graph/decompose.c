// SPDX-License-Identifier: Apache-2.0
// Decompositions of the named ops that train a network: normalisations and losses.
// (Attention and steps of optimizers have files of their own.)  They are what runs where a backend lacks the named kernel,
// and the definition that the kernels are tested against.  Half precision is computed in f32.

#include "config.h"

#include "graph/op.h"

// ---- map programs ----

// The row of an instruction, YK_OPS if there is none; of bool there are no MIN and MAX.
static int op_of(const struct yoke_insn *n)
{
	int op = 0;
	if (n->dtype == yoke_bool && (n->op == YOKE_MAP_MIN || n->op == YOKE_MAP_MAX))
		return n->op == YOKE_MAP_MIN ? YK_AND : YK_OR;
	while (op < YK_OPS && (!(yk_op_row(op)->flags & YK_F_MAP) || yk_op_row(op)->map != n->op))
		op++;
	return op;
}

bool yk_is_program(const struct yoke_map *m)
{
	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *n = &m->insn[k];
		const uint16_t from[3] = { n->a, n->b, n->c };
		bool good = n->op != YOKE_MAP_INDEX && n->op != YOKE_MAP_RAND;
		if (n->op == YOKE_MAP_INPUT || n->op == YOKE_MAP_CONST) {
			good = n->a < (n->op == YOKE_MAP_INPUT ? m->nin : m->nconst);
		} else {
			const int op = op_of(n);
			good = good && op < YK_OPS;
			for (uint32_t i = 0; good && i < yk_op_row(op)->min_in; i++)
				good = from[i] < k;
		}
		if (!good)
			return false;
	}
	for (int k = 0; k < m->nout; k++)
		if (m->out[k] >= m->ninsn)
			return false;
	return true;
}

void yk_program_parts(struct yk_graph *g, const struct yoke_map *m, const yk_id *in, yk_id *out)
{
	yk_id v[YOKE_MAP_MAX_INSNS];
	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *n = &m->insn[k];
		if (n->op == YOKE_MAP_INPUT) {
			v[k] = in[n->a];
		} else if (n->op == YOKE_MAP_CONST) {
			union yoke_attr a[2] = { { .i = n->dtype }, { .i = (int64_t)m->konst[n->a] } };
			v[k] = yk_record(g, YK_CONST, 0, NULL, 2, a);
		} else if (n->op == YOKE_MAP_CAST) {
			v[k] = yk_cast(g, v[n->a], n->dtype);
		} else {
			const int op = op_of(n), count = yk_op_row(op)->min_in;
			const yk_id x[3] = { v[n->a], count > 1 ? v[n->b] : 0, count > 2 ? v[n->c] : 0 };
			v[k] = yk_cast(g, yk_record(g, op, (uint32_t)count, x, 0, NULL), n->dtype);
		}
	}
	for (int k = 0; k < m->nout; k++)
		out[k] = v[m->out[k]];
}

// ---- named ops ----

#define LAST(g, x) (1u << ((g)->value[x].rank - 1))

// Over the last axis, which stays.
static yk_id sum_last(struct yk_graph *g, yk_id x)
{
	return x == YK_BAD ? x : yk_reduce(g, YK_SUM, x, LAST(g, x), true);
}

static yk_id mean_last(struct yk_graph *g, yk_id x)
{
	if (x == YK_BAD)
		return x;
	double n = (double)g->value[x].dims[g->value[x].rank - 1];
	return yk_bin_lit(g, YK_MUL, sum_last(g, x), 1 / n);
}

static yk_id drop_last(struct yk_graph *g, yk_id x) // [.., 1] -> [..]
{
	return x == YK_BAD ? x : yk_reshape(g, x, g->value[x].rank - 1, g->value[x].dims);
}

static yk_id add_last(struct yk_graph *g, yk_id x) // [..] -> [.., 1]
{
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	v.dims[v.rank] = 1;
	return yk_reshape(g, x, v.rank + 1, v.dims);
}

void yk_decompose_softmax(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_up(g, c->in[0]);
	yk_id d = yk_bin(g, YK_SUB, x, yk_row_max(g, x, g->value[c->in[0]].rank - 1));
	yk_id e = yk_un(g, YK_EXP, d), s = sum_last(g, e);
	if (c->attr[0].i)
		d = yk_bin(g, YK_SUB, d, yk_un(g, YK_LOG, s));
	else
		d = yk_bin(g, YK_DIV, e, s);
	out[0] = yk_down(g, d, c->in[0]);
}

void yk_decompose_softmax_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id y = yk_up(g, c->in[0]), cot = yk_up(g, c->in[1]), dx;
	if (c->attr[0].i) // g - exp(y) sum g
		dx = yk_bin(g, YK_SUB, cot,
			    yk_bin(g, YK_MUL, yk_un(g, YK_EXP, y), sum_last(g, cot)));
	else // y (g - sum g y)
		dx = yk_bin(
			g, YK_MUL, y,
			yk_bin(g, YK_SUB, cot, sum_last(g, yk_bin(g, YK_MUL, cot, y))));
	out[0] = yk_down(g, dx, c->in[0]);
}

void yk_decompose_layer_norm(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	// two passes: the mean first, then the mean square of what is left
	yk_id x = yk_up(g, c->in[0]), w = yk_up(g, c->in[1]), b = yk_up(g, c->in[2]);
	yk_id mean = mean_last(g, x), d = yk_bin(g, YK_SUB, x, mean);
	yk_id var = mean_last(g, yk_un(g, YK_SQUARE, d));
	yk_id rstd = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, var, c->attr[0].f));
	yk_id y = yk_bin(g, YK_MUL, d, rstd);
	if (w != YK_NIL)
		y = yk_bin(g, YK_MUL, y, w);
	if (b != YK_NIL)
		y = yk_bin(g, YK_ADD, y, b);
	out[0] = yk_down(g, y, c->in[0]);
	out[1] = drop_last(g, mean);
	out[2] = drop_last(g, rstd);
}

void yk_decompose_rms_norm(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_up(g, c->in[0]), w = yk_up(g, c->in[1]);
	yk_id ms = mean_last(g, yk_un(g, YK_SQUARE, x));
	yk_id rstd = yk_un(g, YK_RSQRT, yk_bin_lit(g, YK_ADD, ms, c->attr[0].f));
	yk_id y = yk_bin(g, YK_MUL, x, rstd);
	if (w != YK_NIL)
		y = yk_bin(g, YK_MUL, y, w);
	out[0] = yk_down(g, y, c->in[0]);
	out[1] = drop_last(g, rstd);
}

// xhat: the normalised x; subtract: whether the mean of the gradient goes too (layer norm)
static void norm_backward(struct yk_graph *g, yk_id xhat, yk_id w, yk_id rstd, yk_id cot,
		      bool subtract, const struct yk_call *c, yk_id *out)
{
	yk_id gw = w == YK_NIL ? cot : yk_bin(g, YK_MUL, cot, w);
	yk_id along = mean_last(g, yk_bin(g, YK_MUL, gw, xhat));
	yk_id dx = yk_bin(g, YK_SUB, gw, yk_bin(g, YK_MUL, xhat, along));
	if (subtract)
		dx = yk_bin(g, YK_SUB, dx, mean_last(g, gw));
	out[0] = yk_down(g, yk_bin(g, YK_MUL, dx, rstd), c->in[0]);
	unsigned rows = LAST(g, c->in[0]) - 1;
	const int dtype = (int)c->attr[0].i;
	out[1] = yk_cast(g, yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, cot, xhat), rows, false),
			 dtype);
	if (subtract)
		out[2] = yk_cast(g, yk_reduce(g, YK_SUM, cot, rows, false), dtype);
}

void yk_decompose_layer_norm_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_up(g, c->in[0]), rstd = add_last(g, c->in[3]);
	yk_id xhat = yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, x, add_last(g, c->in[2])), rstd);
	norm_backward(g, xhat, yk_up(g, c->in[1]), rstd, yk_up(g, c->in[4]), true, c, out);
}

void yk_decompose_rms_norm_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id rstd = add_last(g, c->in[2]);
	yk_id xhat = yk_bin(g, YK_MUL, yk_up(g, c->in[0]), rstd);
	norm_backward(g, xhat, yk_up(g, c->in[1]), rstd, yk_up(g, c->in[3]), false, c, out);
}

// ---- cross entropy ----

// [N,V] bool: is this column the row's id?
static yk_id one_hot(struct yk_graph *g, yk_id ids, int64_t columns)
{
	yk_id column =
		yk_record(g, YK_IOTA, 0, NULL, 1, &(union yoke_attr){ .i = columns });
	return yk_bin(g, YK_EQ, add_last(g, yk_cast(g, ids, yoke_i64)), column);
}

// How many ids count, as a number of x's dtype; *valid [N] tells which.
static yk_id counted(struct yk_graph *g, yk_id ids, int64_t ignore, int dtype,
		     yk_id *valid)
{
	yk_id skip = yk_record(g, YK_CONST, 0, NULL, 2,
			       (union yoke_attr[]){ { .i = yoke_i64 }, { .i = ignore } });
	*valid = yk_bin(g, YK_NE, yk_cast(g, ids, yoke_i64), skip);
	return yk_reduce(g, YK_SUM, yk_cast(g, *valid, dtype), 1, false);
}

void yk_decompose_cross_entropy(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_up(g, c->in[0]), ids = c->in[1], valid;
	int dtype = g->value[x].dtype;
	int64_t columns = g->value[x].dims[1];
	double smooth = c->attr[1].f;
	yk_id most = yk_reduce(g, YK_REDUCE_MAX, x, 2, true);
	yk_id sum = sum_last(g, yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, most)));
	yk_id lse = drop_last(g, yk_bin(g, YK_ADD, most, yk_un(g, YK_LOG, sum)));
	yk_id zero = yk_lit(g, dtype, 0);
	yk_id count = counted(g, ids, c->attr[0].i, dtype, &valid);
	// picked, not compared with all columns: an id outside is an error then
	yk_id at = yk_tri(g, YK_SELECT, valid, ids, yk_lit(g, g->value[ids].dtype, 0));
	yk_id picked = yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ x, add_last(g, at) }, 1,
				 &(union yoke_attr){ .i = 1 });
	yk_id loss = yk_bin_lit(g, YK_MUL, drop_last(g, picked), 1 - smooth);
	if (smooth > 0)
		loss = yk_bin(g, YK_ADD, loss,
			      yk_bin_lit(g, YK_MUL, yk_reduce(g, YK_SUM, x, 2, false),
					 smooth / (double)columns));
	loss = yk_bin(g, YK_SUB, lse, loss);
	loss = yk_reduce(g, YK_SUM, yk_tri(g, YK_SELECT, valid, loss, zero), 1, false);
	out[0] = yk_bin(g, YK_DIV, loss, count);
	out[1] = lse;
}

void yk_decompose_cross_entropy_backward(struct yk_graph *g, const struct yk_call *c,
				     yk_id *out)
{
	yk_id x = yk_up(g, c->in[0]), ids = c->in[1], valid;
	int dtype = g->value[x].dtype;
	int64_t columns = g->value[x].dims[1];
	double smooth = c->attr[1].f;
	yk_id p = yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, add_last(g, c->in[2])));
	yk_id hit = yk_lit(g, dtype, 1 - smooth + smooth / (double)columns);
	yk_id miss = yk_lit(g, dtype, smooth / (double)columns);
	yk_id target = yk_tri(g, YK_SELECT, one_hot(g, ids, columns), hit, miss);
	yk_id each =
		yk_bin(g, YK_DIV, c->in[3], counted(g, ids, c->attr[0].i, dtype, &valid));
	yk_id d = yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, p, target), each);
	out[0] = yk_down(g, yk_tri(g, YK_SELECT, add_last(g, valid), d, yk_lit(g, dtype, 0)),
		      c->in[0]);
}
