// SPDX-License-Identifier: Apache-2.0
// AMX tiles: eight registers, of which 0 .. 3 hold sums, 4 and 5 rows of a, 6 and 7 columns of b.
// The tests define them in plain C, so that the code can run on other processors
// (tests/amx_emulated.h).
#ifndef YK_AMX_H
#define YK_AMX_H

#include <stdint.h>

#ifndef YK_AMX_EMULATED

#include <immintrin.h>

// The intrinsics of some compilers do not say which memory they access.
#define YK_TILE_BARRIER() __asm__ volatile("" : : : "memory")

static inline void yk_tile_configure(const void *shapes)
{
	YK_TILE_BARRIER();
	_tile_loadconfig(shapes);
}

// The tile number is part of the instruction, so it must be a constant.
#define yk_tile_zero(t) _tile_zero(t)
#define yk_tile_load(t, from, stride) \
	do { \
		YK_TILE_BARRIER(); \
		_tile_loadd(t, from, stride); \
	} while (0)
#define yk_tile_store(t, to, stride) \
	do { \
		_tile_stored(t, to, stride); \
		YK_TILE_BARRIER(); \
	} while (0)
#define yk_tile_multiply(c, a, b) _tile_dpbf16ps(c, a, b)
// products of bytes, signed or unsigned: first a, then b
#define yk_tile_multiply_ss(c, a, b) _tile_dpbssd(c, a, b)
#define yk_tile_multiply_su(c, a, b) _tile_dpbsud(c, a, b)
#define yk_tile_multiply_us(c, a, b) _tile_dpbusd(c, a, b)
#define yk_tile_multiply_uu(c, a, b) _tile_dpbuud(c, a, b)
#define yk_tile_release() _tile_release()

#endif

// Configures the tiles: sums [rows][16] of 32 bits, a [rows][bytes], b [bytes / 4][64 bytes], with
// rows <= 16 and bytes <= 64. All tiles are zero afterwards.
static inline void yk_tiles_begin(int rows, int bytes)
{
	struct {
		uint8_t palette, start, reserved[14];
		uint16_t bytes[16]; // per row
		uint8_t rows[16];
	} shapes = { .palette = 1 };

	for (int t = 0; t < 8; t++) {
		shapes.bytes[t] = (uint16_t)(t == 4 || t == 5 ? bytes : 64);
		shapes.rows[t] = (uint8_t)(t < 6 ? rows : bytes / 4);
	}
	yk_tile_configure(&shapes);
}

// Tiles in use make context switches more expensive.
static inline void yk_tiles_end(void)
{
	yk_tile_release();
}

#endif
