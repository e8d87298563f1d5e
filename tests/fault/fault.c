// SPDX-License-Identifier: Apache-2.0
// A backend over host memory that misbehaves on demand. A private CPU backend computes for it, so
// its numbers are the CPU's; its events are records that a fault can mark as failed. Settings arm
// faults for a whole process, ext("fault") (fault.h) for a test that continues after them.
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "yoke-plugin.h"

yoke_plugin_init_fn yoke_cpu_init;

// X(name, what fails): calls of these kinds are counted, over all threads
#define FAULTS(X) \
	X(init, "yoke_plugin_init") \
	X(probe, "probe") \
	X(info, "device_info") \
	X(segment, "segment_new") \
	X(queue, "queue_new") \
	X(put, "put") \
	X(get, "get") \
	X(copy, "copy") \
	X(fill, "fill") \
	X(prepare, "prepare, where kernels are built") \
	X(run, "run") \
	X(late, "a run, as its queue's next event says when it is asked") \
	X(stuck, "a run: it is never done, nor are events behind it") \
	X(record, "graph_begin") \
	X(recorded, "graph_end") \
	X(replay, "graph_run") \
	X(mark, "event_mark") \
	X(event, "an event, as it says when it is asked") \
	X(after, "event_after") \
	X(done, "event_done") \
	X(wait, "event_wait")

enum fault {
#define X(name, what) FAULT_##name,
	FAULTS(X)
#undef X
	FAULT_COUNT
};

static const char *const fault_name[] = {
#define X(name, what) #name,
	FAULTS(X)
#undef X
};

// Names of ops, in capitals, by code.
static const char *const op_name[YOKE_OP_LIMIT] = {
#define X(name, number) [number] = #name,
	YOKE_OP_CODES(X)
#undef X
};

struct segment {
	void *cpu; // its handle in the CPU backend, and the handle here
	uint64_t bytes;
	bool used;      // it holds memory
	bool addressed; // in the host
	bool pinned;
	struct segment *next;
};

// Deferred work.
struct work {
	enum { WORK_PUT, WORK_GET, WORK_COPY, WORK_FILL, WORK_RUN, WORK_AFTER } kind;
	void *segment, *to; // to: host memory, of a get; a segment, of a copy
	const void *from;   // of a put
	uint64_t offset, to_offset, bytes;
	unsigned char pattern[8];
	uint32_t pattern_bytes;
	struct handle *handle; // of a run, ..
	struct yoke_op *op;    // .. and this one's copy, with its views and map
	// of an after: number of operations of that queue that must be done first
	struct queue *behind;
	long upto;
	struct work *next;
};

// Operations recorded but not yet executed.
struct graph {
	struct work *first, **last;
};

struct queue {
	void *cpu;
	struct graph *recording; // or NULL
	long trouble; // number of the last late failure, 0: none
	bool stuck;
	long ends;        // by the clock: when all enqueued work ends
	long runs;        // so far
	atomic_long over; // number of those that an event has reported complete
	struct work *first, **last; // deferred ones
	long put_off, done;     // operations so far; completed ones
	int code;               // unreported error of one of them
	struct queue *next;
};

struct event {
	struct queue *queue;
	long runs; // before it
	long upto; // operations deferred before it
	long trouble;
	bool stuck;
	long at;           // by the clock
	atomic_long polls; // polls until it is done
};

