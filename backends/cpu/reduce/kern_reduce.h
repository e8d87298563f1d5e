// SPDX-License-Identifier: Apache-2.0
// The accumulators of REDUCE for each computation dtype: along a contiguous run, or down columns.
// Sums are accumulated in lanes of the dtype, at most 16 deep, and then in f64 or i64; the order
// depends only on the number of elements.
#ifndef YK_KERN_REDUCE_H
#define YK_KERN_REDUCE_H

#include "../map/kern_map.h"

// The accumulator of one output: f for floating types, i for integers and bool.
struct yk_acc {
	union {
		double f;
		int64_t i;
	};
	int64_t at; // argmax and argmin: position of the value; -1: none yet
};

// A tile of columns: YK_STRIP partial values (in the dtype's lanes) and totals.
struct yk_columns {
	union {
		double f64[YK_STRIP];
		int64_t i64[YK_STRIP];
	} total;
	int64_t at[YK_STRIP]; // argmax and argmin
	union {
		float f32[YK_STRIP];
		double f64[YK_STRIP];
		int64_t i64[YK_STRIP];
	} part;
	int64_t cols, depth; // depth: rows accumulated in part
};

struct yk_reducer {
	// Sets the result of an empty run.
	void (*identity)(int kind, struct yk_acc *);
	// Merges n accumulators with n others, whose elements come later.
	void (*join)(int kind, struct yk_acc *, const struct yk_acc *later, int64_t n);
	// Accumulates x[0..n-1], n <= YK_STRIP; x[0] has position `at`.
	void (*run)(int kind, struct yk_acc *, const void *x, int64_t n, int64_t at);
	// Sets the columns' initial state; c->cols is set.
	void (*clear)(int kind, struct yk_columns *c);
	// Accumulates rows of c->cols elements, `stride` apart; the first has position `at`.
	void (*rows)(int kind, struct yk_columns *c, const void *x, int64_t stride,
		     int64_t rows, int64_t at);
	void (*flush)(int kind, struct yk_columns *c); // adds part to total
	void (*totals)(const struct yk_columns *c, struct yk_acc *); // c->cols of them
};

// Elements per segment: longer runs are reduced by segments, which are merged in order.
enum { YK_SEGMENT = 1 << 14 };

// Converts an accumulator's result to an element of dtype.
void ISA(yk_reduce_put)(char *to, int dtype, int kind, const struct yk_acc *);

// Max elements per sum of kern_reduce_windows.c.
enum { YK_REDUCE_WINDOW = 64 };

// The sums of up to YK_REDUCE_WINDOW elements of an f32 operand: outputs [rows.., cols].
struct yk_reduce_windows {
	int count;                       // elements per sum
	int64_t offset[YK_REDUCE_WINDOW]; // of each, from the first one of its sum
	int64_t rows, cols, stride;      // stride: between the elements of neighbouring columns
	int rank;                        // axes of rows
	int64_t dims[YOKE_MAX_RANK], strides[YOKE_MAX_RANK];
};

// False if the sums of x are better computed by kern_reduce.c. attr of op: those of REDUCE.
bool ISA(yk_reduce_windows_init)(struct yk_reduce_windows *, const struct yoke_op *op,
				 const struct yoke_view *x);
void ISA(yk_reduce_windows_run)(const struct yk_reduce_windows *, float *to, const float *from);

// Adds `count` rows of f16 or bf16, `stride` apart, to the sums of an f32 reducer's columns: as its
// `rows` would add the converted elements.
void ISA(yk_reduce_half_rows)(struct yk_columns *, int dtype, const uint16_t *x, int64_t stride,
			      int64_t count);

extern const struct yk_reducer ISA(yk_reduce_f32), ISA(yk_reduce_f64), ISA(yk_reduce_i64);

#endif
