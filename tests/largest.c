// SPDX-License-Identifier: Apache-2.0
// Tests yoke_largest: the selected and the remaining elements sum to both operands bit for bit,
// with ties, infinities and NaN, by a kernel and by decomposition; in place of the carried
// residual; its gradient; refused arguments. Two ranks that exchange the largest elements of
// their gradients find the minimum of a sum of quadratics if the residual is carried, and do not
// if it is dropped.

#include "config.h"

#include "tap.h"
#include "yoke-dist.h"

static uint32_t bits_of(float x)
{
	uint32_t u;
	if (isnan(x)) // of two equal elements either may remain
		return UINT32_MAX;
	memcpy(&u, &x, sizeof u);
	return u;
}

// Does element i rank before j?
static bool before(const float *a, int64_t i, int64_t j)
{
	if (isnan(a[i]) || isnan(a[j]))
		return isnan(a[i]) && (!isnan(a[j]) || i < j);
	return fabsf(a[i]) != fabsf(a[j]) ? fabsf(a[i]) > fabsf(a[j]) : i < j;
}

static float draw(int kind)
{
	static const float odd[] = {
		0, -0.0f, NAN, -NAN, INFINITY, -INFINITY, 1e-42f, 1, -1, 3e38f
	};
	if (kind == 1) // few distinct magnitudes
		return (float)rnd_int(-2, 2);
	if (kind == 2 && rnd_int(0, 3) == 0)
		return odd[rnd_int(0, 9)];
	return (float)rnd_real(-1, 1);
}

enum { LIMIT = 3000, MANY = 70000 };

// The error in a selection of k of n, or NULL.
static const char *wrong(const float *x, const float *e, int64_t n, int64_t k, const float *value,
			 const int32_t *place, const float *rest)
{
	static float a[MANY];
	static bool taken[MANY];
	int64_t min = -1;
	for (int64_t i = 0; i < n; i++) {
		a[i] = e ? x[i] + e[i] : x[i];
		taken[i] = false;
	}
	for (int64_t i = 0; i < k; i++) {
		if (place[i] < 0 || place[i] >= n || (i && place[i] <= place[i - 1]))
			return "places";
		if (bits_of(value[i]) != bits_of(a[place[i]]))
			return "a value";
		taken[place[i]] = true;
		if (min < 0 || before(a, min, place[i]))
			min = place[i];
	}
	for (int64_t i = 0; i < n; i++) {
		if (bits_of(rest[i]) != (taken[i] ? 0 : bits_of(a[i])))
			return "what is left";
		if (!taken[i] && k && before(a, i, min))
			return "the choice";
	}
	return NULL;
}

static float x[MANY], e[MANY];

// Selects k of the n elements of x, or of x + e, as a training step does; NULL, or the error.
static const char *select_some(int64_t n, int64_t k, bool two)
{
	static float value[MANY], left[MANY];
	static int32_t place[MANY];
	yoke_scope *s = yoke_scope_begin("selection");
	yoke_tensor *carried = yoke_variable("e", yoke_f32, 1, &n), *places, *rest;
	yoke_put(carried, e, (size_t)n * sizeof *e);
	yoke_tensor *v = yoke_largest(yoke_from(yoke_f32, 1, &n, x), two ? carried : YOKE_NONE, k,
				      &places, &rest);
	yoke_keep(v);
	yoke_keep(places);
	int err = yoke_assign(carried, rest); // in place, or not
	if (!err)
		err = yoke_eval(0, NULL);
	if (!err)
		err = yoke_read(v, value, (size_t)k * sizeof *value);
	if (!err)
		err = yoke_read(places, place, (size_t)k * sizeof *place);
	if (!err)
		err = yoke_read(carried, left, (size_t)n * sizeof *left);
	const char *why = err ? yoke_error() : wrong(x, two ? e : NULL, n, k, value, place, left);
	yoke_free(v);
	yoke_free(places);
	yoke_free(carried);
	yoke_scope_end(s);
	return why;
}

