// SPDX-License-Identifier: Apache-2.0
// What the hosts of cl/rows.cl share: views as rows of f32, f16 or bf16, and how work on rows is
// cut for a kind of device.
#ifndef YK_GPU_ROWS_H
#define YK_GPU_ROWS_H

#include "launch.h"

#define YK_GPU_OUTER 4 // most axes before the row

// struct rows of cl/rows.cl.
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

static inline int64_t yk_gpu_pieces(int64_t count, int64_t each)
{
	return count / each + (count % each != 0);
}

int64_t yk_gpu_elements(const struct yoke_view *);
// A BUFFER without gaps, row major.
bool yk_gpu_dense(const struct yoke_view *);
// Is its first element known to lie at a multiple of so many bytes?
bool yk_gpu_aligned(const struct yoke_view *, size_t bytes);
// A dense BUFFER of that dtype.
bool yk_gpu_dense_of(const struct yoke_view *, int dtype);
bool yk_gpu_float(int dtype); // f32, f16 or bf16
bool yk_gpu_real(int dtype);  // these, or f64
bool yk_gpu_byte(int dtype);  // i8 or u8

// A BUFFER of f32, f16 or bf16 whose last axis is dense, of rank 1 at least and few outer axes?
bool yk_gpu_is_rows(const struct yoke_view *);
struct yk_gpu_rows yk_gpu_rows_of(const struct yoke_view *);
// Columns and rows of such a view.
int64_t yk_gpu_cols(const struct yoke_view *);
int64_t yk_gpu_count(const struct yoke_view *);

// One value: a SCALAR of f32, f64, i32 or i64, or a BUFFER of one element of the same, but f64.
bool yk_gpu_is_value(const struct yoke_view *);
bool yk_gpu_is_value_or_none(const struct yoke_view *);
// struct number of cl/rows.cl.
struct yk_gpu_number {
	int64_t whole;
	float real;
	int32_t from;
};
struct yk_gpu_number yk_gpu_number_of(const struct yoke_view *, double absent);

// Items that work on a row of so many columns together.
size_t yk_gpu_row_items(const struct yk_gpu_device *, int64_t cols);
// Floats of a vector of rows that lie as these views, of which some may be absent; NULL ends them.  `part`: of the
// last axis of each are so many read at a time, side by side.
int yk_gpu_row_width(const struct yk_gpu_device *, const struct yoke_view *const *views, int64_t part);
// What cl/rows.cl is told of rows like these.
void yk_gpu_row_defines(struct yk_gpu_build *, const struct yk_gpu_device *, size_t items, int width,
			const struct yoke_view *rows);
// The dtype of weights, tables and masks, in programs that have some; is it one that they may have beside
// rows of dtype?
void yk_gpu_beside_define(struct yk_gpu_build *, int beside);
bool yk_gpu_serves_beside(int beside, int dtype);
// Rows of a piece: by shape and kind of device alone.
int64_t yk_gpu_row_each(const struct yk_gpu_device *, int64_t count, int64_t cols);
// Is an output so large, and do its rows lie such, that it is written past the caches?
bool yk_gpu_streams(const struct yk_gpu_device *, const struct yoke_op *, const struct yoke_view *out);

// So many groups, or as many of them as a launch has along its first axis.
int64_t yk_gpu_max_groups(const struct yk_gpu_device *, int64_t groups);
// Launches groups of `items` that share the pieces, each taking every so-manieth one.
int yk_gpu_launch_pieces(struct yk_gpu_record *, int64_t pieces, size_t items, const char *name);
// Launches `groups` groups of `items`.
int yk_gpu_launch_groups(struct yk_gpu_record *, int64_t groups, size_t items, const char *name);

#endif