static const struct yoke_host *host;
static const struct yoke_backend *cpu;
static atomic_long nth[FAULT_COUNT]; // 0: never
static atomic_long calls[FAULT_COUNT], armed_at[FAULT_COUNT];
static atomic_long troubles, told; // late failures so far; the last one that was reported
static atomic_long alive, lag, memory_limit;
static atomic_long early; // handles released while their runs were in progress
static atomic_bool overcommit;
static atomic_long now, put_takes, run_takes; // the clock: it advances when the host waits
static long pinned_limit, pinned; // bytes of pinned segments
static bool null, sticky, addressed, unified, defers;
// 0: deferred work waits until it must be done; otherwise it may be done earlier
static unsigned long chance;
static uint64_t max_segment, memory_free, devices, impls, impls_max, multiple;
static long only; // the implementation to which faults of runs apply, 0: all
static const char *lacks, *absurd, *uuid;
static char how[16] = "error", wrong[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the lock that follows
static struct segment *segments;
// protects the lock that follows, and the deferred work
static pthread_mutex_t late = PTHREAD_MUTEX_INITIALIZER;
static struct queue *queues; // all that ever existed, because events may point to those that ended
static uint64_t in_use;

// ---- faults ----

// The number of this call since the fault was armed, if it must fail; else 0.
static long strikes(enum fault what)
{
	long n = 1 + atomic_fetch_add(&calls[what], 1), at = atomic_load(&nth[what]);
	n -= atomic_load(&armed_at[what]);
	return at && (n == at || (sticky && n > at)) ? n : 0;
}

static int fail(int code, const char *text)
{
	host->error(code, text);
	return code;
}

// 0, or the error that a failing call must return; a hanging call does not return.
static int fault(enum fault what)
{
	char line[64];
	long n = strikes(what);
	if (!n)
		return 0;
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "exit"))
		_exit(3);
	while (!strcmp(how, "hang"))
		pause();
	bool memory = what == FAULT_segment || !strcmp(how, "enomem");
	snprintf(line, sizeof line, "fault.%s: call %ld", fault_name[what], n);
	return fail(memory ? YOKE_ENOMEM : YOKE_EDEVICE, line);
}

// Does a list of ops ("softmax,contract") name this one?
static bool names(const char *list, int code)
{
	const char *name = code < YOKE_OP_LIMIT ? op_name[code] : NULL;
	size_t n = name ? strlen(name) : 0;
	for (; name && *list; list += *list == ',') {
		size_t k = strcspn(list, ","), i = 0;
		while (i < k && i < n && toupper((unsigned char)list[i]) == name[i])
			i++;
		if (i == k && i == n)
			return true;
		list += k;
	}
	return false;
}

// ---- devices ----

static int probe(uint32_t *n)
{
	uint32_t one;
	int code = fault(FAULT_probe);
	if (!code)
		code = cpu->probe(&one);
	if (!code)
		*n = (uint32_t)devices;
	return code;
}

static void make_absurd(struct yoke_device_info *i)
{
	if (!strcmp(absurd, "align"))
		i->align = 3;
	else if (!strcmp(absurd, "memory"))
		i->memory = 0;
	else if (!strcmp(absurd, "segment"))
		i->max_segment = 0;
	else if (!strcmp(absurd, "name"))
		memset(i->name, 0xff, sizeof i->name);
}

static int device_info(uint32_t device, struct yoke_device_info *i)
{
	int code = fault(FAULT_info);
	if (code)
		return code;
	if (device >= devices)
		return YOKE_ENODEV;
	i->kind = YOKE_DEVICE_OTHER;
	i->flags = YOKE_DEVICE_F64 | YOKE_DEVICE_F16 | (unified ? YOKE_DEVICE_UNIFIED : 0);
	i->memory = (uint64_t)8 << 30;
	i->max_segment = max_segment;
	i->align = 64;
	i->memory_free = memory_free;
	for (int k = 0; k < 3 * YOKE_MAX_DTYPES; k++)
		i->multiple[k / 3][k % 3] = (uint16_t)multiple;
	snprintf(i->name, sizeof i->name, "host memory with faults");
	if (*uuid)
		snprintf(i->uuid, sizeof i->uuid, "%s-%u", uuid, (unsigned)device);
	make_absurd(i);
	return 0;
}

// ---- memory ----

static int segment_new(uint32_t device, int kind, uint64_t bytes, void **to)
{
	(void)device;
	uint64_t limit = (uint64_t)atomic_load(&memory_limit);
	int code = fault(FAULT_segment);
	if (code)
		return code;
	if (bytes > max_segment)
		return fail(YOKE_ENOMEM, "fault.max_segment");
	if (kind == YOKE_SEGMENT_HOST && pinned_limit && pinned + (long)bytes > pinned_limit)
		return fail(YOKE_ENOMEM, "fault.pinned");
	struct segment *s = calloc(1, sizeof *s);
	if (!s || cpu->segment_new(0, kind, bytes, &s->cpu)) {
		free(s);
		return YOKE_ENOMEM;
	}
	s->bytes = bytes;
	s->pinned = kind == YOKE_SEGMENT_HOST;
	s->addressed = addressed || kind == YOKE_SEGMENT_HOST;
	pthread_mutex_lock(&lock);
	bool fits = !limit || in_use + bytes <= limit;
	if (fits && !overcommit) {
		s->used = true;
		in_use += bytes;
	}
	if (fits || overcommit) {
		pinned += s->pinned ? (long)bytes : 0;
		s->next = segments;
		segments = s;
	}
	pthread_mutex_unlock(&lock);
	if (!fits && !overcommit) {
		cpu->segment_free(0, s->cpu);
		free(s);
		return fail(YOKE_ENOMEM, "fault.memory");
	}
	alive++;
	*to = s->cpu;
	return 0;
}

