// SPDX-License-Identifier: Apache-2.0
// Maximum pooling with the places of the maxima, its inverse, and windows as columns of a matrix.
#include "config.h"

#include <math.h>
#include <string.h>

#include "graph/record.h"
#include "ops/conv.h"
#include "ops/rules.h"
#include "yoke-math.h"

// x [B,C,S..]; attr: pool_max's -> i64 [B,C,Q..]
static int shape_pool_argmax(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const int err = yk_op_def(YK_POOL_MAX)->shape(g, c, out);
	out->dtype = yoke_i64;
	return err;
}

// The index along spatial axis i of each window's element number `tap`, i64 of the windows' shape.
// attr: the windows' sizes along all `axes`, then their strides and padding, as in struct
// yk_pooling_call.
static yk_id element_of(struct yk_graph *g, yk_id tap, int i, int axes, const union yoke_attr *attr)
{
	const struct yk_conv_axis a = yk_conv_axis(attr[axes + i].i);
	int64_t dims[YOKE_MAX_RANK], later = 1;
	const struct yk_value t = g->value[tap];
	for (int k = i + 1; k < axes; k++)
		later *= attr[k].i;
	for (int k = 0; k < t.rank; k++)
		dims[k] = k == 2 + i ? t.dims[k] : 1;
	yk_id at =
		yk_bin_lit(g, YK_MOD, yk_bin_lit(g, YK_DIV, tap, (double)later), (double)attr[i].i);
	at = yk_bin_lit(g, YK_MUL, at, (double)a.dilation);
	const yk_id start =
		yk_bin_lit(g, YK_MUL, yk_reshape(g, yk_counting(g, t.dims[2 + i]), t.rank, dims),
			   (double)a.stride);
	return yk_bin_lit(g, YK_SUB, yk_bin(g, YK_ADD, at, start), (double)a.lo);
}

// Padding is -inf and would win over elements that are: it is marked by an index of its own.
static void decompose_pool_argmax(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value x = *IN(0);
	const int axes = x.rank - 2;
	int64_t dims[YOKE_MAX_RANK] = { x.dims[0], x.dims[1], 1 }, taps = 1;
	struct yk_value y;
	if (shape_pool_argmax(g, c, &y) < 0) {
		out[0] = YK_BAD;
		return;
	}
	for (int i = 0; i < axes; i++) {
		taps *= c->attr[i].i;
		dims[3 + i] = y.dims[2 + i];
	}
	dims[2] = taps;
	yk_id v = yk_windows_in_front(g, c->in[0], axes, c->attr, -INFINITY);
	const yk_id real = yk_broadcast(g, yk_lit(g, yoke_i32, 1), x.rank, x.dims);
	yk_id in = yk_windows_in_front(g, real, axes, c->attr, 0);
	const yk_id max = yk_reduce(g, YK_REDUCE_MAX, v, yk_axes_in_front(g, v, axes), true);
	const yk_id equal = yk_bin(g, YK_EQ, v, max);
	yk_id nan = yk_bin(g, YK_NE, v, v);
	in = yk_bin_lit(g, YK_GT, in, 0);
	// windows as one axis: the first maximum, or the last NaN
	yk_id hit = yk_bin(g, YK_AND, in, yk_bin(g, YK_OR, nan, equal));
	hit = yk_reshape(g, hit, 3 + axes, dims);
	nan = yk_reshape(g, nan, 3 + axes, dims);
	int64_t unit[YOKE_MAX_RANK] = { 1, 1, taps, 1, 1, 1 };
	const yk_id order = yk_reshape(g, yk_counting(g, taps), 3 + axes, unit);
	const yk_id rank =
		yk_tri(g, YK_SELECT, nan, yk_bin_lit(g, YK_ADD, order, (double)taps),
		       yk_bin(g, YK_SUB, yk_lit(g, yoke_i64, (double)(taps - 1)), order));
	const yk_id best =
		yk_reduce(g, YK_REDUCE_MAX,
			  yk_tri(g, YK_SELECT, hit, rank, yk_lit(g, yoke_i64, -1)), 1u << 2, false);
	const yk_id large = yk_bin_lit(g, YK_GE, best, (double)taps);
	const yk_id tap = yk_tri(g, YK_SELECT, large, yk_bin_lit(g, YK_SUB, best, (double)taps),
				 yk_bin(g, YK_SUB, yk_lit(g, yoke_i64, (double)(taps - 1)), best));
	if (tap == YK_BAD) {
		out[0] = tap;
		return;
	}
	yk_id at = element_of(g, tap, 0, axes, c->attr);
	for (int i = 1; i < axes; i++)
		at = yk_bin(g, YK_ADD, yk_bin_lit(g, YK_MUL, at, (double)x.dims[2 + i]),
			    element_of(g, tap, i, axes, c->attr));
	out[0] = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, best, 0), yk_lit(g, yoke_i64, -1), at);
}

