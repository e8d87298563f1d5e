// SPDX-License-Identifier: Apache-2.0
// Tests moments of rows against two passes in long double: far from 0, with and without weights,
// split at any row; by the kernel and by decomposition.
#include "config.h"

#include <sys/resource.h>

#include "tap.h"
#include "yoke-pipeline.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { ROWS = 1100, CHANNELS = 129, MANY = 1000000 };
static float x[7 * MANY], w[MANY];
static double mean[CHANNELS], square[CHANNELS * CHANNELS], min[CHANNELS], max[CHANNELS];
static double weight, product[CHANNELS * CHANNELS];

static void reference(int64_t rows, int64_t c, bool weighed)
{
	long double n = 0;
	for (int64_t r = 0; r < rows; r++)
		n += weighed ? w[r] : 1;
	for (int64_t i = 0; i < c; i++) {
		long double sum = 0;
		min[i] = INFINITY;
		max[i] = -INFINITY;
		for (int64_t r = 0; r < rows; r++) {
			const long double one = weighed ? w[r] : 1;
			if (one == 0)
				continue;
			sum += one * x[r * c + i];
			min[i] = fmin(min[i], x[r * c + i]);
			max[i] = fmax(max[i], x[r * c + i]);
		}
		mean[i] = n > 0 ? (double)(sum / n) : 0;
	}
	for (int64_t i = 0; i < c; i++)
		for (int64_t k = 0; k <= i; k++) {
			double sum = 0;
			for (int64_t r = 0; r < rows; r++)
				if (!weighed || w[r] != 0)
					sum += (weighed ? w[r] : 1) * (x[r * c + i] - mean[i]) *
					       (x[r * c + k] - mean[k]);
			square[i * c + k] = square[k * c + i] = sum;
		}
	weight = (double)n;
}

// Largest error in units of the tolerance.
static double compare(int64_t c, bool diagonal, const double *m, const double *s, const float *lo,
		      const float *hi)
{
	double worst = 0;
	for (int64_t i = 0; i < c; i++) {
		const double sigma = weight > 0 ? sqrt(square[i * c + i] / weight) : 0;
		worst = fmax(worst, fabs(m[i] - mean[i]) /
					    (1e-8 * sigma + 1e-12 * fabs(mean[i]) + 1e-300));
		worst = lo[i] == min[i] && hi[i] == max[i] ? worst : INFINITY;
		for (int64_t k = diagonal ? i : 0; k < c; k++) {
			const double tol = 1e-6 * sqrt(square[i * c + i] * square[k * c + k]) +
					   1e-12 * weight * mean[i] * mean[i] * 1e-6;
			const double e = fabs(s[diagonal ? i : i * c + k] - square[i * c + k]);
			worst = fmax(worst, e / (tol + 1e-300));
			worst = isnan(e) ? INFINITY : worst;
			if (diagonal)
				break;
		}
	}
	return worst;
}

// Numbers around offset * scale; channel i is scaled by 2^-spread more than channel i - 1.
static void check_scaled(int64_t rows, int64_t c, double offset, double scale, int spread,
			 bool weighed, bool diagonal)
{
	static double m[CHANNELS], s[CHANNELS * CHANNELS];
	static float lo[CHANNELS], hi[CHANNELS];
	struct yoke_moments to = { .size = sizeof to };
	double n = NAN;
	for (int64_t r = 0; r < rows; r++) {
		double common = rnd_real(-20, 20);
		w[r] = (float)(rnd_int(0, 3) ? rnd_int(1, 2) : 0);
		for (int64_t i = 0; i < c; i++) // partly common to all channels
			x[r * c + i] = (float)(ldexp(scale, (int)i * -spread) *
					       (offset + rnd_real(-30, 30) + common));
	}
	reference(rows, c, weighed);
	// by the kernel, or by decomposition
	yoke_setting_set("plan.named", rnd_int(0, 3) ? "1" : "0");
	memset(m, 0xff, sizeof m);
	memset(s, 0xff, sizeof s);
	yoke_scope *scope = yoke_scope_begin("moments");
	yoke_moments(yoke_from(yoke_f32, 2, DIMS(rows, c), x),
		     weighed ? yoke_from(yoke_f32, 1, DIMS(rows), w) : YOKE_NONE, diagonal, &to);
	yoke_eval(5, (yoke_tensor *[]){ to.weight, to.mean, to.square, to.min, to.max });
	yoke_read(to.weight, &n, sizeof n);
	yoke_read(to.mean, m, (size_t)c * sizeof *m);
	yoke_read(to.square, s, (size_t)(diagonal ? c : c * c) * sizeof *s);
	yoke_read(to.min, lo, (size_t)c * sizeof *lo);
	yoke_read(to.max, hi, (size_t)c * sizeof *hi);
	yoke_scope_end(scope);
	const double worst = compare(c, diagonal, m, s, lo, hi);
	ok(n == weight && worst <= 1,
	   "%lld x %lld about %g, scaled by %g%s%s: weight %g of %g, %.2g of the tolerance %s",
	   (long long)rows, (long long)c, offset, scale, weighed ? ", weights" : "",
	   diagonal ? ", diagonal" : "", n, weight, worst, yoke_error());
	yoke_error_clear();
}

