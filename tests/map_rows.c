// SPDX-License-Identifier: Apache-2.0
// Tests elementwise programs and copies over rows of any length and alignment, in f32, f16, i32 and
// bool, against loops.
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "yoke-math.h"
#include "yoke.h"

enum { MAX = 2100 };
static const int lengths[] = { 1, 31, 64, 65, 128, 130, 191, 200, 257, 1025, MAX };
#define EACH_LENGTH(n) \
	for (size_t l = 0, n; \
	     l < sizeof lengths / sizeof *lengths && (n = (size_t)lengths[l]) > 0; l++)

static yoke_tensor *vector(int dtype, size_t n, const void *x)
{
	return yoke_from(dtype, 1, (int64_t[]){ (int64_t)n }, x);
}

static void finish(yoke_scope *s, int wrong, size_t n, const char *what)
{
	ok(!wrong && !yoke_error_code(), "%s, %zu elements: %d wrong: %s", what, n, wrong,
	   yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

// Bits of which some are equal in all arrays, and the extreme ones.
static int32_t word(void)
{
	const int32_t some[] = { 0, 1, -1, INT32_MIN, INT32_MAX, 31, 32, 33, -31 };
	const int64_t k = rnd_int(0, 12);
	return k < 9 ? some[k] : (int32_t)(uint32_t)rnd();
}

static int32_t shifted(int32_t a, int32_t by, bool left)
{
	if ((uint32_t)by > 31)
		return left || a >= 0 ? 0 : -1;
	return left ? (int32_t)((uint32_t)a << by) : a >> by;
}

static void test_integers(void)
{
	static int32_t a[MAX], b[MAX], c[MAX], got[3][MAX];
	EACH_LENGTH(n)
	{
		for (size_t i = 0; i < n; i++)
			a[i] = word(), b[i] = rnd_int(0, 3) ? word() : a[i], c[i] = word();
		memset(got, 0x55, sizeof got);
		yoke_scope *s = yoke_scope_begin("integers");
		yoke_tensor *x = vector(yoke_i32, n, a), *y = vector(yoke_i32, n, b),
			    *z = vector(yoke_i32, n, c);
		yoke_tensor *sum = yoke_sub(yoke_add(yoke_mul(x, y), z), yoke_square(y));
		yoke_tensor *bits = yoke_xor(yoke_and(x, yoke_not(y)), yoke_or(z, yoke_neg(x)));
		yoke_tensor *rest = yoke_add(yoke_add(yoke_shl(x, z), yoke_shr(y, z)),
					     yoke_add(yoke_abs(x), yoke_sign(y)));
		yoke_tensor *most = yoke_max(yoke_min(x, z), y);
		yoke_tensor *to[] = { yoke_add(sum, most), bits, rest };
		yoke_eval(3, to);
		int wrong = 0;
		for (int k = 0; k < 3; k++)
			wrong += yoke_read(to[k], got[k], n * sizeof **got) < 0;
		for (size_t i = 0; i < n; i++) {
			const uint32_t p = (uint32_t)a[i], q = (uint32_t)b[i], r = (uint32_t)c[i];
			const int32_t least = a[i] < c[i] ? a[i] : c[i];
			wrong += (uint32_t)got[0][i] !=
				 p * q + r - q * q + (uint32_t)(least > b[i] ? least : b[i]);
			wrong += (uint32_t)got[1][i] != ((p & ~q) ^ (r | (0 - p)));
			wrong += (uint32_t)got[2][i] !=
				 (uint32_t)shifted(a[i], c[i], true) +
					 (uint32_t)shifted(b[i], c[i], false) +
					 (a[i] < 0 ? 0 - p : p) +
					 (uint32_t)((b[i] > 0) - (b[i] < 0));
		}
		finish(s, wrong, n, "arithmetic of i32");
	}
}

// Comparisons in registers, stored as bytes, given as bytes, and one for all elements.
static void test_conditions(void)
{
	static int32_t a[MAX], b[MAX], got[MAX], number[MAX];
	static float x[MAX], real[MAX];
	static unsigned char given[MAX], kept[MAX];
	const unsigned char yes = 1;
	EACH_LENGTH(n)
	{
		for (size_t i = 0; i < n; i++) {
			a[i] = word(), b[i] = rnd_int(0, 2) ? word() : a[i],
			given[i] = rnd_int(0, 1) != 0;
			x[i] = i % 7 == 3 ? NAN : i % 11 == 5 ? INFINITY : (float)rnd_real(-1, 1);
		}
		memset(got, 0x55, sizeof got);
		memset(number, 0x55, sizeof number);
		memset(real, 0xff, sizeof real);
		memset(kept, 0x55, sizeof kept);
		yoke_scope *s = yoke_scope_begin("conditions");
		yoke_tensor *p = vector(yoke_i32, n, a), *q = vector(yoke_i32, n, b),
			    *f = vector(yoke_f32, n, x), *g = vector(yoke_bool, n, given),
			    *one = yoke_from(yoke_bool, 0, NULL, &yes);
		yoke_tensor *less = yoke_lt(p, q), *whole = yoke_isfinite(f),
			    *both = yoke_and(yoke_eq(less, whole), g);
		yoke_tensor *any =
			yoke_and(yoke_or(yoke_xor(both, yoke_ge(p, q)), yoke_not(g)), one);
		yoke_tensor *differs = yoke_ne(any, yoke_gt(p, q));
		yoke_tensor *to[] = { yoke_select(any, p, q), yoke_cast(any, yoke_i32),
				      yoke_select(differs, yoke_cast(less, yoke_f32), f), any };
		yoke_eval(4, to);
		int wrong = (yoke_read(to[0], got, n * 4) < 0) +
			    (yoke_read(to[1], number, n * 4) < 0) +
			    (yoke_read(to[2], real, n * 4) < 0) + (yoke_read(to[3], kept, n) < 0);
		for (size_t i = 0; i < n; i++) {
			const bool lt = a[i] < b[i], and = (lt == (isfinite(x[i]) != 0)) &&
							   given[i];
			const bool want = (and != (a[i] >= b[i])) || !given[i],
				   other = want != (a[i] > b[i]);
			const float to_be = other ? (float)lt : x[i];
			wrong += got[i] != (want ? a[i] : b[i]);
			wrong += number[i] != want;
			wrong += kept[i] != want;
			wrong += memcmp(&real[i], &to_be, sizeof to_be) != 0;
		}
		finish(s, wrong, n, "conditions");
	}
}

static int32_t truncated(float x)
{
	return isnan(x) ? 0 : x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : (int32_t)x;
}

static void test_casts(void)
{
	static float x[MAX], real[MAX];
	static int32_t a[MAX], got[MAX];
	const float some[] = { NAN,      INFINITY,       -INFINITY,       0x1p31f,
			       -0x1p31f, 0x1.fffffep30f, -0x1.000002p31f, -0.0f,
			       1e-40f };
	EACH_LENGTH(n)
	{
		for (size_t i = 0; i < n; i++)
			x[i] = rnd_int(0, 2) ? (float)rnd_real(-1e10, 1e10) : some[rnd_int(0, 8)],
			a[i] = word();
		memset(got, 0x55, sizeof got);
		memset(real, 0xff, sizeof real);
		yoke_scope *s = yoke_scope_begin("casts");
		yoke_tensor *f = vector(yoke_f32, n, x), *p = vector(yoke_i32, n, a);
		yoke_tensor *to[] = { yoke_xor(yoke_cast(yoke_neg(f), yoke_i32), p),
				      yoke_mul(yoke_cast(yoke_not(p), yoke_f32),
					       yoke_cast(p, yoke_f32)) };
		yoke_eval(2, to);
		int wrong =
			(yoke_read(to[0], got, n * 4) < 0) + (yoke_read(to[1], real, n * 4) < 0);
		for (size_t i = 0; i < n; i++) {
			wrong += got[i] != (truncated(-x[i]) ^ a[i]);
			wrong += real[i] != (float)~a[i] * (float)a[i];
		}
		finish(s, wrong, n, "casts of f32 and i32");
	}
}

// Rows of a part of a matrix, in f16, whose numbers and sums are exact: maps, a product with a map
// after it, and sums.
static void test_half(void)
{
	enum { ROWS = 5, MORE = 3 };
	static float x[ROWS * (MAX + MORE)], got[ROWS * MAX], sums[ROWS], product[ROWS * ROWS];
	EACH_LENGTH(n)
	{
		const size_t wide = n + MORE;
		for (size_t i = 0; i < ROWS * wide; i++)
			x[i] = (float)rnd_int(-2, 2) / 4;
		memset(got, 0xff, sizeof got);
		memset(sums, 0xff, sizeof sums);
		yoke_scope *s = yoke_scope_begin("half");
		yoke_tensor *all = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, (int64_t)wide }, x),
			    *part = yoke_slice(yoke_cast(all, yoke_f16), 1, 1, (int64_t)n + 1, 1);
		yoke_tensor *y = yoke_add(yoke_mul(part, yoke_const(2)), part);
		yoke_tensor *f = yoke_slice(all, 1, 1, (int64_t)n + 1, 1);
		yoke_tensor *sum = yoke_sum(yoke_mul(f, f), 1u << 1);
		yoke_tensor *pairs = yoke_add(yoke_matmul(f, yoke_permute(f, (int[]){ 1, 0 }), 0),
					      yoke_const(1));
		int wrong = (yoke_read(yoke_cast(y, yoke_f32), got, ROWS * n * 4) < 0) +
			    (yoke_read(sum, sums, sizeof sums) < 0) +
			    (yoke_read(pairs, product, sizeof product) < 0);
		for (size_t r = 0; r < ROWS; r++) {
			float want[ROWS] = { 0 };
			for (size_t i = 0; i < n; i++) {
				const float at = x[r * wide + 1 + i];
				wrong += got[r * n + i] != at * 3;
				for (size_t k = 0; k < ROWS; k++)
					want[k] += at * x[k * wide + 1 + i];
			}
			wrong += sums[r] != want[r];
			for (size_t k = 0; k < ROWS; k++)
				wrong += product[r * ROWS + k] != want[k] + 1;
		}
		finish(s, wrong, n, "rows of a part of a matrix");
	}
}

