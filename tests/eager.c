// SPDX-License-Identifier: Apache-2.0
// Tests eager evaluation (YOKE_EAGER=1): errors at the call, gradients from the tape, and the
// same rules and bits as lazy evaluation. Whole programs are compared in tests/modes.c and
// tests/random.c.

#include "config.h"

#include "stats.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

static bool equal(yoke_tensor *t, const double *want, int n, const char *what)
{
	float got[16];
	double g[16];
	memset(got, 0xff, sizeof got);
	yoke_read(t, got, sizeof *got * (size_t)n);
	for (int i = 0; i < n; i++)
		g[i] = (double)got[i];
	return near(g, want, (size_t)n, 1e-6, 1, what);
}

static void at_the_call(void)
{
	float d[6] = { 1, 2, 3, 4, 5, 6 };
	int32_t bad[2] = { 1, 7 };
	yoke_scope *s = yoke_scope_begin("outer"), *t = yoke_scope_begin("rows");
	yoke_tensor *x = yoke_from(yoke_f32, 2, DIMS(3, 2), d),
		    *i = yoke_from(yoke_i32, 1, DIMS(2), bad);
	uint64_t before = stats().launches;
	yoke_tensor *y = yoke_exp(x);
	ok(y && stats().launches == before + 1, "an operation is launched as it is recorded");
	ok(stats().evals == 0 && stats().pending_nodes == 2,
	   "which does not count as an evaluation");
	yoke_tensor *v = yoke_permute(x, (int[]){ 1, 0 });
	ok(v && stats().launches == before + 1, "a view launches nothing");
	yoke_tensor *r = yoke_gather(x, i, 0);
	ok(!r && yoke_error_code() == YOKE_ERANGE, "an index out of range gives NULL at once: %s",
	   yoke_error());
	ok(strstr(yoke_error(), "gather") && strstr(yoke_error(), "outer/rows") &&
		   (strstr(yoke_error(), "7") || strstr(yoke_error(), "position 1")),
	   "the error names operation, scope and index or position");
	ok(!yoke_exp(r), "NULL operands propagate");
	yoke_error_clear();
	equal(yoke_add(v, v), (double[]){ 2, 6, 10, 4, 8, 12 }, 6,
	      "what was recorded before is there");
	yoke_scope_end(t);
	yoke_scope_end(s);
}

static void reading(void)
{
	float d[2] = { 1, 4 };
	yoke_scope *s = yoke_scope_begin("released");
	yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(2), d), *r = yoke_sqrt(x), *y = yoke_neg(r);
	yoke_tensor *w = yoke_keep(yoke_reshape(yoke_add(r, r), 2, DIMS(2, 1)));
	equal(y, (double[]){ -1, -2 }, 2, "a value that is read");
	uint64_t before = stats().launches;
	equal(r, (double[]){ 1, 2 }, 2, "an interior value afterwards");
	ok(stats().launches == before, "an evaluated value is not computed again");
	equal(y, (double[]){ -1, -2 }, 2, "and the first once more");
	equal(w, (double[]){ 2, 4 }, 2, "a kept view");
	yoke_free(w);
	yoke_scope_end(s);
	ok(!stats().pending_nodes, "nothing is pending");
}

static void gradients(void)
{
	float d[3] = { 1, 2, 3 };
	yoke_tensor *w = yoke_variable("w", yoke_f32, 1, DIMS(3)), *g, *h;
	yoke_put(w, d, sizeof d);
	for (int t = 0; t < 2; t++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *y = yoke_sum(yoke_mul(yoke_square(w), w), YOKE_ALL); // sum w^3
		yoke_grad(y, 1, &w, &g);
		yoke_grad(yoke_sum(g, YOKE_ALL), 1, &w, &h);
		yoke_assign(w, yoke_sub(w, g)); // the old version is kept for its reader
		yoke_tensor *after = yoke_keep(yoke_neg(w));
		double want[3], second[3], next[3];
		for (int i = 0; i < 3; i++) {
			want[i] = 3 * (double)d[i] * (double)d[i];
			second[i] = 6 * (double)d[i];
			next[i] = (double)d[i] - want[i];
		}
		yoke_keep(h);
		equal(g, want, 3, "a gradient");
		equal(h, second, 3, "a second one");
		equal(w, next, 3, "an assignment");
		for (int i = 0; i < 3; i++) {
			d[i] = (float)next[i];
			next[i] = -next[i];
		}
		equal(after, next, 3, "what was recorded after it");
		yoke_free(h);
		yoke_free(after);
		yoke_scope_end(s);
	}
	yoke_free(w);
}

