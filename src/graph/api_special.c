// SPDX-License-Identifier: Apache-2.0
// Special functions and arithmetic made of maps.  Their gradients go through what they are made of, so each branch is
// given operands where it is finite.
#include "config.h"

#include <math.h>

#include "graph/record.h"
#include "yoke-math.h"

static yk_id lit_like(struct yk_graph *g, yk_id x, double value)
{
	return x == YK_BAD ? x : yk_lit(g, g->value[x].dtype, value);
}

static yk_id select_lit(struct yk_graph *g, yk_id c, yk_id a, double b)
{
	return yk_tri(g, YK_SELECT, c, a, lit_like(g, a, b));
}

static bool is_wide(const struct yk_graph *g, yk_id x)
{
	return x != YK_BAD && g->value[x].dtype == yoke_f64;
}

// c[0] + c[1] x + ..
static yk_id polynomial(struct yk_graph *g, yk_id x, const double *c, int n)
{
	yk_id y = lit_like(g, x, c[n - 1]);
	for (int i = n - 2; i >= 0; i--)
		y = yk_bin_lit(g, YK_ADD, yk_bin(g, YK_MUL, y, x), c[i]);
	return y;
}

typedef yk_id special_fn(struct yk_graph *, yk_id);

static yoke_tensor *special(const char *call, yoke_tensor *x, special_fn *fn)
{
	struct yk_rec r = yk_rec_begin_as(call, YK_EXP, 0, 1, &x);
	if (!yk_rec_reals(&r, 1))
		return yk_rec_end(&r, YK_BAD);
	return yk_rec_end(&r, yk_down(r.g, fn(r.g, yk_up(r.g, r.in[0])), r.in[0]));
}

// ---- angles ----

// Of a tangent in -1 .. 1: halved by tan(t/2) = tan t / (1 + sqrt(1 + tan^2 t)), then the series.
static yk_id atan_small(struct yk_graph *g, yk_id z)
{
	const int halvings = is_wide(g, z) ? 3 : 2, terms = is_wide(g, z) ? 10 : 6;
	double c[10];
	for (int k = 0; k < halvings; k++)
		z = yk_bin(g, YK_DIV, z, yk_bin_lit(g, YK_ADD, yk_un(g, YK_SQRT,
			   yk_bin_lit(g, YK_ADD, yk_un(g, YK_SQUARE, z), 1)), 1));
	for (int k = 0; k < terms; k++)
		c[k] = (double)(1 << halvings) * (k % 2 ? -1 : 1) / (2 * k + 1);
	return yk_bin(g, YK_MUL, z, polynomial(g, yk_un(g, YK_SQUARE, z), c, terms));
}

static yk_id atan_of(struct yk_graph *g, yk_id x)
{
	yk_id above = yk_bin_lit(g, YK_GT, x, 1), below = yk_bin_lit(g, YK_LT, x, -1);
	yk_id far = yk_bin(g, YK_OR, above, below);
	yk_id z = yk_tri(g, YK_SELECT, far, yk_un(g, YK_NEG, yk_un(g, YK_RECIP, select_lit(g, far, x, 1))), x);
	yk_id turn = yk_tri(g, YK_SELECT, above, lit_like(g, x, M_PI_2),
			    select_lit(g, below, lit_like(g, x, -M_PI_2), 0));
	return yk_bin(g, YK_ADD, atan_small(g, z), turn);
}

static yk_id asin_of(struct yk_graph *g, yk_id x)
{
	yk_id one = lit_like(g, x, 1);
	yk_id s = yk_un(g, YK_SQRT, yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, one, x), yk_bin(g, YK_ADD, one, x)));
	return yk_bin_lit(g, YK_MUL, atan_small(g, yk_bin(g, YK_DIV, x, yk_bin(g, YK_ADD, s, one))), 2);
}

static yk_id acos_of(struct yk_graph *g, yk_id x)
{
	yk_id right = yk_bin_lit(g, YK_GT, x, 0);
	yk_id u = yk_tri(g, YK_SELECT, right, yk_un(g, YK_NEG, x), x);
	u = yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_ADD, u, 1), 0.5);
	yk_id y = yk_bin_lit(g, YK_MUL, asin_of(g, yk_un(g, YK_SQRT, u)), 2);
	return yk_tri(g, YK_SELECT, right, y, yk_bin(g, YK_SUB, lit_like(g, x, M_PI), y));
}

yoke_tensor *yoke_atan(yoke_tensor *x)
{
	return special("atan", x, atan_of);
}

yoke_tensor *yoke_asin(yoke_tensor *x)
{
	return special("asin", x, asin_of);
}

yoke_tensor *yoke_acos(yoke_tensor *x)
{
	return special("acos", x, acos_of);
}

