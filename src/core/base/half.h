// SPDX-License-Identifier: Apache-2.0
// Conversions between float and half-precision bits (f16, bf16), rounding to nearest even.
#ifndef YK_HALF_H
#define YK_HALF_H

#include <stdint.h>
#include <string.h>

static inline float yk_float_of_bf16(uint16_t h)
{
	uint32_t w = (uint32_t)h << 16;
	float f;
	memcpy(&f, &w, sizeof f);
	return f;
}

static inline uint16_t yk_bf16_of_float(float f)
{
	uint32_t w;
	memcpy(&w, &f, sizeof w);
	if (f != f)
		return (uint16_t)(w >> 16 | 0x40);
	return (uint16_t)((w + 0x7fff + (w >> 16 & 1)) >> 16);
}

static inline float yk_float_of_f16(uint16_t h)
{
	// rebias the exponent by 112; a subtraction normalizes subnormals; infinities and NaN are
	// special cases
	const uint32_t rest = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t w = rest + (112u << 23);
	float f;
	if ((rest & 0x0f800000) == 0x0f800000)
		w += 112u << 23;
	if (!(rest & 0x0f800000)) {
		w += 1u << 23;
		memcpy(&f, &w, sizeof f);
		f -= 0x1p-14f;
		memcpy(&w, &f, sizeof w);
	}
	w |= sign;
	memcpy(&f, &w, sizeof f);
	return f;
}

static inline uint16_t yk_f16_of_float(float f)
{
	uint32_t w, sign;
	memcpy(&w, &f, sizeof w);
	sign = w >> 16 & 0x8000;
	w &= 0x7fffffff;
	if (w > 0x7f800000)
		return (uint16_t)(sign | 0x7e00);
	if (w >= 0x477ff000) // rounds to more than 65504
		return (uint16_t)(sign | 0x7c00);
	if (w < 0x38800000) { // subnormal: adding 1/2 rounds it into the low bits
		float a;
		memcpy(&a, &w, sizeof a);
		a += 0.5f;
		memcpy(&w, &a, sizeof w);
		return (uint16_t)(sign | (w - 0x3f000000));
	}
	return (uint16_t)(sign | (w - (112u << 23) + 0xfff + (w >> 13 & 1)) >> 13);
}

#endif
