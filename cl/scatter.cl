// SPDX-License-Identifier: Apache-2.0
// SCATTER_ADD: y is x, or zeros, with v's rows added where indices say.  Reference:
// kern_gather_add.c of the CPU backend.
//
// First the positions of each row of y are listed in order, row n's behind row n-1's
// (scatter_list.cl), then each row has one owner, who adds in that order (scatter_add.cl): no
// atomics on what is summed.  Nothing is written to y when an index is refused.
#include "axes.cl"
#include "report.cl"

// Rows of the axes: the positions, in order; tensors 0 the indices, 1 where v's row begins.
struct scatter {
	struct axes axes;
	long N, R;               // rows of y, numbers of a row
	long ys, xs;             // from row to row
	ulong has_x;
};

#define ENDS ((GLOBAL uint *)(work + work_at))        // [N] of each row's list
#define ORDER ((GLOBAL uint *)(work + work_at) + s.N) // positions
