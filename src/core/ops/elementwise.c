// SPDX-License-Identifier: Apache-2.0
// Elementwise operations: arithmetic, comparisons, bits, activations. Each is one instruction of a
// map program (include/yoke-plugin.h) or is composed of several; operands broadcast as in NumPy. In
// the comments g is the cotangent, y the result, S(x, a) sums x down to the shape of a.
#include "config.h"

#include <math.h>

#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

int yk_shape_map(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_op_def *row = yk_op_def(c->op);
	uint32_t first = c->op == YK_SELECT;
	bool grows = c->op == YK_CAST || c->op == YK_UNIFORM;
	const struct yk_value *a = IN(first);
	if (first && IN(0)->dtype != yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "the condition is bool, got", IN(0));
	if (row->flags & YK_F_FLOAT && want_float(g, c, a) < 0)
		return YOKE_EDTYPE;
	if (row->flags & YK_F_BITS && yk_is_float(a->dtype))
		return fail_one(g, c, YOKE_EDTYPE,
				row->flags & YK_F_BOOL ? "takes integers or bool, got" :
							 "takes integers, got", a);
	if (!(row->flags & YK_F_BOOL) && a->dtype == yoke_bool)
		return fail_one(g, c, YOKE_EDTYPE, "takes numbers, got", a);
	if (c->op == YK_UNIFORM && a->dtype != yoke_i32)
		return fail_one(g, c, YOKE_EDTYPE, "takes random bits (i32), got", a);
	*out = *a;
	for (uint32_t k = 0; k < c->nin; k++) {
		const struct yk_value *b = IN(k);
		if (b == a)
			continue;
		if (k >= first && b->dtype != a->dtype)
			return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", a, b);
		if (yk_same_shape(out, b))
			continue;
		if (!yk_dims_broadcast(out, b))
			return fail_two(g, c, YOKE_ESHAPE, "shapes do not broadcast:", out, b);
		grows = true;
	}
	if (row->flags & YK_F_COMPARE)
		out->dtype = yoke_bool;
	if (c->op == YK_CAST || c->op == YK_UNIFORM)
		out->dtype = c->op == YK_CAST ? (uint8_t)c->attr[0].i : yoke_f32;
	return grows ? want_size(g, c, out) : 0; // otherwise no larger than an operand
}

// mask ? x : 0
static yk_id where(struct yk_graph *g, yk_id mask, yk_id x)
{
	if (x == YK_BAD)
		return YK_BAD;
	return yk_tri(g, YK_SELECT, mask, x, yk_lit(g, g->value[x].dtype, 0));
}

// cot times 1 where `a wins b` holds, 1/2 where a and b are equal, else 0; wins: YK_GT or YK_LT
static yk_id share(struct yk_graph *g, yk_id cot, yk_id a, yk_id b, int wins)
{
	yk_id half = yk_bin_lit(g, YK_MUL, cot, 0.5);
	yk_id tie = where(g, yk_bin(g, YK_EQ, a, b), half);
	return yk_tri(g, YK_SELECT, yk_bin(g, wins, a, b), cot, tie);
}

