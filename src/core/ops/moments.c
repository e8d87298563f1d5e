// SPDX-License-Identifier: Apache-2.0
// Moments of the rows of a matrix: count, mean, sums of squares, extremes. The decomposition takes
// two passes in f64, which also gives the gradient.
#include "config.h"

#include <math.h>

#include "base/error.h"
#include "base/sized.h"
#include "graph/record.h"
#include "ops/rules.h"

// x [M,C], weight [M] or none -> n [], mean [C], squares [C,C] or [C], min [C], max [C]; attr:
// diagonal
static int shape_moments(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (want_float(g, c, x) < 0)
		return yk_error_last();
	if (x->rank != 2)
		return fail_one(g, c, YOKE_ESHAPE, "takes a matrix of observations [M,C], got", x);
	const int64_t channels = x->dims[1];
	struct yk_value weight = { .dtype = x->dtype, .rank = 1, .dims = { x->dims[0] } };
	if (want_like(g, c, 1, &weight) < 0)
		return yk_error_last();
	out[0] = (struct yk_value){ .dtype = yoke_f64 };
	out[1] = (struct yk_value){ .dtype = yoke_f64, .rank = 1, .dims = { channels } };
	out[2] = out[1];
	if (!c->attr[0].i) {
		out[2].rank = 2;
		out[2].dims[1] = channels;
	}
	out[3] = out[4] = (struct yk_value){ .dtype = x->dtype, .rank = 1, .dims = { channels } };
	return want_size(g, c, &out[2]);
}

// The minimum or maximum along axis 0 of [M,C]; `none` if no row counts.
static yk_id extreme(struct yk_graph *g, yk_id x, yk_id counts, int op, double none)
{
	if (x == YK_BAD)
		return x;
	const struct yk_value v = g->value[x];
	const yk_id far = yk_lit(g, v.dtype, none);
	if (!v.dims[0])
		return yk_broadcast(g, far, 1, &v.dims[1]);
	return yk_reduce(g, op, counts == YK_NIL ? x : yk_tri(g, YK_SELECT, counts, x, far), 1,
			 false);
}

static void decompose_moments(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value v = g->value[c->in[0]];
	const bool weighed = c->in[1] != YK_NIL;
	const yk_id one = yk_lit(g, yoke_f64, 1);
	yk_id x = yk_cast(g, c->in[0], yoke_f64), w = YK_NIL, counts = YK_NIL, n, under;
	if (weighed) {
		const yk_id upright = yk_reshape(g, c->in[1], 2, (int64_t[]){ v.dims[0], 1 });
		counts = yk_bin_lit(g, YK_NE, upright, 0);
		w = yk_cast(g, upright, yoke_f64);
		n = yk_reduce(g, YK_SUM, w, 3, false);
		under = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, n, 0), one, n);
		x = yk_tri(g, YK_SELECT, counts, x, yk_lit(g, yoke_f64, 0));
	} else {
		n = yk_lit(g, yoke_f64, (double)v.dims[0]);
		under = v.dims[0] ? n : one;
	}
	const yk_id sum = yk_reduce(g, YK_SUM, weighed ? yk_bin(g, YK_MUL, x, w) : x, 1, true);
	const yk_id mean = yk_bin(g, YK_DIV, sum, under), d = yk_bin(g, YK_SUB, x, mean);
	const yk_id dw = weighed ? yk_bin(g, YK_MUL, d, w) : d;
	out[0] = n;
	out[1] = yk_reshape(g, mean, 1, &v.dims[1]);
	out[2] = c->attr[0].i ? yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, d, dw), 1, false) :
				yk_matmul(g, d, dw, YOKE_TA);
	out[3] = extreme(g, c->in[0], counts, YK_REDUCE_MIN, INFINITY);
	out[4] = extreme(g, c->in[0], counts, YK_REDUCE_MAX, -INFINITY);
}

YK_OP(MOMENTS) = { .name = "moments", .code = YOKE_OP_MOMENTS, .flags = YK_F_FLOAT | YK_F_PARTIAL,
	.cast = YK_CAST_F32, .min_in = 2, .max_in = 2, .nout = 5, .shape = shape_moments,
	.decompose = decompose_moments };

int yoke_moments(yoke_tensor *x, yoke_tensor *weight, int diagonal, struct yoke_moments *to)
{
	struct yoke_moments m = { .size = sizeof m };
	yoke_tensor **result[] = { &m.weight, &m.mean, &m.square, &m.min, &m.max };
	int err = yk_sized_check(to, sizeof to->size, "moments", "yoke_moments");
	if (err < 0)
		return err;
	struct yk_rec r = yk_rec_begin_with(YK_MOMENTS, 2, 2, (yoke_tensor *[]){ x, weight });
	yk_id out =
		yk_record(r.g, YK_MOMENTS, 2, r.in, 1, &(union yoke_attr){ .i = diagonal != 0 });
	for (uint32_t k = 1; k < 5 && out != YK_BAD; k++)
		if (!(*result[k] = yk_handle_of(r.ctx, out + k)))
			out = YK_BAD;
	if (!(m.weight = yk_rec_end(&r, out)))
		m = (struct yoke_moments){ .size = sizeof m };
	err = yk_sized_write(to, sizeof m, &m, "moments", "yoke_moments");
	return m.weight ? err : yk_error_last();
}
