// SPDX-License-Identifier: Apache-2.0
// Creates the texts that the dashboard serves: JSON, metrics, events and plots.
#include "config.h"

#include "live/answers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "live/prometheus.h"
#include "report/summary.h"

// A plot is cached for REST times its drawing time. This bounds the processor time of drawing while
// the data grows.
#define REST 1000
enum { EVENTS = 100 };

static json_t *text(const char *s)
{
	json_t *j = json_string(s);
	return j ? j : json_string("?");
}

int yk_live_open(struct yk_live *l, int n, const char *const *folder)
{
	int e = 0;
	for (; l->n < n && e == 0; l->n += e == 0)
		e = yk_view_open(folder[l->n], false, &l->view[l->n]);
	yk_view_names(l->n, l->view);
	for (int i = 0; i < l->n; i++)
		l->seen[i] = (struct yk_live_seen){ l->view[i]->state, l->view[i]->generation, l->view[i]->lines };
	return e;
}

void yk_live_close(struct yk_live *l)
{
	for (int i = 0; i < l->n; i++)
		yk_view_close(l->view[i]);
	for (int i = 0; i < YK_LIVE_KEPT; i++)
		free(l->plot[i].text);
}

void yk_live_position(const struct yk_live *l, char to[YK_LIVE_POSITION])
{
	size_t n = 0;
	to[0] = '\0';
	for (int i = 0; i < l->n && n + 1 < YK_LIVE_POSITION; i++) {
		if (i)
			to[n++] = ';';
		yk_view_position(l->view[i], to + n, YK_LIVE_POSITION - n);
		n += strlen(to + n);
	}
}

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
			const bool plain = !strcmp(table->stage, "train") || !strcmp(table->stage, "valid");
			snprintf(name, sizeof name, "%s%s%s", plain ? "" : table->stage, plain ? "" : " ",
				 table->column[c].name);
			if (table->column[c].count)
				json_object_set_new(o, name, yk_summary_real(table->column[c].last));
		}
	return o;
}

static json_t *member(const struct yk_view *v, const char *key)
{
	json_t *o = json_object_get(v->about, key);
	return json_is_object(o) ? json_deep_copy(o) : json_object();
}

static json_t *run(const struct yk_view *v)
{
	json_t *events = json_array();
	const char *how = json_string_value(json_object_get(json_object_get(v->about, "ended"), "how"));
	for (size_t i = v->events > EVENTS ? v->events - EVENTS : 0; i < v->events; i++)
		json_array_append_new(events, json_pack("{s:f, s:I, s:o, s:o}", "time",
							isfinite(v->event[i].time) ? v->event[i].time : 0., "step",
							(json_int_t)v->event[i].step, "event", text(v->event[i].event),
							"text", text(v->event[i].text)));
	const json_t *steps = json_object_get(v->about, "steps");
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "name", text(v->name),
			 "state", yk_view_state_name(v->state), "how", text(how ? how : ""), "device",
			 text(yk_view_about(v, "device")), "driver", text(yk_view_about(v, "driver")), "host",
			 text(yk_view_about(v, "host")), "step", (json_int_t)yk_view_last_step(v), "steps",
			 json_is_integer(steps) ? json_integer(json_integer_value(steps)) : json_null(), "generation",
			 (json_int_t)v->generation, "event_count", (json_int_t)v->events, "foreign_lines",
			 (json_int_t)v->foreign, "numbers", numbers(v), "events", events, "settings",
			 member(v, "settings"), "config", member(v, "config"));
}

static char *dump(json_t *o)
{
	char *s = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(o);
	return s;
}

char *yk_live_runs(struct yk_live *l)
{
	struct yk_plot_kind kind[YK_PLOT_MAX];
	const int n = yk_plot_kinds(l->n, l->view, true, kind);
	json_t *runs = json_array(), *plots = json_array();
	for (int i = 0; i < l->n; i++)
		json_array_append_new(runs, run(l->view[i]));
	for (int i = 0; i < n; i++)
		json_array_append_new(plots, json_pack("{s:o, s:o, s:s}", "name", text(kind[i].name), "title",
						       text(kind[i].title), "why", kind[i].why));
	return dump(json_pack("{s:o, s:o}", "runs", runs, "plots", plots));
}