// The list entry of a segment; the lock must be held.
static struct segment **find(const void *segment)
{
	struct segment **at = &segments;
	while ((*at)->cpu != segment)
		at = &(*at)->next;
	return at;
}

static void segment_free(uint32_t device, void *segment)
{
	(void)device;
	pthread_mutex_lock(&lock);
	struct segment **at = find(segment), *s = *at;
	*at = s->next;
	in_use -= s->used ? s->bytes : 0;
	pinned -= s->pinned ? (long)s->bytes : 0;
	pthread_mutex_unlock(&lock);
	cpu->segment_free(0, segment);
	free(s);
	alive--;
}

// First use is where overcommitted memory may be missing.
static int use(void *segment)
{
	uint64_t limit = (uint64_t)atomic_load(&memory_limit);
	int code = 0;

	if (!segment || !overcommit)
		return 0;
	pthread_mutex_lock(&lock);
	struct segment *s = *find(segment);
	if (!s->used && limit && in_use + s->bytes > limit) {
		code = YOKE_ENOMEM;
	} else if (!s->used) {
		s->used = true;
		in_use += s->bytes;
	}
	pthread_mutex_unlock(&lock);
	return code ? fail(code, "fault.overcommit") : 0;
}

static void *segment_host(void *segment)
{
	pthread_mutex_lock(&lock);
	bool has = (*find(segment))->addressed;
	pthread_mutex_unlock(&lock);
	return has ? cpu->segment_host(segment) : NULL;
}

// ---- the clock ----

// The queue is busy for that time, from now or from the end of its work.
static void take_time(struct queue *q, long time)
{
	const long from = atomic_load(&now);
	q->ends = (q->ends > from ? q->ends : from) + time;
}

// The host has waited until that time.
static void wait_until(long at)
{
	long is = atomic_load(&now);
	while (is < at && !atomic_compare_exchange_weak(&now, &is, at))
		;
}

// ---- runs ----

struct handle {
	void *cpu;
	uint32_t impl;
	const struct queue *queue; // of its last run
	long run;                  // number of that run
};

// Changes the sign of the first element of each nonempty result (inverts a bool).
static int spoil(struct queue *q, const struct yoke_op *op)
{
	static const uint8_t size[] = {
#define X(name, number, bytes) [number] = bytes,
		YOKE_DTYPES(X)
#undef X
	};
	for (uint32_t k = 0; k < op->nout; k++) {
		const struct yoke_view *v = &op->out[k];
		uint64_t at = v->offset + (size[v->dtype] ? size[v->dtype] - 1u : 0);
		bool empty = v->kind != YOKE_VIEW_BUFFER;
		unsigned char byte;
		for (int d = 0; d < v->rank; d++)
			empty |= !v->dims[d];
		if (empty)
			continue;
		int code = cpu->get(q->cpu, v->segment, at, &byte, 1);
		byte ^= v->dtype == yoke_bool ? 1 : 0x80;
		if (code || (code = cpu->put(q->cpu, v->segment, at, &byte, 1)))
			return code;
	}
	return 0;
}

// Is the view laid out as it claims?
static bool aligned(const struct yoke_view *v)
{
	if (v->kind != YOKE_VIEW_BUFFER || !v->segment)
		return true;
	uintptr_t at = (uintptr_t)cpu->segment_host(v->segment) + v->offset;
	return v->align && at % v->align == 0;
}

