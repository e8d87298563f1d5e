// SPDX-License-Identifier: Apache-2.0
// Measures the peak arithmetic and copy rates of the machine's threads with dedicated loops.
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "observe/roof.h"

#if defined __SSE2__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

enum { COPY_BYTES = 32 << 20, ROUNDS = 1 << 16 };

// ---- multiply-adds ----

// At least latency times throughput of any core so far: 4 times 2, with NEON 4 times 4. With two
// operands the sums fit the registers.
#if defined __aarch64__
#define SUMS(X) \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define NSUMS 16
#else
#define SUMS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define NSUMS 12
#endif

// name: a function of `rounds` rounds of NSUMS multiply-adds on vectors of `type`.  Each sum has a
// different start value, because compilers merge sums that start equal.
#define PEAK(name, attributes, type, set1, fmadd, hsum) \
	attributes static float name(int rounds, float x, float y) \
	{ \
		type a = set1(x), b = set1(y); \
		SUMS(PEAK_DECLARE_##type) \
		for (int i = 0; i < rounds; i++) { \
			SUMS(PEAK_STEP_##fmadd) \
		} \
		return hsum; \
	}

#if defined __x86_64__
#define PEAK_DECLARE___m512(k) __m512 s##k = _mm512_set1_ps(x + k);
#define PEAK_STEP__mm512_fmadd_ps(k) s##k = _mm512_fmadd_ps(s##k, b, a);
#define PEAK_DECLARE___m256(k) __m256 s##k = _mm256_set1_ps(x + k);
#define PEAK_STEP__mm256_fmadd_ps(k) s##k = _mm256_fmadd_ps(s##k, b, a);
#define ADD512(k) a = _mm512_add_ps(a, s##k),
#define ADD256(k) a = _mm256_add_ps(a, s##k),
#define PEAK_DECLARE___m512d(k) __m512d s##k = _mm512_set1_pd(x + k);
#define PEAK_STEP__mm512_fmadd_pd(k) s##k = _mm512_fmadd_pd(s##k, b, a);
#define PEAK_DECLARE___m256d(k) __m256d s##k = _mm256_set1_pd(x + k);
#define PEAK_STEP__mm256_fmadd_pd(k) s##k = _mm256_fmadd_pd(s##k, b, a);
#define ADD512D(k) a = _mm512_add_pd(a, s##k),
#define ADD256D(k) a = _mm256_add_pd(a, s##k),
PEAK(peak_avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps,
     _mm512_fmadd_ps, (SUMS(ADD512) _mm512_cvtss_f32(a)))
PEAK(peak_avx512_f64, __attribute__((target("avx512f"))), __m512d, _mm512_set1_pd,
     _mm512_fmadd_pd, (float)(SUMS(ADD512D) _mm512_cvtsd_f64(a)))
PEAK(peak_avx2_f64, __attribute__((target("avx2,fma"))), __m256d, _mm256_set1_pd,
     _mm256_fmadd_pd, (float)(SUMS(ADD256D) _mm256_cvtsd_f64(a)))
PEAK(peak_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps,
     _mm256_fmadd_ps, (SUMS(ADD256) _mm256_cvtss_f32(a)))
#endif

#if defined __aarch64__
#define PEAK_DECLARE_float32x4_t(k) float32x4_t s##k = vdupq_n_f32(x + k);
#define PEAK_STEP_vfmaq_f32(k) s##k = vfmaq_f32(a, s##k, b);
#define ADD4(k) a = vaddq_f32(a, s##k),
PEAK(peak_base, , float32x4_t, vdupq_n_f32, vfmaq_f32, (SUMS(ADD4) vgetq_lane_f32(a, 0)))
#define PEAK_DECLARE_float64x2_t(k) float64x2_t s##k = vdupq_n_f64(x + k);
#define PEAK_STEP_vfmaq_f64(k) s##k = vfmaq_f64(a, s##k, b);
#define ADD2(k) a = vaddq_f64(a, s##k),
PEAK(peak_base_f64, , float64x2_t, vdupq_n_f64, vfmaq_f64, (float)(SUMS(ADD2) vgetq_lane_f64(a, 0)))
#else
typedef float vec4 __attribute__((vector_size(16)));
#define SPLAT4(x) ((vec4){ x, x, x, x })
#define PEAK_DECLARE_vec4(k) vec4 s##k = SPLAT4(x + k);
#define PEAK_STEP_muladd(k) s##k = s##k * b + a;
#define ADD4(k) a += s##k,
PEAK(peak_base, , vec4, SPLAT4, muladd, (SUMS(ADD4) a[0]))
typedef double vec2 __attribute__((vector_size(16)));
#define SPLAT2(x) ((vec2){ x, x })
#define PEAK_DECLARE_vec2(k) vec2 s##k = SPLAT2(x + k);
PEAK(peak_base_f64, , vec2, SPLAT2, muladd, (float)(SUMS(ADD4) a[0]))
#endif

typedef float peak_fn(int, float, float);

// The function for the widest vectors of f32 or f64; *lanes: numbers in a vector.
static peak_fn *peak_choose(bool f64, int *lanes)
{
#if defined __x86_64__
	if (__builtin_cpu_supports("avx512f")) {
		*lanes = f64 ? 8 : 16;
		return f64 ? peak_avx512_f64 : peak_avx512;
	}
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		*lanes = f64 ? 4 : 8;
		return f64 ? peak_avx2_f64 : peak_avx2;
	}
#endif
	*lanes = f64 ? 2 : 4;
	return f64 ? peak_base_f64 : peak_base;
}

// ---- copies ----

// Non-temporal copy where the processor supports it: lines are written without being read first.
static void copy_past(char *to, const char *from)
{
#if defined __SSE2__
	for (size_t i = 0; i < COPY_BYTES; i += 4 * sizeof(__m128i)) {
		for (int k = 0; k < 4; k++)
			_mm_stream_si128((__m128i *)(to + i) + k,
					 _mm_load_si128((const __m128i *)(from + i) + k));
	}
	_mm_sfence();
#else
	memcpy(to, from, COPY_BYTES);
#endif
}

// ---- threads ----

struct start {
	atomic_int go;   // 0 wait, 1 work, -1 leave
	atomic_int done; // number of workers that have finished
};

struct worker {
	pthread_t thread;
	struct start *start;
	float (*peak)(int, float, float); // NULL: copy
	char *to, *from;
	bool past; // with non-temporal stores
	volatile float result; // keeps the compiler from removing the loop
};

static void work(struct worker *w)
{
	if (w->peak)
		w->result = w->peak(ROUNDS, 1.0f, 0.5f);
	else if (w->past)
		copy_past(w->to, w->from);
	else
		memcpy(w->to, w->from, COPY_BYTES);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	int go;

	while (!(go = atomic_load(&w->start->go)))
		sched_yield();
	if (go > 0)
		work(w);
	atomic_fetch_add(&w->start->done, 1);
	return NULL;
}

// Seconds in which all threads did their work once; infinite if a thread cannot be started.
static double together(struct worker *w, int threads)
{
	struct start start = { 0 };
	double t = INFINITY;
	int n;

	for (n = 1; n < threads; n++) {
		w[n].start = &start;
		if (pthread_create(&w[n].thread, NULL, worker_main, &w[n]))
			break;
	}
	if (n == threads) {
		t = yk_seconds();
		atomic_store(&start.go, 1);
		work(&w[0]);
		while (atomic_load(&start.done) < threads - 1)
			sched_yield();
		t = yk_seconds() - t;
	} else {
		atomic_store(&start.go, -1);
	}
	while (--n >= 1)
		pthread_join(w[n].thread, NULL);
	return t;
}

// The fastest of several runs: the limit, not the typical rate.
static double fastest(struct worker *w, int threads, int runs)
{
	double min = INFINITY;

	for (int i = 0; i < runs; i++) {
		double t = together(w, threads);
		if (t < min)
			min = t;
	}
	return min;
}

double yk_limit_flops(int threads, bool f64)
{
	struct worker *w = calloc((size_t)threads, sizeof *w);
	int lanes;
	peak_fn *peak = peak_choose(f64, &lanes);
	double t;

	if (!w)
		return 0;
	for (int i = 0; i < threads; i++)
		w[i].peak = peak;
	t = fastest(w, threads, 100);
	free(w);
	return 2.0 * ROUNDS * NSUMS * lanes * threads / t;
}

double yk_limit_copy(int threads)
{
	struct worker *w = calloc((size_t)threads, sizeof *w);
	char *all = aligned_alloc(64, 2 * (size_t)COPY_BYTES * (size_t)threads);
	double rate = 0;

	if (w && all) {
		memset(all, 1, 2 * (size_t)COPY_BYTES * (size_t)threads);
		for (int i = 0; i < threads; i++) {
			w[i].to = all + 2 * (size_t)COPY_BYTES * (size_t)i;
			w[i].from = w[i].to + COPY_BYTES;
		}
		double t = fastest(w, threads, 15);
		for (int i = 0; i < threads; i++)
			w[i].past = true;
		rate = 2.0 * COPY_BYTES * threads / fmin(t, fastest(w, threads, 15));
	}
	free(all);
	free(w);
	return rate;
}
