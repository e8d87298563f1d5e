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
	CHANNELS = 8,            // leading indices that read an entry together
	SPARSE_ROWS = 64,        // rows of results that are transposed back at a time
	SPARSE_COLUMNS = 1 << 13 // max columns: they stay in L2
};

typedef float lanes __attribute__((vector_size(CHANNELS * sizeof(float))));

struct sparse_lanes {
	const float *x, *w; // x: channels xs apart, w [rows,taps]
	const int32_t *idx; // [rows,taps]: columns of x; -1: none
	float *y;           // channels ys apart
	int64_t xs, ys, columns, rows, taps;
};

// Bytes of scratch.
static inline size_t sparse_lanes_size(int64_t columns)
{
	return ((size_t)columns + 1) * sizeof(lanes);
}

// One row's sum of `taps` products; column -1 is zero, and so is its factor.
YK_INLINE void sparse_lanes_sum(lanes *to, const lanes *column, const int32_t *idx, const float *w,
				int64_t taps)
{
	lanes sum = { 0 };

	for (int64_t t = 0; t < taps; t++)
		sum += column[idx[t]] * (idx[t] < 0 ? 0 : w[t]);
	*to = sum;
}

// scratch: of sparse_lanes_size bytes, aligned to 64.
static void sparse_lanes(const struct sparse_lanes *s, void *scratch)
{
	lanes *const column = (lanes *)scratch + 1, sums[SPARSE_ROWS];
	const int32_t *idx = s->idx;
	const float *w = s->w;

	memset(scratch, 0, sizeof(lanes));
	pack_transposed((float *)column, CHANNELS, (const char *)s->x,
			s->xs * (int64_t)sizeof(float), CHANNELS, s->columns);
	for (int64_t i = 0; i < s->rows; i += SPARSE_ROWS) {
		const int64_t n = i + SPARSE_ROWS < s->rows ? SPARSE_ROWS : s->rows - i;
		for (int64_t r = 0; r < n; r++, idx += s->taps, w += s->taps)
			if (s->taps == 4)
				sparse_lanes_sum(&sums[r], column, idx, w, 4);
			else
				sparse_lanes_sum(&sums[r], column, idx, w, s->taps);
		pack_transposed(s->y + i, (int)s->ys, (const char *)sums, sizeof *sums, (int)n,
				CHANNELS);
	}
}

#endif
