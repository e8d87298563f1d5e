// SPDX-License-Identifier: Apache-2.0
// Tests ops over lists of tensors against float64 loops, in every dtype of parameters and states:
// steps of AdamW, LAMB and SGD, the norm over all tensors, unscaling with its overflow flag; also
// with empty tensors.

#include "config.h"

#include "tap.h"
#include "yoke.h"
#include "dtypes.h"

enum { N = 4, LIMIT = 700, STEPS = 4 };

enum kind { ADAMW, LAMB, LAMB_CLAMPED, LAMB_PLAIN, SGD, NESTEROV, PLAIN, KINDS };
static const char *const names[KINDS] = { "adamw", "lamb", "lamb, clamped", "lamb, plain", "sgd",
					  "sgd, nesterov", "sgd, no momentum" };

static const int64_t dims[N][2] = { { 1, 1 }, { 7, 100 }, { 0, 3 }, { 5, 13 } };

static int64_t count(int i)
{
	return dims[i][0] * dims[i][1];
}

struct lists {
	double p[N][LIMIT], g[N][LIMIT], m[N][LIMIT], v[N][LIMIT];
};

static const double beta1 = 0.9, beta2 = 0.95, eps = 1e-6, decay = 0.1, scale = 0.5;

static double norm(const double *x, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sqrt(sum);
}

// spec: the definitions of You et al. 2020, Loshchilov and Hutter 2019, and PyTorch's SGD
static void reference(enum kind kind, struct lists *l, int t, double lr, int p_dtype, int s_dtype)
{
	const double c1 = 1 - pow(beta1, t), c2 = 1 - pow(beta2, t);
	for (int i = 0; i < N; i++) {
		double r[LIMIT], ratio = 1;
		for (int64_t k = 0; k < count(i); k++) {
			double g = l->g[i][k] * scale, *p = &l->p[i][k], *m = &l->m[i][k],
			       *v = &l->v[i][k];
			if (kind >= SGD) {
				g += decay * *p;
				if (kind != PLAIN)
					*m = t == 1 ? g : beta1 * *m + g;
				r[k] = kind == PLAIN ? g : kind == SGD ? *m : g + beta1 * *m;
				continue;
			}
			*m = beta1 * *m + (1 - beta1) * g;
			*v = beta2 * *v + (1 - beta2) * g * g;
			r[k] = *m / c1 / (sqrt(*v) / sqrt(c2) + eps) + decay * *p;
		}
		if (kind == LAMB || kind == LAMB_CLAMPED) {
			double a = norm(l->p[i], count(i)), b = norm(r, count(i));
			double phi = kind == LAMB ? a : fmin(fmax(a, 0.5), 2);
			ratio = a == 0 || b == 0 ? 1 : phi / b;
		}
		for (int64_t k = 0; k < count(i); k++) {
			l->p[i][k] = rounded(p_dtype, l->p[i][k] - lr * ratio * r[k]);
			l->m[i][k] = rounded(s_dtype, l->m[i][k]);
			l->v[i][k] = rounded(s_dtype, l->v[i][k]);
		}
	}
}

static yoke_tensor *make(int dtype, int i, const double *x)
{
	yoke_tensor *t = yoke_variable("x", dtype, 2, dims[i]);
	put(t, x);
	return t;
}

