// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of loaders: a dataset whose samples identify themselves, and plain loops that
// compute the expected batches.
#ifndef TESTS_FED_H
#define TESTS_FED_H

#include <stdatomic.h>
#include <time.h>

#include "data/permute.h"
#include "tap.h"
#include "yoke-data.h"

#define LIMIT 4096

// ---- a set whose samples say what they are ----

struct source {
	int64_t count;
	bool bad[64];        // samples that fail
	int sleep_us;        // maximum, random
	atomic_int inside, together, calls, freed;
	atomic_int read;     // samples
};

static inline void pause_us(long us)
{
	nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 },
		  NULL);
}

static inline int read_source(void *arg, int64_t n, struct yoke_item *const *s)
{
	struct source *x = arg;
	const int inside = atomic_fetch_add(&x->inside, 1) + 1;
	if (inside > 1)
		atomic_store(&x->together, inside);
	if (x->sleep_us)
		pause_us((long)((unsigned)atomic_fetch_add(&x->calls, 1) * 7919u %
				(unsigned)x->sleep_us));
	atomic_fetch_add(&x->read, (int)n);
	for (int64_t i = 0; i < n; i++) {
		int64_t *to = s[i]->to[0];
		to[0] = s[i]->number;
		to[1] = s[i]->epoch;
		*(float *)s[i]->to[1] = (float)yoke_item_uniform(s[i], 3);
		if (x->bad[s[i]->number % 64]) {
			snprintf(s[i]->why, s[i]->why_size, "sample %lld is bad",
				 (long long)s[i]->number);
			s[i]->code = YOKE_EIO;
		}
	}
	atomic_fetch_sub(&x->inside, 1);
	return 0;
}

static inline void free_source(void *arg)
{
	atomic_fetch_add(&((struct source *)arg)->freed, 1);
}

static inline yoke_dataset *set_of(struct source *x, int64_t chunk, int serial)
{
	const struct yoke_field field[] = {
		{ .size = sizeof field[0],
		  .name = "what",
		  .dtype = yoke_i64,
		  .rank = 1,
		  .dims = { 2 },
		  .pad = -7 },
		{ .size = sizeof field[0], .name = "draw", .dtype = yoke_f32, .pad = 0.5 },
	};
	return yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "numbers",
						.count = x->count,
						.fields = 2,
						.field = field,
						.read = read_source,
						.chunk = chunk,
						.serial = serial,
						.arg = x,
						.free_fn = free_source });
}

// ---- what has to come ----

struct row {
	int64_t number, epoch; // -1: none, a row of last=pad
};
struct list {
	int64_t batches, rows[LIMIT];
	struct row row[LIMIT]; // of all batches in a row
	int64_t n;
};
enum { WRAP, DROP, KEEP, PAD };
static const char *const last_name[] = { "wrap", "drop", "keep", "pad" };

// The order of one rank, epoch by epoch, split into batches by a plain loop.
static inline void expect(struct list *to, int64_t count, int64_t batch, int last, int64_t rank,
			  int64_t world, int64_t shuffle, uint64_t seed, int64_t epochs)
{
	int64_t in = 0; // rows of the current batch
	*to = (struct list){ 0 };
	for (int64_t e = 0; e < epochs || (last == WRAP && in > 0); e++) {
		const int64_t padded = (count + world - 1) / world * world;
		for (int64_t i = rank; i < padded; i += world) {
			if (e >= epochs && in == 0)
				break;
			to->row[to->n++] =
				(struct row){ yk_order_at(i % count, count, shuffle, seed, e), e };
			if (++in == batch) {
				to->rows[to->batches++] = in;
				in = 0;
			}
		}
		if (last == DROP)
			to->n -= in, in = 0;
		if (in > 0 && (last == KEEP || last == PAD))
			to->rows[to->batches++] = in, in = 0;
	}
}

// Compares a loader from here on with batches `from` .. of a list; reads field 1 from the dataset
// itself.
static inline bool compare(yoke_loader *l, yoke_dataset *d, const struct list *want, int64_t from,
			   int64_t batch, int last, uint64_t seed, bool end)
{
	int64_t at = 0, dims[2][YOKE_MAX_RANK + 1];
	void *data[2];
	for (int64_t b = 0; b < from; b++)
		at += want->rows[b];
	for (int64_t b = from; b < want->batches; b++) {
		const int64_t rows = yoke_loader_host(l, 2, data, dims),
			      all = last == PAD ? batch : want->rows[b];
		if (rows != want->rows[b] || dims[0][0] != all || dims[0][1] != 2 ||
		    dims[1][0] != all) {
			diag("batch %lld has %lld rows of %lld, wants %lld of %lld: %s",
			     (long long)b, (long long)rows, (long long)dims[0][0],
			     (long long)want->rows[b], (long long)all, yoke_error());
			return false;
		}
		for (int64_t r = 0; r < all; r++) {
			const int64_t *what = (int64_t *)data[0] + 2 * r;
			const float *draw = (float *)data[1] + r;
			int64_t own[2] = { -7, -7 };
			float x = 0.5;
			void *to[] = { own, &x };
			const struct row *w = &want->row[at + r];
			if (r < rows && yoke_dataset_read(d, w->number, seed, w->epoch, w->number,
							  to, NULL) < 0)
				return false;
			if (memcmp(what, own, sizeof own) || memcmp(draw, &x, sizeof x) ||
			    (r < rows && (own[0] != w->number || own[1] != w->epoch))) {
				diag("batch %lld row %lld: got %lld of epoch %lld, draw %g; want %lld of %lld, %g",
				     (long long)b, (long long)r, (long long)what[0],
				     (long long)what[1], (double)*draw, (long long)own[0],
				     (long long)own[1], (double)x);
				return false;
			}
		}
		at += rows;
	}
	return !end || yoke_loader_host(l, 2, data, dims) == 0;
}

static inline yoke_loader *loader(yoke_dataset *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static inline yoke_loader *loader(yoke_dataset *d, const char *fmt, ...)
{
	char settings[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(settings, sizeof settings, fmt, ap);
	va_end(ap);
	yoke_loader *l = yoke_loader_new(d, settings);
	if (!l)
		diag("%s: %s", settings, yoke_error());
	return l;
}

#endif
