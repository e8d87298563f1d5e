// SPDX-License-Identifier: Apache-2.0
// SCATTER_SET: rows of y are replaced by rows of v; index -1 skips one, and of equal indices the
// last counts. Reference: kern_scatter_set.c of the CPU backend.
// A group per index: its items look for a later equal index, then copy the row in units of UNIT
// bytes. The axes' rows are the indices, in order; tensors: 0 the indices, 1 the rows of v. A
// rejected index is reported, and writes nothing.
#include "axes.cl"
#include "report.cl"

#ifndef ITEMS
#define ITEMS 128
#endif
#ifdef WIDE_IDS // the dtype of indices
typedef long id;
#else
typedef int id;
#endif

struct scatter_set {
	struct axes axes;
	long N, R, ys, n; // rows of y, units per row, units between rows of y, indices
};

FN long index_at(GLOBAL uchar *ids, ulong ids_at, const struct scatter_set *s, ulong i)
{
	return ((GLOBAL const id *)(ids + ids_at))[row_of(&s->axes, 0, i)];
}

KERNEL void WORK_GROUP(ITEMS, 1)
	scatter_set(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *ids, ulong ids_at,
		    GLOBAL uchar *from, ulong from_at, struct scatter_set s REPORT_PARAMS)
{
	LOCAL int later;
	int item = LOCAL_ID(0);
	for (ulong i = GROUP_ID(0); i < (ulong)s.n; i += GROUPS(0)) {
		long at = index_at(ids, ids_at, &s, i);
		bool found = false;
		for (ulong k = i + 1 + (ulong)item; k < (ulong)s.n && !found; k += ITEMS)
			found = index_at(ids, ids_at, &s, k) == at;
		BARRIER();
		if (item == 0)
			later = 0;
		BARRIER();
		if (found)
			later = 1;
		BARRIER();
		if (item == 0 && (at < -1 || at >= s.N))
			report_bad(REPORT_AT, i);
		if (at < 0 || at >= s.N || later)
			continue;
		GLOBAL unit *y = UNITS(to, to_at) + at * s.ys;
		GLOBAL const unit *v = UNITS(from, from_at) + row_of(&s.axes, 1, i);
		for (long c = item; c < s.R; c += ITEMS)
			y[c] = v[c];
	}
}
