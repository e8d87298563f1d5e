// SPDX-License-Identifier: Apache-2.0
// Shape rules: what dtypes and shapes an op takes and gives.  Run when it is recorded, so that an
// error names the call, the scope and both shapes.

#include "config.h"

#include <string.h>

#include "graph/shape.h"

// dims of b join to's by the rules of broadcasting; to is as it was where they do not
static bool broadcast(struct yk_value *to, const struct yk_value *b)
{
	int rank = to->rank > b->rank ? to->rank : b->rank;
	int64_t dims[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++) {
		int ia = i - (rank - to->rank), ib = i - (rank - b->rank);
		int64_t da = ia < 0 ? 1 : to->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
		if (da != db && da != 1 && db != 1)
			return false;
		dims[i] = da == 1 ? db : da;
	}
	memcpy(to->dims, dims, sizeof *dims * (size_t)rank);
	to->rank = (uint8_t)rank;
	return true;
}

// attr: dtype, bits
int yk_shape_leaf(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	(void)g;
	*out = (struct yk_value){ .dtype = (uint8_t)c->attr[0].i };
	return 0;
}

// attr: dims; IOTA is i64, RAND_BITS i32
int yk_shape_fill(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = (struct yk_value){ .dtype = c->op == YK_IOTA ? yoke_i64 : yoke_i32,
				  .rank = (uint8_t)c->nattr };
	for (uint32_t i = 0; i < c->nattr; i++)
		out->dims[i] = c->attr[i].i;
	return want_size(g, c, out);
}