// d y / d x of a map of one operand, times g
static yk_id unary_gradient(struct yk_graph *g, int op, yk_id x, yk_id y, yk_id cot)
{
	yk_id t;
	switch (op) {
	case YK_NEG: return yk_un(g, YK_NEG, cot);
	case YK_ABS: return yk_bin(g, YK_MUL, cot, yk_un(g, YK_SIGN, x));
	case YK_EXP: return yk_bin(g, YK_MUL, cot, y);
	case YK_LOG: return yk_bin(g, YK_DIV, cot, x);
	case YK_LOG1P: return yk_bin(g, YK_DIV, cot, yk_bin_lit(g, YK_ADD, x, 1));
	case YK_EXPM1: return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_ADD, y, 1));
	case YK_SQRT: return yk_bin(g, YK_DIV, cot, yk_bin_lit(g, YK_MUL, y, 2));
	case YK_RSQRT: // -g y^3 / 2
		t = yk_bin(g, YK_MUL, y, yk_un(g, YK_SQUARE, y));
		return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_MUL, t, -0.5));
	case YK_RECIP:
		return yk_un(g, YK_NEG, yk_bin(g, YK_MUL, cot, yk_un(g, YK_SQUARE, y)));
	case YK_SQUARE: return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_MUL, x, 2));
	case YK_SIN: return yk_bin(g, YK_MUL, cot, yk_un(g, YK_COS, x));
	case YK_COS: return yk_un(g, YK_NEG, yk_bin(g, YK_MUL, cot, yk_un(g, YK_SIN, x)));
	case YK_TANH: // g (1 - y^2)
		t = yk_bin(g, YK_SUB, lit_like(g, y, 1), yk_un(g, YK_SQUARE, y));
		return yk_bin(g, YK_MUL, cot, t);
	case YK_SIGMOID: // g y (1 - y)
		t = yk_bin(g, YK_SUB, lit_like(g, y, 1), y);
		return yk_bin(g, YK_MUL, cot, yk_bin(g, YK_MUL, y, t));
	case YK_ERF: // g 2/sqrt(pi) exp(-x^2)
		t = yk_un(g, YK_EXP, yk_un(g, YK_NEG, yk_un(g, YK_SQUARE, x)));
		return yk_bin(g, YK_MUL, cot, yk_bin_lit(g, YK_MUL, t, M_2_SQRTPI));
	}
	return YK_NIL;
}

static void pow_rule(struct yk_graph *g, yk_id a, yk_id b, yk_id y, yk_id cot, yk_id *gin)
{
	// base: g b a^(b-1), 0 where b is 0
	yk_id zero = yk_lit(g, g->value[a].dtype, 0), one = yk_lit(g, g->value[a].dtype, 1);
	yk_id less = yk_bin(g, YK_POW, a, yk_bin_lit(g, YK_SUB, b, 1));
	yk_id da = yk_bin(g, YK_MUL, cot, yk_bin(g, YK_MUL, b, less));
	gin[0] = yk_sum_to(g, where(g, yk_bin(g, YK_NE, b, zero), da), a);
	// exponent: g y log a; 0 where a is negative, where y is 0 (the limit), and for 0^0
	yk_id none = yk_bin(g, YK_AND, yk_bin(g, YK_EQ, a, zero), yk_bin(g, YK_EQ, b, zero));
	none = yk_bin(g, YK_OR, none,
		      yk_bin(g, YK_OR, yk_bin(g, YK_LT, a, zero), yk_bin(g, YK_EQ, y, zero)));
	yk_id log = yk_un(g, YK_LOG, yk_tri(g, YK_SELECT, none, one, a));
	gin[1] = yk_sum_to(
		g,
		yk_bin(g, YK_MUL, cot, yk_bin(g, YK_MUL, where(g, yk_un(g, YK_NOT, none), y), log)),
		b);
}

// Does the gradient rule round more than once?  Such rules compute in the accumulator's dtype.
static bool rounds_often(const struct yk_graph *g, const struct yk_node_copy *n)
{
	switch (n->op) {
	case YK_ADD:
	case YK_SUB:
	case YK_MIN:
	case YK_MAX:
	case YK_SELECT:
	case YK_NEG:
	case YK_ABS:
	case YK_EXP:
	case YK_LOG: return false;
	case YK_MUL: // a product, and a sum if it was broadcast
		return !yk_same_shape(&g->value[n->in[0]], &g->value[n->in[1]]);
	default: return true;
	}
}

