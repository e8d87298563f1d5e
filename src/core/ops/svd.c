// SPDX-License-Identifier: Apache-2.0
// QR and singular value decompositions, pseudoinverses and least squares.
#include "config.h"

#include <float.h>

#include "base/error.h"
#include "graph/record.h"
#include "ops/algebra.h"
#include "yoke-linalg.h"

static int64_t rows(const struct yk_value *v)
{
	return v->dims[v->rank - 2];
}

static int64_t columns(const struct yk_value *v)
{
	return v->dims[v->rank - 1];
}

static int64_t smaller(const struct yk_value *v)
{
	return rows(v) < columns(v) ? rows(v) : columns(v);
}

// a [..,m,n] -> q [..,m,k], r [..,k,n]; attr 1: k is m, else the smaller of m and n
static int shape_qr(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *a = IN(0);
	if (yk_check_matrices(g, c, a) < 0)
		return yk_error_last();
	const int64_t k = c->attr[0].i ? rows(a) : smaller(a);
	out[0] = out[1] = *a;
	out[0].dims[a->rank - 1] = out[1].dims[a->rank - 2] = k;
	return want_size(g, c, &out[0]);
}

// a [..,m,n] -> u [..,m,k], s [..,k], v' [..,k,n]; attr 1: u [..,m,m], v' [..,n,n]
static int shape_svd(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *a = IN(0);
	if (yk_check_matrices(g, c, a) < 0)
		return yk_error_last();
	const int64_t k = smaller(a);
	out[0] = out[1] = out[2] = *a;
	out[0].dims[a->rank - 1] = c->attr[0].i ? rows(a) : k;
	out[1].rank--;
	out[1].dims[a->rank - 2] = k;
	out[2].dims[a->rank - 2] = c->attr[0].i ? columns(a) : k;
	const int err = want_size(g, c, &out[0]);
	return err ? err : want_size(g, c, &out[2]);
}

static int shape_pinv(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *a = IN(0);
	if (yk_check_matrices(g, c, a) < 0)
		return yk_error_last();
	*out = *a;
	out->dims[a->rank - 2] = columns(a);
	out->dims[a->rank - 1] = rows(a);
	return 0;
}

// ---- gradients ----

static yk_id sum(struct yk_graph *g, yk_id x, yk_id y)
{
	return x == YK_NIL ? y : yk_bin(g, YK_ADD, x, y);
}

static yk_id minus(struct yk_graph *g, yk_id x, yk_id y)
{
	return yk_bin(g, YK_SUB, x, y);
}

static yk_id or_zero(struct yk_graph *g, yk_id cotangent, yk_id like)
{
	return cotangent == YK_NIL ? yk_full_like(g, like, 0) : cotangent;
}

// (dQ + Q S) R^-T, where S is M = R dR' - dQ' Q with its lower half mirrored, for a square R
// (Walter and Lehmann 2018). The columns beside R of a wide matrix are Q' a2.
static void grad_qr(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const yk_id q = n.y, a = n.in[0];
	const struct yk_value v = g->value[a];
	const int64_t k = smaller(&v), m = rows(&v);
	yk_id r = n.y + 1, gq = or_zero(g, gout[0], q), gr = or_zero(g, gout[1], r),
	      beside = YK_NIL;
	if (columns(&g->value[q]) > k) {
		gin[0] = YK_BAD;
		yk_op_fail(
			g, YK_QR, YOKE_EUNSUPPORTED,
			"the complete Q of a matrix with more rows than columns has no gradient; use the reduced one");
		return;
	}
	if (!k) {
		gin[0] = yk_full_like(g, a, 0);
		return;
	}
	if (columns(&v) > m) {
		const int64_t rest = columns(&v) - m;
		const yk_id a2 = yk_slice_axis(g, a, v.rank - 1, m, rest),
			    g2 = yk_slice_axis(g, gr, v.rank - 1, m, rest);
		gq = yk_bin(g, YK_ADD, gq, yk_matmul(g, a2, g2, YOKE_TB));
		beside = yk_matmul(g, q, g2, 0);
		r = yk_slice_axis(g, r, v.rank - 1, 0, m);
		gr = yk_slice_axis(g, gr, v.rank - 1, 0, m);
	}
	const yk_id both = minus(g, yk_matmul(g, r, gr, YOKE_TB), yk_matmul(g, gq, q, YOKE_TA));
	const yk_id mirrored = yk_bin(g, YK_ADD, yk_half(g, both, YK_GE),
				      yk_transpose(g, yk_half(g, both, YK_GT)));
	yk_id x = yk_bin(g, YK_ADD, gq, yk_matmul(g, q, mirrored, 0));
	x = yk_transpose(g, yk_triangular(g, r, yk_transpose(g, x), YOKE_UPPER));
	if (beside != YK_NIL)
		x = yk_record(g, YK_CONCAT, 2, (yk_id[]){ x, beside }, 1,
			      &(union yoke_attr){ .i = v.rank - 1 });
	gin[0] = x;
}

