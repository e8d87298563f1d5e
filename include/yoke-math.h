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

// The root of a^2 + b^2, without overflow; operands broadcast.  Both gradients are 0 where both
// operands are 0 (NaN in PyTorch).
YOKE_API yoke_tensor *yoke_hypot(yoke_tensor *a, yoke_tensor *b);

// ---- bits of floating point ----

// x with the sign of `sign`, also that of a zero or NaN; operands broadcast.  The gradient is 0
// where x is 0.
YOKE_API yoke_tensor *yoke_copysign(yoke_tensor *x, yoke_tensor *sign);
// The number next to x in the direction of `to`, or `to` if both are equal; operands broadcast.
// f32, f64, bf16; without a gradient.
YOKE_API yoke_tensor *yoke_nextafter(yoke_tensor *x, yoke_tensor *to);
// x = m 2^e with 1/2 <= |m| < 1: returns m; *exponent, unless NULL, gets e, i32.  0, infinities and
// NaN are their own m, with e = 0.
YOKE_API yoke_tensor *yoke_frexp(yoke_tensor *x, yoke_tensor **exponent);

// ---- quotients and powers ----

// The quotient rounded down and its remainder, with the sign of b, like Python's // and %.  For
// integers both are 0 if b is 0.  The gradient of floor_div is 0.
YOKE_API yoke_tensor *yoke_floor_div(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_remainder(yoke_tensor *a, yoke_tensor *b);
// a to the power b for integers, wrapping; for b < 0 the truncated quotient 1 / a^-b (0 for a = 0).
YOKE_API yoke_tensor *yoke_integer_pow(yoke_tensor *a, yoke_tensor *b);

// ---- scans, searching, scattering ----

// Cumulative maximum and minimum; NaN propagates.  The gradient goes to the last of equal elements,
// as in PyTorch.
YOKE_API yoke_tensor *yoke_cummax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_cummin(yoke_tensor *x, int axis);
// The same; *indices (NULL: not needed) gets the index of each extreme as i64: of equal elements
// the last one so far, of NaNs too.
YOKE_API yoke_tensor *yoke_cummax_indices(yoke_tensor *x, int axis, yoke_tensor **indices);
YOKE_API yoke_tensor *yoke_cummin_indices(yoke_tensor *x, int axis, yoke_tensor **indices);
// Cumulative logsumexp, without overflow.  If two equal infinities are added, each gets half of the
// gradient (NaN in JAX).
YOKE_API yoke_tensor *yoke_logcumsumexp(yoke_tensor *x, int axis);
// sorted, ascending along its last axis, and v of the same dtype -> i64 of v's shape: for each
// element of v the number of elements that are less than it or, if `right` is set, less than or
// equal to it.  sorted is [N], for v of any shape, or [..,N] with the leading dims of v, whose rows
// are searched in each other's rows.
YOKE_API yoke_tensor *yoke_searchsorted(yoke_tensor *sorted, yoke_tensor *v, int right);
// The interval of each element of v between ascending boundaries [N], 0 .. N:
// searchsorted(boundaries, v).
YOKE_API yoke_tensor *yoke_bucketize(yoke_tensor *v, yoke_tensor *boundaries, int right);
enum yoke_scatter_kind { YOKE_SCATTER_SET, YOKE_SCATTER_MAX, YOKE_SCATTER_MIN, YOKE_SCATTER_PROD };
// x [..,N,..] combined with v [..,I,..] at idx [..,I,..] along an axis.  SET overwrites, the last
// of several values at an index wins; MAX, MIN, PROD combine with x and with each other, in the
// order of idx.  idx i32 or i64, in 0 .. N - 1 (ERANGE).
YOKE_API yoke_tensor *yoke_scatter_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v, int axis,
					 int kind);

// ---- sums of products ----

