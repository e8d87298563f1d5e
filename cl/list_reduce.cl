// SPDX-License-Identifier: Apache-2.0
// LIST_REDUCE around a generated map_load: list_reduce leaves a number for each chunk in the workspace,
// list_join joins those of each tensor, or all.
#include "reduction.cl"
#include "list.cl"

#define PART ((GLOBAL ACC *)(work + work_at) + a.first_chunk)

KERNEL void WORK_GROUP(ITEMS, 1) list_reduce(GLOBAL uchar *table_base, ulong table_at, SEGMENT_PARAMS,
	GLOBAL uchar *work, ulong work_at, struct list a LIST_PARAMS)
{
#if ITEMS == 1
	WIDE();
#else
	LOCAL ACC value[ITEMS];
	LOCAL long place[ITEMS];
#endif
	for (ulong chunk = GROUP_ID(0); chunk < a.chunks; chunk += GROUPS(0)) {
		ulong tensor = tensor_of(TABLE, chunk, a.tensors);
		GLOBAL const ulong *entry = TABLE + tensor * ENTRY;
		ulong j = (chunk - entry[0]) * CHUNK, end = LEAST_OF(j + CHUNK, entry[1]);
		struct reduction s;
		ACC v;
		long at;
		LIST_TENSOR(a.first_tensor + tensor)

		s.q = 1;
		s.j = entry[1];
#if ITEMS == 1
		run_all(&v, &at, 0, 0, j, end, s MAP_ARGS);
		PART[chunk] = v;
#else
		walk(&v, &at, 0, 0, j + (ulong)LOCAL_ID(0), ITEMS, end, s MAP_ARGS);
		join_items(&v, &at, value, place, LOCAL_ID(0));
		if (LOCAL_ID(0) == 0)
			PART[chunk] = v;
#endif
	}
}

// A group for each tensor of the launch, or one for all chunks, of which a.chunks then says how many; the
// results' places are counted from first_tensor.
KERNEL void WORK_GROUP(ITEMS, 1) list_join(GLOBAL uchar *table_base, ulong table_at,
	GLOBAL uchar *work, ulong work_at, GLOBAL uchar *y, ulong y_at, struct list a)
{
	ulong tensor = GROUP_ID(0), first = 0, end = a.chunks;
	ACC v;
	long at;

	if (a.each) {
		GLOBAL const ulong *entry = TABLE + tensor * ENTRY;
		first = entry[0];
		end = first + (entry[1] + CHUNK - 1) / CHUNK;
	}
	clear(&v, &at);
	for (ulong k = first + (ulong)LOCAL_ID(0); k < end; k += ITEMS)
		take(&v, &at, PART[k], (long)k);
#if ITEMS > 1
	LOCAL ACC value[ITEMS];
	LOCAL long place[ITEMS];
	join_items(&v, &at, value, place, LOCAL_ID(0));
#endif
	if (LOCAL_ID(0) == 0)
		put_result(v, at, y + y_at, a.first_tensor + tensor);
}
