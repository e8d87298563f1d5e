// SPDX-License-Identifier: Apache-2.0
// The profiler.
#include "config.h"

#include "observe/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "observe/profile_priv.h"

YK_PARAM(most_events, "profile.events", YK_INT, "100000",
	 "pieces of work that a trace holds, the first ones", .most = INT64_MAX);

enum { MOST_PENDING = 4096 };

static int slot_of(const struct yk_profile *p, const struct yk_queue *q)
{
	int slot = 0;
	while (p->ctx->slot[slot].queue != q)
		slot++;
	return slot;
}

// What a report shows together: 0, the device with its copies, or 1, the CPU besides.
static int lane_of(int slot)
{
	return slot == YK_SLOT_CPU;
}

// Is what was enqueued on this lane done when the call returns?
static bool is_synchronous(const struct yk_profile *p, int lane)
{
	return lane || p->ctx->device == p->ctx->cpu;
}

static enum yk_busy kind_of(enum yk_work_kind work, const struct yk_step *s)
{
	switch (work) {
	case YK_WORK_UP:
	case YK_WORK_DOWN: return YK_BUSY_TRANSFER;
	case YK_WORK_WAIT: return YK_BUSY_WAIT;
	case YK_WORK_PLAN: return YK_BUSY_PLAN;
	case YK_WORK_STEP: break;
	}
	if (s->kind == YK_STEP_UP || s->kind == YK_STEP_DOWN || s->kind == YK_STEP_NUMBERS)
		return YK_BUSY_TRANSFER;
	if (s->kind == YK_STEP_FILL)
		return YK_BUSY_OTHER;
	switch (s->op.code) {
	case YOKE_OP_CONTRACT: return YK_BUSY_CONTRACT;
	case YOKE_OP_ATTENTION:
	case YOKE_OP_ATTENTION_BACK: return YK_BUSY_ATTENTION;
	}
	return YK_BUSY_OTHER;
}

// ---- pieces with their times ----

static void trace_piece(struct yk_profile *p, int lane, uint32_t row, uint64_t begin, uint64_t ns)
{
	if ((int64_t)p->traced >= yk_param_int(&most_events) ||
	    yk_grow(&p->trace, &p->trace_cap, p->traced + 1, sizeof *p->trace) < 0) {
		p->dropped++;
		return;
	}
	p->trace[p->traced++] = (struct yk_traced){
		.begin = begin, .ns = ns, .row = row, .slot = (uint16_t)lane
	};
}

static void piece(struct yk_profile *p, int slot, enum yk_busy kind, uint32_t row,
		  uint64_t begin, uint64_t ns)
{
	p->sum[lane_of(slot)][kind].ns += ns;
	if (row == YK_NIL)
		return;
	p->rows.row[row].ns += ns;
	p->rows.row[row].count++;
	trace_piece(p, slot, row, begin, ns);
}

static uint32_t row_of(struct yk_profile *p, int lane, enum yk_work_kind work,
		       const struct yk_plan *plan, uint64_t step)
{
	static const char *const name[] = {
		[YK_WORK_UP] = "put",
		[YK_WORK_DOWN] = "read",
		[YK_WORK_WAIT] = "wait",
		[YK_WORK_PLAN] = "plan",
	};
	if (!p->details || p->failed)
		return YK_NIL;
	const char *device = lane ? p->ctx->cpu->id : p->ctx->device->id;
	uint32_t row = work == YK_WORK_STEP ?
			       yk_row_of_step(&p->rows, p->ctx, plan, step) :
			       yk_row_of(&p->rows, name[work], device);
	if (row == YK_NIL) {
		p->failed = true;
		yk_warn("profile",
			"no memory for more rows; the table and the trace end here");
	}
	return row;
}

// ---- events of a device that runs behind the host ----

