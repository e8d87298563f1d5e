// SPDX-License-Identifier: Apache-2.0
// Views and copies that rearrange elements: reshape, permute, broadcast, slice, pad, concat,
// bitcast.
#include "config.h"

#include <stdlib.h>

#include "graph/record.h"
#include "ops/rules.h"

static int shape_reshape(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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

static int shape_permute(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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

static int shape_broadcast(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	*out = (struct yk_value){ .dtype = x->dtype, .rank = (uint8_t)c->nattr };
	for (uint32_t i = 0; i < c->nattr; i++)
		out->dims[i] = c->attr[i].i;
	struct yk_value to = *out;
	if (want_size(g, c, out) < 0)
		return YOKE_ESHAPE;
	if (x->rank > out->rank || !yk_dims_broadcast(&to, x) || !yk_same_shape(&to, out))
		return fail_two(g, c, YOKE_ESHAPE, "does not broadcast:", x, out);
	return 0;
}

// attr: start, step, size of each axis
static int shape_slice(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
static int shape_bitcast(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0);
	const int last = x->rank - 1;
	char text[160];
	*out = *x;
	out->dtype = (uint8_t)c->attr[0].i;
	const int64_t was = (int64_t)yoke_dtype_size(x->dtype),
		      size = (int64_t)yoke_dtype_size(out->dtype);
	if (out->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE,
				"bytes may be other than 0 and 1, which no bool is: compare", x);
	if (was == size)
		return 0;
	if (last < 0)
		return fail_one(g, c, YOKE_ESHAPE, "no axis takes up the difference in size, of",
				x);
	if (__builtin_mul_overflow(x->dims[last], was, &out->dims[last]) || out->dims[last] % size)
		return yk_op_fail(g, c->op, YOKE_ESHAPE,
				  "the last axis of %s holds no whole number of %s",
				  yk_describe(x, text), yoke_dtype_name(out->dtype));
	out->dims[last] /= size;
	return want_size(g, c, out);
}

// attr: lo, hi of each axis, bits of the value
static int shape_pad(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
static int shape_concat(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
static int shape_slice_update(struct yk_graph *g, const struct yk_call *c,
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

static void grad_reshape(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_value x = g->value[yk_node_copy(g, node).in[0]];
	gin[0] = yk_reshape(g, gout[0], x.rank, x.dims);
}

static void grad_permute(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	int inverse[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[n.y].rank; i++)
		inverse[n.attr[i].i] = i;
	gin[0] = yk_permute(g, gout[0], inverse);
}

static void grad_broadcast(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	gin[0] = yk_sum_to(g, gout[0], yk_node_copy(g, node).in[0]);
}

void yk_grad_contiguous(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	(void)g;
	(void)node;
	gin[0] = gout[0];
}

// The slice of x that begins at `start` and has the shape of `like`.
static yk_id part(struct yk_graph *g, yk_id x, const int64_t *start, yk_id like)
{
	if (x == YK_BAD)
		return YK_BAD;
	int64_t step[YOKE_MAX_RANK], size[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[like].rank; i++) {
		step[i] = 1;
		size[i] = g->value[like].dims[i];
	}
	return yk_slice(g, x, start, step, size);
}

static void grad_pad(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	int64_t lo[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[n.y].rank; i++)
		lo[i] = n.attr[i].i;
	gin[0] = part(g, gout[0], lo, n.in[0]);
}

static void grad_concat(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	int64_t start[YOKE_MAX_RANK] = { 0 };
	int64_t axis = yk_attrs(g, &g->node[node])[0].i;
	for (uint32_t k = 0; k < g->node[node].nin; k++) {
		yk_id x = yk_ins(g, &g->node[node])[k];
		gin[k] = part(g, gout[0], start, x);
		start[axis] += g->value[x].dims[axis];
	}
}

static void grad_slice_update(struct yk_graph *g, uint32_t node, const yk_id *gout,
			  yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	int64_t start[YOKE_MAX_RANK];
	for (int i = 0; i < g->value[n.y].rank; i++)
		start[i] = n.attr[i].i;
	yk_id none = yk_full_like(g, n.in[1], 0);
	gin[0] = yk_record(g, YK_SLICE_UPDATE, 2, (yk_id[]){ gout[0], none },
			   g->value[n.y].rank, n.attr);
	gin[1] = part(g, gout[0], start, n.in[1]);
}

#define VIEW(N, NAME, more, s, g) YK_OP(N) = { \
	.name = NAME, .flags = YK_F_VIEW | (more), .min_in = 1, .max_in = 1, .nout = 1, \
	.shape = s, .grad = g };

VIEW(RESHAPE, "reshape", 0, shape_reshape, grad_reshape)
VIEW(PERMUTE, "permute", 0, shape_permute, grad_permute)
VIEW(BROADCAST, "broadcast_to", 0, shape_broadcast, grad_broadcast)
VIEW(SLICE, "slice", 0, shape_slice, NULL) // yk_backward computes its gradient
VIEW(STOP_GRAD, "stop_grad", YK_F_FLAT, yk_shape_same, NULL)
VIEW(BITCAST, "bitcast", 0, shape_bitcast, NULL)
YK_OP(CONTIGUOUS) = { .name = "contiguous", .code = YOKE_OP_MOVE, .min_in = 1, .max_in = 1,
	.nout = 1, .shape = yk_shape_same, .grad = yk_grad_contiguous };
YK_OP(PAD) = { .name = "pad", .code = YOKE_OP_MOVE, .min_in = 1, .max_in = 1, .nout = 1,
	.shape = shape_pad, .grad = grad_pad };
YK_OP(CONCAT) = { .name = "concat",
		  .code = YOKE_OP_MOVE,
		  .min_in = 1,
		  .max_in = UINT32_MAX,
		  .nout = 1,
		  .cast = YK_CAST_WIDEST,
		  .shape = shape_concat,
		  .grad = grad_concat };
YK_OP(SLICE_UPDATE) = { .name = "slice_update", .code = YOKE_OP_MOVE, .min_in = 2, .max_in = 2,
	.cast = YK_CAST_WIDEST, .nout = 1, .shape = shape_slice_update, .grad = grad_slice_update,
	.inplace = { { 0, 0 } }, .ninplace = 1 };

yoke_tensor *yoke_reshape(yoke_tensor *x, int rank, const int64_t *dims)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	return yk_rec_end(&r, yk_reshape(r.g, r.in[0], rank, dims));
}

yoke_tensor *yoke_bitcast(yoke_tensor *x, int dtype)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	if (r.in[0] != YK_BAD && !yoke_dtype_size(dtype)) {
		yk_rec_fail(&r, YOKE_EDTYPE, "no dtype has the number %d", dtype);
		r.in[0] = YK_BAD;
	}
	return yk_rec_end(&r,
			  yk_record(r.g, YK_BITCAST, 1, r.in, 1, &(union yoke_attr){ .i = dtype }));
}

yoke_tensor *yoke_permute(yoke_tensor *x, const int *order)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const bool good =
		yk_rec_array(&r, r.in[0] == YK_BAD ? 0 : r.g->value[r.in[0]].rank, order, "order");
	return yk_rec_end(&r, good ? yk_permute(r.g, r.in[0], order) : YK_BAD);
}

yoke_tensor *yoke_broadcast_to(yoke_tensor *x, int rank, const int64_t *dims)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	return yk_rec_end(&r, yk_broadcast(r.g, r.in[0], rank, dims));
}

