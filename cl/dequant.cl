// SPDX-License-Identifier: Apache-2.0
// DEQUANT: w u8 [N,bytes] -> y [N,K]. QGATHER: w, ids [I..] -> y [I..,K], rows of w. Reference:
// kern_dequant.c of the CPU backend, with the same bits.
//
// The axes are y's, but the last has steps of two quads, four in a group: e .. e + 3 and e + 16 ..
// e + 19 for e = 0, 4, 8, 12. An item computes a block of block_rows x block_cols of them: one on
// GPUs. Tensors of the axes: 0 y, 1 w (in bytes), 2 the ids, 3 the position to report. If an id is
// out of range, its row of y is left unchanged. IDS: bytes of an id; 0: DEQUANT. STORE: see
// rows.cl.
#include "axes.cl"
#include "quant.cl"
#include "report.cl"

#ifndef IDS
#define IDS 0
#endif
#if IDS
#if IDS == 8
typedef long id;
#else
typedef int id;
#endif
#define IDS_PARAMS , GLOBAL uchar *ids, ulong ids_at REPORT_PARAMS
#else
#define IDS_PARAMS
#endif

struct dequant {
	struct axes axes;
	long n, step, k; // rows of w, bytes between them, elements of a row
};

KERNEL void dequant(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from, ulong from_at,
		    struct dequant s, ulong block_cols, ulong block_rows IDS_PARAMS)
{
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)s.axes.cols, rows = (ulong)s.axes.rows;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;

	for (ulong r = r0; r < r1; r++) {
		GLOBAL stored *y = (GLOBAL stored *)(to + to_at) + row_of(&s.axes, 0, r);
		GLOBAL const uchar *w = from + from_at + row_of(&s.axes, 1, r);
#if IDS
		long n = ((GLOBAL id *)(ids + ids_at))[row_of(&s.axes, 2, r)];
		if (n < 0 || n >= s.n) {
			if (c0 < c1)
				report_bad(REPORT_AT, (ulong)row_of(&s.axes, 3, r));
			continue;
		}
		w += n * s.step;
#endif
		for (ulong c = c0; c < c1; c++) {
			struct group b = group_of(w, (long)(c / 4));
			UNROLL
			for (int h = 0; h < 2; h++) {
				int e = (int)(c % 4) * 4 + 16 * h;
				long at = (long)(c / 4) * 32 + e;
				float q[4];
				quad_numbers(&b, e, s.k - at, q);
				UNROLL
				for (int i = 0; i < 4; i++)
					q[i] = weight_of(&b, h, q[i]);
				quad_put(q, y + at, s.k - at);
			}
		}
	}
}
