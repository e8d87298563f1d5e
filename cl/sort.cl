// SPDX-License-Identifier: Apache-2.0
// SORT: the first k of each row in order, stable, NaN last; values and positions. Reference:
// kern_sort.c of the CPU backend.
//
// Elements become unsigned keys with the same order: -0 equals 0, NaN is last in either direction.
// The axes' rows are sorted; tensors 0 values, 1 positions, 2 x.
// ITEMS 1: sort_rows, one row per item at a time: radix sort, 8 bits per pass; if k is a small part
//          of the row, the k-th key is found first and all later elements are dropped.
// more:    Batcher's bitonic network over rows of `padded`, in local memory for blocks of 2 ITEMS.
//          sort_short: a block is one row, or several; reads x and writes the results. Longer rows
//          have keys and positions in the workspace: sort_keys, sort_local, sort_step for distances
//          beyond a block, sort_take. Positions order equal keys.
#include "axes.cl"

#ifndef ITEMS // items per group, a power of two
#define ITEMS 1
#endif
#define SHORT 32 // max elements sorted by insertion
#define PART 8   // k below n / PART: select first
#if UNIT == 8
typedef ulong key;
#else
typedef uint key;
#endif
#define BITS (8 * UNIT)
#define ALL ((key)~(key)0 >> (8 * (int)sizeof(key) - BITS))
#define SIGN ((key)1 << (BITS - 1))

struct sort {
	struct axes axes;
	long n, k, padded;       // padded: n rounded up to a power of two
	long step[3];            // strides along the row
	ulong first, count;      // rows of this launch
	ulong has[2], descending; // flags: outputs for values, for positions
};

FN key key_of(unit bits, bool descending)
{
	key u = bits;
#ifdef INFINITE // mask of infinity: a floating type
	if ((u & ~SIGN & ALL) > INFINITE)
		return ALL;
	u = (u & ~SIGN & ALL) ? u : 0;
	u = u & SIGN ? ~u & ALL : u | SIGN;
#elif defined SIGNED
	u ^= SIGN;
#endif
	return descending ? ~u & ALL : u;
}

FN void put_place(GLOBAL uchar *values, ulong values_at, GLOBAL uchar *places, ulong places_at,
	GLOBAL uchar *from, ulong from_at, const struct sort *s, ulong row, long i, long at)
{
	if (s->has[0])
		UNITS(values, values_at)[row_of(&s->axes, 0, row) + i * s->step[0]] =
			UNITS(from, from_at)[row_of(&s->axes, 2, row) + at * s->step[2]];
	if (s->has[1])
		((GLOBAL long *)(places + places_at))[row_of(&s->axes, 1, row) + i * s->step[1]] =
			at;
}

#define OUT_PARAMS GLOBAL uchar *values, ulong values_at, GLOBAL uchar *places, ulong places_at, \
	GLOBAL uchar *from, ulong from_at, GLOBAL uchar *work, ulong work_at, struct sort s
#define OUT_ARGS values, values_at, places, places_at, from, from_at

#if ITEMS == 1

// Keys and their positions: a holds them, b is scratch of the same size.
struct keys {
	GLOBAL key *a, *b;
	GLOBAL uint *a_at, *b_at;
};

FN void insert(struct keys t, long n)
{
	for (long i = 1; i < n; i++) {
		key x = t.a[i];
		uint at = t.a_at[i];
		long k = i;
		for (; k > 0 && t.a[k - 1] > x; k--) {
			t.a[k] = t.a[k - 1];
			t.a_at[k] = t.a_at[k - 1];
		}
		t.a[k] = x;
		t.a_at[k] = at;
	}
}

// Moves the first k to the front, keeping their order.
FN void select_first(struct keys t, long n, long k)
{
	key prefix = 0, mask = 0; // bits of the k-th key found so far
	long left = k, kept = 0;  // left: how many keys with that prefix are in the result
	for (int d = UNIT - 1; d >= 0; d--) {
		uint count[256];
		uint v = 0;
		for (int i = 0; i < 256; i++)
			count[i] = 0;
		for (long i = 0; i < n; i++)
			count[t.a[i] >> 8 * d & 255] += (t.a[i] & mask) == prefix ? 1 : 0;
		for (; count[v] < left; v++)
			left -= count[v];
		prefix |= (key)v << 8 * d;
		mask |= (key)255 << 8 * d;
	}
	for (long i = 0; i < n && kept < k; i++)
		if (t.a[i] < prefix || (t.a[i] == prefix && left-- > 0)) {
			t.a[kept] = t.a[i];
			t.a_at[kept++] = t.a_at[i];
		}
}