// U' dU - dU' U for u and its cotangent, both [..,m,k], over the gaps
static yk_id skew(struct yk_graph *g, yk_id u, yk_id gu, yk_id gaps)
{
	const yk_id x = yk_matmul(g, u, gu, YOKE_TA);
	return yk_bin(g, YK_MUL, minus(g, x, yk_transpose(g, x)), gaps);
}

// 1 / s, 0 for values that count as 0
static yk_id recip_values(struct yk_graph *g, yk_id s)
{
	return yk_recip_unless(g, yk_bin(g, YK_LE, s, yk_equal_bound(g, s)), s);
}

// U (F * skew(U' dU) S + S F * skew(V' dV) + diag(ds)) V', F_jk = 1 / (s_k^2 - s_j^2), 0 between
// equal ones; plus (1 - U U') dU S^-1 V' and U S^-1 dV' (1 - V V') (Townsend 2016)
static void grad_svd(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const struct yk_value a = g->value[n.in[0]];
	const int64_t k = smaller(&a);
	const yk_id u = n.y, s = n.y + 1, vh = n.y + 2;
	if (n.attr[0].i && rows(&a) != columns(&a) && (gout[0] != YK_NIL || gout[2] != YK_NIL)) {
		gin[0] = YK_BAD;
		yk_op_fail(
			g, YK_SVD, YOKE_EUNSUPPORTED,
			"the full U and V of a matrix that is not square have no gradient; use the reduced ones");
		return;
	}
	if (!k) {
		gin[0] = yk_full_like(g, n.in[0], 0);
		return;
	}
	// with `full`, the first columns and rows
	const yk_id left = yk_slice_axis(g, u, a.rank - 1, 0, k),
		    right = yk_slice_axis(g, vh, a.rank - 2, 0, k);
	const yk_id row = yk_as_matrix(g, s, true), column = yk_as_matrix(g, s, false);
	yk_id inner = YK_NIL, outer = YK_NIL;
	const yk_id gaps = gout[0] != YK_NIL || gout[2] != YK_NIL ? yk_gaps(g, s, true) : YK_NIL;
	if (gout[0] != YK_NIL)
		inner = yk_bin(g, YK_MUL, skew(g, left, gout[0], gaps), row);
	if (gout[2] != YK_NIL)
		inner = sum(g, inner,
			    yk_bin(g, YK_MUL,
				   skew(g, yk_transpose(g, right), yk_transpose(g, gout[2]), gaps),
				   column));
	if (gout[1] != YK_NIL) {
		struct yk_value square = a;
		square.dims[a.rank - 2] = square.dims[a.rank - 1] = k;
		inner = sum(g, inner,
			    yk_half(g,
				    yk_broadcast_like(g, yk_as_matrix(g, gout[1], true), &square),
				    YK_EQ));
	}
	outer = yk_matmul(g, yk_matmul(g, left, inner, 0), right, 0);
	if (gout[0] != YK_NIL && rows(&a) > k) {
		const yk_id x = minus(g, gout[0],
				      yk_matmul(g, left, yk_matmul(g, left, gout[0], YOKE_TA), 0));
		outer = sum(
			g, outer,
			yk_matmul(g,
				  yk_bin(g, YK_MUL, x, yk_as_matrix(g, recip_values(g, s), true)),
				  right, 0));
	}
	if (gout[2] != YK_NIL && columns(&a) > k) {
		const yk_id x = minus(
			g, gout[2], yk_matmul(g, yk_matmul(g, gout[2], right, YOKE_TB), right, 0));
		outer = sum(
			g, outer,
			yk_matmul(g, left,
				  yk_bin(g, YK_MUL, x, yk_as_matrix(g, recip_values(g, s), false)),
				  0));
	}
	gin[0] = outer;
}

