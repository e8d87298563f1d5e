// SPDX-License-Identifier: Apache-2.0
// Measures the machine's limit for products: independent chains of multiply-adds in registers.
#include "config.h"

#include <string.h>
#include <time.h>

#include "../backends/cpu/host/frame.h"
#include "peers/peers.h"

#if defined __x86_64__
#include <immintrin.h>

enum { CHAINS = 12, LOOPS = 100000, RUNS = 50 };

static volatile float sink;

// clang-format off: it folds a loop into the line of its pragma
#define PEAK(name, target_, type, set1, step, first) \
	__attribute__((target(target_))) static void name(void *arg, int64_t piece) \
	{ \
		type s[CHAINS], x = set1(0.999f), y = set1(0.001f); \
		(void)arg; \
		_Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) s[i] = \
			set1((float)(i + piece)); \
		for (int k = 0; k < LOOPS; k++) { \
			_Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) s[i] = \
				step; \
		} \
		_Pragma("GCC unroll 12") for (int i = 1; i < CHAINS; i++) s[0] += s[i]; \
		sink = first(s[0]); \
	}
// clang-format on

PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps(s[i], x, y),
     _mm512_cvtss_f32)
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps(s[i], x, y),
     _mm256_cvtss_f32)
PEAK(peak_bf16, "avx512f,avx512bf16", __m512, _mm512_set1_ps,
     _mm512_dpbf16_ps(s[i], (__m512bh)x, (__m512bh)y), _mm512_cvtss_f32)

static double best_of(void (*fn)(void *, int64_t), int flops)
{
	int pieces = yk_team_size();
	double best = 0;

	for (int i = 0; i < RUNS; i++) {
		struct timespec t[2];
		double s;
		clock_gettime(CLOCK_MONOTONIC, &t[0]);
		yk_team_run(pieces, fn, NULL);
		clock_gettime(CLOCK_MONOTONIC, &t[1]);
		s = (double)(t[1].tv_sec - t[0].tv_sec) * 1e9 +
		    (double)(t[1].tv_nsec - t[0].tv_nsec);
		s = (double)flops * CHAINS * LOOPS * pieces / s;
		best = s > best ? s : best;
	}
	return best;
}

double peak_gflops(const char *isa)
{
	if (!strcmp(isa, "base"))
		return 0;
	return strcmp(isa, "avx2") ? best_of(peak_avx512, 2 * 16) :
				     best_of(peak_avx2, 2 * 8);
}

double peak_bf16_gflops(void)
{
	return __builtin_cpu_supports("avx512bf16") ? best_of(peak_bf16, 2 * 32) : 0;
}

#else

double peak_gflops(const char *isa)
{
	(void)isa;
	return 0;
}

double peak_bf16_gflops(void)
{
	return 0;
}

#endif
