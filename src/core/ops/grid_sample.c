// SPDX-License-Identifier: Apache-2.0
// Sampling of images and volumes at given positions: the positions become a sparse matrix for each
// image, which grid_sample multiplies by its channels.
#include "config.h"

#include <math.h>

#include "graph/record.h"
#include "ops/interpolate.h"
#include "ops/rules.h"
#include "ops/sparse.h"
#include "yoke-math.h"

enum { AXES = 3 };

// The taps of all positions along one axis, [B,P,T]: indices into the image, below 0 for taps
// outside of it, and weights.
struct taps {
	yk_id idx, w; // i32 or i64; w YK_NIL: 1
};

struct sampling {
	int axes, mode, padding, dtype, index; // dtypes of positions and indices
	bool align;
	int64_t batch, points, size; // size: elements of an image
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
	const yk_id half = yk_bin_lit(g, YK_MUL, flips, 0.5),
		    odd = yk_bin(g, YK_NE, half, yk_un(g, YK_FLOOR, half));
	return yk_tri(g, YK_SELECT, odd, yk_bin_lit(g, YK_ADD, yk_un(g, YK_NEG, rest), span + min),
		      yk_bin_lit(g, YK_ADD, rest, min));
}

// Positions with the padding applied; they are within the image unless it is zeros.
static yk_id padded(struct yk_graph *g, const struct sampling *s, yk_id x, int64_t n)
{
	if (s->padding == YOKE_PADDING_ZEROS)
		return x;
	if (s->padding == YOKE_PADDING_REFLECTION)
		x = s->align ? mirrored(g, x, 0, 2 * (double)(n - 1)) :
			       mirrored(g, x, -1, 2 * (double)n - 1);
	return yk_bin_lit(g, YK_MIN, yk_bin_lit(g, YK_MAX, x, 0), (double)(n - 1));
}

// The index of elements at whole positions `at`, of any size or NaN, along an axis of n elements
// `stride` apart.
static yk_id index_of(struct yk_graph *g, const struct sampling *s, yk_id at, int64_t n,
		      int64_t stride)
{
	const yk_id in = yk_bin(g, YK_AND, yk_bin_lit(g, YK_GE, at, 0),
				yk_bin_lit(g, YK_LE, at, (double)(n - 1)));
	// a power of two, which is exact; times the stride it exceeds the indices of the other axes
	const double outside = -ldexp(1, (int)ceil(log2((double)(s->size / stride))));
	const yk_id idx =
		yk_cast(g, yk_tri(g, YK_SELECT, in, at, lit_like(g, at, outside)), s->index);
	return stride == 1 ? idx : yk_bin_lit(g, YK_MUL, idx, (double)stride);
}

static int64_t taps_along(const struct sampling *s)
{
	if (s->mode == YOKE_NEAREST)
		return 1;
	return s->mode == YOKE_CUBIC ? 4 : 2;
}

// x [B,P,1]: component of the grid for an axis of n elements.
static struct taps taps_of(struct yk_graph *g, const struct sampling *s, yk_id x, int64_t n,
			   int64_t stride)
{
	const int64_t dims[] = { s->batch, s->points, taps_along(s) },
		      all = dims[0] * dims[1] * dims[2];
	struct taps t = { .w = YK_NIL };
	x = yk_broadcast(g, x, 3, dims); // so that an axis is one map
	if (s->align)
		x = yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_ADD, x, 1), (double)(n - 1) / 2);
	else
		x = yk_bin_lit(g, YK_SUB,
			       yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_ADD, x, 1), (double)n / 2),
			       0.5);
	if (s->mode == YOKE_NEAREST) {
		t.idx = index_of(g, s, yk_un(g, YK_ROUND, padded(g, s, x, n)), n, stride);
		return t;
	}
	const bool cubic = s->mode == YOKE_CUBIC;
	yk_id tap = yk_reshape(g, yk_bin_lit(g, YK_AND, yk_counting(g, all), (double)(dims[2] - 1)),
			       3, dims);
	tap = yk_cast(g, tap, s->dtype);
	if (cubic)
		tap = yk_bin_lit(g, YK_SUB, tap, 1);
	else
		x = padded(g, s, x, n);
	const yk_id lo = yk_un(g, YK_FLOOR, x),
		    d = yk_bin(g, YK_SUB, yk_bin(g, YK_SUB, x, lo), tap);
	const yk_id at = yk_bin(g, YK_ADD, lo, tap);
	t.idx = index_of(g, s, cubic ? yk_un(g, YK_ROUND, padded(g, s, at, n)) : at, n, stride);
	t.w = cubic ? yk_cubic(g, d, -0.75) :
		      yk_bin(g, YK_SUB, lit_like(g, d, 1), yk_un(g, YK_ABS, d));
	return t;
}

