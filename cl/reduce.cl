// SPDX-License-Identifier: Apache-2.0
// REDUCE around a generated map_load: sum, product, maximum, minimum, or the place of the first
// maximum or minimum.  Reference: kern_reduce.c of the CPU backend.
//
// An output (r, c) is the reduction of the elements n = q * j_count + j.  Those are cut into
// segments by shape alone, not by how axes merge, so that a map in front changes no bit; where there
// are several, `reduce` leaves their results in the workspace and reduce_join joins them in order.  Sums go through levels of at most DEPTH, so that errors
// stay small.  How work is cut:
//   ITEMS 1           a group is one item, which takes `each` segments of outputs; its lanes lie
//                     along j, or under COLUMNS along c, `tile` columns together
//   more              a group takes one segment of one output, its items side by side along j;
//                     under COLUMNS an item takes a segment of the column GLOBAL_ID(0)
#ifndef KIND // SUM 1, MAX 2, MIN 3, PROD 4, ARGMAX 5, ARGMIN 6
#define KIND 1
#endif
#ifdef INTEGER // the accumulator
#define ACC long
#elif defined WIDE_ACC
#define ACC double
#else
#define ACC float
#endif
#ifndef OUT // dtype of the result, as yoke-plugin.h counts
#define OUT 1
#endif
#ifndef ITEMS // of a group
#define ITEMS 256
#endif
#ifndef LANES
#define LANES 128
#endif
#define DEPTH 64

struct reduction {
	ulong r, c, q, j;        // how far the indices go
	ulong segment, segments; // elements of a segment, segments of an output
	ulong tile, tiles;       // columns of a tile, tiles in c
	ulong each, join;        // units of an item of reduce, outputs of one of reduce_join
};

#ifdef WIDE_ACC
#define NARROW(v) odd_of_f64(v)
#else
#define NARROW(v) (v)
#endif

#ifdef INTEGER
#define LEAST (-9223372036854775807L - 1)
#define MOST 9223372036854775807L
#define ADD(a, b) ((long)((ulong)(a) + (ulong)(b)))
#define MUL(a, b) ((long)((ulong)(a) * (ulong)(b)))
#define IS_NAN(a) false
#else
#define LEAST ((ACC)-AS_FLOAT(0x7f800000u))
#define MOST ((ACC)AS_FLOAT(0x7f800000u))
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define IS_NAN(a) ((a) != (a))
#endif

FN void clear(ACC *v, long *at)
{
#if KIND == 2
	*v = LEAST;
#elif KIND == 3
	*v = MOST;
#else
	*v = (ACC)(KIND == 4);
#endif
	*at = -1;
}

// Takes w, at place n, in; an equal one stays if it comes first.  n < 0: there is none.
FN void take(ACC *v, long *at, ACC w, long n)
{
#if KIND == 1
	*v = ADD(*v, w);
#elif KIND == 4
	*v = MUL(*v, w);
#elif KIND == 2
	*v = w > *v || IS_NAN(w) ? w : *v;
#elif KIND == 3
	*v = w < *v || IS_NAN(w) ? w : *v;
#else
#if KIND == 5
	bool better = w > *v;
#else
	bool better = w < *v;
#endif
	bool old_nan = IS_NAN(*v), new_nan = IS_NAN(w);
	bool same = new_nan ? old_nan : w == *v;
	better = (better && !old_nan) || (new_nan && !old_nan) || (same && n < *at);
	better = n >= 0 && (better || *at < 0);
	*v = better ? w : *v;
	*at = better ? n : *at;
#endif
}

