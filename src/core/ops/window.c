// SPDX-License-Identifier: Apache-2.0
// Sliding windows along an axis: a view with overlapping elements, and its adjoint, which adds them
// up.
#include "config.h"

#include <string.h>

#include "graph/record.h"
#include "ops/conv.h"
#include "ops/rules.h"

int64_t yk_window_count(int64_t n, int64_t size, int64_t stride, int64_t dilation)
{
	int64_t span;
	if (size < 1 || stride < 1 || dilation < 1 ||
	    __builtin_mul_overflow(size - 1, dilation, &span) || span >= n)
		return 0;
	return (n - span - 1) / stride + 1;
}

// attr: axis, size, stride, dilation
static int shape_window(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const int64_t axis = c->attr[0].i, size = c->attr[1].i, stride = c->attr[2].i,
		      dilation = c->attr[3].i;
	char text[160];
	if (axis < 0 || axis >= x->rank || x->rank == YOKE_MAX_RANK)
		return fail_one(g, c, YOKE_ESHAPE,
				"no such axis, or no room for one more axis after it, in", x);
	const int64_t n = yk_window_count(x->dims[axis], size, stride, dilation);
	if (!n)
		return yk_op_fail(
			g, c->op, YOKE_ERANGE,
			"windows of %lld elements, stride %lld, dilation %lld, along axis %lld of %s: there are none",
			(long long)size, (long long)stride, (long long)dilation, (long long)axis,
			yk_describe(x, text));
	*out = *x;
	out->dims[axis] = n;
	out->dims[out->rank++] = size;
	return want_size(g, c, out);
}

// attr: axis, size, stride, dilation, elements of the axis
static int shape_window_add(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const int64_t axis = c->attr[0].i, n = c->attr[4].i;
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (axis < 0 || axis >= x->rank - 1 || x->dims[x->rank - 1] != c->attr[1].i ||
	    x->dims[axis] != yk_window_count(n, c->attr[1].i, c->attr[2].i, c->attr[3].i))
		return fail_one(g, c, YOKE_ESHAPE, "these are no windows of such an axis:", x);
	*out = *x;
	out->rank--;
	out->dims[axis] = n;
	return want_size(g, c, out);
}

static void grad_window(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr a[5];
	memcpy(a, yk_attrs(g, &g->node[node]), 4 * sizeof *a); // appending moves the arrays
	a[4].i = g->value[yk_ins(g, &g->node[node])[0]].dims[a[0].i];
	gin[0] = yk_record(g, YK_WINDOW_ADD, 1, gout, 5, a);
}

static void grad_window_add(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr a[4];
	memcpy(a, yk_attrs(g, &g->node[node]), sizeof a);
	gin[0] = yk_record(g, YK_WINDOW, 1, gout, 4, a);
}

// Places element `of` of all windows, `stride` apart, along an axis of n elements from element `at`
// on.
static yk_id spread(struct yk_graph *g, yk_id x, int axis, int64_t of, int64_t stride, int64_t at,
		    int64_t n)
{
	int64_t zero[YOKE_MAX_RANK] = { 0 };
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	const int last = v.rank - 1;
	v.dims[last] = 1;
	x = yk_slice_axis(g, x, last, of, 1);
	if (stride > 1) { // inserts zeros on an extra axis
		int64_t hi[YOKE_MAX_RANK] = { 0 };
		memmove(v.dims + axis + 2, v.dims + axis + 1,
			(size_t)(last - axis - 1) * sizeof *v.dims);
		v.dims[axis + 1] = 1;
		x = yk_reshape(g, x, v.rank, v.dims);
		hi[axis + 1] = stride - 1;
		x = yk_pad(g, x, zero, hi, 0);
		v.dims[axis] *= stride;
		memmove(v.dims + axis + 1, v.dims + axis + 2,
			(size_t)(last - axis - 1) * sizeof *v.dims);
	}
	x = yk_reshape(g, x, last, v.dims);
	if (v.dims[axis] > n - at) {
		v.dims[axis] = n - at;
		x = yk_slice_axis(g, x, axis, 0, n - at);
	}
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	lo[axis] = at;
	hi[axis] = n - at - v.dims[axis];
	return yk_pad(g, x, lo, hi, 0);
}

static void decompose_window_add(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int axis = (int)c->attr[0].i;
	const int64_t size = c->attr[1].i, stride = c->attr[2].i, dilation = c->attr[3].i,
		      n = c->attr[4].i;
	const yk_id x = yk_cast_acc(g, c->in[0]);
	yk_id sum = spread(g, x, axis, 0, stride, 0, n);
	for (int64_t k = 1; k < size && sum != YK_BAD; k++)
		sum = yk_bin(g, YK_ADD, sum, spread(g, x, axis, k, stride, k * dilation, n));
	out[0] = yk_cast_like(g, sum, c->in[0]);
}

