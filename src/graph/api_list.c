// SPDX-License-Identifier: Apache-2.0
// The public functions that take lists of tensors: gradients, optimizer steps, barriers.

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/record.h"

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
			if (v == YK_NIL && list[l])
				yk_op_fail(&ctx->graph, YK_LEAF, YOKE_EINVAL,
					   "tensor %d of list %d is absent", i, l);
			if (v == YK_BAD || (v == YK_NIL && list[l])) {
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
	const struct yk_tensor *first = yk_enter_of(t[0], what);
	if (!first)
		return NULL;
	first->ctx->graph.call = what;
	return first->ctx;
}

// Options as this side knows them: the caller's over the defaults that are there.
static bool options(void *to, size_t size, const void *from, const char *what)
{
	size_t given = 0;
	if (from)
		memcpy(&given, from, sizeof given);
	if (given < sizeof given) {
		yk_fail(YOKE_EINVAL, "%s: set size to sizeof(struct yoke_%.*s)", what,
			(int)strcspn(what, "_"), what);
		return false;
	}
	given = given < size ? given : size;
	memcpy(to, from, given - given % sizeof(void *)); // half a pointer is none
	return true;
}

// The dtype in which an optimizer takes scalars for tensors like the first of a list of values.
static int acc_of(const struct yoke_context *ctx, const yk_id *in)
{
	return yk_acc(ctx->graph.value[in[0]].dtype);
}

// Results are NULL after an error, so that what is recorded with them hands it on.
static int results(int err, int n, yoke_tensor **to)
{
	for (int i = 0; err && i < n; i++)
		to[i] = NULL;
	return err;
}

int yoke_grad(yoke_tensor *y, int n, yoke_tensor *const *p, yoke_tensor **g)
{
	struct yoke_context *ctx = enter_list(n, p, "grad");
	if (!ctx)
		return results(yk_error_last(), n, g);
	int err = 0;
	struct yk_graph *graph = &ctx->graph;
	yk_id *in = NULL, *out = NULL, *grads, id = yk_operand(ctx, y, yoke_f32);
	char text[160];
	if (id == YK_BAD || id == YK_NIL) {
		err = id == YK_BAD ? yk_error_last() :
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
	if (!(in = lists(ctx, n, 1, &p, 0))) {
		err = yk_error_last();
		goto leave;
	}
	if (!(out = malloc((size_t)n * sizeof *out))) {
		err = yk_fail(YOKE_ENOMEM, "grad: no memory");
		goto leave;
	}
	grads = out;
	if ((err = yk_past_check(ctx, id, (uint32_t)n, p, in)) < 0 ||
	    (err = yk_backward(graph, id, (uint32_t)n, in, grads)) < 0)
		goto leave;
	for (int i = 0; i < n && !err; i++) {
		if (grads[i] == YK_NIL)
			grads[i] = yk_full_like(graph, in[i], 0);
		if (grads[i] == YK_BAD)
			err = yk_error_last();
	}
	if (!err)
		err = yk_recorded(ctx);
	for (int i = 0; i < n && !err; i++)
		if (!(g[i] = yk_handle_of(ctx, grads[i])))
			err = yk_error_last();
leave:
	free(in);
	free(out);
	yk_leave(ctx);
	return results(err, n, g);
}

// The variables of several lists of n, one list behind another; NULL after an error.
static struct yk_tensor **variables(const struct yoke_context *ctx, int op, int n, int count,
				    yoke_tensor *const *const *list)
{
	struct yk_tensor **v = malloc((size_t)n * (size_t)count * sizeof *v);
	if (!v) {
		yk_fail(YOKE_ENOMEM, "no memory for %d variables", n * count);
		return NULL;
	}
	for (int l = 0; l < count; l++)
		for (int i = 0; i < n; i++) {
			struct yk_tensor *t = list[l] ? yk_tensor(list[l][i], ctx->graph.call) : NULL;
			v[l * n + i] = t;
			if (!list[l] || (t && t->kind == YK_VARIABLE))
				continue;
			if (t)
				yk_op_fail(&ctx->graph, op, YOKE_EINVAL,
					   "tensor %d of list %d is no variable", i, l);
			free(v);
			return NULL;
		}
	return v;
}

// Records a list op and assigns its lists of results to variables: all, or after an error none.
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
	for (uint32_t i = 0; i < c.nin; i++)
		if (in[i] == YK_BAD)
			return yk_error_last();
	struct yk_tensor **var = variables(ctx, op, n, outs, to);
	yk_id out;
	int err = var ? yk_append(&ctx->graph, &c, &out) : yk_error_last();
	if (!err)
		err = yk_recorded(ctx);
	if (!err)
		err = yk_roots_reserve(ctx, (size_t)(n * outs));
	for (int i = 0; i < n * outs && !err; i++)
		if (var[i])
			err = yk_assign(var[i], out + (yk_id)i);
	free(var);
	return err;
}

// A step with two moments: single are lr, c1, c2 and the scale.
static int moments_step(int op, const char *what, int n, yoke_tensor *const *p,
			yoke_tensor *const *g, yoke_tensor *const *m,
			yoke_tensor *const *v, yoke_tensor *const *single, int nattr,
			const union yoke_attr *attr)
{
	struct yoke_context *ctx = enter_list(n, p, what);
	if (!ctx)
		return yk_error_last();
	int err = 0;
	yk_id *in = lists(ctx, n, 4, (yoke_tensor *const *const[]){ p, g, m, v }, 4);
	if (in) {
		for (int i = 0; i < 4; i++)
			in[4 * n + i] = yk_operand(ctx, single[i], acc_of(ctx, in));
		err = step(ctx, op, n, 4, in, 4, nattr, attr, 3,
			   (yoke_tensor *const *const[]){ p, m, v });
	} else {
		err = yk_error_last();
	}
	free(in);
	yk_leave(ctx);
	return err;
}

