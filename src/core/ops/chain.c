// SPDX-License-Identifier: Apache-2.0
// Tridiagonal chains with complex diagonal elements, for any z: pivots, log det, and the
// recurrences of their gradients.
//
// With alpha complex and k real, L_i = alpha_i - k_(i-1) / L_(i-1).  PIVOTS returns 1/L, from the
// first element or from the last.  The recurrence is sequential, in f64.  Each rounding is
// equivalent to a rounding of alpha, so the results are those of a matrix perturbed by roundings
// (Wilkinson's argument for Sturm sequences), also on the real axis of the spectrum.  A pivot of 0
// becomes 2^-200 of the terms whose difference it is, a change of alpha far below a rounding.
//
// No backend has kernels for these ops: they decompose into recurrences of map programs (SCAN_MAP)
// and maps.  They are ops for their gradients: that of a recurrence is a linear one from the other
// end.  The gradient of log det uses both sides, since from one side it would be a difference of
// terms as large as 1/L.
#include "config.h"

#include <math.h>
#include <string.h>

#include "graph/record.h"
#include "ops/chain.h"
#include "ops/rules.h"

// ---- shapes ----

// Operand i must be [.., n] with the dtype and leading axes of operand 0.
static int want_row(struct yk_graph *g, const struct yk_call *c, uint32_t i, int64_t n)
{
	struct yk_value like = *IN(0);
	like.dims[like.rank - 1] = n;
	return want_like(g, c, i, &like);
}

static int want_chain(struct yk_graph *g, const struct yk_call *c)
{
	const struct yk_value *re = IN(0);
	if (re->dtype != yoke_f64)
		return fail_one(g, c, YOKE_EDTYPE, "is computed in f64, got", re);
	if (!re->rank)
		return fail_one(g, c, YOKE_ESHAPE, "takes at least one axis, got", re);
	const int64_t n = re->dims[re->rank - 1];
	int err = want_row(g, c, 1, n);
	return err ? err : want_row(g, c, 2, n > 1 ? n - 1 : 0);
}

// alpha.re, alpha.im [..,N], k [..,N-1] -> 1/L, re and im [..,N]; attr: from the end
static int shape_pivots(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	out[0] = out[1] = *IN(0);
	return want_chain(g, c);
}

// d.re, d.im, m.re, m.im [..,N] -> y, re and im [..,N]: y_i = d_i + m_i y_(i-1); attr: from the end
static int shape_linear(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	int err = 0;
	out[0] = out[1] = *IN(0);
	for (uint32_t i = 1; i < 4 && !err; i++)
		err = want_like(g, c, i, IN(0));
	return err;
}

// alpha.re, alpha.im [..,N], k [..,N-1], w [..,N] (a constant scale) or none -> log |det / prod w|
// and arg det [..] of -(H - z)
static int shape_log_det(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	out[0] = *IN(0);
	out[0].rank--;
	out[1] = out[0];
	int err = want_chain(g, c);
	return err ? err : want_like(g, c, 3, IN(0));
}

// ---- recurrences ----

static uint16_t put(struct yoke_map *m, int op, int dtype, int a, int b, int c)
{
	m->insn[m->ninsn] = (struct yoke_insn){ .op = (uint16_t)op,
						.dtype = (uint8_t)dtype,
						.a = (uint16_t)a,
						.b = (uint16_t)b,
						.c = (uint16_t)c };
	return m->ninsn++;
}

static uint16_t number(struct yoke_map *m, double value)
{
	m->konst[m->nconst] = yk_bits(yoke_f64, value);
	return put(m, YOKE_MAP_CONST, yoke_f64, m->nconst++, 0, 0);
}

#define F64(name, a, b) put(m, YOKE_MAP_##name, yoke_f64, a, b, 0)

// max(|a|, |b|)
static uint16_t larger(struct yoke_map *m, int a, int b)
{
	return F64(MAX, F64(ABS, a, 0), F64(ABS, b, 0));
}

static void inputs(struct yoke_map *m, uint16_t n)
{
	for (m->nin = 0; m->nin < n; m->nin++)
		F64(INPUT, m->nin, 0);
}