// Sums of products by the names of axes (Einstein's convention), as in NumPy:
// einsum("bij,bjk->bik", 2, x). Subscripts have one term of letters per operand; "..." stands for
// further axes, which broadcast from the last one on.  A letter that a term has twice takes the
// diagonal; letters that the result lacks are summed over.  Without "->" the result has the axes of
// "..." and the letters that occur once, in alphabetical order.  An axis of one element broadcasts.
// At most 64 operands of numbers of one dtype.  Operands are contracted in pairs by matrix
// products, for up to 8 in the order with the fewest products, for more each time the pair with the
// smallest result.  EINVAL: the subscripts; ESHAPE: sizes differ, or a product of two operands has
// more than YOKE_MAX_RANK axes; EDTYPE.
YOKE_API yoke_tensor *yoke_einsum(const char *subscripts, int n, yoke_tensor *const *x);
// Products summed over n pairs of axes, axes_a[k] of a and axes_b[k] of b; the result has the other
// axes of a, then those of b.
YOKE_API yoke_tensor *yoke_tensordot(yoke_tensor *a, yoke_tensor *b, int n, const int *axes_a,
				     const int *axes_b);
// Products of all pairs of elements: [N] and [M] -> [N,M]; other shapes are flattened.
YOKE_API yoke_tensor *yoke_outer(yoke_tensor *a, yoke_tensor *b);
// Kronecker's product: axis k of the result has as many elements as those of a and b together, a's
// element i times b's element j at i M + j.  At most 4 axes; the operand with fewer gets leading
// axes of 1.
YOKE_API yoke_tensor *yoke_kron(yoke_tensor *a, yoke_tensor *b);

// ---- arranging elements ----
// Any dtype unless stated otherwise.

// n tensors of one shape and dtype along a new axis at that position of the result.
YOKE_API yoke_tensor *yoke_stack(int n, yoke_tensor *const *x, int axis);
// Views of n consecutive intervals of an axis, whose sizes add up to its size (ESHAPE), to
// to[0 .. n - 1].  After an error all are NULL.
YOKE_API int yoke_split(yoke_tensor *x, int axis, int n, const int64_t *sizes, yoke_tensor **to);
// Views of at most n intervals of an axis, all but the last one of ceil(size / n) elements.
// Returns their number; the other to[i] are NULL.
YOKE_API int yoke_chunk(yoke_tensor *x, int axis, int n, yoke_tensor **to);
// Views of n vectors, each broadcast along its axis k of a grid [N_0 .. N_(n-1)], to
// to[0 .. n - 1].
YOKE_API int yoke_meshgrid(int n, yoke_tensor *const *x, yoke_tensor **to);
// x [..,N,M] with 0 above (tril) or below (triu) diagonal k, which is the k-th above the main one.
YOKE_API yoke_tensor *yoke_tril(yoke_tensor *x, int64_t k);
YOKE_API yoke_tensor *yoke_triu(yoke_tensor *x, int64_t k);
// Diagonal k of two axes, which the result has as its last axis; without elements if there is none.
// A view if x is contiguous.
YOKE_API yoke_tensor *yoke_diagonal(yoke_tensor *x, int64_t k, int axis1, int axis2);
// x [N] of numbers -> a matrix of N + |k| rows with x on diagonal k, else 0; x [N,M] -> its
// diagonal k.
YOKE_API yoke_tensor *yoke_diag(yoke_tensor *x, int64_t k);
// ids [..] i32 or i64 -> [..,classes] of a dtype: 1 at the id, else 0; all 0 for an id outside of 0
// .. classes - 1 (an error in PyTorch).
YOKE_API yoke_tensor *yoke_one_hot(yoke_tensor *ids, int64_t classes, int dtype);
// Element i of an axis moves to i + shift, modulo the axis's size.
YOKE_API yoke_tensor *yoke_roll(yoke_tensor *x, int64_t shift, int axis);
// The same along all axes in one pass: shifts[rank].
YOKE_API yoke_tensor *yoke_roll_axes(yoke_tensor *x, int rank, const int64_t *shifts);
// Each element of an axis n times in a row, like PyTorch's repeat_interleave.
YOKE_API yoke_tensor *yoke_repeat(yoke_tensor *x, int64_t n, int axis);
// Element i of an axis counts[i] times in a row; counts [N], i32 or i64, negative ones are 0.  The
// axis of the result has `total` elements: if the counts add up to less, the last element fills the
// rest; what exceeds it is cut off.
YOKE_API yoke_tensor *yoke_repeat_each(yoke_tensor *x, yoke_tensor *counts, int64_t total,
				       int axis);
