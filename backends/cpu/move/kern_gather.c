// SPDX-License-Identifier: Apache-2.0
// GATHER: x [O..,N,R..], idx [I..] -> y [O..,I..,R..]; slice (o,i) of y is slice (o,idx[i]) of x.
// An index out of range leaves its slice unchanged; the first one is reported.
#include "config.h"

#include "kern_gather.h"
#include "../vector/vec.h"

enum { PER_ITEM = 1 << 14 }; // elements per work item

struct job {
	const struct yoke_op *op;
	int axis, inner;             // inner: number of axes after it
	int64_t count, slices, each; // number of indices; of all slices; slices per work item
	int64_t dims[YOKE_MAX_RANK], to[YOKE_MAX_RANK], from[YOKE_MAX_RANK];
	// slices are elements of a vector, indices and results are lines
	bool lines;
	// bytes of slices that are dense rows of lines, 0: they are not
	size_t row;
	struct line index, result;
	_Atomic int64_t bad; // position of the first invalid index
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 2 || op->nout != 1 || op->nattr < 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *y = &op->out[0];
	const int64_t axis = op->attr[0].i;
	if (x->kind != YOKE_VIEW_BUFFER || y->kind != YOKE_VIEW_BUFFER ||
	    !is_index(idx) || x->dtype != y->dtype || axis < 0 || axis >= x->rank ||
	    y->rank != x->rank - 1 + idx->rank)
		return 0;
	for (int d = 0; d < y->rank; d++) {
		int64_t want = d < axis             ? x->dims[d] :
			       d < axis + idx->rank ? idx->dims[d - axis] :
						      x->dims[d - idx->rank + 1];
		if (y->dims[d] != want)
			return 0;
	}
	return 1;
}

static void copy_row(char *y, const char *x, int64_t n, int64_t to, int64_t from,
		     size_t size)
{
	if (to == 1 && from == 1) {
		vf_copy(y, x, (size_t)n * size);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		memcpy(y + i * to * (int64_t)size, x + i * from * (int64_t)size, size);
}

static void copy_slice(const struct job *j, char *y, const char *x, size_t size)
{
	const int last = j->inner - 1;
	int64_t rows = 1;

	for (int d = 0; d < last; d++)
		rows *= j->dims[d];
	for (int64_t r = 0; r < rows; r++)
		copy_row(y + offset_of(j->dims, j->to, last, r) * (int64_t)size,
			 x + offset_of(j->dims, j->from, last, r) * (int64_t)size,
			 j->dims[last], j->to[last], j->from[last], size);
}

// Elements first .. end - 1 of a line; returns the position of the first invalid index, or
// INT64_MAX.
#define ELEMENTS(name, T) \
	static int64_t name(const struct job *j, int64_t first, int64_t end, bool wide) \
	{ \
		const T *x = (const T *)yk_ptr(&j->op->in[0]); \
		T *y = (T *)yk_ptr(&j->op->out[0]); \
		const int64_t n = j->op->in[0].dims[0], step = j->op->in[0].strides[0], \
			      to = j->result.step; \
		int64_t bad = INT64_MAX; \
		for (int64_t i = first; i < end; i++) { \
			const int64_t row = line_index(&j->index, i, wide); \
			if (row >= 0 && row < n) \
				y[i * to] = x[row * step]; \
			else if (bad == INT64_MAX) \
				bad = i; \
		} \
		return bad; \
	}
ELEMENTS(elements_1, uint8_t)
ELEMENTS(elements_2, uint16_t)
ELEMENTS(elements_4, uint32_t)
ELEMENTS(elements_8, uint64_t)
#undef ELEMENTS

static int64_t elements(const struct job *j, int64_t first, int64_t end, size_t size, bool wide)
{
	switch (size) {
	case 1: return elements_1(j, first, end, wide);
	case 2: return elements_2(j, first, end, wide);
	case 4: return elements_4(j, first, end, wide);
	default: return elements_8(j, first, end, wide);
	}
}

// Rows first .. end - 1 of a line.
static void rows(struct job *j, int64_t first, int64_t end, size_t size)
{
	const struct yoke_view *x = &j->op->in[0];
	const bool wide = j->op->in[1].dtype == yoke_i64;
	const int64_t step = x->strides[0] * (int64_t)size, to = j->result.step * (int64_t)size;
	char *y = yk_ptr(&j->op->out[0]);
	for (int64_t i = first; i < end; i++) {
		const int64_t row = line_index(&j->index, i, wide);
		if (row >= 0 && row < x->dims[0])
			vf_copy(y + i * to, (const char *)yk_ptr(x) + row * step, j->row);
		else
			record_first(&j->bad, i);
	}
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct yoke_view *x = &j->op->in[0], *idx = &j->op->in[1],
			       *y = &j->op->out[0];
	const size_t size = yk_esize(x->dtype);
	int64_t end =
		(index + 1) * j->each < j->slices ? (index + 1) * j->each : j->slices;

	if (j->lines) {
		const bool wide = idx->dtype == yoke_i64;
		const int64_t bad = wide ? elements(j, index * j->each, end, size, true) :
					   elements(j, index * j->each, end, size, false);
		if (bad != INT64_MAX)
			record_first(&j->bad, bad);
		return;
	}
	if (j->row) {
		rows(j, index * j->each, end, size);
		return;
	}
	for (int64_t s = index * j->each; s < end; s++) {
		int64_t outer = s / j->count, i = s - outer * j->count,
			row = index_at(idx, i);
		if (row < 0 || row >= x->dims[j->axis]) {
			record_first(&j->bad, i);
			continue;
		}
		int64_t from = offset_of(x->dims, x->strides, j->axis, outer) +
			       row * x->strides[j->axis];
		int64_t to = offset_of(y->dims, y->strides, j->axis + idx->rank, s);
		copy_slice(j, (char *)yk_ptr(y) + to * (int64_t)size,
			   (const char *)yk_ptr(x) + from * (int64_t)size, size);
	}
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *y = &op->out[0];
	struct job j = { .op = op, .axis = (int)op->attr[0].i, .count = 1, .slices = 1 };
	int64_t slice = 1;

	(void)impl, (void)prepared;
	atomic_init(&j.bad, INT64_MAX);
	for (int d = 0; d < idx->rank; d++)
		j.count *= idx->dims[d];
	for (int d = 0; d < j.axis; d++)
		j.slices *= x->dims[d];
	j.slices *= j.count;
	for (int d = j.axis + 1; d < x->rank; d++) {
		slice *= j.dims[j.inner] = x->dims[d];
		j.from[j.inner] = x->strides[d];
		j.to[j.inner++] = y->strides[d - 1 + idx->rank];
	}
	if (j.inner == 0)
		j.inner = 1, j.dims[0] = j.from[0] = j.to[0] = 1;
	if (j.slices == 0 || slice == 0)
		return 0;
	j.each = PER_ITEM / slice + 1;
	const bool flat = j.axis == 0 && as_line(idx, idx->rank, &j.index) &&
			  as_line(y, idx->rank, &j.result);
	j.lines = flat && x->rank == 1;
	j.row = flat && j.inner == 1 && j.from[0] == 1 && j.to[0] == 1 ?
			(size_t)slice * yk_esize(x->dtype) :
			0;
	yk_team_run((j.slices + j.each - 1) / j.each, item, &j);
	int64_t bad = atomic_load(&j.bad);
	return bad == INT64_MAX ? 0 :
				  out_of_range("gather", idx, bad, x->dims[j.axis]);
}

YK_KERNEL(gather, GATHER) = { .can = can, .run = run, .impl = { "rows" } };
