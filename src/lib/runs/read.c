// SPDX-License-Identifier: Apache-2.0
// Reads the files of a run incrementally, line by line, into tables and events.
#include "config.h"

#include "runs/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/shared.h"
#include "runs/flat.h"

#define CHUNK ((size_t)1 << 20) // bytes per read; longer lines are skipped
#define MAX_OBJECT ((uint64_t)16 << 20)
enum { MAX_FILES = 256 };

enum kind { METRICS, TELEMETRY, EVENTS };

struct yk_view_file {
	char name[64]; // in the folder
	enum kind kind;
	int fd; // -1: missing
	ino_t inode;
	uint64_t at;   // bytes read
	uint32_t lines;
	bool skipping; // inside a line that is too long
	char *rest;    // the last line as far as it was read, without a newline yet
	size_t nrest;
};

struct view {
	struct yk_view v; // must be first
	struct timespec about_time, kernels_time;
	char *buffer; // CHUNK bytes and a NUL
	yk_view_line_fn *listen;
	void *arg;
};

// ---- tables ----

const struct yk_view_table *yk_view_table(const struct yk_view *v, const char *stage)
{
	for (int i = 0; i < v->tables; i++)
		if (!strcmp(v->table[i]->stage, stage))
			return v->table[i];
	return NULL;
}

int yk_view_column(const struct yk_view_table *t, const char *name)
{
	for (int i = 0; t && i < t->columns; i++)
		if (!strcmp(t->column[i].name, name))
			return i;
	return -1;
}

double yk_view_value(const struct yk_view *v, const struct yk_view_table *t, int column, size_t row)
{
	const void *x = column < 0 ? NULL : t->chunk[row / YK_VIEW_CHUNK]->value[column];
	if (!x)
		return NAN;
	return v->exact ? ((const double *)x)[row % YK_VIEW_CHUNK] :
			  (double)((const float *)x)[row % YK_VIEW_CHUNK];
}

double yk_view_last(const struct yk_view *v, const char *stage, const char *column)
{
	const struct yk_view_table *t = yk_view_table(v, stage);
	const int c = yk_view_column(t, column);
	return c >= 0 && t->column[c].count ? t->column[c].last : NAN;
}

int64_t yk_view_step(const struct yk_view_table *t, size_t row)
{
	return t->chunk[row / YK_VIEW_CHUNK]->step[row % YK_VIEW_CHUNK];
}

int64_t yk_view_last_step(const struct yk_view *v)
{
	const struct yk_view_table *t = yk_view_table(v, "train");
	return t && t->rows ? yk_view_step(t, t->rows - 1) : 0;
}

double yk_view_time(const struct yk_view_table *t, size_t row)
{
	return t->chunk[row / YK_VIEW_CHUNK]->time[row % YK_VIEW_CHUNK];
}

uint32_t yk_view_line(const struct yk_view_table *t, size_t row)
{
	return t->chunk[row / YK_VIEW_CHUNK]->line[row % YK_VIEW_CHUNK];
}

static struct yk_view_table *table_of(struct yk_view *v, const char *stage)
{
	struct yk_view_table *t = (struct yk_view_table *)(uintptr_t)yk_view_table(v, stage);
	if (t || v->tables == YK_VIEW_TABLES)
		return t;
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	snprintf(t->stage, sizeof t->stage, "%s", stage);
	return v->table[v->tables++] = t;
}

static struct yk_view_chunk *chunk_of_next(struct yk_view_table *t)
{
	if (t->rows < t->chunks * YK_VIEW_CHUNK)
		return t->chunk[t->chunks - 1];
	struct yk_view_chunk **more = realloc(t->chunk, (t->chunks + 1) * sizeof *more);
	if (!more)
		return NULL;
	t->chunk = more;
	struct yk_view_chunk *c = calloc(1, sizeof *c);
	if (c)
		more[t->chunks++] = c;
	return c;
}

// Finds or adds a column.  Names usually come in the same order, so `guess` is tried first.
static int column_of(struct yk_view_table *t, const char *name, size_t bytes, int guess)
{
	if (guess < t->columns && !strncmp(t->column[guess].name, name, bytes) &&
	    !t->column[guess].name[bytes])
		return guess;
	for (int i = 0; i < t->columns; i++)
		if (!strncmp(t->column[i].name, name, bytes) && !t->column[i].name[bytes])
			return i;
	if (t->columns == YK_VIEW_COLUMNS)
		return -1;
	struct yk_view_column *c = &t->column[t->columns];
	*c = (struct yk_view_column){ .count = 0 };
	snprintf(c->name, sizeof c->name, "%.*s", (int)bytes, name);
	return t->columns++;
}

