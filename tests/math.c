// SPDX-License-Identifier: Apache-2.0
// Tests functions composed of other operations (yoke-math.h), and attention masks and windows,
// against float64 loops and the C library; gradients against finite differences in f64.
#include "config.h"

#include <float.h>

#include "slope.h"

// ---- special functions ----

// By its asymptotic series from 30 on.
static double digamma(double x)
{
	if (x < 0.5)
		return digamma(1 - x) - M_PI / tan(M_PI * (x - rint(x)));
	double sum = 0;
	for (; x < 30; x++)
		sum -= 1 / x;
	const double i = 1 / (x * x);
	return sum + log(x) - 0.5 / x - i * (1 / 12.0 - i * (1 / 120.0 - i / 252.0));
}

// By bisection of the C library's erf.
static double erfinv(double x)
{
	double lo = 0, hi = 6;
	for (int k = 0; k < 90; k++) {
		const double mid = (lo + hi) / 2;
		*(erf(mid) < fabs(x) ? &lo : &hi) = mid;
	}
	return copysign(lo, x);
}

#define UNARY(name) \
	static yoke_tensor *name##_fn(yoke_tensor *x, void *arg) \
	{ \
		(void)arg; \
		return yoke_##name(x); \
	}
UNARY(asin) UNARY(acos) UNARY(atan) UNARY(lgamma) UNARY(digamma) UNARY(erfinv)

static void test_special(void)
{
	static const struct {
		const char *name;
		fn *f;
		double (*c)(double);
		double lo, hi, f64;
	} row[] = {
		{ "asin", asin_fn, asin, -0.99, 0.99, 1e-14 },
		{ "acos", acos_fn, acos, -0.99, 0.99, 1e-14 },
		{ "atan", atan_fn, atan, -40, 40, 1e-14 },
		{ "lgamma", lgamma_fn, lgamma, -4.9, 40, 2e-13 },
		{ "digamma", digamma_fn, digamma, -3.9, 40, 2e-13 },
		{ "erfinv", erfinv_fn, erfinv, -0.99, 0.99, 1e-12 },
	};
	const int64_t n = 200;
	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		double x[200], got[200], want[200];
		for (int dtype = yoke_f32; dtype <= yoke_f16; dtype++) {
			const double tolerance = dtype == yoke_f64 ? row[k].f64 :
						 dtype == yoke_f32 ? 3e-6 :
								     1e-3;
			for (int i = 0; i < n; i++) {
				do
					x[i] = rnd_real(row[k].lo, row[k].hi);
				// poles
				while (x[i] < 0.5 && row[k].lo < -3 &&
				       fabs(x[i] - rint(x[i])) < 0.1);
				if (dtype == yoke_f16) // whose values are these
					x[i] = rint(fmin(x[i], row[k].hi - 0.1) * 16) / 16 +
					       1 / 32.0;
				else
					x[i] = (double)(float)x[i];
			}
			yoke_scope *s = yoke_scope_begin("special");
			bool good = values(row[k].f(tensor(dtype, 1, &n, x), NULL), got, n);
			for (int i = 0; i < n; i++)
				want[i] = row[k].c(x[i]);
			ok(good && near(got, want, (size_t)n, tolerance, 1, row[k].name),
			   "%s of %s: %s", row[k].name, yoke_dtype_name(dtype), yoke_error());
			yoke_scope_end(s);
			if (dtype == yoke_f64)
				gradient(row[k].f, NULL, 1, (int64_t[]){ 20 }, x, 20, row[k].name);
		}
	}
	const double edge[] = { -INFINITY, INFINITY, 0, NAN, 1, -1, 2 };
	double got[7];
	yoke_scope *s = yoke_scope_begin("edges");
	values(yoke_atan(tensor(yoke_f64, 1, (int64_t[]){ 7 }, edge)), got, 7);
	ok(got[0] == -M_PI_2 && got[1] == M_PI_2 && got[2] == 0 && isnan(got[3]) &&
		   fabs(got[4] - M_PI_4) < 1e-15,
	   "atan of infinities, 0, NaN and 1");
	values(yoke_erfinv(tensor(yoke_f64, 1, (int64_t[]){ 7 }, edge)), got, 7);
	ok(isnan(got[0]) && got[2] == 0 && isnan(got[3]) && got[4] == INFINITY &&
		   got[5] == -INFINITY && isnan(got[6]),
	   "erfinv at its ends and outside: %g %g %g", got[4], got[5], got[6]);
	yoke_scope_end(s);
}

// erfinv of x in 0 .. 1 in long double: Newton's steps from `near`, with erfc where it has more
// digits.
static long double erfinv_long(double x, double near)
{
	long double y = near;
	for (int k = 0; k < 4 && x > 0; k++) {
		const long double off = x < 0.5 ? erfl(y) - x : (1 - (long double)x) - erfcl(y);
		y -= off / (long double)M_2_SQRTPI * expl(y * y);
	}
	return y;
}

