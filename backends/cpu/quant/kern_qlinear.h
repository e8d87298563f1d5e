// SPDX-License-Identifier: Apache-2.0
// Products with quantized weights: the operands of the inner loops.
// Activations become 16-bit integers with one scale per group of 32; a group's product is an exact
// integer, and the groups are added in f32 in order. Both loops follow this order, so a row of the
// result has the same bits in any batch.
#ifndef YK_KERN_QLINEAR_H
#define YK_KERN_QLINEAR_H

#include "blocks.h"

enum { STRIP = VF == 16 ? 16 : 8, STRIP_VECTORS = STRIP / VF }; // rows of w in the loop for few rows of x

// Rows of activations in integers.
struct activations {
	const int16_t *q;    // [rows,K]
	const float *scale;  // [rows,groups]
	const float *sum;    // scale times the sum of a group
	const int32_t *isum; // the sum of a group
	int64_t k, groups;
};

typedef void qlinear_strip_fn(const uint8_t *const *row, const struct activations *x, int64_t m, float *y);
typedef void qlinear_pack_fn(const uint8_t *const *row, int64_t from, int groups, int16_t *panel, float *scale, float *min,
			     int64_t step);

// ---- integers ----

// Sums of products of pairs.
YK_INLINE vi pairs(vs a, vs b)
{
#if VF == 16
	return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VF == 8
	return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined __SSE2__
	return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#elif defined __aarch64__
	return (vi)vpaddq_s32(vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b)),
			      vmull_high_s16((int16x8_t)a, (int16x8_t)b));
#else
	vi sum;
	for (int i = 0; i < VF; i++)
		sum[i] = a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
	return sum;
#endif
}

#if VF < 16
// Sums of neighbours: of a, then of b, in each 16 bytes.
YK_INLINE vi neighbours(vi a, vi b)
{
#if VF == 8
	return (vi)_mm256_hadd_epi32((__m256i)a, (__m256i)b);
#elif defined __SSE2__
	return (vi)_mm_shuffle_ps((__m128)a, (__m128)b, 0x88) + (vi)_mm_shuffle_ps((__m128)a, (__m128)b, 0xdd);
#elif defined __aarch64__
	return (vi)vpaddq_s32((int32x4_t)a, (int32x4_t)b);
#else
	return (vi){ a[0] + a[1], a[2] + a[3], b[0] + b[1], b[2] + b[3] };
#endif
}
#endif

// to: the sums of the lanes of each of STRIP vectors.
YK_INLINE void sums_of_lanes(const vi *v, vi *to)
{
#if VF == 16
	__m256i s[16], t[2];
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++)
		s[i] = _mm256_add_epi32(_mm512_castsi512_si256((__m512i)v[i]), _mm512_extracti64x4_epi64((__m512i)v[i], 1));
#pragma GCC unroll 2
	for (int h = 0; h < 2; h++) {
		const __m256i *r = s + 8 * h;
		const __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(r[0], r[1]), _mm256_hadd_epi32(r[2], r[3]));
		const __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(r[4], r[5]), _mm256_hadd_epi32(r[6], r[7]));
		t[h] = _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
	}
	to[0] = (vi)_mm512_inserti64x4(_mm512_castsi256_si512(t[0]), t[1], 1);
#else
	vi four[2];
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++)
		four[i] = neighbours(neighbours(v[4 * i], v[4 * i + 1]), neighbours(v[4 * i + 2], v[4 * i + 3]));
#if VF == 8
	const __m256i a = (__m256i)four[0], b = (__m256i)four[1];
	to[0] = (vi)_mm256_permute2x128_si256(a, b, 0x20) + (vi)_mm256_permute2x128_si256(a, b, 0x31);
#else
	to[0] = four[0];
	to[1] = four[1];
#endif
#endif
}

YK_INLINE vf add_group(const int f, vi sum, vf scale, const float *min, float xscale, float xsum, int32_t isum, vf acc)
{
	if (middle(f))
		sum -= vi_splat(middle(f) * isum);
	acc = vf_fma(__builtin_convertvector(sum, vf), scale * vf_splat(xscale), acc);
	return has_min(f) ? vf_fma(vf_load(min), vf_splat(xsum), acc) : acc;
}

// ---- few rows of x: a row times STRIP rows of w ----

