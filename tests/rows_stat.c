// SPDX-License-Identifier: Apache-2.0
// Tests statistics in every floating dtype and layout against loops in wide types, and edge
// cases: clamped, empty, out-of-range and infinite values; each error names its op.
#include "config.h"

#include <limits.h>

#include "rows.h"

static struct arr a, want;
static char text[120];

static const char *say(const char *op, int layout, int k)
{
	snprintf(text, sizeof text, "%s %s (%d), %s", op, yoke_dtype_name(a.dtype), k,
		 layout_name[layout]);
	return text;
}

// Results are computed in f32 or f64 and rounded once.
static struct bound near_to(double scale)
{
	double unit = a.dtype == yoke_f64 ? 0x1p-53 : 0x1p-24;
	return (struct bound){ 2.1 * unit_of(a.dtype) + 40 * unit, 40 * unit * scale,
			       true };
}

// The values of one line of a along an axis, which begins at element `at` of the rest.
static int64_t line(int axis, int64_t at, long double *x)
{
	int64_t inner = 1;
	for (int i = axis + 1; i < a.rank; i++)
		inner *= a.dims[i];
	for (int64_t i = 0; i < a.dims[axis]; i++)
		x[i] = a.v[(at / inner * a.dims[axis] + i) * inner + at % inner].r;
	return a.dims[axis];
}

// want has the dims of a without the axis.
static void drop_axis(int axis)
{
	int64_t dims[YOKE_MAX_RANK];
	int rank = 0;
	for (int i = 0; i < a.rank; i++)
		if (i != axis)
			dims[rank++] = a.dims[i];
	set_dims(&want, a.dtype, rank, dims);
}

// ---- var, std, norm ----

enum { VAR, STD, NORM };

static long double spread(int op, const long double *x, int64_t n, double parameter)
{
	long double mean = 0, sum = 0, p = parameter;
	for (int64_t i = 0; i < n; i++)
		mean += x[i] / (long double)n;
	if (op != NORM) {
		for (int64_t i = 0; i < n; i++)
			sum += (x[i] - mean) * (x[i] - mean);
		long double left = n > p ? (long double)n - p : 0;
		return op == VAR ? sum / left : sqrtl(sum / left);
	}
	if (isinf(parameter)) {
		for (int64_t i = 0; i < n; i++)
			sum = !i || (p > 0 ? fabsl(x[i]) > sum : fabsl(x[i]) < sum) ?
				      fabsl(x[i]) :
				      sum;
		return sum;
	}
	for (int64_t i = 0; i < n; i++)
		sum += p == 0 ? x[i] != 0 : powl(fabsl(x[i]), p);
	return p == 0 ? sum : powl(sum, 1 / p);
}

static void spreads(int d)
{
	static const struct {
		const char *name;
		int op;
		double parameter;
	} cases[] = { { "var", VAR, 0 },          { "var", VAR, 1 },
		      { "std", STD, 1 },          { "norm", NORM, 2 },
		      { "norm", NORM, 1 },        { "norm", NORM, 0 },
		      { "norm", NORM, 3.5 },      { "norm", NORM, 0.5 },
		      { "norm", NORM, -1 },       { "norm", NORM, INFINITY },
		      { "norm", NORM, -INFINITY } };
	bool good = true;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		for (int layout = 0; layout < LAYOUTS; layout++) {
			if (layout == EMPTY)
				continue;
			make(&a, d, layout, 4, false);
			for (int axis = 0; axis < a.rank; axis++) {
				long double x[16];
				double p = cases[c].parameter;
				drop_axis(axis);
				for (int64_t k = 0; k < want.n; k++) {
					int64_t n = line(axis, k, x);
					want.v[k].r = round_real(
						d, spread(cases[c].op, x, n, p));
				}
				yoke_tensor *y =
					cases[c].op == VAR ?
						yoke_var(view_of(&a), 1u << axis, p) :
					cases[c].op == STD ?
						yoke_std(view_of(&a), 1u << axis, p) :
						yoke_norm(view_of(&a), p, 1u << axis);
				good = same(y, &want, near_to(1),
					    say(cases[c].name, layout, (int)c)) &&
				       good;
			}
		}
	ok(good, "var, std, norm %s", yoke_dtype_name(d));
}

