// SPDX-License-Identifier: Apache-2.0
// Writes the files of a run.  A failed write gives one warning per file and never ends the run.
#include "config.h"

#include "runs/write.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "base/shared.h"
#include "base/system.h"
#include "runs/tfevents.h"

#define MAX_METRICS (UINT64_C(1) << 32)
enum { MAX_SCALARS = 64, MAX_LATE = 1 << 20 };

// A JSON Lines file.
struct lines {
	char *path, *late; // late: lines not written yet, at most MAX_LATE bytes; NULL: none
	int fd;    // -1: it could not be opened
	bool lost; // a line could not be written, and a warning was logged
};

struct yoke_run {
	pthread_mutex_t mutex;
	char *folder;
	int lock; // -1: the caller holds it
	struct lines metrics, events;
	json_t *about; // run.json
	bool about_lost;
	struct yk_tfevents *tf; // NULL: not used, or failed
};

// ---- write failures ----

// Logs a warning about the call that just failed, once per file, and restores the thread's previous
// error.
static void lose(bool *lost, const char *path, struct yk_error_aside *aside)
{
	if (!*lost)
		yk_warn("run", "%s; the run continues without these records",
			*yoke_error() ? yoke_error() : path);
	*lost = true;
	yoke_error_clear();
	yk_error_restore(aside);
}

static void lines_open(struct lines *l, const char *folder, const char *name)
{
	l->fd = -1;
	if (asprintf(&l->path, "%s/%s", folder, name) < 0)
		l->path = NULL;
	struct yk_error_aside *aside = yk_error_aside();
	if (l->path && (l->fd = yk_file_append_open(l->path)) >= 0)
		yk_error_restore(aside);
	else
		lose(&l->lost, name, aside);
}

// Writes late lines and this one; on failure this one becomes late too.  true: everything is
// written.
static bool lines_write(struct lines *l, const char *text)
{
	char *all = NULL;
	if (l->late && asprintf(&all, "%s%s", l->late, text) < 0)
		all = NULL;
	const char *both = l->late ? all : text;
	const bool written = both && yk_file_append(l->fd, l->path, NULL, both) == 0;
	if (written || (both && strlen(both) <= MAX_LATE)) {
		char *late = written ? NULL : strdup(both);
		free(l->late);
		l->late = late;
	}
	free(all);
	return written;
}

static void lines_close(struct lines *l)
{
	if (l->late) {
		struct yk_error_aside *aside = yk_error_aside();
		lines_write(l, ""); // last attempt; the failure was logged already
		yoke_error_clear();
		yk_error_restore(aside);
	}
	if (l->fd >= 0)
		close(l->fd);
	free(l->late);
	free(l->path);
}

// Takes ownership of the object.  The time is written separately, because it needs more digits than
// other numbers.
static void lines_add(struct lines *l, json_t *o, int digits, double time)
{
	char *json = o ? yk_json_text(o, JSON_COMPACT | JSON_REAL_PRECISION(digits)) : NULL,
	     *text = NULL;
	json_decref(o);
	if (l->fd >= 0) {
		struct yk_error_aside *aside = yk_error_aside();
		if (json && yk_asprintf(&text, "%.*s,\"time\":%.3f}\n", (int)strlen(json) - 1, json,
					time) < 0)
			text = NULL;
		if (text && lines_write(l, text))
			yk_error_restore(aside);
		else
			lose(&l->lost, l->path, aside);
	}
	free(json);
	free(text);
}

// "folder/run.json", which the caller frees; NULL: out of memory.
static char *about_path(const yoke_run *r)
{
	char *path;
	return asprintf(&path, "%s/run.json", r->folder) < 0 ? NULL : path;
}

static void about_save(yoke_run *r)
{
	char *path = about_path(r);
	struct yk_error_aside *aside = yk_error_aside();
	int e = YOKE_ENOMEM;
	if (path && r->about)
		e = yk_json_save(path, r->about);
	if (e == 0)
		yk_error_restore(aside);
	else
		lose(&r->about_lost, "run.json", aside);
	free(path);
}

