// SPDX-License-Identifier: Apache-2.0
// Configurations of yoke fit.
#include "config.h"

#include "tool/fit_config.h"

#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "yoke-cube.h"

// ---- texts ----

// A text with each ${VAR} put in, to be freed; NULL after an error.
static char *substituted(const char *text)
{
	char *to = NULL;
	size_t bytes;
	FILE *f = open_memstream(&to, &bytes);
	int err = f ? 0 : yk_fail(YOKE_ENOMEM, "no memory");
	for (const char *at = text; *at && !err; at++) {
		const char *end = at[0] == '$' && at[1] == '{' ? strchr(at, '}') : NULL;
		if (!end) {
			fputc(*at, f);
			continue;
		}
		char name[128];
		const int n = (int)(end - at) - 2;
		snprintf(name, sizeof name, "%.*s", n < 127 ? n : 127, at + 2);
		const char *value = getenv(name);
		if (value)
			fputs(value, f);
		else
			err = yk_fail(YOKE_EINVAL, "${%s} is not set in the environment", name);
		at = end;
	}
	if (f)
		fclose(f);
	if (!err)
		return to;
	free(to);
	return NULL;
}

// In all texts of a tree, whose depth the parser bounds.
static int substitute(json_t *tree)
{
	const char *key;
	json_t *one;
	size_t i;
	void *next;
	int err = 0;
	if (json_is_string(tree) && strstr(json_string_value(tree), "${")) {
		char *text = substituted(json_string_value(tree));
		err = !text ? yk_error_last() : json_string_set(tree, text) ? yk_fail(YOKE_EFORMAT, "what ${..} stands for is not UTF-8") : 0;
		free(text);
	}
	json_array_foreach(tree, i, one)
		if (!err)
			err = substitute(one);
	json_object_foreach_safe(tree, next, key, one)
		if (!err)
			err = substitute(one);
	return err;
}

int yk_fit_config_load(struct yk_fit_config *c, const char *path)
{
	*c = (struct yk_fit_config){ .split = { 0.8, 0.2, 0 } };
	c->root = yk_json_load(path);
	if (!c->root)
		return yk_error_last();
	if (!json_is_object(c->root))
		return yk_fail(YOKE_EFORMAT, "%s: must be an object", path);
	return substitute(c->root);
}

void yk_fit_config_fini(struct yk_fit_config *c)
{
	if (c->root)
		json_decref(c->root);
	for (int64_t i = 0; c->name && i < c->samples; i++)
		free(c->name[i]);
	free(c->name);
	yoke_dataset_free(c->set);
}

// ---- keys of the command line ----

// The member of an object, or of a list the one of that name; made where an object lacks it.
static json_t *member(json_t *in, const char *name, const char *argument)
{
	json_t *one;
	size_t i;
	if (json_is_object(in)) {
		one = json_object_get(in, name);
		if (!one) {
			one = json_object();
			json_object_set_new(in, name, one);
		}
		return one;
	}
	json_array_foreach(in, i, one) {
		const char *its = json_string_value(json_object_get(one, "name"));
		if (its && !strcmp(its, name))
			return one;
	}
	yk_fail(YOKE_EINVAL, "'%s': there is no '%s'", argument, name);
	return NULL;
}

int yk_fit_config_set(struct yk_fit_config *c, const char *argument)
{
	char *copy = strdup(argument), *value = copy ? strchr(copy, '=') : NULL, *rest = copy, *name;
	json_t *in = c->root, *to;
	int err = copy ? 0 : yk_fail(YOKE_ENOMEM, "no memory");
	if (!err && !value)
		err = yk_fail(YOKE_EINVAL, "'%s' is not key=value", argument);
	if (!err)
		*value++ = 0;
	while (!err && (name = strsep(&rest, ".")) && rest) {
		in = member(in, name, argument);
		err = in ? 0 : yk_error_last();
	}
	if (!err && (!json_is_object(in) || !*name))
		err = yk_fail(YOKE_EINVAL, "'%s': there is no place of that name", argument);
	if (!err) {
		to = json_loads(value, JSON_DECODE_ANY, NULL);
		if (!to)
			to = json_string(value);
		if (!to || json_object_set_new(in, name, to))
			err = yk_fail(YOKE_EINVAL, "'%s': is not UTF-8", argument);
	}
	free(copy);
	return err;
}

// ---- data ----

static int keys(json_t *data)
{
	static const char *const names[] = { "cubes", "labels", "synthetic", "batch", "split", "bands", "workers" };
	const char *key;
	char hint[300];
	json_t *value;
	json_object_foreach(data, key, value) {
		int i = 0;
		while (i < 7 && strcmp(names[i], key))
			i++;
		if (i == 7)
			return yk_fail(YOKE_EINVAL, "data: there is no key '%s'; %s", key, yk_hint(key, names, 7, hint, sizeof hint));
	}
	return json_is_object(data) ? 0 : yk_fail(YOKE_EINVAL, "data: is not there; give data.cubes= or data.synthetic=");
}

