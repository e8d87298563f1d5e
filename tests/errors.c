// SPDX-License-Identifier: Apache-2.0
// Tests a training step whose k-th backend call of every kind fails, for every k, immediately or
// late: no hang, no leak, no silent error. Each variable keeps its value or reports that it is
// lost; after the values are set again, the next step has the bits of an undisturbed run.
// The program runs itself for modes that exist once per process: other backend settings, a hang.

#include "config.h"

#include "base/log.h"
#include "base/param.h"
#include "device/device.h"
#include "device/pool.h"
#include "fault/fault.h"
#include "tap.h"
#include "yoke.h"

enum { B = 5, IN = 7, HID = 11, OUT = 3, P = 4, VARS = 3 * P, STEPS = 4, LIMIT = HID * IN };

static const int64_t dims[P][2] = { { HID, IN }, { HID, 0 }, { OUT, HID }, { OUT, 0 } };
static const struct fault_control *ctl;
static struct yk_device *device;
static float state[STEPS + 1][VARS][LIMIT]; // after each step of the undisturbed run
static float batch[STEPS + 1][B * (IN + OUT)];

// ---- the model: parameters, then both moments ----

struct model {
	yoke_context *ctx;
	yoke_tensor *var[VARS], *x, *y, *lr, *c1, *c2;
};

static size_t bytes_of(int i)
{
	const int64_t *d = dims[i % P];
	return (size_t)(d[0] * (d[1] ? d[1] : 1)) * sizeof(float);
}

static int restore(struct model *m, int step)
{
	int err = 0;
	for (int i = 0; i < VARS && !err; i++)
		err = yoke_put(m->var[i], state[step][i], bytes_of(i));
	return err;
}

static bool model_new(struct model *m)
{
	m->ctx = yoke_context_new("fault");
	if (!m->ctx)
		return false;
	yoke_use(m->ctx);
	for (int i = 0; i < VARS; i++) {
		char name[8];
		snprintf(name, sizeof name, "%c%d", "pmv"[i / P], i % P);
		m->var[i] = yoke_variable(name, yoke_f32, dims[i % P][1] ? 2 : 1, dims[i % P]);
	}
	m->x = yoke_variable("x", yoke_f32, 2, (int64_t[]){ B, IN });
	m->y = yoke_variable("y", yoke_f32, 2, (int64_t[]){ B, OUT });
	m->lr = yoke_scalar(0.01);
	m->c1 = yoke_scalar(0);
	m->c2 = yoke_scalar(0);
	return !yoke_error_code() && !restore(m, 0) && !yoke_sync();
}

static void model_free(struct model *m)
{
	yoke_use(NULL);
	yoke_context_free(m->ctx);
}

// Step t, from 1: enqueued, not waited for.
static int step(struct model *m, int t)
{
	yoke_tensor *g[P] = { NULL };
	yoke_scope *s = yoke_scope_begin("step");
	if (yoke_put(m->x, batch[t], B * IN * sizeof(float)) ||
	    yoke_put(m->y, batch[t] + B * IN, B * OUT * sizeof(float)))
		return yoke_scope_end(s);
	yoke_scalar_set(m->c1, 1 - pow(0.9, t));
	yoke_scalar_set(m->c2, 1 - pow(0.99, t));
	yoke_scope *inner = yoke_scope_begin("layer");
	yoke_tensor *h = yoke_lift(yoke_tanh(yoke_linear(m->x, m->var[0], m->var[1])));
	yoke_scope_end(inner);
	yoke_tensor *loss = yoke_mse(yoke_linear(h, m->var[2], m->var[3]), m->y);
	yoke_grad(loss, P, m->var, g);
	struct yoke_adamw o = { .size = sizeof o,
				m->lr, m->c1, m->c2, YOKE_NONE, 0.9, 0.99, 1e-8, 0.1 };
	yoke_adamw_step(P, m->var, g, m->var + P, m->var + 2 * P, &o);
	if (!yoke_error_code())
		yoke_eval(0, NULL);
	return yoke_scope_end(s);
}

