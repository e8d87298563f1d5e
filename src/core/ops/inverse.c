// SPDX-License-Identifier: Apache-2.0
// LU factorization and what follows from it: systems, inverses, determinants, powers. SOLVE, INV,
// DET and SLOGDET are ops for their gradients. Each factors its matrix anew; the plan merges equal
// factorizations, so a gradient uses the one of the forward pass.
#include "config.h"

#include <float.h>

#include "base/error.h"
#include "graph/record.h"
#include "ops/algebra.h"
#include "yoke-linalg.h"

// ---- shapes ----

// a [..,m,n] -> lu [..,m,n], perm [..,m] i64, sign [..]
static int shape_lu(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *a = IN(0);
	if (yk_check_matrices(g, c, a) < 0)
		return yk_error_last();
	out[0] = out[1] = out[2] = *a;
	out[1].dtype = yoke_i64;
	out[1].rank--;
	out[2].rank -= 2;
	return want_size(g, c, &out[1]);
}

// lu [..,n,n], perm [..,n], b [..,n,k] or none (1); attr: transposed
static int shape_lu_solve(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *lu = IN(0);
	*out = has(c, 2) ? *IN(2) : *lu;
	return 0;
}

// a [..,n,n], b [..,n,k]; attr: transposed
static int shape_solve(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (yk_check_system(g, c, IN(0), IN(1)) < 0)
		return yk_error_last();
	*out = *IN(1);
	return want_size(g, c, out);
}

static int shape_det(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (yk_check_square(g, c, IN(0)) < 0)
		return yk_error_last();
	out[0] = *IN(0);
	out[0].rank -= 2;
	if (c->op == YK_SLOGDET)
		out[1] = out[0];
	return 0;
}

// ---- helpers ----

static yk_id diagonal(struct yk_graph *g, yk_id x) // [..,n,n] -> [..,n]
{
	const int rank = x == YK_BAD ? 2 : g->value[x].rank;
	return yk_diagonal(g, x, 0, rank - 2, rank - 1);
}

static yk_id factor(struct yk_graph *g, yk_id a)
{
	return yk_record(g, YK_LU, 1, &a, 0, NULL);
}

// The solution, or (b YK_NIL) the inverse, by a factorization and its permutation.
static yk_id solve_by(struct yk_graph *g, yk_id lu, yk_id perm, yk_id b, bool transposed)
{
	if (lu == YK_BAD)
		return lu;
	return yk_record(g, YK_LU_SOLVE, 3, (yk_id[]){ lu, perm, b }, 1,
			 &(union yoke_attr){ .i = transposed });
}

static yk_id solve(struct yk_graph *g, yk_id a, yk_id b, bool transposed)
{
	return yk_record(g, YK_SOLVE, 2, (yk_id[]){ a, b }, 1,
			 &(union yoke_attr){ .i = transposed });
}

yk_id yk_inverse(struct yk_graph *g, yk_id a)
{
	return yk_un(g, YK_INV, a);
}

static yk_id product(struct yk_graph *g, yk_id x)
{
	return x == YK_BAD ? x : yk_reduce(g, YK_PROD, x, yk_last_axis(g, x), false);
}

// A number for each matrix, [..] -> [..,1,1]
static yk_id each(struct yk_graph *g, yk_id x)
{
	return yk_add_last(g, yk_add_last(g, x));
}

// ---- gradients and decompositions ----

