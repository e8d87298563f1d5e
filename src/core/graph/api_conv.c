// SPDX-License-Identifier: Apache-2.0
// The public windows, convolutions, pools and resizing.

#include "config.h"

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "graph/conv.h"
#include "graph/record.h"

yoke_tensor *yoke_window(yoke_tensor *x, int axis, int64_t size, int64_t stride, int64_t dilation)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	return yk_rec_end(&r, k < 0 ? YK_BAD :
				      yk_record(r.g, YK_WINDOW, 1, r.in, 4,
						(union yoke_attr[]){ { .i = k }, { .i = size }, { .i = stride },
								     { .i = dilation } }));
}

// ---- convolutions ----

// How many axes lie behind [B,C]; 0 with an error.
static int behind(struct yk_rec *r, yk_id x)
{
	char text[160];
	if (x == YK_BAD)
		return 0;
	const struct yk_value *v = &r->g->value[x];
	if (v->rank >= 3 && v->rank <= 2 + YK_CONV_AXES && yk_is_float(v->dtype))
		return v->rank - 2;
	yk_rec_fail(r, yk_is_float(v->dtype) ? YOKE_ESHAPE : YOKE_EDTYPE,
		    "takes [B,C,S] or [B,C,S,S] of floating point, got %s", yk_describe(v, text));
	return 0;
}

// 0: what it is without being said.  False, with an error, where it is none.
static bool number(struct yk_rec *r, const char *what, int64_t given, int64_t least, int64_t unsaid, int64_t *to)
{
	*to = given ? given : unsaid;
	if (*to >= least && *to <= YK_CONV_MAX)
		return true;
	yk_rec_fail(r, YOKE_ERANGE, "%s %lld is not in %lld .. %d", what, (long long)given, (long long)least, YK_CONV_MAX);
	return false;
}

static bool conv_options(struct yk_rec *r, const struct yoke_conv_options *given, int axes,
			 struct yoke_conv_options *o, union yoke_attr *attr)
{
	*o = (struct yoke_conv_options){ 0 };
	bool good = axes > 0 && (!given || !yk_sized_take(o, sizeof *o, given, r->g->call, "yoke_conv_options"));
	o->groups = o->groups ? o->groups : 1;
	attr[0].i = o->groups;
	for (int i = 0; i < axes && good; i++) {
		struct yk_conv_axis a;
		good = number(r, "stride", o->stride[i], 1, 1, &a.stride) &&
		       number(r, "dilation", o->dilation[i], 1, 1, &a.dilation) &&
		       number(r, "lo", o->lo[i], 0, 0, &a.lo) && number(r, "hi", o->hi[i], 0, 0, &a.hi);
		attr[1 + i].i = good ? yk_conv_pack(&a) : 0;
	}
	return good;
}

yoke_tensor *yoke_conv(yoke_tensor *x, yoke_tensor *w, const struct yoke_conv_options *options)
{
	struct yk_rec r = yk_rec_begin_op(YK_CONV, 2, (yoke_tensor *[]){ x, w });
	struct yoke_conv_options o;
	union yoke_attr attr[1 + YK_CONV_AXES];
	const int axes = behind(&r, r.in[0]);
	if (!conv_options(&r, options, axes, &o, attr))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_record(r.g, YK_CONV, 2, r.in, 1u + (uint32_t)axes, attr));
}

yoke_tensor *yoke_conv_transposed(yoke_tensor *x, yoke_tensor *w, const struct yoke_conv_options *options)
{
	struct yk_rec r = yk_rec_begin_op(YK_CONV_X, 2, (yoke_tensor *[]){ x, w });
	struct yoke_conv_options o;
	union yoke_attr attr[1 + 2 * YK_CONV_AXES];
	const int axes = behind(&r, r.in[0]);
	bool good = conv_options(&r, options, axes, &o, attr) && r.in[1] != YK_BAD;
	if (good && r.g->value[r.in[1]].rank != axes + 2) {
		char text[160];
		yk_rec_fail(&r, YOKE_ESHAPE, "w is [C,O/groups,K..], got %s", yk_describe(&r.g->value[r.in[1]], text));
		good = false;
	}
	for (int i = 0; i < axes && good; i++) {
		const struct yk_conv_axis a = yk_conv_axis(attr[1 + i].i);
		const int64_t q = r.g->value[r.in[0]].dims[2 + i], k = r.g->value[r.in[1]].dims[2 + i];
		int64_t n, span;
		if (o.more[i] < 0 || o.more[i] >= a.stride) {
			yk_rec_fail(&r, YOKE_ERANGE, "more %lld: it is below the stride, %lld", (long long)o.more[i],
				    (long long)a.stride);
			good = false;
		} else if (__builtin_mul_overflow(q - 1, a.stride, &n) || __builtin_mul_overflow(k - 1, a.dilation, &span) ||
			   __builtin_add_overflow(n, span + 1 + o.more[i] - a.lo - a.hi, &n)) {
			yk_rec_fail(&r, YOKE_ESHAPE, "axis %d has too many elements", 2 + i);
			good = false;
		} else {
			attr[1 + axes + i].i = n;
		}
	}
	return yk_rec_end(&r, good ? yk_record(r.g, YK_CONV_X, 2, r.in, 1u + 2u * (uint32_t)axes, attr) : YK_BAD);
}

