// SPDX-License-Identifier: Apache-2.0
// Rules about the speed of a run: waiting, idle time, saving, planning, fallbacks, other programs.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "report/finding.h"

#define WAIT_MAX 0.05
#define IDLE_MAX 0.20
#define TRANSFER_MAX 0.10
#define SAVING_MAX 0.20
#define SAVING_GOAL 0.10 // share of the time that the advised save_every leaves to saving, at most
#define MISSES_MAX (1. / 16)
#define SLOWER 1.15
#define BUSY_MIN 0.5
#define READING_MIN \
	0.5 // share of the time that workers spend reading, above which more of them help
#define OTHERS_MIN 0.25 // share of the processors
#define FULL 0.9

enum { FIRST_PLANS = 8, SETTLED = 20 };

// Growth of a column of `train` from the first settled row to the last; NaN: not recorded.
static double growth(const struct yk_found *f, const char *column)
{
	const int c = yk_view_column(f->train, column);
	return c < 0 ? NAN :
		       yk_view_value(f->v, f->train, c, f->train->rows - 1) -
			       yk_view_value(f->v, f->train, c, f->first);
}

static double waiting_share(const struct yk_found *f)
{
	return f->train && f->wall > 0 ? growth(f, "data_wait_s") / f->wall : NAN;
}

static bool larger_batch_possible(const struct yk_view *v)
{
	return !yk_found_is(v, "batch", "auto"); // auto is the fastest batch that fits
}

// ---- waiting for data ----

// Share of the time that each worker reads and pads samples; NaN: not recorded.
static double reading_share(const struct yk_found *f)
{
	const json_t *workers = json_object_get(json_object_get(f->v->report, "data"), "workers");
	const double n = json_is_integer(workers) ? (double)json_integer_value(workers) :
			 yk_found_is(f->v, "workers", "auto") ?
						    1 :
						    yk_strtod(yk_found_key(f->v, "workers"), NULL);
	return (growth(f, "data_read_s") + growth(f, "data_pad_s")) / (f->wall * fmax(n, 1));
}

static void waiting(struct yk_found *f)
{
	const struct yk_view *v = f->v;
	const double share = waiting_share(f), reading = reading_share(f);
	const bool ahead = !yk_found_is(v, "prefetch", "0") && !yk_found_is(v, "workers", "0");
	const bool pipe = yk_found_is(v, "data", "-"), busy = !(reading < READING_MIN);
	struct yk_advice a = { "" };
	if (!(share > WAIT_MAX))
		return;
	yk_advise(&a, pipe, "a program that writes its tokens to the pipe faster");
	yk_advise(&a, !pipe && (busy || !ahead), "more workers (workers=%s now)",
		  yk_found_key(v, "workers"));
	yk_advise(&a, !pipe && busy, "data prepared as token files");
	yk_advise(&a, !pipe && !busy && ahead, "processors without other programs");
	yk_advise(&a, !pipe && !busy && ahead && larger_batch_possible(v),
		  "a larger batch (batch=%s now)", yk_found_key(v, "batch"));
	json_t *list = yk_find(
		f, "slow", yk_finding_text("waiting for data %.0f %% of the time", 100 * share),
		yk_advice_text(&a),
		!ahead        ? "prefetch > 0 and workers > 0, otherwise nothing is read ahead" :
		busy && !pipe ? "idle processors" :
				"",
		yk_found_gain(share));
	json_array_append_new(
		list, yk_evidence_train(f, yk_finding_text("data_wait_s grows by %.4g in %.4g s",
							   growth(f, "data_wait_s"), f->wall)));
	if (!busy && ahead)
		json_array_append_new(
			list,
			yk_evidence_train(
				f, yk_finding_text("each worker reads %.2g %% of the time, so that "
						   "more workers would not help",
						   100 * reading)));
}

// ---- other programs ----

static double mean_of(const struct yk_found *f, const struct yk_view_table *t, const char *column,
		      int64_t from)
{
	const int c = yk_view_column(t, column);
	double sum = 0;
	size_t n = 0;
	for (size_t i = 0; c >= 0 && i < t->rows; i++) {
		const double x = yk_view_value(f->v, t, c, i);
		if (isnan(x) || yk_view_step(t, i) < from)
			continue;
		sum += x;
		n++;
	}
	return n >= YK_FOUND_QUARTER ? sum / (double)n : NAN;
}

