// SPDX-License-Identifier: Apache-2.0
// A conformance case: one op of the plugin ABI, its operands' values, and the expected results.
// Makers (one per op, cases_*.c) draw shapes, layouts and values, and compute the results in
// float64 by direct loops that follow the op's definition in yoke-plugin.h.
#ifndef YK_CASE_H
#define YK_CASE_H

#include <setjmp.h>

#include "base/arena.h"
#include "base/num.h"

// The expected value of an element: within tol of f, or equal to i.
struct yk_expected {
	double f, tol;
	int64_t i;
	bool loose; // any value is accepted: the reference cannot predict it
};

// The memory of one view, or of several views that alias it.
struct yk_array {
	char *data;     // elements at their strides, gaps included; NULL: shares another array
	uint64_t bytes; // of data
	uint64_t origin;      // position of the view's first element in data
	uint32_t shift;       // elements between an aligned address and data
	int32_t alias;        // view whose array this one shares, -1: none
	struct yk_num *num;   // of an operand: its elements, row major
	struct yk_expected *want; // of a result: its expected elements, row major
	int64_t n;            // elements
};

enum { YK_CASE_VIEWS = 64 };

struct yk_case {
	struct yk_arena *memory;
	jmp_buf *no_memory; // longjmp target when out of memory
	uint64_t state;     // of the random number generator
	uint32_t number;
	bool flushes; // the device flushes subnormals to zero
	bool tf32;    // the device rounds f32 factors to TF32
	bool rejects; // a value is out of range: the op may fail with ERANGE
	struct yoke_op op;
	struct yoke_map map;
	struct yoke_source source;
	struct yoke_view view[YK_CASE_VIEWS]; // results, then operands
	struct yk_array array[YK_CASE_VIEWS];
	uint32_t views;
	char note[96]; // describes what is special about the case
// Optional second case whose results must equal the results of this one from element part_at on,
// whichever implementations run the two.  Only `yoke check device` checks it: it usually
// needs other kernels to be built.
	struct yk_case *part;
	int64_t part_at;
};

// Draws case `number` of the op in the dtype; false if there is no such case.
typedef bool yk_case_maker(struct yk_case *, int dtype);

struct yk_case_row {
	uint16_t code;
	const char *name;
	uint32_t dtypes; // bit d: there are cases of dtype d
	uint32_t full;   // number of cases in a full run; a sample has fewer
	yk_case_maker *make;
};
extern const struct yk_case_row yk_case_rows[]; // ends with a NULL name

