// SPDX-License-Identifier: Apache-2.0
// Gradients through values that were evaluated before: refused where they would be cut, allowed where
// nothing is lost.
#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { N = 5 };

static double wv[N], vv[N];
static yoke_tensor *w, *v;

static yoke_tensor *sum(yoke_tensor *x)
{
	return yoke_sum(x, YOKE_ALL);
}

// d y/d x has the words in its error, and ESPENT.
static void refused(const char *what, yoke_tensor *y, yoke_tensor *x, const char *word)
{
	yoke_tensor *g = x;
	int err = yoke_grad(y, 1, &x, &g);
	ok(err == YOKE_ESPENT && !g && strstr(yoke_error(), word) && strstr(yoke_error(), "before yoke_read"),
	   "%s: %s %s", what, yoke_error_name(err), yoke_error());
	yoke_error_clear();
}

static void allowed(const char *what, yoke_tensor *y, yoke_tensor *x, const double *want)
{
	yoke_tensor *g = NULL;
	double got[N];
	for (int i = 0; i < N; i++)
		got[i] = NAN;
	int err = yoke_grad(y, 1, &x, &g);
	err = err ? err : yoke_read(g, got, sizeof got);
	if (ok(!err, "%s: %s", what, yoke_error()))
		near(got, want, N, 1e-14, 1, what);
	yoke_error_clear();
}

static yoke_tensor *evaluated(yoke_tensor *x)
{
	yoke_keep(x);
	yoke_eval(0, NULL);
	return x;
}

static void cut(void)
{
	double loss;
	yoke_tensor *y = sum(yoke_square(w));
	yoke_read(y, &loss, sizeof loss);
	refused("a loss that was read", y, w, "of a result of sum in scope \"step\"");
	yoke_tensor *h = evaluated(yoke_tanh(w));
	refused("through an intermediate", sum(yoke_mul(h, w)), w, "a result of tanh");
	refused("through a slice of it", sum(yoke_slice(h, 0, 1, 3, 1)), w, "a result of tanh");
	yoke_tensor *u = evaluated(yoke_exp(h));
	refused("through one that was computed of it", sum(u), w, "a result of exp");
	yoke_tensor *x = yoke_from(yoke_f64, 1, (int64_t[]){ N }, vv);
	refused("by a value from the host", sum(evaluated(yoke_neg(x))), x, "a result of neg");
	refused("a view of a leaf", sum(yoke_square(evaluated(yoke_reshape(w, 2, (int64_t[]){ 1, N })))), w,
		"a result of reshape");
	yoke_tensor *b[2] = { yoke_cast(w, yoke_i32), yoke_tanh(w) }, *behind[2];
	yoke_barrier(2, b, 0, NULL, behind);
	refused("behind a barrier with integers", sum(evaluated(yoke_exp(behind[1]))), w, "a result of exp");
	h = evaluated(yoke_tanh(w));
	yoke_assign(w, yoke_mul(w, yoke_const(0.5)));
	yoke_eval(0, NULL);
	refused("of an earlier version", sum(yoke_mul(h, w)), w, "a result of tanh");
	yoke_put(w, wv, sizeof wv);
	yoke_tensor *three[3] = { evaluated(yoke_sin(v)), evaluated(yoke_cos(w)), yoke_exp(w) };
	refused("one of several", sum(yoke_concat(3, three, 0)), w, "a result of cos");
}

static void nothing_lost(void)
{
	double one[N], want[N], zero[N] = { 0 };
	yoke_tensor *h = evaluated(yoke_tanh(w));
	for (int i = 0; i < N; i++)
		want[i] = tanh(wv[i]), one[i] = 1;
	allowed("a stopped gradient", sum(yoke_mul(yoke_stop_grad(h), w)), w, want);
	allowed("by the value itself", sum(h), h, one);
	for (int i = 0; i < N; i++)
		want[i] = 2 * tanh(wv[i]);
	allowed("behind the value", sum(yoke_square(h)), h, want);
	yoke_tensor *table = evaluated(yoke_exp(v));
	for (int i = 0; i < N; i++)
		want[i] = exp(vv[i]);
	allowed("a table of another variable", sum(yoke_mul(table, w)), w, want);
	yoke_tensor *numbers = evaluated(yoke_full(yoke_f64, 1, (int64_t[]){ N }, 3));
	for (int i = 0; i < N; i++)
		want[i] = 3;
	allowed("a table of no variable", sum(yoke_mul(numbers, w)), w, want);
	yoke_tensor *most = evaluated(yoke_cast(yoke_gt(w, yoke_const(0)), yoke_f64));
	for (int i = 0; i < N; i++)
		want[i] = wv[i] > 0;
	allowed("a mask", sum(yoke_mul(most, w)), w, want);
	// a variable means its value, whatever that was computed from
	yoke_tensor *state = yoke_variable("state", yoke_f64, 1, (int64_t[]){ N });
	yoke_assign(state, yoke_tanh(w));
	yoke_eval(0, NULL);
	for (int i = 0; i < N; i++)
		want[i] = tanh(wv[i]);
	allowed("a variable that was assigned", sum(yoke_mul(state, w)), w, want);
	// one block may hold both, as they are equal
	yoke_tensor *stopped = yoke_keep(yoke_stop_grad(h)), *again = yoke_keep(yoke_mul(h, yoke_const(1)));
	yoke_eval(0, NULL);
	allowed("kept behind a stopped gradient", sum(yoke_mul(stopped, w)), w, want);
	refused("but not beside it", sum(yoke_mul(again, w)), w, "a result of mul");
	allowed("no function of it at all", sum(yoke_square(v)), w, zero);
	yoke_free(state);
}

// A state that is fed back, and new data at each turn: neither time nor memory may grow with the turns.
static void fed_back(void)
{
	yoke_tensor *h = evaluated(yoke_neg(v));
	for (int t = 0; t < 3000; t++) {
		yoke_tensor *x = yoke_from(yoke_f64, 1, (int64_t[]){ N }, vv);
		yoke_tensor *next = yoke_tanh(yoke_add(yoke_mul(h, w), x));
		evaluated(next);
		yoke_free(h);
		yoke_free(x);
		h = next;
	}
	refused("after 3000 turns", sum(h), w, "a result of tanh");
	yoke_free(h);
}

int main(void)
{
	tap_seed();
	for (int i = 0; i < N; i++) {
		wv[i] = rnd_real(-2, 2);
		vv[i] = rnd_real(-2, 2);
	}
	w = yoke_variable("w", yoke_f64, 1, (int64_t[]){ N });
	v = yoke_variable("v", yoke_f64, 1, (int64_t[]){ N });
	yoke_put(w, wv, sizeof wv);
	yoke_put(v, vv, sizeof vv);
	yoke_scope *s = yoke_scope_begin("step");
	cut();
	nothing_lost();
	fed_back();
	ok(yoke_scope_end(s) == 0, "no error is left: %s", yoke_error());
	return done();
}
