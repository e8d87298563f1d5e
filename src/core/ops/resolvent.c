// SPDX-License-Identifier: Apache-2.0
// Resolvents of tridiagonal matrices: elements of (z - H)^-1 for batched chains, and their
// gradients.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "graph/record.h"
#include "ops/chain.h"
#include "ops/pairs.h"
#include "ops/resolvent.h"
#include "ops/rules.h"
#include "yoke-math.h"

// ---- shapes ----

// t must have a's dtype and the shape [leading axes of a.., n].
static int want_matching(struct yk_graph *g, const struct yk_call *c, const struct yk_value *a,
		       const struct yk_value *t, int64_t n)
{
	struct yk_value like = *a;
	like.dims[like.rank - 1] = n;
	if (t->dtype != a->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", a, t);
	if (!yk_same_shape(t, &like))
		return fail_two(g, c, YOKE_ESHAPE,
				"expects [..,N], [..,N-1] of b and c, [..,2] of z, got", a, t);
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
		err = has(c, k) ? want_matching(g, c, a, IN(k), n ? n - 1 : 0) : 0;
	return err ? err : want_matching(g, c, a, IN(3), 2);
}

// a [..,N], b, c [..,N-1] or none, z [..,2] -> G [..,N,2], certificate [..]; attr: struct
// yk_resolved
static int shape_resolvent(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
static int shape_resolvent_backward(struct yk_graph *g, const struct yk_call *c,
				    struct yk_value *out)
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

// ---- decomposition ----

struct chain {
	struct yk_graph *g;
	struct yk_pair alpha;   // [.., N]
	yk_id before, after; // k_(i-1) and k_i at i, [.., N], 0 at the ends
	yk_id b, c;        // [.., N-1], or none
	int axis, dtype;
	int64_t n;
};

// x, checked for infinities and NaN, in the computation's dtype.
static yk_id checked(struct yk_graph *g, yk_id x, int dtype)
{
	if (x == YK_NIL)
		return x;
	return yk_cast(g, yk_record(g, YK_CHECK_FINITE, 1, &x, 0, NULL), dtype);
}

// k = b c [..,N-1] for rows like `row` [..,N]; an absent b or c is 1
static yk_id coupling(struct yk_graph *g, yk_id b, yk_id c, int dtype, const struct yk_value *row)
{
	const int64_t n = row->dims[row->rank - 1];
	struct yk_value bonds = *row;
	yk_id k;
	bonds.dims[bonds.rank - 1] = n > 1 ? n - 1 : 0;
	if (b != YK_NIL && c != YK_NIL)
		k = yk_bin(g, YK_MUL, b, c);
	else if (b != YK_NIL || c != YK_NIL)
		k = b != YK_NIL ? b : c;
	else
		k = yk_lit(g, dtype, 1);
	return yk_broadcast_like(g, k, &bonds);
}

static struct chain chain_of(struct yk_graph *g, const struct yk_call *c)
{
	const struct yk_resolved how = yk_resolved(c->attr);
	const struct yk_value a = g->value[c->in[0]];
	struct chain h = { .g = g, .axis = a.rank - 1, .n = a.dims[a.rank - 1] };
	h.dtype = how.tier == YK_TIER_F64 ? yoke_f64 : yk_acc(a.dtype);
	struct yk_pair z = yk_pair_of(g, checked(g, c->in[3], h.dtype), true);
	yk_id x = checked(g, c->in[0], h.dtype);
	h.b = checked(g, c->in[1], h.dtype);
	h.c = checked(g, c->in[2], h.dtype);
	h.alpha.re = yk_bin(g, YK_SUB, x, z.re);
	h.alpha.im = yk_broadcast(g, yk_un(g, YK_NEG, z.im), a.rank, a.dims);
	const yk_id k = coupling(g, h.b, h.c, h.dtype, &a);
	h.before = yk_bond(g, k, &a, false);
	h.after = yk_bond(g, k, &a, true);
	return h;
}

// Leading minors (from_end: trailing) up to i, with and without element i; both divided by a common
// factor.
static void minors(const struct chain *h, bool from_end, struct yk_pair *with,
		   struct yk_pair *without)
{
	struct yk_graph *g = h->g;
	struct yk_pair p[2][2], q[2][2], r[2][2];
	yk_id zero = yk_full_like(g, h->alpha.re, 0);
	p[0][0] = h->alpha;
	p[0][1] = (struct yk_pair){ yk_un(g, YK_NEG, from_end ? h->after : h->before), zero };
	p[1][0] = (struct yk_pair){ yk_full_like(g, h->alpha.re, 1), zero };
	p[1][1] = (struct yk_pair){ zero, zero };
	for (int64_t by = 1; by < h->n && zero != YK_BAD; by *= 2) {
		yk_id max = YK_NIL;
		for (int i = 0; i < 4; i++)
			q[i / 2][i % 2] = yk_pair_moved(g, p[i / 2][i % 2], h->axis, by, from_end,
							i / 2 == i % 2);
		for (int i = 0; i < 4; i++) {
			struct yk_pair *to = &r[i / 2][i % 2];
			*to = yk_pair_bin(g, YK_ADD, yk_pair_mul(g, p[i / 2][0], q[0][i % 2]),
					  yk_pair_mul(g, p[i / 2][1], q[1][i % 2]));
			yk_id size = yk_pair_size(g, *to);
			max = max == YK_NIL ? size : yk_bin(g, YK_MAX, max, size);
		}
		max = yk_un(g, YK_RECIP, max);
		for (int i = 0; i < 4; i++)
			p[i / 2][i % 2] = yk_pair_times(g, r[i / 2][i % 2], max);
	}
	*with = p[0][0];
	*without = p[1][0];
}

// from - k / L of the previous element, given all 1/L; from the end: - k / R of the next one
static struct yk_pair stepped(const struct chain *h, struct yk_pair from, struct yk_pair inverse,
			      bool from_end)
{
	if (h->n < 2) // there is no neighbour
		return from;
	return yk_pair_bin(h->g, YK_SUB, from,
			   yk_pair_times(h->g,
					 yk_pair_moved(h->g, inverse, h->axis, 1, from_end, 0),
					 from_end ? h->after : h->before));
}

// Replaces a pivot of 0, possible for real z, by a tiny number whose inverse can be squared.
static struct yk_pair pivot(const struct chain *h, struct yk_pair d)
{
	struct yk_graph *g = h->g;
	const bool wide = h->dtype == yoke_f64;
	const yk_id zero =
		yk_bin(g, YK_LT, yk_pair_extent(g, d), yk_lit(g, h->dtype, wide ? 1e-290 : 1e-30));
	d.re = yk_tri(g, YK_SELECT, zero, yk_lit(g, h->dtype, wide ? 1e-140 : 1e-15), d.re);
	return d;
}

enum { SWEEPS = 4 }; // each reduces the errors of earlier elements, except where nothing is damped

// 1/L; from the end: 1/R
static struct yk_pair inverses(const struct chain *h, bool from_end)
{
	struct yk_pair with, without;
	minors(h, from_end, &with, &without);
	struct yk_pair x = yk_pair_div(h->g, without, pivot(h, with));
	for (int k = 0; k < SWEEPS; k++)
		x = yk_pair_inverse(h->g, pivot(h, stepped(h, h->alpha, x, from_end)));
	return x;
}

// The diagonal G, from 1/L; for both sides, also from 1/R
static struct yk_pair diagonal(const struct chain *h, struct yk_pair l, struct yk_pair r, bool both)
{
	return both ? yk_pair_inverse(
			      h->g, pivot(h, stepped(h, stepped(h, h->alpha, l, false), r, true))) :
		      l;
}

static void decompose_resolvent(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_resolved how = yk_resolved(c->attr);
	struct chain h = chain_of(g, c);
	const bool both = how.side == YOKE_SIDE_BOTH;
	struct yk_pair l = inverses(&h, false), r = both ? inverses(&h, true) : l;
	out[0] = yk_cast_like(g, yk_pair_join(g, diagonal(&h, l, r, both)), c->in[0]);
	// the half tier has no known bound: certify as if each row had been recomputed
	struct yk_value rows = g->value[c->in[0]];
	out[1] = yk_broadcast(g,
			      yk_lit(g, yk_acc(rows.dtype), yk_tier_half(how.tier) ? INFINITY : 0),
			      rows.rank - 1, rows.dims);
}

// x_i = d_i + m_i x_(i-1), from the end: x_(i+1)
static struct yk_pair affine(const struct chain *h, struct yk_pair d, struct yk_pair m,
			     bool from_end)
{
	struct yk_graph *g = h->g;
	for (int64_t by = 1; by < h->n && d.re != YK_BAD && m.re != YK_BAD; by *= 2) {
		d = yk_pair_bin(g, YK_ADD, d,
				yk_pair_mul(g, m, yk_pair_moved(g, d, h->axis, by, from_end, 0)));
		m = yk_pair_mul(g, m, yk_pair_moved(g, m, h->axis, by, from_end, 0));
	}
	return d;
}

// Surrogate gradients by a: see yoke.h.
static yk_id surrogate(struct yk_graph *g, const struct yk_resolved *how, struct yk_pair f,
		       struct yk_pair cot)
{
	const struct yk_pair conj = yk_pair_conj(g, cot);
	yk_id diag = yk_pair_mul(g, how->gradient == YOKE_GRADIENT_STEP5 ? cot : conj, f).re,
	      inverse, da;
	yk_id modulus =
		yk_un(g, YK_SQRT,
		      yk_bin(g, YK_ADD, yk_un(g, YK_SQUARE, f.re), yk_un(g, YK_SQUARE, f.im)));
	if (modulus == YK_BAD)
		return YK_BAD;
	const int dtype = g->value[modulus].dtype;
	yk_id min = yk_bin_lit(g, YK_MUL, yk_un(g, YK_RECIP, yk_bin_lit(g, YK_ADD, modulus, 1e-9)),
			       1e-3);
	yk_id small = yk_bin(g, YK_LT, modulus, yk_lit(g, dtype, 1e-3));
	f = yk_pair_times(g, f, yk_tri(g, YK_SELECT, small, min, yk_lit(g, dtype, 1)));
	f.re = yk_bin_lit(g, YK_ADD, f.re, 1e-6);
	inverse = yk_pair_div(g, cot, f).re;
	if (how->gradient == YOKE_GRADIENT_DIAG)
		da = diag;
	else if (how->gradient == YOKE_GRADIENT_INVERSE)
		da = inverse;
	else
		da = yk_bin(g, YK_ADD, yk_bin_lit(g, YK_MUL, diag, 1 - how->blend),
			    yk_bin_lit(g, YK_MUL, inverse, how->blend));
	da = yk_tri(g, YK_SELECT, yk_un(g, YK_ISFINITE, da), yk_un(g, YK_NEG, da),
		    yk_lit(g, dtype, 0));
	return yk_bin_lit(g, YK_MAX, yk_bin_lit(g, YK_MIN, da, 1000), -1000);
}

static void decompose_resolvent_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_resolved how = yk_resolved(c->attr);
	struct chain h = chain_of(g, c);
	struct yk_pair k, total;
	struct yk_pair cot = yk_pair_of(g, yk_cast(g, c->in[4], h.dtype), false),
		       conj = yk_pair_conj(g, cot);
	const bool both = how.side == YOKE_SIDE_BOTH;
	struct yk_pair l = inverses(&h, false), r = both ? inverses(&h, true) : l,
		       d = diagonal(&h, l, r, both);
	d = yk_pair_mul(g, d, d);
	yk_id zero = yk_lit(g, h.dtype, 0);
	if (how.gradient != YOKE_GRADIENT_EXACT) {
		out[0] = surrogate(g, &how, d, cot);
		out[1] = yk_full_like(g, yk_without_end(g, h.alpha.re, true), 0);
		out[2] = out[1];
		out[3] = yk_full_like(g, c->in[3], 0);
		for (int i = 0; i < 4; i++)
			out[i] = yk_cast_like(g, out[i], c->in[0]);
		return;
	}
	d = yk_pair_mul(g, d, conj);
	d = (struct yk_pair){ yk_bin(g, YK_SUB, zero, d.re), yk_bin(g, YK_SUB, zero, d.im) };
	struct yk_pair left = affine(&h, d, yk_pair_times(g, yk_pair_mul(g, l, l), h.after), true),
		       right = left;
	total = left;
	// by k_i: its contributions to L_(i+1) and R_i
	k = yk_pair_mul(g, yk_pair_moved(g, left, h.axis, 1, true, 0), l);
	if (both) {
		right = affine(&h, d, yk_pair_times(g, yk_pair_mul(g, r, r), h.before), false);
		total = yk_pair_bin(g, YK_SUB, yk_pair_bin(g, YK_ADD, left, right), d);
		k = yk_pair_bin(g, YK_ADD, k,
				yk_pair_mul(g, right, yk_pair_moved(g, r, h.axis, 1, true, 0)));
	}
	yk_id dk = yk_without_end(g, yk_un(g, YK_NEG, k.re), false);
	out[0] = yk_cast_like(g, total.re, c->in[0]);
	out[1] = yk_cast_like(g, h.c == YK_NIL ? dk : yk_bin(g, YK_MUL, dk, h.c), c->in[0]);
	out[2] = yk_cast_like(g, h.b == YK_NIL ? dk : yk_bin(g, YK_MUL, dk, h.b), c->in[0]);
	const unsigned along = 1u << h.axis;
	struct yk_pair dz = { yk_un(g, YK_NEG, yk_reduce(g, YK_SUM, total.re, along, false)),
			 yk_reduce(g, YK_SUM, total.im, along, false) };
	out[3] = yk_cast_like(g, yk_pair_join(g, dz), c->in[0]);
}

static void grad_resolvent(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const yk_id in[5] = { n.in[0], n.in[1], n.in[2], n.in[3], gout[0] };
	struct yk_call c = { .op = YK_RESOLVENT_BACKWARD,
			     .nin = 5,
			     .in = in,
			     .nattr = YK_RESOLVED,
			     .attr = n.attr };
	yk_append_backward(g, &c, 4, in, (uint32_t[]){ 0, 1, 2, 3 }, gin);
}

YK_OP(RESOLVENT) = { .name = "resolvent",
		     .code = YOKE_OP_RESOLVENT,
		     .flags = YK_F_FLOAT | YK_F_PARTIAL,
		     .min_in = 4,
		     .max_in = 4,
		     .nout = 2,
		     .cast = YK_CAST_F32,
		     .shape = shape_resolvent,
		     .grad = grad_resolvent,
		     .decompose = decompose_resolvent };
YK_OP(RESOLVENT_BACKWARD) = { .name = "resolvent_backward", .code = YOKE_OP_RESOLVENT_BACKWARD,
	.flags = YK_F_FLOAT | YK_F_PARTIAL, .min_in = 5, .max_in = 5, .nout = 4,
	.shape = shape_resolvent_backward, .decompose = decompose_resolvent_backward };

// The options as attributes; without a requested tier the operands' dtype decides.
static int resolved(struct yk_rec *r, const struct yoke_resolvent *o, struct yk_resolved *to)
{
	const int dtype = r->g->value[r->in[0]].dtype;
	const bool half = o->tier == YOKE_TIER_HALF;
	*to = (struct yk_resolved){ .side = o->side,
				    .tolerance = o->tolerance,
				    .gradient = o->gradient,
				    .blend = o->blend,
				    .adaptive = o->adaptive };
	if (o->side < YOKE_SIDE_BOTH || o->side > YOKE_SIDE_LEFT)
		return yk_rec_fail(r, YOKE_EINVAL,
				   "side %d is none of yoke_resolvent_side, 0 and 1", o->side);
	if (o->tier < YOKE_TIER_AUTO || o->tier > YOKE_TIER_HALF)
		return yk_rec_fail(r, YOKE_EINVAL, "tier %d is none of yoke_tier, 0 to 4", o->tier);
	if (o->gradient < YOKE_GRADIENT_EXACT || o->gradient > YOKE_GRADIENT_STEP5)
		return yk_rec_fail(r, YOKE_EINVAL,
				   "gradient %d is none of yoke_resolvent_gradient, 0 to 4",
				   o->gradient);
	if (half && o->half != yoke_f16 && o->half != yoke_bf16)
		return yk_rec_fail(r, YOKE_EDTYPE, "half is f16 or bf16, not %s",
				   yoke_dtype_name(o->half));
	if (half && dtype == yoke_f64)
		return yk_rec_fail(r, YOKE_EDTYPE,
				   "tier half takes operands of f32, f16 or bf16, not f64");
	if (o->sweeps < YOKE_SWEEPS || o->sweeps > 64)
		return yk_rec_fail(r, YOKE_ERANGE, "%d sweeps; 0 to 64 are possible", o->sweeps);
	if (!(o->tolerance > 0))
		return yk_rec_fail(r, YOKE_ERANGE, "tolerance %g is not above 0", o->tolerance);
	if (!(o->blend >= 0 && o->blend <= 1))
		return yk_rec_fail(r, YOKE_ERANGE, "blend %g is not in [0, 1]", o->blend);
	if (!(o->adaptive >= 0))
		return yk_rec_fail(r, YOKE_ERANGE, "adaptive %g is not 0 or above", o->adaptive);
	if (o->tier == YOKE_TIER_F64 || (o->tier == YOKE_TIER_AUTO && dtype == yoke_f64))
		to->tier = YK_TIER_F64;
	else if (half)
		to->tier = o->half == yoke_f16 ? YK_TIER_F16 : YK_TIER_BF16;
	else
		to->tier = o->tier == YOKE_TIER_MIXED ? YK_TIER_MIXED : YK_TIER_F32;
	if (half)
		to->sweeps = o->sweeps != YOKE_SWEEPS ? o->sweeps : o->half == yoke_f16 ? 6 : 8;
	return 0;
}

#define SHAPES "expects [..,N], [..,N-1] of b and c, [..,2] of z"

// Broadcasts all leading dims of the operands into `to`; the caller sets the last dim.
static int lead(struct yk_rec *r, struct yk_value *to)
{
	char x[160], y[160];
	*to = r->g->value[r->in[0]];
	for (int k = 0; k < r->n; k++) {
		if (r->in[k] == YK_NIL)
			continue;
		const struct yk_value *v = &r->g->value[r->in[k]];
		if (!v->rank)
			return yk_rec_fail(r, YOKE_ESHAPE, SHAPES ", got %s and %s",
					   yk_describe(&r->g->value[r->in[0]], x),
					   yk_describe(v, y));
		for (; to->rank < v->rank; to->rank++) {
			memmove(to->dims + 1, to->dims, (size_t)to->rank * sizeof *to->dims);
			to->dims[0] = 1;
		}
		for (int i = 0; i < v->rank - 1; i++) {
			int64_t *d = &to->dims[to->rank - v->rank + i];
			if (*d != v->dims[i] && *d != 1 && v->dims[i] != 1)
				return yk_rec_fail(
					r, YOKE_ESHAPE, "leading axes do not broadcast: %s and %s",
					yk_describe(&r->g->value[r->in[0]], x), yk_describe(v, y));
			*d = *d == 1 ? v->dims[i] : *d;
		}
	}
	return 0;
}

yoke_tensor *yoke_resolvent(yoke_tensor *a, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z,
			    const struct yoke_resolvent *how)
{
	struct yoke_resolvent o = YOKE_RESOLVENT_INIT;
	if (how && yk_sized_read(&o, sizeof o, how, "resolvent", "yoke_resolvent"))
		return NULL;
	struct yk_rec r =
		yk_rec_begin_with(YK_RESOLVENT, 2 | 4, 4, (yoke_tensor *[]){ a, b, c, z });
	struct yk_resolved held;
	struct yk_value dims;
	union yoke_attr attr[YK_RESOLVED];
	for (int k = 0; k < 4; k++)
		if (r.in[k] == YK_BAD)
			return yk_rec_end(&r, YK_BAD);
	if (resolved(&r, &o, &held) < 0 || lead(&r, &dims) < 0)
		return yk_rec_end(&r, YK_BAD);
	for (int k = 0; k < 4; k++) {
		if (r.in[k] == YK_NIL)
			continue;
		const struct yk_value v = r.g->value[r.in[k]];
		dims.dims[dims.rank - 1] = v.dims[v.rank - 1];
		r.in[k] = yk_broadcast_like(r.g, r.in[k], &dims);
	}
	memcpy(attr, &held, sizeof held);
	const yk_id out = yk_record(r.g, YK_RESOLVENT, 4, r.in, YK_RESOLVED, attr);
	if (out == YK_BAD || (o.bound && !(*o.bound = yk_handle_of(r.ctx, out + 1))))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, out);
}

