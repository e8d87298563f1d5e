// SPDX-License-Identifier: Apache-2.0
// Measures the machine's limit for products: independent chains of multiply-adds in registers, or
// products of tiles.
#include "config.h"

#include <string.h>
#include <time.h>

#include "../backends/cpu/host/frame.h"
#include "peers/peers.h"

#if defined __x86_64__
#include <immintrin.h>

enum { CHAINS = 12, LOOPS = 100000, TILE_LOOPS = 50000, RUNS = 50 };

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

// flops: of a call of fn
static double best_of(void (*fn)(void *, int64_t), double flops)
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
		s = flops * pieces / s;
		best = s > best ? s : best;
	}
	return best;
}

double peak_gflops(const char *isa)
{
	if (!strcmp(isa, "base"))
		return 0;
	return strcmp(isa, "avx2") ? best_of(peak_avx512, 2. * 16 * CHAINS * LOOPS) :
				     best_of(peak_avx2, 2. * 8 * CHAINS * LOOPS);
}

#ifdef HAVE_AMX
// Four products of tiles for four tiles that are loaded from L1, as with sums of 32 x 32.
__attribute__((target("amx-tile,amx-bf16"))) static void peak_tiles(void *arg, int64_t piece)
{
	enum { TILE = 1024, STEPS = 16 };
	_Alignas(64) static const struct {
		uint8_t palette, start, reserved[14];
		uint16_t bytes[16];
		uint8_t rows[16];
	} shapes = {
		1, 0, { 0 }, { 64, 64, 64, 64, 64, 64, 64, 64 }, { 16, 16, 16, 16, 16, 16, 16, 16 }
	};
	_Alignas(64) uint16_t operands[2 * STEPS * TILE / sizeof(uint16_t)];
	_Alignas(64) char sums[TILE];

	(void)arg;
	for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
		operands[i] = (uint16_t)(0x3f00 + (i * 77 + (size_t)piece) % 128); // 0.5 .. 1
	_tile_loadconfig(&shapes);
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	for (int k = 0; k < TILE_LOOPS; k++) {
		const char *a = (const char *)operands + k % (STEPS / 2) * 2 * TILE,
			   *b = a + STEPS * TILE;
		_tile_loadd(4, a, 64);
		_tile_loadd(6, b, 64);
		_tile_dpbf16ps(0, 4, 6);
		_tile_loadd(7, b + TILE, 64);
		_tile_dpbf16ps(1, 4, 7);
		_tile_loadd(5, a + TILE, 64);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, sums, 64);
	sink = sums[0];
	_tile_release();
}
#endif

double peak_bf16_gflops(const char *isa)
{
	(void)isa;
#ifdef HAVE_AMX
	if (!strcmp(isa, "amx"))
		return best_of(peak_tiles, 4. * 2 * 16 * 16 * 32 * TILE_LOOPS);
#endif
	return __builtin_cpu_supports("avx512bf16") ? best_of(peak_bf16, 2. * 32 * CHAINS * LOOPS) :
						      0;
}

#else

double peak_gflops(const char *isa)
{
	(void)isa;
	return 0;
}

double peak_bf16_gflops(const char *isa)
{
	(void)isa;
	return 0;
}

#endif
