// SPDX-License-Identifier: Apache-2.0
// Tests yoke_to, yoke_context_on and yoke_trim on two devices at once: copies of all dtypes are
// bit-exact, gradients go through copies in both directions and equal float64 formulas, refused
// gradients are errors, and cached memory is given back.
// The program runs itself once for each pair of devices.

#include "config.h"

#include <pthread.h>

#include "base/error.h"
#include "device/plugin.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) \
	(int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

enum { N = 6 };

static yoke_context *a, *b;
static const char *first, *second;

static bool refused(int code, const char *what, const char *word)
{
	const bool good = yoke_error_code() == code && strstr(yoke_error(), word) &&
			  !strchr(yoke_error(), '\n');
	ok(good, "%s: %s %s", what, yoke_error_name(yoke_error_code()), yoke_error());
	yoke_error_clear();
	return good;
}

// The constant of the context's device.
static yoke_tensor *constant(yoke_context *ctx, double x)
{
	yoke_context *was = yoke_use(ctx);
	yoke_tensor *t = yoke_const(x);
	yoke_use(was);
	return t;
}

static double x_of(int i)
{
	return 0.25 * i - 0.5;
}

static yoke_tensor *variable(yoke_context *ctx, const char *name, double scale)
{
	float x[N];
	for (int i = 0; i < N; i++)
		x[i] = (float)(scale * x_of(i));
	yoke_context *was = yoke_use(ctx);
	yoke_tensor *v = yoke_variable(name, yoke_f32, 1, DIMS(N));
	if (!v || yoke_put(v, x, sizeof x) < 0)
		printf("Bail out! %s\n", yoke_error()), exit(1);
	yoke_use(was);
	return v;
}

static yoke_tensor *sum_of_product(yoke_tensor *x, yoke_tensor *y)
{
	return yoke_sum(yoke_mul(x, y), YOKE_ALL);
}

// The largest difference of the tensor's elements from a formula; huge if it cannot be read.
static double off(yoke_tensor *t, double (*f)(double))
{
	float got[N];
	double max = 0;
	if (yoke_read(t, got, sizeof got) < 0)
		return 1e9;
	for (int i = 0; i < N; i++)
		max = fmax(max, fabs(got[i] - f(x_of(i))));
	return max;
}

// Is it without an error, and equal to the formula?
static void gives(int err, yoke_tensor *t, double (*f)(double), const char *what)
{
	const double d = err || !t ? 1e9 : off(t, f);
	ok(d < 1e-5, "%s: off %g %s", what, d, yoke_error());
}

static bool is_on(const yoke_tensor *t, const char *device)
{
	const char *on = t ? yoke_device_of(t) : NULL;
	return on && !strcmp(on, device);
}

// ---- copies ----

static void dtypes(void)
{
	for (int dtype = yoke_f32; dtype <= yoke_bool; dtype++) {
		const size_t size = yoke_dtype_size(dtype), n = 15 * size;
		unsigned char data[15 * 8], got[15 * 8], again[15 * 8];
		memset(got, 0xee, sizeof got);
		memset(again, 0xee, sizeof again);
		for (size_t i = 0; i < n; i++)
			data[i] = (unsigned char)(dtype == yoke_bool ? rnd() & 1 : rnd());
		yoke_tensor *t = yoke_from(dtype, 2, DIMS(3, 5), data), *u = yoke_to(t, second),
			    *v = yoke_to(u, first);
		const int err = yoke_read(u, got, n) || yoke_read(v, again, n);
		ok(!err && is_on(u, second) && is_on(v, first) && !memcmp(data, got, n) &&
			   !memcmp(data, again, n) && yoke_dtype(u) == dtype && yoke_rank(u) == 2 &&
			   yoke_dim(u, 1) == 5,
		   "%s: bits are the same there and back: %s", yoke_dtype_name(dtype),
		   yoke_error());
		yoke_free(t), yoke_free(u), yoke_free(v);
	}
	float one = 3, got = 0;
	yoke_tensor *t = yoke_from(yoke_f32, 0, NULL, &one), *u = yoke_to(t, second);
	ok(u && yoke_rank(u) == 0 && !yoke_read(u, &got, sizeof got) && got == 3,
	   "a number without axes");
	yoke_tensor *e = yoke_from(yoke_f32, 2, DIMS(0, 4), &one), *f = yoke_to(e, second);
	ok(f && yoke_count(f) == 0 && yoke_dim(f, 1) == 4 && !yoke_read(f, &got, 0),
	   "no elements: %s", yoke_error());
	yoke_free(t), yoke_free(u), yoke_free(e), yoke_free(f);
}

// A pending value, strided, is evaluated; the variable's later versions do not change the copy.
static void pending(void)
{
	float got[N], zeros[N] = { 0 };
	yoke_tensor *v = variable(a, "v", 1), *m = yoke_reshape(v, 2, DIMS(2, 3)),
		    *t = yoke_permute(m, (int[]){ 1, 0 });
	yoke_tensor *u = yoke_to(t, second), *w = yoke_to(v, second);
	bool good = u && w && !yoke_put(v, zeros, sizeof zeros) && !yoke_read(u, got, sizeof got);
	for (int i = 0; i < N; i++)
		good &= got[i] == (float)x_of(i % 2 * 3 + i / 2);
	ok(good, "a transposed value is copied row-major: %s", yoke_error());
	ok(!yoke_read(w, got, sizeof got) && got[5] == (float)x_of(5) && !yoke_is_variable(w),
	   "the copy of a variable is a value, and keeps its version");
	yoke_free(u), yoke_free(w), yoke_free(t), yoke_free(m), yoke_free(v);
}

static double minus_sin(double x)
{
	return cos(x);
}

static void same_device(void)
{
	struct yoke_stats s = { .size = sizeof s }, t = { .size = sizeof t };
	yoke_tensor *v = variable(a, "v", 1), *g = NULL;
	yoke_stats(&s);
	yoke_tensor *u = yoke_to(v, first);
	yoke_stats(&t);
	ok(is_on(u, first) && u != v && s.bytes_up == t.bytes_up && s.bytes_down == t.bytes_down &&
		   s.evals == t.evals,
	   "to its own device nothing is copied or evaluated");
	yoke_tensor *y = yoke_sum(yoke_sin(u), YOKE_ALL);
	yoke_grad(y, 1, &v, &g);
	gives(yoke_error_code(), g, minus_sin, "gradients flow");
	yoke_free(u), yoke_free(y), yoke_free(g), yoke_free(v);
}

static void errors(void)
{
	float one = 1;
	yoke_tensor *t = yoke_from(yoke_f32, 0, NULL, &one), *s = yoke_scalar(2),
		    *u = yoke_to(t, second), *g = t;
	ok(!yoke_to(t, "nothing:0"), "an unknown backend");
	refused(YOKE_ENODEV, "an unknown backend", "nothing");
	ok(!yoke_to(t, "cpu:99"), "an unknown device");
	refused(YOKE_ENODEV, "an unknown device", "cpu:99");
	ok(!yoke_to(t, "what"), "no device");
	refused(YOKE_ENODEV, "no device", "what");
	ok(!yoke_to(t, ""), "an empty name");
	refused(YOKE_ENODEV, "an empty name", "device");
	ok(!yoke_to(t, NULL), "no name");
	refused(YOKE_EINVAL, "no name", "to:");
	ok(!yoke_to(NULL, second), "NULL");
	refused(YOKE_EINVAL, "NULL", "to:");
	ok(!yoke_to(YOKE_NONE, second), "YOKE_NONE");
	refused(YOKE_EINVAL, "YOKE_NONE", "to:");
	ok(!yoke_to(s, second), "a scalar");
	refused(YOKE_EINVAL, "a scalar", "to:");
	ok(!yoke_add(t, u), "operands of two devices");
	refused(YOKE_ECONTEXT, "operands of two devices", "yoke_to(tensor, \"");
	yoke_tensor *v = variable(b, "v", 1), *y = yoke_sum(yoke_exp(t), YOKE_ALL);
	ok(yoke_grad(y, 1, &v, &g) == YOKE_ECONTEXT && !g,
	   "a gradient by a tensor of a device that no copy came from");
	refused(YOKE_ECONTEXT, "its error", "yoke_to");
	yoke_free(t);
	ok(!yoke_to(t, second), "a freed tensor");
	refused(YOKE_EINVAL, "a freed tensor", "freed");
	yoke_free(s), yoke_free(u), yoke_free(v), yoke_free(y);
}

static void backend_name(void)
{
	char name[48];
	float one = 1;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(second, ":"), second);
	yoke_tensor *t = yoke_from(yoke_f32, 0, NULL, &one), *u = yoke_to(t, name);
	ok(u && !strncmp(yoke_device_of(u), name, strlen(name)), "%s is %s", name,
	   u ? yoke_device_of(u) : yoke_error());
	yoke_free(t), yoke_free(u);
}

