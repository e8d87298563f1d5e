// SPDX-License-Identifier: Apache-2.0
// What is made of the operations of yoke.h: special functions, arithmetic of integers, running extremes, searching,
// scattering that overwrites, and losses with weights and reductions.  Conventions are those of yoke.h.  All have
// gradients, which are ordinary values, unless it is said otherwise.
#ifndef YOKE_MATH_H
#define YOKE_MATH_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- special functions ----
// Of floating point, to a few units in the last place of f32 or f64; half precision is computed in f32 and rounded once.

// asin and acos are NaN outside of -1 .. 1, and so are their gradients, which are infinite at the ends.
YOKE_API yoke_tensor *yoke_asin(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_acos(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_atan(yoke_tensor *x);
// The angle of (x, y), which broadcast, in -pi .. pi; 0 of two zeros.  A zero has no sign here: for y -0 it is as for 0.
// Both gradients are 0 if both operands are 0 (JAX's: NaN), and if one is infinite, which is the limit.
YOKE_API yoke_tensor *yoke_atan2(yoke_tensor *y, yoke_tensor *x);
// log |gamma(x)| and its derivative; the gradient of digamma is trigamma.  At 0, -1, -2, .. lgamma is infinite,
// digamma NaN, since the limits from both sides differ, and the gradient of digamma infinite.  Errors are relative to 1 + |y|.
YOKE_API yoke_tensor *yoke_lgamma(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_digamma(yoke_tensor *x);
// x with erf(result) = x, within 4 units in the last place; infinite at -1 and 1, NaN outside, and so is its gradient.
YOKE_API yoke_tensor *yoke_erfinv(yoke_tensor *x);

// ---- quotients and powers ----

// The quotient rounded down, and what it leaves, with the sign of b, as Python's // and %.  Integers: by 0 both are 0.
// floor_div has the gradient 0.
YOKE_API yoke_tensor *yoke_floor_div(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_remainder(yoke_tensor *a, yoke_tensor *b);
// a to the power b of integers, which wraps; for b < 0 the quotient 1 / a^-b, truncated (of a = 0: 0).
YOKE_API yoke_tensor *yoke_integer_pow(yoke_tensor *a, yoke_tensor *b);

// ---- along an axis ----

// The largest, the smallest element up to each; NaN stays.  Equal ones share the gradient.
YOKE_API yoke_tensor *yoke_cummax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_cummin(yoke_tensor *x, int axis);
// log of the sum of exp of the elements up to each, without overflow.  Two equal infinities
// that are added get half of the gradient each (JAX's: NaN).
YOKE_API yoke_tensor *yoke_logcumsumexp(yoke_tensor *x, int axis);
// sorted [N], ascending, v of any shape of the same dtype -> i64 of v's shape: how many elements of it are below each,
// or with right not above it.
YOKE_API yoke_tensor *yoke_searchsorted(yoke_tensor *sorted, yoke_tensor *v, int right);
enum yoke_scatter_kind { YOKE_SCATTER_SET, YOKE_SCATTER_MAX, YOKE_SCATTER_MIN, YOKE_SCATTER_PROD };
// x [..,N,..] with v [..,I,..] put at idx [..,I,..] along an axis: SET, of several at one place the last one; MAX, MIN,
// PROD: joined with x and with each other, in the order of idx.  idx i32 or i64, in 0 .. N - 1 (ERANGE).
YOKE_API yoke_tensor *yoke_scatter_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v, int axis, int kind);

// ---- losses ----
// As PyTorch's of these names; half precision is computed in f32 and rounded once.

enum yoke_reduction { YOKE_LOSS_MEAN, YOKE_LOSS_SUM, YOKE_LOSS_NONE };
struct yoke_loss {
	size_t size;             // sizeof, set by the caller
	int reduction;
	yoke_tensor *weight;     // of classes [V], for bce of elements, which broadcasts; NULL or YOKE_NONE: 1
	yoke_tensor *pos_weight; // of bce: of targets of 1, broadcasts; NULL or YOKE_NONE: 1
	int64_t ignore;          // an id that counts for nothing, where that is asked for
	int ignores;
	double smooth;           // of labels, in [0, 1)
};
// logits [..,V] and ids [..], or probabilities [..,V] of the logits' dtype.  The mean of ids is by the sum of their
// weights, that of probabilities by rows.  how: NULL, or what differs from mean, weights of 1 and no smoothing.
YOKE_API yoke_tensor *yoke_loss_cross_entropy(yoke_tensor *logits, yoke_tensor *target, const struct yoke_loss *how);
// Logits x and targets y in 0 .. 1, of shapes that broadcast: -(pos_weight y log s(x) + (1 - y) log (1 - s(x))), s the
// sigmoid, times weight.  The mean is by elements.
YOKE_API yoke_tensor *yoke_loss_bce_logits(yoke_tensor *x, yoke_tensor *y, const struct yoke_loss *how);
// (x - y)^2 times weight, which broadcast.
YOKE_API yoke_tensor *yoke_loss_mse(yoke_tensor *x, yoke_tensor *y, const struct yoke_loss *how);

#ifdef __cplusplus
}
#endif
#endif
