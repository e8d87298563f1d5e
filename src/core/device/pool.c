// SPDX-License-Identifier: Apache-2.0
// Memory pool: carves a device's raw segments into blocks and reuses them.  A free chunk carries
// stamps, events of the work that may still use it.  Queues run in order, so the queue of that work
// may take the chunk at once; another queue waits for the event.  The host itself waits for a
// device only before an allocation fails.
#include "config.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "device/pool_priv.h"

YK_PARAM(pool_setting, "pool", YK_BOOL, "1", "reuse device memory; 0: every block is a segment",
	 .debug = true);
YK_PARAM(memory_setting, "memory", YK_BYTES, "0", "maximum bytes to reserve on a device; 0: no "
	"limit");

#define MIB ((uint64_t)1 << 20)

// Requests up to half a segment share segments, as in PyTorch's caching allocator: at least two
// fit, so fragmentation wastes at most half of a segment.  Larger requests get their own segment,
// rounded up to 2 MiB, the size of a huge page.  Small blocks are kept apart from large ones,
// because their turnover would prevent large free chunks from merging; blocks that live for one
// launch are kept apart from the rest.
enum { SMALL, MEDIUM, LARGE, BRIEF };
static const uint64_t segment_bytes[] = { 2 * MIB, 32 * MIB };
static const uint64_t max_request[] = { 1 * MIB, 16 * MIB, UINT64_MAX };
#define LARGE_STEP (2 * MIB)

#define LOOKS 8 // chunks of similar size examined for one that needs no wait

// ---- numbers ----

static void count_up(struct yk_pool_stat *s, uint64_t n)
{
	s->current += n;
	s->allocated += n;
	if (s->current > s->peak)
		s->peak = s->current;
}

static void count_down(struct yk_pool_stat *s, uint64_t n)
{
	s->current -= n;
	s->freed += n;
}

// Free bytes of a segment that cannot be returned to the device, because the segment is in use.
static uint64_t split_bytes(const struct yk_pool_segment *s)
{
	return s->live ? s->bytes - s->live : 0;
}

// Sets the bytes of the segment's blocks.
static void set_live(struct yk_pool *p, struct yk_pool_segment *s, uint64_t live)
{
	uint64_t was = split_bytes(s);
	s->live = live;
	uint64_t is = split_bytes(s);
	if (is > was)
		count_up(&p->stats.inactive_split_bytes, is - was);
	else
		count_down(&p->stats.inactive_split_bytes, was - is);
}

void yk_pool_count_alloc(struct yk_pool *p, struct yk_chunk *c)
{
	count_up(&p->stats.allocated_bytes, c->block.bytes);
	count_up(&p->stats.active_bytes, c->block.bytes);
	count_up(&p->stats.allocation, 1);
	set_live(p, c->segment, c->segment->live + c->block.bytes);
}

void yk_pool_count_free(struct yk_pool *p, struct yk_chunk *c)
{
	count_down(&p->stats.allocated_bytes, c->block.bytes);
	count_down(&p->stats.active_bytes, c->block.bytes);
	count_down(&p->stats.allocation, 1);
	set_live(p, c->segment, c->segment->live - c->block.bytes);
}

// UINT64_MAX on overflow.
static uint64_t round_up(uint64_t n, uint64_t step)
{
	uint64_t sum;
	return __builtin_add_overflow(n, step - 1, &sum) ? UINT64_MAX : sum & ~(step - 1);
}

static int class_of(uint64_t bytes, bool brief)
{
	int class = SMALL;
	while (bytes > max_request[class])
		class++;
	return brief && class == SMALL ? BRIEF : class;
}

// Large sizes are rounded to few values, so that blocks of similar size can reuse each other's
// chunks.
uint64_t yk_pool_round(struct yk_pool *p, uint64_t bytes)
{
	uint64_t max = p->device->info.max_segment & ~(p->granule - 1);
	uint64_t n = round_up(bytes ? bytes : 1, p->granule);

	if (class_of(n, false) < LARGE || n > max || p->off)
		return n;
	n = round_up(n, LARGE_STEP);
	return n < max ? n : max;
}

// ---- chunks ----