// ---- contexts ----

static void *in_a_thread(void *at)
{
	yoke_context *mine = yoke_context_on(second), *again = yoke_context_on(second);
	yoke_tensor *v = variable(mine, "v", 1), *u = yoke_to(v, first), *g = NULL;
	yoke_tensor *y = sum_of_product(u, u);
	float got[N];
	*(int *)at = mine && mine == again && mine != b && yoke_grad(y, 1, &v, &g) == 0 &&
		     !yoke_read(g, got, sizeof got) && got[N - 1] == (float)(2 * x_of(N - 1));
	return NULL; // both contexts are the thread's, and end with it
}

static void contexts(void)
{
	float one = 2, got = 0;
	yoke_context *c = yoke_context_on(second);
	ok(c == b && yoke_context_on(first) == a, "a thread's contexts are found by their devices");
	ok(!yoke_context_on("nothing:0"), "of no device");
	refused(YOKE_ENODEV, "of no device", "nothing");
	yoke_context *d = yoke_context_new_on(second);
	yoke_tensor *t = yoke_from(yoke_f32, 0, NULL, &one), *u = yoke_to(t, second);
	yoke_use(d);
	yoke_tensor *x = yoke_from(yoke_f32, 0, NULL, &one), *z = yoke_mul(x, u);
	ok(z && !yoke_read(z, &got, sizeof got) && got == 4,
	   "a copy is in the context used last: %s", yoke_error());
	yoke_use(b);
	yoke_tensor *v = yoke_to(z, second), *w = yoke_from(yoke_f32, 0, NULL, &one),
		    *p = yoke_mul(v, w);
	ok(p && !yoke_read(p, &got, sizeof got) && got == 8,
	   "it goes to the current context of the same device: %s", yoke_error());
	yoke_use(a);
	yoke_free(t), yoke_free(u), yoke_free(x), yoke_free(z), yoke_free(v), yoke_free(w),
		yoke_free(p);
	yoke_context_free(d);
	int good = 0;
	pthread_t thread;
	pthread_create(&thread, NULL, in_a_thread, &good);
	pthread_join(thread, NULL);
	ok(good, "another thread has contexts of its own");
}

