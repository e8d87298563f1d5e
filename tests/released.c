// SPDX-License-Identifier: Apache-2.0
// Tests that reading has no side effects: gradients through values that were evaluated before,
// values read after an evaluation that did not need them, and refusals for values that are no
// longer available.
#include "config.h"

#include "tap.h"
#include "yoke.h"

enum { N = 5 };

static double wv[N], vv[N];
static yoke_tensor *w, *v;

static uint64_t repeated(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.repeated;
}

static yoke_tensor *sum(yoke_tensor *x)
{
	return yoke_sum(x, YOKE_ALL);
}

// d y/d x fails with ERELEASED and these words.
static void refused(const char *what, yoke_tensor *y, yoke_tensor *x, const char *word)
{
	yoke_tensor *g = x;
	int err = yoke_grad(y, 1, &x, &g);
	ok(err == YOKE_ERELEASED && !g && strstr(yoke_error(), word), "%s: %s %s", what,
	   yoke_error_name(err), yoke_error());
	yoke_error_clear();
}

static void reads(const char *what, yoke_tensor *x, const double *want, int n)
{
	double got[N];
	for (int i = 0; i < n; i++)
		got[i] = NAN;
	int err = yoke_read(x, got, sizeof *got * (size_t)n);
	if (ok(!err, "%s: %s", what, yoke_error()))
		near(got, want, (size_t)n, 1e-14, 1, what);
	yoke_error_clear();
}

static void allowed(const char *what, yoke_tensor *y, yoke_tensor *x, const double *want)
{
	yoke_tensor *g = NULL;
	int err = yoke_grad(y, 1, &x, &g);
	if (ok(!err, "%s: %s", what, yoke_error()))
		reads(what, g, want, N);
	yoke_error_clear();
}

static yoke_tensor *evaluated(yoke_tensor *x)
{
	yoke_keep(x);
	yoke_eval(0, NULL);
	return x;
}

static void goes_on(void)
{
	double loss, want[N], t[N], d[N]; // tanh w, and its derivative
	for (int i = 0; i < N; i++)
		t[i] = tanh(wv[i]), d[i] = 1 - t[i] * t[i];
	yoke_tensor *y = sum(yoke_square(w));
	yoke_read(y, &loss, sizeof loss);
	for (int i = 0; i < N; i++)
		want[i] = 2 * wv[i];
	allowed("a loss that was read", y, w, want);
	yoke_tensor *h = evaluated(yoke_tanh(w));
	for (int i = 0; i < N; i++)
		want[i] = t[i] + wv[i] * d[i];
	allowed("through an intermediate", sum(yoke_mul(h, w)), w, want);
	for (int i = 0; i < N; i++)
		want[i] = i == 1 || i == 2 ? d[i] : 0;
	allowed("through a slice of it", sum(yoke_slice(h, 0, 1, 3, 1)), w, want);
	for (int i = 0; i < N; i++)
		want[i] = exp(t[i]) * d[i];
	yoke_tensor *u = evaluated(yoke_exp(h));
	allowed("through one that was computed of it", sum(u), w, want);
	yoke_tensor *b[2] = { yoke_cast(w, yoke_i32), yoke_tanh(w) }, *behind[2];
	yoke_barrier(2, b, 0, NULL, behind);
	allowed("behind a barrier with integers", sum(evaluated(yoke_exp(behind[1]))), w, want);
	yoke_tensor *x = yoke_from(yoke_f64, 1, (int64_t[]){ N }, vv);
	for (int i = 0; i < N; i++)
		want[i] = -1;
	allowed("by a value from the host", sum(evaluated(yoke_neg(x))), x, want);
	for (int i = 0; i < N; i++)
		want[i] = 2 * wv[i];
	allowed("a view of a leaf",
		sum(yoke_square(evaluated(yoke_reshape(w, 2, (int64_t[]){ 1, N })))), w, want);
	for (int i = 0; i < N; i++)
		want[i] = exp(wv[i]) - sin(wv[i]);
	yoke_tensor *three[3] = { evaluated(yoke_sin(v)), evaluated(yoke_cos(w)), yoke_exp(w) };
	allowed("one of several", sum(yoke_concat(3, three, 0)), w, want);
	h = evaluated(yoke_tanh(w));
	yoke_assign(w, yoke_mul(w, yoke_const(0.5)));
	yoke_eval(0, NULL);
	refused("of an earlier version", sum(h), w, "variable w as it was before");
	allowed("a variable means its current version", sum(yoke_mul(h, w)), w, t);
	yoke_put(w, wv, sizeof wv);
}

