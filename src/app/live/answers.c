// SPDX-License-Identifier: Apache-2.0
// Creates the texts that the dashboard serves: JSON, metrics, events and plots.
#include "config.h"

#include "live/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "live/pace.h"
#include "live/prometheus.h"
#include "report/conditions.h"
#include "report/summary.h"

// A plot is cached for REST times its drawing time. This bounds the processor time of drawing while
// the data grows.
#define REST 1000
#define PATIENCE 5.
enum { EVENTS = 100, POINTS = 1600, MIN_POINTS = 120, FEW = 16, TURNS = 16 };

// ---- runs ----

// The last value of each column; a name that occurs in several stages gets the stage's name as a
// prefix.
static json_t *numbers(const struct yk_view *v)
{
	json_t *o = json_object();
	for (int t = 0; t < v->tables; t++)
		for (int c = 0; c < v->table[t]->columns; c++) {
			const struct yk_view_table *table = v->table[t];
			char name[2 * YK_VIEW_NAME + 2];
			const bool plain =
				!strcmp(table->stage, "train") || !strcmp(table->stage, "valid");
			snprintf(name, sizeof name, "%s%s%s", plain ? "" : table->stage,
				 plain ? "" : " ", table->column[c].name);
			if (table->column[c].count)
				json_object_set_new(o, name,
						    yk_summary_real(table->column[c].last));
		}
	return o;
}

static json_t *member(const struct yk_view *v, const char *key)
{
	json_t *o = json_object_get(v->about, key);
	return json_is_object(o) ? json_deep_copy(o) : json_object();
}

// Whether the run may have changed since doctor examined it; a running one changes by the time
// alone.
static bool is_outdated(const struct yk_live_run *r, const struct yk_view *v)
{
	return v->state == YK_VIEW_LIVE || v->state != r->findings_state ||
	       v->lines != r->findings_lines;
}

// The problems that `yoke doctor` finds in a run. Reading its records takes time, so a run is
// examined when its state changes, and otherwise at most every PATIENCE seconds, or less often if
// it takes long.
static const json_t *findings(struct yk_live_state *l, int i)
{
	struct yk_live_run *r = &l->run[i];
	const struct yk_view *v = l->view[i];
	const double now = yk_seconds();
	const bool due = v->state != r->findings_state ||
			 now - r->found > fmax(PATIENCE, REST / 10 * r->cost);
	if (r->findings && (!due || !is_outdated(r, v)))
		return r->findings;
	struct yk_error_aside *aside = yk_error_aside();
	json_t *list = yk_conditions(l->view[i], NULL, yk_unix_seconds());
	yoke_error_clear();
	yk_error_restore(aside);
	if (list) {
		json_decref(r->findings);
		r->findings = list;
	}
	r->findings_lines = v->lines;
	r->findings_state = v->state;
	r->found = now;
	r->cost = yk_seconds() - now;
	return r->findings;
}

static json_t *short_findings(const json_t *list)
{
	static const char *const key[] = { "condition", "what", "change", "needs", "gain" };
	json_t *to = json_array(), *f;
	size_t i;
	json_array_foreach (list, i, f) {
		json_t *o = json_object();
		for (size_t k = 0; k < sizeof key / sizeof *key; k++)
			json_object_set(o, key[k], json_object_get(f, key[k]));
		json_array_append_new(to, o);
	}
	return to;
}