// The step whose state a variable has: -1 no step's, -2 the variable is reported lost.
static int state_of(struct model *m, int i)
{
	float got[LIMIT];
	memset(got, 0xff, sizeof got); // NaN
	int err = yoke_read(m->var[i], got, bytes_of(i));
	yoke_error_clear();
	if (err)
		return err == YOKE_EFAILED ? -2 : -1;
	for (int t = 0; t <= STEPS; t++)
		if (!memcmp(got, state[t][i], bytes_of(i)))
			return t;
	return -1;
}

static bool all_at(struct model *m, int t)
{
	bool good = true;
	for (int i = 0; i < VARS; i++)
		good &= state_of(m, i) == t;
	return good;
}

// Fills `state` with NaN first, so that unwritten values show.
static bool undisturbed(void)
{
	struct model m;
	memset(state[1], 0xff, sizeof state - sizeof state[0]);
	for (int i = 0; i < VARS; i++)
		for (size_t k = 0; k < bytes_of(i) / sizeof(float); k++)
			state[0][i][k] = i < P ? (float)rnd_real(-0.5, 0.5) : 0;
	for (int t = 1; t <= STEPS; t++)
		for (int k = 0; k < B * (IN + OUT); k++)
			batch[t][k] = (float)rnd_real(-1, 1);
	bool good = model_new(&m);
	for (int t = 1; t <= STEPS && good; t++) {
		good = !step(&m, t);
		for (int i = 0; i < VARS && good; i++)
			good = !yoke_read(m.var[i], state[t][i], bytes_of(i)) &&
			       isfinite(state[t][i][0]) &&
			       memcmp(state[t][i], state[t - 1][i], bytes_of(i));
	}
	model_free(&m);
	return ok(good, "an undisturbed run: %s", yoke_error());
}

// ---- one fault ----

static uint64_t allocated(void)
{
	struct yk_pool_stats a, b;
	yk_pool_stats(device->pool, &a);
	yk_pool_stats(device->pinned, &b);
	return a.allocated_bytes.current + b.allocated_bytes.current;
}

// Segments that pools returned immediately because their first use failed: another one takes their
// place, and no error is reported.
static long refused(void)
{
	struct yk_pool_stats a, b;
	yk_pool_stats(device->pool, &a);
	yk_pool_stats(device->pinned, &b);
	return ctl->calls("segment") - (long)(a.segment.allocated + b.segment.allocated);
}

static long alive(void)
{
	yk_pool_trim(device->pool);
	yk_pool_trim(device->pinned);
	return ctl->alive();
}

struct verdict {
	bool fired, failed; // did the call happen; did any public call return an error
	bool mended;        // by another segment
	const char *wrong;  // NULL: everything is as expected
	char text[1024];    // of the first error
};

// Runs steps 1 .. STEPS with the k-th call of a kind failing, counted from before or after the
// model is made; then checks the remaining state, restarts, and ends.
static struct verdict trial(const char *kind, long k, bool from_start)
{
	struct verdict v = { 0 };
	struct model m;
	float got[LIMIT];
	uint64_t before = allocated();
	alive(); // no reserve: segments are allocated
	long calls = ctl->calls(kind), others = refused();
	if (from_start)
		ctl->arm(kind, k);
	bool made = model_new(&m);
	if (!from_start) {
		calls = ctl->calls(kind);
		ctl->arm(kind, k);
	}
	int at = -1, done = 0;
	v.failed = !made;
	for (int t = 1; t <= STEPS && !v.failed; t++) {
		v.failed = step(&m, t) < 0;
		done += !v.failed;
		if (t == 2 && !v.failed)
			v.failed = yoke_read(m.var[0], got, bytes_of(0)) < 0;
	}
	v.failed |= made && yoke_sync() < 0;
	v.fired = ctl->calls(kind) - calls >= k;
	v.mended = refused() > others;
	ctl->arm(kind, 0);
	snprintf(v.text, sizeof v.text, "%s", yoke_error());
	yoke_error_clear();
	for (int i = 0; i < VARS && !v.wrong && made; i++) {
		int s = state_of(&m, i);
		if (s == -1)
			v.wrong = "a variable is neither whole nor lost";
		else if (s >= 0 && at >= 0 && s != at)
			v.wrong = "variables of different steps";
		else if (s >= 0)
			at = s;
		if (s != STEPS && !v.failed)
			v.wrong = "no error, but not the numbers";
	}
	// work that failed before its launch is still pending, and a read may have done it
	if (!v.wrong && at > done + (from_start || tap_eager()))
		v.wrong = "a step that failed has left its numbers";
	if (!v.wrong && made && (restore(&m, 1) || step(&m, 2) || step(&m, 3) || yoke_sync()))
		v.wrong = "no step after the values were put anew";
	if (!v.wrong && made && !all_at(&m, 3))
		v.wrong = "other numbers after the values were put anew";
	if (v.wrong && yoke_error_code())
		diag("%s", yoke_error());
	yoke_error_clear();
	model_free(&m);
	if (!v.wrong && allocated() != before)
		v.wrong = "blocks leak";
	if (!v.wrong && yoke_error_code())
		v.wrong = "an error of nobody";
	return v;
}

