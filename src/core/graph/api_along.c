// SPDX-License-Identifier: Apache-2.0
// The public ops along one axis: running totals, sorting, picking and adding.

#include "config.h"

#include <string.h>

#include "graph/record.h"

static yoke_tensor *scan(int op, int kind, yoke_tensor *x, int axis, int reverse)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_row(op)->name, op, 0, 1, &x);
	int k = yk_rec_axis(&r, r.in[0], axis);
	if (k < 0)
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_record(r.g, op, 1, r.in, 3,
					(union yoke_attr[]){ { .i = k },
							     { .i = kind },
							     { .i = reverse != 0 } }));
}

yoke_tensor *yoke_cumsum(yoke_tensor *x, int axis, int reverse)
{
	return scan(YK_CUMSUM, YOKE_REDUCE_SUM, x, axis, reverse);
}

yoke_tensor *yoke_cumprod(yoke_tensor *x, int axis, int reverse)
{
	return scan(YK_CUMPROD, YOKE_REDUCE_PROD, x, axis, reverse);
}

// The first *k along an axis (NULL: all); the row sorts the last one.
static yoke_tensor *sort(const char *call, yoke_tensor *x, int axis, const int64_t *k,
			 int descending, yoke_tensor **indices)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_SORT, 0, 1, &x);
	yk_id v = r.in[0], out;
	int at = yk_rec_axis(&r, v, axis);
	if (at < 0 || (v = yk_rec_last(&r, v, at)) == YK_BAD)
		goto bad;
	const struct yk_value *x1 = &r.g->value[v];
	union yoke_attr a[2] = { { .i = k ? *k : x1->dims[x1->rank - 1] },
				 { .i = descending != 0 } };
	struct yk_call c = { .op = YK_SORT, .nin = 1, .in = &v, .nattr = 2, .attr = a };
	if (yk_append(r.g, &c, &out) < 0)
		goto bad;
	yk_id value = yk_rec_last(&r, out, at), index = yk_rec_last(&r, out + 1, at);
	if (value == YK_BAD || index == YK_BAD)
		goto bad;
	if (indices && !(*indices = yk_handle_of(r.ctx, index)))
		goto bad;
	return yk_rec_end(&r, value);
bad:
	if (indices)
		*indices = NULL;
	return yk_rec_end(&r, YK_BAD);
}

yoke_tensor *yoke_sort(yoke_tensor *x, int axis, int descending, yoke_tensor **indices)
{
	return sort("sort", x, axis, NULL, descending, indices);
}

yoke_tensor *yoke_topk(yoke_tensor *x, int64_t k, int axis, int largest,
		       yoke_tensor **indices)
{
	return sort("topk", x, axis, &k, largest, indices);
}

yoke_tensor *yoke_largest(yoke_tensor *x, yoke_tensor *carried, int64_t k, yoke_tensor **places, yoke_tensor **rest)
{
	struct yk_rec r = yk_rec_begin_with(YK_LEAF, 1u << 1, 2, (yoke_tensor *[]){ x, carried });
	yk_id flat[2] = { r.in[0], r.in[1] }, out;
	if (places)
		*places = NULL;
	if (rest)
		*rest = NULL;
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value like = r.g->value[r.in[0]];
	const int64_t n = yk_count(&like);
	if (r.in[1] != YK_NIL && !yk_same_shape(&like, &r.g->value[r.in[1]])) {
		yk_rec_fail(&r, YOKE_ESHAPE, "what is carried has another shape than x");
		return yk_rec_end(&r, YK_BAD);
	}
	for (int i = 0; i < 2; i++)
		if (flat[i] != YK_NIL)
			flat[i] = yk_reshape(r.g, flat[i], 1, &n);
	struct yk_call c = { .op = YK_LARGEST, .nin = 2, .in = flat, .nattr = 1, .attr = &(union yoke_attr){ .i = k } };
	if (flat[0] == YK_BAD || flat[1] == YK_BAD || yk_append(r.g, &c, &out) < 0)
		return yk_rec_end(&r, YK_BAD);
	const yk_id left = rest ? yk_reshape(r.g, out + 2, like.rank, like.dims) : out;
	if (left == YK_BAD || (places && !(*places = yk_handle_of(r.ctx, out + 1))) ||
	    (rest && !(*rest = yk_handle_of(r.ctx, left))))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, out);
}

// idx with the dims of `like`, which it broadcasts to; its own along the axis.
static yk_id spread(struct yk_graph *g, yk_id idx, yk_id like, int axis)
{
	struct yk_value to = g->value[like], v = g->value[idx];
	if (v.rank != to.rank)
		return idx; // the row says what does not fit
	to.dims[axis] = v.dims[axis];
	return yk_same_shape(&to, &v) ? idx : yk_broadcast(g, idx, to.rank, to.dims);
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
