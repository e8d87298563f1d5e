// SPDX-License-Identifier: Apache-2.0
// Streams: each is a thread that executes its queue in order, after seeded delays
// (YOKE_FAKE_DELAY).
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

#define STREAM_MAGIC 0x5354524du

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_progress = PTHREAD_COND_INITIALIZER;
static struct fake_stream *streams, *defaults[MAX_DEVICES];
static int lost[MAX_DEVICES];
static unsigned made;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int fake_lost(int device)
{
	return __atomic_load_n(&lost[device], __ATOMIC_ACQUIRE);
}

void fake_lose(int device, int code)
{
	int well = OK;

	__atomic_compare_exchange_n(&lost[device], &well, code, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

void fake_recover(int device)
{
	__atomic_store_n(&lost[device], OK, __ATOMIC_RELEASE);
}

// ---- what is pushed ----

void fake_mark_unref(struct mark *m)
{
	if (m && !__atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL))
		free(m);
}

void fake_op_unref(struct op *o)
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
		fake_mark_unref(o->mark);
	if (o->kind == GRAPH)
		fake_graph_free(o->graph);
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

void fake_ops_free(struct ops *all)
{
	while (all->n)
		fake_op_unref(all->op[--all->n]);
	free(all->op);
}

// ---- running ----

static void do_launch(const struct fake_launch *l)
{
	const int fault = fake_fault("kernel");

	if (fake_setting("EMPTY")) // for benchmarks of the launch overhead
		return;
	if (fault) {
		fake_lose(l->device, fault);
		return;
	}
	switch (fake_run(l)) {
	case FAKE_DONE: break;
	case FAKE_FAILED: fake_lose(l->device, LAUNCH_FAILED); break;
	case FAKE_ILLEGAL_ADDRESS: fake_lose(l->device, ILLEGAL_ADDRESS); break;
	case FAKE_MISALIGNED: fake_lose(l->device, MISALIGNED); break;
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

// Called without holding the lock.
static void execute(int device, const struct op *o)
{
	const bool well = !fake_lost(device);

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
		pthread_mutex_lock(&fake_lock);
		o->mark->at = now();
		o->mark->over = true;
		pthread_cond_broadcast(&fake_progress);
		pthread_mutex_unlock(&fake_lock);
		break;
	case WAIT:
		pthread_mutex_lock(&fake_lock);
		while (!o->mark->over)
			pthread_cond_wait(&fake_progress, &fake_lock);
		pthread_mutex_unlock(&fake_lock);
		break;
	}
}

// Delays sometimes shortly, rarely longer.
static void delay(struct fake_stream *s)
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
	struct fake_stream *s = arg;

	pthread_mutex_lock(&fake_lock);
	for (;;) {
		while (s->first == s->ops.n && !s->closing)
			pthread_cond_wait(&s->work, &fake_lock);
		if (s->first == s->ops.n)
			break;
		struct op *o = s->ops.op[s->first++];
		if (s->first == s->ops.n)
			s->first = s->ops.n = 0;
		pthread_mutex_unlock(&fake_lock);
		delay(s);
		execute(s->device, o);
		fake_op_unref(o);
		pthread_mutex_lock(&fake_lock);
		s->done++;
		pthread_cond_broadcast(&fake_progress);
	}
	pthread_mutex_unlock(&fake_lock);
	return NULL;
}

// ---- streams ----

static struct fake_stream *stream_new(int device)
{
	struct fake_stream *s = calloc(1, sizeof *s);
	const long seed = fake_number("DELAY", 0);

	if (!s)
		return NULL;
	s->magic = STREAM_MAGIC;
	s->device = device;
	pthread_cond_init(&s->work, NULL);
	if (seed)
		s->random =
			((uint64_t)seed * 0x9e3779b97f4a7c15u + ++made * 0xbf58476d1ce4e5b9u) | 1;
	if (pthread_create(&s->thread, NULL, work, s)) {
		pthread_cond_destroy(&s->work);
		free(s);
		return NULL;
	}
	s->next = streams;
	streams = s;
	return s;
}

struct fake_stream *fake_stream_new(int device)
{
	pthread_mutex_lock(&fake_lock);
	struct fake_stream *s = stream_new(device);
	pthread_mutex_unlock(&fake_lock);
	return s;
}

struct fake_stream *fake_default_stream(int device)
{
	pthread_mutex_lock(&fake_lock);
	if (!defaults[device])
		defaults[device] = stream_new(device);
	struct fake_stream *s = defaults[device];
	pthread_mutex_unlock(&fake_lock);
	return s;
}

bool fake_is_stream(const void *s)
{
	return s && ((const struct fake_stream *)s)->magic == STREAM_MAGIC;
}

int fake_stream_device(const struct fake_stream *s)
{
	return s->device;
}

void fake_stream_free(struct fake_stream *s)
{
	pthread_mutex_lock(&fake_lock);
	s->closing = true;
	pthread_cond_signal(&s->work);
	for (struct fake_stream **p = &streams; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	pthread_mutex_unlock(&fake_lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->work);
	s->magic = 0;
	free(s->ops.op);
	free(s);
}

static void wait_done(struct fake_stream *s)
{
	const uint64_t until = s->pushed;

	while (s->done < until)
		pthread_cond_wait(&fake_progress, &fake_lock);
}

int fake_stream_wait(struct fake_stream *s)
{
	pthread_mutex_lock(&fake_lock);
	int code = OK;
	if (s->capture) {
		fake_invalidate(s->capture);
		code = CAPTURE_UNSUPPORTED;
	} else {
		wait_done(s);
	}
	pthread_mutex_unlock(&fake_lock);
	return code ? code : fake_lost(s->device);
}

void fake_device_wait(int device)
{
	pthread_mutex_lock(&fake_lock);
	// streams may be created and destroyed meanwhile
	for (struct fake_stream *s = streams; s;)
		if ((device < 0 || s->device == device) && s->done < s->pushed) {
			pthread_cond_wait(&fake_progress, &fake_lock);
			s = streams;
		} else {
			s = s->next;
		}
	pthread_mutex_unlock(&fake_lock);
}

int fake_push(struct fake_stream *s, struct op *o)
{
	if (s->capture) {
		if (s->capture->invalid)
			return CAPTURE_INVALIDATED;
		if (!ops_add(&s->capture->graph->ops, o))
			return OUT_OF_MEMORY;
		s->captured++;
		return OK;
	}
	if (s->first && s->ops.n == s->ops.cap) { // completed entries are removed
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

int fake_push_new(struct fake_stream *s, struct op *o)
{
	if (!o)
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&fake_lock);
	const int code = fake_push(s, o);
	pthread_mutex_unlock(&fake_lock);
	if (code)
		fake_op_unref(o);
	return code;
}

struct op *fake_op_new(enum op_kind kind)
{
	struct op *o = calloc(1, sizeof *o);

	if (o) {
		o->refs = 1;
		o->kind = kind;
	}
	return o;
}

int fake_push_launch(struct fake_stream *s, const struct fake_launch *l)
{
	const struct fake_kernel *k = l->kernel;
	size_t bytes = (k->params + 1) * sizeof(void *);
	struct op *o = fake_op_new(LAUNCH);

	if (!o)
		return OUT_OF_MEMORY;
	bytes = (bytes + 15) & ~(size_t)15;
	for (unsigned i = 0; i < k->params; i++)
		bytes += (k->bytes[i] + 15) & ~15u;
	o->launch = *l;
	char *all = malloc(bytes);
	o->launch.params = (void **)all;
	if (!all) {
		fake_op_unref(o);
		return OUT_OF_MEMORY;
	}
	char *at = all + (((k->params + 1) * sizeof(void *) + 15) & ~(size_t)15);
	for (unsigned i = 0; i < k->params; i++) {
		memcpy(at, l->params[i], k->bytes[i]);
		o->launch.params[i] = at;
		at += (k->bytes[i] + 15) & ~15u;
	}
	return fake_push_new(s, o);
}

int fake_push_copy(struct fake_stream *s, void *to, const void *from, size_t bytes, bool keep,
		   bool lie)
{
	struct op *o = fake_op_new(COPY);
	void *copy = NULL;

	if (!o)
		return OUT_OF_MEMORY;
	if (keep && !(copy = malloc(bytes))) {
		fake_op_unref(o);
		return OUT_OF_MEMORY;
	}
	if (keep)
		memcpy(copy, from, bytes);
	o->copy.to = to;
	o->copy.from = keep ? copy : from;
	o->copy.bytes = bytes;
	o->copy.owned = keep;
	o->copy.lie = lie;
	return fake_push_new(s, o);
}

int fake_push_fill(struct fake_stream *s, void *to, size_t count, const void *pattern,
		   size_t pattern_bytes)
{
	struct op *o = fake_op_new(FILL);

	if (!o)
		return OUT_OF_MEMORY;
	o->fill.to = to;
	o->fill.count = count;
	o->fill.bytes = pattern_bytes;
	memcpy(o->fill.pattern, pattern, pattern_bytes);
	return fake_push_new(s, o);
}

int fake_push_call(struct fake_stream *s, void (*call)(void *arg), void *arg)
{
	struct op *o = fake_op_new(CALL);

	if (!o) {
		free(arg);
		return OUT_OF_MEMORY;
	}
	o->call.call = call;
	o->call.arg = arg;
	return fake_push_new(s, o);
}