// ---- complex diagonals ----

struct open {
	struct yk_chain chain;
	yk_id b; // [..,N-1] in f64 or YK_NIL: ones
	struct yk_value row; // [..,N] with all leading axes
	int dtype; // of the operands
};

// Makes a chain in f64 from a, a_im, b, c, z; false after an error.
static bool open_of(struct yk_rec *r, struct open *to)
{
	struct yk_graph *g = r->g;
	char x[160], y[160];
	yk_id in[5];
	for (int i = 0; i < 5; i++)
		if (r->in[i] == YK_BAD)
			return false;
	const struct yk_value a = g->value[r->in[0]];
	if (!yk_is_float(a.dtype)) {
		yk_rec_fail(r, YOKE_EDTYPE, "takes floating point, got %s", yk_describe(&a, x));
		return false;
	}
	if (lead(r, &to->row) < 0)
		return false;
	const int64_t n = a.dims[a.rank - 1], want[5] = { n, n, n ? n - 1 : 0, n ? n - 1 : 0, 2 };
	for (int i = 0; i < 5; i++) {
		if (r->in[i] == YK_NIL)
			continue;
		const struct yk_value *v = &g->value[r->in[i]];
		if (v->dtype != a.dtype) {
			yk_rec_fail(r, YOKE_EDTYPE, "dtypes differ: %s and %s", yk_describe(&a, x),
				    yk_describe(v, y));
			return false;
		}
		if (v->dims[v->rank - 1] != want[i]) {
			yk_rec_fail(r, YOKE_ESHAPE, SHAPES ", got %s and %s", yk_describe(&a, x),
				    yk_describe(v, y));
			return false;
		}
	}
	to->row.dims[to->row.rank - 1] = n;
	to->row.dtype = yoke_f64;
	to->dtype = a.dtype;
	for (int i = 0; i < 5; i++)
		in[i] = r->in[i] == YK_NIL ? YK_NIL : yk_cast(g, r->in[i], yoke_f64);
	const struct yk_pair z = yk_pair_of(g, in[4], true);
	struct yk_chain *h = &to->chain;
	h->alpha.re = yk_broadcast_like(g, yk_bin(g, YK_SUB, in[0], z.re), &to->row);
	h->alpha.im = yk_broadcast_like(
		g, in[1] == YK_NIL ? yk_un(g, YK_NEG, z.im) : yk_bin(g, YK_SUB, in[1], z.im),
		&to->row);
	h->k = coupling(g, in[2], in[3], yoke_f64, &to->row);
	to->b = in[2];
	return h->alpha.re != YK_BAD && h->alpha.im != YK_BAD && h->k != YK_BAD;
}