static bool set_value(const struct yk_view *v, struct yk_view_chunk *c, int column, size_t row,
		      double x)
{
	if (!c->value[column]) {
		c->value[column] =
			malloc(YK_VIEW_CHUNK * (v->exact ? sizeof(double) : sizeof(float)));
		for (size_t i = 0; c->value[column] && i < YK_VIEW_CHUNK; i++)
			if (v->exact)
				((double *)c->value[column])[i] = NAN;
			else
				((float *)c->value[column])[i] = NAN;
	}
	if (!c->value[column])
		return false;
	if (v->exact)
		((double *)c->value[column])[row] = x;
	else
		((float *)c->value[column])[row] = (float)x;
	return true;
}

static bool is_reserved(const struct yk_flat_pair *p)
{
	return (p->bytes == 4 && (!memcmp(p->name, "step", 4) || !memcmp(p->name, "time", 4) ||
				  !memcmp(p->name, "rank", 4)));
}

static int add_row(struct yk_view *v, const char *stage, uint32_t line, const struct yk_flat *f)
{
	struct yk_view_table *t = table_of(v, stage);
	struct yk_view_chunk *c = t ? chunk_of_next(t) : NULL;
	if (!t && v->tables == YK_VIEW_TABLES) {
		v->foreign++;
		return 0;
	}
	if (!c)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for its lines", v->folder);
	size_t row = t->rows % YK_VIEW_CHUNK;
	int at = -1;
	c->step[row] = f->step;
	c->time[row] = f->time;
	c->line[row] = line;
	for (int i = 0; i < f->n; i++) {
		const struct yk_flat_pair *p = &f->pair[i];
		if (is_reserved(p) || p->bytes >= YK_VIEW_NAME)
			continue;
		if ((at = column_of(t, p->name, p->bytes, at + 1)) < 0)
			continue;
		struct yk_view_column *k = &t->column[at];
		if (!isfinite(p->value))
			continue;
		if (!set_value(v, c, at, row, p->value))
			return yk_fail(YOKE_ENOMEM, "%s: no memory for its lines", v->folder);
		if (!k->count++)
			k->first = k->min = k->max = p->value, k->min_step = f->step;
		k->last = p->value;
		if (p->value < k->min)
			k->min = p->value, k->min_step = f->step;
		if (p->value > k->max)
			k->max = p->value;
	}
	t->rows++;
	return 0;
}

static void tables_drop(struct yk_view *v)
{
	for (int i = 0; i < v->tables; i++) {
		struct yk_view_table *t = v->table[i];
		for (size_t k = 0; k < t->chunks; k++) {
			for (int c = 0; c < YK_VIEW_COLUMNS; c++)
				free(t->chunk[k]->value[c]);
			free(t->chunk[k]);
		}
		free(t->chunk);
		free(t);
	}
	v->tables = 0;
}

static void events_drop(struct yk_view *v)
{
	for (size_t i = 0; i < v->events; i++) {
		free(v->event[i].event);
		free(v->event[i].text);
	}
	v->events = 0;
}

// ---- lines ----

static int add_event(struct yk_view *v, const struct yk_flat *f)
{
	if (!v->event && !(v->event = calloc(YK_VIEW_EVENTS, sizeof *v->event)))
		return yk_fail(YOKE_ENOMEM, "%s: no memory for events", v->folder);
	if (v->events == YK_VIEW_EVENTS) { // drops the oldest
		free(v->event[0].event);
		free(v->event[0].text);
		memmove(v->event, v->event + 1, --v->events * sizeof *v->event);
	}
	struct yk_view_event e = { f->time, f->step, strdup(f->event), strdup(f->text) };
	if (!e.event || !e.text) {
		free(e.event);
		free(e.text);
		return yk_fail(YOKE_ENOMEM, "%s: no memory for events", v->folder);
	}
	v->event[v->events++] = e;
	return 0;
}

// Lines of earlier versions have no stage; it is derived from their members.
static const char *stage_of(const struct yk_flat *f)
{
	if (*f->stage)
		return f->stage;
	for (int i = 0; i < f->n; i++)
		if (f->pair[i].bytes == 8 && !memcmp(f->pair[i].name, "val_loss", 8))
			return "valid";
		else if (f->pair[i].bytes == 5 && !memcmp(f->pair[i].name, "epoch", 5))
			return "memory";
	return "train";
}

