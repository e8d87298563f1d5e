// SPDX-License-Identifier: Apache-2.0
// The diagonal of (H - z)^-1 of tridiagonal H, and its adjoint: what shapes they take, the gradient, the parts.
//
// The parts compute leading and trailing minors: theta_(i+1) = alpha_i theta_i - k_(i-1) theta_(i-1), with alpha =
// a - z and k = b c, as products of the matrices [[alpha_i, -k_(i-1)], [1, 0]], which are joined in log2 N rounds
// (Hillis and Steele 1986).  Only ratios of minors count, so each product is divided by its largest entry,
// which gradients take for a constant.  L_i = theta_(i+1) / theta_i, R_i = phi_(i-1) / phi_i; what products of a whole row
// lose of them the recursion L_i = alpha_i - k_(i-1) / L_(i-1), of all i at once, makes good.

#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/resolvent.h"
#include "graph/shape.h"

// ---- shapes ----

// Is t of the dtype of a and [lead of a.., n]?
static int want_beside(struct yk_graph *g, const struct yk_call *c, const struct yk_value *a,
		       const struct yk_value *t, int64_t n)
{
	struct yk_value like = *a;
	like.dims[like.rank - 1] = n;
	if (t->dtype != a->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", a, t);
	if (!yk_same_shape(t, &like))
		return fail_two(g, c, YOKE_ESHAPE, "wants [..,N], [..,N-1] of b and c, [..,2] of z, got", a, t);
	return 0;
}

static int want_chain(struct yk_graph *g, const struct yk_call *c)
{
	const struct yk_value *a = IN(0);
	const int64_t n = a->rank ? a->dims[a->rank - 1] : 0;
	int err = 0;
	if (want_float(g, c, a) < 0)
		return YOKE_EDTYPE;
	if (!a->rank || a->rank == YOKE_MAX_RANK)
		return fail_one(g, c, YOKE_ESHAPE, "takes 1 to 7 axes, got", a);
	for (uint32_t k = 1; k < 3 && !err; k++)
		err = has(c, k) ? want_beside(g, c, a, IN(k), n ? n - 1 : 0) : 0;
	return err ? err : want_beside(g, c, a, IN(3), 2);
}

// a [..,N], b, c [..,N-1] or none, z [..,2] -> G [..,N,2], certificate [..]; attr: struct yk_resolved
int yk_shape_resolvent(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *a = IN(0);
	int err = want_chain(g, c);
	if (err)
		return err;
	out[0] = out[1] = *a;
	out[0].dims[out[0].rank++] = 2;
	out[1].rank--;
	out[1].dtype = (uint8_t)yk_acc(a->dtype);
	return want_size(g, c, &out[0]);
}

// a, b, c, z, g [..,N,2] -> da [..,N], db, dc [..,N-1], dz [..,2]; attr: as above
int yk_shape_resolvent_backward(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	struct yk_value like = *IN(0);
	int err = want_chain(g, c);
	if (err)
		return err;
	out[0] = out[1] = out[2] = out[3] = like;
	const int last = like.rank - 1;
	out[1].dims[last] = out[2].dims[last] = like.dims[last] ? like.dims[last] - 1 : 0;
	out[3].dims[last] = 2;
	like.dims[like.rank++] = 2;
	return want_like(g, c, 4, &like);
}

// ---- complex numbers as pairs of values ----

struct cx {
	yk_id re, im;
};

static struct cx c_mul(struct yk_graph *g, struct cx a, struct cx b)
{
	return (struct cx){
		yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, a.re, b.re), yk_bin(g, YK_MUL, a.im, b.im)),
		yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, a.re, b.im), yk_bin(g, YK_MUL, a.im, b.re)),
	};
}

static struct cx c_bin(struct yk_graph *g, int op, struct cx a, struct cx b)
{
	return (struct cx){ yk_bin(g, op, a.re, b.re), yk_bin(g, op, a.im, b.im) };
}

