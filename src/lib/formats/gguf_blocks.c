// SPDX-License-Identifier: Apache-2.0
// Quantized blocks of GGUF files: integers of a few bits with one or more scales.  The layouts are
// those of llama.cpp (ggml-quants.h); a value is always scale * integer, or scale * integer -
// minimum.
#include "config.h"

#include "formats/gguf_blocks.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"

static float f16_at(const uint8_t *b)
{
	return yk_float_of_f16((uint16_t)(b[0] | b[1] << 8));
}

static uint32_t u32_at(const uint8_t *b)
{
	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

// ---- 32 elements: byte j of the nibbles has element j low and element j + 16 high ----

static int nibble(const uint8_t *nibbles, int i)
{
	return i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
}

// f16 d, nibbles
static void q4_0(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 32; i++)
		y[i] = f16_at(b) * (float)(nibble(b + 2, i) - 8);
}

// f16 d, f16 m, nibbles
static void q4_1(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 32; i++)
		y[i] = f16_at(b) * (float)nibble(b + 4, i) + f16_at(b + 2);
}

// f16 d, u32 fifth bits, nibbles
static void q5_0(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 32; i++)
		y[i] = f16_at(b) *
		       (float)((nibble(b + 6, i) | (int)(u32_at(b + 2) >> i & 1) << 4) - 16);
}

// f16 d, f16 m, u32 fifth bits, nibbles
static void q5_1(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 32; i++)
		y[i] = f16_at(b) * (float)(nibble(b + 8, i) | (int)(u32_at(b + 4) >> i & 1) << 4) +
		       f16_at(b + 2);
}

// f16 d, 32 x i8
static void q8_0(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 32; i++)
		y[i] = f16_at(b) * (float)(int8_t)b[2 + i];
}

// f16 d, nibbles: indices of a nonuniform grid
static const int8_t iq4_grid[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
				     1,    13,   25,  38,  53,  69,  89,  113 };
static void iq4_nl(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 32; i++)
		y[i] = f16_at(b) * (float)iq4_grid[nibble(b + 2, i)];
}

// u8 exponent, nibbles: 4-bit floating point, here in halves (OCP Microscaling Formats 1.0)
static void mxfp4(const uint8_t *restrict b, float *restrict y)
{
	static const int8_t halves[16] = {
		0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
	};
	for (int i = 0; i < 32; i++)
		y[i] = ldexpf((float)halves[nibble(b + 1, i)], b[0] - 128);
}

// ---- 256 elements in groups with scales of a few bits ----

// The 6-bit scale and minimum of group j of 8 (Q4_K, Q5_K), from 12 bytes.
static void scale_and_min(const uint8_t *s, int j, int *scale, int *min)
{
	*scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
	*min = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

// f16 d, f16 D, 12 bytes of scales, nibbles: each 32 bytes hold 32 elements low, the next 32 high.
// With fifth bits, bit g of byte l of them belongs to element l of group g.
static void k_of_8(const uint8_t *b, const uint8_t *fifth, const uint8_t *nibbles,
		   float *restrict y)
{
	for (int g = 0; g < 8; g++) {
		int scale, min;
		scale_and_min(b + 4, g, &scale, &min);
		const float d = f16_at(b) * (float)scale, m = f16_at(b + 2) * (float)min;
		for (int l = 0; l < 32; l++) {
			const uint8_t byte = nibbles[g / 2 * 32 + l];
			const int q = (g % 2 ? byte >> 4 : byte & 15) |
				      (fifth ? (fifth[l] >> g & 1) << 4 : 0);
			y[32 * g + l] = d * (float)q - m;
		}
	}
}

static void q4_k(const uint8_t *restrict b, float *restrict y)
{
	k_of_8(b, NULL, b + 16, y);
}

static void q5_k(const uint8_t *restrict b, float *restrict y)
{
	k_of_8(b, b + 16, b + 48, y);
}

// 128 bytes of low nibbles, 64 of high pairs of bits, 16 x i8 scales, f16 d
static void q6_k(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 256; i++) {
		// four groups of 32 in each half share bytes: two in low, two in high nibbles
		const int half = i / 128, group = i % 128 / 32, l = i % 32;
		const uint8_t low = b[64 * half + 32 * (group % 2) + l],
			      high = b[128 + 32 * half + l];
		const int q = (group < 2 ? low & 15 : low >> 4) | (high >> 2 * group & 3) << 4;
		y[i] = f16_at(b + 208) * (float)(int8_t)b[192 + i / 16] * (float)(q - 32);
	}
}

