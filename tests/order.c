// SPDX-License-Identifier: Apache-2.0
// Tests the order of launches in printed plans: barriers against updates that the scheduler would
// move and maps that it would fuse, with values and gradients through them; the device's work
// beside the CPU's.

#include "config.h"

#include "base/log.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { N = 4096 };

static char plan[1 << 14]; // the lines of the last plan

static void keep_line(int level, const char *topic, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (strcmp(topic, "plan"))
		return;
	if (strstr(line, " lowered, "))
		*plan = 0;
	size_t n = strlen(plan);
	snprintf(plan + n, sizeof plan - n, "%s\n", line);
}

// The step whose line contains this text; -1: none.
static int step_of(const char *text)
{
	const char *at = strstr(plan, text);
	while (at && at > plan && at[-1] != '\n')
		at--;
	return at ? atoi(at) : -1;
}

// As step_of, for the scope of this name.
static int scope_step(const char *name)
{
	char text[64];
	snprintf(text, sizeof text, " in %s\t", name);
	return step_of(text);
}

// x through a barrier after y, or x itself.
static yoke_tensor *behind(bool barrier, yoke_tensor *x, yoke_tensor *y)
{
	yoke_tensor *to = NULL;
	if (!barrier)
		return x;
	yoke_barrier(1, &x, 1, &y, &to);
	return to;
}

static yoke_tensor *scoped(const char *name, yoke_tensor *x, yoke_tensor *(*fn)(yoke_tensor *))
{
	yoke_scope *s = yoke_scope_begin(name);
	yoke_tensor *y = fn(x);
	yoke_lift(y);
	yoke_scope_end(s);
	return y;
}

static yoke_tensor *add_up(yoke_tensor *x)
{
	return yoke_sum(x, YOKE_ALL);
}

// w += exp(x) would run before the sum of another large value, to free exp(x).
static void updates(void)
{
	static float x[N], got[2][N];
	double g[N], want[N];
	float sum[2];
	int update[2], work[2];
	for (int i = 0; i < N; i++)
		x[i] = (float)rnd_real(-1, 1);
	for (int barrier = 0; barrier < 2; barrier++) {
		yoke_tensor *w = yoke_variable("w", yoke_f32, 1, DIMS(N));
		yoke_scope *s = yoke_scope_begin("outer");
		yoke_tensor *v = yoke_from(yoke_f32, 1, DIMS(N), x);
		yoke_tensor *e = yoke_softmax(v, -1);
		yoke_tensor *y =
			scoped("work", yoke_softmax(yoke_softmax(yoke_neg(v), -1), -1), add_up);
		yoke_scope *u = yoke_scope_begin("update");
		yoke_assign(w, yoke_add(w, yoke_reshape(behind(barrier, e, y), 1, DIMS(N))));
		yoke_scope_end(u);
		yoke_read(y, &sum[barrier], sizeof *sum);
		yoke_read(w, got[barrier], sizeof *got);
		update[barrier] = scope_step("outer/update");
		work[barrier] = scope_step("outer/work");
		yoke_scope_end(s);
		yoke_free(w);
	}
	for (int i = 0; i < N; i++)
		g[i] = (double)got[1][i], want[i] = (double)got[0][i];
	ok(update[0] >= 0 && update[0] < work[0],
	   "without a barrier the update (%d) runs before the sum (%d)", update[0], work[0]);
	ok(work[1] >= 0 && work[1] < update[1],
	   "with a barrier the update (%d) runs after the sum (%d)", update[1], work[1]);
	near(g, want, N, 0, 1, "both give the same values");
	ok(sum[0] == sum[1] && !yoke_error_code(), "and the same sum %s", yoke_error());
}

static yoke_tensor *soften(yoke_tensor *x)
{
	return yoke_softmax(x, -1);
}

