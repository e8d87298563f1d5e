// SPDX-License-Identifier: Apache-2.0
// Pooling and interpolation to a given size: adaptive pools, nearest neighbour and linear resizing
// of the last axes.
#include "config.h"

#include <math.h>
#include <string.h>

#include "graph/record.h"
#include "ops/conv.h"
#include "ops/interpolate.h"
#include "ops/rules.h"

static yk_id whole(struct yk_graph *g, double value)
{
	return yk_record(g, YK_CONST, 0, NULL, 2,
			 (union yoke_attr[]){ { .i = yoke_i64 }, { .i = (int64_t)value } });
}

static yk_id picked(struct yk_graph *g, yk_id x, yk_id at, int axis)
{
	return yk_record(g, YK_GATHER, 2, (yk_id[]){ x, at }, 1, &(union yoke_attr){ .i = axis });
}

static bool sizes(struct yk_rec *r, int axes, const int64_t *to)
{
	bool good = yk_rec_array(r, axes, to, "to") && axes > 0;
	for (int i = 0; i < axes && good; i++)
		if (to[i] < 1 || to[i] > INT32_MAX || r->g->value[r->in[0]].dims[2 + i] < 1 ||
		    r->g->value[r->in[0]].dims[2 + i] > INT32_MAX) {
			yk_rec_fail(r, YOKE_ERANGE,
				    "axis %d of %lld elements cannot become one of %lld", 2 + i,
				    (long long)r->g->value[r->in[0]].dims[2 + i], (long long)to[i]);
			good = false;
		}
	return good;
}

// The windows of an adaptive pool along an axis of n elements: start floor(i n / to), end
// ceil((i + 1) n / to), both [to,1]; the places of their elements, and which of these are in a
// window that is shorter than the longest: [to,max].
struct windows {
	int64_t max;
	yk_id start, end, at, in;
};

static struct windows windows_of(struct yk_graph *g, int64_t n, int64_t to)
{
	struct windows w = { .max = (n + to - 1) / to + (n % to != 0) };
	const yk_id times =
		yk_add_last(g, yk_bin(g, YK_MUL, yk_counting(g, to), whole(g, (double)n)));
	w.start = yk_bin(g, YK_DIV, times, whole(g, (double)to));
	w.end = yk_bin(g, YK_DIV, yk_bin(g, YK_ADD, times, whole(g, (double)(n + to - 1))),
		       whole(g, (double)to));
	w.at = yk_bin(g, YK_ADD, w.start, yk_counting(g, w.max));
	w.in = yk_bin(g, YK_LT, w.at, w.end);
	return w;
}

// The elements of the windows along each axis: [..,to,max,..]; shorter windows are padded with
// -inf.
static yk_id uneven(struct yk_graph *g, yk_id x, int axes, const int64_t *to)
{
	yk_id there = YK_NIL;
	for (int i = 0; i < axes; i++) {
		if (x == YK_BAD)
			return x;
		const int axis = 2 + 2 * i;
		const int64_t n = g->value[x].dims[axis];
		const struct windows w = windows_of(g, n, to[i]);
		x = picked(g, x, yk_bin(g, YK_MIN, w.at, whole(g, (double)(n - 1))), axis);
		const yk_id in = yk_reshape(g, w.in, 2 * (axes - i),
					    (int64_t[]){ to[i], w.max, 1, 1, 1, 1 });
		there = there == YK_NIL ? in : yk_bin(g, YK_AND, there, in);
	}
	return x == YK_BAD ?
		       x :
		       yk_tri(g, YK_SELECT, there, x, yk_lit(g, g->value[x].dtype, -INFINITY));
}

// Means over the windows of one axis.
static yk_id means(struct yk_graph *g, yk_id x, int axis, int64_t to)
{
	const int dtype = g->value[x].dtype;
	const struct windows w = windows_of(g, g->value[x].dims[axis], to);
	const yk_id share = yk_bin(g, YK_DIV, yk_lit(g, dtype, 1),
				   yk_cast(g, yk_bin(g, YK_SUB, w.end, w.start), dtype));
	return yk_applied(g, x, axis, to, w.max, yk_tri(g, YK_SELECT, w.in, w.at, whole(g, -1)),
			  yk_tri(g, YK_SELECT, w.in, share, yk_lit(g, dtype, 0)));
}

// [B,C,S..] as [B,C,to,S/to,..]: *over masks the windows' axes. False: the sizes are no multiples.
static bool split(const struct yk_value *x, int axes, const int64_t *to, int64_t *dims,
		  unsigned *over, double *count)
{
	*over = 0;
	*count = 1;
	dims[0] = x->dims[0];
	dims[1] = x->dims[1];
	for (int i = 0; i < axes; i++) {
		if (x->dims[2 + i] % to[i])
			return false;
		dims[2 + 2 * i] = to[i];
		dims[3 + 2 * i] = x->dims[2 + i] / to[i];
		*count *= (double)dims[3 + 2 * i];
		*over |= 1u << (3 + 2 * i);
	}
	return true;
}