static void grad_map(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	yk_id a = n.in[0], b = n.in[1], cot = gout[0], t;
	int wins;
	if (rounds_often(g, &n)) {
		a = yk_cast_acc(g, a);
		b = n.nin > 1 ? yk_cast_acc(g, b) : YK_NIL;
		n.y = yk_cast_acc(g, n.y);
		cot = yk_cast_acc(g, cot);
	}
	switch (n.op) {
	case YK_ADD:
	case YK_SUB:
		gin[0] = yk_sum_to(g, cot, a);
		gin[1] = yk_sum_to(g, cot, b);
		if (n.op == YK_SUB)
			gin[1] = yk_un(g, YK_NEG, gin[1]);
		break;
	case YK_MUL:
		gin[0] = yk_sum_to(g, yk_bin(g, YK_MUL, cot, b), a);
		gin[1] = yk_sum_to(g, yk_bin(g, YK_MUL, cot, a), b);
		break;
	case YK_DIV:
		t = yk_bin(g, YK_DIV, cot, b);
		gin[0] = yk_sum_to(g, t, a);
		gin[1] = yk_sum_to(g, yk_un(g, YK_NEG, yk_bin(g, YK_MUL, t, n.y)), b);
		break;
	case YK_POW: pow_rule(g, a, b, n.y, cot, gin); break;
	case YK_MOD: // a - y is an integer multiple of b, except for rounding
		t = yk_un(g, YK_ROUND, yk_bin(g, YK_DIV, yk_bin(g, YK_SUB, a, n.y), b));
		gin[0] = yk_sum_to(g, cot, a);
		gin[1] = yk_sum_to(g, yk_un(g, YK_NEG, yk_bin(g, YK_MUL, cot, t)), b);
		break;
	case YK_MIN:
	case YK_MAX:
		wins = n.op == YK_MIN ? YK_LT : YK_GT;
		gin[0] = yk_sum_to(g, share(g, cot, a, b, wins), a);
		gin[1] = yk_sum_to(g, share(g, cot, b, a, wins), b);
		break;
	case YK_SELECT:
		t = yk_lit(g, g->value[cot].dtype, 0);
		gin[1] = yk_sum_to(g, yk_tri(g, YK_SELECT, a, cot, t), b);
		gin[2] = yk_sum_to(g, yk_tri(g, YK_SELECT, a, t, cot), n.in[2]);
		break;
	default: gin[0] = unary_gradient(g, n.op, a, n.y, cot);
	}
	for (uint32_t i = 0; i < n.nin; i++)
		if (gin[i] != YK_NIL)
			gin[i] = yk_cast_like(g, gin[i], n.in[i]);
}

static void grad_cast(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yk_node_copy n = yk_node_copy(g, node);
	if (yk_is_float(g->value[n.in[0]].dtype))
		gin[0] = yk_cast(g, gout[0], g->value[n.in[0]].dtype);
}

#define MAP0(N, NAME, nin, more) YK_OP(N) = { \
	.name = NAME, .code = YOKE_OP_MAP, .map = YOKE_MAP_##N, \
	.flags = YK_F_MAP | YK_F_STRIDED | (more), .min_in = nin, .max_in = nin, .nout = 1, \
	.cast = YK_CAST_WIDEST, .shape = yk_shape_map };
#define MAP(N, NAME, nin, more) MAP_CAST(N, NAME, nin, more, YK_CAST_WIDEST)
#define MAP_CAST(N, NAME, nin, more, policy) YK_OP(N) = { \
	.name = NAME, .code = YOKE_OP_MAP, .map = YOKE_MAP_##N, \
	.flags = YK_F_MAP | YK_F_STRIDED | (more), .min_in = nin, .max_in = nin, .nout = 1, \
	.cast = policy, .shape = yk_shape_map, .grad = grad_map };

