// SPDX-License-Identifier: Apache-2.0
// check_finite: the identity; the evaluation fails if it meets a NaN or an infinity.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

static int shape_check(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(0);
	return want_float(g, c, out);
}

YK_OP(CHECK_FINITE) = { .name = "check_finite", .code = YOKE_OP_CHECK, .flags = YK_F_FLOAT,
	.min_in = 1, .max_in = 1, .nout = 1, .shape = shape_check,
	.grad = yk_grad_contiguous, .inplace = { { 0, 0 } }, .ninplace = 1 };

yoke_tensor *yoke_check_finite(yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	return yk_rec_end(&r, yk_un(r.g, YK_CHECK_FINITE, r.in[0]));
}
