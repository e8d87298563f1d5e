// SPDX-License-Identifier: Apache-2.0
// GATHER_ALONG: x [..,N,..], idx [..,I,..] -> y with idx's shape, y[..,i,..] =
// x[..,idx[..,i,..],..].
// SCATTER_ADD_ALONG: x or zeros [..,N,..], idx and v [..,I,..] -> y = x with v added at idx.
//
// The sum is deterministic: each line along the axis has one owner, which adds in the order of the
// positions, in f32 for f16 and bf16. Its indices are checked before anything is written; a gather
// leaves elements with invalid indices unchanged.
#include "config.h"

#include "../vector/half.h"
#include "kern_gather.h"

enum {
	PER_ITEM = 1 << 14, // elements per work item
	TILE = 64        // adjacent lines processed together
};

struct job {
	const struct yoke_view *x, *idx, *v, *y; // x NULL: zeros
	int axis, last;
	int64_t N, I, rows, each;
	int64_t from[YOKE_MAX_RANK]; // strides of x, 0 along the axis
	// sums
	int rank; // number of axes other than the summed axis and the columns
	int64_t dims[YOKE_MAX_RANK], stride[4][YOKE_MAX_RANK]; // x, idx, v, y
	int64_t cols, tile, tiles;
	_Atomic int64_t bad; // position of the first invalid index
	atomic_bool no_memory;
};

static int64_t index_of(const char *p, int dtype)
{
	int32_t narrow;
	int64_t wide;
	if (dtype == yoke_i32) {
		memcpy(&narrow, p, sizeof narrow);
		return narrow;
	}
	memcpy(&wide, p, sizeof wide);
	return wide;
}

static bool is_buffer(const struct yoke_view *v, int rank)
{
	return v->kind == YOKE_VIEW_BUFFER && v->rank == rank;
}

// True if a and b have the same dims, except along the axis.
static bool same_dims_except(const struct yoke_view *a, const struct yoke_view *b, int axis)
{
	return same_dims(a->dims, b->dims, axis) &&
	       same_dims(a->dims + axis + 1, b->dims + axis + 1, a->rank - axis - 1);
}

// ---- gather ----

static uint64_t can_gather(const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 1 || op->nattr < 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *y = &op->out[0];
	const int64_t axis = op->attr[0].i;
	return is_index(idx) && axis >= 0 && axis < x->rank && is_buffer(x, x->rank) &&
	       is_buffer(idx, x->rank) && is_buffer(y, x->rank) && x->dtype == y->dtype &&
	       same_dims(idx->dims, y->dims, x->rank) && same_dims_except(x, idx, (int)axis);
}

#define TAKE(name, T) \
	static int64_t name(char *to, int64_t ys, const char *from, int64_t xs, \
			    int64_t along, const char *idx, int64_t is, int dtype, \
			    int64_t n, int64_t N) \
	{ \
		T *y = (T *)to; \
		const T *x = (const T *)from; \
		int64_t bad = -1; \
		for (int64_t c = 0; c < n; c++) { \
			int64_t i = index_of(idx + c * is, dtype); \
			if (i >= 0 && i < N) \
				y[c * ys] = x[c * xs + i * along]; \
			else if (bad < 0) \
				bad = c; \
		} \
		return bad; \
	}
TAKE(take_1, uint8_t)
TAKE(take_2, uint16_t)
TAKE(take_4, uint32_t)
TAKE(take_8, uint64_t)

static void gather_item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct yoke_view *x = j->x, *idx = j->idx, *y = j->y;
	const int64_t size = (int64_t)yk_esize(x->dtype),
		      wide = (int64_t)yk_esize(idx->dtype);
	const int64_t n = y->dims[j->last];
	int64_t end = (index + 1) * j->each < j->rows ? (index + 1) * j->each : j->rows;

	for (int64_t r = index * j->each; r < end; r++) {
		char *to = (char *)yk_ptr(y) +
			   offset_of(y->dims, y->strides, j->last, r) * size;
		const char *from = (const char *)yk_ptr(x) +
				   offset_of(y->dims, j->from, j->last, r) * size;
		const char *at = (const char *)yk_ptr(idx) +
				 offset_of(y->dims, idx->strides, j->last, r) * wide;
		int64_t (*take)(char *, int64_t, const char *, int64_t, int64_t,
				const char *, int64_t, int, int64_t, int64_t) =
			size == 1 ? take_1 :
			size == 2 ? take_2 :
			size == 4 ? take_4 :
				    take_8;
		int64_t bad = take(to, y->strides[j->last], from, j->from[j->last],
				   x->strides[j->axis], at, idx->strides[j->last] * wide,
				   idx->dtype, n, j->N);
		if (bad >= 0)
			record_first(&j->bad, r * n + bad);
	}
}

