// SPDX-License-Identifier: Apache-2.0
// Translates configuration keys into a library optimizer, and exposes its states to checkpoints.
#include "config.h"

#include "config/optim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/number.h"
#include "optim/optim.h"

enum { SETTINGS = 2048 };

// ---- keys ----

static const struct {
	const char *kind, *settings;
} train_defaults[] = {
	{ "adamw", "beta2=0.99 weight_decay=0.1" },
	{ "sgd", "momentum=0.9 weight_decay=0.1" },
	{ "muon", "beta2=0.99 adjust_lr_fn=match_rms_adamw" },
};
#define TRAIN_CLIP 1.0

static const char *train_settings(const char *kind)
{
	for (size_t i = 0; i < sizeof train_defaults / sizeof *train_defaults; i++)
		if (!strcmp(train_defaults[i].kind, kind))
			return train_defaults[i].settings;
	return "";
}

static const char *kind_of(const struct yk_config *c)
{
	return yk_config_str(c, YK_KEY_optimizer);
}

// The key of an option; keys are in the order of YK_OPTIM_OPTIONS.
static enum yk_config_key key_of(int option)
{
	return (enum yk_config_key)(YK_KEY_lr + (option - YK_O_lr));
}
enum { KEYS = YK_O_schedule }; // index of the first option after the keys of the kinds

static bool is_set(const struct yk_config *c, enum yk_config_key key)
{
	return strcmp(yk_config_str(c, key), "auto");
}

// The settings for yoke_optim_new: the keys that the optimizer has and that are set.
static void settings_of(const struct yk_config *c, char *to, size_t cap)
{
	const struct yk_optim_kind *kind = yk_optim_kind_find(kind_of(c));
	size_t n = (size_t)snprintf(to, cap, "%s check=1", train_settings(kind->name));
	if (!is_set(c, YK_KEY_clip) && !(yk_config_real(c, YK_KEY_clip_value) > 0))
		n += (size_t)yk_snprintf(to + n, cap - n, " clip=%.17g", TRAIN_CLIP);
	for (int i = 0; i < KEYS; i++) {
		const enum yk_config_key key = key_of(i);
		if (!yk_optim_has(kind, i) || !is_set(c, key))
			continue;
		n += (size_t)snprintf(to + n, cap - n, " %s=", yk_config_rows[key].name);
		if (yk_config_rows[key].type == YK_KEY_CHOICE)
			n += (size_t)snprintf(to + n, cap - n, "%s", yk_config_str(c, key));
		else if (yk_config_rows[key].type == YK_KEY_INT)
			n += (size_t)snprintf(to + n, cap - n, "%lld",
					      (long long)yk_config_int(c, key));
		else
			n += (size_t)yk_snprintf(to + n, cap - n, "%.17g", yk_config_real(c, key));
	}
}

// Rejects an argument for an option that the optimizer does not have. Files are exempt because they
// may serve several optimizers.
static int foreign_option(const struct yk_config *c, const struct yk_optim_kind *kind)
{
	char known[512] = "";
	size_t n = 0;
	for (int i = 0; i < KEYS; i++)
		if (yk_optim_has(kind, i))
			n += (size_t)snprintf(known + n, sizeof known - n, " %s",
					      yk_optim_rows[i].name);
	for (int i = 0; i < KEYS; i++) {
		const enum yk_config_key key = key_of(i);
		if (!yk_optim_has(kind, i) && c->value[key].origin == YK_BY_ARGUMENT)
			return yk_fail(YOKE_EINVAL,
				       "argument '%s=%s': optimizer=%s has no %s; it has%s",
				       yk_config_rows[key].name, yk_config_str(c, key), kind->name,
				       yk_config_rows[key].name, known);
	}
	return 0;
}

static int options_of(const struct yk_config *c, double *option)
{
	const struct yk_optim_kind *kind = yk_optim_kind_find(kind_of(c));
	char settings[SETTINGS];
	settings_of(c, settings, sizeof settings);
	yk_optim_defaults(kind, option);
	return yk_optim_settings(kind, "argument", settings, option);
}

// Rejects ranks that share parameters or states if the optimizer needs whole ones.
static int check_ranks(const struct yk_config *c, const struct yk_optim_kind *kind)
{
	static const struct {
		enum yk_config_key key;
		int alone;
	} keys[] = { { YK_KEY_zero, 0 }, { YK_KEY_tensor, 1 }, { YK_KEY_stages, 1 } };
	for (size_t i = 0; i < sizeof keys / sizeof *keys && kind->matrix; i++)
		if (yk_config_int(c, keys[i].key) > keys[i].alone)
			return yk_fail(
				YOKE_EUNSUPPORTED,
				"%s=%d: optimizer=%s needs whole parameters and states on each rank; "
				"use %s=%d, or another optimizer",
				yk_config_rows[keys[i].key].name,
				(int)yk_config_int(c, keys[i].key), kind->name,
				yk_config_rows[keys[i].key].name, keys[i].alone);
	return 0;
}

