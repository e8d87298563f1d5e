// SPDX-License-Identifier: Apache-2.0
// The conversions of half.h on one vector, with the same bits: by the processor's own
// instructions for f16 where it has them. Those for bf16 flush subnormals, so bf16 is
// rounded as an integer.
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

// Past the caches as vf_stream; p is aligned to the vector.
static inline void vh_stream(uint16_t *p, vh h)
{
#if VF == 16
	_mm256_stream_si256((__m256i *)p, (__m256i)h);
#elif VF == 8
	_mm_stream_si128((__m128i *)p, (__m128i)h);
#else
	vh_store(p, h);
#endif
}

static inline vf vf_of_f16(vh h)
{
#if VF == 16
	return (vf)_mm512_cvtph_ps((__m256i)h);
#elif VF == 8 && defined __F16C__
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
#if VF == 16
	return (vh)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT);
#elif VF == 8 && defined __F16C__
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
	return (vf)(__builtin_convertvector(h, vi) << 16);
}

// Rounded to bf16, as f32.
static inline vf vf_round_bf16(vf x)
{
	vi u = (vi)x, r = u + 0x7fff + (u >> 16 & 1);
	return (vf)((vi)vf_select(x != x, (vf)(u | 0x400000), (vf)r) & -0x10000);
}

static inline vh vf_to_bf16(vf x)
{
	return __builtin_convertvector((vi)vf_round_bf16(x) >> 16, vh);
}

static inline vf vf_round_f16(vf x)
{
	return vf_of_f16(vf_to_f16(x));
}

#endif
