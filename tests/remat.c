// SPDX-License-Identifier: Apache-2.0
// Tests rematerialization, where values are recomputed at their readers instead of stored: which
// values, by the bytes of the printed plan's steps, and results against float64 loops.

#include "config.h"

#include <math.h>

#include "base/log.h"
#include "base/num.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { ROWS = 5, COLS = 67, N = ROWS * COLS, LIMIT = 16 };

static struct plan { // the last printed plan
	int steps;
	long bytes[LIMIT]; // of each step
} plan;

static const char *field(const char *line, int n)
{
	for (; n > 0 && line; n--)
		line = strchr(line, '\t') ? strchr(line, '\t') + 1 : NULL;
	return line ? line : "";
}

static void on_log(int level, const char *topic, const char *line, void *arg)
{
	struct plan *p = arg;
	if (level != YOKE_LOG_DEBUG || strcmp(topic, "plan"))
		return;
	if (strstr(line, " lowered, "))
		p->steps = 0;
	else if (*line >= '0' && *line <= '9' && p->steps < LIMIT)
		p->bytes[p->steps++] = atol(field(line, 5));
}

static double data[N];

// Up to e: a softmax of 2 t, t up to e^2 + 1, has errors of 6 roundings of 17, 6e-6, at most, on
// average a third of that.
static yoke_tensor *make_x(void)
{
	float x[N];
	for (int i = 0; i < N; i++)
		data[i] = x[i] = (float)rnd_real(-1, 1);
	return yoke_from(yoke_f32, 2, DIMS(ROWS, COLS), x);
}

// Steps that read and write that many tensors of N floats.
static void steps(const char *what, int n, const int *tensors)
{
	bool good = plan.steps == n;
	for (int i = 0; i < n && good; i++)
		good = plan.bytes[i] == tensors[i] * (long)(N * sizeof(float));
	ok(good, "%s: %d steps, %d wanted", what, plan.steps, n);
	for (int i = 0; i < plan.steps && !good; i++)
		diag("step %d: %ld bytes", i, plan.bytes[i]);
}

static void softmax(const double *x, double *y)
{
	for (int r = 0; r < ROWS; r++) {
		double max = -INFINITY, sum = 0;
		for (int i = r * COLS; i < (r + 1) * COLS; i++)
			max = fmax(max, x[i]);
		for (int i = r * COLS; i < (r + 1) * COLS; i++)
			sum += y[i] = exp(x[i] - max);
		for (int i = r * COLS; i < (r + 1) * COLS; i++)
			y[i] /= sum;
	}
}

static void values(const char *what, yoke_tensor *y, const double *want)
{
	float got[N];
	int bad = -1;
	for (int i = 0; i < N; i++)
		got[i] = NAN;
	int err = yoke_read(y, got, sizeof got);
	for (int i = 0; i < N && bad < 0; i++)
		if (!(fabs(got[i] - want[i]) <= 4e-6 * (1 + fabs(want[i]))))
			bad = i;
	ok(!err && bad < 0, "%s: values%s%s", what, err ? ": " : "", err ? yoke_error() : "");
	if (bad >= 0)
		diag("[%d]: got %.9g, wanted %.9g", bad, (double)got[bad], want[bad]);
}

enum how { CHEAP, ALONE, DEAR, KEPT, INNER, WHOLE, BEHIND };

// a = exp x, t = f(a); s = softmax(2 t); y = t s + a. A softmax is not fused into a map, so that t
// is computed before it and read after it.
static void value(const char *what, enum how how, int n, const int *tensors)
{
	double a[N], t[N], twice[N], soft[N], want[N];
	yoke_scope *scope = yoke_scope_begin("again");
	yoke_tensor *x = make_x(), *A = yoke_exp(x), *T, *y, *square = yoke_square(A);
	if (how == DEAR)
		T = yoke_tanh(yoke_exp(yoke_neg(A)));
	else
		T = yoke_add(square, yoke_const(1));
	for (int i = 0; i < N; i++) {
		a[i] = exp(data[i]);
		t[i] = how == DEAR ? tanh(exp(-a[i])) : a[i] * a[i] + 1;
		twice[i] = how == WHOLE ? t[i] : 2 * t[i];
	}
	softmax(twice, soft);
	if (how == KEPT)
		yoke_keep(T);
	if (how == INNER)
		yoke_keep(square);
	yoke_tensor *s = yoke_softmax(how == WHOLE ? T : yoke_mul(T, yoke_const(2)), -1);
	yoke_tensor *later = T;
	if (how == BEHIND)
		yoke_barrier(1, &T, 1, &s, &later);
	y = yoke_mul(later, s);
	if (how != ALONE)
		y = yoke_add(y, A);
	for (int i = 0; i < N; i++)
		want[i] = t[i] * soft[i] + (how == ALONE ? 0 : a[i]);
	values(what, y, want);
	steps(what, n, tensors);
	if (how == KEPT) {
		values("the one that is kept", T, t);
		yoke_free(T);
	}
	if (how == INNER)
		yoke_free(square);
	yoke_scope_end(scope);
}

