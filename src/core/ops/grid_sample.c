// SPDX-License-Identifier: Apache-2.0
// Sampling of images and volumes at given positions: the positions become a sparse matrix for each
// image, which grid_sample multiplies by its channels.
#include "config.h"

#include <string.h>

#include "graph/record.h"
#include "ops/interpolate.h"
#include "ops/rules.h"
#include "ops/sparse.h"
#include "yoke-math.h"

enum { AXES = 3, MAX_TAPS = 4 };

// The operands for one axis: indices of elements and their weights, [B,P] followed by one axis per spatial axis.
struct taps {
	yk_id idx, in, w; // i32; bool: within the image; w YK_NIL: 1
};

struct sampling {
	int axes, mode, padding, dtype;
	bool align;
	int64_t batch, points;
};

// Mirrors positions at the borders lo / 2 and hi / 2.
static yk_id mirrored(struct yk_graph *g, yk_id x, double lo, double hi)
{
	const double min = lo / 2, span = (hi - lo) / 2;
	if (x == YK_BAD || span <= 0)
		return x == YK_BAD ? x : yk_bin_lit(g, YK_MUL, x, 0);
	x = yk_un(g, YK_ABS, yk_bin_lit(g, YK_SUB, x, min));
	const yk_id flips = yk_un(g, YK_FLOOR, yk_bin_lit(g, YK_DIV, x, span));
	const yk_id rest = yk_bin(g, YK_SUB, x, yk_bin_lit(g, YK_MUL, flips, span));
	const yk_id half = yk_bin_lit(g, YK_MUL, flips, 0.5), odd = yk_bin(g, YK_NE, half, yk_un(g, YK_FLOOR, half));
	return yk_tri(g, YK_SELECT, odd, yk_bin_lit(g, YK_ADD, yk_un(g, YK_NEG, rest), span + min), yk_bin_lit(g, YK_ADD, rest, min));
}

// Positions with the padding applied; they are within the image unless it is zeros.
static yk_id padded(struct yk_graph *g, const struct sampling *s, yk_id x, int64_t n)
{
	if (s->padding == YOKE_PADDING_ZEROS)
		return x;
	if (s->padding == YOKE_PADDING_REFLECTION)
		x = s->align ? mirrored(g, x, 0, 2 * (double)(n - 1)) : mirrored(g, x, -1, 2 * (double)n - 1);
	return yk_bin_lit(g, YK_MIN, yk_bin_lit(g, YK_MAX, x, 0), (double)(n - 1));
}

// Elements at whole positions, of any size or NaN.
static void placed(struct yk_graph *g, struct taps *t, yk_id at, int64_t n)
{
	t->in = yk_bin(g, YK_AND, yk_bin_lit(g, YK_GE, at, 0), yk_bin_lit(g, YK_LE, at, (double)(n - 1)));
	t->idx = yk_cast(g, yk_tri(g, YK_SELECT, t->in, at, lit_like(g, at, 0)), yoke_i32);
}

// x [B,P,1..]: positions along one axis of n elements, which the taps lie along as axis `where`.
static struct taps taps_of(struct yk_graph *g, const struct sampling *s, yk_id x, int64_t n, int where)
{
	struct taps t = { .w = YK_NIL };
	int64_t dims[2 + AXES] = { 1, 1, 1, 1, 1 };
	if (s->mode == YOKE_NEAREST) {
		placed(g, &t, yk_un(g, YK_ROUND, padded(g, s, x, n)), n);
		return t;
	}
	const bool cubic = s->mode == YOKE_CUBIC;
	dims[where] = cubic ? 4 : 2;
	const yk_id tap = yk_bin_lit(g, YK_SUB, yk_cast(g, yk_reshape(g, yk_counting(g, dims[where]), 2 + s->axes, dims), s->dtype),
				     cubic ? 1 : 0);
	if (!cubic)
		x = padded(g, s, x, n);
	const yk_id lo = yk_un(g, YK_FLOOR, x), d = yk_bin(g, YK_SUB, yk_bin(g, YK_SUB, x, lo), tap);
	yk_id at = yk_bin(g, YK_ADD, lo, tap);
	placed(g, &t, cubic ? yk_un(g, YK_ROUND, padded(g, s, at, n)) : at, n);
	if (cubic)
		t.w = yk_cubic(g, d, -0.75);
	else
		t.w = yk_bin(g, YK_SUB, lit_like(g, d, 1), yk_un(g, YK_ABS, d));
	return t;
}