int yk_optim_check(const struct yk_config *c)
{
	double option[YK_OPTIM_OPTION_COUNT];
	const struct yk_optim_kind *kind = yk_optim_kind_find(kind_of(c));
	int e = foreign_option(c, kind);
	if (e == 0)
		e = check_ranks(c, kind);
	return e < 0 ? e : options_of(c, option);
}

int yk_optim_states_each(const struct yk_config *c)
{
	double option[YK_OPTIM_OPTION_COUNT];
	const struct yk_optim_kind *kind = yk_optim_kind_find(kind_of(c));
	if (kind->matrix || options_of(c, option) < 0)
		return 0;
	return yk_optim_part_states(kind, option) + yk_optim_window(option);
}

bool yk_optim_option(const struct yk_config *c, enum yk_config_key key, char *to, size_t cap)
{
	const struct yk_optim_kind *kind = yk_optim_kind_find(kind_of(c));
	double option[YK_OPTIM_OPTION_COUNT];
	const int i = (int)key - (int)key_of(0);
	if (i < 0 || i >= KEYS || is_set(c, key) || !yk_optim_has(kind, i))
		return false;
	if (options_of(c, option) < 0) { // reported when the keys are checked
		yoke_error_clear();
		return false;
	}
	return yk_optim_value_text(i, option[i], to, cap) > 0;
}

void yk_optim_text(const char *name, char *to, size_t cap)
{
	const struct yk_optim_kind *kind = yk_optim_kind_find(name);
	double option[YK_OPTIM_OPTION_COUNT];
	size_t n = 0;
	yk_optim_defaults(kind, option);
	yk_optim_settings(kind, "help", train_settings(name), option);
	for (int i = 0; i < YK_O_clip_value; i++) // all optimizers have the later ones
		if (yk_optim_has(kind, i) && i != YK_O_clip && n < cap) {
			n += (size_t)snprintf(to + n, cap - n, "%s%s=", n ? " " : "",
					      yk_optim_rows[i].name);
			if (n < cap)
				n += yk_optim_value_text(i, option[i], to + n, cap - n);
		}
}

struct yk_lr_schedule yk_optim_schedule_of(const struct yk_config *c, int64_t steps)
{
	double option[YK_OPTIM_OPTION_COUNT];
	const char *name = yk_config_str(c, YK_KEY_schedule);
	int64_t warmup = yk_config_int(c, YK_KEY_warmup);
	int kind = 0;
	options_of(c, option);
	while (strcmp(yk_schedule_names[kind], name))
		kind++;
	if (warmup == YK_AUTO)
		warmup = kind == YK_SCHEDULE_ONECYCLE ? yk_schedule_warmup(kind, steps) : 100;
	option[YK_O_schedule] = kind;
	option[YK_O_steps] = (double)steps;
	option[YK_O_warmup] = (double)warmup;
	return yk_optim_schedule(option);
}

// ---- states and steps ----

// Is the parameter for Muon, if it is a matrix?  Embeddings, the head, and bk's stacks of experts'
// matrices are not.
static bool is_hidden(const struct yk_config *c, const char *name)
{
	return !strncmp(name, "layer", 5) && strcmp(yk_config_str(c, YK_KEY_model), "bk");
}

static int add(struct yk_optim *o, const struct yk_config *c, const struct yk_parameters *ps)
{
	int e = 0;
	for (int i = 0; i < ps->count && e == 0; i++) {
		const char *name = ps->row[i].name;
		const struct yk_optim_kind *kind = o->rule->kind;
		char settings[64] = "";
		if (!ps->row[i].decay && yk_optim_has(kind, YK_O_weight_decay))
			strcat(settings, "weight_decay=0 ");
		if (yk_optim_has(kind, YK_O_orthogonalize) && !is_hidden(c, name))
			strcat(settings, "orthogonalize=0");
		e = yoke_optim_add(o->rule, 1, &ps->var[i], &name, settings);
	}
	return e;
}

// Lists the states, whose variables the optimizer owns.
static int list_states(struct yk_optim *o)
{
	struct yk_parameters *s = &o->states;
	const size_t n = (size_t)yk_optim_state_count(o->rule);
	char name[YK_OPTIM_NAME];
	if (yk_grow(&s->var, &s->var_cap, n, sizeof *s->var) < 0 ||
	    yk_grow(&s->row, &s->row_cap, n, sizeof *s->row) < 0)
		return yk_fail(YOKE_ENOMEM, "optimizer: out of memory for %zu states", n);
	for (size_t i = 0; i < n; i++) {
		s->var[i] = yk_optim_state_at(o->rule, (int)i, name);
		s->row[i] = (struct yk_parameter){ .name = strdup(name) };
		if (!s->row[i].name)
			return yk_fail(YOKE_ENOMEM, "optimizer: out of memory for %zu states", n);
		s->elements += yoke_count(s->var[i]);
		s->count++;
	}
	return 0;
}