static struct yk_chunk *chunk_new(struct yk_pool *p, struct yk_pool_segment *s, uint64_t offset,
				  uint64_t bytes)
{
	struct yk_chunk *c = p->spare;
	if (c)
		p->spare = c->next;
	else if (!(c = malloc(sizeof *c)))
		return NULL;
	p->random = p->random * 1664525u + 1013904223u; // Numerical Recipes' generator
	*c = (struct yk_chunk){
		.block = { .segment = s->handle,
			   .offset = offset,
			   .bytes = bytes,
			   .pool = p,
			   .host = s->host ? s->host + offset : NULL },
		.segment = s,
		.priority = p->random,
	};
	return c;
}

static void chunk_drop(struct yk_pool *p, struct yk_chunk *c)
{
	c->next = p->spare;
	p->spare = c;
}

static struct yk_chunk **tree_of(struct yk_pool *p, const struct yk_chunk *c)
{
	if (c->segment->class == SMALL || c->segment->class == BRIEF)
		return &p->tree[c->segment->class];
	bool large = c->segment->class == LARGE && c->block.bytes > max_request[MEDIUM];
	return &p->tree[large ? LARGE : MEDIUM];
}

void yk_pool_show(struct yk_pool *p, struct yk_chunk *c)
{
	yk_chunk_insert(tree_of(p, c), c);
}

void yk_pool_hide(struct yk_pool *p, struct yk_chunk *c)
{
	yk_chunk_remove(tree_of(p, c), c);
}

static void make_free(struct yk_pool *p, struct yk_chunk *c)
{
	c->free = true;
	yk_pool_show(p, c);
}

static void make_used(struct yk_pool *p, struct yk_chunk *c)
{
	yk_pool_hide(p, c);
	c->free = false;
}

// Merges two neighbours that are in no tree; n is freed.
static void join(struct yk_pool *p, struct yk_chunk *c, struct yk_chunk *n)
{
	for (int i = 0; i < n->nstamps; i++)
		yk_chunk_stamp(c, n->stamp[i]);
	c->block.bytes += n->block.bytes;
	c->next = n->next;
	if (c->next)
		c->next->prev = c;
	chunk_drop(p, n);
}

struct yk_chunk *yk_pool_free_chunk(struct yk_pool *p, struct yk_chunk *c)
{
	struct yk_chunk *n;

	while ((n = c->next) && n->free && yk_chunk_stamps_fit(c, n)) {
		make_used(p, n);
		join(p, c, n);
	}
	while ((n = c->prev) && n->free && yk_chunk_stamps_fit(n, c)) {
		make_used(p, n);
		join(p, n, c);
		c = n;
	}
	make_free(p, c);
	return c;
}

void yk_pool_split(struct yk_pool *p, struct yk_chunk *c, uint64_t bytes)
{
	if (c->block.bytes == bytes)
		return;
	struct yk_chunk *rest = chunk_new(p, c->segment, c->block.offset + bytes,
					  c->block.bytes - bytes);
	if (!rest) // no host memory for a node: the block stays larger than requested
		return;
	for (int i = 0; i < c->nstamps; i++)
		yk_chunk_stamp(rest, yk_event_ref(c->stamp[i]));
	rest->prev = c;
	rest->next = c->next;
	if (rest->next)
		rest->next->prev = rest;
	c->next = rest;
	c->block.bytes = bytes;
	make_free(p, rest);
}

// ---- segments ----

// On many OpenCL drivers allocation succeeds and the first use fails, so both ends are written at
// once.  Memory with a host address is not touched: the workers' first touch places its pages near
// them (NUMA).
static int touch(struct yk_pool *p, void *handle, uint64_t bytes)
{
	const uint32_t zero = 0;

	if (!p->toucher && yk_queue_new(p->device, YOKE_QUEUE_COMPUTE, &p->toucher) < 0)
		return YOKE_EDEVICE;
	int code = yk_queue_fill(p->toucher, handle, 0, p->granule, &zero, sizeof zero);
	if (code >= 0)
		code = yk_queue_fill(p->toucher, handle, bytes - p->granule, p->granule, &zero,
				     sizeof zero);
	int waited = yk_queue_wait(p->toucher);
	if (waited < 0) { // the device responded
		struct yk_queue_failure failure;
		yk_queue_take(p->toucher, &failure);
	}
	return code < 0 ? code : waited;
}

