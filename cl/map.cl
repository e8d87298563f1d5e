// SPDX-License-Identifier: Apache-2.0
// MAP: the kernel around a generated map_at.  Reference: the map kernel of the CPU backend.
//
// An item computes one element; or, where MAP_BLOCKS is defined, a block of block_rows x
// block_cols, since drivers for CPUs run a group as a loop over its items and see little of
// what that loop does.
// Items: ceil(cols / block_cols) x ceil(rows / block_rows), in groups of any size.

KERNEL void map(ulong cols, ulong rows, ulong block_cols, ulong block_rows MAP_PARAMS)
{
#ifdef MAP_BLOCKS
	WIDE();
	ulong j0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong j1 = j0 + block_cols < cols ? j0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;
#ifdef MAP_STREAM
	for (; j0 + MAP_STREAM <= j1; j0 += MAP_STREAM)
		map_stream(j0 MAP_ARGS);
#endif
	for (ulong r = r0; r < r1; r++) {
		EACH
		for (ulong j = j0; j < j1; j++)
			map_at(r, j MAP_ARGS);
	}
#else
	ulong j = GLOBAL_ID(0), r = GLOBAL_ID(1);
	if (j < cols && r < rows)
		map_at(r, j MAP_ARGS);
#endif
}