// The matrix of all positions, grid [B,P,axes]; dims: of the image.
static struct yk_sparse matrix(struct yk_graph *g, const struct sampling *s, yk_id grid,
			       const int64_t *dims)
{
	struct taps all = { .idx = YK_NIL, .w = YK_NIL };
	const int64_t along = taps_along(s);
	int64_t stride = s->size, taps = 1;
	for (int i = 0; i < s->axes; i++) {
		int64_t shape[2 + AXES] = { s->batch, s->points, 1, 1, 1 };
		stride /= dims[i];
		taps *= along;
		shape[2 + i] = along;
		// the grid's last component belongs to the first axis
		struct taps t = taps_of(g, s, yk_slice_axis(g, grid, 2, s->axes - 1 - i, 1),
					dims[i], stride);
		t.idx = yk_reshape(g, t.idx, 2 + s->axes, shape);
		if (t.w != YK_NIL)
			t.w = yk_reshape(g, t.w, 2 + s->axes, shape);
		all.idx = i ? yk_bin(g, YK_ADD, all.idx, t.idx) : t.idx;
		all.w = i && t.w != YK_NIL ? yk_bin(g, YK_MUL, all.w, t.w) : t.w;
	}
	const int64_t flat[] = { s->batch, s->points * taps };
	return (struct yk_sparse){ .idx = yk_reshape(g, yk_bin_lit(g, YK_MAX, all.idx, -1), 2,
						     flat),
				   .w = all.w == YK_NIL ? YK_NIL : yk_reshape(g, all.w, 2, flat),
				   .first = YK_NIL,
				   .rows = s->points };
}

enum { MODE, PADDING, ALIGN, ATTRS };

// x, grid -> y; attr: mode, padding, align_corners
static int shape_grid_sample(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *p = IN(1);
	const int64_t mode = c->attr[MODE].i, padding = c->attr[PADDING].i;
	const int axes = x->rank - 2;
	int64_t n = 1;
	if (x->rank < 4 || x->rank > 5 || p->rank != x->rank || p->dims[0] != x->dims[0] ||
	    p->dims[p->rank - 1] != axes)
		return fail_two(
			g, c, YOKE_ESHAPE,
			"expects [B,C,H,W] and [B,P,Q,2], or [B,C,D,H,W] and [B,O,P,Q,3], got", x,
			p);
	if (!yk_is_float(x->dtype) || x->dtype != p->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "takes floating point of one dtype, got", x, p);
	if ((mode != YOKE_NEAREST && mode != YOKE_LINEAR && (mode != YOKE_CUBIC || axes != 2)) ||
	    padding < YOKE_PADDING_ZEROS || padding > YOKE_PADDING_REFLECTION)
		return yk_op_fail(
			g, c->op, YOKE_EINVAL,
			"mode %d with padding %d of %d axes: the modes are nearest, linear and, of two axes, cubic",
			(int)mode, (int)padding, axes);
	*out = *x;
	for (int i = 0; i < axes; i++) {
		n *= x->dims[2 + i];
		out->dims[2 + i] = p->dims[1 + i];
	}
	const int err = want_size(g, c, out);
	if (err < 0 || !yk_count(out) || (n && n <= INT32_MAX))
		return err;
	return fail_one(g, c, YOKE_ERANGE, "an image without elements or too large, in", x);
}

