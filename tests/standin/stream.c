// SPDX-License-Identifier: Apache-2.0
// Streams: a thread each, which takes what is pushed in order, after seeded delays (YOKE_STANDIN_DELAY); events, and
// capture into graphs, which are what was pushed, in that order.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define STREAM_MAGIC 0x5354524du
#define EVENT_MAGIC 0x45564e54u

// A point of a stream.
struct mark {
	int refs;
	bool over;
	int64_t at; // ns
};

enum kind { LAUNCH, COPY, FILL, CALL, RECORD, WAIT, GRAPH };

// What is pushed; a graph and a stream may both have it.
struct op {
	int refs;
	enum kind kind;
	union {
		struct standin_launch launch; // and its parameters
		struct {
			void *to;
			const void *from;
			size_t bytes;
			bool lie, owned; // owned: `from` is to be freed
		} copy;
		struct {
			char *to;
			size_t count, bytes;
			unsigned char pattern[8];
		} fill;
		struct {
			void (*call)(void *);
			void *arg;
		} call;
		struct mark *mark;
		struct standin_graph *graph;
	};
};

struct ops {
	struct op **op;
	size_t n, cap;
};

struct standin_graph {
	int refs;
	struct ops ops;
};

struct capture {
	int refs, mode;
	bool invalid;
	pthread_t thread;
	struct standin_stream *origin;
	struct standin_graph *graph;
	struct standin_stream *member[16];
	int members;
};

struct standin_stream {
	unsigned magic;
	int device;
	bool closing;
	struct ops ops;      // from `first` on
	size_t first;
	uint64_t pushed, done;
	uint64_t random;
	pthread_t thread;
	pthread_cond_t work;
	struct capture *capture;
	uint64_t captured;   // how much, of which the origin waited for:
	uint64_t joined;
	struct standin_stream *next;
};

struct standin_event {
	unsigned magic;
	bool timed;
	int device;              // of the last record; -1: none
	struct mark *mark;       // NULL: never recorded
	struct capture *capture; // recorded there
	struct standin_stream *stream;
	uint64_t captured;
};

// One lock for all that is enqueued; what runs does not hold it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static struct standin_stream *streams, *defaults[MAX_DEVICES];
static int lost[MAX_DEVICES];
static unsigned made;
static struct capture *captures[16]; // that are going on

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int standin_lost(int device)
{
	return __atomic_load_n(&lost[device], __ATOMIC_ACQUIRE);
}

