// SPDX-License-Identifier: Apache-2.0
// Tests products with an explicit result dtype, row by row, and of batches of matrices: values and
// gradients against float64 loops, with and without a map fused after them; a single row has the
// bits that it has within a matrix.

#include "config.h"

#include "dtypes.h"
#include "tap.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }
#define ALL(list) list, sizeof(list) / sizeof *(list)

enum { B = 2, M = 37, N = 21, K = 133, C = B * M * N };

static double a[B * M * K], b[K * N], bias[N], y[C], want[C], lost[C], cot[C];

static double uniform(int dtype)
{
	return rounded(dtype, rnd_real(-1, 1));
}

// x [rows,cols] of each of `batch`, or transposed, in memory order
static yoke_tensor *matrix(int dtype, int64_t batch, int64_t rows, int64_t cols, const double *x,
			   bool turned)
{
	if (!turned)
		return from(dtype, 3, DIMS(batch, rows, cols), x);
	double *t = malloc((size_t)(batch * rows * cols) * sizeof *t + 1);
	for (int64_t i = 0; i < batch * rows * cols; i++) {
		const int64_t r = i / cols % rows, c = i % cols;
		t[i - i % (rows * cols) + c * rows + r] = x[i];
	}
	yoke_tensor *to = from(dtype, 3, DIMS(batch, cols, rows), t);
	free(t);
	return to;
}

static void draw(int dtype)
{
	for (int i = 0; i < B * M * K; i++)
		a[i] = uniform(dtype);
	for (int i = 0; i < K * N; i++)
		b[i] = uniform(dtype);
	for (int i = 0; i < N; i++)
		bias[i] = uniform(yoke_f32);
	for (int i = 0; i < C; i++) {
		cot[i] = uniform(yoke_f32);
		want[i] = lost[i] = 0;
		for (int k = 0; k < K; k++) {
			const double p = a[i / N * K + k] * b[k * N + i % N];
			want[i] += p;
			lost[i] += fabs(p);
		}
	}
}

// In f32: a rounding to half precision would show in every element.
static void in_f32(int dtype, unsigned flags)
{
	static double sum[B * M * K], max[B * M * K], g[B * M * K];
	const bool ta = flags & YOKE_TA, tb = flags & YOKE_TB;
	char what[80];
	snprintf(what, sizeof what, "%s to f32%s%s", yoke_dtype_name(dtype), ta ? ", TA" : "",
		 tb ? ", TB" : "");
	draw(dtype);
	yoke_scope *s = yoke_scope_begin("product");
	yoke_tensor *x = matrix(dtype, B, M, K, a, ta), *w = matrix(dtype, 1, K, N, b, tb),
		    *grad[2];
	yoke_tensor *p = yoke_matmul_to(x, w, flags, yoke_f32);
	ok(yoke_dtype(p) == yoke_f32, "%s: %s", what, yoke_dtype_name(yoke_dtype(p)));
	get(p, y);
	double worst = 0;
	for (int i = 0; i < C; i++)
		worst = fmax(worst, fabs(y[i] - want[i]) / lost[i]);
	ok(worst < 2e-6, "%s: relative error %.2g", what, worst);
	p = yoke_add(yoke_matmul_to(x, w, flags, yoke_f32), from(yoke_f32, 1, DIMS(N), bias));
	yoke_tensor *down = yoke_cast(p, dtype);
	yoke_eval(2, (yoke_tensor *[]){ p, down });
	get(p, y);
	worst = 0;
	for (int i = 0; i < C; i++)
		worst = fmax(worst, fabs(y[i] - want[i] - bias[i % N]) / (lost[i] + 1));
	ok(worst < 2e-6, "%s, a bias: relative error %.2g", what, worst);
	get(down, sum);
	worst = 0;
	for (int i = 0; i < C; i++)
		worst = fmax(worst, fabs(sum[i] - rounded(dtype, y[i])));
	ok(worst == 0, "%s, a bias, rounded once: %g", what, worst);

	// the cotangent is f32, the gradients are rounded once
	yoke_tensor *loss = yoke_sum(yoke_mul(yoke_matmul_to(x, w, flags, yoke_f32),
					      from(yoke_f32, 3, DIMS(B, M, N), cot)), YOKE_ALL);
	yoke_grad(loss, 2, (yoke_tensor *[]){ x, w }, grad);
	yoke_eval(2, grad);
	for (int k = 0; k < 2; k++) {
		const int rows = k ? K : B * M, cols = k ? N : K, inner = k ? B * M : N;
		get(grad[k], g);
		worst = 0;
		for (int i = 0; i < rows * cols; i++) {
			const int r = i / cols, c = i % cols;
			sum[i] = max[i] = 0;
			for (int j = 0; j < inner; j++) {
				double t = k ? a[j * K + r] * cot[j * N + c] :
					       cot[r * N + j] * b[c * N + j];
				sum[i] += t;
				max[i] += fabs(t);
			}
			const int m = k ? K : M; // rows of a matrix
			const double got =
				(k ? tb : ta) ? g[r / m * m * cols + c * m + r % m] : g[i];
			worst = fmax(worst, (fabs(got - sum[i]) - 2e-6 * max[i]) /
						    fmax(fabs(sum[i]), 1e-3));
		}
		ok(yoke_dtype(grad[k]) == dtype && worst < 0.51 * ulp(dtype),
		   "%s, gradient of %s: %s, %.2g ulp", what, k ? "b" : "a",
		   yoke_dtype_name(yoke_dtype(grad[k])), worst / ulp(dtype));
	}
	yoke_scope_end(s);
}

