// SPDX-License-Identifier: Apache-2.0
// Functions of the bits of floating-point numbers: copysign, nextafter, frexp.  Half precision is
// computed in f32, which holds each of its values; the bits are those of an integer of the same
// size.
#include "config.h"

#include <math.h>

#include "graph/handle.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

static bool is_f64(const struct yk_graph *g, yk_id x)
{
	return x != YK_BAD && g->value[x].dtype == yoke_f64;
}

// The bits of f32 or f64, through which no gradient goes.
static yk_id bits_of(struct yk_graph *g, yk_id x)
{
	const union yoke_attr to = { .i = is_f64(g, x) ? yoke_i64 : yoke_i32 };
	x = yk_un(g, YK_STOP_GRAD, x);
	return yk_record(g, YK_BITCAST, 1, &x, 1, &to);
}

static yk_id number_of(struct yk_graph *g, yk_id bits, bool wide)
{
	return yk_record(g, YK_BITCAST, 1, &bits, 1,
			 &(union yoke_attr){ .i = wide ? yoke_f64 : yoke_f32 });
}

// The bits' dtype has the sign bit alone as its lowest number.
static yk_id sign_bit(struct yk_graph *g, yk_id bits)
{
	return bits == YK_BAD ? bits :
				yk_lit(g, g->value[bits].dtype, yk_dtype_min(g->value[bits].dtype));
}

// As numbers of the dtype of `like`.
static yk_id number_like(struct yk_graph *g, yk_id bits, yk_id like)
{
	return yk_cast_like(
		g, number_of(g, bits, bits != YK_BAD && g->value[bits].dtype == yoke_i64), like);
}

// x with the sign bit inverted where it is not that of the other operand
static void decompose_copysign(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = bits_of(g, yk_cast_acc(g, c->in[0])), sign = bits_of(g, yk_cast_acc(g, c->in[1]));
	yk_id differs = yk_bin(g, YK_AND, yk_bin(g, YK_XOR, x, sign), sign_bit(g, x));
	out[0] = number_like(g, yk_bin(g, YK_XOR, x, differs), c->in[0]);
}

// The cotangent times y / x, 1 or -1; 0 where x is 0, as in PyTorch
static void grad_copysign(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	yk_id sign = yk_bin(g, YK_MUL, yk_un(g, YK_SIGN, n.in[0]), yk_un(g, YK_SIGN, n.y));
	gin[0] = yk_sum_to(g, yk_bin(g, YK_MUL, gout[0], yk_un(g, YK_STOP_GRAD, sign)), n.in[0]);
	gin[1] = yk_full_like(g, n.in[1], 0);
}

static int shape_nextafter(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	if (IN(0)->dtype == yoke_f16)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32, f64 or bf16, got", IN(0));
	return yk_shape_map(g, c, out);
}

// By their bits, positive numbers are ordered like integers, and neighbours differ by `step`.  So
// `to` gets the sign that makes x positive, and x moves by their difference, limited to a step.  0
// takes the sign of `to`.
static void decompose_nextafter(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const yk_id x = yk_cast_acc(g, c->in[0]), to = yk_cast_acc(g, c->in[1]), bx = bits_of(g, x),
		    bt = bits_of(g, to), bit = sign_bit(g, bx);
	const bool wide = is_f64(g, x);
	// a bf16 is the upper half of an f32
	const double step = IN(0)->dtype == yoke_bf16 ? 65536 : 1;
	const yk_id modulus = wide ? yk_bin(g, YK_XOR, bx, yk_bin(g, YK_AND, bx, bit)) :
				     yk_bin_lit(g, YK_AND, bx, INT32_MAX);
	const yk_id sign =
		yk_bin(g, YK_AND, yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, x, 0), bt, bx), bit);
	// below 0 all are alike, and the difference does not overflow
	yk_id y = yk_bin(g, YK_SUB, yk_bin_lit(g, YK_MAX, yk_bin(g, YK_XOR, bt, sign), -step),
			 modulus);
	y = yk_bin_lit(g, YK_MIN, yk_bin_lit(g, YK_MAX, y, -step), step);
	y = yk_bin(g, YK_XOR, yk_bin(g, YK_ADD, y, modulus), sign);
	const yk_id max = yk_bin(g, YK_MAX, x, to), nan = yk_bin(g, YK_NE, max, max);
	y = yk_tri(g, YK_SELECT, nan, lit_like(g, y, wide ? 0x7ff8p48 : 0x7fc0p16), y);
	out[0] = number_like(g, y, c->in[0]);
}

YK_OP(COPYSIGN) = { .name = "copysign",
		    .flags = YK_F_FLOAT,
		    .min_in = 2,
		    .max_in = 2,
		    .nout = 1,
		    .cast = YK_CAST_WIDEST,
		    .shape = yk_shape_map,
		    .grad = grad_copysign,
		    .decompose = decompose_copysign };
