// SPDX-License-Identifier: Apache-2.0
// Memory of a loader's slots, and copies of full batches to the device ahead of use. Slots for a
// GPU are pinned, so that copies overlap with its work; slots for the CPU, which reads them in
// place, come from its memory pool and count in its statistics.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "data/loader.h"
#include "graph/context.h"
#include "graph/handle.h"

// ---- slots ----

static _Alignas(64) unsigned char nothing[64]; // placeholder memory of slots that are never written

static int pool_memory(struct yoke_loader *l, struct yk_batch *s)
{
	struct yk_device *d = l->upload.ctx->device;
	const bool host = d == l->upload.ctx->cpu;
	struct yk_error_aside *aside = host ? NULL : yk_error_aside();
	const int e = yk_pool_alloc(host ? d->pool : d->pinned, l->layout.bytes, NULL, &s->block);
	if (!host)
		yk_error_restore(aside);
	if (e == 0)
		s->memory = l->dry ? nothing : s->block->host;
	else if (!host)
		yk_warn("data",
			"%s: %s has no pinned memory for %llu bytes; batches use pageable memory, from which copies "
			"are slower",
			l->set->name, d->id, (unsigned long long)l->layout.bytes);
	return e;
}

int yk_batch_memory(struct yoke_loader *l, struct yk_batch *s)
{
	void *memory;
	s->of = l->upload.ctx;
	if (l->dry && l->upload.ctx->device != l->upload.ctx->cpu) {
		s->memory = nothing;
		return 0;
	}
	if (l->upload.ctx && !l->upload.heap) {
		const int e = pool_memory(l, s);
		if (e == 0 || l->upload.ctx->device == l->upload.ctx->cpu)
			return e;
		l->upload.heap = true;
	}
	if (posix_memalign(&memory, 64, l->layout.bytes))
		return yk_fail(YOKE_ENOMEM, "loader: %s: no memory for %d batches of %lld samples",
			       l->set->name, l->slots, (long long)l->feed.batch);
	s->memory = memory;
	return 0;
}

void yk_batch_memory_free(struct yk_batch *s)
{
	if (s->block)
		yk_pool_free(s->block, NULL, NULL);
	else if (s->memory != nothing)
		free(s->memory);
	s->block = NULL;
	s->memory = NULL;
}

// Reallocates free slots that were made for another context or for none.
static int move_slots(struct yoke_loader *l)
{
	int e = 0;
	pthread_mutex_lock(&l->lock);
	for (int i = 0; i < l->slots && e == 0; i++) {
		struct yk_batch *s = &l->slot[i], new = { .loader = l };
		if (!s->free || s->of == l->upload.ctx)
			continue;
		e = yk_batch_memory(l, &new);
		if (e < 0)
			break;
		yk_batch_memory_free(s);
		s->memory = new.memory;
		s->block = new.block;
		s->of = new.of;
	}
	pthread_mutex_unlock(&l->lock);
	return e;
}

void yk_loader_reclaim(struct yoke_loader *l, bool wait)
{
	for (int i = 0; i < l->slots; i++) {
		struct yk_batch *s = &l->slot[i];
		if (!s->copied || (!wait && !yk_event_done(s->copied)))
			continue;
		if (wait)
			yk_event_sync(s->copied); // errors of the copy stay with the queue
		wait = false;
		yk_event_unref(s->copied);
		pthread_mutex_lock(&l->lock);
		s->copied = NULL;
		yk_batch_settle(s);
		pthread_mutex_unlock(&l->lock);
	}
}

void yk_loader_recall(struct yoke_loader *l)
{
	for (int i = 0; i < l->slots; i++)
		if (l->slot[i].copied)
			yk_event_sync(l->slot[i].copied);
	yk_loader_reclaim(l, false);
	l->upload.sent = 0;
}

// ---- batches on the device ----

static void free_tensors(struct yoke_loader *l)
{
	for (int i = 0; i < l->upload.aheads; i++)
		for (int k = 0; k < yk_loader_tensors(l) && l->upload.ahead[i].tensor; k++) {
			// its context may have been freed
			if (yk_is_alive(l->upload.ahead[i].tensor[k]))
				yoke_free(l->upload.ahead[i].tensor[k]);
			l->upload.ahead[i].tensor[k] = NULL;
		}
}

void yk_loader_send_fini(struct yoke_loader *l)
{
	yk_loader_recall(l);
	free_tensors(l);
	for (int i = 0; i < l->upload.aheads; i++)
		free(l->upload.ahead[i].tensor);
	free(l->upload.ahead);
	l->upload.ahead = NULL;
	pthread_mutex_lock(&l->lock);
	l->upload.aheads = 0;
	pthread_mutex_unlock(&l->lock);
}