// Starts, steps and sizes of the slice that is all of x.
static void whole(const struct yk_value *v, int64_t *start, int64_t *step, int64_t *size)
{
	for (int i = 0; i < v->rank; i++) {
		start[i] = 0;
		step[i] = 1;
		size[i] = v->dims[i];
	}
}

yoke_tensor *yoke_slice(yoke_tensor *x, int axis, int64_t start, int64_t stop,
			int64_t step)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	int64_t from[YOKE_MAX_RANK], by[YOKE_MAX_RANK], many[YOKE_MAX_RANK];
	int k = yk_rec_axis(&r, r.in[0], axis);
	char text[160];
	if (k < 0)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *v = &r.g->value[r.in[0]];
	int64_t n = v->dims[k];
	start += start < 0 ? n : 0;
	stop += stop < 0 ? n : 0;
	if (step < 1 || start < 0 || stop > n || start > stop) {
		yk_rec_fail(&r, YOKE_ERANGE, "%lld to %lld by %lld along axis %d of %s",
			    (long long)start, (long long)stop, (long long)step, k,
			    yk_describe(v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	whole(v, from, by, many);
	from[k] = start;
	by[k] = step;
	many[k] = (stop - start) / step + ((stop - start) % step != 0);
	return yk_rec_end(&r, yk_slice(r.g, r.in[0], from, by, many));
}

yoke_tensor *yoke_flip(yoke_tensor *x, unsigned axes)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	int64_t from[YOKE_MAX_RANK], by[YOKE_MAX_RANK], many[YOKE_MAX_RANK];
	if (r.ctx && axes & ~YOKE_ALL) {
		yk_rec_fail(&r, YOKE_EINVAL, "axes 0x%x: 0x%x is no axis", axes, axes & ~YOKE_ALL);
		return yk_rec_end(&r, YK_BAD);
	}
	if (!yk_rec_axes(&r, r.in[0], axes))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *v = &r.g->value[r.in[0]];
	whole(v, from, by, many);
	for (int i = 0; i < v->rank; i++)
		if (axes >> i & 1 && v->dims[i]) {
			from[i] = v->dims[i] - 1;
			by[i] = -1;
		}
	return yk_rec_end(&r, yk_slice(r.g, r.in[0], from, by, many));
}

yoke_tensor *yoke_pad(yoke_tensor *x, const int64_t *lo, const int64_t *hi, double value)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	if (r.in[0] == YK_BAD || yk_check_literal(r.g, r.g->value[r.in[0]].dtype, value) < 0)
		return yk_rec_end(&r, YK_BAD);
	const int rank = r.g->value[r.in[0]].rank;
	if (!yk_rec_array(&r, rank, lo, "lo") || !yk_rec_array(&r, rank, hi, "hi"))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_pad(r.g, r.in[0], lo, hi, value));
}

