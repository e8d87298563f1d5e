// SPDX-License-Identifier: Apache-2.0
// SORT: the first k of each row of the last axis in order, stable, NaN last; values and positions.
// Elements become unsigned keys with the same order (-0 equals 0, NaN is the last key in either
// direction), which are radix-sorted, 8 bits per pass. If k is a small part of the row, the k-th
// key is found first and later elements are dropped.
#include "config.h"

#include <string.h>

#include "walk.h"

enum {
	PER_ITEM = 1 << 14, // elements per work item
	SHORT = 32,      // max elements sorted by insertion
	PART = 8         // k below n / PART: select first
};

struct pair {
	uint64_t key;
	int64_t at; // position in the row
};

struct job {
	const struct yoke_view *x, *value, *index; // value, index: NULL if not requested
	int64_t n, k, rows, each;
	bool descending;
	int bytes; // bytes per key
	atomic_bool no_memory;
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 1 || op->nout != 2 || op->nattr < 2)
		return 0;
	const struct yoke_view *x = &op->in[0];
	const int last = x->rank - 1;
	if (x->kind != YOKE_VIEW_BUFFER || last < 0 || op->attr[0].i < 0 ||
	    op->attr[0].i > x->dims[last])
		return 0;
	for (int i = 0; i < 2; i++) {
		const struct yoke_view *y = &op->out[i];
		if (y->kind == YOKE_VIEW_NONE)
			continue;
		if (y->kind != YOKE_VIEW_BUFFER || y->rank != x->rank ||
		    y->dtype != (i ? yoke_i64 : x->dtype) ||
		    !same_dims(x->dims, y->dims, last) || y->dims[last] != op->attr[0].i)
			return 0;
	}
	return 1;
}

// ---- keys ----

// Bits of a floating type as an integer with the same order; NaN: all ones.
static uint64_t real_key(uint64_t u, int bits, uint64_t infinity, bool descending)
{
	const uint64_t sign = (uint64_t)1 << (bits - 1), all = sign | (sign - 1);
	if ((u & ~sign) > infinity)
		return all;
	if (!(u & ~sign))
		u = 0;
	u = u & sign ? ~u & all : u | sign;
	return descending ? ~u & all : u;
}

// turn: the sign bit of signed types
static uint64_t whole_key(uint64_t u, int bits, uint64_t turn, bool descending)
{
	u ^= turn;
	return descending ? ~u & UINT64_MAX >> (64 - bits) : u;
}

#define KEYS(name, T, key) \
	static void name(struct pair *to, const char *from, int64_t n, int64_t stride, \
			 bool down) \
	{ \
		const T *x = (const T *)from; \
		for (int64_t i = 0; i < n; i++) { \
			T u = x[i * stride]; \
			to[i] = (struct pair){ key, i }; \
		} \
	}
KEYS(keys_f32, uint32_t, real_key(u, 32, 0x7f800000, down))
KEYS(keys_f64, uint64_t, real_key(u, 64, 0x7ff0000000000000, down))
KEYS(keys_f16, uint16_t, real_key(u, 16, 0x7c00, down))
KEYS(keys_bf16, uint16_t, real_key(u, 16, 0x7f80, down))
KEYS(keys_i8, uint8_t, whole_key(u, 8, 0x80, down))
KEYS(keys_u8, uint8_t, whole_key(u, 8, 0, down))
KEYS(keys_i32, uint32_t, whole_key(u, 32, 0x80000000, down))
KEYS(keys_i64, uint64_t, whole_key(u, 64, 0x8000000000000000, down))

static void (*const keys[])(struct pair *, const char *, int64_t, int64_t, bool) = {
	[yoke_f32] = keys_f32,   [yoke_f64] = keys_f64, [yoke_f16] = keys_f16,
	[yoke_bf16] = keys_bf16, [yoke_i8] = keys_i8,   [yoke_u8] = keys_u8,
	[yoke_i32] = keys_i32,   [yoke_i64] = keys_i64, [yoke_bool] = keys_u8,
};

