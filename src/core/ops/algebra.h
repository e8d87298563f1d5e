// SPDX-License-Identifier: Apache-2.0
// Helpers of the families of linear algebra, on matrices in the last two axes.
#ifndef YK_ALGEBRA_H
#define YK_ALGEBRA_H

#include "ops/rules.h"

// Checks of shape rules: f32 or f64 matrices; square ones; a square matrix a and right-hand sides
// b.
int yk_check_matrices(struct yk_graph *, const struct yk_call *, const struct yk_value *a);
int yk_check_square(struct yk_graph *, const struct yk_call *, const struct yk_value *a);
int yk_check_system(struct yk_graph *, const struct yk_call *, const struct yk_value *a,
		    const struct yk_value *b);

// The shape rule of ops from square matrices to matrices of the same size.
int yk_shape_square(struct yk_graph *, const struct yk_call *, struct yk_value *out);
yk_id yk_transpose(struct yk_graph *, yk_id x); // [..,m,n] -> [..,n,m]
// x [..,m,n] where `row op column` holds (YK_GE: the lower half), else 0
yk_id yk_half(struct yk_graph *, yk_id x, int op);
// A vector as a matrix: [..,n] -> [..,n,1], or (row) [..,1,n]
yk_id yk_as_matrix(struct yk_graph *, yk_id x, bool row);
// 1 / (b_k - b_j) of the values v [..,n] at [..,j,k], where b is v, or its square; 0 between values
// that differ by at most 4 n times the dtype's precision times the largest modulus
yk_id yk_gaps(struct yk_graph *, yk_id v, bool squares);
// 1 / x, and 0 where `zero` holds; gradients stay finite there
yk_id yk_recip_unless(struct yk_graph *, yk_id zero, yk_id x);
// The difference up to which yk_gaps treats values as equal: [..,1]
yk_id yk_equal_bound(struct yk_graph *, yk_id v);
// flags: YOKE_TRANSPOSED, YOKE_UPPER, YOKE_UNIT
yk_id yk_triangular(struct yk_graph *, yk_id t, yk_id b, unsigned flags);
// Broadcasts x [..,m,n] to the leading axes of both; if they do not broadcast, x itself: the shape
// rule reports it.
yk_id yk_batch(struct yk_graph *, yk_id x, yk_id y);
yk_id yk_inverse(struct yk_graph *, yk_id a);

#endif
