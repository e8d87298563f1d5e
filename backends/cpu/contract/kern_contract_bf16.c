// SPDX-License-Identifier: Apache-2.0
// Contractions of bf16 with vdpbf16ps, which adds two products to each of 16 f32 sums. The
// instruction treats subnormals as zero and rounds to nearest, whatever the rounding mode.
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include <immintrin.h>

#include "../vector/half.h"
#include "kern_contract.h"

#define ENTRY_RUN LEVEL(yk_gemm_bf16)
#define ENTRY_CUT LEVEL(yk_gemm_bf16_block)

// As in kern_contract_f32.c, the sums of a tile fill the registers.
#define VL 16
#define NV 2
#define NR (NV * VL)
#define MR 12
#define KC 1024
#define K_UNIT 2
#define DEPTH(k) (((k) + 1) / 2)
#define PAIR_DOTS
#define DOT_MAX 16
#define DOT_FAR 32

#include "kern_contract_pairs.h"

// As in kern_contract_pack.h.
FLAT void pack(P *to, const int width, const char *from, int64_t across, int64_t many,
	       int64_t along, int64_t k, int64_t l, int64_t rows)
{
	int64_t end = l + rows, step = across == 1 && along != 1 ? PACK_ROWS : rows;

	for (; l < end; l += step) {
		for (int64_t q = l + step; q < l + 2 * step && q < end && step < rows; q++)
			for (int64_t i = 0; i < many; i += 32)
				__builtin_prefetch(half_at(from, i + q * along));
		for (int64_t i = 0; i < many; i += width) {
			int wide = many - i < width ? (int)(many - i) : width;
			P *panel = to + i * DEPTH(k) + DEPTH(l) * width;
			int64_t part = end - l < step ? end - l : step;
			if (wide < width)
				memset(panel, 0, (size_t)DEPTH(part) * width * sizeof(P));
			pack_pairs(panel, width,
				   (const char *)half_at(from, i * across + l * along),
				   across, wide, along, part);
		}
	}
}

static void pack_a(P *to, const struct yk_gemm *g, const char *a, int64_t m, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(to, MR, a, g->am, m, g->ak, k, l, rows);
}

static void pack_b(P *to, const struct yk_gemm *g, const char *b, int64_t n, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(to, NR, b, g->bn, n, g->bk, k, l, rows);
}

enum { AHEAD = 4096 / (NR * sizeof(P)) }; // rows of packed b to prefetch ahead

// c (rows, nv vectors) = or += a [depth][MR] b [depth][NR]; the rest is explained at tile_fn
FLAT void multiply_tile(const int rows, const int nv, int64_t depth, const P *a, const P *b, T *c,
			int64_t ldc, bool add, const bool far, const char *next, int64_t step)
{
	__m512 sum[MR * NV];

#pragma GCC unroll 32
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++) // to L2: L1 would not keep c until the end of the loop
			__builtin_prefetch(c + i * ldc + j * VL, 0, 2);
#pragma GCC unroll 32
	for (int i = 0; i < rows * nv; i++)
		sum[i] = _mm512_setzero_ps();
	for (int64_t l = 0; l < depth; l++, a += MR, b += NR) {
		__m512i x[NV];
		__builtin_prefetch(next, 0, 2);
		next += step;
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++) {
			x[j] = _mm512_loadu_si512(b + j * VL);
			if (far)
				__builtin_prefetch(b + AHEAD * NR + j * VL, 0, 2);
		}
#pragma GCC unroll 32
		for (int i = 0; i < rows; i++) {
			const __m512bh y = yk_pair_in_all(a[i]);
#pragma GCC unroll 32
			for (int j = 0; j < nv; j++)
				sum[i * nv + j] = _mm512_dpbf16_ps(
					sum[i * nv + j], y, (__m512bh)x[j]);
		}
	}
#pragma GCC unroll 32
	for (int i = 0; i < rows; i++) {
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++) {
			T *to = c + i * ldc + j * VL;
			if (add)
				sum[i * nv + j] = _mm512_add_ps(sum[i * nv + j],
								_mm512_loadu_ps(to));
			_mm512_storeu_ps(to, sum[i * nv + j]);
		}
	}
}

#include "kern_contract_tiles.h"
#include "kern_contract_gemm.h"
