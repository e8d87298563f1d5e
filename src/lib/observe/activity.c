// SPDX-License-Identifier: Apache-2.0
// Times activities of the profiled context by the host's clock or by events, and adds each time to
// a sum.
#include "config.h"

#include "observe/activity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "observe/telemetry.h"
#include "plan/planner.h"

// Reads the processor time of one activity in LOOKS: the system call may take as long as a short
// activity.
enum { LOOKS = 7 };

static int stream_of(const struct yk_profile *p, const struct yk_queue *q)
{
	int stream = 0;
	while (p->ctx->stream[stream].queue != q)
		stream++;
	return stream;
}

// Lane of the report: 0, the device with its copies, or 1, the CPU beside it.
static int lane_of(int stream)
{
	return stream == YK_STREAM_CPU;
}

// Whether work enqueued on this lane has finished when the call returns.
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
	case YOKE_OP_ATTENTION_BACKWARD: return YK_BUSY_ATTENTION;
	}
	return YK_BUSY_OTHER;
}

static uint64_t now(const struct yk_profile *p)
{
	return yk_nanoseconds() - p->started;
}

// Processor time of all threads of the process.
static uint64_t processor_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint8_t thread_of(struct yk_profile *p)
{
	const pthread_t self = pthread_self();
	size_t i = 0;
	while (i < p->threads && !pthread_equal(p->thread[i], self))
		i++;
	if (i == p->threads && i < sizeof p->thread / sizeof *p->thread - 1)
		p->thread[p->threads++] = self;
	return (uint8_t)i;
}

// ---- activities with their times ----

static void no_memory(struct yk_profile *p)
{
	if (!p->failed)
		yk_warn("profile", "no memory for more rows; the table and the trace end here");
	p->failed = true;
}

static bool has_room(struct yk_profile *p)
{
	return p->trace.events + p->trace.ranges + p->trace.counts < p->trace.max;
}

static void trace(struct yk_profile *p, const struct yk_traced *x)
{
	if (!has_room(p) || yk_grow(&p->trace.event, &p->trace.event_cap, p->trace.events + 1,
				    sizeof *p->trace.event) < 0)
		p->trace.dropped++;
	else
		p->trace.event[p->trace.events++] = *x;
}

static struct yk_range_sum *sum_of(struct yk_profile *p, uint32_t range)
{
	if (yk_grow(&p->path.sum, &p->path.sum_cap, range + (size_t)1, sizeof *p->path.sum) < 0)
		return NULL;
	for (; p->path.sums <= range; p->path.sums++)
		p->path.sum[p->path.sums] = (struct yk_range_sum){ 0 };
	return &p->path.sum[range];
}

// Adds an activity of a lane whose time is known.
static void activity(struct yk_profile *p, int kind, uint32_t range, const struct yk_traced *x)
{
	struct yk_range_sum *in;
	p->sum[lane_of(x->stream)][kind].ns += x->ns;
	if (x->row == YK_NIL)
		return;
	struct yk_row *r = &p->rows.row[x->row];
	r->min = r->ns + r->max && r->min < x->ns ? r->min : x->ns;
	r->max = r->max > x->ns ? r->max : x->ns;
	r->ns += x->ns;
	if ((in = sum_of(p, range)))
		in->ns += x->ns;
	trace(p, x);
}

// ---- events of a device that runs asynchronously to the host ----

static struct yk_event *mark(struct yk_queue *q)
{
	struct yk_event *e = NULL;
	bool had = yoke_error_code() != 0;
	if (yk_event_mark(q, &e) < 0 && !had)
		yoke_error_clear();
	return e;
}

// Ends the host's last work at this event.
static void close_host(struct yk_profile *p, struct yk_event *e)
{
	struct yk_pending *x = p->npending ? &p->pending[p->npending - 1] : NULL;
	if (x && !x->to && e)
		x->to = yk_event_ref(e);
}

