// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: the likelihood of labels under all alignments with the
// steps of a sequence, in log space. There is no decomposition: where a device has no kernel the
// CPU runs the op.
#include "config.h"

#include <math.h>

#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

// x [T,N,C], targets [N,S], steps [N], labels [N] -> loss [N], alpha [N,T,2S+1]; attr: blank
static int shape_ctc(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *t = IN(1);
	if (x->dtype != yoke_f32 && x->dtype != yoke_f64)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32 or f64, got", x);
	if (t->dtype != yoke_i64)
		return fail_two(g, c, YOKE_EDTYPE, "takes targets i64, got", x, t);
	if (x->rank != 3 || t->rank != 2 || t->dims[0] != x->dims[1])
		return fail_two(g, c, YOKE_ESHAPE, "takes [T,N,C] and targets [N,S], got", x, t);
	for (uint32_t k = 2; k < 4; k++)
		if (IN(k)->dtype != yoke_i64 || IN(k)->rank != 1 || IN(k)->dims[0] != x->dims[1])
			return fail_two(g, c, YOKE_ESHAPE, "takes [T,N,C] and lengths i64 [N], got",
					x, IN(k));
	if (c->attr[0].i < 0 || c->attr[0].i >= x->dims[2])
		return fail_one(g, c, YOKE_ERANGE, "the blank is no class of", x);
	out[0] = out[1] = *x;
	out[0].rank = 1;
	out[0].dims[0] = x->dims[1];
	out[1].dims[0] = x->dims[1];
	out[1].dims[1] = x->dims[0];
	out[1].dims[2] = 2 * t->dims[1] + 1;
	return want_size(g, c, &out[1]);
}

static int shape_backward(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	out[0] = *IN(0);
	(void)g;
	return 0;
}

static void grad_ctc(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const yk_id in[] = { n.in[0], n.in[1], n.in[2], n.in[3], n.y, n.y + 1, gout[0] };
	gin[0] = yk_record(g, YK_CTC_BACKWARD, 7, in, 1, n.attr);
}

YK_OP(CTC) = { .name = "ctc",
	       .code = YOKE_OP_CTC,
	       .flags = YK_F_PARTIAL,
	       .cast = YK_CAST_F32,
	       .min_in = 4,
	       .max_in = 4,
	       .nout = 2,
	       .shape = shape_ctc,
	       .grad = grad_ctc };
YK_OP(CTC_BACKWARD) = { .name = "ctc_backward",
			.code = YOKE_OP_CTC_BACKWARD,
			.min_in = 7,
			.max_in = 7,
			.nout = 1,
			.shape = shape_backward };

yoke_tensor *yoke_loss_ctc(yoke_tensor *x, yoke_tensor *targets, yoke_tensor *steps,
			   yoke_tensor *labels, int64_t blank, int reduction, int zero_infinity)
{
	struct yk_rec r =
		yk_rec_begin_op(YK_CTC, 4, (yoke_tensor *[]){ x, targets, steps, labels });
	struct yk_graph *g = r.g;
	yk_id loss = yk_record(g, YK_CTC, 4, r.in, 1, &(union yoke_attr){ .i = blank });
	if (loss == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	if (reduction < YOKE_LOSS_MEAN || reduction > YOKE_LOSS_NONE) {
		yk_rec_fail(&r, YOKE_EINVAL, "reduction %d is none of yoke_reduction, 0 to 2",
			    reduction);
		return yk_rec_end(&r, YK_BAD);
	}
	const int dtype = g->value[loss].dtype;
	if (zero_infinity)
		loss = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, loss, yk_lit(g, dtype, INFINITY)),
			      yk_lit(g, dtype, 0), loss);
	if (reduction == YOKE_LOSS_MEAN) {
		loss = yk_bin(g, YK_DIV, loss,
			      yk_cast(g, yk_bin_lit(g, YK_MAX, r.in[3], 1), dtype));
		loss = yk_mean(g, loss, YOKE_ALL, false);
	} else if (reduction == YOKE_LOSS_SUM) {
		loss = yk_reduce(g, YK_SUM, loss, YOKE_ALL, false);
	}
	return yk_rec_end(&r, loss);
}
