// SPDX-License-Identifier: Apache-2.0
// The vendors' solvers of tridiagonal systems, cuSPARSE's and hipSPARSE's, as yoke bench resolvent calls them: opened as it
// runs, on the device that it measures.
#ifndef YK_BENCH_SPARSE_H
#define YK_BENCH_SPARSE_H

#include "base/complex.h"
#include "device/device.h"

// Cgtsv2StridedBatch and CgtsvInterleavedBatch solve a right-hand side of each row; Cgtsv2_nopivot one row at a time with
// the columns of I, 3 to 1024 of them.
enum yk_sparse_call { YK_SPARSE_STRIDED, YK_SPARSE_INTERLEAVED, YK_SPARSE_COLUMNS, YK_SPARSE_CALLS };

struct yk_sparse;

// title: "cuSPARSE 12603"; NULL: there is none for this device, and why.
struct yk_sparse *yk_sparse_open(const struct yk_device *, char *title, char *why, size_t title_cap, size_t why_cap);
void yk_sparse_close(struct yk_sparse *);
bool yk_sparse_takes(enum yk_sparse_call, int64_t n);

// Solves H - i of `rows` rows of n diagonal elements a with ones beside them, for the unit vector i of each row, or for all.
// got: the i-th elements of the solutions [rows], or the inverses' diagonals [rows n]; seconds: of the calls alone, and
// with finding, allocating and freeing their buffers.
int yk_sparse_solve(struct yk_sparse *, enum yk_sparse_call, int64_t rows, int64_t n, const float *a, int64_t i,
		    float complex *got, double seconds[2]);

#endif
