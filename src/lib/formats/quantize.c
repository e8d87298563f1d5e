// SPDX-License-Identifier: Apache-2.0
// Quantization on the host, with the arithmetic of the Python package gguf (quants.py), so that the
// bytes are equal: each operation rounds to f32, and no expression may be rearranged.
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "yoke-quant.h"

enum { BLOCK = 32 };

static void put16(uint8_t *to, uint16_t v)
{
	to[0] = (uint8_t)v;
	to[1] = (uint8_t)(v >> 8);
}

static float inverse(float d)
{
	return d == 0 ? 0 : 1 / d;
}

// v without its fraction, limited to 0 .. max
static uint8_t limited(float v, int max)
{
	if (!(v >= 1))
		return 0;
	return (uint8_t)(v >= (float)max ? max : (int)v);
}

// Byte j gets the low 4 bits of elements j and j + 16; `fifth`: bit j of its 4 bytes is bit 4 of
// element j.
static void pack(const uint8_t *q, uint8_t *fifth, uint8_t *nibbles)
{
	for (int j = 0; j < BLOCK / 2; j++)
		nibbles[j] = (uint8_t)((q[j] & 15) | (q[j + BLOCK / 2] & 15) << 4);
	for (int j = 0; fifth && j < BLOCK; j++)
		fifth[j / 8] = (uint8_t)((j % 8 ? fifth[j / 8] : 0) | (q[j] >> 4) << j % 8);
}

// Q4_0, Q5_0: the first element of the largest modulus becomes -half.
static void symmetric(const float *x, int half, uint8_t *to)
{
	float max = x[0];
	uint8_t q[BLOCK];
	for (int i = 1; i < BLOCK; i++)
		if (fabsf(x[i]) > fabsf(max))
			max = x[i];
	const float d = max / (float)-half, id = inverse(d);
	for (int i = 0; i < BLOCK; i++)
		q[i] = limited(x[i] * id + ((float)half + 0.5f), 2 * half - 1);
	put16(to, yk_f16_of_float(d));
	pack(q, half == 16 ? to + 2 : NULL, to + (half == 16 ? 6 : 2));
}

// Q4_1, Q5_1: the range from the smallest to the largest element in `steps` steps.
static void ranged(const float *x, int steps, uint8_t *to)
{
	float min = x[0], max = x[0];
	uint8_t q[BLOCK];
	for (int i = 1; i < BLOCK; i++) {
		min = x[i] < min ? x[i] : min;
		max = x[i] > max ? x[i] : max;
	}
	const float d = (max - min) / (float)steps, id = inverse(d);
	for (int i = 0; i < BLOCK; i++)
		q[i] = limited((x[i] - min) * id + 0.5f, steps);
	put16(to, yk_f16_of_float(d));
	put16(to + 2, yk_f16_of_float(min));
	pack(q, steps == 31 ? to + 4 : NULL, to + (steps == 31 ? 8 : 4));
}

static void q8_0(const float *x, uint8_t *to)
{
	float max = 0;
	for (int i = 0; i < BLOCK; i++)
		max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
	const float d = max / 127, id = inverse(d);
	put16(to, yk_f16_of_float(d));
	for (int i = 0; i < BLOCK; i++) {
		const float q = roundf(x[i] * id);
		to[2 + i] = (uint8_t)(int8_t)(q >= -127 && q <= 127 ? (int)q :
					      q < 0                 ? -127 :
					      q > 0                 ? 127 :
								      0);
	}
}

static void block(int format, const float *x, uint8_t *to)
{
	uint16_t half;
	switch (format) {
	case YOKE_QUANT_F32: memcpy(to, x, sizeof *x); break;
	case YOKE_QUANT_F16:
	case YOKE_QUANT_BF16:
		half = format == YOKE_QUANT_F16 ? yk_f16_of_float(*x) : yk_bf16_of_float(*x);
		memcpy(to, &half, sizeof half);
		break;
	case YOKE_QUANT_Q4_0: symmetric(x, 8, to); break;
	case YOKE_QUANT_Q4_1: ranged(x, 15, to); break;
	case YOKE_QUANT_Q5_0: symmetric(x, 16, to); break;
	case YOKE_QUANT_Q5_1: ranged(x, 31, to); break;
	default: q8_0(x, to);
	}
}

int yoke_quantize(int format, int64_t rows, int64_t k, const float *from, void *to)
{
	const bool single =
		format == YOKE_QUANT_F32 || format == YOKE_QUANT_F16 || format == YOKE_QUANT_BF16;
	int64_t n, size;
	if (!single && (format < YOKE_QUANT_Q4_0 || format > YOKE_QUANT_Q8_0 ||
			!yoke_quant_bytes(format, BLOCK)))
		return yk_fail(YOKE_EINVAL,
			       "quantize: writes F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0, "
			       "not format %d",
			       format);
	const int64_t bytes = yoke_quant_bytes(format, k);
	if (!bytes || rows < 0 || __builtin_mul_overflow(rows, k, &n) ||
	    __builtin_mul_overflow(rows, bytes, &size))
		return yk_fail(
			YOKE_ESHAPE,
			"quantize: %lld rows of %lld elements; a row has a positive multiple of %d",
			(long long)rows, (long long)k, single ? 1 : BLOCK);
	if (n && (!from || !to))
		return yk_fail(YOKE_EINVAL, "quantize: %s is NULL",
			       from ? "the destination" : "the source");
	for (int64_t i = 0; !single && i < n; i++)
		if (!isfinite(from[i]))
			return yk_fail(YOKE_ERANGE,
				       "quantize: element %lld of row %lld is %g; blocks hold "
				       "finite numbers only",
				       (long long)(i % k), (long long)(i / k), (double)from[i]);
	const int64_t step = single ? 1 : BLOCK, length = yoke_quant_bytes(format, step);
	for (int64_t i = 0; i < n / step; i++)
		block(format, from + i * step, (uint8_t *)to + i * length);
	return 0;
}
