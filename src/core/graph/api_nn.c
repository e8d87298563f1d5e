// SPDX-License-Identifier: Apache-2.0
// The public named ops and losses.

#include "config.h"

#include <math.h>

#include "base/error.h"
#include "graph/record.h"

// Has the first operand a last axis?
static bool want_axis(struct yk_rec *r)
{
	char text[160];
	const struct yk_value *v = &r->g->value[r->in[0]];
	if (v->rank && yk_is_float(v->dtype))
		return true;
	yk_rec_fail(r, v->rank ? YOKE_EDTYPE : YOKE_ESHAPE,
		    "takes floating point of at least one axis, got %s", yk_describe(v, text));
	return false;
}

// The row takes the last axis.
static yoke_tensor *softmax(const char *call, yoke_tensor *x, int axis, int logarithm)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_SOFTMAX, 0, 1, &x);
	int at;
	if (r.in[0] == YK_BAD || !want_axis(&r) ||
	    (at = yk_rec_axis(&r, r.in[0], axis)) < 0)
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_rec_last(&r, r.in[0], at);
	v = yk_record(r.g, YK_SOFTMAX, 1, &v, 1, &(union yoke_attr){ .i = logarithm });
	return yk_rec_end(&r, yk_rec_last(&r, v, at));
}

yoke_tensor *yoke_softmax(yoke_tensor *x, int axis)
{
	return softmax("softmax", x, axis, 0);
}

yoke_tensor *yoke_log_softmax(yoke_tensor *x, int axis)
{
	return softmax("log_softmax", x, axis, 1);
}

yoke_tensor *yoke_logsumexp(yoke_tensor *x, int axis)
{
	// max + log sum exp(x - max), with the maximum held constant: its gradients cancel
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	int at;
	if (r.in[0] == YK_BAD || !want_axis(&r) ||
	    (at = yk_rec_axis(&r, r.in[0], axis)) < 0)
		return yk_rec_end(&r, YK_BAD);
	struct yk_value shape = r.g->value[r.in[0]];
	unsigned along = 1u << at;
	yk_id v = yk_up(r.g, r.in[0]), y;
	if (shape.dims[at]) {
		// an infinite maximum is the result, and the elements that are equal to it share the gradient
		yk_id most = yk_reduce(r.g, YK_REDUCE_MAX, v, along, true), zero = yk_lit(r.g, yk_acc(shape.dtype), 0);
		yk_id infinite = yk_bin_lit(r.g, YK_EQ, yk_un(r.g, YK_ABS, most), INFINITY);
		yk_id base = yk_tri(r.g, YK_SELECT, infinite, zero, yk_un(r.g, YK_STOP_GRAD, most));
		yk_id e = yk_un(r.g, YK_EXP, yk_bin(r.g, YK_SUB, yk_tri(r.g, YK_SELECT, infinite, zero, v), base));
		yk_id sum = yk_reduce(r.g, YK_SUM, e, along, true);
		y = yk_bin(r.g, YK_ADD, yk_un(r.g, YK_LOG, sum), base);
		y = yk_tri(r.g, YK_SELECT, infinite, most, y);
	} else { // the logarithm of an empty sum
		y = yk_un(r.g, YK_LOG, yk_reduce(r.g, YK_SUM, v, along, true));
	}
	for (int i = at; i < shape.rank - 1; i++)
		shape.dims[i] = shape.dims[i + 1];
	y = yk_reshape(r.g, y, shape.rank - 1, shape.dims);
	return yk_rec_end(&r, yk_down(r.g, y, r.in[0]));
}

// ---- losses ----

// The sum of x over its elements divided by n, in the dtype of `like`.
static yk_id average(struct yk_graph *g, yk_id x, double n, yk_id like)
{
	return yk_down(g, yk_bin_lit(g, YK_MUL, yk_reduce(g, YK_SUM, x, YOKE_ALL, false), 1 / n),
		       like);
}

// Both operands are floating point of one dtype and shape?
static bool want_pair(struct yk_rec *r)
{
	char a[160], b[160];
	if (r->in[0] == YK_BAD || r->in[1] == YK_BAD)
		return false;
	const struct yk_value *x = &r->g->value[r->in[0]], *y = &r->g->value[r->in[1]];
	bool good = yk_is_float(x->dtype) && x->dtype == y->dtype;
	if (good && yk_same_shape(x, y))
		return true;
	yk_rec_fail(r, good ? YOKE_ESHAPE : YOKE_EDTYPE,
		    "takes floating point of one dtype and shape, got %s and %s",
		    yk_describe(x, a), yk_describe(y, b));
	return false;
}