// A mean far from 0 costs no digits of the variance: two passes.
static void far_mean(void)
{
	float x[64], got = NAN;
	double mean = 0, sum = 0;
	for (int i = 0; i < 64; i++)
		mean += (double)(x[i] = (float)(1e4 + rnd_real(-1, 1))) / 64;
	for (int i = 0; i < 64; i++)
		sum += ((double)x[i] - mean) * ((double)x[i] - mean) / 64;
	yoke_read(yoke_var(yoke_from(yoke_f32, 1, (int64_t[]){ 64 }, x), YOKE_ALL, 0),
		  &got, sizeof got);
	ok(fabs((double)got - sum) < 1e-5 * sum, "variance with a mean of 10000: got %g want %g",
	   (double)got, sum);
}

// ---- quantile, histogram ----

static int ascending(const void *p, const void *q)
{
	long double x = *(const long double *)p, y = *(const long double *)q;
	return (x > y) - (x < y);
}

static void quantiles(int d)
{
	static const double q[] = { 0, 1, 0.5, 0.25, 0.9, 0.123 };
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		if (layout == EMPTY)
			continue;
		make(&a, d, layout, 4, false);
		for (int axis = 0; axis < a.rank; axis++)
			for (int k = 0; k < 6; k++) {
				long double x[16];
				drop_axis(axis);
				for (int64_t i = 0; i < want.n; i++) {
					int64_t n = line(axis, i, x);
					qsort(x, (size_t)n, sizeof *x, ascending);
					double at = q[k] * (double)(n - 1);
					int64_t lo = (int64_t)at,
						hi = lo + 1 < n ? lo + 1 : lo;
					long double f = at - (double)lo;
					want.v[i].r = round_real(d, x[lo] * (1 - f) +
									    x[hi] * f);
				}
				yoke_tensor *y = yoke_quantile(view_of(&a),
							       yoke_const(q[k]), axis);
				good = same(y, &want, near_to(1),
					    say("quantile", layout, k)) &&
				       good;
			}
	}
	ok(good, "quantile %s", yoke_dtype_name(d));
}

static void quantile_edges(void)
{
	const double x[3][4] = { { 3, 1, NAN, 2 },
				 { INFINITY, 1, INFINITY, -INFINITY },
				 { 4, 1, 3, 2 } };
	const double q[3] = { 0, 0.5, 0.75 }, row[3][3] = {
		{ NAN, NAN, NAN }, { -INFINITY, INFINITY, INFINITY }, { 1, 2.5, 3.25 }
	};
	double got[9], wanted[9];
	memset(got, 0xff, sizeof got);
	for (int i = 0; i < 9; i++)
		wanted[i] = row[i % 3][i / 3];
	yoke_tensor *t = yoke_from(yoke_f64, 2, (int64_t[]){ 3, 4 }, x);
	yoke_tensor *y =
		yoke_quantile(t, yoke_from(yoke_f64, 1, (int64_t[]){ 3 }, q), -1);
	ok(y && yoke_rank(y) == 2 && yoke_dim(y, 0) == 3,
	   "a list of quantiles is the first axis");
	yoke_read(y, got, sizeof got);
	near(got, wanted, 9, 1e-15, 1, "quantiles with NaN and infinities");
	const double odd[3] = { -0.25, 1.0625, NAN };
	for (int i = 0; i < 6; i++) { // a host scalar, a list on the device
		yoke_tensor *of = i % 2 ? yoke_from(yoke_f64, 1, (int64_t[]){ 1 }, &odd[i / 2]) :
					  yoke_scalar(odd[i / 2]);
		y = yoke_quantile(t, of, -1);
		int err = y ? yoke_read(y, got, 3 * sizeof *got) : yoke_error_code();
		ok(err == (tap_late() ? YOKE_EFAILED : YOKE_ERANGE) &&
			   strstr(yoke_error(), "quantile"),
		   "quantile %g: %s", odd[i / 2], yoke_error());
		yoke_error_clear();
	}
	ok(refused(yoke_quantile(yoke_full(yoke_f32, 2, (int64_t[]){ 2, 0 }, 0),
				 yoke_const(0.5), 1),
		   YOKE_ESHAPE),
	   "a quantile of nothing is refused");
}

