// SPDX-License-Identifier: Apache-2.0
// LIST_REDUCE over elements loaded by the generated map_load: list_reduce writes one number per
// chunk to the workspace, list_join combines those of each tensor, or all.
#include "reduction.cl"
#include "list.cl"

#ifdef MAP_QUAD
// Elements 4 first + 0..3, then every 4 ITEMS on, below end. `fours`: load four at once; the order
// of an item's sums is the same either way.
FN void walk_fours(ACC *v, long *at, ulong first, ulong end, bool fours MAP_PARAMS)
{
	ACC part;
	long part_at;
	int depth = 0;

	clear(v, at);
	clear(&part, &part_at);
	for (ulong n = first; n < end; n += 4 * ITEMS) {
		MAP_TYPE x[4];
		int some = (int)MIN_OF(4, end - n);
		if (fours && some == 4)
			quad_values(x, n MAP_ARGS);
		UNROLL
		for (int l = 0; l < 4; l++)
			if (l < some)
				take(&part, &part_at,
				     fours && some == 4 ?
					     (ACC)x[l] :
					     (ACC)map_load(0, 0, 0, n + (ulong)l MAP_ARGS),
				     (long)n + l);
		depth += 4;
		if (depth == DEPTH) {
			take(v, at, part, part_at);
			clear(&part, &part_at);
			depth = 0;
		}
	}
	take(v, at, part, part_at);
}
#endif

#define PART ((GLOBAL ACC *)(work + work_at) + a.first_chunk)

KERNEL void WORK_GROUP(ITEMS, 1)
	list_reduce(GLOBAL uchar *table_base, ulong table_at, SEGMENT_PARAMS, GLOBAL uchar *work,
		    ulong work_at, struct list a LIST_PARAMS)
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
		ulong j = (chunk - entry[0]) * CHUNK, end = MIN_OF(j + CHUNK, entry[1]);
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
#ifdef MAP_QUAD
		walk_fours(&v, &at, j + 4 * (ulong)LOCAL_ID(0), end, LIST_FOURS MAP_ARGS);
#else
		walk(&v, &at, 0, 0, j + (ulong)LOCAL_ID(0), ITEMS, end, s MAP_ARGS);
#endif
		join_items(&v, &at, value, place, LOCAL_ID(0));
		if (LOCAL_ID(0) == 0)
			PART[chunk] = v;
#endif
	}
}

// One group per tensor of the launch, or one for all chunks (a.chunks is then their number).
// Results are numbered from first_tensor.
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
