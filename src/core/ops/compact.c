// SPDX-License-Identifier: Apache-2.0
// Results whose number depends on values, within a capacity given by the caller: nonzero,
// masked_select, unique; and functions of masks.  All are composed of COMPACT, the positions of the
// true elements of a mask.
#include "config.h"

#include "base/error.h"
#include "graph/handle.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

static const union yoke_attr along_0[] = { { .i = 0 }, { .i = YOKE_REDUCE_SUM }, { .i = 0 } };

// mask [N] -> positions [K], count []; attr: K
static int shape_compact(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (IN(0)->dtype != yoke_bool || IN(0)->rank != 1)
		return fail_one(g, c, YOKE_EDTYPE, "takes a bool [N], got", IN(0));
	if (c->attr[0].i < 0)
		return yk_op_fail(g, c->op, YOKE_ERANGE, "the capacity is %lld",
				  (long long)c->attr[0].i);
	out[0] = (struct yk_value){ .dtype = yoke_i64, .rank = 1, .dims = { c->attr[0].i } };
	out[1] = (struct yk_value){ .dtype = yoke_i64 };
	return want_size(g, c, &out[0]);
}

// Each true element knows from a running sum how many precede it; those beyond the capacity, and
// the others, go to an extra entry.
static void decompose_compact(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int64_t n = g->value[c->in[0]].dims[0], capacity = c->attr[0].i;
	yk_id none = yk_broadcast(g, yk_lit(g, yoke_i64, -1), 1, &capacity),
	      one = yk_cast(g, c->in[0], yoke_i64);
	out[1] = yk_reduce(g, YK_SUM, one, 1, false);
	out[0] = none;
	if (!n || !capacity)
		return;
	yk_id before = yk_bin(g, YK_SUB, yk_record(g, YK_CUMSUM, 1, &one, 3, along_0), one),
	      last = yk_lit(g, yoke_i64, (double)capacity);
	yk_id to = yk_bin(g, YK_MIN, yk_tri(g, YK_SELECT, c->in[0], before, last), last);
	yk_id at = yk_record(g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, to, yk_counting(g, n) }, 1,
			     &(union yoke_attr){ .i = capacity + 1 });
	at = yk_slice_axis(g, at, 0, 0, capacity);
	out[0] = yk_tri(g, YK_SELECT, yk_bin(g, YK_LT, yk_counting(g, capacity), out[1]), at, none);
}

YK_OP(COMPACT) = { .name = "compact",
		   .code = YOKE_OP_COMPACT,
		   .flags = YK_F_BOOL,
		   .min_in = 1,
		   .max_in = 1,
		   .nout = 2,
		   .shape = shape_compact,
		   .decompose = decompose_compact };

// The positions of a flat mask; the count is the value after it.
static yk_id compact(struct yk_graph *g, yk_id mask, int64_t capacity)
{
	return yk_record(g, YK_COMPACT, 1, &mask, 1, &(union yoke_attr){ .i = capacity });
}

static yk_id flat(struct yk_graph *g, yk_id x)
{
	if (x == YK_BAD)
		return x;
	const int64_t n = yk_count(&g->value[x]);
	return yk_reshape(g, x, 1, &n);
}

// x, or whether its elements are not 0
static yk_id truth(struct yk_graph *g, yk_id x)
{
	return x == YK_BAD || g->value[x].dtype == yoke_bool ? x : yk_bin_lit(g, YK_NE, x, 0);
}

// x [N] at positions; 0 where a position is -1
static yk_id taken(struct yk_graph *g, yk_id x, yk_id at)
{
	if (x == YK_BAD || at == YK_BAD)
		return YK_BAD;
	const struct yk_value v = g->value[x], to = g->value[at];
	yk_id none = yk_lit(g, v.dtype, 0);
	if (!v.dims[0])
		return yk_broadcast(g, none, 1, to.dims);
	yk_id y = yk_record(g, YK_GATHER, 2, (yk_id[]){ x, yk_bin_lit(g, YK_MAX, at, 0) }, 1,
			    &(union yoke_attr){ .i = 0 });
	return yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_GE, at, 0), y, none);
}

int64_t yoke_counted(yoke_tensor *count, int64_t capacity)
{
	int64_t n = 0;
	const int err = yoke_read(count, &n, sizeof n);
	if (!err && n > capacity)
		return yk_fail(YOKE_ERANGE,
			       "counted: there are %lld elements, the capacity is %lld",
			       (long long)n, (long long)capacity);
	return err ? err : n;
}