static struct cx c_times(struct yk_graph *g, struct cx a, yk_id real)
{
	return (struct cx){ yk_bin(g, YK_MUL, a.re, real), yk_bin(g, YK_MUL, a.im, real) };
}

// Something not 0 that both are divided by before they are squared; a constant for gradients.
static yk_id size_of(struct yk_graph *g, struct cx a)
{
	yk_id most = yk_bin(g, YK_MAX, yk_un(g, YK_ABS, a.re), yk_un(g, YK_ABS, a.im));
	if (most == YK_BAD)
		return most;
	return yk_un(g, YK_STOP_GRAD,
		     yk_bin_lit(g, YK_MAX, most, g->value[most].dtype == yoke_f64 ? 1e-290 : 1e-30));
}

// a / b
static struct cx c_div(struct yk_graph *g, struct cx a, struct cx b)
{
	yk_id scale = yk_un(g, YK_RECIP, size_of(g, b));
	b = c_times(g, b, scale);
	a = c_times(g, a, scale);
	yk_id square = yk_bin(g, YK_ADD, yk_un(g, YK_SQUARE, b.re), yk_un(g, YK_SQUARE, b.im));
	struct cx q = c_mul(g, a, (struct cx){ b.re, yk_un(g, YK_NEG, b.im) });
	return (struct cx){ yk_bin(g, YK_DIV, q.re, square), yk_bin(g, YK_DIV, q.im, square) };
}

static struct cx c_moved(struct yk_graph *g, struct cx a, int axis, int64_t by, bool from_end, double real)
{
	return (struct cx){ yk_moved(g, a.re, axis, by, from_end, real), yk_moved(g, a.im, axis, by, from_end, 0) };
}

// The two halves of the last axis [.., 2] as [..], or as [.., 1].
static struct cx c_of(struct yk_graph *g, yk_id x, bool keep)
{
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	struct yk_value v = g->value[x];
	yk_id half[2];
	for (int i = 0; i < v.rank; i++)
		step[i] = 1;
	v.dims[v.rank - 1] = 1;
	for (int k = 0; k < 2; k++) {
		start[v.rank - 1] = k;
		half[k] = yk_slice(g, x, start, step, v.dims);
		if (!keep)
			half[k] = yk_reshape(g, half[k], v.rank - 1, v.dims);
	}
	return (struct cx){ half[0], half[1] };
}

// [..] and [..] as [.., 2]
static yk_id c_join(struct yk_graph *g, struct cx x)
{
	yk_id part[2] = { x.re, x.im };
	if (x.re == YK_BAD || x.im == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x.re];
	v.dims[v.rank] = 1;
	for (int k = 0; k < 2; k++)
		part[k] = yk_reshape(g, part[k], v.rank + 1, v.dims);
	return yk_record(g, YK_CONCAT, 2, part, 1, &(union yoke_attr){ .i = v.rank });
}

// ---- parts ----

struct chain {
	struct yk_graph *g;
	struct cx alpha;   // [.., N]
	yk_id before, behind; // k_(i-1) and k_i at i, [.., N], 0 at the ends
	yk_id b, c;        // [.., N-1], or none
	int axis, dtype;
	int64_t n;
};

// x, which may not be infinite or NaN, in the dtype that is computed in.
static yk_id checked(struct yk_graph *g, yk_id x, int dtype)
{
	if (x == YK_NIL)
		return x;
	return yk_cast(g, yk_record(g, YK_CHECK_FINITE, 1, &x, 0, NULL), dtype);
}