static int run_gather(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = {
		.x = &op->in[0], .idx = &op->in[1], .y = &op->out[0], .rows = 1
	};

	(void)impl, (void)prepared;
	j.axis = (int)op->attr[0].i;
	j.last = j.y->rank - 1;
	j.N = j.x->dims[j.axis];
	for (int d = 0; d < j.y->rank; d++)
		j.from[d] = d == j.axis ? 0 : j.x->strides[d];
	for (int d = 0; d < j.last; d++)
		j.rows *= j.y->dims[d];
	if (!yk_elements(j.y))
		return 0;
	j.each = PER_ITEM / j.y->dims[j.last] + 1;
	atomic_init(&j.bad, INT64_MAX);
	yk_team_run((j.rows + j.each - 1) / j.each, gather_item, &j);
	int64_t bad = atomic_load(&j.bad);
	return bad == INT64_MAX ? 0 : out_of_range("gather_along", j.idx, bad, j.N);
}

// ---- sums ----

static uint64_t can_add(const struct yoke_op *op)
{
	if (op->nin != 3 || op->nout != 1 || op->nattr < 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];
	const int64_t axis = op->attr[0].i;
	if (x->kind != YOKE_VIEW_NONE &&
	    (!is_buffer(x, y->rank) || x->dtype != y->dtype ||
	     !same_dims(x->dims, y->dims, y->rank)))
		return 0;
	return is_index(idx) && axis >= 0 && axis < y->rank && is_buffer(y, y->rank) &&
	       is_buffer(idx, y->rank) && is_buffer(v, y->rank) && v->dtype == y->dtype &&
	       y->dtype != yoke_bool && same_dims(idx->dims, v->dims, y->rank) &&
	       same_dims_except(y, idx, (int)axis);
}

static void check_item(void *arg, int64_t index)
{
	struct job *j = arg;
	int64_t end = (index + 1) * PER_ITEM, all = yk_elements(j->idx);
	for (int64_t i = index * PER_ITEM; i < end && i < all; i++) {
		int64_t at = index_at(j->idx, i);
		if (at < 0 || at >= j->N) {
			record_first(&j->bad, i);
			return;
		}
	}
}

// A tile of lines: addresses of the first elements; strides along the axis [0] and between lines
// [1].
struct tile {
	const char *x, *idx, *v;
	char *y;
	int64_t xs[2], is[2], vs[2], ys[2], cols;
};

#define ADD(name, T) \
	static void name(const struct job *j, const struct tile *t) \
	{ \
		T *y = (T *)t->y; \
		const T *x = (const T *)t->x, *v = (const T *)t->v; \
		for (int64_t n = 0; n < j->N; n++) \
			for (int64_t c = 0; c < t->cols; c++) \
				y[n * t->ys[0] + c * t->ys[1]] = \
					x ? x[n * t->xs[0] + c * t->xs[1]] : 0; \
		for (int64_t i = 0; i < j->I; i++) \
			for (int64_t c = 0; c < t->cols; c++) { \
				int64_t n = \
					index_of(t->idx + i * t->is[0] + c * t->is[1], \
						 j->idx->dtype); \
				T *to = &y[n * t->ys[0] + c * t->ys[1]]; \
				*to = (T)(*to + v[i * t->vs[0] + c * t->vs[1]]); \
			} \
	}
ADD(add_f32, float)
ADD(add_f64, double)
ADD(add_8, uint8_t)
ADD(add_32, uint32_t)
ADD(add_64, uint64_t)

static float of_half(uint16_t h, int dtype)
{
	return dtype == yoke_f16 ? yk_f32_of_f16(h) : yk_f32_of_bf16(h);
}

static void add_half(struct job *j, const struct tile *t)
{
	const int dtype = j->y->dtype;
	uint16_t *y = (uint16_t *)t->y;
	const uint16_t *x = (const uint16_t *)t->x, *v = (const uint16_t *)t->v;
	float *sum = yk_team_scratch((size_t)(j->N * t->cols) * sizeof *sum);

	if (!sum) {
		atomic_store(&j->no_memory, true);
		return;
	}
	for (int64_t n = 0; n < j->N; n++)
		for (int64_t c = 0; c < t->cols; c++)
			sum[n * t->cols + c] =
				x ? of_half(x[n * t->xs[0] + c * t->xs[1]], dtype) : 0;
	for (int64_t i = 0; i < j->I; i++)
		for (int64_t c = 0; c < t->cols; c++) {
			int64_t n = index_of(t->idx + i * t->is[0] + c * t->is[1],
					     j->idx->dtype);
			sum[n * t->cols + c] +=
				of_half(v[i * t->vs[0] + c * t->vs[1]], dtype);
		}
	for (int64_t n = 0; n < j->N; n++)
		for (int64_t c = 0; c < t->cols; c++) {
			float s = sum[n * t->cols + c];
			y[n * t->ys[0] + c * t->ys[1]] =
				dtype == yoke_f16 ? yk_f16_of_f32(s) : yk_bf16_of_f32(s);
		}
}

