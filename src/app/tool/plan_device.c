// SPDX-License-Identifier: Apache-2.0
// yoke plan device: recommends a device for a run.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/param.h"
#include "device/device.h"
#include "tool/bench.h"
#include "tool/tool.h"
#include "train/check.h"
#include "train/trainer.h"
#include "train/choose_device.h"

enum { ROUNDS = 5 };

// ---- arguments ----

static int rule_key(struct yk_device_choice_facts *a, const char *argument)
{
	const struct {
		const char *name;
		double *to;
	} keys[] = {
		{ "samples", &a->samples },   { "batch", &a->batch },
		{ "channels", &a->channels }, { "height", &a->height },
		{ "width", &a->width },       { "parameters", &a->parameters },
		{ "epochs", &a->epochs },     { "loader", &a->loader },
	};
	const char *names[10] = { NULL }, *eq = strchr(argument, '=');
	char *end, hint[160], name[32];
	int n = 0;
	snprintf(name, sizeof name, "%.*s", (int)(eq - argument), argument);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		names[n++] = keys[i].name;
		if (strcmp(keys[i].name, name))
			continue;
		*keys[i].to = strtod(eq + 1, &end);
		if (end == eq + 1 || *end || !(*keys[i].to >= 0))
			return yk_usage("plan device", "'%s': must be a number of at least 0",
					argument);
		return YK_DONE;
	}
	for (int i = 0; i < 2; i++)
		if (!strcmp(name, i ? "device" : "trains") &&
		    (!strcmp(eq, "=0") || !strcmp(eq, "=1"))) {
			*(i ? &a->device : &a->trains) = eq[1] == '1';
			return YK_DONE;
		}
	names[n++] = "trains";
	names[n++] = "device";
	return yk_usage("plan device", "no key '%s'; %s", name,
			yk_hint(name, names, n, hint, sizeof hint));
}

// Derives the input of the rules from a configuration.
static int rule_input(const struct yk_config *c, struct yk_device_choice_facts *a)
{
	struct yk_trainer *t = NULL;
	int e = yk_trainer_plan(c, &t);
	if (e < 0)
		return e;
	const double batch = yk_config_int(c, YK_KEY_batch) == YK_AUTO ?
				     16 :
				     (double)yk_config_int(c, YK_KEY_batch);
	a->batch = batch;
	a->parameters = (double)yk_model_elements(t->model, &t->shape);
	if (t->feed.data) {
		a->samples = (double)yk_data_train_windows(t->feed.data);
		a->epochs = (double)t->steps * batch * (double)t->replica.batches.accumulate /
			    a->samples;
	}
	yk_trainer_free(t);
	return 0;
}

// ---- output ----

static json_t *rule_json(const struct yk_device_choice_advice *s)
{
	static const char *const word[] = { "cpu", "device", "measure" };
	return json_pack("{s:s, s:b, s:s, s:s}", "which", word[s->which], "strongly", s->strongly,
			 "why", s->why, "hint", s->hint ? s->hint : "");
}

// Expectations for each GPU from its memory and arithmetic.
static json_t *tiers(int n, char (*id)[48])
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++) {
		struct yk_bench_limits l;
		if (!strncmp(id[i], "cpu:", 4))
			continue;
		struct yk_device *d = yk_option_device(id[i]);
		if (d && d->info.kind != YOKE_DEVICE_GPU && d->info.kind != YOKE_DEVICE_IGPU)
			continue; // nothing is known about other devices
		yoke_context *ctx = d ? yoke_context_new(d->backend->table.name) : NULL,
			     *former = ctx ? yoke_use(ctx) : NULL;
		if (ctx && yk_limits_measure(d, false, &l) == 0) {
			const struct yk_device_choice_tier *t =
				yk_device_choice_tier_of(1e-9 * l.copy, 1e-12 * l.flops);
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:i}", "device",
						id[i], "tier", t->name, "gb_per_s", 1e-9 * l.copy,
						"tflop_per_s", 1e-12 * l.flops, "min", t->min,
						"max", t->max, "batch", t->batch));
		}
		if (ctx) {
			yoke_use(former);
			yoke_context_free(ctx);
		}
		yoke_error_clear();
	}
	return list;
}

static json_t *times_json(const struct yk_device_choice_times *t)
{
	json_t *devices = json_array();
	for (int i = 0; i < t->devices; i++) {
		const struct yk_device_choice_device *d = &t->device[i];
		json_array_append_new(devices,
				      json_pack("{s:s, s:o, s:o, s:s}", "device", d->id, "step_s",
						yk_json_of_real(d->seconds), "spread_s",
						yk_json_of_real(d->spread), "why", d->why));
	}
	return json_pack("{s:o, s:I, s:i, s:s, s:o, s:o, s:o}", "devices", devices, "batch",
			 (json_int_t)t->batch, "rounds", t->rounds, "best",
			 t->best >= 0 && !t->undecided ? t->device[t->best].id : "", "ratio",
			 yk_json_of_real(t->ratio), "ratio_spread",
			 yk_json_of_real(t->ratio_spread), "crosses", yk_json_of_real(t->crosses));
}

