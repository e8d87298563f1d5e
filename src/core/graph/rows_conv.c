// SPDX-License-Identifier: Apache-2.0
// Windows of an axis, and convolutions: what shapes they take, their gradients, their parts.
// A convolution's parts are a pad, a window of each axis and a contraction; its gradients' are the adjoints of
// these.  A kernel computes the same without ever having all windows in memory.

#include "config.h"

#include <string.h>

#include "graph/conv.h"
#include "graph/shape.h"

// ---- windows ----

// How many windows there are, as a shape rule; the axis's elements.
static int64_t windows(int64_t n, int64_t size, int64_t stride, int64_t dilation)
{
	int64_t span;
	if (size < 1 || stride < 1 || dilation < 1 || __builtin_mul_overflow(size - 1, dilation, &span) || span >= n)
		return 0;
	return (n - span - 1) / stride + 1;
}

// attr: axis, size, stride, dilation
int yk_shape_window(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const int64_t axis = c->attr[0].i, size = c->attr[1].i, stride = c->attr[2].i, dilation = c->attr[3].i;
	char text[160];
	if (axis < 0 || axis >= x->rank || x->rank == YOKE_MAX_RANK)
		return fail_one(g, c, YOKE_ESHAPE, "no such axis in, or no room for one more axis behind,", x);
	const int64_t n = windows(x->dims[axis], size, stride, dilation);
	if (!n)
		return yk_op_fail(g, c->op, YOKE_ERANGE,
				  "windows of %lld elements, stride %lld, dilation %lld, along axis %lld of %s: there are none",
				  (long long)size, (long long)stride, (long long)dilation, (long long)axis,
				  yk_describe(x, text));
	*out = *x;
	out->dims[axis] = n;
	out->dims[out->rank++] = size;
	return want_size(g, c, out);
}

// attr: axis, size, stride, dilation, elements of the axis
int yk_shape_window_add(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const int64_t axis = c->attr[0].i, n = c->attr[4].i;
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (axis < 0 || axis >= x->rank - 1 || x->dims[x->rank - 1] != c->attr[1].i ||
	    x->dims[axis] != windows(n, c->attr[1].i, c->attr[2].i, c->attr[3].i))
		return fail_one(g, c, YOKE_ESHAPE, "these are no windows of such an axis:", x);
	*out = *x;
	out->rank--;
	out->dims[axis] = n;
	return want_size(g, c, out);
}

void yk_grad_window(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr a[5];
	memcpy(a, yk_attrs(g, &g->node[node]), 4 * sizeof *a); // appending moves the arrays
	a[4].i = g->value[yk_ins(g, &g->node[node])[0]].dims[a[0].i];
	gin[0] = yk_record(g, YK_WINDOW_ADD, 1, gout, 5, a);
}

void yk_grad_window_add(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr a[4];
	memcpy(a, yk_attrs(g, &g->node[node]), sizeof a);
	gin[0] = yk_record(g, YK_WINDOW, 1, gout, 4, a);
}

// Element `of` of all windows, `stride` apart along the axis of n elements, from element `at` on.
static yk_id spread(struct yk_graph *g, yk_id x, int axis, int64_t of, int64_t stride, int64_t at, int64_t n)
{
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK], zero[YOKE_MAX_RANK] = { 0 };
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	const int last = v.rank - 1;
	for (int i = 0; i <= last; i++)
		step[i] = 1;
	start[last] = of;
	v.dims[last] = 1;
	x = yk_slice(g, x, start, step, v.dims);
	start[last] = 0;
	if (stride > 1) { // zeros between: an axis of its own, filled up
		int64_t hi[YOKE_MAX_RANK] = { 0 };
		memmove(v.dims + axis + 2, v.dims + axis + 1, (size_t)(last - axis - 1) * sizeof *v.dims);
		v.dims[axis + 1] = 1;
		x = yk_reshape(g, x, v.rank, v.dims);
		hi[axis + 1] = stride - 1;
		x = yk_pad(g, x, zero, hi, 0);
		v.dims[axis] *= stride;
		memmove(v.dims + axis + 1, v.dims + axis + 2, (size_t)(last - axis - 1) * sizeof *v.dims);
	}
	x = yk_reshape(g, x, last, v.dims);
	if (v.dims[axis] > n - at) {
		v.dims[axis] = n - at;
		x = yk_slice(g, x, start, step, v.dims);
	}
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	lo[axis] = at;
	hi[axis] = n - at - v.dims[axis];
	return yk_pad(g, x, lo, hi, 0);
}