// When the outermost scope closes, versions become leaves, evaluated or not.
static void closed(void)
{
	double want[N];
	yoke_tensor *state = yoke_variable("state", yoke_f64, 1, (int64_t[]){ N });
	for (int i = 0; i < N; i++)
		want[i] = tanh(wv[i]);
	for (int evaluates = 0; evaluates < 2; evaluates++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_assign(state, yoke_tanh(w));
		if (evaluates)
			yoke_eval(0, NULL);
		yoke_scope_end(s);
		allowed("a variable that was assigned in a scope which has closed",
			sum(yoke_mul(state, w)), w, want);
	}
	yoke_free(state);
}

// A variable and the value assigned to it are the same, whatever is read between.
static void assigned(void)
{
	double want[N], one[N], got[N];
	yoke_tensor *a = yoke_variable("a", yoke_f64, 1, (int64_t[]){ N });
	for (int i = 0; i < N; i++)
		one[i] = 1;
	for (int how = 0; how < 3; how++) { // put; assigned; assigned and evaluated
		if (how)
			yoke_assign(a, yoke_from(yoke_f64, 1, (int64_t[]){ N }, vv));
		else
			yoke_put(a, vv, sizeof vv);
		if (how == 2)
			yoke_eval(0, NULL);
		yoke_tensor *b = yoke_mul(a, yoke_const(3));
		yoke_read(b, got, sizeof got);
		for (int i = 0; i < N; i++)
			want[i] = 3;
		allowed("behind a value that was read", sum(b), a, want);
	}
	yoke_tensor *x = yoke_from(yoke_f64, 1, (int64_t[]){ N }, wv),
		    *n = yoke_mul(x, yoke_const(3));
	yoke_assign(a, n);
	for (int i = 0; i < N; i++)
		want[i] = 3 * wv[i];
	reads("a variable that was assigned", a, want, N);
	reads("the value that it was assigned", n, want, N);
	allowed("by the value", sum(yoke_mul(a, yoke_const(1))), n, one);
	for (int i = 0; i < N; i++)
		want[i] = 18 * wv[i];
	allowed("through the assignment", sum(yoke_square(a)), x, want);
	// the gradient needs the old version's bytes, so they are not overwritten
	yoke_put(a, vv, sizeof vv);
	yoke_assign(a, yoke_mul(a, x));
	yoke_read(a, got, sizeof got);
	allowed("a product with what was assigned", sum(a), x, vv);
	yoke_assign(a, yoke_mul(a, x));
	yoke_read(a, got, sizeof got);
	for (int i = 0; i < N; i++)
		want[i] = 2 * vv[i] * wv[i];
	allowed("and one more", sum(a), x, want);
	yoke_tensor *y = sum(yoke_square(a));
	yoke_assign(a, yoke_mul(a, yoke_const(2)));
	refused("a version that was replaced", y, a, "variable a as it was before");
	yoke_free(a);
}

// Computed versions remain available after the graph was collected.
static void collected(void)
{
	enum { MANY = 3000 };
	yoke_tensor *a = yoke_variable("a", yoke_f64, 1, (int64_t[]){ N }), *half = yoke_const(0.5);
	yoke_put(a, vv, sizeof vv);
	yoke_assign(a, yoke_mul(a, half));
	yoke_tensor *y = evaluated(sum(yoke_square(a)));
	yoke_assign(a, yoke_mul(a, half));
	yoke_eval(0, NULL);
	for (int i = 0; i < MANY; i++)
		yoke_free(yoke_neg(half));
	refused("an earlier version, after a collection", y, a, "variable a as it was before");
	yoke_free(y);
	yoke_free(half);
	yoke_free(a);
}