// Processors in use by this run: ranks that are processes of this machine are added up, ranks that
// are threads belong to one process.
static double own_processors(const struct yk_found *f, int64_t from)
{
	double sum = mean_of(f, yk_view_table(f->v, "telemetry"), "process_cpu", from);
	for (int i = 0; i < f->v->tables && yk_found_is(f->v, "spawn", "process"); i++)
		if (!strncmp(f->v->table[i]->stage, "telemetry.", 10)) {
			const double one = mean_of(f, f->v->table[i], "process_cpu", from);
			sum += isnan(one) ? 0 : one;
		}
	return sum;
}

// True: other programs took processors that the run wanted.
static bool contended(struct yk_found *f)
{
	const struct yk_view_table *t = yk_view_table(f->v, "telemetry");
	const int64_t from = f->train && f->train->rows ? yk_view_step(f->train, f->first) : 0;
	const double all = yk_view_last(f->v, "telemetry", "host.processors"),
		     used = mean_of(f, t, "cpu", from) * all, own = own_processors(f, from),
		     others = used - own;
	const double threads = yk_strtod(yk_found_key(f->v, "threads"), NULL);
	const double wanted = threads > 0 ? fmin(threads, all) : all;
	if (!(others > OTHERS_MIN * all && used > FULL * all && own < FULL * wanted) ||
	    !(yk_found_on_cpu(f->v) || waiting_share(f) > WAIT_MAX))
		return false;
	struct yk_advice a = { "" };
	yk_advise(&a, true, "end the other programs");
	yk_advise(&a, true, "run it while the machine is idle");
	json_array_append_new(
		yk_find(f, "slow",
			yk_finding_text(
				"other programs had %.1f of the %.0f processors; this run had %.1f",
				others, all, own),
			yk_advice_text(&a), "", yk_found_on_cpu(f->v) ? wanted / own : 0),
		yk_evidence(
			"telemetry.jsonl", yk_found_line(t, 0), yk_found_line(t, SIZE_MAX),
			yk_finding_text("cpu, mean %.3g of %.0f processors; process_cpu, mean %.3g",
					used / all, all, own)));
	return true;
}

// ---- phases ----

static int64_t saves(const struct yk_view *v)
{
	int64_t n = 0;
	for (size_t i = 0; i < v->events; i++)
		n += !strcmp(v->event[i].event, "saved");
	return n;
}

static void saving(struct yk_found *f, double share, double wall)
{
	const struct yk_view *v = f->v;
	const char *every = yk_found_key(v, "save_every");
	const int64_t n = saves(v);
	double steps;
	if (!(share > SAVING_MAX) || n < 2) // the last checkpoint is the result
		return;
	struct yk_advice a = { "" };
	const bool known = yk_number(every, &steps) && steps > 0 && share < 1;
	// the ratio of saving to everything else, now over then
	const double fewer = share / (1 - share) / (SAVING_GOAL / (1 - SAVING_GOAL));
	yk_advise(&a, known, "fewer checkpoints: save_every=%.0f (save_every=%s now)",
		  known ? steps * ceil(fewer - 1e-9) : 0, every);
	yk_advise(&a, !known, "fewer checkpoints (save_every=%s now)", every);
	json_array_append_new(
		yk_find(f, "slow", yk_finding_text("saving takes %.0f %% of the time", 100 * share),
			yk_advice_text(&a), "", yk_found_gain(share)),
		yk_evidence_report(yk_finding_text("%lld checkpoints took %.4g s of %.4g s",
						   (long long)n, share * wall, wall)));
}

static void phases(struct yk_found *f)
{
	const struct yk_view *v = f->v;
	double wall = yk_found_report(v, "wall"), idle = yk_found_report(v, "idle") / wall;
	bool timed = true;
	double transfers = yk_found_phase(v, "transfers", &timed) / wall;
	struct yk_advice larger = { "" }, overlap = { "" };
	if (!(wall > 0))
		return;
	yk_advise(&larger, larger_batch_possible(v), "a larger batch (batch=%s now)",
		  yk_found_key(v, "batch"));
	if (timed && idle > IDLE_MAX)
		json_array_append_new(
			yk_find(f, "slow", yk_finding_text("idle %.0f %% of the time", 100 * idle),
				yk_advice_text(&larger), "enough memory; `yoke plan` predicts it",
				yk_found_gain(idle)),
			yk_evidence_report(
				yk_finding_text("idle %.4g s of %.4g s", idle * wall, wall)));
	yk_advise(&overlap, true,
		  "more prefetch, so that transfers overlap with compute (prefetch=%s now)",
		  yk_found_key(v, "prefetch"));
	yk_advise(&overlap, yk_found_is(v, "offload", "optimizer"), "offload=none");
	if (transfers > TRANSFER_MAX)
		json_array_append_new(
			yk_find(f, "slow",
				yk_finding_text("transfers take %.0f %% of the time",
						100 * transfers),
				yk_advice_text(&overlap),
				yk_found_is(v, "prefetch", "0") ?
					"prefetch > 0, without which pinned memory does not help" :
					"",
				yk_found_gain(transfers)),
			yk_evidence_report(yk_finding_text("transfers %.4g s of %.4g s",
							   transfers * wall, wall)));
	saving(f, yk_found_report(v, "checkpoints") / wall, wall);
}