// Short rows that are read with strides, broadcast along either axis, and stored apart.
static void test_short_rows(void)
{
	enum { ROWS = 1031, WIDE = 12 };
	static float x[ROWS * WIDE], row[ROWS], got[2 * ROWS * WIDE];
	for (int n = 1; n <= WIDE; n++) {
		for (int i = 0; i < ROWS * WIDE; i++)
			x[i] = (float)rnd_real(-1, 1);
		for (int i = 0; i < ROWS; i++)
			row[i] = (float)rnd_real(-1, 1);
		memset(got, 0xff, sizeof got);
		yoke_scope *s = yoke_scope_begin("short");
		yoke_tensor *all = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, WIDE }, x),
			    *part = yoke_slice(all, 1, WIDE - n, WIDE, 1);
		yoke_tensor *col = yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, 1 }, row);
		yoke_tensor *two[] = { yoke_mul(part, col),
				       yoke_add(yoke_neg(part), yoke_slice(col, 0, 3, 4, 1)) };
		int wrong = yoke_read(yoke_concat(2, two, 1), got,
				      sizeof(float) * 2 * ROWS * (size_t)n) < 0;
		for (int i = 0; i < ROWS; i++)
			for (int k = 0; k < n; k++) {
				const float at = x[i * WIDE + WIDE - n + k];
				wrong += got[i * 2 * n + k] != at * row[i] ||
					 got[i * 2 * n + n + k] != -at + row[3];
			}
		finish(s, wrong, (size_t)n, "short rows");
	}
}

