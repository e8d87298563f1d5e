// SPDX-License-Identifier: Apache-2.0
// Computes the summary of runs from which `yoke report` writes all its formats.
#include "config.h"

#include "report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "observe/report.h"
#include "report/conditions.h"
#include "report/headline.h"
#include "runs/write.h"

enum { POINTS = 960, MIN_POINTS = 160, KERNELS = 60 };

// Converts a count that was stored as a double back to an integer.
static json_t *number(double x)
{
	return isfinite(x) && x == floor(x) && fabs(x) < 9e15 ? json_integer((json_int_t)x) :
								yk_summary_real(x);
}

static double real_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_number(v) ? json_number_value(v) : NAN;
}

static json_t *copy_of(const json_t *o, const char *key, json_t *otherwise)
{
	json_t *v = json_object_get(o, key);
	if (!v || json_typeof(v) != json_typeof(otherwise))
		return otherwise;
	json_decref(otherwise);
	return json_deep_copy(v);
}

// Formats seconds since 1970 as "2026-01-31T12:00:00.250Z".
static json_t *moment(double t)
{
	char to[48], day[32];
	const time_t whole = (time_t)floor(t);
	struct tm tm;
	if (!(t > -6e10 && t < 2e11) || !gmtime_r(&whole, &tm))
		return json_null();
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(to, sizeof to, "%s.%03dZ", day, (int)((t - floor(t)) * 1000));
	return json_string(to);
}

// ---- a run ----

static json_t *numbers(const struct yk_view *v)
{
	json_t *list = json_array();
	for (int t = 0; t < v->tables; t++)
		for (int c = 0; c < v->table[t]->columns; c++) {
			const struct yk_view_column *k = &v->table[t]->column[c];
			if (k->count)
				json_array_append_new(
					list,
					json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:I}",
						  "stage", yk_json_of_text(v->table[t]->stage),
						  "name", yk_json_of_text(k->name), "count",
						  (json_int_t)k->count, "first", number(k->first),
						  "last", number(k->last), "min", number(k->min),
						  "max", number(k->max), "min_step",
						  (json_int_t)k->min_step));
		}
	return list;
}

static bool is_compute(const char *phase)
{
	return !strcmp(phase, "contractions") || !strcmp(phase, "attention") ||
	       !strcmp(phase, "other");
}

// The phases, named as in the report (observe/report.c); other members of a device are skipped.
static json_t *phases(const struct yk_view *v)
{
	const json_t *d, *p;
	const char *device, *phase;
	json_t *list = json_array();
	double wall = real_of(v->report, "wall");
	json_object_foreach (json_object_get(v->report, "devices"), device, d)
		json_object_foreach ((json_t *)(uintptr_t)d, phase, p) {
			double s = real_of(p, "seconds"), flops = real_of(p, "flops"),
			       bytes = real_of(p, "bytes");
			// the seconds of kernels that were not timed are those of their launches
			const bool rated =
				!json_is_false(json_object_get(d, "timed")) || !is_compute(phase);
			// runs of earlier versions have "pieces"
			const double intervals = real_of(
				p, json_object_get(p, "intervals") ? "intervals" : "pieces");
			if (!json_is_object(p) || !(intervals > 0))
				continue;
			json_array_append_new(
				list,
				json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "device",
					  yk_json_of_text(device), "phase", yk_json_of_text(phase),
					  "seconds", yk_summary_real(s), "share",
					  yk_summary_real(s / wall), "intervals", number(intervals),
					  "bytes", number(bytes), "bytes_per_s",
					  rated ? yk_summary_real(bytes / s) : json_null(), "flops",
					  number(flops), "flops_per_s",
					  flops > 0 && rated ? yk_summary_real(flops / s) :
							       json_null()));
		}
	static const char *const rest[] = { "checkpoints", "idle", "wall" };
	for (int i = 0; i < 3 && v->report; i++) {
		double s = real_of(v->report, rest[i]);
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "device", "", "phase",
						      rest[i], "seconds", yk_summary_real(s),
						      "share", yk_summary_real(s / wall)));
	}
	return list;
}