// The product's rows from `first` on, computed separately, as bytes.
static void rows_alone(int dtype, int to, unsigned flags, int64_t first, int64_t rows, bool mapped,
		       char *bytes)
{
	yoke_scope *s = yoke_scope_begin("rows");
	yoke_tensor *x = matrix(dtype, 1, rows, K, a + first * K, flags & YOKE_TA);
	yoke_tensor *p = yoke_matmul_to(x, matrix(dtype, 1, K, N, b, flags & YOKE_TB), flags, to);
	if (mapped)
		p = yoke_gelu(yoke_add(p, yoke_cast(from(yoke_f32, 1, DIMS(N), bias), to)));
	memset(bytes, 0xff, yoke_bytes(p));
	yoke_read(p, bytes, yoke_bytes(p));
	yoke_scope_end(s);
}

static void by_row(int dtype, int to, unsigned flags)
{
	static char whole[C * sizeof(double)], part[C * sizeof(double)];
	const size_t row = N * yoke_dtype_size(to);
	draw(dtype);
	for (int mapped = 0; mapped < 2; mapped++) {
		int wrong = 0;
		rows_alone(dtype, to, flags, 0, B * M, mapped, whole);
		for (int64_t n = 1; n <= 17; n += n < 5 ? 1 : 6)
			for (int64_t first = 0; first + n <= B * M; first += 7) {
				rows_alone(dtype, to, flags, first, n, mapped, part);
				wrong += memcmp(part, whole + (size_t)first * row,
						(size_t)n * row) != 0;
			}
		ok(!wrong && !yoke_error_code(), "%s to %s by row, flags %u%s: %d blocks differ %s",
		   yoke_dtype_name(dtype), yoke_dtype_name(to), flags, mapped ? ", a map" : "",
		   wrong, yoke_error());
	}
}

static uint8_t byte_a[B * M * K], byte_b[K * N], longest[70000];

static int number(int dtype, uint8_t byte)
{
	return dtype == yoke_u8 ? byte : (int8_t)byte;
}

// A matrix of them, or its transpose.
static yoke_tensor *bytes(int dtype, int64_t batch, int64_t rows, int64_t cols, const uint8_t *x,
			  bool turned)
{
	static uint8_t t[sizeof byte_a > sizeof longest ? sizeof byte_a : sizeof longest];
	for (int64_t i = 0; i < batch * rows * cols; i++)
		t[i - i % (rows * cols) + i % cols * rows + i / cols % rows] = x[i];
	return turned ? yoke_from(dtype, 3, DIMS(batch, cols, rows), t) :
			yoke_from(dtype, 3, DIMS(batch, rows, cols), x);
}