#define OPEN(a, a_im, b, c, z) \
	yk_rec_begin_with(YK_RESOLVENT, 2 | 4 | 8, 5, (yoke_tensor *[]){ a, a_im, b, c, z })

yoke_tensor *yoke_resolvent_complex(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b,
				    yoke_tensor *c, yoke_tensor *z, int side)
{
	struct yk_rec r = OPEN(a, a_im, b, c, z);
	struct open o;
	if (!open_of(&r, &o))
		return yk_rec_end(&r, YK_BAD);
	if (side < YOKE_SIDE_BOTH || side > YOKE_SIDE_LEFT)
		yk_rec_fail(&r, YOKE_EINVAL, "side %d is none of yoke_resolvent_side, 0 and 1",
			    side);
	else if (o.row.rank == YOKE_MAX_RANK)
		yk_rec_fail(&r, YOKE_ESHAPE, "takes 1 to 7 axes, got %d", o.row.rank);
	else
		return yk_rec_end(
			&r, yk_cast(r.g, yk_pair_join(r.g, yk_chain_diagonal(r.g, &o.chain, side)),
				    o.dtype));
	return yk_rec_end(&r, YK_BAD);
}

// log |det / prod w| and the phase, each [..]
static struct yk_pair log_det(struct yk_graph *g, const struct open *o, yk_id w)
{
	const struct yk_chain *h = &o->chain;
	if (!o->row.dims[o->row.rank - 1]) { // no elements: det is 1
		const yk_id none =
			yk_broadcast(g, yk_lit(g, yoke_f64, 0), o->row.rank - 1, o->row.dims);
		return (struct yk_pair){ none, none };
	}
	const yk_id first = yk_record(g, YK_LOG_DET, 4,
				      (yk_id[]){ h->alpha.re, h->alpha.im, h->k, w }, 0, NULL);
	return (struct yk_pair){ first, first == YK_BAD ? YK_BAD : first + 1 };
}

