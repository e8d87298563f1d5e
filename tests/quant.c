// SPDX-License-Identifier: Apache-2.0
// Quantized weights: the numbers, products and rows of each format against float64 loops over the
// blocks' bits, the gradient by finite differences, the bytes that the package gguf writes, and
// errors.
#include "config.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "yoke-quant.h"
#include "../tests/models/recorded_quants.h"

enum { ROWS_MAX = 70, K_MAX = 768, X_MAX = 66 };

static const struct {
	int format, block, bytes;
	const char *name;
	int scales, scale[2]; // offsets of f16 numbers in a block
} formats[] = {
	{ YOKE_QUANT_Q4_0, 32, 18, "Q4_0", 1, { 0 } },
	{ YOKE_QUANT_Q4_1, 32, 20, "Q4_1", 2, { 0, 2 } },
	{ YOKE_QUANT_Q5_0, 32, 22, "Q5_0", 1, { 0 } },
	{ YOKE_QUANT_Q5_1, 32, 24, "Q5_1", 2, { 0, 2 } },
	{ YOKE_QUANT_Q8_0, 32, 34, "Q8_0", 1, { 0 } },
	{ YOKE_QUANT_Q4_K, 256, 144, "Q4_K", 2, { 0, 2 } },
	{ YOKE_QUANT_Q5_K, 256, 176, "Q5_K", 2, { 0, 2 } },
	{ YOKE_QUANT_Q6_K, 256, 210, "Q6_K", 1, { 208 } },
	// without blocks; 32 elements at a time here
	{ YOKE_QUANT_F16, 32, 64, "F16", 0, { 0 } },
	{ YOKE_QUANT_BF16, 32, 64, "BF16", 0, { 0 } },
};
enum { FORMATS = sizeof formats / sizeof *formats };

static uint8_t w[ROWS_MAX * K_MAX * 2];
static double number[ROWS_MAX * K_MAX], want[ROWS_MAX * K_MAX], got64[ROWS_MAX * K_MAX];
static float got[ROWS_MAX * K_MAX], x[X_MAX * K_MAX];

// ---- the reference: one element at a time ----