yoke_tensor *yoke_atan2(yoke_tensor *y, yoke_tensor *x)
{
	struct yk_rec r = yk_rec_begin_op(YK_POW, 2, (yoke_tensor *[]){ y, x });
	struct yk_graph *g = r.g;
	if (!yk_rec_reals(&r, 2))
		return yk_rec_end(&r, YK_BAD);
	yk_id v = yk_up(g, r.in[0]), u = yk_up(g, r.in[1]), zero = lit_like(g, v, 0);
	yk_id steep = yk_bin(g, YK_GT, yk_un(g, YK_ABS, v), yk_un(g, YK_ABS, u));
	yk_id none = yk_bin(g, YK_AND, yk_bin(g, YK_EQ, v, zero), yk_bin(g, YK_EQ, u, zero));
	// steep: -x/y from the y axis; else y/x from the x axis; of two infinities the diagonal
	yk_id over = yk_tri(g, YK_SELECT, steep, yk_un(g, YK_NEG, u), v), under = yk_tri(g, YK_SELECT, steep, v, u);
	yk_id both = yk_bin(g, YK_AND, yk_bin_lit(g, YK_EQ, yk_un(g, YK_ABS, v), INFINITY),
			    yk_bin_lit(g, YK_EQ, yk_un(g, YK_ABS, u), INFINITY));
	over = yk_tri(g, YK_SELECT, both, yk_un(g, YK_SIGN, over), over);
	under = yk_tri(g, YK_SELECT, both, yk_un(g, YK_SIGN, under), under);
	yk_id angle = atan_small(g, yk_bin(g, YK_DIV, over, select_lit(g, yk_un(g, YK_NOT, none), under, 1)));
	yk_id down = yk_bin(g, YK_LT, v, zero), left = yk_bin(g, YK_LT, u, zero);
	yk_id quarter = yk_tri(g, YK_SELECT, down, lit_like(g, v, -M_PI_2), lit_like(g, v, M_PI_2));
	yk_id half = yk_tri(g, YK_SELECT, down, lit_like(g, v, -M_PI), lit_like(g, v, M_PI));
	yk_id turn = yk_tri(g, YK_SELECT, steep, quarter, yk_tri(g, YK_SELECT, left, half, zero));
	return yk_rec_end(&r, yk_down(g, yk_bin(g, YK_ADD, angle, turn), r.in[0]));
}

// ---- the gamma function ----

enum { SHIFT = 8 }; // asymptotic series are taken from there on

// x where it is above 0, else 1 - x; *low: where that is.
static yk_id reflect(struct yk_graph *g, yk_id x, yk_id *low)
{
	*low = yk_bin_lit(g, YK_LT, x, 0.5);
	return yk_tri(g, YK_SELECT, *low, yk_bin(g, YK_SUB, lit_like(g, x, 1), x), x);
}

// pi times what x leaves of whole numbers, in -pi/2 .. pi/2.
static yk_id turned(struct yk_graph *g, yk_id x)
{
	return yk_bin_lit(g, YK_MUL, yk_bin(g, YK_SUB, x, yk_un(g, YK_ROUND, x)), M_PI);
}

// From SHIFT on Abramowitz and Stegun 6.1.41; below, Lanczos (1964): gamma(z) = ((z + LANCZOS - 1/2) / e)^(z - 1/2) N(z) / D(z),
// D(z) = z (z + 1) .. (z + 6), exact at z = 1 .. 8 and to 2e-17 between, which loses no digits in f32 as a shift into the
// series would; 6.1.17 below 1/2.
#define LANCZOS 7.875
static yk_id lgamma_of(struct yk_graph *g, yk_id x)
{
	static const double series[] = { 1 / 12.0, -1 / 360.0, 1 / 1260.0, -1 / 1680.0, 1 / 1188.0, -691 / 360360.0, 1 / 156.0 };
	static const double lanczos[] = { 1185.949695175414532,   1117.739849503135991,   451.51715937824408901, 101.33748720913259642,
					  13.647439005816113069,  1.1028500181706277765,  0.049515526006012576052,
					  0.00095284199380174729919 };
	yk_id low, z = reflect(g, x, &low);
	yk_id small = yk_bin_lit(g, YK_LT, z, SHIFT), w = select_lit(g, small, z, 1), below = w, inverse = yk_un(g, YK_RECIP, z);
	for (int k = 1; k < 7; k++)
		below = yk_bin(g, YK_MUL, below, yk_bin_lit(g, YK_ADD, w, k));
	yk_id s = yk_tri(g, YK_SELECT, small, yk_bin_lit(g, YK_ADD, z, LANCZOS - 0.5), z);
	yk_id y = yk_bin(g, YK_MUL, yk_bin_lit(g, YK_SUB, z, 0.5), yk_bin_lit(g, YK_SUB, yk_un(g, YK_LOG, s), 1));
	yk_id tail = yk_bin(g, YK_MUL, inverse, polynomial(g, yk_un(g, YK_SQUARE, inverse), series, 7));
	tail = yk_bin_lit(g, YK_ADD, tail, 0.5 * log(2 * M_PI) - 0.5);
	yk_id ratio = yk_bin(g, YK_DIV, polynomial(g, w, lanczos, 8), below);
	y = yk_bin(g, YK_ADD, y, yk_tri(g, YK_SELECT, small, yk_un(g, YK_LOG, ratio), tail));
	yk_id sine = yk_un(g, YK_ABS, yk_un(g, YK_SIN, turned(g, select_lit(g, low, x, 0.5))));
	yk_id mirror = yk_bin(g, YK_SUB, yk_un(g, YK_NEG, yk_un(g, YK_LOG, yk_bin_lit(g, YK_MUL, sine, M_1_PI))), y);
	return yk_tri(g, YK_SELECT, low, mirror, y);
}

