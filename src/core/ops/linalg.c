// SPDX-License-Identifier: Apache-2.0
// Linear algebra of batched matrices: symmetric eigenproblems, Cholesky, triangular systems, and
// their gradients. There is no decomposition: where a device has no kernel the CPU runs these
// operations.
#include "config.h"

#include <float.h>
#include <string.h>

#include "base/error.h"
#include "graph/record.h"
#include "ops/algebra.h"

int yk_check_matrices(struct yk_graph *g, const struct yk_call *c, const struct yk_value *a)
{
	if (a->dtype != yoke_f32 && a->dtype != yoke_f64)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32 or f64, got", a);
	if (a->rank < 2)
		return fail_one(g, c, YOKE_ESHAPE, "takes matrices, got", a);
	return 0;
}

int yk_check_square(struct yk_graph *g, const struct yk_call *c, const struct yk_value *a)
{
	const int err = yk_check_matrices(g, c, a);
	if (!err && a->dims[a->rank - 1] != a->dims[a->rank - 2])
		return fail_one(g, c, YOKE_ESHAPE, "takes square matrices, got", a);
	return err;
}

int yk_check_system(struct yk_graph *g, const struct yk_call *c, const struct yk_value *t,
		    const struct yk_value *b)
{
	if (yk_check_square(g, c, t) < 0)
		return yk_error_last();
	if (b->dtype != t->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", t, b);
	struct yk_value like = *b;
	if (b->rank >= 2)
		like.dims[b->rank - 1] = b->dims[b->rank - 2];
	if (b->rank < 2 || !yk_same_shape(&like, t))
		return fail_two(g, c, YOKE_ESHAPE, "matrix and right-hand sides do not fit:", t, b);
	return 0;
}

static int shape_eigh(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	out[0] = out[1] = *IN(0);
	out[0].rank--;
	return yk_check_square(g, c, IN(0));
}

int yk_shape_square(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(0);
	return yk_check_square(g, c, IN(0));
}

// attr: transposed, upper, unit
static int shape_solve_triangular(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *b = IN(1);
	if (yk_check_system(g, c, IN(0), b) < 0)
		return yk_error_last();
	*out = *b;
	return want_size(g, c, out);
}

// ---- helpers of gradients ----

yk_id yk_transpose(struct yk_graph *g, yk_id x)
{
	const int rank = x == YK_BAD ? 2 : g->value[x].rank;
	return yk_exchange(g, x, rank - 2, rank - 1);
}

static yk_id symmetric(struct yk_graph *g, yk_id x)
{
	return yk_bin_lit(g, YK_MUL, yk_bin(g, YK_ADD, x, yk_transpose(g, x)), 0.5);
}

yk_id yk_half(struct yk_graph *g, yk_id x, int op)
{
	if (x == YK_BAD)
		return x;
	const struct yk_value v = g->value[x];
	const int64_t m = v.dims[v.rank - 2];
	const yk_id column = yk_counting(g, v.dims[v.rank - 1]);
	const yk_id row = yk_reshape(g, yk_counting(g, m), 2, (int64_t[]){ m, 1 });
	return yk_tri(g, YK_SELECT, yk_bin(g, op, row, column), x, yk_lit(g, v.dtype, 0));
}

yk_id yk_as_matrix(struct yk_graph *g, yk_id x, bool row)
{
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	v.dims[v.rank] = row ? v.dims[v.rank - 1] : 1;
	if (row)
		v.dims[v.rank - 1] = 1;
	return yk_reshape(g, x, v.rank + 1, v.dims);
}

yk_id yk_recip_unless(struct yk_graph *g, yk_id zero, yk_id x)
{
	return yk_tri(g, YK_SELECT, zero, lit_like(g, x, 0),
		      yk_un(g, YK_RECIP, yk_tri(g, YK_SELECT, zero, lit_like(g, x, 1), x)));
}

yk_id yk_equal_bound(struct yk_graph *g, yk_id values)
{
	const struct yk_value v = g->value[values];
	const double near =
		4 * (double)v.dims[v.rank - 1] * (v.dtype == yoke_f64 ? DBL_EPSILON : FLT_EPSILON);
	return yk_bin_lit(
		g, YK_MUL,
		yk_reduce(g, YK_REDUCE_MAX, yk_un(g, YK_ABS, values), 1u << (v.rank - 1), true),
		near);
}

yk_id yk_gaps(struct yk_graph *g, yk_id values, bool squares)
{
	const yk_id row = yk_as_matrix(g, values, true), column = yk_as_matrix(g, values, false);
	yk_id apart = yk_bin(g, YK_SUB, row, column);
	const yk_id equal = yk_bin(g, YK_LE, yk_un(g, YK_ABS, apart),
				   yk_as_matrix(g, yk_equal_bound(g, values), false));
	if (squares)
		apart = yk_bin(g, YK_MUL, apart, yk_bin(g, YK_ADD, row, column));
	return yk_recip_unless(g, equal, apart);
}

// sym(V (diag(values' cotangent) + F * V'(vectors' cotangent)) V'), F_ij = 1 / (l_j - l_i), 0
// between equal ones
static void grad_eigh(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id values = g->node[node].out, vectors = values + 1;
	const struct yk_value v = g->value[vectors];
	yk_id sum = YK_NIL;
	if (!v.dims[v.rank - 1]) {
		gin[0] = yk_full_like(g, vectors, 0);
		return;
	}
	if (gout[0] != YK_NIL)
		sum = yk_bin(g, YK_MUL, vectors, yk_as_matrix(g, gout[0], true));
	if (gout[1] != YK_NIL) {
		yk_id k = yk_bin(g, YK_MUL, yk_gaps(g, values, false),
				 yk_matmul(g, vectors, gout[1], YOKE_TA));
		k = yk_matmul(g, vectors, k, 0);
		sum = sum == YK_NIL ? k : yk_bin(g, YK_ADD, sum, k);
	}
	gin[0] = symmetric(g, yk_matmul(g, sum, vectors, YOKE_TB));
}

yk_id yk_triangular(struct yk_graph *g, yk_id t, yk_id b, unsigned flags)
{
	const union yoke_attr a[3] = { { .i = (flags & YOKE_TRANSPOSED) != 0 },
				       { .i = (flags & YOKE_UPPER) != 0 },
				       { .i = (flags & YOKE_UNIT) != 0 } };
	return yk_record(g, YK_SOLVE_TRIANGULAR, 2, (yk_id[]){ t, b }, 3, a);
}

// sym(L^-T P L^-1), where P is the lower half of L' times the cotangent, with its diagonal halved
// (Murray 2016)
static void grad_cholesky(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id l = g->node[node].out;
	yk_id p = yk_matmul(g, l, yk_half(g, gout[0], YK_GE), YOKE_TA);
	p = yk_bin_lit(g, YK_MUL, yk_bin(g, YK_ADD, yk_half(g, p, YK_GE), yk_half(g, p, YK_GT)),
		       0.5);
	p = yk_transpose(g, yk_triangular(g, l, p, YOKE_TRANSPOSED));
	gin[0] = symmetric(g, yk_triangular(g, l, p, YOKE_TRANSPOSED));
}

// by b: t'^-1 times the cotangent of x; by t: minus that times x', in t's triangle (its transpose
// if t' x = b)
static void grad_solve_triangular(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	union yoke_attr how[3];
	const yk_id t = yk_ins(g, &g->node[node])[0], x = g->node[node].out;
	memcpy(how, yk_attrs(g, &g->node[node]), sizeof how);
	gin[1] = yk_triangular(g, t, gout[0],
			       (how[0].i ? 0 : YOKE_TRANSPOSED) | (how[1].i ? YOKE_UPPER : 0) |
				       (how[2].i ? YOKE_UNIT : 0));
	const yk_id outer =
		how[0].i ? yk_matmul(g, x, gin[1], YOKE_TB) : yk_matmul(g, gin[1], x, YOKE_TB);
	const int which = how[1].i ? (how[2].i ? YK_LT : YK_LE) : how[2].i ? YK_GT : YK_GE;
	gin[0] = yk_half(g, yk_un(g, YK_NEG, outer), which);
}

YK_OP(EIGH) = { .name = "eigh", .code = YOKE_OP_EIGH, .flags = YK_F_FLOAT | YK_F_PARTIAL,
	.cast = YK_CAST_F32, .min_in = 1, .max_in = 1, .nout = 2, .shape = shape_eigh,
	.grad = grad_eigh };
YK_OP(CHOLESKY) = { .name = "cholesky", .code = YOKE_OP_CHOLESKY, .flags = YK_F_FLOAT,
	.cast = YK_CAST_F32, .min_in = 1, .max_in = 1, .nout = 1, .shape = yk_shape_square,
	.grad = grad_cholesky };
YK_OP(SOLVE_TRIANGULAR) = { .name = "solve_triangular", .code = YOKE_OP_SOLVE_TRIANGULAR,
	.flags = YK_F_FLOAT, .cast = YK_CAST_F32, .min_in = 2, .max_in = 2, .nout = 1,
	.shape = shape_solve_triangular, .grad = grad_solve_triangular };

yoke_tensor *yoke_eigh(yoke_tensor *a, yoke_tensor **vectors)
{
	struct yk_rec r = yk_rec_begin_op(YK_EIGH, 1, &a);
	const yk_id out = yk_record(r.g, YK_EIGH, 1, r.in, 0, NULL);
	return yk_rec_end_with(&r, out, 1, &(struct yk_rec_result){ vectors, out + 1 });
}

yoke_tensor *yoke_cholesky(yoke_tensor *a)
{
	struct yk_rec r = yk_rec_begin_op(YK_CHOLESKY, 1, &a);
	return yk_rec_end(&r, yk_un(r.g, YK_CHOLESKY, r.in[0]));
}

yk_id yk_batch(struct yk_graph *g, yk_id x, yk_id y)
{
	struct yk_value to = g->value[x];
	const struct yk_value v = g->value[x], o = g->value[y];
	const int rank = v.rank > o.rank ? v.rank : o.rank;
	if (v.rank < 2 || o.rank < 2)
		return x;
	for (int i = 0; i < rank; i++) {
		const int iv = i - (rank - v.rank), io = i - (rank - o.rank);
		const int64_t dv = iv < 0 ? 1 : v.dims[iv], d = io < 0 ? 1 : o.dims[io];
		to.dims[i] = i >= rank - 2 || dv != 1 ? dv : d;
	}
	to.rank = (uint8_t)rank;
	return yk_broadcast_like(g, x, &to);
}

yoke_tensor *yoke_solve_triangular(yoke_tensor *t, yoke_tensor *b, unsigned flags)
{
	struct yk_rec r = yk_rec_begin_op(YK_SOLVE_TRIANGULAR, 2, (yoke_tensor *[]){ t, b });
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	if (flags & ~(YOKE_TRANSPOSED | YOKE_UPPER | YOKE_UNIT)) {
		yk_rec_fail(&r, YOKE_EINVAL,
			    "flags %#x are not among YOKE_TRANSPOSED, YOKE_UPPER and YOKE_UNIT",
			    flags);
		return yk_rec_end(&r, YK_BAD);
	}
	const yk_id in[2] = { yk_batch(r.g, r.in[0], r.in[1]), yk_batch(r.g, r.in[1], r.in[0]) };
	return yk_rec_end(&r, yk_triangular(r.g, in[0], in[1], flags));
}