// ---- metrics.jsonl of an earlier run ----

// Bytes of the leading lines whose step is at most `step`.
static size_t kept_lines(const char *text, size_t bytes, const char *path, int64_t step)
{
	size_t at = 0;
	while (at < bytes) {
		const char *end = memchr(text + at, '\n', bytes - at);
		if (!end)
			break;
		size_t length = (size_t)(end - text) - at;
		json_t *line = yk_json_parse(text + at, length, path);
		int64_t of;
		bool good = line && yk_json_int(line, path, "step", 0, INT64_MAX, &of) == 0 &&
			    of <= step;
		json_decref(line);
		if (!good)
			break;
		at += length + 1;
	}
	yoke_error_clear(); // a killed run leaves an incomplete last line
	return at;
}

static int metrics_cut(const char *path, int64_t step)
{
	char *text;
	size_t bytes;
	int e = yk_file_read(path, MAX_METRICS, &text, &bytes);
	if (e == YOKE_ENOENT) {
		yoke_error_clear();
		return 0;
	}
	if (e < 0)
		return e;
	size_t kept = kept_lines(text, bytes, path, step);
	e = kept < bytes ? yk_file_write(path, text, kept) : 0;
	free(text);
	return e;
}

static void cut(yoke_run *r, int64_t step)
{
	struct yk_error_aside *aside = yk_error_aside();
	int e = r->metrics.path ? metrics_cut(r->metrics.path, step) : YOKE_ENOMEM;
	if (e == 0)
		yk_error_restore(aside);
	else
		lose(&r->metrics.lost, "metrics.jsonl", aside);
}

void yk_runs_truncate(yoke_run *r, int64_t step)
{
	pthread_mutex_lock(&r->mutex);
	bool lost = r->metrics.lost;
	lines_close(&r->metrics);
	r->metrics = (struct lines){ .fd = -1 };
	if (asprintf(&r->metrics.path, "%s/metrics.jsonl", r->folder) < 0)
		r->metrics.path = NULL;
	r->metrics.lost = lost;
	cut(r, step); // may replace the file
	free(r->metrics.path);
	lost = r->metrics.lost;
	lines_open(&r->metrics, r->folder, "metrics.jsonl");
	r->metrics.lost |= lost;
	pthread_mutex_unlock(&r->mutex);
}

// ---- run.json ----

static void add_setting(struct yk_param *p, void *arg)
{
	const char *text = p->origin == YK_DEFAULT ? NULL : yk_param_str(p);
	if (text)
		json_object_set_new(arg, p->name, json_string(text));
}

// jansson accepts only UTF-8; other text becomes "?".
static json_t *text(const char *s)
{
	json_t *j = json_string(s ? s : "");
	return j ? j : json_string("?");
}

static json_t *about_new(const struct yk_runs_options *o)
{
	char boot[64], host[256] = "", data[24] = "";
	json_t *settings = json_object();
	yk_boot_id(boot);
	gethostname(host, sizeof host - 1);
	if (o->data)
		snprintf(data, sizeof data, "%016llx", (unsigned long long)o->data);
	if (settings)
		yk_param_each(add_setting, settings);
	return json_pack("{s:i, s:s, s:I, s:s, s:f, s:I, s:o, s:o, s:o, s:o, s:o, s:s, s:[]}",
			 "format", YK_RUNS_FORMAT, "version", PACKAGE_VERSION, "pid",
			 (json_int_t)getpid(), "boot", boot, "started", yk_unix_seconds(), "step",
			 (json_int_t)o->step, "host", text(host), "device", text(o->device),
			 "driver", text(o->driver), "settings", settings, "config",
			 o->config ? json_deep_copy(o->config) : json_object(), "data", data,
			 "artifacts");
}

