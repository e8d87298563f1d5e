// SPDX-License-Identifier: Apache-2.0
// What runs, searches and scatters along an axis, made of maps, moves, sorting and picking.  Running results are made of
// log2 n steps, each of which joins every element with the one twice as far off as the step before (Hillis and Steele
// 1986); gradients go through them.
#include "config.h"

#include <math.h>

#include "base/error.h"
#include "graph/record.h"
#include "yoke-math.h"

// Every element joined with the one `by` before it, where there is one: elsewhere `nothing` is, the neutral element.
typedef yk_id join_fn(struct yk_graph *, yk_id x, yk_id before);

static yk_id running(struct yk_graph *g, yk_id x, int axis, double nothing, join_fn *join)
{
	const int64_t n = x == YK_BAD ? 0 : g->value[x].dims[axis];
	for (int64_t by = 1; by < n && x != YK_BAD; by *= 2)
		x = join(g, x, yk_moved(g, x, axis, by, false, nothing));
	return x;
}

// ---- extremes ----

static double min_of(int dtype)
{
	switch (dtype) {
	case yoke_i8: return INT8_MIN;
	case yoke_u8: return 0;
	case yoke_i32: return INT32_MIN;
	case yoke_i64: return -0x1p63;
	}
	return -INFINITY;
}

static double max_of(int dtype)
{
	switch (dtype) {
	case yoke_i8: return INT8_MAX;
	case yoke_u8: return UINT8_MAX;
	case yoke_i32: return INT32_MAX;
	case yoke_i64: return 0x1p63; // saturates
	}
	return INFINITY;
}

static yk_id larger(struct yk_graph *g, yk_id x, yk_id before)
{
	return yk_bin(g, YK_MAX, x, before);
}

static yk_id smaller(struct yk_graph *g, yk_id x, yk_id before)
{
	return yk_bin(g, YK_MIN, x, before);
}

static yoke_tensor *extreme(const char *call, yoke_tensor *x, int axis, bool most)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_MAX, 0, 1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	if (k < 0)
		return yk_rec_end(&r, YK_BAD);
	const int dtype = r.g->value[r.in[0]].dtype;
	// gradients of half precision are sums of many, in f32
	yk_id v = yk_is_float(dtype) ? yk_up(r.g, r.in[0]) : r.in[0];
	v = running(r.g, v, k, most ? min_of(dtype) : max_of(dtype), most ? larger : smaller);
	return yk_rec_end(&r, yk_down(r.g, v, r.in[0]));
}

yoke_tensor *yoke_cummax(yoke_tensor *x, int axis)
{
	return extreme("cummax", x, axis, true);
}

yoke_tensor *yoke_cummin(yoke_tensor *x, int axis)
{
	return extreme("cummin", x, axis, false);
}

// log(exp a + exp b) = max + log(1 + exp(-|a - b|)).  Of equal operands each has half of the gradient, infinite ones too.
static yk_id log_add(struct yk_graph *g, yk_id a, yk_id b)
{
	if (a == YK_BAD || b == YK_BAD)
		return YK_BAD;
	yk_id equal = yk_bin(g, YK_EQ, a, b), zero = yk_lit(g, g->value[a].dtype, 0);
	yk_id apart = yk_bin(g, YK_SUB, yk_tri(g, YK_SELECT, equal, zero, a), yk_tri(g, YK_SELECT, equal, zero, b));
	yk_id more = yk_un(g, YK_LOG1P, yk_un(g, YK_EXP, yk_un(g, YK_NEG, yk_un(g, YK_ABS, apart))));
	return yk_bin(g, YK_ADD, yk_bin(g, YK_MAX, a, b), more);
}

// As `running`, but the first `by` elements stay as they are: -inf beside -inf would get half of their gradient.
static yk_id running_log(struct yk_graph *g, yk_id x, int axis)
{
	const int64_t n = x == YK_BAD ? 0 : g->value[x].dims[axis];
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; x != YK_BAD && i < g->value[x].rank; i++)
		dims[i] = i == axis ? n : 1;
	for (int64_t by = 1; by < n && x != YK_BAD; by *= 2) {
		yk_id place = yk_record(g, YK_IOTA, 0, NULL, 1, &(union yoke_attr){ .i = n });
		yk_id first = yk_bin_lit(g, YK_LT, yk_reshape(g, place, g->value[x].rank, dims), (double)by);
		x = yk_tri(g, YK_SELECT, first, x, log_add(g, x, yk_moved(g, x, axis, by, false, -INFINITY)));
	}
	return x;
}

yoke_tensor *yoke_logcumsumexp(yoke_tensor *x, int axis)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	const int k = yk_rec_axis(&r, r.in[0], axis);
	if (k < 0 || !yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_down(r.g, running_log(r.g, yk_up(r.g, r.in[0]), k), r.in[0]));
}

// ---- searching ----