static void test_erfinv(void)
{
	enum { COUNT = 4096 };
	static double x[COUNT], got[COUNT], slope[COUNT];
	const int64_t n = COUNT;
	if (LDBL_MANT_DIG <= DBL_MANT_DIG) {
		skip("erfinv is within 4 ulp", "long double has no more digits than double");
		return;
	}
	for (int wide = 0; wide < 2; wide++) {
		const int bits = wide ? 53 : 24;
		double worst = 0, worst_slope = 0;
		for (int i = 0; i < COUNT; i++) {
			x[i] = i < 60 ? ldexp(1, -i * bits / 3) * 0.7 :
			       i % 2  ? rnd_real(0, 1) :
					1 - exp2(-rnd_real(1, bits));
			x[i] = i < bits ? 1 - ldexp(1, -i - 1) : wide ? x[i] : (double)(float)x[i];
			x[i] = x[i] < 1 ? x[i] : 0.5;
		}
		yoke_scope *s = yoke_scope_begin("erfinv");
		yoke_tensor *in = tensor(wide ? yoke_f64 : yoke_f32, 1, &n, x),
			    *y = yoke_erfinv(in), *g;
		bool good = !yoke_grad(yoke_sum(y, YOKE_ALL), 1, &in, &g) && values(y, got, n) &&
			    values(g, slope, n);
		for (int i = 0; i < COUNT && good; i++) {
			const long double want = erfinv_long(x[i], got[i]),
					  min = wide ? 0x1p-1074L : 0x1p-149L;
			const long double ulp =
				want > 0 ? fmaxl(ldexpl(1, ilogbl(want) - bits + 1), min) : min;
			const long double steep = expl(want * want) / (long double)M_2_SQRTPI;
			worst = fmax(worst, (double)(fabsl(got[i] - want) / ulp));
			worst_slope = fmax(worst_slope, (double)fabsl(slope[i] / steep - 1));
		}
		ok(good && worst <= 4,
		   "erfinv of %s: %.2f units in the last place from a reference in long double",
		   wide ? "f64" : "f32", worst);
		ok(good && worst_slope <= (wide ? 1e-13 : 5e-5),
		   "its gradient: relative error %.2g", worst_slope);
		for (int i = 0; i < COUNT; i++)
			x[i] = -x[i];
		good = values(yoke_erfinv(tensor(wide ? yoke_f64 : yoke_f32, 1, &n, x)), slope, n);
		for (int i = 0; i < COUNT && good; i++)
			good = slope[i] == -got[i];
		ok(good, "it is odd");
		yoke_scope_end(s);
	}
}

// ---- gradients at the edges of domains ----

static yoke_tensor *logsumexp_fn(yoke_tensor *x, void *arg)
{
	(void)arg;
	return yoke_logsumexp(x, 0);
}
static yoke_tensor *running_fn(yoke_tensor *x, void *arg)
{
	(void)arg;
	return yoke_logcumsumexp(x, 0);
}
static yoke_tensor *norm_fn(yoke_tensor *x, void *arg)
{
	return yoke_norm(x, *(double *)arg, YOKE_ALL);
}
static yoke_tensor *global_fn(yoke_tensor *x, void *arg)
{
	(void)arg;
	return yoke_global_norm(1, &x);
}

#define INF INFINITY
static void test_edges(void)
{
	static double p[] = { -1, -2.5, 0.5, 2 };
	static const struct {
		const char *name;
		fn *f;
		void *arg;
		int n;
		double x[4], y[4], g[4]; // y has one element where the result has one
	} row[] = {
		{ "asin",
		  asin_fn,
		  NULL,
		  4,
		  { 1, -1, 1.5, -INF },
		  { M_PI_2, -M_PI_2, NAN, NAN },
		  { INF, INF, NAN, NAN } },
		{ "acos",
		  acos_fn,
		  NULL,
		  4,
		  { 1, -1, -2, INF },
		  { 0, M_PI, NAN, NAN },
		  { -INF, -INF, NAN, NAN } },
		{ "atan",
		  atan_fn,
		  NULL,
		  4,
		  { INF, -INF, 0, NAN },
		  { M_PI_2, -M_PI_2, 0, NAN },
		  { 0, 0, 1, NAN } },
		{ "erfinv",
		  erfinv_fn,
		  NULL,
		  4,
		  { 1, -1, 1.5, -INF },
		  { INF, -INF, NAN, NAN },
		  { INF, INF, NAN, NAN } },
		{ "lgamma",
		  lgamma_fn,
		  NULL,
		  4,
		  { 0, -2, INF, -INF },
		  { INF, INF, INF, INF },
		  { NAN, NAN, INF, NAN } },
		{ "digamma",
		  digamma_fn,
		  NULL,
		  4,
		  { 0, -3, INF, -INF },
		  { NAN, NAN, INF, NAN },
		  { INF, INF, 0, NAN } },
		{ "logsumexp",
		  logsumexp_fn,
		  NULL,
		  3,
		  { -INF, -INF, -INF },
		  { -INF },
		  { 1 / 3., 1 / 3., 1 / 3. } },
		{ "logsumexp",
		  logsumexp_fn,
		  NULL,
		  4,
		  { 1, INF, INF, -INF },
		  { INF },
		  { 0, 0.5, 0.5, 0 } },
		{ "logsumexp",
		  logsumexp_fn,
		  NULL,
		  3,
		  { 1, NAN, -INF },
		  { NAN },
		  { NAN, NAN, NAN } },
		{ "logcumsumexp",
		  running_fn,
		  NULL,
		  3,
		  { -INF, 0, 0 },
		  { -INF, 0, M_LN2 },
		  { 1, 1.5, 0.5 } },
		{ "logcumsumexp",
		  running_fn,
		  NULL,
		  3,
		  { 0, -INF, 0 },
		  { 0, 0, M_LN2 },
		  { 2.5, 0, 0.5 } },
		{ "logcumsumexp",
		  running_fn,
		  NULL,
		  3,
		  { -INF, -INF, 0 },
		  { -INF, -INF, 0 },
		  { 1.5, 0.5, 1 } },
		{ "logcumsumexp",
		  running_fn,
		  NULL,
		  3,
		  { 0, INF, 0 },
		  { 0, INF, INF },
		  { 1, 2, 0 } },
		{ "norm of p = -1", norm_fn, &p[0], 3, { 0, 3, -4 }, { 0 }, { 0, 0, 0 } },
		{ "norm of p = -1",
		  norm_fn,
		  &p[0],
		  3,
		  { INF, 1, -2 },
		  { 2 / 3. },
		  { 0, 4 / 9., -1 / 9. } },
		{ "norm of p = -2.5", norm_fn, &p[1], 3, { 0, 0, 0 }, { 0 }, { 0, 0, 0 } },
		{ "norm of p = 1/2", norm_fn, &p[2], 3, { 0, 1, -4 }, { 9 }, { 0, 3, -1.5 } },
		{ "norm of p = 2", norm_fn, &p[3], 3, { 0, 0, 0 }, { 0 }, { 0, 0, 0 } },
		{ "global norm", global_fn, NULL, 3, { 0, 0, 0 }, { 0 }, { 0, 0, 0 } },
	};
	for (int dtype = yoke_f32; dtype <= yoke_bf16; dtype++)
		for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
			static const double tolerance[] = { [yoke_f32] = 2e-6,
							    [yoke_f64] = 1e-6,
							    [yoke_f16] = 1e-3,
							    [yoke_bf16] = 1e-2 };
			double y[4], g[4];
			char text[80];
			if (row[k].f == global_fn && dtype > yoke_f64 && dtype != yoke_f32)
				continue;
			yoke_scope *s = yoke_scope_begin("edge");
			yoke_tensor *x = tensor(dtype, 1, &(int64_t){ row[k].n }, row[k].x),
				    *out = row[k].f(x, row[k].arg), *slope = NULL;
			const int64_t m = out ? yoke_count(out) : 0;
			yoke_grad(yoke_sum(out, YOKE_ALL), 1, &x, &slope);
			bool good = values(out, y, m) && values(slope, g, row[k].n);
			snprintf(text, sizeof text, "%s of %s at an edge", row[k].name,
				 yoke_dtype_name(dtype));
			ok(good && near(y, row[k].y, (size_t)m, tolerance[dtype], 1, text) &&
				   near(g, row[k].g, (size_t)row[k].n, tolerance[dtype], 1,
					"its gradient"),
			   "%s: %s", text, yoke_error());
			yoke_error_clear();
			yoke_scope_end(s);
		}
}

