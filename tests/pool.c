// SPDX-License-Identifier: Apache-2.0
// Tests the memory pool over a backend defined here, whose queues run late and whose memory is a
// map of the last user of each granule: blocks never overlap, are aligned, and change queues only
// after an event.
#include "config.h"

#include <pthread.h>

#include "base/error.h"
#include "base/param.h"
#include "device/pool.h"
#include "tap.h"

#define MIB ((uint64_t)1 << 20)
#define QUEUES 24
#define GRANULE 256

// ---- the backend: a queue is a count of enqueued and of completed steps ----

struct clock { // completed steps of each queue, as known to the pool
	uint32_t at[QUEUES];
};

struct fake_queue {
	int id;
	uint32_t enqueued, completed, flushed;
	struct clock behind;
};

struct fake_event {
	struct fake_queue *queue;
	uint32_t step;
	struct clock behind;
};

struct granule {
	bool live;
	uint8_t queue; // of its last use, +1; 0: never used
	uint32_t step;
};

struct fake_segment {
	uint64_t bytes, live;
	struct granule *granule;
	struct fake_segment *next;
};

static pthread_mutex_t world = PTHREAD_MUTEX_INITIALIZER; // for the whole backend
static struct fake_queue queue[QUEUES];
static int nqueues;
static struct fake_segment *segments;
static uint64_t reserved, nsegments, capacity = UINT64_MAX;
static int waits, fills, wrong_order, unflushed;
static bool has_host;
static enum { AT_ONCE, LATE, ON_WAIT } pace; // when steps complete; LATE: at random

static int fake_segment_new(uint32_t device, int kind, uint64_t bytes, void **to)
{
	(void)device, (void)kind;
	if (reserved + bytes > capacity)
		return yk_fail(YOKE_ENOMEM, "the fake is full");
	struct fake_segment *s = calloc(1, sizeof *s);
	s->bytes = bytes;
	s->granule = calloc(bytes / GRANULE, sizeof *s->granule);
	pthread_mutex_lock(&world);
	s->next = segments;
	segments = s;
	reserved += bytes;
	nsegments++;
	pthread_mutex_unlock(&world);
	*to = s;
	return 0;
}

static void fake_segment_free(uint32_t device, void *segment)
{
	(void)device;
	struct fake_segment *s = segment, **at = &segments;
	pthread_mutex_lock(&world);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	reserved -= s->bytes;
	nsegments--;
	for (uint64_t i = 0; i < s->bytes / GRANULE; i++) // must not be used any more
		wrong_order += s->granule[i].live || (s->granule[i].queue &&
			queue[s->granule[i].queue - 1].completed < s->granule[i].step);
	pthread_mutex_unlock(&world);
	free(s->granule);
	free(s);
}

static void *fake_segment_host(void *segment)
{
	return has_host ? segment : NULL; // only its presence counts; nothing is written
}

static int fake_queue_new(uint32_t device, int kind, void **to)
{
	(void)device, (void)kind;
	pthread_mutex_lock(&world);
	struct fake_queue *q = &queue[nqueues];
	q->id = nqueues++ % QUEUES;
	pthread_mutex_unlock(&world);
	*to = q;
	return 0;
}

static void fake_queue_free(void *q)
{
	(void)q;
}

static int fake_queue_flush(void *q)
{
	struct fake_queue *f = q;
	pthread_mutex_lock(&world);
	f->flushed = f->enqueued;
	pthread_mutex_unlock(&world);
	return 0;
}

static int fake_fill(void *q, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		     uint32_t pattern_bytes)
{
	struct fake_segment *s = segment;
	(void)q, (void)pattern;
	fills++;
	return offset + bytes <= s->bytes && bytes % pattern_bytes == 0 ? 0 : YOKE_EINVAL;
}

static int fake_event_mark(void *q, void **to)
{
	struct fake_event *e = malloc(sizeof *e);
	pthread_mutex_lock(&world);
	e->queue = q;
	e->step = ++e->queue->enqueued;
	e->queue->behind.at[e->queue->id] = e->step;
	e->behind = e->queue->behind;
	if (pace == AT_ONCE)
		e->queue->completed = e->step;
	pthread_mutex_unlock(&world);
	*to = e;
	return 0;
}

static void complete(const struct clock *c)
{
	for (int i = 0; i < QUEUES; i++)
		if (queue[i].completed < c->at[i])
			queue[i].completed = c->at[i];
}