// Returns (re, im) both as the element and as the carried value.
static void outputs(struct yoke_map *m, uint16_t re, uint16_t im)
{
	m->nout = 4;
	m->out[0] = m->out[2] = re;
	m->out[1] = m->out[3] = im;
}

// inputs: alpha.re, alpha.im, k to the previous neighbour, k to the next one; carried: 1/L of the
// previous one
static void pivots_program(struct yoke_map *m)
{
	enum { RE, IM, BEFORE, NEXT, X, Y, INPUTS };
	inputs(m, INPUTS);
	const uint16_t ur = F64(MUL, BEFORE, X), ui = F64(MUL, BEFORE, Y);
	const uint16_t lr = F64(SUB, RE, ur), li = F64(SUB, IM, ui), size = larger(m, lr, li);
	const uint16_t zero = put(m, YOKE_MAP_LT, yoke_bool, size, number(m, 1e-290), 0);
		// where L is 0, alpha is as large as u; where both are 0, the substitute must be
		// small beside the root of k
	uint16_t tiny = F64(MAX, larger(m, ur, ui), F64(SQRT, F64(ABS, NEXT, 0), 0));
	tiny = F64(MUL, tiny, number(m, 0x1p-200));
	tiny = put(m, YOKE_MAP_SELECT, yoke_f64,
		   put(m, YOKE_MAP_LT, yoke_bool, tiny, number(m, 1e-290), 0), number(m, 1e-100),
		   tiny);
	const uint16_t re = put(m, YOKE_MAP_SELECT, yoke_f64, zero, tiny, lr);
	const uint16_t one = F64(RECIP, put(m, YOKE_MAP_SELECT, yoke_f64, zero, tiny, size), 0);
	const uint16_t a = F64(MUL, re, one), b = F64(MUL, li, one);
	const uint16_t q = F64(DIV, one, F64(ADD, F64(SQUARE, a, 0), F64(SQUARE, b, 0)));
	outputs(m, F64(MUL, a, q), F64(NEG, F64(MUL, b, q), 0));
}

// inputs: d.re, d.im, m.re, m.im; carried: y
static void linear_program(struct yoke_map *m)
{
	enum { DR, DI, MR, MI, X, Y, INPUTS };
	inputs(m, INPUTS);
	outputs(m, F64(ADD, DR, F64(SUB, F64(MUL, MR, X), F64(MUL, MI, Y))),
		F64(ADD, DI, F64(ADD, F64(MUL, MR, Y), F64(MUL, MI, X))));
}

// Runs a program along the last axis, on four operands of the first one's shape; carried values
// start at 0.
static void recurrence(struct yk_graph *g, void (*program)(struct yoke_map *), const yk_id *four,
		       bool from_end, yk_id *out)
{
	struct yoke_map m = { .size = sizeof m };
	yk_id in[6], made;
	memcpy(in, four, 4 * sizeof *in);
	in[4] = in[5] = yk_lit(g, yoke_f64, 0);
	out[0] = out[1] = YK_BAD;
	for (int i = 0; i < 6; i++)
		if (in[i] == YK_BAD)
			return;
	program(&m);
	const struct yk_value v = g->value[in[0]];
	const struct yk_scan_op s = { .map = &m,
				   .in = in,
				   .rank = v.rank,
				   .axis = v.rank - 1,
				   .dims = v.dims,
				   .from_end = from_end,
				   .carried = 2 };
	if (yk_scan(g, &s, &made) < 0)
		return;
	out[0] = made;
	out[1] = made + 1;
}

yk_id yk_bond(struct yk_graph *g, yk_id k, const struct yk_value *row, bool next)
{
	int64_t none[YOKE_MAX_RANK] = { 0 }, one[YOKE_MAX_RANK] = { 0 };
	one[row->rank - 1] = row->dims[row->rank - 1] > 0;
	return yk_pad(g, k, next ? none : one, next ? one : none, 0);
}

static void decompose_pivots(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value row = *IN(0);
	const bool from_end = c->attr[0].i;
	const yk_id in[4] = { c->in[0], c->in[1], yk_bond(g, c->in[2], &row, from_end),
			      yk_bond(g, c->in[2], &row, !from_end) };
	recurrence(g, pivots_program, in, from_end, out);
}

