// SPDX-License-Identifier: Apache-2.0
// Attention over packed texts: the mask [1,1,T,T] of a block-diagonal causal matrix gives each text
// the results and gradients that it has alone, whatever the other texts contain.
#include "config.h"

#include <math.h>

#include "tap.h"
#include "yoke.h"

#define DIMS(...) \
	(int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

enum { T = 256, H = 4, G = 2, D = 20, TEXTS = 3 };

struct run {
	float y[T * H * D], dq[T * H * D], dk[T * G * D], dv[T * G * D];
};

static float number(int64_t i, uint32_t seed)
{
	uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + seed;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 32;
	return (float)((double)(x & 0xffff) / 32768 - 1);
}

static void fill(float *to, int64_t n, uint32_t seed)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = number(i, seed);
}

// Computes rows from .. from + n - 1 with their gradients; mask: of n x n, or NULL, with which it
// is causal.
static int compute(int64_t from, int64_t n, const float *q, const float *k, const float *v,
		   const float *g, const float *mask, struct run *to)
{
	const int64_t at[] = { from * H * D, from * G * D };
	yoke_scope *s = yoke_scope_begin("attention");
	yoke_tensor *x[] = { yoke_from(yoke_f32, 4, DIMS(1, n, H, D), q + at[0]),
			     yoke_from(yoke_f32, 4, DIMS(1, n, G, D), k + at[1]),
			     yoke_from(yoke_f32, 4, DIMS(1, n, G, D), v + at[1]) },
		    *dx[3];
	yoke_tensor *m = mask ? yoke_from(yoke_f32, 4, DIMS(1, 1, n, n), mask) : YOKE_NONE;
	yoke_tensor *y = yoke_attention(x[0], x[1], x[2], m, !mask, 0, 0);
	yoke_tensor *sum = yoke_sum(
		yoke_mul(y, yoke_from(yoke_f32, 4, DIMS(1, n, H, D), g + at[0])), YOKE_ALL);
	int e = yoke_grad(sum, 3, x, dx);
	if (e == 0)
		e = yoke_read(y, to->y + at[0], (size_t)(n * H * D) * sizeof(float));
	if (e == 0)
		e = yoke_read(dx[0], to->dq + at[0], (size_t)(n * H * D) * sizeof(float));
	if (e == 0)
		e = yoke_read(dx[1], to->dk + at[1], (size_t)(n * G * D) * sizeof(float));
	if (e == 0)
		e = yoke_read(dx[2], to->dv + at[1], (size_t)(n * G * D) * sizeof(float));
	yoke_scope_end(s);
	return e;
}

static double distance(const float *a, const float *b, int64_t n)
{
	double worst = 0;
	for (int64_t i = 0; i < n; i++) {
		const double d = fabs((double)a[i] - (double)b[i]);
		worst = d <= worst ? worst : d; // also for NaN
	}
	return worst;
}

static double run_distance(const struct run *a, const struct run *b, int64_t from, int64_t n)
{
	const double d[] = { distance(a->y + from * H * D, b->y + from * H * D, n * H * D),
			     distance(a->dq + from * H * D, b->dq + from * H * D, n * H * D),
			     distance(a->dk + from * G * D, b->dk + from * G * D, n * G * D),
			     distance(a->dv + from * G * D, b->dv + from * G * D, n * G * D) };
	return fmax(fmax(d[0], d[1]), fmax(d[2], d[3]));
}

// exact: the texts begin at multiples of all tiles' sizes. bad: a number of the first text's key
// and value.
static void test(const int64_t length[TEXTS], bool exact, float bad)
{
	static struct run packed, alone;
	static float q[T * H * D], k[T * G * D], v[T * G * D], g[T * H * D], mask[T * T];
	int64_t from = 0;
	int e = 0;
	fill(q, T * H * D, 1);
	fill(k, T * G * D, 2);
	fill(v, T * G * D, 3);
	fill(g, T * H * D, 4);
	if (bad != 0)
		k[5 * G * D] = v[7 * G * D] = bad;
	for (int64_t i = 0; i < T * T; i++)
		mask[i] = -INFINITY;
	for (float *x = (float *)&packed; x < (float *)(&packed + 1); x++)
		*x = NAN;
	alone = packed;
	for (int i = 0; i < TEXTS; from += length[i++])
		for (int64_t t = 0; t < length[i]; t++)
			for (int64_t s = 0; s <= t; s++)
				mask[(from + t) * T + from + s] = 0;
	e = compute(0, T, q, k, v, g, mask, &packed);
	from = 0;
	for (int i = 0; i < TEXTS && e == 0; from += length[i++]) {
		e = compute(from, length[i], q, k, v, g, NULL, &alone);
		if (i == 0 && bad != 0)
			continue;
		const double d = run_distance(&packed, &alone, from, length[i]);
		ok(e == 0 && (exact ? d == 0 : d < 1e-5),
		   "text %d of %lld tokens%s: the results alone, %s, got a difference of %g %s", i,
		   (long long)length[i],
		   bad == 0   ? "" :
		   isnan(bad) ? ", after one with NaN" :
				", after one with an infinity",
		   exact ? "exactly" : "nearly", d, yoke_error());
	}
	yoke_error_clear();
}

int main(void)
{
	static const int64_t aligned[] = { 64, 128, 64 }, others[] = { 37, 101, 118 };
	test(aligned, true, 0);
	test(others, false, 0);
	test(aligned, true, NAN);
	test(others, false, NAN);
	test(aligned, true, INFINITY);
	test((int64_t[]){ 1, 254, 1 }, false, 0);
	return done();
}