int yk_optim_new(const struct yk_config *c, const struct yk_parameters *ps,
		 const struct yk_optim_sharding *sharding, struct yk_optim **to)
{
	char settings[SETTINGS];
	struct yk_optim *o = calloc(1, sizeof *o);
	if (!o)
		return yk_fail(YOKE_ENOMEM, "optimizer: out of memory");
	settings_of(c, settings, sizeof settings);
	o->p = ps->var;
	o->rule = yoke_optim_new(kind_of(c), settings);
	int e = o->rule ? add(o, c, ps) : yk_error_last();
	o->shared = sharding && (sharding->range || sharding->total || sharding->tensor);
	if (e == 0 && sharding)
		e = yk_optim_shard(o->rule, sharding);
	if (e == 0)
		e = yk_optim_states_ready(o->rule);
	if (e == 0)
		e = list_states(o);
	const int each = e == 0 ? yk_optim_states_each(c) : 0,
		  numbers = o->states.count - each * ps->count;
	// a state is sharded like its parameter
	for (int k = numbers; k < o->states.count && each && e == 0; k++)
		o->states.row[k].shard = ps->row[(k - numbers) / each].shard;
	if (e < 0)
		yk_optim_free(o);
	else
		*to = o;
	return e;
}

int yk_optim_of(yoke_optim *rule, const struct yk_parameters *ps,
		const struct yk_optim_sharding *sharding, struct yk_optim **to)
{
	struct yk_optim *o = calloc(1, sizeof *o);
	if (!o)
		return yk_fail(YOKE_ENOMEM, "optimizer: out of memory");
	*o = (struct yk_optim){
		.rule = rule, .p = ps->var, .borrowed = true, .shared = sharding && sharding->range
	};
	int e = sharding ? yk_optim_shard(rule, sharding) : 0;
	if (e == 0)
		e = yk_optim_states_ready(rule);
	if (e == 0)
		e = list_states(o);
	if (e < 0)
		yk_optim_free(o);
	else
		*to = o;
	return e;
}

int yk_optim_each(const struct yk_optim *o)
{
	const int n = yk_optim_parameters(o->rule);
	return n ? o->rule->member[0].states : 0;
}

void yk_optim_free(struct yk_optim *o)
{
	if (!o)
		return;
	for (int i = 0; i < o->states.count; i++)
		free(o->states.row[i].name);
	free(o->states.var);
	free(o->states.row);
	if (o->borrowed) {
		yk_optim_unshard(o->rule);
		yk_optim_unnumber(o->rule);
	} else {
		yoke_optim_free(o->rule);
	}
	free(o);
}

// Detects overflows if other ranks have some of the tensors.
static int take_squares(const struct yk_optim *o, yoke_scaler *scaler, yoke_tensor *const *g,
			yoke_tensor **norm, yoke_tensor **skip)
{
	const int n = yk_optim_tensors(o->rule);
	const char **name = calloc((size_t)n, sizeof *name);
	if (!name)
		return yk_fail(YOKE_ENOMEM, "optimizer: out of memory for %d names", n);
	for (int i = 0; i < n; i++)
		name[i] = yk_optim_tensor_name(o->rule, i);
	const int e = yk_scaler_take(scaler, n, name,
				     yk_optim_squares(o->rule, g, yoke_scaler_inverse(scaler)),
				     norm, skip);
	free(name);
	return e;
}

int yk_optim_step(struct yk_optim *o, yoke_scaler *scaler, int64_t t, const double *lr,
		  yoke_tensor *const *g, yoke_tensor *(*loss)(void *), void *arg,
		  yoke_tensor **norm)
{
	const int n = yk_optim_parameters(o->rule);
	struct yoke_step s = { .size = sizeof s, .scale = YOKE_NONE, .skip = YOKE_NONE, .lr = lr,
			       .loss = loss, .arg = arg, .norm = scaler ? NULL : norm };
	yk_optim_at(o->rule, t - 1);
	int e = 0;
	if (scaler && o->shared)
		e = take_squares(o, scaler, g, norm, &s.skip);
	else if (scaler)
		e = yoke_scaler_check(scaler, n, o->p, g, norm, &s.skip);
	if (scaler)
		s.scale = yoke_scaler_inverse(scaler);
	o->skip = s.skip;
	return e < 0 ? e : yoke_optim_step(o->rule, n, g, &s);
}

const struct yk_parameters *yk_optim_states(const struct yk_optim *o)
{
	return &o->states;
}