static void decompose_linear(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	recurrence(g, linear_program, c->in, c->attr[0].i, out);
}

// An op with two results.
static struct yk_pair record_pair(struct yk_graph *g, int op, uint32_t nin, const yk_id *in,
				  bool from_end)
{
	const yk_id first = yk_record(g, op, nin, in, 1, &(union yoke_attr){ .i = from_end });
	return (struct yk_pair){ first, first == YK_BAD ? YK_BAD : first + 1 };
}

struct yk_pair yk_pivots(struct yk_graph *g, const struct yk_chain *h, bool from_end)
{
	return record_pair(g, YK_PIVOTS, 3, (yk_id[]){ h->alpha.re, h->alpha.im, h->k }, from_end);
}

static struct yk_pair linear(struct yk_graph *g, struct yk_pair d, struct yk_pair m, bool from_end)
{
	return record_pair(g, YK_LINEAR, 4, (yk_id[]){ d.re, d.im, m.re, m.im }, from_end);
}

// ---- elements and their neighbours ----

// x of the previous, or the next, neighbour
static struct yk_pair neighbour(struct yk_graph *g, struct yk_pair x, bool next)
{
	if (x.re == YK_BAD)
		return x;
	const struct yk_value v = g->value[x.re];
	if (v.dims[v.rank - 1] < 2)
		return (struct yk_pair){ yk_full_like(g, x.re, 0), yk_full_like(g, x.re, 0) };
	return yk_pair_moved(g, x, v.rank - 1, 1, next, 0);
}

yk_id yk_without_end(struct yk_graph *g, yk_id x, bool first)
{
	if (x == YK_BAD)
		return x;
	const int axis = g->value[x].rank - 1;
	const int64_t n = g->value[x].dims[axis];
	return yk_slice_axis(g, x, axis, first && n > 1, n > 1 ? n - 1 : 0);
}

static struct yk_pair without_end(struct yk_graph *g, struct yk_pair x, bool first)
{
	return (struct yk_pair){ yk_without_end(g, x.re, first), yk_without_end(g, x.im, first) };
}

// 1 for each row [..].  An error where at some element the difference d is within rounding of its
// largest term, or comes from pivots that were 0, or is NaN.  `before` and `next` are k to the
// element's neighbours.
static yk_id regular(struct yk_graph *g, struct yk_pair d, yk_id terms, yk_id before, yk_id next)
{
	if (terms == YK_BAD)
		return terms;
	const struct yk_value v = g->value[terms];
	const int axis = v.rank - 1;
	const double few =
		0x1p-49 *
		fmax(8, (double)v.dims[axis]); // roundings; a site has about 1/N of an eigenvector
	yk_id tiny = yk_bin(g, YK_MAX, yk_un(g, YK_ABS, before), yk_un(g, YK_ABS, next));
	tiny = yk_bin_lit(g, YK_MUL, yk_un(g, YK_SQRT, tiny),
			  0x1p-180); // zero pivots are 2^-200 times the root
	tiny = yk_bin(g, YK_MAX, tiny, yk_bin_lit(g, YK_MUL, terms, few));
	const yk_id good = yk_bin(g, YK_GT, yk_pair_extent(g, d), tiny);
	yk_id bad = yk_tri(g, YK_SELECT, good, yk_lit(g, yoke_f64, 0), yk_lit(g, yoke_f64, 1));
	bad = yk_reduce(g, YK_REDUCE_MAX, bad, 1u << axis, false);
	bad = yk_tri(g, YK_SELECT, yk_bin(g, YK_GT, bad, yk_lit(g, yoke_f64, 0)),
		     yk_lit(g, yoke_f64, NAN), yk_lit(g, yoke_f64, 1));
	const union yoke_attr rows = { .i = 1 };
	return yk_un(g, YK_STOP_GRAD, yk_record(g, YK_CHECK_FINITE, 1, &bad, 1, &rows));
}

