// SPDX-License-Identifier: Apache-2.0
// Copies of planes: rows of elements of 1, 2, 4 or 8 bytes, with any strides.
#ifndef YK_PLANE_H
#define YK_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../vector/second.h"
#include "../vector/vec.h"

// Copies n rows of 4-byte elements to dense ones: element k of a row is from[offset[k]], k < na,
// and the next row's is `step` further. False: a vector of the instruction set cannot hold the
// elements of two rows, or cannot be permuted.
static inline bool yk_plane_permuted(void *to, const void *from, int64_t n, int64_t na,
				     int64_t step, const int64_t *offset)
{
#if defined __AVX2__
	const float *x = from;
	float *y = to;
	int64_t last = 0, rows = VF / na; // per vector
	vi at = { 0 };

	for (int64_t k = 0; k < na; k++) {
		if (offset[k] < 0 || offset[k] >= VF)
			return false;
		last = offset[k] > last ? offset[k] : last;
	}
	while (rows > 1 && (rows - 1) * step + last >= VF)
		rows--;
	if (step < 0 || rows < 2)
		return false;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t k = 0; k < na; k++)
			at[r * na + k] = (int32_t)(r * step + offset[k]);
	for (; n > 0; n -= rows, x += rows * step, y += rows * na) {
		rows = rows < n ? rows : n;
		const vf v = vf_pick(vf_load_n(x, (rows - 1) * step + last + 1), at);
		// the next vector overwrites the lanes after these rows
		if (n * na >= VF)
			vf_store(y, v);
		else
			vf_store_n(y, v, rows * na);
	}
	return true;
#else
	(void)to, (void)from, (void)n, (void)na, (void)step, (void)offset;
	return false;
#endif
}

enum {
	YK_PLANE_SHORT = 8,  // rows that are copied column by column
	YK_PLANE_BLOCK = 512 // of so many rows at a time, which stay in L1
};

// Copies nb rows of na elements.
#define YK_PLANE(name, T) \
	static inline void name(T *y, const T *x, int64_t nb, int64_t na, int64_t to_b, \
				int64_t to_a, int64_t from_b, int64_t from_a) \
	{ \
		const bool seconds = to_a == 1 && from_a == 2 && sizeof(T) == 4; \
		if (na < YK_PLANE_SHORT && nb > na && !(seconds && na >= 4)) { \
			for (int64_t first = 0; first < nb; first += YK_PLANE_BLOCK) \
				for (int64_t a = 0; a < na; a++) \
					for (int64_t b = first; \
					     b < nb && b < first + YK_PLANE_BLOCK; b++) \
						y[b * to_b + a * to_a] = \
							x[b * from_b + a * from_a]; \
			return; \
		} \
		for (int64_t b = 0; b < nb; b++, y += to_b, x += from_b) { \
			if (to_a == 1 && from_a == 1) \
				vf_copy(y, x, (size_t)na * sizeof *y); \
			else if (to_a == 1 && from_a == 0) \
				for (int64_t a = 0; a < na; a++) \
					y[a] = x[0]; \
			else if (seconds) \
				yk_take_second(y, x, na); \
			else if (to_a == 1) \
				for (int64_t a = 0; a < na; a++) \
					y[a] = x[a * from_a]; \
			else \
				for (int64_t a = 0; a < na; a++) \
					y[a * to_a] = x[a * from_a]; \
		} \
	}
YK_PLANE(yk_plane_8, uint8_t)
YK_PLANE(yk_plane_16, uint16_t)
YK_PLANE(yk_plane_32, uint32_t)
YK_PLANE(yk_plane_64, uint64_t)
#undef YK_PLANE

// The same for elements of `size` bytes.
static inline void yk_plane(size_t size, void *y, const void *x, int64_t nb, int64_t na,
			    int64_t to_b, int64_t to_a, int64_t from_b, int64_t from_a)
{
	int64_t offset[YK_PLANE_SHORT];

	if (size == 4 && na > 1 && na < YK_PLANE_SHORT && to_a == 1 && to_b == na) {
		for (int64_t k = 0; k < na; k++)
			offset[k] = k * from_a;
		if (yk_plane_permuted(y, x, nb, na, from_b, offset))
			return;
	}
	switch (size) {
	case 1: yk_plane_8(y, x, nb, na, to_b, to_a, from_b, from_a); break;
	case 2: yk_plane_16(y, x, nb, na, to_b, to_a, from_b, from_a); break;
	case 4: yk_plane_32(y, x, nb, na, to_b, to_a, from_b, from_a); break;
	default: yk_plane_64(y, x, nb, na, to_b, to_a, from_b, from_a);
	}
}

#endif