static double half_at(const uint8_t *b)
{
	const int bits = b[0] | b[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
	const double sign = bits & 0x8000 ? -1 : 1;
	if (exponent == 31)
		return fraction ? NAN : sign * INFINITY;
	return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double bf16_at(const uint8_t *b)
{
	const uint32_t bits = (uint32_t)(b[0] | b[1] << 8) << 16;
	float v;
	memcpy(&v, &bits, sizeof v);
	return (double)v;
}

static int bit(const uint8_t *b, int i)
{
	return b[i / 8] >> i % 8 & 1;
}

static double element_of_256(int format, const uint8_t *b, int i)
{
	const int group = i / 32, l = i % 32;
	if (format == YOKE_QUANT_Q6_K) {
		const int half = i / 128, quarter = i / 32 % 4;
		const int low =
			b[64 * half + (quarter & 1 ? 32 : 0) + l] >> (quarter & 2 ? 4 : 0) & 15;
		const int high = b[128 + 32 * half + l] >> 2 * quarter & 3;
		return half_at(b + 208) * (int8_t)b[192 + i / 16] * (low + 16 * high - 32);
	}
	const uint8_t *s = b + 4, *nibbles = b + (format == YOKE_QUANT_Q5_K ? 48 : 16);
	int a, m;
	if (group < 4) {
		a = s[group] % 64;
		m = s[group + 4] % 64;
	} else {
		a = s[group + 4] % 16 + 16 * (s[group - 4] / 64);
		m = s[group + 4] / 16 + 16 * (s[group] / 64);
	}
	int q = nibbles[32 * (group / 2) + l] >> 4 * (group % 2) & 15;
	if (format == YOKE_QUANT_Q5_K)
		q += 16 * (b[16 + l] >> group & 1);
	return half_at(b) * a * q - half_at(b + 2) * m;
}

static double element(int format, const uint8_t *b, int i)
{
	switch (format) {
	case YOKE_QUANT_Q4_0: return half_at(b) * ((b[2 + i % 16] >> i / 16 * 4 & 15) - 8);
	case YOKE_QUANT_Q4_1:
		return half_at(b) * (b[4 + i % 16] >> i / 16 * 4 & 15) + half_at(b + 2);
	case YOKE_QUANT_Q5_0:
		return half_at(b) * ((b[6 + i % 16] >> i / 16 * 4 & 15) + 16 * bit(b + 2, i) - 16);
	case YOKE_QUANT_Q5_1:
		return half_at(b) * ((b[8 + i % 16] >> i / 16 * 4 & 15) + 16 * bit(b + 4, i)) +
		       half_at(b + 2);
	case YOKE_QUANT_Q8_0: return half_at(b) * (int8_t)b[2 + i];
	case YOKE_QUANT_F16: return half_at(b + 2 * i);
	case YOKE_QUANT_BF16: return bf16_at(b + 2 * i);
	default: return element_of_256(format, b, i);
	}
}

static void put_half(uint8_t *b, uint16_t h)
{
	b[0] = (uint8_t)h;
	b[1] = (uint8_t)(h >> 8);
}

// Random blocks and their numbers; special: some scales are infinite, NaN or subnormal.
static void draw(int f, int64_t rows, int64_t k, bool special)
{
	static const uint16_t odd[] = { 0x7c00, 0xfc00, 0x7e01, 0x0001, 0x83ff, 0x0000 };
	const int64_t blocks = rows * k / formats[f].block;
	for (int64_t i = 0; i < blocks; i++) {
		uint8_t *b = w + i * formats[f].bytes;
		for (int j = 0; j < formats[f].bytes; j++)
			b[j] = (uint8_t)rnd();
		for (int j = 0; j < formats[f].scales; j++) {
			uint16_t h = (uint16_t)(rnd_int(0x2000, 0x3c00) | rnd_int(0, 1) << 15);
			if (special && rnd_int(0, 1))
				h = odd[rnd_int(0, 5)];
			put_half(b + formats[f].scale[j], h);
		}
		for (int j = 0; j < formats[f].block && !formats[f].scales; j++)
			put_half(b + 2 * j,
				 (uint16_t)(rnd_int(0x3800, 0x3f80) | rnd_int(0, 1) << 15));
		for (int j = 0; j < formats[f].block; j++)
			number[i * formats[f].block + j] = element(formats[f].format, b, j);
	}
}

static yoke_tensor *weights(int f, int64_t rows, int64_t k)
{
	return yoke_from(yoke_u8, 2, (int64_t[]){ rows, k / formats[f].block * formats[f].bytes },
			 w);
}

static void compare(yoke_tensor *y, int64_t n, double tol, double scale, const char *what, int f)
{
	char text[96];
	memset(got, 0xff, sizeof got);
	const int err = yoke_read(yoke_cast(y, yoke_f32), got, (uint64_t)n * sizeof *got);
	for (int64_t i = 0; i < n; i++)
		got64[i] = (double)got[i];
	snprintf(text, sizeof text, "%s: %s", formats[f].name, what);
	if (err)
		ok(false, "%s: %s", text, yoke_error());
	else
		near(got64, want, (size_t)n, tol, scale, text);
	yoke_error_clear();
}

static void test_numbers(int f)
{
	const int64_t rows = rnd_int(3, 13), k = formats[f].block * rnd_int(1, 3);
	draw(f, rows, k, false);
	memcpy(want, number, sizeof want);
	compare(yoke_dequant(weights(f, rows, k), formats[f].format, k, yoke_f32), rows * k,
		0x1p-23, 0x1p-10, "f32", f);
	compare(yoke_dequant(weights(f, rows, k), formats[f].format, k, yoke_f16), rows * k,
		0x1.1p-11, 0x1p-10, "f16", f);
	compare(yoke_dequant(weights(f, rows, k), formats[f].format, k, yoke_bf16), rows * k,
		0x1.1p-8, 0x1p-10, "bf16", f);
	draw(f, rows, k, true);
	for (int64_t i = 0; i < rows * k;
	     i++) // 0 times infinity, and infinity minus infinity, are NaN
		want[i] = number[i];
	compare(yoke_dequant(weights(f, rows, k), formats[f].format, k, yoke_f32), rows * k,
		0x1p-22, 0x1p-10, "infinite, NaN and subnormal scales", f);
}

// The largest modulus of the 32 elements of x that an element belongs to.
static double largest_of(const float *group)
{
	double a = 0;
	for (int i = 0; i < 32; i++)
		a = fmax(a, fabs((double)group[i]));
	return a;
}

// Each row of the product has the same bits when it is computed alone.
static void test_alone(int f, yoke_tensor *of, int64_t m, int64_t rows, int64_t k)
{
	static float all[X_MAX * ROWS_MAX], one[ROWS_MAX];
	const size_t bytes = sizeof *one * (size_t)rows;
	int err = yoke_read(yoke_qlinear(of, weights(f, rows, k), formats[f].format), all,
			    bytes * (size_t)m),
	    differ = 0;
	for (int64_t i = 0; i < m && !err; i++) {
		err = yoke_read(yoke_qlinear(yoke_from(yoke_f32, 2, (int64_t[]){ 1, k }, x + i * k),
					     weights(f, rows, k), formats[f].format),
				one, bytes);
		differ += memcmp(one, all + i * rows, bytes) != 0;
	}
	ok(!err && !differ, "%s: %d of %d rows differ when computed alone, error %d",
	   formats[f].name, differ, (int)m, err);
	yoke_error_clear();
}

static void draw_product(int f, int64_t m, int64_t rows, int64_t k)
{
	draw(f, rows, k, false);
	for (int64_t i = 0; i < m * k; i++)
		x[i] = (float)rnd_real(-1, 1) * (rnd_int(0, 40) ? 1 : 0x1p9f);
}

// x may be rounded to 16-bit integers with a scale for each 32 elements.
static void test_product(int f, int64_t m, int64_t rows, int64_t k)
{
	double scale = 0, total = 0;
	draw_product(f, m, rows, k);
	for (int64_t i = 0; i < m * rows; i++) {
		double sum = 0, size = 0, all = 0;
		for (int64_t j = 0; j < k; j++) {
			const double of = number[i % rows * k + j];
			const float *at = x + i / rows * k + j;
			sum += (double)*at * of;
			size += fabs(of) * largest_of(at - j % 32);
			all += fabs((double)*at * of);
		}
		want[i] = sum;
		scale = size > scale ? size : scale;
		total = all > total ? all : total;
	}
	yoke_tensor *of = yoke_from(yoke_f32, 2, (int64_t[]){ m, k }, x);
	compare(yoke_qlinear(of, weights(f, rows, k), formats[f].format), m * rows,
		formats[f].scales ? 0x1p-14 : 2e-6, formats[f].scales ? scale : total,
		m == 1 ? "one row" : "rows", f);
	if (!getenv("YOKE_BACKEND") && !getenv("YOKE_PLAN_NAMED"))
		test_alone(f, of, m, rows, k);
	of = yoke_from(yoke_f32, 3, (int64_t[]){ 1, m, k }, x);
	compare(yoke_qlinear(yoke_cast(of, yoke_bf16), weights(f, rows, k), formats[f].format),
		m * rows, 0x1p-7, total, "rows of rank 3 in bf16", f);
}

// ---- activations of 8 bits ----

// Products of a format under YOKE_QMATMUL=int8, computed by a process with an instruction set.
struct products {
	bool done;
	float y[X_MAX * ROWS_MAX];
};

// The process that computes them; the parent must not have used yoke yet.
static void compute_in_child(const char *isa, int f, int64_t m, int64_t rows, int64_t k,
			     struct products *to)
{
	fflush(stdout);
	const pid_t pid = fork();
	if (pid == 0) {
		setenv("YOKE_QMATMUL", "int8", 1);
		setenv("YOKE_CPU_ISA", isa, 1);
		setenv("YOKE_BACKEND", "cpu", 1);
		yoke_tensor *of = yoke_from(yoke_f32, 2, (int64_t[]){ m, k }, x);
		to->done = yoke_read(yoke_qlinear(of, weights(f, rows, k), formats[f].format),
				     to->y, sizeof(float) * (size_t)(m * rows)) == 0;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

// Errors of x are at most half a step of its group, the 254th part of the largest modulus.
static void test_int8(const char *isa, int f, int64_t m, int64_t rows, int64_t k)
{
	struct products *p =
		mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double worst = 0;
	draw_product(f, m, rows, k);
	for (int64_t i = 0; i < m * rows; i++)
		p->y[i] = NAN;
	compute_in_child(isa, f, m, rows, k, p);
	for (int64_t i = 0; i < m * rows; i++) {
		double sum = 0, bound = 0;
		for (int64_t j = 0; j < k; j++) {
			const double of = number[i % rows * k + j];
			const float *at = x + i / rows * k + j;
			sum += (double)*at * of;
			bound += fabs(of) * largest_of(at - j % 32) * (1 / 254. + 0x1p-16);
		}
		const double ratio = fabs((double)p->y[i] - sum) / bound;
		worst = isnan(ratio) ? INFINITY : fmax(worst, ratio);
	}
	if (p->done)
		ok(worst <= 1 && worst > 0x1p-8,
		   "%s: %d rows of 8-bit integers, %s: largest error %.3f of the bound",
		   formats[f].name, (int)m, isa, worst);
	else
		skip("products of 8-bit integers", isa);
	munmap(p, sizeof *p);
}

static void test_all_int8(void)
{
	static const char *const isa[] = { "base", "avx2", "avx512" };
	static const int m[] = { 1, 2, 3, 8, 33 };
	for (int f = 0; f < FORMATS; f++)
		for (int i = 0; formats[f].scales && i < 5; i++)
			for (int j = 0; j < 3; j++)
				test_int8(isa[j], f, m[i], 35 + i,
					  formats[f].block > 32 ? 256 * (1 + i % 3) :
								  32 * (1 + 4 * i));
}

// The product is linear in x, so a large step is exact but for rounding, also that of x to
// integers.
static void test_gradient(int f)
{
	const int64_t m = 3, rows = 5, k = formats[f].block;
	static float g[64], y[2][64];
	draw(f, rows, k, false);
	for (int64_t i = 0; i < m * k; i++)
		x[i] = (float)rnd_real(-1, 1);
	for (int64_t i = 0; i < m * rows; i++)
		g[i] = (float)rnd_real(-1, 1);
	yoke_tensor *cot = yoke_from(yoke_f32, 2, (int64_t[]){ m, rows }, g), *dx;
	double scale = 0;
	for (int64_t i = 0; i<m * k; i += k> 32 ? 37 : 5) {
		double sum = 0;
		for (int side = 0; side < 2; side++) {
			const float at = x[i];
			x[i] = at + (side ? 1 : -1);
			yoke_read(yoke_qlinear(yoke_from(yoke_f32, 2, (int64_t[]){ m, k }, x),
					       weights(f, rows, k), formats[f].format),
				  y[side], sizeof(float) * (size_t)(m * rows));
			x[i] = at;
		}
		for (int64_t j = 0; j < m * rows; j++)
			sum += (double)g[j] * ((double)y[1][j] - (double)y[0][j]) / 2;
		want[i] = sum;
		scale = fabs(sum) > scale ? fabs(sum) : scale;
	}
	yoke_tensor *at = yoke_from(yoke_f32, 2, (int64_t[]){ m, k }, x);
	yoke_tensor *loss = yoke_sum(
		yoke_mul(yoke_qlinear(at, weights(f, rows, k), formats[f].format), cot), 3);
	int err = yoke_grad(loss, 1, &at, &dx), wrong = 0;
	err = err ? err : yoke_read(dx, got, sizeof(float) * (size_t)(m * k));
	for (int64_t i = 0; i < m * k && !err; i += k > 32 ? 37 : 5)
		wrong += !(fabs((double)got[i] - want[i]) <= 2e-3 * scale);
	ok(!err && !wrong, "%s: gradient by finite differences, %d wrong, error %d",
	   formats[f].name, wrong, err);
	yoke_error_clear();
}

// The gradient of a matrix that is dequantized by tiles; its rows repeat.
static void test_large_gradient(int f, int64_t rows, int64_t k, int dtype)
{
	enum { M = 2, DISTINCT = 61 };
	const int64_t bytes = k / formats[f].block * formats[f].bytes;
	uint8_t *all = malloc((size_t)(rows * bytes));
	float *g = malloc((size_t)(M * rows) * sizeof *g);
	double sums[M][DISTINCT] = { 0 }, scale = 0;
	struct yoke_stats stats = { .size = sizeof stats };
	yoke_tensor *dx;
	draw(f, DISTINCT, k, false);
	for (int64_t r = 0; r < rows; r++)
		memcpy(all + r * bytes, w + r % DISTINCT * bytes, (size_t)bytes);
	for (int64_t i = 0; i < M * rows; i++) {
		g[i] = (float)rnd_real(-1, 1);
		sums[i / rows][i % rows % DISTINCT] += (double)g[i];
	}
	for (int64_t i = 0; i < M * k; i++) {
		want[i] = 0;
		for (int r = 0; r < DISTINCT; r++)
			want[i] += sums[i / k][r] * number[r * k + i % k];
		scale = fmax(scale, fabs(want[i]));
		x[i] = 0;
	}
	yoke_stats(&stats);
	const int64_t before = (int64_t)stats.pool_allocated;
	yoke_scope *s = yoke_scope_begin("large");
	yoke_tensor *at = yoke_from(yoke_f32, 2, (int64_t[]){ M, k }, x),
		    *q = yoke_from(yoke_u8, 2, (int64_t[]){ rows, bytes }, all),
		    *cot = yoke_from(yoke_f32, 2, (int64_t[]){ M, rows }, g);
	yoke_tensor *y = yoke_qlinear(yoke_cast(at, dtype), q, formats[f].format);
	if (yoke_grad(yoke_sum(yoke_mul(y, cot), YOKE_ALL), 1, &at, &dx) == 0)
		compare(dx, M * k, dtype == yoke_f32 ? 1e-4 : 0x1p-6, scale,
			dtype == yoke_f32 ? "gradient of a large matrix" : "the same in bf16", f);
	yoke_stats(&stats);
	const int64_t taken = (int64_t)stats.predicted_peak - before - rows * bytes;
	ok(taken > 0 && taken < rows * k * 5 / 2,
	   "%s: it takes %lld bytes, less than 2.5 for each of %lld elements", formats[f].name,
	   (long long)taken, (long long)(rows * k));
	yoke_scope_end(s);
	free(all);
	free(g);
	yoke_error_clear();
}

// A dense copy of a matrix that the forward and the backward pass need does not exist between them.
static void test_layers(int f)
{
	enum { LAYERS = 8, M = 64, K = 1024, DENSE = K * K * 2, ROWS = M * K * 2 };
	const int64_t bytes = K / formats[f].block * formats[f].bytes;
	struct yoke_stats stats = { .size = sizeof stats };
	yoke_context *dry = yoke_context_dry(NULL), *was = yoke_use(dry);
	void *zeros = calloc(1, DENSE);
	yoke_tensor *at = yoke_from(yoke_bf16, 2, (int64_t[]){ M, K }, zeros), *y = at, *dx;
	for (int i = 0; i < LAYERS; i++)
		y = yoke_tanh(yoke_qlinear(y, yoke_from(yoke_u8, 2, (int64_t[]){ K, bytes }, zeros),
					   formats[f].format));
	const int err = yoke_grad(yoke_sum(yoke_cast(y, yoke_f32), YOKE_ALL), 1, &at, &dx) ||
			yoke_eval(1, &dx);
	yoke_stats(&stats);
	const int64_t limit = LAYERS * (K * bytes + 4 * ROWS) + 3 * DENSE;
	ok(!err && stats.predicted_peak > 0 && stats.predicted_peak < (uint64_t)limit,
	   "%s: %d products and their gradients take %llu bytes, less than %lld", formats[f].name,
	   LAYERS, (unsigned long long)stats.predicted_peak, (long long)limit);
	yoke_use(was);
	yoke_context_free(dry);
	free(zeros);
	yoke_error_clear();
}

static void test_gather(int f)
{
	const int64_t rows = 11, k = 2 * formats[f].block;
	static const int32_t ids[] = { 10, 0, 3, 3 };
	draw(f, rows, k, false);
	for (int i = 0; i < 4; i++)
		memcpy(want + i * k, number + ids[i] * k, sizeof *want * (size_t)k);
	yoke_tensor *at = yoke_from(yoke_i32, 2, (int64_t[]){ 2, 2 }, ids);
	yoke_tensor *y = yoke_qgather(weights(f, rows, k), at, formats[f].format, k, yoke_f32);
	ok(yoke_rank(y) == 3 && yoke_dim(y, 2) == k, "%s: rows have the shape of ids and k",
	   formats[f].name);
	compare(y, 4 * k, 0x1p-23, 0x1p-10, "rows by ids", f);
	for (int i = 0; i < 2; i++) {
		at = yoke_from(yoke_i32, 1, (int64_t[]){ 1 }, &(int32_t){ i ? -1 : 11 });
		const int err = yoke_read(
			yoke_qgather(weights(f, rows, k), at, formats[f].format, k, yoke_f32), got,
			sizeof *got * (size_t)k);
		ok(err == (tap_late() ? YOKE_EFAILED : YOKE_ERANGE), "%s: id %d is refused: %d",
		   formats[f].name, i ? -1 : 11, err);
		yoke_error_clear();
	}
}

// ---- quantization ----

static void test_bytes(void)
{
	static uint8_t to[sizeof recorded_quants[0].byte + 1];
	const int64_t k = 64,
		      rows = (int64_t)(sizeof recorded_numbers / sizeof *recorded_numbers) / k;
	for (size_t i = 0; i < sizeof recorded_quants / sizeof *recorded_quants; i++) {
		int wrong = 0, first = -1;
		memset(to, 0xa5, sizeof to);
		const int err = yoke_quantize((int)recorded_quants[i].format, rows, k,
					      recorded_numbers, to);
		for (int j = 0; j < recorded_quants[i].bytes; j++)
			if (to[j] != recorded_quants[i].byte[j] && !wrong++)
				first = j;
		ok(!err && !wrong && to[recorded_quants[i].bytes] == 0xa5,
		   "%s: %d of %d bytes are not gguf's, the first %d", recorded_quants[i].name,
		   wrong, recorded_quants[i].bytes, first);
	}
}

static void refused(int err, int code, const char *what)
{
	const char *text = yoke_error();
	ok(err == code && text && !strchr(text, '\n'), "%s: %d, wanted %d: %s", what, err, code,
	   text ? text : "no line");
	yoke_error_clear();
}

static void refused_tensor(yoke_tensor *t, int code, const char *what)
{
	refused(t ? 0 : yoke_error_code(), code, what);
}

static void test_errors(void)
{
	const float bad[32] = { [5] = INFINITY };
	uint8_t to[64];
	refused(yoke_quantize(YOKE_QUANT_Q4_K, 1, 256, x, to), YOKE_EINVAL,
		"a format that is not written");
	refused(yoke_quantize(99, 1, 32, x, to), YOKE_EINVAL, "an unknown format");
	refused(yoke_quantize(YOKE_QUANT_Q8_0, 1, 33, x, to), YOKE_ESHAPE,
		"33 elements in blocks of 32");
	refused(yoke_quantize(YOKE_QUANT_Q8_0, INT64_MAX / 16, 32, x, to), YOKE_ESHAPE,
		"too many rows");
	refused(yoke_quantize(YOKE_QUANT_Q8_0, 1, 32, bad, to), YOKE_ERANGE, "an infinite number");
	refused(yoke_quantize(YOKE_QUANT_Q8_0, 1, 32, NULL, to), YOKE_EINVAL, "no source");
	ok(yoke_quant_bytes(YOKE_QUANT_Q6_K, 512) == 420 &&
		   !yoke_quant_bytes(YOKE_QUANT_Q6_K, 32) && !yoke_quant_bytes(5, 32) &&
		   !yoke_quant_bytes(YOKE_QUANT_Q8_0, 0) &&
		   !yoke_quant_bytes(YOKE_QUANT_Q8_0, -32) &&
		   !yoke_quant_bytes(YOKE_QUANT_Q8_0, INT64_MAX - 31),
	   "bytes of rows, 0 where there are none");

	yoke_tensor *of = weights(4, 3, 64), *one = yoke_full(yoke_f32, 2, (int64_t[]){ 2, 64 }, 1);
	refused_tensor(yoke_dequant(of, YOKE_QUANT_F32, 64, yoke_f32), YOKE_EINVAL, "f32");
	refused_tensor(yoke_dequant(of, -1, 64, yoke_f32), YOKE_EINVAL, "a negative format");
	refused_tensor(yoke_dequant(of, YOKE_QUANT_Q8_0, 96, yoke_f32), YOKE_ESHAPE,
		       "rows of another length");
	refused_tensor(yoke_dequant(of, YOKE_QUANT_Q8_0, 65, yoke_f32), YOKE_ESHAPE,
		       "65 elements in blocks of 32");
	refused_tensor(yoke_dequant(of, YOKE_QUANT_Q8_0, 0, yoke_f32), YOKE_ESHAPE, "no elements");
	refused_tensor(yoke_dequant(of, YOKE_QUANT_Q8_0, 64, yoke_f64), YOKE_EDTYPE,
		       "a result in f64");
	refused_tensor(yoke_dequant(of, YOKE_QUANT_Q8_0, 64, 77), YOKE_EDTYPE,
		       "a dtype that does not exist");
	refused_tensor(yoke_dequant(one, YOKE_QUANT_Q8_0, 64, yoke_f32), YOKE_EDTYPE,
		       "weights in f32");
	refused_tensor(yoke_qlinear(one, of, YOKE_QUANT_Q4_0), YOKE_ESHAPE,
		       "weights of another format");
	refused_tensor(yoke_qlinear(yoke_cast(one, yoke_f64), of, YOKE_QUANT_Q8_0), YOKE_EDTYPE,
		       "x in f64");
	refused_tensor(yoke_qlinear(yoke_sum(one, 3), of, YOKE_QUANT_Q8_0), YOKE_ESHAPE,
		       "x without axes");
	refused_tensor(yoke_qgather(of, one, YOKE_QUANT_Q8_0, 64, yoke_f32), YOKE_EDTYPE,
		       "ids in f32");
}

// With an argument: only the format of that name.
int main(int argc, char **argv)
{
	tap_seed();
	test_all_int8();
	for (int f = 0; f < FORMATS; f++) {
		if (argc > 1 && strcmp(argv[1], formats[f].name))
			continue;
		test_numbers(f);
		test_product(f, 1, 37, 2 * formats[f].block);
		test_product(f, 3, 19, 3 * formats[f].block);
		test_product(f, 7, 13, 3 * formats[f].block);
		test_product(f, 33, ROWS_MAX - 1, formats[f].block > 32 ? K_MAX : 17 * 32);
		// for a vendor's library, if there is one
		test_product(f, X_MAX, 24, formats[f].block > 32 ? 512 : 128);
		test_gradient(f);
		test_gather(f);
	}
	test_large_gradient(4, 90001, 160, yoke_f32);
	test_large_gradient(4, 90001, 160, yoke_bf16);
	test_large_gradient(5, 30011, 512, yoke_f32);
	test_layers(0);
	if (argc == 1)
		test_bytes();
	test_errors();
	return done();
}
