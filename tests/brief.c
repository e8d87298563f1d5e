// SPDX-License-Identifier: Apache-2.0
// Tests yoke_eval_brief: which evaluations it does, and that it leaves the others as they were.

#include "config.h"

#include "stats.h"
#include "tap.h"
#include "yoke-linalg.h"
#include "yoke.h"

#define DIMS(...) \
	(int64_t[]) \
	{ \
		__VA_ARGS__ \
	}

static float first(yoke_tensor *t)
{
	float v[4] = { NAN, NAN, NAN, NAN };
	yoke_read(t, v, sizeof v);
	return v[0];
}

static void brief(void)
{
	yoke_scope *s = yoke_scope_begin("brief");
	yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(4), (float[]){ 1, 2, 3, 4 }),
		    *y = yoke_add(x, x), *z = yoke_keep(yoke_exp(x));
	const uint64_t before = stats().launches;
	int r = yoke_eval_brief(1, &y, 1);
	ok(r == 1 && stats().evals == 1 && stats().launches > before,
	   "a small sum is evaluated: %d", r);
	const uint64_t after = stats().launches;
	ok((double)first(y) == 2 && (double)first(z) > 2.7 && stats().launches == after,
	   "with all roots");
	yoke_tensor *later = yoke_keep(yoke_neg(x));
	r = yoke_eval_brief(1, &y, 0);
	ok(r == 1 && stats().evals == 1 && stats().launches == after,
	   "a tensor that has its value needs no evaluation: %d", r);
	r = yoke_eval_brief(0, NULL, 1);
	ok(r == 1 && stats().evals == 2 && (double)first(later) == -1,
	   "without tensors, all roots are computed: %d", r);
	r = yoke_eval_brief(0, NULL, 1);
	ok(r == 1, "there may be nothing to evaluate: %d", r);
	yoke_free(z);
	yoke_free(later);
	ok(yoke_scope_end(s) == 0, "the scope ends");
}

static void longer(void)
{
	yoke_scope *s = yoke_scope_begin("longer");
	yoke_tensor *a = yoke_full(yoke_f32, 2, DIMS(900, 900), 1), *values, *vh,
		    *u = yoke_svd(a, 0, &values, &vh);
	yoke_tensor *x = yoke_full(yoke_f32, 1, DIMS(4), 1);
	const struct yoke_stats was = stats();
	int r = yoke_eval_brief(1, &u, 1);
	ok(r == 0 && stats().evals == was.evals && stats().launches == was.launches,
	   "a decomposition of a large matrix is left pending: %d", r);
	for (int i = 0; i < 200; i++)
		x = yoke_sin(yoke_mul(x, yoke_sum(x, 1)));
	r = yoke_eval_brief(1, &x, 1);
	ok(r == 0 && stats().evals == was.evals && stats().plan_misses <= was.plan_misses + 1,
	   "long graphs are not planned to find out: %d", r);
	yoke_tensor *y = yoke_add(yoke_full(yoke_f32, 1, DIMS(4), 3), yoke_const(1));
	ok(yoke_eval_brief(1, &y, 1) == 1 && (double)first(y) == 4,
	   "and what is small is evaluated after them");
	yoke_scope_end(s);
}

static void errors(void)
{
	yoke_tensor *gone = yoke_full(yoke_f32, 1, DIMS(4), 3);
	yoke_free(gone);
	const int e = yoke_eval_brief(1, &gone, 1);
	ok(e < 0 && *yoke_error(), "a freed tensor is an error: %s", yoke_error());
	yoke_error_clear();
	ok(yoke_eval_brief(1, &gone, 0) < 0, "also of a read");
	yoke_error_clear();
	ok(yoke_eval_brief(-1, NULL, 1) == YOKE_EINVAL, "a negative count is, too");
	yoke_error_clear();
	ok(yoke_setting_set("eager", "1") == 0, "eager evaluation can be switched on");
	yoke_context *c = yoke_context_new("cpu");
	yoke_context *was = yoke_use(c);
	yoke_scope *s = yoke_scope_begin("eager");
	yoke_tensor *y = yoke_neg(yoke_full(yoke_f32, 1, DIMS(4), 3));
	const int r = yoke_eval_brief(1, &y, 1);
	ok(r == 0 && yoke_eval(1, &y) == 0 && (double)first(y) == -3, "it is not brief: %d", r);
	yoke_scope_end(s);
	yoke_context_free(c);
	yoke_use(was);
}

int main(void)
{
	tap_seed();
	brief();
	longer();
	errors();
	return done();
}
