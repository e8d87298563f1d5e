// SPDX-License-Identifier: Apache-2.0
// SCATTER_ADD: y is x, or zeros, plus the rows of v at the given indices. Reference:
// kern_gather_add.c of the CPU backend.
//
// First the positions for each row of y are listed in order, row n after row n - 1
// (scatter_list.cl); then each row has one owner, which adds in that order (scatter_add.cl), so
// sums need no atomics. If an index is rejected, y is not written.
#include "axes.cl"
#include "report.cl"

// The axes' rows are the positions, in order; tensors: 0 the indices, 1 the rows of v.
struct scatter {
	struct axes axes;
	long N, R;               // rows of y, elements per row
	long ys, xs;             // row strides
	ulong has_x;
};

#define ENDS ((GLOBAL uint *)(work + work_at))        // [N] end of each row's list
#define ORDER ((GLOBAL uint *)(work + work_at) + s.N) // positions