static char *line(const struct job *j, const struct yoke_view *v, int which,
		  int64_t outer, int64_t col, int64_t step[2])
{
	const int64_t size = (int64_t)yk_esize(v->dtype);
	step[0] = v->strides[j->axis];
	step[1] = j->axis < j->last ? v->strides[j->last] : 0;
	return (char *)yk_ptr(v) +
	       (offset_of(j->dims, j->stride[which], j->rank, outer) + col * step[1]) *
		       size;
}

static void add_tile(struct job *j, int64_t at)
{
	int64_t outer = at / j->tiles, col = at % j->tiles * j->tile;
	struct tile t = { .cols = j->cols - col < j->tile ? j->cols - col : j->tile };

	t.x = j->x ? line(j, j->x, 0, outer, col, t.xs) : NULL;
	t.idx = line(j, j->idx, 1, outer, col, t.is);
	t.v = line(j, j->v, 2, outer, col, t.vs);
	t.y = line(j, j->y, 3, outer, col, t.ys);
	for (int k = 0; k < 2; k++) // to bytes
		t.is[k] *= (int64_t)yk_esize(j->idx->dtype);
	switch (j->y->dtype) {
	case yoke_f32: add_f32(j, &t); break;
	case yoke_f64: add_f64(j, &t); break;
	case yoke_f16:
	case yoke_bf16: add_half(j, &t); break;
	case yoke_i32: add_32(j, &t); break;
	case yoke_i64: add_64(j, &t); break;
	default: add_8(j, &t);
	}
}

static void add_item(void *arg, int64_t index)
{
	struct job *j = arg;
	int64_t end = (index + 1) * j->each < j->rows ? (index + 1) * j->each : j->rows;
	for (int64_t at = index * j->each; at < end; at++)
		add_tile(j, at);
}

static int run_add(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *y = &op->out[0];
	struct job j = { .idx = &op->in[1], .v = &op->in[2], .y = y, .rows = 1 };

	(void)impl, (void)prepared;
	j.x = op->in[0].kind == YOKE_VIEW_NONE ? NULL : &op->in[0];
	j.axis = (int)op->attr[0].i;
	j.last = y->rank - 1;
	j.N = y->dims[j.axis];
	j.I = j.idx->dims[j.axis];
	atomic_init(&j.bad, INT64_MAX);
	atomic_init(&j.no_memory, false);
	yk_team_run((yk_elements(j.idx) + PER_ITEM - 1) / PER_ITEM, check_item, &j);
	int64_t bad = atomic_load(&j.bad);
	if (bad != INT64_MAX)
		return out_of_range("scatter_add_along", j.idx, bad, j.N);
	for (int d = 0; d < y->rank; d++) {
		if (d == j.axis || (d == j.last && j.axis < j.last))
			continue;
		const struct yoke_view *all[4] = { j.x ? j.x : y, j.idx, j.v, y };
		for (int k = 0; k < 4; k++)
			j.stride[k][j.rank] = all[k]->strides[d];
		j.dims[j.rank++] = y->dims[d];
		j.rows *= y->dims[d];
	}
	if (!yk_elements(y))
		return 0;
	j.cols = j.axis < j.last ? y->dims[j.last] : 1;
	j.tile = j.cols < TILE ? j.cols : TILE;
	j.tiles = (j.cols + j.tile - 1) / j.tile;
	j.rows *= j.tiles;
	j.each = PER_ITEM / (j.tile * (j.N + j.I)) + 1;
	yk_team_run((j.rows + j.each - 1) / j.each, add_item, &j);
	if (atomic_load(&j.no_memory))
		return yk_cpu_fail(YOKE_ENOMEM, "scatter_add_along: no memory for sums");
	return 0;
}

YK_KERNEL(gather_along, GATHER_ALONG) = { .can = can_gather,
						.run = run_gather,
						.impl = { "lines" } };
YK_KERNEL(scatter_add_along, SCATTER_ADD_ALONG) = { .can = can_add,
						     .run = run_add,
						     .impl = { "lines" } };
