// SPDX-License-Identifier: Apache-2.0
// Special functions: inverse trigonometric functions, log gamma, digamma, the inverse of erf.  They
// have no kernels: each is composed of elementwise operations, in the accumulator's dtype.
#include "config.h"

#include <float.h>
#include <math.h>

#include "graph/record.h"
#include "ops/rules.h"
#include "yoke-math.h"

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

// ---- angles ----

// atan z for z in -1 .. 1: halves the angle by tan(t/2) = tan t / (1 + sqrt(1 + tan^2 t)), then
// uses the series.
static yk_id atan_small(struct yk_graph *g, yk_id z)
{
	const int halvings = is_wide(g, z) ? 3 : 2, terms = is_wide(g, z) ? 10 : 6;
	double c[10];
	for (int k = 0; k < halvings; k++)
		z = yk_bin(g, YK_DIV, z,
			   yk_bin_lit(g, YK_ADD,
				      yk_un(g, YK_SQRT,
					    yk_bin_lit(g, YK_ADD, yk_un(g, YK_SQUARE, z),
						       1)),
				      1));
	for (int k = 0; k < terms; k++)
		c[k] = (double)(1 << halvings) * (k % 2 ? -1 : 1) / (2 * k + 1);
	return yk_bin(g, YK_MUL, z, polynomial(g, yk_un(g, YK_SQUARE, z), c, terms));
}

static yk_id atan_of(struct yk_graph *g, yk_id x)
{
	yk_id above = yk_bin_lit(g, YK_GT, x, 1), below = yk_bin_lit(g, YK_LT, x, -1);
	yk_id far = yk_bin(g, YK_OR, above, below);
	yk_id z =
		yk_tri(g, YK_SELECT, far,
		       yk_un(g, YK_NEG, yk_un(g, YK_RECIP, select_lit(g, far, x, 1))), x);
	yk_id turn = yk_tri(g, YK_SELECT, above, lit_like(g, x, M_PI_2),
			    select_lit(g, below, lit_like(g, x, -M_PI_2), 0));
	return yk_bin(g, YK_ADD, atan_small(g, z), turn);
}

static yk_id asin_of(struct yk_graph *g, yk_id x)
{
	yk_id one = lit_like(g, x, 1);
	yk_id s = yk_un(
		g, YK_SQRT,
		yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, one, x), yk_bin(g, YK_ADD, one, x)));
	return yk_bin_lit(g, YK_MUL,
			  atan_small(g, yk_bin(g, YK_DIV, x, yk_bin(g, YK_ADD, s, one))),
			  2);
}

static yk_id acos_of(struct yk_graph *g, yk_id x)
{
	yk_id right = yk_bin_lit(g, YK_GT, x, 0);
	yk_id u = yk_tri(g, YK_SELECT, right, yk_un(g, YK_NEG, x), x);
	u = yk_bin_lit(g, YK_MUL, yk_bin_lit(g, YK_ADD, u, 1), 0.5);
	yk_id y = yk_bin_lit(g, YK_MUL, asin_of(g, yk_un(g, YK_SQRT, u)), 2);
	return yk_tri(g, YK_SELECT, right, y, yk_bin(g, YK_SUB, lit_like(g, x, M_PI), y));
}

static void decompose_atan2(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id v = yk_cast_acc(g, c->in[0]), u = yk_cast_acc(g, c->in[1]), zero = lit_like(g, v, 0);
	yk_id steep = yk_bin(g, YK_GT, yk_un(g, YK_ABS, v), yk_un(g, YK_ABS, u));
	yk_id none =
		yk_bin(g, YK_AND, yk_bin(g, YK_EQ, v, zero), yk_bin(g, YK_EQ, u, zero));
	// steep: -x/y, from the y axis; else y/x, from the x axis; two infinities give the diagonal
	yk_id over = yk_tri(g, YK_SELECT, steep, yk_un(g, YK_NEG, u), v),
	      under = yk_tri(g, YK_SELECT, steep, v, u);
	yk_id both =
		yk_bin(g, YK_AND, yk_bin_lit(g, YK_EQ, yk_un(g, YK_ABS, v), INFINITY),
		       yk_bin_lit(g, YK_EQ, yk_un(g, YK_ABS, u), INFINITY));
	over = yk_tri(g, YK_SELECT, both, yk_un(g, YK_SIGN, over), over);
	under = yk_tri(g, YK_SELECT, both, yk_un(g, YK_SIGN, under), under);
	yk_id angle =
		atan_small(g, yk_bin(g, YK_DIV, over,
				     select_lit(g, yk_un(g, YK_NOT, none), under, 1)));
	yk_id down = yk_bin(g, YK_LT, v, zero), left = yk_bin(g, YK_LT, u, zero);
	yk_id quarter = yk_tri(g, YK_SELECT, down, lit_like(g, v, -M_PI_2),
			       lit_like(g, v, M_PI_2));
	yk_id half =
		yk_tri(g, YK_SELECT, down, lit_like(g, v, -M_PI), lit_like(g, v, M_PI));
	yk_id turn = yk_tri(g, YK_SELECT, steep, quarter,
			    yk_tri(g, YK_SELECT, left, half, zero));
	out[0] = yk_cast_like(g, yk_bin(g, YK_ADD, angle, turn), c->in[0]);
}