// ---- sorting ----

static void insert(struct pair *a, int64_t n)
{
	for (int64_t i = 1; i < n; i++) {
		struct pair p = a[i];
		int64_t k = i;
		for (; k > 0 && a[k - 1].key > p.key; k--)
			a[k] = a[k - 1];
		a[k] = p;
	}
}

// Stable sort by the low `bytes` bytes of the keys. b: scratch for n elements. Returns a or b,
// whichever holds the result.
#define RADIX(name, T, key_of) \
	static T *name(T *a, T *b, int64_t n, int bytes) \
	{ \
		int64_t count[8][256]; \
		memset(count, 0, sizeof *count * (size_t)bytes); \
		for (int64_t i = 0; i < n; i++) \
			for (int d = 0; d < bytes; d++) \
				count[d][key_of(a[i]) >> 8 * d & 255]++; \
		for (int d = 0; d < bytes; d++) { \
			int64_t *at = count[d], first = 0; \
			if (at[key_of(a[0]) >> 8 * d & 255] == n) /* all digits are equal */ \
				continue; \
			for (int v = 0; v < 256; v++) { \
				int64_t c = at[v]; \
				at[v] = first; \
				first += c; \
			} \
			for (int64_t i = 0; i < n; i++) \
				b[at[key_of(a[i]) >> 8 * d & 255]++] = a[i]; \
			T *t = a; \
			a = b, b = t; \
		} \
		return a; \
	}
#define OF_PAIR(p) (p).key
#define OF_KEY(k) (k)
RADIX(radix, struct pair, OF_PAIR)
RADIX(radix_keys, uint64_t, OF_KEY)
#undef RADIX

// Moves the first k pairs to the front, keeping their order.
static void select_first(struct pair *a, int64_t n, int64_t k, int bytes)
{
	uint64_t prefix = 0, mask = 0; // bits of the k-th key found so far
	int64_t left = k, kept = 0;    // left: how many pairs with that prefix are in the result
	for (int d = bytes - 1; d >= 0; d--) {
		int64_t count[256] = { 0 };
		for (int64_t i = 0; i < n; i++)
			count[a[i].key >> 8 * d & 255] += (a[i].key & mask) == prefix;
		uint64_t v = 0;
		for (; count[v] < left; v++)
			left -= count[v];
		prefix |= v << 8 * d;
		mask |= (uint64_t)255 << 8 * d;
	}
	for (int64_t i = 0; i < n && kept < k; i++)
		if (a[i].key < prefix || (a[i].key == prefix && left-- > 0))
			a[kept++] = a[i];
}

// ---- rows ----

static void copy(char *y, const char *x, size_t size)
{
	switch (size) {
	case 1: *y = *x; break;
	case 2: memcpy(y, x, 2); break;
	case 4: memcpy(y, x, 4); break;
	default: memcpy(y, x, 8);
	}
}

// Integers without positions: their keys alone are sorted.
#define WHOLE(name, T, turn) \
	static void name(const struct job *j, uint64_t *a, const T *x, int64_t step, T *y, int64_t to) \
	{ \
		for (int64_t i = 0; i < j->n; i++) \
			a[i] = whole_key((uint64_t)x[i * step], 8 * (int)sizeof(T), turn, j->descending); \
		a = radix_keys(a, a + j->n, j->n, (int)sizeof(T)); \
		for (int64_t i = 0; i < j->k; i++) \
			y[i * to] = (T)((j->descending ? ~a[i] : a[i]) ^ (turn)); \
	}
WHOLE(whole_i8, uint8_t, 0x80)
WHOLE(whole_u8, uint8_t, 0)
WHOLE(whole_i32, uint32_t, 0x80000000)
WHOLE(whole_i64, uint64_t, 0x8000000000000000)
#undef WHOLE

// Does the job sort keys alone?
static bool is_whole(const struct job *j)
{
	const int dtype = j->x->dtype;
	return !j->index && j->n > SHORT && j->k >= j->n / PART &&
	       (dtype == yoke_i8 || dtype == yoke_u8 || dtype == yoke_bool || dtype == yoke_i32 || dtype == yoke_i64);
}