static void check(int64_t rows, int64_t c, double offset, bool weighed, bool diagonal)
{
	check_scaled(rows, c, offset, 1, 0, weighed, diagonal);
}

// Products of deviations exceed the range of f32; channels of one matrix differ by up to 2^128.
static void extremes(void)
{
	static const double scales[] = { 1e-30, 1e-25, 1e-21, 1e-18, 1e18, 1e30 };
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
		for (int how = 0; how < 4; how++)
			check_scaled(how % 3 ? 1099 : 513, i % 2 ? 7 : 33, i % 3 ? 1e3 : 0,
				     scales[i], 0, how & 1, how & 2);
	check_scaled(1099, 65, 0, 1e18, 2, true, false);
	check_scaled(1099, 65, 0, 1e18, 2, false, true);
}

// Constant rows, then rows that vary little, then much: the initial scale becomes wrong.
static void changing(void)
{
	enum { N = 40000 };
	static const double by[] = { 0, 1e-30, 1e-12, 1e15 };
	double got[2], want[4];
	for (int64_t r = 0; r < N; r++)
		for (int k = 0; k < 2; k++)
			x[2 * r + k] = (float)(by[r * 4 / N] * rnd_real(-1, 1));
	for (int64_t rows = N / 2; rows <= N; rows += N / 4) {
		double mean_of[2] = { 0 };
		memset(want, 0, sizeof want);
		for (int64_t r = 0; r < rows; r++)
			for (int k = 0; k < 2; k++)
				mean_of[k] += x[2 * r + k] / (double)rows;
		for (int64_t r = 0; r < rows; r++)
			for (int k = 0; k < 4; k++)
				want[k] += (x[2 * r + k / 2] - mean_of[k / 2]) *
					   (x[2 * r + k % 2] - mean_of[k % 2]);
		struct yoke_moments to = { .size = sizeof to }, line = { .size = sizeof line };
		double all[4];
		memset(all, 0xff, sizeof all);
		memset(got, 0xff, sizeof got);
		yoke_scope *scope = yoke_scope_begin("moments");
		yoke_setting_set("plan.named", "1");
		yoke_tensor *t = yoke_from(yoke_f32, 2, DIMS(rows, 2), x);
		yoke_moments(t, YOKE_NONE, 0, &to);
		yoke_moments(t, YOKE_NONE, 1, &line);
		yoke_read(to.square, all, sizeof all);
		yoke_read(line.square, got, sizeof got);
		yoke_scope_end(scope);
		const double tol = 1e-6 * sqrt(want[0] * want[3]);
		double worst = 0;
		for (int k = 0; k < 4; k++)
			worst = fmax(worst, fabs(all[k] - want[k]) / tol);
		for (int k = 0; k < 2; k++)
			worst = fmax(worst, fabs(got[k] - want[3 * k]) / (1e-6 * want[3 * k]));
		ok(worst <= 1, "%lld rows of changing size: %.2g of the tolerance %s",
		   (long long)rows, worst, yoke_error());
	}
}