// The run itself, when its turn comes.
static int run_now(struct queue *q, struct handle *h, const struct yoke_op *op)
{
	int code = 0;
	for (uint32_t i = 0; i < op->nout + op->nin && !code; i++) {
		const struct yoke_view *v = i < op->nout ? &op->out[i] : &op->in[i - op->nout];
		code = v->kind == YOKE_VIEW_BUFFER ? use(v->segment) : 0;
		if (!code && !aligned(v))
			code = fail(YOKE_EINVAL, "fault: a view is not aligned as it says");
	}
	if (!code && !aligned(&op->workspace))
		code = fail(YOKE_EINVAL, "fault: a workspace is not aligned as it says");
	if (!code && op->workspace.kind == YOKE_VIEW_BUFFER)
		code = use(op->workspace.segment);
	if (!code)
		code = cpu->run(q->cpu, h->cpu, op);
	bool spoilt = impls < 2 || h->impl + 1 == (only ? only : 1);
	if (!code && *wrong && spoilt && names(wrong, op->code))
		code = spoil(q, op);
	return code;
}

// ---- queues ----

// Pseudorandom numbers (Knuth's MMIX generator).
static unsigned next_chance(void)
{
	chance = chance * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(chance >> 33);
}

static int queue_new(uint32_t device, int kind, void **to)
{
	(void)device;
	int code = fault(FAULT_queue);
	if (code)
		return code;
	struct queue *q = calloc(1, sizeof *q);
	if (!q || cpu->queue_new(0, kind, &q->cpu)) {
		free(q);
		return YOKE_ENOMEM;
	}
	q->last = &q->first;
	pthread_mutex_lock(&late);
	q->next = queues;
	queues = q;
	pthread_mutex_unlock(&late);
	alive++;
	*to = q;
	return 0;
}

static int do_work(struct queue *q, const struct work *w)
{
	switch (w->kind) {
	case WORK_PUT: return cpu->put(q->cpu, w->segment, w->offset, w->from, w->bytes);
	case WORK_GET: return cpu->get(q->cpu, w->segment, w->offset, w->to, w->bytes);
	case WORK_COPY:
		return cpu->copy(q->cpu, w->to, w->to_offset, w->segment, w->offset, w->bytes);
	case WORK_FILL:
		return cpu->fill(q->cpu, w->segment, w->offset, w->bytes, w->pattern,
				 w->pattern_bytes);
	case WORK_RUN: return run_now(q, w->handle, w->op);
	case WORK_AFTER: break;
	}
	return 0;
}

// Executes the first deferred operation, unless it must wait for another queue.
static bool advance(struct queue *q)
{
	struct work *w = q->first;
	if (!w || (w->kind == WORK_AFTER && w->behind->done < w->upto))
		return false;
	int code = do_work(q, w);
	q->code = q->code ? q->code : code;
	if (!(q->first = w->next))
		q->last = &q->first;
	q->done++;
	free(w->op);
	free(w);
	return true;
}

// Executes that many operations of the queue, and those of other queues that they depend on.
static void catch_up(struct queue *q, long upto)
{
	while (q->done < upto)
		if (!advance(q))
			catch_up(q->first->behind, q->first->upto);
}

// Executes or defers the work; then executes some deferred work, on any queue, at random.
static int work_on(struct queue *q, struct work what)
{
	if (!defers)
		return do_work(q, &what);
	struct work *w = malloc(sizeof *w);
	if (!w) {
		free(what.op);
		return YOKE_ENOMEM;
	}
	*w = what;
	pthread_mutex_lock(&late);
	*q->last = w;
	q->last = &w->next;
	q->put_off++;
	for (struct queue *k = queues; k && chance; k = k->next)
		for (unsigned r = next_chance(); r % 3 == 0 && advance(k); r /= 3)
			;
	pthread_mutex_unlock(&late);
	return 0;
}

static void queue_free(void *queue)
{
	struct queue *q = queue;
	pthread_mutex_lock(&late);
	catch_up(q, q->put_off);
	cpu->queue_free(q->cpu);
	pthread_mutex_unlock(&late);
	alive--;
}

static int queue_flush(void *queue)
{
	(void)queue;
	return 0;
}

static int put(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes)
{
	int code = fault(FAULT_put);
	if (!code)
		code = use(segment);
	if (!code)
		take_time(queue, (long)(bytes / 1024) * atomic_load(&put_takes));
	return code ? code :
		      work_on(queue, (struct work){ .kind = WORK_PUT,
						    .segment = segment,
						    .offset = offset,
						    .from = from,
						    .bytes = bytes });
}

static int get(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes)
{
	int code = fault(FAULT_get);
	if (!code)
		code = use(segment);
	return code ? code :
		      work_on(queue, (struct work){ .kind = WORK_GET,
						    .segment = segment,
						    .offset = offset,
						    .to = to,
						    .bytes = bytes });
}

