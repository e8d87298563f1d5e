// SPDX-License-Identifier: Apache-2.0
// Interpolation along the last axes, one axis at a time: positions are ratios of integers, so that
// their integer parts are exact, and each axis is a product with a sparse matrix.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "graph/record.h"
#include "ops/conv.h"
#include "ops/interpolate.h"
#include "ops/rules.h"
#include "ops/sparse.h"
#include "yoke-math.h"

// Output i of an axis of n elements is at (step i + start) / unit, in elements of the input.
struct axis {
	int64_t n, to;
	int64_t step, start, unit;
	double scale; // input elements per output element
};

static yk_id whole(struct yk_graph *g, int64_t value)
{
	return yk_record(g, YK_CONST, 0, NULL, 2,
			 (union yoke_attr[]){ { .i = yoke_i64 }, { .i = value } });
}

// The ratio p / q nearest to v > 0: a simple one if there is one, else with a denominator that is a
// power of two.  `limit`: of p and q.
static void ratio_of(double v, int64_t limit, int64_t *p, int64_t *q)
{
	int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
	double rest = v;
	for (int i = 0; i < 24; i++) { // continued fraction
		const double part = floor(rest);
		if (part * (double)p1 + (double)p0 > 1e6 || part * (double)q1 + (double)q0 > 1e6)
			break;
		const int64_t p2 = (int64_t)part * p1 + p0, q2 = (int64_t)part * q1 + q0;
		p0 = p1, p1 = p2, q0 = q1, q1 = q2;
		if (fabs((double)p1 / (double)q1 - v) <= 4e-16 * v) {
			*p = p1;
			*q = q1;
			return;
		}
		rest = 1 / (rest - part);
	}
	*q = 1;
	while (*q < limit / 2 && v * (double)*q < (double)limit / 2)
		*q *= 2;
	*p = llround(v * (double)*q);
	*p = *p > 0 ? *p : 1;
}

static bool axis_of(struct axis *a, int64_t n, int64_t to, double factor, bool align, int mode)
{
	const bool half = mode != YOKE_NEAREST;
	int64_t p = n, q = to;
	*a = (struct axis){ .n = n, .to = to, .unit = 1 };
	if (align) {
		a->step = to > 1 ? n - 1 : 0;
		a->unit = to > 1 ? to - 1 : 1;
		a->scale = (double)a->step / (double)a->unit;
		return true;
	}
	if (factor > 0) // products with positions stay below 2^61
		ratio_of(1 / factor, ((int64_t)1 << 59) / (2 * (n > to ? n : to) + 1), &p, &q);
	a->scale = (double)p / (double)q;
	a->step = half ? 2 * p : p;
	a->unit = half ? 2 * q : q;
	a->start = half ? p : 0;
	if (half && mode != YOKE_NEAREST_EXACT)
		a->start -= q;
	return a->scale * (double)(2 * to + 1) < 4e9; // of a scale that does not belong to the size
}

// x along an axis as [1,before,n,after].
static yk_id flat(struct yk_graph *g, yk_id x, int axis)
{
	const struct yk_value v = g->value[x];
	int64_t dims[4] = { 1, 1, v.dims[axis], 1 };
	for (int i = 0; i < v.rank; i++)
		if (i != axis)
			dims[i < axis ? 1 : 3] *= v.dims[i];
	return yk_reshape(g, x, 4, dims);
}

yk_id yk_applied(struct yk_graph *g, yk_id x, int axis, int64_t to, int64_t taps, yk_id idx,
		 yk_id w)
{
	struct yk_value v = g->value[x];
	const int64_t all[] = { 1, to * taps };
	const struct yk_sparse m = { .idx = yk_reshape(g, yk_cast(g, idx, yoke_i32), 2, all),
				     .w = w == YK_NIL ? YK_NIL : yk_reshape(g, w, 2, all),
				     .first = YK_NIL, .rows = to };
	const yk_id y = yk_sparse(g, flat(g, x, axis), &m, YK_SPARSE_SUM);
	v.dims[axis] = to;
	return y == YK_BAD ? y : yk_reshape(g, y, v.rank, v.dims);
}

static yk_id column(struct yk_graph *g, yk_id x)
{
	return yk_add_last(g, x);
}

// (step i + start + ahead unit) for each output, [to,1]; positive with `ahead`
static yk_id places(struct yk_graph *g, const struct axis *a, int64_t ahead)
{
	const yk_id at = yk_bin(g, YK_MUL, yk_counting(g, a->to), whole(g, a->step));
	return column(g, yk_bin(g, YK_ADD, at, whole(g, a->start + ahead * a->unit)));
}