// Bytes to i32: sums are exact, also in a map fused after them, and wrap on overflow.
static void in_i32(int dtype, unsigned flags)
{
	static int32_t got[C], sum[C];
	static float scaled[C];
	char what[80];
	int wrong = 0;
	snprintf(what, sizeof what, "%s to i32, flags %u", yoke_dtype_name(dtype), flags);
	for (int i = 0; i < B * M * K; i++)
		byte_a[i] = (uint8_t)rnd_real(0, 256);
	for (int i = 0; i < K * N; i++)
		byte_b[i] = (uint8_t)rnd_real(0, 256);
	for (int i = 0; i < C; i++) {
		sum[i] = 0;
		for (int k = 0; k < K; k++)
			sum[i] += number(dtype, byte_a[i / N * K + k]) *
				  number(dtype, byte_b[k * N + i % N]);
	}
	yoke_scope *s = yoke_scope_begin("bytes");
	yoke_tensor *x = bytes(dtype, B, M, K, byte_a, flags & YOKE_TA),
		    *w = bytes(dtype, 1, K, N, byte_b, flags & YOKE_TB);
	yoke_tensor *p = yoke_matmul_to(x, w, flags, yoke_i32);
	yoke_tensor *half = yoke_mul(yoke_cast(yoke_matmul_to(x, w, flags, yoke_i32), yoke_f32),
				     yoke_full(yoke_f32, 0, NULL, 0.5));
	memset(got, 0xff, sizeof got);
	yoke_read(p, got, sizeof got);
	yoke_read(half, scaled, sizeof scaled);
	for (int i = 0; i < C; i++)
		wrong += got[i] != sum[i] || scaled[i] != (float)sum[i] / 2;
	ok(yoke_dtype(p) == yoke_i32 && !wrong && !yoke_error_code(), "%s: %s, %d of %d differ %s",
	   what, yoke_dtype_name(yoke_dtype(p)), wrong, C, yoke_error());
	const int steps = sizeof longest, max = dtype == yoke_u8 ? 255 : 128;
	memset(longest, max, sizeof longest);
	p = yoke_matmul_to(bytes(dtype, 1, 1, steps, longest, false),
			   bytes(dtype, 1, steps, 1, longest, false), 0, yoke_i32);
	const int32_t want_wrapped = (int32_t)((uint32_t)steps * (uint32_t)(max * max));
	yoke_read(p, got, sizeof *got);
	ok(*got == want_wrapped, "%s: %d steps of %d: %d, %d", what, steps, max, *got,
	   want_wrapped);
	yoke_scope_end(s);
}

// The relative error of x [batch,m,k] times w [batch,k,n], or (shared) one matrix [k,n], with a
// result of type `to`; mapped: subtracted from another matrix by a map. Of more than 150,000
// elements every 37th is compared.
static double error_of(int dtype, int to, const int64_t *shape, bool shared, bool mapped,
		       unsigned flags)
{
	const int64_t batch = shape[0], m = shape[1], k = shape[2], n = shape[3];
	const int64_t matrices = shared ? 1 : batch, count = batch * m * n;
	double *x = malloc((size_t)(batch * m * k) * sizeof *x),
	       *w = malloc((size_t)(matrices * k * n) * sizeof *w),
	       *base = malloc((size_t)count * sizeof *base),
	       *got = malloc((size_t)count * sizeof *got), worst = 0;
	for (int64_t i = 0; i < count; i++)
		base[i] = mapped ? uniform(to) : 0;
	for (int64_t i = 0; i < batch * m * k; i++)
		x[i] = uniform(dtype);
	for (int64_t i = 0; i < matrices * k * n; i++)
		w[i] = uniform(dtype);
	yoke_scope *s = yoke_scope_begin("batch");
	yoke_tensor *p = yoke_matmul_to(matrix(dtype, batch, m, k, x, flags & YOKE_TA),
					matrix(dtype, matrices, k, n, w, flags & YOKE_TB), flags,
					to);
	get(mapped ? yoke_sub(matrix(to, batch, m, n, base, false), p) : p, got);
	for (int64_t i = 0; i < count; i += count > 150000 ? 37 : 1) {
		const double *row = x + i / n * k,
			     *column = w + (shared ? 0 : i / (m * n) * k * n) + i % n;
		double sum = 0, all = fabs(base[i]);
		for (int64_t l = 0; l < k; l++) {
			sum += row[l] * column[l * n];
			all += fabs(row[l] * column[l * n]);
		}
		const double error = fabs(got[i] - (mapped ? base[i] - sum : sum)) / all;
		worst = error > worst || error != error ? error : worst;
		if (worst != worst)
			break;
	}
	yoke_scope_end(s);
	free(x);
	free(w);
	free(base);
	free(got);
	return worst;
}

