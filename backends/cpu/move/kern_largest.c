// SPDX-License-Identifier: Apache-2.0
// LARGEST: the k elements of a = x + e with the largest magnitude, and a without them.
// A sample gives a likely lower bound of the k-th largest. One pass marks the elements at or above
// it, one bit each, lists their keys, and writes the remainder output. If at least k are marked,
// the k-th is among them; otherwise all elements are marked. It is found by radix selection on the
// 31 bits of |a| (NaN: all ones): 11, then 10, then 10 bits; each round counts the marked elements
// that match the bits found so far. Chunks depend on the shape alone; their counts are kept, so
// that each chunk knows where its results go. Elements equal to the k-th are taken in order from
// the front.
#include "config.h"

#include <string.h>

#include "../vector/vec.h"
#include "walk.h"

enum {
	BINS = 1 << 11,
	CHUNKS = 128, // max chunks
	MIN_SIZE = 1 << 15, // min elements per chunk
	WORD = 32,       // elements per word of marks
	SAMPLES = 1 << 14,
	LISTED = 8,      // up to one in LISTED elements is listed; a chunk with more is read again
	NAN_KEY = 0x7fffffff, FIRST_NAN = 0x7f800001
};

struct chunk {
	uint32_t count[BINS];    // candidates of the round, by their next bits
	uint32_t marked;
	// elements above the k-th element's bits so far; elements equal to them
	uint32_t above, ties;
	int64_t to, left;        // where its results begin, and how many equal elements it takes
};

struct job {
	const float *x, *e; // NULL: absent
	float *rest, *value; // NULL: not requested; also `place`
	int32_t *place;
	int64_t n, each, chunks;
	uint32_t min;        // marked keys are at least this
	uint32_t prefix, mask; // the known bits of the k-th element
	int shift;             // of the round's bits
	uint32_t bins;         // number of values of the round's bits
	bool made;             // `rest` is stored, and read instead of x + e
	uint32_t *marks, *sample, *list; // list: of chunk p from element p * each / LISTED on
	struct chunk *chunk;
};

// Elements per chunk, in whole words.
static int64_t each_of(int64_t n)
{
	const int64_t p = n / MIN_SIZE, chunks = p < 1 ? 1 : yk_min(p, CHUNKS);
	return (n / chunks + WORD) / WORD * WORD;
}

static bool is_vector(const struct yoke_view *v, int dtype, int64_t n)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == dtype && v->rank <= 1 &&
	       yk_elements(v) == n && yk_dense(v);
}

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 3 || op->nattr < 1 || op->in[0].kind != YOKE_VIEW_BUFFER)
		return 0;
	const int64_t n = yk_elements(&op->in[0]), k = op->attr[0].i;
	if (n > INT32_MAX || k < 0 || k > n || !is_vector(&op->in[0], yoke_f32, n) ||
	    (op->in[1].kind != YOKE_VIEW_NONE && !is_vector(&op->in[1], yoke_f32, n)))
		return 0;
	for (int i = 0; i < 3; i++)
		if (op->out[i].kind != YOKE_VIEW_NONE &&
		    !is_vector(&op->out[i], i == 1 ? yoke_i32 : yoke_f32, i == 2 ? n : k))
			return 0;
	return 1;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	const int64_t n = yk_elements(&op->in[0]), each = each_of(n);
	(void)impl;
	return (uint64_t)(n / each + 1) *
		       (sizeof(struct chunk) + (uint64_t)each / LISTED * sizeof(uint32_t)) +
	       (SAMPLES + (uint64_t)n / WORD + 1) * sizeof(uint32_t);
}

static inline float at(const struct job *j, int64_t i)
{
	return j->e ? j->x[i] + j->e[i] : j->x[i];
}

static inline uint32_t key_of(float a)
{
	uint32_t u;
	memcpy(&u, &a, sizeof u);
	u &= NAN_KEY;
	return u >= FIRST_NAN ? NAN_KEY : u;
}

// Bit i: lane i of a >= lane i of b.
static inline uint32_t vi_ge(vi a, vi b)
{
#if defined __AVX512F__
	return _mm512_cmpge_epi32_mask((__m512i)a, (__m512i)b);
#elif defined __AVX2__
	return 0xff & ~(uint32_t)_mm256_movemask_ps((__m256)(__m256i)(b > a));
#else
	const vi m = a >= b;
	uint32_t bits = 0;
	for (int i = 0; i < VF; i++)
		bits |= (uint32_t)m[i] & 1u << i;
	return bits;
#endif
}