// The same update runs after the readers of the old version, which it overwrites.
static void readers(void)
{
	static float x[N], got[N];
	double g[N], want[N], sum = 0;
	struct yoke_stats before = { .size = sizeof before }, after = before;
	float total;
	for (int i = 0; i < N; i++)
		x[i] = (float)rnd_real(-1, 1);
	yoke_tensor *w = yoke_variable("w", yoke_f32, 1, DIMS(N));
	yoke_put(w, x, sizeof x);
	yoke_stats(&before);
	yoke_scope *s = yoke_scope_begin("outer");
	yoke_tensor *e = yoke_softmax(yoke_from(yoke_f32, 1, DIMS(N), x), -1);
	yoke_tensor *y = scoped("work", yoke_softmax(scoped("reader", w, soften), -1), add_up);
	yoke_scope *u = yoke_scope_begin("update");
	yoke_assign(w, yoke_add(w, e));
	yoke_scope_end(u);
	yoke_read(y, &total, sizeof total);
	yoke_read(w, got, sizeof got);
	yoke_stats(&after);
	ok(scope_step("outer/reader") >= 0 &&
		   scope_step("outer/reader") < scope_step("outer/update") &&
		   after.assign_copies == before.assign_copies,
	   "an update (%d) runs after a reader (%d) of the old version: %llu copies",
	   scope_step("outer/update"), scope_step("outer/reader"),
	   (unsigned long long)(after.assign_copies - before.assign_copies));
	for (int i = 0; i < N; i++)
		sum += exp((double)x[i]);
	for (int i = 0; i < N; i++)
		g[i] = (double)got[i], want[i] = (double)x[i] + exp((double)x[i]) / sum;
	near(g, want, N, 1e-6, 1, "and its values are correct");
	yoke_scope_end(s);
	yoke_free(w);
}

// y = -x would be fused with the map that reads it, after the sum of z.
static void fusion(void)
{
	float x[7], first[7], sum;
	int map[2], work[2];
	for (int i = 0; i < 7; i++)
		x[i] = (float)rnd_real(-1, 1);
	for (int barrier = 0; barrier < 2; barrier++) {
		yoke_scope *s = yoke_scope_begin("outer");
		yoke_tensor *v = yoke_from(yoke_f32, 1, DIMS(7), x),
			    *z = yoke_from(yoke_f32, 1, DIMS(7), x);
		yoke_tensor *y = scoped("made", v, yoke_neg);
		yoke_tensor *r = yoke_keep(scoped("work", behind(barrier, z, y), add_up));
		yoke_tensor *late = scoped("late", y, yoke_exp);
		yoke_read(late, first, sizeof first);
		yoke_read(r, &sum, sizeof sum);
		map[barrier] = scope_step("outer/made");
		work[barrier] = scope_step("outer/work");
		double want = 0, e = 0;
		for (int i = 0; i < 7; i++) {
			want += (double)x[i];
			e = fmax(e, fabs((double)first[i] - exp(-(double)x[i])));
		}
		ok(e < 1e-6 && fabs((double)sum - want) < 1e-6 && !yoke_error_code(),
		   "numbers, error %.2g %s", e, yoke_error());
		yoke_free(r);
		yoke_scope_end(s);
	}
	ok(map[0] < 0 && work[0] >= 0, "without a barrier the map is fused with its reader");
	ok(map[1] >= 0 && map[1] < work[1],
	   "with a barrier it is launched (%d) before the sum (%d)", map[1], work[1]);
}

