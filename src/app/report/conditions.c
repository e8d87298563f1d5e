// SPDX-License-Identifier: Apache-2.0
// Rules that find problems of a run in its records, with evidence and a suggested change.
#include "config.h"

#include "report/conditions.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "observe/report.h"
#include "report/summary.h"

#define WAIT_MAX 0.05
#define IDLE_MAX 0.20
#define TRANSFER_MAX 0.10
#define SAVING_MAX 0.20
#define MISSES_MAX (1. / 16)
#define SLOWER 1.15
#define NEAR_LIMIT 0.9
#define LEAK_BYTES 16e6
#define LEAK_SHARE 0.02
#define LEAK_Z 3.3
#define BUSY_MIN 0.5
#define SILENT_S 60.
#define SILENT_STEPS 20

enum { FIRST_PLANS = 8, SETTLED = 20, QUARTER = 4 };

const char *const yk_condition_names[] = { "memory", "slow", "leak", "low use", "inconsistent", "launch", "hang", NULL };

// Collects the findings of a run.
struct found {
	json_t *list;
	const struct yk_view *v;
	const struct yk_view_table *train; // NULL: no such records
	size_t first; // first row of `train` after the first tenth of the steps
	double wall;  // seconds from that row to the last; NaN: unknown
};

__attribute__((format(printf, 1, 2))) static json_t *say(const char *fmt, ...)
{
	char text[600];
	va_list ap;
	va_start(ap, fmt);
	yk_vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	json_t *j = json_string(text);
	return j ? j : json_string("?");
}

static json_t *evidence(const char *file, uint32_t from, uint32_t to, json_t *text)
{
	return json_pack("{s:s, s:I, s:I, s:o}", "file", file, "from", (json_int_t)from, "to", (json_int_t)to, "text", text);
}

// Adds a finding; add_evidence may append further evidence.
static json_t *find(struct found *f, const char *condition, json_t *what, json_t *change, const char *needs, double gain)
{
	json_t *list = json_array();
	json_t *o = json_pack("{s:s, s:s, s:o, s:O, s:o, s:s, s:o}", "condition", condition, "run", f->v->name, "what", what,
			      "evidence", list, "change", change, "needs", needs, "gain",
			      gain > 1 ? yk_summary_real(gain) : json_null());
	json_decref(list);
	json_array_append_new(f->list, o);
	return list;
}

static double of_report(const struct yk_view *v, const char *key)
{
	const json_t *x = json_object_get(v->report, key);
	return json_is_number(x) ? json_number_value(x) : NAN;
}

static const char *config(const struct yk_view *v, const char *key)
{
	const char *s = json_string_value(json_object_get(json_object_get(v->about, "config"), key));
	return s ? s : "n/a";
}

// Seconds of a phase in the report, summed over devices; *timed: true if the phase was measured.
static double phase(const struct yk_view *v, const char *name, bool *timed)
{
	double sum = 0;
	const char *device;
	json_t *d;
	json_object_foreach (json_object_get(v->report, "devices"), device, d) {
		const json_t *s = json_object_get(json_object_get(d, name), "seconds");
		if (json_is_number(s))
			sum += json_number_value(s);
		if (timed)
			*timed &= json_is_true(json_object_get(d, "timed"));
	}
	return sum;
}

static uint32_t line_of(const struct yk_view_table *t, size_t row)
{
	return t && t->rows ? yk_view_line(t, row < t->rows ? row : t->rows - 1) : 0;
}

static json_t *of_train(const struct found *f, json_t *text)
{
	return evidence("metrics.jsonl", line_of(f->train, f->first), line_of(f->train, SIZE_MAX), text);
}

static json_t *of_end(json_t *text)
{
	return evidence("metrics.jsonl", 0, 0, text); // from the run's report
}

// ---- how it ended ----

static const char *end_error(const struct yk_view *v)
{
	const char *s = json_string_value(json_object_get(json_object_get(v->about, "ended"), "error"));
	return s ? s : "";
}

static bool ended_by(const struct yk_view *v, const char *code)
{
	if (strstr(end_error(v), code))
		return true;
	const struct yk_view_event *e = v->events ? &v->event[v->events - 1] : NULL;
	return v->state != YK_VIEW_LIVE && e && strstr(e->text, code);
}

