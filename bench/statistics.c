// SPDX-License-Identifier: Apache-2.0
// Measures the ops and readers that fitting pipelines uses: MOMENTS beside its limit, the larger
// of the times to read x once and to do C^2/2 multiply-adds per row; eigh beside LAPACK; cubes
// read from the page cache beside a copy of as many bytes as their f32 values have; generated
// cubes.
//
//	bench/statistics [moments|eigh|envi|drawn ..]
//
// The compared variants run in turn; the figures are medians of the rounds. YOKE_THREADS applies.
// bench/peers/statistics_numpy.py measures other programs on the same shapes.
#include "config.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rounds.h"
#include "yoke-cube.h"
#include "yoke-observe.h"
#include "yoke.h"

enum { ROUNDS = 9, BYTES = 256 << 20 };

static void must(int err)
{
	if (err >= 0)
		return;
	fprintf(stderr, "bench/statistics: %s\n", yoke_error());
	exit(1);
}

static void *memory(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!p) {
		fprintf(stderr, "bench/statistics: out of memory\n");
		exit(1);
	}
	memset(p, 0, bytes);
	return p;
}

static void fill(float *x, size_t n)
{
	uint32_t state = 12345;
	for (size_t i = 0; i < n; i++) {
		state = state * 1664525u + 1013904223u;
		x[i] = 1000 + (float)(state >> 8) * 0x1p-20f;
	}
}

// ---- MOMENTS ----

static double once_moments(yoke_tensor *x, bool diagonal)
{
	struct yoke_moments m = { .size = sizeof m };
	yoke_scope *s = yoke_scope_begin("moments");
	must(yoke_moments(x, YOKE_NONE, diagonal, &m));
	const double began = yk_seconds();
	must(yoke_eval(5, (yoke_tensor *[]){ m.weight, m.mean, m.square, m.min, m.max }));
	must(yoke_sync());
	const double taken = yk_seconds() - began;
	yoke_scope_end(s);
	return taken;
}

// A pass over x that only adds, by as many threads as MOMENTS has: what reading costs.
static double once_read(yoke_tensor *x)
{
	yoke_scope *s = yoke_scope_begin("read");
	yoke_tensor *sum = yoke_sum(x, YOKE_AXIS(0) | YOKE_AXIS(1));
	const double began = yk_seconds();
	must(yoke_eval(1, &sum));
	must(yoke_sync());
	const double taken = yk_seconds() - began;
	yoke_scope_end(s);
	return taken;
}

static void moments(void)
{
	static const int64_t channels[] = { 1, 10, 50, 100, 200 };
	struct yoke_limits l = { .size = sizeof l };
	must(yoke_limits(&l));
	printf("moments: f32, %d MiB from memory; peak %.1f GFLOP/s\n", BYTES >> 20,
	       l.flops[yoke_f32] / 1e9);
	float *data = memory(BYTES);
	fill(data, BYTES / sizeof *data);
	for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
		const int64_t c = channels[i], rows = BYTES / 4 / c;
		double full[ROUNDS], diagonal[ROUNDS], reading[ROUNDS];
		yoke_scope *s = yoke_scope_begin("x");
		yoke_tensor *x = yoke_wrap(yoke_f32, 2, (int64_t[]){ rows, c }, data, NULL, NULL);
		for (int k = -1; k < ROUNDS; k++) {
			full[k < 0 ? 0 : k] = once_moments(x, false);
			diagonal[k < 0 ? 0 : k] = once_moments(x, true);
			reading[k < 0 ? 0 : k] = once_read(x);
		}
		yoke_scope_end(s);
		const double read = median(reading, ROUNDS),
			     adds = (double)rows * (double)(c * c) / l.flops[yoke_f32],
			     limit = fmax(read, adds), got = median(full, ROUNDS);
		printf("  C %3lld  full %7.1f ms, diagonal %7.1f ms, reading %6.1f ms, multiply-adds %6.1f ms: %.2f of the limit\n",
		       (long long)c, 1e3 * got, 1e3 * median(diagonal, ROUNDS), 1e3 * read,
		       1e3 * adds, limit / got);
	}
	free(data);
}

// ---- eigh ----

static double once_eigh(int64_t n, const double *a)
{
	yoke_tensor *v;
	yoke_scope *s = yoke_scope_begin("eigh");
	yoke_tensor *w = yoke_eigh(yoke_from(yoke_f64, 2, (int64_t[]){ n, n }, a), &v);
	const double began = yk_seconds();
	must(yoke_eval(2, (yoke_tensor *[]){ w, v }));
	must(yoke_sync());
	const double taken = yk_seconds() - began;
	yoke_scope_end(s);
	return taken;
}

typedef void syevd_fn(const char *job, const char *half, const int *n, double *a, const int *lda,
		      double *w, double *work, const int *work_size, int *whole,
		      const int *whole_size, int *info, size_t, size_t);

// The system's, with one thread; NULL: there is none.
static syevd_fn *lapack(void)
{
	static const char *const files[] = { "libopenblas.so.0", "liblapack.so.3" };
	syevd_fn *f = NULL;
	void (*threads)(int) = NULL;
	for (int i = 0; i < 2 && !f; i++) {
		void *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
		void *symbol = library ? dlsym(library, "dsyevd_") : NULL,
		     *set = library ? dlsym(library, "openblas_set_num_threads") : NULL;
		memcpy(&f, &symbol, sizeof f);
		memcpy(&threads, &set, sizeof threads);
	}
	if (threads)
		threads(1);
	return f;
}