static yk_id svd(struct yk_graph *g, yk_id a, bool full)
{
	return yk_record(g, YK_SVD, 1, &a, 1, &(union yoke_attr){ .i = full });
}

// V S^+ U'
static void decompose_pinv(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value v = g->value[c->in[0]];
	const yk_id u = svd(g, c->in[0], false), s = u + 1, vh = u + 2;
	if (u == YK_BAD)
		return;
	if (!smaller(&v)) {
		out[0] = yk_full_like(g, yk_transpose(g, c->in[0]), 0);
		return;
	}
	const yk_id max = yk_slice_axis(g, s, v.rank - 2, 0, 1);
	const yk_id zero = yk_bin(g, YK_LE, s, yk_bin_lit(g, YK_MUL, max, c->attr[0].f));
	const yk_id recip = yk_as_matrix(g, yk_recip_unless(g, zero, s), true);
	out[0] = yk_matmul(g, vh, yk_bin(g, YK_MUL, u, recip), YOKE_TA | YOKE_TB);
}

// -y' g y' + (1 - a y) (y g')' .. of Golub and Pereyra 1973, for constant rank: with p = y, of the
// smaller side
static void grad_pinv(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const yk_id a = n.in[0], y = n.y, gt = yk_transpose(g, gout[0]); // a, gt [m,n]; y [n,m]
	const struct yk_value v = g->value[a];
	if (rows(&v) <= columns(&v)) {
		const yk_id k = yk_matmul(g, gt, y, 0);             // [m,m]
		const yk_id ky = yk_matmul(g, k, y, YOKE_TB);       // [m,n]
		const yk_id rest = minus(g, gt, yk_matmul(g, k, a, 0));
		yk_id x = minus(g, ky, yk_transpose(g, yk_matmul(g, y, k, 0)));
		x = minus(g, x, yk_matmul(g, yk_matmul(g, a, y, 0), ky, 0));
		gin[0] = yk_bin(g, YK_ADD, x, yk_matmul(g, yk_matmul(g, y, y, YOKE_TA), rest, 0));
		return;
	}
	const yk_id k = yk_matmul(g, y, gt, 0);             // [n,n]
	const yk_id yk = yk_matmul(g, y, k, YOKE_TA);       // [m,n]
	const yk_id rest = minus(g, gt, yk_matmul(g, a, k, 0));
	yk_id x = minus(g, yk, yk_transpose(g, yk_matmul(g, k, y, 0)));
	x = minus(g, x, yk_matmul(g, yk_matmul(g, yk, y, 0), a, 0));
	gin[0] = yk_bin(g, YK_ADD, x, yk_matmul(g, rest, yk_matmul(g, y, y, YOKE_TB), 0));
}

// ---- least squares of full rank ----

// a [..,m,n], b [..,m,k] of equal leading dims -> x [..,n,k]
static int shape_lstsq(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	*out = *IN(1);
	out->dims[out->rank - 2] = columns(IN(0));
	return want_size(g, c, out);
}

static yk_id qr(struct yk_graph *g, yk_id a)
{
	return yk_record(g, YK_QR, 1, &a, 1, &(union yoke_attr){ .i = 0 });
}