// The gradient of atan2 where a square overflows, is 0, or an operand is infinite.
static void test_atan2_edges(void)
{
	const double y[] = { 0, 0, 1e300, -1e-300, 3, INF, INF, 0, 1e-200 },
		     x[] = { 0, 2, 1e300, 1e-300, -INF, 3, -INF, -2, 1 };
	const double by_y[] = { 0, 0.5, 0.5e-300, 0.5e300, 0, 0, 0, -0.5, 1 },
		     by_x[] = { 0, 0, -0.5e-300, 0.5e300, 0, 0, 0, 0, -1e-200 };
	const int64_t n = 9;
	double got[2][9];
	yoke_scope *s = yoke_scope_begin("atan2");
	yoke_tensor *in[2] = { tensor(yoke_f64, 1, &n, y), tensor(yoke_f64, 1, &n, x) },
		    *g[2] = { NULL, NULL };
	yoke_grad(yoke_sum(yoke_atan2(in[0], in[1]), YOKE_ALL), 2, in, g);
	bool good = values(g[0], got[0], n) && values(g[1], got[1], n);
	for (int i = 0; i < n && good; i++) {
		good = fabs(got[0][i] - by_y[i]) <= 1e-14 * fabs(by_y[i]) &&
		       fabs(got[1][i] - by_x[i]) <= 1e-14 * fabs(by_x[i]);
		if (!good)
			diag("atan2(%g, %g): %g %g, want %g %g", y[i], x[i], got[0][i], got[1][i],
			     by_y[i], by_x[i]);
	}
	ok(good, "the gradient of atan2 at zeros, infinities, and where squares leave f64: %s",
	   yoke_error());
	yoke_scope_end(s);
}

// Sums of gradients that overflow half precision.
static void test_many_ties(void)
{
	enum { MANY = 70000 };
	static double x[MANY], got[MANY];
	static const int dtypes[] = { yoke_f16, yoke_bf16 };
	for (int k = 0; k < 2; k++)
		for (int low = 0; low < 2; low++) {
			const int64_t n = MANY;
			double want;
			for (int i = 0; i < n; i++)
				x[i] = low ? -1 : 1;
			yoke_scope *s = yoke_scope_begin("ties");
			yoke_tensor *in = tensor(dtypes[k], 1, &n, x), *g;
			yoke_grad(low ? yoke_reduce_min(in, YOKE_ALL) :
					yoke_reduce_max(in, YOKE_ALL),
				  1, &in, &g);
			bool good = values(g, got, n) &&
				    values(tensor(dtypes[k], 0, NULL, (double[]){ 1. / MANY }),
					   &want, 1);
			for (int i = 0; i < n; i++)
				good = good && got[i] == want;
			ok(good, "%d equal %s: the gradient of the %s is %g, want %g", MANY,
			   yoke_dtype_name(dtypes[k]), low ? "least" : "largest", got[0], want);
			x[0] = 3;
			const int64_t fewer = 5000;
			in = tensor(dtypes[k], 1, &fewer, x);
			yoke_grad(yoke_sum(low ? yoke_cummin(yoke_neg(in), 0) : yoke_cummax(in, 0),
					   YOKE_ALL),
				  1, &in, &g);
			good = values(g, got, fewer) &&
			       values(tensor(dtypes[k], 0, NULL, (double[]){ low ? -5000 : 5000 }),
				      &want, 1);
			ok(good && got[0] == want && got[1] == 0,
			   "a running extreme of %s that does not change: gradient %g, want %g",
			   yoke_dtype_name(dtypes[k]), got[0], want);
			yoke_scope_end(s);
		}
}

