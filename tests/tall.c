// SPDX-License-Identifier: Apache-2.0
// Tests products with few rows and columns and a large inner dimension, which GPUs split: results
// against float64, with a map fused after them, and the same bits each time. With
// YOKE_TEST_SPLIT=1 the device splits them, so that its order of sums differs from that of k,
// which YOKE_BY_ROW keeps.
#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { MAX_SIDE = 96, MAX_K = 3000 };
static float a[MAX_SIDE * MAX_K], b[MAX_SIDE * MAX_K], row[MAX_SIDE], y[3][MAX_SIDE * MAX_SIDE];

// A number rounded to dtype.
static float rounded(double x, int dtype)
{
	const double unit = dtype == yoke_f16 ? 0x1p-10 : 0x1p-7;
	int e;

	if (dtype == yoke_f32)
		return (float)x;
	(void)frexp(x, &e);
	const double step = ldexp(unit, e - 1);
	return (float)(rint(x / step) * step);
}

static yoke_tensor *of(int dtype, int64_t rows, int64_t cols, const float *from)
{
	const int64_t dims[] = { rows, cols };

	return yoke_cast(yoke_from(yoke_f32, 2, dims, from), dtype);
}

// y = relu(a b + row)
static int multiply(int dtype, int64_t m, int64_t n, int64_t k, unsigned flags, float *to)
{
	yoke_tensor *x = yoke_matmul_to(of(dtype, m, k, a), of(dtype, k, n, b), flags, yoke_f32);

	x = yoke_relu(yoke_add(x, of(yoke_f32, 1, n, row)));
	return yoke_read(x, to, (uint64_t)(m * n) * sizeof *to);
}

static void check(int dtype, int64_t m, int64_t n, int64_t k)
{
	const size_t bytes = (size_t)(m * n) * sizeof **y;
	double worst = 0;

	for (int64_t i = 0; i < m * k; i++)
		a[i] = rounded(rnd_real(-1, 1), dtype);
	for (int64_t i = 0; i < k * n; i++)
		b[i] = rounded(rnd_real(-1, 1), dtype);
	for (int64_t i = 0; i < n; i++)
		row[i] = (float)rnd_real(-1, 1);
	memset(y, 0xff, sizeof y);
	yoke_scope *s = yoke_scope_begin("product");
	int err = multiply(dtype, m, n, k, 0, y[0]) || multiply(dtype, m, n, k, 0, y[1]) ||
		  multiply(dtype, m, n, k, YOKE_BY_ROW, y[2]);
	err = yoke_scope_end(s) || err;
	for (int64_t i = 0; i < m && !err; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = row[j], abs = fabs(sum);
			for (int64_t l = 0; l < k; l++) {
				sum += (double)a[i * k + l] * b[l * n + j];
				abs += fabs((double)a[i * k + l] * b[l * n + j]);
			}
			sum = sum > 0 ? sum : 0;
			for (int w = 0; w < 3; w++)
				worst = fmax(worst,
					     !(fabs(y[w][i * n + j] - sum) >= 0) ?
						     1e9 :
						     fabs(y[w][i * n + j] - sum) /
							     (abs * 0x1p-24 * sqrt((double)k)));
		}
	const bool split = memcmp(y[0], y[2], bytes) != 0;
	ok(!err && worst < 0.5 && !memcmp(y[0], y[1], bytes) &&
		   (split || !getenv("YOKE_TEST_SPLIT")),
	   "%s, %d x %d, %d steps: %.2g of the rounding of a sum%s %s", yoke_dtype_name(dtype),
	   (int)m, (int)n, (int)k, worst, split ? ", in parts" : "", yoke_error());
	yoke_error_clear();
}

int main(void)
{
	static const int dtypes[] = { yoke_f32, yoke_f16, yoke_bf16 };

	tap_seed();
	for (int i = 0; i < 3; i++) {
		check(dtypes[i], 64, 64, 2048);
		check(dtypes[i], rnd_int(32, 64), rnd_int(32, MAX_SIDE), rnd_int(1024, MAX_K));
	}
	return done();
}
