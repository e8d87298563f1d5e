// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021): rotates the two halves of each head by angles from
// tables.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

static int shape_rope(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	for (uint32_t k = 1; k < 3; k++) {
		const struct yk_value *t = IN(k);
		if (t->dtype != x->dtype && t->dtype != yk_acc(x->dtype))
			return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", x, t);
		if (x->rank != 4 || t->rank != 2 || t->dims[0] != x->dims[1] ||
		    x->dims[3] % 2 || t->dims[1] != x->dims[3] / 2)
			return fail_two(g, c, YOKE_ESHAPE,
					"expects [B,T,H,D] and [T,D/2], got", x, t);
	}
	*out = *x;
	return 0;
}

// The first (k = 0) or second half of the heads of x [B,T,H,D], in the accumulator's dtype.
static yk_id half(struct yk_graph *g, yk_id x, int k)
{
	if (x == YK_BAD)
		return x;
	const int64_t size = g->value[x].dims[3] / 2;
	return yk_cast_acc(g, yk_slice_axis(g, x, 3, k * size, size));
}

// A table [T,D/2], to broadcast over the heads: [T,1,D/2]
static yk_id table(struct yk_graph *g, yk_id x)
{
	const struct yk_value *v = &g->value[x];
	return yk_cast_acc(g, yk_reshape(g, x, 3, (int64_t[]){ v->dims[0], 1, v->dims[1] }));
}

// a x + b y, or (sub) a x - b y
static yk_id turn(struct yk_graph *g, yk_id a, yk_id x, yk_id b, yk_id y, bool sub)
{
	return yk_bin(g, sub ? YK_SUB : YK_ADD, yk_bin(g, YK_MUL, a, x),
		      yk_bin(g, YK_MUL, b, y));
}

static void decompose_rope(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x0 = half(g, c->in[0], 0), x1 = half(g, c->in[0], 1);
	yk_id cosine = table(g, c->in[1]), sine = table(g, c->in[2]);
	yk_id y[2] = { turn(g, x0, cosine, x1, sine, true),
		       turn(g, x1, cosine, x0, sine, false) };
	for (int k = 0; k < 2; k++)
		y[k] = yk_cast_like(g, y[k], c->in[0]);
	out[0] = yk_record(g, YK_CONCAT, 2, y, 1, &(union yoke_attr){ .i = 3 });
}

static void grad_rope(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]);
	yk_id x = in[0], cosine = in[1], sine = in[2];
	gin[0] = yk_record(g, YK_ROPE, 3,
			   (yk_id[]){ gout[0], cosine, yk_un(g, YK_NEG, sine) }, 0, NULL);
	// by the tables: summed over B and H
	yk_id x0 = half(g, x, 0), x1 = half(g, x, 1);
	yk_id g0 = half(g, gout[0], 0), g1 = half(g, gout[0], 1);
	const unsigned axes = 1u << 0 | 1u << 2;
	gin[1] = yk_reduce(g, YK_SUM, turn(g, g0, x0, g1, x1, false), axes, false);
	gin[2] = yk_reduce(g, YK_SUM, turn(g, g1, x0, g0, x1, true), axes, false);
	gin[1] = yk_cast_like(g, gin[1], cosine);
	gin[2] = yk_cast_like(g, gin[2], sine);
}

YK_OP(ROPE) = { .name = "rope", .code = YOKE_OP_ROPE, .flags = YK_F_FLOAT, .min_in = 3,
	.cast = YK_CAST_INSIDE, .max_in = 3, .nout = 1, .shape = shape_rope, .grad = grad_rope,
	.decompose = decompose_rope, .inplace = { { 0, 0 } }, .ninplace = 1 };

yoke_tensor *yoke_rope(yoke_tensor *x, yoke_tensor *cosine, yoke_tensor *sine)
{
	struct yk_rec r = yk_rec_begin_op(YK_ROPE, 3, (yoke_tensor *[]){ x, cosine, sine });
	return yk_rec_end(&r, yk_record(r.g, YK_ROPE, 3, r.in, 0, NULL));
}
