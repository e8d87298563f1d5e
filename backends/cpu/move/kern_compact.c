// SPDX-License-Identifier: Apache-2.0
// COMPACT: the positions of the true elements of a mask, and their number.
// A first pass counts the elements of each segment, a second writes their positions from there on.
#include "config.h"

#include <string.h>

#include "../vector/vmath.h"
#include "walk.h"

enum { SEGMENT = 1 << 15 };

struct job {
	const uint8_t *x;
	int64_t *y, *first; // first[s]: elements before segment s
	int64_t n, step, capacity, to_step;
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 1 || op->nout != 2 || op->nattr < 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = &op->out[0], *count = &op->out[1];
	return x->kind == YOKE_VIEW_BUFFER && x->dtype == yoke_bool && x->rank == 1 &&
	       (y->kind == YOKE_VIEW_NONE ||
		(y->kind == YOKE_VIEW_BUFFER && y->dtype == yoke_i64 && y->rank == 1)) &&
	       (count->kind == YOKE_VIEW_NONE ||
		(count->kind == YOKE_VIEW_BUFFER && count->dtype == yoke_i64 && !count->rank));
}

static int64_t segments(const struct yoke_op *op)
{
	return (op->in[0].dims[0] + SEGMENT - 1) / SEGMENT;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return (uint64_t)(segments(op) + 1) * sizeof(int64_t);
}

static int64_t end_of(const struct job *j, int64_t segment)
{
	const int64_t end = (segment + 1) * SEGMENT;
	return end < j->n ? end : j->n;
}

static void count(void *arg, int64_t segment)
{
	struct job *j = arg;
	int64_t n = 0;
	const int64_t end = end_of(j, segment);
	if (j->step == 1) {
		YK_SIMD
		for (int64_t i = segment * SEGMENT; i < end; i++)
			n += j->x[i];
	} else {
		for (int64_t i = segment * SEGMENT; i < end; i++)
			n += j->x[i * j->step];
	}
	j->first[segment + 1] = n;
}

static void write(void *arg, int64_t segment)
{
	struct job *j = arg;
	int64_t k = j->first[segment], i = segment * SEGMENT;
	const int64_t end = end_of(j, segment);
	for (; j->step == 1 && i + 8 <= end && k + 8 <= j->capacity; i += 8) {
		uint64_t eight;
		memcpy(&eight, j->x + i, sizeof eight);
		if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
			eight = __builtin_bswap64(eight);
		// a byte of 0 or 1 becomes a bit, the first element the lowest
		for (uint64_t bits = eight * 0x0102040810204080 >> 56; bits; bits &= bits - 1)
			j->y[k++ * j->to_step] = i + __builtin_ctzll(bits);
	}
	for (; i < end && k < j->capacity; i++)
		if (j->x[i * j->step])
			j->y[k++ * j->to_step] = i;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	struct job j = { .x = yk_ptr(x),
			 .first = yk_ptr(&op->workspace),
			 .n = x->dims[0],
			 .step = x->strides[0] };
	const int64_t n = segments(op);
	(void)impl, (void)prepared;
	j.first[0] = 0;
	yk_team_run(n, count, &j);
	for (int64_t s = 0; s < n; s++)
		j.first[s + 1] += j.first[s];
	if (op->out[1].kind == YOKE_VIEW_BUFFER)
		*(int64_t *)yk_ptr(&op->out[1]) = j.first[n];
	if (y->kind != YOKE_VIEW_BUFFER)
		return 0;
	j.y = yk_ptr(y);
	j.to_step = y->strides[0];
	j.capacity = y->dims[0];
	yk_team_run(n, write, &j);
	for (int64_t k = j.first[n]; k < j.capacity; k++)
		j.y[k * j.to_step] = -1;
	return 0;
}

YK_KERNEL(compact,
	  COMPACT) = { .can = can, .workspace = workspace, .run = run, .impl = { "segments" } };