// All of x times[k] times along axis k, as in NumPy; the shorter of both shapes gets leading 1s.
YOKE_API yoke_tensor *yoke_tile(yoke_tensor *x, int rank, const int64_t *times);

// ---- results whose number depends on values ----
// Plans are static, so the caller gives a capacity: the result has room for that many, and the
// entries beyond their number have a stated value.  *count, unless NULL, gets the true number, i64
// [], also where the capacity is too small and the result has only the first ones.  yoke_counted
// reads it.

// Waits for a count and returns it.  ERANGE, with the count, if it exceeds the capacity.
YOKE_API int64_t yoke_counted(yoke_tensor *count, int64_t capacity);
// The indices of the elements that are not 0 (or true), in row-major order: i64
// [rank of x,capacity], row k those of axis k; -1 beyond their number.
YOKE_API yoke_tensor *yoke_nonzero(yoke_tensor *x, int64_t capacity, yoke_tensor **count);
// The elements of x where the mask (bool) is true, in row-major order: [capacity]; 0 beyond their
// number. x and mask broadcast.
YOKE_API yoke_tensor *yoke_masked_select(yoke_tensor *x, yoke_tensor *mask, int64_t capacity,
					 yoke_tensor **count);
// The different elements of x, ascending: [capacity]; 0 beyond their number.  Unless NULL, *inverse
// gets, for each element of x, the index of its value, i64 of x's shape, and *counts how often each
// value occurs, i64 [capacity], 0 beyond their number.  NaNs are last and differ from each other.
YOKE_API yoke_tensor *yoke_unique(yoke_tensor *x, int64_t capacity, yoke_tensor **inverse,
				  yoke_tensor **counts, yoke_tensor **count);

// ---- writing by masks and indices ----

// x where the condition is true, else y, like yoke_select.  A condition of numbers is compared with
// 0; x and y may both be host numbers or literals, which are f32.
YOKE_API yoke_tensor *yoke_where(yoke_tensor *condition, yoke_tensor *x, yoke_tensor *y);
// x with a number, or the elements of a tensor that broadcasts, where the mask (bool) is true.
YOKE_API yoke_tensor *yoke_masked_fill(yoke_tensor *x, yoke_tensor *mask, yoke_tensor *value);
// x with the elements of v, in row-major order, where the mask is true, which broadcasts to x.
// ERANGE from the evaluation if v has fewer elements than the mask has true ones.
YOKE_API yoke_tensor *yoke_masked_scatter(yoke_tensor *x, yoke_tensor *mask, yoke_tensor *v);
// x with v at the indices idx[0 .. n - 1] of its first n axes, i32 or i64, which broadcast to
// [I..]; v broadcasts to [I..,R..], R.. the other axes of x.  accumulate: v is added, in a
// deterministic order, else the last of several values at an index wins.  ERANGE for an index
// outside of 0 .. size - 1.
YOKE_API yoke_tensor *yoke_index_put(yoke_tensor *x, int n, yoke_tensor *const *idx, yoke_tensor *v,
				     int accumulate);

// ---- statistics ----

enum yoke_quantile_mode {
	YOKE_QUANTILE_LINEAR,
	YOKE_QUANTILE_LOWER,
	YOKE_QUANTILE_HIGHER,
	YOKE_QUANTILE_MIDPOINT,
	YOKE_QUANTILE_NEAREST
};
// Like yoke_quantile, for a q between two elements by a mode: their linear interpolation, the lower
// one, the higher one, their mean, or the nearest one, where halves go to the even index.
YOKE_API yoke_tensor *yoke_quantile_by(yoke_tensor *x, yoke_tensor *q, int axis, int mode);
// Like yoke_histogram, with the sum of the elements' weights, numbers of x's shape, in each
// interval: [bins] of their dtype.
YOKE_API yoke_tensor *yoke_histogram_weighted(yoke_tensor *x, yoke_tensor *weight, int64_t bins,
					      double lo, double hi);
// ---- embedding bags ----

