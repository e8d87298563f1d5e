// SPDX-License-Identifier: Apache-2.0
// What runs along one axis, and the check: what shapes they take, their gradients, their parts.
// Running totals are made of log2 n steps, each of which joins every element with the one twice as
// far off as the step before (Hillis and Steele 1986).  They divide by nothing, so that the gradient
// of a running product, which goes through them, is right where factors are 0.

#include "config.h"

#include <string.h>

#include "base/error.h"
#include "graph/shape.h"

static int want_axis(struct yk_graph *g, const struct yk_call *c,
		     const struct yk_value *v)
{
	if (c->attr[0].i < 0 || c->attr[0].i >= v->rank)
		return fail_one(g, c, YOKE_ESHAPE, "no such axis in", v);
	return 0;
}

// attr: axis, kind, from the end
int yk_shape_scan(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (IN(0)->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", IN(0));
	*out = *IN(0);
	return want_axis(g, c, IN(0));
}

// ---- recurrences ----

int yk_scan(struct yk_graph *g, const struct yk_scan *s, yk_id *out)
{
	const struct yoke_map *m = s->map;
	union yoke_attr attr[YK_SCANNED];
	struct yk_scanned held;
	yk_id in[YOKE_MAP_MAX_INPUTS];
	int64_t first[YOKE_MAX_RANK];
	if (m->nin > YOKE_MAP_MAX_INPUTS || m->nout > YOKE_MAP_MAX_OUTPUTS || m->ninsn > YOKE_MAP_MAX_INSNS ||
	    m->nconst > YOKE_MAP_MAX_CONSTS || s->carried >= m->nin || s->carried > m->nout ||
	    s->axis < 0 || s->axis >= s->rank || s->rank > YOKE_MAX_RANK)
		return yk_op_fail(g, YK_SCAN_MAP, YOKE_EINVAL,
				  "a program of %d inputs and %d outputs, %u of them carried, along axis %d of %d",
				  m->nin, m->nout, s->carried, s->axis, s->rank);
	memcpy(first, s->dims, (size_t)s->rank * sizeof *first);
	first[s->axis] = 1;
	for (uint32_t k = 0; k < m->nin; k++) {
		in[k] = yk_broadcast(g, s->in[k], s->rank, k + s->carried < m->nin ? s->dims : first);
		if (in[k] == YK_BAD)
			return yk_error_last();
	}
	memset(&held, 0, sizeof held); // attributes are compared as bytes
	held.map.size = sizeof held.map;
	held.map.ninsn = m->ninsn;
	held.map.nconst = m->nconst;
	held.map.nin = m->nin;
	held.map.nout = m->nout;
	memcpy(held.map.out, m->out, m->nout * sizeof *m->out);
	memcpy(held.map.insn, m->insn, m->ninsn * sizeof *m->insn);
	memcpy(held.map.konst, m->konst, m->nconst * sizeof *m->konst);
	held.axis = s->axis;
	held.from_end = s->from_end;
	held.carried = s->carried;
	memcpy(attr, &held, sizeof held);
	struct yk_call c = { .op = YK_SCAN_MAP, .nin = m->nin, .in = in, .nattr = YK_SCANNED, .attr = attr };
	return yk_append(g, &c, out);
}

// Inputs, first values behind them -> elements, last values behind them; attr: struct yk_scanned
int yk_shape_scan_map(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_scanned s = yk_scanned(c->attr);
	const struct yoke_map *m = &s.map;
	struct yk_value step = *IN(0);
	char text[160];
	if (!yk_is_program(m))
		return yk_op_fail(g, c->op, YOKE_EINVAL, "this is no program of a recurrence");
	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *i = &m->insn[k];
		if (i->op == YOKE_MAP_INPUT && IN(i->a)->dtype != i->dtype)
			return yk_op_fail(g, c->op, YOKE_EDTYPE, "the program's input %d is %s, got %s", i->a,
					  yoke_dtype_name(i->dtype), yk_describe(IN(i->a), text));
	}
	step.dims[s.axis] = 1;
	for (int k = 0; k < m->nout; k++) {
		const bool carried = k + s.carried >= m->nout;
		out[k] = carried ? step : *IN(0);
		out[k].dtype = m->insn[m->out[k]].dtype;
		if (carried && IN(k - m->nout + m->nin)->dtype != out[k].dtype)
			return fail_two(g, c, YOKE_EDTYPE, "a carried value changes its dtype:",
					IN(k - m->nout + m->nin), &out[k]);
		if (want_size(g, c, &out[k]) < 0)
			return YOKE_ESHAPE;
	}
	return 0;
}

