// SPDX-License-Identifier: Apache-2.0
// Pooling by maximum and by mean.  The maximum is an op, with kernels; the mean is composed.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "graph/record.h"
#include "ops/conv.h"
#include "ops/rules.h"

yk_id yk_windows_gathered(struct yk_graph *g, yk_id v, const struct yk_value *x, int axes,
			  const union yoke_attr *attr)
{
	int64_t start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	for (int i = 0; i < axes && v != YK_BAD; i++) {
		const struct yk_conv_axis a = yk_conv_axis(attr[axes + i].i);
		const int rank = g->value[v].rank;
		int order[YOKE_MAX_RANK];
		for (int k = 0; k < rank; k++) // moves the first window axis to the end
			order[k] = k < 2 ? k : k < rank - 1 ? k + 1 : 2;
		v = yk_permute(g, v, order);
		v = yk_record(g, YK_WINDOW_ADD, 1, &v, 5,
			      (union yoke_attr[]){ { .i = rank - 1 - axes + i },
						   attr[i],
						   { .i = a.stride },
						   { .i = a.dilation },
						   { .i = x->dims[2 + i] + a.lo + a.hi } });
	}
	for (int i = 0; i < x->rank; i++) {
		step[i] = 1;
		start[i] = i < 2 ? 0 : yk_conv_axis(attr[axes + i - 2].i).lo;
	}
	return v == YK_BAD ? v : yk_slice(g, v, start, step, x->dims);
}

// attr: window sizes, then each axis as for convolutions
static int shape_pool_max(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const int axes = x->rank - 2;
	char text[160];
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (axes < 1 || axes > YK_CONV_AXES || c->nattr != 2u * (unsigned)axes)
		return fail_one(g, c, YOKE_ESHAPE, "takes [B,C,S..] with 1 to 3 spatial axes, got",
				x);
	*out = *x;
	for (int i = 0; i < axes; i++) {
		const struct yk_conv_axis a = yk_conv_axis(c->attr[axes + i].i);
		const int64_t n = x->dims[2 + i] + a.lo + a.hi,
			      span = (c->attr[i].i - 1) * a.dilation;
		if (span >= n)
			return yk_op_fail(
				g, c->op, YOKE_ERANGE,
				"windows of %lld elements, stride %lld, dilation %lld, along axis %d of %s with %lld "
				"around: there are none",
				(long long)c->attr[i].i, (long long)a.stride, (long long)a.dilation,
				2 + i, yk_describe(x, text), (long long)(a.lo + a.hi));
		out->dims[2 + i] = (n - span - 1) / a.stride + 1;
	}
	return 0;
}

static int shape_pool_max_backward(struct yk_graph *g, const struct yk_call *c,
				   struct yk_value *out)
{
	struct yk_value y;
	const int err = shape_pool_max(g, c, &y);
	if (err < 0)
		return err;
	if (want_like(g, c, 1, &y) < 0)
		return YOKE_ESHAPE;
	*out = *IN(0);
	return 0;
}

static void grad_pool_max(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr attr[2 * YK_CONV_AXES]; // a copy: appending moves the arrays
	const struct yk_node *n = &g->node[node];
	const yk_id in[2] = { yk_ins(g, n)[0], gout[0] };
	const uint32_t nattr = 2u * (uint32_t)(g->value[in[0]].rank - 2);
	memcpy(attr, yk_attrs(g, n), nattr * sizeof *attr);
	gin[0] = yk_record(g, YK_POOL_MAX_BACKWARD, 2, in, nattr, attr);
}

static void decompose_pool_max(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int axes = IN(0)->rank - 2;
	const yk_id v = yk_windows_in_front(g, c->in[0], axes, c->attr, -INFINITY);
	out[0] = yk_reduce(g, YK_REDUCE_MAX, v, yk_axes_in_front(g, v, axes), false);
}

// For the windows of x: the elements equal to the maximum, and their number per window, with the
// window axes kept.
struct largest {
	yk_id is, ties;
};

static struct largest largest_of(struct yk_graph *g, yk_id x, int axes, const union yoke_attr *attr)
{
	const yk_id v = yk_windows_in_front(g, x, axes, attr, -INFINITY);
	const unsigned over = yk_axes_in_front(g, v, axes);
	const yk_id is = yk_bin(g, YK_EQ, v, yk_reduce(g, YK_REDUCE_MAX, v, over, true));
	const yk_id ties =
		v == YK_BAD ? v :
			      yk_reduce(g, YK_SUM, yk_cast(g, is, g->value[v].dtype), over, true);
	return (struct largest){ is, ties };
}

