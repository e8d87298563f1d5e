// SPDX-License-Identifier: Apache-2.0
// Checkpoints.  Phase 1 writes statistic.MARK.BASE for each statistic, and collected.json.  Phase 2
// writes states.STEP, optimizer.STEP and checkpoint.json, which names the step and is replaced
// last.

#include "config.h"

#include "fit/resume.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "optim/scaled.h"

enum { PATH = 4096 };

static void path_of(char to[PATH], const char *folder, const char *what, int64_t step)
{
	if (step < 0)
		snprintf(to, PATH, "%.3900s/%s", folder, what);
	else
		snprintf(to, PATH, "%.3900s/%s.%" PRId64 ".safetensors", folder, what, step);
}

// Removes the directory's files WHAT.N.* whose number is not `keep`, including leftovers of killed
// processes.
static void sweep(const char *folder, const char *what, int64_t keep)
{
	const size_t n = strlen(what);
	DIR *d = opendir(folder);
	const struct dirent *e;
	char path[PATH], *end;
	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, what, n) || e->d_name[n] != '.')
			continue;
		const long long number = strtoll(e->d_name + n + 1, &end, 10);
		if (end == e->d_name + n + 1 || *end != '.' || number == keep)
			continue;
		snprintf(path, sizeof path, "%.3800s/%.255s", folder, e->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
}

// Reads checkpoint.json; step 0: there is none.
static int read_position(const char *folder, struct yk_fit_position *to)
{
	char path[PATH];
	const struct {
		const char *name;
		int64_t *to;
	} key[] = { { "epoch", &to->epoch },  { "step", &to->step },     { "batch", &to->batch },
		    { "index", &to->index },  { "failed", &to->failed }, { "rows", &to->rows },
		    { "pixels", &to->pixels } };
	*to = (struct yk_fit_position){ .epoch = 0 };
	path_of(path, folder, "checkpoint.json", -1);
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	json_t *j = yk_json_load(path);
	int err = j ? 0 : yk_error_last();
	for (size_t i = 0; i < sizeof key / sizeof *key && !err; i++)
		err = yk_json_int(j, path, key[i].name, !strcmp(key[i].name, "step"), INT64_MAX - 1,
				  key[i].to);
	if (!err && to->batch && !to->rows)
		err = yk_fail(YOKE_EFORMAT, "%s: has a batch within an epoch, but not its rows",
			      path);
	if (j)
		json_decref(j);
	return err;
}

// Removes files of phase 1 and of older checkpoints, also those that a process killed before its
// cleanup left.
static void tidy(const char *folder, int64_t step)
{
	yk_collected_forget(folder);
	sweep(folder, "states", step);
	sweep(folder, "optimizer", step);
}

int yk_fit_checkpoint(const yoke_pipeline *p, yoke_optim *o, const yoke_scaler *s,
		      const char *folder, const struct yk_fit_position *position)
{
	char path[PATH];
	path_of(path, folder, "states", position->step);
	yk_file_sweep(path); // an earlier save of the same step may have been killed
	int err = yoke_pipeline_save(p, path);
	path_of(path, folder, "optimizer", position->step);
	yk_file_sweep(path);
	if (!err)
		err = yoke_optim_save(o, path);
	json_t *j =
		err ? NULL :
		      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o*}", "epoch",
				(json_int_t)position->epoch, "step", (json_int_t)position->step,
				"batch", (json_int_t)position->batch, "index",
				(json_int_t)position->index, "failed", (json_int_t)position->failed,
				"rows", (json_int_t)position->rows, "pixels",
				(json_int_t)position->pixels, "scaler", yk_scaler_describe(s));
	path_of(path, folder, "checkpoint.json", -1);
	yk_file_sweep(path);
	if (!err)
		err = j ? yk_json_save(path, j) : yk_fail(YOKE_ENOMEM, "no memory for %s", path);
	if (j)
		json_decref(j);
	if (err)
		return err;
	tidy(folder, position->step);
	return 0;
}

int yk_fit_resume(yoke_optim *o, yoke_scaler *s, const char *folder,
		  struct yk_fit_position *position)
{
	char path[PATH];
	int err = read_position(folder, position);
	path_of(path, folder, "optimizer", position->step);
	if (err || !position->step || (err = yoke_optim_load(o, path)) < 0)
		return err;
	path_of(path, folder, "checkpoint.json", -1);
	json_t *j = yk_json_load(path);
	err = j ? yk_scaler_parse(json_object_get(j, "scaler"), path, s) : yk_error_last();
	if (j)
		json_decref(j);
	if (!err)
		tidy(folder, position->step);
	return err;
}

