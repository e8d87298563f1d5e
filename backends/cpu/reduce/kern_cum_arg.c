// SPDX-License-Identifier: Apache-2.0
// CUM_ARG: the places of running maxima or minima along an axis.  Lines are independent; those that
// lie side by side are scanned together.
#include "config.h"

#include "../move/walk.h"
#include "../vector/half.h"

enum {
	COLUMNS = 64,      // lines scanned together
	PER_ITEM = 1 << 14 // elements of a work item
};

struct job {
	const struct yoke_view *x, *y;
	bool max;
	int axis;
	int64_t n, cols, blocks; // of a line; lines side by side; blocks of them
	int64_t each, units;
};

// Scans n elements of `cols` lines. from, to: strides along the line, and between lines.
#define LINES(name, T, S, LOAD) \
	static inline __attribute__((always_inline)) void name##_scan( \
		const T *x, int64_t *y, int64_t n, int64_t cols, const int64_t *from, \
		const int64_t *to, bool max) \
	{ \
		S best[COLUMNS]; \
		int64_t place[COLUMNS] = { 0 }; \
		for (int64_t c = 0; c < cols; c++) \
			best[c] = LOAD(x[c * from[1]]); \
		for (int64_t i = 0; i < n; i++) \
			for (int64_t c = 0; c < cols; c++) { \
				const S v = LOAD(x[i * from[0] + c * from[1]]), old = best[c]; \
				const bool hit = v != v || (max ? v >= old : v <= old); \
				best[c] = hit ? v : old; \
				place[c] = hit ? i : place[c]; \
				y[i * to[0] + c * to[1]] = place[c]; \
			} \
	} \
	static void name(const void *x, int64_t *y, int64_t n, int64_t cols, const int64_t *from, \
			 const int64_t *to, bool max) \
	{ \
		if (cols == 1 && max) \
			name##_scan(x, y, n, 1, from, to, true); \
		else if (cols == 1) \
			name##_scan(x, y, n, 1, from, to, false); \
		else \
			name##_scan(x, y, n, cols, from, to, max); \
	}
#define PLAIN(x) (x)
LINES(f32, float, float, PLAIN)
LINES(f64, double, double, PLAIN)
LINES(f16, uint16_t, float, yk_f32_of_f16)
LINES(bf16, uint16_t, float, yk_f32_of_bf16)
LINES(i8, int8_t, int8_t, PLAIN)
LINES(u8, uint8_t, uint8_t, PLAIN)
LINES(i32, int32_t, int32_t, PLAIN)
LINES(i64, int64_t, int64_t, PLAIN)

static void (*const lines[])(const void *, int64_t *, int64_t, int64_t, const int64_t *,
			     const int64_t *, bool) = {
	[yoke_f32] = f32, [yoke_f64] = f64, [yoke_f16] = f16, [yoke_bf16] = bf16,
	[yoke_i8] = i8,   [yoke_u8] = u8,   [yoke_i32] = i32, [yoke_i64] = i64,
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 1 || op->nout != 1 || op->nattr < 2)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	return x->kind == YOKE_VIEW_BUFFER && y->kind == YOKE_VIEW_BUFFER &&
	       x->dtype != yoke_bool && y->dtype == yoke_i64 && x->rank == y->rank &&
	       same_dims(x->dims, y->dims, x->rank) && op->attr[0].i >= 0 &&
	       op->attr[0].i < x->rank;
}

static void item(void *arg, int64_t index)
{
	const struct job *j = arg;
	const struct yoke_view *x = j->x, *y = j->y;
	const int last = x->rank - 1;
	const bool beside = j->axis != last;
	const int64_t from[] = { x->strides[j->axis], beside ? x->strides[last] : 0 };
	const int64_t to[] = { y->strides[j->axis], beside ? y->strides[last] : 0 };
	for (int64_t unit = index * j->each; unit < j->units && unit < (index + 1) * j->each;
	     unit++) {
		const int64_t col = unit % j->blocks * COLUMNS,
			      cols = j->cols - col < COLUMNS ? j->cols - col : COLUMNS;
		int64_t rest = unit / j->blocks, at = col * from[1], out = col * to[1];
		for (int d = last - (beside ? 1 : 0); d >= 0; d--) {
			if (d == j->axis)
				continue;
			at += rest % x->dims[d] * x->strides[d];
			out += rest % x->dims[d] * y->strides[d];
			rest /= x->dims[d];
		}
		lines[x->dtype]((const char *)yk_ptr(x) + at * (int64_t)yk_esize(x->dtype),
				(int64_t *)yk_ptr(y) + out, j->n, cols, from, to, j->max);
	}
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .x = &op->in[0], .y = &op->out[0], .axis = (int)op->attr[0].i,
			 .max = op->attr[1].i == YOKE_REDUCE_ARGMAX };
	const int64_t all = yk_elements(j.x);
	(void)impl, (void)prepared;
	if (!all)
		return 0;
	j.n = j.x->dims[j.axis];
	j.cols = j.axis == j.x->rank - 1 ? 1 : j.x->dims[j.x->rank - 1];
	j.blocks = (j.cols + COLUMNS - 1) / COLUMNS;
	j.units = all / j.n / j.cols * j.blocks;
	const int64_t size = j.n * (j.cols < COLUMNS ? j.cols : COLUMNS);
	j.each = size < PER_ITEM ? PER_ITEM / size : 1;
	yk_team_run((j.units + j.each - 1) / j.each, item, &j);
	return 0;
}

YK_KERNEL(cum_arg, CUM_ARG) = { .can = can, .run = run, .impl = { "lines" } };
