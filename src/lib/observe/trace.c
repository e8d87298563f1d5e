// SPDX-License-Identifier: Apache-2.0
// Writes a profile in Chrome's trace format: times in microseconds with three decimals.
//
// A lane is a queue of a device or a thread of the host.  Events of a lane are sorted by begin and
// nest properly: events of a queue do not overlap, and events of a thread are ranges and the
// enqueueing of work in them.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "observe/profile_state.h"

enum { HOST_LANE = 100, READING_LANE = 400, TAIL = 256, BUFFER = 1 << 16 };

struct out {
	struct yk_file_writer w;
	char *text; // output buffer; or, in memory, the whole text
	size_t n, cap;
	bool kept;
	int process;    // its number in the trace, starting at 1
	uint64_t later; // nanoseconds from the trace's zero to its own
	uint64_t bytes, max, left_out;
	bool first;
	int code;
};

static void flush(struct out *o)
{
	if (o->code == 0 && o->n)
		o->code = yk_file_add(&o->w, o->text, o->n);
	o->n = 0;
}

static void put(struct out *o, const char *text, size_t n)
{
	if (o->kept && yk_grow(&o->text, &o->cap, o->n + n + 1, 1) < 0) {
		o->code = o->code ? o->code : YOKE_ENOMEM;
		return;
	}
	if (!o->kept && o->n + n > BUFFER)
		flush(o);
	if (!o->kept && n > BUFFER) {
		o->code = o->code ? o->code : yk_file_add(&o->w, text, n);
	} else {
		memcpy(o->text + o->n, text, n);
		o->n += n;
	}
	o->bytes += n;
}

// Writes an event from its beginning and optional rest (NULL: none).  False: the trace is full.
__attribute__((format(printf, 3, 4)))
static bool event(struct out *o, const char *rest, const char *fmt, ...)
{
	char line[400];
	va_list ap;
	va_start(ap, fmt);
	int n = yk_vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	const size_t more = rest ? strlen(rest) : 0;
	if (o->bytes + (size_t)n + more + TAIL > o->max) {
		o->left_out++;
		return false;
	}
	if (!o->first)
		put(o, ",\n", 2);
	o->first = false;
	put(o, line, (size_t)n);
	if (more)
		put(o, rest, more);
	return true;
}