// Op, name, dtypes (sets of conform.c), number of cases in a full run: yk_make_NAME makes them.
#define YK_CASE_ROWS(X) \
	X(MAP, map, ALL, 48) \
	X(REDUCE, reduce, ALL, 48) \
	X(CONTRACT, contract, NUMBERS, 48) \
	X(MOVE, move, ALL, 30) \
	X(GATHER, gather, ALL, 24) \
	X(SCATTER_ADD, scatter_add, NUMBERS, 24) \
	X(SCAN, scan, NUMBERS, 30) \
	X(SCAN_MAP, scan_map, ALL, 32) \
	X(SORT, sort, ALL, 24) \
	X(LARGEST, largest, D(f32), 30) \
	X(EIGH, eigh, D(f32) | D(f64), 24) \
	X(CHOLESKY, cholesky, D(f32) | D(f64), 24) \
	X(SOLVE_TRIANGULAR, solve_triangular, D(f32) | D(f64), 24) \
	X(LU, lu, D(f32) | D(f64), 24) \
	X(LU_SOLVE, lu_solve, D(f32) | D(f64), 24) \
	X(QR, qr, D(f32) | D(f64), 24) \
	X(SVD, svd, D(f32) | D(f64), 24) \
	X(MATRIX_EXP, matrix_exp, D(f32) | D(f64), 24) \
	X(MOMENTS, moments, D(f32) | D(f64), 30) \
	X(CHECK, check, REALS, 18) \
	X(SLICE_AT, slice_at, ALL, 18) \
	X(SLICE_UPDATE_AT, slice_update_at, ALL, 18) \
	X(GATHER_ALONG, gather_along, ALL, 24) \
	X(SCATTER_ADD_ALONG, scatter_add_along, NUMBERS, 24) \
	X(SOFTMAX, softmax, REALS, 36) \
	X(SOFTMAX_BACKWARD, softmax_backward, REALS, 36) \
	X(LAYER_NORM, layer_norm, REALS, 36) \
	X(LAYER_NORM_BACKWARD, layer_norm_backward, REALS, 36) \
	X(RMS_NORM, rms_norm, REALS, 36) \
	X(RMS_NORM_BACKWARD, rms_norm_backward, REALS, 36) \
	X(CROSS_ENTROPY, cross_entropy, REALS, 36) \
	X(CROSS_ENTROPY_BACKWARD, cross_entropy_backward, REALS, 36) \
	X(ATTENTION, attention, REALS, 36) \
	X(ATTENTION_BACKWARD, attention_backward, REALS, 36) \
	X(ROPE, rope, REALS, 18) \
	X(RESOLVENT, resolvent, REALS, 36) \
	X(RESOLVENT_BACKWARD, resolvent_backward, REALS, 36) \
	X(GROUPED, grouped, REALS, 24) \
	X(GROUPED_BACKWARD, grouped_backward, REALS, 24) \
	X(WINDOW_ADD, window_add, REALS, 24) \
	X(CONV, conv, REALS, 36) \
	X(CONV_X, conv_x, REALS, 36) \
	X(CONV_W, conv_w, REALS, 36) \
	X(POOL_MAX, pool_max, REALS, 36) \
	X(POOL_MAX_BACKWARD, pool_max_backward, REALS, 36) \
	X(DEQUANT, dequant, D(f32) | D(f16) | D(bf16), 30) \
	X(QLINEAR, qlinear, D(f32) | D(f16) | D(bf16), 30) \
	X(QGATHER, qgather, D(f32) | D(f16) | D(bf16), 30) \
	X(PAGED_ATTENTION, paged_attention, REALS, 36) \
	X(SCATTER_SET, scatter_set, ALL, 24) \
	X(COMPACT, compact, D(bool), 24) \
	X(SEARCHSORTED, searchsorted, NUMBERS, 24) \
	X(SPARSE, sparse, D(f32) | D(f64), 36) \
	X(SPARSE_X, sparse_x, D(f32) | D(f64), 36) \
	X(SPARSE_W, sparse_w, D(f32) | D(f64), 36) \
	X(POOL_ARGMAX, pool_argmax, REALS, 36) \
	X(CUM_ARG, cum_arg, NUMBERS, 24) \
	X(LIST_MAP, list_map, REALS, 48) \
	X(LIST_REDUCE, list_reduce, REALS, 36) \
	X(FFT, fft, D(f32) | D(f64), 36) \
	X(RECURRENT, recurrent, D(f32) | D(f64), 36) \
	X(RECURRENT_BACKWARD, recurrent_backward, D(f32) | D(f64), 36) \
	X(CTC, ctc, D(f32) | D(f64), 24) \
	X(CTC_BACKWARD, ctc_backward, D(f32) | D(f64), 24) \
	X(SOURCE, source, D(f32) | D(i32), 24)
#define YK_CASE_MAKER(code, name, dtypes, full) yk_case_maker yk_make_##name;
YK_CASE_ROWS(YK_CASE_MAKER)
#undef YK_CASE_MAKER

// ---- random numbers: splitmix64 (Steele et al. 2014) ----

