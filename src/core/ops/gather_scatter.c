// SPDX-License-Identifier: Apache-2.0
// Gathering and scattering by indices: rows (gather, embedding, scatter_add) and elements along an
// axis.
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

// x, idx; attr: axis
static int shape_gather(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *idx = IN(1);
	int64_t axis = c->attr[0].i;
	if (want_index(g, c, idx) < 0)
		return YOKE_EDTYPE;
	if (axis < 0 || axis >= x->rank || x->rank - 1 + idx->rank > YOKE_MAX_RANK)
		return fail_two(g, c, YOKE_ESHAPE, "no such axis, or too many axes:", x,
				idx);
	*out = (struct yk_value){ .dtype = x->dtype };
	for (int i = 0; i < axis; i++)
		out->dims[out->rank++] = x->dims[i];
	for (int i = 0; i < idx->rank; i++)
		out->dims[out->rank++] = idx->dims[i];
	for (int i = (int)axis + 1; i < x->rank; i++)
		out->dims[out->rank++] = x->dims[i];
	return want_size(g, c, out);
}

// x or none, idx, v; attr: rows of the result
static int shape_scatter_add(struct yk_graph *g, const struct yk_call *c,
			 struct yk_value *out)
{
	const struct yk_value *idx = IN(1), *v = IN(2);
	if (want_index(g, c, idx) < 0)
		return YOKE_EDTYPE;
	if (v->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", v);
	if (v->rank < idx->rank ||
	    memcmp(v->dims, idx->dims, sizeof *v->dims * idx->rank) != 0)
		return fail_two(g, c, YOKE_ESHAPE, "indices and rows do not fit:", idx,
				v);
	*out = (struct yk_value){ .dtype = v->dtype,
				  .rank = 1,
				  .dims = { c->attr[0].i } };
	for (int i = idx->rank; i < v->rank; i++) {
		if (out->rank == YOKE_MAX_RANK)
			return fail_two(g, c, YOKE_ESHAPE, "too many axes:", idx, v);
		out->dims[out->rank++] = v->dims[i];
	}
	return want_like(g, c, 0, out);
}

// idx must have the shape of x except along the axis
static int want_along(struct yk_graph *g, const struct yk_call *c,
		      const struct yk_value *x, const struct yk_value *idx)
{
	struct yk_value like = *idx;
	if (want_index(g, c, idx) < 0)
		return YOKE_EDTYPE;
	if (want_attr_axis(g, c, x) < 0)
		return YOKE_ESHAPE;
	if (idx->rank == x->rank)
		like.dims[c->attr[0].i] = x->dims[c->attr[0].i];
	if (!yk_same_shape(&like, x))
		return fail_two(g, c, YOKE_ESHAPE,
				"shapes may differ along the axis only:", x, idx);
	return 0;
}

// x, idx; attr: axis
static int shape_take_along(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(1);
	out->dtype = IN(0)->dtype;
	int err = want_along(g, c, IN(0), IN(1));
	return err ? err : want_size(g, c, out);
}

// x or none, idx, v; attr: axis, size of the axis
static int shape_scatter_add_along(struct yk_graph *g, const struct yk_call *c,
			       struct yk_value *out)
{
	const struct yk_value *idx = IN(1), *v = IN(2);
	if (v->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", v);
	if (!yk_same_shape(idx, v))
		return fail_two(g, c, YOKE_ESHAPE, "indices and values do not fit:", idx,
				v);
	*out = *v;
	if (want_attr_axis(g, c, out) < 0)
		return YOKE_ESHAPE;
	out->dims[c->attr[0].i] = c->attr[1].i;
	int err = want_along(g, c, out, idx);
	if (!err)
		err = want_size(g, c, out);
	return err ? err : want_like(g, c, 0, out);
}

static void grad_gather(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	struct yk_value x = g->value[n.in[0]], idx = g->value[n.in[1]], y = g->value[n.y];
	int axis = (int)n.attr[0].i;
	yk_id v = gout[0];
	int order[YOKE_MAX_RANK], back[YOKE_MAX_RANK];
	if (axis) { // rows first: y [A..,I..,R..] -> [I..,A..,R..]
		for (int i = 0; i < y.rank; i++)
			order[i] = i < idx.rank        ? axis + i :
				   i < idx.rank + axis ? i - idx.rank :
							 i;
		v = yk_permute(g, v, order);
	}
	union yoke_attr rows = { .i = x.dims[axis] };
	v = yk_record(g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, n.in[1], v }, 1, &rows);
	if (axis) { // [N,A..,R..] -> [A..,N,R..]
		for (int i = 0; i < x.rank; i++)
			back[i] = i < axis ? i + 1 : i == axis ? 0 : i;
		v = yk_permute(g, v, back);
	}
	gin[0] = v;
}

static void grad_scatter_add(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	if (n.in[0] != YK_NIL)
		gin[0] = gout[0];
	gin[2] = yk_record(g, YK_GATHER, 2, (yk_id[]){ gout[0], n.in[1] }, 1,
			   &(union yoke_attr){ .i = 0 });
}

static void grad_take_along(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]);
	gin[0] = yk_add_along(g, in[0], in[1], gout[0],
			   (int)yk_attrs(g, &g->node[node])[0].i);
}

