// SPDX-License-Identifier: Apache-2.0
// Datasets and loaders against plain loops: order, contents, ends of epochs, ranks, failures, positions.
#include "config.h"

#include <dirent.h>
#include <stdatomic.h>
#include <time.h>

#include "data/permute.h"
#include "tap.h"
#include "yoke-data.h"

#define MOST 4096

// ---- a set whose samples say what they are ----

struct source {
	int64_t count;
	bool bad[64];        // samples that fail
	int sleep_us;        // at most, at random
	atomic_int inside, together, calls, freed;
	atomic_int read;     // samples
};

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 }, NULL);
}

static int read_source(void *arg, int64_t n, struct yoke_item *const *s)
{
	struct source *x = arg;
	const int inside = atomic_fetch_add(&x->inside, 1) + 1;
	if (inside > 1)
		atomic_store(&x->together, inside);
	if (x->sleep_us)
		pause_us((long)((unsigned)atomic_fetch_add(&x->calls, 1) * 7919u % (unsigned)x->sleep_us));
	atomic_fetch_add(&x->read, (int)n);
	for (int64_t i = 0; i < n; i++) {
		int64_t *to = s[i]->to[0];
		to[0] = s[i]->number;
		to[1] = s[i]->epoch;
		*(float *)s[i]->to[1] = (float)yoke_item_uniform(s[i], 3);
		if (x->bad[s[i]->number % 64]) {
			snprintf(s[i]->why, s[i]->why_size, "sample %lld is bad", (long long)s[i]->number);
			s[i]->code = YOKE_EIO;
		}
	}
	atomic_fetch_sub(&x->inside, 1);
	return 0;
}

static void free_source(void *arg)
{
	atomic_fetch_add(&((struct source *)arg)->freed, 1);
}

static yoke_dataset *set_of(struct source *x, int64_t chunk, int serial)
{
	const struct yoke_field field[] = {
		{ .size = sizeof field[0], .name = "what", .dtype = yoke_i64, .rank = 1, .dims = { 2 }, .pad = -7 },
		{ .size = sizeof field[0], .name = "draw", .dtype = yoke_f32, .pad = 0.5 },
	};
	return yoke_dataset_new(&(struct yoke_dataset_options){
		.size = sizeof(struct yoke_dataset_options), .name = "numbers", .count = x->count, .fields = 2,
		.field = field, .read = read_source, .chunk = chunk, .serial = serial, .arg = x,
		.free_fn = free_source });
}

// ---- what has to come ----

struct row {
	int64_t number, epoch; // -1: none, a row of last=pad
};
struct list {
	int64_t batches, rows[MOST];
	struct row row[MOST]; // of all batches in a row
	int64_t n;
};
enum { WRAP, DROP, KEEP, PAD };
static const char *const last_name[] = { "wrap", "drop", "keep", "pad" };

