// SPDX-License-Identifier: Apache-2.0
// Matrix products, batched and transposed, and the linear layer.
#include "config.h"

#include "graph/record.h"
#include "ops/rules.h"

// attr: flags of yoke_matmul, dtype of the result
static int shape_matmul(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
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
	if (dtype != a->dtype && (dtype != yoke_f32 || yk_acc(a->dtype) != yoke_f32) &&
	    (dtype != yoke_i32 || !byte))
		return yk_op_fail(
			g, c->op, YOKE_EDTYPE,
			"of %s the result is %s, or f32 of f16 and bf16, i32 of i8 and u8, not %s",
			yoke_dtype_name(a->dtype), yoke_dtype_name(a->dtype),
			yoke_dtype_name(dtype));
	int64_t m = a->dims[a->rank - 2 + ta], k = a->dims[a->rank - 1 - ta];
	int64_t kb = b->dims[b->rank - 2 + tb], n = b->dims[b->rank - 1 - tb];
	struct yk_value lead = { .rank = 0 };
	bool fits = k == kb;
	if (a->rank > 2 || b->rank > 2) {
		struct yk_value lead_b = *b;
		lead = *a;
		lead.rank -= 2;
		lead_b.rank -= 2;
		fits = fits && yk_dims_broadcast(&lead, &lead_b);
	}
	if (!fits)
		return fail_two(g, c, YOKE_ESHAPE, "shapes do not fit:", a, b);
	*out = lead;
	out->dtype = (uint8_t)dtype;
	out->dims[out->rank++] = m;
	out->dims[out->rank++] = n;
	return want_size(g, c, out);
}

static void grad_matmul(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	yk_id a = n.in[0], b = n.in[1], c = gout[0];
	// the result has another dtype: rounded once, at the end
	if (g->value[c].dtype != g->value[a].dtype) {
		a = yk_cast_acc(g, a);
		b = yk_cast_acc(g, b);
	}
	bool ta = n.attr[0].i & YOKE_TA, tb = n.attr[0].i & YOKE_TB;
	// a' and b' are the operands as multiplied: ga' = c b'^T, gb' = a'^T c, transposed back
	// where needed
	yk_id ga = ta ? yk_matmul(g, b, c, (tb ? YOKE_TA : 0) | YOKE_TB) :
			yk_matmul(g, c, b, tb ? 0 : YOKE_TB);
	yk_id gb = tb ? yk_matmul(g, c, a, YOKE_TA | (ta ? YOKE_TB : 0)) :
			yk_matmul(g, a, c, ta ? 0 : YOKE_TA);
	gin[0] = yk_cast_like(g, yk_sum_to(g, ga, a), n.in[0]);
	gin[1] = yk_cast_like(g, yk_sum_to(g, gb, b), n.in[1]);
}

YK_OP(MATMUL) = { .name = "matmul", .code = YOKE_OP_CONTRACT, .flags = YK_F_STRIDED,
	.cast = YK_CAST_HALF, .min_in = 2, .max_in = 2, .nout = 1, .shape = shape_matmul,
	.grad = grad_matmul };

// For a [..,M,K] and one matrix b the leading axes are merged into M: one product.
static yk_id matmul(struct yk_graph *g, yk_id a, yk_id b, unsigned flags, int dtype)
{
	if (a == YK_BAD || b == YK_BAD)
		return YK_BAD;
	if (g->value[b].rank != 2 || g->value[a].rank < 3 || flags & YOKE_TA)
		return yk_matmul_to(g, a, b, flags, dtype);
	struct yk_value va = g->value[a], vb = g->value[b];
	int64_t k = va.dims[va.rank - 1], rows = 1;
	for (int i = 0; i < va.rank - 1; i++)
		rows *= va.dims[i];
	if (k != vb.dims[flags & YOKE_TB ? 1 : 0])
		return yk_matmul_to(g, a, b, flags, dtype); // reports the mismatch
	yk_id y = yk_matmul_to(g, yk_reshape(g, a, 2, (int64_t[]){ rows, k }), b, flags, dtype);
	va.dims[va.rank - 1] = vb.dims[flags & YOKE_TB ? 0 : 1];
	return yk_reshape(g, y, va.rank, va.dims);
}

// dtype: of the result; YOKE_DTYPE_NONE: that of a.
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

yoke_tensor *yoke_linear(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_with(YK_MATMUL, 4, 3, (yoke_tensor *[]){ x, w, b });
	yk_id v = r.in[0];
	if (v != YK_BAD && r.g->value[v].rank == 1) { // one row
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