// By y: g x / (x^2 + y^2); by x: -g y / (x^2 + y^2); 0 where both are 0, and where one is infinite,
// the limit.  With the quotient small / big, 1 / (big (1 + quotient^2)) neither overflows nor
// underflows before the result does.
static void grad_atan2(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node *n = &g->node[node];
	const yk_id in[2] = { yk_ins(g, n)[0], yk_ins(g, n)[1] };
	yk_id y = yk_cast_acc(g, in[0]), x = yk_cast_acc(g, in[1]), cot = yk_cast_acc(g, gout[0]),
	      zero = lit_like(g, cot, 0);
	yk_id steep = yk_bin(g, YK_GT, yk_un(g, YK_ABS, y), yk_un(g, YK_ABS, x));
	yk_id big = yk_tri(g, YK_SELECT, steep, y, x),
	      small = yk_tri(g, YK_SELECT, steep, x, y);
	yk_id size = yk_bin(g, YK_MAX, yk_un(g, YK_ABS, y), yk_un(g, YK_ABS, x));
	yk_id flat = yk_bin(g, YK_OR, yk_bin(g, YK_EQ, size, zero),
			    yk_bin_lit(g, YK_EQ, size, INFINITY));
	big = yk_tri(g, YK_SELECT, flat, lit_like(g, cot, 1), big);
	small = yk_tri(g, YK_SELECT, flat, zero, small);
	yk_id quotient = yk_bin(g, YK_DIV, small, big);
	yk_id by_small =
		yk_bin(g, YK_DIV, cot,
		       yk_bin(g, YK_MUL, big,
			      yk_bin_lit(g, YK_ADD, yk_un(g, YK_SQUARE, quotient), 1)));
	by_small = yk_tri(g, YK_SELECT, flat, zero, by_small);
	yk_id by_big = yk_bin(g, YK_MUL, quotient, by_small);
	yk_id dy = yk_tri(g, YK_SELECT, steep, by_big, by_small),
	      dx = yk_tri(g, YK_SELECT, steep, by_small, by_big);
	gin[0] = yk_cast_like(g, yk_sum_to(g, dy, in[0]), in[0]);
	gin[1] = yk_cast_like(g, yk_sum_to(g, yk_un(g, YK_NEG, dx), in[1]), in[1]);
}

// The larger one times sqrt(1 + quotient^2), which does not overflow before the result does.
static void decompose_hypot(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id a = yk_un(g, YK_ABS, yk_cast_acc(g, c->in[0])),
	      b = yk_un(g, YK_ABS, yk_cast_acc(g, c->in[1]));
	yk_id big = yk_bin(g, YK_MAX, a, b), small = yk_bin(g, YK_MIN, a, b);
	// neither 0 / 0 nor infinity / infinity occurs
	yk_id divisor = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, big, 0), lit_like(g, a, 1), big);
	divisor = yk_bin_lit(g, YK_MIN, divisor, is_wide(g, a) ? DBL_MAX : FLT_MAX);
	yk_id quotient = yk_bin(g, YK_DIV, small, divisor), infinite = lit_like(g, a, INFINITY);
	yk_id y =
		yk_bin(g, YK_MUL, big,
		       yk_un(g, YK_SQRT, yk_bin_lit(g, YK_ADD, yk_un(g, YK_SQUARE, quotient), 1)));
	// infinite also beside a NaN
	yk_id either =
		yk_bin(g, YK_OR, yk_bin(g, YK_EQ, a, infinite), yk_bin(g, YK_EQ, b, infinite));
	y = yk_tri(g, YK_SELECT, either, infinite, y);
	out[0] = yk_cast_like(g, y, c->in[0]);
}