// ---- gradients ----

static double by_v(double x) // of sum z z w, z = exp v, w = 2 x
{
	return 2 * 2 * x * exp(2 * x);
}

static double by_w(double x)
{
	return exp(2 * x);
}

static double cube(double x)
{
	return 3 * x * x;
}

static double six(double x)
{
	return 6 * x;
}

static double there_and_back(double x) // of sum 2 e^v v
{
	return 2 * exp(x) * (x + 1);
}

static double both_ways(double x) // of sum e^v e^-2v + sin v
{
	return -exp(-x) + cos(x);
}

static void one_way(void)
{
	yoke_tensor *v = variable(a, "v", 1), *w = variable(b, "w", 2), *g[3] = { NULL };
	yoke_tensor *z = yoke_to(yoke_exp(v), second),
		    *y = yoke_sum(yoke_mul(yoke_mul(z, z), w), YOKE_ALL);
	ok(!yoke_grad(y, 3, (yoke_tensor *[]){ w, v, z }, g) && is_on(g[0], second) &&
		   is_on(g[1], first) && is_on(g[2], second),
	   "gradients are where their tensors are: %s", yoke_error());
	gives(0, g[0], by_w, "by a variable beside a copied value");
	gives(0, g[1], by_v, "through a computed value that was copied");
	// from given cotangents; the copy's handle is freed
	yoke_tensor *zz = yoke_mul(z, z), *h[2] = { NULL };
	yoke_free(z);
	const int err =
		yoke_grad_from(1, &zz, (yoke_tensor *[]){ w }, 2, (yoke_tensor *[]){ v, w }, h);
	gives(err, h[0], by_v, "of cotangents, after the copy was freed");
	yoke_free(v), yoke_free(w), yoke_free(y), yoke_free(zz);
	for (int i = 0; i < 3; i++)
		yoke_free(g[i]);
	yoke_free(h[0]), yoke_free(h[1]);
}

