// SPDX-License-Identifier: Apache-2.0
// REDUCE over elements loaded by the generated map_load: sum, product, maximum, minimum, or the
// position of the first maximum or minimum. Reference: kern_reduce.c of the CPU backend.
//
// Output (r, c) is the reduction of the elements n = q * j_count + j. They are divided into
// segments by shape alone, not by how axes were merged, so fusing a map changes no bit. If there
// are several segments, `reduce` writes their results to the workspace and reduce_join combines
// them in order. Division of work:
//   ITEMS 1  a group is one item, which takes `each` segments of outputs; lanes are along j,
//            or with COLUMNS along c, `tile` columns together
//   more     a group takes one segment of one output, its items interleaved along j;
//            with COLUMNS an item takes a segment of the column GLOBAL_ID(0)
#include "reduction.cl"

// Accumulator number i in the workspace; positions are stored after all values.
#define PART(i) ((GLOBAL ACC *)(work + work_at))[i]
#define PART_AT(i) \
	((GLOBAL long *)(work + work_at + s.segments * s.r * s.c * sizeof(ACC)))[i]

FN void finish(ACC v, long at, ulong segment, ulong r, ulong c, struct reduction s,
	GLOBAL uchar *work, ulong work_at MAP_PARAMS)
{
	if (s.segments == 1) {
		put_result(v, at, s0 + at0, map_place(r, c MAP_ARGS));
		return;
	}
	ulong i = (segment * s.r + r) * s.c + c;
	PART(i) = v;
#if KIND >= 5
	PART_AT(i) = at;
#endif
}

#if ITEMS == 1 && !defined COLUMNS

KERNEL void reduce(GLOBAL uchar *work, ulong work_at, struct reduction s MAP_PARAMS)
{
	WIDE();
	ulong units = s.r * s.c * s.segments, first = GLOBAL_ID(0) * s.each;
	ulong last = MIN_OF(first + s.each, units);

	for (ulong unit = first; unit < last; unit++) {
		ulong o = unit / s.segments, segment = unit % s.segments;
		ulong r = o / s.c, c = o % s.c, n = segment * s.segment;
		ACC sum;
		long place;

		run_all(&sum, &place, r, c, n, MIN_OF(n + s.segment, s.q * s.j), s MAP_ARGS);
		finish(sum, place, segment, r, c, s, work, work_at MAP_ARGS);
	}
}

#elif ITEMS == 1

KERNEL void reduce(GLOBAL uchar *work, ulong work_at, struct reduction s MAP_PARAMS)
{
	ACC part[LANES], sum[LANES];
	long part_at[LANES], sum_at[LANES];
	ulong units = s.r * s.segments * s.tiles, first = GLOBAL_ID(0) * s.each;
	ulong last = MIN_OF(first + s.each, units);

	WIDE();
	for (ulong unit = first; unit < last; unit++) {
		ulong c = unit % s.tiles * s.tile, segment = unit / s.tiles % s.segments;
		ulong r = unit / s.tiles / s.segments, n = segment * s.segment;
		ulong end = MIN_OF(n + s.segment, s.q * s.j);
		ulong lanes = MIN_OF(s.c - c, s.tile);

		EACH
		for (ulong l = 0; l < lanes; l++)
			clear(sum + l, sum_at + l);
		while (n < end) {
			ulong stop = MIN_OF(end, n + DEPTH);
			EACH
			for (ulong l = 0; l < lanes; l++)
				clear(part + l, part_at + l);
			for (; n < stop; n++) {
				ulong q = n / s.j, j = n % s.j;
				EACH
				for (ulong l = 0; l < lanes; l++)
					take(part + l, part_at + l,
					     (ACC)map_load(r, c + l, q, j MAP_ARGS), (long)n);
			}
			EACH
			for (ulong l = 0; l < lanes; l++)
				take(sum + l, sum_at + l, part[l], part_at[l]);
		}
		EACH
		for (ulong l = 0; l < lanes; l++)
			finish(sum[l], sum_at[l], segment, r, c + l, s, work, work_at MAP_ARGS);
	}
}

#else

#ifdef COLUMNS
KERNEL void WORK_GROUP(ITEMS, 1) reduce(GLOBAL uchar *work, ulong work_at, struct reduction s
	MAP_PARAMS)
{
	ulong r = GLOBAL_ID(1) / s.segments, segment = GLOBAL_ID(1) % s.segments;
	ulong n = segment * s.segment;

	for (ulong c = GLOBAL_ID(0); c < s.c && r < s.r; c += GROUPS(0) * ITEMS) {
		ACC v;
		long at;
		walk(&v, &at, r, c, n, 1, MIN_OF(n + s.segment, s.q * s.j), s MAP_ARGS);
		finish(v, at, segment, r, c, s, work, work_at MAP_ARGS);
	}
}
#else
KERNEL void WORK_GROUP(ITEMS, 1) reduce(GLOBAL uchar *work, ulong work_at, struct reduction s
	MAP_PARAMS)
{
	LOCAL ACC value[ITEMS];
	LOCAL long place[ITEMS];
	int item = LOCAL_ID(0);

	for (ulong unit = GROUP_ID(0); unit < s.r * s.c * s.segments; unit += GROUPS(0)) {
		ulong o = unit / s.segments, segment = unit % s.segments;
		ulong r = o / s.c, c = o % s.c, n = segment * s.segment;
		ACC v;
		long at;
		walk(&v, &at, r, c, n + (ulong)item, ITEMS, MIN_OF(n + s.segment, s.q * s.j),
		     s MAP_ARGS);
		join_items(&v, &at, value, place, item);
		if (item == 0)
			finish(v, at, segment, r, c, s, work, work_at MAP_ARGS);
	}
}
#endif
#endif

KERNEL void reduce_join(GLOBAL uchar *work, ulong work_at, struct reduction s MAP_PARAMS)
{
	ulong outputs = s.r * s.c, first = GLOBAL_ID(0) * s.join;
	ulong last = MIN_OF(first + s.join, outputs);

	for (ulong o = first; o < last; o++) {
		ACC v;
		long at;
		clear(&v, &at);
		for (ulong k = 0; k < s.segments; k++)
#if KIND >= 5
			take(&v, &at, PART(k * outputs + o), PART_AT(k * outputs + o));
#else
			take(&v, &at, PART(k * outputs + o), (long)k);
#endif
		put_result(v, at, s0 + at0, map_place(o / s.c, o % s.c MAP_ARGS));
	}
}