static void every(const char *kind, bool from_start, bool must_fail)
{
	long before = alive(), k = 1, failed = 0;
	struct verdict v;
	for (; (v = trial(kind, k, from_start)).fired && !v.wrong; k++) {
		failed += v.failed;
		if (v.failed && !v.text[0])
			v.wrong = "an error without a text";
		if (must_fail && !v.failed && !v.mended)
			v.wrong = "nobody heard of it";
		if (v.wrong)
			break;
	}
	if (v.wrong)
		diag("%s %ld: %s; %s", kind, k, v.wrong, v.text);
	long left = alive() - before;
	ok(!v.wrong && !left && k > 1 && (failed > 0 || from_start),
	   "%s: each of %ld calls fails in turn, %ld errors are reported, %ld objects leak", kind,
	   k - 1, failed, left);
}

// ---- texts, logs, pending work ----

static int lines;

static void count_line(int level, const char *topic, const char *line, void *arg)
{
	(void)level, (void)arg;
	lines += !strcmp(topic, "eval") && strstr(line, "failed");
}

static bool says(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strstr(text, *words)) {
			diag("'%s' not in: %s", *words, text);
			return false;
		}
	return true;
}

static void texts(void)
{
	struct model m;
	char first[1024];
	lines = 0;
	yk_log_to(count_line, NULL);
	model_new(&m);
	ctl->arm("run", 2);
	int err = step(&m, 1);
	ctl->arm("run", 0);
	ok(err == YOKE_EDEVICE &&
		   says(yoke_error(),
			(const char *const[]){ "evaluation 1, step 2 of ", " in \"step",
					       "on fault:0", "YOKE_EDEVICE", "fault.run: call 2",
					       "parameters lost, reload a checkpoint", NULL }),
	   "a call's error: %s", yoke_error());
	yoke_error_clear();
	for (int i = 0; i < 2; i++) {
		err = yoke_read(m.var[0], first, bytes_of(0));
		ok(err == YOKE_EFAILED &&
			   says(yoke_error(),
				(const char *const[]){ "variable p0 is lost",
						       "evaluation 1, step 2", "fault.run: call 2",
						       "reload a checkpoint", NULL }),
		   "a second read returns the same error: %s", yoke_error());
		yoke_error_clear();
	}
	ok(lines == 1, "logged once, not %d times", lines);
	restore(&m, 0);

	lines = 0;
	ctl->arm("late", 2);
	err = step(&m, 1);
	ctl->arm("late", 0);
	int late = yoke_sync();
	ok(!err && late == YOKE_EDEVICE && says(yoke_error(), (const char *const[]){
		"evaluation 2 (", " steps, ", "in \"step", "on fault:0", "YOKE_SYNC", "fault.late",
		"parameters lost", NULL }), "a late error: %s", yoke_error());
	yoke_error_clear();
	ok(!yoke_sync() && lines == 1, "sync reports it once, and it is logged once");
	err = yoke_read(m.var[P], first, bytes_of(P));
	ok(err == YOKE_EFAILED, "each read reports it: %s", yoke_error());
	yoke_error_clear();
	err = step(&m, 2);
	ok(err == YOKE_EFAILED && strstr(yoke_error(), "is lost"), "each step reports it: %s",
	   yoke_error());
	yoke_error_clear();
	restore(&m, 0);
	yk_log_to(NULL, NULL);
	ok(!step(&m, 1) && all_at(&m, 1), "until the values are set again");
	model_free(&m);
}

