// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox bits by key and step, uniform and normal numbers, dropout.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

// Philox bits with the shape of dims.
static yk_id bits(struct yk_rec *r, int rank, const int64_t *dims)
{
	union yoke_attr a[YOKE_MAX_RANK];
	yk_id in[2];
	if (!r->ctx)
		return YK_BAD;
	if (rank < 0 || rank > YOKE_MAX_RANK) {
		yk_rec_fail(r, YOKE_ESHAPE, "rank %d; 0 to %d are possible", rank, YOKE_MAX_RANK);
		return YK_BAD;
	}
	if (!yk_rec_array(r, rank, dims, "dims"))
		return YK_BAD;
	for (int i = 0; i < rank; i++)
		a[i].i = dims[i];
	if (yk_random_key(r->ctx, &in[0], &in[1]) < 0)
		return YK_BAD;
	return yk_record(r->g, YK_RAND_BITS, 2, in, (uint32_t)rank, a);
}

yoke_tensor *yoke_rand_bits(int rank, const int64_t *dims)
{
	struct yk_rec r = yk_rec_begin(0, NULL);
	return yk_rec_end(&r, bits(&r, rank, dims));
}

// Random numbers of a floating-point dtype.
static yk_id in_dtype(struct yk_rec *r, yk_id v, int dtype)
{
	if (v == YK_BAD || yk_is_float(dtype))
		return yk_cast(r->g, v, dtype);
	yk_rec_fail(r, YOKE_EDTYPE, "makes floating-point numbers, not %s", yoke_dtype_name(dtype));
	return YK_BAD;
}

yoke_tensor *yoke_uniform(int dtype, int rank, const int64_t *dims)
{
	struct yk_rec r = yk_rec_begin(0, NULL);
	yk_id u = yk_un(r.g, YK_UNIFORM, bits(&r, rank, dims));
	return yk_rec_end(&r, in_dtype(&r, u, dtype));
}

yoke_tensor *yoke_normal(int dtype, int rank, const int64_t *dims)
{
	// two independent calls with one ordinal each
	struct yk_rec r = yk_rec_begin(0, NULL);
	yk_id a = yk_un(r.g, YK_UNIFORM, bits(&r, rank, dims));
	yk_id b = yk_un(r.g, YK_UNIFORM, bits(&r, rank, dims));
	return yk_rec_end(&r, in_dtype(&r, yk_bin(r.g, YK_NORMAL, a, b), dtype));
}

yoke_tensor *yoke_dropout(yoke_tensor *x, double p)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 1, &x);
	yk_id v = r.in[0];
	if (!yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	if (!(p >= 0 && p < 1)) {
		yk_rec_fail(&r, YOKE_ERANGE, "p = %g is not in [0, 1)", p);
		return yk_rec_end(&r, YK_BAD);
	}
	if (p == 0)
		return yk_rec_end(&r, v);
	struct yk_value like = r.g->value[v];
	yk_id u = yk_un(r.g, YK_UNIFORM, bits(&r, like.rank, like.dims));
	yk_id keep = yk_bin(r.g, YK_GE, u, yk_lit(r.g, yoke_f32, p));
	yk_id scaled =
		yk_cast_like(r.g, yk_bin_lit(r.g, YK_MUL, yk_cast_acc(r.g, v), 1 / (1 - p)), v);
	yk_id y = yk_tri(r.g, YK_SELECT, keep, scaled, yk_lit(r.g, like.dtype, 0));
	return yk_rec_end(&r, y);
}
