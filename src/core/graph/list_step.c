// SPDX-License-Identifier: Apache-2.0
// Formulas over lists of handles: recorded, and their results assigned.

#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "graph/list.h"
#include "graph/record.h"

// Enters the context, and fills the call; to be closed with leave in any case.
static struct yoke_context *enter(const struct yk_list_step *s, struct yk_list_call *c, yk_id **in)
{
	const int lists = yk_formula_count(s->formula->lists), numbers = yk_formula_count(s->formula->numbers);
	struct yoke_context *ctx = yk_enter_list(s->n, s->list[0], s->what);
	*in = ctx ? yk_lists(ctx, s->n, lists, s->list, numbers) : NULL;
	if (!*in)
		return ctx;
	const int dtype = ctx->graph.value[**in].dtype;
	for (int k = 0; k < numbers; k++) {
		yk_id x = (*in)[lists * s->n + k] = yk_operand(ctx, s->number[k], dtype);
		if (x != YK_BAD)
			continue;
		free(*in);
		*in = NULL;
		return ctx;
	}
	*c = (struct yk_list_call){ s->formula, (uint32_t)s->n, *in, s->constant, s->map, NULL };
	return ctx;
}

static void leave(struct yoke_context *ctx, yk_id *in)
{
	free(in);
	if (ctx)
		yk_leave(ctx);
}

// Results from `out` on go where they belong.
static int take(struct yoke_context *ctx, const struct yk_list_step *s, yk_id out)
{
	const int results = yk_formula_count(s->formula->results);
	int err = yk_recorded(ctx);
	if (!err)
		err = yk_roots_reserve(ctx, (size_t)results * (size_t)s->n);
	for (int k = 0; k < results; k++)
		for (int i = 0; i < s->n && !err; i++) {
			const yk_id id = out + (yk_id)(k * s->n + i);
			struct yk_tensor *var = s->to[k] ? yk_tensor(s->to[k][i], s->what) : NULL;
			if (var)
				err = yk_assign(var, id);
			else if (s->to[k] || !(s->made[i] = yk_handle_of(ctx, id)))
				err = yk_error_last();
		}
	return err;
}

int yk_list_step(const struct yk_list_step *s)
{
	struct yk_list_call c;
	yk_id *in, out;
	struct yoke_context *ctx = enter(s, &c, &in);
	int err = in ? yk_list_map(&ctx->graph, &c, &out) : yk_error_last();
	if (!err)
		err = take(ctx, s, out);
	leave(ctx, in);
	return err;
}

yoke_tensor *yk_list_sum(const struct yk_list_step *s, int each)
{
	struct yk_list_call c;
	yoke_tensor *t = NULL;
	yk_id *in;
	struct yoke_context *ctx = enter(s, &c, &in);
	yk_id sum = in ? (s->wide ? yk_list_reduce_wide : yk_list_reduce)(&ctx->graph, &c, YOKE_REDUCE_SUM, each) : YK_BAD;
	if (sum != YK_BAD && !yk_recorded(ctx))
		t = yk_handle_of(ctx, sum);
	leave(ctx, in);
	return t;
}