// With L1, U1 the square blocks: a's cotangent, rows permuted, is L1^-T (tril(L1' dL, -1) + triu(dU
// U1')) U1^-T. The rows below L1 of a tall matrix are L2 = A2 U1^-1, the columns beside U1 of a
// wide one U2 = L1^-1 A2.
static void grad_lu(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id lu = g->node[node].out, perm = lu + 1, given = gout[0];
	const struct yk_value v = g->value[lu];
	const int64_t m = v.dims[v.rank - 2], n = v.dims[v.rank - 1], k = m < n ? m : n;
	const int row = v.rank - 2, column = v.rank - 1;
	if (given == YK_NIL || !k) {
		gin[0] = yk_full_like(g, lu, 0);
		return;
	}
	const yk_id square = yk_slice_axis(g, yk_slice_axis(g, lu, row, 0, k), column, 0, k);
	const yk_id corner = yk_slice_axis(g, yk_slice_axis(g, given, row, 0, k), column, 0, k);
	yk_id lower = yk_half(g, corner, YK_GT), upper = yk_half(g, corner, YK_LE), rest = YK_NIL;
	if (m > n) {
		const yk_id l2 = yk_slice_axis(g, lu, row, n, m - n),
			    g2 = yk_slice_axis(g, given, row, n, m - n);
		rest = yk_transpose(g, yk_triangular(g, square, yk_transpose(g, g2), YOKE_UPPER));
		upper = yk_bin(g, YK_SUB, upper,
			       yk_half(g, yk_matmul(g, l2, rest, YOKE_TA), YK_LE));
	} else if (n > m) {
		const yk_id u2 = yk_slice_axis(g, lu, column, m, n - m),
			    g2 = yk_slice_axis(g, given, column, m, n - m);
		rest = yk_triangular(g, square, g2, YOKE_TRANSPOSED | YOKE_UNIT);
		lower = yk_bin(g, YK_SUB, lower,
			       yk_half(g, yk_matmul(g, rest, u2, YOKE_TB), YK_GT));
	}
	// L1' dL, where L1 has a unit diagonal
	const yk_id of_l =
		yk_bin(g, YK_ADD, lower, yk_matmul(g, yk_half(g, square, YK_GT), lower, YOKE_TA));
	const yk_id of_u = yk_matmul(g, upper, yk_half(g, square, YK_LE), YOKE_TB);
	yk_id x = yk_bin(g, YK_ADD, yk_half(g, of_l, YK_GT), yk_half(g, of_u, YK_LE));
	x = yk_triangular(g, square, x, YOKE_TRANSPOSED | YOKE_UNIT);
	x = yk_transpose(g, yk_triangular(g, square, yk_transpose(g, x), YOKE_UPPER));
	if (rest != YK_NIL)
		x = yk_record(g, YK_CONCAT, 2, (yk_id[]){ x, rest }, 1,
			      &(union yoke_attr){ .i = m > n ? row : column });
	gin[0] = yk_add_along(g, lu, yk_broadcast(g, yk_as_matrix(g, perm, false), v.rank, v.dims),
			      x, row);
}

static void decompose_solve(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const yk_id lu = factor(g, c->in[0]);
	out[0] = solve_by(g, lu, lu + 1, c->in[1], c->attr[0].i);
}

static void grad_solve(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const bool transposed = n.attr[0].i;
	gin[1] = solve(g, n.in[0], gout[0], !transposed);
	gin[0] = yk_un(g, YK_NEG,
		       transposed ? yk_matmul(g, n.y, gin[1], YOKE_TB) :
				    yk_matmul(g, gin[1], n.y, YOKE_TB));
}

static void decompose_inv(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const yk_id lu = factor(g, c->in[0]);
	out[0] = solve_by(g, lu, lu + 1, YK_NIL, false);
}

static void grad_inv(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id y = g->node[node].out;
	gin[0] = yk_un(g, YK_NEG, yk_matmul(g, yk_matmul(g, y, gout[0], YOKE_TA), y, YOKE_TB));
}

static void decompose_det(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const yk_id lu = factor(g, c->in[0]);
	if (lu != YK_BAD)
		out[0] = yk_bin(g, YK_MUL, product(g, diagonal(g, lu)), lu + 2);
}

static void grad_det(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id a = yk_ins(g, &g->node[node])[0];
	gin[0] = yk_bin(g, YK_MUL, each(g, gout[0]), yk_un(g, YK_COFACTOR, a));
}

