// SPDX-License-Identifier: Apache-2.0
// Rules about how a run ended: killed, short of memory, by a failing device, or by another error.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "config/advice.h"
#include "report/finding.h"

#define NEAR_LIMIT 0.9

static const char *end_error(const struct yk_view *v)
{
	const char *s =
		json_string_value(json_object_get(json_object_get(v->about, "ended"), "error"));
	return s ? s : "";
}

static bool ended_by(const struct yk_view *v, const char *code)
{
	if (strstr(end_error(v), code))
		return true;
	const struct yk_view_event *e = v->events ? &v->event[v->events - 1] : NULL;
	return v->state != YK_VIEW_LIVE && e && strstr(e->text, code);
}

int64_t yk_found_checkpoint(const struct yk_view *v)
{
	char path[4096];
	int64_t step = -1;
	snprintf(path, sizeof path, "%s/manifest.json", v->folder);
	struct yk_error_aside *aside = yk_error_aside();
	json_t *manifest = yk_json_load(path);
	if (manifest && yk_json_int(manifest, path, "step", 0, INT64_MAX, &step) < 0)
		step = -1;
	json_decref(manifest);
	yoke_error_clear(); // a run without a manifest saved no checkpoint
	yk_error_restore(aside);
	return step;
}

// ---- memory ----

// Parses e.g. "12.5 MiB requested" into bytes; NaN: not found. what: the words next to the number.
static double bytes_before(const char *text, const char *what)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = { { " B", 1 },
		      { " KiB", 0x1p10 },
		      { " MiB", 0x1p20 },
		      { " GiB", 0x1p30 },
		      { " TiB", 0x1p40 } };
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

static double bytes_after(const char *text, const char *what)
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

// Changes of the run's keys that take less device memory.
static struct yk_advice less_memory(const struct yk_view *v)
{
	struct yk_advice a = { "" };
	const bool one = yk_found_is(v, "batch", "1");
	yk_advise(&a, !one, "a smaller batch (batch=%s now)", yk_found_key(v, "batch"));
	yk_advise(&a, one, "a shorter context (context=%s now)", yk_found_key(v, "context"));
	yk_advise(&a, !yk_found_is(v, "recompute", "auto") && !yk_found_is(v, "recompute", "block"),
		  "recompute=auto");
	yk_advise(&a,
		  !yk_found_on_cpu(v) &&
			  (yk_found_is(v, "memory", "") || yk_found_is(v, "memory", "n/a")),
		  "memory=, which moves activations to host memory");
	return a;
}

// Changes of the run's keys that take less host memory.
static struct yk_advice less_host_memory(const struct yk_view *v)
{
	struct yk_advice a = { "" };
	yk_advise(&a, !yk_found_is(v, "batch", "1"), "a smaller batch (batch=%s now)",
		  yk_found_key(v, "batch"));
	yk_advise(&a, !yk_found_is(v, "workers", "0"), "fewer workers (workers=%s now)",
		  yk_found_key(v, "workers"));
	yk_advise(&a, !yk_found_is(v, "prefetch", "0"), "less prefetch (prefetch=%s now)",
		  yk_found_key(v, "prefetch"));
	yk_advise(&a, true, "a higher limit");
	return a;
}

