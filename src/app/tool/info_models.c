// SPDX-License-Identifier: Apache-2.0
// yoke info models: lists the models in a directory with size, loss and age.
#include "config.h"

#include "tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "formats/checkpoint.h"
#include "nn/model.h"
#include "observe/memory.h"
#include "tool/table.h"

#define TAIL (1 << 20) // bytes read from the end of metrics.jsonl

// ---- the last losses ----

// Reads whole lines at the end of a file; NULL: unreadable.
static char *read_tail(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(TAIL + 1) : NULL, *line = NULL;
	if (text) {
		bool cut = fseek(f, -TAIL, SEEK_END) == 0;
		if (!cut)
			rewind(f);
		text[fread(text, 1, TAIL, f)] = '\0';
		line = cut ? strchr(text, '\n') : NULL;
		if (line)
			memmove(text, line + 1, strlen(line));
	}
	if (f)
		fclose(f);
	return text;
}

// Finds the last value of each loss up to `step`, searching from the end until both are found.
static void last_losses(const char *folder, int64_t step, double *loss, double *val_loss)
{
	char *path, *text;
	*loss = *val_loss = NAN;
	if (asprintf(&path, "%s/metrics.jsonl", folder) < 0)
		return;
	text = read_tail(path);
	while (text && *text && (isnan(*loss) || isnan(*val_loss))) {
		char *line = strrchr(text, '\n');
		const char *s = line ? line + 1 : text;
		json_t *o = *s ? yk_json_parse(s, strlen(s), path) : NULL;
		if (json_integer_value(json_object_get(o, "step")) <= step) {
			if (isnan(*loss) && json_object_get(o, "loss"))
				*loss = json_number_value(json_object_get(o, "loss"));
			if (isnan(*val_loss) && json_object_get(o, "val_loss"))
				*val_loss = json_number_value(json_object_get(o, "val_loss"));
		}
		json_decref(o);
		*(line ? line : text) = '\0';
	}
	yoke_error_clear(); // a killed run can leave an incomplete last line
	free(text);
	free(path);
}

// ---- gathering ----

static int set_real(json_t *o, const char *key, double x)
{
	return json_object_set_new(o, key, isfinite(x) ? json_real(x) : json_null());
}

// Describes a model from its manifest; NULL with the error set.
static json_t *describe(const char *folder, time_t saved)
{
	struct yk_checkpoint ck;
	const struct yk_model *m;
	struct yk_model_shape s;
	uint64_t bytes = 0; // sum over the files
	char when[32] = "";
	double loss, val_loss;
	struct tm tm;
	json_t *o = NULL;
	if (yk_checkpoint_open(folder, &ck) < 0)
		return NULL;
	if (yk_model_parse(ck.model, folder, &m, &s) == 0) {
		for (int i = 0; i < YK_CHECKPOINT_PARTS; i++)
			bytes += ck.file[i].bytes;
		if (gmtime_r(&saved, &tm))
			strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
		last_losses(folder, ck.step, &loss, &val_loss);
		o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:f}", "folder", folder, "parameters",
			      (json_int_t)yk_model_elements(m, &s), "bytes", (json_int_t)bytes,
			      "step", (json_int_t)ck.step, "steps",
			      json_integer_value(json_object_get(ck.schedule, "steps")), "saved",
			      when, "age", fmax(0, difftime(time(NULL), saved)));
		json_t *shape = yk_model_describe(m, &s);
		if (!o || json_object_update(o, shape) || set_real(o, "loss", loss) ||
		    set_real(o, "val_loss", val_loss) || set_real(o, "perplexity", exp(val_loss)))
			yk_fail(YOKE_EINVAL, "%s: out of memory, or its name is not UTF-8", folder);
		json_decref(shape);
	}
	yk_checkpoint_fini(&ck);
	return o;
}

