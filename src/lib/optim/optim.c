// SPDX-License-Identifier: Apache-2.0
// Optimizer objects: parameters with their options, and groups of parameters that are updated
// together.
#include "config.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/handle.h"
#include "optim/optim.h"

// ---- construction ----

yoke_optim *yoke_optim_new(const char *kind, const char *settings)
{
	const struct yk_optim_kind *k = kind ? yk_optim_kind_find(kind) : NULL;
	if (!k) {
		char all[256] = "";
		for (int i = 0; i < yk_optim_kind_count; i++)
			snprintf(all + strlen(all), sizeof all - strlen(all), " %s",
				 yk_optim_kinds[i].name);
		yk_fail(YOKE_ENOENT, "optim_new: there is no optimizer '%s'; there are%s",
			kind ? kind : "", all);
		return NULL;
	}
	struct yoke_optim *o = calloc(1, sizeof *o);
	if (!o) {
		yk_fail(YOKE_ENOMEM, "optim_new: no memory");
		return NULL;
	}
	o->kind = k;
	yk_optim_defaults(k, o->option);
	if (yk_optim_settings(k, "optim_new", settings, o->option) < 0) {
		free(o);
		return NULL;
	}
	return o;
}

static void member_fini(struct yk_optim_member *m)
{
	yk_optim_states_free(m);
	free(m->name);
}

void yoke_optim_free(yoke_optim *o)
{
	if (!o)
		return;
	yk_optim_groups_free(o);
	yk_optim_scalars_free(o);
	for (int i = 0; i < o->n; i++)
		member_fini(&o->member[i]);
	free(o->member);
	free(o->shard);
	free(o);
}

// A variable added twice would get two gradients, of which only the last would count.
static int same_variable(const char *first, const char *name)
{
	return yk_fail(YOKE_EINVAL, "optim_add: %s and %s are the same variable; add it once: its "
		"gradient includes all its uses",
		       first, name);
}

// Checks a parameter to be added; first: the first of the call, which sets the context of a new
// optimizer.
static int check_parameter(const struct yoke_optim *o, yoke_tensor *p, const char *name,
			   yoke_tensor *first)
{
	const struct yk_tensor *t = p && p != YOKE_NONE ? yk_tensor(p, "optim_add") : NULL;
	if (!t)
		return yk_fail(YOKE_EINVAL, "optim_add: %s: there is no tensor", name);
	if (t->kind != YK_VARIABLE)
		return yk_fail(
			YOKE_EINVAL,
			"optim_add: %s: is no variable; only yoke_variable's can be assigned",
			name);
	if (t->dtype != yoke_f32 && t->dtype != yoke_f64)
		return yk_fail(YOKE_EDTYPE, "optim_add: %s: is %s; parameters are f32 or f64", name,
			       yoke_dtype_name(t->dtype));
	if (t->ctx != (o->ctx ? o->ctx : yk_tensor(first, "optim_add")->ctx))
		return yk_fail(YOKE_ECONTEXT,
			       "optim_add: %s: is of another context than the parameters before it",
			       name);
	return 0;
}

struct added { // a parameter of the call, for sorting
	const char *name;
	const yoke_tensor *p;
	int i; // its index
};

static int by_name(const void *x, const void *y)
{
	const struct added *a = x, *b = y;
	return strcmp(a->name, b->name);
}

static int by_tensor(const void *x, const void *y)
{
	const struct added *a = x, *b = y;
	return ((uintptr_t)a->p > (uintptr_t)b->p) - ((uintptr_t)a->p < (uintptr_t)b->p);
}

// The first of two parameters that are equal in sorted order, or NULL.
static const struct added *equal(const struct added *list, int n,
				 int (*order)(const void *, const void *))
{
	for (int i = 1; i < n; i++)
		if (!order(&list[i - 1], &list[i]))
			return &list[i - 1];
	return NULL;
}

// Is each name, and each variable, new?
static int check_new(const struct yoke_optim *o, struct added *list, int n)
{
	const struct added *two, *at = NULL;
	qsort(list, (size_t)n, sizeof *list, by_name);
	if ((two = equal(list, n, by_name)))
		return yk_fail(YOKE_EINVAL, "optim_add: %s: is there twice", two->name);
	for (int k = 0; k < o->n && !at; k++)
		at = bsearch(&(struct added){ .name = o->member[k].name }, list, (size_t)n,
			     sizeof *list, by_name);
	if (at)
		return yk_fail(YOKE_EINVAL, "optim_add: %s: was added already", at->name);
	qsort(list, (size_t)n, sizeof *list, by_tensor);
	if ((two = equal(list, n, by_tensor))) // named in the order in which they were given
		return same_variable(two[two->i > two[1].i].name, two[two->i < two[1].i].name);
	for (int k = 0; k < o->n; k++)
		if ((at = bsearch(&(struct added){ .p = o->member[k].p }, list, (size_t)n,
				  sizeof *list, by_tensor)))
			return same_variable(o->member[k].name, at->name);
	return 0;
}