void standin_lose(int device, int code)
{
	int well = OK;

	__atomic_compare_exchange_n(&lost[device], &well, code, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void standin_recover(int device)
{
	__atomic_store_n(&lost[device], OK, __ATOMIC_RELEASE);
}

// ---- what is pushed ----

static void mark_unref(struct mark *m)
{
	if (m && !__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL))
		free(m);
}

static struct mark *mark_ref(struct mark *m)
{
	__atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
	return m;
}

static void op_unref(struct op *o)
{
	if (__atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (o->kind == LAUNCH)
		free(o->launch.params);
	if (o->kind == COPY && o->copy.owned)
		free((void *)(uintptr_t)o->copy.from);
	if (o->kind == CALL)
		free(o->call.arg);
	if (o->kind == RECORD || o->kind == WAIT)
		mark_unref(o->mark);
	if (o->kind == GRAPH)
		standin_graph_free(o->graph);
	free(o);
}

static bool ops_add(struct ops *all, struct op *o)
{
	if (all->n == all->cap) {
		const size_t cap = all->cap ? 2 * all->cap : 64;
		struct op **more = realloc(all->op, cap * sizeof *more);
		if (!more)
			return false;
		all->op = more;
		all->cap = cap;
	}
	all->op[all->n++] = o;
	return true;
}

static void ops_free(struct ops *all)
{
	while (all->n)
		op_unref(all->op[--all->n]);
	free(all->op);
}

// ---- running ----

static void do_launch(const struct standin_launch *l)
{
	const int fault = standin_fault("kernel");

	if (fault) {
		standin_lose(l->device, fault);
		return;
	}
	switch (standin_run(l)) {
	case STANDIN_DONE: break;
	case STANDIN_FAILED: standin_lose(l->device, LAUNCH_FAILED); break;
	case STANDIN_ILLEGAL_ADDRESS: standin_lose(l->device, ILLEGAL_ADDRESS); break;
	case STANDIN_MISALIGNED: standin_lose(l->device, MISALIGNED); break;
	}
}

static void do_fill(const struct op *o)
{
	for (size_t i = 0; i < o->fill.count; i++)
		memcpy(o->fill.to + i * o->fill.bytes, o->fill.pattern, o->fill.bytes);
}

static void do_copy(const struct op *o)
{
	memmove(o->copy.to, o->copy.from, o->copy.bytes);
	if (o->copy.lie)
		((unsigned char *)o->copy.to)[o->copy.bytes / 2] ^= 0x40;
}

// With nothing held.
static void execute(int device, const struct op *o)
{
	const bool well = !standin_lost(device);

	switch (o->kind) {
	case LAUNCH:
		if (well)
			do_launch(&o->launch);
		break;
	case COPY:
		if (well)
			do_copy(o);
		break;
	case FILL:
		if (well)
			do_fill(o);
		break;
	case CALL:
		if (well)
			o->call.call(o->call.arg);
		break;
	case GRAPH:
		for (size_t i = 0; i < o->graph->ops.n; i++)
			execute(device, o->graph->ops.op[i]);
		break;
	case RECORD:
		pthread_mutex_lock(&lock);
		o->mark->at = now();
		o->mark->over = true;
		pthread_cond_broadcast(&progress);
		pthread_mutex_unlock(&lock);
		break;
	case WAIT:
		pthread_mutex_lock(&lock);
		while (!o->mark->over)
			pthread_cond_wait(&progress, &lock);
		pthread_mutex_unlock(&lock);
		break;
	}
}

// Sometimes a while, seldom a long one.
static void delay(struct standin_stream *s)
{
	if (!s->random)
		return;
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	const unsigned r = (unsigned)(s->random >> 32);
	if (r % 64 == 0)
		usleep(2000);
	else if (r % 4 == 0)
		usleep(r / 64 % 200);
}

static void *work(void *arg)
{
	struct standin_stream *s = arg;

	pthread_mutex_lock(&lock);
	for (;;) {
		while (s->first == s->ops.n && !s->closing)
			pthread_cond_wait(&s->work, &lock);
		if (s->first == s->ops.n)
			break;
		struct op *o = s->ops.op[s->first++];
		if (s->first == s->ops.n)
			s->first = s->ops.n = 0;
		pthread_mutex_unlock(&lock);
		delay(s);
		execute(s->device, o);
		op_unref(o);
		pthread_mutex_lock(&lock);
		s->done++;
		pthread_cond_broadcast(&progress);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

// ---- streams ----

static struct standin_stream *stream_new(int device)
{
	struct standin_stream *s = calloc(1, sizeof *s);
	const long seed = standin_number("DELAY", 0);

	if (!s)
		return NULL;
	s->magic = STREAM_MAGIC;
	s->device = device;
	pthread_cond_init(&s->work, NULL);
	if (seed)
		s->random = ((uint64_t)seed * 0x9e3779b97f4a7c15u + ++made * 0xbf58476d1ce4e5b9u) | 1;
	if (pthread_create(&s->thread, NULL, work, s)) {
		pthread_cond_destroy(&s->work);
		free(s);
		return NULL;
	}
	s->next = streams;
	streams = s;
	return s;
}

struct standin_stream *standin_stream_new(int device)
{
	pthread_mutex_lock(&lock);
	struct standin_stream *s = stream_new(device);
	pthread_mutex_unlock(&lock);
	return s;
}

struct standin_stream *standin_default_stream(int device)
{
	pthread_mutex_lock(&lock);
	if (!defaults[device])
		defaults[device] = stream_new(device);
	struct standin_stream *s = defaults[device];
	pthread_mutex_unlock(&lock);
	return s;
}

bool standin_is_stream(const void *s)
{
	return s && ((const struct standin_stream *)s)->magic == STREAM_MAGIC;
}

int standin_stream_device(const struct standin_stream *s)
{
	return s->device;
}

void standin_stream_free(struct standin_stream *s)
{
	pthread_mutex_lock(&lock);
	s->closing = true;
	pthread_cond_signal(&s->work);
	for (struct standin_stream **p = &streams; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->work);
	s->magic = 0;
	free(s->ops.op);
	free(s);
}

static void wait_done(struct standin_stream *s)
{
	const uint64_t until = s->pushed;

	while (s->done < until)
		pthread_cond_wait(&progress, &lock);
}

static void invalidate(struct capture *c)
{
	c->invalid = true;
}

int standin_stream_wait(struct standin_stream *s)
{
	pthread_mutex_lock(&lock);
	int code = OK;
	if (s->capture) {
		invalidate(s->capture);
		code = CAPTURE_UNSUPPORTED;
	} else {
		wait_done(s);
	}
	pthread_mutex_unlock(&lock);
	return code ? code : standin_lost(s->device);
}

void standin_device_wait(int device)
{
	pthread_mutex_lock(&lock);
	// streams may come and go meanwhile
	for (struct standin_stream *s = streams; s;)
		if ((device < 0 || s->device == device) && s->done < s->pushed) {
			pthread_cond_wait(&progress, &lock);
			s = streams;
		} else {
			s = s->next;
		}
	pthread_mutex_unlock(&lock);
}

// Into the stream, or the graph that it is captured into.  With the lock held.
static int push(struct standin_stream *s, struct op *o)
{
	if (s->capture) {
		if (s->capture->invalid)
			return CAPTURE_INVALIDATED;
		if (!ops_add(&s->capture->graph->ops, o))
			return OUT_OF_MEMORY;
		s->captured++;
		return OK;
	}
	if (s->first && s->ops.n == s->ops.cap) { // those that ran make room
		memmove(s->ops.op, s->ops.op + s->first, (s->ops.n - s->first) * sizeof *s->ops.op);
		s->ops.n -= s->first;
		s->first = 0;
	}
	if (!ops_add(&s->ops, o))
		return OUT_OF_MEMORY;
	s->pushed++;
	pthread_cond_signal(&s->work);
	return OK;
}

static int push_new(struct standin_stream *s, struct op *o)
{
	if (!o)
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	const int code = push(s, o);
	pthread_mutex_unlock(&lock);
	if (code)
		op_unref(o);
	return code;
}

static struct op *op_new(enum kind kind)
{
	struct op *o = calloc(1, sizeof *o);

	if (o) {
		o->refs = 1;
		o->kind = kind;
	}
	return o;
}

int standin_push_launch(struct standin_stream *s, const struct standin_launch *l)
{
	const struct standin_kernel *k = l->kernel;
	size_t bytes = (k->params + 1) * sizeof(void *);
	struct op *o = op_new(LAUNCH);

	if (!o)
		return OUT_OF_MEMORY;
	bytes = (bytes + 15) & ~(size_t)15;
	for (unsigned i = 0; i < k->params; i++)
		bytes += (k->bytes[i] + 15) & ~15u;
	o->launch = *l;
	char *all = malloc(bytes);
	o->launch.params = (void **)all;
	if (!all) {
		op_unref(o);
		return OUT_OF_MEMORY;
	}
	char *at = all + (((k->params + 1) * sizeof(void *) + 15) & ~(size_t)15);
	for (unsigned i = 0; i < k->params; i++) {
		memcpy(at, l->params[i], k->bytes[i]);
		o->launch.params[i] = at;
		at += (k->bytes[i] + 15) & ~15u;
	}
	return push_new(s, o);
}

int standin_push_copy(struct standin_stream *s, void *to, const void *from, size_t bytes, bool keep, bool lie)
{
	struct op *o = op_new(COPY);
	void *copy = NULL;

	if (!o)
		return OUT_OF_MEMORY;
	if (keep && !(copy = malloc(bytes))) {
		op_unref(o);
		return OUT_OF_MEMORY;
	}
	if (keep)
		memcpy(copy, from, bytes);
	o->copy.to = to;
	o->copy.from = keep ? copy : from;
	o->copy.bytes = bytes;
	o->copy.owned = keep;
	o->copy.lie = lie;
	return push_new(s, o);
}

int standin_push_fill(struct standin_stream *s, void *to, size_t count, const void *pattern, size_t pattern_bytes)
{
	struct op *o = op_new(FILL);

	if (!o)
		return OUT_OF_MEMORY;
	o->fill.to = to;
	o->fill.count = count;
	o->fill.bytes = pattern_bytes;
	memcpy(o->fill.pattern, pattern, pattern_bytes);
	return push_new(s, o);
}

int standin_push_call(struct standin_stream *s, void (*call)(void *arg), void *arg)
{
	struct op *o = op_new(CALL);

	if (!o) {
		free(arg);
		return OUT_OF_MEMORY;
	}
	o->call.call = call;
	o->call.arg = arg;
	return push_new(s, o);
}

// ---- events ----

struct standin_event *standin_event_new(bool timed)
{
	struct standin_event *e = calloc(1, sizeof *e);

	if (e) {
		e->magic = EVENT_MAGIC;
		e->timed = timed;
		e->device = -1;
	}
	return e;
}

bool standin_is_event(const void *e)
{
	return e && ((const struct standin_event *)e)->magic == EVENT_MAGIC;
}

int standin_event_device(const struct standin_event *e)
{
	return e->device;
}

static void capture_unref(struct capture *c)
{
	if (c && !--c->refs)
		free(c);
}

void standin_event_free(struct standin_event *e)
{
	pthread_mutex_lock(&lock);
	capture_unref(e->capture);
	pthread_mutex_unlock(&lock);
	mark_unref(e->mark);
	e->magic = 0;
	free(e);
}

int standin_event_record(struct standin_event *e, struct standin_stream *s)
{
	struct mark *m = calloc(1, sizeof *m);
	struct op *o = op_new(RECORD);
	int code = OUT_OF_MEMORY;

	if (!m || !o) {
		free(m);
		free(o);
		return code;
	}
	m->refs = 2;
	o->mark = m;
	pthread_mutex_lock(&lock);
	e->device = s->device;
	if (s->capture) {
		// only an edge of the graph
		if (!s->capture->invalid) {
			capture_unref(e->capture);
			e->capture = s->capture;
			e->capture->refs++;
			e->stream = s;
			e->captured = s->captured;
		}
		code = s->capture->invalid ? CAPTURE_INVALIDATED : OK;
		m->refs = 1;
		op_unref(o);
	} else if (!(code = push(s, o))) {
		capture_unref(e->capture);
		e->capture = NULL;
		mark_unref(e->mark);
		e->mark = m;
	} else {
		m->refs = 1;
		op_unref(o);
	}
	pthread_mutex_unlock(&lock);
	return code;
}

// Of an event that somebody asks about on the host.
static int not_captured(struct standin_event *e)
{
	if (!e->capture || !e->capture->graph)
		return OK;
	invalidate(e->capture);
	return CAPTURED_EVENT;
}

int standin_event_query(struct standin_event *e)
{
	pthread_mutex_lock(&lock);
	int code = not_captured(e);
	if (!code && e->mark && !e->mark->over)
		code = NOT_READY;
	pthread_mutex_unlock(&lock);
	return code;
}

int standin_event_wait(struct standin_event *e)
{
	pthread_mutex_lock(&lock);
	const int code = not_captured(e);
	if (!code && e->mark) {
		struct mark *m = mark_ref(e->mark);
		while (!m->over)
			pthread_cond_wait(&progress, &lock);
		mark_unref(m);
	}
	pthread_mutex_unlock(&lock);
	return code;
}

int standin_event_elapsed(struct standin_event *from, struct standin_event *to, float *milliseconds)
{
	int code = OK;

	pthread_mutex_lock(&lock);
	if (!from->timed || !to->timed || !from->mark || !to->mark)
		code = INVALID_HANDLE;
	else if (!from->mark->over || !to->mark->over)
		code = NOT_READY;
	else
		*milliseconds = (float)((double)(to->mark->at - from->mark->at) * 1e-6);
	pthread_mutex_unlock(&lock);
	return code;
}

// The origin waited for all of a stream up to there.
static void join(struct standin_stream *of, uint64_t captured)
{
	if (of->joined < captured)
		of->joined = captured;
}

static int join_capture(struct standin_stream *s, struct standin_event *e)
{
	struct capture *c = e->capture;

	if (c->invalid)
		return CAPTURE_INVALIDATED;
	if (s->capture && s->capture != c)
		return CAPTURE_MERGE;
	if (!s->capture) {
		if (c->members == (int)(sizeof c->member / sizeof *c->member))
			return OUT_OF_MEMORY;
		c->member[c->members++] = s;
		s->capture = c;
		s->captured = 1; // even what does nothing has to be joined
		s->joined = 0;
	}
	if (s != e->stream)
		join(e->stream, e->captured);
	return OK;
}

int standin_stream_after(struct standin_stream *s, struct standin_event *e)
{
	struct op *o = op_new(WAIT);
	int code = OK;

	if (!o)
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	if (e->capture && e->capture->graph)
		code = join_capture(s, e);
	else if (s->capture && e->mark)
		code = CAPTURE_ISOLATION;
	else if (e->mark) {
		o->mark = mark_ref(e->mark);
		if (!(code = push(s, o)))
			o = NULL;
	}
	if (s->capture && code)
		invalidate(s->capture);
	pthread_mutex_unlock(&lock);
	if (o)
		op_unref(o);
	return code;
}

// ---- graphs ----

int standin_capture_begin(struct standin_stream *s, int mode)
{
	int code = OK;

	pthread_mutex_lock(&lock);
	struct capture *c = calloc(1, sizeof *c);
	struct standin_graph *g = calloc(1, sizeof *g);
	struct capture **place = captures;
	while (place < captures + 16 && *place)
		place++;
	if (s->capture)
		code = ILLEGAL_STATE;
	else if (!c || !g || place == captures + 16)
		code = OUT_OF_MEMORY;
	if (code) {
		free(c);
		free(g);
	} else {
		g->refs = 1;
		*c = (struct capture){ .refs = 1, .mode = mode, .thread = pthread_self(), .origin = s, .graph = g,
				       .member = { s }, .members = 1 };
		s->capture = *place = c;
		s->captured = s->joined = 0;
	}
	pthread_mutex_unlock(&lock);
	return code;
}

int standin_capture_end(struct standin_stream *s, struct standin_graph **to)
{
	int code = OK;

	pthread_mutex_lock(&lock);
	struct capture *c = s->capture;
	if (!c || c->origin != s) {
		pthread_mutex_unlock(&lock);
		return c ? CAPTURE_UNMATCHED : ILLEGAL_STATE;
	}
	for (int i = 0; i < c->members; i++) {
		struct standin_stream *m = c->member[i];
		if (m != s && m->joined < m->captured)
			code = CAPTURE_UNJOINED;
		m->capture = NULL;
	}
	if (c->invalid)
		code = CAPTURE_INVALIDATED;
	struct standin_graph *g = c->graph;
	c->graph = NULL; // its events are nobody's
	for (int i = 0; i < 16; i++)
		if (captures[i] == c)
			captures[i] = NULL;
	capture_unref(c);
	pthread_mutex_unlock(&lock);
	if (code)
		standin_graph_free(g);
	else
		*to = g;
	return code;
}

int standin_capture_allows(void)
{
	int code = OK;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < 16; i++)
		if (captures[i] && captures[i]->mode != 2 && // not relaxed
		    (!captures[i]->mode || pthread_equal(captures[i]->thread, pthread_self()))) {
			invalidate(captures[i]);
			code = CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&lock);
	return code;
}

struct standin_graph *standin_graph_ref(struct standin_graph *g)
{
	__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
	return g;
}

void standin_graph_free(struct standin_graph *g)
{
	if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL))
		return;
	ops_free(&g->ops);
	free(g);
}

int standin_graph_launch(struct standin_graph *g, struct standin_stream *s)
{
	struct op *o = op_new(GRAPH);

	if (!o)
		return OUT_OF_MEMORY;
	o->graph = standin_graph_ref(g);
	return push_new(s, o);
}
