// SPDX-License-Identifier: Apache-2.0
// The public named ops, gradients and optimizer steps.

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
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

// ---- lists ----

// The tensors of several lists of n as values, one list behind another, and room for `more` behind.
// NULL after an error.  A list that is NULL is absent.
static yk_id *lists(struct yoke_context *ctx, int n, int count,
		    yoke_tensor *const *const *list, int more)
{
	yk_id *in = malloc(((size_t)n * (size_t)count + (size_t)more) * sizeof *in);
	if (!in) {
		yk_fail(YOKE_ENOMEM, "no memory for %d operands", n * count);
		return NULL;
	}
	for (int l = 0; l < count; l++)
		for (int i = 0; i < n; i++) {
			yk_id v =
				list[l] ? yk_operand(ctx, list[l][i], yoke_f32) : YK_NIL;
			if (v == YK_BAD || (v == YK_NIL && list[l])) {
				if (!yoke_error_code())
					yk_fail(YOKE_EINVAL,
						"a tensor of a list is absent");
				free(in);
				return NULL;
			}
			in[l * n + i] = v;
		}
	return in;
}

static struct yoke_context *enter_list(int n, yoke_tensor *const *t, const char *what)
{
	if (n < 1 || !t || !t[0] || t[0] == YOKE_NONE) {
		if (!yoke_error_code())
			yk_fail(YOKE_EINVAL, "%s: takes at least one tensor", what);
		return NULL;
	}
	return yk_enter(t[0]->ctx) < 0 ? NULL : t[0]->ctx;
}

int yoke_grad(yoke_tensor *y, int n, yoke_tensor *const *p, yoke_tensor **g)
{
	struct yoke_context *ctx = enter_list(n, p, "grad");
	if (!ctx)
		return yoke_error_code();
	int err = 0;
	struct yk_graph *graph = &ctx->graph;
	yk_id *in = NULL, *out = NULL, *grads, id = yk_operand(ctx, y, yoke_f32);
	char text[160];
	if (id == YK_BAD || id == YK_NIL) {
		err = id == YK_BAD ? yoke_error_code() :
				     yk_fail(YOKE_EINVAL, "grad: of nothing");
		goto leave;
	}
	if (yk_count(&graph->value[id]) != 1 || !yk_is_float(graph->value[id].dtype)) {
		err = yk_fail(
			YOKE_ESHAPE,
			"grad: takes one floating-point number, got %s; sum it first",
			yk_describe(&graph->value[id], text));
		goto leave;
	}
	if (!(in = lists(ctx, n, 1, &p, 0)) || !(out = malloc((size_t)n * sizeof *out))) {
		err = yoke_error_code() ? yoke_error_code() :
					  yk_fail(YOKE_ENOMEM, "grad: no memory");
		goto leave;
	}
	grads = out;
	if ((err = yk_backward(graph, id, (uint32_t)n, in, grads)) < 0)
		goto leave;
	for (int i = 0; i < n && !err; i++) {
		if (grads[i] == YK_NIL)
			grads[i] = yk_full_like(graph, in[i], 0);
		if (grads[i] == YK_BAD)
			err = yoke_error_code();
	}
	if (!err)
		err = yk_recorded(ctx);
	for (int i = 0; i < n && !err; i++)
		if (!(g[i] = yk_handle_of(ctx, grads[i])))
			err = yoke_error_code();
leave:
	free(in);
	free(out);
	yk_leave(ctx);
	return err;
}

