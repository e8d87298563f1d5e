// SPDX-License-Identifier: Apache-2.0
// LARGEST: the k elements of a = x + e with the largest magnitude, and a without them. Reference:
// kern_largest.c of the CPU backend.
//
// The k-th largest is found by radix selection on the 31 bits of |a| (NaN: all ones): 11, then 10,
// then 10 bits. a is divided into chunks, one per group. Each round: largest_count counts, per
// chunk, the elements that match the bits found so far by their next bits (and in the first round
// stores a if the remainder is an output); largest_sum adds the chunks' counts; largest_find, one
// group, determines the k-th element's bits; largest_above counts the elements of each chunk above
// it. Then largest_begin, one item, computes where each chunk's results begin, and largest_take
// writes them in order.
// ITEMS per group, a power of two; 1: CPU-like device.
#include "prologue.h"

#ifndef ITEMS
#define ITEMS 1
#endif
#define BINS 2048

struct largest {
	long n, each, pieces, k;
	ulong has_e, has[3]; // flags: e is present; outputs for values, positions and the remainder
};

// Workspace: the k-th element's bits so far, and how many of the elements with these bits are in
// the result; total counts; for each chunk the number of elements above, the number equal to the
// k-th, where its results begin and how many equal ones it takes; the chunks' counts.
#define WORK ((GLOBAL uint *)(work + work_at))
#define PREFIX WORK[0]
#define LEFT WORK[1]
#define TOTAL(b) WORK[4 + (b)]
#define PIECE(p, what) WORK[4 + BINS + 4 * (p) + (what)]
#define COUNTS(p) (WORK + 4 + BINS + 4 * s.pieces + (p) * BINS)

#define SHIFT(round) ((round) == 0 ? 20 : (round) == 1 ? 10 : 0)
// bits known before the round
#define MASK(round) ((round) == 0 ? 0u : (round) == 1 ? 0x7ff00000u : 0x7ffffc00u)
#define LAST(round) ((round) == 0 ? BINS - 1 : BINS / 2 - 1)

FN uint key_of(float a)
{
	uint u = AS_UINT(a) & 0x7fffffffu;
	return u > 0x7f800000u ? 0x7fffffffu : u;
}

#define IN_PARAMS \
	GLOBAL uchar *x, ulong x_at, GLOBAL uchar *e, ulong e_at, GLOBAL uchar *rest, \
	ulong rest_at, GLOBAL uchar *work, ulong work_at, struct largest s
#define FLOATS(v) ((GLOBAL float *)(v + v##_at))

// Element i; after the first round it is read from the remainder output, if that was stored.
FN float element(GLOBAL uchar *x, ulong x_at, GLOBAL uchar *e, ulong e_at, GLOBAL uchar *rest,
		 ulong rest_at, const struct largest *s, bool made, long i)
{
	if (made)
		return FLOATS(rest)[i];
	return s->has_e ? FLOATS(x)[i] + FLOATS(e)[i] : FLOATS(x)[i];
}

KERNEL void WORK_GROUP(ITEMS, 1) largest_count(IN_PARAMS, ulong round)
{
	long p = (long)GROUP_ID(0), from = p * s.each,
	     end = from + s.each < s.n ? from + s.each : s.n;
	GLOBAL uint *to = COUNTS(p);
	uint prefix = round ? PREFIX : 0u, mask = MASK(round);
	int item = LOCAL_ID(0), shift = SHIFT(round);
#if ITEMS == 1
	for (int b = 0; b < BINS; b++)
		to[b] = 0;
#else
	LOCAL uint counts[BINS];
	for (int b = item; b < BINS; b += ITEMS)
		counts[b] = 0;
	BARRIER();
#endif
	for (long i = from + item; i < end; i += ITEMS) {
		float a = element(x, x_at, e, e_at, rest, rest_at, &s, round && s.has[2], i);
		uint key = key_of(a);
		if (!round && s.has[2])
			FLOATS(rest)[i] = a;
		if ((key & mask) == prefix) {
#if ITEMS == 1
			to[key >> shift & LAST(round)]++;
#else
			ATOMIC_ADD(&counts[key >> shift & LAST(round)], 1u);
#endif
		}
	}
#if ITEMS > 1
	BARRIER();
	for (int b = item; b < BINS; b += ITEMS)
		to[b] = counts[b];
#endif
}

#define WORK_PARAMS GLOBAL uchar *work, ulong work_at, struct largest s