// Allocates a segment as one chunk that is in no tree.
static int segment_new(struct yk_pool *p, int class, uint64_t bytes, struct yk_chunk **to)
{
	const struct yoke_backend *ops = p->device->ops;
	uint64_t sum;
	void *handle = NULL;

	if (bytes > p->device->info.max_segment ||
	    __builtin_add_overflow(p->stats.reserved_bytes.current, bytes, &sum) || sum > p->limit)
		return YOKE_ENOMEM;
	struct yk_pool_segment *s = calloc(1, sizeof *s);
	if (!s)
		return YOKE_ENOMEM;
	int code = ops->segment_new(p->device->index, p->kind, bytes, &handle);
	if (code >= 0 && !handle)
		code = YOKE_EDEVICE;
	if (code < 0)
		goto fail;
	s->handle = handle;
	s->host = ops->segment_host(handle);
	s->bytes = bytes;
	s->class = class;
	s->serial = p->serial++;
	if (!s->host && p->kind == YOKE_SEGMENT_HOST)
		code = yk_fail(YOKE_EDEVICE, "memory for staging has no address");
	else if (!s->host)
		code = touch(p, handle, bytes);
	if (code < 0)
		goto fail_touch;
	s->first = chunk_new(p, s, 0, bytes);
	if (!s->first) {
		code = YOKE_ENOMEM;
		goto fail_touch;
	}
	s->next = p->segments;
	if (s->next)
		s->next->prev = s;
	p->segments = s;
	count_up(&p->stats.reserved_bytes, bytes);
	count_up(&p->stats.segment, 1);
	yk_pool_note(p, YK_MOMENT_SEGMENT, s->first, NULL);
	*to = s->first;
	return 0;

fail_touch:
	ops->segment_free(p->device->index, handle);
fail:
	free(s);
	return code;
}

// Returns an empty segment to the device once its work is done; false if the device does not
// confirm that.
static bool segment_free(struct yk_pool *p, struct yk_pool_segment *s)
{
	for (struct yk_chunk *c = s->first; c; c = c->next)
		if (!yk_chunk_wait(c))
			return false;
	yk_pool_note(p, YK_MOMENT_RELEASE, s->first, NULL);
	for (struct yk_chunk *c = s->first, *next; c; c = next) {
		next = c->next;
		if (c->free)
			make_used(p, c);
		chunk_drop(p, c);
	}
	if (s->next)
		s->next->prev = s->prev;
	*(s->prev ? &s->prev->next : &p->segments) = s->next;
	p->device->ops->segment_free(p->device->index, s->handle);
	p->device->freed++;
	count_down(&p->stats.reserved_bytes, s->bytes);
	count_down(&p->stats.segment, 1);
	free(s);
	return true;
}

uint64_t yk_pool_trim_locked(struct yk_pool *p)
{
	uint64_t bytes = 0;
	for (struct yk_pool_segment *s = p->segments, *next; s; s = next) {
		next = s->next;
		uint64_t size = s->bytes;
		if (!s->live && segment_free(p, s))
			bytes += size;
	}
	if (p->history && bytes)
		yk_history_note(p->history,
				(struct yk_moment){ .kind = YK_MOMENT_TRIM, .bytes = bytes }, NULL);
	return bytes;
}

// Waits for all stamps and merges the chunks that they kept apart.
static void drain(struct yk_pool *p)
{
	for (struct yk_pool_segment *s = p->segments; s; s = s->next)
		for (struct yk_chunk *c = s->first; c; c = c->next) {
			if (!c->free)
				continue;
			yk_chunk_wait(c);
			make_used(p, c);
			for (struct yk_chunk *n = c->next; n && n->free; n = n->next)
				yk_chunk_wait(n);
			c = yk_pool_free_chunk(p, c); // includes its former neighbours
		}
}

// ---- requests ----