// 1/G, where G is the diagonal, from x = 1/L and y = 1/R; *rows as in regular.
static struct yk_pair denominator(struct yk_graph *g, const struct yk_chain *h, struct yk_pair x,
				  struct yk_pair y, yk_id *rows)
{
	*rows = YK_BAD;
	if (h->alpha.re == YK_BAD)
		return h->alpha;
	const struct yk_value row = g->value[h->alpha.re];
	const yk_id before = yk_bond(g, h->k, &row, false), next = yk_bond(g, h->k, &row, true);
	const struct yk_pair l = yk_pair_times(g, neighbour(g, x, false), before);
	const struct yk_pair r = yk_pair_times(g, neighbour(g, y, true), next);
	const struct yk_pair d = yk_pair_bin(g, YK_SUB, yk_pair_bin(g, YK_SUB, h->alpha, l), r);
	const yk_id terms = yk_bin(g, YK_MAX, yk_pair_extent(g, h->alpha),
				   yk_bin(g, YK_MAX, yk_pair_extent(g, l), yk_pair_extent(g, r)));
	*rows = regular(g, d, terms, before, next);
	return d;
}

struct yk_pair yk_chain_diagonal(struct yk_graph *g, const struct yk_chain *h, bool left)
{
	struct yk_pair d, x;
	yk_id rows;
	if (h->alpha.re == YK_BAD || h->k == YK_BAD)
		return (struct yk_pair){ YK_BAD, YK_BAD };
	const struct yk_value row = g->value[h->alpha.re];
	if (!row.dims[row.rank - 1])
		return h->alpha;
	x = yk_pivots(g, h, false);
	if (left) {
		const yk_id before = yk_bond(g, h->k, &row, false);
		d = yk_pair_times(g, neighbour(g, x, false), before);
		const yk_id terms =
			yk_bin(g, YK_MAX, yk_pair_extent(g, h->alpha), yk_pair_extent(g, d));
		rows = regular(g, yk_pair_bin(g, YK_SUB, h->alpha, d), terms, before, before);
	} else {
		d = denominator(g, h, x, yk_pivots(g, h, true), &rows);
		x = yk_pair_inverse(g, d);
	}
	return yk_pair_times(g, x, yk_add_last(g, rows));
}

// ---- log det ----

static void decompose_log_det(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_chain h = { { c->in[0], c->in[1] }, c->in[2] };
	const struct yk_value row = *IN(0);
	const unsigned along = 1u << (row.rank - 1);
	const struct yk_pair x = yk_pivots(g, &h, false);
	yk_id rows, size = yk_pair_extent(g, x), zero = yk_lit(g, yoke_f64, 0);
	denominator(g, &h, x, yk_pivots(g, &h, true), &rows);
	const struct yk_pair unit = yk_pair_times(g, x, yk_un(g, YK_RECIP, size));
	const yk_id square =
		yk_bin(g, YK_ADD, yk_un(g, YK_SQUARE, unit.re), yk_un(g, YK_SQUARE, unit.im));
	if (c->in[3] != YK_NIL)
		size = yk_bin(g, YK_MUL, size, c->in[3]);
	yk_id log = yk_bin(g, YK_ADD, yk_un(g, YK_LOG, size),
			   yk_bin_lit(g, YK_MUL, yk_un(g, YK_LOG, square), 0.5));
	// the argument of -L; a real L counts as a point above the real axis, whatever the sign of
	// its zero imaginary part
	yk_id im = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, x.im, zero), zero, x.im);
	yk_id arg = yk_bin(g, YK_ATAN2, im, yk_un(g, YK_NEG, x.re));
	if (rows == YK_BAD || log == YK_BAD || arg == YK_BAD) {
		out[0] = out[1] = YK_BAD;
		return;
	}
	out[0] = yk_bin(g, YK_MUL, yk_un(g, YK_NEG, yk_reduce(g, YK_SUM, log, along, false)), rows);
	out[1] = yk_bin(g, YK_MUL, yk_reduce(g, YK_SUM, arg, along, false), rows);
}

// ---- gradients ----
// The results are holomorphic: with c = dl/d re - i dl/d im the cotangent of y, the cotangent of x
// is c dy/dx.