// The matrix of all positions; dims: of the image.
static struct yk_sparse matrix(struct yk_graph *g, const struct sampling *s, yk_id grid, const int64_t *dims)
{
	struct taps all = { .idx = YK_NIL, .in = YK_NIL, .w = YK_NIL };
	int64_t shape[2 + AXES] = { s->batch, s->points, 1, 1, 1 }, taps = 1;
	for (int i = 0; i < s->axes; i++) {
		const int64_t n = dims[i];
		// the grid's last component belongs to the first axis
		yk_id x = yk_reshape(g, yk_slice_axis(g, grid, 2, s->axes - 1 - i, 1), 2 + s->axes, shape);
		if (s->align)
			x = yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_ADD, x, 1), (double)(n - 1) / 2);
		else
			x = yk_bin_lit(g, YK_SUB, yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_ADD, x, 1), (double)n / 2), 0.5);
		const struct taps t = taps_of(g, s, x, n, 2 + i);
		if (!i) {
			all = t;
			continue;
		}
		all.idx = yk_bin(g, YK_ADD, yk_bin_lit(g, YK_MUL, all.idx, (double)n), t.idx);
		all.in = yk_bin(g, YK_AND, all.in, t.in);
		all.w = all.w == YK_NIL ? t.w : yk_bin(g, YK_MUL, all.w, t.w);
	}
	for (int i = 0; i < s->axes && s->mode != YOKE_NEAREST; i++)
		taps *= s->mode == YOKE_CUBIC ? 4 : 2;
	const int64_t flat[] = { s->batch, s->points * taps };
	const yk_id idx = yk_tri(g, YK_SELECT, all.in, all.idx, yk_lit(g, yoke_i32, -1));
	return (struct yk_sparse){ .idx = yk_reshape(g, idx, 2, flat), .w = all.w == YK_NIL ? YK_NIL : yk_reshape(g, all.w, 2, flat),
				   .first = YK_NIL, .rows = s->points };
}