yoke_tensor *yoke_nonzero(yoke_tensor *x, int64_t capacity, yoke_tensor **count)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	struct yk_graph *g = r.g;
	yk_id at = compact(g, flat(g, truth(g, r.in[0])), capacity), row[YOKE_MAX_RANK], y = YK_BAD;
	if (at == YK_BAD)
		return yk_rec_end_with(&r, YK_BAD, 1, &(struct yk_rec_result){ count, YK_BAD });
	const struct yk_value v = g->value[r.in[0]];
	yk_id found = yk_bin_lit(g, YK_GE, at, 0), rest = at;
	for (int k = v.rank - 1; k >= 0; k--) {
		yk_id size = yk_lit(g, yoke_i64, (double)(v.dims[k] ? v.dims[k] : 1)),
		      before = k ? yk_bin(g, YK_DIV, rest, size) : rest;
		row[k] = k ? yk_bin(g, YK_SUB, rest, yk_bin(g, YK_MUL, before, size)) : rest;
		if (v.rank > 1)
			row[k] = yk_tri(g, YK_SELECT, found, row[k], yk_lit(g, yoke_i64, -1));
		row[k] = yk_reshape(g, row[k], 2, (int64_t[]){ 1, capacity });
		rest = before;
	}
	if (v.rank > 1)
		y = yk_record(g, YK_CONCAT, v.rank, row, 1, &(union yoke_attr){ .i = 0 });
	else if (v.rank == 1)
		y = row[0];
	else
		y = yk_broadcast(g, yk_lit(g, yoke_i64, 0), 2, (int64_t[]){ 0, capacity });
	return yk_rec_end_with(&r, y, 1, &(struct yk_rec_result){ count, at + 1 });
}

yoke_tensor *yoke_masked_select(yoke_tensor *x, yoke_tensor *mask, int64_t capacity,
				yoke_tensor **count)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, mask });
	struct yk_graph *g = r.g;
	char a[160], b[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end_with(&r, YK_BAD, 1, &(struct yk_rec_result){ count, YK_BAD });
	const struct yk_value v = g->value[r.in[0]], m = g->value[r.in[1]];
	struct yk_value both = v;
	if (m.dtype != yoke_bool || !yk_dims_broadcast(&both, &m)) {
		yk_rec_fail(&r, m.dtype == yoke_bool ? YOKE_ESHAPE : YOKE_EDTYPE,
			    "takes a mask (bool) that broadcasts with x, got %s and %s",
			    yk_describe(&v, a), yk_describe(&m, b));
		return yk_rec_end_with(&r, YK_BAD, 1, &(struct yk_rec_result){ count, YK_BAD });
	}
	yk_id at = compact(g, flat(g, yk_broadcast_like(g, r.in[1], &both)), capacity);
	yk_id y = taken(g, flat(g, yk_broadcast_like(g, r.in[0], &both)), at);
	return yk_rec_end_with(&r, y, 1,
			       &(struct yk_rec_result){ count, at == YK_BAD ? at : at + 1 });
}

yoke_tensor *yoke_unique(yoke_tensor *x, int64_t capacity, yoke_tensor **inverse,
			 yoke_tensor **counts, yoke_tensor **count)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	struct yk_graph *g = r.g;
	struct yk_rec_result more[] = { { inverse, YK_BAD },
					{ counts, YK_BAD },
					{ count, YK_BAD } };
	if (r.in[0] == YK_BAD)
		return yk_rec_end_with(&r, YK_BAD, 3, more);
	const struct yk_value v = g->value[r.in[0]];
	const int64_t n = yk_count(&v);
	if (capacity < 0 || capacity == INT64_MAX) {
		yk_rec_fail(&r, YOKE_ERANGE, "the capacity is %lld", (long long)capacity);
		return yk_rec_end_with(&r, YK_BAD, 3, more);
	}
	yk_id s = yk_record(g, YK_SORT, 1, (yk_id[]){ flat(g, r.in[0]) }, 2,
			    (union yoke_attr[]){ { .i = n }, { .i = 0 } });
	if (s == YK_BAD)
		return yk_rec_end_with(&r, YK_BAD, 3, more);
	yk_id first = n ? yk_bin(g, YK_NE, yk_slice_axis(g, s, 0, 1, n - 1),
				 yk_slice_axis(g, s, 0, 0, n - 1)) :
			  yk_broadcast(g, yk_lit(g, yoke_bool, 0), 1, &n);
	if (n)
		first = yk_pad(g, first, (int64_t[]){ 1 }, (int64_t[]){ 0 }, 1);
	yk_id at = compact(g, first, capacity + 1); // one more, where the last value's elements end
	if (at == YK_BAD)
		return yk_rec_end_with(&r, YK_BAD, 3, more);
	more[2].value = at + 1;
	yk_id y = taken(g, s, yk_slice_axis(g, at, 0, 0, capacity));
	if (counts) {
		yk_id end = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, at, 0),
				   yk_lit(g, yoke_i64, (double)n), at);
		more[1].value = yk_bin(g, YK_SUB, yk_slice_axis(g, end, 0, 1, capacity),
				       yk_slice_axis(g, end, 0, 0, capacity));
	}
	if (inverse) {
		yk_id rank = yk_cast(g, first, yoke_i64);
		rank = yk_bin_lit(g, YK_SUB, yk_record(g, YK_CUMSUM, 1, &rank, 3, along_0), 1);
		rank = yk_record(g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, s + 1, rank }, 1,
				 &(union yoke_attr){ .i = n });
		more[0].value = yk_reshape(g, rank, v.rank, v.dims);
	}
	return yk_rec_end_with(&r, y, 3, more);
}

