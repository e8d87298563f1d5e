// SPDX-License-Identifier: Apache-2.0
// What shape rules share: the checks they make, and how they say what does not fit.
#ifndef YK_SHAPE_H
#define YK_SHAPE_H

#include "graph/op.h"

#define IN(k) (&g->value[c->in[k]])

// Is operand k there?
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

// Operand k, when it is there, has exactly this dtype and shape.
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

// Elements and bytes of a shape fit 63 bits, also of its parts: axes of no elements do not count.
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

#endif