// Parses e.g. "12.5 MiB asked for" into bytes; NaN: not found. what: the words next to the number.
static double bytes_before(const char *text, const char *what)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = { { " B", 1 }, { " KiB", 0x1p10 }, { " MiB", 0x1p20 }, { " GiB", 0x1p30 }, { " TiB", 0x1p40 } };
	const char *at = strstr(text, what);
	for (size_t i = 0; at && i < sizeof units / sizeof *units; i++) {
		size_t n = strlen(units[i].unit);
		const char *unit = at - n, *digit;
		if (unit < text || strncmp(unit, units[i].unit, n))
			continue;
		for (digit = unit; digit > text && strchr("0123456789.", digit[-1]); digit--)
			;
		return yk_strtod(digit, NULL) * units[i].bytes;
	}
	return NAN;
}

static double bytes_behind(const char *text, const char *what)
{
	const char *at = strstr(text, what);
	char copy[64];
	if (!at)
		return NAN;
	snprintf(copy, sizeof copy, "%.40s", at + strlen(what));
	copy[strcspn(copy, ",;(")] = '\0';
	char with_end[80];
	snprintf(with_end, sizeof with_end, "%s END", copy + strspn(copy, " "));
	return bytes_before(with_end, " END");
}

static void memory(struct found *f)
{
	char n[64];
	const struct yk_view *v = f->v;
	const char *error = end_error(v);
	const struct yk_view_table *t = yk_view_table(v, "telemetry");
	// counts the whole control group, including processes before this run
	const int killed = yk_view_column(t, "host.oom_kills");
	double kills = killed >= 0 ? t->column[killed].last - t->column[killed].first : NAN;
	double retries = yk_view_last(v, "memory", "pool_retries");
	double rss = yk_view_last(v, "telemetry", "rss"), limit = yk_view_last(v, "telemetry", "host.memory_limit");
	if (ended_by(v, "YOKE_ENOMEM") || strstr(error, "out of memory")) {
		double asked = bytes_before(error, " asked for"), unused = bytes_before(error, " free;"),
		       largest = bytes_behind(error, "largest free block");
		bool pieces = unused >= asked && asked > largest;
		json_t *list = find(f, "memory",
				    say(pieces ? "enough memory was free, but it was fragmented" :
						 "not enough memory"),
				    say(pieces ? "try YOKE_POOL=0, or a smaller batch" :
						 "a smaller batch, recompute=auto, or memory=, "
						 "which moves activations to host memory"),
				    "`yoke plan` with these keys shows what fits", 0);
		json_array_append_new(list, evidence("run.json", 0, 0, say("%s", error)));
	}
	if (retries > 0)
		json_array_append_new(
			find(f, "memory",
			     say("allocations were retried %s",
				 yk_counted(n, (long long)retries, "time")),
			     say("a smaller batch, or recompute=auto"), "", 0),
			evidence("metrics.jsonl", 0, 0, say("pool_retries %.0f", retries)));
	if (kills > 0)
		json_array_append_new(
			find(f, "memory", say("the system killed processes for lack of memory"),
			     say("a smaller batch, workers or prefetch"), "", 0),
			evidence("telemetry.jsonl", line_of(t, 0), line_of(t, SIZE_MAX),
				 say("oom_kills increased by %.0f", kills)));
	if (v->state == YK_VIEW_LOST && rss > NEAR_LIMIT * limit)
		json_array_append_new(
			find(f, "memory", say("the run disappeared while near its memory limit"),
			     say("a smaller batch, workers or prefetch, or a higher limit"), "", 0),
			evidence("telemetry.jsonl", 0, 0,
				 say("rss %.4g, limit %.4g bytes", rss, limit)));
}

static void launch(struct found *f)
{
	static const char *const codes[] = { "YOKE_EDEVICE", "YOKE_EFAILED" };
	for (int i = 0; i < 2; i++)
		if (ended_by(f->v, codes[i])) {
			const char *text = *end_error(f->v) ? end_error(f->v) : f->v->event[f->v->events - 1].text;
			json_array_append_new(
				find(f, "launch", say("the device failed (%s)", codes[i]),
				     say("YOKE_SYNC=1 to find the failing step; another driver, or "
					 "backend=cpu"),
				     "snapshot_every= lets another device take over", 0),
				evidence("run.json", 0, 0, say("%s", text)));
			return;
		}
	for (size_t i = 0; i < f->v->events; i++)
		if (!strcmp(f->v->event[i].event, "device lost")) {
			json_array_append_new(
				find(f, "launch", say("a device failed and another took over"),
				     say("YOKE_SYNC=1 to find the failing step; another driver"),
				     "", 0),
				evidence("events.jsonl", (uint32_t)i + 1, (uint32_t)i + 1,
					 say("%s", f->v->event[i].text)));
			return;
		}
}