static int take_line(struct view *x, struct yk_view_file *file, char *line, size_t bytes)
{
	struct yk_view *v = &x->v;
	struct yk_flat f;
	v->lines++;
	file->lines++;
	if (!yk_flat_scan(line, bytes, &f)) {
		v->foreign++;
		return 0;
	}
	if (x->listen)
		x->listen(x->arg, file->name, line, bytes);
	if (file->kind == EVENTS)
		return add_event(v, &f);
	if (f.report) {
		json_t *o = yk_json_parse(f.report, f.report_bytes, file->name);
		if (!o)
			yoke_error_clear();
		else
			json_decref(v->report), v->report = o;
		return 0;
	}
	if (file->kind == METRICS)
		return add_row(v, stage_of(&f), file->lines, &f);
	char stage[80] = "telemetry";
	const char *dot = strchr(file->name, '.');
	if (strcmp(dot, ".jsonl"))
		snprintf(stage, sizeof stage, "telemetry%.*s",
			 (int)(strlen(dot) - strlen(".jsonl")), dot);
	return add_row(v, stage, file->lines, &f);
}

// Processes the complete lines of a chunk; an incomplete last line is kept for the next chunk.
static int take_chunk(struct view *x, struct yk_view_file *f, char *text, size_t bytes)
{
	int e = 0;
	while (e == 0 && bytes) {
		char *end = memchr(text, '\n', bytes);
		size_t n = end ? (size_t)(end - text) : bytes;
		if (!end || f->nrest) {
			char *more = f->skipping || f->nrest + n > CHUNK ?
					     NULL :
					     realloc(f->rest, f->nrest + n + 1);
			f->skipping |= !more;
			if (more) {
				memcpy(more + f->nrest, text, n);
				f->rest = more;
				f->nrest += n;
				more[f->nrest] = '\0';
			}
		}
		if (!end)
			break;
		if (f->skipping) {
			f->lines++;
			x->v.lines++;
			x->v.foreign++;
		} else if (f->nrest) {
			e = take_line(x, f, f->rest, f->nrest);
		} else if (n) {
			*end = '\0';
			e = take_line(x, f, text, n);
		} else {
			f->lines++;
		}
		f->skipping = false;
		f->nrest = 0;
		text = end + 1;
		bytes -= n + 1;
	}
	return e;
}

// ---- files ----

