// SPDX-License-Identifier: Apache-2.0
// Attention of 16-bit numbers and its gradients over several blocks of queries and keys, with and
// without causal masking and masks, heads of all sizes that kernels treat differently, and NaN in
// keys and values that some queries do not see, beside loops in float64. attention.t
// [values|gradients] runs a part. tests/units.sh and wgmma.sh run it on models of matrix units and
// warp groups.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "yoke.h"

struct shape {
	int64_t B, T, H, D, S, G;
	int causal;
	int64_t odd; // a key and value that are NaN; -1: none
	int masked;
};

// Multiples of 1/32 below 2, which both dtypes represent exactly.
static double number(int64_t i, uint32_t seed)
{
	uint64_t x = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u + seed;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 32;
	return (double)((int)(x & 127) - 64) / 32;
}

// n numbers in float64 and as a tensor of these dims.
static yoke_tensor *numbers(int dtype, const int64_t dims[4], uint32_t seed, int64_t odd,
			    double **to)
{
	const int64_t n = dims[0] * dims[1] * dims[2] * dims[3], row = dims[2] * dims[3];
	float *x = calloc((size_t)n, sizeof *x);
	*to = calloc((size_t)n, sizeof **to);

	for (int64_t i = 0; i < n; i++) {
		(*to)[i] = i / row % dims[1] == odd ? NAN : number(i, seed);
		x[i] = (float)(*to)[i];
	}
	yoke_tensor *made = yoke_cast(yoke_from(yoke_f32, 4, dims, x), dtype);
	free(x);
	return made;
}

// The largest difference from sums in float64; NaN where only one of them is.
static double distance(const struct shape *s, const double *q, const double *k, const double *v,
		       const float *y)
{
	double worst = 0, *p = calloc((size_t)s->S, sizeof *p);

	for (int64_t i = 0; i < s->B * s->T * s->H; i++) {
		const int64_t h = i % s->H, t = i / s->H % s->T, b = i / s->H / s->T,
			      g = h / (s->H / s->G);
		const int64_t limit = s->causal ? t + 1 + s->S - s->T : s->S,
			      sees = limit < 0 ? 0 : limit;
		double largest = -INFINITY, sum = 0;
		for (int64_t j = 0; j < sees; j++) {
			p[j] = 0;
			for (int64_t d = 0; d < s->D; d++)
				p[j] += q[i * s->D + d] * k[((b * s->S + j) * s->G + g) * s->D + d];
			p[j] /= sqrt((double)s->D);
			largest = fmax(largest, p[j]);
		}
		for (int64_t j = 0; j < sees; j++)
			sum += p[j] = exp(p[j] - largest);
		for (int64_t d = 0; d < s->D; d++) {
			double want = 0;
			for (int64_t j = 0; j < sees; j++)
				want += p[j] / sum * v[((b * s->S + j) * s->G + g) * s->D + d];
			const double apart = isnan(want) && isnan(y[i * s->D + d]) ?
						     0 :
						     fabs(want - (double)y[i * s->D + d]);
			worst = apart <= worst ? worst : apart;
		}
	}
	free(p);
	return worst;
}

static void test(int dtype, const struct shape *s)
{
	const int64_t dims[4] = { s->B, s->T, s->H, s->D }, others[4] = { s->B, s->S, s->G, s->D };
	const int64_t n = s->B * s->T * s->H * s->D;
	yoke_scope *scope = yoke_scope_begin("attention");
	double *q, *k, *v;
	float *y = calloc((size_t)n, sizeof *y);

	for (int64_t i = 0; i < n; i++)
		y[i] = NAN;
	yoke_tensor *x[] = { numbers(dtype, dims, 1, -1, &q), numbers(dtype, others, 2, s->odd, &k),
			     numbers(dtype, others, 3, s->odd, &v) };
	const int e = yoke_read(
		yoke_cast(yoke_attention(x[0], x[1], x[2], YOKE_NONE, s->causal, 0, 0), yoke_f32),
		y, (size_t)n * sizeof *y);
	const double apart = e ? NAN : distance(s, q, k, v, y);
	// weights and results are rounded to 8 or 11 bits, values are below 2
	ok(apart <= (dtype == yoke_f16 ? 0.0015 : 0.012),
	   "%s, B %d T %d H %d D %d, %d keys of %d heads%s%s: differs by %g %s",
	   dtype == yoke_f16 ? "f16" : "bf16", (int)s->B, (int)s->T, (int)s->H, (int)s->D,
	   (int)s->S, (int)s->G, s->causal ? ", causal" : "",
	   s->odd >= 0 ? ", one of which is NaN" : "", apart, e ? yoke_error() : "");
	yoke_scope_end(scope);
	yoke_error_clear();
	free(q), free(k), free(v), free(y);
}