static void decompose_grid_sample(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value v = g->value[c->in[0]], p = g->value[c->in[1]];
	struct sampling s = { .axes = v.rank - 2,
			      .mode = (int)c->attr[MODE].i,
			      .padding = (int)c->attr[PADDING].i,
			      .align = c->attr[ALIGN].i,
			      .batch = v.dims[0],
			      .points = 1,
			      .size = 1 };
	struct yk_value to = v;
	for (int i = 0; i < s.axes; i++) {
		s.size *= v.dims[2 + i];
		s.points *= to.dims[2 + i] = p.dims[1 + i];
	}
	if (!yk_count(&to)) {
		out[0] = yk_broadcast_like(g, yk_lit(g, v.dtype, 0), &to);
		return;
	}
	// the sum of an index outside of each axis fits
	s.index = s.size < INT32_MAX / (4 * AXES) ? yoke_i32 : yoke_i64;
	const yk_id at = yk_reshape(g, yk_cast_acc(g, c->in[1]), 3,
				    (int64_t[]){ s.batch, s.points, s.axes });
	out[0] = YK_BAD;
	if (at == YK_BAD)
		return;
	s.dtype = g->value[at].dtype;
	const struct yk_sparse m = matrix(g, &s, at, v.dims + 2);
	const yk_id y = yk_sparse(g,
				  yk_reshape(g, yk_cast_acc(g, c->in[0]), 4,
					     (int64_t[]){ v.dims[0], v.dims[1], s.size, 1 }),
				  &m, YK_SPARSE_SUM);
	if (y != YK_BAD)
		out[0] = yk_cast_like(g, yk_reshape(g, y, to.rank, to.dims), c->in[0]);
}

YK_OP(GRID_SAMPLE) = { .name = "grid_sample",
		       .min_in = 2,
		       .max_in = 2,
		       .nout = 1,
		       .cast = YK_CAST_F32,
		       .shape = shape_grid_sample,
		       .decompose = decompose_grid_sample };

yoke_tensor *yoke_grid_sample(yoke_tensor *x, yoke_tensor *grid, int mode, int padding,
			      int align_corners)
{
	struct yk_rec r = yk_rec_begin_op(YK_GRID_SAMPLE, 2, (yoke_tensor *[]){ x, grid });
	const union yoke_attr attr[ATTRS] = { { .i = mode },
					      { .i = padding },
					      { .i = align_corners != 0 } };
	return yk_rec_end(&r, yk_record(r.g, YK_GRID_SAMPLE, 2, r.in, ATTRS, attr));
}

// ---- affine grids ----

// The positions -1 .. 1 of n elements, as axis `where` of `rank`: corners, or centres of elements.
static yk_id spaced(struct yk_graph *g, int dtype, int64_t n, bool align, int rank, int where)
{
	int64_t dims[YOKE_MAX_RANK];
	const yk_id i = yk_cast(g, yk_counting(g, n), dtype);
	const double by = align ? (double)(n - 1) : (double)n;
	yk_id x = yk_bin_lit(g, YK_SUB,
			     yk_bin_lit(g, YK_ADD, yk_bin(g, YK_ADD, i, i), align ? 0 : 1), by);
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
	if ((n != 2 && n != 3) || !yk_is_float(t.dtype) || t.rank != 3 || t.dims[1] != n ||
	    t.dims[2] != n + 1) {
		yk_rec_fail(
			&r, yk_is_float(t.dtype) ? YOKE_ESHAPE : YOKE_EDTYPE,
			"expects floating point [B,2,3] for two sizes or [B,3,4] for three, got %s for %d",
			yk_describe(&t, text), n);
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
	const yk_id m = yk_reshape(g, yk_cast_acc(g, r.in[0]), 3 + n, dims);
	dims[2 + n] = 1;
	yk_id y = YK_BAD;
	for (int k = n; k >= 0 && m != YK_BAD; k--) {
		const yk_id column = yk_reshape(g, yk_slice_axis(g, m, 2 + n, k, 1), 2 + n, dims);
		if (k == n) {
			y = column;
			continue;
		}
		const int axis = n - 1 - k; // component 0 belongs to the last axis
		const yk_id at =
			spaced(g, g->value[m].dtype, to[axis], align_corners, 2 + n, 1 + axis);
		y = yk_bin(g, YK_ADD, y, yk_bin(g, YK_MUL, column, at));
	}
	return yk_rec_end(&r, y == YK_BAD ? y : yk_cast_like(g, y, r.in[0]));
}
