// SPDX-License-Identifier: Apache-2.0
// SCAN: cumulative sums and products along one axis, from either end.
//
// Lines along the axis are independent and are processed in order, in f64 for floating types and
// modulo 2^64 for integers; each element is rounded once, when it is stored. If there are few long
// lines, the axis is divided into segments by shape alone: a first pass computes each segment's
// total, the second scans starting from the totals before it.
#include "config.h"

#include <string.h>

#include "../vector/half.h"
#include "../move/walk.h"

enum {
	PER_ITEM = 1 << 16, // elements per work item, and per segment
	TILE = 256,      // columns processed together
	FEW = 32         // max lines for which segments are used
};

union acc {
	double f;
	uint64_t i;
};

// Scans n elements of cols lines, starting from the running values acc, which are updated. Strides
// in elements: along the line, and between lines. y NULL: only update the totals.
typedef void lines_fn(char *y, const char *x, int64_t n, int64_t cols,
		      const int64_t to[2], const int64_t from[2], union acc *acc);

struct job {
	const struct yoke_view *x, *y;
	lines_fn *lines;
	bool prod;
	int64_t n, cols, outer, tile, tiles;
	int64_t segment, segments, units, each; // units: outer * tiles * segments
	int64_t from[2], to[2];                 // strides: along the axis, between lines
	int64_t x0, y0; // first element of the axis; its last one if reversed
	int rank;       // number of outer axes
	int64_t dims[YOKE_MAX_RANK], ox[YOKE_MAX_RANK], oy[YOKE_MAX_RANK];
	union acc *total; // [segments][outer * cols]
};

#define SAME(v) (v)
#define OF_F16(h) yk_f32_of_f16(h)
#define OF_BF16(h) yk_f32_of_bf16(h)
#define TO_F16(v) yk_f16_of_f32(yk_f32_odd_of_f64(v))
#define TO_BF16(v) yk_bf16_of_f32(yk_f32_odd_of_f64(v))

#define LINES(name, T, M, LOAD, STORE, OP) \
	static void name(char *yv, const char *xv, int64_t n, int64_t cols, \
			 const int64_t to[2], const int64_t from[2], union acc *acc) \
	{ \
		const T *x = (const T *)xv; \
		T *y = (T *)yv; \
		if (cols == 1) { \
			__typeof__(acc->M) a = acc->M; \
			for (int64_t i = 0; i < n; i++) { \
				a = a OP LOAD(x[i * from[0]]); \
				if (y) \
					y[i * to[0]] = (T)STORE(a); \
			} \
			acc->M = a; \
			return; \
		} \
		for (int64_t i = 0; i < n; i++, x += from[0], y += y ? to[0] : 0) { \
			if (y && from[1] == 1 && to[1] == 1) { \
				YK_SIMD \
				for (int64_t c = 0; c < cols; c++) { \
					acc[c].M = acc[c].M OP LOAD(x[c]); \
					y[c] = (T)STORE(acc[c].M); \
				} \
				continue; \
			} \
			for (int64_t c = 0; c < cols; c++) { \
				acc[c].M = acc[c].M OP LOAD(x[c * from[1]]); \
				if (y) \
					y[c * to[1]] = (T)STORE(acc[c].M); \
			} \
		} \
	}
#define BOTH(name, T, M, LOAD, STORE) \
	LINES(sum_##name, T, M, LOAD, STORE, +) \
	LINES(prod_##name, T, M, LOAD, STORE, *)
BOTH(f32, float, f, SAME, SAME)
BOTH(f64, double, f, SAME, SAME)
BOTH(f16, uint16_t, f, OF_F16, TO_F16)
BOTH(bf16, uint16_t, f, OF_BF16, TO_BF16)
BOTH(8, uint8_t, i, SAME, SAME) // modulo 2^64 implies modulo 2^8, so signedness does not matter
BOTH(32, uint32_t, i, SAME, SAME)
BOTH(64, uint64_t, i, SAME, SAME)

static lines_fn *const table[][2] = {
	[yoke_f32] = { sum_f32, prod_f32 }, [yoke_f64] = { sum_f64, prod_f64 },
	[yoke_f16] = { sum_f16, prod_f16 }, [yoke_bf16] = { sum_bf16, prod_bf16 },
	[yoke_i8] = { sum_8, prod_8 },      [yoke_u8] = { sum_8, prod_8 },
	[yoke_i32] = { sum_32, prod_32 },   [yoke_i64] = { sum_64, prod_64 },
};

static bool is_real(int dtype)
{
	return dtype >= yoke_f32 && dtype <= yoke_bf16;
}

static void init(struct job *j, union acc *a)
{
	if (is_real(j->x->dtype))
		a->f = j->prod;
	else
		a->i = j->prod;
}

// Appends accumulator b to a.
static void join(const struct job *j, union acc *a, const union acc *b)
{
	if (is_real(j->x->dtype))
		a->f = j->prod ? a->f * b->f : a->f + b->f;
	else
		a->i = j->prod ? a->i * b->i : a->i + b->i;
}

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 1 || op->nout != 1 || op->nattr < 3)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	return x->kind == YOKE_VIEW_BUFFER && y->kind == YOKE_VIEW_BUFFER &&
	       x->dtype == y->dtype && x->dtype != yoke_bool && x->rank == y->rank &&
	       same_dims(x->dims, y->dims, x->rank) && op->attr[0].i >= 0 &&
	       op->attr[0].i < x->rank &&
	       (op->attr[1].i == YOKE_REDUCE_SUM || op->attr[1].i == YOKE_REDUCE_PROD);
}