// ---- slow ----

static double gain_of(double share)
{
	return share > 0 && share < 1 ? yk_amdahl(1, share) : 0;
}

static void waiting(struct found *f)
{
	int c = yk_view_column(f->train, "data_wait_s");
	if (c < 0 || !(f->wall > 0))
		return;
	double from = yk_view_value(f->v, f->train, c, f->first), to = yk_view_value(f->v, f->train, c, f->train->rows - 1);
	double share = (to - from) / f->wall;
	bool ahead = strcmp(config(f->v, "prefetch"), "0") && strcmp(config(f->v, "workers"), "0");
	if (share > WAIT_MAX)
		json_array_append_new(
			find(f, "slow", say("waiting for data %.0f %% of the time", 100 * share),
			     say("more workers (workers=%s now), or data prepared as token files",
				 config(f->v, "workers")),
			     ahead ? "idle processors" :
				     "prefetch > 0 and workers > 0, otherwise nothing is read "
				     "ahead",
			     gain_of(share)),
			of_train(f, say("data_wait_s %.4g to %.4g in %.4g s", from, to, f->wall)));
}

static void phases(struct found *f)
{
	const struct yk_view *v = f->v;
	double wall = of_report(v, "wall"), idle = of_report(v, "idle") / wall, saving = of_report(v, "checkpoints") / wall;
	bool timed = true;
	double transfers = phase(v, "transfers", &timed) / wall;
	if (!(wall > 0))
		return;
	if (timed && idle > IDLE_MAX)
		json_array_append_new(find(f, "slow", say("idle %.0f %% of the time", 100 * idle),
					   say("a larger batch (batch=%s now)", config(v, "batch")),
					   "enough memory; `yoke plan` predicts it", gain_of(idle)),
				      of_end(say("idle %.4g s of %.4g s", idle * wall, wall)));
	if (transfers > TRANSFER_MAX)
		json_array_append_new(
			find(f, "slow", say("transfers take %.0f %% of the time", 100 * transfers),
			     say("more prefetch, so that transfers overlap with compute "
				 "(prefetch=%s now); offload=none",
				 config(v, "prefetch")),
			     "prefetch > 0, without which pinned memory does not help",
			     gain_of(transfers)),
			of_end(say("transfers %.4g s of %.4g s", transfers * wall, wall)));
	if (saving > SAVING_MAX)
		json_array_append_new(find(f, "slow", say("saving takes %.0f %% of the time", 100 * saving),
					   say("fewer checkpoints: save_every=%s now", config(v, "save_every")), "",
					   gain_of(saving)),
				      of_end(say("checkpoints %.4g s of %.4g s", saving * wall, wall)));
}

