// SPDX-License-Identifier: Apache-2.0
// Elementwise ops as ONNX operators.  Where the definitions differ (quotients of integers, shifts,
// casts from floating point), more operators make the result that of yoke.
#include "config.h"

#include "export/onnx.h"

#include <math.h>

#include "graph/op.h"

// An op that is computed in one type; a, b, c: names of its operands in that type.
struct map {
	struct yk_onnx *e;
	int type;
	int bits; // of the values' dtype
	bool is_signed;
	const char *a, *b, *c;
};

static bool is_real(int type)
{
	return type == YK_ONNX_F32 || type == YK_ONNX_F64;
}

static const char *number(const struct map *m, double v)
{
	return yk_onnx_number(m->e, m->type, v);
}

static const char *where(const struct map *m, const char *c, const char *a, const char *b)
{
	return yk_onnx_3(m->e, "Where", c, a, b);
}

// ---- integers ----

// a / b truncated; 0 for b = 0; the smallest a divided by -1 is a.
static const char *quotient(const struct map *m)
{
	struct yk_onnx *e = m->e;
	const char *zero = yk_onnx_2(e, "Equal", m->b, number(m, 0)), *special = zero, *y;
	const char *minus = m->is_signed ? yk_onnx_2(e, "Equal", m->b, number(m, -1)) : NULL;
	if (minus)
		special = yk_onnx_2(e, "Or", zero, minus);
	y = yk_onnx_2(e, "Div", m->a, where(m, special, number(m, 1), m->b));
	if (minus)
		y = where(m, minus, yk_onnx_2(e, "Sub", number(m, 0), m->a), y);
	return where(m, zero, number(m, 0), y);
}

static const char *remainder_of(const struct map *m)
{
	struct yk_onnx *e = m->e;
	const char *y = yk_onnx_2(e, "Sub", m->a, yk_onnx_2(e, "Mul", quotient(m), m->b));
	return where(m, yk_onnx_2(e, "Equal", m->b, number(m, 0)), number(m, 0), y);
}

// Operators shift unsigned integers only, by fewer bits than they have.
static const char *shift(const struct map *m, bool left)
{
	struct yk_onnx *e = m->e;
	const int wide = m->type == YK_ONNX_I64 ? YK_ONNX_U64 : YK_ONNX_U32;
	const struct yk_onnx_attr direction = YK_ONNX_S("direction", left ? "LEFT" : "RIGHT");
	const char *inside = yk_onnx_2(e, "And", yk_onnx_2(e, "GreaterOrEqual", m->b, number(m, 0)),
				       yk_onnx_2(e, "Less", m->b, number(m, m->bits)));
	// to the right, a negative a as the complement of its complement; by too many bits, by so
	// many that only its sign is left
	const char *negative = left ? NULL : yk_onnx_2(e, "Less", m->a, number(m, 0));
	const char *a = left ? m->a : where(m, negative, yk_onnx_1(e, "BitwiseNot", m->a), m->a);
	const char *by = where(m, inside, m->b, number(m, left ? 0 : m->bits - m->is_signed));
	const char *in[] = { yk_onnx_cast(e, a, m->type, wide),
			     yk_onnx_cast(e, by, m->type, wide) };
	const char *y =
		yk_onnx_cast(e, yk_onnx_node(e, "BitShift", 2, in, 1, &direction), wide, m->type);
	return left ? where(m, inside, y, number(m, 0)) :
		      where(m, negative, yk_onnx_1(e, "BitwiseNot", y), y);
}