yoke_tensor *yoke_bce_logits(yoke_tensor *x, yoke_tensor *y)
{
	// -y log s(x) - (1 - y) log(1 - s(x)) = max(x, 0) - x y + log(1 + exp(-|x|))
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ x, y });
	if (!want_pair(&r))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_up(r.g, r.in[0]), t = yk_up(r.g, r.in[1]);
	yk_id tail = yk_un(r.g, YK_LOG1P,
			   yk_un(r.g, YK_EXP, yk_un(r.g, YK_NEG, yk_un(r.g, YK_ABS, v))));
	yk_id loss = yk_bin(r.g, YK_SUB, yk_bin_lit(r.g, YK_MAX, v, 0),
			    yk_bin(r.g, YK_MUL, v, t));
	loss = yk_bin(r.g, YK_ADD, loss, tail);
	double n = (double)yk_count(&r.g->value[v]);
	return yk_rec_end(&r, average(r.g, loss, n, r.in[0]));
}

yoke_tensor *yoke_kl(yoke_tensor *p, yoke_tensor *q)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ p, q });
	if (!want_pair(&r) || !want_axis(&r))
		return yk_rec_end(&r, YK_BAD);
	yk_id lp = yk_up(r.g, r.in[0]), lq = yk_up(r.g, r.in[1]);
	struct yk_value v = r.g->value[lp];
	yk_id e = yk_un(r.g, YK_EXP, lp), zero = yk_lit(r.g, v.dtype, 0);
	// 0 log 0 is 0, and so is its gradient: the difference is never infinite there
	yk_id d = yk_tri(r.g, YK_SELECT, yk_bin(r.g, YK_GT, e, zero),
			 yk_bin(r.g, YK_SUB, lp, lq), zero);
	double rows = (double)yk_count(&v) / (double)v.dims[v.rank - 1];
	return yk_rec_end(&r, average(r.g, yk_bin(r.g, YK_MUL, e, d), rows, r.in[0]));
}

// ---- layers ----

yoke_tensor *yoke_swiglu(yoke_tensor *gate, yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 2, (yoke_tensor *[]){ gate, x });
	if (!yk_rec_reals(&r, 2))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_up(r.g, r.in[0]);
	v = yk_bin(r.g, YK_MUL, v, yk_un(r.g, YK_SIGMOID, v));
	v = yk_bin(r.g, YK_MUL, v, yk_up(r.g, r.in[1]));
	return yk_rec_end(&r, yk_down(r.g, v, r.in[0]));
}

yoke_tensor *yoke_rope(yoke_tensor *x, yoke_tensor *cosine, yoke_tensor *sine)
{
	struct yk_rec r = yk_rec_begin_op(YK_ROPE, 3, (yoke_tensor *[]){ x, cosine, sine });
	return yk_rec_end(&r, yk_record(r.g, YK_ROPE, 3, r.in, 0, NULL));
}

yoke_tensor *yoke_layer_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps)
{
	struct yk_rec r = yk_rec_begin_with(YK_LAYER_NORM, 2 | 4, 3, (yoke_tensor *[]){ x, w, b });
	return yk_rec_end(&r, yk_record(r.g, YK_LAYER_NORM, 3, r.in, 1,
					&(union yoke_attr){ .f = eps }));
}

yoke_tensor *yoke_rms_norm(yoke_tensor *x, yoke_tensor *w, double eps)
{
	struct yk_rec r = yk_rec_begin_with(YK_RMS_NORM, 2, 2, (yoke_tensor *[]){ x, w });
	return yk_rec_end(&r, yk_record(r.g, YK_RMS_NORM, 2, r.in, 1,
					&(union yoke_attr){ .f = eps }));
}

yoke_tensor *yoke_batch_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps, yoke_tensor **mean,
			     yoke_tensor **var)
{
	struct yk_rec r = yk_rec_begin_with(YK_BATCH_NORM, 2 | 4, 3, (yoke_tensor *[]){ x, w, b });
	yoke_tensor **const more[] = { mean, var };
	for (int i = 0; i < 2; i++)
		if (more[i])
			*more[i] = NULL;
	const yk_id y = yk_record(r.g, YK_BATCH_NORM, 3, r.in, 1, &(union yoke_attr){ .f = eps });
	for (yk_id i = 0; i < 2 && y != YK_BAD; i++)
		if (more[i] && !(*more[i] = yk_handle_of(r.ctx, y + 1 + i)))
			return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, y);
}

// A mask of bool as numbers, and over all queries and keys, where it has one number for them.
static yk_id attention_mask(struct yk_rec *r, yk_id mask)
{
	struct yk_graph *g = r->g;
	const struct yk_value q = g->value[r->in[0]], k = g->value[r->in[1]];
	if (mask == YK_NIL || q.rank != 4 || k.rank != 4)
		return mask;
	if (g->value[mask].dtype == yoke_bool)
		mask = yk_tri(g, YK_SELECT, mask, yk_lit(g, q.dtype, 0), yk_lit(g, q.dtype, -INFINITY));
	if (mask == YK_BAD || g->value[mask].rank != 4)
		return mask;
	struct yk_value m = g->value[mask];
	const bool spread = (m.dims[2] == 1 && q.dims[1] != 1) || (m.dims[3] == 1 && k.dims[1] != 1);
	m.dims[2] = m.dims[2] == 1 ? q.dims[1] : m.dims[2];
	m.dims[3] = m.dims[3] == 1 ? k.dims[1] : m.dims[3];
	return spread ? yk_broadcast(g, mask, m.rank, m.dims) : mask;
}