yk_id yk_windows_in_front(struct yk_graph *g, yk_id x, int axes, const union yoke_attr *attr,
			  double fill)
{
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	bool pads = false;
	if (x == YK_BAD)
		return x;
	const int first = g->value[x].rank - axes;
	for (int i = 0; i < axes; i++) {
		const struct yk_conv_axis a = yk_conv_axis(attr[axes + i].i);
		lo[first + i] = a.lo;
		hi[first + i] = a.hi;
		pads |= a.lo || a.hi;
	}
	if (pads)
		x = yk_pad(g, x, lo, hi, fill);
	for (int i = axes - 1; i >= 0 && x != YK_BAD; i--) {
		const struct yk_conv_axis a = yk_conv_axis(attr[axes + i].i);
		const int last = g->value[x].rank;
		int order[YOKE_MAX_RANK];
		x = yk_record(g, YK_WINDOW, 1, &x, 4,
			      (union yoke_attr[]){ { .i = last - axes + i },
						   attr[i],
						   { .i = a.stride },
						   { .i = a.dilation } });
		for (int k = 0; k <= last; k++)
			order[k] = k < first ? k : k == first ? last : k - 1;
		x = x == YK_BAD ? x : yk_permute(g, x, order);
	}
	return x;
}

unsigned yk_axes_in_front(const struct yk_graph *g, yk_id x, int axes)
{
	return x == YK_BAD ? 0 : ((1u << axes) - 1) << (g->value[x].rank - 2 * axes);
}

#define VIEW(N, NAME, more, s, g) YK_OP(N) = { \
	.name = NAME, .flags = YK_F_VIEW | (more), .min_in = 1, .max_in = 1, .nout = 1, \
	.shape = s, .grad = g };

VIEW(WINDOW, "window", 0, shape_window, grad_window)
YK_OP(WINDOW_ADD) = { .name = "window_add",
		      .code = YOKE_OP_WINDOW_ADD,
		      .flags = YK_F_FLOAT,
		      .min_in = 1,
		      .max_in = 1,
		      .nout = 1,
		      .shape = shape_window_add,
		      .grad = grad_window_add,
		      .decompose = decompose_window_add };

yoke_tensor *yoke_window(yoke_tensor *x, int axis, int64_t size, int64_t stride, int64_t dilation)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	return yk_rec_end(&r, k < 0 ? YK_BAD :
				      yk_record(r.g, YK_WINDOW, 1, r.in, 4,
						(union yoke_attr[]){ { .i = k },
								     { .i = size },
								     { .i = stride },
								     { .i = dilation } }));
}

int yk_conv_axes_of(struct yk_rec *r, yk_id x)
{
	char text[160];
	if (x == YK_BAD)
		return 0;
	const struct yk_value *v = &r->g->value[x];
	if (v->rank >= 3 && v->rank <= 2 + YK_CONV_AXES && yk_is_float(v->dtype))
		return v->rank - 2;
	yk_rec_fail(r, yk_is_float(v->dtype) ? YOKE_ESHAPE : YOKE_EDTYPE,
		    "takes [B,C,S..] of floating point with 1 to 3 spatial axes, got %s",
		    yk_describe(v, text));
	return 0;
}

yk_id yk_conv_batched(struct yk_rec *r, int axes, bool *single)
{
	*single = r->in[0] != YK_BAD && axes > 0 && axes <= YK_CONV_AXES &&
		  r->g->value[r->in[0]].rank == axes + 1;
	if (!*single)
		return r->in[0];
	const struct yk_value v = r->g->value[r->in[0]];
	int64_t dims[YOKE_MAX_RANK] = { 1 };
	memcpy(dims + 1, v.dims, (size_t)v.rank * sizeof *dims);
	return yk_reshape(r->g, r->in[0], v.rank + 1, dims);
}

yk_id yk_conv_single(struct yk_rec *r, yk_id y)
{
	if (y == YK_BAD)
		return y;
	const struct yk_value v = r->g->value[y];
	return yk_reshape(r->g, y, v.rank - 1, v.dims + 1);
}

bool yk_conv_number(struct yk_rec *r, const char *what, int64_t given, int64_t min, int64_t unset,
		    int64_t *to)
{
	*to = given ? given : unset;
	if (*to >= min && *to <= YK_CONV_MAX)
		return true;
	yk_rec_fail(r, YOKE_ERANGE, "%s %lld is not in %lld .. %d", what, (long long)given,
		    (long long)min, YK_CONV_MAX);
	return false;
}