// R of a tall a, or of the transpose of a wide one, and of a tall one Q' b in *qb.  Of few
// right-hand sides that is R of both side by side, without Q.
static yk_id factor(struct yk_graph *g, yk_id a, yk_id b, yk_id *q, yk_id *qb)
{
	const struct yk_value v = g->value[a];
	const int64_t n = columns(&v), k = columns(&g->value[b]);
	const int last = v.rank - 1;
	*q = *qb = YK_NIL;
	if (rows(&v) < n) {
		*q = qr(g, yk_transpose(g, a));
		return *q == YK_BAD ? *q : *q + 1;
	}
	if (k > n / 4 + 4) {
		*q = qr(g, a);
		*qb = yk_matmul(g, *q, b, YOKE_TA);
		return *q == YK_BAD ? *q : *q + 1;
	}
	const yk_id both = qr(g, yk_record(g, YK_CONCAT, 2, (yk_id[]){ a, b }, 1,
					   &(union yoke_attr){ .i = last }));
	if (both == YK_BAD)
		return both;
	const yk_id r = yk_slice_axis(g, both + 1, last - 1, 0, n);
	*qb = yk_slice_axis(g, r, last, n, k);
	return yk_slice_axis(g, r, last, 0, n);
}

// R^-1 Q' b; of a wide matrix, by the factors of its transpose, Q R^-T b
static void decompose_lstsq(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id q, qb;
	const yk_id r = factor(g, c->in[0], c->in[1], &q, &qb);
	if (r == YK_BAD)
		out[0] = r;
	else if (qb != YK_NIL)
		out[0] = yk_triangular(g, r, qb, YOKE_UPPER);
	else
		out[0] = yk_matmul(g, q,
				   yk_triangular(g, r, c->in[1], YOKE_UPPER | YOKE_TRANSPOSED), 0);
}

// (R' R)^-1 x
static yk_id by_normal(struct yk_graph *g, yk_id r, yk_id x)
{
	return yk_triangular(g, r, yk_triangular(g, r, x, YOKE_UPPER | YOKE_TRANSPOSED),
			     YOKE_UPPER);
}

// Gradients for a cotangent g of x.  If a is tall, w = (a' a)^-1 g: that of b is a w, that of a is
// (b - a x) w' - a w x'. If a is wide, u = (a a')^-1 a g and y = (a a')^-1 b: that of b is u, that
// of a is y (g - a' u)' - u x'.
static void grad_lstsq(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const yk_id a = n.in[0], b = n.in[1], x = n.y;
	const bool wide = rows(&g->value[a]) < columns(&g->value[a]);
	yk_id q, qb;
	const yk_id r = factor(g, a, b, &q, &qb);
	if (r == YK_BAD) {
		gin[0] = gin[1] = r;
	} else if (wide) {
		const yk_id u = by_normal(g, r, yk_matmul(g, a, gout[0], 0)),
			    y = by_normal(g, r, b);
		const yk_id rest = minus(g, gout[0], yk_matmul(g, a, u, YOKE_TA));
		gin[1] = u;
		gin[0] = minus(g, yk_matmul(g, y, rest, YOKE_TB), yk_matmul(g, u, x, YOKE_TB));
	} else {
		const yk_id w = by_normal(g, r, gout[0]), rest = minus(g, b, yk_matmul(g, a, x, 0));
		gin[1] = yk_matmul(g, a, w, 0);
		gin[0] = minus(g, yk_matmul(g, rest, w, YOKE_TB), yk_matmul(g, gin[1], x, YOKE_TB));
	}
}

YK_OP(QR) = { .name = "qr",
	      .code = YOKE_OP_QR,
	      .flags = YK_F_FLOAT | YK_F_PARTIAL,
	      .cast = YK_CAST_F32,
	      .min_in = 1,
	      .max_in = 1,
	      .nout = 2,
	      .shape = shape_qr,
	      .grad = grad_qr };
YK_OP(SVD) = { .name = "svd",
	       .code = YOKE_OP_SVD,
	       .flags = YK_F_FLOAT | YK_F_PARTIAL,
	       .cast = YK_CAST_F32,
	       .min_in = 1,
	       .max_in = 1,
	       .nout = 3,
	       .shape = shape_svd,
	       .grad = grad_svd };
YK_OP(PINV) = { .name = "pinv",
		.flags = YK_F_FLOAT,
		.cast = YK_CAST_F32,
		.min_in = 1,
		.max_in = 1,
		.nout = 1,
		.shape = shape_pinv,
		.grad = grad_pinv,
		.decompose = decompose_pinv };
