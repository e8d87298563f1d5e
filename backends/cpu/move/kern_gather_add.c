// SPDX-License-Identifier: Apache-2.0
// SCATTER_ADD: x [N,R..] or zeros, idx [I..], v [I..,R..] -> y = x with the rows of v added at idx.
// Deterministic: the positions of each row are listed first, in order; then each row has one owner,
// which adds in f32 for f16 and bf16. Indices are checked before anything is written.
#include "config.h"

#include <stdlib.h>

#include "../vector/half.h"
#include "kern_gather.h"

enum {
	COLUMNS = 512,
	PER_ITEM = 1 << 14
}; // elements of a row at a time; elements per work item

struct job {
	const struct yoke_view *x, *idx, *v, *y; // x NULL: zeros
	int64_t N, I, R, blocks, each;           // blocks per row; each: rows per work item
	const int64_t *head, *next; // linked list of the positions of each row, ended by -1
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 3 || op->nout != 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];
	if (!is_index(idx) || v->kind != YOKE_VIEW_BUFFER ||
	    y->kind != YOKE_VIEW_BUFFER || v->dtype != y->dtype ||
	    y->dtype == yoke_bool || y->rank < 1 || v->rank != idx->rank + y->rank - 1)
		return 0;
	if (x->kind == YOKE_VIEW_SCALAR ||
	    (x->kind == YOKE_VIEW_BUFFER &&
	     (x->dtype != y->dtype || x->rank != y->rank || !dense_from(x, 1) ||
	      !same_dims(x->dims, y->dims, y->rank))))
		return 0;
	return same_dims(v->dims, idx->dims, idx->rank) &&
	       same_dims(v->dims + idx->rank, y->dims + 1, y->rank - 1) &&
	       dense_from(y, 1) && dense_from(v, idx->rank);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	uint64_t n;
	(void)impl;
	if (__builtin_add_overflow((uint64_t)op->out[0].dims[0],
				   (uint64_t)indices(&op->in[1]), &n) ||
	    __builtin_mul_overflow(n, sizeof(int64_t), &n))
		return UINT64_MAX;
	return n;
}

#define ADD_ROW(name, T) \
	static void name(void *to, const void *from, int64_t n) \
	{ \
		T *y = to; \
		const T *x = from; \
		for (int64_t i = 0; i < n; i++) \
			y[i] = (T)(y[i] + x[i]); \
	}
ADD_ROW(add_f32, float)
ADD_ROW(add_f64, double)
ADD_ROW(add_8, uint8_t)
ADD_ROW(add_32, uint32_t)
ADD_ROW(add_64, uint64_t)
#undef ADD_ROW

static float of_half(uint16_t h, int dtype)
{
	return dtype == yoke_f16 ? yk_f32_of_f16(h) : yk_f32_of_bf16(h);
}

static void add_half(float *y, const uint16_t *x, int64_t n, int dtype)
{
	for (int64_t i = 0; i < n; i++)
		y[i] += of_half(x[i], dtype);
}

static void add_row(void *y, const void *x, int64_t n, int dtype)
{
	switch (dtype) {
	case yoke_f32: add_f32(y, x, n); break;
	case yoke_f64: add_f64(y, x, n); break;
	case yoke_i32: add_32(y, x, n); break;
	case yoke_i64: add_64(y, x, n); break;
	default: add_8(y, x, n);
	}
}

// Columns from col on of row i of v.
static const char *source(const struct job *j, int64_t i, int64_t col)
{
	int64_t at = offset_of(j->v->dims, j->v->strides, j->idx->rank, i) + col;
	return (const char *)yk_ptr(j->v) + at * (int64_t)yk_esize(j->v->dtype);
}

static void own(const struct job *j, int64_t row, int64_t col, int64_t n)
{
	const int dtype = j->y->dtype;
	const size_t size = yk_esize(dtype);
	char *y = (char *)yk_ptr(j->y) + (row * j->y->strides[0] + col) * (int64_t)size;

	if (j->x)
		memmove(y,
			(const char *)yk_ptr(j->x) +
				(row * j->x->strides[0] + col) * (int64_t)size,
			(size_t)n * size);
	else
		memset(y, 0, (size_t)n * size);
	if (j->head[row] < 0)
		return;
	if (dtype != yoke_f16 && dtype != yoke_bf16) {
		for (int64_t i = j->head[row]; i >= 0; i = j->next[i])
			add_row(y, source(j, i, col), n, dtype);
		return;
	}
	float sum[COLUMNS] = { 0 };
	uint16_t *h = (uint16_t *)y;
	add_half(sum, h, n, dtype);
	for (int64_t i = j->head[row]; i >= 0; i = j->next[i])
		add_half(sum, (const uint16_t *)source(j, i, col), n, dtype);
	for (int64_t i = 0; i < n; i++)
		h[i] = dtype == yoke_f16 ? yk_f16_of_f32(sum[i]) : yk_bf16_of_f32(sum[i]);
}

static void item(void *arg, int64_t index)
{
	const struct job *j = arg;
	int64_t col = index % j->blocks * COLUMNS, row = index / j->blocks * j->each;
	int64_t end = row + j->each < j->N ? row + j->each : j->N;
	int64_t n = j->R - col < COLUMNS ? j->R - col : COLUMNS;

	for (; row < end; row++)
		own(j, row, col, n);
}

