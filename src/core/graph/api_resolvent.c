// SPDX-License-Identifier: Apache-2.0
// The public resolvent of tridiagonal matrices: its options, and how operands meet.

#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "graph/chain.h"
#include "graph/record.h"
#include "graph/resolvent.h"

// The options as attributes; the tier follows from the operands' dtype where none is asked for.
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
		return yk_rec_fail(r, YOKE_EINVAL, "side %d is none of yoke_resolvent_side, 0 and 1", o->side);
	if (o->tier < YOKE_TIER_AUTO || o->tier > YOKE_TIER_HALF)
		return yk_rec_fail(r, YOKE_EINVAL, "tier %d is none of yoke_tier, 0 to 4", o->tier);
	if (o->gradient < YOKE_GRADIENT_EXACT || o->gradient > YOKE_GRADIENT_STEP5)
		return yk_rec_fail(r, YOKE_EINVAL, "gradient %d is none of yoke_resolvent_gradient, 0 to 4", o->gradient);
	if (half && o->half != yoke_f16 && o->half != yoke_bf16)
		return yk_rec_fail(r, YOKE_EDTYPE, "half is f16 or bf16, not %s", yoke_dtype_name(o->half));
	if (half && dtype == yoke_f64)
		return yk_rec_fail(r, YOKE_EDTYPE, "tier half takes operands of f32, f16 or bf16, not f64");
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

#define SHAPES "wants [..,N], [..,N-1] of b and c, [..,2] of z"

// All leading dims of the operands as one shape, into `to`, whose last one is left open.
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
					   yk_describe(&r->g->value[r->in[0]], x), yk_describe(v, y));
		for (; to->rank < v->rank; to->rank++) {
			memmove(to->dims + 1, to->dims, (size_t)to->rank * sizeof *to->dims);
			to->dims[0] = 1;
		}
		for (int i = 0; i < v->rank - 1; i++) {
			int64_t *d = &to->dims[to->rank - v->rank + i];
			if (*d != v->dims[i] && *d != 1 && v->dims[i] != 1)
				return yk_rec_fail(r, YOKE_ESHAPE, "leading axes do not broadcast: %s and %s",
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
	if (how && yk_sized_take(&o, sizeof o, how, "resolvent", "yoke_resolvent"))
		return NULL;
	struct yk_rec r = yk_rec_begin_with(YK_RESOLVENT, 2 | 4, 4, (yoke_tensor *[]){ a, b, c, z });
	struct yk_resolved held;
	struct yk_value dims;
	union yoke_attr attr[YK_RESOLVED];
	yk_id out;
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
		if (!yk_same_shape(&dims, &v))
			r.in[k] = yk_broadcast(r.g, r.in[k], dims.rank, dims.dims);
	}
	memcpy(attr, &held, sizeof held);
	struct yk_call call = { .op = YK_RESOLVENT, .nin = 4, .in = r.in, .nattr = YK_RESOLVED, .attr = attr };
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD || r.in[2] == YK_BAD || r.in[3] == YK_BAD ||
	    yk_append(r.g, &call, &out) < 0 || (o.bound && !(*o.bound = yk_handle_of(r.ctx, out + 1))))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, out);
}

// ---- complex elements on the diagonal ----

struct open {
	struct yk_chain chain;
	yk_id b; // [..,N-1] in f64 or YK_NIL: ones
	struct yk_value row; // [..,N] of all leading axes
	int dtype; // of the operands
};

static yk_id spread(struct yk_graph *g, yk_id x, const struct yk_value *like)
{
	return x == YK_BAD || yk_same_shape(&g->value[x], like) ? x : yk_broadcast(g, x, like->rank, like->dims);
}

// a, a_im, b, c, z as a chain in f64; false after an error.
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
			yk_rec_fail(r, YOKE_EDTYPE, "dtypes differ: %s and %s", yk_describe(&a, x), yk_describe(v, y));
			return false;
		}
		if (v->dims[v->rank - 1] != want[i]) {
			yk_rec_fail(r, YOKE_ESHAPE, SHAPES ", got %s and %s", yk_describe(&a, x), yk_describe(v, y));
			return false;
		}
	}
	to->row.dims[to->row.rank - 1] = n;
	to->row.dtype = yoke_f64;
	to->dtype = a.dtype;
	struct yk_value bonds = to->row;
	bonds.dims[bonds.rank - 1] = n > 1 ? n - 1 : 0;
	for (int i = 0; i < 5; i++)
		in[i] = r->in[i] == YK_NIL ? YK_NIL : yk_cast(g, r->in[i], yoke_f64);
	const struct yk_pair z = yk_pair_of(g, in[4], true);
	struct yk_chain *h = &to->chain;
	h->alpha.re = spread(g, yk_bin(g, YK_SUB, in[0], z.re), &to->row);
	h->alpha.im = spread(g, in[1] == YK_NIL ? yk_un(g, YK_NEG, z.im) : yk_bin(g, YK_SUB, in[1], z.im), &to->row);
	if (in[2] != YK_NIL && in[3] != YK_NIL)
		h->k = yk_bin(g, YK_MUL, in[2], in[3]);
	else if (in[2] != YK_NIL || in[3] != YK_NIL)
		h->k = in[2] != YK_NIL ? in[2] : in[3];
	else
		h->k = yk_lit(g, yoke_f64, 1);
	h->k = spread(g, h->k, &bonds);
	to->b = in[2];
	return h->alpha.re != YK_BAD && h->alpha.im != YK_BAD && h->k != YK_BAD;
}