MAP0(UNIFORM, "uniform", 1, YK_F_FLAT) MAP0(NORMAL, "normal", 2, YK_F_FLOAT | YK_F_FLAT)
MAP(ADD, "add", 2, 0) MAP(SUB, "sub", 2, 0) MAP(MUL, "mul", 2, 0) MAP(DIV, "div", 2, 0)
MAP_CAST(POW, "pow", 2, YK_F_FLOAT, YK_CAST_F32) MAP(MIN, "min", 2, 0) MAP(MAX, "max", 2, 0)
MAP(MOD, "mod", 2, 0) MAP(NEG, "neg", 1, 0) MAP(ABS, "abs", 1, 0)
MAP0(SIGN, "sign", 1, YK_F_FLAT) MAP0(FLOOR, "floor", 1, YK_F_FLAT)
MAP0(ROUND, "round", 1, YK_F_FLAT) MAP0(CEIL, "ceil", 1, YK_F_FLAT)
MAP_CAST(EXP, "exp", 1, YK_F_FLOAT, YK_CAST_F32) MAP_CAST(LOG, "log", 1, YK_F_FLOAT, YK_CAST_F32)
MAP_CAST(LOG1P, "log1p", 1, YK_F_FLOAT, YK_CAST_F32)
MAP_CAST(EXPM1, "expm1", 1, YK_F_FLOAT, YK_CAST_F32) MAP(SQRT, "sqrt", 1, YK_F_FLOAT)
MAP(RSQRT, "rsqrt", 1, YK_F_FLOAT) MAP(RECIP, "recip", 1, YK_F_FLOAT) MAP(SQUARE, "square", 1, 0)
MAP(SIN, "sin", 1, YK_F_FLOAT) MAP(COS, "cos", 1, YK_F_FLOAT) MAP(TANH, "tanh", 1, YK_F_FLOAT)
MAP(SIGMOID, "sigmoid", 1, YK_F_FLOAT) MAP(ERF, "erf", 1, YK_F_FLOAT)
MAP0(EQ, "eq", 2, YK_F_COMPARE | YK_F_BOOL) MAP0(NE, "ne", 2, YK_F_COMPARE | YK_F_BOOL)
MAP0(LT, "lt", 2, YK_F_COMPARE | YK_F_BOOL) MAP0(LE, "le", 2, YK_F_COMPARE | YK_F_BOOL)
MAP0(GT, "gt", 2, YK_F_COMPARE | YK_F_BOOL) MAP0(GE, "ge", 2, YK_F_COMPARE | YK_F_BOOL)
MAP0(ISFINITE, "isfinite", 1, YK_F_COMPARE | YK_F_FLOAT)
MAP0(AND, "and", 2, YK_F_BITS | YK_F_BOOL) MAP0(OR, "or", 2, YK_F_BITS | YK_F_BOOL)
MAP0(XOR, "xor", 2, YK_F_BITS | YK_F_BOOL) MAP0(NOT, "not", 1, YK_F_BITS | YK_F_BOOL)
MAP0(SHL, "shl", 2, YK_F_BITS) MAP0(SHR, "shr", 2, YK_F_BITS) MAP(SELECT, "select", 3, YK_F_BOOL)
YK_OP(CAST) = { .name = "cast", .code = YOKE_OP_MAP, .map = YOKE_MAP_CAST,
	.flags = YK_F_MAP | YK_F_STRIDED | YK_F_BOOL, .min_in = 1, .max_in = 1, .nout = 1,
	.shape = yk_shape_map, .grad = grad_cast };

static yoke_tensor *map(int op, int n, yoke_tensor *const *t)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_def(op)->name, op, 0, n, t);
	return yk_rec_end(&r, yk_record(r.g, op, (uint32_t)n, r.in, 0, NULL));
}

#define UNARY(name, OP) \
	yoke_tensor *yoke_##name(yoke_tensor *x) { return map(YK_##OP, 1, &x); }

