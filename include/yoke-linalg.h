// SPDX-License-Identifier: Apache-2.0
// Linear algebra of dense matrices, beside yoke_eigh, yoke_cholesky and yoke_solve_triangular of
// yoke.h, whose conventions hold.  The last two axes are a matrix, leading axes are a batch.
// Operands are f32 or f64 (EDTYPE); ESHAPE names the operands that do not fit.
//
// The CPU has kernels in both dtypes; other devices let the CPU compute these operations (see
// yoke_fallbacks).  The results of yoke's kernels do not depend on the number of threads.  With the
// setting cpu.lapack the CPU uses an installed LAPACK for large matrices.
//
// All functions are differentiable, also repeatedly, unless stated otherwise.
#ifndef YOKE_LINALG_H
#define YOKE_LINALG_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- by LU factorization with partial pivoting ----

// The LU factorization of a [..,m,n], with row pivoting: the result [..,m,n] holds U in its upper
// triangle and L, whose diagonal is 1, below it.  Unless NULL, *perm gets i64 [..,m], the row of a
// that each row of L U is.  A matrix without inverse has zeros on the diagonal of U.
YOKE_API yoke_tensor *yoke_lu(yoke_tensor *a, yoke_tensor **perm);
// Solves a x = b for x [..,n,k], with a [..,n,n] and b [..,n,k]; leading axes broadcast.  The
// evaluation fails with ERANGE, naming the matrix, if a pivot is 0.
YOKE_API yoke_tensor *yoke_solve(yoke_tensor *a, yoke_tensor *b);
// The inverse of a [..,n,n].  The evaluation fails with ERANGE, naming the matrix, if a pivot is 0.
YOKE_API yoke_tensor *yoke_inv(yoke_tensor *a);
// The determinant of a [..,n,n] -> [..]; 1 for n = 0.  The gradient is the matrix of cofactors,
// which is finite for matrices without inverse too; second derivatives need an inverse.
YOKE_API yoke_tensor *yoke_det(yoke_tensor *a);
// The determinant's sign, -1, 0 or 1, [..].  Unless NULL, *log_abs gets the logarithm of its
// modulus, -inf for 0.  The gradient, a's inverse transposed, fails as yoke_inv does.
YOKE_API yoke_tensor *yoke_slogdet(yoke_tensor *a, yoke_tensor **log_abs);
// a [..,n,n] times itself, n factors, by repeated squaring; for n < 0 the power of the inverse, for
// n = 0 the unit matrix.
YOKE_API yoke_tensor *yoke_matrix_power(yoke_tensor *a, int64_t n);

// ---- by QR and singular values ----

// Q [..,m,k] with orthonormal columns, and, unless NULL, *r gets R [..,k,n], upper triangular, with
// a = Q R; k is the smaller of m and n or, if `complete` is set, m.  Householder reflections, so
// that a diagonal element of R may be negative, with the signs of LAPACK.  The complete Q of a
// matrix with m > n has no gradient (EUNSUPPORTED), and neither has a matrix whose first columns
// are dependent (not finite).
YOKE_API yoke_tensor *yoke_qr(yoke_tensor *a, int complete, yoke_tensor **r);
// The singular value decomposition a = U diag(s) V' of a [..,m,n]: U [..,m,k] and, unless NULL,
// *values gets s [..,k], descending, and *vh V' [..,k,n]; k is the smaller of m and n.  If `full`
// is set, U and V' are orthogonal matrices [..,m,m] and [..,n,n], which have gradients only if m =
// n (EUNSUPPORTED). Results that nothing needs are not computed.  Computed in f64, or from 64 rows
// and columns on in the matrix's dtype; NaN if the matrix is not finite.
// Singular values closer than 4 k times the dtype's precision times the largest one count as equal,
// and values up to that bound as 0: the gradient omits the terms that divide by such a difference
// or value, so it is finite (infinite in PyTorch), and exact for functions of the singular values
// alone.
YOKE_API yoke_tensor *yoke_svd(yoke_tensor *a, int full, yoke_tensor **values, yoke_tensor **vh);
// The pseudoinverse [..,n,m] of Moore and Penrose of a [..,m,n], by singular values, those up to
// rcond times the largest counting as 0; rcond < 0: the larger of m and n times the dtype's
// precision.  The gradient is that at constant rank (Golub and Pereyra 1973), finite also for equal
// singular values. ERANGE: rcond is not finite.
YOKE_API yoke_tensor *yoke_pinv(yoke_tensor *a, double rcond);
// Least squares: x [..,n,k] of least norm among those that minimize |a x - b|, with a [..,m,n] and
// b [..,m,k]; leading axes broadcast.  By the pseudoinverse with rcond or, if `full_rank` is set,
// by QR, which is faster and gives results that are not finite for a matrix of lower rank.
YOKE_API yoke_tensor *yoke_lstsq(yoke_tensor *a, yoke_tensor *b, int full_rank, double rcond);

// ---- functions ----

// The exponential of a [..,n,n], by scaling and squaring (Higham 2005); the relative error in the
// 1-norm is about n times the dtype's precision for normal matrices.  NaN if the matrix is not
// finite.
YOKE_API yoke_tensor *yoke_matrix_exp(yoke_tensor *a);

#ifdef __cplusplus
}
#endif
#endif
