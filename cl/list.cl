// SPDX-License-Identifier: Apache-2.0
// LIST_MAP around a generated map_at; under KIND, behind reduction.cl, LIST_REDUCE around a generated
// map_load.  References: kern_list.c of the CPU backend, and rows_list.c, which says what they are made of.
//
// A table holds ENTRY words for each tensor of a launch: its first chunk, its elements, and where its part
// of each list lies, segment << 56 | offset.  Up to 10 segments.  A chunk is CHUNK elements of one tensor at
// most, so that results depend on shapes alone; a group of ITEMS takes every GROUPS(0)-th, see rows.cl.
// list_reduce leaves a number for each chunk in the workspace, list_join joins those of each tensor, or all.
#ifndef CHUNK
#define CHUNK 4096
#endif
#ifndef ITEMS // of a group
#define ITEMS 256
#endif
#define ENTRY (2 + LISTS)

struct list {
	ulong tensors, chunks;           // of this launch
	ulong first_tensor, first_chunk; // of it among all
	ulong each;                      // one number a tensor
};

#define SEGMENT_PARAMS GLOBAL uchar *g0, GLOBAL uchar *g1, GLOBAL uchar *g2, GLOBAL uchar *g3, \
	GLOBAL uchar *g4, GLOBAL uchar *g5, GLOBAL uchar *g6, GLOBAL uchar *g7, \
	GLOBAL uchar *g8, GLOBAL uchar *g9
#define LIST_SEGMENT(k) segment_of(entry[2 + (k)], g0, g1, g2, g3, g4, g5, g6, g7, g8, g9)
#define LIST_OFFSET(k) (entry[2 + (k)] & 0xfffffffffffffful)

FN GLOBAL uchar *segment_of(ulong word, SEGMENT_PARAMS)
{
	int s = (int)(word >> 56);
	return s == 0 ? g0 : s == 1 ? g1 : s == 2 ? g2 : s == 3 ? g3 :
	       s == 4 ? g4 : s == 5 ? g5 : s == 6 ? g6 : s == 7 ? g7 :
	       s == 8 ? g8 : g9;
}

// The number in the launch of a chunk's tensor.
FN ulong tensor_of(GLOBAL const ulong *table, ulong chunk, ulong tensors)
{
	ulong low = 0, high = tensors; // first chunk of low <= chunk < that of high
	while (high - low > 1) {
		ulong middle = low + (high - low) / 2;
		if (table[middle * ENTRY] <= chunk)
			low = middle;
		else
			high = middle;
	}
	return low;
}

#define TABLE ((GLOBAL const ulong *)(table_base + table_at))

#ifndef KIND

KERNEL void WORK_GROUP(ITEMS, 1) list_map(GLOBAL uchar *table_base, ulong table_at, SEGMENT_PARAMS,
	struct list a LIST_PARAMS)
{
#ifdef MAP_BLOCK
	WIDE();
#endif
	for (ulong chunk = GROUP_ID(0); chunk < a.chunks; chunk += GROUPS(0)) {
		ulong tensor = tensor_of(TABLE, chunk, a.tensors);
		GLOBAL const ulong *entry = TABLE + tensor * ENTRY;
		ulong j = (chunk - entry[0]) * CHUNK, end = j + CHUNK < entry[1] ? j + CHUNK : entry[1];
		LIST_TENSOR(a.first_tensor + tensor)
#ifdef MAP_BLOCK
		for (; j + MAP_BLOCK <= end; j += MAP_BLOCK)
			map_block(0, j MAP_ARGS);
		EACH
		for (ulong k = j; k < end; k++)
			map_at(0, k MAP_ARGS);
#else
		for (j += (ulong)LOCAL_ID(0); j < end; j += ITEMS)
			map_at(0, j MAP_ARGS);
#endif
	}
}

#else

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
#endif