static const char *whole(const struct map *m, int op)
{
	struct yk_onnx *e = m->e;
	switch (op) {
	case YK_DIV: return quotient(m);
	case YK_MOD: return remainder_of(m);
	case YK_SHL: return shift(m, true);
	case YK_SHR: return shift(m, false);
	case YK_AND: return yk_onnx_2(e, "BitwiseAnd", m->a, m->b);
	case YK_OR: return yk_onnx_2(e, "BitwiseOr", m->a, m->b);
	case YK_XOR: return yk_onnx_2(e, "BitwiseXor", m->a, m->b);
	case YK_NOT: return yk_onnx_1(e, "BitwiseNot", m->a);
	case YK_FLOOR:
	case YK_CEIL:
	case YK_ROUND: return m->a;
	}
	return NULL;
}

// ---- floating point ----

// log(1 + x) = log(u) x / (u - 1), u = 1 + x rounded; exp(x) - 1 = (u - 1) x / log(u), u = exp(x):
// the errors of both factors cancel (Kahan; Higham 2002, 1.14.1).  From |x| = 1 on, u - 1 loses no
// digits, and where u is 0, subnormal or near the largest number, the quotient is not 1.
static const char *log1p_of(const struct map *m)
{
	struct yk_onnx *e = m->e;
	const char *u = yk_onnx_2(e, "Add", m->a, number(m, 1)), *log = yk_onnx_1(e, "Log", u);
	const char *y = yk_onnx_2(e, "Mul", log,
				  yk_onnx_2(e, "Div", m->a, yk_onnx_2(e, "Sub", u, number(m, 1))));
	y = where(m, yk_onnx_2(e, "Equal", u, number(m, 1)), m->a, y);
	return where(m, yk_onnx_2(e, "Equal", u, number(m, INFINITY)), u, y);
}

static const char *expm1_of(const struct map *m)
{
	struct yk_onnx *e = m->e;
	const char *u = yk_onnx_1(e, "Exp", m->a), *less = yk_onnx_2(e, "Sub", u, number(m, 1));
	const char *y =
		yk_onnx_2(e, "Mul", less, yk_onnx_2(e, "Div", m->a, yk_onnx_1(e, "Log", u)));
	y = where(m, yk_onnx_2(e, "Equal", u, number(m, 1)), m->a, y);
	const char *small = yk_onnx_2(e, "Less", yk_onnx_1(e, "Abs", m->a), number(m, 1));
	return where(m, small, y, less);
}

static const char *mod_of(const struct map *m)
{
	const struct yk_onnx_attr fmod = YK_ONNX_I("fmod", 1);
	return yk_onnx_node(m->e, "Mod", 2, (const char *[]){ m->a, m->b }, 1, &fmod);
}

// onnxruntime has no Erf of f64: its error is that of f32.
static const char *erf_of(const struct map *m)
{
	const char *x = yk_onnx_cast(m->e, m->a, m->type, YK_ONNX_F32);
	return yk_onnx_cast(m->e, yk_onnx_1(m->e, "Erf", x), YK_ONNX_F32, m->type);
}

static const char *real(const struct map *m, int op)
{
	struct yk_onnx *e = m->e;
	switch (op) {
	case YK_DIV: return yk_onnx_2(e, "Div", m->a, m->b);
	case YK_MOD: return mod_of(m);
	case YK_POW: return yk_onnx_2(e, "Pow", m->a, m->b);
	case YK_FLOOR: return yk_onnx_1(e, "Floor", m->a);
	case YK_CEIL: return yk_onnx_1(e, "Ceil", m->a);
	case YK_ROUND: return yk_onnx_1(e, "Round", m->a);
	case YK_EXP: return yk_onnx_1(e, "Exp", m->a);
	case YK_LOG: return yk_onnx_1(e, "Log", m->a);
	case YK_LOG1P: return log1p_of(m);
	case YK_EXPM1: return expm1_of(m);
	case YK_SQRT: return yk_onnx_1(e, "Sqrt", m->a);
	case YK_RSQRT: return yk_onnx_1(e, "Reciprocal", yk_onnx_1(e, "Sqrt", m->a));
	case YK_RECIP: return yk_onnx_1(e, "Reciprocal", m->a);
	case YK_SIN: return yk_onnx_1(e, "Sin", m->a);
	case YK_COS: return yk_onnx_1(e, "Cos", m->a);
	case YK_TANH: return yk_onnx_1(e, "Tanh", m->a);
	case YK_SIGMOID: return yk_onnx_1(e, "Sigmoid", m->a);
	case YK_ERF: return erf_of(m);
	case YK_ISFINITE:
		return yk_onnx_1(e, "Not",
				 yk_onnx_2(e, "Or", yk_onnx_1(e, "IsNaN", m->a),
					   yk_onnx_1(e, "IsInf", m->a)));
	}
	return NULL;
}