// Name, category and arguments that all activities of a row share, as the end of a JSON object.
static char *row_text(const struct yk_row *r)
{
	const double n = r->count ? (double)r->count : 1;
	json_t *args = json_pack("{s:f}", "bytes", (double)r->bytes / n), *o;
	const struct {
		const char *key, *value;
	} part[] = { { "nodes", r->nodes }, { "implementation", r->impl }, { "shapes", r->shapes },
		     { "range", r->range }, { "site", r->site } };
	if (r->flops == r->flops)
		json_object_set_new(args, "flops", json_real(r->flops / n));
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (*part[i].value) // strings that are not UTF-8 are omitted
			json_object_set_new(args, part[i].key, json_string(part[i].value));
	o = json_pack("{s:s, s:s, s:o}", "name", r->op, "cat", r->device, "args", args);
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

// "name": ... for any string, as the end of a JSON object.
static char *name_text(const char *name)
{
	json_t *o = json_pack("{s:s}", "name", name);
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

static void lane_name(struct out *o, int lane, const char *name, const char *what)
{
	char whole[160];
	snprintf(whole, sizeof whole, "%s%s", name, what);
	char *text = name_text(whole);
	if (text)
		event(o, "}",
		      "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":%s",
		      o->process, lane, text);
	free(text);
}

static void lanes(struct out *o, const struct yk_profile *p)
{
	static const char *const what[YK_STREAMS] = {
		[YK_STREAM_DEVICE] = " compute", [YK_STREAM_UP] = " up", [YK_STREAM_DOWN] = " down"
	};
	char name[32] = "yoke";
	if (p->trace.ranks > 1)
		snprintf(name, sizeof name, "rank %d", p->trace.rank);
	event(o, NULL,
	      "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}",
	      o->process, name);
	for (int k = 0; k < YK_STREAMS; k++)
		if (!k || p->ctx->stream[k].queue != p->ctx->queues.steps)
			lane_name(o, k, p->ctx->stream[k].device->id, what[k] ? what[k] : "");
	for (size_t i = 0; i < p->threads; i++) {
		char number[32];
		snprintf(number, sizeof number, " %zu", i);
		lane_name(o, HOST_LANE + (int)i, "host", i ? number : "");
	}
}

#define US(ns) (ns) / 1000, (ns) % 1000
#define US_FORMAT "%" PRIu64 ".%03" PRIu64

static bool complete(struct out *o, int lane, uint64_t begin, uint64_t ns, const char *rest)
{
	begin += o->later;
	return event(o, rest,
		     "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":" US_FORMAT ",\"dur\":" US_FORMAT
		     ",",
		     o->process, lane, US(begin), US(ns));
}

// A flow arrow from an activity on one lane to an activity on another.
static void arrow(struct out *o, const char *name, uint64_t id, int from, uint64_t from_ns, int to,
		  uint64_t to_ns)
{
	from_ns += o->later;
	to_ns += o->later;
	id += (uint64_t)(o->process - 1) << 40;
	if (event(o, NULL,
		  "{\"ph\":\"s\",\"pid\":%d,\"tid\":%d,\"ts\":" US_FORMAT ",\"id\":%" PRIu64
		  ",\"name\":\"%s\",\"cat\":\"flow\"}",
		  o->process, from, US(from_ns), id, name))
		event(o, NULL,
		      "{\"ph\":\"f\",\"bp\":\"e\",\"pid\":%d,\"tid\":%d,\"ts\":" US_FORMAT
		      ",\"id\":%" PRIu64 ",\"name\":\"%s\",\"cat\":\"flow\"}",
		      o->process, to, US(to_ns), id, name);
}

// ---- lanes of queues ----

static const struct yk_traced *numbered(const struct yk_profile *p, uint32_t number)
{
	size_t a = 0, b = p->trace.events;
	while (a < b) {
		const size_t m = a + (b - a) / 2;
		if (p->trace.event[m].number < number)
			a = m + 1;
		else
			b = m;
	}
	return a < p->trace.events && p->trace.event[a].number == number ? &p->trace.event[a] :
	       NULL;
}

static void queues(struct out *o, const struct yk_profile *p, char *const *row)
{
	for (size_t i = 0; i < p->trace.events; i++) {
		const struct yk_traced *x = &p->trace.event[i];
		if (x->stream == YK_HOST_ACTIVITY ||
		    !complete(o, x->stream, x->begin, x->ns, row[x->row] + 1))
			continue; // the opening brace was written here
		if (x->apart)
			arrow(o, "enqueued", 2 * (uint64_t)x->number + 1, HOST_LANE + x->thread,
			      x->host, x->stream, x->begin);
		const struct yk_traced *up = x->from ? numbered(p, x->from - 1) : NULL;
		if (up)
			arrow(o, "read", 2 * (uint64_t)x->number + 2, up->stream, up->begin,
			      x->stream, x->begin);
	}
}

// ---- lanes of threads ----

struct host_event {
	uint64_t begin, ns;
	uint32_t at; // row, or path of a range
	uint8_t thread;
	bool range;
};

// Sorts by begin; of two that begin together the longer first, and a range before its contents.
static int by_begin(const void *a, const void *b)
{
	const struct host_event *x = a, *y = b;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->range != y->range)
		return x->range ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int threads(struct out *o, const struct yk_profile *p, char *const *row)
{
	struct host_event *all = malloc((p->trace.events + p->trace.ranges + 1) * sizeof *all);
	size_t n = 0;
	if (!all)
		return YOKE_ENOMEM;
	for (size_t i = 0; i < p->trace.events; i++) {
		const struct yk_traced *x = &p->trace.event[i];
		if (x->apart || x->stream == YK_HOST_ACTIVITY)
			all[n++] = (struct host_event){ x->host, x->host_ns, x->row, x->thread,
							false };
	}
	for (size_t i = 0; i < p->trace.ranges; i++) {
		const struct yk_traced_range *x = &p->trace.range[i];
		all[n++] = (struct host_event){ x->begin, x->ns, x->path, x->thread, true };
	}
	qsort(all, n, sizeof *all, by_begin);
	for (size_t i = 0; i < n; i++) {
		const char *path =
			all[i].range ? yk_path_name(&p->ctx->observe.ranges, all[i].at) : NULL;
		const char *last = path ? strrchr(path, '/') : NULL;
		char *text = path ? name_text(last ? last + 1 : path) : NULL;
		const char *rest = path ? text : row[all[i].at];
		if (rest)
			complete(o, HOST_LANE + all[i].thread, all[i].begin, all[i].ns, rest + 1);
		free(text);
	}
	free(all);
	return 0;
}

// Lanes of the loader's threads.
static void readings(struct out *o, const struct yk_profile *p)
{
	int last = -2;
	for (size_t i = 0; i < p->trace.readings; i++)
		last = p->trace.reading[i].worker > last ? p->trace.reading[i].worker : last;
	for (int k = -1; k <= last; k++) {
		char name[40] = "data, read by the loop";
		if (k >= 0)
			snprintf(name, sizeof name, "data worker %d", k);
		lane_name(o, READING_LANE + 1 + k, name, "");
	}
	for (size_t i = 0; i < p->trace.readings; i++) {
		const struct yk_traced_reading *x = &p->trace.reading[i];
		complete(o, READING_LANE + 1 + x->worker, x->begin, x->ns,
			 "\"name\":\"read data\"}");
	}
}

static void counters(struct out *o, const struct yk_profile *p)
{
	for (size_t i = 0; i < p->trace.counts; i++) {
		const struct yk_traced_count *c = &p->trace.count[i];
		const uint64_t at = c->at + o->later;
		if (!c->sampled)
			event(o, NULL,
			      "{\"ph\":\"C\",\"pid\":%d,\"ts\":" US_FORMAT
			      ",\"name\":\"pool\",\"args\":{\"allocated\":%" PRIu64
			      ",\"free\":%" PRIu64 "}}",
			      o->process, US(at), c->allocated, c->reserved - c->allocated);
		if (c->sampled && !isnan(c->util))
			event(o, NULL,
			      "{\"ph\":\"C\",\"pid\":%d,\"ts\":" US_FORMAT
			      ",\"name\":\"busy %%\",\"args\":{\"busy\":%.1f}}",
			      o->process, US(at), 100 * (double)c->util);
		if (c->sampled && !isnan(c->power_w))
			event(o, NULL,
			      "{\"ph\":\"C\",\"pid\":%d,\"ts\":" US_FORMAT
			      ",\"name\":\"power W\",\"args\":{\"power\":%.1f}}",
			      o->process, US(at), (double)c->power_w);
	}
}

// All events of one context.
static int events(struct out *o, struct yk_profile *p)
{
	char **row = calloc(p->rows.n + 1, sizeof *row);
	int e = row ? 0 : YOKE_ENOMEM;
	o->process = p->trace.rank + 1;
	o->later = p->trace.later;
	for (size_t i = 0; i < p->rows.n && e == 0; i++)
		if (!(row[i] = row_text(&p->rows.row[i])))
			e = YOKE_ENOMEM;
	if (e == 0) {
		lanes(o, p);
		counters(o, p);
		e = threads(o, p, row);
		queues(o, p, row);
		readings(o, p);
		p->trace.dropped += o->left_out;
	}
	for (size_t i = 0; row && i < p->rows.n; i++)
		free(row[i]);
	free(row);
	return e ? e : o->code;
}

static int write_all(struct out *o, struct yk_profile *p, int others, char *const *other)
{
	static const char head[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
	char tail[TAIL];
	put(o, head, sizeof head - 1);
	const int e = events(o, p);
	for (int i = 0; i < others; i++) {
		put(o, ",\n", 2);
		put(o, other[i], strlen(other[i]));
	}
	int n = snprintf(tail, sizeof tail,
			 "\n],\"dropped\":%" PRIu64 ",\"shifted\":%" PRIu64
			 ",\"clock_error_us\":" US_FORMAT "}\n",
			 p->trace.dropped, p->clock.shifted, US(p->clock.error));
	put(o, tail, (size_t)n);
	flush(o);
	return e ? e : o->code;
}

int yk_profile_trace_max(struct yk_profile *p, const char *path, uint64_t max_bytes, int others,
			 char *const *other)
{
	struct out o = { .text = malloc(BUFFER), .max = max_bytes, .first = true };
	int e = o.text ? yk_file_begin(&o.w, path) : YOKE_ENOMEM;
	if (o.text && e == 0) {
		e = write_all(&o, p, others, other);
		if (e == 0)
			e = yk_file_commit(&o.w);
		else
			yk_file_abort(&o.w);
	}
	if (e == YOKE_ENOMEM)
		yk_fail(e, "%s: no memory for the trace", path);
	free(o.text);
	return e;
}

char *yk_profile_events(struct yk_profile *p)
{
	struct out o = { .kept = true,
			 .max = yk_profile_trace_bytes() / (uint64_t)p->trace.ranks,
			 .first = true };
	yk_profile_settle(p);
	int e = events(&o, p);
	if (e == 0 && yk_grow(&o.text, &o.cap, o.n + 1, 1) < 0)
		e = YOKE_ENOMEM;
	if (e < 0) {
		yk_fail(e, "profile: no memory for the trace of rank %d", p->trace.rank);
		free(o.text);
		return NULL;
	}
	o.text[o.n] = '\0';
	return o.text;
}