static void counted(struct found *f)
{
	char n[64];
	const struct yk_view *v = f->v;
	double misses = of_report(v, "plan_misses"), hits = of_report(v, "plan_hits"), fallbacks = of_report(v, "fallbacks");
	double wall = of_report(v, "wall"), planning = phase(v, "plan", NULL) / wall;
	// the first plans are expected: each shape needs one, and so does validation
	if (misses + hits > SETTLED && misses - FIRST_PLANS > MISSES_MAX * (misses + hits))
		json_array_append_new(
			find(f, "slow",
			     say("%.0f of %.0f evaluations compiled a new plan", misses,
				 misses + hits),
			     say("shapes that repeat; YOKE_LOG=plan shows which field differs"), "",
			     gain_of(planning)),
			of_end(say("plan_misses %.0f, plan_hits %.0f, planning %.4g s", misses,
				   hits, planning * wall)));
	if (fallbacks > 0) {
		const json_t *first = json_array_get(json_object_get(v->report, "fallback_ops"), 0);
		const char *op = json_string_value(json_object_get(first, "op"));
		json_array_append_new(
			find(f, "slow",
			     say("%s fell back to the CPU, including %s",
				 yk_counted(n, (long long)fallbacks, "launch"), op ? op : "some"),
			     say("a backend that supports the op (`yoke check device`), or "
				 "backend=cpu"),
			     "", 0),
			of_end(say("fallbacks %.0f, %.4g bytes moved", fallbacks,
				   of_report(v, "fallback_bytes"))));
	}
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

// Median of a column over rows; NaN: too few rows.
static double median_of(const struct found *f, int column, size_t from, size_t to)
{
	double *x = malloc((to - from + 1) * sizeof *x), m = NAN;
	size_t n = 0;
	for (size_t i = from; x && i < to; i++)
		if (!isnan(yk_view_value(f->v, f->train, column, i)))
			x[n++] = yk_view_value(f->v, f->train, column, i);
	if (n >= QUARTER) {
		qsort(x, n, sizeof *x, by_value);
		m = x[n / 2];
	}
	free(x);
	return m;
}

static void slower(struct found *f)
{
	int c = yk_view_column(f->train, "tokens_per_s");
	if (c < 0 || f->train->rows - f->first < 4 * QUARTER)
		return;
	const size_t rows = f->train->rows, part = (rows - f->first) / 4;
	double early = median_of(f, c, f->first, f->first + part), late = median_of(f, c, rows - part, rows);
	if (early / late > SLOWER)
		json_array_append_new(
			find(f, "slow",
			     say("steps take %.2f times as long at the end as at the start",
				 early / late),
			     say("check for memory leaks, other programs, and high temperatures"),
			     "", early / late),
			of_train(f, say("tokens_per_s, medians of quarters: %.4g, then %.4g", early,
					late)));
}

static void throttled(struct found *f)
{
	const struct yk_view_table *t = yk_view_table(f->v, "telemetry");
	for (int i = 0; t && i < t->columns; i++) {
		const char *name = t->column[i].name, *dot = strrchr(name, '.');
		if (strcmp(dot ? dot + 1 : name, dot ? "throttle" : "throttled") || !(t->column[i].max > t->column[i].first))
			continue;
		json_array_append_new(
			find(f, "slow", say("the processor or device was throttled"),
			     say("better cooling, or a higher power or cgroup limit"), "", 0),
			evidence("telemetry.jsonl", line_of(t, 0), line_of(t, SIZE_MAX),
				 say("%s from %.4g to %.4g", name, t->column[i].first,
				     t->column[i].max)));
		return;
	}
}

// ---- leak ----

static void leak_of(struct found *f, const char *stage, const char *column, const char *file)
{
	const struct yk_view_table *t = yk_view_table(f->v, stage);
	int c = yk_view_column(t, column), n = 0;
	const int64_t from = f->train && f->train->rows ? yk_view_step(f->train, f->first) : 0;
	double *x = t ? malloc(2 * t->rows * sizeof *x) : NULL, *y = x ? x + t->rows : NULL, z;
	size_t first = SIZE_MAX;
	for (size_t i = 0; x && c >= 0 && i < t->rows; i++) {
		double value = yk_view_value(f->v, t, c, i);
		if (yk_view_step(t, i) < from || isnan(value))
			continue;
		if (first == SIZE_MAX)
			first = i;
		x[n] = isnan(yk_view_time(t, i)) ? (double)yk_view_step(t, i) : yk_view_time(t, i);
		y[n++] = value;
	}
	double growth = n > 2 ? yk_trend(n, x, y, &z) * (x[n - 1] - x[0]) : 0, middle = 0;
	if (n > 2) {
		qsort(y, (size_t)n, sizeof *y, by_value);
		middle = y[n / 2];
	}
	if (n > 2 && growth > LEAK_BYTES && growth > LEAK_SHARE * middle && z > LEAK_Z)
		json_array_append_new(
			find(f, "leak",
			     say("%s of %s grows by %.4g MB", column, stage, 1e-6 * growth),
			     say("free handles that each step keeps (yoke_keep without yoke_free), "
				 "and check the program's own lists"),
			     "", 0),
			evidence(file, line_of(t, first), line_of(t, SIZE_MAX),
				 say("growth by the Theil-Sen slope: %.4g bytes of %.4g; "
				     "Mann-Kendall z %.3g",
				     growth, middle, z)));
	free(x);
}

static void leak(struct found *f)
{
	double pending = yk_view_last(f->v, "memory", "pending_nodes");
	const struct yk_view_table *t = yk_view_table(f->v, "memory");
	int c = yk_view_column(t, "pending_nodes");
	leak_of(f, "memory", "pool_allocated", "metrics.jsonl");
	leak_of(f, "memory", "rss", "metrics.jsonl");
	leak_of(f, "telemetry", "rss", "telemetry.jsonl");
	if (c >= 0 && t->rows > 4 && pending > 1000 && pending >= 4 * (t->column[c].first + 1))
		json_array_append_new(
			find(f, "leak",
			     say("the graph grows: %.0f recorded operations are not evaluated",
				 pending),
			     say("evaluate the kept tensors, or free them"), "", 0),
			evidence("metrics.jsonl", line_of(t, 0), line_of(t, SIZE_MAX),
				 say("pending_nodes from %.0f to %.0f", t->column[c].first,
				     pending)));
}

// ---- low use ----

static void low_use(struct found *f)
{
	static const struct {
		const char *key, *what;
	} parts[] = { { "transfers", "transfers" },
		      { "plan", "planning" },
		      { "wait", "waiting for the device" } };
	const struct yk_view *v = f->v;
	const struct yk_view_table *t = yk_view_table(v, "telemetry");
	int c = yk_view_column(t, "devices.0.util");
	double wall = of_report(v, "wall"), busy = 0, worst = 0;
	const char *cause = "idle";
	size_t n = 0;
	bool timed = v->report != NULL;
	double computed = phase(v, "contractions", &timed) + phase(v, "attention", NULL) + phase(v, "other", NULL);
	for (size_t i = 0; c >= 0 && i < t->rows; i++)
		if (!isnan(yk_view_value(v, t, c, i))) {
			busy += yk_view_value(v, t, c, i);
			n++;
		}
	const bool told = n >= QUARTER;
	if (told)
		busy /= (double)n;
	else if (timed && wall > 0)
		busy = computed / wall;
	else
		return;
	if (busy >= BUSY_MIN)
		return;
	if (v->report) {
		worst = of_report(v, "idle");
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			if (phase(v, parts[i].key, NULL) > worst) {
				worst = phase(v, parts[i].key, NULL);
				cause = parts[i].what;
			}
		if (of_report(v, "checkpoints") > worst)
			cause = "saving", worst = of_report(v, "checkpoints");
		if (yk_view_last(v, "train", "data_wait_s") > 0.5 * worst)
			cause = "waiting for data";
	}
	json_t *list =
		find(f, "low use",
		     say("the device computes %.0f %% of the time; the largest gap: %s", 100 * busy,
			 cause),
		     say("a larger batch (batch=%s now), or backend=cpu; `yoke plan device` "
			 "compares the devices",
			 config(v, "batch")),
		     "enough memory; `yoke plan` predicts it", told ? 0 : gain_of(worst / wall));
	json_array_append_new(list, told ? evidence("telemetry.jsonl", line_of(t, 0), line_of(t, SIZE_MAX),
						    say("devices.0.util, mean %.3g", busy)) :
					   of_end(say("%.4g s of compute in %.4g s", computed, wall)));
}

// ---- hang ----

static void hang(struct found *f, double now)
{
	const struct yk_view *v = f->v;
	double newest = -INFINITY, each = NAN;
	if (v->state != YK_VIEW_LIVE)
		return;
	for (int i = 0; i < v->tables; i++)
		// telemetry continues while the run hangs
		if (v->table[i]->rows && strncmp(v->table[i]->stage, "telemetry", 9))
			newest = fmax(newest, yk_view_time(v->table[i], v->table[i]->rows - 1));
	if (f->train && f->train->rows > 1) {
		double *gap = malloc(f->train->rows * sizeof *gap);
		size_t n = 0;
		for (size_t i = 1; gap && i < f->train->rows; i++) {
			double steps = (double)(yk_view_step(f->train, i) - yk_view_step(f->train, i - 1));
			if (steps > 0)
				gap[n++] = (yk_view_time(f->train, i) - yk_view_time(f->train, i - 1)) / steps;
		}
		if (n) {
			qsort(gap, n, sizeof *gap, by_value);
			each = gap[n / 2];
		}
		free(gap);
	}
	const double allowed = fmax(SILENT_S, isnan(each) ? 0 : SILENT_STEPS * each);
	if (!isfinite(newest) || now - newest <= allowed)
		return;
	json_t *list =
		find(f, "hang",
		     say("the process is running, but its last record is %.0f s old", now - newest),
		     say("end it (SIGTERM twice) and continue with resume=1; YOKE_SYNC=1 shows "
			 "which step does not end"),
		     "", 0);
	json_array_append_new(list,
			      evidence("metrics.jsonl", line_of(f->train, SIZE_MAX),
				       line_of(f->train, SIZE_MAX),
				       say("%.0f s without a record; at most %.0f s are expected",
					   now - newest, allowed)));
	// among ranks, the one with the fewest collectives
	double min = INFINITY, max = -INFINITY;
	const char *last = NULL;
	// start time of the run; 0: unknown
	const double started = json_number_value(json_object_get(v->about, "started"));
	for (int i = 0; i < v->tables; i++) {
		double seq = yk_view_last(v, v->table[i]->stage, "collective.seq");
		if (v->table[i]->rows && yk_view_time(v->table[i], v->table[i]->rows - 1) < started)
			continue; // a rank of an earlier start
		if (seq < min)
			min = seq, last = v->table[i]->stage;
		if (seq > max)
			max = seq;
	}
	if (last && min < max)
		json_array_append_new(list, evidence("telemetry.jsonl", 0, 0,
						     say("rank %s waits in collective %.0f, others in %.0f",
							 last[9] ? last + 10 : "0", min, max)));
}

// ---- two runs ----

static bool same(const struct yk_view *a, const struct yk_view *b, const char *key)
{
	const json_t *x = json_object_get(a->about, key), *y = json_object_get(b->about, key);
	return x && y && json_equal(x, y);
}

static json_t *not_alike(const struct yk_view *a, const struct yk_view *b)
{
	static const char *const keys[] = { "driver", "version", "host", "settings" };
	char text[256] = "";
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!same(a, b, keys[i]))
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? ", " : "", keys[i]);
	return say(*text ? "other differences: %s" : "nothing else differs", text);
}