// Adds work to the queue's graph, which then owns its op.
static int record(struct queue *q, struct work what)
{
	struct work *w = malloc(sizeof *w);
	if (!w) {
		free(what.op);
		return fail(YOKE_ENOMEM, "fault: no memory for a graph");
	}
	*w = what;
	*q->recording->last = w;
	q->recording->last = &w->next;
	return 0;
}

static int copy(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		uint64_t bytes)
{
	struct queue *q = queue;
	struct work w = { .kind = WORK_COPY, .segment = from, .offset = from_offset, .to = to,
			  .to_offset = to_offset, .bytes = bytes };
	if (q->recording)
		return record(q, w);
	int code = fault(FAULT_copy);
	if (!code)
		code = use(to);
	if (!code)
		code = use(from);
	return code ? code : work_on(q, w);
}

static int copy_between(void *queue, uint32_t to_device, void *to, uint64_t to_offset,
			uint32_t from_device, void *from, uint64_t from_offset, uint64_t bytes)
{
	if (to_device >= devices || from_device >= devices)
		return fail(YOKE_ENODEV, "fault: a copy between devices that are not there");
	return copy(queue, to, to_offset, from, from_offset, bytes);
}

static int fill(void *queue, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		uint32_t pattern_bytes)
{
	struct queue *q = queue;
	struct work w = { .kind = WORK_FILL, .segment = segment, .offset = offset, .bytes = bytes,
			  .pattern_bytes = pattern_bytes };
	memcpy(w.pattern, pattern, pattern_bytes);
	if (q->recording)
		return record(q, w);
	int code = fault(FAULT_fill);
	if (!code)
		code = use(segment);
	return code ? code : work_on(q, w);
}

// ---- events: NULL, done already, where kernels are empty ----

static int event_mark(void *queue, void **to)
{
	struct queue *q = queue;
	int code = fault(FAULT_mark);
	if (code)
		return code;
	if (null) {
		*to = NULL;
		return 0;
	}
	struct event *e = calloc(1, sizeof *e);
	if (!e)
		return YOKE_ENOMEM;
	if (strikes(FAULT_event))
		q->trouble = 1 + atomic_fetch_add(&troubles, 1);
	e->queue = q;
	e->runs = q->runs;
	e->upto = q->put_off;
	e->trouble = q->trouble > atomic_load(&told) ? q->trouble : 0;
	e->stuck = q->stuck;
	e->at = q->ends;
	atomic_init(&e->polls, atomic_load(&lag));
	alive++;
	*to = e;
	return 0;
}

static int event_after(void *queue, void *event)
{
	struct event *e = event;
	struct queue *q = queue;
	int code = fault(FAULT_after);
	if (!code && e && e->at > q->ends)
		q->ends = e->at;
	if (code || !e || !defers)
		return code;
	return work_on(queue,
		       (struct work){ .kind = WORK_AFTER, .behind = e->queue, .upto = e->upto });
}

// All work deferred before the event is done.
static int reach(const struct event *e)
{
	struct queue *q = e->queue;
	pthread_mutex_lock(&late);
	catch_up(q, e->upto);
	int code = q->code;
	q->code = 0;
	pthread_mutex_unlock(&late);
	return code;
}

// The result that an event reports. Events marked after a report are clean again.
static int outcome(const struct event *e)
{
	long last = atomic_load(&e->queue->over);
	while (last < e->runs && !atomic_compare_exchange_weak(&e->queue->over, &last, e->runs))
		;
	if (!e->trouble)
		return 0;
	last = atomic_load(&told);
	while (last < e->trouble && !atomic_compare_exchange_weak(&told, &last, e->trouble))
		;
	return fail(YOKE_EDEVICE, "fault.late: reported late");
}

static int event_done(void *event)
{
	struct event *e = event;
	int code = fault(FAULT_done);
	if (code)
		return code;
	if (e->stuck || e->at > atomic_load(&now) || atomic_fetch_sub(&e->polls, 1) > 0)
		return 0;
	code = outcome(e);
	code = code ? code : reach(e);
	return code ? code : 1;
}

static int event_wait(void *event)
{
	struct event *e = event;
	int code = fault(FAULT_wait);
	if (code)
		return code;
	while (e->stuck)
		pause();
	wait_until(e->at);
	atomic_store(&e->polls, 0);
	code = outcome(e);
	return code ? code : reach(e);
}