// ---- passes over chunks ----

// Marks of elements from .. from + WORD - 1, n of which exist; writes their remainder.
static inline uint32_t mark_word(const struct job *j, int64_t from, int64_t n)
{
	const vi min = vi_splat((int32_t)(j->min < FIRST_NAN ? j->min : FIRST_NAN)),
		 sign = vi_splat(NAN_KEY);
	uint32_t marks = 0;
	for (int64_t i = 0; i < n; i += VF) {
		vf a = vf_get(j->x + from + i, n - i);
		if (j->e)
			a += vf_get(j->e + from + i, n - i);
		if (!j->made && j->rest)
			vf_put(j->rest + from + i, a, n - i);
		marks |= vi_ge((vi)a & sign, min) << i;
	}
	return n < WORD ? marks & ((1u << n) - 1) : marks;
}

// Keys of a chunk's marked elements; NULL: too many to list.
static const uint32_t *listed(const struct job *j, int64_t index)
{
	return j->chunk[index].marked <= j->each / LISTED ? j->list + index * (j->each / LISTED) :
							    NULL;
}

static void mark(void *arg, int64_t index)
{
	const struct job *j = arg;
	const int64_t from = index * j->each, end = yk_min(from + j->each, j->n);
	const uint32_t max = (uint32_t)(j->each / LISTED);
	uint32_t *list = j->list + index * (j->each / LISTED), n = 0;
	for (int64_t i = from; i < end; i += WORD) {
		uint32_t marks = mark_word(j, i, yk_min(end - i, WORD));
		j->marks[i / WORD] = marks;
		for (; marks && n < max; marks &= marks - 1) {
			const int64_t p = i + __builtin_ctz(marks);
			list[n++] = key_of(j->rest ? j->rest[p] : at(j, p));
		}
		n += (uint32_t)__builtin_popcount(marks);
	}
	j->chunk[index].marked = n;
}

static void count(void *arg, int64_t index)
{
	const struct job *j = arg;
	const int64_t from = index * j->each, end = yk_min(from + j->each, j->n);
	const uint32_t *list = listed(j, index);
	// two counters in turn, since increments of the same bin would wait for each other
	uint32_t two[2][BINS], turn = 0;
	memset(two, 0, sizeof two);
	for (uint32_t i = 0; list && i < j->chunk[index].marked; i++)
		if ((list[i] & j->mask) == j->prefix)
			two[turn ^= 1][list[i] >> j->shift & (j->bins - 1)]++;
	for (int64_t i = from; i < end && !list; i += WORD)
		for (uint32_t marks = j->marks[i / WORD]; marks; marks &= marks - 1) {
			const uint32_t key = key_of(at(j, i + __builtin_ctz(marks)));
			if ((key & j->mask) == j->prefix)
				two[turn ^= 1][key >> j->shift & (j->bins - 1)]++;
		}
	for (uint32_t i = 0; i < j->bins; i++)
		j->chunk[index].count[i] = two[0][i] + two[1][i];
}

static void take(void *arg, int64_t index)
{
	const struct job *j = arg;
	const int64_t from = index * j->each, end = yk_min(from + j->each, j->n);
	const uint32_t *list = listed(j, index);
	int64_t to = j->chunk[index].to, left = j->chunk[index].left;
	for (int64_t i = from; i < end; i += WORD)
		for (uint32_t marks = j->marks[i / WORD]; marks; marks &= marks - 1) {
			const int64_t p = i + __builtin_ctz(marks);
			const uint32_t key = list ? *list++ : key_of(at(j, p));
			if (key < j->prefix || (key == j->prefix && left-- <= 0))
				continue;
			if (j->value)
				j->value[to] = at(j, p);
			if (j->place)
				j->place[to] = (int32_t)p;
			if (j->rest)
				j->rest[p] = 0;
			to++;
		}
}

// ---- finding the k-th ----

static const struct { int shift, bits; } round_of[] = { { 20, 11 }, { 10, 10 }, { 0, 10 } };

// The bin that contains the `*left`-th count, from the last bin downwards; *left becomes the number
// within that bin.
static uint32_t bin_of(const uint32_t *bin, uint32_t bins, int64_t *left)
{
	uint32_t b = bins - 1;
	for (; b && bin[b] < *left; b--)
		*left -= bin[b];
	return b;
}