static int take_split(struct yk_fit_config *c, const json_t *split)
{
	double sum = 0;
	for (size_t i = 0; split && i < 3; i++) {
		const json_t *one = json_array_get(split, i);
		c->split[i] = json_is_number(one) ? json_number_value(one) : NAN;
		sum += c->split[i] >= 0 ? c->split[i] : NAN;
	}
	if (split && (json_array_size(split) != 3 || !(fabs(sum - 1) < 1e-6) || !(c->split[0] > 0)))
		return yk_fail(YOKE_EINVAL, "data: split: must be three shares that sum to 1, as [0.8, 0.2, 0]");
	return 0;
}

// "set/cube_1.hdr" -> "cube_1"
static char *stem(const char *path)
{
	const char *base = strrchr(path, '/'), *dot;
	base = base ? base + 1 : path;
	dot = strrchr(base, '.');
	return strndup(base, dot ? (size_t)(dot - base) : strlen(base));
}

static int files(const char *key, const char *pattern, glob_t *to)
{
	const int e = glob(pattern, 0, NULL, to);
	if (e == GLOB_NOMATCH)
		return yk_fail(YOKE_ENOENT, "data: %s: nothing is named %s", key, pattern);
	return e ? yk_fail(YOKE_EIO, "data: %s: %s cannot be looked for", key, pattern) : 0;
}

static int open_cubes(struct yk_fit_config *c, const char *cubes, const char *labels, const char *bands)
{
	glob_t path = { 0 }, label = { 0 };
	char settings[200];
	int err = files("cubes", cubes, &path);
	if (!err && labels)
		err = files("labels", labels, &label);
	if (!err && labels && label.gl_pathc != path.gl_pathc)
		err = yk_fail(YOKE_EINVAL, "data: %zu cubes and %zu labels", path.gl_pathc, label.gl_pathc);
	snprintf(settings, sizeof settings, "bands=%.150s", bands ? bands : "all");
	if (!err) {
		c->set = yoke_dataset_cubes((int)path.gl_pathc, (const char *const *)path.gl_pathv,
					    labels ? (const char *const *)label.gl_pathv : NULL, settings);
		err = c->set ? 0 : yk_error_last();
	}
	c->name = err ? NULL : calloc(path.gl_pathc + 1, sizeof *c->name);
	for (size_t i = 0; c->name && i < path.gl_pathc; i++)
		c->name[i] = stem(path.gl_pathv[i]);
	c->samples = c->name ? (int64_t)path.gl_pathc : 0;
	globfree(&path);
	globfree(&label);
	return err || c->name ? err : yk_fail(YOKE_ENOMEM, "no memory");
}

static int text(const json_t *data, const char *key, const char **to)
{
	const json_t *one = json_object_get(data, key);
	*to = json_string_value(one);
	return !one || json_is_null(one) || *to ? 0 : yk_fail(YOKE_EINVAL, "data: %s: must be a text", key);
}

static int whole(const json_t *data, const char *key, int64_t least, int64_t *to)
{
	const json_t *one = json_object_get(data, key);
	if (!one)
		return 0;
	*to = json_is_integer(one) ? json_integer_value(one) : -1;
	return *to >= least && *to <= 1 << 20 ? 0 : yk_fail(YOKE_EINVAL, "data: %s: must be a whole number from %d to %d", key,
							    (int)least, 1 << 20);
}

int yk_fit_config_data(struct yk_fit_config *c)
{
	json_t *data = json_object_get(c->root, "data");
	const char *cubes, *labels, *synthetic, *bands;
	int64_t batch = 1, workers = -1;
	int err = keys(data);
	if (err || (err = text(data, "cubes", &cubes)) < 0 || (err = text(data, "labels", &labels)) < 0 ||
	    (err = text(data, "synthetic", &synthetic)) < 0 || (err = text(data, "bands", &bands)) < 0 ||
	    (err = whole(data, "batch", 1, &batch)) < 0 || (err = whole(data, "workers", 0, &workers)) < 0 ||
	    (err = take_split(c, json_object_get(data, "split"))) < 0)
		return err;
	if (!cubes == !synthetic)
		return yk_fail(YOKE_EINVAL, "data: give either cubes or synthetic");
	const int n = snprintf(c->loader, sizeof c->loader, "batch=%" PRId64, batch);
	if (workers >= 0)
		snprintf(c->loader + n, sizeof c->loader - (size_t)n, " workers=%" PRId64, workers);
	if (cubes)
		return open_cubes(c, cubes, labels, bands);
	c->set = yoke_dataset_synthetic(synthetic);
	if (!c->set)
		return yk_error_last();
	c->samples = yoke_dataset_count(c->set);
	c->name = calloc((size_t)c->samples + 1, sizeof *c->name);
	for (int64_t i = 0; c->name && i < c->samples; i++)
		if (asprintf(&c->name[i], "synthetic_%05" PRId64, i) < 0)
			c->name[i] = NULL;
	return c->name ? 0 : yk_fail(YOKE_ENOMEM, "no memory");
}

yoke_pipeline *yk_fit_config_pipeline(const struct yk_fit_config *c)
{
	json_t *copy = json_copy(c->root);
	if (copy)
		json_object_del(copy, "data");
	char *json = copy ? json_dumps(copy, JSON_COMPACT) : NULL;
	yoke_pipeline *p = NULL;
	if (json)
		p = yoke_pipeline_new(json);
	else
		yk_fail(YOKE_ENOMEM, "no memory");
	free(json);
	if (copy)
		json_decref(copy);
	return p;
}
