// SPDX-License-Identifier: Apache-2.0
// The public resolvent of tridiagonal matrices: its options, and how operands meet.

#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/sized.h"
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

// All leading dims of a, b, c and z as one shape, into `to`, whose last one is left open.
static int lead(struct yk_rec *r, struct yk_value *to)
{
	char x[160], y[160];
	*to = r->g->value[r->in[0]];
	for (int k = 0; k < 4; k++) {
		if (r->in[k] == YK_NIL)
			continue;
		const struct yk_value *v = &r->g->value[r->in[k]];
		if (!v->rank)
			return yk_rec_fail(r, YOKE_ESHAPE, "wants [..,N], [..,N-1] of b and c, [..,2] of z, got %s and %s",
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