// True: the records show that a run without an end was killed for lack of memory.
static bool memory(struct yk_found *f)
{
	char n[64];
	const struct yk_view *v = f->v;
	const char *error = end_error(v);
	const struct yk_view_table *t = yk_view_table(v, "telemetry");
	// counts the whole control group, including processes before this run
	const int killed = yk_view_column(t, "host.oom_kills");
	double kills = killed >= 0 ? t->column[killed].last - t->column[killed].first : NAN;
	double retries = yk_view_last(v, "memory", "pool_retries");
	double rss = yk_view_last(v, "telemetry", "rss"),
	       limit = yk_view_last(v, "telemetry", "host.memory_limit");
	const struct yk_advice device = less_memory(v), host = less_host_memory(v);
	if (ended_by(v, "YOKE_ENOMEM") || strstr(error, "out of memory")) {
		double asked = bytes_before(error, " requested"),
		       unused = bytes_before(error, " free;"),
		       largest = bytes_after(error, "largest free block");
		bool fragmented = unused >= asked && asked > largest;
		struct yk_advice a = device;
		if (fragmented) {
			a = (struct yk_advice){ "" };
			yk_advise(&a, !yk_found_set(v, "pool"), "YOKE_POOL=0");
			yk_advise(&a, !yk_found_is(v, "batch", "1"),
				  "a smaller batch (batch=%s now)", yk_found_key(v, "batch"));
		}
		json_t *list = yk_find(
			f, "memory",
			yk_finding_text(fragmented ?
						"enough memory was free, but it was fragmented" :
						"not enough memory"),
			yk_advice_text(&a), "keys that fit in memory; `yoke plan` predicts it", 0);
		json_array_append_new(list,
				      yk_evidence("run.json", 0, 0, yk_finding_text("%s", error)));
	}
	if (retries > 0)
		json_array_append_new(
			yk_find(f, "memory",
				yk_finding_text("allocations were retried %s",
						yk_counted(n, (long long)retries, "time")),
				yk_advice_text(&device), "", 0),
			yk_evidence("metrics.jsonl", 0, 0,
				    yk_finding_text("pool_retries %.0f", retries)));
	if (kills > 0)
		json_array_append_new(
			yk_find(f, "memory",
				yk_finding_text("the system killed processes for lack of memory"),
				yk_advice_text(&host), "", 0),
			yk_evidence("telemetry.jsonl", yk_found_line(t, 0),
				    yk_found_line(t, SIZE_MAX),
				    yk_finding_text("oom_kills increased by %.0f", kills)));
	const bool near = v->state == YK_VIEW_LOST && rss > NEAR_LIMIT * limit;
	if (near)
		json_array_append_new(
			yk_find(f, "memory",
				yk_finding_text("the run disappeared while near its memory limit"),
				yk_advice_text(&host), "", 0),
			yk_evidence("telemetry.jsonl", 0, 0,
				    yk_finding_text("rss %.4g, limit %.4g bytes", rss, limit)));
	return near || kills > 0;
}

// ---- device ----

// The changes that fit a device failure; another: a device that may take over is advised.
static struct yk_advice after_failure(const struct yk_view *v, bool another)
{
	const bool cpu = yk_found_on_cpu(v);
	struct yk_advice a = { "" };
	yk_advise(&a, !yk_found_set(v, "sync"), "YOKE_SYNC=1 to find the failing step");
	yk_advise(&a, cpu, "`yoke check device cpu` to test the processor's kernels");
	yk_advise(&a, !cpu, "another driver");
	yk_advise(&a, !cpu && another, "backend=cpu");
	return a;
}

static void launch(struct yk_found *f)
{
	static const char *const codes[] = { "YOKE_EDEVICE", "YOKE_EFAILED" };
	const struct yk_view *v = f->v;
	const struct yk_advice last = after_failure(v, true), lost = after_failure(v, false);
	const bool hint = !yk_found_on_cpu(v) && yk_found_is(v, "snapshot_every", "0");
	for (int i = 0; i < 2; i++)
		if (ended_by(v, codes[i])) {
			const char *text =
				*end_error(v) ? end_error(v) : v->event[v->events - 1].text;
			json_array_append_new(
				yk_find(f, "launch",
					yk_finding_text("the device failed (%s)", codes[i]),
					yk_advice_text(&last),
					hint ? "snapshot_every=, with which another device takes over" :
					       "",
					0),
				yk_evidence("run.json", 0, 0, yk_finding_text("%s", text)));
			return;
		}
	for (size_t i = 0; i < v->events; i++)
		if (!strcmp(v->event[i].event, "device lost")) {
			json_array_append_new(
				yk_find(f, "launch",
					yk_finding_text("a device failed and another took over"),
					yk_advice_text(&lost), "", 0),
				yk_evidence("events.jsonl", (uint32_t)i + 1, (uint32_t)i + 1,
					    yk_finding_text("%s", v->event[i].text)));
			return;
		}
}