int yoke_adamw_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		    yoke_tensor *const *m, yoke_tensor *const *v,
		    const struct yoke_adamw *given)
{
	struct yoke_adamw all = { .lr = YOKE_NONE, .c1 = YOKE_NONE, .c2 = YOKE_NONE, .scale = YOKE_NONE };
	const struct yoke_adamw *o = &all;
	if (!options(&all, sizeof all, given, "adamw_step"))
		return YOKE_EINVAL;
	union yoke_attr a[] = { { .f = o->beta1 },
				{ .f = o->beta2 },
				{ .f = o->eps },
				{ .f = o->weight_decay } };
	yoke_tensor *single[] = { o->lr, o->c1, o->c2, o->scale };
	return moments_step(YK_MULTI_ADAMW, "adamw_step", n, p, g, m, v, single, 4, a);
}

int yoke_lamb_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		   yoke_tensor *const *m, yoke_tensor *const *v, const struct yoke_lamb *given)
{
	struct yoke_lamb all = { .lr = YOKE_NONE, .c1 = YOKE_NONE, .c2 = YOKE_NONE, .scale = YOKE_NONE };
	const struct yoke_lamb *o = &all;
	if (!options(&all, sizeof all, given, "lamb_step"))
		return YOKE_EINVAL;
	if (!(o->least >= 0 && o->most >= 0) || (o->most > 0 && o->most < o->least))
		return yk_fail(YOKE_EINVAL, "lamb_step: no norm is in %g..%g", o->least,
			       o->most);
	union yoke_attr a[] = { { .f = o->beta1 },
				{ .f = o->beta2 },
				{ .f = o->eps },
				{ .f = o->weight_decay },
				{ .f = o->least },
				{ .f = o->most > 0 ? o->most : INFINITY },
				{ .i = !o->plain } };
	yoke_tensor *single[] = { o->lr, o->c1, o->c2, o->scale };
	return moments_step(YK_MULTI_LAMB, "lamb_step", n, p, g, m, v, single, 7, a);
}

int yoke_sgd_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		  yoke_tensor *const *b, const struct yoke_sgd *given)
{
	struct yoke_sgd all = { .lr = YOKE_NONE, .first = YOKE_NONE, .scale = YOKE_NONE };
	const struct yoke_sgd *o = &all;
	if (!options(&all, sizeof all, given, "sgd_step"))
		return YOKE_EINVAL;
	struct yoke_context *ctx = enter_list(n, p, "sgd_step");
	if (!ctx)
		return yk_error_last();
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
		err = yk_error_last();
	if (!err) {
		yoke_tensor *single[3] = { o->lr, o->first, o->scale };
		for (int i = 0; i < 3; i++)
			in[3 * n + i] = yk_operand(ctx, single[i], acc_of(ctx, in));
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

int yoke_unscale_check(int n, yoke_tensor *const *g, yoke_tensor *scale, yoke_tensor **to,
		       yoke_tensor **overflow)
{
	struct yoke_context *ctx = enter_list(n, g, "unscale_check");
	if (!ctx)
		return results(results(yk_error_last(), n, to), 1, overflow);
	int err = 0;
	yk_id out, *in = lists(ctx, n, 1, &g, 1);
	if (in)
		in[n] = yk_operand(ctx, scale, acc_of(ctx, in));
	struct yk_call c = { .op = YK_MULTI_UNSCALE,
			     .list = (uint32_t)n,
			     .nin = (uint32_t)n + 1,
			     .in = in };
	if (!in || in[n] == YK_BAD)
		err = yk_error_last();
	else
		err = yk_append(&ctx->graph, &c, &out);
	if (!err)
		err = yk_recorded(ctx);
	for (int i = 0; i <= n && !err; i++) {
		yoke_tensor **t = i < n ? &to[i] : overflow;
		if (!(*t = yk_handle_of(ctx, out + (yk_id)i)))
			err = yk_error_last();
	}
	free(in);
	yk_leave(ctx);
	return results(results(err, n, to), 1, overflow);
}

int yoke_barrier(int n, yoke_tensor *const *x, int m, yoke_tensor *const *after,
		 yoke_tensor **to)
{
	struct yoke_context *ctx = enter_list(n, x, "barrier");
	if (!ctx)
		return results(yk_error_last(), n, to);
	int err = 0;
	yk_id out, *in = m < 0 ? NULL : lists(ctx, n, 1, &x, m);
	if (m < 0)
		err = yk_fail(YOKE_EINVAL, "barrier: after %d values", m);
	else if (!in)
		err = yk_error_last();
	for (int i = 0; i < m && !err; i++) {
		in[n + i] = yk_operand(ctx, after[i], yoke_f32);
		if (in[n + i] == YK_NIL)
			yk_fail(YOKE_EINVAL, "barrier: after nothing");
		if (in[n + i] == YK_NIL || in[n + i] == YK_BAD)
			err = yk_error_last();
	}
	struct yk_call c = { .op = YK_BARRIER,
			     .list = (uint32_t)n,
			     .nin = (uint32_t)(n + m),
			     .in = in };
	if (!err)
		err = yk_append(&ctx->graph, &c, &out);
	if (!err)
		err = yk_recorded(ctx);
	for (int i = 0; i < n && !err; i++)
		if (!(to[i] = yk_handle_of(ctx, out + (yk_id)i)))
			err = yk_error_last();
	free(in);
	yk_leave(ctx);
	return results(err, n, to);
}