YK_OP(POOL_ARGMAX) = { .name = "pool_argmax",
		       .code = YOKE_OP_POOL_ARGMAX,
		       .flags = YK_F_FLOAT | YK_F_FLAT,
		       .min_in = 1,
		       .max_in = 1,
		       .nout = 1,
		       .shape = shape_pool_argmax,
		       .decompose = decompose_pool_argmax };

// x [B,C,S..] as [B,C,all of it].
static yk_id lines(struct yk_graph *g, yk_id x)
{
	const struct yk_value v = g->value[x];
	int64_t n = 1;
	for (int i = 2; i < v.rank; i++)
		n *= v.dims[i];
	return yk_reshape(g, x, 3, (int64_t[]){ v.dims[0], v.dims[1], n });
}

yoke_tensor *yoke_max_pool_indices(yoke_tensor *x, const struct yoke_pool_options *options,
				   yoke_tensor **indices)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	struct yk_pooling_call p;
	const yk_id v = yk_pool_begin(&r, options, &p);
	yk_id at = v == YK_BAD ?
			   v :
			   yk_record(r.g, YK_POOL_ARGMAX, 1, &v, 2 * (uint32_t)p.axes, p.attr);
	if (at == YK_BAD)
		return yk_rec_end_with(&r, at, 1, &(struct yk_rec_result){ indices, at });
	const struct yk_value shape = r.g->value[at];
	yk_id y = yk_record(r.g, YK_TAKE_ALONG, 2, (yk_id[]){ lines(r.g, v), lines(r.g, at) }, 1,
			    &(union yoke_attr){ .i = 2 });
	if (y != YK_BAD)
		y = yk_reshape(r.g, y, shape.rank, shape.dims);
	if (p.single) {
		at = yk_conv_single(&r, at);
		y = yk_conv_single(&r, y);
	}
	return yk_rec_end_with(&r, at == YK_BAD ? at : y, 1,
			       &(struct yk_rec_result){ indices, at });
}

yoke_tensor *yoke_max_unpool(yoke_tensor *x, yoke_tensor *indices, const int64_t *to)
{
	struct yk_rec r = yk_rec_begin_op(YK_SCATTER_SET, 2, (yoke_tensor *[]){ x, indices });
	struct yk_graph *g = r.g;
	char a[160], b[160];
	const int axes = yk_conv_axes_of(&r, r.in[0]);
	if (!axes || r.in[1] == YK_BAD || !yk_rec_array(&r, axes, to, "to"))
		return yk_rec_end(&r, YK_BAD);
	struct yk_value v = g->value[r.in[0]];
	const struct yk_value idx = g->value[r.in[1]];
	if (!yk_same_shape(&v, &idx) || (idx.dtype != yoke_i32 && idx.dtype != yoke_i64)) {
		yk_rec_fail(&r, yk_same_shape(&v, &idx) ? YOKE_EDTYPE : YOKE_ESHAPE,
			    "indices are i32 or i64 of x's shape, got %s for %s",
			    yk_describe(&idx, a), yk_describe(&v, b));
		return yk_rec_end(&r, YK_BAD);
	}
	int64_t n = 1;
	for (int i = 0; i < axes; i++) {
		v.dims[2 + i] = to[i];
		if (to[i] < 1 || __builtin_mul_overflow(n, to[i], &n)) {
			yk_rec_fail(&r, YOKE_ERANGE, "size %lld of axis %d", (long long)to[i],
				    2 + i);
			return yk_rec_end(&r, YK_BAD);
		}
	}
	const int64_t planes = idx.dims[0] * idx.dims[1], count = yk_count(&idx);
	int64_t all;
	if (__builtin_mul_overflow(planes, n, &all)) {
		yk_rec_fail(&r, YOKE_ERANGE, "%lld planes of %lld elements", (long long)planes,
			    (long long)n);
		return yk_rec_end(&r, YK_BAD);
	}
	const yk_id zero = yk_lit(g, v.dtype, 0);
	if (!count)
		return yk_rec_end(&r, yk_broadcast_like(g, zero, &v));
	yk_id at = yk_reshape(g, yk_cast(g, r.in[1], yoke_i64), 2,
			      (int64_t[]){ planes, count / planes });
	const yk_id in =
		yk_bin(g, YK_AND, yk_bin_lit(g, YK_GE, at, 0), yk_bin_lit(g, YK_LT, at, (double)n));
	const yk_id first = yk_reshape(g, yk_bin_lit(g, YK_MUL, yk_counting(g, planes), (double)n),
				       2, (int64_t[]){ planes, 1 });
	// past the end: an error
	at = yk_tri(g, YK_SELECT, in, yk_bin(g, YK_ADD, at, first),
		    yk_lit(g, yoke_i64, (double)all));
	const yk_id set[] = { yk_broadcast(g, zero, 1, &all), yk_reshape(g, at, 1, &count),
			      yk_reshape(g, r.in[0], 1, &count) };
	return yk_rec_end(
		&r, yk_reshape(g, yk_record(g, YK_SCATTER_SET, 3, set, 0, NULL), v.rank, v.dims));
}

