// SPDX-License-Identifier: Apache-2.0
// Operands of the row-wise kernels: a view as rows of floats, or as one value. A row is the last
// axis and is dense; the outer axes may have any strides. Kernels compute in f32: rows of f16 and
// bf16 are converted through a line of floats that stays in cache.
#ifndef YK_OPERAND_H
#define YK_OPERAND_H

#include <string.h>

#include "../map/kern_map.h"

static inline bool present(const struct yoke_view *v)
{
	return v->kind != YOKE_VIEW_NONE;
}

static inline bool is_f32(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER && v->dtype == yoke_f32;
}

// True for a BUFFER of f32, f16 or bf16.
static inline bool is_narrow(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_BUFFER &&
	       (v->dtype == yoke_f32 || yk_is_half(v->dtype));
}

// The same, with a dense last axis.
static inline bool is_rows(const struct yoke_view *v)
{
	int k = v->rank - 1;
	return is_narrow(v) && v->rank > 0 && (v->strides[k] == 1 || v->dims[k] <= 1);
}

// True if absent, or a contiguous f32, f16 or bf16.
static inline bool is_dense_or_none(const struct yoke_view *v)
{
	return !present(v) || (is_narrow(v) && yk_dense(v));
}

struct rows {
	char *base;
	yk_load_fn *load; // for f16 and bf16, otherwise NULL; also `store`
	yk_store_fn *store;
	int64_t cols, count;
	int size; // bytes per element
	int rank; // number of outer axes
	int64_t dims[YOKE_MAX_RANK], strides[YOKE_MAX_RANK];
};

static inline struct rows rows_of(const struct yoke_view *v)
{
	struct rows r = { .base = yk_ptr(v), .cols = v->dims[v->rank - 1], .count = 1 };
	r.size = (int)yk_esize(v->dtype);
	if (yk_is_half(v->dtype)) {
		r.load = ISA(yk_load)(v->dtype);
		r.store = ISA(yk_store)(v->dtype);
	}
	for (r.rank = 0; r.rank < v->rank - 1; r.rank++) {
		r.count *= v->dims[r.rank];
		r.dims[r.rank] = v->dims[r.rank];
		r.strides[r.rank] = v->strides[r.rank];
	}
	return r;
}

static inline char *row_at(const struct rows *r, int64_t i)
{
	int64_t at = 0;
	if (!i) // without divisions
		return r->base;
	for (int k = r->rank - 1; k > 0; k--) {
		at += i % r->dims[k] * r->strides[k];
		i /= r->dims[k];
	}
	return r->base + (at + (r->rank ? i * r->strides[0] : 0)) * r->size;
}

// Row i as floats: in place, or converted to `line`.
static inline const float *row_get(const struct rows *r, int64_t i, float *line)
{
	char *at = row_at(r, i);
	if (!r->load)
		return (const float *)at;
	r->load(line, at, 1, r->cols);
	return line;
}

// Row i, for prefetching; `other` if rows are converted.
static inline const float *row_next(const struct rows *r, int64_t i, const float *other)
{
	return r->load ? other : (const float *)row_at(r, i);
}

// Where to write the floats of row i: in place, or in `line`, which row_put then converts.
static inline float *row_to(const struct rows *r, int64_t i, float *line)
{
	return r->store ? line : (float *)row_at(r, i);
}

static inline void row_put(const struct rows *r, int64_t i, const float *line)
{
	if (r->store)
		r->store(row_at(r, i), line, 1, r->cols);
}

// Scratch of this thread: `lines` lines of `cols` floats if rows need conversion. NULL: out of
// memory.
static inline float *row_lines(bool converted, int lines, int64_t cols)
{
	return yk_team_scratch(converted ? (size_t)(lines * cols) * sizeof(float) : 1);
}

// True if output v is f32, large enough and aligned for non-temporal stores. Not if it overwrites
// an operand, whose lines are already in the cache.
static inline bool is_streamed(const struct yoke_op *op, const struct yoke_view *v)
{
	return !op->alias_mask && v->dtype == yoke_f32 && yk_dense(v) &&
	       v->dims[v->rank - 1] % 16 == 0 &&
	       (uintptr_t)yk_ptr(v) % 64 == 0 &&
	       yk_elements(v) >= yk_stream_bytes / (int64_t)sizeof(float);
}

// Rows per work item: about 16384 elements, or four times that if there are many, since hardware
// prefetch stops at the end of an item; at most `most` items if not 0.
static inline int64_t rows_per_item(int64_t count, int64_t cols, int64_t max)
{
	const int64_t width = cols > 0 ? cols : 1;
	const int64_t wanted = count > (1 << 23) / width ? 1 << 16 : 1 << 14;
	int64_t n = cols < wanted ? wanted / width : 1;
	if (max && n < (count + max - 1) / max)
		n = (count + max - 1) / max;
	return n;
}

static inline int64_t items_of(int64_t count, int64_t each)
{
	return (count + each - 1) / each;
}

// True for one value: a SCALAR view, or a BUFFER of one element; f32, f64, i32 or i64.
static inline bool is_value(const struct yoke_view *v)
{
	if (v->kind == YOKE_VIEW_NONE ||
	    (v->kind == YOKE_VIEW_BUFFER && yk_elements(v) != 1))
		return false;
	return v->dtype == yoke_f32 || v->dtype == yoke_f64 || v->dtype == yoke_i32 ||
	       v->dtype == yoke_i64;
}

static inline bool is_value_or_none(const struct yoke_view *v)
{
	return !present(v) || is_value(v);
}

union value {
	float f32;
	double f64;
	int32_t i32;
	int64_t i64;
};

static inline union value value_of(const struct yoke_view *v)
{
	union value x;
	if (v->kind == YOKE_VIEW_BUFFER) {
		memcpy(&x, yk_ptr(v), yk_esize(v->dtype));
	} else if (yk_esize(v->dtype) == 4) {
		uint32_t low = (uint32_t)v->offset; // the value's bits, see yoke_view
		memcpy(&x, &low, sizeof low);
	} else {
		memcpy(&x, &v->offset, sizeof v->offset);
	}
	return x;
}

static inline double value_real(const struct yoke_view *v, double absent)
{
	if (!present(v))
		return absent;
	union value x = value_of(v);
	switch (v->dtype) {
	case yoke_f64: return x.f64;
	case yoke_f32: return x.f32;
	case yoke_i64: return (double)x.i64;
	default: return x.i32;
	}
}

static inline int64_t value_int(const struct yoke_view *v, int64_t absent)
{
	if (!present(v))
		return absent;
	union value x = value_of(v);
	switch (v->dtype) {
	case yoke_i64: return x.i64;
	case yoke_i32: return x.i32;
	default: return (int64_t)value_real(v, 0);
	}
}

#endif