static struct yk_event *mark(struct yk_queue *q)
{
	struct yk_event *e = NULL;
	bool had = yoke_error_code() != 0;
	if (yk_event_mark(q, &e) < 0 && !had)
		yoke_error_clear();
	return e;
}

// What the host did last ends at this event.
static void close_host(struct yk_profile *p, struct yk_event *e)
{
	struct yk_pending *x = p->npending ? &p->pending[p->npending - 1] : NULL;
	if (x && !x->to && e)
		x->to = yk_event_ref(e);
}

// From when to when a piece counts; false: the device does not say.
static bool times(const struct yk_profile *p, const struct yk_pending *x, uint64_t *begin,
		  uint64_t *ns)
{
	const struct yoke_backend *ops = p->ctx->device->ops;
	uint64_t at;
	if (!p->timed[lane_of(x->slot)] || !p->anchor || !x->to || yk_event_wait(x->to) ||
	    ops->event_elapsed(x->from->handle, x->to->handle, ns) ||
	    ops->event_elapsed(p->anchor->handle, x->from->handle, &at))
		return false;
	*begin = p->anchored + at;
	if (x->kind == YK_BUSY_PLAN && *ns > x->ns) { // at the end of the gap
		*begin += *ns - x->ns;
		*ns = x->ns;
	}
	return true;
}

// Times of the oldest pieces, waiting for them; keeps at most `keep`.
static void resolve(struct yk_profile *p, size_t keep)
{
	size_t n = p->npending > keep ? p->npending - keep : 0;
	for (size_t i = 0; i < n; i++) {
		struct yk_pending *x = &p->pending[i];
		uint64_t begin, ns;
		bool had = yoke_error_code() != 0;
		if (times(p, x, &begin, &ns)) {
			piece(p, x->slot, x->kind, x->row, begin, ns);
		} else {
			if (p->timed[lane_of(x->slot)])
				yk_warn("profile",
					"%s keeps no times of its work: its steps are only "
					"counted",
					p->ctx->device->id);
			p->timed[lane_of(x->slot)] = false;
			if (x->kind == YK_BUSY_PLAN)
				piece(p, x->slot, x->kind, x->row, x->begin, x->ns);
		}
		if (!had)
			yoke_error_clear();
		yk_event_unref(x->from);
		yk_event_unref(x->to);
	}
	if (n)
		memmove(p->pending, p->pending + n, (p->npending - n) * sizeof *p->pending);
	p->npending -= n;
}

static void resolve_all(struct yk_profile *p)
{
	struct yk_event *e = p->npending ? mark(p->ctx->queue) : NULL;
	close_host(p, e);
	resolve(p, 0);
	yk_event_unref(e);
}

static void begin_events(struct yk_profile *p, struct yk_queue *q, int slot)
{
	struct yk_between *b = &p->between[slot];
	// Between the steps of a launch there is one event, unless something was enqueued unseen.
	if (b->last && (!b->follows || b->last->serial != q->marks)) {
		yk_event_unref(b->last);
		b->last = NULL;
	}
	if (b->last)
		return;
	b->last = mark(q);
	close_host(p, b->last);
	if (!p->anchor && b->last && !yk_event_sync(b->last)) {
		p->anchor = yk_event_ref(b->last);
		p->anchored = yk_nanoseconds() - p->started;
	}
	yk_event_done(b->last); // a driver may keep it back until it is asked, and it tells a time
}

static void add_pending(struct yk_profile *p, struct yk_event *to, int slot, enum yk_busy kind,
			uint32_t row, uint64_t ns)
{
	if (p->npending == MOST_PENDING)
		resolve(p, MOST_PENDING / 2);
	p->pending[p->npending++] = (struct yk_pending){
		.from = yk_event_ref(p->between[slot].last),
		.to = to,
		.begin = p->opened - p->started,
		.ns = ns,
		.row = row,
		.slot = (uint8_t)slot,
		.kind = (uint8_t)kind,
	};
}