// Parameters, gradients and states in their dtypes against the reference, restarted from the same
// values at each step, so that only the rounding of one step differs.
static void steps(enum kind kind, int p_dtype, int s_dtype, int g_dtype)
{
	static struct lists want;
	static double got[LIMIT];
	yoke_tensor *p[N], *g[N], *m[N], *v[N], *lr = yoke_scalar(0), *c1 = yoke_scalar(0),
		    *c2 = yoke_scalar(0), *first = yoke_scalar(0), *by = yoke_scalar(scale);
	char what[120];
	snprintf(what, sizeof what, "%s, parameters %s, gradients %s, states %s", names[kind],
		 yoke_dtype_name(p_dtype), yoke_dtype_name(g_dtype), yoke_dtype_name(s_dtype));
	for (int i = 0; i < N; i++) {
		for (int64_t k = 0; k < count(i); k++) {
			// the last tensor is 0: its ratio is 1
			want.p[i][k] = i == N - 1 ? 0 : rounded(p_dtype, rnd_real(-1, 1));
			want.m[i][k] = want.v[i][k] = 0;
		}
		p[i] = make(p_dtype, i, want.p[i]);
		m[i] = make(s_dtype, i, want.m[i]);
		v[i] = make(s_dtype, i, want.v[i]);
		g[i] = make(g_dtype, i, want.m[i]);
	}
	bool good = true;
	for (int t = 1; t <= STEPS; t++) {
		const double rate = 0.02 * t;
		yoke_scope *s = yoke_scope_begin("step");
		for (int i = 0; i < N; i++) {
			for (int64_t k = 0; k < count(i); k++)
				want.g[i][k] = rounded(g_dtype, rnd_real(-1, 1));
			put(g[i], want.g[i]);
		}
		yoke_scalar_set(lr, rate);
		yoke_scalar_set(c1, 1 - pow(beta1, t));
		yoke_scalar_set(c2, 1 - pow(beta2, t));
		yoke_scalar_set(first, t == 1);
		struct yoke_adamw a = { .size = sizeof a,
					lr, c1, c2, by, beta1, beta2, eps, decay };
		struct yoke_lamb b = { .size = sizeof b,
				       lr,
				       c1,
				       c2,
				       by,
				       beta1,
				       beta2,
				       eps,
				       decay,
				       0,
				       0,
				       kind == LAMB_PLAIN };
		struct yoke_sgd c = { .size = sizeof c,
				      lr, first, by, beta1, 0, decay, kind == NESTEROV };
		if (kind == LAMB_CLAMPED)
			b.min = 0.5, b.max = 2;
		if (kind == PLAIN)
			c.momentum = 0;
		int err = kind == ADAMW ? yoke_adamw_step(N, p, g, m, v, &a) :
			  kind < SGD    ? yoke_lamb_step(N, p, g, m, v, &b) :
					  yoke_sgd_step(N, p, g, kind == PLAIN ? NULL : m, &c);
		good &= !err && !yoke_eval(0, NULL);
		yoke_scope_end(s);
		reference(kind, &want, t, rate, p_dtype, s_dtype);
		for (int i = 0; i < N && good; i++) {
			char text[160];
			snprintf(text, sizeof text, "%s: step %d, tensor %d", what, t, i);
			get(p[i], got);
			near(got, want.p[i], (size_t)count(i), 4 * ulp(p_dtype), 1, text);
			put(p[i], want.p[i]);
			get(m[i], got);
			near(got, want.m[i], (size_t)count(i), 4 * ulp(s_dtype), 1, text);
			put(m[i], want.m[i]);
			get(v[i], got);
			near(got, want.v[i], (size_t)count(i), 4 * ulp(s_dtype), 1, text);
			put(v[i], want.v[i]);
		}
	}
	ok(good, "%s runs %s", what, yoke_error());
	yoke_error_clear();
	for (int i = 0; i < N; i++) {
		yoke_free(p[i]);
		yoke_free(g[i]);
		yoke_free(m[i]);
		yoke_free(v[i]);
	}
}

static void norms(int dtype)
{
	static double x[N][LIMIT];
	yoke_tensor *t[N];
	double sum = 0;
	float got = NAN;
	yoke_scope *s = yoke_scope_begin("norm");
	for (int i = 0; i < N; i++) {
		for (int64_t k = 0; k < count(i); k++) {
			x[i][k] = rounded(dtype, rnd_real(-100, 100)); // squares overflow f16
			sum += x[i][k] * x[i][k];
		}
		t[i] = make(dtype, i, x[i]);
	}
	yoke_read(yoke_global_norm(N, t), &got, sizeof got);
	double one = (double)got, want = sqrt(sum);
	near(&one, &want, 1, 1e-6, 1, yoke_dtype_name(dtype));
	yoke_scope_end(s);
	for (int i = 0; i < N; i++)
		yoke_free(t[i]);
}