// Records a list op and assigns its lists of results to variables.
static int step(struct yoke_context *ctx, int op, int n, int nlists, yk_id *in,
		int singles, int nattr, const union yoke_attr *attr, int outs,
		yoke_tensor *const *const *to)
{
	struct yk_call c = { .op = (uint16_t)op,
			     .list = (uint32_t)n,
			     .nin = (uint32_t)(nlists * n + singles),
			     .in = in,
			     .nattr = (uint32_t)nattr,
			     .attr = attr };
	yk_id out;
	for (uint32_t i = 0; i < c.nin; i++)
		if (in[i] == YK_BAD)
			return yoke_error_code();
	int err = yk_append(&ctx->graph, &c, &out);
	if (!err)
		err = yk_recorded(ctx);
	for (int l = 0; l < outs && !err; l++)
		for (int i = 0; i < n && !err && to[l]; i++) {
			yoke_tensor *t = to[l][i];
			if (t->kind != YK_VARIABLE)
				return yk_op_fail(&ctx->graph, op, YOKE_EINVAL,
						  "tensor %d of list %d is no variable",
						  i, l);
			t->id = out + (yk_id)(l * n + i);
			t->epoch = ctx->epoch;
			err = yk_root(t);
		}
	return err;
}

int yoke_adamw_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		    yoke_tensor *const *m, yoke_tensor *const *v,
		    const struct yoke_adamw *o)
{
	struct yoke_context *ctx = enter_list(n, p, "adamw_step");
	if (!ctx)
		return yoke_error_code();
	int err = 0;
	yk_id *in = lists(ctx, n, 4, (yoke_tensor *const *const[]){ p, g, m, v }, 4);
	if (in) {
		yoke_tensor *single[4] = { o->lr, o->c1, o->c2, o->scale };
		for (int i = 0; i < 4; i++)
			in[4 * n + i] = yk_operand(ctx, single[i], yk_acc(p[0]->dtype));
		union yoke_attr a[4] = { { .f = o->beta1 },
					 { .f = o->beta2 },
					 { .f = o->eps },
					 { .f = o->weight_decay } };
		err = step(ctx, YK_MULTI_ADAMW, n, 4, in, 4, 4, a, 3,
			   (yoke_tensor *const *const[]){ p, m, v });
	} else {
		err = yoke_error_code();
	}
	free(in);
	yk_leave(ctx);
	return err;
}

int yoke_sgd_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		  yoke_tensor *const *b, const struct yoke_sgd *o)
{
	struct yoke_context *ctx = enter_list(n, p, "sgd_step");
	if (!ctx)
		return yoke_error_code();
	int err = 0;
	yk_id *in = NULL;
	if (o->nesterov && (o->momentum <= 0 || o->dampening != 0))
		err = yk_fail(YOKE_EINVAL,
			      "sgd_step: nesterov needs momentum > 0 and dampening 0, "
			      "got %g and %g",
			      o->momentum, o->dampening);
	else if ((o->momentum != 0) != (b != NULL))
		err = yk_fail(YOKE_EINVAL, "sgd_step: momentum %g and %s list of buffers",
			      o->momentum, b ? "a" : "no");
	else if (!(in = lists(ctx, n, 3, (yoke_tensor *const *const[]){ p, g, b }, 3)))
		err = yoke_error_code();
	if (!err) {
		yoke_tensor *single[3] = { o->lr, o->first, o->scale };
		for (int i = 0; i < 3; i++)
			in[3 * n + i] = yk_operand(ctx, single[i], yk_acc(p[0]->dtype));
		union yoke_attr a[4] = { { .f = o->momentum },
					 { .f = o->dampening },
					 { .f = o->weight_decay },
					 { .i = o->nesterov != 0 } };
		err = step(ctx, YK_MULTI_SGD, n, 3, in, 3, 4, a, 2,
			   (yoke_tensor *const *const[]){ p, b });
	}
	free(in);
	yk_leave(ctx);
	return err;
}

yoke_tensor *yoke_global_norm(int n, yoke_tensor *const *x)
{
	struct yoke_context *ctx = enter_list(n, x, "global_norm");
	if (!ctx)
		return NULL;
	yoke_tensor *t = NULL;
	yk_id out, *in = lists(ctx, n, 1, &x, 0);
	struct yk_call c = {
		.op = YK_MULTI_NORM, .list = (uint32_t)n, .nin = (uint32_t)n, .in = in
	};
	if (in && !yk_append(&ctx->graph, &c, &out) && !yk_recorded(ctx))
		t = yk_handle_of(ctx, out);
	free(in);
	yk_leave(ctx);
	return t;
}
