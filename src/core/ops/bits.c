// SPDX-License-Identifier: Apache-2.0
// Functions of the bits of floating-point numbers: copysign, nextafter, frexp.  Half precision is computed in f32, which
// holds each of its values; the bits are those of an integer of the same size.
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
	return yk_record(g, YK_BITCAST, 1, &bits, 1, &(union yoke_attr){ .i = wide ? yoke_f64 : yoke_f32 });
}

static yk_id negative(struct yk_graph *g, yk_id x)
{
	return yk_bin_lit(g, YK_LT, bits_of(g, x), 0);
}

yoke_tensor *yoke_copysign(yoke_tensor *x, yoke_tensor *sign)
{
	struct yk_rec r = yk_rec_begin_op(YK_MUL, 2, (yoke_tensor *[]){ x, sign });
	struct yk_graph *g = r.g;
	if (!yk_rec_reals(&r, 2))
		return yk_rec_end(&r, YK_BAD);
	// x or -x, so that the gradient has the sign of both
	yk_id same = yk_bin(g, YK_EQ, negative(g, yk_up(g, r.in[0])), negative(g, yk_up(g, r.in[1])));
	return yk_rec_end(&r, yk_tri(g, YK_SELECT, same, r.in[0], yk_un(g, YK_NEG, r.in[0])));
}

// The number after x in the direction of `to`, both f32 or f64, by their bits: those of a neighbour of larger modulus are
// `step` more.
static yk_id next(struct yk_graph *g, yk_id x, yk_id to, double step)
{
	const bool wide = is_f64(g, x);
	const int dtype = wide ? yoke_i64 : yoke_i32;
	yk_id bits = bits_of(g, x), zero = lit_like(g, x, 0);
	yk_id up = yk_bin(g, YK_LT, x, to), away = yk_bin(g, YK_EQ, up, yk_bin(g, YK_GT, x, zero));
	yk_id moved = yk_tri(g, YK_SELECT, away, yk_bin_lit(g, YK_ADD, bits, step), yk_bin_lit(g, YK_SUB, bits, step));
	// the smallest number, of the sign of `to`
	yk_id tiny = yk_tri(g, YK_SELECT, up, yk_lit(g, dtype, step), yk_bin_lit(g, YK_ADD, yk_lit(g, dtype, wide ? -0x1p63 : -0x1p31), step));
	moved = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, x, zero), tiny, moved);
	moved = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, x, to), bits_of(g, to), moved);
	yk_id nan = yk_bin(g, YK_OR, yk_bin(g, YK_NE, x, x), yk_bin(g, YK_NE, to, to));
	return number_of(g, yk_tri(g, YK_SELECT, nan, yk_lit(g, dtype, wide ? 0x7ff8p48 : 0x7fc0p16), moved), wide);
}

yoke_tensor *yoke_nextafter(yoke_tensor *x, yoke_tensor *to)
{
	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ x, to });
	struct yk_graph *g = r.g;
	char text[160];
	if (!yk_rec_reals(&r, 2))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value v = g->value[r.in[0]];
	if (v.dtype == yoke_f16) {
		yk_rec_fail(&r, YOKE_EDTYPE, "takes f32, f64 or bf16, got %s", yk_describe(&v, text));
		return yk_rec_end(&r, YK_BAD);
	}
	// a bf16 is the upper half of an f32
	yk_id y = next(g, yk_up(g, r.in[0]), yk_up(g, r.in[1]), v.dtype == yoke_bf16 ? 65536 : 1);
	return yk_rec_end(&r, yk_un(g, YK_STOP_GRAD, yk_down(g, y, r.in[0])));
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
	yk_id x = yk_up(g, c->in[0]);
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
	yk_id e = yk_bin(g, YK_AND, yk_bin(g, YK_SHR, bits, yk_lit(g, dtype, places)), yk_lit(g, dtype, 2 * bias + 3));
	yk_id whole = yk_bin(g, YK_OR, yk_bin_lit(g, YK_EQ, x, 0), yk_un(g, YK_NOT, yk_un(g, YK_ISFINITE, x)));
	yk_id sign = yk_bin(g, YK_AND, bits, yk_lit(g, dtype, wide ? -0x1p63 : -0x1p31));
	yk_id kept = yk_bin(g, YK_OR, sign, yk_bin(g, YK_AND, bits, yk_lit(g, dtype, field - 1)));
	yk_id mantissa = number_of(g, yk_bin(g, YK_OR, kept, yk_lit(g, dtype, bias * field)), wide);
	out[0] = yk_down(g, yk_tri(g, YK_SELECT, whole, x, mantissa), c->in[0]);
	e = yk_bin(g, YK_SUB, e, yk_tri(g, YK_SELECT, small, yk_lit(g, dtype, bias + places + 2), yk_lit(g, dtype, bias)));
	out[1] = yk_cast(g, yk_tri(g, YK_SELECT, whole, yk_lit(g, dtype, 0), e), yoke_i32);
}

// The mantissa is x over a power of two, which is their quotient.
static void grad_frexp(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	if (gout[0] == YK_NIL)
		return;
	yk_id x = yk_up(g, n.in[0]), one = lit_like(g, x, 1);
	yk_id whole = yk_bin(g, YK_OR, yk_bin_lit(g, YK_EQ, x, 0), yk_un(g, YK_NOT, yk_un(g, YK_ISFINITE, x)));
	yk_id slope = yk_bin(g, YK_DIV, yk_up(g, n.y), yk_tri(g, YK_SELECT, whole, one, x));
	slope = yk_un(g, YK_STOP_GRAD, yk_tri(g, YK_SELECT, whole, one, slope)); // a step function
	gin[0] = yk_down(g, yk_bin(g, YK_MUL, yk_up(g, gout[0]), slope), n.in[0]);
}

YK_OP(FREXP) = { .name = "frexp", .flags = YK_F_FLOAT, .min_in = 1, .max_in = 1, .nout = 2,
	.shape = shape_frexp, .grad = grad_frexp, .decompose = decompose_frexp };

yoke_tensor *yoke_frexp(yoke_tensor *x, yoke_tensor **exponent)
{
	struct yk_rec r = yk_rec_begin(1, &x);
	const yk_id y = yk_record(r.g, YK_FREXP, 1, r.in, 0, NULL);
	return yk_rec_end_with(&r, y, 1, &(struct yk_rec_result){ exponent, y + 1 });
}