// Axes of few elements, over which operands are broadcast.
static void test_tiles(void)
{
	enum { LIMIT = 3 * 700 * 5 * 9 };
	static float x[LIMIT], y[LIMIT], got[LIMIT];
	const int outer[][2] = { { 1, 700 }, { 3, 5 }, { 3, 341 } };
	for (int k = 0; k < 3 * 5 * 9; k++) {
		const int q = outer[k % 3][0], p = outer[k % 3][1], b = 1 + k / 3 % 5,
			  c = 1 + k / 15;
		for (int i = 0; i < q * p * b; i++)
			x[i] = (float)rnd_real(-1, 1);
		for (int i = 0; i < q * p * c; i++)
			y[i] = (float)rnd_real(-1, 1);
		memset(got, 0xff, sizeof got);
		yoke_scope *s = yoke_scope_begin("tiles");
		yoke_tensor *left = yoke_from(yoke_f32, 4, (int64_t[]){ q, p, b, 1 }, x),
			    *right = yoke_permute(
				    yoke_from(yoke_f32, 4, (int64_t[]){ p, q, 1, c }, y),
				    (int[]){ 1, 0, 2, 3 });
		int wrong = yoke_read(yoke_mul(left, right), got,
				      sizeof(float) * (size_t)(q * p * b * c)) < 0;
		for (int i = 0; i < q * p * b * c; i++)
			wrong += got[i] !=
				 x[i / c] * y[(i / (c * b) % p * q + i / (c * b) / p) * c + i % c];
		finish(s, wrong, (size_t)(q * p * b * c), "axes of few elements");
	}
}