static struct chain chain_of(struct yk_graph *g, const struct yk_call *c)
{
	const struct yk_resolved how = yk_resolved(c->attr);
	const struct yk_value a = g->value[c->in[0]];
	struct chain h = { .g = g, .axis = a.rank - 1, .n = a.dims[a.rank - 1] };
	h.dtype = how.tier == YK_TIER_F64 ? yoke_f64 : yk_acc(a.dtype);
	struct cx z = c_of(g, checked(g, c->in[3], h.dtype), true);
	// 1 / Im z is not finite where Im z is 0
	z.im = yk_un(g, YK_RECIP, checked(g, yk_un(g, YK_RECIP, z.im), h.dtype));
	yk_id x = checked(g, c->in[0], h.dtype), k;
	h.b = checked(g, c->in[1], h.dtype);
	h.c = checked(g, c->in[2], h.dtype);
	h.alpha.re = yk_bin(g, YK_SUB, x, z.re);
	h.alpha.im = yk_broadcast(g, yk_un(g, YK_NEG, z.im), a.rank, a.dims);
	int64_t none[YOKE_MAX_RANK] = { 0 }, one[YOKE_MAX_RANK] = { 0 };
	struct yk_value bonds = a;
	one[h.axis] = h.n > 0;
	bonds.dims[h.axis] = h.n > 1 ? h.n - 1 : 0;
	if (h.b != YK_NIL && h.c != YK_NIL)
		k = yk_bin(g, YK_MUL, h.b, h.c);
	else if (h.b != YK_NIL || h.c != YK_NIL)
		k = h.b != YK_NIL ? h.b : h.c;
	else
		k = yk_broadcast(g, yk_lit(g, h.dtype, 1), bonds.rank, bonds.dims);
	h.before = yk_pad(g, k, one, none, 0);
	h.behind = yk_pad(g, k, none, one, 0);
	return h;
}

// Minors: of the elements up to i (from the end: from i on), and without i; both divided by one number.
static void minors(const struct chain *h, bool from_end, struct cx *with, struct cx *without)
{
	struct yk_graph *g = h->g;
	struct cx p[2][2], q[2][2], r[2][2];
	yk_id zero = yk_full_like(g, h->alpha.re, 0);
	p[0][0] = h->alpha;
	p[0][1] = (struct cx){ yk_un(g, YK_NEG, from_end ? h->behind : h->before), zero };
	p[1][0] = (struct cx){ yk_full_like(g, h->alpha.re, 1), zero };
	p[1][1] = (struct cx){ zero, zero };
	for (int64_t by = 1; by < h->n && zero != YK_BAD; by *= 2) {
		yk_id most = YK_NIL;
		for (int i = 0; i < 4; i++)
			q[i / 2][i % 2] = c_moved(g, p[i / 2][i % 2], h->axis, by, from_end, i / 2 == i % 2);
		for (int i = 0; i < 4; i++) {
			struct cx *to = &r[i / 2][i % 2];
			*to = c_bin(g, YK_ADD, c_mul(g, p[i / 2][0], q[0][i % 2]), c_mul(g, p[i / 2][1], q[1][i % 2]));
			yk_id size = size_of(g, *to);
			most = most == YK_NIL ? size : yk_bin(g, YK_MAX, most, size);
		}
		most = yk_un(g, YK_RECIP, most);
		for (int i = 0; i < 4; i++)
			p[i / 2][i % 2] = c_times(g, r[i / 2][i % 2], most);
	}
	*with = p[0][0];
	*without = p[1][0];
}

// alpha - k / L of the neighbour in front, from 1/L of all; from the end: - k / R of the one behind
static struct cx stepped(const struct chain *h, struct cx from, struct cx inverse, bool from_end)
{
	if (h->n < 2) // there is no neighbour
		return from;
	return c_bin(h->g, YK_SUB, from,
		     c_times(h->g, c_moved(h->g, inverse, h->axis, 1, from_end, 0), from_end ? h->behind : h->before));
}

static struct cx c_inverse(struct yk_graph *g, struct cx d)
{
	return c_div(g, (struct cx){ yk_full_like(g, d.re, 1), yk_full_like(g, d.re, 0) }, d);
}

enum { SWEEPS = 4 }; // each makes errors in front smaller, but where nothing is damped

