// SPDX-License-Identifier: Apache-2.0
// SCATTER_ADD, the lists of positions: on CPU-like devices scatter_list, with one item; on GPUs
// scatter_count, scatter_ends (one group), scatter_place, scatter_order and scatter_long.
#include "scatter.cl"

#ifndef ITEMS // items per group of scatter_ends and scatter_long, a power of two
#define ITEMS 1
#endif
#define STRIP 8  // positions that an item of scatter_long examines in a row
#define SHORT 64 // max positions sorted by insertion
#ifdef WIDE_IDS // the dtype of indices
typedef long id;
#else
typedef int id;
#endif

FN long id_of(GLOBAL const uchar *ids, ulong ids_at, const struct scatter *s, ulong i)
{
	return ((GLOBAL const id *)(ids + ids_at))[row_of(&s->axes, 0, i)];
}

#define LIST_PARAMS GLOBAL uchar *work, ulong work_at, GLOBAL uchar *ids, ulong ids_at, \
	struct scatter s REPORT_PARAMS

// Launched with one item.
KERNEL void scatter_list(LIST_PARAMS)
{
	ulong count = (ulong)s.axes.rows;
	uint sum = 0;
	bool good = true;

	if (GLOBAL_ID(0))
		return;
	for (long n = 0; n < s.N; n++)
		ENDS[n] = 0;
	for (ulong i = 0; i < count && good; i++) {
		long n = id_of(ids, ids_at, &s, i);
		good = n >= 0 && n < s.N;
		if (good)
			ENDS[n]++;
		else
			report_bad(REPORT_AT, i);
	}
	if (!good)
		return;
	for (long n = 0; n < s.N; n++) {
		uint here = ENDS[n];
		ENDS[n] = sum;
		sum += here;
	}
	for (ulong i = 0; i < count; i++)
		ORDER[ENDS[id_of(ids, ids_at, &s, i)]++] = (uint)i;
}

KERNEL void scatter_clear(LIST_PARAMS)
{
	if ((long)GLOBAL_ID(0) < s.N)
		ENDS[GLOBAL_ID(0)] = 0;
}

KERNEL void scatter_count(LIST_PARAMS)
{
	ulong i = GLOBAL_ID(0);
	if (i >= (ulong)s.axes.rows)
		return;
	long n = id_of(ids, ids_at, &s, i);
	if (n >= 0 && n < s.N)
		ATOMIC_ADD(&ENDS[n], 1u);
	else
		report_bad(REPORT_AT, i);
}

// Computes where each row's list begins from the counts.
KERNEL void WORK_GROUP(ITEMS, 1) scatter_ends(LIST_PARAMS)
{
	LOCAL uint sums[ITEMS];
	int item = LOCAL_ID(0);
	long strip = (s.N + ITEMS - 1) / ITEMS, n0 = item * strip;
	long n1 = n0 + strip < s.N ? n0 + strip : s.N;
	uint sum = 0;

	for (long n = n0; n < n1; n++)
		sum += ENDS[n];
	sums[item] = sum;
	BARRIER();
	sum = 0;
	for (int k = 0; k < item; k++)
		sum += sums[k];
	for (long n = n0; n < n1; n++) {
		uint here = ENDS[n];
		ENDS[n] = sum;
		sum += here;
	}
}

// Inserts positions into their rows' lists, in any order; the beginnings become ends.
KERNEL void scatter_place(LIST_PARAMS)
{
	ulong i = GLOBAL_ID(0);
	if (i >= (ulong)s.axes.rows || has_report(REPORT_AT))
		return;
	ORDER[ATOMIC_ADD(&ENDS[id_of(ids, ids_at, &s, i)], 1u)] = (uint)i;
}

// Sorts short lists by insertion.
KERNEL void scatter_order(LIST_PARAMS)
{
	long n = (long)GLOBAL_ID(0);
	if (n >= s.N || has_report(REPORT_AT))
		return;
	uint begin = n ? ENDS[n - 1] : 0, end = ENDS[n];
	if (end - begin > SHORT)
		return;
	for (uint k = begin + 1; k < end; k++) {
		uint p = ORDER[k], at = k;
		for (; at > begin && ORDER[at - 1] > p; at--)
			ORDER[at] = ORDER[at - 1];
		ORDER[at] = p;
	}
}

// Rebuilds long lists, of which there are few: for each of its rows, a group scans all indices.
KERNEL void WORK_GROUP(ITEMS, 1) scatter_long(LIST_PARAMS)
{
	LOCAL uint sums[ITEMS];
	int item = LOCAL_ID(0);
	ulong count = (ulong)s.axes.rows;

	if (has_report(REPORT_AT))
		return;
	for (long n = (long)GROUP_ID(0); n < s.N; n += (long)GROUPS(0)) {
		uint begin = n ? ENDS[n - 1] : 0, end = ENDS[n];
		if (end - begin <= SHORT)
			continue;
		for (ulong first = 0; first < count && begin < end; first += ITEMS * STRIP) {
			ulong i0 = first + (ulong)item * STRIP,
			      i1 = i0 + STRIP < count ? i0 + STRIP : count;
			uint sum = 0;
			for (ulong i = i0; i < i1; i++)
				sum += id_of(ids, ids_at, &s, i) == n ? 1 : 0;
			sums[item] = sum;
			BARRIER();
			for (int k = 1; k < ITEMS; k *= 2) { // inclusive prefix sum over the items
				uint before = item >= k ? sums[item - k] : 0;
				BARRIER();
				sums[item] += before;
				BARRIER();
			}
			uint at = begin + sums[item] - sum;
			for (ulong i = i0; sum && i < i1; i++)
				if (id_of(ids, ids_at, &s, i) == n)
					ORDER[at++] = (uint)i;
			begin += sums[ITEMS - 1];
			BARRIER();
		}
	}
}
