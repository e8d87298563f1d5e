// SPDX-License-Identifier: Apache-2.0
// Attention of 16-bit numbers over several blocks of keys, with and without causal masking, heads of
// all sizes that kernels treat differently, and NaN in keys and values that some queries do not see,
// beside loops in float64. tests/wgmma.sh runs it on kernels for warp groups.
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tap.h"
#include "yoke.h"

struct shape {
	int64_t B, T, H, D, S, G;
	int causal;
	int64_t odd; // a key and value that are NaN; -1: none
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

int main(void)
{
	static const struct shape shapes[] = {
		{ 1, 200, 1, 64, 450, 1, 1, -1 },  { 1, 129, 2, 128, 700, 1, 0, -1 },
		{ 2, 193, 2, 64, 640, 2, 0, -1 },  { 1, 385, 1, 64, 385, 1, 1, -1 },
		{ 1, 70, 1, 40, 600, 1, 1, -1 },   { 1, 130, 1, 96, 517, 1, 1, -1 },
		{ 1, 300, 1, 128, 300, 1, 1, 77 }, { 1, 200, 1, 64, 200, 1, 1, 190 },
		{ 1, 300, 1, 64, 100, 1, 1, -1 },  { 1, 5, 2, 128, 1100, 1, 1, 1099 },
	};

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		test(yoke_bf16, &shapes[i]);
		test(yoke_f16, &shapes[i]);
	}
	return done();
}