// Long runs copied to all offsets within a cache line.
static void test_copies(void)
{
	enum { N = 40000 };
	static float x[N], got[N];
	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	for (int by = -17; by <= 17; by++) {
		memset(got, 0xff, sizeof got);
		yoke_scope *s = yoke_scope_begin("copies");
		int wrong =
			yoke_read(yoke_roll(vector(yoke_f32, N, x), by, 0), got, sizeof got) < 0;
		for (int i = 0; i < N; i++)
			wrong += got[(i + by + N) % N] != x[i];
		finish(s, wrong, N, "a copy to another offset");
	}
}

// The number of wrong elements of rows that `more` elements of another result separate.
static int wrong_rows(int dtype, int more)
{
	enum { ROWS = 64, WIDE = 1024, MOST = ROWS * (WIDE + 16) };
	static float x[MOST], got[MOST];
	const int row = WIDE + more;
	for (int i = 0; i < ROWS * row; i++)
		x[i] = (float)rnd_int(-8, 8); // exact in bf16, also the results
	yoke_scope *s = yoke_scope_begin("rows");
	yoke_tensor *all = yoke_cast(yoke_from(yoke_f32, 2, (int64_t[]){ ROWS, row }, x), dtype),
		    *left = yoke_slice(all, 1, 0, WIDE, 1),
		    *right = yoke_slice(all, 1, WIDE, row, 1);
	yoke_tensor *z = yoke_concat(
		2, (yoke_tensor *[]){ yoke_add(yoke_square(left), left), yoke_neg(right) }, 1);
	yoke_eval(1, &z);
	int wrong = yoke_read(yoke_cast(z, yoke_f32), got, sizeof *got * (size_t)(ROWS * row)) < 0;
	for (int i = 0; i < ROWS * row; i++)
		wrong += got[i] != (i % row < WIDE ? x[i] * x[i] + x[i] : -x[i]);
	yoke_scope_end(s);
	return wrong;
}

// Stores past the caches, to rows of which only some begin at a cache line. The setting is final
// once a process has a device.
static void test_rows_apart(void)
{
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		yoke_setting_set("cpu.stream", "1024");
		_exit(wrong_rows(yoke_f32, 8) || wrong_rows(yoke_bf16, 16));
	}
	int status = -1;
	waitpid(child, &status, 0);
	ok(status == 0, "rows apart, stored past the caches: status %#x", (unsigned)status);
}

int main(void)
{
	tap_seed();
	test_rows_apart();
	test_integers();
	test_conditions();
	test_casts();
	test_half();
	test_short_rows();
	test_tiles();
	test_copies();
	return done();
}