static void test_atan2(void)
{
	static const double some[] = { 0, 1, -1, 0.3, -2.5, INFINITY, -INFINITY };
	double y[49], x[49], got[49], want[49];
	for (int i = 0; i < 49; i++) {
		y[i] = some[i / 7];
		x[i] = some[i % 7];
		want[i] = atan2(y[i], x[i]);
	}
	yoke_scope *s = yoke_scope_begin("atan2");
	const int64_t n = 49;
	bool good =
		values(yoke_atan2(tensor(yoke_f64, 1, &n, y), tensor(yoke_f64, 1, &n, x)), got, n);
	ok(good && near(got, want, 49, 1e-15, 1, "atan2"),
	   "atan2 in all quadrants, of zeros and infinities: %s", yoke_error());
	yoke_scope_end(s);
}

// ---- quotients and powers ----

static int64_t floored(int64_t a, int64_t b)
{
	return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static void test_integers(void)
{
	static const int dtypes[] = { yoke_i8, yoke_u8, yoke_i32, yoke_i64 };
	const int64_t n = 121;
	for (int k = 0; k < 4; k++) {
		double a[121], b[121], q[121], r[121], p[121], wq[121], wr[121], wp[121];
		const bool whole = dtypes[k] == yoke_u8;
		for (int i = 0; i < n; i++) {
			a[i] = i % 11 - (whole ? 0 : 5);
			b[i] = i / 11 - (whole ? 0 : 5); // NOLINT
			const int64_t ai = (int64_t)a[i], bi = (int64_t)b[i];
			wq[i] = (double)floored(ai, bi);
			wr[i] = bi ? (double)(ai - floored(ai, bi) * bi) : 0;
			int64_t power = 1;
			for (int64_t e = 0; e < bi; e++)
				power *= ai;
			if (bi < 0)
				power = ai == 1 ? 1 : ai == -1 ? (bi % 2 ? -1 : 1) : 0;
			wp[i] = dtypes[k] == yoke_i8 ? (int8_t)power : whole ? (uint8_t)power :
				dtypes[k] == yoke_i32 ? (int32_t)power : (double)power;
		}
		yoke_scope *s = yoke_scope_begin("integers");
		yoke_tensor *x = tensor(dtypes[k], 1, &n, a), *y = tensor(dtypes[k], 1, &n, b);
		bool good = values(yoke_floor_div(x, y), q, n) &&
			    values(yoke_remainder(x, y), r, n) &&
			    values(yoke_integer_pow(x, y), p, n);
		ok(good && near(q, wq, 121, 0, 1, "quotients") &&
			   near(r, wr, 121, 0, 1, "remainders") && near(p, wp, 121, 0, 1, "powers"),
		   "quotients, remainders and powers of %s: %s", yoke_dtype_name(dtypes[k]),
		   yoke_error());
		yoke_scope_end(s);
	}
	double a[60], b[60], q[60], r[60], wq[60], wr[60];
	const int64_t m = 60;
	for (int i = 0; i < 60; i++) {
		a[i] = (double)(float)rnd_real(-9, 9);
		b[i] = (double)(float)rnd_real(0.5, 3) * (i % 2 ? 1 : -1);
		wq[i] = floor(a[i] / b[i]);
		wr[i] = a[i] - wq[i] * b[i];
	}
	yoke_scope *s = yoke_scope_begin("reals");
	yoke_tensor *x = tensor(yoke_f64, 1, &m, a), *y = tensor(yoke_f64, 1, &m, b);
	bool good = values(yoke_floor_div(x, y), q, m) && values(yoke_remainder(x, y), r, m);
	ok(good && near(q, wq, 60, 0, 1, "quotients") && near(r, wr, 60, 1e-13, 1, "remainders"),
	   "quotients and remainders of floating point: %s", yoke_error());
	yoke_scope_end(s);
}

// ---- along an axis ----

static yoke_tensor *cummax_fn(yoke_tensor *x, void *arg)
{
	return yoke_cummax(x, *(int *)arg);
}
static yoke_tensor *cummin_fn(yoke_tensor *x, void *arg)
{
	return yoke_cummin(x, *(int *)arg);
}
static yoke_tensor *logcumsumexp_fn(yoke_tensor *x, void *arg)
{
	return yoke_logcumsumexp(x, *(int *)arg);
}

static void test_running(void)
{
	static const struct {
		const char *name;
		fn *f;
	} row[] = { { "cummax", cummax_fn },
		    { "cummin", cummin_fn },
		    { "logcumsumexp", logcumsumexp_fn } };
	const int64_t dims[] = { 3, 13, 2 };
	double x[78], got[78], want[78];
	int axis = 1;
	apart(x, 78, 3);
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < 78; i++) {
			const int at = i / 2 % 13;
			double sum = exp(x[i]), max = x[i], min = x[i];
			for (int j = 1; j <= at; j++) {
				sum += exp(x[i - 2 * j]);
				max = fmax(max, x[i - 2 * j]);
				min = fmin(min, x[i - 2 * j]);
			}
			want[i] = k == 0 ? max : k == 1 ? min : log(sum);
		}
		yoke_scope *s = yoke_scope_begin("running");
		bool good = values(row[k].f(tensor(yoke_f64, 3, dims, x), &axis), got, 78);
		ok(good && near(got, want, 78, k == 2 ? 1e-14 : 0, 1, row[k].name), "%s: %s",
		   row[k].name, yoke_error());
		yoke_scope_end(s);
		gradient(row[k].f, &axis, 3, dims, x, 78, row[k].name);
	}
}