// g x / hypot; 0 where both are 0
static void grad_hypot(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	yk_id y = yk_cast_acc(g, n.y), cot = yk_cast_acc(g, gout[0]);
	yk_id unit = yk_bin(g, YK_DIV, cot,
			    yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, y, 0), lit_like(g, y, 1), y));
	for (int i = 0; i < 2; i++)
		gin[i] = yk_cast_like(
			g, yk_sum_to(g, yk_bin(g, YK_MUL, unit, yk_cast_acc(g, n.in[i])), n.in[i]),
			n.in[i]);
}

// ---- the gamma function ----

enum { SHIFT = 8 }; // asymptotic series are used from here on

// x where it is positive, else 1 - x; *low marks the latter.
static yk_id reflect(struct yk_graph *g, yk_id x, yk_id *low)
{
	*low = yk_bin_lit(g, YK_LT, x, 0.5);
	return yk_tri(g, YK_SELECT, *low, yk_bin(g, YK_SUB, lit_like(g, x, 1), x), x);
}

// pi times (x - the nearest integer), in -pi/2 .. pi/2.
static yk_id turned(struct yk_graph *g, yk_id x)
{
	return yk_bin_lit(g, YK_MUL, yk_bin(g, YK_SUB, x, yk_un(g, YK_ROUND, x)), M_PI);
}

// For z >= SHIFT Abramowitz and Stegun 6.1.41.  Below, Lanczos (1964):
// gamma(z) = ((z + LANCZOS - 1/2) / e)^(z - 1/2) N(z) / D(z), D(z) = z (z + 1) .. (z + 6), exact at
// z = 1 .. 8 and to 2e-17 between.  Unlike a shift into the series it loses no digits in f32.
// 6.1.17 below 1/2.
#define LANCZOS 7.875

static yk_id lgamma_of(struct yk_graph *g, yk_id x)
{
	static const double series[] = { 1 / 12.0,    -1 / 360.0, 1 / 1260.0,
					 -1 / 1680.0, 1 / 1188.0, -691 / 360360.0,
					 1 / 156.0 };
	static const double lanczos[] = {
		1185.949695175414532,    1117.739849503135991,     451.51715937824408901,
		101.33748720913259642,   13.647439005816113069,    1.1028500181706277765,
		0.049515526006012576052, 0.00095284199380174729919
	};
	yk_id low, z = reflect(g, x, &low);
	yk_id small = yk_bin_lit(g, YK_LT, z, SHIFT), w = select_lit(g, small, z, 1),
	      below = w, inverse = yk_un(g, YK_RECIP, z);
	for (int k = 1; k < 7; k++)
		below = yk_bin(g, YK_MUL, below, yk_bin_lit(g, YK_ADD, w, k));
	yk_id s = yk_tri(g, YK_SELECT, small, yk_bin_lit(g, YK_ADD, z, LANCZOS - 0.5), z);
	yk_id y = yk_bin(g, YK_MUL, yk_bin_lit(g, YK_SUB, z, 0.5),
			 yk_bin_lit(g, YK_SUB, yk_un(g, YK_LOG, s), 1));
	yk_id tail = yk_bin(g, YK_MUL, inverse,
			    polynomial(g, yk_un(g, YK_SQUARE, inverse), series, 7));
	tail = yk_bin_lit(g, YK_ADD, tail, 0.5 * log(2 * M_PI) - 0.5);
	yk_id ratio = yk_bin(g, YK_DIV, polynomial(g, w, lanczos, 8), below);
	y = yk_bin(g, YK_ADD, y,
		   yk_tri(g, YK_SELECT, small, yk_un(g, YK_LOG, ratio), tail));
	yk_id sine =
		yk_un(g, YK_ABS, yk_un(g, YK_SIN, turned(g, select_lit(g, low, x, 0.5))));
	yk_id mirror = yk_bin(
		g, YK_SUB,
		yk_un(g, YK_NEG, yk_un(g, YK_LOG, yk_bin_lit(g, YK_MUL, sine, M_1_PI))),
		y);
	y = yk_tri(g, YK_SELECT, low, mirror, y);
	return yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, x, -INFINITY),
		      lit_like(g, x, INFINITY), y);
}

