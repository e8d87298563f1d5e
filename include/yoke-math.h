// SPDX-License-Identifier: Apache-2.0
// Functions composed of the operations of yoke.h: special functions, integer arithmetic, cumulative
// extremes, searching, overwriting scatters, and losses with weights and reductions.  The
// conventions are those of yoke.h.  All functions are differentiable, also repeatedly, unless
// stated otherwise.
#ifndef YOKE_MATH_H
#define YOKE_MATH_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- special functions ----
// For floating point, accurate to a few units in the last place in f32 and f64; half precision is
// computed in f32 and rounded once.

// asin and acos and their gradients are NaN outside of -1 .. 1; the gradients are infinite at -1
// and 1.
YOKE_API yoke_tensor *yoke_asin(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_acos(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_atan(yoke_tensor *x);
// The angle of (x, y) in -pi .. pi; operands broadcast; 0 for two zeros.  The sign of a zero is
// ignored: y = -0 gives the result of y = 0.  Both gradients are 0 if both operands are 0 (NaN in
// JAX), and if one is infinite, which is the limit.
YOKE_API yoke_tensor *yoke_atan2(yoke_tensor *y, yoke_tensor *x);
// log |gamma(x)| and its derivative; the gradient of digamma is trigamma.  At 0, -1, -2, ... lgamma
// is infinite, digamma is NaN, since its limits from both sides differ, and the gradient of digamma
// is infinite.  Errors are relative to 1 + |y|.
YOKE_API yoke_tensor *yoke_lgamma(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_digamma(yoke_tensor *x);
// The inverse of erf, accurate to 4 units in the last place; infinite at -1 and 1 and NaN outside,
// and so is its gradient.
YOKE_API yoke_tensor *yoke_erfinv(yoke_tensor *x);

// ---- quotients and powers ----

// The quotient rounded down and its remainder, with the sign of b, like Python's // and %.  For
// integers both are 0 if b is 0.  The gradient of floor_div is 0.
YOKE_API yoke_tensor *yoke_floor_div(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_remainder(yoke_tensor *a, yoke_tensor *b);
// a to the power b for integers, wrapping; for b < 0 the truncated quotient 1 / a^-b (0 for a = 0).
YOKE_API yoke_tensor *yoke_integer_pow(yoke_tensor *a, yoke_tensor *b);

// ---- scans, searching, scattering ----

// Cumulative maximum and minimum; NaN propagates.  Equal elements share the gradient.
YOKE_API yoke_tensor *yoke_cummax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_cummin(yoke_tensor *x, int axis);
// Cumulative logsumexp, without overflow.  If two equal infinities are added, each gets half of the
// gradient (NaN in JAX).
YOKE_API yoke_tensor *yoke_logcumsumexp(yoke_tensor *x, int axis);
// sorted [N], ascending, v of any shape and the same dtype -> i64 of v's shape: for each element of
// v the number of elements of `sorted` that are less than it or, if `right` is set, less than or
// equal to it.
YOKE_API yoke_tensor *yoke_searchsorted(yoke_tensor *sorted, yoke_tensor *v, int right);
enum yoke_scatter_kind { YOKE_SCATTER_SET, YOKE_SCATTER_MAX, YOKE_SCATTER_MIN, YOKE_SCATTER_PROD };
// x [..,N,..] combined with v [..,I,..] at idx [..,I,..] along an axis.  SET overwrites, the last
// of several values at an index wins; MAX, MIN, PROD combine with x and with each other, in the
// order of idx.  idx i32 or i64, in 0 .. N - 1 (ERANGE).
YOKE_API yoke_tensor *yoke_scatter_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v, int axis, int kind);

// ---- losses ----
// Like the PyTorch losses of these names; half precision is computed in f32 and rounded once.

enum yoke_reduction { YOKE_LOSS_MEAN, YOKE_LOSS_SUM, YOKE_LOSS_NONE };
struct yoke_loss {
	size_t size;             // sizeof, set by the caller
	int reduction;           // enum yoke_reduction
	yoke_tensor *weight;     // of classes [V]; for bce and mse of elements, broadcasts; NULL or
				 // YOKE_NONE: 1
	yoke_tensor *pos_weight; // for bce: weight of targets of 1, broadcasts; NULL or YOKE_NONE:
				 // 1
	int64_t ignore;          // an id to ignore, if `ignores` is set
	int ignores;
	double smooth;           // label smoothing, in [0, 1)
};
// Cross entropy of logits [..,V] with ids [..], or with probabilities [..,V] of the logits' dtype.
// MEAN divides by the sum of the ids' weights, or for probabilities by the number of rows.  how:
// NULL for mean, weights of 1 and no smoothing.
YOKE_API yoke_tensor *yoke_loss_cross_entropy(yoke_tensor *logits, yoke_tensor *target, const struct yoke_loss *how);
// Binary cross entropy of logits x and targets y in 0 .. 1, which broadcast: -(pos_weight y log
// s(x) + (1 - y) log (1 - s(x))) times weight, where s is the sigmoid.  MEAN divides by the number
// of elements.
YOKE_API yoke_tensor *yoke_loss_bce_logits(yoke_tensor *x, yoke_tensor *y, const struct yoke_loss *how);
// (x - y)^2 times weight; all three broadcast.
YOKE_API yoke_tensor *yoke_loss_mse(yoke_tensor *x, yoke_tensor *y, const struct yoke_loss *how);

#ifdef __cplusplus
}
#endif
#endif
