// SPDX-License-Identifier: Apache-2.0
// The profiler's life cycle: creates it, starts and stops watching, and collects its report.
#include "config.h"

#include "observe/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "observe/activity.h"
#include "plan/eval.h"

YK_PARAM(trace_bytes, "profile.trace", YK_BYTES, "256000000", "maximum bytes of a trace file");

// ---- watching ----

void yk_profile_prepare(void)
{
	char name[80];
	struct yk_device *d = yk_device_choose(NULL);
	if (!d)
		return; // the function that creates the context will report the error again
	snprintf(name, sizeof name, "%s.profile", d->backend->table.name);
	if (yk_param_find(name))
		yk_param_set(name, "1", YK_ARGUMENT);
}

static void free_events(struct yk_profile *p)
{
	for (int k = 0; k < YK_STREAMS; k++) {
		yk_event_unref(p->between[k].last);
		p->between[k].last = NULL;
	}
	yk_event_unref(p->clock.anchor);
	p->clock.anchor = NULL;
}

void yk_profile_watch(struct yk_profile *p, bool on)
{
	if (on == p->watching)
		return;
	p->watching = on;
	if (on) {
		yk_observer_add(p->ctx, &p->observer);
		return;
	}
	yk_observer_remove(p->ctx, &p->observer);
	yk_activity_resolve(p);
	for (int k = 0; k < YK_STREAMS;
	     k++) { // work enqueued outside the profile does not belong to
		// the next activity
		yk_event_unref(p->between[k].last);
		p->between[k].last = NULL;
	}
}

void yk_profile_start(struct yk_profile *p)
{
	yk_activity_resolve(p);
	free_events(p);
	memset(p->sum, 0, sizeof p->sum);
	memset(p->upload.unread, 0, sizeof p->upload.unread);
	yk_rows_clear(&p->rows);
	yk_peak_clear(&p->peak);
	p->trace.events = p->trace.ranges = p->trace.counts = p->path.sums = 0;
	p->trace.dropped = p->clock.shifted = p->clock.error = 0;
	p->number = 0;
	p->clock.drift = 1;
	yoke_stats(&p->before);
	free(p->fallback);
	p->fallbacks = yk_fallback_kinds(p->ctx);
	p->fallback = calloc(p->fallbacks + 1, sizeof *p->fallback);
	if (p->fallback)
		yk_fallback_counts(p->ctx, p->fallback);
	else
		p->fallbacks = 0; // earlier fallbacks are then counted too
	p->started = yk_nanoseconds();
	yk_activity_ranges_begin(p);
}

uint64_t yk_profile_trace_bytes(void)
{
	return (uint64_t)yk_param_int(&trace_bytes);
}

void yk_profile_bound(struct yk_profile *p, uint64_t max_bytes)
{
	enum { MIN_SIZE = 200 }; // approximate bytes of an event's text
	p->trace.max = (size_t)(max_bytes / MIN_SIZE);
}

struct yk_profile *yk_profile_with(bool details, unsigned flags)
{
	struct yoke_context *ctx = yk_current();
	struct yk_profile *p = ctx ? calloc(1, sizeof *p) : NULL;
	if (p && details && !(p->pending = malloc(YK_MAX_PENDING * sizeof *p->pending))) {
		free(p);
		p = NULL;
	}
	if (!p) {
		yk_fail(YOKE_ENOMEM, "profile: no memory");
		return NULL;
	}
	p->ctx = yk_context_ref(ctx);
	p->details = details;
	p->rows.flags = flags;
	p->trace.ranks = 1;
	p->before.size = sizeof p->before;
	yk_profile_bound(p, yk_profile_trace_bytes());
	yk_activity_init(p);
	yk_profile_start(p);
	return p;
}

struct yk_profile *yk_profile_new(bool details)
{
	struct yk_profile *p =
		yk_profile_with(details, YOKE_PROFILE_IMPLEMENTATIONS | YOKE_PROFILE_SCOPES);
	if (p)
		yk_profile_watch(p, true);
	return p;
}

void yk_profile_free(struct yk_profile *p)
{
	if (!p)
		return;
	if (p->watching)
		yk_observer_remove(p->ctx, &p->observer);
	for (size_t i = 0; i < p->npending; i++) {
		yk_event_unref(p->pending[i].from);
		yk_event_unref(p->pending[i].to);
	}
	free_events(p);
	yk_rows_fini(&p->rows);
	yk_peak_fini(&p->peak);
	free(p->path.sum);
	free(p->path.open);
	free(p->trace.range);
	free(p->trace.count);
	free(p->trace.event);
	free(p->trace.reading);
	free(p->pending);
	free(p->fallback);
	yk_context_unref(p->ctx);
	free(p);
}

// ---- reports ----

static int by_number(const void *a, const void *b)
{
	const struct yk_traced *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

void yk_profile_settle(struct yk_profile *p)
{
	uint64_t end[YK_STREAMS] = { 0 };
	yk_activity_resolve(p);
	yk_activity_close(p);
	if (p->trace.events)
		qsort(p->trace.event, p->trace.events, sizeof *p->trace.event, by_number);
	for (size_t i = 0; i < p->trace.events; i++) {
		struct yk_traced *x = &p->trace.event[i];
		if (x->stream == YK_HOST_ACTIVITY)
			continue;
		if (!x->mapped)
			x->begin = p->clock.anchored +
				   (uint64_t)llround((double)x->begin * p->clock.drift);
		if (x->begin < x->host && x->apart)
			p->clock.shifted++;
		x->begin = x->begin > x->host || !x->apart ? x->begin : x->host;
		x->begin = x->begin > end[x->stream] ? x->begin : end[x->stream];
		x->mapped = true;
		end[x->stream] = x->begin + x->ns;
	}
}

double yk_profile_busy(struct yk_profile *p)
{
	uint64_t ns = 0;
	yk_activity_resolve(p);
	for (int lane = 0; lane < 2; lane++)
		for (int k = 0; k < YK_BUSY_KINDS; k++)
			ns += p->sum[lane][k].ns;
	return 1e-9 * (double)ns;
}

int yk_profile_trace(struct yk_profile *p, const char *path)
{
	return yk_profile_trace_ranks(p, path, 0, NULL);
}

int yk_profile_trace_ranks(struct yk_profile *p, const char *path, int others, char *const *other)
{
	yk_profile_settle(p);
	return yk_profile_trace_max(p, path, yk_profile_trace_bytes() / (uint64_t)p->trace.ranks,
				    others, other);
}

uint64_t yk_profile_began(const struct yk_profile *p)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec -
	       (yk_nanoseconds() - p->started);
}

