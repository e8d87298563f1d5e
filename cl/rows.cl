// SPDX-License-Identifier: Apache-2.0
// Shared by the row-wise kernels (softmax, norms, cross entropy, ...). A row is the last axis of a
// tensor and is dense; the outer axes, merged where possible, are numbered. A group of ITEMS items
// works on a row together, each on vectors that are ITEMS vectors apart; on CPU-like devices a
// group is one item, elsewhere results are combined in a tree in local memory. Values are f32 in
// registers, whatever STORE is.
#include "half.cl"
#include "vexp.cl"

#ifndef ITEMS // items per group, a power of two
#define ITEMS 64
#endif
#ifndef STORE // 0: f32, 1: f16, 2: bf16
#define STORE 0
#endif
#ifndef BESIDE // dtype of weights, tables and masks: STORE's, or f32 next to 16-bit rows
#define BESIDE STORE
#endif
#define STEP (ITEMS * VEC_WIDTH)
#define OUTER 4

struct rows {
	long rank; // number of outer axes
	long dims[OUTER], strides[OUTER];
};

#if STORE == 0
typedef float stored;
#else
typedef ushort stored;
#endif
#if BESIDE == 0
typedef float beside;
#else
typedef ushort beside;
#endif

#ifdef WIDE_INDEX // the row number needs more than 31 bits
#define INDEX ulong
#else
#define INDEX uint
#endif

FN GLOBAL stored *row_at(GLOBAL uchar *base, ulong at, const struct rows *r, long row)
{
	INDEX i = (INDEX)row;
	long to = 0;
	for (int k = (int)r->rank - 1; k > 0; k--) {
		INDEX n = (INDEX)r->dims[k], q = i / n;
		to += (long)(i - q * n) * r->strides[k];
		i = q;
	}
	return (GLOBAL stored *)(base + at) + (r->rank ? to + (long)i * r->strides[0] : 0);
}

// Lanes of a partial vector: on GPUs loops are unrolled, so that an item's arrays stay in
// registers.
#if ITEMS > 1
#define EACH_LANE UNROLL
#define SOME(left) VEC_WIDTH
#else
#define EACH_LANE
#define SOME(left) (left)
#endif

// Loads a vector of a row of which `left` elements exist; the others are `fill`.
FN VEC load_f32(GLOBAL const float *from, int left, float fill)
{
#if VEC_WIDTH > 1
	if (left < VEC_WIDTH) {
		float part[VEC_WIDTH];
		EACH_LANE
		for (int l = 0; l < VEC_WIDTH; l++)
			part[l] = l < left ? from[l] : fill;
		return VEC_OF(part);
	}
#endif
	return VEC_LOAD(from);
}

FN void store_f32(VEC v, GLOBAL float *to, int left)
{
#if VEC_WIDTH > 1
	if (left < VEC_WIDTH) {
		float part[VEC_WIDTH];
		VEC_TO(v, part);
		EACH_LANE
		for (int l = 0; l < SOME(left); l++)
			if (l < left)
				to[l] = part[l];
		return;
	}
#endif
	VEC_STORE(v, to);
}