// Several values of several dtypes after several; a root, a view and a gradient of the results.
static void through(void)
{
	double x[6], got[6], want[6];
	int32_t ids[4] = { 3, 1, 2, 0 }, back[4];
	for (int i = 0; i < 6; i++) {
		x[i] = rnd_real(-1, 1);
		want[i] = 3 * x[i] * x[i];
	}
	yoke_scope *s = yoke_scope_begin("through");
	yoke_tensor *v = yoke_from(yoke_f64, 2, DIMS(2, 3), x), *to[2], *g;
	yoke_tensor *in[2] = { yoke_square(v), yoke_from(yoke_i32, 1, DIMS(4), ids) };
	yoke_tensor *after[2] = { yoke_exp(v), yoke_scalar(1) };
	int err = yoke_barrier(2, in, 2, after, to);
	ok(!err && yoke_dtype(to[1]) == yoke_i32 && yoke_dim(to[0], 1) == 3,
	   "two values after two %s", yoke_error());
	yoke_tensor *f = yoke_sum(
		yoke_mul(yoke_permute(to[0], (int[]){ 1, 0 }), yoke_permute(v, (int[]){ 1, 0 })),
		YOKE_ALL);
	yoke_grad(f, 1, &v, &g);
	yoke_eval(3, (yoke_tensor *[]){ g, to[0], to[1] });
	ok(!yoke_read(g, got, sizeof got), "a gradient %s", yoke_error());
	near(got, want, 6, 1e-14, 1, "the gradient of x^3 through a barrier");
	yoke_read(to[0], got, sizeof got);
	for (int i = 0; i < 6; i++)
		want[i] = x[i] * x[i];
	near(got, want, 6, 0, 1, "a value that passed a barrier");
	yoke_read(to[1], back, sizeof back);
	ok(!memcmp(back, ids, sizeof ids), "and one of integers");
	err = yoke_barrier(1, &v, 1, (yoke_tensor *[]){ YOKE_NONE }, to);
	ok(err == YOKE_EINVAL, "a barrier after nothing: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

static yoke_tensor *square(yoke_tensor *x)
{
	return yoke_matmul(x, x, 0);
}

static yoke_tensor *sorted(yoke_tensor *x)
{
	return yoke_sort(x, 0, 0, NULL);
}

// A sort that the device lacks: its operand is downloaded as soon as it is computed, and
// independent products are enqueued before the host runs the sort.
static void beside(void)
{
	enum { SIDE = 8 };
	const char *modules = getenv("YOKE_TEST_MODULES");
	float x[SIDE * SIDE], got[SIDE * SIDE];
	if (!modules) {
		skip("beside the CPU's work",
		     "YOKE_TEST_MODULES does not say where the fault backend is");
		return;
	}
	setenv("YOKE_PLUGIN_PATH", modules, 1);
	setenv("YOKE_FAULT_LACKS", "sort", 1);
	yoke_context *ctx = yoke_context_new("fault"), *former = yoke_use(ctx);
	yoke_scope *s = yoke_scope_begin("beside");
	for (int i = 0; i < SIDE * SIDE; i++)
		x[i] = (float)rnd_real(-1, 1);
	yoke_tensor *v = yoke_from(yoke_f32, 2, DIMS(SIDE, SIDE), x);
	yoke_tensor *first = scoped("first", v, square), *min = scoped("sort", first, sorted);
	yoke_tensor *other = scoped("another", yoke_neg(v), square);
	int err = yoke_read(scoped("sum", yoke_mul(min, yoke_sum(other, 1 | YOKE_KEEP)), square),
			    got, sizeof got);
	int made = scope_step("beside/first"), down = step_of("	down	"),
	    sort = step_of("	sort	"), late = scope_step("beside/another"),
	    sum = scope_step("beside/sum");
	ok(!err && made >= 0 && down == made + 1 && late > down && sort > late && sum > sort,
	   "on a device that does not sort: product %d, copy down %d, another product %d, sort %d, sum %d",
	   made, down, late, sort, sum);
	yoke_scope_end(s);
	yoke_use(former);
	yoke_context_free(ctx);
}

int main(void)
{
	setenv("YOKE_LOG", "plan", 1);
	setenv("YOKE_BACKEND", "cpu", 1);
	yk_log_to(keep_line, NULL);
	tap_seed();
	if (tap_eager()) {
		skip("the order of a plan", "each op has one of its own");
		return done();
	}
	updates();
	readers();
	fusion();
	through();
	beside();
	return done();
}