// The numbers of a mask [T,S]: a third of the keys is hidden.
static double mask_number(int64_t i)
{
	return i % 3 == 1 ? -INFINITY : number(i, 5);
}

// Adds the gradients dq, dk and dv of the sum of g times attention.
static void add_gradients(const struct shape *s, double *const x[3], const double *g,
			  double *const d[3])
{
	const double *q = x[0], *k = x[1], *v = x[2], scale = 1 / sqrt((double)s->D);
	double *p = calloc((size_t)s->S, sizeof *p), *dp = calloc((size_t)s->S, sizeof *dp);

	for (int64_t i = 0; i < s->B * s->T * s->H; i++) {
		const int64_t h = i % s->H, t = i / s->H % s->T, b = i / s->H / s->T;
		const int64_t first = b * s->S * s->G + h / (s->H / s->G); // row of the first key
		double largest = -INFINITY, sum = 0, r = 0;
		for (int64_t j = 0; j < s->S; j++) {
			const int64_t row = (first + j * s->G) * s->D;
			p[j] = dp[j] = 0;
			for (int64_t e = 0; e < s->D; e++) {
				p[j] += q[i * s->D + e] * k[row + e] * scale;
				dp[j] += g[i * s->D + e] * v[row + e];
			}
			p[j] += s->masked ? mask_number(t * s->S + j) : 0;
			if ((s->causal && j > t + s->S - s->T) || p[j] == -INFINITY)
				p[j] = -INFINITY, dp[j] = 0;
			largest = fmax(largest, p[j]);
		}
		if (largest == -INFINITY)
			continue;
		for (int64_t j = 0; j < s->S; j++)
			sum += p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - largest);
		for (int64_t j = 0; j < s->S; j++)
			r += (p[j] /= sum) * dp[j];
		for (int64_t j = 0; j < s->S; j++)
			for (int64_t e = 0; e < s->D && p[j] != 0; e++) {
				const int64_t row = (first + j * s->G) * s->D;
				const double ds = p[j] * (dp[j] - r) * scale;
				d[0][i * s->D + e] += ds * k[row + e];
				d[1][row + e] += ds * q[i * s->D + e];
				d[2][row + e] += p[j] * g[i * s->D + e];
			}
	}
	free(p), free(dp);
}

