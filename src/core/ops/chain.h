// SPDX-License-Identifier: Apache-2.0
// Recorded formulas for tridiagonal chains with complex diagonal elements; all values are f64 with
// the same leading axes.
#ifndef YK_CHAIN_H
#define YK_CHAIN_H

#include "ops/pairs.h"

struct yk_chain {
	struct yk_pair alpha; // H_ii - z [..,N]
	yk_id k;              // H_i,i+1 H_i+1,i [..,N-1]
};

// 1/L, recurring from the first element; from_end: 1/R, from the last
struct yk_pair yk_pivots(struct yk_graph *, const struct yk_chain *, bool from_end);
// The diagonal of (H - z)^-1 [..,N]; left: the last diagonal element of each leading block's
// inverse.  Evaluation fails where z is an eigenvalue.
struct yk_pair yk_chain_diagonal(struct yk_graph *, const struct yk_chain *, bool left);

// k [..,N-1] as [..,N]: between each element of a row and its previous (or next) neighbour; 0 at
// the row's end
yk_id yk_bond(struct yk_graph *, yk_id k, const struct yk_value *row, bool next);
// x [..,N] as [..,N-1]: without the first element, or without the last
yk_id yk_without_end(struct yk_graph *, yk_id x, bool first);

#endif
