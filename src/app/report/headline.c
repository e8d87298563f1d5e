// SPDX-License-Identifier: Apache-2.0
// Computes the head of a report from the records of a run.
#include "config.h"

#include "report/headline.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/number.h"
#include "config/conf.h"
#include "report/conditions.h"
#include "report/finding.h"
#include "report/quantity.h"

static const struct yk_view_column *column(const struct yk_view *v, const char *stage,
					   const char *name)
{
	const struct yk_view_table *t = yk_view_table(v, stage);
	const int c = yk_view_column(t, name);
	return c >= 0 && t->column[c].count ? &t->column[c] : NULL;
}

__attribute__((format(printf, 4, 5))) static void figure(json_t *list, const char *label,
							 const char *value, const char *fmt, ...)
{
	char note[160];
	va_list ap;
	va_start(ap, fmt);
	yk_vsnprintf(note, sizeof note, fmt, ap);
	va_end(ap);
	json_array_append_new(list,
			      json_pack("{s:s, s:o, s:o}", "label", label, "text",
					yk_json_of_text(value), "note", yk_json_of_text(note)));
}

// ---- what ----

static const char *state_word(const struct yk_view *v)
{
	const char *how =
		json_string_value(json_object_get(json_object_get(v->about, "ended"), "how"));
	switch (v->state) {
	case YK_VIEW_LIVE: return "running";
	case YK_VIEW_LOST: return "killed";
	case YK_VIEW_UNKNOWN: return "unknown";
	case YK_VIEW_ENDED: break;
	}
	return !how || !strcmp(how, "done") ? "finished" :
	       !strcmp(how, "failed")       ? "failed" :
					      "stopped";
}

// "gpt with 120.6 k parameters, on the data `text`, on cpu:0 of vm"
static json_t *what(const struct yk_view *v)
{
	const json_t *parameters = json_object_get(v->about, "parameters");
	const char *model = yk_found_key(v, "model"), *init = yk_found_key(v, "init"),
		   *data = yk_found_key(v, "data");
	const char *device = yk_view_field(v, "device"), *host = yk_view_field(v, "host");
	char to[900], n[YK_QUANTITY_TEXT];
	const bool pretrained = strcmp(init, "n/a") && *init;
	const char *name = pretrained ? init : model;
	int at = snprintf(to, sizeof to, "%.200s", strcmp(name, "n/a") ? name : "a run");
	if (json_is_number(parameters))
		at += snprintf(to + at, sizeof to - (size_t)at, " with %s parameters",
			       yk_quantity_text(YK_COUNT, json_number_value(parameters), n));
	if (*data && strcmp(data, "n/a"))
		at += snprintf(to + at, sizeof to - (size_t)at, ", trained on %.200s", data);
	if (*device)
		at += snprintf(to + at, sizeof to - (size_t)at, ", on %.60s", device);
	if (*host)
		snprintf(to + at, sizeof to - (size_t)at, " of %.100s", host);
	return yk_json_of_text(to);
}

// ---- figures ----

static void losses(json_t *list, const struct yk_view *v)
{
	const struct yk_view_column *valid = column(v, "valid", "val_loss"),
				    *loss = column(v, "train", "loss");
	char n[YK_QUANTITY_TEXT];
	if (valid && valid->last > valid->min)
		figure(list, "validation loss", yk_quantity_text(YK_PLAIN, valid->last, n),
		       "best %.4g at step %lld", valid->min, (long long)valid->min_step);
	else if (valid)
		figure(list, "validation loss", yk_quantity_text(YK_PLAIN, valid->last, n),
		       "the best of %s",
		       yk_counted((char[64]){ "" }, (long long)valid->count, "validation"));
	if (loss)
		figure(list, "training loss", yk_quantity_text(YK_PLAIN, loss->last, n),
		       "%.4g at first", loss->first);
}

// Seconds since the last start, or since the first record if no start is known, until the recorded
// end or the last record.
static double seconds_of(const struct yk_view *v)
{
	const json_t *started = json_object_get(v->about, "started"),
		     *ended = json_object_get(json_object_get(v->about, "ended"), "time");
	double first = INFINITY, last = -INFINITY;
	for (int t = 0; t < v->tables; t++) {
		const struct yk_view_table *table = v->table[t];
		if (!table->rows)
			continue;
		first = fmin(first, yk_view_time(table, 0));
		last = fmax(last, yk_view_time(table, table->rows - 1));
	}
	if (json_is_number(started))
		first = json_number_value(started);
	if (json_is_number(ended))
		last = json_number_value(ended);
	return last >= first ? last - first : NAN;
}