static void test_searchsorted(void)
{
	static const int64_t sizes[] = { 0, 1, 2, 7, 8, 9, 31 };
	bool good = true;
	for (int k = 0; k < 7; k++)
		for (int right = 0; right < 2; right++) {
			double sorted[32], v[40], got[40], want[40];
			const int64_t n = sizes[k], dims[] = { 5, 8 };
			for (int i = 0; i < n; i++)
				sorted[i] = i / 2; // each twice
			for (int i = 0; i < 40; i++) {
				v[i] = rnd_int(-2, 36) / 2.0;
				want[i] = 0;
				for (int j = 0; j < n; j++)
					want[i] += right ? sorted[j] <= v[i] : sorted[j] < v[i];
			}
			yoke_scope *s = yoke_scope_begin("search");
			yoke_tensor *y = yoke_searchsorted(tensor(yoke_f32, 1, &n, sorted),
							   tensor(yoke_f32, 2, dims, v), right);
			good = good && yoke_rank(y) == 2 && values(y, got, 40) &&
			       near(got, want, 40, 0, 1, "returned positions");
			yoke_scope_end(s);
		}
	ok(good, "searchsorted of 0 to 31 elements, from both sides: %s", yoke_error());
}

struct scatter {
	const int64_t *idx;
	const double *x, *v;
	int kind, of; // of: x 0, v 1
};

static const int64_t scatter_x[] = { 2, 5, 3 }, scatter_v[] = { 2, 7, 3 };

static yoke_tensor *scatter_fn(yoke_tensor *t, void *arg)
{
	const struct scatter *s = arg;
	yoke_tensor *idx = yoke_from(yoke_i64, 3, scatter_v, s->idx);
	yoke_tensor *other = s->of ? yoke_from(yoke_f64, 3, scatter_x, s->x) :
				     yoke_from(yoke_f64, 3, scatter_v, s->v);
	return yoke_scatter_along(s->of ? other : t, idx, s->of ? t : other, 1, s->kind);
}

static void test_scatter(void)
{
	static const char *const names[] = { "set", "max", "min", "product" };
	double all[72], *const x = all, *const v = all + 30, got[30], want[30];
	int64_t idx[42];
	apart(all, 72, 2);
	v[11] = 0; // one factor of products
	for (int i = 0; i < 42; i++)
		idx[i] = rnd_int(0, 3); // nothing goes to the last position
	for (int kind = 0; kind < 4; kind++) {
		struct scatter s = { idx, x, v, kind, 0 };
		memcpy(want, x, sizeof want);
		for (int i = 0; i < 42; i++) {
			double *to = &want[i / 21 * 15 + idx[i] * 3 + i % 3];
			*to = kind == 0 ? v[i] :
			      kind == 1 ? fmax(*to, v[i]) :
			      kind == 2 ? fmin(*to, v[i]) :
					  *to * v[i];
		}
		yoke_scope *scope = yoke_scope_begin("scatter");
		bool good = values(scatter_fn(yoke_from(yoke_f64, 3, scatter_x, x), &s), got, 30);
		ok(good && near(got, want, 30, kind == 3 ? 1e-14 : 0, 1, names[kind]),
		   "scatter, %s: %s", names[kind], yoke_error());
		yoke_scope_end(scope);
		gradient(scatter_fn, &s, 3, scatter_x, x, 30, names[kind]);
		s.of = 1;
		gradient(scatter_fn, &s, 3, scatter_v, v, 42, names[kind]);
	}
	yoke_scope *s = yoke_scope_begin("outside");
	idx[5] = 5;
	yoke_tensor *y = yoke_scatter_along(
		yoke_from(yoke_f64, 3, scatter_x, x), yoke_from(yoke_i64, 3, scatter_v, idx),
		yoke_from(yoke_f64, 3, scatter_v, v), 1, YOKE_SCATTER_SET);
	ok(yoke_read(y, got, sizeof got) < 0, "an index out of range: %s", yoke_error());
	yoke_scope_end(s);
	yoke_error_clear();
}

// ---- losses ----

enum { N = 6, V = 5 };
struct loss {
	struct yoke_loss o;
	const double *target, *weight, *pos;
	const int64_t *ids;
	int what; // 0 of ids, 1 of probabilities, 2 bce, 3 mse
};

static yoke_tensor *loss_fn(yoke_tensor *x, void *arg)
{
	const struct loss *l = arg;
	struct yoke_loss o = l->o;
	const int64_t dims[] = { N, V }, v = V, n = N;
	o.size = sizeof o;
	o.weight = l->weight ? yoke_from(yoke_f64, 1, &v, l->weight) : NULL;
	o.pos_weight = l->pos ? yoke_from(yoke_f64, 1, &v, l->pos) : YOKE_NONE;
	yoke_tensor *t = l->what ? yoke_from(yoke_f64, 2, dims, l->target) :
				   yoke_from(yoke_i64, 1, &n, l->ids);
	return l->what < 2  ? yoke_loss_cross_entropy(x, t, &o) :
	       l->what == 2 ? yoke_loss_bce_logits(x, t, &o) :
			      yoke_loss_mse(x, t, &o);
}

