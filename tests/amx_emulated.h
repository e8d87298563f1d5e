// SPDX-License-Identifier: Apache-2.0
// AMX in plain C, for tests on processors without it: tiles of up to 16 rows of 64 bytes whose
// shapes are configured. Follows the pseudocode of Intel's manual; an instruction that would fault
// prints a line and aborts. A test compiles kernels with this header included first.
#ifndef YK_AMX_EMULATED
#define YK_AMX_EMULATED

#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { YK_TILES = 8, YK_TILE_ROWS = 16, YK_TILE_BYTES = 64 };

static _Thread_local struct {
	bool configured;
	uint16_t bytes[YK_TILES]; // per row
	uint8_t rows[YK_TILES];
	uint8_t data[YK_TILES][YK_TILE_ROWS][YK_TILE_BYTES];
} yk_tiles;

static inline void yk_tile_check(bool valid, const char *instruction)
{
	if (valid)
		return;
	fprintf(stderr, "AMX emulation: %s faults\n", instruction);
	abort();
}

// LDTILECFG: byte 0 the palette, byte 1 the start row, bytes 16 .. the tiles' bytes per row in 16
// bits, bytes 48 .. their rows.
static inline void yk_tile_configure(const void *memory)
{
	uint8_t c[64];
	memcpy(c, memory, sizeof c);
	memset(&yk_tiles, 0, sizeof yk_tiles);
	yk_tile_check(c[0] <= 1, "ldtilecfg: palette");
	yk_tile_check(!c[1], "ldtilecfg: a start row, which is not emulated,");
	if (c[0] == 0)
		return;
	for (int i = 2; i < 16; i++)
		yk_tile_check(!c[i], "ldtilecfg: reserved bytes");
	for (int t = 0; t < 16; t++) {
		const int bytes = c[16 + 2 * t] | c[17 + 2 * t] << 8, rows = c[48 + t];
		if (t >= YK_TILES) {
			yk_tile_check(!bytes && !rows, "ldtilecfg: tile number");
			continue;
		}
		yk_tile_check(rows <= YK_TILE_ROWS && bytes <= YK_TILE_BYTES && !rows == !bytes,
			      "ldtilecfg: shape");
		yk_tiles.bytes[t] = (uint16_t)bytes;
		yk_tiles.rows[t] = (uint8_t)rows;
	}
	yk_tiles.configured = true;
}

static inline void yk_tile_release(void)
{
	memset(&yk_tiles, 0, sizeof yk_tiles);
}

static inline void yk_tile_used(int t, const char *instruction)
{
	yk_tile_check(yk_tiles.configured && t >= 0 && t < YK_TILES && yk_tiles.rows[t],
		      instruction);
}

static inline void yk_tile_zero(int t)
{
	yk_tile_used(t, "tilezero");
	memset(yk_tiles.data[t], 0, sizeof yk_tiles.data[t]);
}

static inline void yk_tile_load(int t, const void *from, int64_t stride)
{
	yk_tile_used(t, "tileloadd");
	memset(yk_tiles.data[t], 0, sizeof yk_tiles.data[t]);
	for (int i = 0; i < yk_tiles.rows[t]; i++)
		memcpy(yk_tiles.data[t][i], (const char *)from + i * stride, yk_tiles.bytes[t]);
}

static inline void yk_tile_store(int t, void *to, int64_t stride)
{
	yk_tile_used(t, "tilestored");
	for (int i = 0; i < yk_tiles.rows[t]; i++)
		memcpy((char *)to + i * stride, yk_tiles.data[t][i], yk_tiles.bytes[t]);
}

// The conditions of all products; returns the depth in words of 32 bits.
static inline int yk_tile_product(int c, int a, int b, const char *instruction)
{
	yk_tile_used(c, instruction);
	yk_tile_used(a, instruction);
	yk_tile_used(b, instruction);
	yk_tile_check(c != a && c != b && a != b && yk_tiles.bytes[a] % 4 == 0 &&
			      yk_tiles.bytes[b] % 4 == 0 && yk_tiles.bytes[c] % 4 == 0 &&
			      yk_tiles.bytes[c] == yk_tiles.bytes[b] &&
			      yk_tiles.rows[c] == yk_tiles.rows[a] &&
			      yk_tiles.bytes[a] / 4 == yk_tiles.rows[b],
		      instruction);
	return yk_tiles.rows[b];
}

static inline uint32_t yk_tile_word(int t, int row, int column)
{
	uint32_t word;
	memcpy(&word, yk_tiles.data[t][row] + 4 * column, sizeof word);
	return word;
}

static inline void yk_tile_put(int t, int row, int column, uint32_t word)
{
	memcpy(yk_tiles.data[t][row] + 4 * column, &word, sizeof word);
}

static inline float yk_tile_flush(uint32_t bits) // subnormals become zero
{
	float f;
	if (!(bits & 0x7f800000))
		bits &= 0x80000000;
	memcpy(&f, &bits, 4);
	return f;
}

// TDPBF16PS. c[i][j] += a[i][2 l] b[l][2 j], then a[i][2 l + 1] b[l][2 j + 1], in the order of
// Intel's manual.
static inline void yk_tile_multiply(int c, int a, int b)
{
	const int depth = yk_tile_product(c, a, b, "tdpbf16ps");
	for (int i = 0; i < yk_tiles.rows[c]; i++)
		for (int l = 0; l < depth; l++)
			for (int j = 0; j < yk_tiles.bytes[c] / 4; j++) {
				const uint32_t x = yk_tile_word(a, i, l), y = yk_tile_word(b, l, j);
				uint32_t u;
				float sum = yk_tile_flush(yk_tile_word(c, i, j));
				sum += yk_tile_flush(x << 16) * yk_tile_flush(y << 16);
				sum += yk_tile_flush(x & 0xffff0000) *
				       yk_tile_flush(y & 0xffff0000);
				memcpy(&u, &sum, 4);
				yk_tile_put(c, i, j, u);
			}
}

// TDPBSSD and its variants: sums modulo 2^32 of the products of four bytes, each signed or not.
static inline void yk_tile_bytes(int c, int a, bool a_signed, int b, bool b_signed)
{
	const int depth = yk_tile_product(c, a, b, "tdpb**d");
	for (int i = 0; i < yk_tiles.rows[c]; i++)
		for (int l = 0; l < depth; l++)
			for (int j = 0; j < yk_tiles.bytes[c] / 4; j++) {
				uint32_t sum = yk_tile_word(c, i, j);
				for (int p = 0; p < 4; p++) {
					const uint8_t x = yk_tiles.data[a][i][4 * l + p],
						      y = yk_tiles.data[b][l][4 * j + p];
					sum += (uint32_t)((a_signed ? (int8_t)x : x) *
							  (b_signed ? (int8_t)y : y));
				}
				yk_tile_put(c, i, j, sum);
			}
}

static inline void yk_tile_multiply_ss(int c, int a, int b)
{
	yk_tile_bytes(c, a, true, b, true);
}

static inline void yk_tile_multiply_su(int c, int a, int b)
{
	yk_tile_bytes(c, a, true, b, false);
}

static inline void yk_tile_multiply_us(int c, int a, int b)
{
	yk_tile_bytes(c, a, false, b, true);
}

static inline void yk_tile_multiply_uu(int c, int a, int b)
{
	yk_tile_bytes(c, a, false, b, false);
}

#endif