static void inconsistent(struct found *f, const struct yk_view *b)
{
	static const struct {
		const char *stage, *column;
	} rows[] = { { "train", "loss" }, { "valid", "val_loss" } };
	const struct yk_view *a = f->v;
	if (!same(a, b, "config") || !same(a, b, "data") || !same(a, b, "device"))
		return;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		const struct yk_view_table *s = yk_view_table(a, rows[k].stage), *t = yk_view_table(b, rows[k].stage);
		int c = yk_view_column(s, rows[k].column), d = yk_view_column(t, rows[k].column);
		for (size_t i = 0, j = 0; c >= 0 && d >= 0 && i < s->rows && j < t->rows;) {
			int64_t p = yk_view_step(s, i), q = yk_view_step(t, j);
			double x = yk_view_value(a, s, c, i), y = yk_view_value(b, t, d, j);
			if (p == q && x != y && !(isnan(x) && isnan(y))) {
				json_t *list = find(f, "inconsistent",
						    say("%s differs from that of %s at step %lld", rows[k].column, b->name,
							(long long)p),
						    say("the same instruction set (YOKE_CPU_ISA), driver and version"), "", 0);
				json_array_append_new(list, evidence("metrics.jsonl", line_of(s, i), line_of(s, i),
								     say("%.9g here, %.9g there, line %u", x, y,
									 (unsigned)line_of(t, j))));
				json_array_append_new(list, evidence("run.json", 0, 0, not_alike(a, b)));
				return;
			}
			i += p <= q;
			j += q <= p;
		}
	}
}

