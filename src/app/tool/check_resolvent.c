// SPDX-License-Identifier: Apache-2.0
// yoke check resolvent: compares a tier of the resolvent with f64 and f32.
// The matrices have a ~ N(0, 2^2), b = c = 1.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complex.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "graph/context.h"
#include "tool/tool.h"

#define BOUND 1e-4 // max error for PASS

struct options {
	int64_t samples, batch, n, sweeps, seed;
	double eta, tolerance;
	const char *tier;
};

struct errors {
	double sum, square, max, relative;
	int64_t count;
};

struct outcome {
	struct errors value, gradient;
	double bound, seconds[3]; // seconds: median per batch of the tier, f32 and f64
	uint64_t promoted, rows;
};

static const char *const tiers[] = { "f16", "bf16", "mixed", "f32", "f64" };

// ---- arguments ----

static int number(const char *text, const char *key, double min, double max, bool whole, double *to)
{
	char *end;
	*to = strtod(text, &end);
	if (end != text && !*end && *to >= min && *to <= max && (!whole || *to == floor(*to)))
		return 0;
	return yk_fail(YOKE_EINVAL, "%s=%s: must be a %snumber from %g to %g", key, text,
		       whole ? "whole " : "", min, max);
}

static int argument(struct options *a, const char *text)
{
	static const struct {
		const char *key;
		double min, max;
		bool whole;
	} keys[] = { { "samples", 1, 1e6, true },
		     { "batch", 1, 65536, true },
		     { "n", 1, 1e6, true },
		     { "sweeps", 0, 64, true },
		     { "seed", 0, 9e15, true },
		     { "eta", 1e-6, 1e6, false },
		     { "tolerance", 1e-300, INFINITY, false } };
	int64_t *const whole[] = { &a->samples, &a->batch, &a->n, &a->sweeps, &a->seed };
	double *const real[] = { &a->eta, &a->tolerance };
	const char *value = strchr(text, '=');
	const size_t length = value ? (size_t)(value - text) : 0;
	double v;
	if (length == 4 && !strncmp(text, "tier", 4)) {
		a->tier = value + 1;
		for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
			if (!strcmp(tiers[i], a->tier))
				return 0;
		return yk_fail(YOKE_EINVAL, "tier=%s: must be one of: f16 bf16 mixed f32 f64",
			       a->tier);
	}
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (strlen(keys[i].key) != length || strncmp(text, keys[i].key, length))
			continue;
		int e = number(value + 1, keys[i].key, keys[i].min, keys[i].max, keys[i].whole, &v);
		if (e < 0)
			return e;
		if (i < sizeof whole / sizeof *whole)
			*whole[i] = (int64_t)v;
		else
			*real[i - sizeof whole / sizeof *whole] = v;
		return 0;
	}
	return yk_fail(YOKE_EINVAL,
		       "unknown argument '%s'; the keys are samples batch n eta tier sweeps seed "
		       "tolerance",
		       text);
}

// ---- the runs ----

struct draw {
	uint64_t state;
};

static double uniform(struct draw *d) // splitmix64 (Steele et al. 2014)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static void note(struct errors *e, double error, double size)
{
	e->sum += error;
	e->square += error * error;
	e->max = error <= e->max ? e->max : isnan(error) ? INFINITY : error;
	e->relative = fmax(e->relative, size > 0 ? error / size : 0);
	e->count++;
}

struct side {
	yoke_tensor *a, *z, *g; // variables of one dtype
	struct yoke_resolvent how;
	void *value, *slope; // results on the host
	int dtype;
};

static int run_make(struct side *s, const struct options *a, int dtype, int tier, int half)
{
	const int64_t dims[] = { a->batch, a->n, 2 }, two = 2;
	const size_t all = (size_t)(a->batch * a->n) * yoke_dtype_size(dtype);
	s->how = (struct yoke_resolvent)YOKE_RESOLVENT_INIT;
	s->how.tier = tier;
	s->how.half = half;
	s->how.tolerance = a->tolerance;
	s->how.sweeps = (int)a->sweeps;
	s->dtype = dtype;
	s->a = yoke_keep(yoke_variable("a", dtype, 2, dims));
	s->z = yoke_keep(yoke_variable("z", dtype, 1, &two));
	s->g = yoke_keep(yoke_variable("g", dtype, 3, dims));
	s->value = malloc(2 * all + 1);
	s->slope = malloc(all + 1);
	if (s->a && s->z && s->g && (!s->value || !s->slope))
		return yk_fail(YOKE_ENOMEM, "out of host memory for %lld rows of %lld elements",
			       (long long)a->batch, (long long)a->n);
	return yoke_error_code();
}

static void run_free(struct side *s)
{
	yoke_free(s->a);
	yoke_free(s->z);
	yoke_free(s->g);
	free(s->value);
	free(s->slope);
}

