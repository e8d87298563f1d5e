// SPDX-License-Identifier: Apache-2.0
// Complex numbers in recorded formulas, as pairs of values: real and imaginary part, of one shape.
#ifndef YK_PAIRS_H
#define YK_PAIRS_H

#include "graph/op.h"

struct yk_pair {
	yk_id re, im;
};

static inline struct yk_pair yk_pair_bin(struct yk_graph *g, int op, struct yk_pair a,
					 struct yk_pair b)
{
	return (struct yk_pair){ yk_bin(g, op, a.re, b.re), yk_bin(g, op, a.im, b.im) };
}

static inline struct yk_pair yk_pair_mul(struct yk_graph *g, struct yk_pair a, struct yk_pair b)
{
	return (struct yk_pair){
		yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, a.re, b.re), yk_bin(g, YK_MUL, a.im, b.im)),
		yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, a.re, b.im), yk_bin(g, YK_MUL, a.im, b.re)),
	};
}

static inline struct yk_pair yk_pair_times(struct yk_graph *g, struct yk_pair a, yk_id real)
{
	return (struct yk_pair){ yk_bin(g, YK_MUL, a.re, real), yk_bin(g, YK_MUL, a.im, real) };
}

static inline struct yk_pair yk_pair_conj(struct yk_graph *g, struct yk_pair a)
{
	return (struct yk_pair){ a.re, yk_un(g, YK_NEG, a.im) };
}

static inline struct yk_pair yk_pair_neg(struct yk_graph *g, struct yk_pair a)
{
	return (struct yk_pair){ yk_un(g, YK_NEG, a.re), yk_un(g, YK_NEG, a.im) };
}

// x shifted along an axis by yk_moved; the value `real` enters.
static inline struct yk_pair yk_pair_moved(struct yk_graph *g, struct yk_pair a, int axis,
					   int64_t by, bool from_end, double real)
{
	return (struct yk_pair){ yk_moved(g, a.re, axis, by, from_end, real),
				 yk_moved(g, a.im, axis, by, from_end, 0) };
}

// max(|re|, |im|)
static inline yk_id yk_pair_extent(struct yk_graph *g, struct yk_pair a)
{
	return yk_bin(g, YK_MAX, yk_un(g, YK_ABS, a.re), yk_un(g, YK_ABS, a.im));
}

// The same, at least 1e-30 (f64: 1e-290), by which both parts are divided before they are
// squared.  A constant for gradients.
yk_id yk_pair_size(struct yk_graph *, struct yk_pair);
// a / b, and 1 / b
struct yk_pair yk_pair_div(struct yk_graph *, struct yk_pair a, struct yk_pair b);
struct yk_pair yk_pair_inverse(struct yk_graph *, struct yk_pair b);
// The last axis [.., 2] as a pair of [..], or of [.., 1] (keep); and a pair of [..] as [.., 2].
struct yk_pair yk_pair_of(struct yk_graph *, yk_id x, bool keep);
yk_id yk_pair_join(struct yk_graph *, struct yk_pair);

#endif