static json_t *bounds(const struct yk_view *v)
{
	json_t *list = json_array();
	const char *phase;
	json_t *b;
	json_object_foreach (json_object_get(v->report, "at_best"), phase, b)
		json_array_append_new(
			list, json_pack("{s:o, s:o}", "phase", yk_json_of_text(phase), "at_best",
					json_is_number(b) ? yk_summary_real(json_number_value(b)) :
							    json_null()));
	return list;
}

// Counters of the report.
static json_t *counts(const struct yk_view *v)
{
	json_t *o = json_object(), *x;
	const char *key;
	json_object_foreach (v->report, key, x)
		if (json_is_integer(x))
			json_object_set(o, key, x);
	return o;
}

static void kernel_add(json_t *list, const json_t *row, double all, double others)
{
	static const char *const words[] = { "op", "implementation", "device", "scope" };
	json_t *o = json_object();
	double s = row ? real_of(row, "seconds") : others, flops = real_of(row, "flops"),
	       bytes = real_of(row, "bytes");
	for (int i = 0; i < 4; i++)
		json_object_set_new(o, words[i],
				    copy_of(row, words[i], json_string(row || i ? "" : "others")));
	json_object_set_new(o, "calls", number(real_of(row, "calls")));
	json_object_set_new(o, "seconds", yk_summary_real(s));
	json_object_set_new(o, "share", yk_summary_real(s / all));
	json_object_set_new(o, "bytes", number(bytes));
	json_object_set_new(o, "bytes_per_s", yk_summary_real(bytes / s));
	json_object_set_new(o, "flops", number(flops));
	json_object_set_new(o, "flops_per_s", yk_summary_real(flops / s));
	json_object_set_new(o, "intensity", yk_summary_real(flops / bytes));
	json_array_append_new(list, o);
}

// The slowest kernels, in the order of the file; the others are combined in one row.
static json_t *kernels(const struct yk_view *v)
{
	const json_t *rows = json_object_get(v->kernels, "rows"), *row;
	json_t *list = json_array();
	double all = 0, others = 0;
	size_t i;
	json_array_foreach (rows, i, row)
		if (real_of(row, "seconds") > 0)
			all += real_of(row, "seconds");
	json_array_foreach (rows, i, row)
		if (i < KERNELS)
			kernel_add(list, row, all, 0);
		else if (real_of(row, "seconds") > 0)
			others += real_of(row, "seconds");
	if (json_array_size(rows) > KERNELS)
		kernel_add(list, NULL, all, others);
	return list;
}

static json_t *events(const struct yk_view *v)
{
	json_t *list = json_array();
	for (size_t i = 0; i < v->events; i++) {
		const struct yk_view_event *e = &v->event[i];
		json_array_append_new(list, json_pack("{s:o, s:I, s:o, s:o}", "time",
						      moment(e->time), "step", (json_int_t)e->step,
						      "event", yk_json_of_text(e->event), "text",
						      yk_json_of_text(e->text)));
	}
	return list;
}

// Seconds from the first line to the last.
static double seconds_of(const struct yk_view *v)
{
	double first = INFINITY, last = -INFINITY;
	for (int t = 0; t < v->tables; t++)
		for (size_t i = 0; i < v->table[t]->rows; i++) {
			double at = yk_view_time(v->table[t], i);
			first = fmin(first, isnan(at) ? INFINITY : at);
			last = fmax(last, isnan(at) ? -INFINITY : at);
		}
	return last >= first ? last - first : NAN;
}