// The memory that limits the run: of its device if that has its own, otherwise of the process.
static void memory(json_t *o, const struct yk_view *v)
{
	static const struct {
		const char *used_in, *used, *total_in, *total, *what;
	} rows[] = {
		{ "telemetry", "devices.0.mem_used", "telemetry", "devices.0.mem_total",
		  "in use on the device" },
		{ "telemetry", "rss", "telemetry", "host.memory_limit", "resident" },
		{ "telemetry", "rss", "telemetry", "host.memory_total", "resident" },
		{ "memory", "rss", "", "", "resident" },
		{ "train", "peak_bytes", "", "", "peak of the pool" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const double used = yk_view_last(v, rows[i].used_in, rows[i].used),
			     total = yk_view_last(v, rows[i].total_in, rows[i].total);
		if (isnan(used) || (*rows[i].total && isnan(total)))
			continue;
		json_object_set_new(o, "memory", yk_summary_real(used));
		json_object_set_new(o, "memory_total", yk_summary_real(total));
		json_object_set_new(o, "memory_what", json_string(rows[i].what));
		return;
	}
}

static double utilisation(const struct yk_view *v)
{
	const double device = yk_view_last(v, "telemetry", "devices.0.util");
	return isnan(device) ? yk_view_last(v, "telemetry", "process_cpu") /
				       yk_view_last(v, "telemetry", "host.processors_allowed") :
			       device;
}

// What a reader wants to know first, without what doctor finds.
static json_t *headline(const struct yk_live_state *l, int i)
{
	const struct yk_view *v = l->view[i];
	const json_t *steps = json_object_get(v->about, "steps"),
		     *ended = json_object_get(v->about, "ended");
	const char *how = json_string_value(json_object_get(ended, "how")),
		   *error = json_string_value(json_object_get(ended, "error"));
	const double now = yk_unix_seconds();
	json_t *o = json_pack(
		"{s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I}", "run", i,
		"name", yk_json_of_text(v->name), "folder", yk_json_of_text(v->folder), "state",
		yk_view_state_name(v->state), "how", yk_json_of_text(how ? how : ""), "error",
		yk_json_of_text(error ? error : ""), "device",
		yk_json_of_text(yk_view_field(v, "device")), "driver",
		yk_json_of_text(yk_view_field(v, "driver")), "host",
		yk_json_of_text(yk_view_field(v, "host")), "step", (json_int_t)yk_view_last_step(v),
		"steps",
		json_is_integer(steps) ? json_integer(json_integer_value(steps)) : json_null(),
		"generation", (json_int_t)v->generation, "event_count", (json_int_t)v->events,
		"foreign_lines", (json_int_t)v->foreign);
	const struct {
		const char *key;
		double x;
	} row[] = {
		{ "elapsed", yk_pace_elapsed(v, now) },
		{ "to_go", yk_pace_remaining(v, now) },
		{ "newest", yk_pace_newest(v) },
		{ "loss", yk_view_last(v, "train", "loss") },
		{ "val_loss", yk_view_last(v, "valid", "val_loss") },
		{ "tokens_per_s", yk_view_last(v, "train", "tokens_per_s") },
		{ "utilisation", utilisation(v) },
	};
	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		json_object_set_new(o, row[k].key,
				    isfinite(row[k].x) ? json_real(row[k].x) : json_null());
	memory(o, v);
	return o;
}

static json_t *events(const struct yk_view *v)
{
	json_t *list = json_array();
	for (size_t i = v->events > EVENTS ? v->events - EVENTS : 0; i < v->events; i++)
		json_array_append_new(list, json_pack("{s:o, s:I, s:o, s:o}", "time",
						      isfinite(v->event[i].time) ?
							      json_real(v->event[i].time) :
							      json_null(),
						      "step", (json_int_t)v->event[i].step, "event",
						      yk_json_of_text(v->event[i].event), "text",
						      yk_json_of_text(v->event[i].text)));
	return list;
}

static json_t *details(struct yk_live_state *l, int i)
{
	const struct yk_view *v = l->view[i];
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "numbers", numbers(v), "events", events(v),
			 "settings", member(v, "settings"), "config", member(v, "config"),
			 "findings", short_findings(findings(l, i)));
}

// 15 digits are exact for times and for numbers that were written with as many.
static char *dump(json_t *o)
{
	char *s = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(o);
	return s;
}

static bool is_chosen(const struct yk_live_choice *c, int run)
{
	for (int i = 0; i < c->n; i++)
		if (c->run[i] == run)
			return true;
	return false;
}

// The views of the chosen runs.
static void views(const struct yk_live_state *l, const struct yk_live_choice *c,
		  struct yk_view *to[YK_LIVE_DRAWN])
{
	for (int i = 0; i < c->n; i++)
		to[i] = l->view[c->run[i]];
}

