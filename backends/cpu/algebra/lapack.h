// SPDX-License-Identifier: Apache-2.0
// The system's LAPACK, where the setting cpu.lapack asks for it.
#ifndef YK_LAPACK_H
#define YK_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

// Is it asked for, and were its functions found?
bool yk_lapack_wanted(void);
// Of the symmetric a [n,n], of which the triangle i <= j of a[j * n + i] counts: eigenvalues w [n], ascending, and
// with `vectors` its columns, one behind another, in a.  0 or an error.
int yk_lapack_eigh(bool vectors, int64_t n, double *a, double *w);
// The Cholesky factor L of a [n,n], row major, of which the lower half counts, in that half.  0, or the number of the
// first row, counted from 1, whose pivot is not positive; negative: an error.
int64_t yk_lapack_cholesky(int64_t n, double *a);

#endif