static void event_free(void *event)
{
	free(event);
	alive--;
}

// ---- ops ----

// Does an operand have more elements than ops with several implementations may have?
static bool is_larger(const struct yoke_op *op)
{
	for (uint32_t i = 0; impls_max && i < op->nout + op->nin; i++) {
		const struct yoke_view *v = i < op->nout ? &op->out[i] : &op->in[i - op->nout];
		uint64_t n = 1;
		for (int k = 0; k < v->rank; k++)
			n *= (uint64_t)v->dims[k];
		if (n > impls_max)
			return true;
	}
	return false;
}

static uint64_t can(uint32_t device, const struct yoke_op *op)
{
	(void)device;
	if (names(lacks, op->code))
		return 0;
	uint64_t mask = null ? 1 : cpu->can(0, op);
	return mask && impls > 1 && !is_larger(op) ? (1u << impls) - 1 : mask;
}

static const char *impl_name(uint32_t device, const struct yoke_op *op, uint32_t impl)
{
	static const char *const name[] = { "first", "second", "third", "fourth" };
	(void)device, (void)op;
	return impls < 2 ? NULL : name[impl & 3];
}

// The CPU's implementation that one of ours wraps.
static uint32_t behind(const struct yoke_op *op, uint32_t impl)
{
	return impls < 2 ? impl : (uint32_t)__builtin_ctzll(cpu->can(0, op) | (uint64_t)1 << 63);
}

static int prepare(uint32_t device, const struct yoke_op *op, uint32_t impl, uint64_t plan,
		   void **to, uint64_t *bytes)
{
	(void)device;
	int code = fault(FAULT_prepare);
	if (code)
		return code;
	struct handle *h = malloc(sizeof *h);
	if (!h)
		return fail(YOKE_ENOMEM, "fault: no memory for a handle");
	*h = (struct handle){ .impl = impl };
	if (!null && (code = cpu->prepare(0, op, behind(op, impl), plan, &h->cpu, bytes))) {
		free(h);
		return code;
	}
	alive++;
	*to = h;
	return 0;
}

static void release(void *handle)
{
	struct handle *h = handle;
	early += h->run && atomic_load(&h->queue->over) < h->run;
	if (h->cpu)
		cpu->release(h->cpu);
	free(h);
	alive--;
}

// Copies it with its views and map.
static struct yoke_op *copy_op(const struct yoke_op *op)
{
	size_t views = op->nout + op->nin, map = op->map ? sizeof *op->map : 0;
	struct yoke_op *o = malloc(sizeof *o + views * sizeof *op->out + map);
	if (!o)
		return NULL;
	struct yoke_view *v = (struct yoke_view *)(o + 1);
	*o = *op;
	memcpy(v, op->out, op->nout * sizeof *v);
	memcpy(v + op->nout, op->in, op->nin * sizeof *v);
	o->out = v;
	o->in = v + op->nout;
	if (op->map)
		o->map = memcpy(v + views, op->map, map);
	return o;
}

static int run(void *queue, void *handle, const struct yoke_op *op)
{
	struct queue *q = queue;
	struct handle *h = handle;
	struct work w = { .kind = WORK_RUN, .handle = h };
	if ((defers || q->recording) && !null && !(w.op = copy_op(op)))
		return YOKE_ENOMEM;
	if (q->recording)
		return record(q, w);
	bool meant = !only || only == (long)h->impl + 1;
	int code = meant ? fault(FAULT_run) : 0;
	bool late_fault = !code && !null && strikes(FAULT_late); // accepted, but not executed
	if (late_fault)
		q->trouble = 1 + atomic_fetch_add(&troubles, 1);
	if (code || null || late_fault) {
		free(w.op);
		return code;
	}
	if (strikes(FAULT_stuck))
		q->stuck = true;
	take_time(q, atomic_load(&run_takes));
	h->queue = q;
	h->run = ++q->runs;
	return defers ? work_on(q, w) : run_now(q, h, op);
}

// ---- graphs ----

static int graph_begin(void *queue)
{
	struct queue *q = queue;
	int code = fault(FAULT_record);
	struct graph *g = code ? NULL : calloc(1, sizeof *g);
	if (code)
		return code;
	if (!g)
		return fail(YOKE_ENOMEM, "fault: no memory for a graph");
	g->last = &g->first;
	q->recording = g;
	alive++;
	return 0;
}