static void of_a_leaf(void)
{
	yoke_tensor *v = variable(a, "v", 1), *u = yoke_to(v, second), *g = NULL, *h = NULL;
	yoke_tensor *y = yoke_sum(yoke_mul(yoke_mul(u, u), u), YOKE_ALL);
	yoke_grad(y, 1, &v, &g);
	gives(yoke_error_code(), g, cube, "by a variable that was copied");
	yoke_tensor *twice = yoke_sum(g, YOKE_ALL);
	yoke_grad(twice, 1, &v, &h);
	gives(yoke_error_code(), h, six, "the second derivative");
	// a second path on the variable's own device
	yoke_tensor *back = yoke_to(y, first),
		    *sum = yoke_add(back, yoke_sum(yoke_mul(yoke_mul(v, v), v), YOKE_ALL)),
		    *k = NULL;
	ok(!yoke_grad(sum, 1, &v, &k) && is_on(k, first), "and back: %s", yoke_error());
	yoke_tensor *half = yoke_mul(k, constant(a, 0.5));
	gives(0, half, cube, "gradients of two paths are added");
	yoke_tensor *pair[2] = { v, v }, *gs[2] = { NULL };
	ok(!yoke_grad(y, 2, pair, gs) && off(gs[0], cube) < 1e-6 && off(gs[1], cube) < 1e-6,
	   "a tensor listed twice: %s", yoke_error());
	yoke_tensor *stopped = yoke_stop_grad(u), *q = sum_of_product(stopped, u), *gq = NULL;
	yoke_tensor *dq = NULL;
	ok(!yoke_grad(q, 1, &v, &gq) && (dq = yoke_to(gq, first)) &&
		   fabs(off(dq, cube) - off(v, cube)) < 1e-6,
	   "stop_grad stops one of two factors: %s", yoke_error());
	yoke_free(stopped), yoke_free(q), yoke_free(gq), yoke_free(dq);
	yoke_free(v), yoke_free(u), yoke_free(g), yoke_free(h), yoke_free(y), yoke_free(twice),
		yoke_free(back), yoke_free(sum);
	yoke_free(k), yoke_free(half), yoke_free(gs[0]), yoke_free(gs[1]);
}

