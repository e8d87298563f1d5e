// SPDX-License-Identifier: Apache-2.0
// A step: checks its arguments, then records the norm of all gradients, if it is needed, and the
// update of each group.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "graph/handle.h"
#include "optim/optim.h"

// ---- arguments ----

// Does the tensor match the parameter?
static int check_like(const struct yoke_optim *o, const yoke_tensor *x, int i, const char *what)
{
	const struct yk_optim_member *m = &o->member[i];
	char is[160], was[160];
	if (!x || x == YOKE_NONE)
		return yk_fail(YOKE_EINVAL, "optim_step: %s of %s: there is none", what, m->name);
	const struct yk_tensor *t = yk_tensor(x, "optim_step"), *p = yk_tensor(m->p, "optim_step");
	if (!t || !p)
		return yk_error_last();
	struct yk_value v = { .dtype = t->dtype, .rank = t->rank },
			w = { .dtype = p->dtype, .rank = p->rank };
	memcpy(v.dims, t->dims, sizeof v.dims);
	memcpy(w.dims, p->dims, sizeof w.dims);
	if (t->ctx != o->ctx)
		return yk_fail(YOKE_ECONTEXT,
			       "optim_step: %s of %s: is of another context than the parameter",
			       what, m->name);
	if (v.dtype != w.dtype)
		return yk_fail(YOKE_EDTYPE,
			       "optim_step: %s of %s: is %s, the parameter %s; cast it", what,
			       m->name, yk_describe(&v, is), yk_describe(&w, was));
	if (!yk_same_shape(&v, &w))
		return yk_fail(YOKE_ESHAPE, "optim_step: %s of %s: is %s, the parameter %s", what,
			       m->name, yk_describe(&v, is), yk_describe(&w, was));
	return 0;
}

// Checks a number or bool.
static int check_number(const struct yoke_optim *o, const yoke_tensor *x, const char *what)
{
	if (x == YOKE_NONE)
		return 0;
	if (!x)
		return yk_fail(YOKE_EINVAL, "optim_step: %s is NULL; YOKE_NONE for none", what);
	const struct yk_tensor *t = yk_tensor(x, "optim_step");
	if (!t)
		return yk_error_last();
	if (t->ctx != o->ctx)
		return yk_fail(YOKE_ECONTEXT,
			       "optim_step: %s is of another context than the parameters", what);
	for (int i = 0; i < t->rank; i++)
		if (t->dims[i] != 1)
			return yk_fail(YOKE_ESHAPE,
				       "optim_step: %s is one number, dim %d has %lld elements",
				       what, i, (long long)t->dims[i]);
	return 0;
}

static int check_preconditioner(const struct yoke_optim *o, const struct yoke_step *s)
{
	int err = 0;
	for (int i = 0; i < o->n && !err; i++) {
		const bool wants = o->member[i].option[YK_O_precondition] > 0;
		if (wants && !s->precondition)
			return yk_fail(
				YOKE_EINVAL,
				"optim_step: precondition is set for %s, and no tensors are given",
				o->member[i].name);
		if (wants)
			err = check_like(o, s->precondition[i], i, "preconditioner");
	}
	return err;
}

static int check(const struct yoke_optim *o, int n, yoke_tensor *const *g,
		 const struct yoke_step *s)
{
	int err = 0;
	if (!o || !o->n)
		return yk_fail(YOKE_EINVAL,
			       "optim_step: no parameters were added; call yoke_optim_add first");
	if (n != o->n || !g)
		return yk_fail(YOKE_EINVAL, "optim_step: got %d gradients for %d parameters",
			       g ? n : 0, o->n);
	// gradients of shards are the caller's responsibility
	for (int i = 0; i < n && !err && !o->sharding.range; i++)
		err = check_like(o, g[i], i, "gradient");
	if (!err)
		err = check_number(o, s->scale, "scale");
	if (!err)
		err = check_number(o, s->skip, "skip");
	if (!err)
		err = check_preconditioner(o, s);
	if (!err && yk_optim_has(o->kind, YK_O_restart) && o->option[YK_O_restart] == 1 && !s->loss)
		err = yk_fail(
			YOKE_EINVAL,
			"optim_step: restart=function needs the loss, and there is no function for it");
	return err;
}