void yk_decompose_window_add(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int axis = (int)c->attr[0].i;
	const int64_t size = c->attr[1].i, stride = c->attr[2].i, dilation = c->attr[3].i, n = c->attr[4].i;
	const yk_id x = yk_up(g, c->in[0]);
	yk_id sum = spread(g, x, axis, 0, stride, 0, n);
	for (int64_t k = 1; k < size && sum != YK_BAD; k++)
		sum = yk_bin(g, YK_ADD, sum, spread(g, x, axis, k, stride, k * dilation, n));
	out[0] = yk_down(g, sum, c->in[0]);
}

// ---- convolutions ----

// x [B,C,S..], w [O,C/g,K..] and what comes out, [B,O,Q..], fit; sizes: of the axes behind, by x, w and y.
static int want_conv(struct yk_graph *g, const struct yk_call *c, const struct yk_value *x, const struct yk_value *w,
		     const struct yk_value *y)
{
	const int spatial = x->rank - 2;
	if (want_float(g, c, IN(0)) < 0)
		return YOKE_EDTYPE;
	if (IN(0)->dtype != IN(1)->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", IN(0), IN(1));
	const int64_t groups = c->attr[0].i;
	if (spatial < 1 || spatial > YK_CONV_AXES || w->rank != x->rank || y->rank != x->rank || groups < 1 ||
	    x->dims[1] % groups || w->dims[0] % groups || w->dims[1] != x->dims[1] / groups || y->dims[1] != w->dims[0] ||
	    y->dims[0] != x->dims[0])
		return yk_op_fail(g, c->op, YOKE_ESHAPE,
				  "wants [B,C,S..] and [O,C/groups,K..], 1 or 2 axes behind, C and O multiples of %lld groups",
				  (long long)groups);
	for (int i = 0; i < spatial; i++) {
		const struct yk_conv_axis a = yk_conv_axis(c->attr[1 + i].i);
		int64_t n = 0;
		if (__builtin_add_overflow(x->dims[2 + i], a.lo + a.hi, &n) ||
		    y->dims[2 + i] != windows(n, w->dims[2 + i], a.stride, a.dilation) || !y->dims[2 + i])
			return yk_op_fail(g, c->op, YOKE_ESHAPE,
					  "axis %d: %lld elements, %lld and %lld besides, have no %lld windows of %lld, stride "
					  "%lld, dilation %lld", i + 2, (long long)x->dims[2 + i], (long long)a.lo,
					  (long long)a.hi, (long long)y->dims[2 + i], (long long)w->dims[2 + i],
					  (long long)a.stride, (long long)a.dilation);
	}
	return 0;
}

// x, w; attr: groups, each axis
int yk_shape_conv(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *w = IN(1);
	if (x->rank < 3 || x->rank > 2 + YK_CONV_AXES || w->rank != x->rank)
		return fail_two(g, c, YOKE_ESHAPE, "wants [B,C,S..] and [O,C/groups,K..], 1 or 2 axes behind, got", x, w);
	struct yk_value y = *x;
	y.dims[1] = w->dims[0];
	for (int i = 2; i < x->rank; i++) {
		const struct yk_conv_axis a = yk_conv_axis(c->attr[i - 1].i);
		y.dims[i] = windows(x->dims[i] + a.lo + a.hi, w->dims[i], a.stride, a.dilation);
	}
	*out = y;
	const int err = want_conv(g, c, x, w, &y);
	return err ? err : want_size(g, c, out);
}

// cotangent, w; attr: groups, each axis, sizes of x
int yk_shape_conv_x(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *y = IN(0), *w = IN(1);
	if (y->rank < 3 || y->rank > 2 + YK_CONV_AXES || w->rank != y->rank)
		return fail_two(g, c, YOKE_ESHAPE, "wants [B,O,Q..] and [O,C/groups,K..], 1 or 2 axes behind, got", y, w);
	struct yk_value x = *y;
	if (__builtin_mul_overflow(w->dims[1], c->attr[0].i, &x.dims[1]))
		return fail_one(g, c, YOKE_ESHAPE, "too many elements:", w);
	for (int i = 2; i < y->rank; i++)
		x.dims[i] = c->attr[y->rank - 3 + i].i;
	*out = x;
	const int err = want_conv(g, c, &x, w, y);
	return err ? err : want_size(g, c, out);
}

// x, cotangent; attr: groups, each axis, sizes of w
int yk_shape_conv_w(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *y = IN(1);
	if (x->rank < 3 || x->rank > 2 + YK_CONV_AXES || y->rank != x->rank || c->attr[0].i < 1)
		return fail_two(g, c, YOKE_ESHAPE, "wants [B,C,S..] and [B,O,Q..], 1 or 2 axes behind, got", x, y);
	struct yk_value w = *x;
	w.dims[0] = y->dims[1];
	w.dims[1] = x->dims[1] / c->attr[0].i;
	for (int i = 2; i < x->rank; i++)
		w.dims[i] = c->attr[x->rank - 3 + i].i;
	*out = w;
	const int err = want_conv(g, c, x, &w, y);
	return err ? err : want_size(g, c, out);
}

// op(a, b; the attributes of `node`, and the sizes of v's axes behind)
static yk_id like(struct yk_graph *g, int op, uint32_t node, yk_id a, yk_id b, yk_id v)
{
	union yoke_attr attr[1 + 2 * YK_CONV_AXES];
	const uint32_t axes = g->value[yk_ins(g, &g->node[node])[0]].rank - 2u;
	uint32_t n = 1 + axes;
	memcpy(attr, yk_attrs(g, &g->node[node]), n * sizeof *attr);
	for (uint32_t i = 0; i < axes && v != YK_NIL; i++)
		attr[n++].i = g->value[v].dims[2 + i];
	return yk_record(g, op, 2, (yk_id[]){ a, b }, n, attr);
}

void yk_grad_conv(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id x = yk_ins(g, &g->node[node])[0], w = yk_ins(g, &g->node[node])[1];
	gin[0] = like(g, YK_CONV_X, node, gout[0], w, x);
	gin[1] = like(g, YK_CONV_W, node, x, gout[0], w);
}

void yk_grad_conv_x(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id y = yk_ins(g, &g->node[node])[0], w = yk_ins(g, &g->node[node])[1];
	gin[0] = like(g, YK_CONV, node, gout[0], w, YK_NIL);
	gin[1] = like(g, YK_CONV_W, node, gout[0], y, w);
}

void yk_grad_conv_w(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id x = yk_ins(g, &g->node[node])[0], y = yk_ins(g, &g->node[node])[1];
	gin[0] = like(g, YK_CONV_X, node, y, gout[0], x);
	gin[1] = like(g, YK_CONV, node, x, gout[0], YK_NIL);
}

// ---- parts ----

// Shapes in common of the parts.
struct parts {
	int axes;
	int64_t groups, batch, channels, outputs; // of a group: channels, outputs
	int64_t in[YK_CONV_AXES], taps[YK_CONV_AXES], out[YK_CONV_AXES], all_taps, all_out;
	struct yk_conv_axis axis[YK_CONV_AXES];
};

static struct parts parts_of(const struct yk_call *c, const struct yk_value *x, const struct yk_value *w,
			     const struct yk_value *y)
{
	struct parts p = { .axes = x->rank - 2, .groups = c->attr[0].i, .batch = x->dims[0],
			   .channels = w->dims[1], .outputs = w->dims[0] / c->attr[0].i, .all_taps = 1, .all_out = 1 };
	for (int i = 0; i < p.axes; i++) {
		p.axis[i] = yk_conv_axis(c->attr[1 + i].i);
		p.in[i] = x->dims[2 + i];
		p.all_taps *= p.taps[i] = w->dims[2 + i];
		p.all_out *= p.out[i] = y->dims[2 + i];
	}
	return p;
}

// [B,C,Q..,K..] as [B,C,K..,Q..], or back.
static yk_id turned(struct yk_graph *g, yk_id x, int axes)
{
	int order[YOKE_MAX_RANK] = { 0, 1 };
	for (int i = 0; i < axes; i++) {
		order[2 + i] = 2 + axes + i;
		order[2 + axes + i] = 2 + i;
	}
	return yk_permute(g, x, order);
}

// x's windows [B,groups,C K..,Q..]
static yk_id windows_of(struct yk_graph *g, const struct parts *p, yk_id x)
{
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	for (int i = 0; i < p->axes; i++) {
		lo[2 + i] = p->axis[i].lo;
		hi[2 + i] = p->axis[i].hi;
	}
	x = yk_pad(g, yk_up(g, x), lo, hi, 0);
	for (int i = 0; i < p->axes; i++)
		x = yk_record(g, YK_WINDOW, 1, &x, 4,
			      (union yoke_attr[]){ { .i = 2 + i }, { .i = p->taps[i] }, { .i = p->axis[i].stride },
						   { .i = p->axis[i].dilation } });
	return yk_reshape(g, turned(g, x, p->axes), 4,
			  (int64_t[]){ p->batch, p->groups, p->channels * p->all_taps, p->all_out });
}

static yk_id weights(struct yk_graph *g, const struct parts *p, yk_id w)
{
	return yk_reshape(g, yk_up(g, w), 3, (int64_t[]){ p->groups, p->outputs, p->channels * p->all_taps });
}

// y [B,O,Q..] as [B,groups,O,Q]
static yk_id outputs(struct yk_graph *g, const struct parts *p, yk_id y)
{
	return yk_reshape(g, yk_up(g, y), 4, (int64_t[]){ p->batch, p->groups, p->outputs, p->all_out });
}

void yk_decompose_conv(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct yk_value y;
	yk_shape_conv(g, c, &y);
	const struct parts p = parts_of(c, IN(0), IN(1), &y);
	const yk_id w = weights(g, &p, c->in[1]);
	out[0] = yk_down(g, yk_reshape(g, yk_matmul(g, w, windows_of(g, &p, c->in[0]), 0), y.rank, y.dims), c->in[0]);
}

void yk_decompose_conv_x(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct yk_value x;
	int64_t dims[YOKE_MAX_RANK], start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	yk_shape_conv_x(g, c, &x);
	const struct parts p = parts_of(c, &x, IN(1), IN(0));
	yk_id v = yk_matmul(g, weights(g, &p, c->in[1]), outputs(g, &p, c->in[0]), YOKE_TA);
	memcpy(dims, x.dims, 2 * sizeof *dims);
	for (int i = 0; i < p.axes; i++) {
		dims[2 + i] = p.taps[i];
		dims[2 + p.axes + i] = p.out[i];
	}
	v = turned(g, yk_reshape(g, v, 2 + 2 * p.axes, dims), p.axes);
	for (int i = p.axes - 1; i >= 0; i--)
		v = yk_record(g, YK_WINDOW_ADD, 1, &v, 5,
			      (union yoke_attr[]){ { .i = 2 + i }, { .i = p.taps[i] }, { .i = p.axis[i].stride },
						   { .i = p.axis[i].dilation },
						   { .i = p.in[i] + p.axis[i].lo + p.axis[i].hi } });
	for (int i = 0; i < x.rank; i++) {
		step[i] = 1;
		start[i] = i < 2 ? 0 : p.axis[i - 2].lo;
	}
	out[0] = yk_down(g, yk_slice(g, v, start, step, x.dims), c->in[0]);
}

void yk_decompose_conv_w(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct yk_value w;
	yk_shape_conv_w(g, c, &w);
	const struct parts p = parts_of(c, IN(0), &w, IN(1));
	const yk_id each = yk_matmul(g, outputs(g, &p, c->in[1]), windows_of(g, &p, c->in[0]), YOKE_TB);
	out[0] = yk_down(g, yk_reshape(g, yk_reduce(g, YK_SUM, each, 1, false), w.rank, w.dims), c->in[0]);
}