// 1/L, from the end: 1/R
static struct cx inverses(const struct chain *h, bool from_end)
{
	struct cx with, without;
	minors(h, from_end, &with, &without);
	struct cx x = c_div(h->g, without, with);
	for (int k = 0; k < SWEEPS; k++)
		x = c_inverse(h->g, stepped(h, h->alpha, x, from_end));
	return x;
}

// G of 1/L and, of both sides, 1/R
static struct cx diagonal(const struct chain *h, struct cx l, struct cx r, bool both)
{
	return both ? c_inverse(h->g, stepped(h, stepped(h, h->alpha, l, false), r, true)) : l;
}

void yk_decompose_resolvent(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_resolved how = yk_resolved(c->attr);
	struct chain h = chain_of(g, c);
	const bool both = how.side == YOKE_SIDE_BOTH;
	struct cx l = inverses(&h, false), r = both ? inverses(&h, true) : l;
	out[0] = yk_down(g, c_join(g, diagonal(&h, l, r, both)), c->in[0]);
	// of the tier half a bound is not known: as if each row had been computed again
	struct yk_value rows = g->value[c->in[0]];
	out[1] = yk_broadcast(g, yk_lit(g, yk_acc(rows.dtype), yk_tier_half(how.tier) ? INFINITY : 0), rows.rank - 1,
			      rows.dims);
}

// x_i = d_i + m_i x_(i-1), from the end: x_(i+1)
static struct cx affine(const struct chain *h, struct cx d, struct cx m, bool from_end)
{
	struct yk_graph *g = h->g;
	for (int64_t by = 1; by < h->n && d.re != YK_BAD && m.re != YK_BAD; by *= 2) {
		d = c_bin(g, YK_ADD, d, c_mul(g, m, c_moved(g, d, h->axis, by, from_end, 0)));
		m = c_mul(g, m, c_moved(g, m, h->axis, by, from_end, 0));
	}
	return d;
}

// Surrogates of the gradient by a: see yoke.h.
static yk_id surrogate(struct yk_graph *g, const struct yk_resolved *how, struct cx f, struct cx cot)
{
	const struct cx conj = { cot.re, yk_un(g, YK_NEG, cot.im) };
	yk_id diag = c_mul(g, how->gradient == YOKE_GRADIENT_STEP5 ? cot : conj, f).re, inverse, da;
	yk_id modulus = yk_un(g, YK_SQRT, yk_bin(g, YK_ADD, yk_un(g, YK_SQUARE, f.re), yk_un(g, YK_SQUARE, f.im)));
	if (modulus == YK_BAD)
		return YK_BAD;
	const int dtype = g->value[modulus].dtype;
	yk_id least = yk_bin_lit(g, YK_MUL, yk_un(g, YK_RECIP, yk_bin_lit(g, YK_ADD, modulus, 1e-9)), 1e-3);
	yk_id small = yk_bin(g, YK_LT, modulus, yk_lit(g, dtype, 1e-3));
	f = c_times(g, f, yk_tri(g, YK_SELECT, small, least, yk_lit(g, dtype, 1)));
	f.re = yk_bin_lit(g, YK_ADD, f.re, 1e-6);
	inverse = c_div(g, cot, f).re;
	if (how->gradient == YOKE_GRADIENT_DIAG)
		da = diag;
	else if (how->gradient == YOKE_GRADIENT_INVERSE)
		da = inverse;
	else
		da = yk_bin(g, YK_ADD, yk_bin_lit(g, YK_MUL, diag, 1 - how->blend),
			    yk_bin_lit(g, YK_MUL, inverse, how->blend));
	da = yk_tri(g, YK_SELECT, yk_un(g, YK_ISFINITE, da), yk_un(g, YK_NEG, da), yk_lit(g, dtype, 0));
	return yk_bin_lit(g, YK_MAX, yk_bin_lit(g, YK_MIN, da, 1000), -1000);
}

