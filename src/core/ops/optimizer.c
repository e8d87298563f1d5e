// SPDX-License-Identifier: Apache-2.0
// Optimizer steps and gradient norms over lists of tensors: the public functions.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "graph/handle.h"
#include "graph/record.h"
#include "ops/list.h"
#include "ops/rules.h"

// ---- operands ----

// The operands of a call: n tensors in each of several lists, then numbers.  Tensors are grouped by
// the dtypes that they have in all lists, and each group is one list call.
struct operands {
	struct yoke_context *ctx;
	int lists, numbers;
	uint32_t n;
	yk_id *in;
	uint32_t *pick, *group; // indices of the current group's tensors; per tensor, the number of
				// its group, from 1
	uint32_t calls;
	struct yk_list_call call;
	yk_id *part;            // call.in
	yk_id skip;             // a number, or YK_NIL
};

static void operands_free(struct operands *o)
{
	free(o->in);
	free(o->pick);
	free(o->part);
}

// Tensors must have the shapes of the first list, and its dtypes or their accumulators'.
static int check_lists(const struct operands *o)
{
	const struct yk_graph *g = &o->ctx->graph;
	for (uint32_t k = 0; k < (uint32_t)o->lists * o->n; k++) {
		const struct yk_value *p = &g->value[o->in[k % o->n]], *x = &g->value[o->in[k]];
		char tp[160], tx[160];
		if (!yk_is_float(p->dtype))
			return yk_op_fail(g, YK_LIST_MAP, YOKE_EDTYPE,
					  "takes floating point, got %s", yk_describe(p, tp));
		if (x->dtype != p->dtype && x->dtype != yk_acc(p->dtype))
			return yk_op_fail(g, YK_LIST_MAP, YOKE_EDTYPE, "dtypes differ: %s and %s",
					  yk_describe(p, tp), yk_describe(x, tx));
		if (!yk_same_shape(x, p))
			return yk_op_fail(g, YK_LIST_MAP, YOKE_ESHAPE, "shapes differ: %s and %s",
					  yk_describe(p, tp), yk_describe(x, tx));
	}
	return 0;
}

// One floating-point number; the last one, the scale, is optional.
static int take_number(struct operands *o, yoke_tensor *t, const char *name, yk_id *to)
{
	const struct yk_graph *g = &o->ctx->graph;
	char text[160];
	*to = yk_operand(o->ctx, t, yk_acc(g->value[o->in[0]].dtype));
	if (*to == YK_BAD)
		return yk_error_last();
	if (*to == YK_NIL)
		return !strcmp(name, "scale") && o->numbers > 1 ? 0 :
			yk_op_fail(g, YK_LIST_MAP, YOKE_EINVAL, "%s is absent", name);
	if (yk_count(&g->value[*to]) != 1 || !yk_is_float(g->value[*to].dtype))
		return yk_op_fail(g, YK_LIST_MAP, YOKE_ESHAPE,
				  "%s is one floating-point number, got %s", name,
				  yk_describe(&g->value[*to], text));
	return 0;
}

// Enters the context if possible; always paired with leave.
static int enter(struct operands *o, const char *what, int n, int lists,
		 yoke_tensor *const *const *list, int numbers, yoke_tensor *const *number,
		 const char *const *name)
{
	*o = (struct operands){ .ctx = yk_enter_list(n, list[0], what),
				.lists = lists,
				.numbers = numbers,
				.n = (uint32_t)n,
				.skip = YK_NIL };
	const size_t count = (size_t)n;
	int err = 0;
	if (!o->ctx)
		return yk_error_last();
	for (int l = 0; l < lists && !err; l++)
		if (!list[l])
			err = yk_op_fail(&o->ctx->graph, YK_LIST_MAP, YOKE_EINVAL,
					 "list %d is absent", l);
	if (err || !(o->in = yk_lists(o->ctx, n, lists, list, numbers)))
		return yk_error_last();
	o->pick = calloc(2 * count, sizeof *o->pick);
	// LAMB joins two lists in one
	o->part = malloc(((size_t)lists * count + 2 * count + (size_t)numbers) * sizeof *o->part);
	if (!o->pick || !o->part)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %d tensors", what, n);
	o->group = o->pick + count;
	err = check_lists(o);
	for (int k = 0; k < numbers && !err; k++)
		err = take_number(o, number[k], name[k], &o->in[lists * n + k]);
	return err;
}

