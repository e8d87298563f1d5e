// SPDX-License-Identifier: Apache-2.0
// Functions of interpolation that grid_sample and adaptive pools also use.
#ifndef YK_INTERPOLATE_H
#define YK_INTERPOLATE_H

#include "graph/graph.h"

// The weight at distance d, with parameter a: -0.75, or -0.5 with antialiasing (Keys 1981).
yk_id yk_cubic(struct yk_graph *, yk_id d, double a);
// Products along an axis of x, f32 or f64, with a matrix of `to` rows of `taps` entries: idx
// [to,taps], and w of x's dtype or YK_NIL: ones.
yk_id yk_applied(struct yk_graph *, yk_id x, int axis, int64_t to, int64_t taps, yk_id idx,
		 yk_id w);

#endif