static void histograms(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		make(&a, d, layout, 6, is_real(d));
		set_dims(&want, yoke_i64, 1, (int64_t[]){ 8 });
		memset(want.v, 0, sizeof want.v);
		for (int64_t i = 0; i < a.n; i++) {
			double x = is_real(d) ? a.v[i].r : (double)a.v[i].i;
			// bins of width 1: everything is exact except this sum, rounded to f32
			double from = is_real(d) && d != yoke_f64 ? (float)x + 4.0f : x + 4;
			if (x >= -4 && x <= 4)
				want.v[from >= 8 ? 7 : (int)floor(from)].i++;
		}
		good = same(yoke_histogram(view_of(&a), 8, -4, 4), &want, exact,
			    say("histogram", layout, 8)) &&
		       good;
	}
	ok(good, "histogram %s", yoke_dtype_name(d));
}

// ---- covariance ----

static void covariances(int d)
{
	bool good = true;
	for (int corr = 0; corr < 2; corr++)
		for (int layout = PLAIN; layout <= SLICED; layout++) {
			make(&a, d, layout, 4, false);
			set_dims(&want, d, 3, (int64_t[]){ 3, 5, 5 });
			for (int64_t k = 0; k < want.n; k++) {
				const struct value
					*x = &a.v[(k / 25 * 5 + k / 5 % 5) * 7],
					*y = &a.v[(k / 25 * 5 + k % 5) * 7];
				long double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
				for (int i = 0; i < 7; i++)
					mx += x[i].r / 7, my += y[i].r / 7;
				for (int i = 0; i < 7; i++) {
					xx += (x[i].r - mx) * (x[i].r - mx);
					yy += (y[i].r - my) * (y[i].r - my);
					xy += (x[i].r - mx) * (y[i].r - my);
				}
				want.v[k].r = round_real(d, corr ? xy / sqrtl(xx * yy) :
								   xy / 6);
			}
			yoke_tensor *y =
				corr ? yoke_corr(view_of(&a)) : yoke_cov(view_of(&a), 1);
			good = same(y, &want, near_to(corr ? 1 : 16),
				    say("cov", layout, corr)) &&
			       good;
		}
	ok(good, "cov, corr %s", yoke_dtype_name(d));
}

// ---- clamp ----

static void clamps(int d)
{
	bool good = true;
	for (int layout = 0; layout < LAYOUTS; layout++) {
		make(&a, d, layout, 9, true);
		bool lower = layout % 3 != 1, upper = layout % 3 != 2;
		want = a;
		for (int64_t i = 0; i < a.n; i++) {
			struct value *v = &want.v[i];
			v->r = isnan(v->r)       ? v->r :
			       lower && v->r < 1 ? 1 :
			       upper && v->r > 5 ? 5 :
						   v->r;
			v->i = lower && v->i < 1 ? 1 : upper && v->i > 5 ? 5 : v->i;
		}
		yoke_tensor *y =
			yoke_clamp(view_of(&a), lower ? yoke_const(1) : YOKE_NONE,
				   upper ? yoke_const(5) : YOKE_NONE);
		good = same(y, &want, exact_but_sign, say("clamp", layout, 0)) && good;
	}
	ok(good, "clamp %s", yoke_dtype_name(d));
}

// ---- finite or not ----

