// SPDX-License-Identifier: Apache-2.0
// States of optimizers: their list, their variables, saving and loading, and moving to other
// contexts.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/safetensors.h"
#include "graph/handle.h"
#include "optim/optim.h"

// ---- which states exist ----

bool yk_optim_enables(const struct yk_optim_part *part, const double *option)
{
	const char *when = part->when;
	if (!when)
		return true;
	const bool off = *when == '!';
	const size_t n = strcspn(when += off, "=");
	for (int k = 0; k < YK_OPTIM_OPTION_COUNT; k++)
		if (!strncmp(yk_optim_rows[k].name, when, n) && !yk_optim_rows[k].name[n])
			return when[n] ? option[k] == when[n + 1] - '0' : (option[k] > 0) != off;
	return false;
}

int yk_optim_part_states(const struct yk_optim_kind *k, const double *option)
{
	int n = 0;
	for (const struct yk_optim_part *part = k->part; part->text; part++)
		n += part->list && yk_optim_enables(part, option);
	return n;
}

bool yk_optim_same_states(const struct yk_optim_kind *k, const double *a, const double *b)
{
	bool same = yk_optim_window(a) == yk_optim_window(b);
	for (const struct yk_optim_part *part = k->part; part->text; part++)
		same &= !part->list || yk_optim_enables(part, a) == yk_optim_enables(part, b);
	return same;
}

int yk_optim_window(const double *option)
{
	return option[YK_O_window] > 0 && option[YK_O_window_by] < 2 ? (int)option[YK_O_window] : 0;
}

// The fragment that adds state number k.
static const struct yk_optim_part *part_of(const struct yk_optim_kind *kind, const double *option,
					   int k)
{
	const struct yk_optim_part *part = kind->part;
	while (!part->list || !yk_optim_enables(part, option) || k--)
		part++;
	return part;
}

static void state_name(const struct yk_optim_kind *kind, const double *option, int k, char *to,
		       size_t room)
{
	const int n = yk_optim_part_states(kind, option);
	if (k < n)
		snprintf(to, room, "%s", part_of(kind, option, k)->state);
	else
		snprintf(to, room, "window%d", k - n);
}

// ---- variables ----

static int fill(yoke_tensor *t, double value)
{
	const int64_t n = yoke_count(t);
	const size_t size = yoke_bytes(t) / (n ? (size_t)n : 1);
	const float narrow = (float)value;
	char *host = malloc(yoke_bytes(t) + 1);
	if (!host)
		return yk_fail(YOKE_ENOMEM, "optimizer: no host memory for %lld elements",
			       (long long)n);
	for (int64_t i = 0; i < n; i++)
		memcpy(host + (size_t)i * size,
		       size == sizeof value ? (const void *)&value : &narrow, size);
	int err = yoke_put(t, host, yoke_bytes(t));
	free(host);
	return err;
}

static void drop(yoke_tensor **t)
{
	if (yk_is_alive(*t)) // otherwise it was freed with its context
		yoke_free(*t);
	*t = NULL;
}

void yk_optim_states_free(struct yk_optim_member *m)
{
	for (int k = 0; k < m->states; k++)
		drop(&m->state[k]);
	free(m->state);
	m->state = NULL;
	m->states = 0;
}

int yk_optim_states_make(const struct yoke_optim *o, struct yk_optim_member *m)
{
	const int parts = yk_optim_part_states(o->kind, m->option),
		  n = parts + yk_optim_window(m->option);
	char name[YK_OPTIM_NAME], state[32];
	int64_t dims[YOKE_MAX_RANK];
	const struct yk_optim_range *range =
		o->sharding.range ? &o->sharding.range[m - o->member] : NULL;
	int rank = m->rank, err = 0;
	if (m->state)
		return 0;
	if (!(m->state = calloc((size_t)n + 1, sizeof *m->state)))
		return yk_fail(YOKE_ENOMEM, "optimizer: no memory for states");
	memcpy(dims, m->dims, sizeof dims);
	if (range) {
		rank = 1;
		dims[0] = range->to - range->from;
	}
	for (int k = 0; k < n && !err; k++) {
		state_name(o->kind, m->option, k, state, sizeof state);
		snprintf(name, sizeof name, "%s.%s", state, m->name);
		const int shape =
			k < parts ? part_of(o->kind, m->option, k)->shape : YK_OPTIM_WHOLE;
		// the axis with 1 element
		const int thin = shape == YK_OPTIM_ROWS ? rank - 1 : rank - 2;
		const int64_t was = shape ? dims[thin] : 0;
		if (shape)
			dims[thin] = 1;
		m->state[k] = yoke_keep(yoke_variable(name, m->dtype, rank, dims));
		if (shape)
			dims[thin] = was;
		m->states = k + 1;
		const char *from = k < parts ? part_of(o->kind, m->option, k)->fill : NULL;
		if (!m->state[k])
			err = yk_error_last();
		for (int i = 0; i < YK_OPTIM_OPTION_COUNT && from && !err; i++)
			if (!strcmp(yk_optim_rows[i].name, from) && m->option[i] > 0)
				err = fill(m->state[k], m->option[i]);
	}
	if (err)
		yk_optim_states_free(m);
	return err;
}