YK_OP(NEXTAFTER) = { .name = "nextafter",
		     .flags = YK_F_FLOAT | YK_F_FLAT,
		     .min_in = 2,
		     .max_in = 2,
		     .nout = 1,
		     .shape = shape_nextafter,
		     .decompose = decompose_nextafter };

yoke_tensor *yoke_copysign(yoke_tensor *x, yoke_tensor *sign)
{
	struct yk_rec r = yk_rec_begin_op(YK_COPYSIGN, 2, (yoke_tensor *[]){ x, sign });
	return yk_rec_end(&r, yk_bin(r.g, YK_COPYSIGN, r.in[0], r.in[1]));
}

yoke_tensor *yoke_nextafter(yoke_tensor *x, yoke_tensor *to)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, to });
	return yk_rec_end(&r, yk_bin(r.g, YK_NEXTAFTER, r.in[0], r.in[1]));
}

// x f32 or f64 -> mantissa, exponent i32
static int shape_frexp(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	out[0] = out[1] = *IN(0);
	out[1].dtype = yoke_i32;
	return want_float(g, c, IN(0));
}

static void decompose_frexp(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_cast_acc(g, c->in[0]);
	const bool wide = is_f64(g, x);
	const int places = wide ? 52 : 23, bias = wide ? 1022 : 126;
	const double field = ldexp(1, places), scale = ldexp(1, places + 2);
	// a subnormal number is scaled first
	yk_id small = yk_bin_lit(g, YK_LT, yk_un(g, YK_ABS, x), ldexp(1, 1 - bias));
	yk_id bits = bits_of(g, yk_tri(g, YK_SELECT, small, yk_bin_lit(g, YK_MUL, x, scale), x));
	if (bits == YK_BAD) {
		out[0] = out[1] = YK_BAD;
		return;
	}
	const int dtype = g->value[bits].dtype;
	yk_id e = yk_bin(g, YK_AND, yk_bin(g, YK_SHR, bits, yk_lit(g, dtype, places)),
			 yk_lit(g, dtype, 2 * bias + 3));
	yk_id whole = yk_bin(g, YK_OR, yk_bin_lit(g, YK_EQ, x, 0),
			     yk_un(g, YK_NOT, yk_un(g, YK_ISFINITE, x)));
	yk_id sign = yk_bin(g, YK_AND, bits, yk_lit(g, dtype, wide ? -0x1p63 : -0x1p31));
	yk_id kept = yk_bin(g, YK_OR, sign, yk_bin(g, YK_AND, bits, yk_lit(g, dtype, field - 1)));
	yk_id mantissa = number_of(g, yk_bin(g, YK_OR, kept, yk_lit(g, dtype, bias * field)), wide);
	out[0] = yk_cast_like(g, yk_tri(g, YK_SELECT, whole, x, mantissa), c->in[0]);
	e = yk_bin(g, YK_SUB, e,
		   yk_tri(g, YK_SELECT, small, yk_lit(g, dtype, bias + places + 2),
			  yk_lit(g, dtype, bias)));
	out[1] = yk_cast(g, yk_tri(g, YK_SELECT, whole, yk_lit(g, dtype, 0), e), yoke_i32);
}

// The mantissa is x over a power of two, which is their quotient.
static void grad_frexp(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	if (gout[0] == YK_NIL)
		return;
	yk_id x = yk_cast_acc(g, n.in[0]), one = lit_like(g, x, 1);
	yk_id whole = yk_bin(g, YK_OR, yk_bin_lit(g, YK_EQ, x, 0),
			     yk_un(g, YK_NOT, yk_un(g, YK_ISFINITE, x)));
	yk_id slope = yk_bin(g, YK_DIV, yk_cast_acc(g, n.y), yk_tri(g, YK_SELECT, whole, one, x));
	slope = yk_un(g, YK_STOP_GRAD, yk_tri(g, YK_SELECT, whole, one, slope)); // a step function
	gin[0] = yk_cast_like(g, yk_bin(g, YK_MUL, yk_cast_acc(g, gout[0]), slope), n.in[0]);
}

YK_OP(FREXP) = { .name = "frexp", .flags = YK_F_FLOAT, .min_in = 1, .max_in = 1, .nout = 2,
	.shape = shape_frexp, .grad = grad_frexp, .decompose = decompose_frexp };

yoke_tensor *yoke_frexp(yoke_tensor *x, yoke_tensor **exponent)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const yk_id y = yk_record(r.g, YK_FREXP, 1, r.in, 0, NULL);
	return yk_rec_end_with(&r, y, 1, &(struct yk_rec_result){ exponent, y + 1 });
}
