// SPDX-License-Identifier: Apache-2.0
// Fills the rows of a batch: reads samples, replaces those that fail, and pads to a common shape.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/num.h"
#include "data/loader.h"

// ---- buffers of a thread ----

int yk_reader_init(struct yk_reader *r, const yoke_dataset *d)
{
	const size_t n = (size_t)d->chunk, cells = n * (size_t)d->fields;
	r->sample = calloc(n, sizeof *r->sample);
	r->list = calloc(n, sizeof *r->list);
	r->to = calloc(cells, sizeof *r->to);
	r->dims = calloc(cells, sizeof *r->dims);
	r->why = calloc(n, sizeof *r->why);
	r->place = calloc(n, sizeof *r->place);
	if (r->sample && r->list && r->to && r->dims && r->why && r->place)
		return 0;
	yk_reader_fini(r);
	return yk_fail(YOKE_ENOMEM, "loader: %s: no memory for calls of %lld samples", d->name,
		       (long long)d->chunk);
}

void yk_reader_fini(struct yk_reader *r)
{
	free(r->sample);
	free(r->list);
	free(r->to);
	free(r->dims);
	free(r->why);
	free(r->place);
	*r = (struct yk_reader){ 0 };
}

// ---- reading ----

// Address of a row of a field whose first row is at `offset`, with `bytes` per row.
static unsigned char *row_at(const struct yoke_loader *l, const struct yk_batch *s, size_t offset,
			     int f, int64_t row, size_t bytes)
{
	return s->memory + offset + (size_t)(row / l->layout.part) * l->layout.stride[f] +
	       (size_t)(row % l->layout.part) * bytes;
}

// Sets sample k of a call to read the sample at a position into a row of the slot.
static void aim(const struct yoke_loader *l, struct yk_reader *r, const struct yk_batch *s,
		int64_t k, int64_t row, const struct yk_cursor *place)
{
	const yoke_dataset *d = l->set;
	const int64_t number = yk_cursor_sample(&l->feed, place);
	void **to = r->to + k * d->fields;
	for (int f = 0; f < d->fields; f++)
		to[f] = row_at(l, s, (d->field[f].varies ? l->layout.raw : l->layout.offset)[f], f,
			       row, d->field[f].bytes);
	r->place[k] = *place;
	r->list[k] = &r->sample[k];
	r->sample[k] = (struct yoke_item){ .size = sizeof **r->list,
					   .number = number,
					   .epoch = place->epoch,
					   .to = to,
					   .dims = r->dims + k * d->fields,
					   .why = r->why[k],
					   .why_size = sizeof r->why[k],
					   .seed = (uint64_t)l->feed.seed,
					   .draw = number };
}

static void note_failure(struct yoke_loader *l, struct yk_batch *s, int64_t row,
			 const struct yoke_item *x, bool ends)
{
	pthread_mutex_lock(&l->lock);
	if (yk_grow(&s->failure, &s->failure_cap, s->failures + 1, sizeof *s->failure) == 0) {
		struct yk_item_failure *f = &s->failure[s->failures++];
		*f = (struct yk_item_failure){ .row = row,
					       .number = x->number,
					       .epoch = x->epoch,
					       .code = x->code,
					       .ends = ends };
		snprintf(f->why, sizeof f->why, "%s", x->why);
	} else {
		l->error.worker = YOKE_ENOMEM;
	}
	pthread_mutex_unlock(&l->lock);
}

// Skips a run of samples known to fail, if the position is in one: moves to its last position.
static void skip_known(struct yoke_loader *l, struct yk_cursor *place)
{
	pthread_mutex_lock(&l->lock);
	if (place->epoch == l->bad.epoch && place->at >= l->bad.from && place->at < l->bad.to)
		place->at = l->bad.to - 1;
	pthread_mutex_unlock(&l->lock);
}

// Records that all samples from `own` up to `good` fail; `good` may be before it if the search
// wrapped around.
static void note_known(struct yoke_loader *l, const struct yk_cursor *own,
		       const struct yk_cursor *good)
{
	const int64_t to = good->at > own->at ? good->at : yk_feed_samples(&l->feed, own);
	pthread_mutex_lock(&l->lock);
	const bool inside =
		own->epoch == l->bad.epoch && own->at >= l->bad.from && own->at < l->bad.to;
	l->bad.from = inside ? l->bad.from : own->at;
	l->bad.epoch = own->epoch;
	l->bad.to = to;
	pthread_mutex_unlock(&l->lock);
}

// Did a stream end before this sample?
static bool is_over(const struct yoke_loader *l, const struct yoke_item *x)
{
	return l->set->stream && x->code == YOKE_EIO;
}

