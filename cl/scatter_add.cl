// SPDX-License-Identifier: Apache-2.0
// SCATTER_ADD, the sums: an item computes block_cols x block_rows elements of y.
#include "number.cl"
#include "scatter.cl"

#ifndef COLUMNS // columns of a row that an item sums at a time
#define COLUMNS 1
#endif

KERNEL void scatter_add(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from, ulong from_at,
	GLOBAL uchar *add, ulong add_at, GLOBAL uchar *work, ulong work_at, struct scatter s,
	ulong block_cols, ulong block_rows REPORT_PARAMS)
{
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)s.R, rows = (ulong)s.N;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;
	ACC sum[COLUMNS];

	if (has_report(REPORT_AT))
		return;
	for (ulong r = r0; r < r1; r++) {
		uint begin = r ? ENDS[r - 1] : 0, end = ENDS[r];
		for (ulong c = c0; c < c1; c += COLUMNS) {
			GLOBAL number *y = NUMBERS(to, to_at) + (long)r * s.ys + (long)c;
			GLOBAL number *x = NUMBERS(from, from_at) + (long)r * s.xs + (long)c;
			int n = (int)(c1 - c < COLUMNS ? c1 - c : COLUMNS);
			if (s.has_x) {
				EACH
				for (int k = 0; k < n; k++)
					sum[k] = ACC_OF(x[k]);
			} else {
				EACH
				for (int k = 0; k < n; k++)
					sum[k] = 0;
			}
			for (uint p = begin; p < end; p++) {
				GLOBAL number *v = NUMBERS(add, add_at) +
						   row_of(&s.axes, 1, ORDER[p]) + (long)c;
				EACH
				for (int k = 0; k < n; k++)
					sum[k] = (ACC)(sum[k] + ACC_OF(v[k]));
			}
			EACH
			for (int k = 0; k < n; k++)
				y[k] = NUMBER_OF(sum[k]);
		}
	}
}
