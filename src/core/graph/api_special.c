// SPDX-License-Identifier: Apache-2.0
// The public special functions, which rows_special.c defines, and quotients and powers made of maps.
#include "config.h"

#include "graph/record.h"
#include "yoke-math.h"

static yk_id lit_like(struct yk_graph *g, yk_id x, double value)
{
	return x == YK_BAD ? x : yk_lit(g, g->value[x].dtype, value);
}

static yoke_tensor *special(int op, int n, yoke_tensor *const *x)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_row(op)->name, op, 0, n, x);
	if (!yk_rec_reals(&r, n))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_record(r.g, op, (uint32_t)n, r.in, 0, NULL));
}

yoke_tensor *yoke_atan(yoke_tensor *x)
{
	return special(YK_ATAN, 1, &x);
}

yoke_tensor *yoke_asin(yoke_tensor *x)
{
	return special(YK_ASIN, 1, &x);
}

yoke_tensor *yoke_acos(yoke_tensor *x)
{
	return special(YK_ACOS, 1, &x);
}

yoke_tensor *yoke_atan2(yoke_tensor *y, yoke_tensor *x)
{
	return special(YK_ATAN2, 2, (yoke_tensor *[]){ y, x });
}

yoke_tensor *yoke_lgamma(yoke_tensor *x)
{
	return special(YK_LGAMMA, 1, &x);
}

yoke_tensor *yoke_digamma(yoke_tensor *x)
{
	return special(YK_DIGAMMA, 1, &x);
}

yoke_tensor *yoke_erfinv(yoke_tensor *x)
{
	return special(YK_ERFINV, 1, &x);
}

// ---- quotients and powers ----

// Has what a leaves of b the other sign, and is not 0?
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
	yk_id y = yk_tri(r.g, YK_SELECT, is_off(r.g, left, r.in[1]), yk_bin(r.g, YK_ADD, left, r.in[1]), left);
	return yk_rec_end(&r, y);
}

yoke_tensor *yoke_floor_div(yoke_tensor *a, yoke_tensor *b)
{
	struct yk_rec r = yk_rec_begin_op(YK_DIV, 2, (yoke_tensor *[]){ a, b });
	struct yk_graph *g = r.g;
	yk_id left = yk_bin(g, YK_MOD, r.in[0], r.in[1]), y;
	if (left == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	if (yk_is_float(g->value[left].dtype)) // of what b divides wholly: no quotient is rounded up to the next one
		y = yk_un(g, YK_ROUND, yk_bin(g, YK_DIV, yk_bin(g, YK_SUB, r.in[0], left), r.in[1]));
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
		yk_rec_fail(&r, YOKE_EDTYPE, "takes integers, got %s; yoke_pow takes floating point",
			    yk_describe(&g->value[x], text));
		return yk_rec_end(&r, YK_BAD);
	}
	const int bits = 8 * (int)yoke_dtype_size(dtype) - (dtype != yoke_u8);
	yk_id one = yk_lit(g, dtype, 1), power = x, y = one;
	for (int k = 0; k < bits; k++) { // one bit of the exponent after the other
		yk_id bit = yk_bin(g, YK_AND, yk_bin(g, YK_SHR, n, yk_lit(g, dtype, k)), one);
		y = yk_bin(g, YK_MUL, y, yk_tri(g, YK_SELECT, yk_bin(g, YK_NE, bit, yk_lit(g, dtype, 0)), power, one));
		power = k + 1 < bits ? yk_bin(g, YK_MUL, power, power) : power;
	}
	if (dtype == yoke_u8)
		return yk_rec_end(&r, y);
	// 1 / a^-b: of 1 it is 1, of -1 its sign by parity, of others 0
	yk_id odd = yk_bin(g, YK_NE, yk_bin(g, YK_AND, n, one), yk_lit(g, dtype, 0));
	yk_id minus = yk_tri(g, YK_SELECT, odd, yk_lit(g, dtype, -1), one);
	yk_id inverse = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, x, one), one,
			       yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, x, -1), minus, yk_lit(g, dtype, 0)));
	return yk_rec_end(&r, yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, n, 0), inverse, y));
}