static void finite_row(int d, int layout)
{
	make(&a, d, layout, 9, false);
	want = a;
	bool good = same(yoke_check_finite(view_of(&a)), &want, exact,
			 say("check_finite", layout, 0));
	if (a.n) {
		int64_t bad = rnd_int(0, a.n - 1), later = rnd_int(bad, a.n - 1);
		unsigned char room[8 * ELEMENTS];
		char place[40], *reason;
		a.v[later].r = NAN;
		a.v[bad].r = -INFINITY;
		lay_plain(&a);
		yoke_scope *s = yoke_scope_begin("here");
		yoke_tensor *y =
			yoke_check_finite(yoke_flip(yoke_flip(view_of(&a), 1), 1));
		int err = yoke_read(y, room, yoke_bytes(y));
		snprintf(place, sizeof place, "element %lld of %lld is -inf",
			 (long long)bad, (long long)a.n);
		reason = strstr(yoke_error(), place);
		good = good && err == YOKE_ERANGE && reason &&
		       strstr(yoke_error(), "check_finite") &&
		       strstr(yoke_error(), "here");
		if (!good)
			diag("%s: code %d: %s", place, err, yoke_error());
		yoke_error_clear();
		yoke_scope_end(s);
	}
	ok(good, "check_finite %s, %s", yoke_dtype_name(d), layout_name[layout]);
}

static void finite_in_place(void)
{
	// the operand is the variable's old version: no copy is needed
	float x[3] = { 1, 2, 3 }, got[3] = { NAN, NAN, NAN };
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, (int64_t[]){ 3 });
	yoke_put(v, x, sizeof x);
	struct yoke_stats before = { .size = sizeof before },
			  after = { .size = sizeof after };
	yoke_stats(&before);
	yoke_assign(v, yoke_check_finite(v));
	yoke_eval(0, NULL);
	yoke_stats(&after);
	yoke_read(v, got, sizeof got);
	ok(!memcmp(got, x, sizeof x) && after.assign_copies == before.assign_copies,
	   "check_finite of a variable is in place");
	yoke_free(v);
}

// ---- indices out of range ----

static yoke_tensor *ints(int64_t n, const int32_t *x)
{
	return yoke_from(yoke_i32, 1, &n, x);
}

// Reading y fails with ERANGE, and the line contains these words.
static void out_of_range(yoke_tensor *y, const char *op, const char *what)
{
	char room[256];
	// eager: the call failed
	int err = y ? yoke_read(y, room, yoke_bytes(y)) : yoke_error_code();
	bool good = err == YOKE_ERANGE && strstr(yoke_error(), op) &&
		    strstr(yoke_error(), what) && strstr(yoke_error(), "lookup");
	ok(good, "%s says \"%s\": %s", op, what, yoke_error());
	yoke_error_clear();
}

static void ranges(void)
{
	static const int32_t high[4] = { 0, 2, 3, 9 }, low[4] = { 0, 1, -1, 7 };
	float f[12] = { 0 };
	for (int named = 0; named < 2; named++) {
		yoke_setting_set("plan.named", named ? "1" : "0");
		yoke_scope *s = yoke_scope_begin("lookup");
		yoke_tensor *x = yoke_from(yoke_f32, 2, (int64_t[]){ 3, 4 }, f);
		yoke_tensor *line4 = yoke_from(yoke_f32, 1, (int64_t[]){ 4 }, f);
		out_of_range(yoke_gather(x, ints(4, high), 0), "gather",
			     "index 3 at position 2");
		out_of_range(yoke_gather(x, ints(4, low), 1), "gather",
			     "index -1 at position 2");
		out_of_range(yoke_embedding(x, ints(4, low)), "gather",
			     "index -1 at position 2");
		out_of_range(yoke_take_along(line4, ints(4, low), 0), "take_along",
			     "index -1 at position 2");
		out_of_range(
			yoke_scatter_add(x, ints(4, high),
					 yoke_full(yoke_f32, 2, (int64_t[]){ 4, 4 }, 1)),
			"scatter_add", "index 3 at position 2");
		out_of_range(yoke_scatter_add_along(line4, ints(4, high), line4, 0),
			     "scatter_add_along", "index 9 at position 3");
		yoke_tensor *logits = yoke_from(yoke_f32, 2, (int64_t[]){ 4, 3 }, f);
		out_of_range(yoke_cross_entropy(logits, ints(4, high), 2, 0),
			     named ? "cross_entropy" : "take_along",
			     named ? "ids[2] = 3" : "index 3 at position 2");
		yoke_scope_end(s);
	}
}

// ---- what is empty, and what is refused at the call ----

