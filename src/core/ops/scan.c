// SPDX-License-Identifier: Apache-2.0
// Running totals and recurrences along an axis.
// A running total takes log2 n steps; each combines every element with the one at twice the
// previous step's distance (Hillis and Steele 1986).  Nothing is divided, so the gradient of a
// running product, taken through these steps, is right where factors are 0.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

// attr: axis, kind, from the end
static int shape_scan(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (IN(0)->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", IN(0));
	*out = *IN(0);
	return want_attr_axis(g, c, IN(0));
}

// ---- recurrences ----

int yk_scan(struct yk_graph *g, const struct yk_scan_op *s, yk_id *out)
{
	const struct yoke_map *m = s->map;
	union yoke_attr attr[YK_SCANNED];
	struct yk_scanned held;
	yk_id in[YOKE_MAP_MAX_INPUTS];
	int64_t first[YOKE_MAX_RANK];
	if (m->nin > YOKE_MAP_MAX_INPUTS || m->nout > YOKE_MAP_MAX_OUTPUTS ||
	    m->ninsn > YOKE_MAP_MAX_INSNS || m->nconst > YOKE_MAP_MAX_CONSTS ||
	    s->carried >= m->nin || s->carried > m->nout || s->axis < 0 || s->axis >= s->rank ||
	    s->rank > YOKE_MAX_RANK)
		return yk_op_fail(
			g, YK_SCAN_MAP, YOKE_EINVAL,
			"a program of %d inputs and %d outputs, %u of them carried, along axis %d of %d",
			m->nin, m->nout, s->carried, s->axis, s->rank);
	memcpy(first, s->dims, (size_t)s->rank * sizeof *first);
	first[s->axis] = 1;
	for (uint32_t k = 0; k < m->nin; k++) {
		in[k] = yk_broadcast(g, s->in[k], s->rank,
				     k + s->carried < m->nin ? s->dims : first);
		if (in[k] == YK_BAD)
			return yk_error_last();
	}
	memset(&held, 0, sizeof held); // attributes are compared as bytes, padding included
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
	struct yk_call c = {
		.op = YK_SCAN_MAP, .nin = m->nin, .in = in, .nattr = YK_SCANNED, .attr = attr
	};
	return yk_append(g, &c, out);
}

// inputs, then first values -> elements, then last values; attr: struct yk_scanned
static int shape_scan_map(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
			return yk_op_fail(g, c->op, YOKE_EDTYPE,
					  "the program's input %d is %s, got %s", i->a,
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

// Unrolls the steps; each handles one slice of the axis.
static void decompose_scan_map(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_scanned s = yk_scanned(c->attr);
	const struct yoke_map *m = &s.map;
	const struct yk_value all = *IN(0);
	const int inputs = m->nin - (int)s.carried, elements = m->nout - (int)s.carried;
	const uint32_t steps = (uint32_t)all.dims[s.axis];
	yk_id in[YOKE_MAP_MAX_INPUTS], made[YOKE_MAP_MAX_OUTPUTS],
		step_results[YOKE_MAP_MAX_OUTPUTS][YK_SCAN_PARTS];
	struct yk_value step = all;
	step.dims[s.axis] = 1;
	memcpy(in, c->in, m->nin * sizeof *in);
	for (uint32_t t = 0; t < steps; t++) {
		const uint32_t at = s.from_end ? steps - 1 - t : t;
		for (int k = 0; k < inputs; k++)
			in[k] = yk_slice_axis(g, c->in[k], (int)s.axis, at, 1);
		yk_program_parts(g, m, in, made);
		for (int k = 0; k < m->nout; k++)
			*(k < elements ? &step_results[k][at] : &in[k - elements + inputs]) =
				yk_broadcast_like(g, made[k], &step);
	}
	for (int k = 0; k < elements; k++) {
		if (!steps)
			out[k] = yk_broadcast_like(g, yk_lit(g, m->insn[m->out[k]].dtype, 0), &all);
		else
			out[k] = yk_record(g, YK_CONCAT, steps, step_results[k], 1,
					   &(union yoke_attr){ .i = s.axis });
	}
	for (int k = elements; k < m->nout; k++)
		out[k] = in[k - elements + inputs];
}

// ---- decompositions ----

yk_id yk_moved(struct yk_graph *g, yk_id x, int axis, int64_t by, bool reverse, double fill)
{
	if (x == YK_BAD)
		return YK_BAD;
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	*(reverse ? &hi[axis] : &lo[axis]) = by;
	x = yk_slice_axis(g, x, axis, reverse ? by : 0, g->value[x].dims[axis] - by);
	return yk_pad(g, x, lo, hi, fill);
}

// attr: axis, kind, from the end
static void decompose_scan(struct yk_graph *g, const struct yk_call *c, yk_id *out)
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

static void grad_cumsum(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr a[3];
	memcpy(a, yk_attrs(g, &g->node[node]), sizeof a); // appending moves the arrays
	a[2].i = !a[2].i;
	gin[0] = yk_record(g, YK_CUMSUM, 1, gout, 3, a);
}

#define SCAN(N, NAME, rule) YK_OP(N) = { \
	.name = NAME, .code = YOKE_OP_SCAN, .min_in = 1, .max_in = 1, .nout = 1, \
	.cast = YK_CAST_F32, .shape = shape_scan, .grad = rule, .decompose = decompose_scan, \
	.inplace = { { 0, 0 } }, .ninplace = 1 };

SCAN(CUMSUM, "cumsum", grad_cumsum) SCAN(CUMPROD, "cumprod", NULL)
// the number of results depends on the program in the attributes: see yk_scanned
YK_OP(SCAN_MAP) = { .name = "scan", .code = YOKE_OP_SCAN_MAP, .flags = YK_F_PARTIAL, .min_in = 1,
	.max_in = YOKE_MAP_MAX_INPUTS, .shape = shape_scan_map, .decompose = decompose_scan_map,
	.inplace = { { 0, 0 }, { 1, 1 }, { 2, 2 } }, .ninplace = 3 };

static yoke_tensor *scan(int op, int kind, yoke_tensor *x, int axis, int reverse)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_def(op)->name, op, 0, 1, &x);
	int k = yk_rec_axis(&r, r.in[0], axis);
	if (k < 0)
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_record(r.g, op, 1, r.in, 3,
					(union yoke_attr[]){ { .i = k },
							     { .i = kind },
							     { .i = reverse != 0 } }));
}