// Batch, m, k and n. Columns fill no, one or several vectors and a part of one.
static const int64_t shapes[][4] = {
	{ 64, 20, 20, 20 },  { 65, 13, 7, 33 },   { 131, 1, 5, 17 },   { 200, 5, 3, 1 },
	{ 97, 25, 1, 47 },   { 70, 30, 40, 100 }, { 3, 7, 900, 100 },  { 2, 26, 700, 31 },
	{ 300, 12, 16, 32 }, { 66, 8, 17, 50 },   { 1, 250, 400, 30 }, { 80, 3, 9, 290 },
};
// One side is much longer than the other, and so is k.
static const int64_t long_shapes[][4] = {
	{ 1, 150, 450, 1100 },
	{ 1, 385, 2000, 1030 },
	{ 1, 1100, 2250, 150 },
	{ 2, 200, 450, 1100 },
};

static void batches(int dtype, int to, const char *way, const int64_t (*shape)[4], size_t count,
		    bool shared, bool mapped, unsigned flags)
{
	// a result of half precision is rounded, and once more by a map
	const double bound = to == yoke_f64  ? 4e-15 :
			     to == yoke_f32  ? 2e-6 :
			     to == yoke_bf16 ? 0x1p-7 :
					       0x1p-10;
	for (size_t i = 0; i < count; i++) {
		const int64_t *s = shape[i];
		double worst = 0;
		for (unsigned turned = 0; turned < 4; turned++) { // YOKE_TA, YOKE_TB
			const double one = error_of(dtype, to, s, shared, mapped, flags | turned);
			worst = one > worst || one != one ? one : worst;
			if (worst != worst)
				break;
		}
		ok(worst < bound, "%s to %s, %d products of %d x %d x %d%s: relative error %.2g",
		   yoke_dtype_name(dtype), yoke_dtype_name(to), (int)s[0], (int)s[1], (int)s[2],
		   (int)s[3], way, worst);
	}
}

int main(void)
{
	tap_seed();
	const int dtypes[] = { yoke_f32, yoke_f64, yoke_bf16, yoke_f16 };
	for (int k = 0; k < 4; k++) {
		const int dtype = dtypes[k], wide = dtype == yoke_f64 ? yoke_f64 : yoke_f32;
		batches(dtype, wide, "", ALL(shapes), false, false, 0);
		batches(dtype, wide, " with one matrix", ALL(shapes), true, false, 0);
		batches(dtype, wide, " and a map", ALL(shapes), false, true, 0);
		batches(dtype, wide, " by row", ALL(shapes), false, false, YOKE_BY_ROW);
		batches(dtype, dtype, "", ALL(long_shapes), false, false, 0);
		batches(dtype, dtype, " and a map", ALL(long_shapes), false, true, 0);
		batches(dtype, wide, " by row", ALL(long_shapes), true, true, YOKE_BY_ROW);
	}
	for (unsigned flags = 0; flags < 4; flags++) {
		in_i32(yoke_i8, flags);
		in_i32(yoke_u8, flags);
		in_f32(yoke_f16, flags);
		in_f32(yoke_bf16, flags);
		by_row(yoke_f32, yoke_f32, flags | YOKE_BY_ROW);
		by_row(yoke_f64, yoke_f64, flags | YOKE_BY_ROW);
		by_row(yoke_bf16, yoke_bf16, flags | YOKE_BY_ROW);
		by_row(yoke_f16, yoke_f32, flags | YOKE_BY_ROW);
	}
	return done();
}