static double first(yoke_tensor *y)
{
	double x = -77;
	yoke_read(yoke_cast(y, yoke_f64), &x, sizeof x);
	return x;
}

static void empties(void)
{
	const float nothing[1] = { 0 };
	yoke_tensor *x = yoke_from(yoke_f32, 2, (int64_t[]){ 3, 0 }, nothing);
	yoke_tensor *none = yoke_from(yoke_bool, 1, (int64_t[]){ 0 }, nothing);
	ok(first(yoke_sum(x, YOKE_ALL)) == 0, "the empty sum is 0");
	ok(first(yoke_prod(x, YOKE_ALL)) == 1, "the empty product is 1");
	ok(isnan(first(yoke_mean(x, YOKE_ALL))), "the empty mean is NaN");
	ok(isnan(first(yoke_var(x, YOKE_ALL, 0))), "the empty variance is NaN");
	ok(isnan(first(
		   yoke_var(yoke_full(yoke_f32, 1, (int64_t[]){ 1 }, 3), YOKE_ALL, 1))),
	   "the corrected variance of one is NaN");
	ok(first(yoke_norm(x, 2, YOKE_ALL)) == 0, "the empty norm is 0");
	ok(first(yoke_any(none, YOKE_ALL)) == 0 && first(yoke_all(none, YOKE_ALL)) == 1,
	   "any of nothing is false, all of nothing is true");
	ok(first(yoke_sum(yoke_histogram(x, 4, 0, 1), YOKE_ALL)) == 0,
	   "a histogram of nothing");
	yoke_tensor *p =
		yoke_matmul(x, yoke_full(yoke_f32, 2, (int64_t[]){ 0, 2 }, 1), 0);
	ok(first(yoke_sum(p, YOKE_ALL)) == 0, "the empty contraction is 0");
	ok(refused(yoke_reduce_max(x, YOKE_AXIS(1)), YOKE_ESHAPE),
	   "argmax of nothing is refused");
	ok(refused(yoke_reduce_min(x, YOKE_ALL), YOKE_ESHAPE), "a minimum of nothing is refused");
	ok(refused(yoke_argmax(x, 1), YOKE_ESHAPE),
	   "an index of the maximum of nothing is refused");
	ok(refused(yoke_norm(x, INFINITY, YOKE_AXIS(1)), YOKE_ESHAPE),
	   "a maximum magnitude of nothing is refused");
}

static void refusals(void)
{
	yoke_tensor *x = yoke_full(yoke_f32, 2, (int64_t[]){ 3, 4 }, 1), *i;
	yoke_tensor *n = yoke_full(yoke_i32, 2, (int64_t[]){ 3, 4 }, 1);
	yoke_tensor *one = yoke_full(yoke_f32, 0, NULL, 1), *c = yoke_const(1);
	ok(refused(yoke_cumsum(x, 2, 0), YOKE_ERANGE),
	   "cumsum along a missing axis");
	ok(refused(yoke_sort(one, 0, 0, NULL), YOKE_ERANGE), "sort of a number");
	i = x;
	ok(refused(yoke_topk(x, 5, 1, 1, &i), YOKE_ERANGE) && !i,
	   "topk with a count larger than the axis");
	ok(refused(yoke_topk(x, -1, 1, 1, NULL), YOKE_ERANGE), "topk of -1");
	ok(refused(yoke_take_along(x, x, 0), YOKE_EDTYPE), "take_along with real indices");
	ok(refused(yoke_take_along(x, yoke_full(yoke_i32, 2, (int64_t[]){ 3, 5 }, 0), 0),
		   YOKE_ESHAPE),
	   "take_along with other axes that differ");
	ok(refused(yoke_take_along(x, yoke_full(yoke_i32, 1, (int64_t[]){ 3 }, 0), 0),
		   YOKE_ESHAPE),
	   "take_along of another rank");
	ok(refused(yoke_scatter_add_along(x, n, yoke_slice(x, 0, 0, 2, 1), 0),
		   YOKE_ESHAPE),
	   "scatter_add_along of other values than indices");
	ok(refused(yoke_var(n, YOKE_ALL, 0), YOKE_EDTYPE), "var of integers");
	ok(refused(yoke_std(n, YOKE_ALL, 0), YOKE_EDTYPE), "std of integers");
	ok(refused(yoke_norm(n, 2, YOKE_ALL), YOKE_EDTYPE), "norm of integers");
	ok(refused(yoke_norm(x, NAN, YOKE_ALL), YOKE_EINVAL), "norm of order NaN");
	ok(refused(yoke_cov(one, 0), YOKE_ESHAPE), "cov of a number");
	ok(refused(yoke_corr(n), YOKE_EDTYPE), "corr of integers");
	ok(refused(yoke_quantile(x, n, 1), YOKE_ESHAPE), "quantiles that are a matrix");
	ok(refused(yoke_quantile(x, YOKE_NONE, 1), YOKE_EINVAL), "quantile of none");
	ok(refused(yoke_check_finite(n), YOKE_EDTYPE), "check_finite of integers");
	ok(refused(yoke_any(x, YOKE_ALL), YOKE_EDTYPE), "any of numbers");
	ok(refused(yoke_all(x, YOKE_ALL), YOKE_EDTYPE), "all of numbers");
	ok(refused(yoke_histogram(x, 0, 0, 1), YOKE_ERANGE), "histogram without bins");
	ok(refused(yoke_histogram(x, 4, 1, 1), YOKE_ERANGE), "histogram of no width");
	ok(refused(yoke_histogram(x, 4, 0, NAN), YOKE_ERANGE), "histogram to NaN");
	ok(refused(yoke_histogram(x, 4, 0, INFINITY), YOKE_ERANGE),
	   "histogram to infinity");
	ok(refused(yoke_clamp(NULL, c, c), YOKE_EINVAL), "clamp of nothing");
}