static int check_added(const struct yoke_optim *o, int n, yoke_tensor *const *p,
		       const char *const *name)
{
	if (o->t > 0)
		return yk_fail(
			YOKE_EINVAL,
			"optim_add: called after step %lld; add all parameters before the first",
			(long long)o->t);
	if (n < 1 || !p || !name)
		return yk_fail(YOKE_EINVAL, "optim_add: takes at least one tensor, and names");
	for (int i = 0; i < n; i++) {
		if (!name[i] || !*name[i] || strlen(name[i]) > 400)
			return yk_fail(YOKE_EINVAL,
				       "optim_add: tensor %d: has no name of 1 to 400 bytes", i);
		int err = check_parameter(o, p[i], name[i], p[0]);
		if (err)
			return err;
	}
	struct added *list = malloc((size_t)n * sizeof *list);
	for (int i = 0; i < n && list; i++)
		list[i] = (struct added){ name[i], p[i], i };
	const int err = list ? check_new(o, list, n) :
			       yk_fail(YOKE_ENOMEM, "optim_add: no memory for %d tensors", n);
	free(list);
	return err;
}

// Options that must be the same for all parameters.
static int check_whole(const struct yoke_optim *o, const char *call, const double *option)
{
	static const int whole[] = { YK_O_check, YK_O_restart, YK_O_q };
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		if (option[whole[i]] != o->option[whole[i]])
			return yk_fail(
				YOKE_EINVAL,
				"%s: %s is one for all parameters; give it to yoke_optim_new", call,
				yk_optim_rows[whole[i]].name);
	return 0;
}

static void set_matrix(const struct yk_optim_kind *k, double *option, int rank)
{
	option[YK_O_matrix] = k->matrix && k->matrix(option, rank);
}

int yoke_optim_add(yoke_optim *o, int n, yoke_tensor *const *p, const char *const *name,
		   const char *settings)
{
	double option[YK_OPTIM_OPTION_COUNT];
	int err = yk_require(o, "optimizer");
	if (err)
		return err;
	memcpy(option, o->option, sizeof option);
	err = check_added(o, n, p, name);
	if (!err)
		err = yk_optim_settings(o->kind, "optim_add", settings, option);
	if (!err)
		err = check_whole(o, "optim_add", option);
	if (!err &&
	    yk_grow(&o->member, &o->member_cap, (size_t)o->n + (size_t)n, sizeof *o->member) < 0)
		err = yk_fail(YOKE_ENOMEM, "optim_add: no memory for %d tensors", n);
	for (int i = 0; i < n && !err; i++) {
		struct yk_optim_member *m = &o->member[o->n + i];
		*m = (struct yk_optim_member){ .name = strdup(name[i]),
					       .p = p[i],
					       .dtype = yoke_dtype(p[i]) };
		m->rank = yoke_rank(p[i]);
		for (int d = 0; d < m->rank; d++)
			m->dims[d] = yoke_dim(p[i], d);
		memcpy(m->option, option, sizeof option);
		set_matrix(o->kind, m->option, m->rank);
		if (m->name)
			continue;
		err = yk_fail(YOKE_ENOMEM, "optim_add: no memory for names");
		while (i--)
			member_fini(&o->member[o->n + i]);
	}
	if (err)
		return err;
	o->ctx = yk_tensor(p[0], "optim_add")->ctx;
	o->n += n;
	yk_optim_groups_free(o);
	return 0;
}

int yk_optim_shard(struct yoke_optim *o, const struct yk_optim_sharding *sharding)
{
	if (o->kind->matrix && (sharding->range || sharding->total))
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"optimizer: %s needs whole parameters; use it without zero= and tensor=",
			o->kind->name);
	if (!(o->shard = calloc((size_t)o->n, sizeof *o->shard)))
		return yk_fail(YOKE_ENOMEM, "optimizer: no memory for %d tensors", o->n);
	yk_optim_groups_free(o); // groups from earlier steps
	for (int i = 0; i < o->n && sharding->range; i++)
		yk_optim_states_free(&o->member[i]);
	o->sharding = *sharding;
	o->by_intervals = true;
	return 0;
}