// Pair of bits of element i (Q2_K, Q3_K): four groups of 32 share 32 bytes.
static int pair(const uint8_t *pairs, int i)
{
	return pairs[i / 128 * 32 + i % 32] >> 2 * (i % 128 / 32) & 3;
}

// 16 bytes of scale and minimum by 16 elements, pairs, f16 d, f16 D
static void q2_k(const uint8_t *restrict b, float *restrict y)
{
	for (int i = 0; i < 256; i++)
		y[i] = f16_at(b + 80) * (float)(b[i / 16] & 15) * (float)pair(b + 16, i) -
		       f16_at(b + 82) * (float)(b[i / 16] >> 4);
}

// 32 bytes of third bits, inverted; pairs; 12 bytes of 6-bit scales by 16 elements; f16 d
static void q3_k(const uint8_t *restrict b, float *restrict y)
{
	const uint8_t *s = b + 96;
	for (int i = 0; i < 256; i++) {
		const int g = i / 16, low = g < 8 ? s[g] & 15 : s[g - 8] >> 4,
			  scale = low | (s[8 + g % 4] >> 2 * (g / 4) & 3) << 4;
		const int q = pair(b + 32, i) - (b[i % 32] >> (i / 32) & 1 ? 0 : 4);
		y[i] = f16_at(b + 108) * (float)(scale - 32) * (float)q;
	}
}

// f16 d, u16 high bits of the scales, 4 bytes of low nibbles of the scales, nibbles as in iq4_nl
static void iq4_xs(const uint8_t *restrict b, float *restrict y)
{
	for (int g = 0; g < 8; g++) {
		const int high = (b[2] | b[3] << 8) >> 2 * g & 3,
			  low = b[4 + g / 2] >> 4 * (g % 2) & 15;
		for (int l = 0; l < 32; l++)
			y[32 * g + l] = f16_at(b) * (float)((low | high << 4) - 32) *
					(float)iq4_grid[nibble(b + 8 + 16 * g, l)];
	}
}

static const struct {
	enum yk_gguf_format format;
	void (*convert)(const uint8_t *restrict block, float *restrict to);
} blocks[] = {
	{ YK_GGUF_Q4_0, q4_0 },   { YK_GGUF_Q4_1, q4_1 },     { YK_GGUF_Q5_0, q5_0 },
	{ YK_GGUF_Q5_1, q5_1 },   { YK_GGUF_Q8_0, q8_0 },     { YK_GGUF_Q2_K, q2_k },
	{ YK_GGUF_Q3_K, q3_k },   { YK_GGUF_Q4_K, q4_k },     { YK_GGUF_Q5_K, q5_k },
	{ YK_GGUF_Q6_K, q6_k },   { YK_GGUF_IQ4_NL, iq4_nl }, { YK_GGUF_IQ4_XS, iq4_xs },
	{ YK_GGUF_MXFP4, mxfp4 },
};

bool yk_gguf_to_f32(enum yk_gguf_format format, const void *from, size_t n, float *to)
{
	unsigned elements, bytes;
	const uint8_t *at = from;
	for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
		if (blocks[k].format != format || !yk_gguf_format_name(format, &elements, &bytes))
			continue;
		for (size_t i = 0; i < n; i += elements, at += bytes)
			blocks[k].convert(at, to + i);
		return true;
	}
	return false;
}
