// SPDX-License-Identifier: Apache-2.0
// The public named ops, gradients and optimizer steps.

#include "config.h"

#include <math.h>

#include "graph/record.h"

static yoke_tensor *softmax(yoke_tensor *x, int logarithm)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	return yk_rec_end(&r, yk_record(r.g, YK_SOFTMAX, 1, r.in, 1,
					&(union yoke_attr){ .i = logarithm }));
}

yoke_tensor *yoke_softmax(yoke_tensor *x)
{
	return softmax(x, 0);
}

yoke_tensor *yoke_log_softmax(yoke_tensor *x)
{
	return softmax(x, 1);
}

yoke_tensor *yoke_logsumexp(yoke_tensor *x)
{
	// max + log sum exp(x - max), with the maximum held constant: its gradients cancel
	struct yk_rec r = yk_rec_begin(1, &x);
	yk_id v = r.in[0];
	if (v == YK_BAD)
		return yk_rec_end(&r, v);
	if (!r.g->value[v].rank) {
		yk_op_fail(r.g, YK_SOFTMAX, YOKE_ESHAPE,
			   "logsumexp takes at least one axis");
		return yk_rec_end(&r, YK_BAD);
	}
	unsigned last = 1u << (r.g->value[v].rank - 1);
	yk_id most =
		yk_un(r.g, YK_STOP_GRAD, yk_reduce(r.g, YK_REDUCE_MAX, v, last, true));
	// of rows of -inf alone: -inf - 0
	yk_id low = yk_lit(r.g, r.g->value[v].dtype, -INFINITY),
	      zero = yk_lit(r.g, r.g->value[v].dtype, 0);
	most = yk_tri(r.g, YK_SELECT, yk_bin(r.g, YK_EQ, most, low), zero, most);
	yk_id e = yk_un(r.g, YK_EXP, yk_bin(r.g, YK_SUB, v, most));
	yk_id y = yk_bin(r.g, YK_ADD,
			 yk_un(r.g, YK_LOG, yk_reduce(r.g, YK_SUM, e, last, true)), most);
	struct yk_value shape = r.g->value[v];
	return yk_rec_end(&r, yk_reshape(r.g, y, shape.rank - 1, shape.dims));
}

yoke_tensor *yoke_layer_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps)
{
	struct yk_rec r = yk_rec_begin(3, (yoke_tensor *[]){ x, w, b });
	return yk_rec_end(&r, yk_record(r.g, YK_LAYER_NORM, 3, r.in, 1,
					&(union yoke_attr){ .f = eps }));
}

yoke_tensor *yoke_rms_norm(yoke_tensor *x, yoke_tensor *w, double eps)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, w });
	return yk_rec_end(&r, yk_record(r.g, YK_RMS_NORM, 2, r.in, 1,
					&(union yoke_attr){ .f = eps }));
}

yoke_tensor *yoke_attention(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
			    yoke_tensor *mask, int causal, double scale, double dropout)
{
	return yoke_attention_keys(q, k, v, YOKE_NONE, mask, causal, scale, dropout);
}

yoke_tensor *yoke_attention_keys(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
				 yoke_tensor *keys, yoke_tensor *mask, int causal,
				 double scale, double dropout)
{
	struct yk_rec r = yk_rec_begin(4, (yoke_tensor *[]){ q, k, v, mask });
	r.in[4] = r.in[5] = YK_NIL;
	if (r.in[0] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	r.in[6] = yk_operand(r.ctx, keys, yoke_i64);
	if (!(dropout >= 0 && dropout < 1)) {
		yk_op_fail(r.g, YK_ATTENTION, YOKE_ERANGE, "dropout %g is not in [0, 1)",
			   dropout);
		return yk_rec_end(&r, YK_BAD);
	}
	if (dropout > 0 && yk_random_key(r.ctx, &r.in[4], &r.in[5]) < 0)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *x = &r.g->value[r.in[0]];
	if (scale == 0 && x->rank)
		scale = 1 / sqrt((double)x->dims[x->rank - 1]);
	union yoke_attr a[3] = { { .i = causal != 0 }, { .f = scale }, { .f = dropout } };
	return yk_rec_end(&r, yk_record(r.g, YK_ATTENTION, 7, r.in, 3, a));
}

yoke_tensor *yoke_cross_entropy(yoke_tensor *logits, yoke_tensor *ids, int64_t ignore,
				double smooth)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ logits, ids });
	yk_id x = r.in[0], t = r.in[1];
	if (x == YK_BAD || t == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	struct yk_value v = r.g->value[x], vt = r.g->value[t];
	struct yk_value lead = v;
	lead.rank = v.rank ? v.rank - 1 : 0;
	char a[160], b[160];
	if (!v.rank || !yk_same_shape(&lead, &vt)) {
		yk_op_fail(r.g, YK_CROSS_ENTROPY, YOKE_ESHAPE,
			   "wants [..,V] and [..], got %s and %s", yk_describe(&v, a),
			   yk_describe(&vt, b));
		return yk_rec_end(&r, YK_BAD);
	}
	if (!(smooth >= 0 && smooth < 1)) {
		yk_op_fail(r.g, YK_CROSS_ENTROPY, YOKE_ERANGE,
			   "smoothing %g is not in [0, 1)", smooth);
		return yk_rec_end(&r, YK_BAD);
	}
	if (v.rank != 2) {
		int64_t rows = yk_count(&vt);
		x = yk_reshape(r.g, x, 2, (int64_t[]){ rows, v.dims[v.rank - 1] });
		t = yk_reshape(r.g, t, 1, &rows);
	}
	return yk_rec_end(
		&r, yk_record(r.g, YK_CROSS_ENTROPY, 2, (yk_id[]){ x, t }, 2,
			      (union yoke_attr[]){ { .i = ignore }, { .f = smooth } }));
}
