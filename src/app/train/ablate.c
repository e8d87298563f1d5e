// SPDX-License-Identifier: Apache-2.0
// Runs and evaluates the variants of an ablation.
#include "config.h"

#include "train/ablate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/param.h"
#include "train/trial.h"

enum { TOGGLES = 8, VARIANTS = 2 * TOGGLES + 2, ROUNDS = 31, STEPS = 20, WARM = 3 };

struct toggle {
	char text[128];           // as given: "recompute=block"
	struct yk_param *setting; // NULL: it is a key of the configuration
	const char *value;        // points into text
};

struct variant {
	char name[160];
	unsigned on; // bit mask of toggles
	double rate[ROUNDS], loss[ROUNDS];
	uint64_t peak;
};

struct ablation {
	struct yk_config *config;
	int toggles, variants, rounds;
	struct toggle toggle[TOGGLES];
	struct variant variant[VARIANTS];
	char device[48];
};

// ---- toggles ----

static int add_toggle(struct ablation *a, const char *text, size_t bytes)
{
	struct toggle *t = &a->toggle[a->toggles];
	char name[64];
	struct yk_config other;
	if (a->toggles == TOGGLES)
		return yk_fail(YOKE_EINVAL, "toggles: more than %d", TOGGLES);
	if (bytes >= sizeof t->text || !memchr(text, '=', bytes))
		return yk_fail(YOKE_EINVAL, "toggles: '%.*s' is not key=value", (int)bytes, text);
	snprintf(t->text, sizeof t->text, "%.*s", (int)bytes, text);
	t->value = strchr(t->text, '=') + 1;
	snprintf(name, sizeof name, "%.*s", (int)(t->value - 1 - t->text), t->text);
	for (int i = 0; i < a->toggles; i++)
		if (!strncmp(a->toggle[i].text, name, strlen(name)) &&
		    a->toggle[i].text[strlen(name)] == '=')
			return yk_fail(YOKE_EINVAL, "toggles: '%s' gives this key already",
				       a->toggle[i].text);
	const char *one[] = { t->text };
	struct yk_error_aside *aside = yk_error_aside();
	int e = yk_config_with(a->config, 1, one, &other);
	if (e == 0)
		yk_config_fini(&other);
	else if (e == YOKE_ENOENT && (t->setting = yk_param_find(name))) { // a setting, not a key
		yoke_error_clear();
		e = 0;
	}
	if (e == 0)
		yk_error_restore(aside);
	a->toggles += e == 0;
	return e;
}

static int parse_toggles(struct ablation *a, const char *list)
{
	int e = 0;
	while (*list && e == 0) {
		size_t n = strcspn(list, ",");
		e = add_toggle(a, list, n);
		list += n + (list[n] == ',');
	}
	if (e == 0 && !a->toggles)
		return yk_fail(YOKE_EINVAL, "no toggles; give some, for example "
					    "toggles=recompute=block,precision=bf16-mixed");
	return e;
}

static void add_variant(struct ablation *a, unsigned on, const char *name, const char *more)
{
	for (int i = 0; i < a->variants; i++)
		if (a->variant[i].on == on)
			return; // a single toggle: "alone" and "all on" are the same
	struct variant *v = &a->variant[a->variants++];
	v->on = on;
	snprintf(v->name, sizeof v->name, "%s%s", name, more);
}

static void make_variants(struct ablation *a)
{
	const unsigned all = (1u << a->toggles) - 1;
	add_variant(a, 0, "all off", "");
	for (int i = 0; i < a->toggles; i++)
		add_variant(a, 1u << i, "", a->toggle[i].text);
	for (int i = 0; i < a->toggles; i++)
		add_variant(a, all & ~(1u << i), "all but ", a->toggle[i].text);
	add_variant(a, all, "all on", "");
}

// ---- measuring ----