static int graph_end(void *queue, void **to)
{
	struct queue *q = queue;
	*to = q->recording;
	q->recording = NULL;
	return fault(FAULT_recorded);
}

static int graph_run(void *queue, void *graph)
{
	int code = fault(FAULT_replay);
	for (const struct work *w = ((struct graph *)graph)->first; w && !code; w = w->next)
		code = w->kind == WORK_RUN ?
			       run(queue, w->handle, w->op) :
		       w->kind == WORK_COPY ?
			       copy(queue, w->to, w->to_offset, w->segment, w->offset, w->bytes) :
			       fill(queue, w->segment, w->offset, w->bytes, w->pattern,
				    w->pattern_bytes);
	return code;
}

static void graph_free(void *graph)
{
	struct graph *g = graph;
	for (struct work *w = g->first, *next; w; w = next) {
		next = w->next;
		free(w->op);
		free(w);
	}
	free(g);
	alive--;
}

// ---- commands ----

static int kind_of(const char *kind)
{
	int i = 0;
	while (i < FAULT_COUNT && strcmp(kind, fault_name[i]))
		i++;
	return i < FAULT_COUNT ? i : -1;
}

static long ctl_calls(const char *kind)
{
	int i = kind_of(kind);
	return i < 0 ? -1 : atomic_load(&calls[i]);
}

static void ctl_arm(const char *kind, long n)
{
	int i = kind_of(kind);
	if (i < 0)
		abort();
	armed_at[i] = atomic_load(&calls[i]);
	nth[i] = n;
}

static void ctl_how(const char *to)
{
	snprintf(how, sizeof how, "%s", to);
}

static void ctl_wrong(const char *op)
{
	snprintf(wrong, sizeof wrong, "%s", op);
}

static void ctl_memory(long bytes, int over)
{
	memory_limit = bytes;
	overcommit = over;
}

static void ctl_lag(long polls)
{
	lag = polls;
}

static void ctl_chance(long seed)
{
	pthread_mutex_lock(&late);
	chance = (unsigned long)seed;
	pthread_mutex_unlock(&late);
}

static void ctl_timed(long put, long run_time)
{
	put_takes = put;
	run_takes = run_time;
}

static long ctl_clock(void)
{
	return now;
}

static long ctl_alive(void)
{
	return alive;
}

static long ctl_early(void)
{
	return early;
}

static const struct fault_control control = {
	ctl_calls, ctl_arm,   ctl_how,    ctl_wrong, ctl_memory, ctl_lag,
	ctl_alive, ctl_early, ctl_chance, ctl_timed, ctl_clock,
};

static const char *text(const char *name, const char *type, const char *def, const char *help)
{
	const struct yoke_setting s = { sizeof s, name, type, def, help };
	const char *value = host->setting(&s);
	return value ? value : def;
}

static const char *telemetry_how(void)
{
	return text("fault.telemetry", "string", "",
		    "what a device says of itself: good, nan, over (more memory used than "
		    "there is), back (its energy runs back), block");
}

static int sample(uint32_t device, struct yoke_sample *to)
{
	static atomic_long asked;
	const char *what = telemetry_how();
	(void)device;
	while (!strcmp(what, "block"))
		pause();
	if (!*what)
		return YOKE_EUNSUPPORTED;
	to->known = YOKE_SAMPLE_UTIL | YOKE_SAMPLE_MEM_USED | YOKE_SAMPLE_MEM_TOTAL |
		    YOKE_SAMPLE_ENERGY;
	to->util = strcmp(what, "nan") ? .5 : 0. / 0.;
	to->mem_used = strcmp(what, "over") ? 10 : 21;
	to->mem_total = 20;
	to->energy_j = 100 + (double)(strcmp(what, "back") ? asked++ : -asked++);
	return 0;
}

static const void *ext(const char *name)
{
	static const struct yoke_telemetry telemetry = { sizeof telemetry, sample };
	return !strcmp(name, "fault")    ? (const void *)&control :
	       strcmp(name, "telemetry") ? NULL :
					   &telemetry;
}