static int fake_event_after(void *q, void *event)
{
	struct fake_queue *f = q;
	struct fake_event *e = event;
	pthread_mutex_lock(&world);
	unflushed += e->queue->flushed < e->step;
	for (int i = 0; i < QUEUES; i++)
		if (f->behind.at[i] < e->behind.at[i])
			f->behind.at[i] = e->behind.at[i];
	pthread_mutex_unlock(&world);
	return 0;
}

static int fake_event_done(void *event)
{
	struct fake_event *e = event;
	static unsigned chance;
	pthread_mutex_lock(&world);
	if (pace == LATE && ++chance % 5 == 0)
		complete(&e->behind);
	int is = e->queue->completed >= e->step;
	pthread_mutex_unlock(&world);
	return is;
}

static int fake_event_wait(void *event)
{
	struct fake_event *e = event;
	pthread_mutex_lock(&world);
	waits++;
	complete(&e->behind);
	pthread_mutex_unlock(&world);
	return 0;
}

static void fake_event_free(void *event)
{
	free(event);
}

// Free memory is unknown.
static int fake_device_info(uint32_t index, struct yoke_device_info *to)
{
	(void)index;
	*to = (struct yoke_device_info){ .size = sizeof *to };
	return 0;
}

static const struct yoke_backend fake = {
	.size = sizeof fake, .abi = YOKE_ABI, .name = "fake",
	.device_info = fake_device_info,
	.segment_new = fake_segment_new, .segment_free = fake_segment_free,
	.segment_host = fake_segment_host,
	.queue_new = fake_queue_new, .queue_free = fake_queue_free, .queue_flush = fake_queue_flush,
	.fill = fake_fill,
	.event_mark = fake_event_mark, .event_after = fake_event_after,
	.event_done = fake_event_done, .event_wait = fake_event_wait, .event_free = fake_event_free,
};

static struct yk_device device = {
	.ops = &fake, .id = "fake:0",
	.info = { .memory = 1 << 30, .max_segment = 1 << 30, .align = 64 },
};

// Forgets all queues.
static void restart(void)
{
	memset(queue, 0, sizeof queue);
	nqueues = 0;
}

// ---- what a user does with a block ----

// Takes over a block in the map; counts errors.
static int take(const struct yk_block *b, const struct yk_queue *q)
{
	struct fake_segment *s = b->segment;
	const struct fake_queue *f = q ? q->handle : NULL;
	int bad = b->offset % GRANULE != 0 || b->offset + b->bytes > s->bytes;

	pthread_mutex_lock(&world);
	for (uint64_t i = b->offset / GRANULE; !bad && i < (b->offset + b->bytes) / GRANULE; i++) {
		struct granule *g = &s->granule[i];
		bad += g->live;
		if (g->queue && (!f || g->queue - 1 != f->id)) {
			bool done = queue[g->queue - 1].completed >= g->step;
			bad += !done && !(f && f->behind.at[g->queue - 1] >= g->step);
		}
		g->live = true;
	}
	s->live += b->bytes;
	pthread_mutex_unlock(&world);
	return bad;
}