// Abramowitz and Stegun 6.3.18, 6.3.6 and 6.3.7; NaN at 0, -1, -2, ..
static yk_id digamma_of(struct yk_graph *g, yk_id x)
{
	static const double series[] = { 1 / 12.0,  -1 / 120.0,     1 / 252.0, -1 / 240.0,
					 1 / 132.0, -691 / 32760.0, 1 / 12.0 };
	yk_id low, z = reflect(g, x, &low);
	yk_id small = yk_bin_lit(g, YK_LT, z, SHIFT), w = select_lit(g, small, z, 1),
	      sum = yk_un(g, YK_RECIP, w);
	for (int k = 1; k < SHIFT; k++)
		sum = yk_bin(g, YK_ADD, sum,
			     yk_un(g, YK_RECIP, yk_bin_lit(g, YK_ADD, w, k)));
	yk_id s = yk_tri(g, YK_SELECT, small, yk_bin_lit(g, YK_ADD, z, SHIFT), z),
	      inverse = yk_un(g, YK_RECIP, s);
	yk_id square = yk_un(g, YK_SQUARE, inverse);
	yk_id y = yk_bin(g, YK_SUB, yk_un(g, YK_LOG, s),
			 yk_bin_lit(g, YK_MUL, inverse, 0.5));
	y = yk_bin(g, YK_SUB, y,
		   yk_bin(g, YK_MUL, square, polynomial(g, square, series, 7)));
	y = yk_bin(g, YK_SUB, y, select_lit(g, small, sum, 0));
	yk_id t = turned(g, select_lit(g, low, x, 0.25));
	yk_id cotangent = yk_bin(g, YK_DIV, yk_un(g, YK_COS, t), yk_un(g, YK_SIN, t));
	// at a pole the two sides have different limits
	yk_id mirror = yk_bin(g, YK_SUB, y, yk_bin_lit(g, YK_MUL, cotangent, M_PI));
	mirror = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, t, 0), lit_like(g, x, NAN),
			mirror);
	return yk_tri(g, YK_SELECT, low, mirror, y);
}

// The derivative of digamma: Abramowitz and Stegun 6.4.12, 6.4.6 and 6.4.7; +infinity at 0, -1, -2,
// ..
static yk_id trigamma_of(struct yk_graph *g, yk_id x)
{
	static const double series[] = {
		1 / 6.0,  -1 / 30.0,     1 / 42.0, -1 / 30.0,
		5 / 66.0, -691 / 2730.0, 7 / 6.0,  -3617 / 510.0
	};
	yk_id low, z = reflect(g, x, &low);
	yk_id small = yk_bin_lit(g, YK_LT, z, SHIFT), w = select_lit(g, small, z, 1);
	yk_id sum = yk_un(g, YK_SQUARE, yk_un(g, YK_RECIP, w));
	for (int k = 1; k < SHIFT; k++)
		sum = yk_bin(g, YK_ADD, sum,
			     yk_un(g, YK_SQUARE,
				   yk_un(g, YK_RECIP, yk_bin_lit(g, YK_ADD, w, k))));
	yk_id s = yk_tri(g, YK_SELECT, small, yk_bin_lit(g, YK_ADD, z, SHIFT), z),
	      inverse = yk_un(g, YK_RECIP, s);
	yk_id square = yk_un(g, YK_SQUARE, inverse);
	yk_id y = yk_bin(g, YK_MUL, yk_bin(g, YK_MUL, inverse, square),
			 polynomial(g, square, series, 8));
	y = yk_bin(g, YK_ADD, y,
		   yk_bin(g, YK_ADD, inverse, yk_bin_lit(g, YK_MUL, square, 0.5)));
	y = yk_bin(g, YK_ADD, y, select_lit(g, small, sum, 0));
	yk_id sine = yk_un(g, YK_SIN, turned(g, select_lit(g, low, x, 0.25)));
	yk_id mirror = yk_un(g, YK_SQUARE, yk_bin(g, YK_DIV, lit_like(g, x, M_PI), sine));
	return yk_tri(g, YK_SELECT, low, yk_bin(g, YK_SUB, mirror, y), y);
}