// The best fit in a tree: the smallest sufficient chunk, or one of similar size if that needs no
// wait.  For the host (q NULL) only chunks without pending work qualify.
static struct yk_chunk *fit(struct yk_chunk *tree, uint64_t bytes, uint64_t max,
			    const struct yk_queue *q)
{
	struct yk_chunk *first = yk_chunk_fit(tree, bytes), *c = first;

	if (!first || first->block.bytes > max)
		return NULL;
	uint64_t near = first->block.bytes + first->block.bytes / 8;
	for (int i = 0; c && (q ? i < LOOKS && c->block.bytes <= near : c->block.bytes <= max);
	     i++) {
		if (q ? yk_chunk_ready(c, q) : yk_chunk_settle(c))
			return c;
		c = yk_chunk_after(tree, c);
	}
	return q ? first : NULL;
}

struct yk_chunk *yk_pool_lookup(struct yk_pool *p, uint64_t bytes, const struct yk_queue *q,
				bool brief, bool all)
{
	int class = class_of(bytes, brief);
	struct yk_chunk *c = NULL;

	for (int t = all ? SMALL : class; t <= (all ? BRIEF : class) && !c; t++) {
		// chunks of more than twice the size are left for requests that need them
		uint64_t max = class != LARGE || all ? UINT64_MAX : bytes + bytes;
		c = fit(p->tree[t], bytes, max, q);
	}
	if (c)
		make_used(p, c);
	return c;
}

// Allocates a segment.  exact: of just the needed size, for when a full segment cannot be had.
static int grow(struct yk_pool *p, uint64_t bytes, bool brief, bool exact, struct yk_chunk **to)
{
	int class = class_of(bytes, brief);
	uint64_t max = p->device->info.max_segment & ~(p->granule - 1), size = bytes;

	if (class == BRIEF && !exact)
		size = segment_bytes[SMALL] < max ? segment_bytes[SMALL] : max;
	else if (!exact && class < LARGE && bytes <= max)
		size = segment_bytes[class] < max ? segment_bytes[class] : max;
	return segment_new(p, class, size, to);
}

static const char *amount(uint64_t bytes, char to[32])
{
	static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	int u = 0;
	double x = (double)bytes;
	for (; x >= 1024 && u < 6; u++)
		x /= 1024;
	yk_snprintf(to, 32, "%.*f %s", u ? 2 : 0, x, unit[u]);
	return to;
}

static uint64_t largest_free(struct yk_pool *p)
{
	uint64_t max = 0;
	for (int t = 0; t < YK_POOL_TREES; t++) {
		struct yk_chunk *c = yk_chunk_largest(p->tree[t]);
		if (c && c->block.bytes > max)
			max = c->block.bytes;
	}
	return max;
}

// detail: the backend's message.
static int fail(struct yk_pool *p, int code, uint64_t bytes, const char *detail)
{
	char asked[32], room[32], have[32], reserved[32], limit[32] = "none", largest[32],
							  segment[32];
	const uint64_t held = p->stats.allocated_bytes.current, unused = yk_device_free(p->device);
	uint64_t max = yk_pool_capacity(p);

	if (unused && unused + p->stats.reserved_bytes.current < max) // others use the rest
		max = unused + p->stats.reserved_bytes.current;
	p->stats.num_ooms++;
	if (p->history)
		yk_history_note(p->history,
				(struct yk_moment){ .kind = YK_MOMENT_OOM, .bytes = bytes }, NULL);
	if (p->limit != UINT64_MAX)
		amount(p->limit, limit);
	return yk_fail(
		code,
		"out of memory on %s: %s requested, %s free; %s allocated, %s reserved, limit %s "
		"(YOKE_MEMORY), largest free block %s, largest segment %s (%s)",
		p->device->id, amount(bytes, asked), amount(max > held ? max - held : 0, room),
		amount(held, have), amount(p->stats.reserved_bytes.current, reserved), limit,
		amount(largest_free(p), largest), amount(p->device->info.max_segment, segment),
		detail);
}

// The last resort: compacts and searches again.
static struct yk_chunk *find_compacted(struct yk_pool *p, uint64_t bytes, struct yk_queue *q,
				       struct yk_movable m)
{
	struct yk_chunk *c = NULL;

	if (p->off || !q || !m.group || !yk_pool_compact(p, bytes, &m))
		return NULL;
	if (!(c = yk_pool_lookup(p, bytes, q, false, true))) {
		drain(p); // pending stamps may keep neighbours from merging
		c = yk_pool_lookup(p, bytes, q, false, true);
	}
	if (!c && grow(p, bytes, false, true, &c))
		c = NULL;
	return c;
}

