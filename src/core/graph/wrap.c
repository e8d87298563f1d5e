// SPDX-License-Identifier: Apache-2.0
// The caller's memory as a value: used in place if the device can, else copied at once.
// free_fn is called once, inside a library call, when the memory is no longer used.

#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "graph/context.h"

struct yk_wrapped {
	struct yk_block block; // belongs to no pool
	void (*free_fn)(void *);
	void *arg;
};

// *before: bytes from the block's start to the memory, which may be unaligned on the CPU.
static void *wrap_block(struct yoke_context *ctx, int dtype, void *memory, uint64_t bytes,
			void (*free_fn)(void *), void *arg, uint64_t *before)
{
	const struct yk_device *d = ctx->device;
	uint32_t align = d->info.align ? d->info.align : 1;
	*before = (uintptr_t)memory % align;
	if (!bytes || (*before && (d != ctx->cpu || *before % yoke_dtype_size(dtype))) ||
	    yk_is_hosts(ctx, bytes))
		return NULL;
	struct yk_wrapped *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	memory = (char *)memory - *before; // bytes before it are never read
	bytes += *before;
	if (d->ops->segment_wrap(d->index, memory, bytes, &w->block.segment) < 0) {
		free(w);
		return NULL;
	}
	w->block.bytes = bytes;
	w->block.host = memory;
	w->free_fn = free_fn;
	w->arg = arg;
	return w;
}

void yk_wrapped_free(struct yoke_context *ctx, struct yk_wrapped *w)
{
	yk_queue_drain(ctx->queues.steps); // failures are reported by the next call that settles
	ctx->device->ops->segment_free(ctx->device->index, w->block.segment);
	ctx->device->freed++;
	if (w->free_fn)
		w->free_fn(w->arg);
	free(w);
}

int yk_wrap(struct yoke_context *ctx, int dtype, void *memory, uint64_t bytes,
	    void (*free_fn)(void *), void *arg, struct yk_storage **to)
{
	uint64_t before;
	struct yk_wrapped *w = wrap_block(ctx, dtype, memory, bytes, free_fn, arg, &before);
	if (!w)
		return YOKE_EUNSUPPORTED;
	struct yk_buffer *b = calloc(1, sizeof *b);
	struct yk_storage *s = calloc(1, sizeof *s);
	if (!b || !s) {
		free(b);
		free(s);
		w->free_fn = NULL; // not called: the caller copies the memory
		yk_wrapped_free(ctx, w);
		return YOKE_EUNSUPPORTED;
	}
	*b = (struct yk_buffer){ .refs = 1, .block = &w->block, .wrapped = w, .ctx = ctx };
	*s = (struct yk_storage){
		.refs = 1, .buffer = b, .offset = before, .bytes = bytes, .ctx = ctx
	};
	*to = s;
	return 0;
}