// ---- statistics ----

static bool equal(const yoke_statistic *s, const yoke_statistic *t, size_t c, double tol)
{
	static double a[CHANNELS * CHANNELS], b[CHANNELS * CHANNELS];
	double worst = 0;
	for (int what = YOKE_STATISTIC_COUNT; what <= YOKE_STATISTIC_MAX; what++) {
		const size_t n =
			what == YOKE_STATISTIC_COUNT ? 1 :
			what == YOKE_STATISTIC_COVARIANCE || what == YOKE_STATISTIC_CORRELATION ?
						       c * c :
						       c;
		double largest = 0;
		yoke_statistic_read(s, what, a, n);
		yoke_statistic_read(t, what, b, n);
		for (size_t i = 0; i < n; i++)
			largest = fmax(largest, fabs(a[i]));
		for (size_t i = 0; i < n; i++)
			worst = fmax(worst, isnan(a[i]) || isnan(b[i]) ?
						    INFINITY :
						    fabs(a[i] - b[i]) / (largest + 1e-300));
	}
	if (!(worst <= tol))
		diag("they differ by %.3g of the largest", worst);
	return worst <= tol;
}

// A stream of `rows`, split anywhere, whose statistics are merged in any order.
static yoke_statistic *merged(int64_t rows, int64_t c, int parts)
{
	yoke_statistic *part[8], *sum;
	int64_t from = 0;
	for (int k = 0; k < parts; k++) {
		const int64_t to = k + 1 < parts ? rnd_int(from, rows) : rows;
		part[k] = yoke_statistic_new(c, 0);
		yoke_scope *s = yoke_scope_begin("part");
		yoke_statistic_add(part[k],
				   yoke_from(yoke_f32, 3, DIMS(to - from, 1, c), x + from * c),
				   yoke_from(yoke_f32, 2, DIMS(to - from, 1), w + from));
		yoke_scope_end(s);
		from = to;
	}
	while (parts > 1) { // any two
		const int a = (int)rnd_int(0, parts - 1),
			  b = (a + 1 + (int)rnd_int(0, parts - 2)) % parts;
		yoke_statistic_merge(part[a], part[b]);
		yoke_statistic_free(part[b]);
		part[b] = part[--parts];
	}
	sum = part[0];
	return sum;
}