enum yoke_bag { YOKE_BAG_SUM, YOKE_BAG_MEAN, YOKE_BAG_MAX };
struct yoke_embedding_bag {
	size_t size;          // sizeof, set by the caller
	int mode;             // enum yoke_bag
	int64_t padding;      // rows of this id are left out; -1: none
	yoke_tensor *offsets; // i32 or i64 [B], where each bag begins in ids [M]; YOKE_NONE: ids
			      // are [B,L]
	yoke_tensor *weights; // a factor of each row, of w's dtype and ids' shape, SUM only; or
			      // YOKE_NONE
	int include_last;     // nonzero: offsets are [B+1] and end with the end of the last bag
};
#define YOKE_EMBEDDING_BAG_INIT \
	{ .size = sizeof(struct yoke_embedding_bag), .padding = -1, .offsets = YOKE_NONE, \
	  .weights = YOKE_NONE }
// w [N,C], ids i32 or i64 [B,L], or [M] with offsets -> [B,C]: for each bag of ids the sum, mean or
// maximum of their rows; an empty bag gives 0.  Does not copy the rows.  Differentiable by w and
// weights; equal maxima share the gradient.  options: NULL, for sums, or YOKE_EMBEDDING_BAG_INIT
// with changes.  The evaluation fails with ERANGE if an id
// is not in 0 .. N - 1, or offsets decrease or leave 0 .. M.  ESHAPE, EDTYPE: operands do not
// match.
YOKE_API yoke_tensor *yoke_embedding_bag(yoke_tensor *w, yoke_tensor *ids,
					 const struct yoke_embedding_bag *);

// ---- windows: maxima with indices, columns ----

// As yoke_max_pool; *indices (NULL: not needed) gets the indices of the maxima, i64 [B,C,Q..]:
// the row-major index in S.. of the first maximum, or of the last NaN.  The gradient goes to these
// elements, as in PyTorch.  The evaluation fails with ERANGE if a window contains only padding.
YOKE_API yoke_tensor *yoke_max_pool_indices(yoke_tensor *x, const struct yoke_pool_options *,
					    yoke_tensor **indices);
// x [B,C,Q..] and indices of its shape -> [B,C,to..]: zeros with the elements of x at the row-major
// indices; of several elements at one index the last one.  ERANGE: an index is not in 0 .. all of
// to - 1.
YOKE_API yoke_tensor *yoke_max_unpool(yoke_tensor *x, yoke_tensor *indices, const int64_t *to);
// x [B,C,S..] or, with axes, [C,S..] -> [B,C K..,L]: the windows as columns, PyTorch's unfold;
// stride 0 is the window.  The padding is 0.
YOKE_API yoke_tensor *yoke_unfold(yoke_tensor *x, const struct yoke_pool_options *);
// Its adjoint: x [B,C K..,L] or [C K..,L] -> [B,C,sizes..], where overlapping windows add up.  axes
// is the number of sizes.  ESHAPE: x does not have as many windows.
YOKE_API yoke_tensor *yoke_fold(yoke_tensor *x, const int64_t *sizes,
				const struct yoke_pool_options *);

// ---- interpolation ----

// CUBIC is Keys' kernel with a = -0.75, as in PyTorch.
enum yoke_interpolation { YOKE_NEAREST, YOKE_NEAREST_EXACT, YOKE_LINEAR, YOKE_CUBIC };
struct yoke_interpolate {
	size_t size;       // sizeof, set by the caller
	int mode;          // enum yoke_interpolation
	int align_corners; // LINEAR, CUBIC: the first and last elements keep their positions
	int antialias;     // LINEAR, CUBIC of two axes: as in PyTorch, the kernel gets as wide as
			   // an output where there are fewer of these than elements
	double scale[3];   // of each axis: output i is at (i + 1/2) / scale - 1/2, NEAREST at i /
			   // scale; 0: to / S.  NEAREST, LINEAR and antialias leave an axis that
			   // keeps its size as it is, as PyTorch does
};
// x [B,C,S..] -> [B,C,to..] with 1 to 3 spatial axes; CUBIC takes two.  to NULL: floor(S scale).
// Output i of n is at (i + 1/2) S / n - 1/2, with align_corners at i (S - 1) / (n - 1); positions
// outside are clamped, CUBIC's elements too.  NEAREST is element floor(i S / n), NEAREST_EXACT
// floor((i + 1/2) S / n).  NULL: NEAREST.  Positions are exact ratios.  EINVAL: options that do not
// go together; ERANGE: sizes or scales below 0 or too large.
YOKE_API yoke_tensor *yoke_interpolate(yoke_tensor *x, const int64_t *to,
				       const struct yoke_interpolate *);