void yk_optim_scalars_free(struct yoke_optim *o)
{
	for (int k = 0; k < YK_OPTIM_SCALARS; k++)
		drop(&o->scalar[k]);
}

int yk_optim_scalars_make(struct yoke_optim *o)
{
	int dtype = yoke_f32, err = 0;
	for (int i = 0; i < o->n; i++)
		if (o->member[i].dtype == yoke_f64)
			dtype = yoke_f64;
	for (int k = 0; k < YK_OPTIM_SCALARS && o->kind->scalar[k].name && !err; k++) {
		if (o->scalar[k])
			continue;
		o->scalar[k] = yoke_keep(yoke_variable(o->kind->scalar[k].name, dtype, 0, NULL));
		err = o->scalar[k] ? fill(o->scalar[k], o->kind->scalar[k].first) : yk_error_last();
	}
	if (err)
		yk_optim_scalars_free(o);
	return err;
}

int yk_optim_states_ready(struct yoke_optim *o)
{
	int err = yk_optim_scalars_make(o);
	for (int i = 0; i < o->n && !err; i++)
		err = yk_optim_states_make(o, &o->member[i]);
	return err;
}

// ---- access by index and name ----

static int scalar_count(const struct yoke_optim *o)
{
	int n = 0;
	while (n < YK_OPTIM_SCALARS && o->kind->scalar[n].name)
		n++;
	return n;
}

int yk_optim_state_count(const struct yoke_optim *o)
{
	int n = scalar_count(o);
	for (int i = 0; i < o->n; i++)
		n += o->member[i].states;
	return n;
}

yoke_tensor *yk_optim_state_at(const struct yoke_optim *o, int k, char *name)
{
	const int scalars = scalar_count(o);
	char state[32];
	if (k < scalars) {
		snprintf(name, YK_OPTIM_NAME, "optimizer.%s", o->kind->scalar[k].name);
		return o->scalar[k];
	}
	const struct yk_optim_member *m = o->member;
	for (k -= scalars; k >= m->states; m++)
		k -= m->states;
	state_name(o->kind, m->option, k, state, sizeof state);
	snprintf(name, YK_OPTIM_NAME, "%s.%s", state, m->name);
	return m->state[k];
}

// Is any tensor of its context alive?
static bool is_here(const struct yoke_optim *o)
{
	bool here = false;
	for (int i = 0; i < o->n && !here; i++)
		here = yk_is_alive(o->member[i].p) ||
		       (o->member[i].states && yk_is_alive(o->member[i].state[0]));
	for (int k = 0; k < YK_OPTIM_SCALARS && !here; k++)
		here = yk_is_alive(o->scalar[k]);
	return here;
}

// Makes its context current and creates all states; on an error nothing is changed.
static int enter(struct yoke_optim *o, const char *call, yoke_context **former)
{
	if (!o || !o->n)
		return yk_fail(YOKE_EINVAL, "%s: no parameters were added", call);
	if (!is_here(o))
		return yk_fail(YOKE_ECONTEXT,
			       "%s: the context of '%s' no longer exists: its thread ended, or "
			       "yoke_context_free freed it",
			       call, o->member[0].name);
	*former = yoke_use(o->ctx);
	int err = yk_optim_states_ready(o);
	if (err)
		yoke_use(*former);
	return err;
}

yoke_tensor *yoke_optim_state(const yoke_optim *o, const char *parameter, const char *state)
{
	char want[YK_OPTIM_NAME], name[YK_OPTIM_NAME];
	if (!o || !state) {
		yk_fail(YOKE_EINVAL, "optim_state: there is no optimizer, or no name");
		return NULL;
	}
	if (parameter)
		snprintf(want, sizeof want, "%s.%s", state, parameter);
	else
		snprintf(want, sizeof want, "optimizer.%s", state);
	yoke_context *former;
	// creates them if necessary
	int err = enter((struct yoke_optim *)o, "optim_state", &former);
	if (!err)
		yoke_use(former);
	for (int k = 0; k < yk_optim_state_count(o) && !err; k++) {
		yoke_tensor *t = yk_optim_state_at(o, k, name);
		if (!strcmp(name, want))
			return t;
	}
	if (!err)
		yk_fail(YOKE_ENOENT, "optim_state: %s has no state '%s'", o->kind->name, want);
	return NULL;
}