char *yk_live_kernels(struct yk_live *l)
{
	json_t *list = json_array();
	for (int i = 0; i < l->n; i++) {
		json_t *rows = json_object_get(l->view[i]->kernels, "rows");
		json_array_append_new(list, json_pack("{s:o, s:o}", "name", text(l->view[i]->name), "rows",
						      json_is_array(rows) ? json_incref(rows) : json_array()));
	}
	return dump(list);
}

char *yk_live_metrics(struct yk_live *l)
{
	char *to = NULL;
	size_t bytes;
	FILE *f = open_memstream(&to, &bytes);
	if (!f)
		return NULL;
	yk_prometheus(f, l->n, l->view);
	fclose(f);
	return to;
}

// ---- events ----

static char *update(const struct yk_live *l, int i)
{
	const struct yk_view *v = l->view[i];
	char id[YK_LIVE_POSITION], *all = NULL;
	char *data = dump(json_pack("{s:i, s:s, s:I, s:I, s:I, s:o}", "run", i, "state", yk_view_state_name(v->state),
				    "generation", (json_int_t)v->generation, "event_count", (json_int_t)v->events, "step",
				    (json_int_t)yk_view_last_step(v), "numbers", numbers(v)));
	yk_live_position(l, id);
	if (data && asprintf(&all, "id: %s\nevent: update\ndata: %s\n\n", id, data) < 0)
		all = NULL;
	free(data);
	return all;
}

char *yk_live_news(struct yk_live *l, int i)
{
	struct yk_view *v = l->view[i];
	struct yk_live_seen *s = &l->seen[i];
	struct yk_error_aside *aside = yk_error_aside();
	yk_view_poll(v); // if memory is short, the answer lacks some data
	yoke_error_clear();
	yk_error_back(aside);
	if (s->state == v->state && s->generation == v->generation && s->lines == v->lines)
		return NULL;
	*s = (struct yk_live_seen){ v->state, v->generation, v->lines };
	l->version++;
	return update(l, i);
}

char *yk_live_all(struct yk_live *l)
{
	char *all = strdup("retry: 2000\n");
	for (int i = 0; i < l->n && all; i++) {
		char *one = update(l, i), *both = NULL;
		if (!one || asprintf(&both, "%s%s", all, one) < 0)
			both = NULL;
		free(one);
		free(all);
		all = both;
	}
	return all;
}

// ---- plots ----

static char *series(const struct yk_plot_made *m)
{
	json_t *curves = json_array();
	for (int c = 0; c < m->plot.curves; c++) {
		json_t *x = json_array(), *y = json_array();
		for (size_t k = 0; k < m->curve[c].n; k++) {
			json_array_append_new(x, json_real(m->curve[c].x[k]));
			json_array_append_new(y, json_real(m->curve[c].y[k]));
		}
		json_array_append_new(curves, json_pack("{s:o, s:o, s:o}", "name", text(m->curve[c].name), "x", x, "y", y));
	}
	return dump(json_pack("{s:o, s:o}", "name", text(m->plot.name), "curves", curves));
}

static char *draw(struct yk_live *l, const struct yk_plot_kind *kind, const struct yk_plot_ask *ask, bool svg)
{
	struct yk_plot_made m;
	char *to = NULL;
	size_t bytes;
	struct yk_error_aside *aside = yk_error_aside();
	int e = yk_plot_make(l->n, l->view, kind, ask, &m);
	yoke_error_clear();
	yk_error_back(aside);
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

char *yk_live_plot(struct yk_live *l, const char *name, const struct yk_plot_ask *ask, bool svg)
{
	struct yk_live_plot *kept = &l->plot[0];
	struct yk_plot_kind kind;
	char key[sizeof kept->key];
	if (!yk_plot_find(l->n, l->view, name, &kind))
		return NULL;
	snprintf(key, sizeof key, "%d %.9g %.9g %zu %.9g %d %d %s", svg, ask->from, ask->to, ask->points, ask->smooth, ask->log,
		 ask->width, name);
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
	char *drawn = draw(l, &kind, ask, svg);
	if (!drawn)
		return NULL;
	free(kept->text);
	*kept = (struct yk_live_plot){ .text = drawn, .version = l->version, .made = now, .cost = yk_seconds() - now };
	memcpy(kept->key, key, sizeof key);
	return strdup(drawn);
}