// ---- the norm ----

// Collects the gradients for a norm; with intervals, those of this rank.
static void take_norm(const struct yoke_optim *o, struct yk_optim_norm *n, yoke_tensor *const *g)
{
	for (int k = 0, own = 0; k < n->n; k++) {
		const int m = yk_optim_member_of(o, n->tensor[k]);
		if (!n->interval) {
			n->g[k] = g[m];
		} else if (yk_optim_interval_here(o, n, k)) {
			const int64_t first = o->sharding.range ? o->sharding.range[m].from : 0,
				      all = yoke_count(o->member[m].p);
			n->g[own++] = yoke_slice(
				o->sharding.range ? g[m] : yoke_reshape(g[m], 1, &all), 0,
				n->interval[k].from - first, n->interval[k].to - first, 1);
		}
	}
}

// Sums of squares of n tensors; each: as yk_list_sum; wide: in f64.
static yoke_tensor *squares_of(const struct yk_optim_pass *pass, int n, yoke_tensor *const *g,
			       int each, bool wide)
{
	static const struct yk_formula plain = { "square", "x", "", "", "y", "y = x * x;" };
	static const struct yk_formula scaled = { "square", "x", "scale",
						  "",       "y", "x = x * scale; y = x * x;" };
	return yk_list_sum(
		&(struct yk_list_step){ .what = "optim_step",
					.formula = pass->scale == YOKE_NONE ? &plain : &scaled,
					.n = n,
					.list = (yoke_tensor *const *const[]){ g },
					.number = (yoke_tensor *const[]){ pass->scale },
					.wide = wide },
		each);
}

// Sums of squares of all intervals, f64 [n]: this rank's, listed in n->g, and the other ranks'.
static yoke_tensor *interval_squares(const struct yk_optim_pass *pass,
				     const struct yk_optim_norm *n)
{
	const int own = yk_optim_intervals_here(pass->o, n);
	return yk_optim_intervals_join(pass->o, n,
				       own ? squares_of(pass, own, n->g, 1, true) : NULL);
}

// Squares of the norms of a dtype's gradients: their sum, or with check each of them, then the sum.
static yoke_tensor *squares(const struct yk_optim_pass *pass, const struct yk_optim_norm *n)
{
	const int dtype = n == pass->o->norm ? yoke_f32 : yoke_f64;
	if (!n->interval)
		return squares_of(pass, n->n, n->g, n->latch ? 2 : 0, false);
	const int64_t one = 1;
	yoke_tensor *each = interval_squares(pass, n),
		    *sum = yoke_cast(yk_optim_in_order_all(pass->o, each, n), dtype);
	if (!n->latch)
		return sum;
	return yoke_concat(
		2, (yoke_tensor *[]){ yoke_cast(each, dtype), yoke_reshape(sum, 1, &one) }, 0);
}

static yoke_tensor *last_of(yoke_tensor *x, int n)
{
	return yoke_reshape(yoke_slice(x, 0, n, n + 1, 1), 0, NULL);
}

static yoke_tensor *skips(const struct yk_optim_pass *pass)
{
	return yoke_reshape(yoke_ne(yoke_cast(pass->skip, yoke_f32), yoke_const(0)), 0, NULL);
}

// Stores new norms as long as the old ones are finite; skipped steps do not count.
static int latch(const struct yk_optim_pass *pass, struct yk_optim_norm *n, yoke_tensor *now)
{
	yoke_tensor *was = last_of(n->latch, n->n), *takes = yoke_isfinite(was);
	if (pass->skip != YOKE_NONE)
		takes = yoke_and(takes, yoke_not(skips(pass)));
	if (n->after) {
		yoke_tensor *one = pass->skip == YOKE_NONE ?
					   yoke_const(1) :
					   yoke_cast(yoke_not(skips(pass)), yoke_f32);
		const int err = yoke_assign(n->after, yoke_select(yoke_isfinite(was), yoke_const(0),
								  yoke_add(n->after, one)));
		if (err)
			return err;
	}
	return yoke_assign(n->latch, yoke_select(takes, now, n->latch));
}

