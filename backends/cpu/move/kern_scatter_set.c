// SPDX-License-Identifier: Apache-2.0
// SCATTER_SET: x [N,R..], idx [I..], v [I..,R..] -> y = x with the rows of v at idx; -1 is skipped,
// and of equal indices the last one counts.  Indices are checked before anything is written.
#include "config.h"

#include "../rows/operand.h"
#include "kern_gather.h"

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 3 || op->nout != 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2],
			       *y = &op->out[0];
	const struct yoke_op copy = copy_of(op);
	return is_index(idx) && v->kind == YOKE_VIEW_BUFFER && y->kind == YOKE_VIEW_BUFFER &&
	       v->dtype == y->dtype && x->dtype == y->dtype && y->rank >= 1 && x->rank == y->rank &&
	       same_dims(x->dims, y->dims, y->rank) && v->rank == idx->rank + y->rank - 1 &&
	       same_dims(v->dims, idx->dims, idx->rank) &&
	       same_dims(v->dims + idx->rank, y->dims + 1, y->rank - 1) && dense_from(y, 1) &&
	       dense_from(v, idx->rank) && ISA(yk_move).can(&copy);
}

// Rows of one element, at indices and of values that are lines. A work item writes those of an
// interval of y, so that of equal indices the last one counts.
struct elements {
	const struct yoke_view *y;
	int64_t n;
	const struct line *idx, *v;
	bool wide; // i64 indices
	int64_t items;
};

#define ELEMENTS(name, T) \
	static inline void name(const struct elements *e, int64_t begin, int64_t end, bool wide) \
	{ \
		const T *x = (const T *)e->v->at; \
		T *to = (T *)yk_ptr(e->y); \
		for (int64_t i = 0; i < e->n; i++) { \
			const int64_t row = line_index(e->idx, i, wide); \
			if (row >= begin && row < end) \
				to[row * e->y->strides[0]] = x[i * e->v->step]; \
		} \
	}
ELEMENTS(elements_1, uint8_t)
ELEMENTS(elements_2, uint16_t)
ELEMENTS(elements_4, uint32_t)
ELEMENTS(elements_8, uint64_t)
#undef ELEMENTS

static inline void elements(const struct elements *e, int64_t begin, int64_t end, bool wide)
{
	switch (yk_esize(e->y->dtype)) {
	case 1: elements_1(e, begin, end, wide); break;
	case 2: elements_2(e, begin, end, wide); break;
	case 4: elements_4(e, begin, end, wide); break;
	default: elements_8(e, begin, end, wide);
	}
}

static void elements_item(void *arg, int64_t item)
{
	const struct elements *e = arg;
	const int64_t rows = e->y->dims[0], each = (rows + e->items - 1) / e->items,
		      begin = item * each;
	const int64_t end = begin + each < rows ? begin + each : rows;
	if (e->wide)
		elements(e, begin, end, true);
	else
		elements(e, begin, end, false);
}

static int run_elements(const struct yoke_op *op, int64_t n, const struct line *idx,
			const struct line *v)
{
	enum { MANY = 16 << 10 }; // indices for which it is worth waking the other threads
	const struct yoke_view *y = &op->out[0];
	const bool wide = op->in[1].dtype == yoke_i64;
	const int64_t bad = wide ? first_outside(idx, n, true, -1, y->dims[0]) :
				   first_outside(idx, n, false, -1, y->dims[0]);
	if (bad >= 0)
		return out_of_range("scatter_set", &op->in[1], bad, y->dims[0]);
	const int err = copy_x(op);
	if (err < 0)
		return err;
	// each item reads all indices; how many items there are does not change the result
	struct elements e = { y, n, idx, v, wide, n < MANY ? 1 : yk_team_size() };
	yk_team_run(e.items, elements_item, &e);
	return 0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *idx = &op->in[1], *v = &op->in[2], *y = &op->out[0];
	const int64_t n = indices(idx), rows = y->dims[0];
	size_t bytes = yk_esize(y->dtype);
	struct line index, values;
	int e;
	(void)impl, (void)prepared;
	if (y->rank == 1 && as_line(idx, idx->rank, &index) && as_line(v, idx->rank, &values))
		return run_elements(op, n, &index, &values);
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = index_at(idx, i);
		if (row < -1 || row >= rows)
			return out_of_range("scatter_set", idx, i, rows);
	}
	if ((e = copy_x(op)) < 0)
		return e;
	const int64_t to_step = y->strides[0] * (int64_t)bytes, size = (int64_t)bytes;
	for (int d = 1; d < y->rank; d++)
		bytes *= (size_t)y->dims[d];
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = index_at(idx, i);
		if (row >= 0)
			memcpy((char *)yk_ptr(y) + row * to_step,
			       (const char *)yk_ptr(v) +
				       offset_of(v->dims, v->strides, idx->rank, i) * size,
			       bytes);
	}
	return 0;
}

YK_KERNEL(scatter_set, SCATTER_SET) = {
	.can = can, .run = run, .impl = { "rows" },
};