// With the lock held; the chunk found is in no tree.
static int find(struct yk_pool *p, uint64_t bytes, struct yk_queue *q, struct yk_movable m,
		bool brief, struct yk_chunk **to)
{
	int code = 0;

	*to = p->off ? NULL : yk_pool_lookup(p, bytes, q, brief, false);
	if (!*to && !(code = grow(p, bytes, brief, p->off, to))) {
		p->stats.misses++;
		return 0;
	}
	if (!*to && !p->off)
		*to = yk_pool_lookup(p, bytes, q, brief, true);
	if (!*to) {
		p->stats.num_alloc_retries++;
		drain(p);
		*to = p->off ? NULL : yk_pool_lookup(p, bytes, q, brief, true);
	}
	if (*to) {
		p->stats.hits++;
		return 0;
	}
	yk_pool_trim_locked(p);
	if ((code = grow(p, bytes, brief, p->off, to)) &&
	    (code = grow(p, bytes, brief, true, to)) && !(*to = find_compacted(p, bytes, q, m)))
		return code;
	p->stats.misses++;
	return 0;
}

// ---- entry points ----

struct yk_pool *yk_pool_new(struct yk_device *d, int kind)
{
	struct yk_pool *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	int64_t limit = kind == YOKE_SEGMENT_DEVICE ? yk_param_int(&memory_setting) : 0;
	p->device = d;
	p->kind = kind;
	p->off = !yk_param_bool(&pool_setting);
	p->granule = d->info.align > 256 ? d->info.align : 256;
	p->limit = limit > 0 ? (uint64_t)limit : UINT64_MAX;
	if (pthread_mutex_init(&p->lock, NULL)) {
		free(p);
		return NULL;
	}
	if (kind == YOKE_SEGMENT_DEVICE && !d->real)
		yk_pool_record_begin(p);
	return p;
}