static json_t *run(struct yk_view *v)
{
	json_t *findings = yk_conditions(v, NULL, yk_unix_seconds());
	const json_t *ended = json_object_get(v->about, "ended");
	const char *how = json_string_value(json_object_get(ended, "how"));
	const char *error = json_string_value(json_object_get(ended, "error"));
	json_t *o = json_pack(
		"{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:o, s:o}",
		"name", yk_json_of_text(v->name), "folder", yk_json_of_text(v->folder), "state",
		yk_view_state_name(v->state), "how", yk_json_of_text(how ? how : ""), "error",
		yk_json_of_text(error ? error : ""), "host",
		yk_json_of_text(yk_view_field(v, "host")), "device",
		yk_json_of_text(yk_view_field(v, "device")), "driver",
		yk_json_of_text(yk_view_field(v, "driver")), "version",
		yk_json_of_text(yk_view_field(v, "version")), "started",
		moment(real_of(v->about, "started")), "seconds", yk_summary_real(seconds_of(v)),
		"step", (json_int_t)yk_view_last_step(v), "steps",
		number(real_of(v->about, "steps")), "parameters",
		number(real_of(v->about, "parameters")), "foreign_lines", (json_int_t)v->foreign,
		"settings", copy_of(v->about, "settings", json_object()), "config",
		copy_of(v->about, "config", json_object()));
	json_object_set_new(o, "summary", yk_headline(v, findings));
	json_object_set_new(o, "findings", findings);
	json_object_set_new(o, "changed", yk_changed_keys(v));
	json_object_set_new(o, "numbers", numbers(v));
	json_object_set_new(o, "phases", phases(v));
	json_object_set_new(o, "bounds", bounds(v));
	json_object_set_new(o, "counts", counts(v));
	json_object_set_new(o, "kernels", kernels(v));
	json_object_set_new(o, "limits", copy_of(v->kernels, "limits", json_array()));
	json_object_set_new(o, "events", events(v));
	return o;
}

// ---- comparison of several runs ----

static const json_t *value_in(const json_t *run, const char *group, const char *key)
{
	return json_object_get(group ? json_object_get(run, group) : run, key);
}

static void differ(json_t *list, const json_t *runs, const char *group, const char *key)
{
	const json_t *first = value_in(json_array_get(runs, 0), group, key), *r;
	bool same = true;
	size_t i;
	json_t *values;
	json_array_foreach (list, i, r)
		if (!strcmp(json_string_value(json_object_get(r, "key")), key))
			return;
	json_array_foreach (runs, i, r) {
		const json_t *v = value_in(r, group, key);
		same &= v == first || (v && first && json_equal(v, first));
	}
	if (same)
		return;
	values = json_array();
	json_array_foreach (runs, i, r) {
		json_t *v = (json_t *)(uintptr_t)value_in(r, group, key);
		json_array_append(values, v ? v : json_null());
	}
	json_array_append_new(list, json_pack("{s:s, s:o}", "key", key, "values", values));
}

static json_t *differences(const json_t *runs)
{
	static const char *const group[] = { "config", "settings" };
	static const char *const plain[] = { "device",     "driver", "host", "version",
					     "parameters", "state",  "how" };
	json_t *list = json_array(), *v;
	const json_t *r;
	const char *key;
	size_t i;
	for (int g = 0; g < 2; g++)
		json_array_foreach (runs, i, r)
			json_object_foreach (json_object_get(r, group[g]), key, v)
				differ(list, runs, group[g], key);
	for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
		differ(list, runs, NULL, plain[k]);
	return list;
}

static double column_number(const struct yk_view *v, const char *stage, const char *column,
			    char which)
{
	const struct yk_view_table *t = yk_view_table(v, stage);
	int c = yk_view_column(t, column);
	if (c < 0 || !t->column[c].count)
		return NAN;
	return which == 'l' ? t->column[c].last :
	       which == '<' ? t->column[c].min :
			      t->column[c].max;
}

static double steps_per_s(const struct yk_view *v)
{
	const struct yk_view_table *t = yk_view_table(v, "train");
	if (!t || t->rows < 2)
		return NAN;
	double s = yk_view_time(t, t->rows - 1) - yk_view_time(t, 0);
	return s > 0 ? (double)(yk_view_step(t, t->rows - 1) - yk_view_step(t, 0)) / s : NAN;
}

