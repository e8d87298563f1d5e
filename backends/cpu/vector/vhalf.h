// SPDX-License-Identifier: Apache-2.0
// The conversions of half.h on vectors, with the same bits. f16 uses the processor's instructions
// where available. The instructions for bf16 flush subnormals, so bf16 is rounded with integer
// arithmetic.
#ifndef YK_VHALF_H
#define YK_VHALF_H

#include "half.h"
#include "vfun.h"

typedef uint16_t vh __attribute__((vector_size(VF * 2)));

static inline vh vh_load(const uint16_t *p)
{
	vh h;
	memcpy(&h, p, sizeof h);
	return h;
}

static inline void vh_store(uint16_t *p, vh h)
{
	memcpy(p, &h, sizeof h);
}

// The halves of two consecutive vectors.
typedef uint16_t vh2 __attribute__((vector_size(VF * 4)));

static inline void vh2_store(uint16_t *p, vh2 h)
{
	memcpy(p, &h, sizeof h);
}

// Non-temporal store as vf_stream; p is aligned to the vector.
static inline void vh2_stream(uint16_t *p, vh2 h)
{
	vf_stream((float *)(void *)p, (vf)h);
}

static inline vh2 vh2_join(vh a, vh b)
{
	vh2 h;
	memcpy(&h, &a, sizeof a);
	memcpy((char *)&h + sizeof a, &b, sizeof b);
	return h;
}

static inline vf vf_of_f16(vh h)
{
#if defined __AVX512F__
	return (vf)_mm512_cvtph_ps((__m256i)h);
#elif defined __F16C__
	return (vf)_mm256_cvtph_ps((__m128i)h);
#else
	float a[VF];
	YK_LANES
	for (int i = 0; i < VF; i++)
		a[i] = yk_f32_of_f16(h[i]);
	return vf_load(a);
#endif
}

static inline vh vf_to_f16(vf x)
{
#if defined __AVX512F__
	return (vh)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT);
#elif defined __F16C__
	return (vh)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
#else
	float a[VF];
	uint16_t h[VF];
	vf_store(a, x);
	YK_LANES
	for (int i = 0; i < VF; i++)
		h[i] = yk_f16_of_f32(a[i]);
	return vh_load(h);
#endif
}

static inline vf vf_of_bf16(vh h)
{
#if defined __AVX512F__
	// words 0, 1, 2, ... to the upper halves, zeros to the lower halves
	const vi to = vi_iota() * 0x10000;
	return (vf)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, (__m512i)to,
						  _mm512_castsi256_si512((__m256i)h));
#else
	return (vf)(__builtin_convertvector(h, vi) << 16);
#endif
}

// bf16 in the upper half of each 32-bit lane; the lower half is undefined.
static inline vi vi_bf16(vf x)
{
#if defined __AVX512F__
	__m512i u = (__m512i)x,
		odd = _mm512_and_epi32(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
	__m512i r = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
	__mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
	return (vi)_mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
#else
	typedef uint32_t vu __attribute__((vector_size(VF * 4))); // a NaN's bits may wrap around
	vu u = (vu)x, r = u + 0x7fff + (u >> 16 & 1);
	return (vi)vf_select(x != x, (vf)(u | 0x400000), (vf)r);
#endif
}

// Rounds to bf16; the result is f32.
static inline vf vf_round_bf16(vf x)
{
	return (vf)(vi_bf16(x) & -0x10000);
}

static inline vh vf_to_bf16(vf x)
{
#if defined __AVX512F__
	return (vh)_mm512_cvtepi32_epi16(_mm512_srli_epi32((__m512i)vi_bf16(x), 16));
#else
	return __builtin_convertvector(vi_bf16(x) >> 16, vh);
#endif
}

// Like vf_get, from f32, f16 or bf16.
YK_INLINE vf vf_get_as(const int dtype, const void *p, int64_t n)
{
	if (dtype == yoke_f32)
		return vf_get((const float *)p, n);
	vh h = { 0 };
	if (n >= VF)
		h = vh_load(p);
	else
		memcpy(&h, p, (size_t)n * sizeof(uint16_t));
	return dtype == yoke_bf16 ? vf_of_bf16(h) : vf_of_f16(h);
}

static inline vh2 vf2_to_f16(vf a, vf b)
{
	return vh2_join(vf_to_f16(a), vf_to_f16(b));
}

static inline vh2 vf2_to_bf16(vf a, vf b)
{
#if defined __AVX512F__
	const vi upper = vi_iota() * 0x40004 + 0x30001; // words 1, 3, 5, ...
	return (vh2)_mm512_permutex2var_epi16((__m512i)vi_bf16(a), (__m512i)upper,
					      (__m512i)vi_bf16(b));
#else
	return vh2_join(vf_to_bf16(a), vf_to_bf16(b));
#endif
}

static inline vf vf_round_f16(vf x)
{
	return vf_of_f16(vf_to_f16(x));
}

#endif
