// SPDX-License-Identifier: Apache-2.0
// Gradients (yoke_grad, yoke_grad_from), and helpers of functions that take lists of tensors.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/autocast.h"
#include "graph/record.h"

yk_id *yk_lists(struct yoke_context *ctx, int n, int count,
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

yk_id *yk_rec_list(struct yk_rec *r, const char *call, int op, int n, yoke_tensor *const *x)
{
	*r = (struct yk_rec){ .n = 0 };
	if (n < 1 || !x) {
		if (!yoke_error_code())
			yk_fail(YOKE_EINVAL,
				n < 1 ? "%s: %d tensors" : "%s: the list of %d tensors is NULL",
				call, n);
		return NULL;
	}
	*r = yk_rec_begin_as(call, YK_LEAF, 0, 1, x);
	yk_id *in = malloc((size_t)n * (sizeof *in + 1));
	uint8_t *dtype = (uint8_t *)(in + n);
	bool good = in && r->in[0] != YK_BAD;
	if (!in)
		yk_fail(YOKE_ENOMEM, "%s: no memory for %d tensors", call, n);
	for (int i = 0; i < n && good; i++) {
		in[i] = i ? yk_operand(r->ctx, x[i], r->g->value[in[0]].dtype) : r->in[0];
		if (in[i] == YK_NIL)
			yk_rec_fail(r, YOKE_EINVAL, "tensor %d is YOKE_NONE", i);
		good = in[i] != YK_BAD && in[i] != YK_NIL;
		dtype[i] = good ? r->g->value[in[i]].dtype : 0;
	}
	if (good && op != YK_LEAF && r->ctx->autocast.setting.dtype)
		yk_autocast_dtypes(r->ctx, op, n, dtype);
	for (int i = 0; i < n && good; i++)
		good = (in[i] = yk_cast(r->g, in[i], dtype[i])) != YK_BAD;
	if (good)
		return in;
	free(in);
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct yk_tensor *const *x = a, *const *y = b;
	return (*x > *y) - (*x < *y);
}

int yk_lists_once(size_t n, struct yk_tensor *const *var, const char *call)
{
	struct yk_tensor **sorted = malloc((n + 1) * sizeof *sorted);
	int err = sorted ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for %zu variables", call, n);
	if (!err) {
		memcpy(sorted, var, n * sizeof *sorted);
		qsort(sorted, n, sizeof *sorted, by_address);
	}
	for (size_t i = 1; i < n && !err; i++)
		if (sorted[i] == sorted[i - 1])
			err = yk_fail(
				YOKE_EINVAL,
				"%s: variable %s is given twice; one of both values would be lost",
				call, sorted[i]->name ? sorted[i]->name : "without a name");
	free(sorted);
	return err;
}

struct yoke_context *yk_enter_list(int n, yoke_tensor *const *t, const char *what)
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

struct yoke_context *yk_enter_list_to(int n, yoke_tensor *const *t, yoke_tensor **to,
				      const char *what)
{
	return yk_require_as(to, what, "list of results") ? NULL : yk_enter_list(n, t, what);
}

int yk_results(int err, int n, yoke_tensor **to)
{
	for (int i = 0; err && to && i < n; i++)
		to[i] = NULL;
	return err;
}

int yk_gradients(struct yoke_context *ctx, int m, const yk_id *y, const yk_id *cot, int n,
		 yoke_tensor *const *p, const yk_id *in, yk_id *out)
{
	int err = 0;
	for (int k = 0; k < m && !err; k++)
		err = yk_past_check(ctx, y[k], (uint32_t)n, p, in);
	return err ? err : yk_backward(&ctx->graph, (uint32_t)m, y, cot, (uint32_t)n, in, out);
}

// Handles of the gradients by p of m values, given their cotangents (NULL: 1); call inside the
// context.
static int gradients(struct yoke_context *ctx, int m, const yk_id *y, const yk_id *cot, int n,
		     yoke_tensor *const *p, yoke_tensor **g)
{
	struct yk_graph *graph = &ctx->graph;
	yk_id *out = NULL, *in = yk_lists(ctx, n, 1, &p, 0);
	int err = in ? 0 : yk_error_last();
	if (!err && !(out = malloc((size_t)n * sizeof *out)))
		err = yk_fail(YOKE_ENOMEM, "%s: no memory", graph->call);
	if (!err)
		err = yk_gradients(ctx, m, y, cot, n, p, in, out);
	for (int i = 0; i < n && !err; i++) {
		if (out[i] == YK_NIL)
			out[i] = yk_full_like(graph, in[i], 0);
		if (out[i] == YK_BAD)
			err = yk_error_last();
	}
	if (!err)
		err = yk_recorded(ctx);
	for (int i = 0; i < n && !err; i++)
		if (!(g[i] = yk_handle_of(ctx, out[i])))
			err = yk_error_last();
	free(in);
	free(out);
	return err;
}

int yoke_grad(yoke_tensor *y, int n, yoke_tensor *const *p, yoke_tensor **g)
{
	if (yk_crosses(1, &y, n, p) && !yk_require_as(g, "grad", "list of results"))
		return yk_results(yk_grad_across(1, &y, NULL, n, p, g), n, g);
	struct yoke_context *ctx = yk_enter_list_to(n, p, g, "grad");
	if (!ctx)
		return yk_results(yk_error_last(), n, g);
	int err = 0;
	const struct yk_graph *graph = &ctx->graph;
	yk_id id = yk_operand(ctx, y, yoke_f32);
	char text[160];
	if (id == YK_BAD || id == YK_NIL)
		err = id == YK_BAD ? yk_error_last() : yk_fail(YOKE_EINVAL, "grad: of nothing");
	else if (yk_count(&graph->value[id]) != 1 || !yk_is_float(graph->value[id].dtype))
		err = yk_fail(YOKE_ESHAPE,
			      "grad: takes one floating-point number, got %s; sum it first",
			      yk_describe(&graph->value[id], text));
	else
		err = gradients(ctx, 1, &id, NULL, n, p, g);
	yk_leave(ctx);
	return yk_results(err, n, g);
}

int yoke_grad_from(int m, yoke_tensor *const *y, yoke_tensor *const *cotangent, int n,
		   yoke_tensor *const *p, yoke_tensor **g)
{
	struct yoke_context *ctx = NULL;
	const bool given =
		!yk_require(y, "list of values") && !yk_require(cotangent, "list of cotangents");
	if (given && yk_crosses(m, y, n, p) && !yk_require_as(g, "grad_from", "list of results"))
		return yk_results(yk_grad_across(m, y, cotangent, n, p, g), n, g);
	if (given)
		ctx = yk_enter_list_to(n, p, g, "grad_from");
	if (!ctx)
		return yk_results(yk_error_last(), n, g);
	yk_id *in = m < 1 ? NULL : yk_lists(ctx, m, 2, (yoke_tensor *const *[]){ y, cotangent }, 0);
	int err = in    ? 0 :
		  m < 1 ? yk_fail(YOKE_EINVAL, "grad_from: of %d values", m) :
			  yk_error_last();
	char a[160], b[160];
	for (int k = 0; k < m && !err; k++) {
		const struct yk_value *v = &ctx->graph.value[in[k]],
				      *c = &ctx->graph.value[in[m + k]];
		if (!yk_is_float(v->dtype))
			err = yk_fail(YOKE_EDTYPE, "grad_from: takes floating point, got %s",
				      yk_describe(v, a));
		else if (v->dtype != c->dtype || !yk_same_shape(v, c))
			err = yk_fail(YOKE_ESHAPE, "grad_from: value %d is %s, its cotangent %s", k,
				      yk_describe(v, a), yk_describe(c, b));
	}
	if (!err)
		err = gradients(ctx, m, in, in + m, n, p, g);
	free(in);
	yk_leave(ctx);
	return yk_results(err, n, g);
}

int yk_list_record(struct yoke_context *ctx, int err, const struct yk_call *c, yk_id *in, int n,
		   yoke_tensor **to)
{
	yk_id out;
	if (!err)
		err = yk_append(&ctx->graph, c, &out);
	if (!err)
		err = yk_recorded(ctx);
	for (int i = 0; i < n && !err; i++)
		if (!(to[i] = yk_handle_of(ctx, out + (yk_id)i)))
			err = yk_error_last();
	free(in);
	yk_leave(ctx);
	return yk_results(err, n, to);
}
