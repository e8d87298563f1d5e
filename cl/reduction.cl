// SPDX-License-Identifier: Apache-2.0
// Reductions, for reduce.cl and list_reduce.cl; follows a generated map_load. Sums are accumulated
// in levels of at most DEPTH, which keeps rounding errors small.
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
#ifndef OUT // dtype of the result, numbered as in yoke-plugin.h
#define OUT 1
#endif
#ifndef ITEMS // items per group
#define ITEMS 256
#endif
#ifndef LANES
#define LANES 128
#endif
#define DEPTH 64

struct reduction {
	ulong r, c, q, j;        // ranges of the indices
	ulong segment, segments; // elements per segment, segments per output
	ulong tile, tiles;       // columns per tile, tiles in c
	ulong each, join;        // work units per item of reduce, outputs per item of reduce_join
};

#ifdef WIDE_ACC
#define NARROW(v) odd_of_f64(v)
#else
#define NARROW(v) (v)
#endif

#ifdef INTEGER
#define LOWEST (-9223372036854775807L - 1)
#define HIGHEST 9223372036854775807L
#define ADD(a, b) ((long)((ulong)(a) + (ulong)(b)))
#define MUL(a, b) ((long)((ulong)(a) * (ulong)(b)))
#define IS_NAN(a) false
#else
#define LOWEST ((ACC)-AS_FLOAT(0x7f800000u))
#define HIGHEST ((ACC)AS_FLOAT(0x7f800000u))
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define IS_NAN(a) ((a) != (a))
#endif

FN void clear(ACC *v, long *at)
{
#if KIND == 2
	*v = LOWEST;
#elif KIND == 3
	*v = HIGHEST;
#else
	*v = (ACC)(KIND == 4);
#endif
	*at = -1;
}

// Accumulates w, at position n; of equal values the first stays. n < 0: there is none.
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

// Writes element e of the result y.
FN void put_result(ACC v, long at, GLOBAL uchar *y, ulong e)
{
#if KIND >= 5
	((GLOBAL long *)y)[e] = at;
#elif OUT == 1
	((GLOBAL float *)y)[e] = (float)v;
#elif OUT == 2
	((GLOBAL double *)y)[e] = (double)v;
#elif OUT == 3
	((GLOBAL ushort *)y)[e] = f16_of_f32(NARROW(v));
#elif OUT == 4
	((GLOBAL ushort *)y)[e] = bf16_of_f32(NARROW(v));
#elif OUT == 5 || OUT == 6
	((GLOBAL uchar *)y)[e] = (uchar)v;
#elif OUT == 7
	((GLOBAL int *)y)[e] = (int)v;
#elif OUT == 8
	((GLOBAL long *)y)[e] = (long)v;
#else
	((GLOBAL uchar *)y)[e] = (uchar)(v != 0);
#endif
}

#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))

#if ITEMS == 1

// Accumulates elements n .. n + count - 1, count <= LANES * DEPTH; number k goes to lane k % LANES,
// however the axes were merged.
FN void run(ACC *v, long *at, ulong r, ulong c, ulong n, ulong count, struct reduction s
	MAP_PARAMS)
{
	ACC part[LANES];
	long place[LANES];
	ulong lanes = MIN_OF(count, LANES), q = n / s.j, j = n % s.j;

	EACH
	for (ulong l = 0; l < lanes; l++)
		clear(part + l, place + l);
	for (ulong k = 0; k < count;) {
		ulong lane = k % LANES, some = MIN_OF(LANES - lane, count - k);
		some = MIN_OF(some, s.j - j);
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

// Accumulates elements n .. end - 1.
FN void run_all(ACC *sum, long *place, ulong r, ulong c, ulong n, ulong end,
		struct reduction s MAP_PARAMS)
{
	ACC v;
	long at;
	int depth = 0;

	clear(&v, &at);
	clear(sum, place);
	while (n < end) {
		ulong count = MIN_OF(end - n, LANES * DEPTH);
		run(&v, &at, r, c, n, count, s MAP_ARGS);
		n += count;
		if (++depth == DEPTH) {
			take(sum, place, v, at);
			clear(&v, &at);
			depth = 0;
		}
	}
	take(sum, place, v, at);
}

#else

// One item accumulates elements first, first + step, ... below end of output (r, c).
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

// Combines the values of all items of a group in its first item.
#ifdef WARP
#define TEAM (ITEMS < WARP ? ITEMS : WARP) // items that exchange registers

FN void join_items(ACC *v, long *at, LOCAL_POINTER ACC *value, LOCAL_POINTER long *place, int item)
{
	UNROLL
	for (int w = TEAM / 2; w; w /= 2) {
		ACC other = SHUFFLE_XOR(*v, w);
#if KIND >= 5
		take(v, at, other, SHUFFLE_XOR(*at, w));
#else
		take(v, at, other, 0);
#endif
	}
#if ITEMS > WARP
	if (item % WARP == 0) {
		value[item / WARP] = *v;
		place[item / WARP] = *at;
	}
	BARRIER();
	for (int k = 1; item == 0 && k < ITEMS / WARP; k++)
		take(v, at, value[k], place[k]);
	BARRIER();
#endif
}
#else
FN void join_items(ACC *v, long *at, LOCAL_POINTER ACC *value, LOCAL_POINTER long *place, int item)
{
	value[item] = *v;
	place[item] = *at;
	BARRIER();
	for (int w = ITEMS / 2; w; w /= 2) {
		if (item < w) {
			take(v, at, value[item + w], place[item + w]);
			value[item] = *v;
			place[item] = *at;
		}
		BARRIER();
	}
}
#endif
#endif