FN void put_result(ACC v, long at, ulong r, ulong c MAP_PARAMS)
{
	ulong e = map_place(r, c MAP_ARGS);
#if KIND >= 5
	((GLOBAL long *)(s0 + at0))[e] = at;
#elif OUT == 1
	((GLOBAL float *)(s0 + at0))[e] = (float)v;
#elif OUT == 2
	((GLOBAL double *)(s0 + at0))[e] = (double)v;
#elif OUT == 3
	((GLOBAL ushort *)(s0 + at0))[e] = f16_of_f32(NARROW(v));
#elif OUT == 4
	((GLOBAL ushort *)(s0 + at0))[e] = bf16_of_f32(NARROW(v));
#elif OUT == 5 || OUT == 6
	((GLOBAL uchar *)(s0 + at0))[e] = (uchar)v;
#elif OUT == 7
	((GLOBAL int *)(s0 + at0))[e] = (int)v;
#elif OUT == 8
	((GLOBAL long *)(s0 + at0))[e] = (long)v;
#else
	((GLOBAL uchar *)(s0 + at0))[e] = (uchar)(v != 0);
#endif
}

// Where accumulator number i of the workspace lies; places behind all values.
#define PART(i) ((GLOBAL ACC *)(work + work_at))[i]
#define PART_AT(i) \
	((GLOBAL long *)(work + work_at + s.segments * s.r * s.c * sizeof(ACC)))[i]

FN void finish(ACC v, long at, ulong segment, ulong r, ulong c, struct reduction s,
	GLOBAL uchar *work, ulong work_at MAP_PARAMS)
{
	if (s.segments == 1) {
		put_result(v, at, r, c MAP_ARGS);
		return;
	}
	ulong i = (segment * s.r + r) * s.c + c;
	PART(i) = v;
#if KIND >= 5
	PART_AT(i) = at;
#endif
}

#define LEAST_OF(a, b) ((a) < (b) ? (a) : (b))

#if ITEMS == 1 && !defined COLUMNS

// Elements n .. n + count - 1, count <= LANES * DEPTH; number k goes to lane k % LANES, however
// the axes are merged.
FN void run(ACC *v, long *at, ulong r, ulong c, ulong n, ulong count, struct reduction s
	MAP_PARAMS)
{
	ACC part[LANES];
	long place[LANES];
	ulong lanes = LEAST_OF(count, LANES), q = n / s.j, j = n % s.j;

	EACH
	for (ulong l = 0; l < lanes; l++)
		clear(part + l, place + l);
	for (ulong k = 0; k < count;) {
		ulong lane = k % LANES, some = LEAST_OF(LANES - lane, count - k);
		some = LEAST_OF(some, s.j - j);
		if (some == LANES) {
			EACH
			for (ulong l = 0; l < LANES; l++)
				take(part + l, place + l, (ACC)map_load(r, c, q, j + l MAP_ARGS),
				     (long)(n + k + l));
		} else {
			EACH
			for (ulong l = 0; l < some; l++)
				take(part + lane + l, place + lane + l,
				     (ACC)map_load(r, c, q, j + l MAP_ARGS), (long)(n + k + l));
		}
		k += some;
		j += some;
		q += j == s.j ? 1 : 0;
		j = j == s.j ? 0 : j;
	}
	while (lanes > 1) {
		ulong rest = (lanes + 1) / 2;
		EACH
		for (ulong l = 0; l < lanes - rest; l++)
			take(part + l, place + l, part[l + rest], place[l + rest]);
		lanes = rest;
	}
	take(v, at, part[0], place[0]);
}

KERNEL void reduce(GLOBAL uchar *work, ulong work_at, struct reduction s MAP_PARAMS)
{
	WIDE();
	ulong units = s.r * s.c * s.segments, first = GLOBAL_ID(0) * s.each;
	ulong last = LEAST_OF(first + s.each, units);

	for (ulong unit = first; unit < last; unit++) {
		ulong o = unit / s.segments, segment = unit % s.segments;
		ulong r = o / s.c, c = o % s.c, n = segment * s.segment;
		ulong end = LEAST_OF(n + s.segment, s.q * s.j);
		ACC v, sum;
		long at, place;
		int depth = 0;

		clear(&v, &at);
		clear(&sum, &place);
		while (n < end) {
			ulong count = LEAST_OF(end - n, LANES * DEPTH);
			run(&v, &at, r, c, n, count, s MAP_ARGS);
			n += count;
			if (++depth == DEPTH) {
				take(&sum, &place, v, at);
				clear(&v, &at);
				depth = 0;
			}
		}
		take(&sum, &place, v, at);
		finish(sum, place, segment, r, c, s, work, work_at MAP_ARGS);
	}
}