YK_OP(LSTSQ) = { .name = "lstsq",
		 .flags = YK_F_FLOAT,
		 .cast = YK_CAST_F32,
		 .min_in = 2,
		 .max_in = 2,
		 .nout = 1,
		 .shape = shape_lstsq,
		 .grad = grad_lstsq,
		 .decompose = decompose_lstsq };

// ---- public functions ----

yoke_tensor *yoke_qr(yoke_tensor *a, int complete, yoke_tensor **r)
{
	struct yk_rec rec = yk_rec_begin_op(YK_QR, 1, &a);
	const yk_id q =
		yk_record(rec.g, YK_QR, 1, rec.in, 1, &(union yoke_attr){ .i = complete != 0 });
	return yk_rec_end_with(&rec, q, 1, &(struct yk_rec_result){ r, q + 1 });
}

yoke_tensor *yoke_svd(yoke_tensor *a, int full, yoke_tensor **values, yoke_tensor **vh)
{
	struct yk_rec r = yk_rec_begin_op(YK_SVD, 1, &a);
	const yk_id u = svd(r.g, r.in[0], full != 0);
	return yk_rec_end_with(&r, u, 2,
			       (struct yk_rec_result[]){ { values, u + 1 }, { vh, u + 2 } });
}

// Is rcond a number?  Replaces one below 0 by the default.
static bool tolerance(struct yk_rec *r, yk_id a, double *rcond)
{
	const struct yk_value *v = &r->g->value[a];
	if (*rcond != *rcond || *rcond > DBL_MAX) {
		yk_rec_fail(r, YOKE_ERANGE, "rcond is %g", *rcond);
		return false;
	}
	if (v->rank >= 2 && *rcond < 0)
		*rcond = (double)(rows(v) > columns(v) ? rows(v) : columns(v)) *
			 (v->dtype == yoke_f64 ? DBL_EPSILON : FLT_EPSILON);
	return true;
}

static yk_id pinv(struct yk_graph *g, yk_id a, double rcond)
{
	return yk_record(g, YK_PINV, 1, &a, 1, &(union yoke_attr){ .f = rcond });
}

yoke_tensor *yoke_pinv(yoke_tensor *a, double rcond)
{
	struct yk_rec r = yk_rec_begin_op(YK_PINV, 1, &a);
	if (r.in[0] == YK_BAD || !tolerance(&r, r.in[0], &rcond))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, pinv(r.g, r.in[0], rcond));
}

yoke_tensor *yoke_lstsq(yoke_tensor *a, yoke_tensor *b, int full_rank, double rcond)
{
	struct yk_rec r = yk_rec_begin_op(YK_PINV, 2, (yoke_tensor *[]){ a, b });
	char ta[160], tb[160];
	if (r.in[0] == YK_BAD || r.in[1] == YK_BAD || !tolerance(&r, r.in[0], &rcond) ||
	    yk_check_matrices(r.g, &(struct yk_call){ .op = YK_PINV }, &r.g->value[r.in[0]]) < 0)
		return yk_rec_end(&r, YK_BAD);
	const yk_id left = yk_batch(r.g, r.in[0], r.in[1]), right = yk_batch(r.g, r.in[1], r.in[0]);
	if (left == YK_BAD || right == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value x = r.g->value[left], y = r.g->value[right];
	bool fits = x.rank == y.rank && rows(&x) == rows(&y);
	for (int i = 0; fits && i < x.rank - 2; i++)
		fits = x.dims[i] == y.dims[i];
	if (!fits || x.dtype != y.dtype) {
		yk_rec_fail(&r, fits ? YOKE_EDTYPE : YOKE_ESHAPE, "%s %s and %s",
			    fits ? "dtypes differ:" : "matrix and right-hand sides do not fit:",
			    yk_describe(&r.g->value[r.in[0]], ta),
			    yk_describe(&r.g->value[r.in[1]], tb));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, full_rank ? yk_bin(r.g, YK_LSTSQ, left, right) :
					  yk_matmul(r.g, pinv(r.g, left, rcond), right, 0));
}