yk_id yk_cubic(struct yk_graph *g, yk_id d, double a)
{
	d = yk_un(g, YK_ABS, d);
	// within 1: ((a + 2) d - (a + 3)) d^2 + 1; within 2: ((d - 5) d + 8) d a - 4 a
	yk_id near = yk_bin_lit(g, YK_SUB, yk_bin_lit(g, YK_MUL, d, a + 2), a + 3);
	near = yk_bin_lit(g, YK_ADD, yk_bin(g, YK_MUL, near, yk_bin(g, YK_MUL, d, d)), 1);
	yk_id far = yk_bin_lit(g, YK_ADD, yk_bin(g, YK_MUL, yk_bin_lit(g, YK_SUB, d, 5), d), 8);
	far = yk_bin_lit(g, YK_SUB, yk_bin_lit(g, YK_MUL, yk_bin(g, YK_MUL, far, d), a), 4 * a);
	far = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, d, 2), far, lit_like(g, far, 0));
	return yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LE, d, 1), near, far);
}

// 1 - |d|, 0 beyond.
static yk_id tent(struct yk_graph *g, yk_id d)
{
	return yk_bin_lit(g, YK_MAX, yk_bin(g, YK_SUB, lit_like(g, d, 1), yk_un(g, YK_ABS, d)), 0);
}

static yk_id smooth(struct yk_graph *g, yk_id x, int axis, const struct axis *a, bool cubic,
		    bool align)
{
	const int dtype = g->value[x].dtype;
	const int64_t taps = cubic ? 4 : 2, ahead = 1;
	yk_id at = places(g, a, ahead);
	if (!cubic && !align) // before the first element: the first element
		at = yk_bin(g, YK_MAX, at, whole(g, ahead * a->unit));
	const yk_id lo =
		yk_bin_lit(g, YK_SUB, yk_bin(g, YK_DIV, at, whole(g, a->unit)), (double)ahead);
	yk_id rest = yk_cast(g, yk_bin(g, YK_MOD, at, whole(g, a->unit)),
			     dtype == yoke_f64 ? yoke_f64 : yoke_f32);
	rest = yk_bin_lit(g, YK_DIV, rest, (double)a->unit);
	const yk_id tap = yk_bin_lit(g, YK_SUB, yk_counting(g, taps), cubic ? 1 : 0);
	yk_id idx = yk_bin(g, YK_ADD, lo, tap);
	idx = yk_bin(g, YK_MIN, yk_bin(g, YK_MAX, idx, whole(g, 0)), whole(g, a->n - 1));
	const yk_id d = yk_bin(g, YK_SUB, rest, yk_cast(g, tap, dtype));
	return yk_applied(g, x, axis, a->to, taps, idx, cubic ? yk_cubic(g, d, -0.75) : tent(g, d));
}

// Weights by the distance from the output's centre in outputs, over their sum: the filter is as
// wide as an output where there are fewer outputs than elements.
static yk_id antialiased(struct yk_graph *g, yk_id x, int axis, const struct axis *a, bool cubic,
			 bool align)
{
	const int dtype = g->value[x].dtype;
	const double wide = a->scale > 1 ? a->scale : 1, support = (cubic ? 2 : 1) * wide;
	const int64_t taps = 2 * (int64_t)ceil(support) + 1;
	// with aligned corners the centre is at scale (i + 1/2), as in PyTorch
	yk_id centre = yk_cast(g, yk_counting(g, a->to), yoke_f64);
	if (align)
		centre = yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_ADD, centre, 0.5), a->scale);
	else
		centre = yk_bin_lit(
			g, YK_ADD,
			yk_bin_lit(g, YK_DIV,
				   yk_bin_lit(g, YK_ADD,
					      yk_bin_lit(g, YK_MUL, centre, (double)a->step),
					      (double)a->start),
				   (double)a->unit),
			0.5);
	centre = column(g, centre);
	const yk_id zero = yk_lit(g, yoke_f64, 0), n = yk_lit(g, yoke_f64, (double)a->n);
	yk_id begin = yk_un(g, YK_FLOOR,
			    yk_bin(g, YK_MAX, yk_bin_lit(g, YK_ADD, centre, 0.5 - support), zero));
	yk_id end = yk_un(g, YK_FLOOR,
			  yk_bin(g, YK_MIN, yk_bin_lit(g, YK_ADD, centre, 0.5 + support), n));
	const yk_id at = yk_bin(g, YK_ADD, begin, yk_cast(g, yk_counting(g, taps), yoke_f64));
	const yk_id in = yk_bin(g, YK_LT, at, end);
	const yk_id d = yk_bin_lit(g, YK_DIV,
				   yk_bin_lit(g, YK_ADD, yk_bin(g, YK_SUB, at, centre), 0.5), wide);
	yk_id w = yk_tri(g, YK_SELECT, in, cubic ? yk_cubic(g, d, -0.5) : tent(g, d), zero);
	w = yk_bin(g, YK_DIV, w, yk_reduce(g, YK_SUM, w, 1u << 1, true));
	const yk_id idx = yk_tri(g, YK_SELECT, in, at, yk_lit(g, yoke_f64, -1));
	return yk_applied(g, x, axis, a->to, taps, idx, yk_cast(g, w, dtype));
}