static void end_events(struct yk_profile *p, struct yk_queue *q, int slot,
		       enum yk_busy kind, uint32_t row)
{
	struct yk_between *b = &p->between[slot];
	struct yk_event *to = b->last ? mark(q) : NULL;
	if (!to)
		return;
	add_pending(p, yk_event_ref(to), slot, kind, row, 0);
	yk_event_unref(b->last);
	b->last = to;
}

// ---- the observer ----

// Does the slot's next step begin as soon as this one ends?
static bool goes_on(const struct yk_plan *plan, uint64_t step)
{
	uint64_t next = step + 1;
	while (next < plan->steps && plan->step[next].slot != plan->step[step].slot)
		next++;
	return next < plan->steps && !plan->step[next].waits;
}

static bool by_events(const struct yk_profile *p, int lane)
{
	return p->details && p->timed[lane] && !is_synchronous(p, lane);
}

static void begin(struct yk_observer *o, struct yk_queue *q)
{
	struct yk_profile *p = (struct yk_profile *)o;
	int slot = slot_of(p, q);
	if (by_events(p, lane_of(slot)))
		begin_events(p, q, slot);
	p->opened = yk_nanoseconds();
}

static void end(struct yk_observer *o, struct yk_queue *q, enum yk_work_kind work,
		const struct yk_plan *plan, uint64_t n)
{
	struct yk_profile *p = (struct yk_profile *)o;
	uint64_t now = yk_nanoseconds();
	int slot = slot_of(p, q), lane = lane_of(slot);
	bool is_step = work == YK_WORK_STEP,
	     host = work == YK_WORK_WAIT || work == YK_WORK_PLAN;
	enum yk_busy kind = kind_of(work, is_step ? &plan->step[n] : NULL);
	bool copies = kind == YK_BUSY_TRANSFER; // and the host is there until it is done
	struct yk_busy_sum *s = &p->sum[lane][kind];
	s->pieces++;
	s->bytes += is_step ? plan->step[n].bytes : n;
	s->flops += kind == YK_BUSY_CONTRACT ? yk_step_flops(plan, n) : 0;
	bool events = by_events(p, lane);
	p->between[slot].follows = is_step && events && goes_on(plan, n);
	if (work == YK_WORK_WAIT && events)
		return; // for work that is timed itself
	uint32_t row = row_of(p, lane, work, plan, n);
	if (!host && events)
		end_events(p, q, slot, kind, row);
	else if (host && events && p->between[slot].last)
		add_pending(p, NULL, slot, kind, row, now - p->opened);
	else if (host || copies || is_synchronous(p, lane))
		piece(p, slot, kind, row, p->opened - p->started, now - p->opened);
}

// ---- entry points ----

void yk_profile_prepare(void)
{
	char name[80];
	struct yk_device *d = yk_device_choose(NULL);
	if (!d)
		return; // who makes the context will say it again
	snprintf(name, sizeof name, "%s.profile", d->backend->table.name);
	if (yk_param_find(name))
		yk_param_set(name, "1", YK_ARGUMENT);
}

size_t yk_profile_most(void)
{
	return (size_t)yk_param_int(&most_events);
}

void yk_profile_reading(struct yk_profile *p, int worker, uint64_t begin, uint64_t ns)
{
	const uint32_t row = p->failed || begin < p->started ? YK_NIL : yk_row_of(&p->rows, "read data", "host");
	if (row == YK_NIL)
		return;
	p->readers = worker + 2 > p->readers ? worker + 2 : p->readers;
	trace_piece(p, YK_SLOTS + 1 + worker, row, begin - p->started, ns);
}

static void free_between(struct yk_profile *p)
{
	for (int k = 0; k < YK_SLOTS; k++) {
		yk_event_unref(p->between[k].last);
		p->between[k].last = NULL;
	}
}