static void leave(struct operands *o)
{
	operands_free(o);
	if (o->ctx)
		yk_leave(o->ctx);
}

// Prepares the call for the next group; false: no more.
static bool next(struct operands *o, enum yk_formula_id formula, const double *constant)
{
	const struct yk_graph *g = &o->ctx->graph;
	uint32_t first = 0, n = 0;
	while (first < o->n && o->group[first])
		first++;
	if (first == o->n)
		return false;
	o->calls++;
	for (uint32_t i = first; i < o->n; i++) {
		bool same = !o->group[i];
		for (uint32_t l = 0; l < (uint32_t)o->lists && same; l++)
			same = g->value[o->in[l * o->n + i]].dtype ==
			       g->value[o->in[l * o->n + first]].dtype;
		if (!same)
			continue;
		o->group[i] = o->calls;
		o->pick[n++] = i;
	}
	for (uint32_t l = 0; l < (uint32_t)o->lists; l++)
		for (uint32_t i = 0; i < n; i++)
			o->part[l * n + i] = o->in[l * o->n + o->pick[i]];
	memcpy(o->part + (uint32_t)o->lists * n, o->in + (uint32_t)o->lists * o->n,
	       (size_t)o->numbers * sizeof *o->part);
	o->call = (struct yk_list_call){ &yk_formulas[formula], n, o->part, constant, NULL,
					 o->skip == YK_NIL ? NULL : &o->skip };
	return true;
}

// ---- steps ----

// An optimizer step: its results become new versions of the variables of some lists.
struct step {
	struct operands o;
	int outs;
	yoke_tensor *const *const *to;
	struct yk_tensor **var;
	yk_id *made;
};

static int step_enter(struct step *s, const char *what, int n, int lists,
		      yoke_tensor *const *const *list, int numbers, yoke_tensor *const *number,
		      const char *const *name, yoke_tensor *skip)
{
	int err = enter(&s->o, what, n, lists, list, numbers, number, name);
	const size_t count = (size_t)n * (size_t)s->outs;
	// callers without skip pass NULL
	if (!err && skip != YOKE_NONE && (skip || yoke_error_code()))
		err = take_number(&s->o, skip, "skip", &s->o.skip);
	if (err)
		return err;
	s->var = malloc(count * sizeof *s->var);
	s->made = malloc(count * sizeof *s->made);
	if (!s->var || !s->made)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %d variables", what, n);
	for (size_t k = 0; k < count; k++) {
		const size_t l = k / (size_t)n, i = k % (size_t)n;
		s->var[k] = yk_tensor(s->to[l][i], what);
		if (!s->var[k])
			return yk_error_last();
		if (s->var[k]->kind != YK_VARIABLE)
			return yk_op_fail(&s->o.ctx->graph, YK_LIST_MAP, YOKE_EINVAL,
					  "tensor %zu of list %zu is no variable", i, l);
	}
	return yk_lists_once(count, s->var, what);
}

// Takes result l of the current call, whose first tensor is `first`.
static void step_take(struct step *s, int l, yk_id first)
{
	for (uint32_t i = 0; i < s->o.call.n; i++)
		s->made[(uint32_t)l * s->o.n + s->o.pick[i]] = first + i;
}

// Records one formula for all groups.
static int step_map(struct step *s, enum yk_formula_id formula, const double *constant)
{
	yk_id out;
	int err = 0;
	while (!err && next(&s->o, formula, constant)) {
		err = yk_list_map(&s->o.ctx->graph, &s->o.call, &out);
		for (int l = 0; l < s->outs && !err; l++)
			step_take(s, l, out + (yk_id)l * s->o.call.n);
	}
	return err;
}