// Sample k of a call failed: the next sample in the epoch's order that can be read takes its row.
static void replace(struct yoke_loader *l, struct yk_reader *r, struct yk_batch *s, int64_t k,
		    int64_t row)
{
	const struct yk_cursor own = r->place[k];
	struct yk_cursor place = own;
	bool ends = l->feed.on_error == YK_ERROR_STOP || is_over(l, &r->sample[k]);
	const struct yoke_item first = r->sample[k];
	char why[sizeof r->why[k]];
	memcpy(why, first.why, sizeof why);
	if (!ends)
		skip_known(l, &place);
	while (!ends && r->sample[k].code) {
		yk_cursor_turn(&l->feed, &place);
		if (place.at == own.at) { // all samples fail
			ends = true;
			break;
		}
		aim(l, r, s, k, row, &place);
		yk_dataset_read(l->set, 1, &r->list[k]);
		ends = is_over(l, &r->sample[k]);
	}
	if (!ends)
		note_known(l, &own, &place);
	struct yoke_item x = first;
	x.why = why;
	note_failure(l, s, row, &x, ends);
}

static void keep_dims(const struct yoke_loader *l, const struct yk_reader *r,
		      const struct yk_batch *s, int64_t k, int64_t row)
{
	const size_t n = (size_t)l->set->fields;
	if (s->dims)
		memcpy(s->dims + (size_t)row * n, r->dims + (size_t)k * n, n * sizeof *s->dims);
}

void yk_rows_read(struct yoke_loader *l, struct yk_reader *r, struct yk_batch *s, int64_t first,
		  int64_t n)
{
	for (int64_t k = 0; k < n; k++) {
		const struct yk_cursor place =
			yk_cursor_on(&l->feed, &s->begin, yk_row_of(l, first + k));
		aim(l, r, s, k, first + k, &place);
	}
	const int64_t failed = yk_dataset_read(l->set, n, r->list);
	for (int64_t k = 0; k < n; k++) {
		if (failed && r->sample[k].code)
			replace(l, r, s, k, first + k);
		keep_dims(l, r, s, k, first + k);
	}
}

// ---- padding ----

// Fills n elements with a number.
static void fill(int dtype, double number, void *to, size_t n)
{
	const size_t size = yoke_dtype_size(dtype);
	unsigned char one[16];
	const struct yk_num x = { .f = number, .i = yk_num_real(dtype) ? 0 : (int64_t)number };
	yk_num_store(one, x, dtype);
	for (size_t i = 0; i < n; i++)
		memcpy((unsigned char *)to + i * size, one, size);
}

// Copies a sample of shape `from`, row major, into one of shape `to`, no smaller, that has been
// filled with padding.
static void spread(const unsigned char *from, const int64_t *dims, unsigned char *to,
		   const int64_t *shape, int rank, size_t size)
{
	if (rank == 0) {
		memcpy(to, from, size);
		return;
	}
	size_t inner_from = size, inner_to = size;
	for (int k = 1; k < rank; k++) {
		inner_from *= (size_t)dims[k];
		inner_to *= (size_t)shape[k];
	}
	if (inner_from == inner_to) {
		memcpy(to, from, inner_from * (size_t)dims[0]);
		return;
	}
	for (int64_t i = 0; i < dims[0]; i++)
		spread(from + (size_t)i * inner_from, dims + 1, to + (size_t)i * inner_to,
		       shape + 1, rank - 1, size);
}

// The maximum over the samples along each axis, rounded up to the field's multiple.
static void batch_shape(const struct yoke_loader *l, struct yk_batch *s, int f)
{
	const struct yk_field *x = &l->set->field[f];
	memcpy(s->shape[f], x->dims, sizeof s->shape[f]);
	for (int k = 0; k < x->rank; k++) {
		const int64_t m = x->multiple[k];
		int64_t max = 1;
		if (!m)
			continue;
		for (int64_t row = 0; row < s->samples; row++) {
			const int64_t n = s->dims[row * l->set->fields + f][k];
			max = n > max ? n : max;
		}
		max += (m - max % m) % m;
		s->shape[f][k] = max < x->dims[k] ? max : x->dims[k];
	}
}

static bool same_dims(const int64_t *a, const int64_t *b, int rank)
{
	bool same = true;
	for (int k = 0; k < rank; k++)
		same &= a[k] == b[k];
	return same;
}

void yk_batch_finish(struct yoke_loader *l, struct yk_batch *s)
{
	for (int f = 0; f < l->set->fields; f++) {
		const struct yk_field *x = &l->set->field[f];
		const size_t size = yoke_dtype_size(x->dtype);
		size_t n = 1;
		batch_shape(l, s, f);
		for (int k = 0; k < x->rank; k++)
			n *= (size_t)s->shape[f][k];
		for (int64_t row = x->varies ? 0 : s->samples; row < s->rows; row++) {
			unsigned char *to = row_at(l, s, l->layout.offset[f], f, row, n * size);
			const int64_t *dims = x->varies && row < s->samples ?
						      s->dims[row * l->set->fields + f] :
						      NULL;
			if (!dims || !same_dims(dims, s->shape[f], x->rank))
				fill(x->dtype, x->pad, to, n);
			if (dims && l->layout.raw[f] != l->layout.offset[f])
				spread(row_at(l, s, l->layout.raw[f], f, row, x->bytes), dims, to,
				       s->shape[f], x->rank, size);
		}
	}
}
