// SPDX-License-Identifier: Apache-2.0
// Tridiagonal chains with complex elements on the diagonal, as they are recorded: all in f64, of
// one shape.
#ifndef YK_CHAIN_H
#define YK_CHAIN_H

#include "ops/pairs.h"

struct yk_chain {
	struct yk_pair alpha; // H_ii - z [..,N]
	yk_id k;              // H_i,i+1 H_i+1,i [..,N-1]
};

// 1/L from the first element on, or from the last: 1/R
struct yk_pair yk_pivots(struct yk_graph *, const struct yk_chain *, bool from_end);
// The diagonal of (H - z)^-1 [..,N]; left: of each leading block its last element.  Where z is an
// eigenvalue it is an error when it is evaluated.
struct yk_pair yk_chain_diagonal(struct yk_graph *, const struct yk_chain *, bool left);

#endif