// Of the shape of `like`.
static yk_id spread(struct yk_graph *g, yk_id x, const struct yk_value *like)
{
	return x == YK_BAD || yk_same_shape(&g->value[x], like) ? x : yk_broadcast(g, x, like->rank, like->dims);
}

// The steps one behind another, each on its part of the axis.
void yk_decompose_scan_map(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_scanned s = yk_scanned(c->attr);
	const struct yoke_map *m = &s.map;
	const struct yk_value all = *IN(0);
	const int inputs = m->nin - (int)s.carried, elements = m->nout - (int)s.carried;
	const uint32_t steps = (uint32_t)all.dims[s.axis];
	int64_t start[YOKE_MAX_RANK] = { 0 }, by[YOKE_MAX_RANK];
	yk_id in[YOKE_MAP_MAX_INPUTS], made[YOKE_MAP_MAX_OUTPUTS], piece[YOKE_MAP_MAX_OUTPUTS][YK_SCAN_PARTS];
	struct yk_value step = all;
	step.dims[s.axis] = 1;
	for (int i = 0; i < all.rank; i++)
		by[i] = 1;
	memcpy(in, c->in, m->nin * sizeof *in);
	for (uint32_t t = 0; t < steps; t++) {
		const uint32_t at = s.from_end ? steps - 1 - t : t;
		start[s.axis] = at;
		for (int k = 0; k < inputs; k++)
			in[k] = yk_slice(g, c->in[k], start, by, step.dims);
		yk_program_parts(g, m, in, made);
		for (int k = 0; k < m->nout; k++)
			*(k < elements ? &piece[k][at] : &in[k - elements + inputs]) = spread(g, made[k], &step);
	}
	for (int k = 0; k < elements; k++) {
		if (!steps)
			out[k] = spread(g, yk_lit(g, m->insn[m->out[k]].dtype, 0), &all);
		else
			out[k] = yk_record(g, YK_CONCAT, steps, piece[k], 1, &(union yoke_attr){ .i = s.axis });
	}
	for (int k = elements; k < m->nout; k++)
		out[k] = in[k - elements + inputs];
}

// attr: k, descending
int yk_shape_sort(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (!x->rank)
		return fail_one(g, c, YOKE_ESHAPE, "takes at least one axis, got", x);
	int64_t k = c->attr[0].i, n = x->dims[x->rank - 1];
	if (k < 0 || k > n)
		return yk_op_fail(g, c->op, YOKE_ERANGE,
				  "the first %lld of %lld elements", (long long)k,
				  (long long)n);
	out[0] = *x;
	out[0].dims[x->rank - 1] = k;
	out[1] = out[0];
	out[1].dtype = yoke_i64;
	return want_size(g, c, &out[1]);
}

// idx has the shape of x but for the axis
static int want_along(struct yk_graph *g, const struct yk_call *c,
		      const struct yk_value *x, const struct yk_value *idx)
{
	struct yk_value like = *idx;
	if (want_index(g, c, idx) < 0)
		return YOKE_EDTYPE;
	if (want_axis(g, c, x) < 0)
		return YOKE_ESHAPE;
	if (idx->rank == x->rank)
		like.dims[c->attr[0].i] = x->dims[c->attr[0].i];
	if (!yk_same_shape(&like, x))
		return fail_two(g, c, YOKE_ESHAPE,
				"shapes may differ along the axis only:", x, idx);
	return 0;
}