// ---- the integers' edges ----

static void integers(void)
{
	const int32_t x[6] = { 7, -7, INT32_MIN, 5, INT32_MIN, -1 },
		      y[6] = { -2, 2, -1, 0, 0, INT32_MIN };
	const int32_t quotient[6] = { -3, -3, INT32_MIN, 0, 0, 0 };
	int32_t got[6] = { 0 };
	yoke_read(yoke_div(ints(6, x), ints(6, y)), got, sizeof got);
	ok(!memcmp(got, quotient, sizeof got),
	   "i32 division truncates, by 0 gives 0, minimum by -1 the minimum");
	const double real[7] = { 2.9, -2.9, 3e9, -3e9, NAN, INFINITY, 0.5 };
	const int32_t whole[7] = { 2, -2, INT32_MAX, INT32_MIN, 0, INT32_MAX, 0 };
	int32_t cast32[7];
	yoke_read(yoke_cast(yoke_from(yoke_f64, 1, (int64_t[]){ 7 }, real), yoke_i32),
		  cast32, sizeof cast32);
	ok(!memcmp(cast32, whole, sizeof whole), "casts truncate, saturate, NaN gives 0");
	const double half[6] = { 0.5, 1.5, 2.5, -0.5, -1.5, -2.5 },
		     even[6] = { 0, 2, 2, 0, -2, -2 };
	double rounded[6];
	yoke_read(yoke_round(yoke_from(yoke_f64, 1, (int64_t[]){ 6 }, half)), rounded,
		  sizeof rounded);
	near(rounded, even, 6, 0, 1, "round is half to even");
	ok(isnan(first(yoke_sign(yoke_full(yoke_f32, 0, NULL, NAN)))),
	   "sign(NaN) is NaN");
}

int main(void)
{
	tap_seed();
	for (int d = yoke_f32; d <= yoke_i64; d++) {
		yoke_scope *s = yoke_scope_begin("stat");
		histograms(d);
		clamps(d);
		for (int layout = 0; layout < LAYOUTS && is_real(d); layout++)
			finite_row(d, layout);
		if (is_real(d)) {
			spreads(d);
			quantiles(d);
			covariances(d);
		}
		yoke_scope_end(s);
	}
	yoke_scope *s = yoke_scope_begin("edges");
	far_mean();
	quantile_edges();
	finite_in_place();
	empties();
	refusals();
	integers();
	yoke_scope_end(s);
	ranges();
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
