// SPDX-License-Identifier: Apache-2.0
// WINDOW_ADD (the gradient of windows): an item computes block_cols x block_rows elements of y,
// each the sum of the window elements at that position, in the windows' order. Reference:
// kern_window_add.c.
#include "number.cl"
#include "axes.cl"

struct window_add {
	struct axes axes; // y, windows without their axis, position along the axis
	long size, stride, dilation, count, step, element; // strides of windows, of their elements
};

KERNEL void window_add(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from, ulong from_at,
		       struct window_add w, ulong block_cols, ulong block_rows)
{
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)w.axes.cols, rows = (ulong)w.axes.rows;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;

	for (ulong r = r0; r < r1; r++) {
		GLOBAL number *y = NUMBERS(to, to_at) + row_of(&w.axes, 0, r);
		GLOBAL number *x = NUMBERS(from, from_at) + row_of(&w.axes, 1, r);
		long at = row_of(&w.axes, 2, r);
		for (ulong c = c0; c < c1; c++) {
			ACC sum = (ACC)0;
			long place = at + (long)c * step_of(&w.axes, 2);
			GLOBAL number *p = x + (long)c * step_of(&w.axes, 1);
			for (long k = 0; k < w.size; k++) {
				long first = place - k * w.dilation, q = first / w.stride;
				if (first >= 0 && first - q * w.stride == 0 && q < w.count)
					sum += ACC_OF(p[q * w.step + k * w.element]);
			}
			y[(long)c * step_of(&w.axes, 0)] = NUMBER_OF(sum);
		}
	}
}