static void round_trip(void)
{
	yoke_tensor *v = variable(a, "v", 1), *g = NULL, *h = NULL;
	yoke_tensor *u = yoke_to(yoke_exp(v), second), *d = yoke_mul(u, constant(b, 2)),
		    *w = yoke_to(d, first);
	yoke_tensor *y = sum_of_product(w, v);
	yoke_grad(y, 1, &v, &g);
	gives(yoke_error_code(), g, there_and_back, "there and back");
	// e^v there, e^-2v there, their product there, sin v here, all summed here
	yoke_tensor *p = yoke_to(yoke_exp(v), second),
		    *q = yoke_to(yoke_exp(yoke_mul(v, constant(a, -2))), second);
	yoke_tensor *r = yoke_to(yoke_mul(p, q), first),
		    *s = yoke_sum(yoke_add(r, yoke_sin(v)), YOKE_ALL);
	yoke_grad(s, 1, &v, &h);
	gives(yoke_error_code(), h, both_ways, "two copies and one back");
	yoke_free(v), yoke_free(g), yoke_free(h), yoke_free(u), yoke_free(d), yoke_free(w),
		yoke_free(y);
	yoke_free(p), yoke_free(q), yoke_free(r), yoke_free(s);
}

// Each of 7 copies is made of the one before, after a multiplication by v there.
static double seventh(double x)
{
	return 8 * pow(x, 7);
}

static void zigzag(void)
{
	yoke_scope *in_a = yoke_scope_begin("zigzag");
	yoke_use(b);
	yoke_scope *in_b = yoke_scope_begin("zigzag");
	yoke_use(a);
	yoke_tensor *v = variable(a, "v", 1), *t = v, *g = NULL;
	for (int i = 0; i < 7 && t; i++) {
		const char *to = i % 2 ? first : second;
		t = yoke_mul(yoke_to(t, to), i % 2 ? v : yoke_to(v, to));
	}
	yoke_tensor *y = yoke_sum(t, YOKE_ALL);
	yoke_grad(y, 1, &v, &g);
	gives(yoke_error_code(), g, seventh, "seven copies in a row");
	ok(!yoke_scope_end(in_a), "scopes end: %s", yoke_error());
	yoke_use(b);
	ok(!yoke_scope_end(in_b), "on both devices: %s", yoke_error());
	yoke_use(a);
	yoke_free(v);
}

static void mixed_dtypes(void)
{
	yoke_tensor *v = variable(a, "v", 1), *h = yoke_to(yoke_cast(v, yoke_f64), second),
		    *g = NULL;
	yoke_tensor *y = yoke_sum(yoke_mul(yoke_mul(h, h), h), YOKE_ALL);
	yoke_grad(y, 1, &v, &g);
	gives(yoke_error_code(), g, cube, "through f64");
	yoke_tensor *i = yoke_to(yoke_cast(v, yoke_i32), second), *f = yoke_cast(i, yoke_f32),
		    *z = yoke_sum(f, YOKE_ALL), *gz = NULL;
	ok(yoke_grad(z, 1, &v, &gz) == YOKE_ECONTEXT && !gz, "no gradient goes through integers");
	yoke_error_clear();
	yoke_free(v), yoke_free(h), yoke_free(g), yoke_free(y), yoke_free(i), yoke_free(f),
		yoke_free(z);
}

static void refusals(void)
{
	float zeros[N] = { 0 };
	yoke_tensor *v = variable(a, "v", 1), *u = yoke_to(v, second), *y = sum_of_product(u, u),
		    *g = NULL;
	yoke_put(v, zeros, sizeof zeros);
	ok(yoke_grad(y, 1, &v, &g) == YOKE_ERELEASED && !g, "by a variable that has a new version");
	refused(YOKE_ERELEASED, "a copied variable has a new version", "variable v");
	yoke_tensor *w = variable(a, "w", 1), *e = yoke_to(yoke_exp(w), second),
		    *z = sum_of_product(e, e);
	yoke_put(w, zeros, sizeof zeros);
	ok(yoke_grad(z, 1, &w, &g) == YOKE_ERELEASED && !g, "or whose function was copied");
	yoke_error_clear();
	// the source's context ends
	yoke_context *c = yoke_context_new_on(first);
	yoke_use(c);
	yoke_tensor *x = yoke_exp(variable(c, "x", 1)), *there = yoke_to(x, second);
	yoke_use(a);
	yoke_context_free(c);
	yoke_tensor *q = variable(b, "q", 1), *t = sum_of_product(there, yoke_mul(q, q)), *h = NULL;
	ok(!yoke_grad(t, 1, &q, &h) && is_on(h, second),
	   "after the source's context was freed, gradients there work: %s", yoke_error());
	ok(yoke_grad(t, 1, &v, &g) == YOKE_ERELEASED && !g, "those that would go on are refused");
	yoke_error_clear();
	yoke_free(v), yoke_free(u), yoke_free(y), yoke_free(w), yoke_free(e), yoke_free(z),
		yoke_free(there), yoke_free(q);
	yoke_free(t), yoke_free(h);
}