static int file_open(const struct yk_view *v, const char *name)
{
	char path[4096];
	struct stat st;
	if (snprintf(path, sizeof path, "%s/%s", v->folder, name) >= (int)sizeof path)
		return -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void file_reset(struct yk_view_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	f->at = f->nrest = 0;
	f->lines = 0;
	f->skipping = false;
}

// Was the file truncated or replaced?  Then it is read again from the beginning.
static bool was_replaced(const struct yk_view *v, const struct yk_view_file *f)
{
	struct stat now;
	char path[4096];
	if (f->fd < 0)
		return false;
	snprintf(path, sizeof path, "%s/%s", v->folder, f->name);
	return stat(path, &now) < 0 || now.st_ino != f->inode || (uint64_t)now.st_size < f->at;
}

static int file_poll(struct view *x, struct yk_view_file *f)
{
	struct stat st;
	int e = 0;
	if (f->fd < 0) {
		f->fd = file_open(&x->v, f->name);
		if (f->fd < 0 || fstat(f->fd, &st) < 0)
			return 0;
		f->inode = st.st_ino;
	}
	for (;;) {
		ssize_t n = pread(f->fd, x->buffer, CHUNK, (off_t)f->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		f->at += (uint64_t)n;
		if ((e = take_chunk(x, f, x->buffer, (size_t)n)) < 0)
			return e;
	}
}

static int add_file(struct yk_view *v, const char *name, enum kind kind)
{
	for (int i = 0; i < v->files; i++)
		if (!strcmp(v->file[i].name, name))
			return 0;
	if (v->files == MAX_FILES || strlen(name) >= sizeof v->file->name)
		return 0;
	struct yk_view_file *more = realloc(v->file, (size_t)(v->files + 1) * sizeof *more);
	if (!more)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for its files", v->folder);
	v->file = more;
	more[v->files] = (struct yk_view_file){ .kind = kind, .fd = -1 };
	snprintf(more[v->files++].name, sizeof more->name, "%s", name);
	return 0;
}

// telemetry.jsonl, telemetry.3.jsonl, ..
static bool is_telemetry(const char *name)
{
	size_t n = strlen("telemetry");
	if (strncmp(name, "telemetry", n))
		return false;
	if (!strcmp(name + n, ".jsonl"))
		return true;
	size_t digits = name[n] == '.' ? strspn(name + n + 1, "0123456789") : 0;
	return digits && digits < 8 && !strcmp(name + n + 1 + digits, ".jsonl");
}

static int find_files(struct yk_view *v)
{
	int e = add_file(v, "metrics.jsonl", METRICS);
	if (e == 0)
		e = add_file(v, "events.jsonl", EVENTS);
	DIR *dir = opendir(v->folder);
	const struct dirent *d;
	while (dir && e == 0 && (d = readdir(dir)))
		if (is_telemetry(d->d_name))
			e = add_file(v, d->d_name, TELEMETRY);
	if (dir)
		closedir(dir);
	return e;
}

// Rereads a JSON file that is replaced as a whole, if its modification time differs from *seen.
static void poll_object(struct yk_view *v, const char *name, struct timespec *seen, json_t **to)
{
	struct stat st;
	char *text = NULL, path[4096];
	size_t bytes;
	if (snprintf(path, sizeof path, "%s/%s", v->folder, name) >= (int)sizeof path ||
	    stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (st.st_mtim.tv_sec == seen->tv_sec && st.st_mtim.tv_nsec == seen->tv_nsec))
		return;
	*seen = st.st_mtim;
	struct yk_error_aside *aside = yk_error_aside();
	json_t *o = yk_file_read(path, MAX_OBJECT, &text, &bytes) == 0 ?
			    yk_json_parse(text, bytes, path) :
			    NULL;
	if (json_is_object(o)) {
		json_decref(*to);
		*to = o;
	} else {
		json_decref(o);
	}
	free(text);
	yoke_error_clear();
	yk_error_restore(aside);
}

static enum yk_view_state state_of(const struct yk_view *v)
{
	if (yk_dir_locked(v->folder))
		return YK_VIEW_LIVE;
	if (!v->about)
		return YK_VIEW_UNKNOWN;
	return json_is_object(json_object_get(v->about, "ended")) ? YK_VIEW_ENDED : YK_VIEW_LOST;
}

int64_t yk_view_poll(struct yk_view *v)
{
	struct view *x = (struct view *)v;
	const uint64_t before = v->lines;
	int e = find_files(v);
	bool replaced = false;
	for (int i = 0; i < v->files; i++)
		replaced |= was_replaced(v, &v->file[i]);
	if (replaced) {
		for (int i = 0; i < v->files; i++)
			file_reset(&v->file[i]);
		tables_drop(v);
		events_drop(v);
		v->generation++;
	}
	for (int i = 0; i < v->files && e == 0; i++)
		e = file_poll(x, &v->file[i]);
	poll_object(v, "run.json", &x->about_time, &v->about);
	poll_object(v, "kernels.json", &x->kernels_time, &v->kernels);
	v->state = state_of(v);
	return e < 0 ? e : (int64_t)(v->lines - before);
}

bool yk_view_is_run(const char *folder)
{
	static const char *const name[] = { "run.json", "metrics.jsonl" };
	char path[4096];
	for (int i = 0; i < 2; i++)
		if (snprintf(path, sizeof path, "%s/%s", folder, name[i]) < (int)sizeof path &&
		    access(path, F_OK) == 0)
			return true;
	return false;
}

int yk_view_open(const char *folder, bool exact, struct yk_view **to)
{
	if (!yk_view_is_run(folder))
		return yk_fail(YOKE_ENOENT, "'%s' is not a run: it has neither run.json nor "
			"metrics.jsonl; give the folder that was named by `out`", folder);
	struct view *x = calloc(1, sizeof *x);
	struct yk_view *v = &x->v;
	if (!x)
		return yk_fail(YOKE_ENOMEM, "%s: no memory to read it", folder);
	v->exact = exact;
	v->folder = strdup(folder);
	x->buffer = malloc(CHUNK + 1);
	size_t n = v->folder ? strlen(v->folder) : 0;
	while (n > 1 && v->folder[n - 1] == '/')
		v->folder[--n] = '\0';
	const char *slash = v->folder ? strrchr(v->folder, '/') : NULL;
	v->name = v->folder ? strdup(slash && slash[1] ? slash + 1 : v->folder) : NULL;
	int64_t e = v->name && x->buffer ? yk_view_poll(v) :
					   yk_fail(YOKE_ENOMEM, "%s: no memory to read it", folder);
	if (e < 0) {
		yk_view_close(v);
		return (int)e;
	}
	*to = v;
	return 0;
}

void yk_view_close(struct yk_view *v)
{
	struct view *x = (struct view *)v;
	if (!v)
		return;
	for (int i = 0; i < v->files; i++) {
		file_reset(&v->file[i]);
		free(v->file[i].rest);
	}
	tables_drop(v);
	events_drop(v);
	json_decref(v->about);
	json_decref(v->kernels);
	json_decref(v->report);
	free(v->event);
	free(v->file);
	free(v->folder);
	free(v->name);
	free(x->buffer);
	free(x);
}

void yk_view_names(int n, struct yk_view *const *v)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++) {
			if (strcmp(v[i]->name, v[k]->name))
				continue;
			char *one = strdup(v[i]->folder), *two = strdup(v[k]->folder);
			if (one && two && strcmp(one, two)) {
				free(v[i]->name);
				free(v[k]->name);
				v[i]->name = one;
				v[k]->name = two;
			} else {
				free(one);
				free(two);
			}
		}
}