// ---- host copies ----

struct copies {
	int n;
	struct yk_host_tensor *tensor; // the states, then the step
	char (*name)[YK_OPTIM_NAME];
	int64_t step;
};

static void copies_free(struct copies *c)
{
	for (int i = 0; c->tensor && i < c->n; i++)
		free(c->tensor[i].data);
	free(c->tensor);
	free(c->name);
}

// Prepares names, shapes and room for all states, and for the step, which is named after the kind.
static int copies_make(const struct yoke_optim *o, const char *call, struct copies *c)
{
	int64_t lost;
	const int err = yk_optim_skipped(o, &lost);
	if (err)
		return err;
	*c = (struct copies){ .n = yk_optim_state_count(o),
			      .step = o->t - (lost < o->t ? lost : o->t) };
	c->tensor = calloc((size_t)c->n + 1, sizeof *c->tensor);
	c->name = calloc((size_t)c->n + 1, sizeof *c->name);
	if (!c->tensor || !c->name)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", call);
	for (int i = 0; i < c->n; i++) {
		struct yk_host_tensor *t = &c->tensor[i];
		const yoke_tensor *var = yk_optim_state_at(o, i, c->name[i]);
		*t = (struct yk_host_tensor){ .name = c->name[i],
					      .dtype = yoke_dtype(var),
					      .rank = yoke_rank(var) };
		for (int d = 0; d < t->rank; d++)
			t->dims[d] = yoke_dim(var, d);
		if (!(t->data = malloc(yoke_bytes(var) + 1)))
			return yk_fail(YOKE_ENOMEM, "%s: no host memory for %s", call, t->name);
	}
	snprintf(c->name[c->n], sizeof *c->name, "step.%s", o->kind->name);
	c->tensor[c->n] = (struct yk_host_tensor){ .name = c->name[c->n],
						   .dtype = yoke_i64,
						   .data = &c->step };
	return 0;
}

static int copies_read(const struct yoke_optim *o, struct copies *c)
{
	char name[YK_OPTIM_NAME];
	int err = 0;
	for (int i = 0; i < c->n && !err; i++) {
		yoke_tensor *var = yk_optim_state_at(o, i, name);
		err = yoke_read(var, c->tensor[i].data, yoke_bytes(var));
	}
	return err;
}

static int copies_put(const struct yoke_optim *o, const struct copies *c)
{
	char name[YK_OPTIM_NAME];
	int err = 0;
	for (int i = 0; i < c->n && !err; i++) {
		yoke_tensor *var = yk_optim_state_at(o, i, name);
		err = yoke_put(var, c->tensor[i].data, yoke_bytes(var));
	}
	return err;
}

// ---- files ----

int yoke_optim_save(yoke_optim *o, const char *path)
{
	struct copies c = { 0 };
	uint64_t bytes, hash;
	yoke_context *former;
	int err = enter(o, "optim_save", &former);
	if (err)
		return err;
	err = copies_make(o, "optim_save", &c);
	if (!err)
		err = copies_read(o, &c);
	if (!err)
		err = yk_safetensors_write(path, c.n + 1, c.tensor, &bytes, &hash);
	copies_free(&c);
	yoke_use(former);
	return err;
}

// Does the file have exactly this optimizer's states?
static int judge(const struct yoke_optim *o, const struct yk_safetensors *f, const struct copies *c)
{
	for (int i = 0; i < f->count; i++)
		if (!strncmp(f->entries[i].name, "step.", 5) &&
		    strcmp(f->entries[i].name, c->name[c->n]) &&
		    yk_optim_kind_find(f->entries[i].name + 5) && f->entries[i].dtype == yoke_i64)
			return yk_fail(YOKE_EFORMAT,
				       "optim_load: %s: holds states of %s, this is %s", f->path,
				       f->entries[i].name + 5, o->kind->name);
	for (int i = 0; i <= c->n; i++) {
		const struct yk_host_tensor *t = &c->tensor[i];
		const struct yk_safetensors_entry *e = yk_safetensors_find(f, t->name);
		if (!e)
			return yk_fail(YOKE_EFORMAT,
				       "optim_load: %s: has no %s; it is of other parameters, or "
				       "settings that have other states",
				       f->path, t->name);
		bool same = e->rank == t->rank &&
			    !memcmp(e->dims, t->dims, (size_t)t->rank * sizeof *t->dims);
		if (!same || e->dtype != t->dtype)
			return yk_fail(same ? YOKE_EDTYPE : YOKE_ESHAPE,
				       "optim_load: %s: %s has another %s than "
				       "here",
				       f->path, t->name, same ? "dtype" : "shape");
	}
	if (f->count != c->n + 1)
		return yk_fail(
			YOKE_EFORMAT,
			"optim_load: %s: has %d arrays, here are %d; it is of more parameters, "
			"or settings that have more states",
			f->path, f->count, c->n + 1);
	return 0;
}