static yoke_tensor *plus(yoke_tensor *a, yoke_tensor *b)
{
	return a == YOKE_NONE ? b : yoke_add(yoke_cast(a, yoke_f64), b);
}

// The square of the norm of all gradients, and with check the latched one.
static int norms(struct yk_optim_pass *pass)
{
	struct yoke_optim *o = pass->o;
	int err = 0;
	for (int d = 0; d < 2 && !err; d++) {
		struct yk_optim_norm *n = &o->norm[d];
		if (!n->n)
			continue;
		yoke_tensor *sum = squares(pass, n);
		pass->total = plus(pass->total, n->latch ? last_of(sum, n->n) : sum);
		if (n->latch) {
			pass->latched = plus(pass->latched, last_of(n->latch, n->n));
			err = latch(pass, n, sum);
		}
		if (!pass->total || !pass->latched)
			err = yk_error_last();
	}
	return err;
}

// The norm to report: the first that was not finite, once there is one.
static yoke_tensor *reported_norm(const struct yk_optim_pass *pass)
{
	yoke_tensor *square = pass->total;
	if (pass->latched != YOKE_NONE)
		square = yoke_select(yoke_isfinite(pass->latched), square, pass->latched);
	return yoke_sqrt(square);
}

yoke_tensor *yk_optim_squares(struct yoke_optim *o, yoke_tensor *const *g, yoke_tensor *scale)
{
	struct yk_optim_norm *n = o->norm;
	const struct yk_optim_pass pass = { .o = o, .scale = scale };
	const int64_t one = 1;
	const int tensors = yk_optim_tensors(o);
	yoke_tensor **each = calloc((size_t)tensors, sizeof *each), *to = NULL;
	if (!each) {
		yk_fail(YOKE_ENOMEM, "optim_step: no memory for %d tensors", tensors);
		return NULL;
	}
	if (yk_optim_groups_make(o) == 0) {
		take_norm(o, n, g);
		yoke_tensor *all = interval_squares(&pass, n);
		for (int k = 0, first; k < n->n; k++) {
			for (first = k; k + 1 < n->n && n->tensor[k + 1] == n->tensor[first]; k++)
				;
			yoke_tensor *x = yoke_slice(all, 0, first, k + 1, 1);
			each[n->tensor[k]] = yoke_reshape(
				yoke_cast(k > first ? yk_optim_in_order(o, x, k + 1 - first, NULL) :
						      x,
					  yoke_f32),
				1, &one);
		}
		to = yk_optim_total_all(o, yoke_concat(tensors, each, 0));
	}
	free(each);
	return to;
}

// ---- the step ----

// A new scalar: operations of earlier steps that are pending keep their number.
static void set_number(yoke_tensor **to, double value)
{
	yoke_tensor *fresh = yoke_keep(yoke_scalar(value));
	if (!fresh)
		return;
	yoke_free(*to);
	*to = fresh;
}

static void set_numbers(const struct yk_optim_pass *pass, struct yk_optim_group *g)
{
	const struct yk_optim_kind *k = pass->o->kind;
	const struct yk_lr_schedule s = yk_optim_schedule(g->option);
	double lr = pass->given->lr ? *pass->given->lr : yk_schedule_lr(&s, pass->t);
	if (k->slower)
		lr /= k->slower(g->option, pass->t);
	set_number(&g->lr, lr);
	for (int i = 0; i < YK_OPTIM_NUMBERS && k->number[i].name; i++)
		set_number(&g->number[i], k->number[i].at(g->option, pass->t));
}

static bool needs_norm(const struct yk_optim_pass *pass)
{
	bool needs = pass->given->norm || pass->o->option[YK_O_check] > 0;
	for (int i = 0; i < pass->o->groups; i++)
		needs |= pass->o->group[i].option[YK_O_clip] > 0;
	return needs;
}