yoke_tensor *yoke_searchsorted(yoke_tensor *sorted, yoke_tensor *v, int right)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ sorted, v });
	struct yk_graph *g = r.g;
	char a[160], b[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value s = g->value[r.in[0]], shape = g->value[r.in[1]];
	if (s.rank != 1 || s.dtype != shape.dtype || s.dtype == yoke_bool) {
		yk_rec_fail(&r, s.rank != 1 ? YOKE_ESHAPE : YOKE_EDTYPE, "takes numbers of one dtype, the first [N], got %s and %s",
			    yk_describe(&s, a), yk_describe(&shape, b));
		return yk_rec_end(&r, YK_BAD);
	}
	const int64_t n = s.dims[0], many = yk_count(&shape);
	yk_id x = yk_reshape(g, r.in[1], 1, &many), none = yk_lit(g, yoke_i64, 0), at = yk_broadcast(g, none, 1, &many);
	int64_t step = 1;
	while (step <= n / 2)
		step *= 2;
	for (; n && step; step /= 2) { // as many as are known to lie before it
		yk_id next = yk_bin_lit(g, YK_ADD, at, (double)step);
		yk_id last = yk_bin_lit(g, YK_SUB, yk_bin_lit(g, YK_MIN, next, (double)n), 1);
		yk_id element = yk_record(g, YK_GATHER, 2, (yk_id[]){ r.in[0], last }, 1, &(union yoke_attr){ .i = 0 });
		yk_id before = yk_bin(g, right ? YK_LE : YK_LT, element, x);
		before = yk_bin(g, YK_AND, before, yk_bin_lit(g, YK_LE, next, (double)n));
		at = yk_tri(g, YK_SELECT, before, next, at);
	}
	return yk_rec_end(&r, yk_reshape(g, at, shape.rank, shape.dims));
}

// ---- scattering ----

// The elements at these places of an axis.
static yk_id take(struct yk_graph *g, yk_id x, yk_id places, int axis)
{
	return yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ x, places }, 1, &(union yoke_attr){ .i = axis });
}

// Of values sorted by where they go, each joined with those before it that go there, too.
static yk_id joined(struct yk_graph *g, yk_id v, yk_id to, int axis, int op)
{
	const int64_t n = g->value[to].dims[axis];
	for (int64_t by = 1; by < n && v != YK_BAD; by *= 2) {
		yk_id same = yk_bin(g, YK_EQ, to, yk_moved(g, to, axis, by, false, -1));
		v = yk_tri(g, YK_SELECT, same, yk_bin(g, op, yk_moved(g, v, axis, by, false, 0), v), v);
	}
	return v;
}

static yk_id put(struct yk_graph *g, yk_id idx, yk_id v, int axis, int64_t n)
{
	return yk_record(g, YK_SCATTER_ADD_ALONG, 3, (yk_id[]){ YK_NIL, idx, v }, 2,
			 (union yoke_attr[]){ { .i = axis }, { .i = n } });
}

// The values sorted by where they go, those places, and which of several is the last.
static int sorted(struct yk_rec *r, int axis, yk_id *v, yk_id *to, yk_id *last)
{
	struct yk_graph *g = r->g;
	yk_id idx = yk_rec_last(r, r->in[1], axis), out;
	if (idx == YK_BAD)
		return yk_error_last();
	const struct yk_value i = g->value[idx];
	struct yk_call c = { .op = YK_SORT, .nin = 1, .in = &idx, .nattr = 2,
			     .attr = (union yoke_attr[]){ { .i = i.dims[i.rank - 1] }, { .i = 0 } } };
	const int err = yk_append(g, &c, &out);
	if (err)
		return err;
	*to = yk_rec_last(r, out, axis);
	*v = take(g, r->in[2], yk_rec_last(r, out + 1, axis), axis);
	*last = *to == YK_BAD ? YK_BAD : yk_bin(g, YK_NE, *to, yk_moved(g, *to, axis, 1, true, -1));
	return *v == YK_BAD || *last == YK_BAD ? yk_error_last() : 0;
}

yoke_tensor *yoke_scatter_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v, int axis, int kind)
{
	static const int op[] = { [YOKE_SCATTER_MAX] = YK_MAX, [YOKE_SCATTER_MIN] = YK_MIN, [YOKE_SCATTER_PROD] = YK_MUL };
	struct yk_rec r = yk_rec_begin_op(YK_SCATTER_ADD_ALONG, 3, (yoke_tensor *[]){ x, idx, v });
	struct yk_graph *g = r.g;
	const int k = yk_rec_axis(&r, r.in[0], axis);
	yk_id values = YK_BAD, to = YK_BAD, last = YK_BAD;
	if (k < 0 || r.in[1] == YK_BAD || r.in[2] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	if (kind < YOKE_SCATTER_SET || kind > YOKE_SCATTER_PROD) {
		yk_rec_fail(&r, YOKE_EINVAL, "kind %d is none", kind);
		return yk_rec_end(&r, YK_BAD);
	}
	const struct yk_value shape = g->value[r.in[0]], given = g->value[r.in[2]];
	struct yk_call c = { .op = YK_SCATTER_ADD_ALONG, .nin = 3, .in = r.in, .nattr = 2,
			     .attr = (union yoke_attr[]){ { .i = k }, { .i = shape.dims[k] } } };
	struct yk_value as;
	if (yk_op_row(c.op)->shape(g, &c, &as) < 0)
		return yk_rec_end(&r, YK_BAD);
	if (!yk_count(&given)) // nothing is put anywhere
		return yk_rec_end(&r, yk_un(g, YK_CONTIGUOUS, r.in[0]));
	if (sorted(&r, k, &values, &to, &last) < 0)
		return yk_rec_end(&r, YK_BAD);
	if (kind != YOKE_SCATTER_SET)
		values = joined(g, values, to, k, op[kind]);
	if (values == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	// one value goes to each place, the others are 0
	yk_id there = put(g, to, yk_tri(g, YK_SELECT, last, values, yk_lit(g, given.dtype, 0)), k, shape.dims[k]);
	yk_id hit = put(g, to, yk_cast(g, last, yoke_i32), k, shape.dims[k]);
	if (kind != YOKE_SCATTER_SET)
		there = yk_bin(g, op[kind], r.in[0], there);
	hit = yk_bin_lit(g, YK_NE, hit, 0);
	return yk_rec_end(&r, yk_tri(g, YK_SELECT, hit, there, r.in[0]));
}