// ---- bool ----

static const char *logic(const struct map *m, int op)
{
	struct yk_onnx *e = m->e;
	const struct map numbers = { .e = e, .type = YK_ONNX_I32 };
	switch (op) {
	case YK_AND:
	case YK_MIN: return yk_onnx_2(e, "And", m->a, m->b);
	case YK_OR:
	case YK_MAX: return yk_onnx_2(e, "Or", m->a, m->b);
	case YK_XOR: return yk_onnx_2(e, "Xor", m->a, m->b);
	case YK_NOT: return yk_onnx_1(e, "Not", m->a);
	case YK_EQ: return yk_onnx_2(e, "Equal", m->a, m->b);
	case YK_NE: return yk_onnx_2(e, "Xor", m->a, m->b);
	case YK_LT: return yk_onnx_2(e, "And", yk_onnx_1(e, "Not", m->a), m->b);
	case YK_LE: return yk_onnx_2(e, "Or", yk_onnx_1(e, "Not", m->a), m->b);
	case YK_GT: return yk_onnx_2(e, "And", m->a, yk_onnx_1(e, "Not", m->b));
	case YK_GE: return yk_onnx_2(e, "Or", m->a, yk_onnx_1(e, "Not", m->b));
	case YK_SELECT: // onnxruntime has no Where of bool
		return yk_onnx_cast(e,
				    where(&numbers, m->a,
					  yk_onnx_cast(e, m->b, YK_ONNX_BOOL, YK_ONNX_I32),
					  yk_onnx_cast(e, m->c, YK_ONNX_BOOL, YK_ONNX_I32)),
				    YK_ONNX_I32, YK_ONNX_BOOL);
	}
	return NULL;
}

// ---- all numbers ----

static const char *plain(const struct map *m, int op)
{
	struct yk_onnx *e = m->e;
	switch (op) {
	case YK_ADD: return yk_onnx_2(e, "Add", m->a, m->b);
	case YK_SUB: return yk_onnx_2(e, "Sub", m->a, m->b);
	case YK_MUL: return yk_onnx_2(e, "Mul", m->a, m->b);
	case YK_SQUARE: return yk_onnx_2(e, "Mul", m->a, m->a);
	case YK_MIN: return yk_onnx_2(e, "Min", m->a, m->b);
	case YK_MAX: return yk_onnx_2(e, "Max", m->a, m->b);
	case YK_NEG: return yk_onnx_1(e, "Neg", m->a);
	case YK_ABS: return yk_onnx_1(e, "Abs", m->a);
	case YK_SIGN: return yk_onnx_1(e, "Sign", m->a);
	case YK_EQ: return yk_onnx_2(e, "Equal", m->a, m->b);
	case YK_NE: return yk_onnx_1(e, "Not", yk_onnx_2(e, "Equal", m->a, m->b));
	case YK_LT: return yk_onnx_2(e, "Less", m->a, m->b);
	case YK_LE: return yk_onnx_2(e, "LessOrEqual", m->a, m->b);
	case YK_GT: return yk_onnx_2(e, "Greater", m->a, m->b);
	case YK_GE: return yk_onnx_2(e, "GreaterOrEqual", m->a, m->b);
	case YK_SELECT: return where(m, m->a, m->b, m->c);
	}
	return NULL;
}

// ---- casts ----