// ---- the inverse of erf ----

// Giles 2012: x times a polynomial in w = -log(1 - x^2), or in its square root in the tails; 1 -
// |x| is exact.
struct inverse_erf {
	double near, centre; // the first polynomial is in w - centre, for w < near
	const double *middle;
	int nmiddle;
	struct {
		double from, centre; // in sqrt w - centre, for sqrt w > from
		const double *c;
		int n;
	} tail[2];
	int tails;
};

static const struct inverse_erf *inverse_erf(bool wide)
{
	static const double middle_f32[] = { 1.50140941,     0.246640727,
					     -0.00417768164, -0.00125372503,
					     0.00021858087,  -4.39150654e-06,
					     -3.5233877e-06, 3.43273939e-07,
					     2.81022636e-08 };
	static const double tail_f32[] = {
		2.83297682,    1.00167406,     0.00943887047,
		-0.0076224613, 0.00573950773,  -0.00367342844,
		0.00134934322, 0.000100950558, -0.000200214257
	};
	// interpolation at Chebyshev nodes, relative errors below 2e-16
	static const double middle_f64[] = {
		1.6536545626831027,      0.2401581824255883,     -0.00603367087142785,
		-0.000740702534154477,   0.00018673420802464837, -1.3882523394405316e-05,
		-1.3654691850603575e-06, 4.234788173782339e-07,  -2.9070382262927266e-08,
		-4.11266082002324e-09,   1.0512181539804126e-09, -5.414287198084716e-11,
		-1.2976885526532075e-11, 2.6304834740560442e-12, -8.118399443074353e-14,
		-4.001237735091896e-14,  6.596407712420834e-15,  -4.0282154327661744e-17,
		-1.3016928016796445e-16, 1.557432024623325e-17,  1.150022252066253e-18,
		-3.4996044354754177e-19, -1.113483769832702e-21, 3.240704459379902e-21
	};
	static const double tail_f64[] = {
		3.0838856104922208,     1.0052589676941592,      0.0053709145535581985,
		-0.0037512085075638536, 0.0024914420976198813,   -0.0016882755561681802,
		0.0009532893521118177,  -0.00035503751863069763, 2.4031363245440546e-05,
		6.828484052292924e-05,  -4.731952918337189e-05,  1.2475343474376931e-05,
		2.9273722115986924e-06, -4.013946398190292e-06,  1.4958263152984917e-06,
		1.832399988132858e-08,  -2.6860975725571463e-07, 9.071950571029922e-08,
		-3.831039946072411e-10
	};
	static const double far_f64[] = {
		4.849906401408584,       1.0103004648645413,      -0.00013871931835112341,
		-0.00021503011962944126, 7.599527735160192e-05,   -1.968177348376382e-05,
		4.5260599477720725e-06,  -9.930119183482954e-07,  2.2901554497563463e-07,
		-6.761414811460412e-08,  2.9124399186491765e-08,  -1.5146221782627176e-08,
		7.644335983557396e-09,   -3.5875995609819957e-09, 1.4895546197648135e-09,
		-3.7171553416167447e-10, -2.2467591693364936e-11, 2.752083669120488e-11
	};
	static const struct inverse_erf f32 = {
		5, 2.5, middle_f32, 9, { { 0, 3, tail_f32, 9 } }, 1
	};
	static const struct inverse_erf f64 = {
		6.25,
		3.125,
		middle_f64,
		24,
		{ { 0, 3.25, tail_f64, 19 }, { 4, 5, far_f64, 18 } },
		2
	};
	return wide ? &f64 : &f32;
}

