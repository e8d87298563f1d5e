// SPDX-License-Identifier: Apache-2.0
// Products of a sparse matrix with several channels of an image: the channels are transposed once,
// so that an entry reads and multiplies all of them as a vector.
#ifndef YK_SPARSE_LANES_H
#define YK_SPARSE_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../cpu.h"

#define CELL float
#define CELL_ALIGN sizeof(float)
#include "../vector/transpose.h"

enum {
	SPARSE_LANES = 8,                   // channels of a vector
	SPARSE_CHANNELS = 2 * SPARSE_LANES, // max channels that read an entry together
	SPARSE_ROWS = 64,                   // rows of results that are transposed back at a time
	SPARSE_COLUMNS = 1 << 13            // max columns: they stay in L2
};

typedef float lanes __attribute__((vector_size(SPARSE_LANES * sizeof(float))));

struct sparse_lanes {
	const float *x, *w; // x: channels xs apart, w [rows,taps] or NULL: one tap of weight 1
	const int32_t *idx; // [rows,taps]: columns of x; -1: none
	float *y;           // channels ys apart
	int64_t xs, ys, columns, rows, taps;
};

// Bytes of scratch for `parts` vectors of channels.
static inline size_t sparse_lanes_size(int parts, int64_t columns)
{
	return ((size_t)columns + 1) * (size_t)parts * sizeof(lanes);
}

// One row's sum of `taps` products; column -1 is zero, and so is its factor.
YK_INLINE void sparse_lanes_sum(lanes *to, const int parts, const lanes *column, const int32_t *idx,
				const float *w, int64_t taps)
{
	lanes sum[SPARSE_CHANNELS / SPARSE_LANES] = { 0 };

	for (int64_t t = 0; t < taps; t++) {
		const lanes *from = column + (int64_t)idx[t] * parts;
		const float by = !w ? 1 : idx[t] < 0 ? 0 : w[t];
		for (int p = 0; p < parts; p++)
			sum[p] += w ? from[p] * by : from[p];
	}
	for (int p = 0; p < parts; p++)
		to[p] = sum[p];
}

// scratch: of sparse_lanes_size bytes, aligned to 64.
YK_INLINE void sparse_lanes(const struct sparse_lanes *s, const int parts, void *scratch)
{
	lanes *const column = (lanes *)scratch + parts,
		     sums[SPARSE_ROWS * SPARSE_CHANNELS / SPARSE_LANES];
	const int32_t *idx = s->idx;
	const float *w = s->w;

	memset(scratch, 0, (size_t)parts * sizeof(lanes));
	pack_transposed((float *)column, parts * SPARSE_LANES, (const char *)s->x,
			s->xs * (int64_t)sizeof(float), parts * SPARSE_LANES, s->columns);
	for (int64_t i = 0; i < s->rows; i += SPARSE_ROWS) {
		const int64_t n = i + SPARSE_ROWS < s->rows ? SPARSE_ROWS : s->rows - i;
		for (int64_t r = 0; r < n; r++, idx += s->taps, w += w ? s->taps : 0)
			if (!w)
				sparse_lanes_sum(&sums[r * parts], parts, column, idx, NULL, 1);
			else if (s->taps == 4)
				sparse_lanes_sum(&sums[r * parts], parts, column, idx, w, 4);
			else
				sparse_lanes_sum(&sums[r * parts], parts, column, idx, w, s->taps);
		pack_transposed(s->y + i, (int)s->ys, (const char *)sums,
				(int64_t)sizeof(lanes) * parts, (int)n, parts * SPARSE_LANES);
	}
}

#endif