#define BINARY(name, OP) \
	yoke_tensor *yoke_##name(yoke_tensor *a, yoke_tensor *b) \
	{ \
		return map(YK_##OP, 2, (yoke_tensor *[]){ a, b }); \
	}

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

// The following functions consist of several maps: in half precision they and their gradients are
// computed in f32, and the result is rounded once.

// c[0] + c[1] x + .. + c[n - 1] x^(n-1)
static yk_id polynomial(struct yk_graph *g, yk_id x, const double *c, int n)
{
	yk_id y = yk_bin_lit(g, YK_MUL, x, c[n - 1]);
	for (int i = n - 2; i > 0; i--)
		y = yk_bin(g, YK_MUL, yk_bin_lit(g, YK_ADD, y, c[i]), x);
	return yk_bin_lit(g, YK_ADD, y, c[0]);
}

// 1 + e, where e = erf(x / sqrt 2) in f32, accurate to half precision where the two cancel: below
// -2.5 it is sqrt(2/pi) exp(-x^2/2) r(-x), where r is a rational approximation of Mills' ratio to
// 2^-20 up to 14. The derivative is that of e there too.
static yk_id one_plus(struct yk_graph *g, yk_id x, yk_id e)
{
	static const double over[] = { 4.62382593504, 3.0224195575, 1.00012389089 };
	static const double under[] = { 3.5998884538, 5.55226179728, 3.02711674713, 1 };
	yk_id near = yk_bin_lit(g, YK_ADD, e, 1);
	yk_id a = yk_bin_lit(g, YK_MIN, yk_un(g, YK_NEG, x), 16); // finite; the result is 0 there
	yk_id bell = yk_un(g, YK_EXP, yk_bin_lit(g, YK_MUL, yk_un(g, YK_SQUARE, a), -0.5));
	bell = yk_bin_lit(g, YK_MUL, bell, M_2_SQRTPI * M_SQRT1_2);
	yk_id far =
		yk_bin(g, YK_MUL, bell,
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
	yk_id v = yk_cast_acc(r.g, r.in[0]);
	yk_id e = yk_un(r.g, YK_ERF, yk_bin_lit(r.g, YK_MUL, v, M_SQRT1_2));
	yk_id half = yk_bin_lit(r.g, YK_MUL, v, 0.5);
	e = v == r.in[0] ? yk_bin_lit(r.g, YK_ADD, e, 1) : one_plus(r.g, v, e);
	return yk_rec_end(&r, yk_cast_like(r.g, yk_bin(r.g, YK_MUL, half, e), r.in[0]));
}

yoke_tensor *yoke_gelu_tanh(yoke_tensor *x)
{
	// tanh(u) = 2 sigmoid(2u) - 1, so x/2 (1 + tanh u) = x sigmoid(2u): Hendrycks and Gimpel
	// 2016
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 1, &x);
	const double k = 2 * sqrt(2 / M_PI);
	if (!yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_cast_acc(r.g, r.in[0]), s = yk_un(r.g, YK_SQUARE, v);
	yk_id u = yk_bin_lit(r.g, YK_ADD, yk_bin_lit(r.g, YK_MUL, s, k * 0.044715), k);
	yk_id p = yk_un(r.g, YK_SIGMOID, yk_bin(r.g, YK_MUL, v, u));
	return yk_rec_end(&r, yk_cast_like(r.g, yk_bin(r.g, YK_MUL, v, p), r.in[0]));
}

yoke_tensor *yoke_silu(yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 1, &x);
	if (!yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_cast_acc(r.g, r.in[0]);
	v = yk_bin(r.g, YK_MUL, v, yk_un(r.g, YK_SIGMOID, v));
	return yk_rec_end(&r, yk_cast_like(r.g, v, r.in[0]));
}

yoke_tensor *yoke_swiglu(yoke_tensor *gate, yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 2, (yoke_tensor *[]){ gate, x });
	if (!yk_rec_reals(&r, 2))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_cast_acc(r.g, r.in[0]);
	v = yk_bin(r.g, YK_MUL, v, yk_un(r.g, YK_SIGMOID, v));
	v = yk_bin(r.g, YK_MUL, v, yk_cast_acc(r.g, r.in[1]));
	return yk_rec_end(&r, yk_cast_like(r.g, v, r.in[0]));
}

yoke_tensor *yoke_clamp(yoke_tensor *x, yoke_tensor *lo, yoke_tensor *hi)
{
	struct yk_rec r = yk_rec_begin_with(YK_MAX, 2 | 4, 3, (yoke_tensor *[]){ x, lo, hi });
	yk_id v = r.in[0];
	if (r.in[1] != YK_NIL)
		v = yk_bin(r.g, YK_MAX, v, r.in[1]);
	if (r.in[2] != YK_NIL)
		v = yk_bin(r.g, YK_MIN, v, r.in[2]);
	return yk_rec_end(&r, v);
}

// ---- quotients and powers ----

// Is the remainder nonzero, with another sign than b?
static yk_id is_off(struct yk_graph *g, yk_id left, yk_id b)
{
	if (left == YK_BAD || b == YK_BAD)
		return YK_BAD;
	yk_id zero = lit_like(g, left, 0);
	yk_id other = yk_bin(g, YK_NE, yk_bin(g, YK_LT, left, zero), yk_bin(g, YK_LT, b, zero));
	return yk_bin(g, YK_AND, yk_bin(g, YK_NE, left, zero), other);
}

yoke_tensor *yoke_remainder(yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_MOD, 2, (yoke_tensor *[]){ a, b });
	yk_id left = yk_bin(r.g, YK_MOD, r.in[0], r.in[1]);
	yk_id y = yk_tri(r.g, YK_SELECT, is_off(r.g, left, r.in[1]),
			 yk_bin(r.g, YK_ADD, left, r.in[1]), left);
	return yk_rec_end(&r, y);
}