int yk_shape_map(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_op_row *row = yk_op_row(c->op);
	uint32_t first = c->op == YK_SELECT;
	bool grows = c->op == YK_CAST || c->op == YK_UNIFORM;
	const struct yk_value *a = IN(first);
	if (first && IN(0)->dtype != yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "the condition is bool, got", IN(0));
	if (row->flags & YK_F_FLOAT && want_float(g, c, a) < 0)
		return YOKE_EDTYPE;
	if (row->flags & YK_F_BITS && yk_is_float(a->dtype))
		return fail_one(g, c, YOKE_EDTYPE,
				row->flags & YK_F_BOOL ? "takes integers or bool, got" :
							 "takes integers, got", a);
	if (!(row->flags & YK_F_BOOL) && a->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", a);
	if (c->op == YK_UNIFORM && a->dtype != yoke_i32)
		return fail_one(g, c, YOKE_EDTYPE, "takes random bits (i32), got", a);
	*out = *a;
	for (uint32_t k = 0; k < c->nin; k++) {
		const struct yk_value *b = IN(k);
		if (b == a)
			continue;
		if (k >= first && b->dtype != a->dtype)
			return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", a, b);
		if (yk_same_shape(out, b))
			continue;
		if (!broadcast(out, b))
			return fail_two(g, c, YOKE_ESHAPE, "shapes do not broadcast:", out, b);
		grows = true;
	}
	if (row->flags & YK_F_COMPARE)
		out->dtype = yoke_bool;
	if (c->op == YK_CAST || c->op == YK_UNIFORM)
		out->dtype = c->op == YK_CAST ? (uint8_t)c->attr[0].i : yoke_f32;
	return grows ? want_size(g, c, out) : 0; // else as large as an operand
}

// attr: mask of axes, keep
int yk_shape_reduce(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	unsigned axes = (unsigned)c->attr[0].i;
	bool arg = c->op == YK_ARGMAX || c->op == YK_ARGMIN;
	if (x->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", x);
	if (axes != YOKE_ALL && axes >> x->rank)
		return fail_one(g, c, YOKE_ERANGE, "no such axis in", x);
	*out = (struct yk_value){ .dtype = arg ? yoke_i64 : x->dtype };
	for (int i = 0; i < x->rank; i++) {
		if (!(axes >> i & 1)) {
			out->dims[out->rank++] = x->dims[i];
			continue;
		}
		if (!x->dims[i] && c->op != YK_SUM && c->op != YK_PROD)
			return fail_one(g, c, YOKE_ESHAPE,
					"nothing to choose from along an empty axis of",
					x);
		if (c->attr[1].i)
			out->dims[out->rank++] = 1;
	}
	return 0;
}

// attr: flags of yoke_matmul, dtype of the result
int yk_shape_matmul(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *a = IN(0), *b = IN(1);
	bool ta = c->attr[0].i & YOKE_TA, tb = c->attr[0].i & YOKE_TB;
	if (a->dtype != b->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", a, b);
	if (a->dtype == yoke_bool)
		return fail_two(g, c, YOKE_EDTYPE, "takes numbers, got", a, b);
	if (a->rank < 2 || b->rank < 2)
		return fail_two(g, c, YOKE_ESHAPE, "takes matrices, got", a, b);
	const int dtype = (int)c->attr[1].i;
	const bool byte = a->dtype == yoke_i8 || a->dtype == yoke_u8;
	if (dtype != a->dtype && (dtype != yoke_f32 || yk_acc(a->dtype) != yoke_f32) && (dtype != yoke_i32 || !byte))
		return yk_op_fail(g, c->op, YOKE_EDTYPE,
				  "of %s the result is %s, or f32 of f16 and bf16, i32 of i8 and u8, not %s",
				  yoke_dtype_name(a->dtype), yoke_dtype_name(a->dtype),
				  yoke_dtype_name(dtype));
	int64_t m = a->dims[a->rank - 2 + ta], k = a->dims[a->rank - 1 - ta];
	int64_t kb = b->dims[b->rank - 2 + tb], n = b->dims[b->rank - 1 - tb];
	struct yk_value lead = *a, lead_b = *b;
	lead.rank -= 2;
	lead_b.rank -= 2;
	if (k != kb || !broadcast(&lead, &lead_b))
		return fail_two(g, c, YOKE_ESHAPE, "shapes do not fit:", a, b);
	*out = lead;
	out->dtype = (uint8_t)dtype;
	out->dims[out->rank++] = m;
	out->dims[out->rank++] = n;
	return want_size(g, c, out);
}

int yk_shape_reshape(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	int64_t n = yk_count(x), known = 1;
	int open = -1;
	*out = (struct yk_value){ .dtype = x->dtype, .rank = (uint8_t)c->nattr };
	for (uint32_t i = 0; i < c->nattr; i++) {
		out->dims[i] = c->attr[i].i;
		if (out->dims[i] == -1 && open < 0)
			open = (int)i;
		else if (out->dims[i] < 0 ||
			 __builtin_mul_overflow(known, out->dims[i], &known))
			return fail_two(g, c, YOKE_ESHAPE, "elements do not fit:", x,
					out);
	}
	struct yk_value want = *out;
	if (open >= 0) {
		if (!known || n % known)
			return fail_two(g, c, YOKE_ESHAPE, "elements do not fit:", x,
					&want);
		out->dims[open] = n / known;
	} else if (known != n) {
		return fail_two(g, c, YOKE_ESHAPE, "elements do not fit:", x, &want);
	}
	return want_size(g, c, out);
}

int yk_shape_permute(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	unsigned seen = 0;
	*out = *x;
	for (int i = 0; i < x->rank; i++) {
		int64_t k = c->attr[i].i;
		if (k < 0 || k >= x->rank || seen >> k & 1)
			return fail_one(
				g, c, YOKE_ESHAPE,
				"the order names an axis twice or one there is not, for",
				x);
		seen |= 1u << k;
		out->dims[i] = x->dims[k];
	}
	return 0;
}

int yk_shape_broadcast(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	*out = (struct yk_value){ .dtype = x->dtype, .rank = (uint8_t)c->nattr };
	for (uint32_t i = 0; i < c->nattr; i++)
		out->dims[i] = c->attr[i].i;
	struct yk_value to = *out;
	if (want_size(g, c, out) < 0)
		return YOKE_ESHAPE;
	if (x->rank > out->rank || !broadcast(&to, x) || !yk_same_shape(&to, out))
		return fail_two(g, c, YOKE_ESHAPE, "does not broadcast:", x, out);
	return 0;
}

// attr: start, step, size of each axis
int yk_shape_slice(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	*out = *x;
	for (int i = 0; i < x->rank; i++) {
		int64_t start = c->attr[i].i, step = c->attr[x->rank + i].i;
		int64_t size = c->attr[2 * x->rank + i].i, last;
		if (size < 0 || !step ||
		    (size && (start < 0 || start >= x->dims[i] ||
			      __builtin_mul_overflow(size - 1, step, &last) ||
			      __builtin_add_overflow(last, start, &last) || last < 0 ||
			      last >= x->dims[i])))
			return yk_op_fail(g, c->op, YOKE_ERANGE,
					  "axis %d has %lld elements; start %lld step "
					  "%lld size %lld leaves it",
					  i, (long long)x->dims[i], (long long)start,
					  (long long)step, (long long)size);
		out->dims[i] = size;
	}
	return 0;
}

int yk_shape_same(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(0);
	return 0;
}

// attr: dtype
int yk_shape_bitcast(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const int last = x->rank - 1;
	char text[160];
	*out = *x;
	out->dtype = (uint8_t)c->attr[0].i;
	const int64_t was = (int64_t)yoke_dtype_size(x->dtype), size = (int64_t)yoke_dtype_size(out->dtype);
	if (out->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "bytes may be other than 0 and 1, which no bool is: compare", x);
	if (was == size)
		return 0;
	if (last < 0)
		return fail_one(g, c, YOKE_ESHAPE, "no axis takes up the difference in size, of", x);
	if (__builtin_mul_overflow(x->dims[last], was, &out->dims[last]) || out->dims[last] % size)
		return yk_op_fail(g, c->op, YOKE_ESHAPE, "the last axis of %s holds no whole number of %s",
				  yk_describe(x, text), yoke_dtype_name(out->dtype));
	out->dims[last] /= size;
	return want_size(g, c, out);
}

// attr: lo, hi of each axis, bits of the value
int yk_shape_pad(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	*out = *x;
	for (int i = 0; i < x->rank; i++)
		if (c->attr[i].i < 0 || c->attr[x->rank + i].i < 0 ||
		    __builtin_add_overflow(out->dims[i], c->attr[i].i, &out->dims[i]) ||
		    __builtin_add_overflow(out->dims[i], c->attr[x->rank + i].i,
					   &out->dims[i]))
			return fail_one(g, c, YOKE_ESHAPE,
					"negative or too much padding for", x);
	return want_size(g, c, out);
}

// attr: axis
int yk_shape_concat(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	int64_t axis = c->attr[0].i;
	if (axis < 0 || axis >= IN(0)->rank)
		return fail_one(g, c, YOKE_ESHAPE, "no such axis in", IN(0));
	*out = *IN(0);
	for (uint32_t k = 1; k < c->nin; k++) {
		struct yk_value other = *IN(k);
		if (other.dtype != out->dtype)
			return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", out, &other);
		int64_t more = other.rank == out->rank ? other.dims[axis] : 0;
		if (other.rank == out->rank)
			other.dims[axis] = out->dims[axis];
		if (!yk_same_shape(&other, out))
			return fail_two(g, c, YOKE_ESHAPE, "shapes do not fit:", IN(0),
					IN(k));
		if (__builtin_add_overflow(out->dims[axis], more, &out->dims[axis]))
			return fail_two(g, c, YOKE_ESHAPE, "too many elements:", IN(0), IN(k));
	}
	return want_size(g, c, out);
}

// x, v; attr: starts
int yk_shape_slice_update(struct yk_graph *g, const struct yk_call *c,
			  struct yk_value *out)
{
	const struct yk_value *x = IN(0), *v = IN(1);
	if (x->dtype != v->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", x, v);
	if (x->rank != v->rank)
		return fail_two(g, c, YOKE_ESHAPE, "ranks differ:", x, v);
	for (int i = 0; i < x->rank; i++)
		if (c->attr[i].i < 0 || c->attr[i].i > x->dims[i] - v->dims[i])
			return fail_two(g, c, YOKE_ERANGE,
					"the part leaves the whole:", x, v);
	*out = *x;
	return 0;
}

// x, idx; attr: axis
int yk_shape_gather(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
int yk_shape_scatter_add(struct yk_graph *g, const struct yk_call *c,
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

// attr: logarithm
int yk_shape_softmax(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (want_float(g, c, IN(0)) < 0)
		return YOKE_EDTYPE;
	if (!IN(0)->rank)
		return fail_one(g, c, YOKE_ESHAPE, "takes at least one axis, got", IN(0));
	*out = *IN(0);
	return 0;
}

int yk_shape_softmax_backward(struct yk_graph *g, const struct yk_call *c,
			  struct yk_value *out)
{
	*out = *IN(0);
	return want_like(g, c, 1, out);
}

int yk_norm_dtype(const struct yk_graph *g, const struct yk_call *c)
{
	yk_id like = c->in[0];
	for (uint32_t k = c->nin - 1; k; k--)
		if (has(c, k))
			like = c->in[k];
	return g->value[like].dtype;
}

int yk_want_norm_weights(struct yk_graph *g, const struct yk_call *c, int64_t n)
{
	const struct yk_value *x = IN(0);
	struct yk_value row = { .rank = 1, .dims = { n }, .dtype = (uint8_t)yk_norm_dtype(g, c) };
	if (row.dtype != x->dtype && row.dtype != yk_acc(x->dtype))
		row.dtype = x->dtype;
	for (uint32_t k = 1; k < c->nin; k++)
		if (want_like(g, c, k, &row) < 0)
			return YOKE_ESHAPE;
	return 0;
}

// x, w [, b] -> y [, mean], rstd; w and b of x's dtype or of its accumulator's
int yk_shape_norm(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	if (want_float(g, c, x) < 0)
		return YOKE_EDTYPE;
	if (!x->rank || !x->dims[x->rank - 1])
		return fail_one(g, c, YOKE_ESHAPE, "takes a last axis with elements, got",
				x);
	if (yk_want_norm_weights(g, c, x->dims[x->rank - 1]) < 0)
		return YOKE_ESHAPE;
	struct yk_value stat = *x;
	stat.rank--;
	stat.dtype = (uint8_t)yk_acc(x->dtype);
	out[0] = *x;
	out[1] = stat;
	if (c->op == YK_LAYER_NORM)
		out[2] = stat;
	return 0;
}

// x, w, [mean,] rstd, g -> dx, dw [, db]; attr: dtype of dw and db
int yk_shape_norm_backward(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	struct yk_value row = { .dtype = (uint8_t)c->attr[0].i,
				.rank = 1,
				.dims = { x->dims[x->rank - 1] } };
	out[0] = *x;
	out[1] = row;
	if (c->op == YK_LAYER_NORM_BACK)
		out[2] = row;
	return want_like(g, c, c->nin - 1, x);
}

// logits [N,V], ids [N] -> loss [], lse [N]
int yk_shape_cross_entropy(struct yk_graph *g, const struct yk_call *c,
			   struct yk_value *out)
{
	const struct yk_value *x = IN(0), *ids = IN(1);
	if (want_float(g, c, x) < 0 || want_index(g, c, ids) < 0)
		return YOKE_EDTYPE;
	if (x->rank != 2 || ids->rank != 1 || ids->dims[0] != x->dims[0] || !x->dims[1])
		return fail_two(g, c, YOKE_ESHAPE, "wants [N,V] and [N], got", x, ids);
	out[0] = (struct yk_value){ .dtype = (uint8_t)yk_acc(x->dtype) };
	out[1] = out[0];
	out[1].rank = 1;
	out[1].dims[0] = x->dims[0];
	return 0;
}

int yk_shape_cross_entropy_backward(struct yk_graph *g, const struct yk_call *c,
				struct yk_value *out)
{
	*out = *IN(0);
	return 0;
}

// q [B,T,H,D], k v [B,S,G,D], mask, key, step, n -> o, lse [B,H,T]
int yk_shape_attention(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *q = IN(0), *k = IN(1);
	if (want_float(g, c, q) < 0)
		return YOKE_EDTYPE;
	if (k->dtype != q->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", q, k);
	if (q->rank != 4 || k->rank != 4 || q->dims[0] != k->dims[0] ||
	    q->dims[3] != k->dims[3] || !k->dims[2] || q->dims[2] % k->dims[2] ||
	    !q->dims[3])
		return fail_two(g, c, YOKE_ESHAPE,
				"wants [B,T,H,D] and [B,S,G,D] with G dividing H, got", q,
				k);
	if (want_like(g, c, 2, k) < 0)
		return YOKE_ESHAPE;
	int64_t full[4] = { q->dims[0], q->dims[2], q->dims[1], k->dims[1] };
	if (has(c, 3)) {
		const struct yk_value *m = IN(3);
		bool good = m->rank == 4;
		if (m->dtype != q->dtype && m->dtype != yk_acc(q->dtype))
			return fail_two(g, c, YOKE_EDTYPE,
					"the mask is added, and of the dtype of q or f32 "
					"beside halves: got", q, m);
		for (int i = 0; good && i < 4; i++)
			good = m->dims[i] == full[i] || (i < 2 && m->dims[i] == 1);
		if (!good)
			return fail_two(g, c, YOKE_ESHAPE,
					"the mask is [B|1,H|1,T,S], got", q, m);
	}
	if (has(c, 6) && IN(6)->dtype != yoke_i64)
		return fail_one(g, c, YOKE_EDTYPE, "the number of keys is i64, got", IN(6));
	if (has(c, 6) && IN(6)->rank && (IN(6)->rank > 1 || IN(6)->dims[0] != full[0]))
		return fail_two(g, c, YOKE_ESHAPE,
				"there is one number of keys, or one for each of the batch: got",
				q, IN(6));
	out[0] = *q;
	out[1] = (struct yk_value){ .dtype = (uint8_t)yk_acc(q->dtype),
				    .rank = 3,
				    .dims = { full[0], full[1], full[2] } };
	return 0;
}

// q k v mask key step o lse g n -> dq dk dv
int yk_shape_attention_backward(struct yk_graph *g, const struct yk_call *c,
			    struct yk_value *out)
{
	for (int i = 0; i < 3; i++)
		out[i] = *IN(i);
	return want_like(g, c, 8, IN(0));
}

// The same operands -> dmask
int yk_shape_attention_mask_backward(struct yk_graph *g, const struct yk_call *c,
				 struct yk_value *out)
{
	*out = *IN(3);
	return want_like(g, c, 8, IN(0));
}