static void selections(const char *named)
{
	int bad = 0;
	yoke_setting_set("plan.named", named);
	for (int turn = 0; turn < 60 && !bad; turn++) {
		const int64_t n = turn < 4 ? turn + 1 : rnd_int(1, LIMIT);
		const int64_t k = turn % 5 == 0 ? n : turn % 5 == 1 ? 0 : rnd_int(0, n);
		for (int64_t i = 0; i < n; i++) {
			x[i] = draw(turn % 3);
			e[i] = draw(turn % 3);
		}
		const char *why = select_some(n, k, turn % 2);
		if (why) {
			diag("%lld of %lld, turn %d: %s", (long long)k, (long long)n, turn, why);
			bad++;
		}
	}
	ok(!bad, "selected and remaining elements sum to all, %s",
	   *named == '1' ? "by a kernel" : "in parts");
	yoke_setting_set("plan.named", "1");
}

// Sizes at which the CPU's kernel first looks at a sample: few and many elements selected, few
// distinct magnitudes, all in one region, and a case where the sample, one of each n / 16384
// elements, contains all large elements and overestimates.
static void samples(void)
{
	int bad = 0;
	for (int turn = 0; turn < 12; turn++) {
		const int64_t n = turn == 11 ? 65536 : rnd_int(65536, MANY), step = n / 16384;
		const int64_t k = turn == 11    ? 20000 :
				  turn % 4 == 0 ? rnd_int(1, 700) :
						  rnd_int(0, n);
		for (int64_t i = 0; i < n; i++) {
			x[i] = turn == 11 ? (float)rnd_real(-0.1, 0.1) :
			       turn < 9   ? draw(turn % 3) :
			       i < n / 9  ? draw(0) :
					    0;
			e[i] = turn < 6 ? draw(turn % 3) : 0;
		}
		for (int64_t i = 0; i < 16384 && turn == 11; i++)
			x[i * step + (int64_t)((uint32_t)i * 2654435761u >> 8) % step] =
				(float)rnd_real(1, 2);
		const char *why = select_some(n, k, turn < 6 || turn == 9);
		if (why && bad++ < 3)
			diag("%lld of %lld, turn %d: %s", (long long)k, (long long)n, turn, why);
	}
	ok(!bad, "the same for many elements, with a sample");
}

// d/dx of w.values + u.rest is w or u.
static void gradient(void)
{
	enum { N = 12, K = 5 };
	const int64_t dims[] = { 3, 4 }, n = N, k = K;
	float at[N], w[K], u[N], got[N], also[N];
	int32_t place[K];
	for (int i = 0; i < N; i++) {
		at[i] = (float)rnd_real(-1, 1);
		u[i] = (float)rnd_real(-1, 1);
	}
	for (int i = 0; i < K; i++)
		w[i] = (float)rnd_real(-1, 1);
	yoke_scope *s = yoke_scope_begin("gradient");
	yoke_tensor *p[2] = { yoke_variable("x", yoke_f32, 2, dims),
			      yoke_variable("e", yoke_f32, 2, dims) },
		    *d[2], *places, *rest;
	yoke_put(p[0], at, sizeof at);
	yoke_tensor *v = yoke_largest(p[0], p[1], k, &places, &rest);
	yoke_tensor *loss = yoke_add(
		yoke_sum(yoke_mul(v, yoke_from(yoke_f32, 1, &k, w)), YOKE_ALL),
		yoke_sum(yoke_mul(yoke_reshape(rest, 1, &n), yoke_from(yoke_f32, 1, &n, u)),
			 YOKE_ALL));
	int err = yoke_grad(loss, 2, p, d);
	yoke_keep(places);
	yoke_keep(d[1]);
	if (!err)
		err = yoke_read(d[0], got, sizeof got);
	if (!err)
		err = yoke_read(d[1], also, sizeof also);
	if (!err)
		err = yoke_read(places, place, sizeof place);
	bool good = !err;
	for (int i = 0, t = 0; i < N && good; i++) {
		const float want = t < K && place[t] == i ? w[t++] : u[i];
		good = got[i] == want && also[i] == want;
	}
	ok(good, "its gradient%s%s", err ? ": " : "", err ? yoke_error() : "");
	yoke_free(places);
	yoke_free(d[1]);
	yoke_free(p[0]);
	yoke_free(p[1]);
	yoke_scope_end(s);
}

static void refuses(yoke_tensor *y, int code, const char *words)
{
	ok(!y && yoke_error_code() == code && strstr(yoke_error(), words), "%s: %s", words,
	   yoke_error());
	yoke_error_clear();
}

