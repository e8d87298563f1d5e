// SPDX-License-Identifier: Apache-2.0
// Row-wise kernels, host side of cl/rows.cl: views as rows of f32, f16 or bf16, and the division of
// rows among groups and items.
#ifndef YK_GPU_ROWS_H
#define YK_GPU_ROWS_H

#include "launch.h"

#define YK_GPU_OUTER 4 // max axes before the row axis

// Matches struct rows of cl/rows.cl.
struct yk_gpu_rows {
	int64_t rank, dims[YK_GPU_OUTER], strides[YK_GPU_OUTER];
};

static inline bool yk_gpu_present(const struct yoke_view *v)
{
	return v->kind != YOKE_VIEW_NONE;
}

static inline int64_t yk_gpu_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t yk_gpu_ceil_div(int64_t count, int64_t each)
{
	return count / each + (count % each != 0);
}

int64_t yk_gpu_elements(const struct yoke_view *);
// True for a contiguous row-major BUFFER.
bool yk_gpu_dense(const struct yoke_view *);
// True if the axes from `first` on are contiguous and row-major.
bool yk_gpu_dense_from(const struct yoke_view *, int first);
// True if the first element is known to be aligned to `bytes`.
bool yk_gpu_aligned(const struct yoke_view *, size_t bytes);
// True for a dense BUFFER of that dtype.
bool yk_gpu_dense_of(const struct yoke_view *, int dtype);
bool yk_gpu_float(int dtype); // f32, f16 or bf16
bool yk_gpu_real(int dtype);  // f32, f16, bf16 or f64
bool yk_gpu_byte(int dtype);  // i8 or u8

// True for a BUFFER of f32, f16 or bf16 with a dense last axis, rank >= 1 and at most YK_GPU_OUTER
// other axes.
bool yk_gpu_is_rows(const struct yoke_view *);
struct yk_gpu_rows yk_gpu_rows_of(const struct yoke_view *);
// Number of columns and of rows of such a view.
int64_t yk_gpu_cols(const struct yoke_view *);
int64_t yk_gpu_count(const struct yoke_view *);

// True for a single value: a SCALAR of f32, f64, i32 or i64, or a BUFFER with one element of these,
// except f64.
bool yk_gpu_is_value(const struct yoke_view *);
bool yk_gpu_is_value_or_none(const struct yoke_view *);
// Matches struct number of cl/rows.cl.
struct yk_gpu_number {
	int64_t whole;
	float real;
	int32_t from;
};
struct yk_gpu_number yk_gpu_number_of(const struct yoke_view *, double absent);

// Number of items that work together on a row of `cols` columns.
size_t yk_gpu_row_items(const struct yk_gpu_device *, int64_t cols);
// Vector width, in floats, that suits the alignment of all these views; the list ends with NULL,
// and entries may be absent views. `part`: number of contiguous elements of the last axis read at a
// time.
int yk_gpu_row_width(const struct yk_gpu_device *, const struct yoke_view *const *views,
		     int64_t part);
// Defines the macros that describe rows like these to cl/rows.cl.
void yk_gpu_row_defines(struct yk_gpu_build *, const struct yk_gpu_device *, size_t items,
			int width, const struct yoke_view *rows);
// Defines the dtype of weights, tables and masks. yk_gpu_serves_beside: true if they may have dtype
// `beside` when the rows have `dtype`.
void yk_gpu_beside_define(struct yk_gpu_build *, int beside);
bool yk_gpu_serves_beside(int beside, int dtype);
// Rows per chunk; depends only on the shape and the kind of device.
int64_t yk_gpu_row_each(const struct yk_gpu_device *, int64_t count, int64_t cols);
// True if the output is large enough and its rows aligned for non-temporal stores.
bool yk_gpu_streams(const struct yk_gpu_device *, const struct yoke_op *,
		    const struct yoke_view *out);

// Limits a number of groups to what a launch allows along its first axis.
int64_t yk_gpu_max_groups(const struct yk_gpu_device *, int64_t groups);
// Launches groups of `items` items that share the chunks; group i takes chunks i, i + groups, ...
int yk_gpu_launch_chunks(struct yk_gpu_record *, int64_t chunks, size_t items, const char *name);
// Launches `groups` groups of `items`.
int yk_gpu_launch_groups(struct yk_gpu_record *, int64_t groups, size_t items, const char *name);

#endif
