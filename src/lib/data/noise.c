// SPDX-License-Identifier: Apache-2.0
// Counter-based normal random numbers, computed in the widest vectors of the processor.  Only IEEE
// 754 operations with exact rounding are used, so all widths give the same bits.
#include "config.h"

#include "data/noise.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#if defined __SSE2__
#include <immintrin.h>
#endif

#if defined __clang__
#define PICK(a, b, V, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, V, ...) __builtin_shuffle(a, b, (V){ __VA_ARGS__ })
#endif

enum { SOME = 4 }; // vectors of counters in flight
#define EACH(v) _Pragma("GCC unroll 4") for (int v = 0; v < SOME; v++)

// 128-bit vectors, which compilers emulate if the processor has none.
#if defined __SSE2__
#define MULTIPLY(a, b) ((NAME(u64))_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#define ROOT(a) ((NAME(f32))_mm_sqrt_ps((__m128)(a)))
#else
#define MULTIPLY(a, b) (((a) & 0xffffffff) * ((b) & 0xffffffff))
#define ROOT(a) ((NAME(f32)){ sqrtf((a)[0]), sqrtf((a)[1]), sqrtf((a)[2]), sqrtf((a)[3]) })
#endif
#define NAME(what) what##_128
#define TARGET
#define LANES 4
#define ORDER 0, 1
#define FIRST 0, 4, 1, 5
#define SECOND 2, 6, 3, 7
#include "data/noise_lanes.h"

#if defined __x86_64__
#undef MULTIPLY
#undef ROOT
#undef NAME
#undef TARGET
#undef LANES
#undef ORDER
#undef FIRST
#undef SECOND
#define MULTIPLY(a, b) ((NAME(u64))_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define ROOT(a) ((NAME(f32))_mm256_sqrt_ps((__m256)(a)))
#define NAME(what) what##_256
#define TARGET __attribute__((target("avx2")))
#define LANES 8
#define ORDER 0, 2, 1, 3 // so that the results of 128-bit shuffles are in order
#define FIRST 0, 8, 1, 9, 4, 12, 5, 13
#define SECOND 2, 10, 3, 11, 6, 14, 7, 15
#include "data/noise_lanes.h"
#endif

enum { RUN = 64 }; // numbers computed at a time

void yk_noise(float *to, int64_t n, uint64_t first, uint64_t key, uint64_t step)
{
	void (*run)(float *, uint64_t, uint64_t, uint64_t) = run_128;
	float some[RUN];
#if defined __x86_64__
	if (__builtin_cpu_supports("avx2"))
		run = run_256;
#endif
	while (n > 0) {
		const int64_t skip = (int64_t)(first & 3), m = RUN - skip < n ? RUN - skip : n;
		run(m == RUN ? to : some, first >> 2, key, step);
		if (m < RUN)
			memcpy(to, some + skip, (size_t)m * sizeof *to);
		to += m;
		first += (uint64_t)m;
		n -= m;
	}
}
