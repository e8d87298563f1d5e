// SPDX-License-Identifier: Apache-2.0
// The accumulators of REDUCE, for each computation dtype: along a run, and down columns.
// Sums go through lanes of the dtype, runs of at most 16 deep, and from there into f64 or
// i64; the order depends on the number of elements alone.
#ifndef YK_KERN_REDUCE_H
#define YK_KERN_REDUCE_H

#include "../map/kern_map.h"

// One output while it is being computed.  f for floating types, i for integers and bool.
struct yk_acc {
	union {
		double f;
		int64_t i;
	};
	int64_t at; // of argmax and argmin: the place of the value, -1: none yet
};

// A tile of columns: YK_STRIP values each of part (the dtype's lanes) and of total.
struct yk_columns {
	union {
		double f64[YK_STRIP];
		int64_t i64[YK_STRIP];
	} total;
	int64_t at[YK_STRIP]; // of argmax and argmin
	union {
		float f32[YK_STRIP];
		double f64[YK_STRIP];
		int64_t i64[YK_STRIP];
	} part;
	int64_t cols, depth; // depth: rows in part
};

struct yk_reducer {
	// What an empty run gives.
	void (*identity)(int kind, struct yk_acc *);
	// Takes in what another accumulator, further on, has.
	void (*join)(int kind, struct yk_acc *, const struct yk_acc *);
	// Takes in x[0..n-1], n <= YK_STRIP, the first of which is at place `at`.
	void (*run)(int kind, struct yk_acc *, const void *x, int64_t n, int64_t at);
	// Columns as they are before the first row; c->cols is set.
	void (*clear)(int kind, struct yk_columns *c);
	// Takes in rows of c->cols elements, `stride` apart; the first is at place `at`.
	void (*rows)(int kind, struct yk_columns *c, const void *x, int64_t stride,
		     int64_t rows, int64_t at);
	void (*flush)(int kind, struct yk_columns *c); // part into total
	void (*total)(const struct yk_columns *c, int64_t column, struct yk_acc *);
};

// Elements of a segment: a longer run is summed by segments, which are joined in order.
enum { YK_SEGMENT = 1 << 14 };

// What an accumulator came to, as an element of a dtype.
void ISA(yk_reduce_put)(char *to, int dtype, int kind, const struct yk_acc *);

extern const struct yk_reducer ISA(yk_reduce_f32), ISA(yk_reduce_f64), ISA(yk_reduce_i64);

#endif