// The last use of it by the queue; with q NULL by the host.
static void leave(const struct yk_block *b, const struct yk_queue *q)
{
	struct fake_segment *s = b->segment;
	struct fake_queue *f = q ? q->handle : NULL;

	pthread_mutex_lock(&world);
	uint32_t step = f ? ++f->enqueued : 0;
	if (f)
		f->behind.at[f->id] = step;
	for (uint64_t i = b->offset / GRANULE; i < (b->offset + b->bytes) / GRANULE; i++)
		s->granule[i] = (struct granule){ false, f ? (uint8_t)(f->id + 1) : 0, step };
	s->live -= b->bytes;
	pthread_mutex_unlock(&world);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

// Mostly small, sometimes medium, rarely large; around the borders of the classes too.
static uint64_t random_size(uint64_t *state)
{
	static const uint64_t border[] = { 0, 1, 255, 256, 257, MIB - 1, MIB, MIB + 1, 2 * MIB };
	uint64_t r = next_random(state) % 100, s = next_random(state);
	if (r < 10)
		return border[s % (sizeof border / sizeof *border)];
	if (r < 85)
		return s % (64 << 10);
	return r < 99 ? s % (4 * MIB) : 16 * MIB + s % (2 * MIB);
}

// ---- random traffic ----

#define HELD 24

struct traffic {
	struct yk_pool *pool;
	struct yk_queue *q[2];
	uint64_t seed;
	int steps, bad, failed;
};

static void *traffic(void *arg)
{
	struct traffic *t = arg;
	struct yk_block *held[HELD] = { NULL };
	struct yk_queue *on[HELD] = { NULL };
	uint64_t r = t->seed;

	for (int i = 0; i < t->steps; i++) {
		int k = (int)(next_random(&r) % HELD);
		struct yk_queue *q = next_random(&r) % 32 ? t->q[next_random(&r) % 2] : NULL;
		if (held[k]) {
			struct yk_event *e = NULL;
			leave(held[k], on[k]);
			if (on[k] && next_random(&r) % 2)
				yk_event_mark(on[k], &e);
			yk_pool_free(held[k], on[k], e);
			yk_event_unref(e);
			held[k] = NULL;
		} else if (yk_pool_alloc(t->pool, random_size(&r), q, &held[k]) < 0) {
			t->failed++;
			yoke_error_clear();
		} else {
			on[k] = q;
			t->bad += take(held[k], q);
		}
	}
	for (int k = 0; k < HELD; k++)
		if (held[k]) {
			leave(held[k], on[k]);
			yk_pool_free(held[k], on[k], NULL);
		}
	return NULL;
}

static void threads(const char *what, bool expect_failures)
{
	pthread_t thread[8];
	struct traffic t[8];
	struct yk_pool_stats s;
	int bad = 0, failed = 0;
	struct yk_pool *p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);

	pace = LATE;
	waits = wrong_order = unflushed = 0;
	restart();
	for (int i = 0; i < 8; i++) {
		t[i] = (struct traffic){ .pool = p, .seed = rnd() | 1, .steps = 1500 };
		for (int k = 0; k < 2; k++)
			yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &t[i].q[k]);
	}
	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, traffic, &t[i]);
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], NULL);
		bad += t[i].bad;
		failed += t[i].failed;
	}
	yk_pool_stats(p, &s);
	ok(!bad, "%s: blocks are aligned, disjoint, and ordered by events (%d errors)", what, bad);
	ok(!unflushed, "%s: queues are flushed before others wait for them", what);
	if (expect_failures)
		ok(s.num_ooms == (uint64_t)failed && s.num_alloc_retries >= s.num_ooms,
		   "%s: %d requests failed, %llu counted, %llu retries", what, failed,
		   (unsigned long long)s.num_ooms, (unsigned long long)s.num_alloc_retries);
	else
		ok(!failed && !waits, "%s: no request fails (%d), the host never waits (%d)", what,
		   failed, waits);
	ok(s.allocated_bytes.current == 0 && s.allocation.current == 0 &&
	   s.allocated_bytes.allocated == s.allocated_bytes.freed &&
	   s.inactive_split_bytes.current == 0, "%s: all blocks are returned", what);
	ok(s.reserved_bytes.current == reserved && s.segment.current == nsegments,
	   "%s: reserved %llu is what the backend allocated", what, (unsigned long long)reserved);
	ok(s.hits + s.misses == s.allocation.allocated,
	   "%s: hits and misses add up to all requests", what);
	diag("%s: %llu hits, %llu misses, reserved peak %llu MiB, allocated peak %llu MiB", what,
	     (unsigned long long)s.hits, (unsigned long long)s.misses,
	     (unsigned long long)(s.reserved_bytes.peak / MIB),
	     (unsigned long long)(s.allocated_bytes.peak / MIB));
	ok(yk_pool_trim(p) == s.reserved_bytes.current && !reserved && !wrong_order,
	   "%s: trim releases everything, idle", what);
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 2; k++)
			yk_queue_free(t[i].q[k]);
	yk_pool_delete(p);
	pace = AT_ONCE;
}

// ---- numbers ----

// Longest run of granules without a block.
static uint64_t longest_free(void)
{
	uint64_t max = 0;
	for (struct fake_segment *s = segments; s; s = s->next)
		for (uint64_t i = 0, run = 0; i < s->bytes / GRANULE; i++) {
			run = s->granule[i].live ? 0 : run + GRANULE;
			max = run > max ? run : max;
		}
	return max;
}