static void test_gradients(int dtype, const struct shape *s)
{
	static const char names[] = "qkv";
	const int64_t dims[4] = { s->B, s->T, s->H, s->D }, others[4] = { s->B, s->S, s->G, s->D };
	const int64_t mask_dims[4] = { 1, 1, s->T, s->S };
	yoke_scope *scope = yoke_scope_begin("attention");
	double *from[4], *want[3];
	yoke_tensor *x[4], *grad[3], *mask = YOKE_NONE;

	x[0] = numbers(dtype, dims, 1, -1, &from[0]);
	x[1] = numbers(dtype, others, 2, s->odd, &from[1]);
	x[2] = numbers(dtype, others, 3, s->odd, &from[2]);
	x[3] = numbers(dtype, dims, 4, -1, &from[3]);
	if (s->masked) {
		float *m = calloc((size_t)(s->T * s->S), sizeof *m);
		for (int64_t i = 0; i < s->T * s->S; i++)
			m[i] = (float)mask_number(i);
		mask = yoke_from(yoke_f32, 4, mask_dims, m);
		free(m);
	}
	yoke_tensor *y = yoke_attention(x[0], x[1], x[2], mask, s->causal, 0, 0);
	int e = yoke_grad_from(1, &y, &x[3], 3, x, grad);
	e = e ? e : yoke_eval(3, grad);
	for (int i = 0; i < 3; i++) {
		const size_t n = (size_t)((i ? s->S * s->G : s->T * s->H) * s->B * s->D);
		want[i] = calloc(n, sizeof **want);
	}
	add_gradients(s, from, from[3], want);
	for (int i = 0; i < 3; i++) {
		const size_t n = (size_t)((i ? s->S * s->G : s->T * s->H) * s->B * s->D);
		double apart = 0, largest = 0;
		float *got = calloc(n, sizeof *got);
		for (size_t k = 0; k < n; k++)
			got[k] = NAN;
		e = e ? e : yoke_read(yoke_cast(grad[i], yoke_f32), got, n * sizeof *got);
		for (size_t k = 0; k < n; k++) {
			const double far = isnan(want[i][k]) && isnan(got[k]) ?
						   0 :
						   fabs(want[i][k] - (double)got[k]);
			largest = isnan(want[i][k]) ? largest : fmax(largest, fabs(want[i][k]));
			apart = far <= apart ? apart : far;
		}
		// weights, results and their gradients are rounded to 8 or 11 bits
		ok(!e && apart <= largest * (dtype == yoke_f16 ? 0.002 : 0.015),
		   "%s, B %d T %d H %d D %d, %d keys of %d heads%s%s%s: d%c of at most %g differs "
		   "by %g %s",
		   dtype == yoke_f16 ? "f16" : "bf16", (int)s->B, (int)s->T, (int)s->H, (int)s->D,
		   (int)s->S, (int)s->G, s->causal ? ", causal" : "",
		   s->masked ? ", with a mask" : "", s->odd >= 0 ? ", one of which is NaN" : "",
		   names[i], largest, apart, e ? yoke_error() : "");
		free(got), free(want[i]);
	}
	yoke_scope_end(scope);
	yoke_error_clear();
	for (int i = 0; i < 4; i++)
		free(from[i]);
}

int main(int argc, char **argv)
{
	static const struct shape shapes[] = {
		{ 1, 200, 1, 64, 450, 1, 1, -1, 0 },  { 1, 129, 2, 128, 700, 1, 0, -1, 0 },
		{ 2, 193, 2, 64, 640, 2, 0, -1, 0 },  { 1, 385, 1, 64, 385, 1, 1, -1, 0 },
		{ 1, 70, 1, 40, 600, 1, 1, -1, 0 },   { 1, 130, 1, 96, 517, 1, 1, -1, 0 },
		{ 1, 300, 1, 128, 300, 1, 1, 77, 0 }, { 1, 200, 1, 64, 200, 1, 1, 190, 0 },
		{ 1, 300, 1, 64, 100, 1, 1, -1, 0 },  { 1, 5, 2, 128, 1100, 1, 1, 1099, 0 },
	};
	static const struct shape gradients[] = {
		{ 1, 70, 2, 64, 197, 1, 1, -1, 0 },  { 1, 130, 1, 128, 75, 1, 0, -1, 0 },
		{ 2, 65, 1, 40, 65, 1, 1, -1, 0 },   { 1, 33, 4, 64, 260, 2, 1, -1, 1 },
		{ 1, 161, 1, 96, 161, 1, 1, 77, 0 }, { 1, 80, 1, 256, 150, 1, 0, -1, 0 },
		{ 1, 90, 1, 64, 40, 1, 1, -1, 0 },
	};
	const char *part = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes && strcmp(part, "gradients"); i++) {
		test(yoke_bf16, &shapes[i]);
		test(yoke_f16, &shapes[i]);
	}
	for (size_t i = 0; i < sizeof gradients / sizeof *gradients && strcmp(part, "values");
	     i++) {
		test_gradients(yoke_bf16, &gradients[i]);
		test_gradients(yoke_f16, &gradients[i]);
	}
	return done();
}