static void decompose_pool_max_backward(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value x = *IN(0);
	const int axes = x.rank - 2;
	const struct largest l = largest_of(g, yk_cast_acc(g, c->in[0]), axes, c->attr);
	if (l.ties == YK_BAD) {
		out[0] = YK_BAD;
		return;
	}
	const struct yk_value kept = g->value[l.ties];
	const yk_id each = yk_bin(
		g, YK_DIV, yk_reshape(g, yk_cast_acc(g, c->in[1]), kept.rank, kept.dims), l.ties);
	const yk_id v = yk_tri(g, YK_SELECT, l.is, each, yk_lit(g, kept.dtype, 0));
	out[0] = yk_cast_like(g, yk_windows_gathered(g, v, &x, axes, c->attr), c->in[0]);
}

// Gradient by g: the mean of the cotangent over each window's maxima; by x it is 0.
static void grad_pool_max_backward(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr attr[2 * YK_CONV_AXES];
	const struct yk_node *n = &g->node[node];
	const yk_id x = yk_ins(g, n)[0], by = yk_ins(g, n)[1];
	const struct yk_value y = g->value[by];
	const int axes = g->value[x].rank - 2;
	memcpy(attr, yk_attrs(g, n), 2 * (size_t)axes * sizeof *attr);
	const struct largest l = largest_of(g, yk_cast_acc(g, x), axes, attr);
	const yk_id cot = yk_windows_in_front(g, yk_cast_acc(g, gout[0]), axes, attr, 0);
	if (l.ties == YK_BAD || cot == YK_BAD)
		return;
	const yk_id v = yk_tri(g, YK_SELECT, l.is, cot, yk_lit(g, g->value[cot].dtype, 0));
	const yk_id sum = yk_reduce(g, YK_SUM, v, yk_axes_in_front(g, v, axes), true);
	const yk_id mean =
		yk_tri(g, YK_SELECT, yk_bin(g, YK_GT, l.ties, yk_lit(g, g->value[l.ties].dtype, 0)),
		       yk_bin(g, YK_DIV, sum, l.ties), sum);
	gin[0] = yk_full_like(g, x, 0);
	gin[1] = yk_cast_like(g, yk_reshape(g, mean, y.rank, y.dims), by);
}

YK_OP(POOL_MAX) = { .name = "pool_max",
		    .code = YOKE_OP_POOL_MAX,
		    .flags = YK_F_FLOAT,
		    .min_in = 1,
		    .max_in = 1,
		    .nout = 1,
		    .shape = shape_pool_max,
		    .grad = grad_pool_max,
		    .decompose = decompose_pool_max };
YK_OP(POOL_MAX_BACKWARD) = { .name = "pool_max_backward",
			     .code = YOKE_OP_POOL_MAX_BACKWARD,
			     .flags = YK_F_FLOAT,
			     .min_in = 2,
			     .max_in = 2,
			     .nout = 1,
			     .shape = shape_pool_max_backward,
			     .grad = grad_pool_max_backward,
			     .decompose = decompose_pool_max_backward };

// Adds padding at the end so that the last window may be incomplete, if it begins before the
// padding's end: PyTorch's ceil_mode.
static int64_t excess_of(const struct yk_conv_axis *a, int64_t n, int64_t window)
{
	const int64_t rest = n + a->lo + a->hi - (window - 1) * a->dilation - 1;
	const int64_t next = (rest < 0 ? 0 : rest / a->stride + 1) * a->stride;
	return (rest >= 0 && rest % a->stride == 0) || next >= n + a->lo ? 0 : next - rest;
}

bool yk_pool_take(struct yk_rec *r, const struct yoke_pool_options *given,
		  struct yoke_pool_options *o)
{
	*o = (struct yoke_pool_options){ 0 };
	return r->in[0] != YK_BAD &&
	       !yk_sized_read(o, sizeof *o, given, r->g->call, "yoke_pool_options");
}