// Determines the interval for which an activity counts; false: the device does not report it.
static bool times(const struct yk_profile *p, struct yk_pending *x)
{
	const struct yoke_backend *ops = p->ctx->device->ops;
	uint64_t at, ns;
	if (!p->timed[lane_of(x->activity.stream)] || !p->clock.anchor || !x->to ||
	    yk_event_wait(x->to) || ops->event_elapsed(x->from->handle, x->to->handle, &ns) ||
	    ops->event_elapsed(p->clock.anchor->handle, x->from->handle, &at))
		return false;
	if (x->kind == YK_BUSY_PLAN && ns > x->ns) { // at the end of the gap
		at += ns - x->ns;
		ns = x->ns;
	}
	x->activity.begin = at;
	x->activity.ns = ns;
	x->activity.mapped = false;
	return true;
}

// Resolves the times of the oldest activities, waiting for them; keeps at most `keep` pending.
static void resolve(struct yk_profile *p, size_t keep)
{
	size_t n = p->npending > keep ? p->npending - keep : 0;
	for (size_t i = 0; i < n; i++) {
		struct yk_pending *x = &p->pending[i];
		const int lane = lane_of(x->activity.stream);
		bool had = yoke_error_code() != 0;
		if (times(p, x)) {
			activity(p, x->kind, x->range, &x->activity);
		} else {
			if (p->timed[lane])
				yk_warn("profile",
					"%s does not report times of its work: its steps are only "
						"counted",
					p->ctx->device->id);
			p->timed[lane] = false;
			p->observer.times = p->timed[0];
			x->activity.begin = x->activity.host;
			x->activity.ns = x->ns;
			x->activity.mapped = true;
			if (x->kind == YK_BUSY_PLAN)
				activity(p, x->kind, x->range, &x->activity);
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

void yk_activity_resolve(struct yk_profile *p)
{
	struct yk_event *e = p->npending ? mark(p->ctx->queues.steps) : NULL;
	close_host(p, e);
	resolve(p, 0);
	yk_event_unref(e);
}

// Records an event on an idle queue and determines its completion time: the midpoint of two host
// times around it.
static struct yk_event *anchor(const struct yk_profile *p, struct yk_queue *q, uint64_t *at,
			       uint64_t *error)
{
	yk_queue_drain(q);
	const uint64_t from = now(p);
	struct yk_event *e = mark(q);
	if (e && yk_event_sync(e) < 0) {
		yk_event_unref(e);
		e = NULL;
	}
	const uint64_t to = now(p);
	*at = from + (to - from) / 2;
	*error = (to - from + 1) / 2;
	return e;
}

void yk_activity_close(struct yk_profile *p)
{
	uint64_t at, error, ns;
	p->clock.drift = 1;
	p->clock.error = p->clock.anchor ? p->clock.anchor_error : 0;
	struct yk_event *last =
		p->clock.anchor ? anchor(p, p->ctx->queues.steps, &at, &error) : NULL;
	bool had = yoke_error_code() != 0;
	if (last &&
	    !p->ctx->device->ops->event_elapsed(p->clock.anchor->handle, last->handle, &ns) && ns) {
		p->clock.error = p->clock.anchor_error > error ? p->clock.anchor_error : error;
		// a clock drift smaller than the measurement error is ignored
		const double off = (double)(at - p->clock.anchored) - (double)ns;
		if (fabs(off) > (double)(p->clock.anchor_error + error))
			p->clock.drift = (double)(at - p->clock.anchored) / (double)ns;
	}
	if (!had)
		yoke_error_clear();
	yk_event_unref(last);
}

static void begin_events(struct yk_profile *p, struct yk_queue *q, int stream)
{
	struct yk_between *b = &p->between[stream];
	if (!p->clock.anchor)
		p->clock.anchor =
			anchor(p, p->ctx->queues.steps, &p->clock.anchored, &p->clock.anchor_error);
	// Between the steps of a launch there is one event, unless work was enqueued that no
	// observer saw.
	if (b->last && (!b->follows || b->last->serial != q->marks)) {
		yk_event_unref(b->last);
		b->last = NULL;
	}
	if (b->last)
		return;
	b->last = mark(q);
	close_host(p, b->last);
	yk_event_done(b->last); // a driver may hold it back until queried, and its time is needed
}

static void add_pending(struct yk_profile *p, struct yk_event *to, int kind, uint32_t range,
			const struct yk_traced *x)
{
	if (p->npending == YK_MAX_PENDING)
		resolve(p, YK_MAX_PENDING / 2);
	p->pending[p->npending++] = (struct yk_pending){
		.from = yk_event_ref(p->between[x->stream].last),
		.to = to,
		.ns = x->ns,
		.activity = *x,
		.range = range,
		.kind = (uint8_t)kind,
	};
}

static void end_events(struct yk_profile *p, struct yk_queue *q, int kind, uint32_t range,
		       const struct yk_traced *x)
{
	struct yk_between *b = &p->between[x->stream];
	struct yk_event *to = b->last ? mark(q) : NULL;
	if (!to)
		return;
	add_pending(p, yk_event_ref(to), kind, range, x);
	yk_event_unref(b->last);
	b->last = to;
}

// ---- first readers of uploads ----

static void brought(struct yk_profile *p, const struct yk_storage *s, const struct yk_plan *plan,
		    const struct yk_ref *ref, uint32_t number)
{
	p->upload.unread[p->upload.n++ % (sizeof p->upload.unread / sizeof *p->upload.unread)] =
		(struct yk_brought){ .storage = s,
				     .plan = plan ? plan->serial : 0,
				     .ref = ref ? *ref : (struct yk_ref){ 0 },
				     .number = number };
}

static bool reads(const struct yk_profile *p, const struct yk_plan *plan, const struct yk_ref *r,
		  const struct yk_brought *b)
{
	if (b->storage)
		return r->where == YK_AT_LEAF &&
		       p->ctx->leaves.at[p->ctx->planner->marks.leaf[r->index]].storage ==
			       b->storage;
	return b->plan == plan->serial && r->where == b->ref.where && r->stream == b->ref.stream &&
	       r->index == b->ref.index && r->offset == b->ref.offset;
}

// number + 1 of the upload that the step is the first to read; 0: none.
static uint32_t upload_of(struct yk_profile *p, const struct yk_plan *plan, const struct yk_step *s)
{
	for (size_t k = 0; k < sizeof p->upload.unread / sizeof *p->upload.unread; k++) {
		struct yk_brought *b = &p->upload.unread[k];
		if (!b->storage && !b->plan)
			continue;
		for (uint32_t i = s->op.nout; i < s->views; i++)
			if (reads(p, plan, &plan->ref[s->view + i], b)) {
				const uint32_t from = b->number + 1;
				*b = (struct yk_brought){ 0 };
				return from;
			}
	}
	return 0;
}

// ---- the observer ----

// Whether the stream's next step begins as soon as this one ends.
static bool goes_on(const struct yk_plan *plan, uint64_t step)
{
	uint64_t next = step + 1;
	while (next < plan->steps && plan->step[next].stream != plan->step[step].stream)
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
	int stream = stream_of(p, q);
	if (by_events(p, lane_of(stream)))
		begin_events(p, q, stream);
	const bool looks =
		p->details && p->number % LOOKS == 0 && is_synchronous(p, lane_of(stream));
	p->worked = looks ? processor_ns() : 0;
	p->opened = yk_nanoseconds();
}

static void count(struct yk_profile *p, struct yk_traced_count c)
{
	c.at = now(p);
	if (!has_room(p) || yk_grow(&p->trace.count, &p->trace.count_cap, p->trace.counts + 1,
				    sizeof *p->trace.count) < 0)
		p->trace.dropped++;
	else
		p->trace.count[p->trace.counts++] = c;
}

// Records the pool's bytes and the latest telemetry of the device, if they changed.
static void count_all(struct yk_profile *p)
{
	struct yk_pool_stats s;
	struct yoke_sample d;
	uint64_t ns;
	yk_pool_stats(p->ctx->device->pool, &s);
	if (!p->trace.counts || p->sample.allocated != s.allocated_bytes.current ||
	    p->sample.reserved != s.reserved_bytes.current)
		count(p, (struct yk_traced_count){ .allocated = s.allocated_bytes.current,
						   .reserved = s.reserved_bytes.current });
	p->sample.allocated = s.allocated_bytes.current;
	p->sample.reserved = s.reserved_bytes.current;
	if (!yk_telemetry_last(p->ctx->device, &d, &ns) || ns <= p->sample.at)
		return;
	p->sample.at = ns;
	count(p, (struct yk_traced_count){
			 .util = d.known & YOKE_SAMPLE_UTIL ? (float)d.util : NAN,
			 .power_w = d.known & YOKE_SAMPLE_POWER ? (float)d.power_w : NAN,
			 .sampled = true });
}

// The row of the activity that ends, and its contributions other than time; YK_NIL: none.
static uint32_t row_of(struct yk_profile *p, int stream, enum yk_work_kind work,
		       const struct yk_plan *plan, uint64_t n, uint64_t host_ns, uint32_t *range)
{
	static const char *const name[] = {
		[YK_WORK_UP] = "put",
		[YK_WORK_DOWN] = "read",
		[YK_WORK_WAIT] = "wait",
		[YK_WORK_PLAN] = "plan",
	};
	const struct yk_step_row *s = NULL;
	*range = p->ctx->graph.range;
	if (!p->details || p->failed)
		return YK_NIL;
	if (work == YK_WORK_STEP && (n == 0 || p->launched_plan != plan->serial)) {
		p->launch++;
		p->launched_plan = plan->serial;
		count_all(p);
		if (p->rows.flags & YOKE_PROFILE_MEMORY)
			yk_peak_note(p, plan);
	}
	if (work == YK_WORK_STEP)
		s = yk_row_of_step(&p->rows, p->ctx, plan, n, p->launch);
	const uint32_t row = work == YK_WORK_STEP ? (s ? s->row : YK_NIL) :
						    yk_row_of(&p->rows, p->ctx, name[work],
							      p->ctx->stream[stream].device->id);
	if (row == YK_NIL) {
		no_memory(p);
		return row;
	}
	struct yk_row *r = &p->rows.row[row];
	r->count++;
	r->host_ns += host_ns;
	r->bytes += s ? s->bytes : n;
	if (p->worked && is_synchronous(p, lane_of(stream))) {
		r->cpu_ns += processor_ns() - p->worked;
		r->cpu_of_ns += host_ns;
	}
	if (s) {
		*range = s->range;
		r->flops += s->flops;
		r->growth += plan->step[n].growth;
	}
	return row;
}

static void end(struct yk_observer *o, struct yk_queue *q, enum yk_work_kind work,
		const struct yk_plan *plan, uint64_t n)
{
	struct yk_profile *p = (struct yk_profile *)o;
	uint64_t ns = yk_nanoseconds() - p->opened;
	int stream = stream_of(p, q), lane = lane_of(stream);
	bool is_step = work == YK_WORK_STEP,
	     host = work == YK_WORK_WAIT || work == YK_WORK_PLAN;
	const struct yk_step *step = is_step ? &plan->step[n] : NULL;
	enum yk_busy kind = kind_of(work, step);
	bool copies = kind == YK_BUSY_TRANSFER; // and the host blocks until it is done
	struct yk_busy_sum *s = &p->sum[lane][kind];
	s->count++;
	s->bytes += is_step ? step->bytes : n;
	s->flops += kind == YK_BUSY_CONTRACT ? yk_step_flops(plan, n) : 0;
	bool events = by_events(p, lane);
	p->between[stream].follows = is_step && events && goes_on(plan, n);
	uint32_t range = 0, number = p->number++;
	struct yk_traced x = {
		.begin = p->opened - p->started,
		.ns = ns,
		.host = p->opened - p->started,
		.host_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX,
		.number = number,
		.stream = (uint8_t)stream,
		.thread = p->details ? thread_of(p) : 0,
		.apart = events && !host,
		.mapped = true,
	};
	if (work == YK_WORK_WAIT && events) { // for work that is timed itself
		x.stream = YK_HOST_ACTIVITY;
		x.row = p->failed ? YK_NIL : yk_row_of(&p->rows, p->ctx, "wait", "host");
		if (x.row != YK_NIL)
			trace(p, &x);
		return;
	}
	x.row = row_of(p, stream, work, plan, n, ns, &range);
	if (p->details && is_step && x.row != YK_NIL)
		x.from = upload_of(p, plan, step);
	if (p->details && (work == YK_WORK_UP || (is_step && step->kind == YK_STEP_UP)))
		brought(p, is_step ? NULL : p->ctx->uploads.moved, plan,
			is_step ? &plan->ref[step->view] : NULL, number);
	if (!host && events)
		end_events(p, q, kind, range, &x);
	else if (host && events && p->between[stream].last)
		add_pending(p, NULL, kind, range, &x);
	else if (host || copies || is_synchronous(p, lane))
		activity(p, kind, range, &x);
}

// ---- ranges ----

static void range_ends(struct yk_profile *p, struct yk_open_range r)
{
	const uint64_t ns = now(p) - r.begin;
	struct yk_range_sum *s = sum_of(p, r.path);
	if (s) {
		s->calls++;
		s->host_ns += ns;
	}
	if (!has_room(p) || yk_grow(&p->trace.range, &p->trace.range_cap, p->trace.ranges + 1,
				    sizeof *p->trace.range) < 0)
		p->trace.dropped++;
	else
		p->trace.range[p->trace.ranges++] =
			(struct yk_traced_range){ r.begin, ns, r.path, thread_of(p) };
}

static void on_range(struct yk_observer *o, uint32_t path, bool begins)
{
	struct yk_profile *p = (struct yk_profile *)o;
	if (begins &&
	    yk_grow(&p->path.open, &p->path.open_cap, p->path.opens + 1, sizeof *p->path.open) == 0)
		p->path.open[p->path.opens++] = (struct yk_open_range){ path, now(p) };
	else if (begins)
		no_memory(p);
	else if (p->path.opens && p->path.open[p->path.opens - 1].path == path)
		range_ends(p, p->path.open[--p->path.opens]);
}

void yk_activity_ranges_begin(struct yk_profile *p)
{
	size_t n = 0;
	for (const struct yk_range_open *r = p->ctx->observe.range; r; r = r->outer)
		n++;
	p->path.opens = 0;
	if (yk_grow(&p->path.open, &p->path.open_cap, n + 1, sizeof *p->path.open) < 0)
		return;
	p->path.opens = n;
	for (const struct yk_range_open *r = p->ctx->observe.range; r; r = r->outer)
		p->path.open[--n] = (struct yk_open_range){ r->path, now(p) };
}

void yk_activity_ranges_end(struct yk_profile *p)
{
	while (p->path.opens)
		range_ends(p, p->path.open[--p->path.opens]);
}

void yk_activity_init(struct yk_profile *p)
{
	for (int lane = 0; lane < 2; lane++)
		p->timed[lane] = p->details || is_synchronous(p, lane);
	p->observer = (struct yk_observer){ .begin = begin,
					    .end = end,
					    .range = p->details ? on_range : NULL,
					    .times = p->timed[lane_of(YK_STREAM_DEVICE)] };
}