yoke_tensor *yoke_resolvent_log_det(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b,
				    yoke_tensor *c, yoke_tensor *z)
{
	struct yk_rec r = OPEN(a, a_im, b, c, z);
	struct open o;
	if (!open_of(&r, &o))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_cast(r.g, yk_pair_join(r.g, log_det(r.g, &o, YK_NIL)), o.dtype));
}

// G_1N = -prod b / det(z - H), as the product of b / |b| times exp(sum log |b| - log |det|):
// neither overflows, and a b of 0 gets its gradient.
static struct yk_pair corner(struct yk_graph *g, const struct open *o)
{
	const unsigned along = 1u << (o->row.rank - 1);
	const int64_t n = o->row.dims[o->row.rank - 1];
	int64_t none[YOKE_MAX_RANK] = { 0 }, one[YOKE_MAX_RANK] = { 0 };
	yk_id sign = yk_lit(g, yoke_f64, -1), w = YK_NIL;
	if (o->b != YK_NIL && n > 1) {
		struct yk_value bonds = o->row;
		bonds.dims[bonds.rank - 1] = n - 1;
		const yk_id b = yk_broadcast_like(g, o->b, &bonds), size = yk_un(g, YK_ABS, b);
		const yk_id zero = yk_bin(g, YK_EQ, b, yk_lit(g, yoke_f64, 0));
		const yk_id scale = yk_un(g, YK_STOP_GRAD,
					  yk_tri(g, YK_SELECT, zero, yk_lit(g, yoke_f64, 1), size));
		sign = yk_un(g, YK_NEG,
			     yk_reduce(g, YK_PROD, yk_bin(g, YK_DIV, b, scale), along, false));
		one[o->row.rank - 1] = 1;
		w = yk_pad(g, scale, none, one, 1);
	}
	const struct yk_pair d = log_det(g, o, w);
	const yk_id size = yk_bin(g, YK_MUL, sign, yk_un(g, YK_EXP, yk_un(g, YK_NEG, d.re)));
	return (struct yk_pair){ yk_bin(g, YK_MUL, size, yk_un(g, YK_COS, d.im)),
				 yk_un(g, YK_NEG,
				       yk_bin(g, YK_MUL, size, yk_un(g, YK_SIN, d.im))) };
}

yoke_tensor *yoke_resolvent_corner(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b,
				   yoke_tensor *c, yoke_tensor *z)
{
	struct yk_rec r = OPEN(a, a_im, b, c, z);
	struct open o;
	if (!open_of(&r, &o))
		return yk_rec_end(&r, YK_BAD);
	if (!o.row.dims[o.row.rank - 1]) {
		yk_rec_fail(&r, YOKE_ESHAPE, "a matrix of no elements has no corner");
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, yk_cast(r.g, yk_pair_join(r.g, corner(r.g, &o)), o.dtype));
}
