// SPDX-License-Identifier: Apache-2.0
// Tests ops that need more groups than a driver's grid has along an axis (YOKE_FAKE_GRID makes
// the grid small) against loops, with integers, whose sums have no rounding.
#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { LIMIT = 1 << 19 };
static float a[LIMIT], b[LIMIT], got[LIMIT], want[LIMIT];

// -3 .. 3
static void whole(float *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = (float)rnd_int(-3, 3);
}

static void compare(yoke_tensor *y, int64_t n, const char *what)
{
	int64_t wrong = 0, first = -1;

	memset(got, 0xff, sizeof got);
	const int err = yoke_read(y, got, (uint64_t)n * sizeof *got);
	for (int64_t i = 0; i < n && !err; i++)
		if (got[i] != want[i] && !wrong++)
			first = i;
	ok(!err && !wrong, "%s: %lld of %lld wrong, the first %lld %s", what, (long long)wrong,
	   (long long)n, (long long)first, yoke_error());
	yoke_error_clear();
}

static yoke_tensor *of(int rank, const int64_t *dims, const float *from)
{
	return yoke_from(yoke_f32, rank, dims, from);
}

// Sums over the middle one of three axes, and over the last.
static void sums(int64_t n, int64_t m, int64_t k)
{
	whole(a, n * m * k);
	memset(want, 0, sizeof want);
	for (int64_t i = 0; i < n * m * k; i++)
		want[i / (m * k) * k + i % k] += a[i];
	compare(yoke_sum(of(3, (int64_t[]){ n, m, k }, a), 2), n * k, "a sum along columns");
	memset(want, 0, sizeof want);
	for (int64_t i = 0; i < n * m * k; i++)
		want[i / k] += a[i];
	compare(yoke_sum(of(3, (int64_t[]){ n, m, k }, a), 4), n * m, "a sum along rows");
}

// b of one matrix each, or of rows by columns.
static void product(int dtype, int64_t batch, int64_t m, int64_t n, int64_t k, const char *what)
{
	whole(a, batch * m * k);
	whole(b, batch * k * n);
	memset(want, 0, sizeof want);
	for (int64_t i = 0; i < batch * m * n; i++)
		for (int64_t l = 0; l < k; l++)
			want[i] += a[i / n * k + l] * b[(i / (m * n) * k + l) * n + i % n];
	yoke_tensor *x = yoke_cast(of(3, (int64_t[]){ batch, m, k }, a), dtype);
	yoke_tensor *y = yoke_matmul(x, yoke_cast(of(3, (int64_t[]){ batch, k, n }, b), dtype), 0);
	compare(yoke_cast(y, yoke_f32), batch * m * n, what);
}

static void maps(int64_t rows, int64_t cols, int64_t all)
{
	whole(a, rows * cols);
	whole(b, rows * cols);
	for (int64_t i = 0; i < rows * cols; i++)
		want[i] = a[i % cols * rows + i / cols] + 2 * b[i];
	yoke_tensor *turned = yoke_permute(of(2, (int64_t[]){ cols, rows }, a), (int[]){ 1, 0 });
	yoke_tensor *other = of(2, (int64_t[]){ rows, cols }, b);
	compare(yoke_add(turned, yoke_add(other, other)), rows * cols, "a map of rows");
	whole(a, all);
	for (int64_t i = 0; i < all; i++)
		want[i] = a[i] * a[i];
	yoke_tensor *x = of(1, &all, a);
	compare(yoke_mul(x, x), all, "a map of one row");
}

static void sorts(int64_t rows, int64_t n)
{
	for (int64_t i = 0; i < rows * n; i++) {
		a[i] = (float)(i * 7919 % n); // n is no multiple of that: all of 0 .. n - 1
		want[i] = (float)(i % n);
	}
	compare(yoke_sort(of(2, (int64_t[]){ rows, n }, a), 1, 0, NULL), rows * n,
		"a sort of rows");
}

// Four rows per group.
static void groups(int64_t n, int64_t k, int64_t cols)
{
	int64_t first[200];

	whole(a, 4 * n * k);
	whole(b, n * k * cols);
	for (int64_t e = 0; e <= n; e++)
		first[e] = 4 * e;
	memset(want, 0, sizeof want);
	for (int64_t i = 0; i < 4 * n * cols; i++)
		for (int64_t l = 0; l < k; l++)
			want[i] +=
				a[i / cols * k + l] * b[(i / cols / 4 * k + l) * cols + i % cols];
	yoke_tensor *x = of(2, (int64_t[]){ 4 * n, k }, a),
		    *w = of(3, (int64_t[]){ n, k, cols }, b);
	yoke_tensor *y =
		yoke_grouped_matmul(x, w, yoke_from(yoke_i64, 1, (int64_t[]){ n + 1 }, first));
	yoke_tensor *dw = NULL;
	yoke_grad(yoke_sum(y, YOKE_ALL), 1, &w, &dw);
	compare(y, 4 * n * cols, "groups of rows");
	// the gradient by w: of ones, sums of rows of x
	memset(want, 0, sizeof want);
	for (int64_t i = 0; i < n * k * cols; i++)
		for (int64_t l = 0; l < 4; l++)
			want[i] += a[(i / (k * cols) * 4 + l) * k + i / cols % k];
	compare(dw, n * k * cols, "the gradient of groups of rows");
}

int main(void)
{
	tap_seed();
	yoke_scope *s = yoke_scope_begin("grid");
	sums(rnd_int(97, 130), 5, 64);
	sums(rnd_int(1201, 1400), 3, 40);
	product(yoke_f32, rnd_int(61, 113), 5, 40, 7, "products of few rows");
	product(yoke_f32, rnd_int(61, 113), 6, 6, 7, "small products");
	product(yoke_f32, rnd_int(61, 113), 33, 34, 2, "products of blocks");
	product(yoke_i32, rnd_int(61, 113), 5, 6, 7, "products of i32");
	product(yoke_f32, 1, rnd_int(5300, 6300), 40, 2, "a product of many rows");
	maps(rnd_int(101, 199), 300, rnd_int(310000, LIMIT));
	sorts(rnd_int(61, 99), 601);
	groups(rnd_int(61, 99), 6, 33);
	yoke_scope_end(s);
	return done();
}