// x, idx; attr: axis
int yk_shape_take_along(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(1);
	out->dtype = IN(0)->dtype;
	int err = want_along(g, c, IN(0), IN(1));
	return err ? err : want_size(g, c, out);
}

// x or none, idx, v; attr: axis, size of the axis
int yk_shape_scatter_add_along(struct yk_graph *g, const struct yk_call *c,
			       struct yk_value *out)
{
	const struct yk_value *idx = IN(1), *v = IN(2);
	if (v->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", v);
	if (!yk_same_shape(idx, v))
		return fail_two(g, c, YOKE_ESHAPE, "indices and values do not fit:", idx,
				v);
	*out = *v;
	if (want_axis(g, c, out) < 0)
		return YOKE_ESHAPE;
	out->dims[c->attr[0].i] = c->attr[1].i;
	int err = want_along(g, c, out, idx);
	if (!err)
		err = want_size(g, c, out);
	return err ? err : want_like(g, c, 0, out);
}

int yk_shape_check(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(0);
	return want_float(g, c, out);
}

// ---- parts ----

yk_id yk_moved(struct yk_graph *g, yk_id x, int axis, int64_t by, bool reverse, double fill)
{
	if (x == YK_BAD)
		return YK_BAD;
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK], size[YOKE_MAX_RANK];
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	for (int i = 0; i < g->value[x].rank; i++) {
		step[i] = 1;
		size[i] = g->value[x].dims[i];
	}
	size[axis] -= by;
	start[axis] = reverse ? by : 0;
	*(reverse ? &hi[axis] : &lo[axis]) = by;
	return yk_pad(g, yk_slice(g, x, start, step, size), lo, hi, fill);
}

// attr: axis, kind, from the end
void yk_decompose_scan(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = c->in[0];
	int axis = (int)c->attr[0].i, dtype = g->value[x].dtype;
	int64_t n = g->value[x].dims[axis];
	bool prod = c->op == YK_CUMPROD;
	if (yk_is_float(dtype))
		x = yk_cast(g, x, yk_acc(dtype));
	for (int64_t by = 1; by < n && x != YK_BAD; by *= 2)
		x = yk_bin(g, prod ? YK_MUL : YK_ADD, x,
			   yk_moved(g, x, axis, by, c->attr[2].i, prod));
	out[0] = x == YK_BAD ? x : yk_cast(g, x, dtype);
}

// ---- gradients ----

void yk_grad_cumsum(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr a[3];
	memcpy(a, yk_attrs(g, &g->node[node]), sizeof a); // appending moves the arrays
	a[2].i = !a[2].i;
	gin[0] = yk_record(g, YK_CUMSUM, 1, gout, 3, a);
}

// zeros with the shape of x, v added at idx along an axis
static yk_id add_along(struct yk_graph *g, yk_id x, yk_id idx, yk_id v, int axis)
{
	return yk_record(
		g, YK_SCATTER_ADD_ALONG, 3, (yk_id[]){ YK_NIL, idx, v }, 2,
		(union yoke_attr[]){ { .i = axis }, { .i = g->value[x].dims[axis] } });
}

void yk_grad_sort(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	yk_id x = yk_ins(g, &g->node[node])[0], places = g->node[node].out + 1;
	if (gout[0] != YK_NIL)
		gin[0] = add_along(g, x, places, gout[0], g->value[x].rank - 1);
}

void yk_grad_take_along(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]);
	gin[0] = add_along(g, in[0], in[1], gout[0],
			   (int)yk_attrs(g, &g->node[node])[0].i);
}

void yk_grad_scatter_add_along(struct yk_graph *g, uint32_t node, const yk_id *gout,
			       yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]);
	union yoke_attr axis = yk_attrs(g, &g->node[node])[0];
	if (in[0] != YK_NIL)
		gin[0] = gout[0];
	gin[2] = yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ gout[0], in[1] }, 1, &axis);
}