yoke_tensor *yoke_cumsum(yoke_tensor *x, int axis, int reverse)
{
	return scan(YK_CUMSUM, YOKE_REDUCE_SUM, x, axis, reverse);
}

yoke_tensor *yoke_cumprod(yoke_tensor *x, int axis, int reverse)
{
	return scan(YK_CUMPROD, YOKE_REDUCE_PROD, x, axis, reverse);
}

// Combines every element with the one `by` before it; where there is none, with `nothing`, the
// neutral element.
typedef yk_id join_fn(struct yk_graph *, yk_id x, yk_id before);

static yk_id running(struct yk_graph *g, yk_id x, int axis, double nothing, join_fn *join)
{
	const int64_t n = x == YK_BAD ? 0 : g->value[x].dims[axis];
	for (int64_t by = 1; by < n && x != YK_BAD; by *= 2)
		x = join(g, x, yk_moved(g, x, axis, by, false, nothing));
	return x;
}

// ---- extremes ----

static yk_id larger(struct yk_graph *g, yk_id x, yk_id before)
{
	return yk_bin(g, YK_MAX, x, before);
}

static yk_id smaller(struct yk_graph *g, yk_id x, yk_id before)
{
	return yk_bin(g, YK_MIN, x, before);
}

// ---- places of extremes ----

// attr: axis, kind: argmax or argmin
static int shape_cum_arg(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const int err = shape_scan(g, c, out);
	out->dtype = yoke_i64;
	return err;
}

static void decompose_cum_arg(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value x = *IN(0);
	const int axis = (int)c->attr[0].i;
	const bool max = c->attr[1].i == YOKE_REDUCE_ARGMAX;
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < x.rank; i++)
		dims[i] = i == axis ? x.dims[i] : 1;
	const yk_id m =
		running(g, c->in[0], axis, max ? yk_dtype_min(x.dtype) : yk_dtype_max(x.dtype),
			max ? larger : smaller);
	const yk_id hit = yk_bin(g, YK_OR, yk_bin(g, YK_EQ, c->in[0], m),
				 yk_bin(g, YK_NE, c->in[0], c->in[0]));
	const yk_id place = yk_reshape(g, yk_counting(g, x.dims[axis]), x.rank, dims);
	out[0] = running(g, yk_tri(g, YK_SELECT, hit, place, yk_lit(g, yoke_i64, 0)), axis, 0,
			 larger);
}