// A value carried through more operations than a graph keeps: right, or refused, never 0.
static void long_history(void)
{
	if (!strncmp(second, "opencl", 6))
		return;
	yoke_tensor *v = variable(a, "v", 1), *u = yoke_to(yoke_exp(v), second), *x = u, *g = NULL;
	int err = 0;
	yoke_use(b);
	for (int i = 0; i < 140 && !err; i++) {
		for (int k = 0; k < 500; k++) {
			yoke_tensor *next = yoke_add(x, u);
			if (x != u)
				yoke_free(x);
			x = next;
		}
		err = yoke_eval(1, &x);
	}
	yoke_tensor *y = yoke_sum(x, YOKE_ALL);
	yoke_use(a);
	const int got = err ? err : yoke_grad(y, 1, &v, &g);
	float first_of[N] = { 0 };
	const bool right = !got && !yoke_read(g, first_of, sizeof first_of) &&
			   fabs(first_of[0] / (70001 * exp(x_of(0))) - 1) < 1e-3;
	ok(got == YOKE_ERELEASED || right, "a long history: %s %g",
	   got ? yoke_error_name(got) : "computed", first_of[0]);
	yoke_error_clear();
	yoke_free(v), yoke_free(u), yoke_free(x), yoke_free(y), yoke_free(g);
}

// ---- training on two devices ----

// A model in two halves: loss = sum (exp(v) w - t)^2 with v on one device and w on the other.
static void train(void)
{
	enum { STEPS = 6 };
	double v0[N], w0[N], worst = 0;
	struct yoke_stats s[STEPS], t[STEPS];
	yoke_tensor *v = variable(a, "v", 1), *w = variable(b, "w", 2), *lr = constant(a, 0.01),
		    *lr_b = constant(b, 0.01), *one = constant(b, 1);
	for (int i = 0; i < N; i++)
		v0[i] = x_of(i), w0[i] = 2 * x_of(i);
	for (int step = 0; step < STEPS; step++) {
		float got[2][N];
		yoke_tensor *g[2];
		yoke_use(b);
		yoke_scope *in_b = yoke_scope_begin("step");
		yoke_use(a);
		yoke_scope *in_a = yoke_scope_begin("step");
		yoke_tensor *e = yoke_sub(yoke_mul(yoke_to(yoke_exp(v), second), w), one);
		int err = yoke_grad(sum_of_product(e, e), 2, (yoke_tensor *[]){ v, w }, g);
		err = err ? err : yoke_assign(v, yoke_sub(v, yoke_mul(lr, g[0])));
		err = err ? err : yoke_assign(w, yoke_sub(w, yoke_mul(lr_b, g[1])));
		err = err ? err : yoke_read(v, got[0], sizeof got[0]);
		err = err ? err : yoke_read(w, got[1], sizeof got[1]);
		err = err ? err : yoke_scope_end(in_a);
		s[step] = (struct yoke_stats){ .size = sizeof *s };
		yoke_stats(&s[step]);
		yoke_use(b);
		err = err ? err : yoke_scope_end(in_b);
		t[step] = (struct yoke_stats){ .size = sizeof *t };
		yoke_stats(&t[step]);
		diag("step %d: %d and %d handles, %d and %d bytes", step, (int)s[step].live_handles,
		     (int)t[step].live_handles, (int)s[step].pool_allocated,
		     (int)t[step].pool_allocated);
		for (int i = 0; i < N && !err; i++) {
			const double d = 2 * (exp(v0[i]) * w0[i] - 1), gv = d * exp(v0[i]) * w0[i],
				     gw = d * exp(v0[i]);
			v0[i] -= 0.01 * gv, w0[i] -= 0.01 * gw;
			worst = fmax(worst, fmax(fabs(got[0][i] - v0[i]), fabs(got[1][i] - w0[i])));
		}
		if (err)
			worst = 1e9;
	}
	ok(worst < 1e-5, "training on both devices: off %g %s", worst, yoke_error());
	ok(s[STEPS - 1].plan_misses == s[2].plan_misses &&
		   t[STEPS - 1].plan_misses == t[2].plan_misses,
	   "repeated steps need no new plans: %d %d",
	   (int)(s[STEPS - 1].plan_misses - s[2].plan_misses),
	   (int)(t[STEPS - 1].plan_misses - t[2].plan_misses));
	ok(s[STEPS - 1].live_handles <= s[2].live_handles &&
		   t[STEPS - 1].live_handles <= t[2].live_handles &&
		   s[STEPS - 1].pool_allocated <= s[2].pool_allocated &&
		   t[STEPS - 1].pool_allocated <= t[2].pool_allocated,
	   "and keep nothing: %d and %d handles", (int)s[STEPS - 1].live_handles,
	   (int)t[STEPS - 1].live_handles);
	yoke_use(a);
	yoke_free(lr_b), yoke_free(one);
	yoke_free(v), yoke_free(w), yoke_free(lr);
}