void yk_view_listen(struct yk_view *v, yk_view_line_fn *fn, void *arg)
{
	struct view *x = (struct view *)v;
	x->listen = fn;
	x->arg = arg;
}

const char *yk_view_field(const struct yk_view *v, const char *key)
{
	const char *s = json_string_value(json_object_get(v->about, key));
	return s ? s : "";
}

const char *yk_view_state_name(enum yk_view_state s)
{
	static const char *const name[] = { "not known", "running", "ended", "lost" };
	return name[s];
}

// ---- curves ----

// Exponential running mean with bias correction for the start (Kingma & Ba 2015).
struct mean {
	double keep, sum, weight;
};

static double mean_of(struct mean *m, double x)
{
	m->sum = m->keep * m->sum + (1 - m->keep) * x;
	m->weight = m->keep * m->weight + (1 - m->keep);
	return m->keep > 0 ? m->sum / m->weight : x;
}

static double x_of(const struct yk_view_table *t, enum yk_view_axis axis, size_t row)
{
	return axis == YK_VIEW_BY_STEP ? (double)yk_view_step(t, row) :
					 yk_view_time(t, row) - yk_view_time(t, 0);
}

// The lowest and the highest value of an interval, with their rows.
struct extremes {
	bool any;
	size_t interval, row[2];
	double x[2], y[2];
};

static void extend(struct extremes *e, size_t row, double x, double y)
{
	for (int k = 0; k < 2; k++)
		if (!e->any || (k ? y > e->y[1] : y < e->y[0])) {
			e->row[k] = row;
			e->x[k] = x;
			e->y[k] = y;
		}
	e->any = true;
}

// Appends the extremes in row order.
static size_t append(const struct extremes *e, size_t n, size_t points, double *x, double *y)
{
	const int first = e->row[1] < e->row[0];
	if (!e->any)
		return n;
	for (int k = 0; k < (e->row[0] == e->row[1] ? 1 : 2) && n < points; k++, n++) {
		x[n] = e->x[k ? !first : first];
		y[n] = e->y[k ? !first : first];
	}
	return n;
}

size_t yk_view_series(const struct yk_view *v, const struct yk_view_table *t, int column,
		      const struct yk_view_range *r, double *x, double *y)
{
	const size_t intervals = r->points / 2 ? r->points / 2 : 1;
	size_t n = 0, inside = 0;
	double min = INFINITY, max = -INFINITY;
	if (!t || column < 0)
		return 0;
	for (size_t i = 0; i < t->rows; i++) {
		const double at = x_of(t, r->axis, i);
		if (!(at >= r->from && at <= r->to) || isnan(yk_view_value(v, t, column, i)))
			continue;
		inside++;
		min = fmin(min, at);
		max = fmax(max, at);
	}
	const double width = max > min ? (max - min) / (double)intervals : 1;
	struct extremes e = { .any = false };
	struct mean mean = { .keep = r->smooth };
	for (size_t i = 0; i < t->rows; i++) {
		const double at = x_of(t, r->axis, i), value = yk_view_value(v, t, column, i);
		if (isnan(value))
			continue;
		const double shown = mean_of(&mean, value);
		if (!(at >= r->from && at <= r->to))
			continue;
		if (inside <= r->points) {
			x[n] = at;
			y[n++] = shown;
			continue;
		}
		size_t interval = (size_t)((at - min) / width);
		if (interval >= intervals)
			interval = intervals - 1;
		// lines may be out of order, so an interval may occur twice
		if (e.any && interval != e.interval) {
			n = append(&e, n, r->points, x, y);
			e.any = false;
		}
		e.interval = interval;
		extend(&e, i, at, shown);
	}
	return append(&e, n, r->points, x, y);
}

void yk_view_position(const struct yk_view *v, char *to, size_t cap)
{
	size_t n = 0;
	if (cap)
		to[0] = '\0';
	for (int i = 0; i < v->files && n < cap; i++)
		n += (size_t)snprintf(to + n, cap - n, "%s%llu", i ? "," : "",
				      (unsigned long long)(v->file[i].at - v->file[i].nrest));
}