static struct yoke_backend backend = {
	.size = sizeof backend, .abi = YOKE_ABI, .name = "fault", .version = "1",
	.probe = probe, .device_info = device_info,
	.segment_new = segment_new, .segment_free = segment_free, .segment_host = segment_host,
	.queue_new = queue_new, .queue_free = queue_free, .queue_flush = queue_flush,
	.put = put, .get = get, .copy = copy, .fill = fill,
	.event_mark = event_mark, .event_after = event_after, .event_done = event_done,
	.event_wait = event_wait, .event_free = event_free,
	.can = can, .prepare = prepare, .run = run, .release = release, .impl_name = impl_name,
	.ext = ext, .copy_between = copy_between,
	.graph_begin = graph_begin, .graph_end = graph_end, .graph_run = graph_run,
	.graph_free = graph_free,
};

// ---- settings ----

static long number(const char *name, const char *def, const char *help)
{
	return strtol(text(name, "int", def, help), NULL, 10);
}

static bool flag(const char *name, const char *def, const char *help)
{
	const char *value = text(name, "bool", def, help);
	return *value == '1' || *value == 't' || *value == 'y' || !strcmp(value, "on");
}

static void read_settings(void)
{
#define X(what, words) \
	nth[FAULT_##what] = number("fault." #what, "0", "the n-th fails, 0: none: " words);
	FAULTS(X)
#undef X
	ctl_how(text("fault.how", "string", "error",
		     "what a faulty call does: error, enomem, hang, segv, abort, exit"));
	ctl_wrong(text("fault.wrong", "string", "", "an op whose results are wrong"));
	memory_limit = number("fault.memory", "0", "max bytes of segments; 0: no limit");
	overcommit = flag("fault.overcommit", "0", "beyond fault.memory the first use fails");
	max_segment = (uint64_t)number("fault.max_segment", "4294967296", "largest segment");
	memory_free =
		(uint64_t)number("fault.free", "0", "memory that nobody uses, bytes; 0: not known");
	multiple = (uint64_t)number(
		"fault.multiple", "0",
		"m, n and k of products should be multiples of it; 0: any will do");
	lag = number("fault.lag", "0", "how often an event is asked before it is done");
	devices = (uint64_t)number("fault.devices", "1", "how many devices there are");
	impls = (uint64_t)number("fault.impls", "1", "2 to 4: implementations of each op, of which "
				 "fault.impl may be wrong");
	impls = impls > 4 ? 4 : impls;
	impls_max =
		(uint64_t)number("fault.impls_max", "0",
				 "elements of an operand above which there is only one; 0: any");
	only = number(
		"fault.impl", "0",
		"the implementation, from 1, that fault.run is for, 0: all; and fault.wrong, 0: 1");
	lacks = text("fault.lacks", "string", "",
		     "ops it does not have, as softmax,contract; event_after, "
		     "table_fill, table_copy, table_between, table_graph");
	if (strstr(lacks, "event_after"))
		backend.event_after = NULL;
	if (strstr(lacks, "table_fill"))
		backend.fill = NULL;
	if (strstr(lacks, "table_copy"))
		backend.copy = NULL;
	if (strstr(lacks, "table_between"))
		backend.copy_between = NULL;
	if (strstr(lacks, "table_graph"))
		backend.graph_end = NULL;
	absurd = text("fault.absurd", "string", "",
		      "what device_info lies about: align, memory, segment, name");
	uuid = text("fault.uuid", "string", "",
		    "the devices' UUIDs begin with it, the number follows");
	addressed = flag("fault.host", "1", "device memory has addresses in the host");
	unified = flag("fault.unified", "0", "the device says that it shares the host's memory");
	telemetry_how();
	pinned_limit = number("fault.pinned", "0", "max bytes of pinned memory; 0: no limit");
	defers = flag("fault.defer", "0",
		      "what is enqueued is done when an event behind it is waited for");
	ctl_chance(number("fault.chance", "0",
			  "with fault.defer: seed of the chance that it is done before; 0: never"));
	null = flag("fault.null", "0", "accept every op, run nothing");
	sticky = flag("fault.sticky", "0", "all calls behind the n-th fail too");
}

__attribute__((visibility("default"))) int
yoke_plugin_init(uint32_t core_abi, const struct yoke_host *lent, const struct yoke_backend **to)
{
	*to = &backend;
	if (core_abi >> 16 != YOKE_ABI_MAJOR)
		return YOKE_EABI;
	host = lent;
	read_settings();
	int code = fault(FAULT_init);
	return code ? code : yoke_cpu_init(core_abi, lent, &cpu);
}