static int measure(struct ablation *a, struct variant *v, int round)
{
	const char *keys[TOGGLES];
	char *was[TOGGLES] = { NULL };
	struct yk_config c;
	struct yk_trial trial;
	int n = 0;
	for (int i = 0; i < a->toggles; i++)
		if (v->on >> i & 1 && !a->toggle[i].setting)
			keys[n++] = a->toggle[i].text;
	int e = yk_config_with(a->config, n, keys, &c);
	if (e < 0)
		return e;
	for (int i = 0; i < a->toggles && e == 0; i++)
		if (v->on >> i & 1 && a->toggle[i].setting) {
			was[i] = strdup(yk_param_str(a->toggle[i].setting));
			e = yk_param_set(a->toggle[i].setting->name, a->toggle[i].value,
					 YK_ARGUMENT);
		}
	const int64_t steps = yk_config_int(a->config, YK_KEY_steps),
		      warm = steps > 2 * WARM ? WARM : steps > 1;
	// a single group of all steps after the warm-up
	const struct yk_trial_options ask = { .warm = warm,
					      .max = steps,
					      .groups = YK_TRIAL_GROUPS };
	if (e == 0)
		e = yk_trial_run(&c, &ask, &trial);
	if (e == 0) {
		v->rate[round] = 1 / trial.seconds;
		v->loss[round] = trial.loss;
		v->peak = trial.peak > v->peak ? trial.peak : v->peak;
		snprintf(a->device, sizeof a->device, "%s", trial.device);
	} else {
		char why[1024];
		snprintf(why, sizeof why, "%s", yoke_error());
		yoke_error_clear();
		yk_fail(e, "%s: %s", v->name, why);
	}
	for (int i = 0; i < a->toggles; i++)
		if (was[i]) {
			yk_param_set(a->toggle[i].setting->name, was[i], YK_ARGUMENT);
			free(was[i]);
		}
	yk_config_fini(&c);
	return e;
}

// ---- the result ----

static json_t *result(struct ablation *a)
{
	json_t *variants = json_array(), *toggles = json_array();
	double off = 0;
	for (int i = 0; i < a->toggles; i++)
		json_array_append_new(toggles, json_string(a->toggle[i].text));
	for (int i = 0; i < a->variants; i++) {
		struct variant *v = &a->variant[i];
		double spread, loss_spread;
		double rate = yk_median(a->rounds, v->rate, &spread),
		       loss = yk_median(a->rounds, v->loss, &loss_spread);
		json_t *on = json_array();
		off = i ? off : rate;
		for (int k = 0; k < a->toggles; k++)
			if (v->on >> k & 1)
				json_array_append_new(on, json_string(a->toggle[k].text));
		json_array_append_new(variants,
				      json_pack("{s:s, s:o, s:f, s:f, s:I, s:o, s:o, s:f}", "name",
						v->name, "on", on, "steps_per_s", rate, "spread",
						spread, "peak_bytes", (json_int_t)v->peak, "loss",
						yk_json_of_real(loss), "loss_spread",
						yk_json_of_real(loss_spread), "ratio", rate / off));
	}
	json_t *o = json_pack("{s:s, s:I, s:i, s:o, s:o}", "device", a->device, "steps",
			      (json_int_t)yk_config_int(a->config, YK_KEY_steps), "rounds",
			      a->rounds, "toggles", toggles, "variants", variants);
	if (!o)
		yk_fail(YOKE_ENOMEM, "no memory for the result");
	return o;
}

json_t *yk_ablate(struct yk_config *c, const char *toggles, int rounds)
{
	struct ablation *a = calloc(1, sizeof *a);
	json_t *o = NULL;
	char steps[32];
	if (!a) {
		yk_fail(YOKE_ENOMEM, "no memory for an ablation");
		return NULL;
	}
	a->config = c;
	a->rounds = rounds < 1 ? 1 : rounds > ROUNDS ? ROUNDS : rounds;
	snprintf(steps, sizeof steps, "steps=%d", STEPS);
	int e = yk_config_is_set(c, YK_KEY_steps) ? 0 : yk_config_argument(c, steps);
	if (e == 0 && yk_config_int(c, YK_KEY_steps) < 2)
		e = yk_fail(YOKE_EINVAL, "steps=%s: an ablation needs at least 2",
			    yk_config_str(c, YK_KEY_steps));
	if (e == 0)
		e = parse_toggles(a, toggles);
	if (e == 0)
		make_variants(a);
	// Variants are interleaved, so that other load affects all alike.
	for (int r = 0; r < a->rounds && e == 0; r++)
		for (int i = 0; i < a->variants && e == 0; i++)
			e = measure(a, &a->variant[(i + r) % a->variants], r);
	if (e == 0)
		o = result(a);
	free(a);
	return o;
}