void yk_profile_start(struct yk_profile *p)
{
	resolve_all(p);
	free_between(p);
	yk_event_unref(p->anchor);
	p->anchor = NULL;
	memset(p->sum, 0, sizeof p->sum);
	for (size_t i = 0; i < p->rows.n; i++)
		p->rows.row[i].ns = p->rows.row[i].count = 0;
	p->traced = 0;
	p->dropped = 0;
	yoke_stats(&p->before);
	free(p->fell);
	p->nfell = yk_fallback_kinds(p->ctx);
	p->fell = calloc(p->nfell + 1, sizeof *p->fell);
	if (p->fell)
		yk_fallback_counts(p->ctx, p->fell);
	else
		p->nfell = 0; // then those before count too
	p->started = yk_nanoseconds();
}

struct yk_profile *yk_profile_new(bool details)
{
	struct yoke_context *ctx = yk_current();
	struct yk_profile *p = ctx ? calloc(1, sizeof *p) : NULL;
	if (p && details && !(p->pending = malloc(MOST_PENDING * sizeof *p->pending))) {
		free(p);
		p = NULL;
	}
	if (!p) {
		yk_fail(YOKE_ENOMEM, "profile: no memory");
		return NULL;
	}
	p->ctx = ctx;
	p->details = details;
	for (int lane = 0; lane < 2; lane++)
		p->timed[lane] = details || is_synchronous(p, lane);
	p->observer = (struct yk_observer){ .begin = begin, .end = end, .times = p->timed[lane_of(YK_SLOT_DEVICE)] };
	p->before.size = sizeof p->before;
	ctx->observer = &p->observer;
	yk_profile_start(p);
	return p;
}

void yk_profile_free(struct yk_profile *p)
{
	if (!p)
		return;
	p->ctx->observer = NULL;
	for (size_t i = 0; i < p->npending; i++) {
		yk_event_unref(p->pending[i].from);
		yk_event_unref(p->pending[i].to);
	}
	free_between(p);
	yk_event_unref(p->anchor);
	yk_rows_fini(&p->rows);
	free(p->trace);
	free(p->pending);
	free(p->fell);
	free(p);
}

double yk_profile_busy(struct yk_profile *p)
{
	uint64_t ns = 0;
	resolve_all(p);
	for (int lane = 0; lane < 2; lane++)
		for (int k = 0; k < YK_BUSY_KINDS; k++)
			ns += p->sum[lane][k].ns;
	return 1e-9 * (double)ns;
}

static int fallbacks_since(const struct yk_profile *p, struct yk_report *to)
{
	struct yoke_fallback *all = calloc(yk_fallback_kinds(p->ctx) + 1, sizeof *all);
	if (!all)
		return yk_fail(YOKE_ENOMEM, "profile: no memory");
	to->nfallback = (int)yk_fallback_list(p->ctx, (const uint64_t(*)[2])p->fell, p->nfell,
					      all);
	int most = sizeof to->fallback / sizeof *to->fallback;
	for (int i = 0; i < to->nfallback && i < most; i++)
		to->fallback[i] = all[i];
	free(all);
	return 0;
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

void yk_profile_top(const struct yk_profile *p, int most, yk_line_fn *line, void *arg)
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
	for (int i = 0; i < most && i < (int)p->rows.n && order[i]->count; i++) {
		const struct yk_row *r = order[i];
		double s = 1e-9 * (double)r->ns, n = (double)r->count;
		double rate = (r->flops > 0 ? r->flops : (double)r->bytes) * n * 1e-9;
		snprintf(text, sizeof text,
			 "%9.3f %5.1f%% %9llu %7.1f us %4.*f %s  %s %s  %s", s,
			 all ? 100 * (double)r->ns / (double)all : 0,
			 (unsigned long long)r->count, 1e6 * s / n, rate < 10 * s ? 1 : 0,
			 s > 0 ? rate / s : 0, r->flops > 0 ? "GF/s" : "GB/s", r->op,
			 r->device, r->nodes);
		line(arg, text);
	}
	free(order);
}