// Radix sort. Returns true if the result is in b, false if in a.
FN bool radix(struct keys t, long n)
{
	bool other = false;
	for (int d = 0; d < UNIT; d++) {
		uint at[256], sum = 0;
		GLOBAL key *from = other ? t.b : t.a, *to = other ? t.a : t.b;
		GLOBAL uint *from_at = other ? t.b_at : t.a_at, *to_at = other ? t.a_at : t.b_at;
		for (int i = 0; i < 256; i++)
			at[i] = 0;
		for (long i = 0; i < n; i++)
			at[from[i] >> 8 * d & 255]++;
		if (at[from[0] >> 8 * d & 255] == n) // all digits are equal
			continue;
		for (int i = 0; i < 256; i++) {
			uint here = at[i];
			at[i] = sum;
			sum += here;
		}
		for (long i = 0; i < n; i++) {
			uint p = at[from[i] >> 8 * d & 255]++;
			to[p] = from[i];
			to_at[p] = from_at[i];
		}
		other = !other;
	}
	return other;
}

// Item i takes rows i, i + count, ...; it has memory for two rows of keys and positions.
KERNEL void sort_rows(OUT_PARAMS)
{
	ulong item = GLOBAL_ID(0), rows = (ulong)s.axes.rows;
	struct keys t;

	if (item >= s.count)
		return;
	t.a = (GLOBAL key *)(work + work_at) + item * 2 * (ulong)s.n;
	t.b = t.a + s.n;
	t.a_at = (GLOBAL uint *)((GLOBAL key *)(work + work_at) + s.count * 2 * (ulong)s.n) +
		 item * 2 * (ulong)s.n;
	t.b_at = t.a_at + s.n;
	for (ulong r = item; r < rows; r += s.count) {
		GLOBAL unit *x = UNITS(from, from_at) + row_of(&s.axes, 2, r);
		long n = s.n;
		bool other = false;
		for (long i = 0; i < n; i++) {
			t.a[i] = key_of(x[i * s.step[2]], s.descending != 0);
			t.a_at[i] = (uint)i;
		}
		if (n > SHORT && s.k < n / PART) {
			select_first(t, n, s.k);
			n = s.k;
		}
		if (n <= SHORT)
			insert(t, n);
		else
			other = radix(t, n);
		for (long i = 0; i < s.k; i++)
			put_place(OUT_ARGS, &s, r, i, other ? t.b_at[i] : t.a_at[i]);
	}
}

#else

#define BLOCK (2 * ITEMS)
#define KEYS ((GLOBAL key *)(work + work_at))
#define PLACES ((GLOBAL uint *)(KEYS + s.count * (ulong)s.padded))

// Items: padded x rows of this launch. Padding sorts after all elements.
KERNEL void sort_keys(GLOBAL uchar *from, ulong from_at, GLOBAL uchar *work, ulong work_at,
	struct sort s)
{
	long i = (long)GLOBAL_ID(0);
	ulong r = GLOBAL_ID(1);
	key u = ALL;

	if (r >= (ulong)s.count)
		return;
	if (i < s.n)
		u = key_of(UNITS(from, from_at)[row_of(&s.axes, 2, s.first + r) + i * s.step[2]],
			   s.descending != 0);
	KEYS[r * (ulong)s.padded + (ulong)i] = u;
	PLACES[r * (ulong)s.padded + (ulong)i] = (uint)i;
}

FN bool before(key a, uint a_at, key b, uint b_at)
{
	return a < b || (a == b && a_at < b_at);
}