static struct yk_pair cotangent(struct yk_graph *g, const yk_id *gout, yk_id like)
{
	const yk_id zero = yk_full_like(g, like, 0);
	return (struct yk_pair){ gout[0] == YK_NIL ? zero : gout[0],
				 gout[1] == YK_NIL ? zero : yk_un(g, YK_NEG, gout[1]) };
}

static void give(struct yk_graph *g, struct yk_pair c, yk_id *re, yk_id *im)
{
	*re = c.re;
	*im = yk_un(g, YK_NEG, c.im);
}

// dx = -x^2 (d alpha - k dx' - x' dk), where x' is the previous neighbour's
static void grad_pivots(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node *n = &g->node[node];
	const struct yk_pair x = { n->out, n->out + 1 };
	const bool from_end = yk_attrs(g, n)[0].i;
	const yk_id k = yk_ins(g, n)[2];
	const struct yk_value row = g->value[x.re];
	// cotangent of x: its own, plus k x^2 of the next element times that element's
	struct yk_pair next = neighbour(g, x, !from_end);
	next = yk_pair_mul(g, yk_pair_times(g, next, yk_bond(g, k, &row, !from_end)), next);
	const struct yk_pair t = linear(g, cotangent(g, gout, x.re), next, !from_end);
	const struct yk_pair v = yk_pair_mul(g, yk_pair_mul(g, t, x), x);
	give(g, yk_pair_neg(g, v), &gin[0], &gin[1]);
	gin[2] = yk_pair_mul(g, without_end(g, v, !from_end), without_end(g, x, from_end)).re;
}

static void grad_linear(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node *n = &g->node[node];
	const struct yk_pair y = { n->out, n->out + 1 }, m = { yk_ins(g, n)[2], yk_ins(g, n)[3] };
	const bool from_end = yk_attrs(g, n)[0].i;
	const struct yk_pair w =
		linear(g, cotangent(g, gout, y.re), neighbour(g, m, !from_end), !from_end);
	give(g, w, &gin[0], &gin[1]);
	give(g, yk_pair_mul(g, w, neighbour(g, y, from_end)), &gin[2], &gin[3]);
}

// d log det = sum G_i d alpha_i - sum dk_i / (L_i R_(i+1) - k_i)
static void grad_log_det(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node *n = &g->node[node];
	const struct yk_chain h = { { yk_ins(g, n)[0], yk_ins(g, n)[1] }, yk_ins(g, n)[2] };
	const struct yk_pair rows = cotangent(g, gout, n->out);
	const struct yk_pair c = { yk_add_last(g, rows.re), yk_add_last(g, rows.im) };
	give(g, yk_pair_mul(g, yk_chain_diagonal(g, &h, false), c), &gin[0], &gin[1]);
	const struct yk_pair x = without_end(g, yk_pivots(g, &h, false), false),
			     y = without_end(g, yk_pivots(g, &h, true), true);
	struct yk_pair q = yk_pair_inverse(g, yk_pair_mul(g, x, y));
	q = yk_pair_inverse(
		g, (struct yk_pair){ yk_bin(g, YK_SUB, h.k, q.re), yk_un(g, YK_NEG, q.im) });
	gin[2] = yk_pair_mul(g, q, c).re;
}

YK_OP(PIVOTS) = { .name = "pivots",
		  .flags = YK_F_FLOAT | YK_F_ALL_RESULTS,
		  .min_in = 3,
		  .max_in = 3,
		  .nout = 2,
		  .shape = shape_pivots,
		  .grad = grad_pivots,
		  .decompose = decompose_pivots };
YK_OP(LINEAR) = { .name = "linear_recurrence",
		  .flags = YK_F_FLOAT | YK_F_ALL_RESULTS,
		  .min_in = 4,
		  .max_in = 4,
		  .nout = 2,
		  .shape = shape_linear,
		  .grad = grad_linear,
		  .decompose = decompose_linear };
YK_OP(LOG_DET) = { .name = "log_det",
		   .flags = YK_F_FLOAT | YK_F_ALL_RESULTS,
		   .min_in = 4,
		   .max_in = 4,
		   .nout = 2,
		   .shape = shape_log_det,
		   .grad = grad_log_det,
		   .decompose = decompose_log_det };
