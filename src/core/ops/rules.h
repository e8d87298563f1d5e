// SPDX-License-Identifier: Apache-2.0
// Helpers of the op families: checks with error messages for shape rules; functions for gradients
// and decompositions.
#ifndef YK_RULES_H
#define YK_RULES_H

#include "graph/op.h"

#define IN(k) (&g->value[c->in[k]])

// Is operand k present?
static inline bool has(const struct yk_call *c, uint32_t k)
{
	return c->in[k] != YK_NIL;
}

static inline int fail_two(struct yk_graph *g, const struct yk_call *c, int code,
			   const char *why, const struct yk_value *a,
			   const struct yk_value *b)
{
	char ta[160], tb[160];
	return yk_op_fail(g, c->op, code, "%s %s and %s", why, yk_describe(a, ta),
			  yk_describe(b, tb));
}

static inline int fail_one(struct yk_graph *g, const struct yk_call *c, int code,
			   const char *why, const struct yk_value *a)
{
	char ta[160];
	return yk_op_fail(g, c->op, code, "%s %s", why, yk_describe(a, ta));
}

static inline int want_float(struct yk_graph *g, const struct yk_call *c,
			     const struct yk_value *v)
{
	if (!yk_is_float(v->dtype))
		return fail_one(g, c, YOKE_EDTYPE, "takes floating point, got", v);
	return 0;
}

static inline int want_index(struct yk_graph *g, const struct yk_call *c,
			     const struct yk_value *v)
{
	if (v->dtype != yoke_i32 && v->dtype != yoke_i64)
		return fail_one(g, c, YOKE_EDTYPE, "indices are i32 or i64, got", v);
	return 0;
}

// Operand k, if present, must have exactly this dtype and shape.
static inline int want_like(struct yk_graph *g, const struct yk_call *c, uint32_t k,
			    const struct yk_value *like)
{
	if (!has(c, k))
		return 0;
	if (IN(k)->dtype != like->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", like, IN(k));
	if (!yk_same_shape(IN(k), like))
		return fail_two(g, c, YOKE_ESHAPE, "shapes differ:", like, IN(k));
	return 0;
}

// Checks that the size in elements and in bytes fits 63 bits. Axes of size 0 are left out of the
// product, so that slices fit too.
static inline int want_size(struct yk_graph *g, const struct yk_call *c,
			    const struct yk_value *v)
{
	int64_t n = (int64_t)yoke_dtype_size(v->dtype);
	for (int i = 0; i < v->rank; i++) {
		if (v->dims[i] < 0)
			return fail_one(g, c, YOKE_ESHAPE, "negative size in", v);
		if (v->dims[i] && __builtin_mul_overflow(n, v->dims[i], &n))
			return fail_one(g, c, YOKE_ESHAPE, "too many elements:", v);
	}
	return 0;
}

// Attribute 0 must be an axis of v.
static inline int want_attr_axis(struct yk_graph *g, const struct yk_call *c,
		     const struct yk_value *v)
{
	if (c->attr[0].i < 0 || c->attr[0].i >= v->rank)
		return fail_one(g, c, YOKE_ESHAPE, "no such axis in", v);
	return 0;
}

// Broadcasting: `to` gets the common dims; false, and unchanged, if the shapes do not broadcast.
bool yk_dims_broadcast(struct yk_value *to, const struct yk_value *b);

// ---- gradients and decompositions ----

// A node's operands, attributes and first result; a copy, since appending reallocates the arrays.
struct yk_node_copy {
	yk_id in[12], y;
	uint32_t nin;
	union yoke_attr attr[3 * YOKE_MAX_RANK];
	uint16_t op;
};
struct yk_node_copy yk_node_copy(const struct yk_graph *, uint32_t node);
// Appends a *_backward op whose results are the cotangents of operands which[0 .. n - 1], as far as
// these are present.
void yk_append_backward(struct yk_graph *, struct yk_call *, uint32_t n, const yk_id *operand,
			const uint32_t *which, yk_id *gin);

// 0 .. n - 1 as i64 [n]
yk_id yk_counting(struct yk_graph *, int64_t n);
// x itself, through a gather that fails with ERANGE unless all elements are in 0 .. max
yk_id yk_within(struct yk_graph *, yk_id x, int64_t max);
// zeros of x's shape, with v added at indices idx along an axis
yk_id yk_add_along(struct yk_graph *, yk_id x, yk_id idx, yk_id v, int axis);
// x broadcast to the shape of `like`; x itself if it has that shape
yk_id yk_broadcast_like(struct yk_graph *, yk_id x, const struct yk_value *like);
// x without axes i and j, and with their diagonal k above the main one as the last axis: a view
// where x is contiguous
yk_id yk_diagonal(struct yk_graph *, yk_id x, int64_t k, int i, int j);
// elements start .. start + size - 1 along an axis
yk_id yk_slice_axis(struct yk_graph *, yk_id x, int axis, int64_t start, int64_t size);
unsigned yk_last_axis(const struct yk_graph *, yk_id x); // its mask
// Along the last axis: [..,N] -> [..,1] (sum, mean); [..,1] -> [..] (drop); [..] -> [..,1] (add)
yk_id yk_sum_last(struct yk_graph *, yk_id x), yk_mean_last(struct yk_graph *, yk_id x);
yk_id yk_drop_last(struct yk_graph *, yk_id x), yk_add_last(struct yk_graph *, yk_id x);

// A literal of x's dtype.
static inline yk_id lit_like(struct yk_graph *g, yk_id x, double value)
{
	return x == YK_BAD ? x : yk_lit(g, g->value[x].dtype, value);
}

// The neutral elements of maximum and minimum: the lowest and the highest number, infinite for
// floating point.
double yk_dtype_min(int dtype), yk_dtype_max(int dtype);

yk_shape_fn yk_shape_map, yk_shape_same;
yk_grad_fn yk_grad_contiguous;

#endif
