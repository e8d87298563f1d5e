// SPDX-License-Identifier: Apache-2.0
// The public elementwise ops and reductions.

#include "config.h"

#include <math.h>

#include "base/error.h"
#include "graph/record.h"

static yoke_tensor *map(int op, int n, yoke_tensor *const *t)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_row(op)->name, op, 0, n, t);
	return yk_rec_end(&r, yk_record(r.g, op, (uint32_t)n, r.in, 0, NULL));
}

#define UNARY(name, OP) \
	yoke_tensor *yoke_##name(yoke_tensor *x) { return map(YK_##OP, 1, &x); }
#define BINARY(name, OP) \
	yoke_tensor *yoke_##name(yoke_tensor *a, yoke_tensor *b) { return map(YK_##OP, 2, (yoke_tensor *[]){ a, b }); }

BINARY(add, ADD) BINARY(sub, SUB) BINARY(mul, MUL) BINARY(div, DIV) BINARY(pow, POW)
BINARY(min, MIN) BINARY(max, MAX) BINARY(mod, MOD) BINARY(eq, EQ) BINARY(ne, NE)
BINARY(lt, LT) BINARY(le, LE) BINARY(gt, GT) BINARY(ge, GE) BINARY(and, AND) BINARY(or, OR)
BINARY(xor, XOR) BINARY(shl, SHL) BINARY(shr, SHR)
UNARY(neg, NEG) UNARY(abs, ABS) UNARY(sign, SIGN) UNARY(floor, FLOOR) UNARY(round, ROUND)
UNARY(ceil, CEIL) UNARY(exp, EXP) UNARY(log, LOG) UNARY(log1p, LOG1P) UNARY(expm1, EXPM1)
UNARY(sqrt, SQRT) UNARY(rsqrt, RSQRT) UNARY(recip, RECIP) UNARY(square, SQUARE) UNARY(sin, SIN)
UNARY(cos, COS) UNARY(tanh, TANH) UNARY(sigmoid, SIGMOID) UNARY(erf, ERF) UNARY(not, NOT)
UNARY(isfinite, ISFINITE) UNARY(stop_grad, STOP_GRAD)

yoke_tensor *yoke_select(yoke_tensor *c, yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_SELECT, 3, (yoke_tensor *[]){ c, a, b });
	return yk_rec_end(&r, yk_tri(r.g, YK_SELECT, r.in[0], r.in[1], r.in[2]));
}

yoke_tensor *yoke_cast(yoke_tensor *x, int dtype)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	if (r.in[0] != YK_BAD && !yoke_dtype_size(dtype)) {
		yk_op_fail(r.g, YK_CAST, YOKE_EDTYPE, "no dtype has the number %d", dtype);
		r.in[0] = YK_BAD;
	}
	return yk_rec_end(&r, yk_cast(r.g, r.in[0], dtype));
}

yoke_tensor *yoke_relu(yoke_tensor *x)
{
	// select, not max: the gradient at 0 is 0
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 1, &x);
	yk_id v = r.in[0];
	if (v == YK_BAD)
		return yk_rec_end(&r, v);
	yk_id zero = yk_lit(r.g, r.g->value[v].dtype, 0);
	return yk_rec_end(&r, yk_tri(r.g, YK_SELECT, yk_bin(r.g, YK_LE, v, zero), zero, v));
}

// What follows is made of several maps: in half precision they are computed in f32, and so are their
// gradients, and the result is rounded once.

// c[0] + c[1] x + .. + c[n - 1] x^(n-1)
static yk_id polynomial(struct yk_graph *g, yk_id x, const double *c, int n)
{
	yk_id y = yk_bin_lit(g, YK_MUL, x, c[n - 1]);
	for (int i = n - 2; i > 0; i--)
		y = yk_bin(g, YK_MUL, yk_bin_lit(g, YK_ADD, y, c[i]), x);
	return yk_bin_lit(g, YK_ADD, y, c[0]);
}

// 1 + e, e = erf(x / sqrt 2) in f32, with as many digits as a half has where they cancel: below -2.5 it is
// sqrt(2/pi) exp(-x^2/2) r(-x), r a rational approximation of Mills' ratio to 2^-20 up to 14.  Where that
// is used the derivative is still e's.
static yk_id one_plus(struct yk_graph *g, yk_id x, yk_id e)
{
	static const double over[] = { 4.62382593504, 3.0224195575, 1.00012389089 };
	static const double under[] = { 3.5998884538, 5.55226179728, 3.02711674713, 1 };
	yk_id near = yk_bin_lit(g, YK_ADD, e, 1);
	yk_id a = yk_bin_lit(g, YK_MIN, yk_un(g, YK_NEG, x), 16); // finite; the result is 0 there
	yk_id bell = yk_un(g, YK_EXP, yk_bin_lit(g, YK_MUL, yk_un(g, YK_SQUARE, a), -0.5));
	bell = yk_bin_lit(g, YK_MUL, bell, M_2_SQRTPI * M_SQRT1_2);
	yk_id far = yk_bin(g, YK_MUL, bell,
			   yk_bin(g, YK_DIV, polynomial(g, a, over, 3), polynomial(g, a, under, 4)));
	yk_id y = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, x, -2.5), far, near);
	yk_id none = yk_bin(g, YK_SUB, e, yk_un(g, YK_STOP_GRAD, e)); // 0
	return yk_bin(g, YK_ADD, yk_un(g, YK_STOP_GRAD, y), none);
}

yoke_tensor *yoke_gelu(yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 1, &x);
	if (!yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_up(r.g, r.in[0]);
	yk_id e = yk_un(r.g, YK_ERF, yk_bin_lit(r.g, YK_MUL, v, M_SQRT1_2));
	yk_id half = yk_bin_lit(r.g, YK_MUL, v, 0.5);
	e = v == r.in[0] ? yk_bin_lit(r.g, YK_ADD, e, 1) : one_plus(r.g, v, e);
	return yk_rec_end(&r, yk_down(r.g, yk_bin(r.g, YK_MUL, half, e), r.in[0]));
}

