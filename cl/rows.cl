// SPDX-License-Identifier: Apache-2.0
// Rows: what the texts of named ops share.  Behind half.cl.
// A row is the last axis of a tensor and lies dense; the outer axes, merged where they follow each
// other, are counted through.  A group of ITEMS items works on a row together, each on vectors that
// lie ITEMS vectors apart: one item where the driver runs a group as a loop, a tree in local
// memory elsewhere.  Values are f32 in registers whatever STORE says they are in memory.
#ifndef ITEMS // of a group, a power of two
#define ITEMS 64
#endif
#ifndef STORE // 0: f32, 1: f16, 2: bf16
#define STORE 0
#endif
#define STEP (ITEMS * VEC_WIDTH)
#define OUTER 4

struct rows {
	long rank; // of the outer axes
	long dims[OUTER], strides[OUTER];
};

#if STORE == 0
typedef float stored;
#define REAL_OF(bits) (bits)
#define STORED_OF(x) (x)
#elif STORE == 1
typedef ushort stored;
#define REAL_OF(bits) f32_of_f16(bits)
#define STORED_OF(x) f16_of_f32(x)
#else
typedef ushort stored;
#define REAL_OF(bits) f32_of_bf16(bits)
#define STORED_OF(x) bf16_of_f32(x)
#endif

FN GLOBAL stored *row_at(GLOBAL uchar *base, ulong at, const struct rows *r, long i)
{
	long to = 0;
	for (int k = (int)r->rank - 1; k > 0; k--) {
		to += i % r->dims[k] * r->strides[k];
		i /= r->dims[k];
	}
	return (GLOBAL stored *)(base + at) + (r->rank ? to + i * r->strides[0] : 0);
}

// A vector of a row of which `left` elements are there; what is not there counts as `fill`.
FN VEC load_f32(GLOBAL const float *from, int left, float fill)
{
#if VEC_WIDTH > 1
	if (left < VEC_WIDTH) {
		float part[VEC_WIDTH];
		for (int l = 0; l < VEC_WIDTH; l++)
			part[l] = l < left ? from[l] : fill;
		return VEC_LOAD(part);
	}
#endif
	return VEC_LOAD(from);
}

FN void store_f32(VEC v, GLOBAL float *to, int left)
{
#if VEC_WIDTH > 1
	if (left < VEC_WIDTH) {
		float part[VEC_WIDTH];
		VEC_STORE(v, part);
		for (int l = 0; l < left; l++)
			to[l] = part[l];
		return;
	}
#endif
	VEC_STORE(v, to);
}

#if STORE == 0
FN VEC load(GLOBAL const stored *from, int left, float fill)
{
	return load_f32(from, left, fill);
}

// stream: a whole row is aligned, and too much is written for the caches
FN void store(VEC v, GLOBAL stored *to, int left, bool stream)
{
	if (stream)
		VEC_STREAM(v, to);
	else
		store_f32(v, to, left);
}
#else
FN VEC load(GLOBAL const stored *from, int left, float fill)
{
	float part[VEC_WIDTH];
	if (left >= VEC_WIDTH)
		for (int l = 0; l < VEC_WIDTH; l++)
			part[l] = REAL_OF(from[l]);
	else
		for (int l = 0; l < VEC_WIDTH; l++)
			part[l] = l < left ? REAL_OF(from[l]) : fill;
	return VEC_LOAD(part);
}

FN void store(VEC v, GLOBAL stored *to, int left, bool stream)
{
	float part[VEC_WIDTH];
	VEC_STORE(v, part);
	if (left >= VEC_WIDTH)
		for (int l = 0; l < VEC_WIDTH; l++)
			to[l] = STORED_OF(part[l]);
	else
		for (int l = 0; l < left; l++)
			to[l] = STORED_OF(part[l]);
}
#endif

// Over all items of the group; tree has ITEMS elements.
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

// NaN counts as small.
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

// The greatest of a row; NaN counts as small: it comes back in the exponentials.
FN float row_max(GLOBAL const stored *x, int n, LOCAL_POINTER float *tree, int item)
{
	VEC m[4];
	int i = item * VEC_WIDTH;
	for (int k = 0; k < 4; k++)
		m[k] = VEC_SPLAT(-INFINITY);
	for (; i + 3 * STEP + VEC_WIDTH <= n; i += 4 * STEP)
		for (int k = 0; k < 4; k++)
			m[k] = fmax(m[k], load(x + i + k * STEP, VEC_WIDTH, 0.0f));
	for (; i < n; i += STEP)
		m[0] = fmax(m[0], load(x + i, n - i, -INFINITY));
	return group_max(VEC_MAX(fmax(fmax(m[0], m[1]), fmax(m[2], m[3]))), tree, item);
}
