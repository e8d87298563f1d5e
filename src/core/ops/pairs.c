// SPDX-License-Identifier: Apache-2.0
// Complex numbers as pairs of values: division without overflow or underflow, and conversion from
// and to a last axis of 2.
#include "config.h"

#include "ops/pairs.h"
#include "ops/rules.h"

yk_id yk_pair_size(struct yk_graph *g, struct yk_pair a)
{
	yk_id larger = yk_pair_extent(g, a);
	if (larger == YK_BAD)
		return larger;
	return yk_un(
		g, YK_STOP_GRAD,
		yk_bin_lit(g, YK_MAX, larger, g->value[larger].dtype == yoke_f64 ? 1e-290 : 1e-30));
}

struct yk_pair yk_pair_div(struct yk_graph *g, struct yk_pair a, struct yk_pair b)
{
	yk_id scale = yk_un(g, YK_RECIP, yk_pair_size(g, b));
	b = yk_pair_times(g, b, scale);
	a = yk_pair_times(g, a, scale);
	yk_id square = yk_bin(g, YK_ADD, yk_un(g, YK_SQUARE, b.re), yk_un(g, YK_SQUARE, b.im));
	struct yk_pair q = yk_pair_mul(g, a, yk_pair_conj(g, b));
	return (struct yk_pair){ yk_bin(g, YK_DIV, q.re, square), yk_bin(g, YK_DIV, q.im, square) };
}

struct yk_pair yk_pair_inverse(struct yk_graph *g, struct yk_pair b)
{
	return yk_pair_div(
		g, (struct yk_pair){ yk_full_like(g, b.re, 1), yk_full_like(g, b.re, 0) }, b);
}

struct yk_pair yk_pair_of(struct yk_graph *g, yk_id x, bool keep)
{
	if (x == YK_BAD)
		return (struct yk_pair){ YK_BAD, YK_BAD };
	const int last = g->value[x].rank - 1;
	yk_id half[2];
	for (int k = 0; k < 2; k++) {
		half[k] = yk_slice_axis(g, x, last, k, 1);
		if (!keep)
			half[k] = yk_drop_last(g, half[k]);
	}
	return (struct yk_pair){ half[0], half[1] };
}

yk_id yk_pair_join(struct yk_graph *g, struct yk_pair x)
{
	yk_id part[2] = { x.re, x.im };
	if (x.re == YK_BAD || x.im == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x.re];
	v.dims[v.rank] = 1;
	for (int k = 0; k < 2; k++)
		part[k] = yk_reshape(g, part[k], v.rank + 1, v.dims);
	return yk_record(g, YK_CONCAT, 2, part, 1, &(union yoke_attr){ .i = v.rank });
}
