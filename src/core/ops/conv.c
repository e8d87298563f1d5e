// SPDX-License-Identifier: Apache-2.0
// Convolutions over one to three axes, with stride, dilation, padding and groups; and transposed
// convolutions.  The two gradients are ops: conv_x is the gradient by x, conv_w by the weights.
#include "config.h"

#include <string.h>

#include "base/sized.h"
#include "graph/record.h"
#include "ops/conv.h"
#include "ops/rules.h"

// ---- convolutions ----

// Checks x [B,C,S..], w [O,C/g,K..] and the result [B,O,Q..]; sizes: of the spatial axes of x, w
// and y.
static int want_conv(struct yk_graph *g, const struct yk_call *c, const struct yk_value *x,
		     const struct yk_value *w, const struct yk_value *y)
{
	const int spatial = x->rank - 2;
	if (want_float(g, c, IN(0)) < 0)
		return YOKE_EDTYPE;
	if (IN(0)->dtype != IN(1)->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", IN(0), IN(1));
	const int64_t groups = c->attr[0].i;
	if (spatial < 1 || spatial > YK_CONV_AXES || w->rank != x->rank || y->rank != x->rank ||
	    groups < 1 || x->dims[1] % groups || w->dims[0] % groups ||
	    w->dims[1] != x->dims[1] / groups || y->dims[1] != w->dims[0] ||
	    y->dims[0] != x->dims[0])
		return yk_op_fail(
			g, c->op, YOKE_ESHAPE,
			"expects [B,C,S..] and [O,C/groups,K..] with 1 to 3 spatial axes, C and O multiples of %lld groups",
			(long long)groups);
	for (int i = 0; i < spatial; i++) {
		const struct yk_conv_axis a = yk_conv_axis(c->attr[1 + i].i);
		int64_t n = 0;
		if (__builtin_add_overflow(x->dims[2 + i], a.lo + a.hi, &n) ||
		    y->dims[2 + i] != yk_window_count(n, w->dims[2 + i], a.stride, a.dilation) ||
		    !y->dims[2 + i])
			return yk_op_fail(
				g, c->op, YOKE_ESHAPE,
				"axis %d: %lld elements, %lld and %lld besides, have no %lld windows of %lld, stride "
				"%lld, dilation %lld",
				i + 2, (long long)x->dims[2 + i], (long long)a.lo, (long long)a.hi,
				(long long)y->dims[2 + i], (long long)w->dims[2 + i],
				(long long)a.stride, (long long)a.dilation);
	}
	return 0;
}

// x, w; attr: groups, each axis
static int shape_conv(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *w = IN(1);
	if (x->rank < 3 || x->rank > 2 + YK_CONV_AXES || w->rank != x->rank)
		return fail_two(
			g, c, YOKE_ESHAPE,
			"expects [B,C,S..] and [O,C/groups,K..] with 1 to 3 spatial axes, got", x,
			w);
	struct yk_value y = *x;
	y.dims[1] = w->dims[0];
	for (int i = 2; i < x->rank; i++) {
		const struct yk_conv_axis a = yk_conv_axis(c->attr[i - 1].i);
		y.dims[i] =
			yk_window_count(x->dims[i] + a.lo + a.hi, w->dims[i], a.stride, a.dilation);
	}
	*out = y;
	const int err = want_conv(g, c, x, w, &y);
	return err ? err : want_size(g, c, out);
}

// cotangent, w; attr: groups, each axis, sizes of x
static int shape_conv_x(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *y = IN(0), *w = IN(1);
	if (y->rank < 3 || y->rank > 2 + YK_CONV_AXES || w->rank != y->rank)
		return fail_two(
			g, c, YOKE_ESHAPE,
			"expects [B,O,Q..] and [O,C/groups,K..] with 1 to 3 spatial axes, got", y,
			w);
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
static int shape_conv_w(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *y = IN(1);
	if (x->rank < 3 || x->rank > 2 + YK_CONV_AXES || y->rank != x->rank || c->attr[0].i < 1)
		return fail_two(g, c, YOKE_ESHAPE,
				"expects [B,C,S..] and [B,O,Q..] with 1 to 3 spatial axes, got", x,
				y);
	struct yk_value w = *x;
	w.dims[0] = y->dims[1];
	w.dims[1] = x->dims[1] / c->attr[0].i;
	for (int i = 2; i < x->rank; i++)
		w.dims[i] = c->attr[x->rank - 3 + i].i;
	*out = w;
	const int err = want_conv(g, c, x, &w, y);
	return err ? err : want_size(g, c, out);
}

// op(a, b; the attributes of `node`, then the sizes of v's spatial axes)
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

static void grad_conv(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id x = yk_ins(g, &g->node[node])[0], w = yk_ins(g, &g->node[node])[1];
	gin[0] = like(g, YK_CONV_X, node, gout[0], w, x);
	gin[1] = like(g, YK_CONV_W, node, x, gout[0], w);
}

static void grad_conv_x(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id y = yk_ins(g, &g->node[node])[0], w = yk_ins(g, &g->node[node])[1];
	gin[0] = like(g, YK_CONV, node, gout[0], w, YK_NIL);
	gin[1] = like(g, YK_CONV_W, node, gout[0], y, w);
}

static void grad_conv_w(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id x = yk_ins(g, &g->node[node])[0], y = yk_ins(g, &g->node[node])[1];
	gin[0] = like(g, YK_CONV_X, node, y, gout[0], x);
	gin[1] = like(g, YK_CONV, node, x, gout[0], YK_NIL);
}

// ---- decompositions ----

// Shapes used by the decompositions.
struct parts {
	int axes;
	int64_t groups, batch, channels, outputs; // channels and outputs: per group
	int64_t in[YK_CONV_AXES], taps[YK_CONV_AXES], out[YK_CONV_AXES], all_taps, all_out;
	struct yk_conv_axis axis[YK_CONV_AXES];
};

static struct parts parts_of(const struct yk_call *c, const struct yk_value *x,
			     const struct yk_value *w, const struct yk_value *y)
{
	struct parts p = { .axes = x->rank - 2,
			   .groups = c->attr[0].i,
			   .batch = x->dims[0],
			   .channels = w->dims[1],
			   .outputs = w->dims[0] / c->attr[0].i,
			   .all_taps = 1,
			   .all_out = 1 };
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

// The windows of x: [B,groups,C K..,Q..]
static yk_id windows_of(struct yk_graph *g, const struct parts *p, yk_id x)
{
	int64_t lo[YOKE_MAX_RANK] = { 0 }, hi[YOKE_MAX_RANK] = { 0 };
	for (int i = 0; i < p->axes; i++) {
		lo[2 + i] = p->axis[i].lo;
		hi[2 + i] = p->axis[i].hi;
	}
	x = yk_pad(g, yk_cast_acc(g, x), lo, hi, 0);
	for (int i = 0; i < p->axes; i++)
		x = yk_record(g, YK_WINDOW, 1, &x, 4,
			      (union yoke_attr[]){ { .i = 2 + i },
						   { .i = p->taps[i] },
						   { .i = p->axis[i].stride },
						   { .i = p->axis[i].dilation } });
	return yk_reshape(
		g, turned(g, x, p->axes), 4,
		(int64_t[]){ p->batch, p->groups, p->channels * p->all_taps, p->all_out });
}

static yk_id weights(struct yk_graph *g, const struct parts *p, yk_id w)
{
	return yk_reshape(g, yk_cast_acc(g, w), 3,
			  (int64_t[]){ p->groups, p->outputs, p->channels * p->all_taps });
}

// y [B,O,Q..] as [B,groups,O,Q]
static yk_id outputs(struct yk_graph *g, const struct parts *p, yk_id y)
{
	return yk_reshape(g, yk_cast_acc(g, y), 4,
			  (int64_t[]){ p->batch, p->groups, p->outputs, p->all_out });
}

static void decompose_conv(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct yk_value y;
	shape_conv(g, c, &y);
	const struct parts p = parts_of(c, IN(0), IN(1), &y);
	const yk_id w = weights(g, &p, c->in[1]);
	out[0] = yk_cast_like(
		g, yk_reshape(g, yk_matmul(g, w, windows_of(g, &p, c->in[0]), 0), y.rank, y.dims),
		c->in[0]);
}

static void decompose_conv_x(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct yk_value x;
	int64_t dims[YOKE_MAX_RANK], start[YOKE_MAX_RANK] = { 0 }, step[YOKE_MAX_RANK];
	shape_conv_x(g, c, &x);
	const struct parts p = parts_of(c, &x, IN(1), IN(0));
	yk_id v = yk_matmul(g, weights(g, &p, c->in[1]), outputs(g, &p, c->in[0]), YOKE_TA);
	memcpy(dims, x.dims, 2 * sizeof *dims);
	for (int i = 0; i < p.axes; i++) {
		dims[2 + i] = p.taps[i];
		dims[2 + p.axes + i] = p.out[i];
	}
	v = turned(g, yk_reshape(g, v, 2 + 2 * p.axes, dims), p.axes);
	for (int i = p.axes - 1; i >= 0; i--)
		v = yk_record(
			g, YK_WINDOW_ADD, 1, &v, 5,
			(union yoke_attr[]){ { .i = 2 + i },
					     { .i = p.taps[i] },
					     { .i = p.axis[i].stride },
					     { .i = p.axis[i].dilation },
					     { .i = p.in[i] + p.axis[i].lo + p.axis[i].hi } });
	for (int i = 0; i < x.rank; i++) {
		step[i] = 1;
		start[i] = i < 2 ? 0 : p.axis[i - 2].lo;
	}
	out[0] = yk_cast_like(g, yk_slice(g, v, start, step, x.dims), c->in[0]);
}

static void decompose_conv_w(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	struct yk_value w;
	shape_conv_w(g, c, &w);
	const struct parts p = parts_of(c, IN(0), &w, IN(1));
	const yk_id each =
		yk_matmul(g, outputs(g, &p, c->in[1]), windows_of(g, &p, c->in[0]), YOKE_TB);
	out[0] = yk_cast_like(
		g, yk_reshape(g, yk_reduce(g, YK_SUM, each, 1, false), w.rank, w.dims), c->in[0]);
}

#define CONV(N, NAME, rule) YK_OP(N) = { \
	.name = NAME, .code = YOKE_OP_##N, .flags = YK_F_FLOAT, .min_in = 2, .max_in = 2, \
	.nout = 1, .cast = YK_CAST_HALF, .shape = shape_##rule, .grad = grad_##rule, \
	.decompose = decompose_##rule };

CONV(CONV, "conv", conv) CONV(CONV_X, "conv_x", conv_x) CONV(CONV_W, "conv_w", conv_w)

static bool conv_options(struct yk_rec *r, const struct yoke_conv_options *given, int axes,
			 struct yoke_conv_options *o, union yoke_attr *attr)
{
	*o = (struct yoke_conv_options){ 0 };
	bool good = axes > 0 && (!given || !yk_sized_read(o, sizeof *o, given, r->g->call,
							  "yoke_conv_options"));
	o->groups = o->groups ? o->groups : 1;
	attr[0].i = o->groups;
	for (int i = 0; i < axes && good; i++) {
		struct yk_conv_axis a;
		good = yk_conv_number(r, "stride", o->stride[i], 1, 1, &a.stride) &&
		       yk_conv_number(r, "dilation", o->dilation[i], 1, 1, &a.dilation) &&
		       yk_conv_number(r, "lo", o->lo[i], 0, 0, &a.lo) &&
		       yk_conv_number(r, "hi", o->hi[i], 0, 0, &a.hi);
		attr[1 + i].i = good ? yk_conv_pack(&a) : 0;
	}
	return good;
}

// Operand 0 with a batch: w has as many axes.
static yk_id batched(struct yk_rec *r, bool *single)
{
	return yk_conv_batched(r, r->in[1] == YK_BAD ? 0 : r->g->value[r->in[1]].rank - 2, single);
}

yoke_tensor *yoke_conv(yoke_tensor *x, yoke_tensor *w, const struct yoke_conv_options *options)
{
	struct yk_rec r = yk_rec_begin_op(YK_CONV, 2, (yoke_tensor *[]){ x, w });
	struct yoke_conv_options o;
	union yoke_attr attr[1 + YK_CONV_AXES];
	bool single;
	r.in[0] = batched(&r, &single);
	const int axes = yk_conv_axes_of(&r, r.in[0]);
	if (!conv_options(&r, options, axes, &o, attr))
		return yk_rec_end(&r, YK_BAD);
	const yk_id y = yk_record(r.g, YK_CONV, 2, r.in, 1u + (uint32_t)axes, attr);
	return yk_rec_end(&r, single ? yk_conv_single(&r, y) : y);
}

yoke_tensor *yoke_conv_transposed(yoke_tensor *x, yoke_tensor *w,
				  const struct yoke_conv_options *options)
{
	struct yk_rec r = yk_rec_begin_op(YK_CONV_X, 2, (yoke_tensor *[]){ x, w });
	struct yoke_conv_options o;
	union yoke_attr attr[1 + 2 * YK_CONV_AXES];
	bool single;
	r.in[0] = batched(&r, &single);
	const int axes = yk_conv_axes_of(&r, r.in[0]);
	bool good = conv_options(&r, options, axes, &o, attr) && r.in[1] != YK_BAD;
	if (good && r.g->value[r.in[1]].rank != axes + 2) {
		char text[160];
		yk_rec_fail(&r, YOKE_ESHAPE, "w is [C,O/groups,K..], got %s",
			    yk_describe(&r.g->value[r.in[1]], text));
		good = false;
	}
	for (int i = 0; i < axes && good; i++) {
		const struct yk_conv_axis a = yk_conv_axis(attr[1 + i].i);
		const int64_t q = r.g->value[r.in[0]].dims[2 + i],
			      k = r.g->value[r.in[1]].dims[2 + i];
		int64_t n, span;
		if (o.more[i] < 0 || o.more[i] >= a.stride) {
			yk_rec_fail(&r, YOKE_ERANGE, "more %lld: it is below the stride, %lld",
				    (long long)o.more[i], (long long)a.stride);
			good = false;
		} else if (__builtin_mul_overflow(q - 1, a.stride, &n) ||
			   __builtin_mul_overflow(k - 1, a.dilation, &span) ||
			   __builtin_add_overflow(n, span + 1 + o.more[i] - a.lo - a.hi, &n)) {
			yk_rec_fail(&r, YOKE_ESHAPE, "axis %d has too many elements", 2 + i);
			good = false;
		} else {
			attr[1 + axes + i].i = n;
		}
	}
	const yk_id y =
		good ? yk_record(r.g, YK_CONV_X, 2, r.in, 1u + 2u * (uint32_t)axes, attr) : YK_BAD;
	return yk_rec_end(&r, single ? yk_conv_single(&r, y) : y);
}