KERNEL void largest_sum(WORK_PARAMS)
{
	ulong b = GLOBAL_ID(0);
	uint sum = 0;
	if (b >= BINS)
		return;
	for (long p = 0; p < s.pieces; p++)
		sum += COUNTS(p)[b];
	TOTAL(b) = sum;
}

KERNEL void WORK_GROUP(ITEMS, 1) largest_find(WORK_PARAMS, ulong round)
{
	LOCAL uint sums[ITEMS];
	int item = LOCAL_ID(0), strip = BINS / ITEMS;
	uint sum = 0;
	for (int i = 0; i < strip; i++)
		sum += TOTAL(item * strip + i);
	sums[item] = sum;
	BARRIER();
	if (item == 0) {
		uint left = round ? LEFT : (uint)s.k, prefix = round ? PREFIX : 0u;
		int at = ITEMS - 1, b;
		for (; at > 0 && sums[at] < left; at--)
			left -= sums[at];
		b = at * strip + strip - 1;
		for (; b > 0 && TOTAL(b) < left; b--)
			left -= TOTAL(b);
		PREFIX = prefix | (uint)b << SHIFT(round);
		LEFT = left;
	}
}

KERNEL void WORK_GROUP(ITEMS, 1) largest_above(WORK_PARAMS, ulong round)
{
	LOCAL uint sums[ITEMS];
	long p = (long)GROUP_ID(0);
	int item = LOCAL_ID(0), last = LAST(round), b = (int)(PREFIX >> SHIFT(round)) & last;
	uint sum = 0;
	for (int i = b + 1 + item; i <= last; i += ITEMS)
		sum += COUNTS(p)[i];
	sums[item] = sum;
	BARRIER();
	if (item == 0) {
		for (int i = 1; i < ITEMS; i++)
			sum += sums[i];
		PIECE(p, 0) = (round ? PIECE(p, 0) : 0u) + sum;
		PIECE(p, 1) = COUNTS(p)[b];
	}
}

KERNEL void largest_begin(WORK_PARAMS)
{
	uint left = LEFT, to = 0;
	if (GLOBAL_ID(0))
		return;
	for (long p = 0; p < s.pieces; p++) {
		uint ties = PIECE(p, 1) < left ? PIECE(p, 1) : left;
		PIECE(p, 2) = to;
		PIECE(p, 3) = ties;
		to += PIECE(p, 0) + ties;
		left -= ties;
	}
}

KERNEL void WORK_GROUP(ITEMS, 1) largest_take(GLOBAL uchar *value, ulong value_at,
					      GLOBAL uchar *place, ulong place_at, IN_PARAMS)
{
	long p = (long)GROUP_ID(0), from = p * s.each,
	     end = from + s.each < s.n ? from + s.each : s.n;
	uint kth = PREFIX, to = PIECE(p, 2), left = PIECE(p, 3);
	int item = LOCAL_ID(0);
#if ITEMS > 1
	// per item, number of elements up to it that are above the k-th; in the upper half, equal
	// ones
	LOCAL uint ranks[2][ITEMS];
#endif
	for (long i0 = from; i0 < end; i0 += ITEMS) {
		long i = i0 + item;
		float a = i < end ? element(x, x_at, e, e_at, rest, rest_at, &s, s.has[2] != 0, i) :
				    0.0f;
		uint key = key_of(a), mine = i >= end || key < kth ? 0u : key > kth ? 1u : 0x10000u;
		uint all = mine, upto = mine;
#if ITEMS > 1
		int now = 0;
		ranks[0][item] = mine;
		BARRIER();
		for (int d = 1; d < ITEMS; d *= 2) {
			ranks[1 - now][item] =
				ranks[now][item] + (item >= d ? ranks[now][item - d] : 0u);
			now = 1 - now;
			BARRIER();
		}
		upto = ranks[now][item];
		all = ranks[now][ITEMS - 1];
		BARRIER();
#endif
		uint ties = upto >> 16, taken = ties < left ? ties : left;
		if (mine == 1u || (mine && ties <= left)) {
			uint at = to + (upto & 0xffffu) + taken - 1u;
			if (s.has[0])
				FLOATS(value)[at] = a;
			if (s.has[1])
				((GLOBAL int *)(place + place_at))[at] = (int)i;
			if (s.has[2])
				FLOATS(rest)[i] = 0.0f;
		}
		ties = all >> 16;
		taken = ties < left ? ties : left;
		to += (all & 0xffffu) + taken;
		left -= taken;
	}
}
