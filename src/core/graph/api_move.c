// SPDX-License-Identifier: Apache-2.0
// The public views and moves.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/record.h"

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
	return yk_rec_end(&r, yk_record(r.g, YK_BITCAST, 1, r.in, 1, &(union yoke_attr){ .i = dtype }));
}

yoke_tensor *yoke_permute(yoke_tensor *x, const int *order)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const bool good = yk_rec_array(&r, r.in[0] == YK_BAD ? 0 : r.g->value[r.in[0]].rank, order, "order");
	return yk_rec_end(&r, good ? yk_permute(r.g, r.in[0], order) : YK_BAD);
}

yoke_tensor *yoke_broadcast_to(yoke_tensor *x, int rank, const int64_t *dims)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	return yk_rec_end(&r, yk_broadcast(r.g, r.in[0], rank, dims));
}

// The whole of x as a slice, to be narrowed.
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
		yk_rec_fail(&r, YOKE_ERANGE, "%lld to %lld by %lld along axis %d of %s", (long long)start,
			    (long long)stop, (long long)step, k, yk_describe(v, text));
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
	if (r.in[0] == YK_BAD || yk_want_literal(r.g, r.g->value[r.in[0]].dtype, value) < 0)
		return yk_rec_end(&r, YK_BAD);
	const int rank = r.g->value[r.in[0]].rank;
	if (!yk_rec_array(&r, rank, lo, "lo") || !yk_rec_array(&r, rank, hi, "hi"))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_pad(r.g, r.in[0], lo, hi, value));
}

yoke_tensor *yoke_concat(int n, yoke_tensor *const *x, int axis)
{
	if (n < 1) {
		yk_fail(YOKE_EINVAL, "concat: %d tensors", n);
		return NULL;
	}
	if (yk_given(x, "list of tensors"))
		return NULL;
	struct yk_rec r = yk_rec_begin(1, x);
	yk_id *in = malloc((size_t)n * (sizeof *in + 1)), y = YK_BAD;
	uint8_t *dtype = (uint8_t *)(in + n);
	bool good = in && r.in[0] != YK_BAD;
	if (!in)
		yk_fail(YOKE_ENOMEM, "concat: no memory for %d tensors", n);
	if (good)
		in[0] = r.in[0];
	for (int i = 1; i < n && good; i++) {
		in[i] = yk_operand(r.ctx, x[i], r.g->value[in[0]].dtype);
		if (in[i] == YK_NIL)
			yk_fail(YOKE_EINVAL, "concat: tensor %d is YOKE_NONE", i);
		good = in[i] != YK_BAD && in[i] != YK_NIL;
	}
	for (int i = 0; i < n && good; i++)
		dtype[i] = r.g->value[in[i]].dtype;
	if (good && r.ctx->autocast.dtype)
		yk_autocast_want(r.ctx, YK_CONCAT, n, dtype);
	for (int i = 0; i < n && good; i++)
		good = (in[i] = yk_cast(r.g, in[i], dtype[i])) != YK_BAD;
	int k = good ? yk_rec_axis(&r, in[0], axis) : -1;
	if (k >= 0)
		y = yk_record(r.g, YK_CONCAT, (uint32_t)n, in, 1,
			      &(union yoke_attr){ .i = k });
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
		yk_rec_fail(&r, YOKE_ESHAPE, "w is [N,C], got %s", yk_describe(&r.g->value[r.in[0]], text));
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

yoke_tensor *yoke_contiguous(yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	return yk_rec_end(&r, yk_un(r.g, YK_CONTIGUOUS, r.in[0]));
}