// Assigns all results, or none after an error, and leaves.
static int step_leave(struct step *s, int err)
{
	struct yoke_context *ctx = s->o.ctx;
	const size_t count = (size_t)s->outs * s->o.n;
	if (!err)
		err = yk_recorded(ctx);
	if (!err)
		err = yk_roots_reserve(ctx, count);
	for (size_t k = 0; k < count && !err; k++)
		err = yk_assign(s->var[k], s->made[k]);
	free(s->var);
	free(s->made);
	leave(&s->o);
	return err;
}

static const char *const moments_names[] = { "lr", "c1", "c2", "scale" };

int yoke_adamw_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		    yoke_tensor *const *m, yoke_tensor *const *v,
		    const struct yoke_adamw *given)
{
	struct yoke_adamw o = { .lr = YOKE_NONE,
				.c1 = YOKE_NONE,
				.c2 = YOKE_NONE,
				.scale = YOKE_NONE,
				.skip = YOKE_NONE };
	if (yk_sized_read(&o, sizeof o, given, "adamw_step", "yoke_adamw"))
		return YOKE_EINVAL;
	struct step s = { .outs = 3, .to = (yoke_tensor *const *const[]){ p, m, v } };
	int err = step_enter(&s, "adamw_step", n, 4, (yoke_tensor *const *const[]){ p, g, m, v }, 4,
			     (yoke_tensor *const[]){ o.lr, o.c1, o.c2, o.scale }, moments_names,
			     o.skip);
	const double constant[] = { o.beta1, o.beta2, o.eps, o.weight_decay };
	return step_leave(&s, err ? err : step_map(&s, YK_FORMULA_ADAMW, constant));
}

// The squared norms of two lists, one number per tensor.
static int squares(struct yk_graph *g, uint32_t n, const yk_id *p, const yk_id *r, yk_id *room,
		   yk_id *pp, yk_id *rr)
{
	const struct yk_formula *f = &yk_formulas[YK_FORMULA_SQUARE];
	const int64_t at[] = { 0, n }, step = 1, size = n;
	if (g->value[*p].dtype == g->value[*r].dtype) { // in one launch
		memcpy(room, p, n * sizeof *p);
		memcpy(room + n, r, n * sizeof *r);
		yk_id both = yk_list_reduce(
			g, &(struct yk_list_call){ f, 2 * n, room, NULL, NULL, NULL },
			YOKE_REDUCE_SUM, 1);
		*pp = yk_slice(g, both, &at[0], &step, &size);
		*rr = yk_slice(g, both, &at[1], &step, &size);
	} else {
		*pp = yk_list_reduce(g, &(struct yk_list_call){ f, n, p, NULL, NULL, NULL },
				     YOKE_REDUCE_SUM, 1);
		*rr = yk_list_reduce(g, &(struct yk_list_call){ f, n, r, NULL, NULL, NULL },
				     YOKE_REDUCE_SUM, 1);
	}
	return *pp == YK_BAD || *rr == YK_BAD ? yk_error_last() : 0;
}

// One group: the moments and r, the norms of p and r, the step.
static int lamb(struct step *s, const double *bounds)
{
	struct operands *o = &s->o;
	struct yk_graph *g = &o->ctx->graph;
	const uint32_t n = o->call.n;
	const yk_id lr = o->part[4 * n];
	yk_id first, pp, rr;
	o->call.in = o->part;
	memmove(o->part + 4 * n, o->part + 4 * n + 1, 3 * sizeof lr);
	int err = yk_list_map(g, &o->call, &first);
	if (err)
		return err;
	step_take(s, 1, first);
	step_take(s, 2, first + n);
	for (uint32_t i = 0; i < n; i++)
		o->part[n + i] = first + 2 * n + i;
	if ((err = squares(g, n, o->part, o->part + n, o->part + 2 * n, &pp, &rr)))
		return err;
	memcpy(o->part + 2 * n, (yk_id[]){ lr, pp, rr }, 3 * sizeof lr);
	err = yk_list_map(g,
			  &(struct yk_list_call){ &yk_formulas[YK_FORMULA_LAMB_STEP], n, o->part,
						  bounds, NULL, o->call.skip },
			  &first);
	if (!err)
		step_take(s, 0, first);
	return err;
}

