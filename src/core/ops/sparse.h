// SPDX-License-Identifier: Apache-2.0
// Sparse matrices along an axis: interpolation, sampling at positions, sums of embeddings.
#ifndef YK_SPARSE_H
#define YK_SPARSE_H

#include "graph/graph.h"

// A sparse matrix of `rows` rows in compressed form: row i has the entries m with first[i] <= m <
// first[i+1], or, without `first`, the M / rows entries from i M / rows on.  Entry m is in column
// idx[m] and has the value w[m], or 1 without w.  idx -1 is skipped.
struct yk_sparse {
	// [G,M] i32 or i64; [G,M] of x's dtype or YK_NIL; [rows+1] i64 or YK_NIL
	yk_id idx, w, first;
	int64_t rows;
};

enum { YK_SPARSE_SUM, YK_SPARSE_MAX };

// x [G,A,N,R] f32 or f64 -> [G,A,rows,R]: for each row the sum, or the maximum, of its entries.
// The first axis of idx and w is G or 1.  A maximum has no w; over no entries it is -inf.
yk_id yk_sparse(struct yk_graph *, yk_id x, const struct yk_sparse *, int kind);
// The row of each entry, i64 [M]; -1: none.
yk_id yk_sparse_rows(struct yk_graph *, yk_id first, int64_t entries);

#endif