static uint64_t split_free(void)
{
	uint64_t sum = 0;
	for (struct fake_segment *s = segments; s; s = s->next)
		sum += s->live ? s->bytes - s->live : 0;
	return sum;
}

static void statistics(void)
{
	struct yk_pool *p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	struct yk_block *held[64] = { NULL };
	struct yk_queue *q;
	struct yk_pool_stats s;
	uint64_t r = rnd() | 1, live = 0, peak = 0, ever = 0, count = 0;
	uint64_t reserved_peak = 0, split_peak = 0;
	int bad = 0;

	restart();
	yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &q);
	for (int i = 0; i < 3000 && bad < 5; i++) {
		int k = (int)(next_random(&r) % 64);
		if (held[k]) {
			live -= held[k]->bytes;
			leave(held[k], q);
			yk_pool_free(held[k], q, NULL);
			held[k] = NULL;
		} else {
			uint64_t bytes = random_size(&r);
			yk_pool_alloc(p, bytes, q, &held[k]);
			bad += take(held[k], q);
			bad += held[k]->bytes != yk_pool_round(p, bytes) || held[k]->bytes < bytes;
			live += held[k]->bytes;
			ever += held[k]->bytes;
			count++;
		}
		peak = live > peak ? live : peak;
		reserved_peak = reserved > reserved_peak ? reserved : reserved_peak;
		if (i % 16)
			continue;
		yk_pool_stats(p, &s);
		uint64_t split = split_free();
		split_peak = split > split_peak ? split : split_peak;
		bad += s.allocated_bytes.current != live || s.active_bytes.current != live ||
		       s.allocated_bytes.peak != peak || s.allocated_bytes.allocated != ever ||
		       s.allocation.allocated != count || s.reserved_bytes.current != reserved ||
		       s.reserved_bytes.peak != reserved_peak || s.segment.current != nsegments ||
		       s.inactive_split_bytes.current != split ||
		       s.inactive_split_bytes.peak < split_peak || s.largest_free != longest_free();
		if (bad)
			diag("step %d: allocated %llu want %llu, split %llu want %llu, largest %llu "
			     "want %llu",
			     i, (unsigned long long)s.allocated_bytes.current,
			     (unsigned long long)live,
			     (unsigned long long)s.inactive_split_bytes.current,
			     (unsigned long long)split, (unsigned long long)s.largest_free,
			     (unsigned long long)longest_free());
	}
	ok(!bad, "statistics agree with a model");
	for (int k = 0; k < 64; k++)
		if (held[k]) {
			leave(held[k], q);
			yk_pool_free(held[k], q, NULL);
		}
	yk_pool_reset_peaks(p);
	yk_pool_stats(p, &s);
	ok(s.allocated_bytes.peak == 0 && s.reserved_bytes.peak == reserved, "peaks are reset");
	yk_queue_free(q);
	yk_pool_delete(p);
	ok(!segments, "no segment is left");
}

// The same requests in each step, as in training. keep: half of the blocks, the new versions of
// variables, live until the next step has replaced them.
static void repeated(bool keep, struct yk_pool_stats *warm, struct yk_pool_stats *end)
{
	enum { N = 200, STEPS = 100, WARM = 4 };
	struct yk_pool *p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	struct yk_block *block[2][N] = { { NULL } };
	struct yk_queue *q;
	uint64_t size[N], r = rnd() | 1;

	restart();
	yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &q);
	pace = LATE;
	for (int i = 0; i < N; i++)
		size[i] = i % 20 ? random_size(&r) : 20 * MIB + (uint64_t)i * 4096;
	for (int t = 0; t < STEPS; t++) {
		if (t == WARM)
			yk_pool_stats(p, warm);
		struct yk_block **now = block[t % 2], **last = block[!(t % 2)];
		for (int i = 0; i < N; i++) {
			yk_pool_alloc(p, size[i], q, &now[i]);
			if (!keep || i >= N / 2)
				continue;
			yk_pool_free(last[i], q, NULL);
			last[i] = NULL;
		}
		for (int i = keep ? N / 2 : 0; i < N; i++)
			yk_pool_free(now[i], q, NULL);
		memset(now + N / 2, 0, N / 2 * sizeof *now);
	}
	for (int i = 0; keep && i < N / 2; i++)
		yk_pool_free(block[(STEPS - 1) % 2][i], q, NULL);
	pace = AT_ONCE;
	yk_pool_stats(p, end);
	yk_queue_free(q);
	yk_pool_delete(p);
}