// Bitonic merges of sizes first, 2 first, ... last in rows of `padded`, as far as they pair
// elements of the block that begins at base.
FN void merge(LOCAL_POINTER key *keys, LOCAL_POINTER uint *places, ulong base, ulong padded,
	      ulong first, ulong last, int item)
{
	for (ulong size = first; size <= last; size *= 2) {
		for (int stride = (int)(size < BLOCK ? size : BLOCK) / 2; stride; stride /= 2) {
			BARRIER();
			int i = 2 * item - (item & (stride - 1)), k = i + stride;
			// position within the row, since a row is as long as its last size
			bool up = (((base + (ulong)i) & (padded - 1)) & size) == 0;
			if (before(keys[k], places[k], keys[i], places[i]) == up) {
				key u = keys[i];
				uint p = places[i];
				keys[i] = keys[k];
				places[i] = places[k];
				keys[k] = u;
				places[k] = p;
			}
		}
	}
	BARRIER();
}

// Rows of at most BLOCK elements: BLOCK / padded of them per group.
KERNEL void WORK_GROUP(ITEMS, 1)
	sort_short(GLOBAL uchar *values, ulong values_at, GLOBAL uchar *places_base,
		   ulong places_at, GLOBAL uchar *from, ulong from_at, struct sort s)
{
	LOCAL key keys[BLOCK];
	LOCAL uint places[BLOCK];
	int item = LOCAL_ID(0), n = (int)s.n, k = (int)s.k, padded = (int)s.padded;
	ulong row = GROUP_ID(0) * (ulong)(BLOCK / padded), rows = (ulong)s.axes.rows;

	for (int i = item; i < BLOCK; i += ITEMS) {
		int at = i & (padded - 1);
		ulong r = row + (ulong)(i / padded);
		keys[i] =
			at < n && r < rows ?
				key_of(UNITS(from, from_at)[row_of(&s.axes, 2, r) + at * s.step[2]],
				       s.descending != 0) :
				ALL;
		places[i] = (uint)at;
	}
	merge(keys, places, 0, (ulong)padded, 2, (ulong)padded, item);
	for (int i = item; i < BLOCK; i += ITEMS) {
		int at = i & (padded - 1);
		ulong r = row + (ulong)(i / padded);
		if (at < k && r < rows)
			put_place(values, values_at, places_base, places_at, from, from_at, &s, r,
				  at, places[i]);
	}
}

KERNEL void WORK_GROUP(ITEMS, 1) sort_local(GLOBAL uchar *work, ulong work_at, struct sort s,
	ulong first, ulong last)
{
	LOCAL key keys[BLOCK];
	LOCAL uint places[BLOCK];
	int item = LOCAL_ID(0);
	ulong base = GROUP_ID(0) * BLOCK;

	for (int i = item; i < BLOCK; i += ITEMS) {
		keys[i] = KEYS[base + (ulong)i];
		places[i] = PLACES[base + (ulong)i];
	}
	merge(keys, places, base, (ulong)s.padded, first, last, item);
	for (int i = item; i < BLOCK; i += ITEMS) {
		KEYS[base + (ulong)i] = keys[i];
		PLACES[base + (ulong)i] = places[i];
	}
}

// One step of the network: one item per pair.
KERNEL void sort_step(GLOBAL uchar *work, ulong work_at, struct sort s, ulong size, ulong stride)
{
	ulong item = GLOBAL_ID(0), i = 2 * item - (item & (stride - 1)), k = i + stride;
	bool up = ((i & ((ulong)s.padded - 1)) & size) == 0;
	key a = KEYS[i], b = KEYS[k];
	uint a_at = PLACES[i], b_at = PLACES[k];

	if (before(b, b_at, a, a_at) == up) {
		KEYS[i] = b;
		PLACES[i] = b_at;
		KEYS[k] = a;
		PLACES[k] = a_at;
	}
}

// Items: k x rows of this launch.
KERNEL void sort_take(OUT_PARAMS)
{
	long i = (long)GLOBAL_ID(0);
	ulong r = GLOBAL_ID(1);
	if (i < s.k && r < (ulong)s.count)
		put_place(OUT_ARGS, &s, s.first + r, i, PLACES[r * (ulong)s.padded + (ulong)i]);
}
#endif