void yk_optim_unshard(struct yoke_optim *o)
{
	if (!o->by_intervals)
		return;
	yk_optim_groups_free(o);
	for (int i = 0; i < o->n && o->sharding.range; i++)
		yk_optim_states_free(&o->member[i]);
	free(o->shard);
	o->shard = NULL;
	o->sharding = (struct yk_optim_sharding){ 0 };
	o->by_intervals = false;
}

int yoke_optim_set(yoke_optim *o, const char *pattern, const char *settings)
{
	int err = yk_require(o, "optimizer");
	if (err)
		return err;
	const char *all = pattern ? pattern : "*";
	double(*option)[YK_OPTIM_OPTION_COUNT] = malloc(((size_t)o->n + 1) * sizeof *option);
	int matched = 0;
	if (!option)
		return yk_fail(YOKE_ENOMEM, "optim_set: no memory");
	memcpy(option[o->n], o->option, sizeof *option);
	if (!pattern)
		err = yk_optim_settings(o->kind, "optim_set", settings, option[o->n]);
	for (int i = 0; i < o->n && !err; i++) {
		const struct yk_optim_member *m = &o->member[i];
		memcpy(option[i], m->option, sizeof *option);
		if (fnmatch(all, m->name, 0))
			continue;
		matched++;
		err = yk_optim_settings(o->kind, "optim_set", settings, option[i]);
		if (!err && pattern)
			err = check_whole(o, "optim_set", option[i]);
		set_matrix(o->kind, option[i], m->rank);
		if (!err && m->state && !yk_optim_same_states(o->kind, option[i], m->option))
			err = yk_fail(YOKE_EINVAL,
				      "optim_set: '%s' changes which states %s has; that is for "
				      "before the first step",
				      settings, m->name);
	}
	if (!err && pattern && !matched)
		err = yk_fail(YOKE_ENOENT, "optim_set: '%s' matches none of the %d parameters",
			      pattern, o->n);
	if (!err) {
		memcpy(o->option, option[o->n], sizeof *option);
		for (int i = 0; i < o->n; i++)
			memcpy(o->member[i].option, option[i], sizeof *option);
		yk_optim_groups_free(o);
	}
	free(option);
	return err;
}

// ---- groups ----

// Does this rank update any element of the member?
static bool updates(const struct yoke_optim *o, int i)
{
	return !o->sharding.range || o->sharding.range[i].from < o->sharding.range[i].to;
}

bool yk_optim_together(const struct yk_optim_member *a, const struct yk_optim_member *b)
{
	return a->dtype == b->dtype && !memcmp(a->option, b->option, sizeof a->option);
}

bool yk_optim_like(const struct yk_optim_group *g, const struct yk_optim_member *m)
{
	return g->dtype == m->dtype && !memcmp(g->option, m->option, sizeof m->option);
}

void yk_optim_groups_free(struct yoke_optim *o)
{
	for (int i = 0; i < o->groups; i++) {
		struct yk_optim_group *g = &o->group[i];
		for (int k = 0; g->state && k < g->states + g->window; k++)
			free(g->state[k]);
		free(g->state);
		free(g->member);
		free(g->p);
		yk_optim_formulas_free(g->formula);
		for (int k = 0; k < YK_OPTIM_NUMBERS; k++)
			if (yk_is_alive(g->number[k]))
				yoke_free(g->number[k]);
		if (yk_is_alive(g->lr))
			yoke_free(g->lr);
	}
	free(o->group);
	o->group = NULL;
	o->groups = 0;
	for (int d = 0; d < 2; d++) {
		free(o->norm[d].tensor);
		free(o->norm[d].interval);
		free(o->norm[d].g);
		if (yk_is_alive(o->norm[d].latch))
			yoke_free(o->norm[d].latch);
		if (yk_is_alive(o->norm[d].after))
			yoke_free(o->norm[d].after);
		o->norm[d] = (struct yk_optim_norm){ 0 };
	}
}