static void statistics(void)
{
	enum { C = 7, N = 700 };
	double got[C * C], one;
	for (int i = 0; i < N * C; i++)
		x[i] = (float)(1e3 + rnd_real(-35, 35));
	for (int i = 0; i < N; i++)
		w[i] = (float)rnd_int(0, 1);
	reference(N, C, true);
	yoke_statistic *whole = merged(N, C, 1), *again = NULL;
	for (int parts = 2; parts <= 7; parts += 5) {
		yoke_statistic *cut = merged(N, C, parts);
		ok(equal(whole, cut, C, 1e-6), "%d segments merge to the statistics of the whole",
		   parts);
		yoke_statistic_free(cut);
	}
	yoke_statistic_read(whole, YOKE_STATISTIC_COVARIANCE, got, C * C);
	for (int i = 0; i < C * C; i++)
		square[i] /= weight - 1;
	near(got, square, C * C, 1e-6, square[0], "covariance");
	yoke_statistic_read(whole, YOKE_STATISTIC_CORRELATION, got, C * C);
	for (int i = 0; i < C * C; i++)
		product[i] = square[i] / sqrt(square[i / C * (C + 1)] * square[i % C * (C + 1)]);
	near(got, product, C * C, 2e-6, 1, "correlation");
	ok(!yoke_statistic_save(whole, "whole.safetensors") &&
		   (again = yoke_statistic_load("whole.safetensors")) && equal(whole, again, C, 0),
	   "saved and loaded, bit for bit %s", yoke_error());
	yoke_statistic_free(again);
	// doubled until there are more than 2^32 observations: mean and covariance do not change
	yoke_statistic *many = merged(N, C, 1);
	for (int k = 0; k < 25; k++)
		yoke_statistic_merge(many, many);
	yoke_statistic_read(many, YOKE_STATISTIC_COUNT, &one, 1);
	yoke_statistic_read(many, YOKE_STATISTIC_VARIANCE, got, C);
	for (int i = 0; i < C; i++)
		product[i] = square[i * (C + 1)] * (weight - 1) / weight;
	ok(one == weight * 0x1p25 && one > 0x1p32, "%g observations", one);
	near(got, product, C, 1e-6, product[0], "and their variance");
	yoke_statistic_free(many);
	ok(yoke_statistic_read(whole, YOKE_STATISTIC_MEAN, got, 3) == YOKE_EINVAL,
	   "a buffer of another size: %s", yoke_error());
	yoke_error_clear();
	yoke_statistic *other = yoke_statistic_new(C + 1, 0), *line = yoke_statistic_new(C, 1);
	ok(yoke_statistic_merge(whole, other) == YOKE_ESHAPE, "another number of channels: %s",
	   yoke_error());
	yoke_error_clear();
	ok(yoke_statistic_read(line, YOKE_STATISTIC_COVARIANCE, got, C * C) == YOKE_EINVAL,
	   "a full matrix of diagonal statistics: %s", yoke_error());
	yoke_error_clear();
	ok(yoke_statistic_read(other, YOKE_STATISTIC_VARIANCE, got, C + 1) == YOKE_ERANGE,
	   "statistics of nothing: %s", yoke_error());
	yoke_error_clear();
	x[4] = INFINITY;
	yoke_scope *s = yoke_scope_begin("not finite");
	ok(yoke_statistic_add(whole, yoke_from(yoke_f32, 2, DIMS(2, C), x), YOKE_NONE) ==
			   YOKE_ERANGE &&
		   strstr(yoke_error(), "channel 4"),
	   "a non-finite row: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yoke_statistic_read(whole, YOKE_STATISTIC_COUNT, &one, 1);
	ok(one == weight, "and is not added");
	yoke_statistic_free(other);
	yoke_statistic_free(line);
	yoke_statistic_free(whole);
}

// Invalid files, each made from a valid one.
static void hostile(void)
{
	static const struct {
		const char *what, *from, *to;
	} change[] = {
		{ "another dtype", "F64", "I64" },
		{ "no mean", "mean", "meam" },
		{ "cut", NULL, NULL },
	};
	char text[4096], why[80];
	yoke_statistic *s = yoke_statistic_new(2, 0);
	yoke_statistic_save(s, "good.safetensors");
	FILE *f = fopen("good.safetensors", "rb");
	const size_t n = fread(text, 1, sizeof text, f);
	fclose(f);
	for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
		char copy[sizeof text], *place;
		memcpy(copy, text, n);
		for (place = copy;
		     change[i].from && memcmp(place, change[i].from, strlen(change[i].from));
		     place++)
			;
		if (change[i].from)
			memcpy(place, change[i].to, strlen(change[i].to));
		f = fopen("bad.safetensors", "wb");
		fwrite(copy, 1, change[i].from ? n : n - 3, f);
		fclose(f);
		snprintf(why, sizeof why, "%s", change[i].what);
		ok(!yoke_statistic_load("bad.safetensors") && yoke_error_code() == YOKE_EFORMAT,
		   "%s: %s", why, yoke_error());
		yoke_error_clear();
	}
	// the maximum number of channels, in a file too short for their squares
	static const char head[] =
		"{\"mean\":{\"dtype\":\"F64\",\"shape\":[32768],\"data_offsets\":[0,262144]},"
		"\"square\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[262144,262152]}}";
	static const char zero[262152];
	const uint64_t length = sizeof head - 1; // little endian
	f = fopen("bad.safetensors", "wb");
	fwrite(&length, 1, sizeof length, f);
	fwrite(head, 1, sizeof head - 1, f);
	fwrite(zero, 1, sizeof zero, f);
	fclose(f);
	struct rusage before, after;
	getrusage(RUSAGE_SELF, &before);
	const bool none =
		!yoke_statistic_load("bad.safetensors") && yoke_error_code() == YOKE_EFORMAT;
	getrusage(RUSAGE_SELF, &after);
	ok(none && after.ru_maxrss - before.ru_maxrss < 100 << 10,
	   "missing squares in a file take no memory: %s", yoke_error());
	yoke_error_clear();
	double nan = NAN;
	memcpy(text + n - sizeof nan, &nan, sizeof nan);
	f = fopen("bad.safetensors", "wb");
	fwrite(text, 1, n, f);
	fclose(f);
	ok(!yoke_statistic_load("bad.safetensors") && yoke_error_code() == YOKE_EFORMAT,
	   "a NaN: %s", yoke_error());
	yoke_error_clear();
	yoke_statistic_free(s);
}