static double once_lapack(syevd_fn *syevd, int64_t n, const double *a)
{
	const int size = (int)n, room = 1 + 6 * size + 2 * size * size, whole = 3 + 5 * size;
	double *z = memory((size_t)(n * n) * sizeof *z), *w = memory((size_t)n * sizeof *w),
	       *work = memory((size_t)room * sizeof *work);
	int *rest = memory((size_t)whole * sizeof *rest), info;
	memcpy(z, a, (size_t)(n * n) * sizeof *z);
	const double began = yk_seconds();
	syevd("V", "U", &size, z, &size, w, work, &room, rest, &whole, &info, 1, 1);
	const double taken = yk_seconds() - began;
	free(z);
	free(w);
	free(work);
	free(rest);
	return taken;
}

static void eigh(void)
{
	syevd_fn *syevd = lapack();
	printf("eigh: f64, with vectors, beside LAPACK's dsyevd with one thread%s\n",
	       syevd ? "" : ": n/a, there is no library with it");
	for (int64_t n = 32; n <= 512; n *= 2) {
		double *a = memory((size_t)(n * n) * sizeof *a), ours[ROUNDS],
		       its[ROUNDS] = { NAN };
		uint32_t state = 99;
		for (int64_t i = 0; i < n; i++)
			for (int64_t k = 0; k <= i; k++) {
				state = state * 1664525u + 1013904223u;
				a[i * n + k] = a[k * n + i] = (double)state * 0x1p-32 - 0.5;
			}
		for (int k = -1; k < ROUNDS; k++) {
			ours[k < 0 ? 0 : k] = once_eigh(n, a);
			if (syevd)
				its[k < 0 ? 0 : k] = once_lapack(syevd, n, a);
		}
		printf("  n %3lld  %8.3f ms", (long long)n, 1e3 * median(ours, ROUNDS));
		if (syevd)
			printf(", LAPACK %8.3f ms: %.2f times", 1e3 * median(its, ROUNDS),
			       median(ours, ROUNDS) / median(its, ROUNDS));
		putchar('\n');
		free(a);
	}
}

// ---- cubes ----

static double once_cube(const yoke_cube *c, float *x, float *weight)
{
	const double began = yk_seconds();
	must(yoke_cube_read(c, x, weight));
	return yk_seconds() - began;
}

static void envi(void)
{
	static const char *const interleave[] = { "bip", "bil", "bsq" },
			  *const type[] = { "f32", "u16" };
	const struct yoke_cube_info info = {
		.size = sizeof info, .lines = 256, .samples = 256, .bands = 100, .scale = 1,
		.ignore = NAN
	};
	const size_t n = 256 * 256 * 100, bytes = n * sizeof(float);
	float *x = memory(bytes), *to = memory(bytes), *weight = memory(256 * 256 * sizeof *weight);
	fill(x, n);
	printf("envi: 256 x 256 x 100 from the page cache beside a copy of as many bytes as are given, one thread\n");
	for (int t = 0; t < 2; t++)
		for (int i = 0; i < 3; i++) {
			double reading[ROUNDS], copying[ROUNDS];
			struct yoke_cube_info one = info;
			one.type = type[t];
			one.interleave = interleave[i];
			must(yoke_cube_write("bench_cube.hdr", &one, x));
			yoke_cube *c = yoke_cube_open("bench_cube.hdr", NULL);
			must(c ? 0 : -1);
			for (int k = -1; k < ROUNDS; k++) {
				const double began = yk_seconds();
				memcpy(to, x, bytes);
				copying[k < 0 ? 0 : k] = yk_seconds() - began;
				reading[k < 0 ? 0 : k] = once_cube(c, to, weight);
			}
			yoke_cube_free(c);
			printf("  %s %s  %6.2f ms, memcpy %6.2f ms: %.2f of it\n", type[t],
			       interleave[i], 1e3 * median(reading, ROUNDS),
			       1e3 * median(copying, ROUNDS),
			       median(copying, ROUNDS) / median(reading, ROUNDS));
		}
	remove("bench_cube.hdr");
	remove("bench_cube.img");
	free(x);
	free(to);
	free(weight);
}

static void drawn(void)
{
	enum { COUNT = 8 };
	const size_t n = 128 * 128 * 50;
	float *x = memory(n * sizeof *x), *weight = memory(128 * 128 * sizeof *weight);
	uint8_t *label = memory(128 * 128);
	yoke_dataset *d = yoke_dataset_synthetic(NULL);
	double taken[ROUNDS];
	must(d ? 0 : -1);
	for (int k = -1; k < ROUNDS; k++) {
		const double began = yk_seconds();
		for (int i = 0; i < COUNT; i++)
			must(yoke_dataset_read(d, i, 0, 0, i, (void *[]){ x, weight, label },
					       NULL));
		taken[k < 0 ? 0 : k] = (yk_seconds() - began) / COUNT;
	}
	printf("drawn: 128 x 128 x 50, one thread: %.2f ms a cube, %.2f ns a number\n",
	       1e3 * median(taken, ROUNDS), 1e9 * median(taken, ROUNDS) / (double)n);
	yoke_dataset_free(d);
	free(x);
	free(weight);
	free(label);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} part[] = {
		{ "moments", moments }, { "eigh", eigh }, { "envi", envi }, { "drawn", drawn }
	};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		bool wanted = argc < 2;
		for (int k = 1; k < argc; k++)
			wanted |= !strcmp(argv[k], part[i].name);
		if (wanted)
			part[i].run();
	}
	return 0;
}