// x with zeros behind its last axis, up to so many elements.
static yk_id widened(struct yk_graph *g, yk_id x, int64_t to)
{
	const int64_t lo[YOKE_MAX_RANK] = { 0 };
	int64_t hi[YOKE_MAX_RANK] = { 0 };
	hi[3] = to - g->value[x].dims[3];
	return hi[3] > 0 ? yk_pad(g, x, lo, hi, 0) : x;
}

static yoke_tensor *attention(const char *call, yoke_tensor *const *qkv_mask, yoke_tensor *keys,
			      int causal, double scale, double dropout)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_ATTENTION, 8, 4, qkv_mask);
	r.in[4] = r.in[5] = YK_NIL;
	if (r.in[0] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	r.in[6] = yk_operand(r.ctx, keys, yoke_i64);
	if (!(dropout >= 0 && dropout < 1)) {
		yk_rec_fail(&r, YOKE_ERANGE, "dropout %g is not in [0, 1)", dropout);
		return yk_rec_end(&r, YK_BAD);
	}
	if (dropout > 0 && yk_random_key(r.ctx, &r.in[4], &r.in[5]) < 0)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *x = &r.g->value[r.in[0]];
	if (scale == 0 && x->rank)
		scale = 1 / sqrt((double)x->dims[x->rank - 1]);
	union yoke_attr a[3] = { { .i = causal != 0 }, { .f = scale }, { .f = dropout } };
	if (r.in[1] == YK_BAD || r.in[2] == YK_BAD || r.in[3] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	r.in[3] = attention_mask(&r, r.in[3]);
	// kernels have one width: zeros add nothing to scores, and give columns of zeros
	const struct yk_value q = r.g->value[r.in[0]], v = r.g->value[r.in[2]];
	const bool wide = q.rank == 4 && v.rank == 4 && r.g->value[r.in[1]].rank == 4 && q.dims[3] != v.dims[3] && q.dims[3] &&
			  v.dims[3];
	for (int i = 0; i < 3 && wide; i++)
		r.in[i] = widened(r.g, r.in[i], i < 2 ? v.dims[3] : q.dims[3]);
	yk_id y = yk_record(r.g, YK_ATTENTION, 7, r.in, 3, a);
	if (wide && y != YK_BAD && v.dims[3] < q.dims[3]) {
		const int64_t start[4] = { 0 }, step[4] = { 1, 1, 1, 1 };
		y = yk_slice(r.g, y, start, step, (int64_t[]){ q.dims[0], q.dims[1], q.dims[2], v.dims[3] });
	}
	return yk_rec_end(&r, y);
}

yoke_tensor *yoke_attention(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
			    yoke_tensor *mask, int causal, double scale, double dropout)
{
	return attention("attention", (yoke_tensor *[]){ q, k, v, mask }, YOKE_NONE, causal, scale,
			 dropout);
}

yoke_tensor *yoke_attention_keys(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
				 yoke_tensor *keys, yoke_tensor *mask, int causal,
				 double scale, double dropout)
{
	if (keys == YOKE_NONE) {
		yk_fail(YOKE_EINVAL, "attention_keys: keys is YOKE_NONE and not optional");
		return NULL;
	}
	return attention("attention_keys", (yoke_tensor *[]){ q, k, v, mask }, keys, causal, scale,
			 dropout);
}

yoke_tensor *yoke_cross_entropy(yoke_tensor *logits, yoke_tensor *ids, int64_t ignore,
				double smooth)
{
	struct yk_rec r = yk_rec_begin_op(YK_CROSS_ENTROPY, 2, (yoke_tensor *[]){ logits, ids });
	yk_id x = r.in[0], t = r.in[1];
	if (x == YK_BAD || t == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	struct yk_value v = r.g->value[x], vt = r.g->value[t];
	struct yk_value lead = v;
	lead.rank = v.rank ? v.rank - 1 : 0;
	char a[160], b[160];
	if (!v.rank || !yk_same_shape(&lead, &vt)) {
		yk_rec_fail(&r, YOKE_ESHAPE,
			   "wants [..,V] and [..], got %s and %s", yk_describe(&v, a),
			   yk_describe(&vt, b));
		return yk_rec_end(&r, YK_BAD);
	}
	if (!(smooth >= 0 && smooth < 1)) {
		yk_rec_fail(&r, YOKE_ERANGE,
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