static yk_id erfinv_of(struct yk_graph *g, yk_id x)
{
	const struct inverse_erf *t = inverse_erf(is_wide(g, x));
	yk_id one = lit_like(g, x, 1), size = yk_un(g, YK_ABS, x);
	yk_id inside = yk_bin(g, YK_LT, size, one), v = select_lit(g, inside, x, 0.5);
	yk_id w = yk_un(g, YK_NEG,
			yk_un(g, YK_LOG,
			      yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, one, v),
				     yk_bin(g, YK_ADD, one, v))));
	yk_id root = yk_un(g, YK_SQRT, w),
	      p = polynomial(g, yk_bin_lit(g, YK_SUB, root, t->tail[0].centre),
			     t->tail[0].c, t->tail[0].n);
	for (int k = 1; k < t->tails; k++) {
		yk_id far = polynomial(g, yk_bin_lit(g, YK_SUB, root, t->tail[k].centre),
				       t->tail[k].c, t->tail[k].n);
		p = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_GT, root, t->tail[k].from), far,
			   p);
	}
	yk_id middle =
		polynomial(g, yk_bin_lit(g, YK_SUB, w, t->centre), t->middle, t->nmiddle);
	p = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, w, t->near), middle, p);
	// infinite at the end points, NaN outside
	yk_id end = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, x, 0),
			   lit_like(g, x, -INFINITY), lit_like(g, x, INFINITY));
	end = select_lit(g, yk_bin(g, YK_EQ, size, one), end, NAN);
	return yk_tri(g, YK_SELECT, inside, yk_bin(g, YK_MUL, p, v), end);
}

// ---- functions of one operand ----

static void decompose_special(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	yk_id x = yk_cast_acc(g, c->in[0]), y = YK_BAD;
	switch (c->op) {
	case YK_ASIN: y = asin_of(g, x); break;
	case YK_ACOS: y = acos_of(g, x); break;
	case YK_ATAN: y = atan_of(g, x); break;
	case YK_LGAMMA: y = lgamma_of(g, x); break;
	case YK_DIGAMMA: y = digamma_of(g, x); break;
	case YK_ERFINV: y = erfinv_of(g, x); break;
	}
	out[0] = yk_cast_like(g, y, c->in[0]);
}

// The derivative at x, which is in the accumulator's dtype.
static yk_id slope(struct yk_graph *g, int op, yk_id x)
{
	yk_id one = lit_like(g, x, 1), t;
	switch (op) {
	case YK_ASIN:
	case YK_ACOS: // 1 / sqrt((1 - x) (1 + x)): infinite at the end points, NaN outside
		t = yk_un(g, YK_RSQRT,
			  yk_bin(g, YK_MUL, yk_bin(g, YK_SUB, one, x),
				 yk_bin(g, YK_ADD, one, x)));
		return op == YK_ASIN ? t : yk_un(g, YK_NEG, t);
	case YK_ATAN:
		return yk_un(g, YK_RECIP, yk_bin(g, YK_ADD, yk_un(g, YK_SQUARE, x), one));
	case YK_LGAMMA: return yk_un(g, YK_DIGAMMA, x);
	case YK_DIGAMMA: return trigamma_of(g, x);
	case YK_ERFINV: // sqrt(pi)/2 exp(y^2), with y in full precision
		t = yk_un(g, YK_EXP, yk_un(g, YK_SQUARE, yk_un(g, YK_ERFINV, x)));
		return yk_bin_lit(g, YK_MUL, t, 1 / M_2_SQRTPI);
	}
	return YK_BAD;
}

static void grad_special(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const int op = g->node[node].op;
	const yk_id x = yk_ins(g, &g->node[node])[0];
	gin[0] = yk_cast_like(
		g, yk_bin(g, YK_MUL, yk_cast_acc(g, gout[0]), slope(g, op, yk_cast_acc(g, x))), x);
}

#define SPECIAL(N, NAME, nin, family) YK_OP(N) = { \
	.name = NAME, .flags = YK_F_FLOAT, .min_in = nin, .max_in = nin, .nout = 1, \
	.cast = YK_CAST_F32, .shape = yk_shape_map, .grad = grad_##family, \
	.decompose = decompose_##family };

SPECIAL(ASIN, "asin", 1, special) SPECIAL(ACOS, "acos", 1, special)
SPECIAL(ATAN, "atan", 1, special) SPECIAL(ATAN2, "atan2", 2, atan2)
SPECIAL(LGAMMA, "lgamma", 1, special) SPECIAL(DIGAMMA, "digamma", 1, special)
SPECIAL(ERFINV, "erfinv", 1, special) SPECIAL(HYPOT, "hypot", 2, hypot)

static yoke_tensor *special(int op, int n, yoke_tensor *const *x)
{
	struct yk_rec r = yk_rec_begin_as(yk_op_def(op)->name, op, 0, n, x);
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

yoke_tensor *yoke_hypot(yoke_tensor *a, yoke_tensor *b)
{
	return special(YK_HYPOT, 2, (yoke_tensor *[]){ a, b });
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
