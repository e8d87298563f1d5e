// SPDX-License-Identifier: Apache-2.0
// Index handling shared by gather and scatter_add: indices of 32 or 64 bits with any strides, and
// their range check.
#ifndef YK_KERN_GATHER_H
#define YK_KERN_GATHER_H

#include <string.h>

#include "../host/scalar.h"
#include "walk.h"

static inline bool is_index(const struct yoke_view *v)
{
	return v->kind != YOKE_VIEW_NONE &&
	       (v->dtype == yoke_i32 || v->dtype == yoke_i64);
}

static inline int64_t index_at(const struct yoke_view *v, int64_t i)
{
	const char *p = yk_low_bytes(&v->offset, yk_esize(v->dtype));
	int32_t narrow;
	int64_t wide;

	if (v->kind == YOKE_VIEW_BUFFER)
		p = (const char *)yk_ptr(v) + offset_of(v->dims, v->strides, v->rank, i) *
						      (int64_t)yk_esize(v->dtype);
	if (v->dtype == yoke_i32) {
		memcpy(&narrow, p, sizeof narrow);
		return narrow;
	}
	memcpy(&wide, p, sizeof wide);
	return wide;
}

static inline int out_of_range(const char *name, const struct yoke_view *idx,
			       int64_t position, int64_t n)
{
	return yk_cpu_fail(YOKE_ERANGE,
			   "%s: index %lld at position %lld is not in 0..%lld", name,
			   (long long)index_at(idx, position), (long long)position,
			   (long long)n - 1);
}

// True if the axes from `first` on are contiguous and row-major.
static inline bool dense_from(const struct yoke_view *v, int first)
{
	int64_t n = 1;
	for (int d = v->rank - 1; d >= first; d--) {
		if (v->dims[d] != 1 && v->strides[d] != n)
			return false;
		n *= v->dims[d];
	}
	return true;
}

// Indices, or the elements that belong to them, that are one line in memory.
struct line {
	const char *at;
	int64_t step; // in elements
};

// The first `rank` axes of v as a line; false if they are not one, or not in memory.
static inline bool as_line(const struct yoke_view *v, int rank, struct line *to)
{
	int64_t n = rank ? v->strides[rank - 1] : 1;
	if (v->kind != YOKE_VIEW_BUFFER)
		return false;
	*to = (struct line){ .at = yk_ptr(v), .step = n };
	for (int d = rank - 1; d > 0; d--) {
		n *= v->dims[d];
		if (v->strides[d - 1] != n)
			return false;
	}
	return true;
}

static inline int64_t line_index(const struct line *idx, int64_t i, bool wide)
{
	return wide ? ((const int64_t *)idx->at)[i * idx->step] :
		      ((const int32_t *)idx->at)[i * idx->step];
}

// The position of the first of n indices that is not in lo .. end - 1; -1: none.
static inline int64_t first_outside(const struct line *idx, int64_t n, bool wide, int64_t lo,
				    int64_t end)
{
	bool good = true;
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = line_index(idx, i, wide);
		good &= row >= lo && row < end;
	}
	for (int64_t i = 0; i < n && !good; i++) {
		const int64_t row = line_index(idx, i, wide);
		if (row < lo || row >= end)
			return i;
	}
	return -1;
}

// The copy of operand 0 to the result.
static inline struct yoke_op copy_of(const struct yoke_op *op)
{
	return (struct yoke_op){ .size = sizeof *op,
				 .code = YOKE_OP_MOVE,
				 .nin = 1,
				 .nout = 1,
				 .in = &op->in[0],
				 .out = &op->out[0] };
}

// Copies operand 0 to the result, unless both are one.
static inline int copy_x(const struct yoke_op *op)
{
	const struct yoke_op copy = copy_of(op);
	return op->alias_mask & 1 ? 0 : ISA(yk_move).run(&copy, 0, NULL);
}

static inline int64_t indices(const struct yoke_view *idx)
{
	int64_t n = 1;
	for (int d = 0; d < idx->rank; d++)
		n *= idx->dims[d];
	return n;
}

#endif