static void counted(struct yk_found *f)
{
	char n[64];
	const struct yk_view *v = f->v;
	double misses = yk_found_report(v, "plan_misses"), hits = yk_found_report(v, "plan_hits"),
	       fallbacks = yk_found_report(v, "fallbacks");
	double wall = yk_found_report(v, "wall"), planning = yk_found_phase(v, "plan", NULL) / wall;
	// the first plans are expected: each shape needs one, and so does validation
	if (misses + hits > SETTLED && misses - FIRST_PLANS > MISSES_MAX * (misses + hits))
		json_array_append_new(
			yk_find(f, "slow",
				yk_finding_text("%.0f of %.0f evaluations compiled a new plan",
						misses, misses + hits),
				yk_finding_text("shapes that repeat; YOKE_LOG=plan shows which "
						"field differs"),
				"", yk_found_gain(planning)),
			yk_evidence_report(
				yk_finding_text("plan_misses %.0f, plan_hits %.0f, planning %.4g s",
						misses, hits, planning * wall)));
	if (fallbacks > 0) {
		const json_t *first = json_array_get(json_object_get(v->report, "fallback_ops"), 0);
		const char *op = json_string_value(json_object_get(first, "op"));
		struct yk_advice a = { "" };
		yk_advise(&a, true, "a backend that supports the op (`yoke check device`)");
		yk_advise(&a, !yk_found_on_cpu(v), "backend=cpu");
		json_array_append_new(
			yk_find(f, "slow",
				yk_finding_text("%s fell back to the CPU, including %s",
						yk_counted(n, (long long)fallbacks, "launch"),
						op ? op : "some"),
				yk_advice_text(&a), "", 0),
			yk_evidence_report(yk_finding_text("fallbacks %.0f, %.4g bytes moved",
							   fallbacks,
							   yk_found_report(v, "fallback_bytes"))));
	}
}

// ---- slowing down ----

// Median of a column over rows; NaN: too few rows.
static double median_of(const struct yk_found *f, int column, size_t from, size_t to)
{
	double *x = malloc((to - from + 1) * sizeof *x), m = NAN;
	size_t n = 0;
	for (size_t i = from; x && i < to; i++)
		if (!isnan(yk_view_value(f->v, f->train, column, i)))
			x[n++] = yk_view_value(f->v, f->train, column, i);
	if (n >= YK_FOUND_QUARTER) {
		qsort(x, n, sizeof *x, yk_found_by_value);
		m = x[n / 2];
	}
	free(x);
	return m;
}

static void slower(struct yk_found *f, bool others)
{
	const char *rate =
		yk_view_column(f->train, "samples_per_s") >= 0 ? "samples_per_s" : "tokens_per_s";
	int c = yk_view_column(f->train, rate);
	if (c < 0 || f->train->rows - f->first < 4 * YK_FOUND_QUARTER)
		return;
	const size_t rows = f->train->rows, quarter = (rows - f->first) / 4;
	double early = median_of(f, c, f->first, f->first + quarter),
	       late = median_of(f, c, rows - quarter, rows);
	struct yk_advice a = { "" };
	yk_advise(&a, others, "end the other programs");
	yk_advise(&a, !others, "check for memory leaks, other programs, and high temperatures");
	if (early / late > SLOWER)
		json_array_append_new(
			yk_find(f, "slow",
				yk_finding_text(
					"steps take %.2f times as long at the end as at the start",
					early / late),
				yk_advice_text(&a), "", early / late),
			yk_evidence_train(
				f, yk_finding_text("%s, medians of quarters: %.4g, then %.4g", rate,
						   early, late)));
}

