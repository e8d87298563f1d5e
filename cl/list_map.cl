// SPDX-License-Identifier: Apache-2.0
// LIST_MAP: applies the generated function map_at to the elements of lists of tensors.
#include "list.cl"

KERNEL void WORK_GROUP(ITEMS, 1) list_map(GLOBAL uchar *table_base, ulong table_at, SEGMENT_PARAMS,
	struct list a LIST_PARAMS)
{
#ifdef MAP_BLOCK
	WIDE();
#endif
	for (ulong chunk = GROUP_ID(0); chunk < a.chunks; chunk += GROUPS(0)) {
		ulong tensor = tensor_of(TABLE, chunk, a.tensors);
		GLOBAL const ulong *entry = TABLE + tensor * ENTRY;
		ulong j = (chunk - entry[0]) * CHUNK,
		      end = j + CHUNK < entry[1] ? j + CHUNK : entry[1];
		LIST_TENSOR(a.first_tensor + tensor)
#ifdef MAP_BLOCK
		for (; j + MAP_BLOCK <= end; j += MAP_BLOCK)
			map_block(0, j MAP_ARGS);
		EACH
		for (ulong k = j; k < end; k++)
			map_at(0, k MAP_ARGS);
#else
#ifdef MAP_QUAD
		if (LIST_FOURS) {
			ulong whole = end - end % 4;
			for (ulong k = j + 4 * (ulong)LOCAL_ID(0); k < whole; k += 4 * ITEMS)
				map_quad(0, k MAP_ARGS);
			j = whole;
		}
#endif
		for (j += (ulong)LOCAL_ID(0); j < end; j += ITEMS)
			map_at(0, j MAP_ARGS);
#endif
	}
}