// Of each row or element; *total: the divisor of the mean.
static int reference(const struct loss *l, const double *x, double *to, double *total)
{
	const int many = l->what < 2 ? N : N * V;
	*total = l->what ? many : 0;
	for (int i = 0; i < many; i++) {
		if (l->what >= 2) {
			const double w = l->weight ? l->weight[i % V] : 1,
				     q = l->pos ? l->pos[i % V] : 1, t = l->target[i];
			const double s = 1 / (1 + exp(-x[i]));
			to[i] = l->what == 3 ? w * (x[i] - t) * (x[i] - t) :
					       -w * (q * t * log(s) + (1 - t) * log(1 - s));
			continue;
		}
		double sum = 0, all = 0, soft = 0;
		for (int c = 0; c < V; c++)
			sum += exp(x[i * V + c]);
		for (int c = 0; c < V; c++) {
			const double w = l->weight ? l->weight[c] : 1,
				     lost = log(sum) - x[i * V + c];
			all += w * lost * l->o.smooth / V;
			soft += l->what ? w * lost * l->target[i * V + c] * (1 - l->o.smooth) : 0;
		}
		if (l->what) {
			to[i] = soft + all;
			continue;
		}
		const bool counts = !l->o.ignores || l->ids[i] != l->o.ignore;
		const double w = !counts ? 0 : l->weight ? l->weight[l->ids[i]] : 1;
		to[i] = counts ? (1 - l->o.smooth) * w * (log(sum) - x[i * V + l->ids[i]]) + all :
				 0;
		*total += w;
	}
	return many;
}