// ---- pools ----

// attr: windows, then each axis as a convolution's.
static bool pool_options(struct yk_rec *r, const struct yoke_pool_options *given, int axes, union yoke_attr *attr)
{
	struct yoke_pool_options o = { 0 };
	bool good = axes > 0 && !yk_sized_take(&o, sizeof o, given, r->g->call, "yoke_pool_options");
	for (int i = 0; i < axes && good; i++) {
		struct yk_conv_axis a;
		good = number(r, "window", o.window[i], 1, 0, &attr[i].i) &&
		       number(r, "stride", o.stride[i], 1, attr[i].i, &a.stride) &&
		       number(r, "dilation", o.dilation[i], 1, 1, &a.dilation) && number(r, "lo", o.lo[i], 0, 0, &a.lo) &&
		       number(r, "hi", o.hi[i], 0, 0, &a.hi);
		attr[axes + i].i = good ? yk_conv_pack(&a) : 0;
	}
	return good;
}

yoke_tensor *yoke_max_pool(yoke_tensor *x, const struct yoke_pool_options *options)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	union yoke_attr attr[2 * YK_CONV_AXES];
	const int axes = behind(&r, r.in[0]);
	if (!pool_options(&r, options, axes, attr))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_record(r.g, YK_POOL_MAX, 1, r.in, 2 * (uint32_t)axes, attr));
}

yoke_tensor *yoke_mean_pool(yoke_tensor *x, const struct yoke_pool_options *options)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	union yoke_attr attr[2 * YK_CONV_AXES];
	const int axes = behind(&r, r.in[0]);
	if (!pool_options(&r, options, axes, attr))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value was = r.g->value[r.in[0]];
	yk_id v = yk_windows_in_front(r.g, yk_up(r.g, r.in[0]), axes, attr, 0);
	v = yk_reduce(r.g, YK_SUM, v, yk_axes_in_front(r.g, v, axes), false);
	if (v == YK_BAD)
		return yk_rec_end(&r, v);
	// how many elements each window has
	yk_id n = yk_broadcast(r.g, yk_lit(r.g, r.g->value[v].dtype, 1), axes, was.dims + 2);
	n = yk_windows_in_front(r.g, n, axes, attr, 0);
	n = yk_reduce(r.g, YK_SUM, n, yk_axes_in_front(r.g, n, axes), false);
	return yk_rec_end(&r, yk_down(r.g, yk_bin(r.g, YK_DIV, v, n), r.in[0]));
}

static yk_id whole(struct yk_graph *g, double value)
{
	return yk_record(g, YK_CONST, 0, NULL, 2, (union yoke_attr[]){ { .i = yoke_i64 }, { .i = (int64_t)value } });
}

static yk_id counting(struct yk_graph *g, int64_t n)
{
	return yk_record(g, YK_IOTA, 0, NULL, 1, &(union yoke_attr){ .i = n });
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
			yk_rec_fail(r, YOKE_ERANGE, "axis %d of %lld elements cannot become one of %lld", 2 + i,
				    (long long)r->g->value[r->in[0]].dims[2 + i], (long long)to[i]);
			good = false;
		}
	return good;
}

// x's windows of floor(i n / to) .. ceil((i+1) n / to) - 1 along each axis: [..,to,most,..], `fill` behind a shorter
// one's end; *there: is an element its window's?
static yk_id uneven(struct yk_graph *g, yk_id x, int axes, const int64_t *to, double fill, yk_id *there)
{
	*there = YK_NIL;
	for (int i = 0; i < axes; i++) {
		if (x == YK_BAD)
			return x;
		const int axis = 2 + 2 * i;
		const int64_t n = g->value[x].dims[axis], most = (n + to[i] - 1) / to[i] + (n % to[i] != 0);
		const yk_id times = yk_bin(g, YK_MUL, counting(g, to[i]), whole(g, (double)n));
		const yk_id start = yk_bin(g, YK_DIV, times, whole(g, (double)to[i]));
		const yk_id end = yk_bin(g, YK_DIV, yk_bin(g, YK_ADD, times, whole(g, (double)(n + to[i] - 1))),
					 whole(g, (double)to[i]));
		const yk_id at = yk_bin(g, YK_ADD, yk_reshape(g, start, 2, (int64_t[]){ to[i], 1 }), counting(g, most));
		yk_id in = yk_bin(g, YK_LT, at, yk_reshape(g, end, 2, (int64_t[]){ to[i], 1 }));
		x = picked(g, x, yk_bin(g, YK_MIN, at, whole(g, (double)(n - 1))), axis);
		if (i + 1 < axes)
			in = yk_reshape(g, in, 4, (int64_t[]){ to[i], most, 1, 1 });
		*there = *there == YK_NIL ? in : yk_bin(g, YK_AND, *there, in);
	}
	return x == YK_BAD ? x : yk_tri(g, YK_SELECT, *there, x, yk_lit(g, g->value[x].dtype, fill));
}

