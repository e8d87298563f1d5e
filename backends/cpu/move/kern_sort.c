// SPDX-License-Identifier: Apache-2.0
// SORT: the first k of each row of the last axis in order, stable, NaN last; values and positions.
// Elements become unsigned keys with the same order (-0 equals 0, NaN is the last key in either
// direction), which are radix-sorted, 8 bits per pass. The bits in which the keys of a row differ
// are put before the position in one word, if they fit, otherwise key and position are a pair. If k
// is a small part of the row, the k-th key is found first and later elements are dropped. A long
// row is divided into chunks, which the team processes.
#include "config.h"

#include <string.h>

#include "walk.h"

enum {
	PER_ITEM = 1 << 11, // elements per work item
	SHORT = 32,      // max elements sorted by insertion
	PART = 8,        // k below n / PART: select first
	LONG = 1 << 16,  // min elements of a row that is divided
	CHUNKS = 8,      // of such a row
	BUCKETS = 256
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

// The bits that all keys have, and those that any has.
struct common {
	uint64_t all, any;
};

#define KEYS(name, T, key) \
	static struct common name(uint64_t *to, const char *from, int64_t n, int64_t stride, \
				  bool down) \
	{ \
		const T *x = (const T *)from; \
		struct common c = { UINT64_MAX, 0 }; \
		for (int64_t i = 0; i < n; i++) { \
			T u = x[i * stride]; \
			to[i] = key; \
			c.all &= to[i]; \
			c.any |= to[i]; \
		} \
		return c; \
	}
KEYS(keys_f32, uint32_t, real_key(u, 32, 0x7f800000, down))
KEYS(keys_f64, uint64_t, real_key(u, 64, 0x7ff0000000000000, down))
KEYS(keys_f16, uint16_t, real_key(u, 16, 0x7c00, down))
KEYS(keys_bf16, uint16_t, real_key(u, 16, 0x7f80, down))
KEYS(keys_i8, uint8_t, whole_key(u, 8, 0x80, down))
KEYS(keys_u8, uint8_t, whole_key(u, 8, 0, down))
KEYS(keys_i32, uint32_t, whole_key(u, 32, 0x80000000, down))
KEYS(keys_i64, uint64_t, whole_key(u, 64, 0x8000000000000000, down))

static struct common (*const keys[])(uint64_t *, const char *, int64_t, int64_t, bool) = {
	[yoke_f32] = keys_f32,   [yoke_f64] = keys_f64, [yoke_f16] = keys_f16,
	[yoke_bf16] = keys_bf16, [yoke_i8] = keys_i8,   [yoke_u8] = keys_u8,
	[yoke_i32] = keys_i32,   [yoke_i64] = keys_i64, [yoke_bool] = keys_u8,
};

// ---- sorting ----

#define SORTS(name, T, key_of) \
	static void name##_insert(T *a, int64_t n) \
	{ \
		for (int64_t i = 1; i < n; i++) { \
			T p = a[i]; \
			int64_t k = i; \
			for (; k > 0 && key_of(a[k - 1]) > key_of(p); k--) \
				a[k] = a[k - 1]; \
			a[k] = p; \
		} \
	} \
	/* moves the k elements with the least keys, of `bytes` bytes, to the front, keeping their \
	   order */ \
	static void name##_select(T *a, int64_t n, int64_t k, int bytes) \
	{ \
		uint64_t prefix = 0, mask = 0; /* bits of the k-th key found so far */ \
		/* left: how many elements with that prefix are in the result */ \
		int64_t left = k, kept = 0; \
		for (int d = bytes - 1; d >= 0; d--) { \
			int64_t count[BUCKETS] = { 0 }; \
			for (int64_t i = 0; i < n; i++) \
				count[key_of(a[i]) >> 8 * d & 255] += \
					(key_of(a[i]) & mask) == prefix; \
			uint64_t v = 0; \
			for (; count[v] < left; v++) \
				left -= count[v]; \
			prefix |= v << 8 * d; \
			mask |= (uint64_t)255 << 8 * d; \
		} \
		for (int64_t i = 0; i < n && kept < k; i++) \
			if (key_of(a[i]) < prefix || (key_of(a[i]) == prefix && left-- > 0)) \
				a[kept++] = a[i]; \
	}
#define OF_PAIR(p) (p).key
#define OF_WORD(w) (w)
SORTS(pair, struct pair, OF_PAIR)
SORTS(word, uint64_t, OF_WORD)
#undef SORTS

// Stable sort by the low `bytes` bytes of the keys. b: scratch for n elements. Returns a or b,
// whichever holds the result.
static struct pair *radix(struct pair *a, struct pair *b, int64_t n, int bytes)
{
	int64_t count[8][BUCKETS];
	memset(count, 0, sizeof *count * (size_t)bytes);
	for (int64_t i = 0; i < n; i++)
		for (int d = 0; d < bytes; d++)
			count[d][a[i].key >> 8 * d & 255]++;
	for (int d = 0; d < bytes; d++) {
		int64_t *at = count[d], first = 0;
		if (at[a[0].key >> 8 * d & 255] == n) // all digits are equal
			continue;
		for (int v = 0; v < BUCKETS; v++) {
			int64_t c = at[v];
			at[v] = first;
			first += c;
		}
		for (int64_t i = 0; i < n; i++)
			b[at[a[i].key >> 8 * d & 255]++] = a[i];
		struct pair *t = a;
		a = b, b = t;
	}
	return a;
}

// ---- rows ----

// A row while it is sorted.
struct row {
	const struct job *j;
	const char *x;
	char *value;    // where its values go
	int64_t *index; // where its positions go
	uint64_t *a, *b; // words: the differing bits of the key, then the position
	int64_t n;
	int places, shift; // bits of the position; where the digit begins
	uint64_t low, high; // mask of the differing bits of the keys; the bits above them
	int chunks;
	struct common common[CHUNKS];
	int64_t count[CHUNKS][BUCKETS];
};

static void each_chunk(struct row *r, void (*fn)(void *row, int64_t chunk))
{
	if (r->chunks > 1)
		yk_team_run(r->chunks, fn, r);
	else
		fn(r, 0);
}

// The elements of a chunk, of n in all.
static int64_t chunk_of(const struct row *r, int64_t chunk, int64_t n, int64_t *end)
{
	*end = n * (chunk + 1) / r->chunks;
	return n * chunk / r->chunks;
}

static void make_keys(void *row, int64_t chunk)
{
	struct row *r = row;
	const struct yoke_view *x = r->j->x;
	const int64_t step = x->strides[x->rank - 1];
	int64_t end, i = chunk_of(r, chunk, r->n, &end);
	r->common[chunk] = keys[x->dtype](r->a + i, r->x + i * step * (int64_t)yk_esize(x->dtype),
					  end - i, step, r->j->descending);
}

static uint64_t position_mask(const struct row *r)
{
	return ((uint64_t)1 << r->places) - 1;
}

static void make_words(void *row, int64_t chunk)
{
	const struct row *r = row;
	const uint64_t at = position_mask(r);
	int64_t end;
	for (int64_t i = chunk_of(r, chunk, r->n, &end); i < end; i++)
		r->a[i] = (r->a[i] & r->low) << r->places | ((uint64_t)i & at);
}

static void count_digits(void *row, int64_t chunk)
{
	struct row *r = row;
	int64_t end, *count = r->count[chunk];
	memset(count, 0, sizeof *r->count);
	for (int64_t i = chunk_of(r, chunk, r->n, &end); i < end; i++)
		count[r->a[i] >> r->shift & 255]++;
}

static void move_words(void *row, int64_t chunk)
{
	struct row *r = row;
	int64_t end, *to = r->count[chunk];
	for (int64_t i = chunk_of(r, chunk, r->n, &end); i < end; i++)
		r->b[to[r->a[i] >> r->shift & 255]++] = r->a[i];
}

// Counts become the positions where each chunk's elements of a digit go; false: all digits are
// equal.
static bool place_digits(struct row *r)
{
	int64_t first = 0;
	if (r->chunks == 1) {
		int64_t *at = r->count[0];
		if (at[r->a[0] >> r->shift & 255] == r->n)
			return false;
		for (int v = 0; v < BUCKETS; v++) {
			const int64_t n = at[v];
			at[v] = first;
			first += n;
		}
		return true;
	}
	for (int v = 0; v < BUCKETS; v++) {
		const int64_t before = first;
		for (int c = 0; c < r->chunks; c++) {
			const int64_t n = r->count[c][v];
			r->count[c][v] = first;
			first += n;
		}
		if (first - before == r->n)
			return false;
	}
	return true;
}

static bool is_whole(int dtype)
{
	return dtype != yoke_f32 && dtype != yoke_f64 && dtype != yoke_f16 && dtype != yoke_bf16;
}

static void copy(char *y, const char *x, size_t size)
{
	switch (size) {
	case 1: *y = *x; break;
	case 2: memcpy(y, x, 2); break;
	case 4: memcpy(y, x, 4); break;
	default: memcpy(y, x, 8);
	}
}

// The integers of sorted words.
#define WHOLE(name, T, turn) \
	static void name(const struct row *r, int64_t i, int64_t end, int64_t to) \
	{ \
		for (T *y = (T *)(void *)r->value; i < end; i++) { \
			const uint64_t key = r->high | r->a[i] >> r->places; \
			y[i * to] = (T)((r->j->descending ? ~key : key) ^ (turn)); \
		} \
	}
WHOLE(whole_i8, uint8_t, 0x80)
WHOLE(whole_u8, uint8_t, 0)
WHOLE(whole_i32, uint32_t, 0x80000000)
WHOLE(whole_i64, uint64_t, 0x8000000000000000)
#undef WHOLE

static int64_t step_of(const struct yoke_view *v)
{
	return v->strides[v->rank - 1];
}

static void give_words(void *row, int64_t chunk)
{
	const struct row *r = row;
	const struct job *j = r->j;
	const int64_t size = (int64_t)yk_esize(j->x->dtype), from = step_of(j->x) * size;
	const uint64_t at = position_mask(r);
	int64_t end;
	const int64_t first = chunk_of(r, chunk, j->k, &end);

	for (int64_t i = first; j->index && i < end; i++)
		r->index[i * step_of(j->index)] = (int64_t)(r->a[i] & at);
	if (!j->value)
		return;
	switch (j->x->dtype) {
	case yoke_i8: whole_i8(r, first, end, step_of(j->value)); break;
	case yoke_u8:
	case yoke_bool: whole_u8(r, first, end, step_of(j->value)); break;
	case yoke_i32: whole_i32(r, first, end, step_of(j->value)); break;
	case yoke_i64: whole_i64(r, first, end, step_of(j->value)); break;
	default:
		for (int64_t i = first; i < end; i++)
			copy(r->value + i * step_of(j->value) * size,
			     r->x + (int64_t)(r->a[i] & at) * from, (size_t)size);
	}
}

static void sort_words(struct row *r, int bits)
{
	const int64_t k = r->j->k;

	each_chunk(r, make_words);
	if (r->n > SHORT && k < r->n / PART)
		word_select(r->a, r->n, k, (r->places + bits + 7) / 8), r->n = k;
	if (r->n <= SHORT)
		word_insert(r->a, r->n);
	for (r->shift = r->places; r->n > SHORT && r->shift < r->places + bits; r->shift += 8) {
		each_chunk(r, count_digits);
		if (!place_digits(r))
			continue;
		each_chunk(r, move_words);
		uint64_t *t = r->a;
		r->a = r->b, r->b = t;
	}
	each_chunk(r, give_words);
}

// The keys are at the end of the memory for two buffers of n pairs, which begins at a.
static void sort_pairs(const struct row *r, struct pair *a)
{
	const struct job *j = r->j;
	const size_t size = yk_esize(j->x->dtype);
	int64_t n = r->n;

	for (int64_t i = 0; i < n; i++)
		a[i] = (struct pair){ r->a[i], i };
	if (n > SHORT && j->k < n / PART)
		pair_select(a, n, j->k, j->bytes), n = j->k;
	if (n <= SHORT)
		pair_insert(a, n);
	else
		a = radix(a, a + n, n, j->bytes);
	for (int64_t i = 0; j->value && i < j->k; i++)
		copy(r->value + i * step_of(j->value) * (int64_t)size,
		     r->x + a[i].at * step_of(j->x) * (int64_t)size, size);
	for (int64_t i = 0; j->index && i < j->k; i++)
		r->index[i * step_of(j->index)] = a[i].at;
}

static int bits_of(uint64_t x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static void *first_of(const struct yoke_view *v, int64_t row)
{
	const int64_t size = (int64_t)yk_esize(v->dtype);
	return (char *)yk_ptr(v) + offset_of(v->dims, v->strides, v->rank - 1, row) * size;
}

static void sort_row(const struct job *j, struct pair *memory, int64_t index)
{
	struct row r; // its counts are set for each digit
	struct common c = { UINT64_MAX, 0 };

	r.j = j;
	r.n = j->n;
	r.chunks = j->n >= LONG ? CHUNKS : 1;
	r.x = first_of(j->x, index);
	r.value = j->value ? first_of(j->value, index) : NULL;
	r.index = j->index ? first_of(j->index, index) : NULL;
	r.a = (uint64_t *)memory + 3 * r.n;
	r.b = (uint64_t *)memory;
	each_chunk(&r, make_keys);
	for (int i = 0; i < r.chunks; i++)
		c.all &= r.common[i].all, c.any |= r.common[i].any;
	const int bits = bits_of(c.any & ~c.all);
	r.low = bits ? UINT64_MAX >> (64 - bits) : 0;
	r.high = c.all & ~r.low;
	r.places =
		j->index || (j->value && !is_whole(j->x->dtype)) ? bits_of((uint64_t)r.n - 1) : 0;
	if (bits + r.places <= 64)
		sort_words(&r, bits);
	else
		sort_pairs(&r, memory);
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
	for (int64_t r = index * j->each; r < end; r++)
		sort_row(j, a, r);
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
	if (j.rows == 1)
		item(&j, 0);
	else
		yk_team_run((j.rows + j.each - 1) / j.each, item, &j);
	if (atomic_load(&j.no_memory))
		return yk_cpu_fail(YOKE_ENOMEM,
				   "sort: no memory for rows of %lld elements",
				   (long long)j.n);
	return 0;
}

YK_KERNEL(sort, SORT) = { .can = can, .run = run, .impl = { "radix" } };
