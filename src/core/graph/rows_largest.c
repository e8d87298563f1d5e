// SPDX-License-Identifier: Apache-2.0
// The elements of largest modulus and what is left without them: what shapes they take, their gradients, their parts.
// In parts moduli are sorted as the integers that their bits are, all NaNs as one above infinity.

#include "config.h"

#include "graph/shape.h"

// x [n], what is added to it [n] or none -> values [k], places i32 [k], rest [n]; attr: k
int yk_shape_largest(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (x->dtype != yoke_f32)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32, got", x);
	if (x->rank != 1 || x->dims[0] > INT32_MAX)
		return fail_one(g, c, YOKE_ESHAPE, "places are i32, and there are too many in", x);
	const int64_t k = c->attr[0].i;
	if (k < 0 || k > x->dims[0])
		return yk_op_fail(g, c->op, YOKE_ERANGE, "the largest %lld of %lld elements", (long long)k,
				  (long long)x->dims[0]);
	out[0] = out[1] = out[2] = *x;
	out[0].dims[0] = out[1].dims[0] = k;
	out[1].dtype = yoke_i32;
	return want_like(g, c, 1, x);
}

static yk_id along(struct yk_graph *g, yk_id places, yk_id v, int64_t n)
{
	return yk_record(g, YK_SCATTER_ADD_ALONG, 3, (yk_id[]){ YK_NIL, places, v }, 2,
			 (union yoke_attr[]){ { .i = 0 }, { .i = n } });
}

// x [n] with 0 at places [k]
static yk_id without(struct yk_graph *g, yk_id x, yk_id places)
{
	if (x == YK_BAD || places == YK_BAD)
		return YK_BAD;
	const struct yk_value at = g->value[places];
	yk_id ones = yk_broadcast(g, yk_lit(g, yoke_f32, 1), 1, at.dims);
	yk_id taken = along(g, places, ones, g->value[x].dims[0]);
	return yk_tri(g, YK_SELECT, yk_bin(g, YK_GT, taken, yk_lit(g, yoke_f32, 0)), yk_lit(g, yoke_f32, 0), x);
}

static yk_id sorted(struct yk_graph *g, yk_id x, int64_t k, bool descending)
{
	struct yk_call c = { .op = YK_SORT, .nin = 1, .in = &x, .nattr = 2,
			     .attr = (union yoke_attr[]){ { .i = k }, { .i = descending } } };
	yk_id out;
	return x == YK_BAD || yk_append(g, &c, &out) < 0 ? YK_BAD : descending ? out + 1 : out;
}

void yk_decompose_largest(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int64_t k = c->attr[0].i;
	const yk_id a = has(c, 1) ? yk_bin(g, YK_ADD, c->in[0], c->in[1]) : c->in[0];
	yk_id key = yk_record(g, YK_BITCAST, 1, (yk_id[]){ yk_un(g, YK_ABS, a) }, 1, &(union yoke_attr){ .i = yoke_i32 });
	key = yk_tri(g, YK_SELECT, yk_bin(g, YK_NE, a, a), yk_lit(g, yoke_i32, INT32_MAX), key);
	const yk_id places = sorted(g, sorted(g, key, k, true), k, false);
	out[1] = places == YK_BAD ? YK_BAD : yk_cast(g, places, yoke_i32);
	out[0] = yk_record(g, YK_GATHER, 2, (yk_id[]){ a, out[1] }, 1, &(union yoke_attr){ .i = 0 });
	out[2] = without(g, a, out[1]);
}

void yk_grad_largest(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]), places = g->node[node].out + 1;
	const bool two = in[1] != YK_NIL;
	yk_id cot = YK_NIL;
	if (gout[0] != YK_NIL)
		cot = along(g, places, gout[0], g->value[in[0]].dims[0]);
	if (gout[2] != YK_NIL) {
		const yk_id left = without(g, gout[2], places);
		cot = cot == YK_NIL ? left : yk_bin(g, YK_ADD, cot, left);
	}
	gin[0] = cot;
	if (two)
		gin[1] = cot;
}