FN float f32_of_bits(ushort bits, int store)
{
	return store == 1 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

FN ushort bits_of_f32(float x, int store)
{
	return store == 1 ? f16_of_f32(x) : bf16_of_f32(x);
}

FN VEC load_half(GLOBAL const ushort *from, int left, float fill, int store)
{
	float part[VEC_WIDTH];
#ifdef VEC_HALVES
	if (left >= VEC_WIDTH) {
		ushort bits[VEC_WIDTH];
		halves_load(from, bits);
		EACH_LANE
		for (int l = 0; l < VEC_WIDTH; l++)
			part[l] = f32_of_bits(bits[l], store);
		return VEC_OF(part);
	}
#endif
	if (left >= VEC_WIDTH)
		EACH_LANE
		for (int l = 0; l < VEC_WIDTH; l++)
			part[l] = f32_of_bits(from[l], store);
	else
		EACH_LANE
		for (int l = 0; l < VEC_WIDTH; l++)
			part[l] = l < left ? f32_of_bits(from[l], store) : fill;
	return VEC_OF(part);
}

FN void store_half(VEC v, GLOBAL ushort *to, int left, int store)
{
	float part[VEC_WIDTH];
	VEC_TO(v, part);
#ifdef VEC_HALVES
	if (left >= VEC_WIDTH) {
		ushort bits[VEC_WIDTH];
		EACH_LANE
		for (int l = 0; l < VEC_WIDTH; l++)
			bits[l] = bits_of_f32(part[l], store);
		halves_store(bits, to);
		return;
	}
#endif
	if (left >= VEC_WIDTH)
		EACH_LANE
		for (int l = 0; l < VEC_WIDTH; l++)
			to[l] = bits_of_f32(part[l], store);
	else
		EACH_LANE
		for (int l = 0; l < SOME(left); l++)
			if (l < left)
				to[l] = bits_of_f32(part[l], store);
}

FN VEC load(GLOBAL const stored *from, int left, float fill)
{
#if STORE == 0
	return load_f32(from, left, fill);
#else
	return load_half(from, left, fill, STORE);
#endif
}

FN VEC load_beside(GLOBAL const beside *from, int left, float fill)
{
#if BESIDE == 0
	return load_f32(from, left, fill);
#else
	return load_half(from, left, fill, BESIDE);
#endif
}

FN float load_beside_one(GLOBAL const beside *from)
{
#if BESIDE == 0
	return *from;
#else
	return f32_of_bits(*from, BESIDE);
#endif
}

FN void store_beside(VEC v, GLOBAL beside *to, int left)
{
#if BESIDE == 0
	store_f32(v, to, left);
#else
	store_half(v, to, left, BESIDE);
#endif
}

// stream: non-temporal; rows are aligned; f32 only
FN void store(VEC v, GLOBAL stored *to, int left, bool stream)
{
#if STORE == 0
	if (stream)
		VEC_STREAM(v, to);
	else
		store_f32(v, to, left);
#else
	store_half(v, to, left, STORE);
#endif
}

FN float load_one(GLOBAL const stored *from)
{
#if STORE == 0
	return *from;
#else
	return f32_of_bits(*from, STORE);
#endif
}

FN void store_one(float x, GLOBAL stored *to)
{
#if STORE == 0
	*to = x;
#else
	*to = bits_of_f32(x, STORE);
#endif
}

// Rows are divided into chunks of `each`; a group takes every GROUPS(0)-th chunk, so that
// concurrent groups work on nearby memory: on CPUs a quarter faster than contiguous ranges per
// group.
struct walk {
	long row, left, each; // left: rows left in the chunk
};

FN struct walk first_row(long each)
{
	struct walk w;
	w.row = (long)GROUP_ID(0) * each;
	w.left = w.each = each;
	return w;
}

FN struct walk row_after(struct walk w)
{
	w.row++;
	if (--w.left == 0) {
		w.row += ((long)GROUPS(0) - 1) * w.each;
		w.left = w.each;
	}
	return w;
}

// The row after the next, which is prefetched during this one; at the end, the row itself.
FN long row_later(struct walk w, long count)
{
	struct walk later = row_after(row_after(w));
	return later.row < count ? later.row : w.row;
}

// Reductions over all items of the group; each gets the same bits. tree has ITEMS elements. The
// maximum ignores NaN.
#if ITEMS > 1 && defined WARP
#define TEAM (ITEMS < WARP ? ITEMS : WARP) // items that exchange registers

FN float team_join(float x, LOCAL_POINTER float *tree, int item, bool largest)
{
	UNROLL
	for (int k = TEAM / 2; k; k /= 2) {
		float y = SHUFFLE_XOR(x, k);
		x = largest ? fmax(x, y) : x + y;
	}
#if ITEMS > WARP
	if (item % WARP == 0)
		tree[item / WARP] = x;
	BARRIER();
	x = tree[0];
	UNROLL
	for (int k = 1; k < ITEMS / WARP; k++)
		x = largest ? fmax(x, tree[k]) : x + tree[k];
	BARRIER();
#endif
	return x;
}

FN float group_sum(float x, LOCAL_POINTER float *tree, int item)
{
	return team_join(x, tree, item, false);
}

FN float group_max(float x, LOCAL_POINTER float *tree, int item)
{
	return team_join(x, tree, item, true);
}

#else

FN float group_sum(float x, LOCAL_POINTER float *tree, int item)
{
#if ITEMS > 1
	tree[item] = x;
	BARRIER();
	for (int k = ITEMS / 2; k; k /= 2) {
		if (item < k)
			tree[item] += tree[item + k];
		BARRIER();
	}
	x = tree[0];
	BARRIER();
#endif
	return x;
}

FN float group_max(float x, LOCAL_POINTER float *tree, int item)
{
#if ITEMS > 1
	tree[item] = x;
	BARRIER();
	for (int k = ITEMS / 2; k; k /= 2) {
		if (item < k)
			tree[item] = fmax(tree[item], tree[item + k]);
		BARRIER();
	}
	x = tree[0];
	BARRIER();
#endif
	return x;
}

#endif

FN VEC greater(VEC x, VEC y) // y if either is NaN; one instruction
{
	return VEC_GREATER(x, y);
}

// The maximum of a row; ignores NaN, which reappears in the exponentials.
FN float row_max(GLOBAL const stored *x, int n, LOCAL_POINTER float *tree, int item)
{
	VEC m[4];
	int i = item * VEC_WIDTH;
	UNROLL
	for (int k = 0; k < 4; k++)
		m[k] = VEC_SPLAT(-INFINITY);
	for (; i + 3 * STEP + VEC_WIDTH <= n; i += 4 * STEP)
		UNROLL
		for (int k = 0; k < 4; k++)
			m[k] = greater(load(x + i + k * STEP, VEC_WIDTH, 0.0f), m[k]);
	for (; i < n; i += STEP)
		m[0] = greater(load(x + i, n - i, -INFINITY), m[0]);
	return group_max(VEC_MAX(greater(greater(m[0], m[1]), greater(m[2], m[3]))), tree, item);
}

// A finished row whose non-temporal store is deferred, in whole vectors: y = kept a or, if nothing
// was kept, y = x - largest - log_sum (not their sum, which would lose a small logarithm).
struct late {
	GLOBAL stored *y;
	GLOBAL const stored *x;
	LOCAL_POINTER const float *kept;
	VEC a, largest, log_sum;
};

FN void late_write(const struct late *l, bool kept, int i)
{
	VEC v;
	if (kept)
		v = VEC_LOAD(l->kept + i) * l->a;
	else
		v = load(l->x + i, VEC_WIDTH, 0.0f) - l->largest - l->log_sum;
	store(v, l->y + i, VEC_WIDTH, true);
}

// This item's part of the sum of exp(x - largest) over a row; `keep`: stores its terms in `kept`. x
// is already in cache and memory would be idle, so meanwhile the row `later`, which is read next,
// is prefetched and, if `writes`, `late` is written (which has kept terms if this row keeps them).
FN float row_exp_late(GLOBAL const stored *x, int n, float largest, GLOBAL const stored *later,
	LOCAL_POINTER float *kept, bool keep, const struct late *late, bool writes, int item)
{
	VEC m = VEC_SPLAT(largest), sum[4], e[4];
	int i = item * VEC_WIDTH;
	UNROLL
	for (int k = 0; k < 4; k++)
		sum[k] = VEC_SPLAT(0.0f);
	for (; i + 3 * STEP + VEC_WIDTH <= n; i += 4 * STEP) {
		UNROLL
		for (int k = 0; k < 4; k++) {
			FETCH(later + i + k * STEP);
			e[k] = load(x + i + k * STEP, VEC_WIDTH, 0.0f) - m;
		}
		exp_each(e, 4);
		UNROLL
		for (int k = 0; k < 4; k++) {
			if (keep)
				VEC_STORE(e[k], kept + i + k * STEP);
			sum[k] += e[k];
			if (writes)
				late_write(late, keep, i + k * STEP);
		}
	}
	for (; i < n; i += STEP) {
		e[0] = exp_one(load(x + i, n - i, -INFINITY) - m);
		if (keep)
			VEC_STORE(e[0], kept + i);
		sum[0] += e[0];
		if (writes)
			late_write(late, keep, i);
	}
	return VEC_SUM((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

FN float row_exp(GLOBAL const stored *x, int n, float largest, GLOBAL const stored *later,
	LOCAL_POINTER float *kept, bool keep, int item)
{
	struct late none;
	return row_exp_late(x, n, largest, later, kept, keep, &none, false, item);
}

// A single number: passed by value, or in memory.
struct number {
	long whole;
	float real;
	int from; // dtype of the number in memory; 0: use the values above
};

FN float number_real(GLOBAL uchar *base, ulong at, struct number n)
{
	if (n.from == 1)
		return *(GLOBAL float *)(base + at);
	if (n.from == 7)
		return (float)*(GLOBAL int *)(base + at);
	if (n.from == 8)
		return (float)*(GLOBAL long *)(base + at);
	return n.real;
}

FN long number_whole(GLOBAL uchar *base, ulong at, struct number n)
{
	if (n.from == 1)
		return (long)*(GLOBAL float *)(base + at);
	if (n.from == 7)
		return *(GLOBAL int *)(base + at);
	if (n.from == 8)
		return *(GLOBAL long *)(base + at);
	return n.whole;
}
