// SPDX-License-Identifier: Apache-2.0
// Formats runs and their processes as lines and as JSON for `yoke dashboard terminal`.
#include "config.h"

#include "live/top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/scan.h"
#include "live/pace.h"
#include "observe/memory.h"
#include "report/summary.h"
#include "runs/write.h"

enum { SPARK = 32 };

// ---- runs ----

static int add(struct yk_top *t, const char *folder)
{
	int e = yk_view_open(folder, false, &t->view[t->n]);
	if (e == 0)
		t->process[t->n++] = (struct yk_process){ .pid = 0 };
	return e;
}

int yk_top_open(struct yk_top *t, int n, const char *const *folder)
{
	int e = 0;
	t->all = n == 0;
	if (t->all) {
		if (!(t->hardware = malloc(sizeof *t->hardware)))
			return yk_fail(YOKE_ENOMEM, "out of memory for the devices");
		yk_hardware_open(t->hardware);
	}
	for (int i = 0; i < n && e == 0; i++)
		e = add(t, folder[i]);
	yk_view_names(t->n, t->view);
	return e;
}

void yk_top_close(struct yk_top *t)
{
	while (t->n)
		yk_view_close(t->view[--t->n]);
	free(t->hardware);
}

static bool is_there(const struct yk_top *t, const char *folder)
{
	for (int i = 0; i < t->n; i++)
		if (!strcmp(t->view[i]->folder, folder))
			return true;
	return false;
}

// Replaces runs that ended by runs that have started.
static void find(struct yk_top *t)
{
	char *folder[YK_LIVE_RUNS];
	int kept = 0, n = yk_process_runs(YK_LIVE_RUNS, folder);
	for (int i = 0; i < t->n; i++)
		if (t->view[i]->state == YK_VIEW_LIVE) {
			t->process[kept] = t->process[i];
			t->view[kept++] = t->view[i];
		} else {
			yk_view_close(t->view[i]);
		}
	t->n = kept;
	for (int i = 0; i < n; i++) {
		if (!is_there(t, folder[i]) && t->n < YK_LIVE_RUNS)
			add(t, folder[i]);
		free(folder[i]);
	}
	yoke_error_clear(); // a run that disappeared again
	yk_view_names(t->n, t->view);
}

void yk_top_sample(struct yk_top *t)
{
	for (int i = 0; i < t->n; i++)
		yk_view_poll(t->view[i]);
	yoke_error_clear();
	if (t->all) {
		find(t);
		yk_hardware_sample(t->hardware);
	}
	for (int i = 0; i < t->n; i++) {
		yk_process_inspect(t->view[i], &t->process[i]);
		if (t->hardware)
			yk_hardware_assign(t->hardware, t->process[i].pid,
					   yk_view_field(t->view[i], "device"));
	}
}

// ---- lines ----

struct lines {
	char text[YK_TOP_COLUMNS * 4];
	size_t n;
	int used, columns;
	void (*line)(void *arg, const char *text);
	void *arg;
};

// Writes as much of a text as fits; a non-ASCII character counts as one column.
static void put(struct lines *l, const char *s)
{
	const unsigned char *at = (const unsigned char *)s, *end = at + strlen(s);
	while (at < end && l->used < l->columns) {
		int n = *at < 128 ? 1 : yk_utf8(at, end);
		bool bad =
			!n || *at < 32 || *at == 127 || (n == 2 && at[0] == 0xc2 && at[1] < 0xa0);
		if (l->n + 8 >= sizeof l->text)
			return;
		if (bad)
			l->text[l->n++] = '?';
		else
			for (int i = 0; i < n; i++)
				l->text[l->n++] = (char)at[i];
		l->used++;
		at += n ? n : 1;
	}
}

static void end(struct lines *l)
{
	l->text[l->n] = '\0';
	l->line(l->arg, l->text);
	l->n = 0;
	l->used = 0;
}

static const char *number(double x, char to[32])
{
	if (isnan(x))
		return "n/a";
	snprintf(to, 32, fabs(x) >= 1e5 ? "%.4g" : "%.5g", x);
	return to;
}