// Creates the group of the members that have the options and dtype of member `first`.
static int group_make(const struct yoke_optim *o, int first, struct yk_optim_group *g)
{
	const struct yk_optim_member *like = &o->member[first];
	const size_t n = (size_t)o->n;
	g->option = like->option;
	g->dtype = like->dtype;
	g->states = yk_optim_part_states(o->kind, like->option);
	g->window = yk_optim_window(like->option);
	const size_t states = (size_t)(g->states + g->window);
	g->member = calloc(n, sizeof *g->member);
	g->p = calloc(4 * n, sizeof *g->p);
	g->state = calloc(states + 1, sizeof *g->state);
	for (size_t k = 0; k < states && g->state; k++)
		if (!(g->state[k] = calloc(n, sizeof **g->state)))
			return yk_fail(YOKE_ENOMEM, "optim_step: no memory");
	if (!g->member || !g->p || !g->state)
		return yk_fail(YOKE_ENOMEM, "optim_step: no memory");
	g->g = g->p + n;
	g->P = g->g + n;
	g->made = g->P + n;
	for (int i = first; i < o->n; i++) {
		const struct yk_optim_member *m = &o->member[i];
		if (!updates(o, i) || !yk_optim_together(like, m))
			continue;
		g->member[g->n] = i;
		g->p[g->n] = m->p;
		for (size_t k = 0; k < states; k++)
			g->state[k][g->n] = m->state[k];
		g->n++;
	}
	int lists = 0;
	for (const struct yk_optim_part *part = o->kind->part; part->text; part++)
		if (part->list && yk_optim_enables(part, like->option))
			g->list[lists++] = part->list;
	return 0;
}

static int64_t elements_of(const struct yoke_optim *o, int i)
{
	return o->sharding.range ? o->sharding.range[i].all : yoke_count(o->member[i].p);
}

int yk_optim_tensors(const struct yoke_optim *o)
{
	return o->sharding.tensor ? o->sharding.tensors : o->n;
}

const char *yk_optim_tensor_name(const struct yoke_optim *o, int i)
{
	return o->sharding.tensor ? o->sharding.tensor[i].name : o->member[i].name;
}

static size_t intervals_of(const struct yoke_optim *o, int64_t elements)
{
	return o->by_intervals ? (size_t)((elements + YK_OPTIM_INTERVAL - 1) / YK_OPTIM_INTERVAL) :
				 1;
}

static int norm_make(const struct yoke_optim *o, int dtype, struct yk_optim_norm *to)
{
	const struct yk_optim_tensor *tensor = o->sharding.tensor;
	const int tensors = yk_optim_tensors(o);
	size_t max = 0;
	for (int i = 0; i < tensors; i++)
		max += intervals_of(o, tensor ? tensor[i].elements : elements_of(o, i));
	to->tensor = calloc(max + 1, sizeof *to->tensor);
	to->g = calloc(max + 1, sizeof *to->g);
	to->interval = o->by_intervals ? calloc(max + 1, sizeof *to->interval) : NULL;
	if (!to->tensor || !to->g || (o->by_intervals && !to->interval))
		return yk_fail(YOKE_ENOMEM, "optim_step: no memory");
	for (int i = 0; i < tensors; i++) {
		const int64_t all = tensor ? tensor[i].elements : elements_of(o, i);
		for (size_t k = 0; k < intervals_of(o, all); k++) {
			const int64_t from = (int64_t)k * YK_OPTIM_INTERVAL, rest = all - from;
			if ((tensor ? yoke_f32 : o->member[i].dtype) != dtype)
				continue;
			if (to->interval)
				to->interval[to->n] = (struct yk_optim_range){
					from,
					rest < YK_OPTIM_INTERVAL ? all : from + YK_OPTIM_INTERVAL,
					all
				};
			to->tensor[to->n++] = i;
		}
	}
	const int64_t n = to->n + 1;
	if (!to->n || !(o->option[YK_O_check] > 0))
		return 0;
	to->latch = yoke_variable("norms", dtype, 1, &n);
	if (to->latch && !o->numbered)
		to->after = yoke_variable("steps_after", yoke_f32, 0, NULL);
	return to->latch && (to->after || o->numbered) ? 0 : yk_error_last();
}

int yk_optim_groups_make(struct yoke_optim *o)
{
	int err = 0;
	if (o->group)
		return 0;
	if (!(o->group = calloc((size_t)o->n, sizeof *o->group)))
		return yk_fail(YOKE_ENOMEM, "optim_step: no memory for groups");
	for (int i = 0; i < o->n && !err; i++) {
		int k = 0;
		while (k < i && !(updates(o, k) && yk_optim_together(&o->member[k], &o->member[i])))
			k++;
		if (k < i || !updates(o, i))
			continue;
		err = group_make(o, i, &o->group[o->groups]);
		o->groups++;
	}
	if (!err)
		err = norm_make(o, yoke_f32, &o->norm[0]);
	if (!err)
		err = norm_make(o, yoke_f64, &o->norm[1]);
	if (err)
		yk_optim_groups_free(o);
	return err;
}