yoke_tensor *yoke_adaptive_mean_pool(yoke_tensor *x, const int64_t *to)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int axes = yk_conv_axes_of(&r, r.in[0]);
	int64_t dims[YOKE_MAX_RANK];
	unsigned over;
	double count;
	if (!sizes(&r, axes, to))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_cast_acc(r.g, r.in[0]);
	if (v != YK_BAD && split(&r.g->value[v], axes, to, dims, &over, &count)) {
		v = yk_reduce(r.g, YK_SUM, yk_reshape(r.g, v, 2 + 2 * axes, dims), over, false);
		v = yk_bin_lit(r.g, YK_MUL, v, 1 / count);
	} else {
		for (int i = 0; i < axes && v != YK_BAD; i++)
			if (r.g->value[v].dims[2 + i] != to[i])
				v = means(r.g, v, 2 + i, to[i]);
	}
	return yk_rec_end(&r, v == YK_BAD ? v : yk_cast_like(r.g, v, r.in[0]));
}

yoke_tensor *yoke_adaptive_max_pool(yoke_tensor *x, const int64_t *to)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int axes = yk_conv_axes_of(&r, r.in[0]);
	int64_t dims[YOKE_MAX_RANK];
	unsigned over = 0;
	double count;
	if (!sizes(&r, axes, to))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value was = r.g->value[r.in[0]];
	const bool even = split(&was, axes, to, dims, &over, &count);
	for (int i = 0; i < axes; i++)
		over |= 1u << (3 + 2 * i);
	const yk_id v = even ? yk_reshape(r.g, r.in[0], 2 + 2 * axes, dims) :
			       uneven(r.g, r.in[0], axes, to);
	return yk_rec_end(&r, yk_reduce(r.g, YK_REDUCE_MAX, v, over, false));
}

// ---- resizing ----

static yk_id nearest(struct yk_graph *g, yk_id x, int axis, int64_t n, int64_t to)
{
	struct yk_value v = g->value[x];
	if (to % n == 0) { // repeated
		int64_t dims[YOKE_MAX_RANK];
		memcpy(dims, v.dims, sizeof dims);
		memmove(dims + axis + 2, dims + axis + 1,
			(size_t)(v.rank - axis - 1) * sizeof *dims);
		dims[axis + 1] = 1;
		x = yk_reshape(g, x, v.rank + 1, dims);
		dims[axis + 1] = to / n;
		x = yk_broadcast(g, x, v.rank + 1, dims);
		v.dims[axis] = to;
		return yk_reshape(g, x, v.rank, v.dims);
	}
	const yk_id at = yk_bin(g, YK_MUL, yk_counting(g, to), whole(g, (double)n));
	return picked(g, x, yk_bin(g, YK_DIV, at, whole(g, (double)to)), axis);
}

// Output i is at position (i + 1/2) n / to - 1/2 = whole / (2 to) of the input.
static yk_id linear(struct yk_graph *g, yk_id x, int axis, int64_t n, int64_t to)
{
	const int rank = g->value[x].rank, dtype = g->value[x].dtype;
	int64_t dims[YOKE_MAX_RANK] = { to, 1 };
	const yk_id unit = whole(g, 2 * (double)to);
	yk_id at = yk_bin(g, YK_MUL, yk_counting(g, to), whole(g, 2 * (double)n));
	at = yk_bin(g, YK_MAX, yk_bin(g, YK_ADD, at, whole(g, (double)(n - to))), whole(g, 0));
	const yk_id lo = yk_bin(g, YK_DIV, at, unit), rest = yk_bin(g, YK_MOD, at, unit);
	const yk_id hi =
		yk_bin(g, YK_MIN, yk_bin(g, YK_ADD, lo, whole(g, 1)), whole(g, (double)(n - 1)));
	yk_id share = yk_bin_lit(g, YK_DIV, yk_cast(g, rest, dtype), 2 * (double)to);
	for (int i = 1; i < rank - axis; i++)
		dims[i] = 1;
	share = yk_reshape(g, share, rank - axis, dims);
	const yk_id less = yk_bin(g, YK_SUB, yk_lit(g, dtype, 1), share);
	return yk_bin(g, YK_ADD, yk_bin(g, YK_MUL, picked(g, x, lo, axis), less),
		      yk_bin(g, YK_MUL, picked(g, x, hi, axis), share));
}

yoke_tensor *yoke_resize(yoke_tensor *x, const int64_t *to, int smooth)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int axes = yk_conv_axes_of(&r, r.in[0]);
	if (!sizes(&r, axes, to))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = smooth ? yk_cast_acc(r.g, r.in[0]) : r.in[0];
	for (int i = 0; i < axes && v != YK_BAD; i++) {
		const int64_t n = r.g->value[v].dims[2 + i];
		if (n != to[i])
			v = smooth ? linear(r.g, v, 2 + i, n, to[i]) :
				     nearest(r.g, v, 2 + i, n, to[i]);
	}
	return yk_rec_end(&r, v == YK_BAD ? v : yk_cast_like(r.g, v, r.in[0]));
}