#elif ITEMS == 1

KERNEL void reduce(GLOBAL uchar *work, ulong work_at, struct reduction s MAP_PARAMS)
{
	ACC part[LANES], sum[LANES];
	long part_at[LANES], sum_at[LANES];
	ulong units = s.r * s.segments * s.tiles, first = GLOBAL_ID(0) * s.each;
	ulong last = LEAST_OF(first + s.each, units);

	WIDE();
	for (ulong unit = first; unit < last; unit++) {
		ulong c = unit % s.tiles * s.tile, segment = unit / s.tiles % s.segments;
		ulong r = unit / s.tiles / s.segments, n = segment * s.segment;
		ulong end = LEAST_OF(n + s.segment, s.q * s.j);
		ulong lanes = LEAST_OF(s.c - c, s.tile);

		EACH
		for (ulong l = 0; l < lanes; l++)
			clear(sum + l, sum_at + l);
		while (n < end) {
			ulong stop = LEAST_OF(end, n + DEPTH);
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

// Elements first, first + step, .. below end of output (r, c), by one item.
FN void walk(ACC *v, long *at, ulong r, ulong c, ulong first, ulong step, ulong end,
	struct reduction s MAP_PARAMS)
{
	ACC part;
	long part_at;
	int depth = 0;

	clear(v, at);
	clear(&part, &part_at);
	for (ulong n = first; n < end; n += step) {
		ulong q = s.q == 1 ? 0 : n / s.j, j = n - q * s.j;
		take(&part, &part_at, (ACC)map_load(r, c, q, j MAP_ARGS), (long)n);
		if (++depth == DEPTH) {
			take(v, at, part, part_at);
			clear(&part, &part_at);
			depth = 0;
		}
	}
	take(v, at, part, part_at);
}

#ifdef COLUMNS
KERNEL void WORK_GROUP(ITEMS, 1) reduce(GLOBAL uchar *work, ulong work_at, struct reduction s
	MAP_PARAMS)
{
	ulong c = GLOBAL_ID(0), r = GROUP_ID(1) / s.segments, segment = GROUP_ID(1) % s.segments;
	ulong n = segment * s.segment;
	ACC v;
	long at;

	if (c >= s.c)
		return;
	walk(&v, &at, r, c, n, 1, LEAST_OF(n + s.segment, s.q * s.j), s MAP_ARGS);
	finish(v, at, segment, r, c, s, work, work_at MAP_ARGS);
}
#else
KERNEL void WORK_GROUP(ITEMS, 1) reduce(GLOBAL uchar *work, ulong work_at, struct reduction s
	MAP_PARAMS)
{
	LOCAL ACC value[ITEMS];
	LOCAL long place[ITEMS];
	int item = LOCAL_ID(0);
	ulong o = GROUP_ID(0) / s.segments, segment = GROUP_ID(0) % s.segments;
	ulong r = o / s.c, c = o % s.c, n = segment * s.segment;
	ACC v;
	long at;

	walk(&v, &at, r, c, n + (ulong)item, ITEMS, LEAST_OF(n + s.segment, s.q * s.j), s MAP_ARGS);
	value[item] = v;
	place[item] = at;
	BARRIER();
	for (int w = ITEMS / 2; w; w /= 2) {
		if (item < w) {
			take(&v, &at, value[item + w], place[item + w]);
			value[item] = v;
			place[item] = at;
		}
		BARRIER();
	}
	if (item == 0)
		finish(v, at, segment, r, c, s, work, work_at MAP_ARGS);
}
#endif
#endif

KERNEL void reduce_join(GLOBAL uchar *work, ulong work_at, struct reduction s MAP_PARAMS)
{
	ulong outputs = s.r * s.c, first = GLOBAL_ID(0) * s.join;
	ulong last = LEAST_OF(first + s.join, outputs);

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
		put_result(v, at, o / s.c, o % s.c MAP_ARGS);
	}
}