// Rows of one element, at indices and of values that are lines: y[idx[i]] += v[i] in order, which
// gives the bits of the lists.
#define ADD_ELEMENTS(name, T) \
	static void name(T *y, int64_t to, const struct line *idx, const struct line *v, \
			 int64_t n, bool wide) \
	{ \
		const T *x = (const T *)v->at; \
		for (int64_t i = 0; i < n; i++) { \
			T *at = &y[line_index(idx, i, wide) * to]; \
			*at = (T)(*at + x[i * v->step]); \
		} \
	}
ADD_ELEMENTS(elements_f32, float)
ADD_ELEMENTS(elements_f64, double)
ADD_ELEMENTS(elements_8, uint8_t)
ADD_ELEMENTS(elements_32, uint32_t)
ADD_ELEMENTS(elements_64, uint64_t)
#undef ADD_ELEMENTS

static void add_elements(const struct job *j, const struct line *idx, const struct line *v,
			 bool wide)
{
	void *y = yk_ptr(j->y);
	const int64_t to = j->y->strides[0];
	switch (j->y->dtype) {
	case yoke_f32: elements_f32(y, to, idx, v, j->I, wide); break;
	case yoke_f64: elements_f64(y, to, idx, v, j->I, wide); break;
	case yoke_i32: elements_32(y, to, idx, v, j->I, wide); break;
	case yoke_i64: elements_64(y, to, idx, v, j->I, wide); break;
	default: elements_8(y, to, idx, v, j->I, wide);
	}
}

static void fill_zero(void *arg, int64_t index)
{
	const struct job *j = arg;
	const int64_t size = (int64_t)yk_esize(j->y->dtype), step = j->y->strides[0] * size,
		      first = index * PER_ITEM;
	const int64_t end = first + PER_ITEM < j->N ? first + PER_ITEM : j->N;
	char *y = yk_ptr(j->y);
	if (j->y->strides[0] == 1)
		memset(y + first * size, 0, (size_t)((end - first) * size));
	for (int64_t k = first; j->y->strides[0] != 1 && k < end; k++)
		memset(y + k * step, 0, (size_t)size);
}

static int run_elements(const struct yoke_op *op, struct job *j, const struct line *idx,
			const struct line *v)
{
	const bool wide = j->idx->dtype == yoke_i64;
	const int64_t bad = wide ? first_outside(idx, j->I, true, 0, j->N) :
				   first_outside(idx, j->I, false, 0, j->N);
	if (bad >= 0)
		return out_of_range("scatter_add", j->idx, bad, j->N);
	const int error = j->x ? copy_x(op) : 0;
	if (error < 0)
		return error;
	if (!j->x)
		yk_team_run((j->N + PER_ITEM - 1) / PER_ITEM, fill_zero, j);
	if (wide)
		add_elements(j, idx, v, true);
	else
		add_elements(j, idx, v, false);
	return 0;
}

// Lists the positions of each row, ascending; YOKE_ERANGE for the first invalid index.
static int list(const struct yoke_op *op, struct job *j)
{
	int64_t *head = yk_ptr(&op->workspace), *next = head + j->N;

	for (int64_t i = 0; i < j->I; i++) {
		int64_t row = index_at(j->idx, i);
		if (row < 0 || row >= j->N)
			return out_of_range("scatter_add", j->idx, i, j->N);
	}
	for (int64_t n = 0; n < j->N; n++)
		head[n] = -1;
	for (int64_t i = j->I - 1; i >= 0; i--) {
		int64_t row = index_at(j->idx, i);
		next[i] = head[row];
		head[row] = i;
	}
	j->head = head, j->next = next;
	return 0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .idx = &op->in[1], .v = &op->in[2], .y = &op->out[0], .R = 1 };
	int error;

	(void)impl, (void)prepared;
	j.x = op->in[0].kind == YOKE_VIEW_NONE ? NULL : &op->in[0];
	j.N = j.y->dims[0];
	j.I = indices(j.idx);
	for (int d = 1; d < j.y->rank; d++)
		j.R *= j.y->dims[d];
	if (j.N == 0 && j.I == 0)
		return 0;
	const struct yoke_op copy = copy_of(op);
	struct line index, values;
	if (j.y->rank == 1 && j.y->dtype != yoke_f16 && j.y->dtype != yoke_bf16 &&
	    as_line(j.idx, j.idx->rank, &index) && as_line(j.v, j.idx->rank, &values) &&
	    (!j.x || ISA(yk_move).can(&copy)))
		return run_elements(op, &j, &index, &values);
	if ((error = list(op, &j)) < 0 || j.R == 0)
		return error;
	j.blocks = (j.R + COLUMNS - 1) / COLUMNS;
	j.each = PER_ITEM / (j.R < COLUMNS ? j.R : COLUMNS);
	yk_team_run((j.N + j.each - 1) / j.each * j.blocks, item, &j);
	return 0;
}

YK_KERNEL(scatter_add, SCATTER_ADD) = {
	.can = can, .workspace = workspace, .run = run, .impl = { "lists" }
};