// ---- memory ----

static void freed_sources(void)
{
	enum { BIG = 4 << 20 };
	struct yoke_stats before = { .size = sizeof before }, after = { .size = sizeof after };
	yoke_stats(&before);
	float *data = calloc(BIG, sizeof *data);
	yoke_tensor *t = yoke_from(yoke_f32, 1, DIMS(BIG), data), *u = yoke_to(t, second),
		    *y = yoke_sum(u, YOKE_ALL);
	yoke_free(t);
	yoke_stats(&after);
	ok(after.pool_allocated == before.pool_allocated,
	   "a source that is freed leaves its memory, though gradients could flow");
	yoke_free(u), yoke_free(y);
	free(data);
}

static void trim(void)
{
	enum { BIG = 8 << 20 };
	struct yoke_stats s[4];
	if (getenv("YOKE_EAGER")) // each result is kept
		return;
	yoke_context *side[2] = { b, a };
	for (int k = 0; k < 2; k++) {
		yoke_use(side[k]);
		yoke_trim();
		for (int i = 0; i < 4; i++)
			s[i] = (struct yoke_stats){ .size = sizeof *s };
		float got[2] = { 0 };
		yoke_tensor *kept = yoke_keep(yoke_full(yoke_f32, 1, DIMS(2), 3)),
			    *x = yoke_full(yoke_f32, 1, DIMS(BIG), 2);
		yoke_tensor *y = yoke_sum(yoke_cumsum(yoke_mul(x, x), 0, 0), YOKE_ALL);
		yoke_eval(1, &y);
		yoke_stats(&s[0]);
		const int64_t freed = yoke_trim();
		yoke_stats(&s[1]);
		ok(freed >= (int64_t)BIG && s[1].pool_reserved < s[0].pool_reserved &&
			   freed >= (int64_t)(s[0].pool_reserved - s[1].pool_reserved) &&
			   s[1].pool_allocated == s[0].pool_allocated,
		   "a plan's arena is given back: %lld bytes of %llu", (long long)freed,
		   (unsigned long long)s[0].pool_reserved);
		ok(!yoke_trim(), "the second time there is nothing");
		ok(!yoke_read(kept, got, sizeof got) && got[0] == 3 && got[1] == 3, "values stay");
		yoke_tensor *z = yoke_full(yoke_f32, 1, DIMS(BIG), 2),
			    *again = yoke_sum(yoke_cumsum(yoke_mul(z, z), 0, 0), YOKE_ALL);
		yoke_stats(&s[2]);
		float sum[2] = { 0 };
		yoke_read(y, &sum[0], sizeof *sum);
		yoke_stats(&s[2]);
		yoke_read(again, &sum[1], sizeof *sum);
		yoke_stats(&s[3]);
		ok(sum[0] == sum[1] && s[3].plan_misses <= s[2].plan_misses + 1,
		   "the plan runs again: %g %g %s", sum[0], sum[1], yoke_error());
		yoke_free(kept), yoke_free(x), yoke_free(y), yoke_free(z), yoke_free(again);
		// freed values, and uploads that may still be running
		float *data = calloc(BIG, sizeof *data);
		yoke_tensor *up = yoke_from(yoke_f32, 1, DIMS(BIG), data);
		yoke_free(up);
		ok(yoke_trim() >= (int64_t)BIG * 4, "freed values are given back");
		yoke_stats(&s[3]);
		ok(s[3].pool_reserved <= s[1].pool_reserved, "and their segments: %llu",
		   (unsigned long long)s[3].pool_reserved);
		free(data);
	}
}