// Work recorded before the failure was known, and unrelated work.
static void pending(void)
{
	struct model m;
	float two[2] = { 3, 4 }, got[2] = { NAN, NAN };
	model_new(&m);
	yoke_tensor *other = yoke_from(yoke_f32, 1, (int64_t[]){ 2 }, two);
	yoke_sync();
	ctl->arm("late", 1);
	ctl->lag(3);
	step(&m, 1);
	ctl->arm("late", 0);
	yoke_tensor *twice = yoke_keep(yoke_add(other, other));
	yoke_tensor *needs = yoke_keep(yoke_add(m.var[1], m.var[1]));
	yoke_sync();
	yoke_error_clear();
	int err = yoke_eval(0, NULL);
	ok(err == YOKE_EFAILED, "pending work that needs a lost value is lost: %s", yoke_error());
	yoke_error_clear();
	err = yoke_read(twice, got, sizeof got);
	ok(!err && got[0] == 6 && got[1] == 8, "independent pending work is not: %g %g %s",
	   (double)got[0], (double)got[1], yoke_error());
	float lost[HID];
	ok(yoke_read(needs, lost, sizeof lost) == YOKE_EFAILED, "a lost value is reported");
	yoke_error_clear();
	ctl->lag(0);
	restore(&m, 0);
	ok(!step(&m, 1) && all_at(&m, 1), "the context still works");
	model_free(&m);
}

// A copy to the device that fails late.
static void upload(void)
{
	struct model m;
	float got[B * IN];
	model_new(&m);
	ctl->arm("event", 1);
	int err = yoke_put(m.x, batch[1], sizeof got);
	ctl->arm("event", 0);
	int late = yoke_sync();
	ok(!err && late == YOKE_EDEVICE, "a copy that fails late: %s", yoke_error());
	yoke_error_clear();
	err = yoke_read(m.x, got, sizeof got);
	ok(err == YOKE_EFAILED && all_at(&m, 0), "only its value is lost: %s", yoke_error());
	yoke_error_clear();
	model_free(&m);
}

static void planning(void)
{
	struct model m;
	struct yoke_stats a = { .size = sizeof a }, b = a;
	model_new(&m);
	yoke_stats(&a);
	ctl->arm("prepare", 3);
	int err = step(&m, 1);
	ctl->arm("prepare", 0);
	ok(err == YOKE_EDEVICE &&
		   says(yoke_error(),
			(const char *const[]){ "step", "fault:0", "fault.prepare: call 3", NULL }),
	   "a kernel that cannot be built: %s", yoke_error());
	yoke_error_clear();
	yoke_stats(&b);
	ok(b.plans == a.plans && b.launches == a.launches, "nothing is cached or launched");
	ok(b.pool_allocated == a.pool_allocated, "no memory is allocated");
	ok(!yoke_eval(0, NULL) && all_at(&m, 1),
	   "the same work succeeds when the kernels build: %s", yoke_error());
	yoke_tensor *other = yoke_full(yoke_f32, 1, (int64_t[]){ 7 }, 2),
		    *sum = yoke_sum(yoke_exp(other), YOKE_ALL);
	ctl->how("enomem");
	ctl->arm("prepare", 1);
	err = yoke_eval(1, &sum);
	ctl->arm("prepare", 0);
	ctl->how("error");
	ok(err == YOKE_ENOMEM &&
		   says(yoke_error(), (const char *const[]){ "fault:0", "memory",
							     "fault.prepare: call 1", NULL }) &&
		   !strstr(yoke_error(), "no kernel"),
	   "a device without memory for a kernel: %s", yoke_error());
	yoke_error_clear();
	yoke_free(sum);
	yoke_free(other);
	model_free(&m);
}

