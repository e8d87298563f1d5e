// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, for list_map.cl and list_reduce.cl. References: kern_list.c of the CPU backend,
// and src/core/ops/list.c, which defines the ops' decompositions.
//
// A table holds ENTRY words per tensor of a launch: its first chunk, its number of elements, and
// for each list the tensor's address, segment << 56 | offset. Up to 10 segments. A chunk has at
// most CHUNK elements of one tensor, so that results depend only on shapes; a group of ITEMS takes
// every GROUPS(0)-th chunk, see rows.cl.
#ifndef CHUNK
#define CHUNK 4096
#endif
#ifndef ITEMS // items per group
#define ITEMS 256
#endif
#define ENTRY (2 + LISTS)

struct list {
	ulong tensors, chunks;           // of this launch
	ulong first_tensor, first_chunk; // position of the launch in the whole list
	ulong each;                      // flag: one number per tensor
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

// The index in the launch of the tensor that owns a chunk.
FN ulong tensor_of(GLOBAL const ulong *table, ulong chunk, ulong tensors)
{
	// invariant: first chunk of low <= chunk < first chunk of high
	ulong low = 0, high = tensors;
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
