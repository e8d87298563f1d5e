// SPDX-License-Identifier: Apache-2.0
// Decodes quantized weights (the block formats of GGUF). Reference: blocks.h of the CPU backend.
//
// A row of w consists of blocks. A group is 32 elements of a row, from a multiple of 32 on. A
// weight is scale * integer + min; a group has one scale and one minimum, but in Q6_K its halves
// have scales of their own. Elements are decoded in quads of four neighbours: their integers are
// first the bytes of a word, then floats.
// FORMAT is GGUF's number, with BLOCK_BYTES and BLOCK_GROUPS per block. F16 and BF16 (PLAIN) have
// any number of elements; their "integers" are the weights. ALIGN: all blocks are aligned to 1, 2
// or 4 bytes. Rows of other operands have the dtype STORE (rows.cl); with VEC_WIDTH 4 their quads
// are aligned as loads of four require.
#include "rows.cl"

#ifndef FORMAT
#define FORMAT 2
#endif
#ifndef ALIGN
#define ALIGN 1
#endif

#define BLOCK_GROUPS 1
#if FORMAT == 1 || FORMAT == 30 // F16, BF16
#define PLAIN
#define BLOCK_BYTES 64
#elif FORMAT == 2 // Q4_0
#define BLOCK_BYTES 18
#define MIDDLE 8
#define LOW_AT 2
#elif FORMAT == 3 // Q4_1
#define BLOCK_BYTES 20
#define HAS_MIN
#define LOW_AT 4
#elif FORMAT == 6 // Q5_0
#define BLOCK_BYTES 22
#define MIDDLE 16
#define HIGH_AT 2
#define LOW_AT 6
#elif FORMAT == 7 // Q5_1
#define BLOCK_BYTES 24
#define HAS_MIN
#define HIGH_AT 4
#define LOW_AT 8
#elif FORMAT == 8 // Q8_0
#define BLOCK_BYTES 34
#define MIDDLE 128 // the sign bit is inverted
#else
#undef BLOCK_GROUPS
#define BLOCK_GROUPS 8
#if FORMAT == 12 // Q4_K
#define BLOCK_BYTES 144
#define HAS_MIN
#define LOW_AT 16
#elif FORMAT == 13 // Q5_K
#define BLOCK_BYTES 176
#define HAS_MIN
#define HIGH_AT 16
#define LOW_AT 48
#else // Q6_K
#define BLOCK_BYTES 210
#define MIDDLE 32
#define HIGH_AT 128
#define LOW_AT 0
#endif
#endif
#ifndef MIDDLE
#define MIDDLE 0
#endif

FN uint two_bytes(GLOBAL const uchar *at)
{
#if ALIGN >= 2
	return *(GLOBAL const ushort *)at;
#else
	return at[0] | (uint)at[1] << 8;
#endif
}

FN uint four_bytes(GLOBAL const uchar *at)
{
#if ALIGN >= 4
	return *(GLOBAL const uint *)at;
#else
	return two_bytes(at) | two_bytes(at + 2) << 16;
#endif
}

FN float half_at(GLOBAL const uchar *at)
{
	return f32_of_f16((ushort)two_bytes(at));
}

struct group {
	GLOBAL const uchar *block;
	int number;     // in the block
	float scale[2]; // of the halves
	float min;
};

FN struct group group_of(GLOBAL const uchar *row, long number)
{
	struct group b;
	b.block = row + number / BLOCK_GROUPS * BLOCK_BYTES;
	b.number = (int)(number % BLOCK_GROUPS);
	b.min = 0.0f;
#ifdef PLAIN
	b.scale[0] = b.scale[1] = 1.0f;
#elif FORMAT == 14
	float d = half_at(b.block + 208);
	uint scales = two_bytes(b.block + 192 + 2 * b.number);
	b.scale[0] = d * (float)(schar)(uchar)(scales & 255u);
	b.scale[1] = d * (float)(schar)(uchar)(scales >> 8);
#elif BLOCK_GROUPS == 8
	// 6 bits each: low bits of groups 0 .. 3, of their minima, then nibbles of groups 4 .. 7
	GLOBAL const uchar *at = b.block + 4 + b.number % 4;
	uint low = at[0], min = at[4], scale = low & 63u;
	if (b.number >= 4) {
		uint nibbles = at[8];
		scale = (nibbles & 15u) | low >> 6 << 4;
		min = nibbles >> 4 | min >> 6 << 4;
	}
	b.scale[0] = b.scale[1] = half_at(b.block) * (float)(int)scale;
	b.min = -(half_at(b.block + 2) * (float)(int)(min & 63u));
#else
	b.scale[0] = b.scale[1] = half_at(b.block);
#ifdef HAS_MIN
	b.min = half_at(b.block + 2);
#endif
#endif
	return b;
}