static void steady(void)
{
	struct yk_pool_stats warm, end;

	repeated(false, &warm, &end);
	ok(end.misses == warm.misses && end.hits > warm.hits,
	   "equal steps have no misses: %llu of %llu, "
	   "all in warm-up",
	   (unsigned long long)end.misses, (unsigned long long)end.allocation.allocated);
	repeated(true, &warm, &end);
	uint64_t misses = end.misses - warm.misses, hits = end.hits - warm.hits;
	ok(misses * 1000 < hits, "nor do steps that keep versions, except %llu of %llu requests",
	   (unsigned long long)misses, (unsigned long long)hits);
}

// ---- limits ----

static bool has(const char *word)
{
	bool is = strstr(yoke_error(), word) != NULL;
	if (!is)
		diag("'%s' not in: %s", word, yoke_error());
	return is;
}

static void limits(void)
{
	struct yk_block *a = NULL, *b = NULL, *c = NULL;
	struct yk_pool_stats s;
	struct yk_queue *q;

	restart();
	yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &q);
	yk_param_set("memory", "64M", YK_ARGUMENT);
	struct yk_pool *p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	ok(!yk_pool_alloc(p, 40 * MIB, q, &a), "40 of 64 MiB are allocated");
	ok(!yk_pool_alloc(p, 20 * MIB, q, &b), "20 more");
	ok(yk_pool_alloc(p, 20 * MIB, q, &c) == YOKE_ENOMEM && has("fake:0") &&
	   has("20.00 MiB requested") && has("60.00 MiB allocated") && has("60.00 MiB reserved") &&
	   has("limit 64.00 MiB") && has("largest free block"), "20 more fail with a reason");
	diag("%s", yoke_error());
	yoke_error_clear();
	yk_pool_free(a, q, NULL);
	ok(!yk_pool_alloc(p, 44 * MIB, q, &c), "44 after 40 are free: trimmed and retried");
	yk_pool_stats(p, &s);
	ok(s.num_alloc_retries == 2 && s.num_ooms == 1 && s.reserved_bytes.current == 64 * MIB,
	   "one more retry, no failure, %llu MiB reserved",
	   (unsigned long long)(s.reserved_bytes.current / MIB));
	ok(!*yoke_error(), "a successful retry leaves no error");
	yk_pool_free(c, q, NULL);
	ok(!yk_pool_alloc(p, 100, q, &c), "a small block where no small segment has space");
	yk_pool_free(c, q, NULL);
	yk_pool_free(b, q, NULL);
	yk_pool_delete(p);
	ok(yk_param_set("memory", "0", YK_ARGUMENT) == 0 && !segments, "no segment is left");

	p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	capacity = 48 * MIB;
	ok(!yk_pool_alloc(p, 40 * MIB, q, &a), "40 of the device's 48 MiB");
	ok(yk_pool_alloc(p, 9 * MIB, q, &b) == YOKE_ENOMEM && has("limit none") &&
	   has("the fake is full"), "9 more fail with the backend's reason");
	yoke_error_clear();
	ok(!yk_pool_alloc(p, 7 * MIB, q, &b), "7 more fit, though no full segment does");
	yk_pool_free(b, q, NULL);
	yk_pool_free(a, q, NULL);
	ok(yk_pool_alloc(p, UINT64_MAX, q, &a) == YOKE_ENOMEM, "no size overflows");
	yoke_error_clear();
	ok(yk_pool_alloc(p, UINT64_MAX - 4096, q, &a) == YOKE_ENOMEM, "nor does one a little less");
	yoke_error_clear();
	capacity = UINT64_MAX;
	yk_pool_delete(p);

	device.info.max_segment = 24 * MIB;
	p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	ok(!yk_pool_alloc(p, 10 * MIB, q, &a) && !yk_pool_alloc(p, 24 * MIB, q, &b),
	   "segments do not exceed the device's maximum");
	ok(yk_pool_alloc(p, 24 * MIB + 1, q, &c) == YOKE_ENOMEM, "nor do blocks");
	yoke_error_clear();
	yk_pool_free(a, q, NULL);
	yk_pool_free(b, q, NULL);
	yk_pool_delete(p);
	device.info.max_segment = 1 << 30;
	yk_queue_free(q);
}