bool yk_pool_axis(struct yk_rec *r, struct yk_pooling_call *p, int i, int64_t n,
		  struct yk_conv_axis *a)
{
	const struct yoke_pool_options *o = &p->o;
	if (!yk_conv_number(r, "window", o->window[i], 1, 0, &p->attr[i].i) ||
	    !yk_conv_number(r, "stride", o->stride[i], 1, p->attr[i].i, &a->stride) ||
	    !yk_conv_number(r, "dilation", o->dilation[i], 1, 1, &a->dilation) ||
	    !yk_conv_number(r, "lo", o->lo[i], 0, 0, &a->lo) ||
	    !yk_conv_number(r, "hi", o->hi[i], 0, 0, &a->hi))
		return false;
	p->excess[i] = o->ceil_mode ? excess_of(a, n, p->attr[i].i) : 0;
	const bool good = yk_conv_number(r, "padding", a->hi + p->excess[i], 0, 0, &a->hi);
	p->attr[p->axes + i].i = yk_conv_pack(a);
	return good;
}

yk_id yk_pool_begin(struct yk_rec *r, const struct yoke_pool_options *given,
		    struct yk_pooling_call *p)
{
	*p = (struct yk_pooling_call){ 0 };
	const struct yoke_pool_options *o = &p->o;
	const yk_id x =
		yk_pool_take(r, given, &p->o) ? yk_conv_batched(r, o->axes, &p->single) : YK_BAD;
	struct yk_conv_axis a;
	p->axes = yk_conv_axes_of(r, x);
	bool good = p->axes > 0;
	if (good && o->axes && o->axes != p->axes) {
		char text[160];
		yk_rec_fail(r, YOKE_ESHAPE,
			    "axes %d: x is [B,C,S..] or [C,S..] with as many spatial axes, got %s",
			    o->axes, yk_describe(&r->g->value[r->in[0]], text));
		good = false;
	}
	for (int i = 0; i < p->axes && good; i++)
		good = yk_pool_axis(r, p, i, r->g->value[x].dims[2 + i], &a);
	return good ? x : YK_BAD;
}

static yoke_tensor *pool_end(struct yk_rec *r, const struct yk_pooling_call *p, yk_id y)
{
	return yk_rec_end(r, p->single ? yk_conv_single(r, y) : y);
}

yoke_tensor *yoke_max_pool(yoke_tensor *x, const struct yoke_pool_options *options)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	struct yk_pooling_call p;
	const yk_id v = yk_pool_begin(&r, options, &p);
	return pool_end(
		&r, &p,
		v == YK_BAD ? v : yk_record(r.g, YK_POOL_MAX, 1, &v, 2 * (uint32_t)p.axes, p.attr));
}

// The number of elements that each window counts, as a literal where all count the same.
static yk_id counted(struct yk_graph *g, const struct yk_pooling_call *p, const int64_t *n,
		     int dtype)
{
	union yoke_attr attr[2 * YK_CONV_AXES];
	int64_t ones[YK_CONV_AXES], all = 1;
	bool same = true;
	memcpy(attr, p->attr, sizeof attr);
	for (int i = 0; i < p->axes; i++) {
		struct yk_conv_axis a = yk_conv_axis(attr[p->axes + i].i);
		ones[i] = n[i];
		if (p->o.count_include_pad) {
			ones[i] += a.lo + a.hi - p->excess[i];
			a.lo = 0;
			a.hi = p->excess[i];
		}
		same &= !a.lo && !a.hi;
		all *= attr[i].i;
		attr[p->axes + i].i = yk_conv_pack(&a);
	}
	if (same)
		return yk_lit(g, dtype, (double)all);
	const yk_id v = yk_windows_in_front(g, yk_broadcast(g, yk_lit(g, dtype, 1), p->axes, ones),
					    p->axes, attr, 0);
	return yk_reduce(g, YK_SUM, v, yk_axes_in_front(g, v, p->axes), false);
}

yoke_tensor *yoke_mean_pool(yoke_tensor *x, const struct yoke_pool_options *options)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	struct yk_pooling_call p;
	yk_id v = yk_pool_begin(&r, options, &p);
	if (v == YK_BAD)
		return yk_rec_end(&r, v);
	const struct yk_value was = r.g->value[v];
	v = yk_windows_in_front(r.g, yk_cast_acc(r.g, v), p.axes, p.attr, 0);
	v = yk_reduce(r.g, YK_SUM, v, yk_axes_in_front(r.g, v, p.axes), false);
	if (v != YK_BAD)
		v = yk_bin(r.g, YK_DIV, v, counted(r.g, &p, was.dims + 2, r.g->value[v].dtype));
	return pool_end(&r, &p, v == YK_BAD ? v : yk_cast_like(r.g, v, r.in[0]));
}