int yoke_lamb_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		   yoke_tensor *const *m, yoke_tensor *const *v, const struct yoke_lamb *given)
{
	struct yoke_lamb o = { .lr = YOKE_NONE,
			       .c1 = YOKE_NONE,
			       .c2 = YOKE_NONE,
			       .scale = YOKE_NONE,
			       .skip = YOKE_NONE };
	if (yk_sized_read(&o, sizeof o, given, "lamb_step", "yoke_lamb"))
		return YOKE_EINVAL;
	if (!(o.min >= 0 && o.max >= 0) || (o.max > 0 && o.max < o.min))
		return yk_fail(YOKE_EINVAL, "lamb_step: no norm is in %g..%g", o.min,
			       o.max);
	struct step s = { .outs = 3, .to = (yoke_tensor *const *const[]){ p, m, v } };
	int err = step_enter(&s, "lamb_step", n, 4, (yoke_tensor *const *const[]){ p, g, m, v }, 4,
			     (yoke_tensor *const[]){ o.lr, o.c1, o.c2, o.scale }, moments_names,
			     o.skip);
	const double constant[] = { o.beta1, o.beta2, o.eps, o.weight_decay };
	const double bounds[] = { o.min, o.max > 0 ? o.max : INFINITY };
	if (!err && o.plain)
		err = step_map(&s, YK_FORMULA_LAMB_PLAIN, constant);
	while (!err && !o.plain && next(&s.o, YK_FORMULA_LAMB, constant))
		err = lamb(&s, bounds);
	return step_leave(&s, err);
}

int yoke_sgd_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
		  yoke_tensor *const *b, const struct yoke_sgd *given)
{
	static const char *const names[] = { "lr", "scale", "first" };
	struct yoke_sgd o = {
		.lr = YOKE_NONE, .first = YOKE_NONE, .scale = YOKE_NONE, .skip = YOKE_NONE
	};
	if (yk_sized_read(&o, sizeof o, given, "sgd_step", "yoke_sgd"))
		return YOKE_EINVAL;
	const bool heavy = o.momentum != 0;
	struct step s = { .outs = 1 + heavy, .to = (yoke_tensor *const *const[]){ p, b } };
	if (o.nesterov && (o.momentum <= 0 || o.dampening != 0))
		return yk_fail(
			YOKE_EINVAL,
			"sgd_step: nesterov needs momentum > 0 and dampening 0, got %g and %g",
			o.momentum, o.dampening);
	if (heavy != (b != NULL))
		return yk_fail(YOKE_EINVAL, "sgd_step: momentum %g and %s list of buffers",
			       o.momentum, b ? "a" : "no");
	int err = step_enter(&s, "sgd_step", n, 2 + heavy, (yoke_tensor *const *const[]){ p, g, b },
			     2 + heavy, (yoke_tensor *const[]){ o.lr, o.scale, o.first }, names,
			     o.skip);
	const double constant[] = { o.weight_decay, o.momentum, o.dampening, o.nesterov != 0 };
	return step_leave(
		&s,
		err ? err : step_map(&s, heavy ? YK_FORMULA_MOMENTUM : YK_FORMULA_SGD, constant));
}

// ---- sums over all tensors ----

// The sum of a formula of one list over all tensors, in f64 if one of them is.
static yk_id sum_of(struct operands *o, enum yk_formula_id formula)
{
	struct yk_graph *g = &o->ctx->graph;
	yk_id sum = YK_NIL;
	while (sum != YK_BAD && next(o, formula, NULL)) {
		yk_id x = yk_list_reduce(g, &o->call, YOKE_REDUCE_SUM, 0);
		if (sum != YK_NIL && x != YK_BAD && g->value[x].dtype != g->value[sum].dtype) {
			x = yk_cast(g, x, yoke_f64);
			sum = yk_cast(g, sum, yoke_f64);
		}
		sum = sum == YK_NIL ? x : yk_bin(g, YK_ADD, sum, x);
	}
	return sum;
}

