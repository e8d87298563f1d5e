// SPDX-License-Identifier: Apache-2.0
// Reads PEFT's adapter_config.json: refuses by name whatever would change a result and is not
// computed.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "models/adapter.h"

// Settings that do not change what an adapter computes, or that the tensors of its file imply.
static const char *const harmless[] = {
	"peft_type",
	"peft_version",
	"task_type",
	"base_model_name_or_path",
	"base_model_class",
	"parent_library",
	"revision",
	"inference_mode",
	"auto_mapping",
	"r",
	"lora_alpha",
	"lora_dropout",
	"target_modules",
	"exclude_modules",
	"layers_to_transform",
	"layers_pattern",
	"rank_pattern",
	"alpha_pattern",
	"use_rslora",
	"bias",
	"init_lora_weights",
	"fan_in_fan_out",
	"loftq_config",
	"eva_config",
	"corda_config",
	"lora_ga_config",
	"megatron_core",
	"qalora_group_size",
	"runtime_config",
	"ensure_weight_tying",
};

static bool is_harmless(const char *key)
{
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		if (!strcmp(harmless[i], key))
			return true;
	return false;
}

// null, false, 0, "", [] or {}
static bool is_off(const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) ||
	       (json_is_number(v) && json_number_value(v) == 0) ||
	       (json_is_string(v) && !*json_string_value(v)) ||
	       (json_is_array(v) && !json_array_size(v)) ||
	       (json_is_object(v) && !json_object_size(v));
}