#ifndef PLAIN
// The integers, plus MIDDLE, of elements e .. e + 3 of a group, as bytes; e is a multiple of 4.
FN uint quad_bytes(const struct group *b, int e)
{
#if FORMAT == 8
	return four_bytes(b->block + 2 + e) ^ 0x80808080u;
#else
	uint q;
#if FORMAT == 14
	q = four_bytes(b->block + b->number / 4 * 64 + b->number % 2 * 32 + e) >>
		    (b->number & 2) * 2 &
	    0x0f0f0f0fu;
	q |= (four_bytes(b->block + HIGH_AT + b->number / 4 * 32 + e) >> b->number % 4 * 2 &
	      0x03030303u)
	     << 4;
#elif BLOCK_GROUPS == 8
	q = four_bytes(b->block + LOW_AT + b->number / 2 * 32 + e) >> b->number % 2 * 4 &
	    0x0f0f0f0fu;
#ifdef HIGH_AT
	q |= (four_bytes(b->block + HIGH_AT + e) >> b->number & 0x01010101u) << 4;
#endif
#else
	q = four_bytes(b->block + LOW_AT + e % 16) >> e / 16 * 4 & 0x0f0f0f0fu;
#ifdef HIGH_AT
	// four bits, each to the fifth bit of a byte
	q |= ((four_bytes(b->block + HIGH_AT) >> e & 15u) * 0x00204081u & 0x01010101u) << 4;
#endif
#endif
	return q;
#endif
}
#endif

// The integers of elements e .. e + 3 of a group as floats; `left` elements of the row begin with
// the quad, and those after them are 0.
FN void quad_numbers(const struct group *b, int e, long left, float *to)
{
#ifdef PLAIN
	GLOBAL const uchar *at = b->block + 2 * e;
	uint words[2];
	if (left >= 4) {
		words[0] = four_bytes(at);
		words[1] = four_bytes(at + 4);
	} else {
		words[0] = left > 0 ? two_bytes(at) : 0u;
		words[0] |= left > 1 ? two_bytes(at + 2) << 16 : 0u;
		words[1] = left > 2 ? two_bytes(at + 4) : 0u;
	}
	UNROLL
	for (int i = 0; i < 4; i++) {
		ushort bits = (ushort)(words[i / 2] >> i % 2 * 16);
		to[i] = FORMAT == 1 ? f32_of_f16(bits) : f32_of_bf16(bits);
	}
#else
	uint q = quad_bytes(b, e);
	UNROLL
	for (int i = 0; i < 4; i++) // 2^23 + q, from bits: faster than a conversion
		to[i] = AS_FLOAT(0x4b000000u | (q >> 8 * i & 255u)) - (8388608.0f + MIDDLE);
#endif
}

// The weight from its integer, rounded as the CPU rounds it.
FN float weight_of(const struct group *b, int h, float q)
{
#ifdef HAS_MIN
	return b->scale[h] * q + b->min;
#elif defined PLAIN
	return q;
#else
	return b->scale[h] * q;
#endif
}

// ---- quads of the other operands ----

// `left` elements exist, and the others are 0.
FN void quad_get(GLOBAL const stored *from, long left, float *to)
{
#if VEC_WIDTH == 4
	VEC_TO(load(from, left < 4 ? (int)left : 4, 0.0f), to);
#else
	UNROLL
	for (int i = 0; i < 4; i++)
		to[i] = i < left ? load_one(from + i) : 0.0f;
#endif
}

FN void quad_put(const float *from, GLOBAL stored *to, long left)
{
#if VEC_WIDTH == 4
	store(VEC_OF(from), to, left < 4 ? (int)left : 4, false);
#else
	UNROLL
	for (int i = 0; i < 4; i++)
		if (i < left)
			store_one(from[i], to + i);
#endif
}