// Element floor of each position.
static yk_id nearest(struct yk_graph *g, yk_id x, int axis, const struct axis *a)
{
	const int dtype = g->value[x].dtype;
	yk_id at = yk_bin(g, YK_DIV, yk_drop_last(g, places(g, a, 0)), whole(g, a->unit));
	at = yk_bin(g, YK_MIN, at, whole(g, a->n - 1));
	if (dtype == yoke_f32 || dtype == yoke_f64)
		return yk_applied(g, x, axis, a->to, 1, at, YK_NIL);
	return yk_record(g, YK_GATHER, 2, (yk_id[]){ x, at }, 1, &(union yoke_attr){ .i = axis });
}

// The sizes that the call leaves open are floor(S scale).
static bool sizes_of(struct yk_rec *r, int axes, const int64_t *given,
		     const struct yoke_interpolate *o, int64_t *to)
{
	const struct yk_value *x = &r->g->value[r->in[0]];
	for (int i = 0; i < axes; i++) {
		const int64_t n = x->dims[2 + i];
		const double open = floor((double)n * o->scale[i]);
		if (!given && !(open >= 1 && open <= INT32_MAX)) {
			yk_rec_fail(r, YOKE_ERANGE, "axis %d of %lld elements times %g is no size",
				    2 + i, (long long)n, o->scale[i]);
			return false;
		}
		to[i] = given ? given[i] : (int64_t)open;
		if (to[i] < 1 || to[i] > INT32_MAX || n < 1 || n > INT32_MAX || o->scale[i] < 0 ||
		    !isfinite(o->scale[i])) {
			yk_rec_fail(
				r, YOKE_ERANGE,
				"axis %d of %lld elements cannot become one of %lld by the scale %g",
				2 + i, (long long)n, (long long)to[i], o->scale[i]);
			return false;
		}
	}
	return true;
}

static bool is_possible(struct yk_rec *r, int axes, const struct yoke_interpolate *o)
{
	const bool even = o->mode == YOKE_LINEAR || o->mode == YOKE_CUBIC;
	const char *why = NULL;
	if (o->mode < YOKE_NEAREST || o->mode > YOKE_CUBIC)
		why = "unknown mode";
	else if (o->align_corners && !even)
		why = "align_corners is of linear and cubic interpolation";
	else if (o->antialias && (!even || axes != 2))
		why = "antialias is of linear and cubic interpolation of two axes";
	else if (o->mode == YOKE_CUBIC && axes != 2)
		why = "cubic interpolation is of two axes";
	if (why)
		yk_rec_fail(r, YOKE_EINVAL, "%s (mode %d, %d axes)", why, o->mode, axes);
	return !why;
}

static yk_id along(struct yk_graph *g, yk_id x, int axis, const struct axis *a,
		   const struct yoke_interpolate *o)
{
	if (o->mode == YOKE_NEAREST || o->mode == YOKE_NEAREST_EXACT)
		return nearest(g, x, axis, a);
	if (o->antialias)
		return antialiased(g, x, axis, a, o->mode == YOKE_CUBIC, o->align_corners);
	return smooth(g, x, axis, a, o->mode == YOKE_CUBIC, o->align_corners);
}

yoke_tensor *yoke_interpolate(yoke_tensor *x, const int64_t *to,
			      const struct yoke_interpolate *options)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	struct yoke_interpolate o = { 0 };
	int64_t size[YK_CONV_AXES];
	const int axes = yk_conv_axes_of(&r, r.in[0]);
	if (!axes ||
	    (options && yk_sized_read(&o, sizeof o, options, r.g->call, "yoke_interpolate")) ||
	    !is_possible(&r, axes, &o) || !sizes_of(&r, axes, to, &o, size))
		return yk_rec_end(&r, YK_BAD);
	// an axis that keeps its size is as it is, but for these, as in PyTorch
	const bool shifts = o.mode == YOKE_NEAREST_EXACT || (o.mode == YOKE_CUBIC && !o.antialias);
	const bool exact = o.mode == YOKE_NEAREST || o.mode == YOKE_NEAREST_EXACT;
	yk_id v = exact ? r.in[0] : yk_cast_acc(r.g, r.in[0]);
	// the rows of earlier axes are longer vectors: they come last where elements become more
	for (int k = 0; k < axes && v != YK_BAD; k++) {
		const bool grows = size[axes - 1] > r.g->value[r.in[0]].dims[1 + axes];
		const int i = grows ? axes - 1 - k : k;
		const int64_t n = r.g->value[v].dims[2 + i];
		struct axis a;
		if (!axis_of(&a, n, size[i], o.scale[i], o.align_corners, o.mode)) {
			yk_rec_fail(
				&r, YOKE_ERANGE,
				"axis %d of %lld elements cannot become one of %lld by the scale %g",
				2 + i, (long long)n, (long long)size[i], o.scale[i]);
			return yk_rec_end(&r, YK_BAD);
		}
		if (n != size[i] || (shifts && o.scale[i] > 0))
			v = along(r.g, v, 2 + i, &a, &o);
	}
	return yk_rec_end(&r, v == YK_BAD ? v : yk_cast_like(r.g, v, r.in[0]));
}