void yk_runs_set(yoke_run *r, const char *key, json_t *value)
{
	pthread_mutex_lock(&r->mutex);
	if (r->about && value)
		json_object_set_new(r->about, key, value);
	about_save(r);
	pthread_mutex_unlock(&r->mutex);
}

// ---- a run ----

static void run_free(yoke_run *r)
{
	lines_close(&r->metrics);
	lines_close(&r->events);
	json_decref(r->about);
	yk_dir_unlock(r->lock);
	pthread_mutex_destroy(&r->mutex);
	free(r->folder);
	free(r);
}

yoke_run *yk_runs_open(const char *folder, const struct yk_runs_options *o)
{
	yoke_run *r = calloc(1, sizeof *r);
	char *copy = strdup(folder);
	if (!r || !copy) {
		free(r);
		free(copy);
		yk_fail(YOKE_ENOMEM, "%s: no memory for the records of a run", folder);
		return NULL;
	}
	*r = (struct yoke_run){ .folder = copy, .lock = -1, .metrics.fd = -1, .events.fd = -1 };
	pthread_mutex_init(&r->mutex, NULL);
	if (!o->locked && yk_dir_lock(folder, &r->lock) < 0) {
		r->lock = -1;
		run_free(r);
		return NULL;
	}
	lines_open(&r->events, folder, "events.jsonl");
	yk_runs_truncate(r, o->step);
	char *about = about_path(r);
	if (about)
		yk_file_sweep(about); // temporary files of killed runs
	free(about);
	r->about = about_new(o);
	about_save(r);
	if (o->tensorboard) {
		struct yk_error_aside *aside = yk_error_aside();
		bool lost = false;
		if ((r->tf = yk_tfevents_open(folder, o->step > 0, o->step + 1)))
			yk_error_restore(aside);
		else
			lose(&lost, "events.out.tfevents", aside);
	}
	return r;
}

// TensorBoard shows tags with the same word before the slash as one group: train, valid, data,
// system, or another stage. The group's name is not repeated after the slash: data_wait_s becomes
// data/wait_s, val_loss valid/loss. The caller frees the tag; NULL: out of memory.
static char *tag_of(const char *stage, const char *key)
{
	static const char *const system[] = { "peak_bytes", "ranks", "sent_bytes", "ranks_wait_s",
					      "slowest_rank" };
	const char *group = stage;
	char *tag;
	if (!strcmp(stage, "memory"))
		group = "system";
	for (size_t i = 0; i < sizeof system / sizeof *system; i++)
		if (!strcmp(stage, "train") && !strcmp(key, system[i]))
			group = "system";
	if (!strcmp(stage, "train") && !strncmp(key, "data_", 5) && key[5]) {
		group = "data";
		key += 5;
	} else if (!strcmp(stage, "valid") && !strncmp(key, "val_", 4) && key[4]) {
		key += 4;
	}
	return asprintf(&tag, "%s%s%s", group, *group ? "/" : "", key) < 0 ? NULL : tag;
}

static void tensorboard(yoke_run *r, const json_t *line, double time)
{
	struct yk_scalar s[MAX_SCALARS];
	char *tag[MAX_SCALARS];
	int n = 0;
	const char *key, *stage = json_string_value(json_object_get(line, "stage"));
	json_t *v;
	json_object_foreach ((json_t *)(uintptr_t)line, key, v)
		if (n < MAX_SCALARS && json_is_number(v) && strcmp(key, "step") &&
		    (tag[n] = tag_of(stage ? stage : "", key))) {
			s[n] = (struct yk_scalar){ tag[n], (float)json_number_value(v) };
			n++;
		}
	struct yk_error_aside *aside = yk_error_aside();
	const int e = yk_tfevents_scalars(r->tf, time,
					  json_integer_value(json_object_get(line, "step")), n, s);
	while (n > 0)
		free(tag[--n]);
	if (e == 0) {
		yk_error_restore(aside);
		return;
	}
	bool lost = false;
	lose(&lost, "events.out.tfevents", aside);
	aside = yk_error_aside();
	yk_tfevents_close(r->tf);
	yoke_error_clear();
	yk_error_restore(aside);
	r->tf = NULL;
}