// ---- windows as columns ----

yoke_tensor *yoke_unfold(yoke_tensor *x, const struct yoke_pool_options *options)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	struct yk_pooling_call p;
	yk_id v = yk_pool_begin(&r, options, &p);
	if (v == YK_BAD)
		return yk_rec_end(&r, v);
	const struct yk_value was = r.g->value[v];
	v = yk_windows_in_front(r.g, v, p.axes, p.attr, 0);
	if (v == YK_BAD)
		return yk_rec_end(&r, v);
	const struct yk_value w = r.g->value[v];
	int64_t dims[3] = { was.dims[0], was.dims[1], 1 };
	for (int i = 0; i < p.axes; i++) {
		dims[1] *= w.dims[2 + i];
		dims[2] *= w.dims[2 + p.axes + i];
	}
	v = yk_reshape(r.g, v, 3, dims);
	return yk_rec_end(&r, p.single ? yk_conv_single(&r, v) : v);
}

yoke_tensor *yoke_fold(yoke_tensor *x, const int64_t *sizes,
		       const struct yoke_pool_options *options)
{
	struct yk_rec r = yk_rec_begin_op(YK_WINDOW_ADD, 1, &x);
	struct yk_graph *g = r.g;
	struct yk_pooling_call p = { .axes = 0 };
	char text[160];
	const bool given =
		yk_pool_take(&r, options, &p.o) && yk_rec_array(&r, p.o.axes, sizes, "sizes");
	if (r.in[0] == YK_BAD || !given)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value was = g->value[r.in[0]];
	p.axes = p.o.axes;
	p.single = was.rank == 2;
	int64_t taps = 1, columns = 1, dims[YOKE_MAX_RANK] = { 0 };
	struct yk_value to = { .dtype = was.dtype, .rank = 2 + p.axes };
	const char *why =
		p.axes < 1 || p.axes > YK_CONV_AXES ? "axes is the number of sizes, 1 to 3;" : NULL;
	if ((was.rank != 3 && was.rank != 2) || !yk_is_float(was.dtype))
		why = "takes floating point [B,C K..,L] or [C K..,L];";
	for (int i = 0; i < p.axes && !why; i++) {
		struct yk_conv_axis a;
		to.dims[2 + i] = sizes[i];
		if (!yk_pool_axis(&r, &p, i, sizes[i], &a))
			return yk_rec_end(&r, YK_BAD);
		dims[2 + i] = p.attr[i].i;
		dims[2 + p.axes + i] = yk_window_count(sizes[i] < 1 ? 0 : sizes[i] + a.lo + a.hi,
						       p.attr[i].i, a.stride, a.dilation);
		taps *= dims[2 + i];
		columns *= dims[2 + p.axes + i];
	}
	const int64_t rows = was.rank < 2 ? 0 : was.dims[was.rank - 2];
	if (!why && (rows % taps || was.dims[was.rank - 1] != columns || !columns))
		why = "these are not the windows of such sizes:";
	if (why) {
		yk_rec_fail(&r, yk_is_float(was.dtype) ? YOKE_ESHAPE : YOKE_EDTYPE,
			    "%s got %s, windows of %lld elements, %lld of them", why,
			    yk_describe(&was, text), (long long)taps, (long long)columns);
		return yk_rec_end(&r, YK_BAD);
	}
	dims[0] = to.dims[0] = p.single ? 1 : was.dims[0];
	dims[1] = to.dims[1] = rows / taps;
	const yk_id v = yk_reshape(g, yk_cast_acc(g, r.in[0]), 2 + 2 * p.axes, dims);
	const yk_id y = yk_windows_gathered(g, v, &to, p.axes, p.attr);
	if (y == YK_BAD)
		return yk_rec_end(&r, y);
	const yk_id done = yk_cast_like(g, y, r.in[0]);
	return yk_rec_end(&r, p.single ? yk_conv_single(&r, done) : done);
}
