// SPDX-License-Identifier: Apache-2.0
// GATHER, GATHER_ALONG and CHECK: an element of y is the element of x given by an index, or x's
// own. References: kern_gather.c, kern_along.c, kern_check.c of the CPU backend.
//
// Tensors of the axes: 0 y, 1 x (stride 0 along the indexed axis), 2 the indices, 3 the position to
// report. An item computes a block of block_rows x block_cols elements: one element on GPUs. If an
// index is out of range, y is left unchanged there.
// MODE 0: one index per row, 1: one index per element, 2: no index (CHECK). FINITE is the mask of
// the exponent bits; an element with all of them set (infinity or NaN) is reported.
#include "axes.cl"
#include "report.cl"

#ifndef MODE
#define MODE 0
#endif
#ifdef WIDE_IDS // the dtype of indices
typedef long id;
#else
typedef int id;
#endif

struct gather {
	struct axes axes;
	long size, step; // of x along the indexed axis
};

FN bool inside(long n, const struct gather *g)
{
	return n >= 0 && n < g->size;
}

KERNEL void gather(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from, ulong from_at,
	GLOBAL uchar *ids, ulong ids_at, struct gather g, ulong block_cols, ulong block_rows
	REPORT_PARAMS)
{
	long ys = step_of(&g.axes, 0), xs = step_of(&g.axes, 1);
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)g.axes.cols, rows = (ulong)g.axes.rows;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;

	for (ulong r = r0; r < r1; r++) {
		GLOBAL unit *y = UNITS(to, to_at) + row_of(&g.axes, 0, r);
		GLOBAL unit *x = UNITS(from, from_at) + row_of(&g.axes, 1, r);
#if MODE == 2
		ulong bad = 0;
		EACH
		for (ulong c = c0; c < c1; c++) {
			unit v = x[(long)c * xs];
			y[(long)c * ys] = v;
			bad |= (v & (unit)FINITE) == (unit)FINITE ? 1ul : 0ul;
		}
		for (ulong c = c0; bad && c < c1; c++)
			if ((x[(long)c * xs] & (unit)FINITE) == (unit)FINITE)
				report_bad(REPORT_AT, (ulong)(row_of(&g.axes, 3, r) +
							    (long)c * step_of(&g.axes, 3)));
#else
		GLOBAL id *i = (GLOBAL id *)(ids + ids_at) + row_of(&g.axes, 2, r);
#if MODE == 0
		long n = *i;
		if (!inside(n, &g)) {
			if (c0 < c1)
				report_bad(REPORT_AT, (ulong)row_of(&g.axes, 3, r));
			continue;
		}
		x += n * g.step;
		if (ys == 1 && xs == 1) {
			EACH
			for (ulong c = c0; c < c1; c++)
				y[c] = x[c];
			continue;
		}
		EACH
		for (ulong c = c0; c < c1; c++)
			y[(long)c * ys] = x[(long)c * xs];
#else
		long is = step_of(&g.axes, 2);
		for (ulong c = c0; c < c1; c++) {
			long n = i[(long)c * is];
			if (inside(n, &g))
				y[(long)c * ys] = x[(long)c * xs + n * g.step];
			else
				report_bad(REPORT_AT, (ulong)(row_of(&g.axes, 3, r) +
							    (long)c * step_of(&g.axes, 3)));
		}
#endif
#endif
	}
}