static void print(const json_t *o)
{
	const json_t *rule = json_object_get(o, "rule"), *t = json_object_get(o, "times"), *x;
	const char *hint = json_string_value(json_object_get(rule, "hint"));
	char rounds[64];
	size_t i;
	printf("rule: %s%s: %s%s%s\n", json_string_value(json_object_get(rule, "which")),
	       json_is_true(json_object_get(rule, "strongly")) ? ", strongly" : "",
	       json_string_value(json_object_get(rule, "why")), *hint ? "; " : "", hint);
	json_array_foreach (json_object_get(o, "tiers"), i, x)
		printf("%s: %s, %.0f GB/s, %.2f TFLOP/s: expected %.1f to %.1f times as fast as a "
		       "CPU from batch %d\n",
		       json_string_value(json_object_get(x, "device")),
		       json_string_value(json_object_get(x, "tier")),
		       json_number_value(json_object_get(x, "gb_per_s")),
		       json_number_value(json_object_get(x, "tflop_per_s")),
		       json_number_value(json_object_get(x, "min")),
		       json_number_value(json_object_get(x, "max")),
		       (int)json_integer_value(json_object_get(x, "batch")));
	if (!t)
		return;
	printf("measured with batches of %lld, %s in alternation:\n",
	       (long long)json_integer_value(json_object_get(t, "batch")),
	       yk_counted(rounds, (long long)json_integer_value(json_object_get(t, "rounds")),
			  "round"));
	json_array_foreach (json_object_get(t, "devices"), i, x) {
		const char *why = json_string_value(json_object_get(x, "why"));
		if (*why)
			printf("  %-12s %s\n", json_string_value(json_object_get(x, "device")),
			       why);
		else
			printf("  %-12s %9.3f ms per step, +- %.3f ms\n",
			       json_string_value(json_object_get(x, "device")),
			       1e3 * json_number_value(json_object_get(x, "step_s")),
			       1e3 * json_number_value(json_object_get(x, "spread_s")));
	}
	x = json_object_get(t, "ratio");
	if (json_is_number(x))
		printf("%s is %.2f times as fast, +- %.2f\n",
		       json_string_value(json_object_get(t, "best")), json_number_value(x),
		       json_number_value(json_object_get(t, "ratio_spread")));
	else if (*json_string_value(json_object_get(t, "best")))
		printf("%s is the only one\n", json_string_value(json_object_get(t, "best")));
	else
		printf("undecided: one round is too few and there was no time for a second; try a "
		       "smaller batch or context\n");
	x = json_object_get(t, "crosses");
	if (json_is_number(x))
		printf("both are equally fast at batches of about %.0f\n", json_number_value(x));
}

static int advise(const struct yk_config *c, struct yk_device_choice_facts *a, bool measures,
		  bool json)
{
	char id[YK_WHICH_DEVICES][48];
	const char *list[YK_WHICH_DEVICES];
	int e = c ? rule_input(c, a) : 0;
	if (e < 0)
		return e;
	const int n = yk_device_choice_devices(false, id);
	for (int i = 0; i < n; i++) {
		list[i] = id[i];
		a->device |= c && strncmp(id[i], "cpu:", 4);
	}
	const struct yk_device_choice_advice choice = yk_device_choice_rule(a);
	json_t *o = json_pack("{s:o, s:o}", "rule", rule_json(&choice), "tiers",
			      c ? tiers(n, id) : json_array());
	if (o && c && (measures || choice.which == YK_WHICH_MEASURE)) {
		struct yk_device_choice_times t;
		e = yk_device_choice_measure(c, n, list, ROUNDS, n > 1, &t);
		if (e == 0)
			json_object_set_new(o, "times", times_json(&t));
		if (e == 0 && t.best < 0)
			e = yk_fail(YOKE_ENODEV, "%s",
				    t.devices ? t.device[0].why : "no device found");
	}
	if (!o)
		e = yk_fail(YOKE_ENOMEM, "out of memory for the advice");
	if (e == 0 && json) {
		yk_print_json(o);
	} else if (e == 0) {
		print(o);
	}
	json_decref(o);
	return e;
}

int yk_plan_device(int argc, char **argv)
{
	struct yk_device_choice_facts a = { .trains = true,
					    .device = true,
					    .samples = NAN,
					    .batch = NAN,
					    .channels = NAN,
					    .height = NAN,
					    .width = NAN,
					    .parameters = NAN,
					    .epochs = NAN,
					    .loader = NAN };
	struct yk_config c;
	bool json = false, measures = false, configured = false;
	int n = 0, status = YK_DONE;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (!strcmp(argv[i], "--measure"))
			measures = true;
		else if (argv[i][0] == '-')
			return yk_usage("plan device",
					"unknown option '%s'; the options are --json and --measure",
					argv[i]);
		else
			argv[1 + n++] = argv[i];
	}
	for (int i = 0; i < n; i++) // a file or data: arguments of yoke train
		configured |= !strchr(argv[1 + i], '=') || !strncmp(argv[1 + i], "data=", 5);
	if (!n)
		return yk_usage("plan device",
				"no workload given; give a configuration of `yoke train`, or "
				"numbers such as samples=, batch= and parameters=");
	for (int i = 0; i < n && !configured; i++)
		if (!strchr(argv[1 + i], '=') || (status = rule_key(&a, argv[1 + i])) != YK_DONE)
			return status;
	if (!configured)
		return advise(NULL, &a, false, json) < 0 ? yk_failed("plan device") : YK_DONE;
	if (yk_config_init(&c, YK_T) < 0)
		return yk_failed("plan device");
	a.device = false;
	int e = yk_config_arguments(&c, n, argv + 1);
	if (e < 0) {
		yk_failed("plan device");
		status = YK_USAGE;
	} else {
		e = yk_config_check(&c);
		if (e == 0)
			e = yk_config_apply(&c);
		if (e == 0)
			e = advise(&c, &a, measures, json);
		status = e < 0 ? yk_failed("plan device") : YK_DONE;
	}
	yk_config_fini(&c);
	return status;
}