enum yoke_padding { YOKE_PADDING_ZEROS, YOKE_PADDING_BORDER, YOKE_PADDING_REFLECTION };
// x [B,C,H,W] at grid [B,P,Q,2] -> [B,C,P,Q], or x [B,C,D,H,W] at grid [B,O,P,Q,3]: as PyTorch's
// grid_sample.  A position is (x, y) or (x, y, z), -1 .. 1 from one border of the image to the
// other, with align_corners from the first element's centre to the last one's.  mode: NEAREST,
// LINEAR or, of two axes, CUBIC; padding: enum yoke_padding, for positions outside; NaN is outside.
// Differentiable by x and, but for NEAREST, by grid.  ESHAPE, EDTYPE, EINVAL: operands or modes do
// not match.
YOKE_API yoke_tensor *yoke_grid_sample(yoke_tensor *x, yoke_tensor *grid, int mode, int padding,
				       int align_corners);
// theta [B,2,3] and dims [H,W] -> the grid [B,H,W,2] of an affine map of the positions of an image;
// or [B,3,4] and [D,H,W] -> [B,D,H,W,3].
YOKE_API yoke_tensor *yoke_affine_grid(yoke_tensor *theta, int rank, const int64_t *dims,
				       int align_corners);

// ---- Fourier transforms ----
// The dtype is f32 or f64.  Complex numbers are pairs (re, im) along a last axis of 2, which `axis`
// does not count: -1 is the axis before it.  Any length is possible; those with prime factors above
// 13 take several times as long.  y_k = s sum of x_j exp(-2 pi i jk/n); inverses have the opposite
// exponent.

// The factor s of transforms, and of inverses: 1 and 1/n; 1/sqrt(n) and 1/sqrt(n); 1/n and 1.
enum yoke_fft_norm { YOKE_FFT_BACKWARD, YOKE_FFT_ORTHO, YOKE_FFT_FORWARD };
// x [..,N,..,2] -> [..,n,..,2].  x is cut to n elements or extended by zeros; n 0: N.  ESHAPE,
// EDTYPE: not pairs of f32 or f64; ERANGE: n below 0, or no elements.
YOKE_API yoke_tensor *yoke_fft(yoke_tensor *x, int64_t n, int axis, int norm);
YOKE_API yoke_tensor *yoke_ifft(yoke_tensor *x, int64_t n, int axis, int norm);
// The first half of the spectrum of real numbers: [..,N,..] -> [..,n/2+1,..,2].  irfft inverts it,
// to n elements (0: 2 (N - 1)); it does not read the imaginary part of elements 0 and n/2.
YOKE_API yoke_tensor *yoke_rfft(yoke_tensor *x, int64_t n, int axis, int norm);
YOKE_API yoke_tensor *yoke_irfft(yoke_tensor *x, int64_t n, int axis, int norm);
// Along all axes of a mask, which again does not count that of pairs (YOKE_ALL: all).  Real numbers
// are those of the mask's last axis; n: its elements after irfftn, 0: as for irfft.
YOKE_API yoke_tensor *yoke_fftn(yoke_tensor *x, unsigned axes, int norm);
YOKE_API yoke_tensor *yoke_ifftn(yoke_tensor *x, unsigned axes, int norm);
YOKE_API yoke_tensor *yoke_rfftn(yoke_tensor *x, unsigned axes, int norm);
YOKE_API yoke_tensor *yoke_irfftn(yoke_tensor *x, int64_t n, unsigned axes, int norm);

struct yoke_stft_options { // 0 selects the default, given in brackets
	size_t size;    // sizeof, set by the caller
	int64_t hop;    // elements between the beginnings of frames [n / 4, at least 1]
	int uncentered; // frame t begins at t hop; by default its centre is there, and x is
			// mirrored at both ends
	int normalized; // as YOKE_FFT_ORTHO
};
// Short-time transforms: x [..,N] -> rfft of T frames of n elements, times the window,
// [..,n/2+1,T,2]. window [1..n], of x's dtype, is centred in the frame; YOKE_NONE: ones.
YOKE_API yoke_tensor *yoke_stft(yoke_tensor *x, yoke_tensor *window, int64_t n,
				const struct yoke_stft_options *);
