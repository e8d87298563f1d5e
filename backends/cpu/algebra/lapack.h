// SPDX-License-Identifier: Apache-2.0
// Optional use of the system's LAPACK, enabled by the setting cpu.lapack.
#ifndef YK_LAPACK_H
#define YK_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

// True if LAPACK is requested and its functions were found.
bool yk_lapack_requested(void);
// Eigendecomposition of the symmetric a [n,n]; only the triangle i <= j of a[j * n + i] is read. w
// [n] receives the eigenvalues, ascending; with `vectors`, a receives the eigenvectors one after
// another. Returns 0 or an error.
int yk_lapack_eigh(bool vectors, int64_t n, double *a, double *w);
// Singular values s [k] of the column-major a [m,n], which is overwritten, in f64 or f32; k is the
// smaller of m and n. With `vectors`, u and vt, column-major with leading dimensions ldu and ldvt,
// receive U [m,k] and V' [k,n]; full: U [m,m] and V' [n,n]. Returns 0 or an error.
int yk_lapack_svd(bool wide, bool vectors, bool full, int64_t m, int64_t n, void *a, void *s,
		  void *u, int64_t ldu, void *vt, int64_t ldvt);
// Cholesky factor L of a [n,n], row-major: reads and writes the lower triangle. Returns 0, or the
// 1-based number of the first row whose pivot is not positive, or a negative error.
int64_t yk_lapack_cholesky(int64_t n, double *a);

#endif