// Order of one rank, epoch by epoch, cut into batches by a plain loop.
static void expect(struct list *to, int64_t count, int64_t batch, int last, int64_t rank, int64_t world, int64_t shuffle,
		   uint64_t seed, int64_t epochs)
{
	int64_t in = 0; // rows of the batch at hand
	*to = (struct list){ 0 };
	for (int64_t e = 0; e < epochs || (last == WRAP && in > 0); e++) {
		const int64_t padded = (count + world - 1) / world * world;
		for (int64_t i = rank; i < padded; i += world) {
			if (e >= epochs && in == 0)
				break;
			to->row[to->n++] = (struct row){ yk_order_at(i % count, count, shuffle, seed, e), e };
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

// Compares a loader from here on with batches `from` .. of a list; reads field 1 as the set itself gives it.
static bool compare(yoke_loader *l, yoke_dataset *d, const struct list *want, int64_t from, int64_t batch, int last,
		    uint64_t seed, bool end)
{
	int64_t at = 0, dims[2][YOKE_MAX_RANK + 1];
	void *data[2];
	for (int64_t b = 0; b < from; b++)
		at += want->rows[b];
	for (int64_t b = from; b < want->batches; b++) {
		const int64_t rows = yoke_loader_host(l, 2, data, dims), all = last == PAD ? batch : want->rows[b];
		if (rows != want->rows[b] || dims[0][0] != all || dims[0][1] != 2 || dims[1][0] != all) {
			diag("batch %lld has %lld rows of %lld, wants %lld of %lld: %s", (long long)b, (long long)rows,
			     (long long)dims[0][0], (long long)want->rows[b], (long long)all, yoke_error());
			return false;
		}
		for (int64_t r = 0; r < all; r++) {
			const int64_t *what = (int64_t *)data[0] + 2 * r;
			const float *draw = (float *)data[1] + r;
			int64_t own[2] = { -7, -7 };
			float x = 0.5;
			void *to[] = { own, &x };
			const struct row *w = &want->row[at + r];
			if (r < rows && yoke_dataset_read(d, w->number, seed, w->epoch, w->number, to, NULL) < 0)
				return false;
			if (memcmp(what, own, sizeof own) || memcmp(draw, &x, sizeof x) ||
			    (r < rows && (own[0] != w->number || own[1] != w->epoch))) {
				diag("batch %lld row %lld: got %lld of epoch %lld, draw %g; want %lld of %lld, %g",
				     (long long)b, (long long)r, (long long)what[0], (long long)what[1], (double)*draw,
				     (long long)own[0], (long long)own[1], (double)x);
				return false;
			}
		}
		at += rows;
	}
	return !end || yoke_loader_host(l, 2, data, dims) == 0;
}

static yoke_loader *loader(yoke_dataset *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static yoke_loader *loader(yoke_dataset *d, const char *fmt, ...)
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

// ---- orders ----

// As another program computed it from the definition.
static void test_golden(void)
{
	static const int64_t want[3][13] = { { 10, 3, 12, 8, 0, 11, 1, 5, 7, 9, 6, 2, 4 },
					     { 3, 7, 5, 1, 11, 10, 12, 8, 0, 6, 9, 2, 4 },
					     { 6, 9, 10, 5, 3, 7, 2, 1, 12, 0, 11, 4, 8 } };
	static const int64_t epoch[] = { 0, 1, 7 };
	bool good = true;
	for (int k = 0; k < 3; k++)
		for (int64_t i = 0; i < 13; i++)
			good = good && yk_order_at(i, 13, 1, 5, epoch[k]) == want[k][i];
	ok(good, "orders of 13 samples, seed 5, epochs 0, 1, 7");
	good = true;
	for (int64_t n = 1; n < 70; n++) {
		const int64_t block = rnd_int(0, n + 3), e = rnd_int(0, 99);
		const uint64_t seed = rnd();
		bool seen[70] = { false };
		for (int64_t i = 0; i < n; i++) {
			const int64_t x = yk_order_at(i, n, block, seed, e);
			good = good && x >= 0 && x < n && !seen[x] &&
			       (block < 2 || x / block == i / block) && (block || x == i);
			if (good)
				seen[x] = true;
		}
	}
	ok(good, "each order has each sample once, blocks their own");
}

static void test_orders(void)
{
	static const int workers[] = { 0, 1, 2, 7 };
	static struct list want;
	bool good = true;
	int n = 0;
	for (int w = 0; w < 4 && good; w++)
		for (int last = WRAP; last <= PAD && good; last++)
			for (int world = 1; world <= 4 && good; world++) {
				struct source x = { .count = rnd_int(9, 60), .sleep_us = (int)rnd_int(0, 1) * 60 };
				const int64_t batch = rnd_int(1, x.count / world), shuffle = rnd_int(0, 5);
				const int64_t prefetch = rnd_int(0, 8), rank = rnd_int(0, world - 1);
				const uint64_t seed = rnd() >> 2;
				yoke_dataset *d = set_of(&x, rnd_int(0, 9), rnd_int(0, 3) == 0);
				yoke_loader *l = loader(d, "batch=%lld workers=%d prefetch=%lld shuffle=%lld last=%s seed=%lld "
							"rank=%lld world=%d epochs=3", (long long)batch, workers[w],
							(long long)prefetch, (long long)shuffle, last_name[last],
							(long long)seed, (long long)rank, world);
				expect(&want, x.count, batch, last, rank, world, shuffle, seed, 3);
				good = l && compare(l, d, &want, 0, batch, last, seed, true);
				yoke_loader_free(l);
				yoke_dataset_free(d);
				good = good && x.freed == 1;
				if (!good)
					diag("workers %d last=%s rank %lld of %d batch %lld of %lld shuffle %lld", workers[w],
					     last_name[last], (long long)rank, world, (long long)batch, (long long)x.count,
					     (long long)shuffle);
				n++;
			}
	ok(good, "%d loaders give what plain loops give: %s", n, yoke_error());
}

// All ranks together use each sample once, but for the wrap.
static void test_ranks(void)
{
	bool good = true;
	for (int world = 1; world <= 4; world++) {
		struct source x = { .count = 23 };
		yoke_dataset *d = set_of(&x, 1, 0);
		int used[23] = { 0 }, extra = 0;
		for (int rank = 0; rank < world; rank++) {
			yoke_loader *l = loader(d, "batch=5 last=keep rank=%d world=%d epochs=1 seed=3 workers=1", rank, world);
			void *data[2];
			int64_t rows;
			while ((rows = yoke_loader_host(l, 2, data, NULL)) > 0)
				for (int64_t r = 0; r < rows; r++)
					used[((int64_t *)data[0])[2 * r]]++;
			yoke_loader_free(l);
		}
		for (int i = 0; i < 23; i++) {
			good = good && used[i] >= 1;
			extra += used[i] - 1;
		}
		good = good && extra == (world - 23 % world) % world;
		yoke_dataset_free(d);
	}
	ok(good, "ranks share an epoch");
}

// ---- positions ----

static void test_positions(void)
{
	static struct list want;
	bool good = true;
	for (int last = WRAP; last <= PAD && good; last++) {
		struct source x = { .count = 17 };
		yoke_dataset *d = set_of(&x, 2, 0);
		const int64_t batch = 5;
		expect(&want, x.count, batch, last, 0, 1, 1, 8, 3);
		for (int64_t stop = 0; stop <= want.batches && good; stop++) {
			struct yoke_position at = { .size = sizeof at };
			yoke_loader *l = loader(d, "batch=5 last=%s seed=8 epochs=3 workers=2 prefetch=3", last_name[last]);
			for (int64_t b = 0; b < stop; b++) {
				void *data[2];
				yoke_loader_host(l, 2, data, NULL);
			}
			yoke_loader_position(l, &at);
			yoke_loader_free(l);
			l = loader(d, "batch=5 last=%s seed=8 epochs=3 workers=%d prefetch=%d", last_name[last],
				   (int)rnd_int(0, 4), (int)rnd_int(0, 4));
			void *data[2]; // some of another place first
			for (int64_t skip = rnd_int(0, 3); skip > 0; skip--)
				yoke_loader_host(l, 2, data, NULL);
			good = yoke_loader_seek(l, &at) == 0 && compare(l, d, &want, stop, batch, last, 8, true);
			yoke_loader_free(l);
		}
		yoke_dataset_free(d);
	}
	ok(good, "a run goes on behind each batch, with other workers and prefetch: %s", yoke_error());

	// by two ranks with batches of 2 up to somewhere, then by three with batches of 2: each sample once
	int used[40] = { 0 };
	struct source x = { .count = 40 };
	yoke_dataset *d = set_of(&x, 1, 0);
	struct yoke_position at = { .size = sizeof at };
	void *data[2];
	for (int rank = 0; rank < 2; rank++) {
		yoke_loader *l = loader(d, "batch=2 seed=2 rank=%d world=2 workers=1", rank);
		for (int b = 0; b < 5; b++)
			for (int64_t rows = yoke_loader_host(l, 2, data, NULL), r = 0; r < rows; r++)
				used[((int64_t *)data[0])[2 * r]]++;
		yoke_loader_position(l, &at);
		yoke_loader_free(l);
	}
	good = at.epoch == 0 && at.index == 20;
	for (int rank = 0; rank < 3; rank++) {
		yoke_loader *l = loader(d, "batch=2 seed=2 rank=%d world=3 last=keep workers=0", rank);
		good = good && yoke_loader_seek(l, &at) == 0;
		struct yoke_position now = at;
		while (good && now.epoch == 0) {
			for (int64_t rows = yoke_loader_host(l, 2, data, NULL), r = 0; r < rows; r++)
				used[((int64_t *)data[0])[2 * r]]++;
			yoke_loader_position(l, &now);
		}
		yoke_loader_free(l);
	}
	int twice = 0;
	for (int i = 0; i < 40; i++) {
		good = good && used[i] >= 1;
		twice += used[i] - 1;
	}
	ok(good && twice == (3 - (40 - 20) % 3) % 3, "another number of ranks goes on at the same sample");
	yoke_dataset_free(d);
}

// ---- some parts of a batch ----

// Batches of two loaders, of which one gives only some of the other's parts.
static bool same_parts(yoke_loader *whole, yoke_loader *some, int split, int part, int parts, int stride,
		       int64_t rows)
{
	void *a[32], *b[32];
	int64_t dims[32][YOKE_MAX_RANK + 1];
	struct yoke_position p = { .size = sizeof p }, q = { .size = sizeof q };
	if (yoke_loader_host(whole, 2 * split, a, NULL) != rows * split || yoke_loader_host(some, 2 * parts, b, dims) != rows * parts)
		return false;
	bool good = dims[0][0] == rows && dims[0][1] == 2 && dims[parts][0] == rows;
	for (int k = 0; k < parts; k++)
		good = good && !memcmp(b[k], a[part + k * stride], 16 * (size_t)rows) &&
		       !memcmp(b[parts + k], a[split + part + k * stride], 4 * (size_t)rows);
	yoke_loader_position(whole, &p);
	yoke_loader_position(some, &q);
	return good && p.epoch == q.epoch && p.index == q.index && p.failed == q.failed;
}

static void test_parts(void)
{
	const int n = tap_cases(40, 1000);
	bool good = true;
	for (int k = 0; k < n && good; k++) {
		const int split = (int)rnd_int(1, 6), part = (int)rnd_int(0, split - 1), parts = (int)rnd_int(1, split - part),
			  stride = parts > 1 ? (int)rnd_int(1, (split - part - 1) / (parts - 1)) : (int)rnd_int(1, 3);
		const int64_t rows = rnd_int(1, 4), batches = rnd_int(1, 9), seed = rnd_int(0, 99);
		const bool skip = rnd_int(0, 1);
		struct source x = { .count = rnd_int(rows * split, 60), .sleep_us = 20 };
		for (int i = 0; i < 64 && skip; i++)
			x.bad[i] = rnd_int(0, 9) == 0;
		x.bad[0] = false; // one of them is good
		struct source y = x;
		yoke_dataset *d = set_of(&x, rnd_int(1, 5), 0), *e = set_of(&y, rnd_int(1, 5), 0);
		const char *last = last_name[rnd_int(WRAP, DROP)], *error = skip ? "skip" : "stop";
		yoke_loader *whole = loader(d, "batch=%d split=%d seed=%d last=%s on_error=%s workers=2", (int)rows * split, split,
					    (int)seed, last, error);
		yoke_loader *some = loader(e, "batch=%d split=%d seed=%d last=%s on_error=%s workers=%d prefetch=0 part=%d "
					   "parts=%d stride=%d", (int)rows * split, split, (int)seed, last, error,
					   (int)rnd_int(0, 3), part, parts, stride);
		for (int64_t b = 0; b < batches && good; b++)
			good = whole && some && same_parts(whole, some, split, part, parts, stride, rows);
		yoke_loader_free(whole);
		yoke_loader_free(some);
		if (!skip)
			good = good && atomic_load(&y.read) == parts * rows * batches;
		yoke_dataset_free(d);
		yoke_dataset_free(e);
		if (!good)
			diag("%d parts of %d from %d by %d, %lld rows each, last=%s on_error=%s: %s", parts, split, part, stride, (long long)rows,
			     last, error, yoke_error());
	}
	ok(good, "%d loaders that give some parts of each batch, and read no others", n);
}

// ---- failures ----

struct heard {
	int n;
	int64_t number[64];
};

static void hear(void *arg, const struct yoke_data_error *e)
{
	struct heard *h = arg;
	if (h->n < 64 && e->code == YOKE_EIO && strstr(e->why, "is bad"))
		h->number[h->n++] = e->number;
}

static void test_failures(void)
{
	enum { COUNT = 11, BATCH = 4 };
	bool good = true;
	for (int k = 0; k < COUNT && good; k++) { // the k-th sample of the order fails, and a second one
		struct source x = { .count = COUNT, .sleep_us = 20 };
		const int64_t other = rnd_int(0, COUNT - 1);
		x.bad[yk_order_at(k, COUNT, 1, 4, 0)] = true;
		x.bad[yk_order_at(other, COUNT, 1, 4, 0)] = true;
		const int nbad = other == k ? 1 : 2;
		yoke_dataset *d = set_of(&x, 1 + k % 3, 0);
		for (int workers = 0; workers <= 3 && good; workers += 3) {
			struct heard h = { 0 };
			void *data[2];
			int64_t rows, at = 0;
			// skip
			yoke_loader *l = loader(d, "batch=%d seed=4 on_error=skip epochs=1 last=keep workers=%d", BATCH,
						workers);
			yoke_loader_errors(l, hear, &h);
			while ((rows = yoke_loader_host(l, 2, data, NULL)) > 0)
				for (int64_t r = 0; r < rows; r++, at++) {
					int64_t place = at, number;
					do
						number = yk_order_at(place++ % COUNT, COUNT, 1, 4, 0);
					while (x.bad[number]);
					good = good && ((int64_t *)data[0])[2 * r] == number;
				}
			good = good && rows == 0 && at == COUNT && h.n == nbad;
			int seen = 0; // in the order of places
			for (int64_t i = 0; i < COUNT && good; i++)
				if (x.bad[yk_order_at(i, COUNT, 1, 4, 0)])
					good = h.number[seen++] == yk_order_at(i, COUNT, 1, 4, 0);
			yoke_loader_free(l);
			// stop, and at most one
			for (int most = 0; most <= 1 && good; most++) {
				char name[40];
				int64_t first = k < other ? k : other, second = k < other ? other : k;
				const int64_t place = most == 0 ? first : nbad == 2 ? second : COUNT;
				l = loader(d, "batch=%d seed=4 on_error=%s epochs=1 last=keep workers=%d", BATCH,
					   most ? "1" : "stop", workers);
				at = 0;
				while ((rows = yoke_loader_host(l, 2, data, NULL)) > 0)
					at += rows;
				good = at == (place == COUNT ? COUNT : place / BATCH * BATCH) &&
				       rows == (place == COUNT ? 0 : YOKE_EIO);
				if (place < COUNT) {
					snprintf(name, sizeof name, "numbers: sample %lld: ",
						 (long long)yk_order_at(place, COUNT, 1, 4, 0));
					good = good && strstr(yoke_error(), name) && strstr(yoke_error(), "is bad");
					struct yoke_position p = { .size = sizeof p };
					yoke_loader_position(l, &p);
					good = good && p.index == at;
					yoke_error_clear();
					good = good && yoke_loader_host(l, 2, data, NULL) == YOKE_EIO; // and again
				}
				if (!good)
					diag("most %d place %lld rows %lld at %lld: %s", most, (long long)place, (long long)rows,
					     (long long)at, yoke_error());
				yoke_error_clear();
				yoke_loader_free(l);
			}
			if (!good)
				diag("k %d other %lld workers %d", k, (long long)other, workers);
		}
		yoke_dataset_free(d);
	}
	ok(good, "each sample of an epoch fails, in each mode");

	// at most one an epoch, over three epochs, ended and gone on with behind each batch
	struct source one = { .count = COUNT, .bad = { [6] = true } };
	yoke_dataset *e = set_of(&one, 1, 0);
	struct yoke_position at = { .size = sizeof at };
	for (int b = 0; b < 3 * COUNT / BATCH && good; b++) {
		void *data[2];
		yoke_loader *l = loader(e, "batch=%d seed=4 on_error=1 workers=%d", BATCH, b % 3);
		good = yoke_loader_seek(l, &at) == 0 && yoke_loader_host(l, 2, data, NULL) == BATCH;
		const int64_t before = at.epoch;
		yoke_loader_position(l, &at);
		bool behind = false; // is the bad one's place of this epoch behind us?
		for (int64_t i = 0; i < at.index; i++)
			behind |= yk_order_at(i, COUNT, 1, 4, at.epoch) == 6;
		good = good && at.failed == behind && at.epoch >= before;
		yoke_loader_free(l);
	}
	ok(good, "failures are counted by epoch, and in positions: %s", yoke_error());
	at = (struct yoke_position){ .size = sizeof at, .failed = 1 };
	yoke_loader *again = loader(e, "batch=%d seed=4 on_error=1", COUNT);
	void *none[2];
	ok(yoke_loader_seek(again, &at) == 0 && yoke_loader_host(again, 2, none, NULL) == YOKE_EIO &&
		   strstr(yoke_error(), "one more than on_error=1"), "%s", yoke_error());
	yoke_error_clear();
	yoke_loader_free(again);
	yoke_dataset_free(e);

	// a long row of them costs no search for each
	struct source row = { .count = 64, .sleep_us = 1 };
	for (int i = 10; i < 64; i++)
		row.bad[i] = i != 30;
	yoke_dataset *many = set_of(&row, 1, 0);
	yoke_loader *in_row = loader(many, "batch=8 shuffle=0 on_error=skip epochs=1 workers=0");
	for (int64_t begin = 0; begin < 64 && good; begin += 8) {
		void *data[2];
		good = yoke_loader_host(in_row, 2, data, NULL) == 8;
		for (int64_t r = begin; r < begin + 8 && good; r++)
			good = ((int64_t *)data[0])[2 * (r - begin)] == (r < 10 ? r : r <= 30 ? 30 : 0);
	}
	ok(good && row.calls <= 64 + 53 + 20 + 33, "rows of bad samples: %d reads", row.calls);
	yoke_loader_free(in_row);
	yoke_dataset_free(many);

	struct source x = { .count = 5, .bad = { 1, 1, 1, 1, 1 } };
	yoke_dataset *d = set_of(&x, 1, 0);
	yoke_loader *l = loader(d, "batch=2 on_error=skip workers=1");
	void *data[2];
	ok(yoke_loader_host(l, 2, data, NULL) == YOKE_EIO && strstr(yoke_error(), "no other sample"),
	   "where all fail it ends: %s", yoke_error());
	yoke_error_clear();
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- shapes that vary ----

static int read_ragged(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++) {
		int32_t *to = s[i]->to[0];
		const int64_t a = s[i]->number % 4, b = s[i]->number % 6;
		s[i]->dims[0][0] = a;
		s[i]->dims[0][2] = b;
		for (int64_t k = 0; k < a * 2 * b; k++)
			to[k] = (int32_t)(1000 * s[i]->number + k);
	}
	return 0;
}

static void test_ragged(void)
{
	const struct yoke_field field = { .size = sizeof field, .name = "x", .dtype = yoke_i32, .rank = 3, .pad = -3,
					  .dims = { 4, 2, 7 }, .multiple = { 2, 0, 3 } };
	yoke_dataset *d = yoke_dataset_new(&(struct yoke_dataset_options){
		.size = sizeof(struct yoke_dataset_options), .count = 29, .fields = 1, .field = &field,
		.read = read_ragged });
	yoke_loader *l = loader(d, "batch=3 shuffle=0 last=pad epochs=1 workers=2");
	int64_t dims[1][YOKE_MAX_RANK + 1], first = 0, rows;
	void *data[1];
	bool good = true;
	while ((rows = yoke_loader_host(l, 1, data, dims)) > 0) {
		int64_t a = 1, b = 1;
		for (int64_t r = 0; r < rows; r++) {
			a = (first + r) % 4 > a ? (first + r) % 4 : a;
			b = (first + r) % 6 > b ? (first + r) % 6 : b;
		}
		a = (a + 1) / 2 * 2;
		b = (b + 2) / 3 * 3 > 7 ? 7 : (b + 2) / 3 * 3;
		good = good && dims[0][0] == 3 && dims[0][1] == a && dims[0][2] == 2 && dims[0][3] == b;
		for (int64_t r = 0; r < 3 && good; r++)
			for (int64_t i = 0; i < a; i++)
				for (int64_t j = 0; j < 2; j++)
					for (int64_t k = 0; k < b; k++) {
						const int64_t n = first + r, m = n % 6;
						const bool in = r < rows && i < n % 4 && k < m;
						const int64_t want = in ? 1000 * n + (i * 2 + j) * m + k : -3;
						good = good && ((int32_t *)data[0])[((r * a + i) * 2 + j) * b + k] == want;
					}
		first += rows;
	}
	ok(good && rows == 0 && first == 29, "samples of several sizes are padded to classes: %s", yoke_error());
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- sets of sets ----

static int twice(void *arg, const struct yoke_item *from, struct yoke_item *s)
{
	(void)arg;
	const int64_t *what = from ? from->to[0] : s->to[0];
	if (from)
		*(double *)s->to[0] = 2 * (double)what[0] + yoke_item_uniform(s, 0);
	else
		((int64_t *)s->to[0])[0] *= 2;
	return what[0] == 13 ? YOKE_ERANGE : 0;
}

static int64_t number_of(yoke_dataset *d, int64_t i, int64_t epoch)
{
	int64_t what[2] = { -1, -1 };
	float x;
	void *to[] = { what, &x };
	return yoke_dataset_read(d, i, 1, epoch, i, to, NULL) == 0 ? what[0] : -1;
}

static void test_sets(void)
{
	struct source a = { .count = 5 }, b = { .count = 7 }, c = { .count = 20 };
	yoke_dataset *x = set_of(&a, 4, 0), *y = set_of(&b, 1, 1), *z = set_of(&c, 1, 0);
	yoke_dataset *const all[] = { x, y, z };
	yoke_dataset *d = yoke_dataset_concat(3, all);
	bool good = d && yoke_dataset_count(d) == 32;
	for (int64_t i = 0; i < 32 && good; i++)
		good = number_of(d, i, 0) == (i < 5 ? i : i < 12 ? i - 5 : i - 12);
	ok(good, "concatenation");
	const int64_t pick[] = { 31, 0, 5, 31 };
	yoke_dataset *s = yoke_dataset_subset(d, 0, 4, pick), *t = yoke_dataset_subset(d, 4, 20, NULL);
	good = s && t && yoke_dataset_count(s) == 4 && yoke_dataset_count(t) == 20 && number_of(s, 0, 0) == 19 &&
	       number_of(s, 1, 0) == 0 && number_of(s, 2, 0) == 0 && number_of(s, 3, 0) == 19;
	for (int64_t i = 0; i < 20 && good; i++)
		good = number_of(t, i, 0) == number_of(d, i + 4, 0);
	ok(good, "subsets, by numbers and in a row");

	// the parts of a mix, over epochs
	const double weight[] = { 1, 2, 0.5 };
	yoke_dataset *m = yoke_dataset_mix(3, all, weight, 9, 77);
	enum { EPOCHS = 50 };
	int used[3][20] = { { 0 } }, part[3] = { 0 };
	static const int64_t quota[] = { 3, 5, 1 }; // of 9 by 2.57, 5.14, 1.29
	good = m && yoke_dataset_count(m) == 9;
	// which set a sample is of shows in its reads
	for (int64_t e = 0; e < EPOCHS && good; e++)
		for (int64_t i = 0; i < 9; i++) {
			const int before[] = { a.calls, b.calls, c.calls };
			a.sleep_us = b.sleep_us = c.sleep_us = 1;
			const int64_t n = number_of(m, i, e);
			const int of = a.calls > before[0] ? 0 : b.calls > before[1] ? 1 : 2;
			used[of][n]++;
			part[of]++;
		}
	for (int k = 0; k < 3 && good; k++) {
		int least = 1 << 30, most = 0;
		for (int64_t i = 0; i < yoke_dataset_count(all[k]); i++) {
			least = used[k][i] < least ? used[k][i] : least;
			most = used[k][i] > most ? used[k][i] : most;
		}
		good = part[k] == EPOCHS * quota[k] && most - least <= 1;
		if (!good)
			diag("set %d: %d samples, each %d to %d times", k, part[k], least, most);
	}
	ok(good, "a mix has its shares, and each sample of a set as often as the others");

	yoke_dataset *in_place = yoke_dataset_map(d, 0, NULL, twice, NULL, NULL);
	const struct yoke_field f = { .size = sizeof f, .name = "twice", .dtype = yoke_f64 };
	yoke_dataset *made = yoke_dataset_map(in_place, 1, &f, twice, NULL, NULL);
	double got = 0;
	void *to[] = { &got };
	good = in_place && made && number_of(in_place, 31, 0) == 38;
	good = good && yoke_dataset_read(made, 30, 5, 2, 30, to, NULL) == 0 && got >= 72 && got < 73;
	ok(good, "maps, one on the other: %g", got);
	yoke_dataset *bad = yoke_dataset_map(d, 1, &f, twice, NULL, NULL);
	ok(yoke_dataset_read(bad, 25, 0, 0, 0, to, NULL) == YOKE_ERANGE && strstr(yoke_error(), "sample 25"),
	   "one that fails: %s", yoke_error());
	yoke_error_clear();
	yoke_dataset *const made_of[] = { x, y, z, d, s, t, m, in_place, made, bad };
	for (int i = 0; i < 10; i++)
		yoke_dataset_free(made_of[i]);
	ok(a.freed == 1 && b.freed == 1 && c.freed == 1, "all of them are freed once");
}

// ---- tensors ----

static void test_tensors(void)
{
	struct source x = { .count = 50 };
	yoke_dataset *d = set_of(&x, 1, 0);
	yoke_loader *l = loader(d, "batch=4 shuffle=0 last=pad workers=2 prefetch=2 epochs=1");
	yoke_tensor *held[14][2], *weight[14];
	bool good = true;
	for (int b = 0; b < 13 && good; b++) { // all are kept, more than there are slots
		const int64_t rows = yoke_loader_next(l, 2, held[b], &weight[b]);
		good = rows == (b < 12 ? 4 : 2) && yoke_dim(held[b][0], 0) == 4 && yoke_dim(held[b][0], 1) == 2 &&
		       yoke_rank(held[b][1]) == 1;
	}
	good = good && yoke_loader_next(l, 2, held[13], NULL) == 0;
	yoke_loader_free(l); // before its tensors
	for (int b = 0; b < 13 && good; b++) {
		int64_t what[8];
		float w[4];
		good = yoke_read(held[b][0], what, sizeof what) == 0 && yoke_read(weight[b], w, sizeof w) == 0;
		for (int r = 0; r < 4; r++)
			good = good && what[2 * r] == (4 * b + r < 50 ? 4 * b + r : -7) && w[r] == (4 * b + r < 50);
		yoke_free(held[b][0]);
		yoke_free(held[b][1]);
		yoke_free(weight[b]);
	}
	ok(good, "batches as tensors, which outlive their loader: %s", yoke_error());

	l = loader(d, "batch=5 shuffle=1 seed=6");
	yoke_tensor *v[] = { yoke_variable("what", yoke_i64, 2, (int64_t[]){ 5, 2 }),
			     yoke_variable("draw", yoke_f32, 1, (int64_t[]){ 5 }) };
	good = true;
	for (int b = 0; b < 20 && good; b++) {
		int64_t what[10];
		good = yoke_loader_put(l, 2, v) == 5 && yoke_read(v[0], what, sizeof what) == 0;
		for (int r = 0; r < 5; r++)
			good = good && what[2 * r] == yk_order_at((5 * b + r) % 50, 50, 1, 6, b / 10);
	}
	yoke_tensor *wrong[] = { v[1], v[0] };
	ok(good && yoke_loader_put(l, 2, wrong) == YOKE_ESHAPE, "batches into variables: %s", yoke_error());
	yoke_error_clear();
	struct yoke_loader_stats s = { .size = sizeof s };
	ok(yoke_loader_stats(l, &s) == 0 && s.batches == 21 && s.samples == 105 && s.workers >= 1 && s.bytes > 0,
	   "figures: %llu batches, %d workers", (unsigned long long)s.batches, s.workers);
	yoke_free(v[0]);
	yoke_free(v[1]);
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- ends ----

static int entries(const char *folder)
{
	int n = 0;
	DIR *f = opendir(folder);
	while (f && readdir(f))
		n++;
	if (f)
		closedir(f);
	return n;
}

static void test_open_close(void)
{
	struct source x = { .count = 100, .sleep_us = 100 };
	yoke_dataset *d = set_of(&x, 3, 0);
	const int threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
	const int n = tap_cases(300, 1000);
	bool good = true;
	for (int k = 0; k < n && good; k++) {
		void *data[2];
		yoke_loader *l = loader(d, "batch=8 workers=%d prefetch=%d", (int)rnd_int(0, 4), (int)rnd_int(0, 3));
		for (int64_t b = rnd_int(0, 2); b > 0 && good; b--)
			good = yoke_loader_host(l, 2, data, NULL) == 8;
		yoke_loader_free(l);
	}
	const int left = entries("/proc/self/task"), open = entries("/proc/self/fd");
	ok(good && left == threads && open == files, "%d loaders closed in the middle: %d threads of %d, %d files of %d", n,
	   left, threads, open, files);
	yoke_dataset_free(d);
	ok(x.freed == 1, "the set is freed behind them");

	struct source serial = { .count = 30, .sleep_us = 50 };
	d = set_of(&serial, 1, 1);
	yoke_loader *l = loader(d, "batch=7 workers=5");
	void *data[2];
	for (int b = 0; b < 12; b++)
		yoke_loader_host(l, 2, data, NULL);
	yoke_loader_free(l);
	yoke_dataset_free(d);
	ok(serial.together == 0, "a set that is not thread safe is read by one thread at a time");
}

static atomic_bool stuck_may_end;

static int read_stuck(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	(void)n;
	*(float *)s[0]->to[0] = 1;
	while (s[0]->number == 3 && !atomic_load(&stuck_may_end))
		pause_us(1000);
	return 0;
}

static void test_stuck(void)
{
	static struct source gone;
	const struct yoke_field f = { .size = sizeof f, .name = "x", .dtype = yoke_f32 };
	yoke_dataset *d = yoke_dataset_new(&(struct yoke_dataset_options){
		.size = sizeof(struct yoke_dataset_options), .name = "stuck", .count = 9, .fields = 1, .field = &f,
		.read = read_stuck, .arg = &gone, .free_fn = free_source });
	yoke_loader *l = loader(d, "batch=2 shuffle=0 workers=2");
	void *data[1];
	const int64_t first = yoke_loader_host(l, 1, data, NULL), second = yoke_loader_host(l, 1, data, NULL);
	ok(first == 2 && second == YOKE_EIO && strstr(yoke_error(), "stuck: sample 3") &&
		   strstr(yoke_error(), "data.timeout"), "a read that does not return ends the run: %s", yoke_error());
	yoke_error_clear();
	struct yoke_position p = { .size = sizeof p };
	yoke_loader_position(l, &p);
	yoke_loader_free(l);
	yoke_dataset_free(d);
	const bool held = gone.freed == 0;
	atomic_store(&stuck_may_end, true);
	for (int k = 0; k < 5000 && !gone.freed; k++)
		pause_us(1000);
	ok(p.index == 2 && held && gone.freed == 1, "at the position before it; what it reads lives as long");
}

// ---- what is refused ----

static void test_refused(void)
{
	static const struct {
		const char *settings, *say;
		int code;
	} row[] = {
		{ "batch=0", "batch=0: must be a whole number from 1", YOKE_EINVAL },
		{ "batch=", "batch=: must be", YOKE_EINVAL },
		{ "batch=3x", "batch=3x", YOKE_EINVAL },
		{ "batch=99999999999999999999", "batch=9", YOKE_EINVAL },
		{ "workers=-2", "workers=-2: must be auto or a whole number from 0 to 1024", YOKE_EINVAL },
		{ "last=some", "must be wrap or drop or keep or pad", YOKE_EINVAL },
		{ "last=1", "last=1", YOKE_EINVAL },
		{ "on_error=0", "must be skip or stop or a whole number from 1", YOKE_EINVAL },
		{ "rank=2 world=2", "rank=2: must be below world=2", YOKE_EINVAL },
		{ "bach=2", "did you mean 'batch'", YOKE_EINVAL },
		{ "batch", "'batch' is not key=value", YOKE_EINVAL },
		{ "batch=11 last=drop", "an epoch has 10 samples, batch=11", YOKE_ERANGE },
		{ "batch=4 last=drop world=3", "an epoch has 4", 0 },
		{ "batch=5 last=drop world=3", "an epoch has 4 samples for each rank", YOKE_ERANGE },
		{ "batch=4 split=3", "split=3: must divide batch=4", YOKE_EINVAL },
		{ "batch=4 split=2 last=keep", "split=2: must divide", YOKE_EINVAL },
		{ "batch=4 split=2 part=2", "part=2 parts=0 stride=1: must be among those of split=2", YOKE_EINVAL },
		{ "batch=4 split=2 part=1 parts=2", "part=1 parts=2 stride=1: must be among", YOKE_EINVAL },
		{ "batch=4 split=4 parts=2 stride=4", "parts=2 stride=4: must be among", YOKE_EINVAL },
		{ "batch=4 split=2 parts=1 last=pad", "last=pad does not go with them", YOKE_EINVAL },
		{ "batch=4 split=0", "split=0: must be a whole number from 1", YOKE_EINVAL },
		{ "batch=4000000000000000000", "no memory", YOKE_ENOMEM },
	};
	struct source x = { .count = 10 };
	yoke_dataset *d = set_of(&x, 1, 0);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		yoke_loader *l = yoke_loader_new(d, row[i].settings);
		ok(row[i].code ? !l && yoke_error_code() == row[i].code && strstr(yoke_error(), row[i].say) : l != NULL,
		   "loader %s: %s", row[i].settings, yoke_error());
		yoke_error_clear();
		yoke_loader_free(l);
	}
	const int64_t places[][2] = { { -1, 0 }, { 0, -1 }, { 0, 11 }, { INT64_MAX, 0 } };
	yoke_loader *l = loader(d, "batch=2 workers=0");
	bool good = true;
	for (int i = 0; i < 4; i++) {
		struct yoke_position p = { .size = sizeof p, .epoch = places[i][0], .index = places[i][1] };
		good = good && yoke_loader_seek(l, &p) == YOKE_EINVAL;
		yoke_error_clear();
	}
	ok(good, "places that there are not");
	void *data[3];
	ok(yoke_loader_host(l, 3, data, NULL) == YOKE_EINVAL, "three fields of two: %s", yoke_error());
	yoke_error_clear();
	yoke_loader_free(l);
	struct yoke_field f = { .size = sizeof f, .name = "x", .dtype = yoke_u8 }, g = f;
	struct yoke_dataset_options o = { .size = sizeof o, .count = 1, .fields = 1, .field = &f, .read = read_stuck };
	struct yoke_dataset_options none = o, empty = o, large = o, axes = o;
	none.read = NULL;
	empty.count = 0;
	f.pad = 0.5;
	ok(!yoke_dataset_new(&o) && strstr(yoke_error(), "pad 0.5"), "%s", yoke_error());
	yoke_error_clear();
	f.pad = 0;
	ok(!yoke_dataset_new(&none) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	ok(!yoke_dataset_new(&empty) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	g.rank = 3;
	g.dims[0] = g.dims[1] = g.dims[2] = INT64_MAX / 2;
	large.field = &g;
	ok(!yoke_dataset_new(&large) && yoke_error_code() == YOKE_ERANGE, "%s", yoke_error());
	yoke_error_clear();
	g.rank = YOKE_MAX_RANK;
	axes.field = &g;
	ok(!yoke_dataset_new(&axes) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	yoke_dataset *e = yoke_dataset_new(&o), *const two[] = { d, e };
	ok(e && !yoke_dataset_concat(2, two) && strstr(yoke_error(), "has 2 fields"), "%s", yoke_error());
	yoke_error_clear();
	ok(!yoke_dataset_subset(d, 5, 6, NULL) && yoke_error_code() == YOKE_ERANGE, "%s", yoke_error());
	yoke_error_clear();
	ok(!yoke_dataset_mix(1, two, (double[]){ -1 }, 5, 0) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
	yoke_dataset_free(e);
}

int main(void)
{
	tap_seed();
	setenv("YOKE_BACKEND", "cpu", 0);
	setenv("YOKE_DATA_TIMEOUT", "1", 1);
	setenv("YOKE_LOG", "error", 1);
	test_golden();
	test_orders();
	test_ranks();
	test_positions();
	test_parts();
	test_failures();
	test_ragged();
	test_sets();
	test_tensors();
	test_open_close();
	test_stuck();
	test_refused();
	return done();
}