// The inverse by the least squares of overlapping frames (Griffin and Lim 1984), [..,length],
// length 0: as far as the frames' centres go.  Where no window is above 0 the result is NaN.
YOKE_API yoke_tensor *yoke_istft(yoke_tensor *x, yoke_tensor *window, int64_t n, int64_t length,
				 const struct yoke_stft_options *);

// ---- recurrent layers ----

enum yoke_cell { YOKE_CELL_TANH, YOKE_CELL_RELU, YOKE_CELL_LSTM, YOKE_CELL_GRU };
// The weights of a layer in one direction, with PyTorch's layouts: w_ih [G H,I], w_hh [G H,H], b_ih
// and b_hh [G H], G = 1; LSTM 4: input, forget, cell, output; GRU 3: reset, update, new.
struct yoke_recurrent {
	size_t size;               // sizeof, set by the caller
	yoke_tensor *w_ih, *w_hh;
	yoke_tensor *b_ih, *b_hh;  // NULL or YOKE_NONE: 0
	int cell;                  // enum yoke_cell
	int reverse;               // from the last step to the first
	yoke_tensor *w_hr; // LSTM: [P,H], the projection of the states; NULL or YOKE_NONE: none
};
// x [T,B,I] -> the states after each step [T,B,H]; *h and *c, unless NULL, get the last ones [B,H];
// *c is zeros but for LSTM.  Elman 1990; LSTM: Hochreiter and Schmidhuber 1997, with forget gates;
// GRU: Cho et al. 2014, with the reset gate after the product.  h0, c0 [B,H]: YOKE_NONE for zeros.
// lengths i64 [B], or YOKE_NONE: row b ends after lengths[b] steps; its later results are 0, *h and
// *c are those of its last step, and in reverse it begins there.  f32 and f64; differentiable once.
// With w_hr (Sak et al. 2014) the states are w_hr o tanh(c): they, h0 and *h have P elements, c0
// and *c still H, and w_hh is [4 H,P].  ESHAPE, EDTYPE: operands do not fit; EINVAL: w_hr without
// an LSTM.
YOKE_API yoke_tensor *yoke_recurrent(yoke_tensor *x, const struct yoke_recurrent *, yoke_tensor *h0,
				     yoke_tensor *c0, yoke_tensor *lengths, yoke_tensor **h,
				     yoke_tensor **c);

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
YOKE_API yoke_tensor *yoke_loss_cross_entropy(yoke_tensor *logits, yoke_tensor *target,
					      const struct yoke_loss *how);
// Binary cross entropy of logits x and targets y in 0 .. 1, which broadcast: -(pos_weight y log
// s(x) + (1 - y) log (1 - s(x))) times weight, where s is the sigmoid.  MEAN divides by the number
// of elements.
YOKE_API yoke_tensor *yoke_loss_bce_logits(yoke_tensor *x, yoke_tensor *y,
					   const struct yoke_loss *how);
// (x - y)^2 times weight; all three broadcast.
YOKE_API yoke_tensor *yoke_loss_mse(yoke_tensor *x, yoke_tensor *y, const struct yoke_loss *how);

// Connectionist temporal classification (Graves et al. 2006): the negative log likelihood of
// targets i64 [N,S], of which row n has labels[n], given x [T,N,C], logarithms of probabilities, of
// which it has steps[n]; both i64 [N].  MEAN divides each loss by its number of labels (at least 1)
// first. Losses of targets that need more steps are infinite with gradients NaN, or 0 with
// zero_infinity. f32 and f64, differentiable once.  The evaluation fails with ERANGE for a length
// above T or S, or a target that is no class.
YOKE_API yoke_tensor *yoke_loss_ctc(yoke_tensor *x, yoke_tensor *targets, yoke_tensor *steps,
				    yoke_tensor *labels, int64_t blank, int reduction,
				    int zero_infinity);

#ifdef __cplusplus
}
#endif
#endif