void yk_runs_line(yoke_run *r, const char *stage, int digits, json_t *line)
{
	double now = yk_unix_seconds();
	if (!r) {
		json_decref(line);
		return;
	}
	if (line)
		json_object_set_new(line, "stage", text(stage));
	pthread_mutex_lock(&r->mutex);
	if (line && r->tf)
		tensorboard(r, line, now);
	lines_add(&r->metrics, line, digits, now);
	pthread_mutex_unlock(&r->mutex);
}

void yk_runs_event(yoke_run *r, int64_t step, const char *event, const char *what)
{
	if (!r)
		return;
	json_t *line = json_pack("{s:I, s:o, s:o}", "step", (json_int_t)step, "event", text(event),
				 "text", text(what));
	pthread_mutex_lock(&r->mutex);
	lines_add(&r->events, line, 17, yk_unix_seconds());
	pthread_mutex_unlock(&r->mutex);
}

// ---- artifacts ----

// XXH64 and size of a file.
static int file_hash(const char *path, uint64_t *hash, uint64_t *bytes)
{
	static const uint64_t chunk = 1 << 20;
	int fd = yk_file_open(path, bytes), e = fd < 0 ? fd : 0;
	struct yk_hash_state *h = yk_hash_new(0);
	char *buffer = malloc(chunk);
	if (e == 0 && (!h || !buffer))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for its checksum", path);
	for (uint64_t at = 0; e == 0 && at < *bytes; at += chunk) {
		uint64_t n = *bytes - at < chunk ? *bytes - at : chunk;
		e = yk_file_read_at(fd, path, at, buffer, n);
		if (e == 0)
			yk_hash_add(h, buffer, n);
	}
	if (h)
		*hash = yk_hash_end(h);
	free(buffer);
	if (fd >= 0)
		close(fd);
	return e;
}

int yoke_run_artifact(yoke_run *r, const char *path)
{
	uint64_t hash = 0, bytes;
	char sum[24];
	if (!r)
		return 0;
	if (!path)
		return yk_fail(YOKE_EINVAL, "yoke_run_artifact: no path");
	int e = file_hash(path, &hash, &bytes);
	if (e < 0)
		return e;
	size_t n = strlen(r->folder); // files in the folder are named relative to it
	const char *name = !strncmp(path, r->folder, n) && path[n] == '/' ? path + n + 1 : path;
	snprintf(sum, sizeof sum, "%016llx", (unsigned long long)hash);
	json_t *o = json_pack("{s:s, s:I, s:s}", "name", name, "bytes", (json_int_t)bytes, "xxh64",
			      sum),
	       *old;
	if (!o)
		return yk_fail(YOKE_EINVAL,
			       "yoke_run_artifact: '%s' is not UTF-8, or there is no memory", path);
	pthread_mutex_lock(&r->mutex);
	json_t *list = json_object_get(r->about, "artifacts");
	size_t i;
	json_array_foreach (list, i, old)
		if (!strcmp(json_string_value(json_object_get(old, "name")), name))
			break;
	if (i < json_array_size(list))
		json_array_set_new(list, i, o);
	else
		json_array_append_new(list, o); // fails if there is no list: run.json was lost,
						// which was logged
	about_save(r);
	pthread_mutex_unlock(&r->mutex);
	return 0;
}

void yoke_run_close(yoke_run *r, const char *ended, const char *error)
{
	if (!r)
		return;
	json_t *o = json_pack("{s:f, s:o, s:o}", "time", yk_unix_seconds(), "how",
			      text(ended ? ended : "done"), "error", text(error));
	yk_runs_set(r, "ended", o);
	struct yk_error_aside *aside = yk_error_aside();
	bool lost = false;
	if (yk_tfevents_close(r->tf) == 0)
		yk_error_restore(aside);
	else
		lose(&lost, "events.out.tfevents", aside);
	run_free(r);
}
