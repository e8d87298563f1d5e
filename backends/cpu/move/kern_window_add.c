// SPDX-License-Identifier: Apache-2.0
// WINDOW_ADD: sums windows [..,Q,..,size] along an axis of n elements into [..,n,..]. A line of the
// result's last axis is summed in scratch, in f32 for f16 and bf16, in the order of the windows'
// elements.
#include "config.h"

#include <string.h>

#include "../vector/half.h"
#include "walk.h"

enum { PER_ITEM = 1 << 14 }; // elements per work item

struct job {
	const struct yoke_view *x, *y;
	int axis;
	int64_t size, stride, dilation, count; // count: Q
	int64_t rows, cols, each;
	atomic_bool no_memory;
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 1 || op->nout != 1 || op->nattr < 5)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const int64_t axis = op->attr[0].i;
	return x->kind == YOKE_VIEW_BUFFER && y->kind == YOKE_VIEW_BUFFER && x->dtype == y->dtype &&
	       x->dtype >= yoke_f32 && x->dtype <= yoke_bf16 && x->rank == y->rank + 1 &&
	       axis >= 0 && axis < y->rank && x->dims[y->rank] == op->attr[1].i &&
	       y->dims[axis] == op->attr[4].i && same_dims(x->dims, y->dims, (int)axis) &&
	       same_dims(x->dims + axis + 1, y->dims + axis + 1, y->rank - (int)axis - 1);
}

#define ADD(name, T, S, LOAD, STORE) \
	static void name##_add(void *sums, int64_t step, const char *from, int64_t stride, \
			       int64_t n) \
	{ \
		S *to = sums; \
		const T *x = (const T *)from; \
		for (int64_t i = 0; i < n; i++) \
			to[i * step] += LOAD(x[i * stride]); \
	} \
	static void name##_put(const void *sums, char *to, int64_t stride, int64_t n) \
	{ \
		const S *s = sums; \
		T *y = (T *)to; \
		for (int64_t i = 0; i < n; i++) \
			y[i * stride] = STORE(s[i]); \
	}
#define PLAIN(x) (x)
ADD(f32, float, float, PLAIN, PLAIN)
ADD(f64, double, double, PLAIN, PLAIN)
ADD(f16, uint16_t, float, yk_f32_of_f16, yk_f16_of_f32)
ADD(bf16, uint16_t, float, yk_f32_of_bf16, yk_bf16_of_f32)

static const struct {
	void (*add)(void *, int64_t, const char *, int64_t, int64_t);
	void (*put)(const void *, char *, int64_t, int64_t);
	size_t size; // bytes per sum
} kinds[] = {
	[yoke_f32] = { f32_add, f32_put, sizeof(float) },
	[yoke_f64] = { f64_add, f64_put, sizeof(double) },
	[yoke_f16] = { f16_add, f16_put, sizeof(float) },
	[yoke_bf16] = { bf16_add, bf16_put, sizeof(float) },
};

// Computes one line of y, number `row` over the axes before the last.
static void line(const struct job *j, int64_t row, char *sums)
{
	const struct yoke_view *x = j->x, *y = j->y;
	const int last = y->rank - 1, dtype = x->dtype;
	const int64_t size = (int64_t)yk_esize(dtype), window = x->strides[y->rank];
	const bool along = j->axis == last;
	int64_t from = 0, to = 0, at = 0;

	for (int d = last - 1; d >= 0; d--) {
		const int64_t i = row % y->dims[d];
		row /= y->dims[d];
		to += i * y->strides[d];
		if (d == j->axis)
			at = i;
		else
			from += i * x->strides[d];
	}
	memset(sums, 0, (size_t)j->cols * kinds[dtype].size);
	for (int64_t k = 0; k < j->size; k++) {
		const int64_t first = at - k * j->dilation, q = first / j->stride;
		const char *p = (const char *)yk_ptr(x) + (from + k * window) * size;
		if (along)
			kinds[dtype].add(sums + (size_t)(k * j->dilation) * kinds[dtype].size,
					 j->stride, p, x->strides[last], j->count);
		else if (first >= 0 && first % j->stride == 0 && q < j->count)
			kinds[dtype].add(sums, 1, p + q * x->strides[j->axis] * size,
					 x->strides[last], j->cols);
	}
	kinds[dtype].put(sums, (char *)yk_ptr(y) + to * size, y->strides[last], j->cols);
}

static void item(void *arg, int64_t n)
{
	struct job *j = arg;
	char *sums = yk_team_scratch((size_t)j->cols * sizeof(double));

	if (!sums) {
		j->no_memory = true;
		return;
	}
	for (int64_t row = n * j->each; row < j->rows && row < (n + 1) * j->each; row++)
		line(j, row, sums);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const int axis = (int)op->attr[0].i;
	struct job j = { .x = x,
			 .y = y,
			 .axis = axis,
			 .size = op->attr[1].i,
			 .stride = op->attr[2].i,
			 .dilation = op->attr[3].i,
			 .count = x->dims[axis],
			 .cols = y->dims[y->rank - 1] };
	const int64_t n = yk_elements(y);

	(void)impl, (void)prepared;
	if (!n)
		return 0;
	j.rows = n / j.cols;
	j.each = j.cols < PER_ITEM ? PER_ITEM / j.cols : 1;
	yk_team_run((j.rows + j.each - 1) / j.each, item, &j);
	return j.no_memory ? yk_cpu_fail(YOKE_ENOMEM, "window_add: no memory for a line") : 0;
}

YK_KERNEL(window_add, WINDOW_ADD) = { .can = can, .run = run, .impl = { "lines" } };
