// SPDX-License-Identifier: Apache-2.0
// Tests debugging aids: YOKE_SYNC=1 names the step in which a device fails late; YOKE_CHECK=nan
// names the op that produces the first NaN or infinity, forward or backward.
// The program runs itself once for each mode, because settings are read once.

#include "config.h"

#include "base/log.h"
#include "device/device.h"
#include "fault/fault.h"
#include "tap.h"
#include "yoke-optim.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

static int warned;
static char warning[2048];

static void keep_line(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	if (level != YOKE_LOG_WARN || strcmp(topic, "check"))
		return;
	warned++;
	snprintf(warning, sizeof warning, "%s", line);
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

static yoke_tensor *vector(int n, const float *x)
{
	return yoke_from(yoke_f32, 1, DIMS(n), x);
}

// ---- YOKE_SYNC ----

// The k-th launch fails late: with YOKE_SYNC the error names it.
static int sync_mode(const struct fault_control *ctl)
{
	if (tap_eager()) {
		skip("YOKE_SYNC", "each op is waited for as it is");
		return done();
	}
	static const char *const op[] = { "matmul f32 [2,2] from f32 [2,3], f32 [3,2]",
		"softmax f32 [2,2] from f32 [2,2]", "cumsum f32 [2,2] from f32 [2,2]" };
	const float a[6] = { 1, 2, 3, 4, 5, 6 };
	float got[4];
	for (int k = 1; k <= 3; k++) {
		char at[40];
		snprintf(at, sizeof at, "step %d of 3", k - 1);
		yoke_scope *outer = yoke_scope_begin("model"), *inner = yoke_scope_begin("head");
		yoke_tensor *x = yoke_from(yoke_f32, 2, DIMS(2, 3), a);
		yoke_tensor *y = yoke_from(yoke_f32, 2, DIMS(3, 2), a);
		y = yoke_cumsum(yoke_softmax(yoke_matmul(x, y, 0), -1), 1, 0);
		ctl->arm("late", k);
		int err = yoke_read(y, got, sizeof got);
		ctl->arm("late", 0);
		ok(err == YOKE_EDEVICE &&
			   says(yoke_error(),
				(const char *const[]){ at, op[k - 1], "in \"model/head\"",
						       "on fault:0 (host memory with faults)",
						       "fault.late", NULL }),
		   "launch %d: %s", k, yoke_error());
		yoke_error_clear();
		yoke_scope_end(inner);
		yoke_scope_end(outer);
	}
	return done();
}

// ---- YOKE_CHECK ----

static void expect(yoke_tensor *y, const char *what, const char *const *words)
{
	char got[64];
	int err = yoke_read(y, got, yoke_bytes(y));
	ok(err == YOKE_ERANGE && says(yoke_error(), words), "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static void forward(void)
{
	const float x[4] = { 1, 2, -1, 3 }, big[6] = { 1, 2, 3e38f, 3, 4, 3e38f };
	yoke_scope *s = yoke_scope_begin("loss");
	// without the check it would be one launch with its neighbours
	yoke_tensor *y = yoke_add(yoke_log(yoke_mul(vector(4, x), yoke_const(2))), yoke_const(1));
	expect(yoke_sum(y, YOKE_ALL), "log of a negative number", (const char *const[]){
		"log f32 [4] from f32 [4]", "in \"loss\"", "makes nan at [2] of result 0",
		"operands that are finite where they are -2", NULL });
	y = yoke_exp(yoke_from(yoke_f32, 2, DIMS(2, 2), (float[]){ 1, 88, 89, 2 }));
	expect(y, "exp that overflows",
	       (const char *const[]){ "exp f32 [2,2]", "makes inf at [1,0]", "where they are 89",
				      NULL });
	y = yoke_matmul(yoke_from(yoke_f32, 2, DIMS(2, 3), big),
			yoke_from(yoke_f32, 2, DIMS(3, 1), big), 0);
	expect(y, "a product that overflows", (const char *const[]){
		"matmul f32 [2,1] from f32 [2,3], f32 [3,1]", "makes inf at [0,0]", NULL });
	y = yoke_cast(vector(2, (float[]){ 1, 70000 }), yoke_f16);
	expect(y, "a cast that overflows",
	       (const char *const[]){ "cast f16 [2]", "inf at [1]", "70000", NULL });
	y = yoke_sqrt(yoke_cast(vector(2, (float[]){ 1, -3 }), yoke_bf16));
	expect(y, "in bf16",
	       (const char *const[]){ "sqrt bf16 [2]", "nan at [1]", "where they are -3", NULL });
	y = yoke_permute(yoke_from(yoke_f32, 2, DIMS(2, 3), (float[]){ 4, 4, 4, 4, -4, 4 }),
			 (int[]){ 1, 0 });
	expect(yoke_sqrt(y), "of a view",
	       (const char *const[]){ "sqrt f32 [3,2]", "nan at [1,1]", "-4", NULL });
	y = yoke_softmax(vector(2, (float[]){ -INFINITY, -INFINITY }), -1);
	expect(y, "nan of infinities", (const char *const[]){ "softmax", "makes nan at [0]",
		"operands without nan", NULL });
	yoke_scope_end(s);
}

static void backward(void)
{
	const float x[3] = { 4, 0, 1 };
	float got[3];
	yoke_tensor *g, *p = yoke_variable("p", yoke_f32, 1, DIMS(3));
	yoke_put(p, x, sizeof x);
	yoke_scope *s = yoke_scope_begin("norm");
	yoke_tensor *y = yoke_sum(yoke_sqrt(p), YOKE_ALL);
	yoke_scope_end(yoke_scope_begin("elsewhere"));
	yoke_grad(y, 1, &p, &g);
	expect(g, "backward of sqrt at 0",
	       (const char *const[]){ "backward of sqrt,", "in \"norm\"", "makes inf at [1]",
				      NULL });
	yoke_scope_end(s);
	// without the check it would update in place; the check shows the old values
	yoke_assign(p, yoke_log(yoke_sub(p, yoke_const(2))));
	int err = yoke_eval(0, NULL);
	bool eager = tap_eager(); // then the call itself fails, and nothing is assigned
	ok((eager || err == YOKE_ERANGE) && says(yoke_error(), (const char *const[]){ "log f32 [3]",
		"nan at [1]", "where they are -2", eager ? NULL : "parameters lost", NULL }),
	   "an update: %s", yoke_error());
	yoke_error_clear();
	err = yoke_read(p, got, sizeof got);
	ok(err == (eager ? 0 : YOKE_EFAILED), "the variable is lost if it was assigned: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_put(p, x, sizeof x);
	err = yoke_read(yoke_add(p, p), got, sizeof got);
	ok(!err && got[0] == 8 && got[1] == 0, "the next step works: %s", yoke_error());
	yoke_free(p);
}

static void innocent(void)
{
	const float masked[3] = { -INFINITY, 1, 1 }, gone[3] = { 1, NAN, 1 };
	float got[3] = { NAN, NAN, NAN };
	int err = yoke_read(yoke_softmax(vector(3, masked), -1), got, sizeof got);
	ok(!err && got[0] == 0 && got[1] == 0.5f && !warned,
	   "infinities written by the caller are no error: %s", yoke_error());
	yoke_tensor *x = vector(3, masked), *y = yoke_add(x, x);
	err = yoke_read(y, got, sizeof got);
	ok(!err && isinf(got[0]), "nor when they propagate: %s", yoke_error());
	yoke_tensor *none = yoke_full(yoke_f32, 1, DIMS(3), -INFINITY);
	err = yoke_read(yoke_contiguous(none), got, sizeof got);
	ok(!err && isinf(got[2]), "nor as literals: %s", yoke_error());
	for (int i = 0; i < 2; i++)
		err = yoke_read(yoke_exp(vector(3, gone)), got, sizeof got);
	ok(!err && isnan(got[1]) && !isnan(got[2]), "a NaN written by the caller is no error: %s",
	   yoke_error());
	if (getenv("YOKE_FAULT_LACKS")) // the operand is a copy of it
		return;
	ok(warned == 1 && says(warning, (const char *const[]){ "operand 0 of exp f32 [3]", NULL }),
	   "but is reported once: %s", warning);
}

// An infinite gradient is an error of the op that makes it, before a norm or an update reads it.
static void optimizer(void)
{
	static const float start[] = { 1, 0, 2 };
	const int64_t n = 3;
	const char *name = "w";
	float got[3] = { NAN, NAN, NAN };
	yoke_tensor *w = yoke_variable(name, yoke_f32, 1, &n), *g;
	yoke_put(w, start, sizeof start);
	yoke_optim *o = yoke_optim_new("adamw", "clip=1 check=1");
	yoke_scope *s = yoke_scope_begin("step");
	yoke_optim_add(o, 1, &w, &name, NULL);
	yoke_grad(yoke_sum(yoke_sqrt(w), YOKE_ALL), 1, &w, &g);
	yoke_optim_step(o, 1, &g, NULL);
	yoke_read(w, got, sizeof got);
	ok(yoke_error_code() &&
		   says(yoke_error(),
			(const char *const[]){ "backward of sqrt", "inf", "[1]", NULL }),
	   "an infinite gradient is an error: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
	yoke_error_clear();
	yoke_optim_free(o);
	yoke_free(w);
}

static int nan_mode(void)
{
	yk_log_to(keep_line, NULL);
	forward();
	backward();
	optimizer();
	innocent();
	return done();
}

static int bad_mode(void)
{
	const float one = 1;
	float got;
	for (int i = 0; i < 2; i++) {
		int err = yoke_read(yoke_exp(vector(1, &one)), &got, sizeof got);
		ok(err == YOKE_EINVAL &&
			   says(yoke_error(), (const char *const[]){ "check 'nans'", NULL }),
		   "try %d: %s", i, yoke_error());
		yoke_error_clear();
	}
	return done();
}

// ---- modes ----

static int child(const char *what)
{
	if (!strcmp(what, "nan") && !yk_device_choose(NULL)) {
		skip("the device", yoke_error());
		return done();
	}
	if (!strcmp(what, "nan"))
		return nan_mode();
	if (!strcmp(what, "bad"))
		return bad_mode();
	struct yk_device *d = yk_device_choose("fault");
	const struct fault_control *ctl = d ? d->ops->ext("fault") : NULL;
	return ok(ctl, "the fault backend: %s", yoke_error()) ? sync_mode(ctl) : done();
}

static void mode(const char *self, const char *settings, const char *what)
{
	char command[2048];
	snprintf(command, sizeof command, "%s '%s' %s 2>&1", settings, self, what);
	ok(tap_run(command), "%s %s", settings, what);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argv[1]);
	const char *modules = getenv("YOKE_TEST_MODULES");
	setenv("YOKE_PLUGIN_PATH", modules ? modules : "", 1);
	mode(argv[0], "YOKE_SYNC=1 YOKE_BACKEND=fault", "sync");
	mode(argv[0], "YOKE_CHECK=nan YOKE_BACKEND=cpu", "nan");
	mode(argv[0], "YOKE_CHECK=nan YOKE_BACKEND=cpu YOKE_EAGER=1", "nan");
	mode(argv[0], "YOKE_CHECK=nan YOKE_BACKEND=fault YOKE_FAULT_HOST=0", "nan");
	mode(argv[0], "YOKE_CHECK=nan YOKE_BACKEND=fault YOKE_FAULT_LACKS=map,softmax", "nan");
	const char *opencl = getenv("YOKE_TEST_OPENCL");
	if (opencl) {
		char *folder = strdup(opencl);
		*strrchr(folder, '/') = 0;
		setenv("YOKE_PLUGIN_PATH", folder, 1);
		mode(argv[0], "YOKE_CHECK=nan YOKE_BACKEND=opencl", "nan");
		free(folder);
	} else {
		skip("YOKE_CHECK=nan on OpenCL", "it is not built");
	}
	mode(argv[0], "YOKE_CHECK=nans YOKE_BACKEND=cpu", "bad");
	return done();
}
