// SPDX-License-Identifier: Apache-2.0
// SCAN_MAP: runs the generated recurrence map_scan: an item takes one position of the other axes
// and all steps of the scanned axis. Reference: kern_scan_map.c of the CPU backend. Items: cols x
// rows, in groups along cols.

KERNEL void scan_map(ulong cols, ulong rows, ulong steps, ulong back MAP_PARAMS)
{
	ulong c = GLOBAL_ID(0), r = GLOBAL_ID(1);
	if (c < cols && r < rows)
		map_scan(r, c, steps, back MAP_ARGS);
}