// x [.., N] -> [.., N-1]: without the first element, or without the last
static yk_id bonds(const struct chain *h, yk_id x, bool first)
{
	if (x == YK_BAD)
		return x;
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	struct yk_value v = h->g->value[x];
	for (int i = 0; i < v.rank; i++)
		step[i] = 1;
	start[h->axis] = first && h->n > 1;
	v.dims[h->axis] = h->n > 1 ? h->n - 1 : 0;
	return yk_slice(h->g, x, start, step, v.dims);
}

void yk_decompose_resolvent_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_resolved how = yk_resolved(c->attr);
	struct chain h = chain_of(g, c);
	struct cx k, total;
	struct cx cot = c_of(g, checked(g, c->in[4], h.dtype), false), conj = { cot.re, yk_un(g, YK_NEG, cot.im) };
	const bool both = how.side == YOKE_SIDE_BOTH;
	struct cx l = inverses(&h, false), r = both ? inverses(&h, true) : l, d = diagonal(&h, l, r, both);
	d = c_mul(g, d, d);
	yk_id zero = yk_lit(g, h.dtype, 0);
	if (how.gradient != YOKE_GRADIENT_EXACT) {
		const uint32_t like[4] = { 0, 1, 2, 3 };
		out[0] = surrogate(g, &how, d, cot);
		out[1] = yk_full_like(g, bonds(&h, h.alpha.re, true), 0);
		out[2] = out[1];
		out[3] = yk_full_like(g, c->in[3], 0);
		for (int i = 0; i < 4; i++)
			out[i] = yk_down(g, out[i], c->in[like[i] == 1 || like[i] == 2 ? 0 : like[i]]);
		return;
	}
	d = c_mul(g, d, conj);
	d = (struct cx){ yk_bin(g, YK_SUB, zero, d.re), yk_bin(g, YK_SUB, zero, d.im) };
	struct cx left = affine(&h, d, c_times(g, c_mul(g, l, l), h.behind), true), right = left;
	total = left;
	// of k_i: what L_(i+1) and R_i have of it
	k = c_mul(g, c_moved(g, left, h.axis, 1, true, 0), l);
	if (both) {
		right = affine(&h, d, c_times(g, c_mul(g, r, r), h.before), false);
		total = c_bin(g, YK_SUB, c_bin(g, YK_ADD, left, right), d);
		k = c_bin(g, YK_ADD, k, c_mul(g, right, c_moved(g, r, h.axis, 1, true, 0)));
	}
	yk_id dk = bonds(&h, yk_un(g, YK_NEG, k.re), false);
	out[0] = yk_down(g, total.re, c->in[0]);
	out[1] = yk_down(g, h.c == YK_NIL ? dk : yk_bin(g, YK_MUL, dk, h.c), c->in[0]);
	out[2] = yk_down(g, h.b == YK_NIL ? dk : yk_bin(g, YK_MUL, dk, h.b), c->in[0]);
	const unsigned along = 1u << h.axis;
	struct cx dz = { yk_un(g, YK_NEG, yk_reduce(g, YK_SUM, total.re, along, false)),
			 yk_reduce(g, YK_SUM, total.im, along, false) };
	out[3] = yk_down(g, c_join(g, dz), c->in[0]);
}

void yk_grad_resolvent(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	yk_id in[5], out;
	union yoke_attr attr[YK_RESOLVED];
	memcpy(in, yk_ins(g, &g->node[node]), 4 * sizeof *in); // appending moves the arrays
	memcpy(attr, yk_attrs(g, &g->node[node]), sizeof attr);
	in[4] = gout[0];
	struct yk_call c = { .op = YK_RESOLVENT_BACK, .nin = 5, .in = in, .nattr = YK_RESOLVED, .attr = attr };
	if (yk_append(g, &c, &out) < 0)
		out = YK_BAD;
	for (uint32_t k = 0; k < 4; k++)
		gin[k] = out == YK_BAD ? YK_BAD : out + k;
}
