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
#include "graph/pairs.h"
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

// ---- parts ----

struct chain {
	struct yk_graph *g;
	struct yk_pair alpha;   // [.., N]
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
	struct yk_pair z = yk_pair_of(g, checked(g, c->in[3], h.dtype), true);
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
static void minors(const struct chain *h, bool from_end, struct yk_pair *with, struct yk_pair *without)
{
	struct yk_graph *g = h->g;
	struct yk_pair p[2][2], q[2][2], r[2][2];
	yk_id zero = yk_full_like(g, h->alpha.re, 0);
	p[0][0] = h->alpha;
	p[0][1] = (struct yk_pair){ yk_un(g, YK_NEG, from_end ? h->behind : h->before), zero };
	p[1][0] = (struct yk_pair){ yk_full_like(g, h->alpha.re, 1), zero };
	p[1][1] = (struct yk_pair){ zero, zero };
	for (int64_t by = 1; by < h->n && zero != YK_BAD; by *= 2) {
		yk_id most = YK_NIL;
		for (int i = 0; i < 4; i++)
			q[i / 2][i % 2] = yk_pair_moved(g, p[i / 2][i % 2], h->axis, by, from_end, i / 2 == i % 2);
		for (int i = 0; i < 4; i++) {
			struct yk_pair *to = &r[i / 2][i % 2];
			*to = yk_pair_bin(g, YK_ADD, yk_pair_mul(g, p[i / 2][0], q[0][i % 2]), yk_pair_mul(g, p[i / 2][1], q[1][i % 2]));
			yk_id size = yk_pair_size(g, *to);
			most = most == YK_NIL ? size : yk_bin(g, YK_MAX, most, size);
		}
		most = yk_un(g, YK_RECIP, most);
		for (int i = 0; i < 4; i++)
			p[i / 2][i % 2] = yk_pair_times(g, r[i / 2][i % 2], most);
	}
	*with = p[0][0];
	*without = p[1][0];
}

// alpha - k / L of the neighbour in front, from 1/L of all; from the end: - k / R of the one behind
static struct yk_pair stepped(const struct chain *h, struct yk_pair from, struct yk_pair inverse, bool from_end)
{
	if (h->n < 2) // there is no neighbour
		return from;
	return yk_pair_bin(h->g, YK_SUB, from,
		     yk_pair_times(h->g, yk_pair_moved(h->g, inverse, h->axis, 1, from_end, 0), from_end ? h->behind : h->before));
}

// A pivot that is 0, as there are for real z, as a tiny one, whose inverse can be squared.
static struct yk_pair pivot(const struct chain *h, struct yk_pair d)
{
	struct yk_graph *g = h->g;
	const bool wide = h->dtype == yoke_f64;
	const yk_id size = yk_bin(g, YK_MAX, yk_un(g, YK_ABS, d.re), yk_un(g, YK_ABS, d.im));
	const yk_id zero = yk_bin(g, YK_LT, size, yk_lit(g, h->dtype, wide ? 1e-290 : 1e-30));
	d.re = yk_tri(g, YK_SELECT, zero, yk_lit(g, h->dtype, wide ? 1e-140 : 1e-15), d.re);
	return d;
}

enum { SWEEPS = 4 }; // each makes errors in front smaller, but where nothing is damped

// 1/L, from the end: 1/R
static struct yk_pair inverses(const struct chain *h, bool from_end)
{
	struct yk_pair with, without;
	minors(h, from_end, &with, &without);
	struct yk_pair x = yk_pair_div(h->g, without, pivot(h, with));
	for (int k = 0; k < SWEEPS; k++)
		x = yk_pair_inverse(h->g, pivot(h, stepped(h, h->alpha, x, from_end)));
	return x;
}

// G of 1/L and, of both sides, 1/R
static struct yk_pair diagonal(const struct chain *h, struct yk_pair l, struct yk_pair r, bool both)
{
	return both ? yk_pair_inverse(h->g, pivot(h, stepped(h, stepped(h, h->alpha, l, false), r, true))) : l;
}

void yk_decompose_resolvent(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_resolved how = yk_resolved(c->attr);
	struct chain h = chain_of(g, c);
	const bool both = how.side == YOKE_SIDE_BOTH;
	struct yk_pair l = inverses(&h, false), r = both ? inverses(&h, true) : l;
	out[0] = yk_down(g, yk_pair_join(g, diagonal(&h, l, r, both)), c->in[0]);
	// of the tier half a bound is not known: as if each row had been computed again
	struct yk_value rows = g->value[c->in[0]];
	out[1] = yk_broadcast(g, yk_lit(g, yk_acc(rows.dtype), yk_tier_half(how.tier) ? INFINITY : 0), rows.rank - 1,
			      rows.dims);
}

// x_i = d_i + m_i x_(i-1), from the end: x_(i+1)
static struct yk_pair affine(const struct chain *h, struct yk_pair d, struct yk_pair m, bool from_end)
{
	struct yk_graph *g = h->g;
	for (int64_t by = 1; by < h->n && d.re != YK_BAD && m.re != YK_BAD; by *= 2) {
		d = yk_pair_bin(g, YK_ADD, d, yk_pair_mul(g, m, yk_pair_moved(g, d, h->axis, by, from_end, 0)));
		m = yk_pair_mul(g, m, yk_pair_moved(g, m, h->axis, by, from_end, 0));
	}
	return d;
}

// Surrogates of the gradient by a: see yoke.h.
static yk_id surrogate(struct yk_graph *g, const struct yk_resolved *how, struct yk_pair f, struct yk_pair cot)
{
	const struct yk_pair conj = { cot.re, yk_un(g, YK_NEG, cot.im) };
	yk_id diag = yk_pair_mul(g, how->gradient == YOKE_GRADIENT_STEP5 ? cot : conj, f).re, inverse, da;
	yk_id modulus = yk_un(g, YK_SQRT, yk_bin(g, YK_ADD, yk_un(g, YK_SQUARE, f.re), yk_un(g, YK_SQUARE, f.im)));
	if (modulus == YK_BAD)
		return YK_BAD;
	const int dtype = g->value[modulus].dtype;
	yk_id least = yk_bin_lit(g, YK_MUL, yk_un(g, YK_RECIP, yk_bin_lit(g, YK_ADD, modulus, 1e-9)), 1e-3);
	yk_id small = yk_bin(g, YK_LT, modulus, yk_lit(g, dtype, 1e-3));
	f = yk_pair_times(g, f, yk_tri(g, YK_SELECT, small, least, yk_lit(g, dtype, 1)));
	f.re = yk_bin_lit(g, YK_ADD, f.re, 1e-6);
	inverse = yk_pair_div(g, cot, f).re;
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
	struct yk_pair k, total;
	struct yk_pair cot = yk_pair_of(g, checked(g, c->in[4], h.dtype), false), conj = { cot.re, yk_un(g, YK_NEG, cot.im) };
	const bool both = how.side == YOKE_SIDE_BOTH;
	struct yk_pair l = inverses(&h, false), r = both ? inverses(&h, true) : l, d = diagonal(&h, l, r, both);
	d = yk_pair_mul(g, d, d);
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
	d = yk_pair_mul(g, d, conj);
	d = (struct yk_pair){ yk_bin(g, YK_SUB, zero, d.re), yk_bin(g, YK_SUB, zero, d.im) };
	struct yk_pair left = affine(&h, d, yk_pair_times(g, yk_pair_mul(g, l, l), h.behind), true), right = left;
	total = left;
	// of k_i: what L_(i+1) and R_i have of it
	k = yk_pair_mul(g, yk_pair_moved(g, left, h.axis, 1, true, 0), l);
	if (both) {
		right = affine(&h, d, yk_pair_times(g, yk_pair_mul(g, r, r), h.before), false);
		total = yk_pair_bin(g, YK_SUB, yk_pair_bin(g, YK_ADD, left, right), d);
		k = yk_pair_bin(g, YK_ADD, k, yk_pair_mul(g, right, yk_pair_moved(g, r, h.axis, 1, true, 0)));
	}
	yk_id dk = bonds(&h, yk_un(g, YK_NEG, k.re), false);
	out[0] = yk_down(g, total.re, c->in[0]);
	out[1] = yk_down(g, h.c == YK_NIL ? dk : yk_bin(g, YK_MUL, dk, h.c), c->in[0]);
	out[2] = yk_down(g, h.b == YK_NIL ? dk : yk_bin(g, YK_MUL, dk, h.b), c->in[0]);
	const unsigned along = 1u << h.axis;
	struct yk_pair dz = { yk_un(g, YK_NEG, yk_reduce(g, YK_SUM, total.re, along, false)),
			 yk_reduce(g, YK_SUM, total.im, along, false) };
	out[3] = yk_down(g, yk_pair_join(g, dz), c->in[0]);
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