static void refusals(void)
{
	const int64_t n = 4, other = 5;
	yoke_scope *s = yoke_scope_begin("refusals");
	yoke_tensor *four = yoke_full(yoke_f32, 1, &n, 1);
	refuses(yoke_largest(four, YOKE_NONE, 5, NULL, NULL), YOKE_ERANGE, "largest 5 of 4");
	refuses(yoke_largest(four, YOKE_NONE, -1, NULL, NULL), YOKE_ERANGE, "largest -1 of 4");
	refuses(yoke_largest(yoke_full(yoke_f64, 1, &n, 1), YOKE_NONE, 1, NULL, NULL), YOKE_EDTYPE,
		"takes f32");
	refuses(yoke_largest(four, yoke_full(yoke_f32, 1, &other, 1), 1, NULL, NULL), YOKE_ESHAPE,
		"another shape");
	yoke_scope_end(s);
}

// ---- two ranks ----

enum { WIDE = 2000, SENT = 50, STEPS = 4000, RATE = 1000 };
static float target[2][WIDE];

// The mean distance from the minimum of sum_r (x - target_r)^2 / 2 after that many steps, relative
// to the initial one.
static int descend(yoke_group *g, void *to)
{
	struct { bool carries; double far[2]; } *run = to;
	const int r = yoke_group_rank(g);
	const int64_t n = WIDE, words = 2 * SENT;
	yoke_tensor *w = yoke_variable("x", yoke_f32, 1, &n),
		    *kept = yoke_variable("e", yoke_f32, 1, &n);
	static float last[2][WIDE];
	int err = 0;
	for (int i = 0; i < STEPS && !err; i++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *places, *rest, *sum = yoke_full(yoke_f32, 1, &n, 0);
		yoke_tensor *d = yoke_sub(w, yoke_from(yoke_f32, 1, &n, target[r]));
		yoke_tensor *v =
			yoke_largest(d, run->carries ? kept : YOKE_NONE, SENT, &places, &rest);
		yoke_tensor *all = yoke_all_gather(
			g,
			yoke_concat(2, (yoke_tensor *[]){ places, yoke_bitcast(v, yoke_i32) }, 0));
		for (int k = 0; k < 2; k++)
			sum = yoke_scatter_add_along(
				sum, yoke_slice(all, 0, k * words, k * words + SENT, 1),
				yoke_bitcast(
					yoke_slice(all, 0, k * words + SENT, (k + 1) * words, 1),
					yoke_f32),
				0);
		yoke_assign(w, yoke_sub(w, yoke_mul(yoke_const(1. / RATE), sum)));
		if (run->carries)
			yoke_assign(kept, rest);
		err = yoke_eval(0, NULL);
		const int ended = yoke_scope_end(s);
		err = err ? err : ended;
	}
	if (!err)
		err = yoke_read(w, last[r], sizeof last[r]);
	for (int i = 0; i < WIDE; i++)
		run->far[r] +=
			fabs(last[r][i] - 0.5 * ((double)target[0][i] + (double)target[1][i])) /
			WIDE;
	yoke_free(w);
	yoke_free(kept);
	return err;
}

static void quadratic(void)
{
	double first = 0;
	struct { bool carries; double far[2]; } with = { .carries = true }, without = { 0 };
	for (int i = 0; i < WIDE; i++) { // the first ones differ by more than all others together
		const double both = rnd_real(-10, 10);
		target[0][i] = (float)(both + rnd_real(-1, 1) + (i < SENT ? 30 : 0));
		target[1][i] = (float)(both + rnd_real(-1, 1) - (i < SENT ? 30 : 0));
		first += 0.5 * fabs((double)target[0][i] + (double)target[1][i]) / WIDE;
	}
	int err = yoke_group_run(2, NULL, descend, &with);
	ok(!err && with.far[0] <= 0.01 * first && with.far[0] == with.far[1],
	   "with the residual carried: %g of %g from the minimum%s%s",
	   with.far[0], first, err ? ", " : "", err ? yoke_error() : "");
	err = yoke_group_run(2, NULL, descend, &without);
	ok(!err && without.far[0] > 0.5 * first, "without it: %g of %g", without.far[0], first);
}

int main(void)
{
	setenv("YOKE_BACKEND", "cpu", 1);
	setenv("YOKE_CPU_DEVICES", "2", 1);
	tap_seed();
	selections("1");
	selections("0");
	samples();
	gradient();
	refusals();
	quadratic();
	return done();
}