// ---- masks ----

yoke_tensor *yoke_where(yoke_tensor *condition, yoke_tensor *x, yoke_tensor *y)
{
	struct yk_rec r = yk_rec_begin_op(YK_SELECT, 2, (yoke_tensor *[]){ x, y });
	yk_id c = r.in[0] == YK_BAD || r.in[1] == YK_BAD ? YK_BAD :
							   yk_operand(r.ctx, condition, yoke_bool);
	if (c == YK_NIL)
		yk_rec_fail(&r, YOKE_EINVAL, "the condition is YOKE_NONE");
	if (c == YK_NIL || c == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_tri(r.g, YK_SELECT, truth(r.g, c), r.in[0], r.in[1]));
}

yoke_tensor *yoke_masked_fill(yoke_tensor *x, yoke_tensor *mask, yoke_tensor *value)
{
	struct yk_rec r = yk_rec_begin_op(YK_SELECT, 3, (yoke_tensor *[]){ x, mask, value });
	char a[160], b[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD || r.in[2] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = r.g->value[r.in[0]];
	yk_id y = yk_tri(r.g, YK_SELECT, r.in[1], r.in[2], r.in[0]);
	if (y != YK_BAD && !yk_same_shape(&v, &r.g->value[y])) {
		yk_rec_fail(&r, YOKE_ESHAPE,
			    "the mask or the value does not broadcast to x, got %s and %s",
			    yk_describe(&v, a), yk_describe(&r.g->value[r.in[1]], b));
		y = YK_BAD;
	}
	return yk_rec_end(&r, y);
}

// x, mask, v -> y
static int shape_masked_scatter(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	struct yk_value both = *out = *IN(0);
	if (IN(1)->dtype != yoke_bool || !yk_dims_broadcast(&both, IN(1)) ||
	    !yk_same_shape(&both, out))
		return fail_two(g, c, IN(1)->dtype == yoke_bool ? YOKE_ESHAPE : YOKE_EDTYPE,
				"takes a mask (bool) that broadcasts to x, got", out, IN(1));
	if (IN(2)->dtype != out->dtype || (!yk_count(IN(2)) && yk_count(out)))
		return fail_two(g, c, IN(2)->dtype == out->dtype ? YOKE_ESHAPE : YOKE_EDTYPE,
				"takes elements of x's dtype, got", out, IN(2));
	return 0;
}

// A running sum gives each chosen element its position; gathering fails if there are none.
static void decompose_masked_scatter(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value to = g->value[c->in[0]];
	if (!yk_count(&to)) {
		out[0] = yk_un(g, YK_CONTIGUOUS, c->in[0]);
		return;
	}
	yk_id chosen = flat(g, yk_broadcast_like(g, c->in[1], &to)),
	      one = yk_cast(g, chosen, yk_count(&to) < INT32_MAX ? yoke_i32 : yoke_i64);
	yk_id at = yk_bin_lit(
		g, YK_MAX, yk_bin_lit(g, YK_SUB, yk_record(g, YK_CUMSUM, 1, &one, 3, along_0), 1),
		0);
	yk_id y = yk_record(g, YK_GATHER, 2, (yk_id[]){ flat(g, c->in[2]), at }, 1,
			    &(union yoke_attr){ .i = 0 });
	out[0] =
		yk_reshape(g, yk_tri(g, YK_SELECT, chosen, y, flat(g, c->in[0])), to.rank, to.dims);
}

static void grad_masked_scatter(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const struct yk_value to = g->value[n.y], v = g->value[n.in[2]];
	gin[0] = yk_tri(g, YK_SELECT, n.in[1], lit_like(g, gout[0], 0), gout[0]);
	const yk_id at = compact(g, flat(g, yk_broadcast_like(g, n.in[1], &to)), yk_count(&v));
	const yk_id y = taken(g, flat(g, gout[0]), at);
	gin[2] = y == YK_BAD ? y : yk_reshape(g, y, v.rank, v.dims);
}

YK_OP(MASKED_SCATTER) = { .name = "masked_scatter",
			  .min_in = 3,
			  .max_in = 3,
			  .nout = 1,
			  .shape = shape_masked_scatter,
			  .grad = grad_masked_scatter,
			  .decompose = decompose_masked_scatter };

yoke_tensor *yoke_masked_scatter(yoke_tensor *x, yoke_tensor *mask, yoke_tensor *v)
{
	struct yk_rec r = yk_rec_begin(3, (yoke_tensor *[]){ x, mask, v });
	return yk_rec_end(&r, yk_tri(r.g, YK_MASKED_SCATTER, r.in[0], r.in[1], r.in[2]));
}