uint64_t yk_draw(struct yk_case *);
int64_t yk_draw_int(struct yk_case *, int64_t lo, int64_t hi); // inclusive bounds
double yk_draw_real(struct yk_case *, double lo, double hi);
bool yk_draw_one_in(struct yk_case *, int n);
// Draws an extent from 1 to `max`: small, prime, a power of two or next to one.
int64_t yk_draw_size(struct yk_case *, int64_t max);

// Draws batch axes followed by two matrix axes; returns the rank.
int yk_draw_matrices(struct yk_case *, int64_t *dims, int64_t rows, int64_t columns);
// Diagonalizes a symmetric a [n,n] by rotations; v receives the eigenvectors as columns (Jacobi
// 1846).
void yk_jacobi(double *a, double *v, int64_t n);

// ---- building ----

// Every third case is plain (dense, aligned operands), for backends that accept nothing else.
static inline bool yk_case_plain(const struct yk_case *c)
{
	return c->number % 3 == 0;
}

// Every twelfth case is larger than the size from which implementations split long rows.
static inline bool yk_case_large(const struct yk_case *c)
{
	return c->number % 12 == 7;
}

enum yk_case_layout {
	YK_DENSE,        // row major, no gaps
	YK_ROWS,         // gaps between rows, the last axis
	YK_ANY,          // gaps, permuted axes, negative strides
	YK_REPEATED = 4, // also elements repeated along axes (operands only)
	YK_OR_SCALAR = 8 // or a SCALAR view
};

// Starts the op; add results before operands.
void yk_case_op(struct yk_case *, int code);
// Each of these adds a view with its own memory and returns its index.  layout: the layouts to draw
// from.  An operand's elements are drawn from lo .. hi, computed by fn from their row-major index,
// or given.
uint32_t yk_case_out(struct yk_case *, int dtype, int rank, const int64_t *dims,
		     int layout);
uint32_t yk_case_in(struct yk_case *, int dtype, int rank, const int64_t *dims,
		    int layout, double lo, double hi);
uint32_t yk_case_in_by(struct yk_case *, int dtype, int rank, const int64_t *dims,
		       int layout,
		       struct yk_num (*fn)(struct yk_case *, int dtype, int64_t index));
uint32_t yk_case_in_of(struct yk_case *, int dtype, int rank, const int64_t *dims,
		       int layout, const struct yk_num *num);
// Overwrites `many` elements along the axis with NaN, from index from[i] for index i of axis 0;
// results must not depend on them.
void yk_case_spoil(struct yk_case *, uint32_t in, int axis, const struct yk_num *from,
		   int64_t many);
// A single value: a SCALAR view, or a BUFFER of rank 0.
uint32_t yk_case_value(struct yk_case *, int dtype, struct yk_num);
uint32_t yk_case_none(struct yk_case *);
// The dtype of weights, tables and masks: `dtype`, or sometimes f32 with half precision.
int yk_case_beside(struct yk_case *, int dtype);
// Relative error of a product of two numbers of the dtype on matrix units that round its factors.
double yk_case_rounding(bool tf32, int dtype);
// Aliases result `out` to operand `in` (view indices) if their layouts match; bit: its bit in
// alias_mask.
bool yk_case_alias(struct yk_case *, uint32_t out, uint32_t in, int bit);
void *yk_case_alloc(struct yk_case *, uint64_t bytes); // zeroed, never NULL
__attribute__((format(printf, 2, 3))) void yk_case_note(struct yk_case *, const char *fmt,
							...);

// Product of the extents.
int64_t yk_count_of(int rank, const int64_t *dims);
// Advances to the next index in row-major order; false after the last, and the index is 0 again.
bool yk_next_index(int64_t *i, const struct yoke_view *);

// Expects v, with an error of `abs` from the accumulator, then rounded to dtype.
void yk_expect_real(struct yk_expected *, int dtype, double v, double abs);
static inline void yk_expect_int(struct yk_expected *w, int64_t i)
{
	*w = (struct yk_expected){ .i = i };
}

#endif
