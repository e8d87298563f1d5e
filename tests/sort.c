// SPDX-License-Identifier: Apache-2.0
// Rows so long that the CPU backend divides them among threads: sort and topk beside a merge sort
// of positions, in every dtype and both directions, with ties, both zeros and NaN; the same bits
// with 1, 2 and 3 threads. Short rows have cases in src/lib/conform.
#include "config.h"

#include <inttypes.h>

#include "base/hash.h"
#include "tap.h"
#include "yoke.h"

enum { DIVIDED = 1 << 16 }; // elements from which a row is divided

static const int64_t sizes[] = { DIVIDED - 1, DIVIDED, DIVIDED + 1, 3 * DIVIDED + 77 };
static const int dtypes[] = { yoke_f32, yoke_f64, yoke_i32, yoke_i64, yoke_u8 };

enum kind { TIES, DISTINCT, NANS, ONE_VALUE, KINDS };
static const char *const kinds[KINDS] = { "ties", "distinct", "zeros and NaN", "one value" };

// Does b belong before a, which is at the smaller position?
static bool is_before(double b, double a, bool descending)
{
	if (b != b || a != a)
		return a != a && b == b;
	return descending ? b > a : b < a;
}

// Merge sort of positions `at` by x, stable; `to` is memory for as many.
static void sort_positions(const double *x, int64_t *at, int64_t *to, int64_t n, bool descending)
{
	for (int64_t width = 1; width < n; width *= 2) {
		for (int64_t start = 0; start < n; start += 2 * width) {
			const int64_t middle = start + width < n ? start + width : n,
				      end = start + 2 * width < n ? start + 2 * width : n;
			int64_t i = start, j = middle;
			for (int64_t k = start; k < end; k++)
				to[k] = i < middle && (j >= end ||
						       !is_before(x[at[j]], x[at[i]], descending)) ?
						at[i++] :
						at[j++];
		}
		memcpy(at, to, (size_t)n * sizeof *at);
	}
}

static void draw(double *x, int64_t n, int dtype, enum kind kind)
{
	const bool real = dtype == yoke_f32 || dtype == yoke_f64;
	for (int64_t i = 0; i < n; i++) {
		x[i] = (double)rnd_int(0, 99);
		if (kind == DISTINCT &&
		    dtype != yoke_u8) // a permutation: 7919 is a prime that does not divide n
			x[i] = (double)(i * 7919 % n) - (double)(n / 2);
		if (kind == ONE_VALUE)
			x[i] = 7;
		if (kind == NANS && real) {
			const int64_t c = rnd_int(0, 5);
			x[i] = c == 0 ? NAN :
			       c == 1 ? -0.0 :
			       c == 2 ? 0.0 :
			       c == 3 ? INFINITY :
					rnd_real(-3, 3);
			x[i] = dtype == yoke_f32 ? (float)x[i] : x[i];
		}
	}
}

static yoke_tensor *tensor_of(const double *x, int64_t n, int dtype)
{
	return yoke_cast(yoke_from(yoke_f64, 1, &n, x), dtype);
}

// Sorts a row of n elements and compares with the reference; returns a hash of all results.
static uint64_t one_row(int64_t n, int dtype, enum kind kind, bool descending, bool check,
			uint64_t hash)
{
	double *x = malloc((size_t)n * sizeof *x), *values = malloc((size_t)n * sizeof *values);
	int64_t *at = malloc((size_t)n * sizeof *at), *to = malloc((size_t)n * sizeof *to),
		wrong = -1;
	const int64_t few[] = { 1000, n / 2 };
	yoke_tensor *i;
	draw(x, n, dtype, kind);
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *v = yoke_sort(tensor_of(x, n, dtype), 0, descending, &i);
	yoke_eval(2, (yoke_tensor *[]){ v, i });
	memset(values, 0xff, (size_t)n * sizeof *values);
	memset(to, 0xff, (size_t)n * sizeof *to);
	yoke_read(yoke_cast(v, yoke_f64), values, (size_t)n * sizeof *values);
	yoke_read(i, to, (size_t)n * sizeof *to);
	for (int64_t k = 0; k < n; k++) // bits of NaNs are not reproducible
		if (values[k] != values[k])
			values[k] = 1e300;
	hash = yk_hash(values, (size_t)n * sizeof *values,
		       yk_hash(to, (size_t)n * sizeof *to, hash));
	if (check) {
		int64_t *rest = malloc((size_t)n * sizeof *rest);
		for (int64_t k = 0; k < n; k++)
			at[k] = k;
		sort_positions(x, at, rest, n, descending);
		for (int64_t k = 0; k < n && wrong < 0; k++)
			if (to[k] != at[k] || (values[k] != x[at[k]] &&
					       !(values[k] == 1e300 && x[at[k]] != x[at[k]])))
				wrong = k;
		ok(wrong < 0,
		   "%s of %" PRId64 ", %s, %s: place %" PRId64 " has element %" PRId64
		   " of value %g, wanted %" PRId64 " of %g",
		   yoke_dtype_name(dtype), n, kinds[kind], descending ? "descending" : "ascending",
		   wrong, wrong < 0 ? 0 : to[wrong], wrong < 0 ? 0 : values[wrong],
		   wrong < 0 ? 0 : at[wrong], wrong < 0 ? 0 : x[at[wrong]]);
		free(rest);
	}
	for (int k = 0; k < 2; k++) { // a small part, which is selected first, and a large one
		yoke_topk(tensor_of(x, n, dtype), few[k], 0, descending, &i);
		memset(to, 0xff, (size_t)n * sizeof *to);
		yoke_read(i, to, (size_t)few[k] * sizeof *to);
		hash = yk_hash(to, (size_t)few[k] * sizeof *to, hash);
		if (check)
			ok(!memcmp(to, at, (size_t)few[k] * sizeof *to),
			   "%s of %" PRId64 ", %s: the first %" PRId64 " of topk, %s",
			   yoke_dtype_name(dtype), n, kinds[kind], few[k],
			   descending ? "descending" : "ascending");
	}
	yoke_scope_end(s);
	free(x);
	free(values);
	free(at);
	free(to);
	return hash;
}

static uint64_t all_rows(bool check)
{
	uint64_t hash = 1;
	for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
			for (int kind = 0; kind < KINDS; kind++)
				if ((d + i + (size_t)kind) % 2 == 0 || getenv("YOKE_TEST_LONG"))
					hash = one_row(sizes[i], dtypes[d], kind,
						       (i + (size_t)kind) % 2, check, hash);
	return hash;
}

static uint64_t bits_of(const char *self, int threads)
{
	char line[4600];
	uint64_t n = 0;
	snprintf(line, sizeof line, "YOKE_THREADS=%d %s bits", threads, self);
	FILE *from = popen(line, "r");
	if (from && fscanf(from, "%" SCNu64, &n) != 1)
		n = 0;
	if (from)
		pclose(from);
	return n;
}

int main(int argc, char **argv)
{
	tap_state = tap_seed_value();
	if (argc > 1) {
		printf("%" PRIu64 "\n", all_rows(false));
		return 0;
	}
	tap_seed();
	const uint64_t here = all_rows(true);
	for (int threads = 1; threads <= 3; threads++) {
		const uint64_t n = bits_of(argv[0], threads);
		ok(n == here,
		   "%d threads: the same values and positions (%" PRIx64 ", here %" PRIx64 ")",
		   threads, n, here);
	}
	return done();
}