// ---- runs that did not finish ----

static bool by_yoke_fit(const struct yk_view *v)
{
	return !strcmp(yk_view_field(v, "program"), "yoke_fit");
}

static bool by_yoke_train(const struct yk_view *v)
{
	return !by_yoke_fit(v) &&
	       json_object_get(json_object_get(v->about, "config"), "save_every") != NULL;
}

// Changes after a run that ended early: continue it, or save earlier the next time.
static struct yk_advice go_on(const struct yk_view *v, int64_t checkpoint)
{
	struct yk_advice a = { "" };
	char *folder = by_yoke_train(v) ? yk_shell_word(v->folder) : NULL;
	if (!folder && !by_yoke_fit(v))
		return a;
	yk_advise(&a, checkpoint >= 0 && !folder,
		  "start the program again with resume=1 (resume=True in Python), which continues "
		  "from step %lld",
		  (long long)checkpoint);
	yk_advise(&a, checkpoint >= 0 && folder,
		  "`yoke train out=%s resume=1` continues from step %lld", folder,
		  (long long)checkpoint);
	yk_advise(&a, checkpoint < 0,
		  "start it again, with a smaller save_every (save_every=%s now): it saved no "
		  "checkpoint",
		  yk_found_key(v, "save_every"));
	free(folder);
	return a;
}

static json_t *checkpoint_evidence(const struct yk_view *v, int64_t checkpoint)
{
	const long long last = (long long)yk_view_last_step(v);
	if (checkpoint < 0)
		return yk_evidence(
			"run.json", 0, 0,
			yk_finding_text("no end was recorded, and there is no manifest.json"));
	return yk_evidence("manifest.json", 0, 0,
			   yk_finding_text("last checkpoint: step %lld; last record: step %lld",
					   (long long)checkpoint, last));
}

static void killed(struct yk_found *f, bool for_memory)
{
	const struct yk_view *v = f->v;
	const json_t *steps = json_object_get(v->about, "steps");
	const int64_t checkpoint = yk_found_checkpoint(v);
	const struct yk_advice a = go_on(v, checkpoint);
	char of[48] = "";
	if (v->state != YK_VIEW_LOST)
		return;
	if (json_is_integer(steps))
		snprintf(of, sizeof of, " of %lld", (long long)json_integer_value(steps));
	json_array_append_new(
		yk_find(f, "killed",
			yk_finding_text("the process ended at step %lld%s without an end in its "
					"records: %s",
					(long long)yk_view_last_step(v), of,
					for_memory ? "killed for lack of memory" :
						     "killed by a signal, or with its machine"),
			yk_advice_text(&a), "", 0),
		checkpoint_evidence(v, checkpoint));
}

// A run that failed in a way for which there is no other rule.
static void failed(struct yk_found *f)
{
	const struct yk_view *v = f->v;
	const json_t *ended = json_object_get(v->about, "ended");
	const char *how = json_string_value(json_object_get(ended, "how"));
	if (!how || strcmp(how, "failed") || yk_found_any(f, "memory") || yk_found_any(f, "launch"))
		return;
	const int64_t checkpoint = yk_found_checkpoint(v);
	const struct yk_advice a = go_on(v, checkpoint);
	json_t *list = yk_find(f, "failed",
			       yk_finding_text("the run failed at step %lld: %s",
					       (long long)yk_view_last_step(v), end_error(v)),
			       yk_advice_text(&a), "", 0);
	json_array_append_new(list,
			      yk_evidence("run.json", 0, 0, yk_finding_text("%s", end_error(v))));
}

void yk_find_end(struct yk_found *f)
{
	const bool for_memory = memory(f);
	killed(f, for_memory);
	launch(f);
	failed(f);
}