// A NaN propagates to all dependent results, unless its row has weight 0.
static void not_finite(void)
{
	float v[6] = { 1, 2, NAN, 4, 5, 6 }, no[3] = { 1, 0, 1 }, lo[2] = { 0 }, hi[2];
	double m[2];
	yoke_scope *s = yoke_scope_begin("moments");
	yoke_tensor *t = yoke_from(yoke_f32, 2, DIMS(3, 2), v);
	struct yoke_moments all = { .size = sizeof all }, some = { .size = sizeof some };
	yoke_moments(t, YOKE_NONE, 0, &all);
	yoke_moments(t, yoke_from(yoke_f32, 1, DIMS(3), no), 0, &some);
	yoke_eval(4, (yoke_tensor *[]){ all.min, all.max, all.mean, some.mean });
	yoke_read(all.min, lo, sizeof lo);
	yoke_read(all.max, hi, sizeof hi);
	yoke_read(all.mean, m, sizeof m);
	ok(isnan(lo[0]) && isnan(hi[0]) && isnan(m[0]) && lo[1] == 2 && hi[1] == 6 && m[1] == 4,
	   "a NaN affects only its channel");
	yoke_read(some.mean, m, sizeof m);
	ok(m[0] == 3 && m[1] == 4, "a row of weight 0 is not read: %g %g", m[0], m[1]);
	yoke_scope_end(s);
}

static void errors(void)
{
	yoke_scope *s = yoke_scope_begin("errors");
	yoke_tensor *t = yoke_full(yoke_f32, 1, DIMS(3), 1),
		    *two = yoke_full(yoke_f32, 2, DIMS(2, 3), 1);
	struct yoke_moments to = { .size = sizeof to, .mean = t };
	ok(yoke_moments(t, YOKE_NONE, 0, &to) == YOKE_ESHAPE && !to.mean,
	   "an operand of one axis: %s", yoke_error());
	yoke_error_clear();
	ok(yoke_moments(two, t, 0, &to) == YOKE_ESHAPE, "weights for another number of rows: %s",
	   yoke_error());
	yoke_error_clear();
	to.size = 0;
	ok(yoke_moments(two, YOKE_NONE, 0, &to) == YOKE_EINVAL, "no size: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

int main(void)
{
	static const int64_t rows[] = { 0, 1, 2, 511, 512, 513, 1099 },
			     channels[] = { 1, 2, 7, 50, CHANNELS };
	static const double offsets[] = { 0, 1e3, 1e5 };
	tap_seed();
	tap_folder();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t k = 0; k < sizeof channels / sizeof *channels; k++)
			if (k < 3 || i != 3 + tap_seed_value() % 3)
				check(rows[i], channels[k], offsets[rnd_int(0, 2)], rnd_int(0, 1),
				      rnd_int(0, 3) == 0);
	check(MANY, tap_long() ? 7 : rnd_int(1, 2), offsets[rnd_int(0, 2)], rnd_int(0, 1),
	      rnd_int(0, 1));
	for (size_t i = 0; tap_long() && i < sizeof rows / sizeof *rows; i++)
		for (size_t k = 0; k < sizeof channels / sizeof *channels; k++)
			for (int how = 0; how < 12; how++)
				check(rows[i], channels[k], offsets[how / 4], how & 1,
				      how >> 1 & 1);
	extremes();
	changing();
	not_finite();
	errors();
	statistics();
	hostile();
	return done();
}