static void decompose_slogdet(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const yk_id lu = factor(g, c->in[0]);
	if (lu == YK_BAD)
		return;
	const yk_id d = diagonal(g, lu), logs = yk_un(g, YK_LOG, yk_un(g, YK_ABS, d));
	out[0] = yk_bin(g, YK_MUL, product(g, yk_un(g, YK_SIGN, d)), lu + 2);
	out[1] = logs == YK_BAD ? logs : yk_reduce(g, YK_SUM, logs, yk_last_axis(g, logs), false);
}

static void grad_slogdet(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id a = yk_ins(g, &g->node[node])[0];
	if (gout[1] == YK_NIL)
		gin[0] = yk_full_like(g, a, 0);
	else
		gin[0] = yk_bin(g, YK_MUL, each(g, gout[1]), yk_transpose(g, yk_inverse(g, a)));
}

// det(a) a^-T, as the product of U's diagonal and the inverse by the same factors. A pivot of 0
// becomes the precision times the largest element of U: the two effects of a small pivot cancel
// exactly, so the error is of the order of the precision.
static void decompose_cofactor(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const yk_id lu = factor(g, c->in[0]);
	if (lu == YK_BAD)
		return;
	const struct yk_value v = g->value[lu];
	const bool wide = v.dtype == yoke_f64;
	const int64_t n = v.dims[v.rank - 1];
	if (!n) {
		out[0] = lu;
		return;
	}
	const unsigned both = 3u << (v.rank - 2);
	yk_id small =
		yk_reduce(g, YK_REDUCE_MAX, yk_un(g, YK_ABS, yk_half(g, lu, YK_LE)), both, true);
	small = yk_bin_lit(g, YK_ADD,
			   yk_bin_lit(g, YK_MUL, small, wide ? DBL_EPSILON : FLT_EPSILON),
			   wide ? 1e-290 : 1e-30);
	const yk_id column = yk_counting(g, n), row = yk_reshape(g, column, 2, (int64_t[]){ n, 1 });
	const yk_id zero =
		yk_bin(g, YK_AND, yk_bin(g, YK_EQ, row, column), yk_bin_lit(g, YK_EQ, lu, 0));
	const yk_id fixed = yk_tri(g, YK_SELECT, zero, small, lu);
	const yk_id det = yk_bin(g, YK_MUL, product(g, diagonal(g, fixed)), lu + 2);
	out[0] = yk_bin(g, YK_MUL, yk_transpose(g, solve_by(g, fixed, lu + 1, YK_NIL, false)),
			each(g, det));
}

// <g, a^-T> c - a^-T g' c
static void grad_cofactor(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const yk_id a = yk_ins(g, &g->node[node])[0], y = g->node[node].out;
	const struct yk_value v = g->value[a];
	const yk_id inverse = yk_inverse(g, a);
	const yk_id inner =
		yk_reduce(g, YK_SUM, yk_bin(g, YK_MUL, gout[0], yk_transpose(g, inverse)),
			  3u << (v.rank - 2), true);
	const yk_id second = yk_matmul(g, inverse, yk_matmul(g, gout[0], y, YOKE_TA), YOKE_TA);
	gin[0] = yk_bin(g, YK_SUB, yk_bin(g, YK_MUL, inner, y), second);
}

YK_OP(LU) = { .name = "lu",
	      .code = YOKE_OP_LU,
	      .flags = YK_F_FLOAT | YK_F_PARTIAL,
	      .cast = YK_CAST_F32,
	      .min_in = 1,
	      .max_in = 1,
	      .nout = 3,
	      .shape = shape_lu,
	      .grad = grad_lu };
YK_OP(LU_SOLVE) = { .name = "lu_solve",
		    .code = YOKE_OP_LU_SOLVE,
		    .min_in = 3,
		    .max_in = 3,
		    .nout = 1,
		    .shape = shape_lu_solve };
YK_OP(SOLVE) = { .name = "solve",
		 .flags = YK_F_FLOAT,
		 .cast = YK_CAST_F32,
		 .min_in = 2,
		 .max_in = 2,
		 .nout = 1,
		 .shape = shape_solve,
		 .grad = grad_solve,
		 .decompose = decompose_solve };
