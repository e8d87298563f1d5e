// SPDX-License-Identifier: Apache-2.0
// The public contractions.

#include "config.h"

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
	struct yk_rec r = yk_rec_begin_as(call, YK_MATMUL, 0, 2, (yoke_tensor *[]){ a, b });
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

yoke_tensor *yoke_grouped_matmul(yoke_tensor *x, yoke_tensor *w, yoke_tensor *first)
{
	struct yk_rec r = yk_rec_begin_op(YK_GROUPED, 3, (yoke_tensor *[]){ x, w, first });
	return yk_rec_end(&r, yk_record(r.g, YK_GROUPED, 3, r.in, 1, &(union yoke_attr){ .i = 0 }));
}

yoke_tensor *yoke_linear(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_with(YK_MATMUL, 4, 3, (yoke_tensor *[]){ x, w, b });
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