static void modes(void)
{
	struct yk_block *a = NULL, *b = NULL;
	struct yk_queue *q, *other;
	struct yk_pool_stats s;

	restart();
	yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &q);
	yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &other);
	yk_param_set("pool", "0", YK_ARGUMENT);
	struct yk_pool *p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	pace = ON_WAIT;
	ok(!yk_pool_alloc(p, 1000, q, &a) && !yk_pool_alloc(p, 5 * MIB, q, &b) && nsegments == 2 &&
	   reserved == 1024 + 5 * MIB, "YOKE_POOL=0: a segment for each block");
	take(a, q);
	leave(a, q);
	wrong_order = 0;
	yk_pool_free(a, q, NULL);
	ok(nsegments == 1 && !wrong_order,
	   "YOKE_POOL=0: a segment is freed at once when its work is done");
	yk_pool_free(b, q, NULL);
	yk_pool_delete(p);
	yk_param_set("pool", "1", YK_ARGUMENT);

	p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	fills = 0;
	ok(!yk_pool_alloc(p, 1, q, &a) && fills == 2, "a new segment is used from both ends");
	has_host = true;
	yk_pool_alloc(p, 40 * MIB, q, &b);
	ok(fills == 2 && b->host && (char *)b->host == (char *)b->segment + b->offset,
	   "except one with a host address");
	yk_pool_free(b, q, NULL);
	uint64_t offset = a->offset;
	yk_pool_free(a, q, NULL);
	waits = 0;
	ok(!yk_pool_alloc(p, 1, q, &a) && a->offset == offset,
	   "the same queue gets its block again");
	ok(!yk_pool_alloc(p, 1, NULL, &b) && b->segment != a->segment && !waits,
	   "a block with a pending event is not given to the host");
	yk_pool_free(a, q, NULL);
	yk_pool_free(b, NULL, NULL);
	yk_pool_free(NULL, q, NULL);
	yk_pool_stats(p, &s);
	ok(s.allocation.current == 0, "all blocks are returned");
	has_host = false;

	device.info.align = 4096;
	struct yk_pool *aligned = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	yk_pool_alloc(aligned, 1, q, &a);
	yk_pool_alloc(aligned, 4097, q, &b);
	ok(a->bytes == 4096 && b->bytes == 8192 && b->offset % 4096 == 0,
	   "alignment of the device");
	yk_pool_free(a, q, NULL);
	yk_pool_free(b, q, NULL);
	yk_pool_delete(aligned);
	device.info.align = 64;
	pace = AT_ONCE;
	yk_queue_free(other);
	yk_queue_free(q);
	yk_pool_delete(p);
	ok(!segments, "no segment is left");
}

// A reused block belongs to the group that requests it now, from the first moment on.
static void groups(void)
{
	struct yk_queue *q;
	struct yk_block *a = NULL, *b = NULL, *c = NULL;
	int one, two;

	restart();
	yk_queue_new(&device, YOKE_QUEUE_COMPUTE, &q);
	struct yk_pool *p = yk_pool_new(&device, YOKE_SEGMENT_DEVICE);
	const struct yk_movable first = { &one, q, q, NULL }, second = { &two, q, q, NULL };
	yk_pool_alloc_among(p, MIB, q, first, &a);
	a->owner = &a;
	ok(a->group == &one, "a block belongs to the group that requested it");
	void *segment = a->segment;
	uint64_t offset = a->offset;
	yk_pool_free(a, q, NULL);
	yk_pool_alloc_among(p, MIB, q, second, &b);
	ok(b->segment == segment && b->offset == offset && b->group == &two && !b->owner,
	   "a reused block belongs to the new group, and is not movable yet");
	yk_pool_free(b, q, NULL);
	yk_pool_alloc(p, MIB, q, &c);
	ok(c->segment == segment && c->offset == offset && !c->group && !c->owner,
	   "or to no group");
	yk_pool_free(c, q, NULL);
	yk_queue_free(q);
	yk_pool_delete(p);
}

int main(void)
{
	tap_seed();
	yk_param_set("memory", "0", YK_ARGUMENT);
	yk_param_set("pool", "1", YK_ARGUMENT);
	has_host = true;
	statistics();
	steady();
	threads("8 threads", false);
	capacity = 160 * MIB;
	threads("8 threads, scarce", true);
	capacity = UINT64_MAX;
	has_host = false;
	limits();
	modes();
	groups();
	return done();
}
