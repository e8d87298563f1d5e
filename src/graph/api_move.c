// SPDX-License-Identifier: Apache-2.0
// The public contractions, views and moves.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/record.h"

// Rows of a [..,M,K] against one matrix b are one product: leading axes join M.
static yk_id matmul(struct yk_graph *g, yk_id a, yk_id b, unsigned flags, int dtype)
{
	if (a == YK_BAD || b == YK_BAD)
		return YK_BAD;
	struct yk_value va = g->value[a], vb = g->value[b];
	if (vb.rank != 2 || va.rank < 3 || flags & YOKE_TA)
		return yk_matmul_to(g, a, b, flags, dtype);
	int64_t k = va.dims[va.rank - 1], rows = 1;
	for (int i = 0; i < va.rank - 1; i++)
		rows *= va.dims[i];
	if (k != vb.dims[flags & YOKE_TB ? 1 : 0])
		return yk_matmul_to(g, a, b, flags, dtype); // says what does not fit
	yk_id y = yk_matmul_to(g, yk_reshape(g, a, 2, (int64_t[]){ rows, k }), b, flags, dtype);
	va.dims[va.rank - 1] = vb.dims[flags & YOKE_TB ? 0 : 1];
	return yk_reshape(g, y, va.rank, va.dims);
}

// dtype: of the result, YOKE_DTYPE_NONE for that of a.
static yoke_tensor *product(const char *call, yoke_tensor *a, yoke_tensor *b, unsigned flags,
			    int dtype)
{
	struct yk_rec r = yk_rec_begin_as(call, 0, 2, (yoke_tensor *[]){ a, b });
	if (r.ctx && flags & ~(YOKE_TA | YOKE_TB | YOKE_BY_ROW)) {
		yk_rec_fail(&r, YOKE_EINVAL,
			    "flags 0x%x: they are YOKE_TA, YOKE_TB and YOKE_BY_ROW", flags);
		return yk_rec_end(&r, YK_BAD);
	}
	if (r.in[0] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	if (!dtype)
		dtype = r.g->value[r.in[0]].dtype;
	return yk_rec_end(&r, matmul(r.g, r.in[0], r.in[1], flags, dtype));
}

yoke_tensor *yoke_matmul(yoke_tensor *a, yoke_tensor *b, unsigned flags)
{
	return product("matmul", a, b, flags, YOKE_DTYPE_NONE);
}

yoke_tensor *yoke_matmul_to(yoke_tensor *a, yoke_tensor *b, unsigned flags, int dtype)
{
	return product("matmul_to", a, b, flags, dtype);
}

yoke_tensor *yoke_linear(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_with(4, 3, (yoke_tensor *[]){ x, w, b });
	yk_id v = r.in[0];
	if (v != YK_BAD && r.g->value[v].rank == 1) { // a single row
		int64_t n = r.g->value[v].dims[0];
		yk_id y = matmul(r.g, yk_reshape(r.g, v, 2, (int64_t[]){ 1, n }), r.in[1],
				 YOKE_TB, r.g->value[v].dtype);
		v = y == YK_BAD ? y : yk_reshape(r.g, y, 1, &r.g->value[y].dims[1]);
	} else if (v != YK_BAD) {
		v = matmul(r.g, v, r.in[1], YOKE_TB, r.g->value[v].dtype);
	}
	if (v == YK_BAD || r.in[2] == YK_NIL || r.in[2] == YK_BAD)
		return yk_rec_end(&r, r.in[2] == YK_BAD ? r.in[2] : v);
	const struct yk_value *vw = &r.g->value[r.in[1]], *vb = &r.g->value[r.in[2]];
	char text[2][160];
	if (vb->rank != 1 || vb->dims[0] != vw->dims[0]) {
		yk_rec_fail(&r, YOKE_ESHAPE, "w is [N,K] and b [N], got %s and %s",
			    yk_describe(vw, text[0]), yk_describe(vb, text[1]));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, yk_bin(r.g, YK_ADD, v, r.in[2]));
}

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
	return yk_rec_end(&r, yk_permute(r.g, r.in[0], order));
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
	return yk_rec_end(&r, yk_pad(r.g, r.in[0], lo, hi, value));
}

yoke_tensor *yoke_concat(int n, yoke_tensor *const *x, int axis)
{
	if (n < 1) {
		yk_fail(YOKE_EINVAL, "concat: %d tensors", n);
		return NULL;
	}
	struct yk_rec r = yk_rec_begin(1, x);
	yk_id *in = malloc((size_t)n * sizeof *in), y = YK_BAD;
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
	int k = good ? yk_rec_axis(&r, in[0], axis) : -1;
	if (k >= 0)
		y = yk_record(r.g, YK_CONCAT, (uint32_t)n, in, 1,
			      &(union yoke_attr){ .i = k });
	free(in);
	return yk_rec_end(&r, y);
}

yoke_tensor *yoke_slice_update(yoke_tensor *x, const int64_t *starts, yoke_tensor *v)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, v });
	union yoke_attr a[YOKE_MAX_RANK];
	uint32_t rank = r.in[0] == YK_BAD ? 0 : r.g->value[r.in[0]].rank;
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
	struct yk_rec r = yk_rec_begin(3, (yoke_tensor *[]){ x, idx, v });
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