// Overcommitted memory that is missing at its first use.
static void overcommit(void)
{
	enum { BIG = 48 << 20, SMALLER = 40 << 20 };
	int64_t n = BIG / 4, less = SMALLER / 4, one = 1;
	float number = 1.5f, *got = malloc(BIG);
	yoke_context *ctx = yoke_context_new("fault");
	yoke_use(ctx);
	alive();
	yoke_tensor *x = yoke_from(yoke_f32, 1, &one, &number);
	yoke_free(yoke_variable("unused", yoke_f32, 1, &less)); // stays in the pool
	yoke_sync();
	ctl->memory(64 << 20, 1);
	got[0] = got[n - 1] = NAN;
	yoke_tensor *y = yoke_add(yoke_broadcast_to(x, 1, &n), x);
	int err = yoke_read(y, got, BIG);
	ok(!err && got[0] == 3 && got[n - 1] == 3,
	   "the pool releases its reserve, and the step runs: %s", yoke_error());
	yoke_error_clear();
	yoke_tensor *z = yoke_add(yoke_broadcast_to(x, 1, &n), y);
	err = yoke_read(z, got, BIG);
	ok(err == YOKE_ENOMEM && strstr(yoke_error(), "fault.overcommit"),
	   "without a reserve the step fails: %s", yoke_error());
	yoke_error_clear();
	yoke_free(z);
	yoke_free(y);
	y = yoke_add(yoke_broadcast_to(x, 1, &n), yoke_const(1));
	err = yoke_read(y, got, BIG);
	ok(!err && got[0] == 2.5f, "and succeeds once there is memory: %s", yoke_error());
	yoke_free(y);
	yoke_variable("more", yoke_f32, 1, &less);
	ok(!yoke_error_code(), "a fill is retried, too: %s", yoke_error());
	yoke_error_clear();
	ctl->memory(0, 0);
	yoke_use(NULL);
	yoke_context_free(ctx);
	free(got);
}

// Blocks that move from one context's queue to another's, after an event that cannot be waited for.
static void between(void)
{
	struct model a, b;
	ctl->lag(1000000); // work completes only when it is waited for
	model_new(&a);
	step(&a, 1);
	model_new(&b);
	for (int i = 0; i < VARS; i++)
		yoke_free(a.var[i]);
	long calls = ctl->calls("after");
	ctl->arm("after", 1);
	yoke_use(b.ctx);
	int err = step(&b, 1);
	bool called = ctl->calls("after") > calls;
	ctl->arm("after", 0);
	ok(called && err == YOKE_EDEVICE && strstr(yoke_error(), "fault.after"),
	   "a block of another context whose event fails: %s", yoke_error());
	yoke_error_clear();
	ok(!restore(&b, 0) && !step(&b, 1) && all_at(&b, 1), "the next attempt succeeds: %s",
	   yoke_error());
	ctl->lag(0);
	model_free(&b);
	yoke_context_free(a.ctx);
}

static void wrong_kernel(void)
{
	struct model m;
	model_new(&m);
	ctl->wrong("contract");
	int err = step(&m, 1);
	ctl->wrong("");
	ok(!err && state_of(&m, 0) == -1, "a wrong kernel shows in the results");
	model_free(&m);
}

// ---- modes of a process ----

// A finished run's results can be read while the next run, which never ends, is active. Runs in its
// own process, as `hang` does.
static int beside(void)
{
	struct model m;
	model_new(&m);
	float *x = batch[1], got[4] = { NAN, NAN, NAN, NAN };
	yk_param_set("device.timeout", "600", YK_ARGUMENT);
	yoke_tensor *t = yoke_keep(yoke_sum(yoke_from(yoke_f32, 1, (int64_t[]){ 4 }, x), YOKE_ALL));
	yoke_tensor *copy = yoke_from(yoke_f32, 1, (int64_t[]){ 4 }, x);
	bool good = !yoke_eval(0, NULL);
	ctl->arm("stuck", 1);
	good &= !step(&m, 1);
	ctl->arm("stuck", 0);
	int err = yoke_read(copy, got, sizeof got);
	ok(good && !err && !memcmp(got, x, sizeof got), "an uploaded value is read back: %s",
	   yoke_error());
	err = yoke_read(t, got, sizeof *got);
	ok(!err && fabsf(got[0] - (x[0] + x[1] + x[2] + x[3])) < 1e-5f,
	   "and so is the result of the run before: %g %s", (double)got[0], yoke_error());
	ctl->arm("event", 1); // of the read itself
	err = yoke_read(t, got, sizeof *got);
	ctl->arm("event", 0);
	ok(err == YOKE_EDEVICE && strstr(yoke_error(), "read: 4 bytes from fault:0: fault.late"),
	   "a read that fails late: %s", yoke_error());
	yoke_error_clear();
	got[0] = NAN;
	ok(!yoke_read(t, got, sizeof *got) && !isnan(got[0]), "a failed read loses nothing: %s",
	   yoke_error());
	yk_param_set("device.timeout", "1", YK_ARGUMENT);
	err = yoke_read(m.var[0], batch[2], bytes_of(0));
	ok(err == YOKE_EFAILED && strstr(yoke_error(), "no answer"),
	   "a read of the hanging run's result fails: %s", yoke_error());
	model_free(&m);
	return done();
}