static int put(yoke_tensor *t, const double *x)
{
	const int64_t n = yoke_count(t);
	if (yoke_dtype(t) == yoke_f64)
		return yoke_put(t, x, yoke_bytes(t));
	float *f = malloc((size_t)n * sizeof *f + 1);
	for (int64_t i = 0; f && i < n; i++)
		f[i] = (float)x[i];
	int e = f ? yoke_put(t, f, yoke_bytes(t)) :
		    yk_fail(YOKE_ENOMEM, "out of host memory for %lld numbers", (long long)n);
	free(f);
	return e;
}

static double at(const struct side *s, const void *p, int64_t i)
{
	return s->dtype == yoke_f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

// Runs one batch: timed values, then gradients and, for the tier half, the largest error bound of a
// row.
static int run_batch(struct side *s, const struct options *a, const double *x, const double *z,
		     const double *g, double *seconds, double *bound)
{
	yoke_tensor *bounds = NULL, *slope;
	int e = put(s->a, x) < 0 || put(s->z, z) < 0 || put(s->g, g) < 0 ? yoke_error_code() :
		yoke_sync();
	if (e < 0)
		return e;
	yoke_scope *scope = yoke_scope_begin("validate");
	s->how.bound = bound && s->how.tier == YOKE_TIER_HALF ? &bounds : NULL;
	yoke_tensor *y = yoke_resolvent(s->a, YOKE_NONE, YOKE_NONE, s->z, &s->how);
	const double began = yk_seconds();
	e = yoke_eval(bounds ? 2 : 1, (yoke_tensor *[]){ y, bounds });
	e = e < 0 ? e : yoke_sync();
	*seconds = yk_seconds() - began;
	if (e == 0)
		e = yoke_read(y, s->value, yoke_bytes(y));
	if (e == 0 && yoke_grad(yoke_sum(yoke_mul(y, s->g), YOKE_ALL), 1, &s->a, &slope) == 0)
		e = yoke_read(slope, s->slope, yoke_bytes(slope));
	float *rows = bounds ? malloc((size_t)a->batch * sizeof *rows) : NULL;
	if (e == 0 && rows && yoke_read(bounds, rows, (size_t)a->batch * sizeof *rows) == 0)
		for (int64_t i = 0; i < a->batch; i++)
			*bound = fmax(*bound, (double)rows[i]);
	free(rows);
	return yoke_scope_end(scope);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void compare(struct outcome *o, const struct options *a, const struct side *got,
		    const struct side *want)
{
	const int64_t n = a->batch * a->n;
	double largest = 0;
	for (int64_t i = 0; i < n; i++) {
		const double complex x = CMPLX(at(got, got->value, 2 * i),
					       at(got, got->value, 2 * i + 1)),
				     y = CMPLX(at(want, want->value, 2 * i),
					       at(want, want->value, 2 * i + 1));
		note(&o->value, cabs(x - y), cabs(y));
		largest = fmax(largest, fabs(at(want, want->slope, i)));
	}
	// relative to the largest gradient, because small ones occur beside large ones
	for (int64_t i = 0; i < n; i++)
		note(&o->gradient, fabs(at(got, got->slope, i) - at(want, want->slope, i)),
		     largest);
}

static int run(const struct options *a, struct outcome *o)
{
	const bool half = !strcmp(a->tier, "f16") || !strcmp(a->tier, "bf16");
	const int tier = half ? YOKE_TIER_HALF : !strcmp(a->tier, "mixed") ? YOKE_TIER_MIXED :
			 !strcmp(a->tier, "f64") ? YOKE_TIER_F64 : YOKE_TIER_F32;
	const size_t n = (size_t)(a->batch * a->n);
	struct side side[3] = { { .a = NULL } };
	struct draw d = { (uint64_t)a->seed };
	struct yoke_stats before = { .size = sizeof before }, after = before;
	double *x = malloc(3 * n * sizeof *x),
	       *times = malloc(3 * (size_t)a->samples * sizeof *times);
	int e = x && times ? 0 : yk_fail(YOKE_ENOMEM, "out of host memory for %zu numbers", n);
	if (e == 0)
		e = run_make(&side[0], a, tier == YOKE_TIER_F64 ? yoke_f64 : yoke_f32, tier,
			      !strcmp(a->tier, "bf16") ? yoke_bf16 : yoke_f16);
	if (e == 0)
		e = run_make(&side[1], a, yoke_f32, YOKE_TIER_F32, yoke_f16);
	if (e == 0)
		e = run_make(&side[2], a, yoke_f64, YOKE_TIER_F64, yoke_f16);
	yoke_stats(&before);
	for (int64_t k = 0; k < a->samples && e == 0; k++) {
		const double z[2] = { 0, a->eta };
		for (size_t i = 0; i < n; i++) // rounded to f32, as all three need equal inputs
			x[i] = (float)(2 * sqrt(-2 * log(1 - uniform(&d))) *
				       cos(2 * M_PI * uniform(&d)));
		for (size_t i = n; i < 3 * n; i++)
			x[i] = (float)(2 * uniform(&d) - 1);
		for (int i = 0; i < 3 && e == 0; i++)
			e = run_batch(&side[i], a, x, z, x + n, &times[i * a->samples + k],
				      i ? NULL : &o->bound);
		if (e == 0)
			compare(o, a, &side[0], &side[2]);
	}
	yoke_stats(&after);
	o->promoted = after.promoted_rows - before.promoted_rows;
	o->rows = (uint64_t)(a->samples * a->batch);
	for (int i = 0; i < 3 && e == 0; i++) {
		qsort(times + i * a->samples, (size_t)a->samples, sizeof *times, by_value);
		o->seconds[i] = times[i * a->samples + a->samples / 2];
	}
	for (int i = 0; i < 3; i++)
		run_free(&side[i]);
	free(x);
	free(times);
	return e;
}

// ---- output ----

static json_t *described(const struct errors *e)
{
	const double mean = e->sum / (double)e->count;
	json_t *o = json_object();
	json_object_set_new(o, "mean", json_real(mean));
	json_object_set_new(o, "deviation",
			    json_real(sqrt(fmax(0, e->square / (double)e->count - mean * mean))));
	if (isfinite(e->max)) // JSON cannot represent infinity
		json_object_set_new(o, "largest", json_real(e->max));
	json_object_set_new(o, "relative", json_real(fmin(e->relative, 1e300)));
	return o;
}

static void line(const char *what, const struct errors *e)
{
	const double mean = e->sum / (double)e->count;
	printf("%-10s  mean %.2e  deviation %.2e  max %.2e  relative %.2e\n", what, mean,
	       sqrt(fmax(0, e->square / (double)e->count - mean * mean)), e->max, e->relative);
}

static void print(const struct options *a, const struct outcome *o, bool good)
{
	char batches[64], rows[64];
	const bool half = !strcmp(a->tier, "f16") || !strcmp(a->tier, "bf16");
	printf("on %s, %s of %s of %lld, eta %g\n", yk_current()->device->id,
	       yk_counted(batches, a->samples, "batch"), yk_counted(rows, a->batch, "row"),
	       (long long)a->n, a->eta);
	printf("tier %s%s, against f64\n\n", a->tier,
	       half ? ", emulated: computed in f32 and rounded after each operation" : "");
	line("values", &o->value);
	line("gradients", &o->gradient);
	if (half)
		printf("bound       max %.2e, tolerance %g; %llu of %llu rows recomputed in f32\n",
		       o->bound, a->tolerance, (unsigned long long)o->promoted,
		       (unsigned long long)o->rows);
	printf("per batch   %.1f us, f32 %.1f us, f64 %.1f us\n", 1e6 * o->seconds[0],
	       1e6 * o->seconds[1], 1e6 * o->seconds[2]);
	printf("\n%s %s: relative errors of values, and errors of gradients relative to the "
	       "largest gradient, are %s %g\n",
	       a->tier, good ? "PASS" : "FAIL", good ? "at most" : "not all within", BOUND);
}

static void print_json(const struct options *a, const struct outcome *o, bool good)
{
	json_t *j = json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:o, s:o, s:I, s:I}", "device",
			      yk_current()->device->id, "tier", a->tier, "samples",
			      (json_int_t)a->samples, "batch", (json_int_t)a->batch, "n",
			      (json_int_t)a->n, "eta", a->eta, "values", described(&o->value),
			      "gradients", described(&o->gradient), "rows", (json_int_t)o->rows,
			      "promoted", (json_int_t)o->promoted);
	if (isfinite(o->bound))
		json_object_set_new(j, "bound", json_real(o->bound));
	json_object_set_new(j, "seconds",
			    json_pack("{s:f, s:f, s:f}", "tier", o->seconds[0], "f32",
				      o->seconds[1], "f64", o->seconds[2]));
	json_object_set_new(j, "good", json_boolean(good));
	yk_print_json(j);
	json_decref(j);
}

int yk_check_resolvent(int argc, char **argv)
{
	struct options a = { .samples = 100,
			     .batch = 8,
			     .n = 128,
			     .sweeps = YOKE_SWEEPS,
			     .seed = 1,
			     .eta = 1,
			     .tolerance = 1e-4,
			     .tier = "f16" };
	struct outcome o = { .bound = 0 };
	bool json = false;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (argument(&a, argv[i]) < 0) {
			yk_failed("check resolvent");
			return YK_USAGE;
		}
	if (!yk_current() || run(&a, &o) < 0)
		return yk_failed("check resolvent");
	const bool good = o.value.max <= BOUND && o.gradient.relative <= BOUND;
	(json ? print_json : print)(&a, &o, good);
	return good ? YK_DONE : YK_FAILED;
}