#define OPEN(a, a_im, b, c, z) yk_rec_begin_with(YK_RESOLVENT, 2 | 4 | 8, 5, (yoke_tensor *[]){ a, a_im, b, c, z })

yoke_tensor *yoke_resolvent_complex(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z, int side)
{
	struct yk_rec r = OPEN(a, a_im, b, c, z);
	struct open o;
	if (!open_of(&r, &o))
		return yk_rec_end(&r, YK_BAD);
	if (side < YOKE_SIDE_BOTH || side > YOKE_SIDE_LEFT)
		yk_rec_fail(&r, YOKE_EINVAL, "side %d is none of yoke_resolvent_side, 0 and 1", side);
	else if (o.row.rank == YOKE_MAX_RANK)
		yk_rec_fail(&r, YOKE_ESHAPE, "takes 1 to 7 axes, got %d", o.row.rank);
	else
		return yk_rec_end(&r, yk_cast(r.g, yk_pair_join(r.g, yk_chain_diagonal(r.g, &o.chain, side)), o.dtype));
	return yk_rec_end(&r, YK_BAD);
}

// log |det / prod w| and the phase, rows [..]
static struct yk_pair log_det(struct yk_graph *g, const struct open *o, yk_id w)
{
	const struct yk_chain *h = &o->chain;
	if (!o->row.dims[o->row.rank - 1]) { // of no elements: 1
		const yk_id none = yk_broadcast(g, yk_lit(g, yoke_f64, 0), o->row.rank - 1, o->row.dims);
		return (struct yk_pair){ none, none };
	}
	const yk_id first = yk_record(g, YK_LOG_DET, 4, (yk_id[]){ h->alpha.re, h->alpha.im, h->k, w }, 0, NULL);
	return (struct yk_pair){ first, first == YK_BAD ? YK_BAD : first + 1 };
}

yoke_tensor *yoke_resolvent_log_det(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z)
{
	struct yk_rec r = OPEN(a, a_im, b, c, z);
	struct open o;
	if (!open_of(&r, &o))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_cast(r.g, yk_pair_join(r.g, log_det(r.g, &o, YK_NIL)), o.dtype));
}

// G_1N = -prod b / det(z - H): the product of b / |b| times exp(sum log |b| - log |det|), so that neither leaves the range
// and a b that is 0 has its gradient.
static struct yk_pair corner(struct yk_graph *g, const struct open *o)
{
	const unsigned along = 1u << (o->row.rank - 1);
	const int64_t n = o->row.dims[o->row.rank - 1];
	int64_t none[YOKE_MAX_RANK] = { 0 }, one[YOKE_MAX_RANK] = { 0 };
	yk_id sign = yk_lit(g, yoke_f64, -1), w = YK_NIL;
	if (o->b != YK_NIL && n > 1) {
		struct yk_value bonds = o->row;
		bonds.dims[bonds.rank - 1] = n - 1;
		const yk_id b = spread(g, o->b, &bonds), size = yk_un(g, YK_ABS, b);
		const yk_id zero = yk_bin(g, YK_EQ, b, yk_lit(g, yoke_f64, 0));
		const yk_id scale = yk_un(g, YK_STOP_GRAD, yk_tri(g, YK_SELECT, zero, yk_lit(g, yoke_f64, 1), size));
		sign = yk_un(g, YK_NEG, yk_reduce(g, YK_PROD, yk_bin(g, YK_DIV, b, scale), along, false));
		one[o->row.rank - 1] = 1;
		w = yk_pad(g, scale, none, one, 1);
	}
	const struct yk_pair d = log_det(g, o, w);
	const yk_id size = yk_bin(g, YK_MUL, sign, yk_un(g, YK_EXP, yk_un(g, YK_NEG, d.re)));
	return (struct yk_pair){ yk_bin(g, YK_MUL, size, yk_un(g, YK_COS, d.im)),
				 yk_un(g, YK_NEG, yk_bin(g, YK_MUL, size, yk_un(g, YK_SIN, d.im))) };
}

yoke_tensor *yoke_resolvent_corner(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z)
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
