// SPDX-License-Identifier: Apache-2.0
// Tests datasets and loaders against plain loops: order, contents, ends of epochs, ranks,
// positions, shapes.
#include "config.h"

#include "fed.h"

// ---- orders ----

// Computed by another program from the definition.
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
	ok(good, "each order has each sample once, and blocks are permuted internally");
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
				struct source x = { .count = rnd_int(9, 60),
						    .sleep_us = (int)rnd_int(0, 1) * 60 };
				const int64_t batch = rnd_int(1, x.count / world),
					      shuffle = rnd_int(0, 5);
				const int64_t prefetch = rnd_int(0, 8),
					      rank = rnd_int(0, world - 1);
				const uint64_t seed = rnd() >> 2;
				yoke_dataset *d = set_of(&x, rnd_int(0, 9), rnd_int(0, 3) == 0);
				yoke_loader *l = loader(
					d,
					"batch=%lld workers=%d prefetch=%lld shuffle=%lld last=%s seed=%lld "
					"rank=%lld world=%d epochs=3",
					(long long)batch, workers[w], (long long)prefetch,
					(long long)shuffle, last_name[last], (long long)seed,
					(long long)rank, world);
				expect(&want, x.count, batch, last, rank, world, shuffle, seed, 3);
				good = l && compare(l, d, &want, 0, batch, last, seed, true);
				yoke_loader_free(l);
				yoke_dataset_free(d);
				good = good && x.freed == 1;
				if (!good)
					diag("workers %d last=%s rank %lld of %d batch %lld of %lld shuffle %lld",
					     workers[w], last_name[last], (long long)rank, world,
					     (long long)batch, (long long)x.count,
					     (long long)shuffle);
				n++;
			}
	ok(good, "%d loaders return the batches of plain loops: %s", n, yoke_error());
}