void yk_profile_rank(struct yk_profile *p, int rank, int ranks, uint64_t later)
{
	p->trace.rank = rank;
	p->trace.ranks = ranks;
	p->trace.later = later;
}

static int fallbacks_since(const struct yk_profile *p, struct yk_report *to)
{
	struct yoke_fallback *all = calloc(yk_fallback_kinds(p->ctx) + 1, sizeof *all);
	if (!all)
		return yk_fail(YOKE_ENOMEM, "profile: no memory");
	to->nfallback =
		(int)yk_fallback_list(p->ctx, (const uint64_t(*)[2])p->fallback, p->fallbacks, all);
	int max = sizeof to->fallback / sizeof *to->fallback;
	for (int i = 0; i < to->nfallback && i < max; i++)
		to->fallback[i] = all[i];
	free(all);
	return 0;
}

void yk_profile_reading(struct yk_profile *p, int worker, uint64_t begin, uint64_t ns)
{
	if (begin < p->started)
		return;
	if (yk_grow(&p->trace.reading, &p->trace.reading_cap, p->trace.readings + 1,
		    sizeof *p->trace.reading) < 0) {
		p->trace.dropped++;
		return;
	}
	p->trace.reading[p->trace.readings++] =
		(struct yk_traced_reading){ begin - p->started, ns, worker };
}

int yk_profile_report(struct yk_profile *p, struct yk_report *to)
{
	struct yoke_stats now = { .size = sizeof now };
	int e = yoke_sync();
	if (e == 0)
		e = yoke_stats(&now);
	if (e < 0)
		return e;
	uint64_t ns = yk_nanoseconds() - p->started;
	double busy = yk_profile_busy(p);
	*to = (struct yk_report){
		.wall = 1e-9 * (double)ns,
		.idle = 1e-9 * (double)ns - busy,
		.launches = now.launches - p->before.launches,
		.plan_hits = now.plan_hits - p->before.plan_hits,
		.plan_misses = now.plan_misses - p->before.plan_misses,
		.programs_compiled = now.programs_compiled,
		.programs_found = now.programs_found,
		.fallbacks = now.fallbacks - p->before.fallbacks,
		.fallback_bytes = now.fallback_bytes - p->before.fallback_bytes,
		.bytes_up = now.bytes_up - p->before.bytes_up,
		.bytes_down = now.bytes_down - p->before.bytes_down,
		.of = p->ctx->device,
	};
	memcpy(to->sum, p->sum, sizeof to->sum);
	memcpy(to->timed, p->timed, sizeof to->timed);
	snprintf(to->device[0], sizeof to->device[0], "%s", p->ctx->device->id);
	if (p->ctx->cpu && p->ctx->cpu != p->ctx->device)
		snprintf(to->device[1], sizeof to->device[1], "%s", p->ctx->cpu->id);
	for (int lane = 0; lane < 2; lane++)
		for (int k = 0; k <= YK_BUSY_OTHER; k++)
			to->bytes += p->sum[lane][k].bytes;
	yk_layers_find(p->ctx, &to->layers);
	return fallbacks_since(p, to);
}

static int by_time(const void *a, const void *b)
{
	const struct yk_row *x = *(const struct yk_row *const *)a,
			    *y = *(const struct yk_row *const *)b;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x > y) - (x < y);
}

void yk_profile_top(const struct yk_profile *p, int max, yk_line_fn *line, void *arg)
{
	char text[512];
	const struct yk_row **order = malloc((p->rows.n + 1) * sizeof *order);
	uint64_t all = 0;
	if (!order)
		return;
	for (size_t i = 0; i < p->rows.n; i++) {
		order[i] = &p->rows.row[i];
		all += order[i]->ns;
	}
	qsort(order, p->rows.n, sizeof *order, by_time);
	snprintf(text, sizeof text, "%9s %6s %9s %10s %9s  %s", "seconds", "busy",
		 "launches", "mean", "rate", "op, device, scopes");
	line(arg, text);
	for (int i = 0; i < max && i < (int)p->rows.n && order[i]->count; i++) {
		const struct yk_row *r = order[i];
		double s = 1e-9 * (double)r->ns, n = (double)r->count;
		const bool products = r->flops > 8 * (double)r->bytes; // bound by arithmetic
		double rate = (products ? r->flops : (double)r->bytes) * 1e-9;
		yk_snprintf(text, sizeof text,
			 "%9.3f %5.1f%% %9llu %7.1f us %4.*f %s  %s %s  %s", s,
			 all ? 100 * (double)r->ns / (double)all : 0,
			 (unsigned long long)r->count, 1e6 * s / n, rate < 10 * s ? 1 : 0,
			 s > 0 ? rate / s : 0, products ? "GF/s" : "GB/s", r->op,
			 r->device, r->nodes);
		line(arg, text);
	}
	free(order);
}