// A likely lower bound of the k-th largest, from a sample: chosen so that more than k of n samples
// are above it.
static uint32_t estimate_bound(struct job *j, int64_t k)
{
	const int64_t step = j->n / SAMPLES, share = k * SAMPLES / j->n;
	int64_t left = share + 8, slack = 16;
	uint32_t prefix = 0, mask = 0;
	while (slack * slack < 16 * share) // four standard deviations of the count
		slack++;
	left += slack;
	if (step < 4 || left > SAMPLES / 2)
		return 0;
	for (int64_t i = 0; i < SAMPLES; i++) // irregular distances, to avoid a matrix's row period
		j->sample[i] =
			key_of(at(j, i * step + (int64_t)((uint32_t)i * 2654435761u >> 8) % step));
	for (int r = 0; r < 2; r++) {
		uint32_t bin[BINS] = { 0 };
		for (int i = 0; i < SAMPLES; i++)
			if ((j->sample[i] & mask) == prefix)
				bin[j->sample[i] >> round_of[r].shift &
				    ((1u << round_of[r].bits) - 1)]++;
		prefix |= bin_of(bin, 1u << round_of[r].bits, &left) << round_of[r].shift;
		mask |= ((1u << round_of[r].bits) - 1) << round_of[r].shift;
	}
	return prefix;
}

static int64_t mark_all(struct job *j)
{
	int64_t marked = 0;
	yk_team_run(j->chunks, mark, j);
	for (int64_t p = 0; p < j->chunks; p++)
		marked += j->chunk[p].marked;
	if (j->rest) {
		j->made = true;
		j->x = j->rest;
		j->e = NULL;
	}
	return marked;
}

// Finds the next bits of the k-th; it is number `left` among the elements that match the bits so
// far.
static int64_t narrow(struct job *j, int64_t left)
{
	const uint32_t bins = j->bins;
	uint32_t all[BINS] = { 0 };
	for (int64_t p = 0; p < j->chunks; p++)
		for (uint32_t i = 0; i < bins; i++)
			all[i] += j->chunk[p].count[i];
	const uint32_t b = bin_of(all, bins, &left);
	for (int64_t p = 0; p < j->chunks; p++) {
		struct chunk *t = &j->chunk[p];
		for (uint32_t i = b + 1; i < bins; i++)
			t->above += t->count[i];
		t->ties = t->count[b];
	}
	j->prefix |= b << j->shift;
	j->mask |= (bins - 1) << j->shift;
	return left;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .x = yk_ptr(&op->in[0]),
			 .n = yk_elements(&op->in[0]),
			 .chunk = yk_ptr(&op->workspace) };
	const int64_t k = op->attr[0].i;
	int64_t left = k, to = 0;

	(void)impl, (void)prepared;
	if (!j.n)
		return 0;
	j.e = op->in[1].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->in[1]);
	j.value = op->out[0].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->out[0]);
	j.place = op->out[1].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->out[1]);
	j.rest = op->out[2].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->out[2]);
	j.each = each_of(j.n);
	j.chunks = (j.n + j.each - 1) / j.each;
	j.sample = (uint32_t *)(j.chunk + j.chunks);
	j.list = j.sample + SAMPLES;
	j.marks = j.list + j.chunks * (j.each / LISTED);
	j.min = estimate_bound(&j, k);
	if (mark_all(&j) < k) {
		j.min = 0;
		mark_all(&j);
	}
	for (int64_t p = 0; p < j.chunks; p++)
		j.chunk[p].above = 0;
	for (size_t r = 0; r < sizeof round_of / sizeof *round_of; r++) {
		j.shift = round_of[r].shift;
		j.bins = 1u << round_of[r].bits;
		yk_team_run(j.chunks, count, &j);
		left = narrow(&j, left);
	}
	for (int64_t p = 0; p < j.chunks; p++) {
		struct chunk *t = &j.chunk[p];
		t->left = t->ties < left ? t->ties : left;
		t->to = to;
		to += t->above + t->left;
		left -= t->left;
	}
	yk_team_run(j.chunks, take, &j);
	return 0;
}

YK_KERNEL(largest,
	  LARGEST) = { .can = can, .workspace = workspace, .run = run, .impl = { "radix" } };