static void grad_scatter_add_along(struct yk_graph *g, uint32_t node, const yk_id *gout,
			       yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]);
	union yoke_attr axis = yk_attrs(g, &g->node[node])[0];
	if (in[0] != YK_NIL)
		gin[0] = gout[0];
	gin[2] = yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ gout[0], in[1] }, 1, &axis);
}

YK_OP(GATHER) = { .name = "gather", .code = YOKE_OP_GATHER, .min_in = 2, .max_in = 2, .nout = 1,
	.shape = shape_gather, .grad = grad_gather };
YK_OP(SCATTER_ADD) = { .name = "scatter_add", .code = YOKE_OP_SCATTER_ADD, .min_in = 3, .max_in = 3,
	.cast = YK_CAST_WIDEST, .nout = 1, .shape = shape_scatter_add, .grad = grad_scatter_add,
	.inplace = { { 0, 0 } }, .ninplace = 1 };
YK_OP(TAKE_ALONG) = { .name = "take_along", .code = YOKE_OP_GATHER_ALONG, .min_in = 2,
	.max_in = 2, .nout = 1, .shape = shape_take_along,
	.grad = grad_take_along };
YK_OP(SCATTER_ADD_ALONG) = { .name = "scatter_add_along",
			     .cast = YK_CAST_WIDEST,
			     .code = YOKE_OP_SCATTER_ADD_ALONG,
			     .min_in = 3,
			     .max_in = 3,
			     .nout = 1,
			     .shape = shape_scatter_add_along,
			     .grad = grad_scatter_add_along,
			     .inplace = { { 0, 0 } },
			     .ninplace = 1 };

static yk_id gather(struct yk_rec *r, int k)
{
	return yk_record(r->g, YK_GATHER, 2, r->in, 1, &(union yoke_attr){ .i = k });
}

yoke_tensor *yoke_gather(yoke_tensor *x, yoke_tensor *idx, int axis)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, idx });
	int k = yk_rec_axis(&r, r.in[0], axis);
	return yk_rec_end(&r, k < 0 ? YK_BAD : gather(&r, k));
}

yoke_tensor *yoke_embedding(yoke_tensor *w, yoke_tensor *ids)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ w, ids });
	char text[160];
	if (r.in[0] != YK_BAD && r.g->value[r.in[0]].rank != 2) {
		yk_rec_fail(&r, YOKE_ESHAPE, "w is [N,C], got %s",
			    yk_describe(&r.g->value[r.in[0]], text));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, gather(&r, 0));
}

yoke_tensor *yoke_scatter_add(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v)
{
	struct yk_rec r = yk_rec_begin_op(YK_SCATTER_ADD, 3, (yoke_tensor *[]){ x, idx, v });
	yk_id y = YK_BAD;
	if (r.in[0] != YK_BAD && !r.g->value[r.in[0]].rank)
		yk_rec_fail(&r, YOKE_ESHAPE,
			    "takes rows to add to, got a tensor of rank 0");
	else if (r.in[0] != YK_BAD)
		y = yk_record(r.g, YK_SCATTER_ADD, 3, r.in, 1,
			      &(union yoke_attr){ .i = r.g->value[r.in[0]].dims[0] });
	return yk_rec_end(&r, y);
}

// Broadcasts idx to the dims of `like`, except along the axis.
static yk_id spread(struct yk_graph *g, yk_id idx, yk_id like, int axis)
{
	struct yk_value to = g->value[like], v = g->value[idx];
	if (v.rank != to.rank)
		return idx; // the shape rule reports the mismatch
	to.dims[axis] = v.dims[axis];
	return yk_broadcast_like(g, idx, &to);
}

