// SPDX-License-Identifier: Apache-2.0
// LARGEST: of a = x + e the k elements of largest modulus, and a without them.  The k-th is found by radix, of the 31
// bits of |a| (NaN: all ones) 11, then 10 and 10 more: each round counts the elements that have the bits found so far.
// Pieces are cut by shape alone and their counts kept, so that each knows where in the results its elements go; what
// is equal to the k-th is taken from the front.
#include "config.h"

#include <string.h>

#include "walk.h"

enum {
	BINS = 1 << 11,
	PIECES = 128, // at most
	LEAST = 1 << 15, // elements of one
	BLOCK = 32       // elements that are passed over together
};

struct piece {
	uint32_t count[BINS];    // elements of the round's candidates, by their next bits
	uint32_t above, ties;    // elements beyond the k-th's bits so far; that have them
	int64_t to, left;        // where its results begin, and how many ties it takes
};

struct job {
	const float *x, *e; // e: NULL
	float *rest, *value; // NULL: not wanted, as place
	int32_t *place;
	int64_t n, each, pieces;
	uint32_t prefix, mask; // of the k-th: its bits as far as they are known
	int shift;             // of the round's bits
	bool first;            // the round that makes `rest`
	struct piece *piece;
};

static int64_t pieces_of(int64_t n)
{
	const int64_t p = n / LEAST;
	return p < 1 ? 1 : p < PIECES ? p : PIECES;
}

static bool is_vector(const struct yoke_view *v, int dtype, int64_t n)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == dtype && v->rank <= 1 && yk_elements(v) == n && yk_dense(v);
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
	(void)impl;
	return (uint64_t)pieces_of(yk_elements(&op->in[0])) * sizeof(struct piece);
}

static inline uint32_t key_of(float a)
{
	uint32_t u;
	memcpy(&u, &a, sizeof u);
	u &= 0x7fffffff;
	return u > 0x7f800000 ? 0x7fffffff : u;
}

// Elements at .. at + n of a, as keys.
static inline void keys_of(const struct job *j, int64_t at, int n, uint32_t *restrict key)
{
	const float *x = j->x + at;
	if (j->e) {
		const float *e = j->e + at;
		for (int i = 0; i < n; i++)
			key[i] = key_of(x[i] + e[i]);
	} else {
		for (int i = 0; i < n; i++)
			key[i] = key_of(x[i]);
	}
}

// rest = a; it may be x or e.
static void make_rest(const struct job *j, int64_t from, int64_t end)
{
	if (!j->e && j->rest != j->x)
		memcpy(j->rest + from, j->x + from, (size_t)(end - from) * sizeof *j->rest);
	for (int64_t i = from; i < end && j->e; i++)
		j->rest[i] = j->x[i] + j->e[i];
}

static void count(void *arg, int64_t index)
{
	const struct job *j = arg;
	const int64_t from = index * j->each, last = from + j->each, end = last < j->n ? last : j->n;
	uint32_t two[2][BINS]; // in turn, since equal elements would wait for each other
	uint32_t key[256];
	memset(two, 0, sizeof two);
	for (int64_t at = from; at < end; at += 256) {
		const int n = end - at < 256 ? (int)(end - at) : 256;
		struct job now = *j;
		if (j->first && j->rest) {
			make_rest(j, at, at + n);
			now.x = j->rest;
			now.e = NULL;
		}
		keys_of(&now, at, n, key);
		if (j->first) {
			for (int i = 0; i < n; i++)
				two[i & 1][key[i] >> j->shift]++;
			continue;
		}
		for (int b = 0; b < n; b += BLOCK) {
			const int to = b + BLOCK < n ? b + BLOCK : n;
			uint32_t any = 0;
			for (int i = b; i < to; i++)
				any |= (key[i] & j->mask) == j->prefix;
			for (int i = b; i < to && any; i++)
				two[i & 1][key[i] >> j->shift & (BINS / 2 - 1)] += (key[i] & j->mask) == j->prefix;
		}
	}
	for (int i = 0; i < BINS; i++)
		j->piece[index].count[i] = two[0][i] + two[1][i];
}

static void take(void *arg, int64_t index)
{
	const struct job *j = arg;
	const int64_t from = index * j->each, last = from + j->each, end = last < j->n ? last : j->n;
	int64_t to = j->piece[index].to, left = j->piece[index].left;
	uint32_t key[256];
	for (int64_t at = from; at < end; at += 256) {
		const int n = end - at < 256 ? (int)(end - at) : 256;
		keys_of(j, at, n, key);
		for (int b = 0; b < n; b += BLOCK) {
			const int stop = b + BLOCK < n ? b + BLOCK : n;
			uint32_t any = 0;
			for (int i = b; i < stop; i++)
				any |= key[i] >= j->prefix;
			for (int i = b; i < stop && any; i++) {
				if (key[i] < j->prefix || (key[i] == j->prefix && left-- <= 0))
					continue;
				const int64_t p = at + i;
				if (j->value)
					j->value[to] = j->e ? j->x[p] + j->e[p] : j->x[p];
				if (j->place)
					j->place[to] = (int32_t)p;
				if (j->rest)
					j->rest[p] = 0;
				to++;
			}
		}
	}
}

// Finds the next bits of the k-th; `left` of the elements that have those so far come before it, or are it.
static int64_t narrow(struct job *j, int bits, int64_t left)
{
	const uint32_t bins = 1u << bits;
	uint32_t b = bins;
	int64_t here = 0;
	while (b-- > 0) {
		here = 0;
		for (int64_t p = 0; p < j->pieces; p++)
			here += j->piece[p].count[b];
		if (here >= left || !b)
			break;
		left -= here;
	}
	for (int64_t p = 0; p < j->pieces; p++) {
		struct piece *t = &j->piece[p];
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
	static const struct { int shift, bits; } round[] = { { 20, 11 }, { 10, 10 }, { 0, 10 } };
	struct job j = { .x = yk_ptr(&op->in[0]), .n = yk_elements(&op->in[0]), .piece = yk_ptr(&op->workspace) };
	int64_t left = op->attr[0].i, to = 0;

	(void)impl, (void)prepared;
	if (!j.n)
		return 0;
	j.e = op->in[1].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->in[1]);
	j.value = op->out[0].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->out[0]);
	j.place = op->out[1].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->out[1]);
	j.rest = op->out[2].kind == YOKE_VIEW_NONE ? NULL : yk_ptr(&op->out[2]);
	j.pieces = pieces_of(j.n);
	j.each = (j.n + j.pieces - 1) / j.pieces;
	for (int64_t p = 0; p < j.pieces; p++)
		j.piece[p].above = 0;
	for (int k = 0; k < 3; k++) {
		j.shift = round[k].shift;
		j.first = k == 0;
		yk_team_run(j.pieces, count, &j);
		left = narrow(&j, round[k].bits, left);
		if (j.first && j.rest)
			j.x = j.rest, j.e = NULL;
	}
	for (int64_t p = 0; p < j.pieces; p++) {
		struct piece *t = &j.piece[p];
		t->left = t->ties < left ? t->ties : left;
		t->to = to;
		to += t->above + t->left;
		left -= t->left;
	}
	yk_team_run(j.pieces, take, &j);
	return 0;
}

const struct yk_kernel ISA(yk_largest) = { .can = can, .workspace = workspace, .run = run, .impl = { "radix" } };
