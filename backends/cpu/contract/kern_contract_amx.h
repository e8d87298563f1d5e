// SPDX-License-Identifier: Apache-2.0
// AMX tiles: eight registers of 16 rows of 64 bytes, the largest configuration, all in use. With
// YK_AMX_EMULATED they are plain C, so that the code can be tested on other processors.
#ifndef YK_KERN_CONTRACT_AMX_H
#define YK_KERN_CONTRACT_AMX_H

#include <stdint.h>
#include <string.h>

#ifdef YK_AMX_EMULATED

static _Thread_local uint32_t yk_tile[8][16][16];

static inline void yk_tiles_begin(void)
{
	memset(yk_tile, 0x7f, sizeof yk_tile); // poison: nothing may rely on the initial content
}

static inline void yk_tiles_end(void)
{
}

static inline void yk_tile_zero(int t)
{
	memset(yk_tile[t], 0, sizeof yk_tile[t]);
}

static inline void yk_tile_load(int t, const void *from, int64_t stride)
{
	for (int i = 0; i < 16; i++)
		memcpy(yk_tile[t][i], (const char *)from + i * stride, 64);
}

static inline void yk_tile_store(int t, void *to, int64_t stride)
{
	for (int i = 0; i < 16; i++)
		memcpy((char *)to + i * stride, yk_tile[t][i], 64);
}

static inline float yk_tile_flush(uint32_t bits) // subnormals become zero
{
	float f;

	if (!(bits & 0x7f800000))
		bits &= 0x80000000;
	memcpy(&f, &bits, 4);
	return f;
}

// c[i][j] += a[i][2 l] b[l][2 j], then a[i][2 l + 1] b[l][2 j + 1], in the order of Intel's manual.
static inline void yk_tile_multiply(int c, int a, int b)
{
	for (int i = 0; i < 16; i++)
		for (int l = 0; l < 16; l++)
			for (int j = 0; j < 16; j++) {
				uint32_t x = yk_tile[a][i][l], y = yk_tile[b][l][j], u;
				float sum = yk_tile_flush(yk_tile[c][i][j]);
				sum += yk_tile_flush(x << 16) * yk_tile_flush(y << 16);
				sum += yk_tile_flush(x & 0xffff0000) *
				       yk_tile_flush(y & 0xffff0000);
				memcpy(&u, &sum, 4);
				yk_tile[c][i][j] = u;
			}
}

#else

#include <immintrin.h>

static inline void yk_tiles_begin(void)
{
	struct {
		uint8_t palette, start, reserved[14];
		uint16_t bytes[16]; // bytes per row
		uint8_t rows[16];
	} config = { .palette = 1 };

	for (int t = 0; t < 8; t++) {
		config.bytes[t] = 64;
		config.rows[t] = 16;
	}
	_tile_loadconfig(&config);
}

// Tiles in use make context switches more expensive.
static inline void yk_tiles_end(void)
{
	_tile_release();
}

// The tile number is part of the instruction, so it must be a constant.
#define yk_tile_zero(t) _tile_zero(t)
#define yk_tile_load(t, from, stride) _tile_loadd(t, from, stride)
#define yk_tile_store(t, to, stride) _tile_stored(t, to, stride)
#define yk_tile_multiply(c, a, b) _tile_dpbf16ps(c, a, b)

#endif

#endif