yoke_tensor *yoke_grid_sample(yoke_tensor *x, yoke_tensor *grid, int mode, int padding, int align_corners)
{
	struct yk_rec r = yk_rec_begin_op(YK_SPARSE, 2, (yoke_tensor *[]){ x, grid });
	struct yk_graph *g = r.g;
	char a[160], b[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = g->value[r.in[0]], p = g->value[r.in[1]];
	struct sampling s = { .axes = v.rank - 2, .mode = mode, .padding = padding, .align = align_corners, .batch = v.dims[0],
			      .points = 1 };
	int64_t n = 1, to[YOKE_MAX_RANK] = { v.dims[0], v.dims[1] };
	if (v.rank < 4 || v.rank > 5 || p.rank != v.rank || p.dims[0] != v.dims[0] || p.dims[p.rank - 1] != s.axes) {
		yk_rec_fail(&r, YOKE_ESHAPE, "expects [B,C,H,W] and [B,P,Q,2], or [B,C,D,H,W] and [B,O,P,Q,3], got %s and %s",
			    yk_describe(&v, a), yk_describe(&p, b));
		return yk_rec_end(&r, YK_BAD);
	}
	if (!yk_is_float(v.dtype) || v.dtype != p.dtype) {
		yk_rec_fail(&r, YOKE_EDTYPE, "takes floating point of one dtype, got %s and %s", yk_describe(&v, a), yk_describe(&p, b));
		return yk_rec_end(&r, YK_BAD);
	}
	if ((mode != YOKE_NEAREST && mode != YOKE_LINEAR && (mode != YOKE_CUBIC || s.axes != 2)) ||
	    padding < YOKE_PADDING_ZEROS || padding > YOKE_PADDING_REFLECTION) {
		yk_rec_fail(&r, YOKE_EINVAL, "mode %d with padding %d of %d axes: the modes are nearest, linear and, of two axes, cubic",
			    mode, padding, s.axes);
		return yk_rec_end(&r, YK_BAD);
	}
	for (int i = 0; i < s.axes; i++) {
		n *= v.dims[2 + i];
		s.points *= to[2 + i] = p.dims[1 + i];
	}
	if (n < 1 || n > INT32_MAX || !s.points) {
		if (!n || n > INT32_MAX)
			yk_rec_fail(&r, YOKE_ERANGE, "an image of %lld elements, in %s", (long long)n, yk_describe(&v, a));
		return yk_rec_end(&r, n && n <= INT32_MAX ? yk_broadcast(g, yk_lit(g, v.dtype, 0), v.rank, to) : YK_BAD);
	}
	yk_id at = yk_up(g, r.in[1]);
	at = yk_reshape(g, at, 3, (int64_t[]){ s.batch, s.points, s.axes });
	if (at == YK_BAD)
		return yk_rec_end(&r, at);
	s.dtype = g->value[at].dtype;
	const struct yk_sparse m = matrix(g, &s, at, v.dims + 2);
	yk_id y = yk_sparse(g, yk_reshape(g, yk_up(g, r.in[0]), 4, (int64_t[]){ v.dims[0], v.dims[1], n, 1 }), &m, YK_SPARSE_SUM);
	y = y == YK_BAD ? y : yk_reshape(g, y, v.rank, to);
	return yk_rec_end(&r, y == YK_BAD ? y : yk_down(g, y, r.in[0]));
}

// ---- affine grids ----

// The positions -1 .. 1 of n elements, as axis `where` of `rank`: corners, or centres of elements.
static yk_id spaced(struct yk_graph *g, int dtype, int64_t n, bool align, int rank, int where)
{
	int64_t dims[YOKE_MAX_RANK];
	const yk_id i = yk_cast(g, yk_counting(g, n), dtype);
	const double by = align ? (double)(n - 1) : (double)n;
	yk_id x = yk_bin_lit(g, YK_SUB, yk_bin_lit(g, YK_ADD, yk_bin(g, YK_ADD, i, i), align ? 0 : 1), by);
	x = by > 0 ? yk_bin_lit(g, YK_DIV, x, by) : x; // of one element with corners: 0
	for (int k = 0; k < rank; k++)
		dims[k] = k == where ? n : 1;
	return yk_reshape(g, x, rank, dims);
}

yoke_tensor *yoke_affine_grid(yoke_tensor *theta, int n, const int64_t *to, int align_corners)
{
	struct yk_rec r = yk_rec_begin_op(YK_SPARSE, 1, &theta);
	struct yk_graph *g = r.g;
	char text[160];
	bool good = r.in[0] != YK_BAD && yk_rec_array(&r, n, to, "sizes");
	if (!good)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value t = g->value[r.in[0]];
	if ((n != 2 && n != 3) || !yk_is_float(t.dtype) || t.rank != 3 || t.dims[1] != n || t.dims[2] != n + 1) {
		yk_rec_fail(&r, yk_is_float(t.dtype) ? YOKE_ESHAPE : YOKE_EDTYPE,
			    "expects floating point [B,2,3] for two sizes or [B,3,4] for three, got %s for %d", yk_describe(&t, text), n);
		return yk_rec_end(&r, YK_BAD);
	}
	for (int i = 0; i < n; i++)
		if (to[i] < 1) {
			yk_rec_fail(&r, YOKE_ERANGE, "size %lld of axis %d", (long long)to[i], i);
			return yk_rec_end(&r, YK_BAD);
		}
	// [B,1..,n,n+1]: the last column is added, the others are multiplied by the positions
	int64_t dims[YOKE_MAX_RANK] = { t.dims[0], 1, 1, 1, 1 };
	dims[1 + n] = n;
	dims[2 + n] = n + 1;
	const yk_id m = yk_reshape(g, yk_up(g, r.in[0]), 3 + n, dims);
	dims[2 + n] = 1;
	yk_id y = YK_BAD;
	for (int k = n; k >= 0 && m != YK_BAD; k--) {
		const yk_id column = yk_reshape(g, yk_slice_axis(g, m, 2 + n, k, 1), 2 + n, dims);
		if (k == n) {
			y = column;
			continue;
		}
		const int axis = n - 1 - k; // component 0 belongs to the last axis
		const yk_id at = spaced(g, g->value[m].dtype, to[axis], align_corners, 2 + n, 1 + axis);
		y = yk_bin(g, YK_ADD, y, yk_bin(g, YK_MUL, column, at));
	}
	return yk_rec_end(&r, y == YK_BAD ? y : yk_down(g, y, r.in[0]));
}