yoke_tensor *yoke_floor_div(yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_DIV, 2, (yoke_tensor *[]){ a, b });
	struct yk_graph *g = r.g;
	yk_id left = yk_bin(g, YK_MOD, r.in[0], r.in[1]), y;
	if (left == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	if (yk_is_float(g->value[left].dtype)) // a - left is an exact multiple of b, so the
					       // quotient is not rounded up to the next one
		y = yk_un(g, YK_ROUND,
			  yk_bin(g, YK_DIV, yk_bin(g, YK_SUB, r.in[0], left), r.in[1]));
	else
		y = yk_bin(g, YK_DIV, r.in[0], r.in[1]);
	y = yk_tri(g, YK_SELECT, is_off(g, left, r.in[1]), yk_bin_lit(g, YK_SUB, y, 1), y);
	return yk_rec_end(&r, yk_un(g, YK_STOP_GRAD, y));
}

yoke_tensor *yoke_integer_pow(yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 2, (yoke_tensor *[]){ a, b });
	struct yk_graph *g = r.g;
	yk_id x = r.in[0], n = r.in[1];
	char text[160];
	if (x == YK_BAD || n == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const int dtype = g->value[x].dtype;
	if (!yk_is_int(dtype)) {
		yk_rec_fail(&r, YOKE_EDTYPE,
			    "takes integers, got %s; yoke_pow takes floating point",
			    yk_describe(&g->value[x], text));
		return yk_rec_end(&r, YK_BAD);
	}
	const int bits = 8 * (int)yoke_dtype_size(dtype) - (dtype != yoke_u8);
	yk_id one = yk_lit(g, dtype, 1), power = x, y = one;
	for (int k = 0; k < bits; k++) { // one bit of the exponent at a time
		yk_id bit = yk_bin(g, YK_AND, yk_bin(g, YK_SHR, n, yk_lit(g, dtype, k)), one);
		y = yk_bin(g, YK_MUL, y,
			   yk_tri(g, YK_SELECT, yk_bin(g, YK_NE, bit, yk_lit(g, dtype, 0)), power,
				  one));
		power = k + 1 < bits ? yk_bin(g, YK_MUL, power, power) : power;
	}
	if (dtype == yoke_u8)
		return yk_rec_end(&r, y);
		// 1 / a^-b: 1 for a = 1, by parity +-1 for a = -1, else 0
	yk_id odd = yk_bin(g, YK_NE, yk_bin(g, YK_AND, n, one), yk_lit(g, dtype, 0));
	yk_id minus = yk_tri(g, YK_SELECT, odd, yk_lit(g, dtype, -1), one);
	yk_id inverse = yk_tri(
		g, YK_SELECT, yk_bin(g, YK_EQ, x, one), one,
		yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, x, -1), minus, yk_lit(g, dtype, 0)));
	return yk_rec_end(&r, yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, n, 0), inverse, y));
}
