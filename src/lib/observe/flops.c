// SPDX-License-Identifier: Apache-2.0
// Counts the floating-point operations of steps from ops, shapes and map programs.
#include "config.h"

#include "observe/flops.h"

#include <math.h>

static double count(const struct yoke_view *v)
{
	double n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= (double)v->dims[i];
	return n;
}

static double contraction(const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	return 2 * (double)a->dims[a->rank - 1] * count(&op->out[0]);
}

// Number of arithmetic instructions of a program.
static double instructions(const struct yoke_map *m)
{
	double n = 0;
	for (int i = 0; i < m->ninsn; i++)
		n += m->insn[i].op != YOKE_MAP_INPUT && m->insn[i].op != YOKE_MAP_CONST &&
		     m->insn[i].op != YOKE_MAP_INDEX;
	return n;
}

static double elements(const struct yoke_op *op)
{
	double n = 1;
	for (int i = 0; i < op->rank; i++)
		n *= (double)op->dims[i];
	return n;
}

// Number of elements of the tensors of the first list that is read.
static double listed(const struct yoke_op *op)
{
	double n = 0;
	for (uint32_t i = 0; i < op->list; i++)
		n += count(&op->in[i]);
	return n;
}

// Number of pairs of a query and a key visible to it.  n: the number of keys, if the host knows it.
static double pairs(const struct yoke_view *q, const struct yoke_view *k, const struct yoke_view *n,
		    bool causal)
{
	const double t = (double)q->dims[1], all = (double)k->dims[1];
	const double s =
		n->kind == YOKE_VIEW_SCALAR && (double)n->offset < all ? (double)n->offset : all;
	double seen = t * s;
	if (causal && s >= t) // query i sees i + s - t + 1
		seen = t * (s - t) + t * (t + 1) / 2;
	else if (causal) // the first t - s see none
		seen = s * (s + 1) / 2;
	return seen * (double)q->dims[0] * (double)q->dims[2];
}

// Each element of y of a convolution is a sum over all weights of an output; the gradients have as
// many terms.
static double convolution(const struct yoke_view *y, const struct yoke_view *w)
{
	return w->dims[0] ? 2 * count(y) * count(w) / (double)w->dims[0] : 0;
}

// Number of elements that a pool reads to compute y.
static double taken(const struct yoke_op *op, const struct yoke_view *y)
{
	double n = count(y);
	for (int i = 0; i < y->rank - 2; i++)
		n *= (double)op->attr[i].i;
	return n;
}

static double flops_of(const struct yoke_op *op)
{
	const struct yoke_view *in = op->in;
	switch (op->code) {
	case YOKE_OP_CONTRACT: return contraction(op);
	case YOKE_OP_ATTENTION:
		return 4 * (double)in[0].dims[3] *
		       pairs(&in[0], &in[1], &in[op->nin - 1], op->attr[0].i != 0);
	case YOKE_OP_ATTENTION_BACKWARD:
		return 10 * (double)in[0].dims[3] *
		       pairs(&in[0], &in[1], &in[op->nin - 1], op->attr[0].i != 0);
	case YOKE_OP_CONV: return convolution(&op->out[0], &in[1]);
	case YOKE_OP_CONV_X: return convolution(&in[0], &in[1]);
	case YOKE_OP_CONV_W: return convolution(&in[1], &op->out[0]);
	case YOKE_OP_POOL_MAX: return taken(op, &op->out[0]);
	case YOKE_OP_POOL_MAX_BACKWARD: return 3 * taken(op, &in[1]);
	case YOKE_OP_WINDOW_ADD: return count(&in[0]);
	case YOKE_OP_MAP:
	case YOKE_OP_SCAN_MAP: return instructions(op->map) * elements(op);
	case YOKE_OP_REDUCE: return (instructions(op->map) + 1) * elements(op);
	case YOKE_OP_LIST_MAP: return instructions(op->map) * listed(op);
	case YOKE_OP_LIST_REDUCE: return (instructions(op->map) + 1) * listed(op);
	case YOKE_OP_MOVE:
	case YOKE_OP_GATHER:
	case YOKE_OP_GATHER_ALONG:
	case YOKE_OP_SLICE_AT:
	case YOKE_OP_SLICE_UPDATE_AT: return 0;
	}
	return NAN;
}

// The op with its views, which a plan binds only at launch.
static struct yoke_op op_of(const struct yk_plan *p, const struct yk_step *s)
{
	struct yoke_op op = s->op;
	op.out = &p->view[s->view];
	op.in = op.out + op.nout;
	return op;
}

double yk_step_flops(const struct yk_plan *p, uint64_t step)
{
	const struct yk_step *s = &p->step[step];
	if (s->kind != YK_STEP_RUN)
		return 0;
	const struct yoke_op op = op_of(p, s);
	return flops_of(&op);
}

int yk_step_dtype(const struct yk_plan *p, uint64_t step)
{
	const struct yk_step *s = &p->step[step];
	const struct yoke_view *v = &p->view[s->view];
	const uint32_t first = s->kind == YK_STEP_RUN && s->op.nin ? s->op.nout : 0;
	return v[first].dtype ? v[first].dtype : v[0].dtype;
}