static int make_ring(struct yoke_loader *l)
{
	const int n = 1 + (l->workers ? (int)l->feed.prefetch : 0);
	struct yk_sent *ring = calloc((size_t)n, sizeof *ring);
	bool good = ring != NULL;
	for (int i = 0; i < n && good; i++)
		good = (ring[i].tensor =
				calloc((size_t)yk_loader_tensors(l), sizeof *ring[i].tensor));
	for (int i = 0; i < n && ring && !good; i++)
		free(ring[i].tensor);
	if (!good) {
		free(ring);
		return yk_fail(YOKE_ENOMEM, "loader: %s: no memory", l->set->name);
	}
	l->upload.ahead = ring;
	pthread_mutex_lock(&l->lock); // workers read `aheads`
	l->upload.aheads = n;
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

int yk_loader_bind(struct yoke_loader *l, struct yoke_context *ctx)
{
	int e = 0;
	if (l->upload.ctx != ctx) {
		yk_loader_recall(l);
		free_tensors(l);
		l->upload.ctx = ctx;
		l->upload.heap = false;
	}
	if (ctx->device != ctx->cpu && !l->upload.ahead)
		e = make_ring(l);
	return e == 0 ? move_slots(l) : e;
}

// Allocates a device tensor for a micro-batch of a field of a slot; of a field with a fixed shape,
// usable for any batch.
static yoke_tensor *device_tensor(const struct yoke_loader *l, const struct yk_batch *s, int f)
{
	const struct yk_field *x = &l->set->field[f];
	int64_t dims[YOKE_MAX_RANK + 1] = { l->layout.part };
	if (s)
		yk_batch_dims(s, f, dims);
	else
		memcpy(dims + 1, x->dims, sizeof x->dims);
	return yk_prefetch_new(l->upload.ctx, x->dtype, x->rank + 1, dims);
}

// Do all batches of the field have the full shape?
static bool is_regular(const struct yoke_loader *l, int f)
{
	return !l->set->field[f].varies && l->feed.last != YK_LAST_KEEP;
}

// Allocates the missing tensors of a ring entry.  s NULL: before the batch is read.  Otherwise
// existing tensors may have another shape, or still be used by the caller.
static int make_tensors(struct yoke_loader *l, struct yk_sent *a, const struct yk_batch *s)
{
	for (int k = 0; k < yk_loader_tensors(l); k++) {
		const int f = k / (int)l->feed.parts;
		if (s && a->tensor[k] && !(is_regular(l, f) && yk_prefetch_free(a->tensor[k]))) {
			yoke_free(a->tensor[k]);
			a->tensor[k] = NULL;
		}
		if (!a->tensor[k] && (s || is_regular(l, f)) &&
		    !(a->tensor[k] = device_tensor(l, s, f)))
			return yk_error_last();
	}
	return 0;
}

static int send(struct yoke_loader *l, struct yk_sent *a, struct yk_batch *s)
{
	int e = make_tensors(l, a, s);
	for (int k = 0; k < yk_loader_tensors(l) && e == 0; k++) {
		struct yk_event *copied = NULL;
		const int64_t parts = l->feed.parts;
		e = yk_prefetch_fill(a->tensor[k], yk_batch_part(s, k / (int)parts, k % parts),
				     &copied);
		if (e == 0 && copied) { // covers the earlier copies as well
			yk_event_unref(s->copied);
			s->copied = copied;
		}
	}
	return e;
}

int yk_loader_send(struct yoke_loader *l)
{
	const double began = yk_seconds();
	int e = 0;
	for (int i = 0; i < l->upload.aheads && e == 0; i++) {
		struct yk_sent *a = &l->upload.ahead[(l->queue.tail + i) % l->upload.aheads];
		pthread_mutex_lock(&l->lock);
		struct yk_batch *s = yk_queued(l, i);
		if (s && s->left > 0)
			s = NULL;
		pthread_mutex_unlock(&l->lock);
		struct yk_error_aside *aside = i ? yk_error_aside() : NULL;
		if (s && i == l->upload.sent) {
			e = send(l, a, s);
			l->upload.sent += e == 0;
		} else if (i >= l->upload.sent) {
			e = make_tensors(l, a, NULL);
		}
		if (i)
			yk_error_restore(aside);
	}
	l->stats.sending += yk_seconds() - began;
	return l->upload.sent ? 0 : e;
}

yoke_tensor **yk_loader_sent(struct yoke_loader *l)
{
	return l->upload.taken ?
		       l->upload.ahead[(l->queue.tail + l->upload.aheads - 1) % l->upload.aheads]
			       .tensor :
		       NULL;
}