static void test_losses(void)
{
	double x[N * V], target[N * V], weight[V], pos[V];
	int64_t ids[N];
	const int64_t dims[] = { N, V };
	for (int i = 0; i < N * V; i++) {
		x[i] = rnd_real(-3, 3);
		target[i] = rnd_real(0, 1);
	}
	for (int c = 0; c < V; c++) {
		weight[c] = rnd_real(0.2, 3);
		pos[c] = rnd_real(0.2, 3);
	}
	for (int i = 0; i < N; i++)
		ids[i] = i == 2 ? -100 : rnd_int(0, V - 1);
	bool good = true;
	for (int k = 0; k < 4 * 3 * 2 * 2 && good; k++) {
		struct loss l = { .o = { .reduction = k / 4 % 3,
					 .smooth = k / 24 ? 0.1 : 0,
					 .ignore = -100,
					 .ignores = 1 },
				  .target = target,
				  .ids = ids,
				  .what = k % 4,
				  .weight = k / 12 % 2 ? weight : NULL,
				  .pos = k / 12 % 2 ? pos : NULL };
		double want[N * V], got[N * V], total, sum = 0;
		if (l.what >= 2)
			l.o.smooth = 0;
		int many = reference(&l, x, want, &total);
		for (int i = 0; i < many; i++)
			sum += want[i];
		if (l.o.reduction != YOKE_LOSS_NONE) {
			want[0] = l.o.reduction == YOKE_LOSS_SUM ? sum : sum / total;
			many = 1;
		}
		yoke_scope *s = yoke_scope_begin("loss");
		good = values(loss_fn(yoke_from(yoke_f64, 2, dims, x), &l), got, many) &&
		       near(got, want, (size_t)many, 1e-13, 1, "loss");
		if (!good)
			diag("case %d", k);
		yoke_scope_end(s);
		if (k / 12 % 2 && l.o.reduction != YOKE_LOSS_SUM && k / 24)
			gradient(loss_fn, &l, 2, dims, x, N * V, "a loss");
	}
	ok(good,
	   "losses with reductions, weights, smoothing, probabilities, weights of positive classes: %s",
	   yoke_error());
	yoke_scope *s = yoke_scope_begin("wrong");
	const int64_t three = 3;
	struct yoke_loss o = { .size = sizeof o, .weight = yoke_from(yoke_f64, 1, &three, weight) };
	ok(!yoke_loss_cross_entropy(yoke_from(yoke_f64, 2, dims, x),
				    yoke_from(yoke_f64, 2, dims, target), &o) &&
		   strstr(yoke_error(), "5 classes"),
	   "weights for another number of classes: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

// ---- attention ----

enum { B = 2, T = 4, S = 5, H = 2, D = 3 };
struct attend {
	double *q, *k, *v;
	int width;       // of v
	uint8_t mask[B * T * S];
	int queries, keys; // of the mask: T or 1, S or 1
	bool yes;          // it is bool
	int of;
};

static yoke_tensor *attend_fn(yoke_tensor *t, void *arg)
{
	const struct attend *a = arg;
	const int64_t dq[] = { B, T, H, D }, dk[] = { B, S, H, D }, dv[] = { B, S, H, a->width };
	const int64_t dm[] = { B, 1, a->queries, a->keys };
	yoke_tensor *q = a->of == 0 ? t : yoke_from(yoke_f64, 4, dq, a->q),
		    *k = a->of == 1 ? t : yoke_from(yoke_f64, 4, dk, a->k);
	yoke_tensor *v = a->of == 2 ? t : yoke_from(yoke_f64, 4, dv, a->v),
		    *m = yoke_from(yoke_bool, 4, dm, a->mask);
	if (!a->yes)
		m = yoke_select(m, yoke_full(yoke_f64, 4, dm, 0),
				yoke_full(yoke_f64, 4, dm, -INFINITY));
	return yoke_attention(q, k, v, m, 0, 0, 0);
}

static void test_attention(void)
{
	static double q[B * T * H * D], k[B * S * H * D], v[B * S * H * 5];
	for (int i = 0; i < B * T * H * D; i++)
		q[i] = rnd_real(-1, 1);
	for (int i = 0; i < B * S * H * D; i++)
		k[i] = rnd_real(-1, 1);
	for (int i = 0; i < B * S * H * 5; i++)
		v[i] = rnd_real(-1, 1);
	for (int c = 0; c < 8; c++) {
		struct attend a = { .q = q,
				    .k = k,
				    .v = v,
				    .width = (int[]){ 3, 2, 5 }[c % 3],
				    .queries = c & 1 ? 1 : T,
				    .keys = c & 2 ? 1 : S,
				    .yes = c < 6 };
		double got[B * T * H * 5], want[B * T * H * 5];
		for (int i = 0; i < B * T * S; i++)
			a.mask[i] = a.keys == 1 || i % a.keys == 0 || rnd() % 3 != 0;
		for (int i = 0; i < B * T * H; i++) {
			double p[S], sum = 0;
			const int b = i / (T * H), t = i / H % T, h = i % H;
			for (int s = 0; s < S; s++) {
				double score = 0;
				for (int d = 0; d < D; d++)
					score += q[i * D + d] * k[((b * S + s) * H + h) * D + d];
				const int at =
					(b * a.queries + t % a.queries) * a.keys + s % a.keys;
				p[s] = a.mask[at] ? exp(score / sqrt(D)) : 0;
				sum += p[s];
			}
			for (int d = 0; d < a.width; d++) {
				want[i * a.width + d] = 0;
				for (int s = 0; s < S; s++)
					want[i * a.width + d] +=
						p[s] / sum * v[((b * S + s) * H + h) * a.width + d];
			}
		}
		a.of = 3;
		yoke_scope *s = yoke_scope_begin("attention");
		bool good = values(attend_fn(NULL, &a), got, B * T * H * a.width);
		ok(good && near(got, want, (size_t)(B * T * H * a.width), 1e-12, 1, "attention"),
		   "attention, v of width %d, mask [%d,%d] of %s: %s", a.width, a.queries, a.keys,
		   a.yes ? "bool" : "numbers", yoke_error());
		yoke_scope_end(s);
		if (c != 5)
			continue;
		a.of = 2;
		gradient(attend_fn, &a, 4, (int64_t[]){ B, S, H, a.width }, v, B * S * H * a.width,
			 "attention by v");
		a.of = 0;
		gradient(attend_fn, &a, 4, (int64_t[]){ B, T, H, D }, q, B * T * H * D,
			 "attention by q");
	}
}

// ---- keys that are not seen ----

enum { HB = 2, HH = 4, HG = 2, HD = 5, HS = 70, HT = 40 };
enum hides { ALL_BOOL, ALL_NUMBERS, SOME, CAUSAL, COUNT, HIDES };

// Visible keys per query of a batch, one of which is NaN; queries that see it are excluded from
// comparisons.
struct hidden {
	enum hides how;
	int64_t queries, bad;
	bool k, v; // where that key is NaN
};

static bool sees(const struct hidden *x, int64_t t, int64_t s)
{
	switch (x->how) {
	case ALL_BOOL:
	case ALL_NUMBERS: return s != x->bad && (t + s) % 5 != 0;
	case SOME: return (s != x->bad || t % 2) && (t + s) % 5 != 0;
	case CAUSAL: return s <= t + HS - x->queries;
	default: return s < x->bad;
	}
}

static yoke_tensor *attended(const struct hidden *x, yoke_tensor *const *qkv)
{
	const int64_t dims[] = { 1, 1, x->queries, HS };
	uint8_t see[HT * HS];
	if (x->how == CAUSAL)
		return yoke_attention(qkv[0], qkv[1], qkv[2], YOKE_NONE, 1, 0, 0);
	if (x->how == COUNT)
		return yoke_attention_keys(qkv[0], qkv[1], qkv[2], yoke_scalar((double)x->bad),
					   YOKE_NONE, 0, 0, 0);
	for (int64_t i = 0; i < x->queries * HS; i++)
		see[i] = sees(x, i / HS, i % HS);
	yoke_tensor *mask = yoke_from(yoke_bool, 4, dims, see);
	if (x->how == ALL_NUMBERS)
		mask = yoke_select(mask, yoke_full(yoke_dtype(qkv[0]), 4, dims, 0),
				   yoke_full(yoke_dtype(qkv[0]), 4, dims, -INFINITY));
	return yoke_attention(qkv[0], qkv[1], qkv[2], mask, 0, 0, 0);
}

// o and the gradients of sum c o, with c 0 for queries that see the bad key, by loops over the
// visible keys.
static void attended_loops(const struct hidden *x, const double *q, const double *k,
			   const double *v, const double *c, double *o, double *dq, double *dk,
			   double *dv)
{
	memset(dk, 0, HB * HS * HG * HD * sizeof *dk);
	memset(dv, 0, HB * HS * HG * HD * sizeof *dv);
	for (int64_t i = 0; i < HB * x->queries * HH; i++) {
		const int64_t b = i / (x->queries * HH), t = i / HH % x->queries,
			      g = i % HH / (HH / HG);
		double p[HS], sum = 0, along = 0;
		for (int64_t s = 0; s < HS; s++) {
			double score = 0;
			for (int d = 0; d < HD; d++)
				score += q[i * HD + d] * k[((b * HS + s) * HG + g) * HD + d];
			p[s] = sees(x, t, s) ? exp(score / sqrt(HD)) : 0;
			sum += p[s];
		}
		for (int d = 0; d < HD; d++) {
			o[i * HD + d] = dq[i * HD + d] = 0;
			for (int64_t s = 0; s < HS; s++)
				o[i * HD + d] += p[s] / sum * v[((b * HS + s) * HG + g) * HD + d];
			along += c[i * HD + d] * o[i * HD + d];
		}
		for (int64_t s = 0; s < HS; s++) {
			const double *ks = k + ((b * HS + s) * HG + g) * HD,
				     *vs = v + ((b * HS + s) * HG + g) * HD;
			double dp = -along;
			for (int d = 0; d < HD; d++)
				dp += c[i * HD + d] * vs[d];
			for (int d = 0; d < HD; d++) {
				const double ds = p[s] / sum * dp / sqrt(HD);
				dq[i * HD + d] += ds * ks[d];
				dk[ks - k + d] += ds * q[i * HD + d];
				dv[ks - k + d] += p[s] / sum * c[i * HD + d];
			}
		}
	}
}

static void test_hidden(void)
{
	static const char *const hides[] = { "by a mask of bool", "by a mask of -inf",
					     "from some queries", "by causal", "by keys" };
	enum { Q = HB * HT * HH * HD, K = HB * HS * HG * HD };
	static double q[Q], k[K], v[K], c[Q], with[2][K], o[Q], dq[Q], dk[K], dv[K],
		got[Q > K ? Q : K];
	static const double tolerance[] = {
		[yoke_f32] = 1e-5, [yoke_f64] = 1e-12, [yoke_f16] = 6e-3, [yoke_bf16] = 5e-2
	};
	for (int n = 0; n < 4 * HIDES * 2 * 3; n++) {
		const int dtype = yoke_f32 + n % 4;
		struct hidden x = { .how = (enum hides)(n / 4 % HIDES),
				    .queries = n / 4 / HIDES % 2 ? HT : 3,
				    .bad = 37 };
		const int nan = 1 + n / 8 / HIDES;
		const bool part = x.how == SOME || x.how == CAUSAL; // some queries see it
		x.k = nan & 1;
		x.v = nan & 2;
		x.bad = x.how == CAUSAL ? HS - 1 : x.bad;
		const int64_t dims[] = { HB, x.queries, HH, HD }, kdims[] = { HB, HS, HG, HD },
			      many = HB * x.queries * HH * HD;
		for (int i = 0; i < many; i++) {
			const bool left_out = part && sees(&x, i / HD / HH % x.queries, x.bad);
			q[i] = rnd_int(-8, 8) / 8.0; // numbers of every dtype
			c[i] = left_out ? 0 : rnd_int(-8, 8) / 8.0;
		}
		for (int i = 0; i < K; i++) {
			const int64_t s = i / HD / HG % HS;
			const bool bad = x.how == COUNT ? s >= x.bad : s == x.bad;
			k[i] = rnd_int(-8, 8) / 8.0;
			v[i] = rnd_int(-8, 8) / 8.0;
			with[0][i] = bad && x.k ? NAN : k[i];
			with[1][i] = bad && x.v ? (i % 2 ? NAN : -INFINITY) : v[i];
		}
		attended_loops(&x, q, k, v, c, o, dq, dk, dv);
		yoke_scope *scope = yoke_scope_begin("hidden");
		yoke_tensor *in[3] = { tensor(dtype, 4, dims, q), tensor(dtype, 4, kdims, with[0]),
				       tensor(dtype, 4, kdims, with[1]) };
		yoke_tensor *y = attended(&x, in), *g[3];
		char text[120];
		snprintf(text, sizeof text, "%d queries of %s, NaN in%s%s hidden %s",
			 (int)x.queries, yoke_dtype_name(dtype), x.k ? " k" : "", x.v ? " v" : "",
			 hides[x.how]);
		yoke_grad(yoke_sum(yoke_mul(y, tensor(dtype, 4, dims, c)), YOKE_ALL), 3, in, g);
		bool good = values(y, got, many);
		for (int i = 0; i < many; i++)
			got[i] = part && sees(&x, i / HD / HH % x.queries, x.bad) ? o[i] : got[i];
		good = good && near(got, o, (size_t)many, tolerance[dtype], 1, text) &&
		       values(g[0], got, many);
		for (int i = 0; i < many; i++)
			got[i] = part && sees(&x, i / HD / HH % x.queries, x.bad) ? dq[i] : got[i];
		good = good && near(got, dq, (size_t)many, tolerance[dtype], 1, "dq");
		if (!part) // queries that see it have NaN results
			good = good && values(g[1], got, K) &&
			       near(got, dk, K, tolerance[dtype], 1, "dk") &&
			       values(g[2], got, K) &&
			       near(got, dv, K, 2 * tolerance[dtype], 1, "dv");
		ok(good, "attention of %s: %s", text, yoke_error());
		yoke_error_clear();
		yoke_scope_end(scope);
	}
}

int main(void)
{
	tap_seed();
	test_special();
	test_erfinv();
	test_edges();
	test_atan2_edges();
	test_many_ties();
	test_atan2();
	test_integers();
	test_running();
	test_searchsorted();
	test_scatter();
	test_losses();
	test_attention();
	test_hidden();
	return done();
}
