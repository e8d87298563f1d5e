// SPDX-License-Identifier: Apache-2.0
// Tridiagonal solvers of cuSPARSE and hipSPARSE for `yoke bench resolvent`. The libraries are
// opened at run time, for the device under measurement.
#ifndef YK_BENCH_SPARSE_H
#define YK_BENCH_SPARSE_H

#include "base/complex.h"
#include "device/device.h"

// Cgtsv2StridedBatch and CgtsvInterleavedBatch solve one right-hand side per row. Cgtsv2_nopivot
// solves one row at a time; its right-hand sides are the columns of the identity matrix, 3 to 1024
// of them.
enum yk_sparse_call {
	YK_SPARSE_STRIDED,
	YK_SPARSE_INTERLEAVED,
	YK_SPARSE_COLUMNS,
	YK_SPARSE_CALLS
};

struct yk_sparse;

// title: e.g. "cuSPARSE 12603". NULL: no library for this device; `why` gives the reason.
struct yk_sparse *yk_sparse_open(const struct yk_device *, char *title, char *why, size_t title_cap,
				 size_t why_cap);
void yk_sparse_close(struct yk_sparse *);
bool yk_sparse_takes(enum yk_sparse_call, int64_t n);

// Solves (H - i) x = e_i for `rows` rows, where H is tridiagonal with n diagonal elements a and
// off-diagonal ones, and e_i is the unit vector i of each row; or for all unit vectors. got:
// element i of the solutions [rows], or the diagonals of the inverses [rows n]. seconds: of the
// calls alone, and including the query, allocation and release of their buffers.
int yk_sparse_solve(struct yk_sparse *, enum yk_sparse_call, int64_t rows, int64_t n,
		    const float *a, int64_t i, float complex *got, double seconds[2]);

#endif