yoke_tensor *yoke_gelu_tanh(yoke_tensor *x)
{
	// tanh(u) = 2 sigmoid(2u) - 1, so x/2 (1 + tanh u) = x sigmoid(2u): Hendrycks and Gimpel 2016
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 1, &x);
	const double k = 2 * sqrt(2 / M_PI);
	if (!yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_up(r.g, r.in[0]), s = yk_un(r.g, YK_SQUARE, v);
	yk_id u = yk_bin_lit(r.g, YK_ADD, yk_bin_lit(r.g, YK_MUL, s, k * 0.044715), k);
	yk_id p = yk_un(r.g, YK_SIGMOID, yk_bin(r.g, YK_MUL, v, u));
	return yk_rec_end(&r, yk_down(r.g, yk_bin(r.g, YK_MUL, v, p), r.in[0]));
}

yoke_tensor *yoke_silu(yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 1, &x);
	if (!yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_up(r.g, r.in[0]);
	v = yk_bin(r.g, YK_MUL, v, yk_un(r.g, YK_SIGMOID, v));
	return yk_rec_end(&r, yk_down(r.g, v, r.in[0]));
}

// ---- random numbers, counting ----

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
	// two independent calls: each has an ordinal of its own
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
	yk_id scaled = yk_down(r.g, yk_bin_lit(r.g, YK_MUL, yk_up(r.g, v), 1 / (1 - p)), v);
	yk_id y = yk_tri(r.g, YK_SELECT, keep, scaled, yk_lit(r.g, like.dtype, 0));
	return yk_rec_end(&r, y);
}

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
	if (!yoke_dtype_size(dtype) || rank < 0 || rank > YOKE_MAX_RANK || !yk_rec_array(&r, rank, dims, "dims"))
		return yk_rec_end(&r, YK_BAD);
	struct yk_value like = { .dtype = (uint8_t)dtype, .rank = (uint8_t)rank };
	for (int i = 0; i < rank; i++)
		like.dims[i] = dims[i];
	if (axis < -rank || axis >= rank) {
		yk_rec_fail(&r, YOKE_ERANGE, "no axis %d in %s", axis, yk_describe(&like, text));
		return yk_rec_end(&r, YK_BAD);
	}
	int k = axis < 0 ? axis + rank : axis;
	// counts along the axis alone, then broadcasts
	int64_t column[YOKE_MAX_RANK];
	for (int i = 0; i < rank; i++)
		column[i] = i == k ? dims[i] : 1;
	yk_id v = yk_record(r.g, YK_IOTA, 0, NULL, 1, &(union yoke_attr){ .i = dims[k] });
	v = yk_reshape(r.g, yk_cast(r.g, v, dtype), rank, column);
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
	if (yk_want_literal(r.g, dtype, value) < 0)
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_broadcast(r.g, yk_lit(r.g, dtype, value), rank, dims));
}

// ---- reductions ----

static yoke_tensor *reduce(int op, yoke_tensor *x, unsigned axes)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_row(op)->name, op, 0, 1, &x);
	if (!yk_rec_axes(&r, r.in[0], axes))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_reduce(r.g, op, r.in[0], axes & YOKE_ALL, axes & YOKE_KEEP));
}

yoke_tensor *yoke_sum(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_SUM, x, axes);
}

yoke_tensor *yoke_prod(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_PROD, x, axes);
}

yoke_tensor *yoke_reduce_max(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_REDUCE_MAX, x, axes);
}

yoke_tensor *yoke_reduce_min(yoke_tensor *x, unsigned axes)
{
	return reduce(YK_REDUCE_MIN, x, axes);
}

yoke_tensor *yoke_mean(yoke_tensor *x, unsigned axes)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 1, &x);
	char text[160];
	if (!yk_rec_axes(&r, r.in[0], axes))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *v = &r.g->value[r.in[0]];
	if (!yk_is_float(v->dtype)) {
		yk_rec_fail(&r, YOKE_EDTYPE, "takes floating point, got %s; cast it", yk_describe(v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	return yk_rec_end(&r, yk_mean(r.g, r.in[0], axes & YOKE_ALL, axes & YOKE_KEEP));
}

yoke_tensor *yoke_mse(yoke_tensor *x, yoke_tensor *y)
{
	struct yk_rec r = yk_rec_begin_op(YK_SUM, 2, (yoke_tensor *[]){ x, y });
	if (!yk_rec_reals(&r, 2))
		return yk_rec_end(&r, YK_BAD);
	// the mean of squares may fit half precision where a square does not
	yk_id d = yk_bin(r.g, YK_SUB, yk_up(r.g, r.in[0]), yk_up(r.g, r.in[1]));
	yk_id m = yk_mean(r.g, yk_un(r.g, YK_SQUARE, d), YOKE_ALL, false);
	return yk_rec_end(&r, yk_down(r.g, m, r.in[0]));
}

static yoke_tensor *arg(int op, yoke_tensor *x, int axis)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_row(op)->name, op, 0, 1, &x);
	int k = yk_rec_axis(&r, r.in[0], axis);
	return yk_rec_end(&r, k < 0 ? YK_BAD : yk_reduce(r.g, op, r.in[0], 1u << k, false));
}

yoke_tensor *yoke_argmax(yoke_tensor *x, int axis)
{
	return arg(YK_ARGMAX, x, axis);
}

yoke_tensor *yoke_argmin(yoke_tensor *x, int axis)
{
	return arg(YK_ARGMIN, x, axis);
}