static void throttled(struct yk_found *f)
{
	const struct yk_view_table *t = yk_view_table(f->v, "telemetry");
	for (int i = 0; t && i < t->columns; i++) {
		const char *name = t->column[i].name, *dot = strrchr(name, '.');
		if (strcmp(dot ? dot + 1 : name, dot ? "throttle" : "throttled") ||
		    !(t->column[i].max > t->column[i].first))
			continue;
		json_array_append_new(
			yk_find(f, "slow", yk_finding_text("the processor or device was throttled"),
				yk_finding_text(
					"better cooling, or a higher power or cgroup limit"),
				"", 0),
			yk_evidence("telemetry.jsonl", yk_found_line(t, 0),
				    yk_found_line(t, SIZE_MAX),
				    yk_finding_text("%s from %.4g to %.4g", name,
						    t->column[i].first, t->column[i].max)));
		return;
	}
}

// ---- low use ----

enum gap { IDLE, TRANSFERS, PLANNING, DEVICE, SAVING, DATA };

// The largest part of the time without compute, and its seconds.
static enum gap largest_gap(const struct yk_view *v, double *seconds)
{
	static const char *const phase[] = {
		[TRANSFERS] = "transfers", [PLANNING] = "plan", [DEVICE] = "wait"
	};
	enum gap at = IDLE;
	double worst = yk_found_report(v, "idle");
	for (int i = TRANSFERS; i <= DEVICE; i++)
		if (yk_found_phase(v, phase[i], NULL) > worst) {
			worst = yk_found_phase(v, phase[i], NULL);
			at = (enum gap)i;
		}
	if (yk_found_report(v, "checkpoints") > worst)
		at = SAVING, worst = yk_found_report(v, "checkpoints");
	if (yk_view_last(v, "train", "data_wait_s") > 0.5 * worst)
		at = DATA;
	*seconds = worst;
	return at;
}

static void low_use(struct yk_found *f)
{
	static const char *const causes[] = { "idle",     "transfers",
					      "planning", "waiting for the device",
					      "saving",   "waiting for data" };
	const struct yk_view *v = f->v;
	const struct yk_view_table *t = yk_view_table(v, "telemetry");
	int c = yk_view_column(t, "devices.0.util");
	double wall = yk_found_report(v, "wall"), busy = 0, worst = 0;
	enum gap gap = IDLE;
	size_t n = 0;
	bool timed = v->report != NULL;
	double computed = yk_found_phase(v, "contractions", &timed) +
			  yk_found_phase(v, "attention", NULL) + yk_found_phase(v, "other", NULL);
	for (size_t i = 0; c >= 0 && i < t->rows; i++)
		if (!isnan(yk_view_value(v, t, c, i))) {
			busy += yk_view_value(v, t, c, i);
			n++;
		}
	const bool sampled = n >= YK_FOUND_QUARTER;
	if (sampled)
		busy /= (double)n;
	else if (timed && wall > 0)
		busy = computed / wall;
	else
		return;
	if (busy >= BUSY_MIN)
		return;
	if (v->report)
		gap = largest_gap(v, &worst);
	if (gap == SAVING && saves(v) < 2) // the last checkpoint is the result
		return;
	struct yk_advice a = { "" };
	const bool more_work = gap == IDLE || gap == PLANNING || gap == DEVICE || gap == TRANSFERS;
	yk_advise(&a, more_work && larger_batch_possible(v), "a larger batch (batch=%s now)",
		  yk_found_key(v, "batch"));
	yk_advise(&a, gap == SAVING, "fewer checkpoints (save_every=%s now)",
		  yk_found_key(v, "save_every"));
	yk_advise(&a, gap == DATA, "data that is ready sooner (workers=%s, prefetch=%s now)",
		  yk_found_key(v, "workers"), yk_found_key(v, "prefetch"));
	yk_advise(&a, !yk_found_on_cpu(v), "backend=cpu; `yoke plan device` compares the devices");
	json_t *list = yk_find(
		f, "low use",
		yk_finding_text("the device computes %.0f %% of the time; the largest gap: %s",
				100 * busy, causes[gap]),
		yk_advice_text(&a), more_work ? "enough memory; `yoke plan` predicts it" : "",
		sampled ? 0 : yk_found_gain(worst / wall));
	json_array_append_new(
		list, sampled ? yk_evidence("telemetry.jsonl", yk_found_line(t, 0),
					    yk_found_line(t, SIZE_MAX),
					    yk_finding_text("devices.0.util, mean %.3g", busy)) :
				yk_evidence_report(yk_finding_text("%.4g s of compute in %.4g s",
								   computed, wall)));
}

void yk_find_speed(struct yk_found *f)
{
	const bool others = contended(f);
	if (f->train) {
		waiting(f);
		slower(f, others);
	}
	phases(f);
	counted(f);
	throttled(f);
	low_use(f);
}
