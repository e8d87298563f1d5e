// SPDX-License-Identifier: Apache-2.0
// SCAN: cumulative sums, or products with PROD, along one axis. Reference: kern_scan.c of the CPU
// backend.
//
// Lines are independent. A long axis is divided into segments by shape alone: scan with write 0
// stores each segment's total in the workspace, with write 1 it starts from the totals before it.
// An item processes a segment of up to TILE adjacent lines, which are `tile` columns of the axes;
// tensors of these: 0 y, 1 x. Items: tiles of columns, times segments, times rows, so that no item
// is idle if rows are not divided.
#include "number.cl"
#include "axes.cl"

#ifndef TILE
#define TILE 1
#endif
#ifdef PROD
#define JOIN(a, b) ((ACC)((a) * (b)))
#define NOTHING 1
#else
#define JOIN(a, b) ((ACC)((a) + (b)))
#define NOTHING 0
#endif

struct scan {
	struct axes axes;
	long n, ys, xs; // along the axis; negative steps scan from the end
	ulong segment, segments, tile, tiles;
};

KERNEL void scan(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from, ulong from_at,
	GLOBAL uchar *work, ulong work_at, struct scan s, ulong write)
{
	ulong units = s.tiles * s.segments, unit = GLOBAL_ID(0) % units, r = GLOBAL_ID(0) / units;
	ulong lines = (ulong)(s.axes.rows * s.axes.cols);
	if (r >= (ulong)s.axes.rows)
		return;
	ulong c0 = unit % s.tiles * s.tile, segment = unit / s.tiles;
	long n0 = (long)(segment * s.segment), n1 = n0 + (long)s.segment;
	long yc = step_of(&s.axes, 0), xc = step_of(&s.axes, 1);
	GLOBAL number *y = NUMBERS(to, to_at) + row_of(&s.axes, 0, r) + (long)c0 * yc;
	GLOBAL number *x = NUMBERS(from, from_at) + row_of(&s.axes, 1, r) + (long)c0 * xc;
	GLOBAL ACC *total = (GLOBAL ACC *)(work + work_at) + r * (ulong)s.axes.cols + c0;
	int cols = (int)((ulong)s.axes.cols - c0 < s.tile ? (ulong)s.axes.cols - c0 : s.tile);
	ACC acc[TILE];

	n1 = n1 < s.n ? n1 : s.n;
	for (int c = 0; c < cols; c++) {
		acc[c] = NOTHING;
		for (ulong k = 0; write && k < segment; k++)
			acc[c] = JOIN(acc[c], total[k * lines + (ulong)c]);
	}
	for (long n = n0; n < n1; n++) {
		if (!write) {
			EACH
			for (int c = 0; c < cols; c++)
				acc[c] = JOIN(acc[c], ACC_OF(x[n * s.xs + c * xc]));
			continue;
		}
		EACH
		for (int c = 0; c < cols; c++) {
			acc[c] = JOIN(acc[c], ACC_OF(x[n * s.xs + c * xc]));
			y[n * s.ys + c * yc] = NUMBER_OF(acc[c]);
		}
	}
	for (int c = 0; c < cols && !write; c++)
		total[segment * lines + (ulong)c] = acc[c];
}