static json_t *plots(const struct yk_live_state *l, const struct yk_live_choice *c)
{
	struct yk_plot_kind kind[YK_PLOT_MAX];
	struct yk_view *v[YK_LIVE_DRAWN];
	json_t *list = json_array();
	views(l, c, v);
	const int n = yk_plot_kinds(c->n, v, true, kind);
	for (int i = 0; i < n; i++) {
		bool zeros;
		const uint64_t values = yk_plot_values(c->n, v, &kind[i], &zeros);
		json_array_append_new(list, json_pack("{s:o, s:o, s:s, s:I, s:b}", "name",
						      yk_json_of_text(kind[i].name), "title",
						      yk_json_of_text(kind[i].title), "why",
						      kind[i].why, "values", (json_int_t)values,
						      "zeros", zeros && values));
	}
	return list;
}

// All runs with their headlines; the chosen ones with everything else.
char *yk_live_runs(struct yk_live_state *l, const struct yk_live_choice *c)
{
	json_t *runs = json_array(), *chosen = json_array();
	for (int i = 0; i < l->n; i++) {
		if (l->run[i].gone)
			continue;
		json_t *o = headline(l, i), *more = is_chosen(c, i) ? details(l, i) : NULL;
		if (more)
			json_object_update(o, more);
		json_decref(more);
		json_array_append_new(runs, o);
	}
	for (int i = 0; i < c->n; i++) {
		while ((int)json_array_size(chosen) < c->color[i])
			json_array_append_new(chosen, json_null());
		json_array_append_new(chosen, json_integer(c->run[i]));
	}
	return dump(json_pack("{s:o, s:o, s:i, s:o}", "runs", runs, "chosen", chosen, "hidden",
			      l->hidden, "plots", plots(l, c)));
}

char *yk_live_kernels(struct yk_live_state *l, const struct yk_live_choice *c)
{
	json_t *list = json_array();
	for (int i = 0; i < c->n; i++) {
		const struct yk_view *v = l->view[c->run[i]];
		json_t *rows = json_object_get(v->kernels, "rows");
		json_array_append_new(
			list, json_pack("{s:o, s:o}", "name", yk_json_of_text(v->name), "rows",
					json_is_array(rows) ? json_incref(rows) : json_array()));
	}
	return dump(list);
}

char *yk_live_metrics(struct yk_live_state *l, const struct yk_live_choice *c)
{
	struct yk_view *there[YK_LIVE_MAX];
	int n = 0;
	char *to = NULL;
	size_t bytes;
	(void)c;
	for (int i = 0; i < l->n; i++)
		if (!l->run[i].gone)
			there[n++] = l->view[i];
	FILE *f = open_memstream(&to, &bytes);
	if (!f)
		return NULL;
	yk_prometheus(f, n, there);
	fclose(f);
	return to;
}

// ---- events ----

static char *update(struct yk_live_state *l, int i)
{
	char id[YK_LIVE_ID], *all = NULL;
	json_t *o = headline(l, i);
	json_object_set_new(o, "numbers", numbers(l->view[i]));
	json_object_set_new(o, "findings", short_findings(findings(l, i)));
	char *data = dump(o);
	yk_live_position(l, id);
	if (data && asprintf(&all, "id: %s\nevent: update\ndata: %s\n\n", id, data) < 0)
		all = NULL;
	free(data);
	return all;
}

char *yk_live_news(struct yk_live_state *l, int i)
{
	struct yk_view *v = l->view[i];
	struct yk_live_run *r = &l->run[i];
	// runs that are over rarely change: of many, they are looked at in turns
	if (r->gone || (l->n > FEW && r->state != YK_VIEW_LIVE && (l->looks + (unsigned)i) % TURNS))
		return NULL;
	struct yk_error_aside *aside = yk_error_aside();
	yk_view_poll(v); // if memory is short, the answer lacks some data
	yoke_error_clear();
	yk_error_restore(aside);
	bool same = r->state == v->state && r->generation == v->generation && r->lines == v->lines;
	if (same && r->findings && is_outdated(r, v)) { // a run that hangs writes nothing
		json_t *before = json_incref(r->findings);
		const json_t *now = findings(l, i);
		same = now == before || json_equal(before, now);
		json_decref(before);
	}
	if (same)
		return NULL;
	r->state = v->state;
	r->generation = v->generation;
	r->lines = v->lines;
	l->version++;
	return update(l, i);
}