yoke_tensor *yoke_global_norm(int n, yoke_tensor *const *x)
{
	struct operands o;
	yoke_tensor *t = NULL;
	if (!enter(&o, "global_norm", n, 1, &x, 0, NULL, NULL)) {
		struct yk_graph *g = &o.ctx->graph;
		yk_id out = yk_cast(g, yk_unless_zero(g, YK_SQRT, sum_of(&o, YK_FORMULA_SQUARE), 0),
				    yoke_f32);
		if (out != YK_BAD && !yk_recorded(o.ctx))
			t = yk_handle_of(o.ctx, out);
	}
	leave(&o);
	return t;
}

int yoke_unscale_check(int n, yoke_tensor *const *g, yoke_tensor *scale, yoke_tensor **to,
		       yoke_tensor **overflow)
{
	static const char *const name[] = { "scale" };
	struct operands o;
	yk_id out, flag;
	int err = yk_require(to, "list of results");
	if (!err)
		err = yk_require(overflow, "place of overflow");
	if (err)
		return yk_results(yk_results(err, n, to), 1, overflow);
	err = enter(&o, "unscale_check", n, 1, &g, 1, &scale, name);
	while (!err && next(&o, YK_FORMULA_SCALE, NULL)) {
		err = yk_list_map(&o.ctx->graph, &o.call, &out);
		for (uint32_t i = 0; i < o.call.n && !err; i++)
			o.in[o.pick[i]] = out + i;
	}
	if (!err) {
		struct yk_graph *graph = &o.ctx->graph;
		memset(o.group, 0, o.n * sizeof *o.group);
		flag = yk_un(graph, YK_NOT,
			     yk_un(graph, YK_ISFINITE, sum_of(&o, YK_FORMULA_FINITE)));
		err = flag == YK_BAD ? yk_error_last() : yk_recorded(o.ctx);
	}
	for (int i = 0; i <= n && !err; i++) {
		yoke_tensor **t = i < n ? &to[i] : overflow;
		if (!(*t = yk_handle_of(o.ctx, i < n ? o.in[i] : flag)))
			err = yk_error_last();
	}
	leave(&o);
	return yk_results(yk_results(err, n, to), 1, overflow);
}

// The squared norms of all tensors, times scale, concatenated in f32; `order` has the index of the
// tensor that each belongs to.
static yk_id each_of(struct operands *o, uint32_t *order)
{
	struct yk_graph *g = &o->ctx->graph;
	yk_id all = YK_NIL;
	uint32_t n = 0;
	while (all != YK_BAD && next(o, YK_FORMULA_SCALED_SQUARE, NULL)) {
		yk_id x = yk_cast(g, yk_list_reduce(g, &o->call, YOKE_REDUCE_SUM, true), yoke_f32);
		memcpy(order + n, o->pick, o->call.n * sizeof *order);
		n += o->call.n;
		all = all == YK_NIL ? x : yk_record(g, YK_CONCAT, 2, (yk_id[]){ all, x }, 1,
						    &(union yoke_attr){ .i = 0 });
	}
	return all;
}

int yk_scaled_squares(int n, yoke_tensor *const *g, yoke_tensor *scale, uint32_t *order,
		      yoke_tensor *to[3])
{
	static const char *const name[] = { "scale" };
	struct operands o;
	yk_id out[3] = { YK_BAD, YK_BAD, YK_BAD };
	int err = enter(&o, "scaler_check", n, 1, &g, 1, &scale, name);
	if (!err) {
		struct yk_graph *graph = &o.ctx->graph;
		out[0] = each_of(&o, order);
		yk_id sum = out[0] == YK_BAD ? out[0] :
					       yk_reduce(graph, YK_SUM, out[0], YOKE_ALL, false);
		out[1] = yk_un(graph, YK_SQRT, sum);
		out[2] = yk_cast(graph, yk_un(graph, YK_NOT, yk_un(graph, YK_ISFINITE, sum)),
				 yoke_f32);
		err = out[1] == YK_BAD || out[2] == YK_BAD ? yk_error_last() : yk_recorded(o.ctx);
	}
	for (int i = 0; i < 3 && !err; i++)
		if (!(to[i] = yk_handle_of(o.ctx, out[i])))
			err = yk_error_last();
	leave(&o);
	return err;
}