static json_t *ratios(int n, struct yk_view *const *v)
{
	static const struct {
		const char *quantity, *stage, *column;
		char which;
	} rows[] = {
		{ "last loss", "train", "loss", 'l' },
		{ "min loss", "train", "loss", '<' },
		{ "last validation loss", "valid", "val_loss", 'l' },
		{ "min validation loss", "valid", "val_loss", '<' },
		{ "tokens per second at the end", "train", "tokens_per_s", 'l' },
		{ "samples per second at the end", "train", "samples_per_s", 'l' },
		{ "peak device memory", "train", "peak_bytes", '>' },
		{ "waiting for data", "train", "data_wait_s", 'l' },
		{ "steps per second", NULL, "steps", 0 },
		{ "duration", NULL, "seconds", 0 },
	};
	json_t *list = json_array();
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		json_t *values = json_array(), *quotients = json_array();
		double first = NAN;
		bool any = false;
		for (int i = 0; i < n; i++) {
			double x = rows[k].stage ? column_number(v[i], rows[k].stage,
								 rows[k].column, rows[k].which) :
				   !strcmp(rows[k].column, "steps") ? steps_per_s(v[i]) :
								      seconds_of(v[i]);
			if (i == 0)
				first = x;
			any |= isfinite(x);
			json_array_append_new(values, number(x));
			json_array_append_new(quotients, yk_summary_real(x / first));
		}
		json_t *o =
			json_pack("{s:s, s:s, s:o, s:o}", "quantity", rows[k].quantity, "column",
				  rows[k].column, "values", values, "ratios", quotients);
		if (any)
			json_array_append_new(list, o);
		else
			json_decref(o);
	}
	return list;
}

static json_t *plots(int n, struct yk_view *const *v)
{
	struct yk_plot_kind kind[YK_PLOT_MAX];
	const int found = yk_plot_kinds(n, v, false, kind);
	const struct yk_plot_options ask = { .from = -INFINITY,
					     .to = INFINITY,
					     .points = POINTS / (size_t)n < MIN_POINTS ?
							       MIN_POINTS :
							       POINTS / (size_t)n };
	json_t *list = json_array();
	for (int i = 0; i < found; i++) {
		struct yk_plot_result m;
		if (yk_plot_make(n, v, &kind[i], &ask, &m) < 0)
			break;
		json_t *curves = json_array();
		for (int c = 0; c < m.plot.curves; c++) {
			json_t *x = json_array(), *y = json_array();
			for (size_t k = 0; k < m.curve[c].n; k++) {
				char number_of[32];
				json_array_append_new(x, number(m.curve[c].x[k]));
				yk_snprintf(number_of, sizeof number_of, "%.9g", m.curve[c].y[k]);
				json_array_append_new(y, json_real(yk_strtod(number_of, NULL)));
			}
			const struct yk_curve *curve = &m.curve[c];
			json_array_append_new(
				curves,
				json_pack("{s:o, s:i, s:i, s:o, s:o, s:o}", "name",
					  yk_json_of_text(curve->name), "color", curve->color,
					  "dash", curve->dash, "legend",
					  yk_json_of_text(curve->unlisted ? "" :
							  curve->legend ? curve->legend :
							  curve->name),
					  "x", x, "y", y));
		}
		json_t *dashes = json_array();
		for (int d = 0; d < YK_SVG_DASHES && m.plot.dash_name[d]; d++)
			json_array_append_new(dashes, yk_json_of_text(m.plot.dash_name[d]));
		json_array_append_new(list, json_pack("{s:s, s:o, s:s, s:s, s:s, s:o, s:o}", "name",
						      kind[i].name, "title",
						      yk_json_of_text(kind[i].title), "x",
						      m.plot.x_label, "y", m.plot.y_label, "unit",
						      yk_unit_name(m.plot.y_unit), "dashes", dashes,
						      "curves", curves));
		yk_plot_drop(&m);
	}
	return list;
}

json_t *yk_summary_make(int n, struct yk_view *const *v)
{
	json_t *runs = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(runs, run(v[i]));
	json_t *o = json_pack("{s:i, s:s, s:o}", "format", YK_RUNS_FORMAT, "yoke", PACKAGE_VERSION,
			      "runs", runs);
	if (!o || json_array_size(runs) != (size_t)n) {
		json_decref(o);
		return NULL;
	}
	json_object_set_new(o, "differences", n > 1 ? differences(runs) : json_array());
	json_object_set_new(o, "ratios", n > 1 ? ratios(n, v) : json_array());
	json_object_set_new(o, "plots", plots(n, v));
	return o;
}