static void progress(json_t *list, const struct yk_view *v)
{
	const json_t *steps = json_object_get(v->about, "steps"),
		     *started = json_object_get(v->about, "started");
	const long long last = (long long)yk_view_last_step(v);
	const double of = json_is_integer(steps) ? (double)json_integer_value(steps) : NAN;
	const time_t since = json_is_number(started) && fabs(json_number_value(started)) < 2e11 ?
				     (time_t)json_number_value(started) :
				     -1;
	char n[YK_QUANTITY_TEXT], to[64], day[32] = "";
	struct tm tm;
	if (of > 0) {
		yk_snprintf(to, sizeof to, "%lld of %.0f", last, of);
		figure(list, "steps", to, "%s",
		       yk_quantity_text(YK_SHARE_OF, (double)last / of, n));
	}
	if (since >= 0 && gmtime_r(&since, &tm))
		strftime(day, sizeof day, "from %Y-%m-%d %H:%M UTC", &tm);
	if (isfinite(seconds_of(v)))
		figure(list, "duration", yk_quantity_text(YK_SECONDS_OF, seconds_of(v), n), "%s",
		       day);
}

static void resources(json_t *list, const struct yk_view *v)
{
	const struct yk_view_column *rate = column(v, "train", "tokens_per_s"),
				    *samples = column(v, "train", "samples_per_s"),
				    *peak = column(v, "train", "peak_bytes"),
				    *rss = column(v, "telemetry", "rss");
	const double wall = yk_found_report(v, "wall"), idle = yk_found_report(v, "idle");
	bool timed = true; // otherwise the seconds of kernels are unknown
	const double kernels = yk_found_phase(v, "contractions", &timed) +
			       yk_found_phase(v, "attention", NULL) +
			       yk_found_phase(v, "other", NULL);
	char n[YK_QUANTITY_TEXT], m[YK_QUANTITY_TEXT];
	if (rate)
		figure(list, "tokens per second", yk_quantity_text(YK_COUNT, rate->last, n),
		       "at most %s", yk_quantity_text(YK_COUNT, rate->max, m));
	if (samples)
		figure(list, "samples per second", yk_quantity_text(YK_COUNT, samples->last, n),
		       "at most %s", yk_quantity_text(YK_COUNT, samples->max, m));
	if (peak)
		figure(list, "peak device memory", yk_quantity_text(YK_BYTES_OF, peak->max, n),
		       rss ? "process %s" : "%s",
		       rss ? yk_quantity_text(YK_BYTES_OF, rss->max, m) : "");
	if (wall > 0 && timed)
		figure(list, "time in kernels", yk_quantity_text(YK_SHARE_OF, kernels / wall, n),
		       "idle %s", yk_quantity_text(YK_SHARE_OF, fmax(idle / wall, 0), m));
}

// Names the kinds of problems; a run that is only slower than possible is healthy.
static bool judge(const struct yk_view *v, const json_t *findings, char *verdict, size_t room)
{
	const size_t n = json_array_size(findings);
	char count[64];
	int problems = 0;
	yk_counted(count, (long long)n, "finding");
	for (int k = 0; yk_condition_names[k]; k++) {
		const char *name = yk_condition_names[k];
		bool found = false;
		for (size_t i = 0; i < n; i++)
			found |= !strcmp(json_string_value(json_object_get(
						 json_array_get(findings, i), "condition")),
					 name);
		if (!found || !strcmp(name, "slow") || !strcmp(name, "low use"))
			continue;
		if (!problems++)
			snprintf(verdict, room, "not healthy: ");
		snprintf(verdict + strlen(verdict), room - strlen(verdict), "%s%s",
			 problems > 1 ? ", " : "", name);
	}
	if (problems)
		snprintf(verdict + strlen(verdict), room - strlen(verdict), " (%s)", count);
	else if (n)
		snprintf(verdict, room, "healthy, but could be faster (%s)", count);
	else
		snprintf(verdict, room,
			 v->lines ? "healthy: no problem found in its records" :
				    "nothing recorded yet");
	return !problems && v->lines;
}

json_t *yk_headline(const struct yk_view *v, const json_t *findings)
{
	char verdict[200];
	json_t *list = json_array();
	const bool healthy = judge(v, findings, verdict, sizeof verdict);
	losses(list, v);
	progress(list, v);
	resources(list, v);
	return json_pack("{s:s, s:o, s:s, s:b, s:o}", "state", state_word(v), "what", what(v),
			 "verdict", verdict, "healthy", healthy, "figures", list);
}

json_t *yk_changed_keys(const struct yk_view *v)
{
	json_t *list = json_array(), *value;
	const char *key;
	json_object_foreach (json_object_get(v->about, "config"), key, value) {
		const char *is = json_string_value(value), *def = "";
		bool known = false;
		for (int k = 0; k < YK_KEYS && !known; k++)
			if ((known = !strcmp(key, yk_config_rows[k].name)))
				def = yk_config_rows[k].def;
		double x, y;
		const bool equal =
			known && is &&
			(!strcmp(is, def) || (yk_number(is, &x) && yk_number(def, &y) && x == y));
		if (equal || json_is_object(value) || json_is_array(value))
			continue;
		json_array_append_new(list,
				      json_pack("{s:o, s:O, s:s}", "key", yk_json_of_text(key),
						"value", value, "default", def));
	}
	return list;
}