// Truncated and within the dtype's range, where Cast is defined; NaN becomes 0.
static const char *to_whole(struct yk_onnx *e, const char *x, int type, int dtype)
{
	const struct map m = { .e = e, .type = type };
	const int to = yk_onnx_type_of(dtype),
		  bits = 8 * (int)yoke_dtype_size(dtype) - (dtype != yoke_u8);
	const double end = ldexp(1, bits), low = dtype == yoke_u8 ? 0 : -end;
	const double high =
		type == YK_ONNX_F32 ? (double)nextafterf((float)end, 0) : nextafter(end, 0);
	x = where(&m, yk_onnx_1(e, "IsNaN", x), number(&m, 0), x);
	const char *y =
		yk_onnx_2(e, "Min", yk_onnx_2(e, "Max", x, number(&m, low)), number(&m, high));
	y = yk_onnx_cast(e, y, type, to);
	if (bits < 24 || (type == YK_ONNX_F64 && bits < 53)) // high truncates to the largest number
		return y;
	const struct map whole = { .e = e, .type = to };
	return where(&whole, yk_onnx_2(e, "GreaterOrEqual", x, number(&m, end)),
		     yk_onnx_integer(e, to, to == YK_ONNX_I64 ? INT64_MAX : (int64_t)end - 1), y);
}

static const char *cast(struct yk_onnx *e, yk_id x, int dtype)
{
	const int from = e->g.value[x].dtype, to = yk_onnx_type_of(dtype),
		  wide = yk_onnx_wide_type(from);
	if (from == dtype)
		return yk_onnx_name(e, x);
	if (yk_is_float(from) && yk_is_int(dtype))
		return to_whole(e, yk_onnx_wide(e, x), wide, dtype);
	if (yk_is_float(from))
		return yk_onnx_cast(e, yk_onnx_wide(e, x), wide, to);
	// integers become half precision through f32
	const bool twice = dtype == yoke_f16 || dtype == yoke_bf16;
	const char *y = yk_onnx_cast(e, yk_onnx_name(e, x), yk_onnx_type_of(from),
				     twice ? YK_ONNX_F32 : to);
	return twice ? yk_onnx_cast(e, y, YK_ONNX_F32, to) : y;
}

bool yk_onnx_map(struct yk_onnx *e, const struct yk_node *n)
{
	const yk_id *in = yk_ins(&e->g, n);
	const int op = n->op;
	if (op == YK_CAST) {
		yk_onnx_set(e, n->out, cast(e, in[0], (int)yk_attrs(&e->g, n)[0].i));
		return true;
	}
	if (!(yk_op_def(op)->flags & YK_F_MAP) || yk_op_def(op)->flags & YK_F_LEAF ||
	    op == YK_RAND_BITS || op == YK_UNIFORM || op == YK_NORMAL)
		return false;
	const int dtype = e->g.value[in[op == YK_SELECT]].dtype;
	const char *x[3] = { NULL };
	for (uint32_t i = 0; i < n->nin; i++)
		x[i] = yk_onnx_wide(e, in[i]);
	const struct map m = { .e = e,
			       .type = yk_onnx_wide_type(dtype),
			       .bits = 8 * (int)yoke_dtype_size(dtype),
			       .is_signed = dtype != yoke_u8,
			       .a = x[0],
			       .b = x[1],
			       .c = x[2] };
	const char *y = NULL;
	const size_t before = e->count;
	if (dtype == yoke_bool)
		y = logic(&m, op);
	else if (is_real(m.type))
		y = real(&m, op);
	else
		y = whole(&m, op);
	if (!y && e->count == before && dtype != yoke_bool)
		y = plain(&m, op);
	if (!y && !e->err)
		return false;
	if (yk_op_def(op)->flags & YK_F_COMPARE)
		yk_onnx_set(e, n->out, y);
	else
		yk_onnx_set_wide(e, n->out, y);
	return true;
}
