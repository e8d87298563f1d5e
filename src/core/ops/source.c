// SPDX-License-Identifier: Apache-2.0
// Ops without operands: leaves, literals, counters, constants; and planner ops that compute
// nothing.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

// attr: dtype, bits
static int shape_leaf(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	(void)g;
	*out = (struct yk_value){ .dtype = (uint8_t)c->attr[0].i };
	return 0;
}

// attr: dims; IOTA is i64, RAND_BITS i32
static int shape_fill(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = (struct yk_value){ .dtype = c->op == YK_IOTA ? yoke_i64 : yoke_i32,
				  .rank = (uint8_t)c->nattr };
	for (uint32_t i = 0; i < c->nattr; i++)
		out->dims[i] = c->attr[i].i;
	return want_size(g, c, out);
}

YK_OP(LEAF) = { .name = "leaf", .flags = YK_F_LEAF, .nout = 1 };
YK_OP(SCALAR) = { .name = "scalar", .flags = YK_F_LEAF, .nout = 1 };
YK_OP(CONST) = { .name = "const", .flags = YK_F_LEAF, .nout = 1, .shape = shape_leaf };
// the element's row-major index, as i64
YK_OP(IOTA) = { .name = "iota", .code = YOKE_OP_MAP, .map = YOKE_MAP_INDEX,
	.flags = YK_F_MAP | YK_F_STRIDED, .nout = 1, .shape = shape_fill };
// key and step (i64 scalars)
YK_OP(RAND_BITS) = { .name = "rand_bits", .code = YOKE_OP_MAP, .map = YOKE_MAP_RAND,
	.flags = YK_F_MAP | YK_F_STRIDED, .min_in = 2, .max_in = 2, .nout = 1,
	.shape = shape_fill };
YK_OP(NUMBERS) = { .name = "numbers", .nout = 1 }; // see plan/replay.c
YK_OP(TRANSFER) = { .name = "transfer", .min_in = 1, .max_in = 1, .nout = 1,
	.shape = yk_shape_same };

yoke_tensor *yoke_iota(int dtype, int rank, const int64_t *dims, int axis)
{
	struct yk_rec r = yk_rec_begin(0, NULL);
	char text[160];
	if (!r.ctx)
		return NULL;
	if (!yoke_dtype_size(dtype))
		yk_rec_fail(&r, YOKE_EDTYPE, "no dtype has the number %d", dtype);
	else if (rank < 0 || rank > YOKE_MAX_RANK)
		yk_rec_fail(&r, YOKE_ESHAPE, "rank %d; 0 to %d are possible", rank, YOKE_MAX_RANK);
	if (!yoke_dtype_size(dtype) || rank < 0 || rank > YOKE_MAX_RANK ||
	    !yk_rec_array(&r, rank, dims, "dims"))
		return yk_rec_end(&r, YK_BAD);
	struct yk_value like = { .dtype = (uint8_t)dtype, .rank = (uint8_t)rank };
	for (int i = 0; i < rank; i++)
		like.dims[i] = dims[i];
	if (axis < -rank || axis >= rank) {
		yk_rec_fail(&r, YOKE_ERANGE, "no axis %d in %s", axis, yk_describe(&like, text));
		return yk_rec_end(&r, YK_BAD);
	}
	int k = axis < 0 ? axis + rank : axis;
	// counts along the axis only, then broadcasts
	int64_t column[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++)
		column[i] = i == k ? dims[i] : 1;
	yk_id v = yk_reshape(r.g, yk_cast(r.g, yk_counting(r.g, dims[k]), dtype), rank, column);
	return yk_rec_end(&r, yk_broadcast(r.g, v, rank, dims));
}

yoke_tensor *yoke_full(int dtype, int rank, const int64_t *dims, double value)
{
	struct yk_rec r = yk_rec_begin(0, NULL);
	if (!r.ctx)
		return NULL;
	if (!yoke_dtype_size(dtype)) {
		yk_rec_fail(&r, YOKE_EDTYPE, "no dtype has the number %d", dtype);
		return yk_rec_end(&r, YK_BAD);
	}
	if (yk_check_literal(r.g, dtype, value) < 0)
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_broadcast(r.g, yk_lit(r.g, dtype, value), rank, dims));
}