char *yk_live_all(struct yk_live_state *l)
{
	char *all = strdup("retry: 2000\n");
	for (int i = 0; i < l->n && all; i++) {
		char *one = l->run[i].gone ? strdup("") : update(l, i), *both = NULL;
		if (!one || asprintf(&both, "%s%s", all, one) < 0)
			both = NULL;
		free(one);
		free(all);
		all = both;
	}
	return all;
}

// ---- plots ----

static char *series(const struct yk_plot_result *m)
{
	json_t *curves = json_array();
	for (int c = 0; c < m->plot.curves; c++) {
		json_t *x = json_array(), *y = json_array();
		for (size_t k = 0; k < m->curve[c].n; k++) {
			json_array_append_new(x, json_real(m->curve[c].x[k]));
			json_array_append_new(y, json_real(m->curve[c].y[k]));
		}
		json_array_append_new(curves,
				      json_pack("{s:o, s:o, s:o}", "name",
						yk_json_of_text(m->curve[c].name), "x", x, "y", y));
	}
	return dump(
		json_pack("{s:o, s:o}", "name", yk_json_of_text(m->plot.name), "curves", curves));
}

static char *draw(int n, struct yk_view *const *v, const struct yk_plot_kind *kind,
		  const struct yk_plot_options *ask, bool svg)
{
	struct yk_plot_result m;
	char *to = NULL;
	size_t bytes;
	struct yk_error_aside *aside = yk_error_aside();
	int e = yk_plot_make(n, v, kind, ask, &m);
	yoke_error_clear();
	yk_error_restore(aside);
	if (e < 0)
		return NULL;
	if (svg) {
		FILE *f = open_memstream(&to, &bytes);
		if (f) {
			m.plot.width = ask->width;
			yk_svg_plot(f, &m.plot);
			fclose(f);
		}
	} else {
		to = series(&m);
	}
	yk_plot_drop(&m);
	return to;
}

char *yk_live_plot(struct yk_live_state *l, const struct yk_live_choice *c, const char *name,
		   const struct yk_plot_options *asked, bool svg)
{
	struct yk_live_plot *kept = &l->plot[0];
	struct yk_plot_options ask = *asked;
	struct yk_plot_kind kind;
	struct yk_view *v[YK_LIVE_DRAWN];
	char key[sizeof kept->key], runs[8 * YK_LIVE_DRAWN] = "";
	views(l, c, v);
	if (!yk_plot_find(c->n, v, name, &kind))
		return NULL;
	ask.color = c->color;
	if (svg && c->n > 1) // the page of many runs stays as small as that of a few
		ask.points = (size_t)fmax(MIN_POINTS, fmin((double)ask.points, POINTS / c->n));
	for (int i = 0; i < c->n; i++)
		snprintf(runs + strlen(runs), sizeof runs - strlen(runs), "%d.%d,", c->run[i],
			 c->color[i]);
	snprintf(key, sizeof key, "%d %.9g %.9g %zu %.9g %d %d %d %s %s", svg, ask.from, ask.to,
		 ask.points, ask.smooth, ask.log, ask.plain, ask.width, runs, name);
	for (int i = 0; i < YK_LIVE_KEPT; i++) {
		struct yk_live_plot *p = &l->plot[i];
		if (!strcmp(p->key, key)) {
			kept = p;
			break;
		}
		if (p->made < kept->made)
			kept = p; // the oldest entry is replaced
	}
	double now = yk_seconds();
	if (kept->text && !strcmp(kept->key, key) &&
	    (kept->version == l->version || now - kept->made < REST * kept->cost))
		return strdup(kept->text);
	char *drawn = draw(c->n, v, &kind, &ask, svg);
	if (!drawn)
		return NULL;
	free(kept->text);
	*kept = (struct yk_live_plot){
		.text = drawn, .version = l->version, .made = now, .cost = yk_seconds() - now
	};
	memcpy(kept->key, key, sizeof key);
	return strdup(drawn);
}
