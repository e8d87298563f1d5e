// SPDX-License-Identifier: Apache-2.0
// The exponential of matrices.
#include "config.h"

#include "graph/record.h"
#include "ops/algebra.h"
#include "yoke-linalg.h"

// The corner of exp [[a', g], [0, a']] (Mathias 1996)
static void grad_matrix_exp(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id a = yk_ins(g, &g->node[node])[0], turned = yk_transpose(g, a);
	const struct yk_value v = g->value[a];
	const int row = v.rank - 2, column = v.rank - 1;
	const int64_t n = v.dims[column];
	const yk_id upper = yk_record(g, YK_CONCAT, 2, (yk_id[]){ turned, gout[0] }, 1,
				      &(union yoke_attr){ .i = column });
	const yk_id lower =
		yk_record(g, YK_CONCAT, 2, (yk_id[]){ yk_full_like(g, turned, 0), turned }, 1,
			  &(union yoke_attr){ .i = column });
	const yk_id y = yk_un(g, YK_MATRIX_EXP,
			      yk_record(g, YK_CONCAT, 2, (yk_id[]){ upper, lower }, 1,
					&(union yoke_attr){ .i = row }));
	gin[0] = yk_slice_axis(g, yk_slice_axis(g, y, row, 0, n), column, n, n);
}

YK_OP(MATRIX_EXP) = { .name = "matrix_exp",
		      .code = YOKE_OP_MATRIX_EXP,
		      .flags = YK_F_FLOAT,
		      .cast = YK_CAST_F32,
		      .min_in = 1,
		      .max_in = 1,
		      .nout = 1,
		      .shape = yk_shape_square,
		      .grad = grad_matrix_exp };

yoke_tensor *yoke_matrix_exp(yoke_tensor *a)
{
	struct yk_rec r = yk_rec_begin_op(YK_MATRIX_EXP, 1, &a);
	return yk_rec_end(&r, yk_un(r.g, YK_MATRIX_EXP, r.in[0]));
}
