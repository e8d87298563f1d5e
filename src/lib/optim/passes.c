// SPDX-License-Identifier: Apache-2.0
// Updates that need more than one map: LAMB's norms, AdaGrad's window, restarts of accelerated
// descent.  Decisions that depend on numbers on the device are made there, in the graph.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "optim/optim.h"

// Room for n results of a map.
static yoke_tensor **handles(int n)
{
	yoke_tensor **t = calloc((size_t)n, sizeof *t);
	if (!t)
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d tensors", n);
	return t;
}

// ---- LAMB ----

// Computes the moments and the direction r; the norms of parameters and r, in one reduction; then
// the step.
int yk_optim_lamb(const struct yk_optim_pass *pass, struct yk_optim_group *g)
{
	static const struct yk_formula square = { "square", "x", "", "", "y", "y = x * x;" };
	static const char step[] =
		"low = norm_min; high = norm_max;" YK_TEXT_LAMB_STEP;
	static const char unbounded[] = // 1 / 0 is infinity
		"low = norm_min; high = 1 / 0;" YK_TEXT_LAMB_STEP;
	const int n = g->n;
	if (!(g->option[YK_O_adapt] > 0))
		return yk_optim_map(pass, g, &(struct yk_optim_map){ 0 });
	yoke_tensor **both = handles(2 * n), **r = both ? both + n : NULL;
	int err =
		r ? yk_optim_map(pass, g, &(struct yk_optim_map){ .results = "m v r", .made = r }) :
		    yk_error_last();
	if (!err) {
		memcpy(both, g->p, (size_t)n * sizeof *both);
		yoke_tensor *sums = yk_list_sum(&(struct yk_list_step){
			.what = "optim_step", .formula = &square, .n = 2 * n,
			.list = (yoke_tensor *const *const[]){ both } }, 1);
		sums = yk_optim_total(pass->o, g->member, n, 2 * n, sums);
		struct yk_optim_map m = { .text = g->option[YK_O_norm_max] > 0 ? step : unbounded,
					  .results = "p",
					  .list = "r",
					  .of = r,
					  .number = { "pp", "rr" },
					  .value = { yoke_slice(sums, 0, 0, n, 1),
						     yoke_slice(sums, 0, n, 2 * (int64_t)n, 1) } };
		err = m.value[0] && m.value[1] ? yk_optim_map(pass, g, &m) : yk_error_last();
	}
	free(both);
	return err;
}

// ---- AdaGrad's window ----

enum { SUMMED = 6 }; // maximum number of lists per launch

// The sum of the window's squares except those in `slot`, as handles; YOKE_NONE in to[0]: there are
// none.
static int rest_of(const struct yk_optim_group *g, int slot, yoke_tensor **to)
{
	static const char *const lists[] = { "a",       "a b",       "a b c",
					     "a b c d", "a b c d e", "a b c d e f" };
	static const char *const texts[] = { "y = a;",
					     "y = a + b;",
					     "y = a + b + c;",
					     "y = a + b + c + d;",
					     "y = a + b + c + d + e;",
					     "y = a + b + c + d + e + f;" };
	yoke_tensor *const *list[SUMMED];
	int held = 0, err = 0;
	to[0] = YOKE_NONE;
	for (int k = 0; k < g->window && !err; k++) {
		if (k != slot)
			list[held++] = g->state[g->states + k];
		if (held < SUMMED && k + 1 < g->window)
			continue;
		if (!held || list[held - 1] == to) // nothing is left to add
			break;
		const struct yk_formula f = { "window", lists[held - 1], "", "",
					      "y",      texts[held - 1] };
		err = yk_list_step(
			&(struct yk_list_step){ .what = "optim_step",
						.formula = &f,
						.n = g->n,
						.list = list,
						.to = (yoke_tensor *const *const[]){ NULL },
						.made = to });
		list[0] = to;
		held = 1;
	}
	return err;
}

// The squares of step t are in slot (t - 1) mod W.  Their sum is updated incrementally, and
// recomputed every W-th step so that rounding errors do not accumulate.
int yk_optim_adagrad(const struct yk_optim_pass *pass, struct yk_optim_group *g)
{
	static const char *const between[2][3] = {
		{ "h = max(h + squares - w, 0); w = squares; root = sqrt(h) + eps;",
		  "h = max(h + squares - w, 0); w = squares; root = sqrt(h / held) + eps;",
		  "h = (1 - 1 / window) * h + squares; root = sqrt(h) + eps;" },
		{ "h = squares + rest; w = squares; root = sqrt(h) + eps;",
		  "h = squares + rest; w = squares; root = sqrt(h / held) + eps;", NULL },
	};
	const int by = (int)g->option[YK_O_window_by];
	struct yk_optim_map m = { .between = between[0][by] };
	yoke_tensor **rest = NULL;
	int err = 0;
	if (g->window) {
		m.slot = (int)((pass->t - 1) % g->window);
		if (m.slot == g->window - 1) {
			if (!(rest = handles(g->n)))
				return yk_error_last();
			err = rest_of(g, m.slot, rest);
			m.between = between[1][by];
			m.list = "rest";
			m.of = rest[0] == YOKE_NONE ? g->state[0] : rest;
			if (rest[0] == YOKE_NONE) // a window of 1
				m.between =
					by ? "h = squares; w = squares; root = sqrt(h / held) + eps;" :
					     "h = squares; w = squares; root = sqrt(h) + eps;",
				m.list = NULL;
		}
	}
	if (!err)
		err = yk_optim_map(pass, g, &m);
	free(rest);
	return err;
}

// ---- accelerated descent with restarts ----