// This rank's shard of a tensor shaped like member i.
static yoke_tensor *part(const struct yoke_optim *o, int i, yoke_tensor *x)
{
	const struct yk_optim_range *range = o->sharding.range;
	const int64_t n = yoke_count(o->member[i].p);
	return !range || !x ? x :
			      yoke_slice(yoke_reshape(x, 1, &n), 0, range[i].from, range[i].to, 1);
}

// The parameters, or their shards, as operands of the update.
static void take_parameters(struct yoke_optim *o)
{
	for (int i = 0; i < o->groups; i++)
		for (int k = 0; k < o->group[i].n; k++) {
			const int m = o->group[i].member[k];
			o->group[i].p[k] =
				o->sharding.held ? o->member[m].p : part(o, m, o->member[m].p);
		}
}

int yk_optim_renew(struct yoke_optim *o)
{
	if (!o->sharding.range || o->sharding.held)
		return 0;
	memset(o->shard, 0, (size_t)o->n * sizeof *o->shard);
	for (int i = 0; i < o->groups; i++)
		for (int k = 0; k < o->group[i].n; k++)
			o->shard[o->group[i].member[k]] = o->group[i].made[k];
	const int err = o->sharding.renew(o->sharding.arg, o->shard);
	if (!err)
		take_parameters(o);
	return err;
}

static int record(struct yk_optim_pass *pass, yoke_tensor *const *g)
{
	struct yoke_optim *o = pass->o;
	int err = 0;
	for (int i = 0; i < o->groups; i++) {
		struct yk_optim_group *group = &o->group[i];
		for (int k = 0; k < group->n; k++) {
			const int m = group->member[k];
			group->g[k] = g[m];
			group->P[k] = part(
				o, m,
				pass->given->precondition ? pass->given->precondition[m] : NULL);
		}
		set_numbers(pass, group);
	}
	take_parameters(o);
	if (needs_norm(pass)) {
		take_norm(o, &o->norm[0], g);
		take_norm(o, &o->norm[1], g);
		err = norms(pass);
	}
	if (!err && o->kind->together)
		err = o->kind->together(pass);
	for (int i = 0; i < o->groups && !err && !o->kind->together; i++)
		err = o->kind->update ?
			      o->kind->update(pass, &o->group[i]) :
			      yk_optim_map(pass, &o->group[i], &(struct yk_optim_map){ 0 });
	return err ? err : yk_optim_renew(o);
}

static int step(struct yoke_optim *o, yoke_tensor *const *g, const struct yoke_step *given)
{
	struct yk_optim_pass pass = { .o = o, .t = o->t + 1, .given = given, .scale = given->scale,
				      .skip = given->skip, .total = YOKE_NONE, .latched = YOKE_NONE,
				      .beta = YOKE_NONE };
	int err = yk_optim_scalars_make(o);
	for (int i = 0; i < o->n && !err; i++)
		err = yk_optim_states_make(o, &o->member[i]);
	if (!err)
		err = yk_optim_groups_make(o);
	if (err)
		return err;
	const bool failed = yoke_error_code(); // an error of an earlier call
	yoke_scope *s = yoke_scope_begin("optimizer");
	yoke_tensor *norm = NULL;
	err = record(&pass, g);
	if (!err && given->norm && !(norm = yoke_lift(reported_norm(&pass))))
		err = yk_error_last();
	int ended = yoke_scope_end(s);
	err = err || failed ? err : ended;
	if (err)
		return err;
	if (given->norm)
		*given->norm = norm;
	o->t++;
	return 0;
}

int yoke_optim_step(yoke_optim *o, int n, yoke_tensor *const *g, const struct yoke_step *given)
{
	struct yoke_step s = { .size = sizeof s, .scale = YOKE_NONE, .skip = YOKE_NONE };
	int err = given ? yk_sized_read(&s, sizeof s, given, "optim_step", "yoke_step") : 0;
	if (!err)
		err = check(o, n, g, &s);
	if (err)
		return err;
	struct yoke_context *former = yoke_use(o->ctx);
	err = step(o, g, &s);
	yoke_use(former);
	return err;
}