yoke_tensor *yoke_take_along(yoke_tensor *x, yoke_tensor *idx, int axis)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, idx });
	int k = yk_rec_axis(&r, r.in[0], axis);
	if (k < 0 || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	r.in[1] = spread(r.g, r.in[1], r.in[0], k);
	return yk_rec_end(&r, yk_record(r.g, YK_TAKE_ALONG, 2, r.in, 1,
					&(union yoke_attr){ .i = k }));
}

yoke_tensor *yoke_scatter_add_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v,
				    int axis)
{
	struct yk_rec r = yk_rec_begin_op(YK_SCATTER_ADD_ALONG, 3, (yoke_tensor *[]){ x, idx, v });
	int k = yk_rec_axis(&r, r.in[0], axis);
	if (k < 0 || r.in[1] == YK_BAD || r.in[2] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	r.in[1] = spread(r.g, r.in[1], r.in[0], k);
	return yk_rec_end(&r, yk_record(r.g, YK_SCATTER_ADD_ALONG, 3, r.in, 2,
					(union yoke_attr[]){
						{ .i = k },
						{ .i = r.g->value[r.in[0]].dims[k] } }));
}

// ---- scattering ----

// The elements of x at these positions of an axis.
static yk_id take(struct yk_graph *g, yk_id x, yk_id places, int axis)
{
	return yk_record(g, YK_TAKE_ALONG, 2, (yk_id[]){ x, places }, 1,
			 &(union yoke_attr){ .i = axis });
}

// For values sorted by target: combines each one by op with the earlier values of the same target.
static yk_id joined(struct yk_graph *g, yk_id v, yk_id to, int axis, int op)
{
	const int64_t n = g->value[to].dims[axis];
	for (int64_t by = 1; by < n && v != YK_BAD; by *= 2) {
		yk_id same = yk_bin(g, YK_EQ, to, yk_moved(g, to, axis, by, false, -1));
		v = yk_tri(g, YK_SELECT, same, yk_bin(g, op, yk_moved(g, v, axis, by, false, 0), v),
			   v);
	}
	return v;
}

// Sorts the values by target: *to the targets, *last marks the last value of each target.
static int sorted(struct yk_rec *r, int axis, yk_id *v, yk_id *to, yk_id *last)
{
	struct yk_graph *g = r->g;
	yk_id idx = yk_rec_last(r, r->in[1], axis);
	if (idx == YK_BAD)
		return yk_error_last();
	const struct yk_value i = g->value[idx];
	const yk_id out = yk_record(g, YK_SORT, 1, &idx, 2,
				    (union yoke_attr[]){ { .i = i.dims[i.rank - 1] }, { .i = 0 } });
	if (out == YK_BAD)
		return yk_error_last();
	*to = yk_rec_last(r, out, axis);
	*v = take(g, r->in[2], yk_rec_last(r, out + 1, axis), axis);
	*last = *to == YK_BAD ? YK_BAD : yk_bin(g, YK_NE, *to, yk_moved(g, *to, axis, 1, true, -1));
	return *v == YK_BAD || *last == YK_BAD ? yk_error_last() : 0;
}

yoke_tensor *yoke_scatter_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v, int axis,
				int kind)
{
	static const int op[] = { [YOKE_SCATTER_MAX] = YK_MAX,
				  [YOKE_SCATTER_MIN] = YK_MIN,
				  [YOKE_SCATTER_PROD] = YK_MUL };
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
	if (yk_op_def(c.op)->shape(g, &c, &as) < 0)
		return yk_rec_end(&r, YK_BAD);
	if (!yk_count(&given)) // no values
		return yk_rec_end(&r, yk_un(g, YK_CONTIGUOUS, r.in[0]));
	if (sorted(&r, k, &values, &to, &last) < 0)
		return yk_rec_end(&r, YK_BAD);
	if (kind != YOKE_SCATTER_SET)
		values = joined(g, values, to, k, op[kind]);
	if (values == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	// only the last value of each target is added, the others are 0
	yk_id there = yk_add_along(
		g, r.in[0], to, yk_tri(g, YK_SELECT, last, values, yk_lit(g, given.dtype, 0)), k);
	yk_id hit = yk_add_along(g, r.in[0], to, yk_cast(g, last, yoke_i32), k);
	if (kind != YOKE_SCATTER_SET)
		there = yk_bin(g, op[kind], r.in[0], there);
	hit = yk_bin_lit(g, YK_NE, hit, 0);
	return yk_rec_end(&r, yk_tri(g, YK_SELECT, hit, there, r.in[0]));
}

// ---- several indices ----

// The flat index among the first n axes of x of each position, or -2, which no scatter takes, where
// an index is out of range.
static yk_id flat_index(struct yk_graph *g, const struct yk_value *x, int n, const yk_id *idx)
{
	yk_id flat = yk_lit(g, yoke_i64, 0), good = YK_NIL;
	for (int k = 0; k < n; k++) {
		yk_id i = yk_cast(g, idx[k], yoke_i64);
		flat = k ? yk_bin(g, YK_ADD, yk_bin_lit(g, YK_MUL, flat, (double)x->dims[k]), i) :
			   i;
		yk_id in = yk_bin(g, YK_AND, yk_bin_lit(g, YK_GE, i, 0),
				  yk_bin_lit(g, YK_LT, i, (double)x->dims[k]));
		good = k ? yk_bin(g, YK_AND, good, in) : in;
	}
	return yk_tri(g, YK_SELECT, good, flat, yk_lit(g, yoke_i64, -2));
}

static yk_id index_put(struct yk_rec *r, int n, const yk_id *idx, yk_id v, bool accumulate)
{
	struct yk_graph *g = r->g;
	const struct yk_value x = g->value[r->in[0]];
	struct yk_value at = { .rank = 0 }, rows = { .dtype = x.dtype };
	int64_t all[YOKE_MAX_RANK] = { 1 };
	char a[160], b[160];
	for (int k = 0; k < n; k++) {
		const struct yk_value i = g->value[idx[k]];
		if ((i.dtype != yoke_i32 && i.dtype != yoke_i64) || !yk_dims_broadcast(&at, &i)) {
			yk_rec_fail(r,
				    i.dtype == yoke_i32 || i.dtype == yoke_i64 ? YOKE_ESHAPE :
				    YOKE_EDTYPE,
				    "takes indices of i32 or i64 that broadcast, got %s for %s",
				    yk_describe(&i, a), yk_describe(&x, b));
			return YK_BAD;
		}
	}
	if (n > x.rank || at.rank + x.rank - n > YOKE_MAX_RANK) {
		yk_rec_fail(r, YOKE_ESHAPE, "%d indices are too many for %s", n,
			    yk_describe(&x, a));
		return YK_BAD;
	}
	for (int k = 0; k < n; k++)
		all[0] *= x.dims[k];
	for (int i = 0; i < at.rank; i++)
		rows.dims[rows.rank++] = at.dims[i];
	for (int k = n; k < x.rank; k++)
		rows.dims[rows.rank++] = all[k - n + 1] = x.dims[k];
	v = yk_broadcast_like(g, v, &rows);
	yk_id to = yk_broadcast_like(g, flat_index(g, &x, n, idx), &at);
	yk_id in[] = { yk_reshape(g, r->in[0], x.rank - n + 1, all), to, v };
	yk_id y = accumulate ? yk_record(g, YK_SCATTER_ADD, 3, in, 1,
					 &(union yoke_attr){ .i = all[0] }) :
			       yk_record(g, YK_SCATTER_SET, 3, in, 0, NULL);
	return yk_reshape(g, y, x.rank, x.dims);
}

yoke_tensor *yoke_index_put(yoke_tensor *x, int n, yoke_tensor *const *idx, yoke_tensor *v,
			    int accumulate)
{
	struct yk_rec r = yk_rec_begin_op(YK_SCATTER_SET, 2, (yoke_tensor *[]){ x, v });
	yk_id in[YOKE_MAX_RANK], y = YK_BAD;
	bool good = r.in[0] != YK_BAD && r.in[1] != YK_BAD && yk_rec_array(&r, n, idx, "idx");
	if (good && (n < 1 || n > YOKE_MAX_RANK)) {
		yk_rec_fail(&r, YOKE_EINVAL, "%d indices", n);
		good = false;
	}
	for (int k = 0; k < n && good; k++) {
		in[k] = yk_operand(r.ctx, idx[k], yoke_i64);
		if (in[k] == YK_NIL)
			yk_rec_fail(&r, YOKE_EINVAL, "index %d is YOKE_NONE", k);
		good = in[k] != YK_NIL && in[k] != YK_BAD;
	}
	if (good)
		y = index_put(&r, n, in, r.in[1], accumulate);
	return yk_rec_end(&r, y);
}