// A step over more variables than a node can distinguish as results; then one of them gets another
// version.
static void many_results(void)
{
	enum { P = 40 };
	yoke_tensor *v1[4 * P], *lr = yoke_scalar(0.5), *first = yoke_scalar(1);
	const double one = 1;
	for (int i = 0; i < 4 * P; i++) {
		v1[i] = yoke_variable("v", yoke_f64, 1, (int64_t[]){ 1 });
		yoke_put(v1[i], &one, sizeof one);
	}
	yoke_sgd_step(P, v1, v1 + P, v1 + 2 * P,
		      &(struct yoke_sgd){ .size = sizeof(struct yoke_sgd),
					  .lr = lr,
					  .first = first,
					  .scale = YOKE_NONE,
					  .momentum = 0.9 });
	yoke_eval(0, NULL);
	yoke_assign(v1[P - 1], yoke_mul(v1[P - 1], lr));
	yoke_eval(0, NULL);
	const double want = -0.5;
	reads("a result beside one that was overwritten", yoke_neg(v1[P - 2]), &want, 1);
	for (int i = 0; i < 4 * P; i++)
		yoke_free(v1[i]);
}

// Each step reads its loss, takes the gradient, then assigns, and leaves the assignment to the next
// step.
static void loop(void)
{
	yoke_tensor *a = yoke_variable("a", yoke_f64, 1, (int64_t[]){ N });
	double at[N], got[N], loss;
	int wrong = 0;
	for (int how = 0; how < 4; how++) { // with a scope; evaluated at the end
		memcpy(at, vv, sizeof at);
		yoke_put(a, vv, sizeof vv);
		for (int t = 0; t < 6; t++) {
			yoke_scope *s = how & 1 ? yoke_scope_begin("step") : NULL;
			yoke_tensor *y = sum(yoke_square(yoke_sub(a, yoke_const(1)))), *g = NULL;
			double want = 0;
			wrong += yoke_read(y, &loss, sizeof loss) || yoke_grad(y, 1, &a, &g) ||
				 yoke_read(g, got, sizeof got);
			for (int i = 0; i < N; i++) {
				want += (at[i] - 1) * (at[i] - 1);
				wrong += !(fabs(got[i] - 2 * (at[i] - 1)) < 1e-12);
				at[i] -= 0.1 * 2 * (at[i] - 1);
			}
			wrong += !(fabs(loss - want) < 1e-12 * (1 + want));
			yoke_assign(a, yoke_sub(a, yoke_mul(g, yoke_const(0.1))));
			wrong += how & 2 && yoke_eval(0, NULL);
			wrong += s && yoke_scope_end(s);
		}
	}
	ok(!wrong, "loops that read the loss before they take the gradient: %d wrong, %s", wrong,
	   yoke_error());
	yoke_error_clear();
	yoke_free(a);
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
	yoke_tensor *max = evaluated(yoke_cast(yoke_gt(w, yoke_const(0)), yoke_f64));
	for (int i = 0; i < N; i++)
		want[i] = wv[i] > 0;
	allowed("a mask", sum(yoke_mul(max, w)), w, want);
	yoke_tensor *state = yoke_variable("state", yoke_f64, 1, (int64_t[]){ N });
	yoke_assign(state, yoke_tanh(w));
	yoke_eval(0, NULL);
	for (int i = 0; i < N; i++)
		want[i] = tanh(wv[i]) + wv[i] * (1 - tanh(wv[i]) * tanh(wv[i]));
	allowed("through an assignment that was evaluated", sum(yoke_mul(state, w)), w, want);
	for (int i = 0; i < N; i++)
		want[i] = tanh(wv[i]);
	// one block may hold both, because they are equal
	yoke_tensor *stopped = yoke_keep(yoke_stop_grad(h)),
		    *again = yoke_keep(yoke_mul(h, yoke_const(1)));
	yoke_eval(0, NULL);
	allowed("kept behind a stopped gradient", sum(yoke_mul(stopped, w)), w, want);
	for (int i = 0; i < N; i++)
		want[i] += wv[i] * (1 - tanh(wv[i]) * tanh(wv[i]));
	allowed("and beside it", sum(yoke_mul(again, w)), w, want);
	allowed("no function of it at all", sum(yoke_square(v)), w, zero);
	yoke_free(state);
}