// ---- queries ----

int yoke_optim_skipped(yoke_optim *o)
{
	const int err = yk_require(o, "optimizer");
	if (err || o->t < 1)
		return err ? err : yk_fail(YOKE_EINVAL, "optim_skipped: there was no step");
	o->t--;
	return 0;
}

int64_t yoke_optim_steps(const yoke_optim *o)
{
	const int err = yk_require(o, "optimizer");
	return err ? err : o->t;
}

void yk_optim_at(struct yoke_optim *o, int64_t t)
{
	o->t = t;
	o->numbered = true;
}

void yk_optim_unnumber(struct yoke_optim *o)
{
	if (o->numbered)
		yk_optim_groups_free(o); // to rebuild them with a counter
	o->numbered = false;
}

int yk_optim_parameters(const struct yoke_optim *o)
{
	return o->n;
}

double yoke_optim_lr(const yoke_optim *o, const char *parameter, int64_t t)
{
	if (yk_require(o, "optimizer") || yk_require(parameter, "name of a parameter"))
		return NAN;
	for (int i = 0; i < o->n; i++)
		if (!strcmp(o->member[i].name, parameter)) {
			struct yk_lr_schedule s = yk_optim_schedule(o->member[i].option);
			return yk_schedule_lr(&s, t);
		}
	yk_fail(YOKE_ENOENT, "optim_lr: there is no parameter '%s'", parameter);
	return NAN;
}

// The steps without effect because a norm was not finite: the first such step, and those after it.
static int read_lost(const struct yk_optim_norm *n, int64_t *lost)
{
	float after = 0;
	const int err = n->after ? yoke_read(n->after, &after, sizeof after) : 0;
	if (!err && n->after && *lost < 1 + (int64_t)after)
		*lost = 1 + (int64_t)after;
	return err;
}

// The first tensor of a dtype whose norm is not finite: *bad is its index, or -1.  clear: resets
// all norms to 0.
static int read_latch(const struct yk_optim_norm *n, int dtype, bool clear, int *bad, int64_t *lost)
{
	*bad = -1;
	if (!n->latch)
		return 0;
	const size_t bytes = yoke_bytes(n->latch);
	void *x = malloc(bytes);
	int err =
		x ? yoke_read(n->latch, x, bytes) : yk_fail(YOKE_ENOMEM, "optim_check: no memory");
	for (int i = n->n; i >= 0 && !err; i--) // the sum may overflow although no norm does
		if (!isfinite(dtype == yoke_f64 ? ((double *)x)[i] : (double)((float *)x)[i]))
			*bad = n->tensor[i < n->n ? i : 0];
	if (!err && *bad >= 0)
		err = read_lost(n, lost);
	if (!err && *bad >= 0 && clear) {
		memset(x, 0, bytes);
		err = yoke_put(n->latch, x, bytes);
	}
	free(x);
	return err;
}

static int bad_tensor(const struct yoke_optim *o, bool clear, int *to, int64_t *lost)
{
	int bad[2] = { -1, -1 };
	*lost = 0;
	int err = read_latch(&o->norm[0], yoke_f32, clear, &bad[0], lost);
	if (!err)
		err = read_latch(&o->norm[1], yoke_f64, clear, &bad[1], lost);
	*to = bad[0] < 0 || (bad[1] >= 0 && bad[1] < bad[0]) ? bad[1] : bad[0];
	return err;
}

const char *yk_optim_bad(struct yoke_optim *o)
{
	int bad = -1;
	int64_t lost;
	return !bad_tensor(o, true, &bad, &lost) && bad >= 0 ? yk_optim_tensor_name(o, bad) : NULL;
}

int yk_optim_skipped(const struct yoke_optim *o, int64_t *lost)
{
	int bad;
	return bad_tensor(o, false, &bad, lost);
}

int yoke_optim_check(yoke_optim *o)
{
	int bad = -1;
	if (!o || !(o->option[YK_O_check] > 0))
		return yk_fail(YOKE_EINVAL, "optim_check: needs check=1");
	int64_t lost;
	int err = bad_tensor(o, true, &bad, &lost);
	if (err || bad < 0)
		return err;
	o->t -= lost < o->t ? lost : o->t;
	return yk_fail(YOKE_ERANGE,
		       "optim_check: the gradient of %s is not finite, or its norm; the "
		       "steps since then changed nothing",
		       yk_optim_tensor_name(o, bad));
}
