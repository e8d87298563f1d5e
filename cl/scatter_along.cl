// SPDX-License-Identifier: Apache-2.0
// SCATTER_ADD_ALONG: y is x, or zeros, plus values added at indices along one axis. Reference:
// kern_along.c of the CPU backend.
//
// scatter_check verifies all indices; then in scatter_along an item processes one line of y along
// the axis, or block_cols x block_rows lines, and adds in the order of the positions. If an index
// is rejected, y is not written.
#include "number.cl"
#include "axes.cl"
#include "report.cl"

#ifdef WIDE_IDS // the dtype of indices
typedef long id;
#else
typedef int id;
#endif

// All indices: tensors 0 the indices, 1 their positions.
KERNEL void scatter_check(GLOBAL uchar *ids, ulong ids_at, struct axes a, long N, ulong block_cols,
	ulong block_rows REPORT_PARAMS)
{
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)a.cols, rows = (ulong)a.rows;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;

	for (ulong r = r0; r < r1; r++) {
		GLOBAL const id *i = (GLOBAL const id *)(ids + ids_at) + row_of(&a, 0, r);
		for (ulong c = c0; c < c1; c++) {
			long n = i[(long)c * step_of(&a, 0)];
			if (n < 0 || n >= N)
				report_bad(REPORT_AT, (ulong)(row_of(&a, 1, r) +
							    (long)c * step_of(&a, 1)));
		}
	}
}

// The axes other than the summed one; tensors: 0 y, 1 x, 2 the indices, 3 v. step: their strides
// along the summed axis. SUMS: ACC differs from number, so sums are kept in the workspace.
struct lines {
	struct axes axes;
	long N, I, step[4];
	ulong has_x;
};

KERNEL void scatter_along(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from, ulong from_at,
	GLOBAL uchar *ids, ulong ids_at, GLOBAL uchar *add, ulong add_at, GLOBAL uchar *work,
	ulong work_at, struct lines l, ulong block_cols, ulong block_rows REPORT_PARAMS)
{
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)l.axes.cols, rows = (ulong)l.axes.rows;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;
	long step[4];

	if (has_report(REPORT_AT))
		return;
	for (int k = 0; k < 4; k++)
		step[k] = step_of(&l.axes, k);
	for (ulong r = r0; r < r1; r++) {
		GLOBAL number *y = NUMBERS(to, to_at) + row_of(&l.axes, 0, r);
		GLOBAL number *x = NUMBERS(from, from_at) + row_of(&l.axes, 1, r);
		GLOBAL id *idx = (GLOBAL id *)(ids + ids_at) + row_of(&l.axes, 2, r);
		GLOBAL number *v = NUMBERS(add, add_at) + row_of(&l.axes, 3, r);
#ifdef SUMS
		GLOBAL ACC *sum = (GLOBAL ACC *)(work + work_at) + r * cols;
		long sum_n = (long)(rows * cols), sum_c = 1;
#else
		GLOBAL number *sum = y;
		long sum_n = l.step[0], sum_c = step[0];
#endif
		for (long n = 0; n < l.N; n++) {
			for (long c = (long)c0; c < (long)c1; c++)
				sum[n * sum_n + c * sum_c] =
					l.has_x ? ACC_OF(x[n * l.step[1] + c * step[1]]) : 0;
		}
		for (long i = 0; i < l.I; i++) {
			for (long c = (long)c0; c < (long)c1; c++) {
				long n = idx[i * l.step[2] + c * step[2]];
				long at = n * sum_n + c * sum_c;
				sum[at] = (ACC)(sum[at] + ACC_OF(v[i * l.step[3] + c * step[3]]));
			}
		}
#ifdef SUMS
		for (long n = 0; n < l.N; n++) {
			for (long c = (long)c0; c < (long)c1; c++)
				y[n * l.step[0] + c * step[0]] = NUMBER_OF(sum[n * sum_n + c]);
		}
#endif
	}
}