// Host scalars are read at the evaluation, whenever they were set.
static void numbers_set_late(void)
{
	float d[2] = { 1, 2 }, a[64], b[64];
	yoke_scope *s = yoke_scope_begin("late");
	yoke_tensor *k = yoke_scalar(10), *x = yoke_from(yoke_f32, 1, DIMS(2), d);
	yoke_tensor *y = yoke_mul(x, k), *z = yoke_keep(yoke_add(y, x));
	yoke_scalar_set(k, 100);
	equal(y, (double[]){ 100, 200 }, 2, "a scalar set behind the operation");
	equal(z, (double[]){ 101, 202 }, 2, "and what follows from it");
	yoke_free(z);
	yoke_scope_end(s);
	for (int late = 0; late < 2; late++) {
		s = yoke_scope_begin("random");
		yoke_random_set(5, 7);
		yoke_tensor *u = yoke_uniform(yoke_f32, 1, DIMS(64));
		if (late)
			yoke_random_set(5, 1);
		yoke_read(u, late ? b : a, sizeof a);
		yoke_scope_end(s);
	}
	ok(!memcmp(a, b, sizeof a), "random numbers are those of the recording's position: %g, %g",
	   (double)a[0], (double)b[0]);
}

// A failing optimizer step assigns nothing; one without momentum has no buffers.
static void optimizer(void)
{
	float d[2] = { 1, 2 }, e[2] = { 0.5f, 1 };
	yoke_tensor *w = yoke_variable("w", yoke_f32, 1, DIMS(2));
	yoke_put(w, d, sizeof d);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *g = yoke_from(yoke_f32, 1, DIMS(2), e);
	int err = yoke_sgd_step(1, &w, &g, NULL,
				&(struct yoke_sgd){ .size = sizeof(struct yoke_sgd),
						    .lr = yoke_scalar(2), .first = YOKE_NONE,
						    .scale = YOKE_NONE });
	ok(!err, "a step without momentum: %s", yoke_error());
	equal(w, (double[]){ 0, 0 }, 2, "a step of 2");
	yoke_scope_end(s);
	ok(stats().pool_allocated <= 4096, "only the variable is left: %llu bytes",
	   (unsigned long long)stats().pool_allocated);
	yoke_free(w);
}

static void put_between(void)
{
	float d[2] = { 1, 2 }, e[2] = { 10, 20 };
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, DIMS(2));
	yoke_scope *s = yoke_scope_begin("put");
	yoke_put(x, d, sizeof d);
	yoke_tensor *a = yoke_add(x, x), *b, *g;
	yoke_put(x, e, sizeof e);
	b = yoke_keep(yoke_mul(x, a));
	// x means the current version: a depends on the previous one
	yoke_grad(yoke_sum(b, YOKE_ALL), 1, &x, &g);
	equal(g, (double[]){ 2, 4 }, 2, "the gradient of the later version");
	equal(b, (double[]){ 20, 80 }, 2, "two versions in one operation");
	yoke_free(b);
	yoke_scope_end(s);
	yoke_free(x);
}

int main(void)
{
	tap_seed();
	yoke_setting_set("eager", "1");
	at_the_call();
	reading();
	gradients();
	numbers_set_late();
	optimizer();
	put_between();
	ok(!yoke_error_code(), "no error is left: %s", yoke_error());
	return done();
}
