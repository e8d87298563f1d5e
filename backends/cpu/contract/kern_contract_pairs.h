// SPDX-License-Identifier: Apache-2.0
// Packing of bf16 for instructions that multiply pairs along k into f32 sums. A pair is one P, with
// the element of smaller k in its lower half; if k is odd, the last pair is completed with 0.
// Included by kern_contract_bf16.c and _amx.c.

#include "../vector/pairs.h"

#define FLAT __attribute__((always_inline)) static inline
#define PAIRS
#define T float

typedef uint32_t P;

enum { PACK_ROWS = 32 };

#define CELL P
#define CELL_ALIGN 2
#include "../vector/transpose.h"

static const uint16_t *half_at(const char *p, int64_t i)
{
	return (const uint16_t *)p + i;
}

// Pairs of x[i] and x[along + i] for i < n, 0 up to `width`, at most 16.
FLAT void join_pairs(P *to, const uint16_t *x, int64_t along, int n, const int width)
{
#if defined __AVX512BW__ && defined __AVX512VL__
	const __mmask16 some = n >= 16 ? 0xffff : n > 0 ? (__mmask16)((1 << n) - 1) : 0;
	const __mmask16 writable = width >= 16 ? 0xffff : (__mmask16)((1 << width) - 1);
	__m512i lo = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, x));
	__m512i hi = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, x + along));

	_mm512_mask_storeu_epi32(to, writable, _mm512_or_si512(lo, _mm512_slli_epi32(hi, 16)));
#else
	for (int i = 0; i < width && i < 16; i++)
		to[i] = i < n ? x[i] | (P)x[along + i] << 16 : 0;
#endif
}

// to[l][i] = the pair of from[i][2 l] and from[i][2 l + 1] for i < wide; elements are `across` and
// `along` apart, k of them along.
FLAT void pack_pairs(P *to, const int width, const char *from, int64_t across, int wide,
		     int64_t along, int64_t k)
{
	if (along == 1) {
		pack_transposed(to, width, from, across * 2, wide, k / 2);
	} else if (across == 1) {
		for (int64_t l = 0; l < k / 2; l++)
			for (int i = 0; i < width; i += 16)
				join_pairs(to + l * width + i,
					   half_at(from, 2 * l * along + i), along,
					   wide - i, width - i);
	} else {
		for (int64_t l = 0; l < k / 2; l++) {
			const uint16_t *x = half_at(from, 2 * l * along), *y = x + along;
			for (int i = 0; i < wide; i++)
				to[l * width + i] = x[i * across] | (P)y[i * across]
									    << 16;
		}
	}
	if (k % 2)
		for (int i = 0; i < wide; i++)
			to[k / 2 * width + i] =
				*half_at(from, i * across + (k - 1) * along);
}

// Sums of tiles are not subnormal, which the instruction would take for zero.
static void put_row(uint16_t *to, const T *sums, int64_t n)
{
	int64_t j = 0;
#if defined BANDS && defined __AVX512BF16__
	for (; j + 32 <= n; j += 32)
		_mm512_storeu_si512(to + j,
				    (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + j + 16),
								 _mm512_loadu_ps(sums + j)));
#endif
	for (; j < n; j++)
		to[j] = yk_bf16_of_f32(sums[j]);
}

// Columns of sums (m,n) become rows of c, `step` apart.
static void put_columns(uint16_t *to, int64_t step, const T *sums, int64_t ld, int64_t m, int64_t n)
{
	enum { SQUARE = 16 };
	T turned[SQUARE * SQUARE];

	for (int64_t j = 0; j < n; j += SQUARE)
		for (int64_t i = 0; i < m; i += SQUARE) {
			const int64_t rows = m - i < SQUARE ? m - i : SQUARE,
				      cols = n - j < SQUARE ? n - j : SQUARE;
			const T *from = sums + i * ld + j;
			if (rows == SQUARE && cols == SQUARE)
				yk_transpose16(turned, SQUARE * sizeof(T), from,
					       ld * (int64_t)sizeof(T));
			else
				for (int64_t q = 0; q < cols; q++)
					for (int64_t p = 0; p < rows; p++)
						turned[q * SQUARE + p] = from[p * ld + q];
			for (int64_t q = 0; q < cols; q++)
				put_row(to + (j + q) * step + i, turned + q * SQUARE, rows);
		}
}

// Stores finished sums (m,n), rows ld apart, to c.
static void put_sums(const struct yk_gemm *g, const T *sums, int64_t ld, char *c,
		     int64_t m, int64_t n)
{
	uint16_t *to = (uint16_t *)c;

	if (g->csize == sizeof(T)) {
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++)
				((T *)c)[i * g->cm + j * g->cn] = sums[i * ld + j];
		return;
	}
	if (g->cn == 1)
		for (int64_t i = 0; i < m; i++)
			put_row(to + i * g->cm, sums + i * ld, n);
	else if (g->cm == 1)
		put_columns(to, g->cn, sums, ld, m, n);
	else
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++)
				to[i * g->cm + j * g->cn] = yk_bf16_of_f32(sums[i * ld + j]);
}