static yoke_tensor *adaptive(const char *call, yoke_tensor *x, const int64_t *to, bool mean)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_LEAF, 0, 1, &x);
	const int axes = behind(&r, r.in[0]);
	if (!sizes(&r, axes, to))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = mean ? yk_up(r.g, r.in[0]) : r.in[0], there;
	const struct yk_value was = r.g->value[v];
	int64_t dims[YOKE_MAX_RANK] = { was.dims[0], was.dims[1] };
	unsigned over = 0;
	double count = 1;
	bool even = true;
	for (int i = 0; i < axes; i++) {
		even &= was.dims[2 + i] % to[i] == 0;
		dims[2 + 2 * i] = to[i];
		dims[3 + 2 * i] = was.dims[2 + i] / to[i];
		count *= (double)dims[3 + 2 * i];
		over |= 1u << (3 + 2 * i);
	}
	v = even ? yk_reshape(r.g, v, 2 + 2 * axes, dims) : uneven(r.g, v, axes, to, mean ? 0 : -INFINITY, &there);
	v = yk_reduce(r.g, mean ? YK_SUM : YK_REDUCE_MAX, v, over, false);
	if (mean && even) {
		v = yk_bin_lit(r.g, YK_MUL, v, 1 / count);
	} else if (mean) {
		const yk_id n = yk_reduce(r.g, YK_SUM, yk_cast(r.g, there, was.dtype), over >> 2, false);
		v = yk_bin(r.g, YK_DIV, v, n);
	}
	return yk_rec_end(&r, v == YK_BAD ? v : yk_down(r.g, v, r.in[0]));
}

yoke_tensor *yoke_adaptive_max_pool(yoke_tensor *x, const int64_t *to)
{
	return adaptive("adaptive_max_pool", x, to, false);
}

yoke_tensor *yoke_adaptive_mean_pool(yoke_tensor *x, const int64_t *to)
{
	return adaptive("adaptive_mean_pool", x, to, true);
}

// ---- resizing ----

static yk_id nearest(struct yk_graph *g, yk_id x, int axis, int64_t n, int64_t to)
{
	struct yk_value v = g->value[x];
	if (to % n == 0) { // repeated
		int64_t dims[YOKE_MAX_RANK];
		memcpy(dims, v.dims, sizeof dims);
		memmove(dims + axis + 2, dims + axis + 1, (size_t)(v.rank - axis - 1) * sizeof *dims);
		dims[axis + 1] = 1;
		x = yk_reshape(g, x, v.rank + 1, dims);
		dims[axis + 1] = to / n;
		x = yk_broadcast(g, x, v.rank + 1, dims);
		v.dims[axis] = to;
		return yk_reshape(g, x, v.rank, v.dims);
	}
	const yk_id at = yk_bin(g, YK_MUL, counting(g, to), whole(g, (double)n));
	return picked(g, x, yk_bin(g, YK_DIV, at, whole(g, (double)to)), axis);
}

// Output i lies at (i + 1/2) n / to - 1/2, which is whole / (2 to).
static yk_id linear(struct yk_graph *g, yk_id x, int axis, int64_t n, int64_t to)
{
	const int rank = g->value[x].rank, dtype = g->value[x].dtype;
	int64_t dims[YOKE_MAX_RANK] = { to, 1 };
	const yk_id unit = whole(g, 2 * (double)to);
	yk_id at = yk_bin(g, YK_MUL, counting(g, to), whole(g, 2 * (double)n));
	at = yk_bin(g, YK_MAX, yk_bin(g, YK_ADD, at, whole(g, (double)(n - to))), whole(g, 0));
	const yk_id lo = yk_bin(g, YK_DIV, at, unit), rest = yk_bin(g, YK_MOD, at, unit);
	const yk_id hi = yk_bin(g, YK_MIN, yk_bin(g, YK_ADD, lo, whole(g, 1)), whole(g, (double)(n - 1)));
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
	const int axes = behind(&r, r.in[0]);
	if (!sizes(&r, axes, to))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = smooth ? yk_up(r.g, r.in[0]) : r.in[0];
	for (int i = 0; i < axes && v != YK_BAD; i++) {
		const int64_t n = r.g->value[v].dims[2 + i];
		if (n != to[i])
			v = smooth ? linear(r.g, v, 2 + i, n, to[i]) : nearest(r.g, v, 2 + i, n, to[i]);
	}
	return yk_rec_end(&r, v == YK_BAD ? v : yk_down(r.g, v, r.in[0]));
}