static void whole_row(const struct job *j, uint64_t *a, int64_t r)
{
	const struct yoke_view *x = j->x, *y = j->value;
	const int last = x->rank - 1;
	const int64_t size = (int64_t)yk_esize(x->dtype), step = x->strides[last], to = y->strides[last];
	const void *from = (const char *)yk_ptr(x) + offset_of(x->dims, x->strides, last, r) * size;
	void *result = (char *)yk_ptr(y) + offset_of(y->dims, y->strides, last, r) * size;
	switch (x->dtype) {
	case yoke_i8: whole_i8(j, a, from, step, result, to); break;
	case yoke_i32: whole_i32(j, a, from, step, result, to); break;
	case yoke_i64: whole_i64(j, a, from, step, result, to); break;
	default: whole_u8(j, a, from, step, result, to);
	}
}

static void row(const struct job *j, struct pair *a, int64_t r)
{
	const struct yoke_view *x = j->x;
	const int last = x->rank - 1;
	const int64_t size = (int64_t)yk_esize(x->dtype), step = x->strides[last] * size;
	const char *from =
		(const char *)yk_ptr(x) + offset_of(x->dims, x->strides, last, r) * size;
	int64_t n = j->n;

	keys[x->dtype](a, from, n, x->strides[last], j->descending);
	if (n > SHORT && j->k < n / PART)
		select_first(a, n, j->k, j->bytes), n = j->k;
	if (n <= SHORT)
		insert(a, n);
	else
		a = radix(a, a + n, n, j->bytes);
	if (j->value) {
		const struct yoke_view *y = j->value;
		char *to = (char *)yk_ptr(y) +
			   offset_of(y->dims, y->strides, last, r) * size;
		for (int64_t i = 0; i < j->k; i++)
			copy(to + i * y->strides[last] * size, from + a[i].at * step,
			     (size_t)size);
	}
	if (j->index) {
		const struct yoke_view *y = j->index;
		int64_t *to =
			(int64_t *)yk_ptr(y) + offset_of(y->dims, y->strides, last, r);
		for (int64_t i = 0; i < j->k; i++)
			to[i * y->strides[last]] = a[i].at;
	}
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	// two buffers: radix sort alternates between them
	struct pair *a = yk_team_scratch(2 * (size_t)j->n * sizeof *a);
	if (!a) {
		atomic_store(&j->no_memory, true);
		return;
	}
	int64_t end = (index + 1) * j->each < j->rows ? (index + 1) * j->each : j->rows;
	const bool whole = j->value && is_whole(j);
	for (int64_t r = index * j->each; r < end; r++) {
		if (whole)
			whole_row(j, (uint64_t *)a, r);
		else
			row(j, a, r);
	}
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .x = &op->in[0],
			 .k = op->attr[0].i,
			 .descending = op->attr[1].i,
			 .rows = 1 };

	(void)impl, (void)prepared;
	j.value = op->out[0].kind == YOKE_VIEW_NONE ? NULL : &op->out[0];
	j.index = op->out[1].kind == YOKE_VIEW_NONE ? NULL : &op->out[1];
	j.n = j.x->dims[j.x->rank - 1];
	for (int d = 0; d < j.x->rank - 1; d++)
		j.rows *= j.x->dims[d];
	if (!j.rows || !j.k)
		return 0;
	j.bytes = (int)yk_esize(j.x->dtype);
	j.each = PER_ITEM / j.n + 1;
	atomic_init(&j.no_memory, false);
	yk_team_run((j.rows + j.each - 1) / j.each, item, &j);
	if (atomic_load(&j.no_memory))
		return yk_cpu_fail(YOKE_ENOMEM,
				   "sort: no memory for rows of %lld elements",
				   (long long)j.n);
	return 0;
}

YK_KERNEL(sort, SORT) = { .can = can, .run = run, .impl = { "radix" } };
