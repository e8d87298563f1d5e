// SPDX-License-Identifier: Apache-2.0
// Resolvents beside LAPACK's cgtsv, one right-hand side a row, which is opened as it runs: rounds take turns, so that both
// meet the same machine; medians, spreads (half of the distance between quartiles), and how far the results are apart.
//	bench/resolvent [ROUNDS]
// YOKE_PLAN_NAMED=0 times the parts, YOKE_THREADS=1 one thread; cgtsv has one, and is given copies of its operands,
// which it destroys, outside of the clock.
#include "config.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complex.h"
#include "rounds.h"
#include "yoke.h"

typedef void gtsv_fn(const int *n, const int *nrhs, float complex *dl, float complex *d, float complex *du,
		     float complex *b, const int *ldb, int *info);

enum { F32, F64, MIXED, HALF, BACK, LAPACK, KINDS, WARM = 10, MOST = 1000 };
static const char *const titles[KINDS] = { "f32", "f64", "mixed", "half", "adjoint", "cgtsv" };

struct run {
	int64_t rows, n;
	float eta;
	yoke_tensor *a, *z, *g;
	float *host, *got;
	float complex *work; // of cgtsv: dl, d, du, b
	gtsv_fn *gtsv;
	double off; // from cgtsv's, the largest
};

static void evaluate(const struct run *r, int kind, double *seconds, float *to)
{
	static const int tiers[] = { YOKE_TIER_F32, YOKE_TIER_F64, YOKE_TIER_MIXED, YOKE_TIER_HALF };
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	yoke_scope *s = yoke_scope_begin("bench");
	how.tier = kind < BACK ? tiers[kind] : YOKE_TIER_F32;
	yoke_tensor *y = yoke_resolvent(r->a, YOKE_NONE, YOKE_NONE, r->z, &how), *slope = y;
	if (kind == BACK)
		yoke_grad(yoke_sum(yoke_mul(y, r->g), YOKE_ALL), 1, (yoke_tensor *const[]){ r->a }, &slope);
	const double began = yk_seconds();
	yoke_eval(1, &slope);
	yoke_sync();
	*seconds = yk_seconds() - began;
	if (to)
		yoke_read(y, to, (size_t)(r->rows * r->n) * 8);
	yoke_scope_end(s);
}

// The i-th diagonal element is that of the solution for the i-th unit vector: one of each row, by turns.
static double solve(struct run *r, int64_t i)
{
	const int n = (int)r->n, one = 1;
	double seconds = 0;
	for (int64_t row = 0; row < r->rows; row++) {
		float complex *dl = r->work, *d = dl + n, *du = d + n, *b = du + n;
		int info;
		for (int k = 0; k < n; k++) {
			dl[k] = du[k] = 1;
			d[k] = r->host[row * n + k] - CMPLXF(0, r->eta);
			b[k] = k == i;
		}
		const double began = yk_seconds();
		r->gtsv(&n, &one, dl, d, du, b, &n, &info);
		seconds += yk_seconds() - began;
		const float *mine = r->got + 2 * (row * n + i);
		r->off = fmax(r->off, (double)cabsf(b[i] - CMPLXF(mine[0], mine[1])));
	}
	return seconds;
}

static void bench(int64_t rows, int64_t n, bool flat, int rounds, gtsv_fn *gtsv)
{
	static double times[KINDS][MOST];
	struct run r = { .rows = rows, .n = n, .eta = flat ? 0.01f : 1, .gtsv = gtsv };
	const int64_t dims[] = { rows, n, 2 }, two = 2;
	const size_t all = (size_t)(rows * n);
	const float z[2] = { 0, r.eta };
	r.host = calloc(all, sizeof *r.host);
	r.got = calloc(2 * all, sizeof *r.got);
	r.work = calloc(4 * (size_t)n, sizeof *r.work);
	float *g = calloc(2 * all, sizeof *g);
	for (size_t i = 0; i < all; i++)
		r.host[i] = flat ? 0 : (float)(rand() % 4000) / 1000 - 2;
	for (size_t i = 0; i < 2 * all; i++)
		g[i] = (float)(rand() % 2000) / 1000 - 1;
	r.a = yoke_variable("a", yoke_f32, 2, dims);
	r.z = yoke_variable("z", yoke_f32, 1, &two);
	r.g = yoke_variable("g", yoke_f32, 3, dims);
	yoke_put(r.a, r.host, all * sizeof *r.host);
	yoke_put(r.z, z, sizeof z);
	yoke_put(r.g, g, 2 * all * sizeof *g);
	for (int k = -WARM; k < rounds; k++) {
		for (int kind = 0; kind < LAPACK; kind++)
			evaluate(&r, kind, &times[kind][k < 0 ? 0 : k], kind == F32 ? r.got : NULL);
		times[LAPACK][k < 0 ? 0 : k] = gtsv ? solve(&r, (k + WARM) % n) : NAN;
	}
	printf("%3lld x %-7lld%s", (long long)rows, (long long)n, flat ? " 0, eta 0.01" : "           ");
	for (int kind = 0; kind < KINDS; kind++) {
		qsort(times[kind], (size_t)rounds, sizeof **times, by_value);
		const double *t = times[kind], median = t[rounds / 2];
		if (kind == LAPACK && !gtsv)
			printf("  n/a");
		else
			printf("  %9.1f +- %-6.1f", 1e6 * median, 5e5 * (t[rounds * 3 / 4] - t[rounds / 4]));
	}
	if (gtsv)
		printf("  %5.1f x  %.1g", times[LAPACK][rounds / 2] / times[F32][rounds / 2], r.off);
	printf("  %.2f GB/s\n", 12e-9 * (double)all / times[F32][rounds / 2]);
	yoke_free(r.a);
	yoke_free(r.z);
	yoke_free(r.g);
	free(r.host);
	free(r.got);
	free(r.work);
	free(g);
}

int main(int argc, char **argv)
{
	static const int64_t rows[] = { 1, 4, 8, 16, 32 }, lengths[] = { 128, 512, 2048 };
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	void *library = dlopen("liblapack.so.3", RTLD_NOW);
	gtsv_fn *gtsv = NULL;
	void *found = library ? dlsym(library, "cgtsv_") : NULL;
	memcpy(&gtsv, &found, sizeof gtsv);
	rounds = rounds < 1 || rounds > MOST ? 100 : rounds;
	printf("microseconds, medians of %d rounds behind %d; 12 bytes an element counted\n", rounds, WARM);
	printf("cgtsv: %s\nrows x length          ", gtsv ? "liblapack.so.3, one right-hand side a row" : dlerror());
	for (int kind = 0; kind < KINDS; kind++)
		printf("  %-19s", titles[kind]);
	printf("cgtsv/f32, apart\n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
			bench(rows[i], lengths[k], false, rounds, gtsv);
	bench(16, 4096, false, rounds, gtsv);
	bench(1, 65536, false, rounds, gtsv);
	bench(1, 65536, true, rounds, gtsv);
	return yoke_error_code() ? fprintf(stderr, "%s\n", yoke_error()), 1 : 0;
}