static const char *bytes(double x, char to[32])
{
	return x >= 0 ? yk_bytes_text(to, (uint64_t)x) : "n/a";
}

static const char *duration(double s, char to[32])
{
	if (isnan(s))
		return "n/a";
	if (s >= 3600)
		snprintf(to, 32, "%.0f:%02.0f h", floor(s / 3600), floor(fmod(s, 3600) / 60));
	else
		snprintf(to, 32, "%.0f:%02.0f", floor(s / 60), floor(fmod(s, 60)));
	return to;
}

// Sparkline of the last values of a column, scaled between their min and max.
static void spark(struct lines *l, const struct yk_view *v, const char *name, bool plain)
{
	static const char *const tall[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
	const struct yk_view_table *t = yk_view_table(v, "train");
	int c = yk_view_column(t, name);
	double x[SPARK], min = INFINITY, max = -INFINITY;
	int n = 0;
	for (size_t i = t && t->rows > SPARK ? t->rows - SPARK : 0; c >= 0 && i < t->rows; i++) {
		double value = yk_view_value(v, t, c, i);
		if (isnan(value))
			continue;
		x[n++] = value;
		min = fmin(min, value);
		max = fmax(max, value);
	}
	for (int i = 0; i < n; i++) {
		int k = max > min ? (int)((x[i] - min) / (max - min) * 7.99) : 0;
		put(l, plain ? ascii[k] : tall[k]);
	}
}

static void row(struct lines *l, const struct yk_view *v, const char *what, const char *text,
		const char *name, bool plain)
{
	char field[64];
	snprintf(field, sizeof field, "  %-14.14s %14.30s  ", what, text);
	put(l, field);
	if (name)
		spark(l, v, name, plain);
	end(l);
}

// Telemetry of the devices, one line each.
static void devices(struct lines *l, const struct yk_view *v)
{
	char name[64], text[160], b[2][32], n[4][32];
	for (int d = 0; d < 8; d++) {
		double x[5];
		static const char *const key[] = { "util", "mem_used", "mem_total", "temp_c",
						   "power_w" };
		bool any = false;
		for (int k = 0; k < 5; k++) {
			snprintf(name, sizeof name, "devices.%d.%s", d, key[k]);
			x[k] = yk_view_last(v, "telemetry", name);
			any |= !isnan(x[k]);
		}
		if (!any)
			return;
		snprintf(text, sizeof text,
			 "  device %d       busy %s %%, memory %s of %s, %s °C, %s W", d,
			 number(100 * x[0], n[0]), bytes(x[1], b[0]), bytes(x[2], b[1]),
			 number(x[3], n[1]), number(x[4], n[2]));
		put(l, text);
		end(l);
	}
}

static void process(struct lines *l, const struct yk_process *p)
{
	char text[240], b[32], share[32] = "n/a", threads[64], checkpoints[64];
	if (!p->pid)
		return;
	if (!isnan(p->share))
		snprintf(share, sizeof share, "%.0f %%", 100 * p->share);
	snprintf(text, sizeof text, "  process %ld: cpu %s, %s, %s, %d child%s, %s", (long)p->pid,
		 share, bytes((double)p->rss, b), yk_counted(threads, p->threads, "thread"),
		 p->children, p->children == 1 ? "" : "ren",
		 yk_counted(checkpoints, p->checkpoints, "checkpoint"));
	put(l, text);
	end(l);
}

static void run(struct lines *l, const struct yk_top *t, int i)
{
	const struct yk_view *v = t->view[i];
	const json_t *steps = json_object_get(v->about, "steps");
	char text[320], n[32];
	snprintf(text, sizeof text, "%.100s  %s", v->name, yk_view_state_name(v->state));
	put(l, text);
	if (*yk_view_field(v, "device")) {
		put(l, "  on ");
		put(l, yk_view_field(v, "device"));
	}
	end(l);
	if (json_is_integer(steps))
		snprintf(text, sizeof text, "%lld of %lld", (long long)yk_view_last_step(v),
			 (long long)json_integer_value(steps));
	else
		snprintf(text, sizeof text, "%lld", (long long)yk_view_last_step(v));
	row(l, v, "step", text, NULL, false);
	row(l, v, "time left", duration(yk_pace_remaining(v, yk_unix_seconds()), n), NULL, false);
	row(l, v, "loss", number(yk_view_last(v, "train", "loss"), n), "loss", t->plain);
	row(l, v, "val_loss", number(yk_view_last(v, "valid", "val_loss"), n), NULL, false);
	row(l, v, "learning rate", number(yk_view_last(v, "train", "lr"), n), "lr", t->plain);
	row(l, v, "gradient norm", number(yk_view_last(v, "train", "grad_norm"), n), "grad_norm",
	    t->plain);
	if (yk_view_column(yk_view_table(v, "train"), "samples_per_s") >= 0) // of yoke_fit
		row(l, v, "samples/s", number(yk_view_last(v, "train", "samples_per_s"), n),
		    "samples_per_s", t->plain);
	else
		row(l, v, "tokens/s", number(yk_view_last(v, "train", "tokens_per_s"), n),
		    "tokens_per_s", t->plain);
	row(l, v, "peak memory", bytes(yk_view_last(v, "train", "peak_bytes"), n), NULL, false);
	devices(l, v);
	process(l, &t->process[i]);
	end(l);
}

// ---- the machine ----

static const char *known(const struct yoke_sample *s, uint32_t bit, enum yk_quantity q, double x,
			 char to[YK_QUANTITY_TEXT])
{
	return s->known & bit ? yk_quantity_text(q, x, to) : "n/a";
}

static void host(struct lines *l, const struct yk_hardware *h)
{
	char name[256] = "", text[512], n[4][YK_QUANTITY_TEXT];
	const struct yoke_host_sample *o = &h->host;
	gethostname(name, sizeof name - 1);
	snprintf(text, sizeof text, "%.100s  %s processors, busy %s, memory %s of %s", name,
		 yk_quantity_text(YK_PLAIN, o->processors, n[0]),
		 yk_quantity_text(YK_SHARE_OF, o->cpu, n[1]),
		 yk_quantity_text(YK_BYTES_OF, o->memory_total - o->memory_available, n[2]),
		 yk_quantity_text(YK_BYTES_OF, o->memory_total, n[3]));
	put(l, text);
	end(l);
}

static void device_rows(struct lines *l, const struct yk_hardware *h)
{
	char text[512], memory[96], limit[48], n[6][YK_QUANTITY_TEXT];
	snprintf(text, sizeof text, "  %-10s %7s %23s %8s %18s  %s", "device", "busy", "memory",
		 "temp", "power", "name");
	put(l, text);
	end(l);
	for (int i = 0; i < h->devices; i++) {
		const struct yk_device *d = h->device[i].device;
		const struct yoke_sample *s = &h->device[i].sample;
		snprintf(memory, sizeof memory,
			 s->known & YOKE_SAMPLE_MEM_TOTAL ? "%s of %s" : "%s",
			 known(s, YOKE_SAMPLE_MEM_USED, YK_BYTES_OF, (double)s->mem_used, n[0]),
			 known(s, YOKE_SAMPLE_MEM_TOTAL, YK_BYTES_OF, (double)s->mem_total, n[1]));
		snprintf(limit, sizeof limit, s->known & YOKE_SAMPLE_POWER_LIMIT ? " of %s" : "%s",
			 s->known & YOKE_SAMPLE_POWER_LIMIT ?
				 yk_quantity_text(YK_WATTS, s->power_limit_w, n[2]) :
				 "");
		snprintf(n[3], sizeof n[3], "%.20s%.19s",
			 known(s, YOKE_SAMPLE_POWER, YK_WATTS, s->power_w, n[4]), limit);
		// the degree sign has two bytes
		const char *temperature = known(s, YOKE_SAMPLE_TEMP, YK_CELSIUS, s->temp_c, n[4]);
		snprintf(text, sizeof text, "  %-10s %7s %23s %*s %18s  %.80s", d->id,
			 known(s, YOKE_SAMPLE_UTIL, YK_SHARE_OF, s->util, n[5]), memory,
			 s->known & YOKE_SAMPLE_TEMP ? 9 : 8, temperature, n[3], d->info.name);
		put(l, text);
		end(l);
	}
}

static void user_rows(struct lines *l, const struct yk_hardware *h)
{
	char text[512], n[3][YK_QUANTITY_TEXT];
	if (!h->users) {
		put(l, "  no processes use yoke or a GPU");
		end(l);
		return;
	}
	snprintf(text, sizeof text, "  %10s  %-16s %-16s %8s %12s %14s", "pid", "process", "device",
		 "cpu", "memory", "device memory");
	put(l, text);
	end(l);
	for (int i = 0; i < h->users; i++) {
		const struct yk_user *u = &h->user[i];
		snprintf(text, sizeof text, "  %10ld  %-16.16s %-16.40s %8s %12s %14s",
			 (long)u->pid, u->name, u->device,
			 yk_quantity_text(YK_SHARE_OF, u->share, n[0]),
			 yk_quantity_text(YK_BYTES_OF, u->rss, n[1]),
			 yk_quantity_text(YK_BYTES_OF, u->memory, n[2]));
		put(l, text);
		end(l);
	}
}

static void machine(struct lines *l, const struct yk_hardware *h)
{
	host(l, h);
	device_rows(l, h);
	end(l);
	user_rows(l, h);
	end(l);
}

void yk_top_lines(const struct yk_top *t, int columns, void (*line)(void *arg, const char *text),
		  void *arg)
{
	struct lines l = { .columns = columns < YK_TOP_COLUMNS ? columns : YK_TOP_COLUMNS,
			   .line = line,
			   .arg = arg };
	if (t->hardware)
		machine(&l, t->hardware);
	if (!t->n) {
		put(&l, "you have no active run; `yoke top RUN` shows a finished one");
		end(&l);
	}
	for (int i = 0; i < t->n; i++)
		run(&l, t, i);
}

// ---- the object ----

static json_t *numbers(const struct yk_view *v)
{
	json_t *o = json_object();
	for (int t = 0; t < v->tables; t++) {
		json_t *stage = json_object();
		for (int c = 0; c < v->table[t]->columns; c++)
			if (v->table[t]->column[c].count)
				json_object_set_new(stage, v->table[t]->column[c].name,
						    json_real(v->table[t]->column[c].last));
		json_object_set_new(o, v->table[t]->stage, stage);
	}
	return o;
}

json_t *yk_top_json(const struct yk_top *t)
{
	json_t *list = json_array();
	for (int i = 0; i < t->n; i++) {
		const struct yk_view *v = t->view[i];
		const struct yk_process *p = &t->process[i];
		json_t *steps = json_object_get(v->about, "steps");
		json_t *process =
			!p->pid ? json_null() :
				  json_pack("{s:I, s:i, s:i, s:i, s:I, s:f, s:o}", "pid",
					    (json_int_t)p->pid, "threads", p->threads, "children",
					    p->children, "checkpoints", p->checkpoints, "rss",
					    (json_int_t)p->rss, "cpu_s", p->cpu, "cpu",
					    isnan(p->share) ? json_null() : json_real(p->share));
		json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:s, s:o, s:I, s:o, s:o, s:o, s:o}", "name",
				  yk_json_of_text(v->name), "folder", yk_json_of_text(v->folder),
				  "state", yk_view_state_name(v->state), "device",
				  yk_json_of_text(yk_view_field(v, "device")), "step",
				  (json_int_t)yk_view_last_step(v), "steps",
				  json_is_integer(steps) ? json_incref(steps) : json_null(),
				  "to_go_s",
				  yk_summary_real(yk_pace_remaining(v, yk_unix_seconds())),
				  "numbers", numbers(v), "process", process));
	}
	json_t *o = json_pack("{s:i, s:o}", "format", YK_RUNS_FORMAT, "runs", list);
	if (o && t->hardware) {
		json_object_set_new(o, "host", yk_hardware_host_json(t->hardware));
		json_object_set_new(o, "devices", yk_hardware_devices_json(t->hardware));
		json_object_set_new(o, "processes", yk_hardware_users_json(t->hardware));
	}
	return o;
}
