// SPDX-License-Identifier: Apache-2.0
// Slots of a loader: how many there are, and where in the memory of one the fields of a batch lie.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/loader.h"

static int no_memory(const struct yoke_loader *l)
{
	return yk_fail(YOKE_ENOMEM, "loader: %s: no memory for %d batches of %lld samples",
		       l->set->name, l->slots, (long long)l->feed.batch);
}

// Are a field's samples read directly into the batch?  If samples vary, only if a batch is one
// sample without padding.
static bool in_place(const struct yoke_loader *l, const struct yk_field *f)
{
	bool single = l->feed.batch == 1;
	for (int k = 0; k < f->rank; k++)
		single &= f->multiple[k] <= 1;
	return single;
}

// Computes the offsets of fields in a slot; each micro-batch is aligned to 64 bytes.
static int lay_out(struct yoke_loader *l)
{
	size_t at = 0, bytes;
	const struct yk_feed *x = &l->feed;
	struct yk_slot_layout *y = &l->layout;
	const bool all = x->on_error != YK_ERROR_STOP;
	y->part = x->batch / x->split;
	y->before = all ? 0 : x->part * y->part;
	y->rows = all ? x->batch : x->parts * y->part;
	y->given = all ? x->part : 0;
	y->apart = all ? x->stride : 1;
	for (int raw = 0; raw < 2; raw++)
		for (int f = 0; f < l->set->fields; f++) {
			const struct yk_field *field = &l->set->field[f];
			if (raw && field->varies && in_place(l, field))
				y->raw[f] = y->offset[f];
			if (raw && (!field->varies || in_place(l, field)))
				continue;
			(raw ? y->raw : y->offset)[f] = at;
			if (__builtin_mul_overflow((size_t)y->part, field->bytes, &bytes) ||
			    bytes > SIZE_MAX / 2)
				return no_memory(l);
			y->stride[f] = (bytes + 63) & ~(size_t)63;
			if (__builtin_mul_overflow((size_t)(y->rows / y->part), y->stride[f],
						   &bytes) ||
			    __builtin_add_overflow(at, bytes, &at) || at > SIZE_MAX / 2)
				return no_memory(l);
		}
	y->bytes = at;
	return 0;
}

int yk_slots_make(struct yoke_loader *l)
{
	const size_t fields = (size_t)l->set->fields;
	size_t cells;
	bool varies = false;
	for (size_t f = 0; f < fields; f++)
		varies |= l->set->field[f].varies;
	l->slots = (l->workers ? (int)l->feed.prefetch : 0) + 2 + (int)l->feed.held;
	l->slot = calloc((size_t)l->slots, sizeof *l->slot);
	l->queue.slot = calloc((size_t)l->slots, sizeof *l->queue.slot);
	l->layout.offset = calloc(fields, sizeof *l->layout.offset);
	l->layout.raw = calloc(fields, sizeof *l->layout.raw);
	l->layout.stride = calloc(fields, sizeof *l->layout.stride);
	if (!l->slot || !l->queue.slot || !l->layout.offset || !l->layout.raw || !l->layout.stride)
		return no_memory(l);
	int e = lay_out(l);
	if (e == 0 && __builtin_mul_overflow((size_t)l->layout.rows, fields, &cells))
		e = no_memory(l);
	for (int i = 0; e == 0 && i < l->slots; i++) {
		struct yk_batch *s = &l->slot[i];
		s->loader = l;
		s->free = true;
		s->shape = calloc(fields, sizeof *s->shape);
		s->dims = varies ? calloc(cells, sizeof *s->dims) : NULL;
		e = s->shape && (s->dims || !varies) ? yk_batch_memory(l, s) : no_memory(l);
	}
	return e;
}

void yk_slots_free(struct yoke_loader *l)
{
	for (int i = 0; l->slot && i < l->slots; i++) {
		yk_batch_memory_free(&l->slot[i]);
		free(l->slot[i].dims);
		free(l->slot[i].shape);
		free(l->slot[i].failure);
	}
	free(l->slot);
	free(l->queue.slot);
	free(l->layout.offset);
	free(l->layout.raw);
	free(l->layout.stride);
}

// ---- what is where ----

void *yk_batch_part(const struct yk_batch *s, int field, int64_t part)
{
	const struct yk_slot_layout *l = &s->loader->layout;
	return s->memory +
	       (s->loader->dry ?
			0 :
			l->offset[field] + (size_t)(l->given + part * l->apart) * l->stride[field]);
}

int64_t yk_batch_delivered(const struct yk_batch *s, int64_t rows)
{
	const struct yk_feed *f = &s->loader->feed;
	return f->parts < f->split ? f->parts * s->loader->layout.part : rows;
}

void yk_batch_dims(const struct yk_batch *s, int field, int64_t dims[YOKE_MAX_RANK + 1])
{
	dims[0] = s->rows / (s->loader->layout.rows / s->loader->layout.part);
	memcpy(dims + 1, s->shape[field], sizeof s->shape[field]);
}