// Adds a directory if it holds a model; an unreadable model is listed with the reason.
static void examine_directory(json_t *list, const char *folder)
{
	struct stat st;
	char *path;
	if (asprintf(&path, "%s/manifest.json", folder) < 0)
		return;
	bool there = yk_checkpoint_exists(folder) && stat(path, &st) == 0;
	free(path);
	if (!there)
		return;
	json_t *o = describe(folder, st.st_mtime);
	if (!o)
		o = json_pack("{s:s, s:s}", "folder", folder, "error", yoke_error());
	yoke_error_clear();
	json_array_append_new(list, o);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int shown(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

// Examines the directory itself and its subdirectories, sorted by name.
static json_t *gather(const char *folder)
{
	struct dirent **names;
	bool here = !strcmp(folder, ".");
	int n = scandir(folder, &names, shown, by_name);
	if (n < 0) {
		yk_fail(errno == ENOENT ? YOKE_ENOENT : YOKE_EIO, "%s: %s", folder,
			strerror(errno));
		return NULL;
	}
	json_t *list = json_array();
	examine_directory(list, folder);
	for (int i = 0; i < n; i++) {
		char *path;
		if (asprintf(&path, "%s%s%s", here ? "" : folder,
			     here || folder[strlen(folder) - 1] == '/' ? "" : "/",
			     names[i]->d_name) >= 0) {
			examine_directory(list, path);
			free(path);
		}
		free(names[i]);
	}
	free(names);
	return list;
}

// ---- printing ----

static const char *age_text(char to[32], double seconds)
{
	static const struct {
		double max, of;
		const char *unit;
	} step[] = { { 120, 1, "s" }, { 7200, 60, "min" }, { 172800, 3600, "h" },
		     { INFINITY, 86400, "days" } };
	int k = 0;
	while (seconds >= step[k].max)
		k++;
	snprintf(to, 32, "%.0f %s", floor(seconds / step[k].of), step[k].unit);
	return to;
}

static const char *loss_text(char to[32], const json_t *o, const char *key)
{
	const json_t *x = json_object_get(o, key);
	snprintf(to, 32, "%.4f", json_number_value(x));
	return json_is_number(x) ? to : "";
}

static void print_models(const json_t *list, const char *folder)
{
	static const char *const keys[] = { "model", "parameters", "size", "step",
					    "loss",  "val_loss",   "age" };
	json_t *rows = json_array();
	const json_t *o;
	size_t i;
	json_array_foreach (list, i, o) {
		char parameters[32], size[32], step[64], loss[32], val_loss[32], age[32];
		const char *why = json_string_value(json_object_get(o, "error"));
		if (why) {
			fprintf(stderr, "yoke info models: %s\n", why);
			continue;
		}
		snprintf(parameters, sizeof parameters, "%" PRId64,
			 (int64_t)json_integer_value(json_object_get(o, "parameters")));
		snprintf(step, sizeof step, "%" PRId64 "/%" PRId64,
			 (int64_t)json_integer_value(json_object_get(o, "step")),
			 (int64_t)json_integer_value(json_object_get(o, "steps")));
		yk_bytes_text(size, (uint64_t)json_integer_value(json_object_get(o, "bytes")));
		json_array_append_new(
			rows,
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "model",
				  yk_cell(o, "folder"), "parameters", parameters, "size", size,
				  "step", step, "loss", loss_text(loss, o, "loss"), "val_loss",
				  loss_text(val_loss, o, "val_loss"), "age",
				  age_text(age, json_number_value(json_object_get(o, "age")))));
	}
	if (json_array_size(rows))
		yk_table(rows, "", 7, keys, keys);
	else
		printf("no model in %s\n", folder);
	json_decref(rows);
}

int yk_info_models(int argc, char **argv)
{
	const char *folder = NULL;
	bool json = false;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (folder || argv[i][0] == '-' || !*argv[i])
			return yk_usage(
				"info models",
				"unknown argument '%s'; give a folder and, optionally, --json",
				argv[i]);
		else
			folder = argv[i];
	}
	folder = folder ? folder : ".";
	json_t *list = gather(folder);
	if (!list)
		return yk_failed("info models");
	if (json) {
		json_t *o = json_pack("{s:O}", "models", list);
		yk_print_json(o);
		json_decref(o);
	} else {
		print_models(list, folder);
	}
	json_decref(list);
	return YK_DONE;
}