// bad: value of one element of tensor 1, NaN for none
static void unscale(int dtype, double bad, double by)
{
	static double x[N][LIMIT], got[LIMIT], want[LIMIT];
	yoke_tensor *t[N], *to[N], *flag;
	unsigned char overflow = 77;
	char what[80];
	snprintf(what, sizeof what, "unscale %s by %g, with %g", yoke_dtype_name(dtype), by, bad);
	yoke_scope *s = yoke_scope_begin("unscale");
	for (int i = 0; i < N; i++) {
		for (int64_t k = 0; k < count(i); k++)
			x[i][k] = rounded(dtype, rnd_real(-1, 1));
		if (i == 1)
			x[i][123] = rounded(dtype, bad);
		t[i] = make(dtype, i, x[i]);
	}
	int err = yoke_unscale_check(N, t, yoke_scalar(by), to, &flag);
	yoke_tensor *all[N + 1] = { to[0], to[1], to[2], to[3], flag };
	if (!err)
		err = yoke_eval(N + 1, all);
	ok(!err && yoke_dtype(to[1]) == (dtype == yoke_f64 ? yoke_f64 : yoke_f32) &&
		   yoke_dtype(flag) == yoke_bool,
	   "%s runs %s", what, yoke_error());
	for (int i = 0; i < N && !err; i++) {
		for (int64_t k = 0; k < count(i); k++)
			want[k] = rounded(yoke_dtype(to[i]), x[i][k] * by);
		get(to[i], got);
		near(got, want, (size_t)count(i), 2e-7, 0, what);
	}
	yoke_read(flag, &overflow, 1);
	bool any = !isfinite(
		rounded(dtype == yoke_f64 ? yoke_f64 : yoke_f32, rounded(dtype, bad) * by));
	ok(overflow == any, "%s: flag %d", what, overflow);
	yoke_scope_end(s);
	for (int i = 0; i < N; i++)
		yoke_free(t[i]);
}

static void refused(void)
{
	yoke_tensor *p = yoke_variable("p", yoke_f32, 1, (int64_t[]){ 3 }),
		    *g = yoke_variable("g", yoke_f32, 1, (int64_t[]){ 4 });
	yoke_tensor *one = yoke_scalar(1), *to, *flag;
	struct yoke_lamb o = { .size = sizeof o,
			       one, one, one, YOKE_NONE, 0.9, 0.99, 1e-6, 0, 2, 1, 0 };
	int err = yoke_lamb_step(1, &p, &p, &p, &p, &o);
	ok(err == YOKE_EINVAL, "exchanged bounds: %s", yoke_error());
	yoke_error_clear();
	o.min = 0;
	err = yoke_lamb_step(1, &p, &g, &p, &p, &o);
	ok(err == YOKE_ESHAPE, "a gradient of another shape: %s", yoke_error());
	yoke_error_clear();
	err = yoke_unscale_check(1, &p, YOKE_NONE, &to, &flag);
	ok(err == YOKE_EINVAL, "a missing scale: %s", yoke_error());
	yoke_error_clear();
}

// Lists of any length: 600 tensors concatenated, in both orders, and the gradient by each.
static void long_lists(void)
{
	enum { LONG = 600 };
	static yoke_tensor *x[2 * LONG], *g[LONG];
	static double got[2 * LONG], want[2 * LONG], slope[LONG];
	int64_t one = 1;
	yoke_scope *s = yoke_scope_begin("long");
	for (int i = 0; i < LONG; i++) {
		double v = rnd_real(-2, 2);
		x[i] = x[2 * LONG - 1 - i] = yoke_from(yoke_f64, 1, &one, &v);
		want[i] = want[2 * LONG - 1 - i] = v * v;
		slope[i] = 4 * v;
	}
	yoke_tensor *y = yoke_square(yoke_concat(2 * LONG, x, 0));
	int err = yoke_grad(yoke_sum(y, YOKE_ALL), LONG, x, g);
	yoke_tensor *all = err ? NULL : yoke_concat(LONG, g, 0);
	err = yoke_eval(2, (yoke_tensor *[]){ y, all });
	yoke_read(y, got, sizeof got);
	near(got, want, 2 * LONG, 1e-15, 1, "1200 operands");
	yoke_read(all, got, sizeof *got * LONG);
	near(got, slope, LONG, 1e-15, 1, "their gradients");
	ok(!err && !yoke_scope_end(s), "and nothing fails; %s", yoke_error());
}

int main(void)
{
	static const int floats[] = { yoke_f64, yoke_f32, yoke_f16, yoke_bf16 };
	tap_seed();
	long_lists();
	for (int k = 0; k < KINDS; k++)
		for (int d = 0; d < 4; d++) {
			int acc = d ? yoke_f32 : yoke_f64;
			steps((enum kind)k, floats[d], floats[d], floats[d]);
			if (floats[d] != acc)
				steps((enum kind)k, floats[d], acc, acc);
		}
	for (int d = 0; d < 4; d++) {
		norms(floats[d]);
		unscale(floats[d], 1, 1.0 / 1024);
		unscale(floats[d], INFINITY, 1.0 / 1024);
		unscale(floats[d], NAN, 1);
		unscale(floats[d], 30000, 1e36); // finite before it is unscaled, except in f64
	}
	refused();
	return done();
}