static int refuse(const char *path, const char *key, const json_t *value)
{
	char *text = value ? yk_json_text(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	const int e = yk_fail(YOKE_EUNSUPPORTED, "%s: %s is %.60s, which is not computed", path,
			      key, text ? text : "missing");
	free(text);
	return e;
}

static int check_words(const json_t *o, const char *path, bool transposed)
{
	const json_t *type = json_object_get(o, "peft_type"),
		     *task = json_object_get(o, "task_type"), *bias = json_object_get(o, "bias");
	const json_t *first = json_object_get(o, "init_lora_weights"),
		     *fan = json_object_get(o, "fan_in_fan_out");
	const char *word = json_string_value(first);
	const char *key;
	json_t *value;
	if (!json_is_string(type) || strcmp(json_string_value(type), "LORA"))
		return refuse(path, "peft_type", type);
	if (json_is_string(task) ? strcmp(json_string_value(task), "CAUSAL_LM") : !is_off(task))
		return refuse(path, "task_type", task);
	if (json_is_string(bias) ? strcmp(json_string_value(bias), "none") : !is_off(bias))
		return refuse(path, "bias", bias);
	// others change the frozen weights
	if (word && *word && strcmp(word, "gaussian") && strcmp(word, "eva") &&
	    strcmp(word, "orthogonal"))
		return refuse(path, "init_lora_weights", first);
	if (json_is_true(fan) && !transposed)
		return refuse(path, "fan_in_fan_out", fan);
	json_object_foreach ((json_t *)(uintptr_t)o, key, value)
		if (!is_off(value) && !is_harmless(key))
			return refuse(path, key, value);
	return 0;
}

// A key of rank_pattern or alpha_pattern is a regular expression, of which only names are read,
// with ^ for a whole one.
static int check_pattern(const json_t *o, const char *path, const char *name, bool whole,
			 double min, double max)
{
	json_t *patterns = json_object_get(o, name), *value;
	const char *key;
	if (is_off(patterns))
		return 0;
	if (!json_is_object(patterns))
		return yk_fail(YOKE_EFORMAT, "%s: %s is no object", path, name);
	json_object_foreach (patterns, key, value) {
		const char *plain = key + (*key == '^');
		if (!*plain ||
		    plain[strspn(
			    plain,
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")])
			return yk_fail(
				YOKE_EUNSUPPORTED,
				"%s: %s has the regular expression '%.60s'; only names are read",
				path, name, key);
		const double v = json_number_value(value);
		if (!json_is_number(value) || !(v >= min && v <= max) || (whole && v != floor(v)))
			return yk_fail(YOKE_EFORMAT,
				       "%s: %s of '%.60s' is not a %snumber from %g to %g", path,
				       name, key, whole ? "whole " : "", min, max);
	}
	return 0;
}

static int check_targets(const json_t *o, const char *path)
{
	const json_t *targets = json_object_get(o, "target_modules");
	for (size_t i = 0; i < json_array_size(targets); i++)
		if (!json_is_string(json_array_get(targets, i)))
			return yk_fail(YOKE_EFORMAT,
				       "%s: target_modules has an element that is no string", path);
	return json_is_array(targets) || json_is_string(targets) || !targets ||
			       json_is_null(targets) ?
		       0 :
		       yk_fail(YOKE_EFORMAT, "%s: target_modules is neither a list nor a string",
			       path);
}

int yk_peft_config_open(const char *path, bool transposed, struct yk_peft_config *to)
{
	struct yk_peft_config c = { .root = yk_json_load(path), .path = path };
	int e = c.root ? 0 : yoke_error_code();
	if (e == 0 && !json_is_object(c.root))
		e = yk_fail(YOKE_EFORMAT, "%s: is no object", path);
	if (e == 0)
		e = check_words(c.root, path, transposed);
	if (e == 0)
		e = yk_json_int(c.root, path, "r", 1, YK_LORA_MAX_RANK, &c.rank);
	if (e == 0)
		e = yk_json_real(c.root, path, "lora_alpha", &c.alpha);
	if (e == 0 && !(fabs(c.alpha) <= 1e9))
		e = yk_fail(YOKE_EFORMAT, "%s: lora_alpha %g is out of bounds", path, c.alpha);
	if (e == 0 && !is_off(json_object_get(c.root, "lora_dropout")))
		e = yk_json_real(c.root, path, "lora_dropout", &c.dropout);
	if (e == 0 && !(c.dropout >= 0 && c.dropout < 1))
		e = yk_fail(YOKE_EFORMAT, "%s: lora_dropout %g is not in [0, 1)", path, c.dropout);
	if (e == 0)
		e = check_targets(c.root, path);
	if (e == 0)
		e = check_pattern(c.root, path, "rank_pattern", true, 1, YK_LORA_MAX_RANK);
	if (e == 0)
		e = check_pattern(c.root, path, "alpha_pattern", false, -1e9, 1e9);
	c.rank_stabilized = json_is_true(json_object_get(c.root, "use_rslora"));
	if (e < 0)
		yk_peft_config_close(&c);
	else
		*to = c;
	return e;
}

void yk_peft_config_close(struct yk_peft_config *c)
{
	json_decref(c->root);
	c->root = NULL;
}

// Is the module that name, or does it end with it after a dot?
static bool ends_with(const char *module, const char *name)
{
	const size_t n = strlen(module), k = strlen(name);
	return k <= n && !strcmp(module + n - k, name) && (k == n || module[n - k - 1] == '.');
}

// The value of the first pattern that matches.
static double by_pattern(const struct yk_peft_config *c, const char *name, const char *module,
			 double otherwise)
{
	json_t *patterns = json_object_get(c->root, name), *value;
	const char *key;
	json_object_foreach (patterns, key, value)
		if (*key == '^' ? !strcmp(module, key + 1) : ends_with(module, key))
			return json_number_value(value);
	return otherwise;
}

void yk_peft_config_of(const struct yk_peft_config *c, const char *module, int64_t *rank,
		       double *alpha)
{
	*rank = (int64_t)by_pattern(c, "rank_pattern", module, (double)c->rank);
	*alpha = by_pattern(c, "alpha_pattern", module, c->alpha);
	if (c->rank_stabilized)
		*alpha *= sqrt((double)*rank);
}

bool yk_peft_config_targets(const struct yk_peft_config *c, const char *module)
{
	const json_t *targets = json_object_get(c->root, "target_modules");
	for (size_t i = 0; i < json_array_size(targets); i++)
		if (ends_with(module, json_string_value(json_array_get(targets, i))))
			return true;
	return !json_is_array(targets); // a regular expression or "all-linear"
}
