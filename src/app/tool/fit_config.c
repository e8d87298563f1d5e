// SPDX-License-Identifier: Apache-2.0
// Reads configurations of `yoke fit` and opens the data that they describe.
#include "config.h"

#include "tool/fit_config.h"

#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "fit/keys.h"
#include "yoke-cube.h"

// ---- strings ----

// Replaces each ${VAR} in a string. The caller frees the result; NULL: error.
static char *substituted(const char *text)
{
	char *to = NULL;
	size_t bytes;
	FILE *f = open_memstream(&to, &bytes);
	int err = f ? 0 : yk_fail(YOKE_ENOMEM, "out of memory");
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

// Replaces variables in all strings of a tree; the parser limits its depth.
static int substitute(json_t *tree)
{
	const char *key;
	json_t *one;
	size_t i;
	void *next;
	int err = 0;
	if (json_is_string(tree) && strstr(json_string_value(tree), "${")) {
		char *text = substituted(json_string_value(tree));
		err = !text ? yk_error_last() :
		      json_string_set(tree, text) ?
			      yk_fail(YOKE_EFORMAT, "the value of a ${..} is not UTF-8") :
			      0;
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
	*c = (struct yk_fit_config){ .path = path };
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
	for (int64_t i = 0; i < c->samples; i++) {
		if (c->name)
			free(c->name[i]);
		if (c->file)
			free(c->file[i]);
	}
	free(c->name);
	free(c->file);
	free(c->item);
	free(c->array);
	yk_file_list_fini(&c->read);
	yoke_dataset_free(c->set);
	yoke_dataset_free(c->files);
}

int yk_fit_config_failed(const struct yk_fit_config *c, int err)
{
	char text[2000];
	snprintf(text, sizeof text, "%s", yoke_error());
	if (!err || (strncmp(text, "pipeline: ", 10) && strncmp(text, "data: ", 6)))
		return err;
	yoke_error_clear();
	return yk_fail(err, "%s: %s", c->path, text);
}

// ---- keys of the command line ----

// The member of an object, or the entry of a list with that name; created if an object lacks it.
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

// Setting "cubes" removes "synthetic", and vice versa.
static void remove_alternative(json_t *root, const char *argument)
{
	json_t *data = json_object_get(root, "data");
	if (!strncmp(argument, "data.cubes=", 11) && json_is_string(json_object_get(data, "cubes")))
		json_object_del(data, "synthetic");
	if (!strncmp(argument, "data.synthetic=", 15) &&
	    json_is_string(json_object_get(data, "synthetic")))
		for (int i = 0; i < 3; i++)
			json_object_del(data, ((const char *[]){ "cubes", "labels", "masks" })[i]);
}

// The section of a key that `yoke train` has under the same name; "": none.
static const char *section_of(const char *argument)
{
	static const struct {
		const char *section, *keys;
	} list[] = { { "trainer.", "epochs accumulate clip log_every progress precision" },
		     { "optimizer.", "lr weight_decay momentum" },
		     { "data.", "batch workers" } };
	char name[32];
	const size_t n = strcspn(argument, "=");
	if (n >= sizeof name)
		return "";
	memcpy(name, argument, n);
	name[n] = '\0';
	json_t *word = json_string(name);
	const char *section = "";
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (yk_parse_word(word, list[i].keys) >= 0)
			section = list[i].section;
	json_decref(word);
	return strncmp(argument, "optimizer=", 10) ? section : "optimizer.name=";
}

int yk_fit_config_set(struct yk_fit_config *c, const char *argument)
{
	const char *section = section_of(argument);
	// optimizer=adam is optimizer.name=adam
	const bool optimizer = strchr(section, '=') != NULL;
	const char *trainer = NULL;
	char *copy, *value, *rest, *name;
	if (asprintf(&copy, "%s%s", section, argument + (optimizer ? strlen("optimizer=") : 0)) < 0)
		return yk_fail(YOKE_ENOMEM, "out of memory");
	value = strchr(copy, '=');
	rest = copy;
	json_t *in = c->root, *to;
	int err = 0;
	if (!value)
		err = yk_fail(YOKE_EINVAL, "'%s' is not key=value", argument);
	if (!err)
		*value++ = 0;
	while (!err && (name = strsep(&rest, ".")) && rest) {
		in = member(in, name, argument);
		err = in ? 0 : yk_error_last();
	}
	if (!err && (!json_is_object(in) || !*name))
		err = yk_fail(YOKE_EINVAL, "'%s': no such path in the configuration", argument);
	// wins over the key's other name in the file
	if (!err && in == json_object_get(c->root, "trainer")) {
		const char *key;
		json_t *one;
		void *next;
		trainer = yk_trainer_key(name);
		json_object_foreach_safe(in, next, key, one)
			if (!strcmp(yk_trainer_key(key), trainer))
				json_object_del(in, key);
	}
	if (!err) {
		to = json_loads(value, JSON_DECODE_ANY, NULL);
		if (!to)
			to = json_string(value);
		if (!to || json_object_set_new(in, trainer ? trainer : name, to))
			err = yk_fail(YOKE_EINVAL, "'%s': is not UTF-8", argument);
	}
	free(copy);
	if (!err)
		remove_alternative(c->root, argument);
	return err;
}

void yk_fit_config_cubes_alone(struct yk_fit_config *c)
{
	static const char *const keys[] = { "labels", "masks", "cache" };
	json_t *data = json_object_get(c->root, "data");
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		json_object_del(data, keys[i]);
}

// ---- data ----

struct data_keys {
	char cubes[YK_FIT_TEXT_SIZE], labels[YK_FIT_TEXT_SIZE], masks[YK_FIT_TEXT_SIZE],
		synthetic[YK_FIT_TEXT_SIZE];
	char bands[YK_FIT_TEXT_SIZE], variable[YK_FIT_TEXT_SIZE];
	int64_t batch, workers; // workers -1: auto
	int nonfinite;          // index of the chosen word
	int64_t cache;          // bytes
	double split[3];
};

static int take_split(const struct yk_fit_key *k, const char *where, const json_t *value, void *to)
{
	struct data_keys *d = to;
	double sum = 0;
	for (size_t i = 0; i < 3; i++) {
		const json_t *one = json_array_get(value, i);
		d->split[i] = json_is_number(one) ? json_number_value(one) : NAN;
		sum += d->split[i] >= 0 ? d->split[i] : NAN;
	}
	if (json_array_size(value) != 3 || !(fabs(sum - 1) < 1e-6))
		return yk_fail(YOKE_EINVAL,
			       "%s: %s: must be three fractions of at least 0 that sum to 1, for "
			       "example [0.8, 0.2, 0]",
			       where, k->name);
	return 0;
}

static int take_workers(const struct yk_fit_key *k, const char *where, const json_t *value,
			void *to)
{
	struct data_keys *d = to;
	d->workers = json_is_integer(value) ? json_integer_value(value) : -1;
	if (yk_parse_word(value, "auto") == 0 || (d->workers >= 0 && d->workers <= 1024))
		return 0;
	return yk_fail(YOKE_EINVAL, "%s: %s must be \"auto\" or a whole number from 0 to 1024",
		       where, k->name);
}

static int take_cache(const struct yk_fit_key *k, const char *where, const json_t *value, void *to)
{
	struct data_keys *d = to;
	const char *text = json_string_value(value);
	d->cache = yk_parse_word(value, "none all") == 1 ? INT64_MAX : 0;
	if (json_is_integer(value) && json_integer_value(value) > 0)
		d->cache = json_integer_value(value);
	else if (!text || (yk_parse_word(value, "none all") < 0 &&
			   (yk_parse_bytes(text, &d->cache) < 0 || d->cache < 1)))
		return yk_fail(YOKE_EINVAL,
			       "%s: %s must be none, all, or a number of bytes, for example 2G",
			       where, k->name);
	return 0;
}

#define AT(member) .at = offsetof(struct data_keys, member)
static const struct yk_fit_key data_keys[] = {
	{ .name = "cubes", .kind = YK_FIT_TEXT, .def = "null", AT(cubes) },
	{ .name = "labels", .kind = YK_FIT_TEXT, .def = "null", AT(labels) },
	{ .name = "masks", .kind = YK_FIT_TEXT, .def = "null", AT(masks) },
	{ .name = "synthetic", .kind = YK_FIT_TEXT, .def = "null", AT(synthetic) },
	{ .name = "batch", .kind = YK_FIT_WHOLE, .def = "1", .min = 1, .max = 1 << 20, AT(batch) },
	{ .name = "split", .kind = YK_FIT_OTHER, .def = "[0.8, 0.2, 0.0]", .take = take_split },
	{ .name = "bands", .kind = YK_FIT_TEXT, .def = "\"all\"", AT(bands) },
	{ .name = "variable", .kind = YK_FIT_TEXT, .def = "null", AT(variable) },
	{ .name = "nonfinite",
	  .kind = YK_FIT_WORD,
	  .def = "\"error\"",
	  .words = "error skip",
	  AT(nonfinite) },
	{ .name = "cache", .kind = YK_FIT_OTHER, .def = "\"none\"", .take = take_cache },
	{ .name = "workers", .kind = YK_FIT_OTHER, .def = "\"auto\"", .take = take_workers },
};
#undef AT

// "a/set/cube_1.hdr" becomes "cube_1", or with one directory "set_cube_1"; NULL: out of memory.
static char *name_with(const char *path, int folders)
{
	const char *base = strrchr(path, '/'), *from, *dot;
	base = base ? base + 1 : path;
	from = base;
	for (; folders && from > path; folders--) {
		do
			from--;
		while (from > path && from[-1] != '/');
	}
	dot = strrchr(base, '.');
	char *name = strndup(from, dot && dot > base ? (size_t)(dot - from) : strlen(from));
	for (char *at = name; at && *at; at++)
		*at = *at == '/' ? '_' : *at;
	return name;
}

static int files(const char *key, const char *pattern, glob_t *to)
{
	const int e = *pattern ? glob(pattern, 0, NULL, to) : 0;
	if (e == GLOB_NOMATCH)
		return yk_fail(YOKE_ENOENT, "data: %s: no file matches %s", key, pattern);
	return e ? yk_fail(YOKE_EIO, "data: %s: cannot expand %s", key, pattern) : 0;
}

// Adds a cube of a data set, and all of its files, to the list of files that are read.
static int add_read(struct yk_fit_config *c, const char *path, const char *settings, int64_t *items)
{
	struct yoke_cube_info info = { .size = sizeof info, .items = 1 };
	yoke_cube *cube = yoke_cube_open(path, settings);
	int err = cube ? yoke_cube_info(cube, &info) : yk_error_last();
	if (!err)
		err = yk_file_list_add(&c->read, path);
	if (!err && strcmp(info.data, path))
		err = yk_file_list_add(&c->read, info.data);
	// prints the name of the array, unless the previous file had the same one
	if (!err && items && info.variable && (!c->array || strcmp(c->array, info.variable))) {
		printf("array       %s of %s\n", info.variable, path);
		free(c->array);
		c->array = strdup(info.variable);
	}
	yoke_cube_free(cube);
	if (!err && items)
		*items = info.items;
	return err;
}

static int add_all_read(struct yk_fit_config *c, const glob_t *path)
{
	int err = 0;
	for (size_t i = 0; i < path->gl_pathc && !err; i++)
		err = add_read(c, path->gl_pathv[i], "", NULL);
	return err;
}

// Determines the file of each cube.
static int list_cubes(struct yk_fit_config *c, const glob_t *path)
{
	const int64_t count = yoke_dataset_count(c->set);
	c->file = calloc((size_t)count + 1, sizeof *c->file);
	c->item = calloc((size_t)count + 1, sizeof *c->item);
	if (!c->file || !c->item)
		return yk_fail(YOKE_ENOMEM, "out of memory");
	for (size_t i = 0; i < path->gl_pathc; i++) {
		int64_t items = 1;
		int err = add_read(c, path->gl_pathv[i], c->settings, &items);
		if (err)
			return err;
		for (int64_t k = 0; k < items && c->samples < count; k++, c->samples++) {
			c->file[c->samples] = strdup(path->gl_pathv[i]);
			c->item[c->samples] = items > 1 ? k : -1;
			if (!c->file[c->samples])
				return yk_fail(YOKE_ENOMEM, "out of memory");
		}
	}
	return 0;
}

struct named {
	char *name;
	int64_t sample;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	const int order = strcmp(x->name, y->name);
	return order ? order : (x->sample > y->sample) - (x->sample < y->sample);
}

// Gives each cube a unique name: its file's name, preceded by as many directory names as necessary,
// and followed by a number if files differ only in their suffixes.
static int name_cubes(struct yk_fit_config *c)
{
	enum { FOLDERS = 64 };
	const size_t n = (size_t)c->samples;
	struct named *order = calloc(n + 1, sizeof *order);
	int *folders = calloc(n + 1, sizeof *folders), err = 0;
	bool again = true;
	int rounds = 0;
	c->name = calloc(n + 1, sizeof *c->name);
	if (!order || !folders || !c->name)
		err = yk_fail(YOKE_ENOMEM, "out of memory");
	while (again && !err) {
		again = false;
		if (rounds++ > 3 * FOLDERS)
			err = yk_fail(YOKE_EINVAL,
				      "data: cubes: the results of %s and of another cube would "
				      "have the same name",
				      c->file[0]);
		for (size_t i = 0; i < n && !err; i++) {
			char *name = name_with(c->file[i], folders[i]);
			free(c->name[i]);
			c->name[i] = NULL;
			if (!name || (folders[i] > FOLDERS ? asprintf(&c->name[i], "%s_%d", name,
								      folders[i] - FOLDERS + 1) :
				      c->item[i] >= 0 ? asprintf(&c->name[i], "%s_%05" PRId64, name,
								 c->item[i]) :
							asprintf(&c->name[i], "%s", name)) < 0)
				err = yk_fail(YOKE_ENOMEM, "out of memory");
			free(name);
			order[i] = (struct named){ c->name[i], (int64_t)i };
		}
		if (!err)
			qsort(order, n, sizeof *order, by_name);
		for (size_t from = 0, to; from < n && !err; from = to) {
			for (to = from + 1; to < n && !strcmp(order[to].name, order[from].name);
			     to++)
				;
			for (size_t i = from; to > from + 1 && i < to; i++) {
				int *depth = &folders[order[i].sample];
				*depth = *depth < FOLDERS ? *depth + 1 :
							    FOLDERS + 1 + (int)(i - from);
				again = true;
			}
		}
	}
	free(order);
	free(folders);
	return err;
}

static int open_cubes(struct yk_fit_config *c, const struct data_keys *k)
{
	glob_t path = { 0 }, label = { 0 }, mask = { 0 };
	char settings[1420];
	int err = files("cubes", k->cubes, &path);
	if (!err && (err = files("labels", k->labels, &label)) == 0)
		err = files("masks", k->masks, &mask);
	if (!err && *k->labels && label.gl_pathc != path.gl_pathc)
		err = yk_fail(YOKE_EINVAL, "data: %zu cubes but %zu labels", path.gl_pathc,
			      label.gl_pathc);
	if (!err && *k->masks && mask.gl_pathc != path.gl_pathc)
		err = yk_fail(YOKE_EINVAL, "data: %zu cubes but %zu masks", path.gl_pathc,
			      mask.gl_pathc);
	snprintf(c->settings, sizeof c->settings,
		 *k->variable ? "bands=%s variable=%s" : "bands=%s", k->bands, k->variable);
	snprintf(settings, sizeof settings, "%s nonfinite=%s", c->settings,
		 k->nonfinite ? "skip" : "error");
	if (!err) {
		const struct yoke_cube_files o = {
			.size = sizeof o,
			.n = (int)path.gl_pathc,
			.path = (const char *const *)path.gl_pathv,
			.label = *k->labels ? (const char *const *)label.gl_pathv : NULL,
			.mask = *k->masks ? (const char *const *)mask.gl_pathv : NULL,
			.settings = settings
		};
		c->set = yoke_dataset_cube_files(&o);
		err = c->set ? list_cubes(c, &path) : yk_error_last();
		if (!err && (err = add_all_read(c, &label)) == 0)
			err = add_all_read(c, &mask);
		if (!err)
			err = name_cubes(c);
	}
	globfree(&path);
	globfree(&label);
	globfree(&mask);
	return err;
}

static int open_drawn(struct yk_fit_config *c, const char *settings)
{
	c->set = yoke_dataset_synthetic(settings);
	if (!c->set)
		return yk_error_last();
	c->samples = yoke_dataset_count(c->set);
	c->name = calloc((size_t)c->samples + 1, sizeof *c->name);
	for (int64_t i = 0; c->name && i < c->samples; i++)
		if (asprintf(&c->name[i], "synthetic_%05" PRId64, i) < 0)
			c->name[i] = NULL;
	return c->name ? 0 : yk_fail(YOKE_ENOMEM, "out of memory");
}

int yk_fit_config_data(struct yk_fit_config *c)
{
	json_t *data = json_object_get(c->root, "data");
	struct data_keys k = { .batch = 1 };
	if (!json_is_object(data))
		return yk_fail(YOKE_EINVAL,
			       "data: is missing; give data.cubes= or data.synthetic=");
	int err = yk_fit_keys(data, "data", data_keys, sizeof data_keys / sizeof *data_keys, &k);
	if (err)
		return err;
	if (!*k.cubes == !*k.synthetic)
		return yk_fail(YOKE_EINVAL, "data: has both cubes and synthetic; give one");
	memcpy(c->split, k.split, sizeof c->split);
	const int n = snprintf(c->loader, sizeof c->loader, "batch=%" PRId64, k.batch);
	if (k.workers >= 0)
		snprintf(c->loader + n, sizeof c->loader - (size_t)n, " workers=%" PRId64,
			 k.workers);
	err = *k.cubes ? open_cubes(c, &k) : open_drawn(c, k.synthetic);
	if (err || !k.cache)
		return err;
	c->files = c->set;
	c->set = yoke_dataset_cache(c->files, (uint64_t)k.cache);
	return c->set ? 0 : yk_error_last();
}

// The configuration without "data" as JSON text. The caller frees it; NULL: error.
static char *rest_of(const struct yk_fit_config *c)
{
	json_t *copy = json_copy(c->root);
	if (copy)
		json_object_del(copy, "data");
	char *json = copy ? json_dumps(copy, JSON_COMPACT) : NULL;
	if (!json)
		yk_fail(YOKE_ENOMEM, "out of memory");
	if (copy)
		json_decref(copy);
	return json;
}

yoke_context *yk_fit_config_context(const struct yk_fit_config *c)
{
	char *json = rest_of(c);
	yoke_context *ctx = json ? yoke_pipeline_context(json) : NULL;
	free(json);
	return ctx;
}

yoke_pipeline *yk_fit_config_pipeline(struct yk_fit_config *c)
{
	char *json = rest_of(c);
	yoke_pipeline *p = json ? yoke_pipeline_new(json) : NULL;
	free(json);
	json_t *all = p ? json_loads(yoke_pipeline_config(p), 0, NULL) : NULL;
	if (!p || (all && !json_object_update(c->root, all))) {
		json_decref(all);
		return p;
	}
	json_decref(all);
	yoke_pipeline_free(p);
	yk_fail(YOKE_ENOMEM, "out of memory");
	return NULL;
}