// Abramowitz and Stegun 6.3.18, 6.3.6 and 6.3.7
static yk_id digamma_of(struct yk_graph *g, yk_id x)
{
	static const double series[] = { 1 / 12.0, -1 / 120.0, 1 / 252.0, -1 / 240.0, 1 / 132.0, -691 / 32760.0, 1 / 12.0 };
	yk_id low, z = reflect(g, x, &low);
	yk_id small = yk_bin_lit(g, YK_LT, z, SHIFT), w = select_lit(g, small, z, 1), sum = yk_un(g, YK_RECIP, w);
	for (int k = 1; k < SHIFT; k++)
		sum = yk_bin(g, YK_ADD, sum, yk_un(g, YK_RECIP, yk_bin_lit(g, YK_ADD, w, k)));
	yk_id s = yk_tri(g, YK_SELECT, small, yk_bin_lit(g, YK_ADD, z, SHIFT), z), inverse = yk_un(g, YK_RECIP, s);
	yk_id square = yk_un(g, YK_SQUARE, inverse);
	yk_id y = yk_bin(g, YK_SUB, yk_un(g, YK_LOG, s), yk_bin_lit(g, YK_MUL, inverse, 0.5));
	y = yk_bin(g, YK_SUB, y, yk_bin(g, YK_MUL, square, polynomial(g, square, series, 7)));
	y = yk_bin(g, YK_SUB, y, select_lit(g, small, sum, 0));
	yk_id t = turned(g, select_lit(g, low, x, 0.25));
	yk_id cotangent = yk_bin(g, YK_DIV, yk_un(g, YK_COS, t), yk_un(g, YK_SIN, t));
	return yk_tri(g, YK_SELECT, low, yk_bin(g, YK_SUB, y, yk_bin_lit(g, YK_MUL, cotangent, M_PI)), y);
}

yoke_tensor *yoke_lgamma(yoke_tensor *x)
{
	return special("lgamma", x, lgamma_of);
}

yoke_tensor *yoke_digamma(yoke_tensor *x)
{
	return special("digamma", x, digamma_of);
}

// ---- the inverse of erf ----

// Giles 2012, single precision; f64 by two of Newton's steps from there.
static yk_id erfinv_of(struct yk_graph *g, yk_id x)
{
	static const double middle[] = { 1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
					 -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08 };
	static const double tail[] = { 2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
				       -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257 };
	yk_id one = lit_like(g, x, 1);
	yk_id inside = yk_bin(g, YK_LT, yk_un(g, YK_ABS, x), one), v = select_lit(g, inside, x, 0.5);
	yk_id w = yk_un(g, YK_NEG, yk_un(g, YK_LOG, yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, one, v), yk_bin(g, YK_ADD, one, v))));
	yk_id near = yk_bin_lit(g, YK_LT, w, 5);
	yk_id root = yk_un(g, YK_SQRT, yk_tri(g, YK_SELECT, near, lit_like(g, w, 5), w));
	yk_id p = yk_tri(g, YK_SELECT, near, polynomial(g, yk_bin_lit(g, YK_SUB, w, 2.5), middle, 9),
			 polynomial(g, yk_bin_lit(g, YK_SUB, root, 3), tail, 9));
	yk_id y = yk_bin(g, YK_MUL, p, v);
	for (int k = 0; k < 2 && is_wide(g, x); k++) {
		yk_id slope = yk_bin_lit(g, YK_MUL, yk_un(g, YK_EXP, yk_un(g, YK_SQUARE, y)), 1 / M_2_SQRTPI);
		y = yk_bin(g, YK_SUB, y, yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, yk_un(g, YK_ERF, y), v), slope));
	}
	// at the ends infinite, outside and for NaN no number
	yk_id edge = yk_bin(g, YK_DIV, x, yk_bin(g, YK_SUB, one, yk_un(g, YK_ABS, x)));
	yk_id end = yk_bin(g, YK_EQ, yk_un(g, YK_ABS, x), one);
	return yk_tri(g, YK_SELECT, inside, y, select_lit(g, end, yk_un(g, YK_STOP_GRAD, edge), NAN));
}

yoke_tensor *yoke_erfinv(yoke_tensor *x)
{
	return special("erfinv", x, erfinv_of);
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