// Values that depend on no tensor are computed by each reader, and nowhere else.
static void nowhere(void)
{
	float sum = NAN, max = NAN;
	yoke_scope *scope = yoke_scope_begin("nowhere");
	yoke_tensor *t = yoke_square(yoke_iota(yoke_f32, 1, DIMS(N), 0));
	yoke_tensor *s = yoke_keep(yoke_sum(t, YOKE_ALL)),
		    *m = yoke_keep(yoke_reduce_max(t, YOKE_ALL));
	int err = yoke_read(s, &sum, sizeof sum) | yoke_read(m, &max, sizeof max);
	double want = (N - 1.) * N * (2. * N - 1) / 6;
	ok(!err && fabs(sum - want) <= 1e-6 * want && max == (N - 1.) * (N - 1),
	   "a sum and a maximum of squares: %g and %g", (double)sum, (double)max);
	ok(plan.steps == 2, "they are two steps: %d", plan.steps);
	yoke_free(s);
	yoke_free(m);
	yoke_scope_end(scope);
}

// h = half of an expensive value, cast up for a softmax and for its reader after it: h is stored,
// not its operand.
static void half(int dtype)
{
	double h[N], twice[N], soft[N], want[N], got[N];
	float f[N];
	yoke_scope *scope = yoke_scope_begin("half");
	yoke_tensor *H = yoke_cast(yoke_tanh(yoke_exp(make_x())), dtype),
		    *v = yoke_cast(H, yoke_f32);
	yoke_tensor *s = yoke_softmax(yoke_mul(v, yoke_const(2)), -1);
	for (int i = 0; i < N; i++) {
		h[i] = yk_num_round(tanh(exp(data[i])), dtype);
		twice[i] = 2 * h[i];
	}
	softmax(twice, soft);
	for (int i = 0; i < N; i++)
		want[i] = h[i] * soft[i];
	int err = yoke_read(yoke_mul(v, s), f, sizeof f);
	const long bytes[] = { 4 + 4 + 2, 8, 2 + 4 + 4 }; // x -> 2v, h; 2v -> s; h, s -> y
	bool good = !err && plan.steps == 3;
	for (int i = 0; i < 3 && good; i++)
		good = plan.bytes[i] == bytes[i] * N;
	ok(good, "a %s is stored instead of its f32 cast: %d steps, %ld, %ld and %ld bytes",
	   yoke_dtype_name(dtype), plan.steps, plan.bytes[0], plan.bytes[1], plan.bytes[2]);
	for (int i = 0; i < N; i++)
		got[i] = (double)f[i];
	near(got, want, N, 6 * yk_num_unit(dtype), 0.01,
	     "the cast's values"); // a tie of h, at most 1, may round the other way; h e^2h
	yoke_scope_end(scope);
}

int main(void)
{
	if (tap_eager())
		return skip_all("its plans are of whole graphs");
	tap_seed();
	yoke_setting_set("log", "plan");
	yk_log_to(on_log, &plan);
	// x -> a, 2t; 2t -> s; s, a -> y
	value("cheap, of what is read anyway", CHEAP, 3, (int[]){ 3, 2, 3 });
	// x -> t, 2t; 2t -> s; s, t -> y
	value("of what is read nowhere else", ALONE, 3, (int[]){ 3, 2, 3 });
	// x -> a, t, 2t; 2t -> s; s, t, a -> y
	value("dear", DEAR, 3, (int[]){ 4, 2, 4 });
	value("kept", KEPT, 3, (int[]){ 4, 2, 4 });
	// x -> a, a^2, t, 2t; 2t -> s; s, t, a -> y
	value("of what is kept", INNER, 3, (int[]){ 5, 2, 4 });
	half(yoke_f16);
	half(yoke_bf16);
	value("through a barrier", BEHIND, 3, (int[]){ 4, 2, 4 });
	// x -> a, t; t -> s; s, t, a -> y
	value("read by what is no map", WHOLE, 3, (int[]){ 3, 2, 4 });
	yoke_setting_set("fuse", "0");
	value("without fusion", CHEAP, 7, (int[]){ 2, 2, 2, 2, 2, 3, 3 });
	yoke_setting_set("fuse", "1");
	nowhere();
	return done();
}