static int load(struct yoke_optim *o, const struct yk_safetensors *f, struct copies *c)
{
	int err = judge(o, f, c);
	for (int i = 0; i <= c->n && !err; i++)
		err = yk_safetensors_read(f, yk_safetensors_find(f, c->name[i]), c->tensor[i].data);
	if (!err && (c->step < 0 || c->step > (int64_t)1 << 53))
		err = yk_fail(YOKE_EFORMAT, "optim_load: %s: is of step %lld", f->path,
			      (long long)c->step);
	if (!err)
		err = copies_put(o, c);
	if (!err)
		o->t = c->step;
	return err;
}

int yoke_optim_load(yoke_optim *o, const char *path)
{
	struct copies c = { 0 };
	struct yk_safetensors f;
	yoke_context *former;
	int err = yk_require(path, "path");
	if (!err)
		err = enter(o, "optim_load", &former);
	if (err)
		return err;
	err = copies_make(o, "optim_load", &c);
	if (!err && !(err = yk_safetensors_open(&f, path))) {
		err = load(o, &f, &c);
		yk_safetensors_close(&f);
	}
	copies_free(&c);
	yoke_use(former);
	return err;
}

// ---- other contexts ----

// Is p[i], in the new context, like the present parameter?
static int check_moved(const struct yoke_optim *o, const struct yoke_context *to,
		       yoke_tensor *const *p)
{
	for (int i = 0; i < o->n; i++) {
		const struct yk_optim_member *m = &o->member[i];
		const struct yk_tensor *t =
			p[i] && p[i] != YOKE_NONE ? yk_tensor(p[i], "optim_move") : NULL;
		if (!t || t->ctx != to)
			return yk_fail(YOKE_ECONTEXT,
				       "optim_move: %s: is no tensor of the context to move to",
				       m->name);
		const bool same = t->rank == m->rank &&
				  !memcmp(t->dims, m->dims, (size_t)t->rank * sizeof *t->dims);
		if (t->kind != YK_VARIABLE || t->dtype != m->dtype || !same)
			return yk_fail(YOKE_ESHAPE,
				       "optim_move: %s: is no variable of the same dtype and shape",
				       m->name);
		for (int k = 0; k < i; k++)
			if (p[k] == p[i])
				return yk_fail(YOKE_EINVAL,
					       "optim_move: %s and %s have the same variable",
					       o->member[k].name, m->name);
	}
	return 0;
}

int yoke_optim_move(yoke_optim *o, yoke_context *to, yoke_tensor *const *p)
{
	struct copies c = { 0 };
	struct yoke_optim there;
	if (!o || !o->n || !to || !p)
		return yk_fail(YOKE_EINVAL,
			       "optim_move: no parameters were added, or no context is given");
	// otherwise no states exist yet
	const bool any = yk_optim_state_count(o) > 0 && (o->member[0].state || o->scalar[0]);
	yoke_context *former;
	int err = check_moved(o, to, p);
	if (!err && any && !(err = enter(o, "optim_move", &former))) {
		err = copies_make(o, "optim_move", &c);
		if (!err)
			err = copies_read(o, &c);
		yoke_use(former);
	}
	there = *o;
	there.ctx = to;
	memset(there.scalar, 0, sizeof there.scalar);
	there.member = err ? NULL : calloc((size_t)o->n, sizeof *there.member);
	if (!err && !there.member)
		err = yk_fail(YOKE_ENOMEM, "optim_move: no memory");
	former = yoke_use(to);
	for (int i = 0; i < o->n && !err; i++) {
		there.member[i] = o->member[i];
		there.member[i].p = p[i];
		there.member[i].state = NULL;
		there.member[i].states = 0;
	}
	if (!err)
		err = yk_optim_states_ready(&there);
	if (!err)
		err = copies_put(&there, &c);
	struct yoke_optim *gone = err ? &there : o; // its states are freed
	for (int i = 0; gone->member && i < o->n; i++)
		yk_optim_states_free(&gone->member[i]);
	yk_optim_scalars_free(gone);
	if (!err) {
		yk_optim_groups_free(o);
		for (int i = 0; i < o->n; i++)
			o->member[i] = there.member[i];
		memcpy(o->scalar, there.scalar, sizeof o->scalar);
		o->ctx = to;
		o->t = any ? c.step : o->t;
	}
	free(there.member);
	copies_free(&c);
	yoke_use(former);
	return err;
}