void yk_pool_delete(struct yk_pool *p)
{
	if (!p)
		return;
	yk_pool_trim_locked(p);
	if (p->segments) // blocks are still in use
		yk_log(YOKE_LOG_ERROR, "pool", "%s: deleted with %llu blocks in use, which leak",
		       p->device->id, (unsigned long long)p->stats.allocation.current);
	yk_queue_free(p->toucher);
	yk_history_free(p->history);
	for (struct yk_chunk *c = p->spare, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int yk_pool_claim(struct yk_chunk *c, struct yk_queue *q)
{
	int code = 0;
	while (c->nstamps) {
		struct yk_event *e = c->stamp[c->nstamps - 1];
		if (q && (code = yk_event_before(e, q)) < 0)
			break;
		yk_event_unref(e);
		c->nstamps--;
	}
	return code;
}

static int alloc(struct yk_pool *p, uint64_t bytes, struct yk_queue *q, struct yk_movable m,
		 bool brief, struct yk_block **to)
{
	char detail[512];
	struct yk_chunk *c = NULL;

	if (yk_forked())
		return yk_fail(YOKE_EFORK, "device memory in a forked child");
	uint64_t size = yk_pool_round(p, bytes);
	bool had = yoke_error_code() != 0;
	pthread_mutex_lock(&p->lock);
	int code = size == UINT64_MAX ? YOKE_ENOMEM : find(p, size, q, m, brief, &c);
	// Messages of failed attempts before a successful one are no error.
	if (!had && yoke_error_code())
		yk_backend_detail(had, code, detail, sizeof detail);
	else if (code < 0)
		snprintf(detail, sizeof detail, "%s", yoke_error_name(code));
	if (code < 0) {
		fail(p, code, bytes, detail);
		const bool recorded = p->history;
		pthread_mutex_unlock(&p->lock);
		if (recorded)
			yk_pool_failed(p);
		return code;
	}
	yk_pool_split(p, c, size);
	c->block.owner = NULL;
	c->block.group = m.group;
	yk_pool_count_alloc(p, c);
	yk_pool_note(p, YK_MOMENT_ALLOC, c, m.who);
	pthread_mutex_unlock(&p->lock);

	code = yk_pool_claim(c, q);
	if (code < 0) { // the remaining stamps still protect others
		pthread_mutex_lock(&p->lock);
		yk_pool_count_free(p, c);
		yk_pool_note(p, YK_MOMENT_FREE, c, NULL);
		yk_pool_free_chunk(p, c);
		pthread_mutex_unlock(&p->lock);
		return code;
	}
	*to = &c->block;
	return 0;
}

int yk_pool_alloc(struct yk_pool *p, uint64_t bytes, struct yk_queue *q, struct yk_block **to)
{
	return alloc(p, bytes, q, (struct yk_movable){ 0 }, false, to);
}

int yk_pool_alloc_among(struct yk_pool *p, uint64_t bytes, struct yk_queue *q, struct yk_movable m,
			struct yk_block **to)
{
	return alloc(p, bytes, q, m, false, to);
}

int yk_pool_alloc_brief(struct yk_pool *p, uint64_t bytes, struct yk_queue *q, struct yk_movable m,
			struct yk_block **to)
{
	return alloc(p, bytes, q, m, true, to);
}

void yk_pool_free(struct yk_block *b, struct yk_queue *q, struct yk_event *e)
{
	if (!b || yk_forked())
		return;
	struct yk_chunk *c = (struct yk_chunk *)b;
	struct yk_pool *p = b->pool;
	assert(!c->free);

	struct yk_event *stamp = NULL;
	if (e)
		stamp = yk_event_ref(e);
	else if (q && yk_event_try(q, &stamp) < 0)
		stamp = NULL; // a queue that cannot mark events runs no work any more
	if (stamp && p->off)
		yk_event_sync(stamp);
	if (stamp && (!stamp->handle || (p->off && yk_event_done(stamp)))) {
		yk_event_unref(stamp);
		stamp = NULL;
	}

	pthread_mutex_lock(&p->lock);
	yk_pool_count_free(p, c);
	yk_pool_note(p, YK_MOMENT_FREE, c, NULL);
	if (stamp)
		yk_chunk_stamp(c, stamp);
	if (!p->off || !segment_free(p, c->segment))
		yk_pool_free_chunk(p, c);
	pthread_mutex_unlock(&p->lock);
}

uint64_t yk_pool_trim(struct yk_pool *p)
{
	if (yk_forked())
		return 0;
	pthread_mutex_lock(&p->lock);
	uint64_t bytes = yk_pool_trim_locked(p);
	pthread_mutex_unlock(&p->lock);
	return bytes;
}

bool yk_pool_make_room(struct yk_device *d)
{
	return yk_pool_trim(d->pool) + yk_pool_trim(d->pinned) > 0;
}

void yk_pool_stats(struct yk_pool *p, struct yk_pool_stats *to)
{
	pthread_mutex_lock(&p->lock);
	*to = p->stats;
	to->largest_free = largest_free(p);
	pthread_mutex_unlock(&p->lock);
}

uint64_t yk_pool_capacity(const struct yk_pool *p)
{
	uint64_t memory = p->device->info.memory;
	return p->limit < memory ? p->limit : memory;
}

uint64_t yk_pool_could(struct yk_pool *p)
{
	uint64_t max = yk_pool_capacity(p), free = yk_device_free(p->device);
	pthread_mutex_lock(&p->lock);
	uint64_t now = p->stats.reserved_bytes.current + free;
	pthread_mutex_unlock(&p->lock);
	return free && now < max ? now : max;
}

uint64_t yk_pool_limit(struct yk_pool *p, uint64_t bytes)
{
	pthread_mutex_lock(&p->lock);
	uint64_t was = p->limit;
	p->limit = bytes;
	pthread_mutex_unlock(&p->lock);
	return was;
}

void yk_pool_reset_peaks(struct yk_pool *p)
{
	struct yk_pool_stats *s = &p->stats;
	struct yk_pool_stat *const stat[] = { &s->allocated_bytes, &s->reserved_bytes,
					      &s->active_bytes,    &s->inactive_split_bytes,
					      &s->allocation,      &s->segment };

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < sizeof stat / sizeof *stat; i++)
		stat[i]->peak = stat[i]->current;
	pthread_mutex_unlock(&p->lock);
}
