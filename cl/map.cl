// SPDX-License-Identifier: Apache-2.0
// MAP: applies the generated function map_at to each element. Reference: the map kernel of the CPU
// backend.
//
// An item computes one element, or MAP_EACH neighbours of a row, four at a time with MAP_QUAD. If
// MAP_BLOCK is defined, it computes block_rows x block_cols elements, MAP_BLOCK at a time, since
// drivers for CPUs run a group as a loop over its items and do not optimize across that loop.
// Items: ceil(cols / block_cols) x ceil(rows / block_rows), in groups of any size.

#ifndef MAP_EACH
#define MAP_EACH 1
#endif

KERNEL void map(ulong cols, ulong rows, ulong block_cols, ulong block_rows MAP_PARAMS)
{
#ifdef MAP_BLOCK
	WIDE();
	ulong j0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong j1 = j0 + block_cols < cols ? j0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;
	for (ulong r = r0; r < r1; r++) {
		ulong j = j0;
		for (; j + MAP_BLOCK <= j1; j += MAP_BLOCK)
			map_block(r, j MAP_ARGS);
		EACH
		for (ulong k = j; k < j1; k++)
			map_at(r, k MAP_ARGS);
	}
#else
	ulong j = GLOBAL_ID(0) * MAP_EACH, r = GLOBAL_ID(1),
	      end = j + MAP_EACH < cols ? j + MAP_EACH : cols;
	if (r >= rows)
		return;
#ifdef MAP_QUAD
	for (; j < end; j += 4)
		map_quad(r, j MAP_ARGS);
#else
	for (; j < end; j++)
		map_at(r, j MAP_ARGS);
#endif
#endif
}