YK_INLINE void add_groups(const int f, const uint8_t *const *row, const struct activations *x, int64_t m, int64_t from, const int groups,
			  vf *acc)
{
	float scale[CHUNK_GROUPS * STRIP], min[CHUNK_GROUPS * STRIP];
	const int bytes = block_bytes(f);
	const int64_t block = is_long(f) ? from / CHUNK_GROUPS : from;
	for (int i = 0; i < STRIP_VECTORS; i++)
		scales_of_rows(f, row + i * VF, block, groups, scale + i * VF, min + i * VF, STRIP);
#pragma GCC unroll 8
	for (int g = 0; g < groups; g++) {
		const int16_t *xg = x->q + m * x->k + (from + g) * GROUP;
		const int64_t at = m * x->groups + from + g, byte = (is_long(f) ? block : block + g) * bytes;
		vi sum[STRIP], total[STRIP_VECTORS];
		vs xv[PARTS];
		memcpy(xv, xg, sizeof xv);
#pragma GCC unroll 16
		for (int r = 0; r < STRIP; r++) {
			const struct group q = group_of(f, row[r] + byte, g, true);
			sum[r] = pairs(q.part[0], xv[0]);
#pragma GCC unroll 4
			for (int p = 1; p < PARTS; p++)
				sum[r] += pairs(q.part[p], xv[p]);
		}
		sums_of_lanes(sum, total);
#pragma GCC unroll 2
		for (int i = 0; i < STRIP_VECTORS; i++)
			acc[i] = add_group(f, total[i], vf_load(scale + g * STRIP + i * VF), min + g * STRIP + i * VF, x->scale[at],
					   x->sum[at], x->isum[at], acc[i]);
	}
}

YK_INLINE void strip(const int f, const uint8_t *const *row, const struct activations *x, int64_t m, float *y)
{
	vf acc[STRIP_VECTORS] = { { 0 } };
	int64_t g = 0;
	for (; g + CHUNK_GROUPS <= x->groups; g += CHUNK_GROUPS)
		add_groups(f, row, x, m, g, CHUNK_GROUPS, acc);
	for (; !is_long(f) && g < x->groups; g++)
		add_groups(f, row, x, m, g, 1, acc);
	for (int i = 0; i < STRIP_VECTORS; i++)
		vf_store(y + i * VF, acc[i]);
}

// ---- many rows of x: tiles ----

#if VF == 16
enum { TILE_ROWS = 12 };
#else
enum { TILE_ROWS = 6 };
#endif
enum { TILE_COLS = 2 * VF };

// Packs `groups` groups, beginning with group `from`, of TILE_COLS rows of w: panel
// [groups,16,TILE_COLS,2], scale and min [groups,step].
YK_INLINE void pack(const int f, const uint8_t *const *row, int64_t from, const int groups, int16_t *panel, float *scale, float *min,
		    int64_t step)
{
	const int bytes = block_bytes(f);
	const int64_t block = is_long(f) ? from / CHUNK_GROUPS : from;
	for (int i = 0; i < TILE_COLS; i += VF)
		scales_of_rows(f, row + i, block, groups, scale + i, min + i, (int)step);
	for (int r = 0; r < TILE_COLS; r++)
#pragma GCC unroll 8
		for (int g = 0; g < groups; g++) {
			const struct group q = group_of(f, row[r] + (is_long(f) ? block : block + g) * bytes, g, true);
			int16_t *to = panel + ((int64_t)g * (GROUP / 2) * TILE_COLS + r) * 2;
			int32_t two[GROUP / 2];
			memcpy(two, &q, sizeof two);
			for (int i = 0; i < GROUP / 2; i++)
				memcpy(to + (int64_t)i * TILE_COLS * 2, two + i, sizeof *two);
		}
}

// acc (rows, TILE_COLS), rows `step` apart, += x (rows) times a packed panel.
YK_INLINE void tile(const int f, const int rows, const struct activations *x, int64_t m, int64_t from, int64_t groups,
		    const int16_t *panel, const float *scale, const float *min, int64_t step, float *acc)
{
	for (int64_t g = 0; g < groups; g++, panel += GROUP * TILE_COLS, scale += step, min += step) {
		const int16_t *xg = x->q + m * x->k + (from + g) * GROUP;
		vi sum[TILE_ROWS][2];
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++)
			sum[r][0] = sum[r][1] = (vi){ 0 };
		for (int i = 0; i < GROUP / 2; i++) {
			vs w[2];
			memcpy(w, panel + (int64_t)i * TILE_COLS * 2, sizeof w);
#pragma GCC unroll 12
			for (int r = 0; r < rows; r++) {
				int32_t two;
				memcpy(&two, xg + r * x->k + 2 * i, sizeof two);
				const vs xv = (vs)vi_splat(two);
				sum[r][0] += pairs(w[0], xv);
				sum[r][1] += pairs(w[1], xv);
			}
		}
#pragma GCC unroll 12
		for (int r = 0; r < rows; r++) {
			const int64_t at = (m + r) * x->groups + from + g;
#pragma GCC unroll 2
			for (int i = 0; i < 2; i++) {
				float *to = acc + r * step + i * VF;
				vf_store(to, add_group(f, sum[r][i], vf_load(scale + i * VF), min + i * VF, x->scale[at],
						       x->sum[at], x->isum[at], vf_load(to)));
			}
		}
	}
}

#endif