static void of_run(json_t *list, const struct yk_view *v, double now)
{
	struct found f = { .list = list, .v = v, .train = yk_view_table(v, "train"), .wall = NAN };
	if (f.train && f.train->rows) {
		const int64_t from = yk_view_step(f.train, 0), to = yk_view_step(f.train, f.train->rows - 1);
		while (f.first + 1 < f.train->rows && yk_view_step(f.train, f.first) < from + (to - from) / 10)
			f.first++;
		f.wall = yk_view_time(f.train, f.train->rows - 1) - yk_view_time(f.train, f.first);
	}
	memory(&f);
	if (f.train) {
		waiting(&f);
		slower(&f);
	}
	phases(&f);
	counted(&f);
	throttled(&f);
	leak(&f);
	low_use(&f);
	launch(&f);
	hang(&f, now);
}

// Sorts findings of the same condition by gain, the largest first.
static void sort(json_t *list)
{
	for (size_t i = 1; i < json_array_size(list); i++)
		for (size_t k = i; k > 0; k--) {
			json_t *a = json_array_get(list, k - 1), *b = json_array_get(list, k);
			if (strcmp(json_string_value(json_object_get(a, "condition")), "slow") ||
			    strcmp(json_string_value(json_object_get(b, "condition")), "slow") ||
			    json_number_value(json_object_get(a, "gain")) >= json_number_value(json_object_get(b, "gain")))
				break;
			json_incref(b);
			json_array_remove(list, k);
			json_array_insert_new(list, k - 1, b);
		}
}

json_t *yk_conditions(struct yk_view *v, struct yk_view *other, double now)
{
	json_t *list = json_array();
	if (!list)
		return NULL;
	of_run(list, v, now);
	if (other) {
		struct found f = { .list = list, .v = v };
		of_run(list, other, now);
		inconsistent(&f, other);
	}
	sort(list);
	return list;
}