// One evaluation after another in any order, with a variable that is overwritten in between.
static void one_by_one(void)
{
	double want[N], all = 0, squares = 0, half[N], got[N];
	for (int i = 0; i < N; i++) {
		want[i] = exp(wv[i]);
		half[i] = wv[i] / 2;
		all += tanh(wv[i]);
		squares += tanh(wv[i]) * tanh(wv[i]);
	}
	yoke_tensor *pending = yoke_exp(w), *c = yoke_tanh(w), *a = sum(c),
		    *b = sum(yoke_square(c));
	yoke_assign(w, yoke_mul(w, yoke_const(0.5)));
	reads("a value that others share", a, &all, 1);
	reads("the variable", w, half, N);
	reads("one that stayed pending", b, &squares, 1);
	reads("one that reads the variable as it was", pending, want, N);
	yoke_put(w, wv, sizeof wv);

	uint64_t before = repeated();
	yoke_tensor *t = yoke_tanh(w), *s = sum(yoke_mul(t, w));
	for (int i = 0; i < N; i++)
		want[i] = tanh(wv[i]);
	all = 0;
	for (int i = 0; i < N; i++)
		all += want[i] * wv[i];
	reads("what needs an intermediate", s, &all, 1);
	ok(repeated() == before, "the gradient recomputes nothing: %d launches",
	   (int)(repeated() - before));
	reads("the intermediate", t, want, N);
	ok(repeated() == before + 1, "a dropped value is recomputed, and counted: %d",
	   (int)(repeated() - before));
	reads("and has its bytes then", t, want, N);
	ok(repeated() == before + 1, "only once: %d", (int)(repeated() - before));

	yoke_tensor *e = yoke_exp(w);
	s = sum(yoke_square(e));
	yoke_assign(w, yoke_mul(w, yoke_const(0.5)));
	yoke_read(s, &all, sizeof all);
	int err = yoke_read(e, got, sizeof got);
	ok(err == YOKE_ERELEASED && strstr(yoke_error(), "variable w ") &&
		   strstr(yoke_error(), "keep it before eval"),
	   "an intermediate value of an overwritten variable: %s", yoke_error());
	yoke_error_clear();
	reads("the variable is as it should be", w, half, N);
	reads("and so is what was read", s, &all, 1);
	yoke_put(w, wv, sizeof wv);
}

// Numbers on the host and random ones are those of the evaluation, whenever it is repeated.
static void same_numbers(void)
{
	double first[N], s;
	yoke_tensor *k = yoke_scalar(3), *y = yoke_mul(w, k), *z = sum(yoke_square(y));
	yoke_read(z, &s, sizeof s);
	yoke_scalar_set(k, 100);
	for (int i = 0; i < N; i++)
		first[i] = 3 * wv[i];
	reads("with the number of the evaluation", y, first, N);
	for (int i = 0; i < N; i++)
		first[i] = 100 * wv[i];
	reads("and with the new one what is recorded now", yoke_mul(w, k), first, N);
	yoke_random_set(7, 1);
	yoke_tensor *u = yoke_uniform(yoke_f64, 1, (int64_t[]){ N }),
		    *kept = yoke_keep(yoke_neg(u));
	yoke_read(sum(yoke_square(u)), &s, sizeof s);
	yoke_random_set(8, 2);
	yoke_read(kept, first, sizeof first);
	for (int i = 0; i < N; i++)
		first[i] = -first[i];
	reads("random numbers as they were", u, first, N);
}

// State that is fed back, and new data each time: neither time nor memory may grow.
static void fed_back(int turns, bool known)
{
	double state[N], slope[N];
	yoke_tensor *h = evaluated(yoke_neg(v));
	for (int i = 0; i < N; i++)
		state[i] = -vv[i], slope[i] = 0;
	for (int t = 0; t < turns; t++) {
		yoke_tensor *x = yoke_from(yoke_f64, 1, (int64_t[]){ N }, vv);
		yoke_tensor *m = yoke_mul(h, w), *a = yoke_add(m, x),
			    *next = evaluated(yoke_tanh(a));
		yoke_free(m);
		yoke_free(a);
		yoke_free(h);
		yoke_free(x);
		h = next;
		for (int i = 0; i < N; i++) {
			double now = tanh(state[i] * wv[i] + vv[i]);
			slope[i] = (1 - now * now) * (state[i] + wv[i] * slope[i]);
			state[i] = now;
		}
	}
	char what[64];
	snprintf(what, sizeof what, "after %d turns", turns);
	if (known)
		allowed(what, sum(h), w, slope);
	else
		refused(what, sum(h), w,
			"a result of tanh in scope \"step\" that was evaluated long ago");
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
	closed();
	assigned();
	loop();
	collected();
	many_results();
	yoke_scope *s = yoke_scope_begin("step");
	goes_on();
	nothing_lost();
	one_by_one();
	same_numbers();
	fed_back(1000, true);
	fed_back(30000, false);
	ok(yoke_scope_end(s) == 0, "no error is left: %s", yoke_error());
	return done();
}