// Divides the work into lines, columns and segments.
static void cut(struct job *j, const struct yoke_op *op)
{
	const int axis = (int)op->attr[0].i;
	const struct yoke_view *x = j->x = &op->in[0], *y = j->y = &op->out[0];
	int last = x->rank - 1;

	j->prod = op->attr[1].i == YOKE_REDUCE_PROD;
	j->n = x->dims[axis];
	j->cols = j->outer = 1;
	j->from[0] = x->strides[axis], j->to[0] = y->strides[axis];
	if (op->attr[2].i) {
		j->x0 = (j->n - 1) * j->from[0], j->y0 = (j->n - 1) * j->to[0];
		j->from[0] = -j->from[0], j->to[0] = -j->to[0];
	}
	if (last > axis) { // later axes that are contiguous are columns
		j->from[1] = x->strides[last], j->to[1] = y->strides[last];
		while (last > axis && x->strides[last] == j->cols * j->from[1] &&
		       y->strides[last] == j->cols * j->to[1])
			j->cols *= x->dims[last--];
	}
	for (int d = 0; d <= last; d++)
		if (d != axis) {
			j->dims[j->rank] = x->dims[d];
			j->ox[j->rank] = x->strides[d];
			j->oy[j->rank++] = y->strides[d];
			j->outer *= x->dims[d];
		}
	j->tile = j->cols < TILE ? j->cols : TILE;
	j->tiles = j->cols ? (j->cols + j->tile - 1) / j->tile : 0;
	bool divided = j->n >= 2 * PER_ITEM && j->outer * j->cols <= FEW;
	j->segment = divided ? PER_ITEM : j->n;
	j->segments = divided ? (j->n + PER_ITEM - 1) / PER_ITEM : 1;
	j->units = j->outer * j->tiles * j->segments;
	j->each = j->n && j->tile ? PER_ITEM / (j->segment * j->tile) + 1 : 1;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	struct job j = { 0 };

	(void)impl;
	cut(&j, op);
	return j.segments > 1 ?
		       (uint64_t)(j.segments * j.outer * j.cols) * sizeof(union acc) :
		       0;
}

// Processes one segment of one tile; write: in the second pass.
static void unit(struct job *j, int64_t at, bool write)
{
	const int64_t lines = j->outer * j->cols, size = (int64_t)yk_esize(j->x->dtype);
	int64_t segment = at % j->segments, tile = at / j->segments % j->tiles,
		outer = at / j->segments / j->tiles;
	int64_t first = segment * j->segment, col = tile * j->tile;
	int64_t n = j->n - first < j->segment ? j->n - first : j->segment;
	int64_t cols = j->cols - col < j->tile ? j->cols - col : j->tile;
	int64_t from = offset_of(j->dims, j->ox, j->rank, outer) + j->x0 +
		       first * j->from[0] + col * j->from[1];
	int64_t to = offset_of(j->dims, j->oy, j->rank, outer) + j->y0 +
		     first * j->to[0] + col * j->to[1];
	union acc acc[TILE], *total = j->total + outer * j->cols + col;

	for (int64_t c = 0; c < cols; c++) {
		init(j, &acc[c]);
		for (int64_t s = 0; write && s < segment; s++)
			join(j, &acc[c], &total[s * lines + c]);
	}
	j->lines(write ? (char *)yk_ptr(j->y) + to * size : NULL,
		 (const char *)yk_ptr(j->x) + from * size, n, cols, j->to, j->from, acc);
	if (!write)
		memcpy(&total[segment * lines], acc, (size_t)cols * sizeof *acc);
}

static void items(struct job *j, int64_t item, bool write)
{
	int64_t end = (item + 1) * j->each;
	for (int64_t at = item * j->each; at < end && at < j->units; at++)
		unit(j, at, write);
}

static void totals(void *arg, int64_t item)
{
	items(arg, item, false);
}

static void results(void *arg, int64_t item)
{
	items(arg, item, true);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { 0 };
	union acc none;

	(void)impl, (void)prepared;
	cut(&j, op);
	if (!j.n || !j.units)
		return 0;
	j.lines = table[j.x->dtype][j.prod];
	j.total = j.segments > 1 ? yk_ptr(&op->workspace) : &none;
	int64_t n = (j.units + j.each - 1) / j.each;
	if (j.segments > 1)
		yk_team_run(n, totals, &j);
	yk_team_run(n, results, &j);
	return 0;
}

YK_KERNEL(scan, SCAN) = {
	.can = can, .workspace = workspace, .run = run, .impl = { "lines" }
};