YK_OP(INV) = { .name = "inv",
	       .flags = YK_F_FLOAT,
	       .cast = YK_CAST_F32,
	       .min_in = 1,
	       .max_in = 1,
	       .nout = 1,
	       .shape = yk_shape_square,
	       .grad = grad_inv,
	       .decompose = decompose_inv };
YK_OP(DET) = { .name = "det",
	       .flags = YK_F_FLOAT,
	       .cast = YK_CAST_F32,
	       .min_in = 1,
	       .max_in = 1,
	       .nout = 1,
	       .shape = shape_det,
	       .grad = grad_det,
	       .decompose = decompose_det };
YK_OP(SLOGDET) = { .name = "slogdet",
		   .flags = YK_F_FLOAT,
		   .cast = YK_CAST_F32,
		   .min_in = 1,
		   .max_in = 1,
		   .nout = 2,
		   .shape = shape_det,
		   .grad = grad_slogdet,
		   .decompose = decompose_slogdet };
YK_OP(COFACTOR) = { .name = "cofactor",
		    .flags = YK_F_FLOAT,
		    .cast = YK_CAST_F32,
		    .min_in = 1,
		    .max_in = 1,
		    .nout = 1,
		    .shape = yk_shape_square,
		    .grad = grad_cofactor,
		    .decompose = decompose_cofactor };

// ---- public functions ----

yoke_tensor *yoke_lu(yoke_tensor *a, yoke_tensor **perm)
{
	struct yk_rec r = yk_rec_begin_op(YK_LU, 1, &a);
	const yk_id lu = factor(r.g, r.in[0]);
	return yk_rec_end_with(&r, lu, 1, &(struct yk_rec_result){ perm, lu + 1 });
}

yoke_tensor *yoke_solve(yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_SOLVE, 2, (yoke_tensor *[]){ a, b });
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, solve(r.g, yk_batch(r.g, r.in[0], r.in[1]),
				    yk_batch(r.g, r.in[1], r.in[0]), false));
}

yoke_tensor *yoke_inv(yoke_tensor *a)
{
	struct yk_rec r = yk_rec_begin_op(YK_INV, 1, &a);
	return yk_rec_end(&r, yk_inverse(r.g, r.in[0]));
}

yoke_tensor *yoke_det(yoke_tensor *a)
{
	struct yk_rec r = yk_rec_begin_op(YK_DET, 1, &a);
	return yk_rec_end(&r, yk_un(r.g, YK_DET, r.in[0]));
}

yoke_tensor *yoke_slogdet(yoke_tensor *a, yoke_tensor **log_abs)
{
	struct yk_rec r = yk_rec_begin_op(YK_SLOGDET, 1, &a);
	const yk_id sign = yk_record(r.g, YK_SLOGDET, 1, r.in, 0, NULL);
	return yk_rec_end_with(&r, sign, 1, &(struct yk_rec_result){ log_abs, sign + 1 });
}

yoke_tensor *yoke_matrix_power(yoke_tensor *a, int64_t n)
{
	struct yk_rec r = yk_rec_begin_op(YK_INV, 1, &a);
	struct yk_graph *g = r.g;
	yk_id base = r.in[0], y = YK_NIL;
	if (base == YK_BAD ||
	    yk_check_square(g, &(struct yk_call){ .op = YK_INV }, &g->value[base]) < 0)
		return yk_rec_end(&r, YK_BAD);
	if (n < 0)
		base = yk_inverse(g, base);
	if (!n)
		y = yk_half(g, yk_full_like(g, base, 1), YK_EQ);
	// n as an unsigned number has a modulus also for the smallest integer
	for (uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n; rest; rest >>= 1) {
		if (rest & 1)
			y = y == YK_NIL ? base : yk_matmul(g, y, base, 0);
		if (rest > 1)
			base = yk_matmul(g, base, base, 0);
	}
	return yk_rec_end(&r, y);
}