// All ranks together use each sample once, except for wrapped ones.
static void test_ranks(void)
{
	bool good = true;
	for (int world = 1; world <= 4; world++) {
		struct source x = { .count = 23 };
		yoke_dataset *d = set_of(&x, 1, 0);
		int used[23] = { 0 }, extra = 0;
		for (int rank = 0; rank < world; rank++) {
			yoke_loader *l = loader(
				d, "batch=5 last=keep rank=%d world=%d epochs=1 seed=3 workers=1",
				rank, world);
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
			yoke_loader *l =
				loader(d, "batch=5 last=%s seed=8 epochs=3 workers=2 prefetch=3",
				       last_name[last]);
			for (int64_t b = 0; b < stop; b++) {
				void *data[2];
				yoke_loader_host(l, 2, data, NULL);
			}
			yoke_loader_position(l, &at);
			yoke_loader_free(l);
			l = loader(d, "batch=5 last=%s seed=8 epochs=3 workers=%d prefetch=%d",
				   last_name[last], (int)rnd_int(0, 4), (int)rnd_int(0, 4));
			void *data[2]; // first some batches from another position
			for (int64_t skip = rnd_int(0, 3); skip > 0; skip--)
				yoke_loader_host(l, 2, data, NULL);
			good = yoke_loader_seek(l, &at) == 0 &&
			       compare(l, d, &want, stop, batch, last, 8, true);
			yoke_loader_free(l);
		}
		yoke_dataset_free(d);
	}
	ok(good, "a loader resumes after each batch, with other workers and prefetch: %s",
	   yoke_error());

	// by two ranks with batches of 2 up to some position, then by three with batches of 2: each
	// sample once
	int used[40] = { 0 };
	struct source x = { .count = 40 };
	yoke_dataset *d = set_of(&x, 1, 0);
	struct yoke_position at = { .size = sizeof at };
	void *data[2];
	for (int rank = 0; rank < 2; rank++) {
		yoke_loader *l = loader(d, "batch=2 seed=2 rank=%d world=2 workers=1", rank);
		for (int b = 0; b < 5; b++)
			for (int64_t rows = yoke_loader_host(l, 2, data, NULL), r = 0; r < rows;
			     r++)
				used[((int64_t *)data[0])[2 * r]]++;
		yoke_loader_position(l, &at);
		yoke_loader_free(l);
	}
	good = at.epoch == 0 && at.index == 20;
	for (int rank = 0; rank < 3; rank++) {
		yoke_loader *l =
			loader(d, "batch=2 seed=2 rank=%d world=3 last=keep workers=0", rank);
		good = good && yoke_loader_seek(l, &at) == 0;
		struct yoke_position now = at;
		while (good && now.epoch == 0) {
			for (int64_t rows = yoke_loader_host(l, 2, data, NULL), r = 0; r < rows;
			     r++)
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
	ok(good && twice == (3 - (40 - 20) % 3) % 3,
	   "another number of ranks resumes at the same sample");
	yoke_dataset_free(d);
}

// ---- some parts of a batch ----

// Batches of two loaders, one of which returns only some micro-batches of the other.
static bool same_parts(yoke_loader *whole, yoke_loader *some, int split, int part, int parts,
		       int stride, int64_t rows)
{
	void *a[32], *b[32];
	int64_t dims[32][YOKE_MAX_RANK + 1];
	struct yoke_position p = { .size = sizeof p }, q = { .size = sizeof q };
	if (yoke_loader_host(whole, 2 * split, a, NULL) != rows * split ||
	    yoke_loader_host(some, 2 * parts, b, dims) != rows * parts)
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
		const int split = (int)rnd_int(1, 6), part = (int)rnd_int(0, split - 1),
			  parts = (int)rnd_int(1, split - part),
			  stride = parts > 1 ? (int)rnd_int(1, (split - part - 1) / (parts - 1)) :
					       (int)rnd_int(1, 3);
		const int64_t rows = rnd_int(1, 4), batches = rnd_int(1, 9), seed = rnd_int(0, 99);
		const bool skip = rnd_int(0, 1);
		struct source x = { .count = rnd_int(rows * split, 60), .sleep_us = 20 };
		for (int i = 0; i < 64 && skip; i++)
			x.bad[i] = rnd_int(0, 9) == 0;
		x.bad[0] = false; // only one of them is valid
		struct source y = x;
		yoke_dataset *d = set_of(&x, rnd_int(1, 5), 0), *e = set_of(&y, rnd_int(1, 5), 0);
		const char *last = last_name[rnd_int(WRAP, DROP)], *error = skip ? "skip" : "stop";
		yoke_loader *whole =
			loader(d, "batch=%d split=%d seed=%d last=%s on_error=%s workers=2",
			       (int)rows * split, split, (int)seed, last, error);
		yoke_loader *some = loader(
			e,
			"batch=%d split=%d seed=%d last=%s on_error=%s workers=%d prefetch=0 part=%d "
			"parts=%d stride=%d",
			(int)rows * split, split, (int)seed, last, error, (int)rnd_int(0, 3), part,
			parts, stride);
		for (int64_t b = 0; b < batches && good; b++)
			good = whole && some &&
			       same_parts(whole, some, split, part, parts, stride, rows);
		yoke_loader_free(whole);
		yoke_loader_free(some);
		if (!skip)
			good = good && atomic_load(&y.read) == parts * rows * batches;
		yoke_dataset_free(d);
		yoke_dataset_free(e);
		if (!good)
			diag("%d parts of %d from %d by %d, %lld rows each, last=%s on_error=%s: %s",
			     parts, split, part, stride, (long long)rows, last, error,
			     yoke_error());
	}
	ok(good, "%d loaders that return some micro-batches read no others", n);
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
	const struct yoke_field field = { .size = sizeof field,
					  .name = "x",
					  .dtype = yoke_i32,
					  .rank = 3,
					  .pad = -3,
					  .dims = { 4, 2, 7 },
					  .multiple = { 2, 0, 3 } };
	yoke_dataset *d = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.count = 29,
						.fields = 1,
						.field = &field,
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
		good = good && dims[0][0] == 3 && dims[0][1] == a && dims[0][2] == 2 &&
		       dims[0][3] == b;
		for (int64_t r = 0; r < 3 && good; r++)
			for (int64_t i = 0; i < a; i++)
				for (int64_t j = 0; j < 2; j++)
					for (int64_t k = 0; k < b; k++) {
						const int64_t n = first + r, m = n % 6;
						const bool in = r < rows && i < n % 4 && k < m;
						const int64_t want =
							in ? 1000 * n + (i * 2 + j) * m + k : -3;
						good = good &&
						       ((int32_t *)data[0])[((r * a + i) * 2 + j) *
									    b + k] == want;
					}
		first += rows;
	}
	ok(good && rows == 0 && first == 29, "samples of several sizes are padded to classes: %s",
	   yoke_error());
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
	yoke_dataset *s = yoke_dataset_subset(d, 0, 4, pick),
		     *t = yoke_dataset_subset(d, 4, 20, NULL);
	good = s && t && yoke_dataset_count(s) == 4 && yoke_dataset_count(t) == 20 &&
	       number_of(s, 0, 0) == 19 && number_of(s, 1, 0) == 0 && number_of(s, 2, 0) == 0 &&
	       number_of(s, 3, 0) == 19;
	for (int64_t i = 0; i < 20 && good; i++)
		good = number_of(t, i, 0) == number_of(d, i + 4, 0);
	ok(good, "subsets, by numbers and in a row");

	// the proportions of a mix, over epochs
	const double weight[] = { 1, 2, 0.5 };
	yoke_dataset *m = yoke_dataset_mix(3, all, weight, 9, 77);
	enum { EPOCHS = 50 };
	int used[3][20] = { { 0 } }, part[3] = { 0 };
	static const int64_t quota[] = { 3, 5, 1 }; // of 9 by 2.57, 5.14, 1.29
	good = m && yoke_dataset_count(m) == 9;
	// the set of a sample shows in its reads
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
		int min = 1 << 30, max = 0;
		for (int64_t i = 0; i < yoke_dataset_count(all[k]); i++) {
			min = used[k][i] < min ? used[k][i] : min;
			max = used[k][i] > max ? used[k][i] : max;
		}
		good = part[k] == EPOCHS * quota[k] && max - min <= 1;
		if (!good)
			diag("set %d: %d samples, each %d to %d times", k, part[k], min, max);
	}
	ok(good, "a mix has its proportions, and uses each sample of a set equally often");

	yoke_dataset *in_place = yoke_dataset_map(d, 0, NULL, twice, NULL, NULL);
	const struct yoke_field f = { .size = sizeof f, .name = "twice", .dtype = yoke_f64 };
	yoke_dataset *made = yoke_dataset_map(in_place, 1, &f, twice, NULL, NULL);
	double got = 0;
	void *to[] = { &got };
	good = in_place && made && number_of(in_place, 31, 0) == 38;
	good = good && yoke_dataset_read(made, 30, 5, 2, 30, to, NULL) == 0 && got >= 72 &&
	       got < 73;
	ok(good, "nested maps: %g", got);
	yoke_dataset *bad = yoke_dataset_map(d, 1, &f, twice, NULL, NULL);
	ok(yoke_dataset_read(bad, 25, 0, 0, 0, to, NULL) == YOKE_ERANGE &&
		   strstr(yoke_error(), "sample 25"),
	   "a map that fails: %s", yoke_error());
	yoke_error_clear();
	yoke_dataset *const made_of[] = { x, y, z, d, s, t, m, in_place, made, bad };
	for (int i = 0; i < 10; i++)
		yoke_dataset_free(made_of[i]);
	ok(a.freed == 1 && b.freed == 1 && c.freed == 1, "all of them are freed exactly once");
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
		good = rows == (b < 12 ? 4 : 2) && yoke_dim(held[b][0], 0) == 4 &&
		       yoke_dim(held[b][0], 1) == 2 && yoke_rank(held[b][1]) == 1;
	}
	good = good && yoke_loader_next(l, 2, held[13], NULL) == 0;
	yoke_loader_free(l); // the loader is freed before its tensors
	for (int b = 0; b < 13 && good; b++) {
		int64_t what[8];
		float w[4];
		good = yoke_read(held[b][0], what, sizeof what) == 0 &&
		       yoke_read(weight[b], w, sizeof w) == 0;
		for (int r = 0; r < 4; r++)
			good = good && what[2 * r] == (4 * b + r < 50 ? 4 * b + r : -7) &&
			       w[r] == (4 * b + r < 50);
		yoke_free(held[b][0]);
		yoke_free(held[b][1]);
		yoke_free(weight[b]);
	}
	ok(good, "batches as tensors outlive their loader: %s", yoke_error());

	l = loader(d, "batch=5 shuffle=1 seed=6");
	yoke_tensor *v[] = { yoke_variable("what", yoke_i64, 2, (int64_t[]){ 5, 2 }),
			     yoke_variable("draw", yoke_f32, 1, (int64_t[]){ 5 }) };
	good = true;
	for (int b = 0; b < 20 && good; b++) {
		int64_t what[10];
		good = yoke_loader_put(l, 2, v) == 5 && yoke_read(v[0], what, sizeof what) == 0;
		for (int r = 0; r < 5; r++)
			good = good &&
			       what[2 * r] == yk_order_at((5 * b + r) % 50, 50, 1, 6, b / 10);
	}
	yoke_tensor *wrong[] = { v[1], v[0] };
	ok(good && yoke_loader_put(l, 2, (yoke_tensor *[]){ v[0], v[0] }) == YOKE_EINVAL,
	   "one variable for two fields: %s", yoke_error());
	yoke_error_clear();
	ok(good && yoke_loader_put(l, 2, wrong) == YOKE_ESHAPE, "batches into variables: %s",
	   yoke_error());
	yoke_error_clear();
	struct yoke_loader_stats s = { .size = sizeof s };
	ok(yoke_loader_stats(l, &s) == 0 && s.batches == 21 && s.samples == 105 && s.workers >= 1 &&
		   s.bytes > 0,
	   "statistics: %llu batches, %d workers", (unsigned long long)s.batches, s.workers);
	yoke_free(v[0]);
	yoke_free(v[1]);
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

int main(void)
{
	tap_seed();
	setenv("YOKE_BACKEND", "cpu", 0);
	setenv("YOKE_LOG", "error", 1);
	test_golden();
	test_orders();
	test_ranks();
	test_positions();
	test_parts();
	test_ragged();
	test_sets();
	test_tensors();
	return done();
}