enum { THETA, LAST, SINCE, RESTARTS };
enum { NONE, FUNCTION, GRADIENT, SPEED }; // indices of the words of restart
#define SPEED_STEPS 10

#define STEP "g = g + weight_decay * p; from = select(ne(first, 0), p, x); next = p - lr * g;"

// The group of a member; NULL: this rank updates nothing of it.
static struct yk_optim_group *group_of(const struct yoke_optim *o, int member)
{
	for (int i = 0; i < o->groups; i++)
		if (yk_optim_like(&o->group[i], &o->member[member]))
			return &o->group[i];
	return NULL;
}

// Sums a formula over all groups, some of which may be empty on this rank, in the scalars' dtype.
static yoke_tensor *sum_over(const struct yk_optim_pass *pass, const char *text)
{
	const struct yoke_optim *o = pass->o;
	const struct yk_optim_map m = { .text = text, .results = "y" };
	yoke_tensor *sum = NULL;
	for (int i = 0; i < o->n; i++) {
		bool first = true;
		for (int j = 0; j < i && first; j++)
			first = !yk_optim_together(&o->member[j], &o->member[i]);
		if (!first)
			continue;
		yoke_tensor *x = o->by_intervals ?
					 yk_optim_sum_intervals(pass, i, group_of(o, i), &m) :
					 yk_optim_sum(pass, group_of(o, i), &m, 0, false);
		x = yoke_cast(x, yoke_dtype(o->scalar[THETA]));
		sum = sum ? yoke_add(sum, x) : x;
	}
	return sum;
}

// Assigns x to a scalar, unless the step is skipped.
static int set_scalar(const struct yk_optim_pass *pass, int k, yoke_tensor *go, yoke_tensor *x)
{
	yoke_tensor *was = pass->o->scalar[k];
	return yoke_assign(was, go ? yoke_select(go, x, was) : x);
}

yoke_tensor *yk_optim_not_skipped(const struct yk_optim_pass *pass)
{
	yoke_tensor *go = NULL;
	if (pass->skip != YOKE_NONE)
		go = yoke_eq(yoke_cast(pass->skip, yoke_f32), yoke_const(0));
	if (pass->latched != YOKE_NONE) {
		yoke_tensor *fine =
			yoke_and(yoke_isfinite(pass->total), yoke_isfinite(pass->latched));
		go = go ? yoke_and(go, fine) : fine;
	}
	return go ? yoke_reshape(go, 0, NULL) : NULL;
}

// Updates theta and computes beta; a restart resets them.
static int momentum(struct yk_optim_pass *pass, yoke_tensor *restart, yoke_tensor *measure)
{
	struct yoke_optim *o = pass->o;
	yoke_tensor *theta = o->scalar[THETA], *one = yoke_const(1),
		    *go = yk_optim_not_skipped(pass);
	yoke_tensor *square = yoke_square(theta), *q = yoke_const(o->option[YK_O_q]);
	yoke_tensor *less = yoke_sub(q, square);
	yoke_tensor *next = yoke_mul(
		yoke_add(less,
			 yoke_sqrt(yoke_add(yoke_square(less), yoke_mul(yoke_const(4), square)))),
		yoke_const(0.5));
	pass->beta = yoke_div(yoke_mul(theta, yoke_sub(one, theta)), yoke_add(square, next));
	int err = 0;
	if (restart) {
		yoke_tensor *since = yoke_add(o->scalar[SINCE], one);
		pass->beta = yoke_select(restart, yoke_const(0), pass->beta);
		next = yoke_select(restart, one, next);
		err = set_scalar(pass, SINCE, go, yoke_select(restart, yoke_const(0), since));
		if (!err)
			err = set_scalar(pass, RESTARTS, go,
					 yoke_add(o->scalar[RESTARTS],
						  yoke_cast(restart, yoke_dtype(theta))));
	}
	if (!err && measure)
		err = set_scalar(pass, LAST, go, measure);
	return err ? err : pass->beta ? set_scalar(pass, THETA, go, next) : yk_error_last();
}

int yk_optim_accelerated(struct yk_optim_pass *pass)
{
	struct yoke_optim *o = pass->o;
	const int scheme = (int)o->option[YK_O_restart];
	const char *text = STEP "p = next + beta * (next - from); x = next;";
	yoke_tensor *measure = NULL, *restart = NULL;
	int err = 0;
	if (scheme == GRADIENT) {
		restart = yoke_gt(sum_over(pass, STEP "y = g * (next - from);"), yoke_const(0));
	} else if (scheme == SPEED) {
		measure = sum_over(pass, STEP "y = (next - from) * (next - from);");
		restart = yoke_and(yoke_lt(measure, o->scalar[LAST]),
				   yoke_ge(o->scalar[SINCE], yoke_const(SPEED_STEPS - 1)));
	} else if (scheme == FUNCTION) { // the loss is evaluated at x'
		for (int i = 0; i < o->groups && !err; i++)
			err = yk_optim_map(
				pass, &o->group[i],
				&(struct yk_optim_map){ .text = STEP "p = next;", .results = "p" });
		if (!err)
			err = yk_optim_renew(o);
		text = "next = p; p = next + beta * (next - x); x = next;";
		measure = err ? NULL :
				yoke_reshape(yoke_cast(pass->given->loss(pass->given->arg),
						       yoke_dtype(o->scalar[LAST])),
					     0, NULL);
		restart = yoke_gt(measure, o->scalar[LAST]);
	}
	if (err || (scheme != NONE && !restart))
		return err ? err : yk_error_last();
	err = momentum(pass, restart, measure);
	for (int i = 0; i < o->groups && !err; i++)
		err = yk_optim_map(pass, &o->group[i],
				   &(struct yk_optim_map){ .text = text, .results = "p x" });
	return err;
}
