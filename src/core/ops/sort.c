// SPDX-License-Identifier: Apache-2.0
// Sorting, and the k largest elements.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

// attr: k, descending
static int shape_sort(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (!x->rank)
		return fail_one(g, c, YOKE_ESHAPE, "takes at least one axis, got", x);
	int64_t k = c->attr[0].i, n = x->dims[x->rank - 1];
	if (k < 0 || k > n)
		return yk_op_fail(g, c->op, YOKE_ERANGE,
				  "the first %lld of %lld elements", (long long)k,
				  (long long)n);
	out[0] = *x;
	out[0].dims[x->rank - 1] = k;
	out[1] = out[0];
	out[1].dtype = yoke_i64;
	return want_size(g, c, &out[1]);
}

static void grad_sort(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	yk_id x = yk_ins(g, &g->node[node])[0], places = g->node[node].out + 1;
	if (gout[0] != YK_NIL)
		gin[0] = yk_add_along(g, x, places, gout[0], g->value[x].rank - 1);
}

// x [n], addend [n] or none -> values [k], positions i32 [k], rest [n]; attr: k
static int shape_largest(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (x->dtype != yoke_f32)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32, got", x);
	if (x->rank != 1 || x->dims[0] > INT32_MAX)
		return fail_one(g, c, YOKE_ESHAPE, "places are i32, and there are too many in", x);
	const int64_t k = c->attr[0].i;
	if (k < 0 || k > x->dims[0])
		return yk_op_fail(g, c->op, YOKE_ERANGE, "the largest %lld of %lld elements",
				  (long long)k, (long long)x->dims[0]);
	out[0] = out[1] = out[2] = *x;
	out[0].dims[0] = out[1].dims[0] = k;
	out[1].dtype = yoke_i32;
	return want_like(g, c, 1, x);
}

// x [n] with 0 at the positions `places` [k]
static yk_id without(struct yk_graph *g, yk_id x, yk_id places)
{
	if (x == YK_BAD || places == YK_BAD)
		return YK_BAD;
	const struct yk_value at = g->value[places];
	yk_id ones = yk_broadcast(g, yk_lit(g, yoke_f32, 1), 1, at.dims);
	yk_id taken = yk_add_along(g, x, places, ones, 0);
	return yk_tri(g, YK_SELECT, yk_bin(g, YK_GT, taken, yk_lit(g, yoke_f32, 0)),
		      yk_lit(g, yoke_f32, 0), x);
}

static yk_id sorted(struct yk_graph *g, yk_id x, int64_t k, bool descending)
{
	const yk_id out = yk_record(g, YK_SORT, 1, &x, 2,
				    (union yoke_attr[]){ { .i = k }, { .i = descending } });
	return out != YK_BAD && descending ? out + 1 : out;
}

static void decompose_largest(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int64_t k = c->attr[0].i;
	const yk_id a = has(c, 1) ? yk_bin(g, YK_ADD, c->in[0], c->in[1]) : c->in[0];
	yk_id key = yk_record(g, YK_BITCAST, 1, (yk_id[]){ yk_un(g, YK_ABS, a) }, 1,
			      &(union yoke_attr){ .i = yoke_i32 });
	key = yk_tri(g, YK_SELECT, yk_bin(g, YK_NE, a, a), yk_lit(g, yoke_i32, INT32_MAX), key);
	const yk_id places = sorted(g, sorted(g, key, k, true), k, false);
	out[1] = places == YK_BAD ? YK_BAD : yk_cast(g, places, yoke_i32);
	out[0] =
		yk_record(g, YK_GATHER, 2, (yk_id[]){ a, out[1] }, 1, &(union yoke_attr){ .i = 0 });
	out[2] = without(g, a, out[1]);
}

static void grad_largest(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id *in = yk_ins(g, &g->node[node]), places = g->node[node].out + 1;
	const bool two = in[1] != YK_NIL;
	yk_id cot = YK_NIL;
	if (gout[0] != YK_NIL)
		cot = yk_add_along(g, in[0], places, gout[0], 0);
	if (gout[2] != YK_NIL) {
		const yk_id left = without(g, gout[2], places);
		cot = cot == YK_NIL ? left : yk_bin(g, YK_ADD, cot, left);
	}
	gin[0] = cot;
	if (two)
		gin[1] = cot;
}

YK_OP(SORT) = { .name = "sort", .code = YOKE_OP_SORT, .flags = YK_F_PARTIAL, .min_in = 1,
	.max_in = 1, .nout = 2, .shape = shape_sort, .grad = grad_sort };
// x, addend or none -> values, positions, rest
YK_OP(LARGEST) = { .name = "largest",
		   .code = YOKE_OP_LARGEST,
		   .flags = YK_F_FLOAT | YK_F_PARTIAL,
		   .min_in = 2,
		   .max_in = 2,
		   .nout = 3,
		   .shape = shape_largest,
		   .grad = grad_largest,
		   .decompose = decompose_largest,
		   .inplace = { { 0, 2 }, { 1, 2 } },
		   .ninplace = 2 };

// The first *k along an axis (NULL: all); the op sorts the last axis.
static yoke_tensor *sort(const char *call, yoke_tensor *x, int axis, const int64_t *k,
			 int descending, yoke_tensor **indices)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_SORT, 0, 1, &x);
	yk_id v = r.in[0];
	int at = yk_rec_axis(&r, v, axis);
	if (at < 0 || (v = yk_rec_last(&r, v, at)) == YK_BAD)
		goto bad;
	const struct yk_value *x1 = &r.g->value[v];
	union yoke_attr a[2] = { { .i = k ? *k : x1->dims[x1->rank - 1] },
				 { .i = descending != 0 } };
	const yk_id out = yk_record(r.g, YK_SORT, 1, &v, 2, a);
	if (out == YK_BAD)
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

yoke_tensor *yoke_largest(yoke_tensor *x, yoke_tensor *carried, int64_t k, yoke_tensor **places,
			  yoke_tensor **rest)
{
	struct yk_rec r = yk_rec_begin_with(YK_LEAF, 1u << 1, 2, (yoke_tensor *[]){ x, carried });
	yk_id flat[2] = { r.in[0], r.in[1] };
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
	const yk_id out = yk_record(r.g, YK_LARGEST, 2, flat, 1, &(union yoke_attr){ .i = k });
	if (out == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const yk_id left = rest ? yk_reshape(r.g, out + 2, like.rank, like.dims) : out;
	if (left == YK_BAD || (places && !(*places = yk_handle_of(r.ctx, out + 1))) ||
	    (rest && !(*rest = yk_handle_of(r.ctx, left))))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, out);
}