// A run that never ends, under device.timeout. Runs in its own process, because a queue that does
// not respond is abandoned.
static int hang(void)
{
	struct model m;
	model_new(&m);
	yk_param_set("device.timeout", "1", YK_ARGUMENT);
	ctl->arm("stuck", 3);
	int err = step(&m, 1);
	ctl->arm("stuck", 0);
	int late = yoke_sync();
	ok(!err && late == YOKE_EDEVICE &&
		   says(yoke_error(), (const char *const[]){ "evaluation 1", "on fault:0",
							     "no answer within 1 s", NULL }),
	   "a hang: %s", yoke_error());
	yoke_error_clear();
	ok(state_of(&m, 0) == -2, "its result is lost");
	restore(&m, 0);
	yoke_error_clear();
	model_free(&m);
	struct model other;
	ok(model_new(&other) && !step(&other, 1) && all_at(&other, 1), "another context works: %s",
	   yoke_error());
	model_free(&other);
	return done();
}

static bool open_device(void)
{
	const char *modules = getenv("YOKE_TEST_MODULES");
	tap_seed();
	setenv("YOKE_PLUGIN_PATH", modules ? modules : "", 1);
	device = yk_device_choose("fault");
	ctl = device ? device->ops->ext("fault") : NULL;
	return ok(ctl != NULL, "the fault backend: %s", yoke_error());
}

static void everything(void)
{
	static const char *const heard[] = { "run", "late", "put", "event", "mark" };
	const char *limit = getenv("YOKE_DEVICE_TIMEOUT"); // then events are polled, not waited for
	const char *const maybe[] = { "segment", "queue", "fill", "get", limit ? "done" : "wait",
		"prepare" };
	for (size_t i = 0; i < sizeof heard / sizeof *heard; i++)
		every(heard[i], false, true);
	for (size_t i = 0; i < sizeof maybe / sizeof *maybe; i++)
		every(maybe[i], true, false);
}

static int child(const char *what)
{
	if (!open_device() || !undisturbed())
		return done();
	if (!strcmp(what, "hang"))
		return hang();
	if (!strcmp(what, "beside"))
		return beside();
	everything();
	return done();
}

static void mode(const char *self, const char *settings, const char *what)
{
	char command[2048];
	// a queue that is abandoned is not freed
	const bool leaks = !strcmp(what, "hang") || !strcmp(what, "beside");
	snprintf(command, sizeof command, "%s %s '%s' %s 2>&1",
		 leaks ? "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0" : "", settings, self, what);
	ok(tap_run(command), "%s %s", *settings ? settings : "plain", what);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argv[1]);
	setenv("YOKE_LOG", "error,eval", 1);
	if (!open_device() || !undisturbed())
		return done();
	yk_log_to(count_line, NULL);
	everything();
	yk_log_to(NULL, NULL);
	upload();
	if (tap_eager()) {
		skip("evaluations that fail", "it is the call that does");
		return done();
	}
	texts();
	pending();
	planning();
	overcommit();
	between();
	wrong_kernel();
	setenv("YOKE_LOG", "error", 1);
	mode(argv[0], "", "hang");
	mode(argv[0], "", "beside");
	static const char *const modes[] = {
		"YOKE_FAULT_LAG=2 YOKE_DEVICE_TIMEOUT=60",
		"YOKE_FAULT_HOST=0",
		"YOKE_FAULT_LACKS=contract,reduce",
		"YOKE_FAULT_LACKS=list_map",
		"YOKE_DONATE=0",
		"YOKE_POOL=0",
		"YOKE_SYNC=1",
		"YOKE_FAULT_MAX_SEGMENT=65536",
		"YOKE_DEVICE=fault:2 YOKE_FAULT_DEVICES=3",
	};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		mode(argv[0], modes[i], "all");
	return done();
}