yoke_tensor *yoke_concat(int n, yoke_tensor *const *x, int axis)
{
	struct yk_rec r;
	yk_id *in = yk_rec_list(&r, "concat", YK_CONCAT, n, x), y = YK_BAD;
	const int k = in ? yk_rec_axis(&r, in[0], axis) : -1;
	if (k >= 0)
		y = yk_record(r.g, YK_CONCAT, (uint32_t)n, in, 1, &(union yoke_attr){ .i = k });
	free(in);
	return yk_rec_end(&r, y);
}

yoke_tensor *yoke_slice_update(yoke_tensor *x, const int64_t *starts, yoke_tensor *v)
{
	struct yk_rec r = yk_rec_begin_op(YK_SLICE_UPDATE, 2, (yoke_tensor *[]){ x, v });
	union yoke_attr a[YOKE_MAX_RANK];
	uint32_t rank = r.in[0] == YK_BAD ? 0 : r.g->value[r.in[0]].rank;
	if (!yk_rec_array(&r, (int)rank, starts, "starts"))
		return yk_rec_end(&r, YK_BAD);
	for (uint32_t i = 0; i < rank; i++)
		a[i].i = starts[i];
	return yk_rec_end(&r, yk_record(r.g, YK_SLICE_UPDATE, 2, r.in, rank, a));
}

yoke_tensor *yoke_contiguous(yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	return yk_rec_end(&r, yk_un(r.g, YK_CONTIGUOUS, r.in[0]));
}