static int child(void)
{
	if (!(a = yoke_context_new_on(first)) || !(b = yoke_context_new_on(second))) {
		ok(false, "%s and %s: %s", first, second, yoke_error());
		return done();
	}
	yoke_use(a);
	void (*const test[])(void) = { dtypes,       pending,       same_device,  errors,
				       backend_name, contexts,      one_way,      of_a_leaf,
				       round_trip,   zigzag,        mixed_dtypes, refusals,
				       train,        freed_sources, trim,         long_history };
	for (size_t i = 0; i < sizeof test / sizeof *test; i++) {
		test[i]();
		if (!ok(!yoke_error_code(), "no error is left: %s", yoke_error()))
			yoke_error_clear();
	}
	yoke_use(NULL);
	yoke_context_free(a);
	yoke_context_free(b);
	return done();
}

static void pair(const char *self, const char *settings, const char *one, const char *two)
{
	char command[4096];
	snprintf(command, sizeof command, "%s '%s' %s %s 2>&1", settings, self, one, two);
	ok(tap_run(command), "%s and %s %s", one, two, settings);
}

// CUDA devices of the fake driver (tests/fake_gpu).
static void fake_gpus(const char *self)
{
	const char *fake = getenv("YOKE_TEST_FAKE");
	char plugin[3800];
	snprintf(plugin, sizeof plugin, "%s/../../../plugins/cuda/.libs", fake ? fake : "");
	if (!fake || access(plugin, X_OK)) {
		skip("cuda", "neither plugin nor fake driver is built");
		return;
	}
	setenv("LD_LIBRARY_PATH", fake, 1);
	setenv("YOKE_PLUGIN_PATH", plugin, 1);
	setenv("YOKE_FAKE_DEVICES", "2", 1);
	pair(self, "", "cuda:0", "cuda:1");
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		first = argv[1];
		second = argv[2];
		return child();
	}
	const char *opencl = getenv("YOKE_TEST_OPENCL");
	tap_plugin_path();
	setenv("YOKE_FAULT_DEVICES", "2", 1);
	pair(argv[0], "", "fault:0", "fault:1");
	pair(argv[0], "YOKE_FAULT_DEFER=1 YOKE_FAULT_LAG=2 YOKE_FAULT_HOST=0", "cpu:0", "fault:0");
	pair(argv[0], "YOKE_EAGER=1", "cpu:0", "fault:0");
	if (opencl) {
		pair(argv[0], "", "cpu:0", "opencl:0");
		pair(argv[0], "", "opencl:0", "cpu:0");
	} else {
		skip("opencl", "it is not built");
	}
	fake_gpus(argv[0]);
	return done();
}