int64_t yoke_pipeline_resume(yoke_pipeline *p, const char *folder)
{
	char path[PATH];
	struct yk_fit_position position;
	int err = yk_require(p, "pipeline");
	if (!err)
		err = yk_require(folder, "folder");
	if (err)
		return err;
	err = read_position(folder, &position);
	path_of(path, folder, "states", position.step);
	if (!err && position.step)
		err = yoke_pipeline_load(p, path);
	return err ? err : position.step;
}

// ---- phase 1 ----

static void statistic_path(char to[PATH], const char *folder, int base, int64_t mark)
{
	snprintf(to, PATH, "%.3900s/statistic.%" PRId64 ".%d.safetensors", folder, mark, base);
}

static json_t *load_collected(const char *folder, char path[PATH])
{
	path_of(path, folder, "collected.json", -1);
	return access(path, F_OK) ? NULL : yk_json_load(path);
}

void yk_collected_forget(const char *folder)
{
	char path[PATH];
	path_of(path, folder, "collected.json", -1);
	unlink(path);
	sweep(folder, "statistic", 0);
}

int yk_collected_save(const struct yk_collected *c, const char *folder)
{
	char path[PATH], of[20];
	json_t *before = load_collected(folder, path), *list = json_array();
	const int64_t mark = before ? json_integer_value(json_object_get(before, "mark")) + 1 : 1;
	int err = 0;
	for (int i = 0; i < c->n && !err; i++) {
		statistic_path(path, folder, c->base[i], mark);
		yk_file_sweep(path);
		err = yoke_statistic_save(c->statistic[i], path);
		json_array_append_new(
			list, json_pack("{s:i, s:b}", "base", c->base[i], "open", (int)c->open[i]));
	}
	snprintf(of, sizeof of, "%016" PRIx64, c->of);
	json_t *j =
		json_pack("{s:s, s:I, s:i, s:I, s:o}", "of", of, "mark", (json_int_t)mark, "passes",
			  c->passes, "samples", (json_int_t)c->samples, "statistics", list);
	path_of(path, folder, "collected.json", -1);
	yk_file_sweep(path);
	if (!err)
		err = j ? yk_json_save(path, j) : yk_fail(YOKE_ENOMEM, "no memory for %s", path);
	if (!err)
		sweep(folder, "statistic", mark);
	if (j)
		json_decref(j);
	if (before)
		json_decref(before);
	return err;
}

// Loads the statistics that a JSON object lists.
static int load_all(struct yk_collected *c, int max, const char *folder, const char *path,
		    const json_t *j)
{
	char file[PATH];
	int64_t mark, passes, base;
	json_t *list = json_object_get(j, "statistics"), *one;
	size_t i;
	if (yk_json_int(j, path, "mark", 1, INT64_MAX - 1, &mark) < 0 ||
	    yk_json_int(j, path, "passes", 0, max, &passes) < 0 ||
	    yk_json_int(j, path, "samples", 0, INT64_MAX - 1, &c->samples) < 0)
		return yk_error_last();
	c->passes = (int)passes;
	json_array_foreach(list, i, one) {
		if (c->n == max || yk_json_int(one, path, "base", 0, INT32_MAX, &base) < 0)
			return c->n == max ?
				       yk_fail(YOKE_EFORMAT,
					       "%s: has more statistics than the pipeline", path) :
				       yk_error_last();
		statistic_path(file, folder, (int)base, mark);
		c->base[c->n] = (int)base;
		c->open[c->n] = json_is_true(json_object_get(one, "open"));
		if (!(c->statistic[c->n] = yoke_statistic_load(file)))
			return yk_error_last();
		c->n++;
	}
	return 0;
}

int yk_collected_load(struct yk_collected *c, int max, const char *folder)
{
	char path[PATH], of[20];
	json_t *j = load_collected(folder, path);
	c->n = 0;
	if (!j)
		return yoke_error_code() ? yk_error_last() : 0;
	snprintf(of, sizeof of, "%016" PRIx64, c->of);
	const char *stored = json_string_value(json_object_get(j, "of"));
	int err = 0;
	if (stored && !strcmp(stored, of))
		err = load_all(c, max, folder, path, j);
	else
		yk_warn("fit", "%s: belongs to another pipeline or other data: statistics are "
			"collected again", path);
	json_decref(j);
	return err;
}