YK_OP(CUM_ARG) = { .name = "cum_arg",
		   .code = YOKE_OP_CUM_ARG,
		   .flags = YK_F_FLAT,
		   .min_in = 1,
		   .max_in = 1,
		   .nout = 1,
		   .shape = shape_cum_arg,
		   .decompose = decompose_cum_arg };

// The elements at the places, to which the gradient goes.
static yoke_tensor *extremes(const char *call, yoke_tensor *x, int axis, int kind,
			     yoke_tensor **indices)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_LEAF, 0, 1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	const yk_id in = k < 0 || r.g->value[r.in[0]].dtype != yoke_bool ?
				 r.in[0] :
				 yk_cast(r.g, r.in[0], yoke_u8);
	const yk_id at = k < 0 ? YK_BAD :
				 yk_record(r.g, YK_CUM_ARG, 1, &in, 2,
					   (union yoke_attr[]){ { .i = k }, { .i = kind } });
	yk_id y = at;
	if (at != YK_BAD) { // gradients in half precision are sums of many terms: f32
		const yk_id from = yk_is_float(r.g->value[r.in[0]].dtype) ?
					   yk_cast_acc(r.g, r.in[0]) :
					   r.in[0];
		y = yk_cast_like(r.g,
				 yk_record(r.g, YK_TAKE_ALONG, 2, (yk_id[]){ from, at }, 1,
					   &(union yoke_attr){ .i = k }),
				 r.in[0]);
	}
	return yk_rec_end_with(&r, y, 1, &(struct yk_rec_result){ indices, at });
}

yoke_tensor *yoke_cummax(yoke_tensor *x, int axis)
{
	return extremes("cummax", x, axis, YOKE_REDUCE_ARGMAX, NULL);
}

yoke_tensor *yoke_cummin(yoke_tensor *x, int axis)
{
	return extremes("cummin", x, axis, YOKE_REDUCE_ARGMIN, NULL);
}

yoke_tensor *yoke_cummax_indices(yoke_tensor *x, int axis, yoke_tensor **indices)
{
	return extremes("cummax_indices", x, axis, YOKE_REDUCE_ARGMAX, indices);
}

yoke_tensor *yoke_cummin_indices(yoke_tensor *x, int axis, yoke_tensor **indices)
{
	return extremes("cummin_indices", x, axis, YOKE_REDUCE_ARGMIN, indices);
}

// log(exp a + exp b) = max + log(1 + exp(-|a - b|)).  Equal operands get half of the gradient each,
// also infinite ones.
static yk_id log_add(struct yk_graph *g, yk_id a, yk_id b)
{
	if (a == YK_BAD || b == YK_BAD)
		return YK_BAD;
	yk_id equal = yk_bin(g, YK_EQ, a, b), zero = yk_lit(g, g->value[a].dtype, 0);
	yk_id apart = yk_bin(g, YK_SUB, yk_tri(g, YK_SELECT, equal, zero, a),
			     yk_tri(g, YK_SELECT, equal, zero, b));
	yk_id more =
		yk_un(g, YK_LOG1P, yk_un(g, YK_EXP, yk_un(g, YK_NEG, yk_un(g, YK_ABS, apart))));
	return yk_bin(g, YK_ADD, yk_bin(g, YK_MAX, a, b), more);
}

// Like `running`, but the first `by` elements stay unchanged: combined with -inf, a -inf would lose
// half of its gradient.
static yk_id running_log(struct yk_graph *g, yk_id x, int axis)
{
	const int64_t n = x == YK_BAD ? 0 : g->value[x].dims[axis];
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; x != YK_BAD && i < g->value[x].rank; i++)
		dims[i] = i == axis ? n : 1;
	for (int64_t by = 1; by < n && x != YK_BAD; by *= 2) {
		yk_id place = yk_counting(g, n);
		yk_id first = yk_bin_lit(g, YK_LT, yk_reshape(g, place, g->value[x].rank, dims),
					 (double)by);
		x = yk_tri(g, YK_SELECT, first, x,
			   log_add(g, x, yk_moved(g, x, axis, by, false, -INFINITY)));
	}
	return x;
}

yoke_tensor *yoke_logcumsumexp(yoke_tensor *x, int axis)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	if (k < 0 || !yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(
		&r, yk_cast_like(r.g, running_log(r.g, yk_cast_acc(r.g, r.in[0]), k), r.in[0]));
}
