// SPDX-License-Identifier: Apache-2.0
// Tests memory of the host: the caller may overwrite it right after yoke_from and yoke_put, which
// copy; memory passed to yoke_wrap is used in place, never written, and released once in every
// case.

#include "config.h"

#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { N = 1037 }; // of no tile's size: reading behind the end would show under ASan

static int freed[8]; // calls of free_fn, by argument

static void note(void *arg)
{
	++*(int *)arg;
}

// Aligned as any device may ask, exactly n floats: 1, 2, 3, ..
static float *numbers(int n)
{
	void *p = NULL;
	if (posix_memalign(&p, 4096, (size_t)n * sizeof(float)))
		exit(99);
	for (int i = 0; i < n; i++)
		((float *)p)[i] = (float)(i + 1);
	return p;
}

static void free_memory(void *arg)
{
	free(arg);
	freed[0]++;
}

// Is every element k equal to a * (k + 1) + b?
static bool holds(yoke_tensor *t, double a, double b, const char *what)
{
	static float got[N];
	int wrong = -1;
	memset(got, 0xff, sizeof got);
	int err = yoke_read(t, got, sizeof got);
	for (int k = 0; k < N && wrong < 0; k++)
		if ((double)got[k] != a * (k + 1) + b)
			wrong = k;
	if (err || wrong >= 0)
		diag("%s: [%d] got %g, %s", what, wrong, (double)got[wrong < 0 ? 0 : wrong],
		     yoke_error());
	return ok(!err && wrong < 0, "%s", what);
}

static void scribble(void)
{
	float *d = numbers(N);
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, DIMS(N));
	yoke_scope *s = yoke_scope_begin("scribble");
	yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(N), d);
	yoke_put(v, d, N * sizeof *d);
	yoke_tensor *y = yoke_add(x, v);
	memset(d, 0xa5, N * sizeof *d);
	holds(y, 2, 0, "from and put have copied before they return");
	yoke_scope_end(s);
	yoke_free(v);
	free(d);
}

static uint64_t allocated(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s.pool_allocated;
}

static void zero_copy(bool here)
{
	float *d = numbers(N);
	uint64_t before = allocated();
	yoke_scope *s = yoke_scope_begin("wrap");
	yoke_tensor *x = yoke_wrap(yoke_f32, 1, DIMS(N), d, note, &freed[1]);
	if (here)
		ok(allocated() == before && !freed[1], "used in place: %llu bytes, %d calls",
		   (unsigned long long)(allocated() - before), freed[1]);
	else
		ok(allocated() > before && freed[1] == 1, "copied, and released at once: %d",
		   freed[1]);
	holds(yoke_add(x, x), 2, 0, "its elements");
	holds(yoke_neg(x), -1, 0, "again");
	yoke_scope_end(s);
	ok(freed[1] == 1, "released once, when the scope ends: %d", freed[1]);
	freed[1] = 0;
	free(d);
}

// A variable takes the memory over, and is then updated: not in that memory.
static void never_written(void)
{
	float *d = numbers(N);
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, DIMS(N));
	yoke_scope *s = yoke_scope_begin("update");
	yoke_assign(v, yoke_wrap(yoke_f32, 1, DIMS(N), d, note, &freed[2]));
	yoke_eval(0, NULL);
	yoke_scope_end(s);
	ok(!freed[2], "the variable holds it: %d", freed[2]);
	s = yoke_scope_begin("update");
	yoke_assign(v, yoke_add(v, yoke_const(1)));
	yoke_eval(0, NULL);
	yoke_scope_end(s);
	ok(freed[2] == 1, "no longer after an update: %d", freed[2]);
	bool same = true;
	for (int i = 0; i < N; i++)
		same &= d[i] == (float)(i + 1);
	ok(same, "the update did not write to it");
	free(d);
	holds(v, 1, 1, "but elsewhere");
	yoke_free(v);
}

static void pending(void)
{
	float *d = numbers(N);
	yoke_tensor *x = yoke_wrap(yoke_f32, 1, DIMS(N), d, note, &freed[3]);
	yoke_scope *s = yoke_scope_begin("pending");
	yoke_tensor *y = yoke_square(x);
	yoke_free(x);
	ok(!freed[3], "pending work holds it, too: %d", freed[3]);
	int err = yoke_eval(1, &y);
	ok(!err && freed[3] == 1, "until it was evaluated: %d", freed[3]);
	yoke_scope_end(s);
	free(d);
}

static void failures(void)
{
	static float three[3];
	yoke_tensor *x = yoke_wrap(yoke_f32, 1, DIMS(-1), three, note, &freed[4]);
	ok(!x && freed[4] == 1 && yoke_error_code() == YOKE_ESHAPE,
	   "refused and released: %d, %s", freed[4], yoke_error());
	yoke_error_clear();
	x = yoke_wrap(yoke_f32, 1, DIMS(3), NULL, note, &freed[4]);
	ok(!x && freed[4] == 2, "NULL, too: %d", freed[4]);
	yoke_error_clear();
	// an evaluation that fails
	float *d = numbers(N);
	int32_t bad = 3000;
	yoke_scope *s = yoke_scope_begin("fails");
	x = yoke_wrap(yoke_f32, 1, DIMS(N), d, note, &freed[5]);
	yoke_tensor *i = yoke_from(yoke_i32, 1, DIMS(1), &bad);
	yoke_tensor *y = yoke_gather(x, i, 0);
	float got;
	int err = yoke_read(y, &got, sizeof got);
	ok(err == (tap_late() ? YOKE_EFAILED : YOKE_ERANGE) && freed[5] == 0,
	   "after a failed evaluation the handle still holds it: %d, %s", freed[5], yoke_error());
	yoke_error_clear();
	holds(x, 1, 0, "and it is whole");
	yoke_scope_end(s);
	yoke_error_clear();
	ok(freed[5] == 1, "released once: %d", freed[5]);
	free(d);
	// empty, unaligned
	x = yoke_wrap(yoke_f32, 1, DIMS(0), three, note, &freed[6]);
	ok(x && freed[6] == 1, "an empty tensor holds nothing: %d", freed[6]);
	yoke_free(x);
	char *raw = (char *)numbers(N + 1);
	memmove(raw + 4, raw, N * sizeof(float));
	x = yoke_wrap(yoke_f32, 1, DIMS(N), raw + 4, note, &freed[6]);
	ok(x && freed[6] == 1, "memory aligned to its element size is used in place: %d", freed[6]);
	holds(x, 1, 0, "with its elements");
	yoke_free(x);
	memmove(raw + 1, raw + 4, N * sizeof(float));
	const int was = freed[6];
	x = yoke_wrap(yoke_f32, 1, DIMS(N), raw + 1, note, &freed[6]);
	ok(x && freed[6] == was + 1, "unaligned memory is copied: %d", freed[6]);
	memset(raw, 0xff, N * sizeof(float));
	free(raw);
	holds(x, 1, 0, "with its elements");
	yoke_free(x);
	x = yoke_wrap(yoke_f32, 1, DIMS(3), three, NULL, NULL);
	ok(x && !yoke_error_code(), "the release function is optional: %s", yoke_error());
	yoke_free(x);
}

// Bytes that are shared stay, whatever becomes of the tensor.
static void shared(void)
{
	const float one[] = { 1, 2, 3 };
	const void *at, *again;
	yoke_tensor *v = yoke_variable("v", yoke_f32, 1, DIMS(3));
	yoke_put(v, one, sizeof one);
	yoke_scope *step = yoke_scope_begin("share");
	yoke_assign(v, yoke_add(v, yoke_const(1)));
	yoke_tensor *s = yoke_share(v, &at);
	const float *x = at;
	ok(s && x[0] == 2 && x[2] == 4, "the bytes of a pending variable: %s", yoke_error());
	yoke_assign(v, yoke_mul(v, yoke_const(2)));
	yoke_tensor *t = yoke_share(v, &again);
	const float *y = again;
	yoke_scope_end(step);
	ok(t && y != x && x[0] == 2 && y[0] == 4, "an update writes elsewhere: %g, %g",
	   (double)x[0], (double)y[0]);
	yoke_free(v);
	yoke_free(t);
	ok(x[1] == 3, "and the shared value outlives it: %g", (double)x[1]);
	yoke_free(s);
	yoke_tensor *c = yoke_const(1);
	ok(!yoke_share(c, &at) && !at && yoke_error_code() == YOKE_EINVAL,
	   "a scalar has no bytes to share: %s", yoke_error());
	yoke_error_clear();
	yoke_free(c);
	char text[8];
	ok(yoke_setting_get("plan.max", text, sizeof text) > 0 &&
		   yoke_setting_set("plan.max", "7") == 0 &&
		   yoke_setting_get("plan.max", text, sizeof text) == 1 && text[0] == '7',
	   "a setting's value is read: %s", text);
	ok(yoke_setting_get("plan.maximum", text, sizeof text) == YOKE_ENOENT,
	   "an unknown setting: %s", yoke_error());
	yoke_error_clear();
}

// Where no scope is open, what was freed is not kept for what comes.
static void dropped(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_tensor *x = yoke_full(yoke_f32, 1, DIMS(4), 1), *y = yoke_keep(yoke_neg(x));
	uint64_t max = 0;
	for (int i = 0; i < 20000; i++) {
		yoke_tensor *z = yoke_keep(yoke_add(x, x));
		yoke_free(y);
		y = z;
		yoke_stats(&s);
		max = s.pending_nodes > max ? s.pending_nodes : max;
	}
	ok(max < 5000, "20000 operations, all but one dropped: at most %llu are pending",
	   (unsigned long long)max);
	float got[4] = { 0 };
	ok(yoke_read(y, got, sizeof got) == 0 && got[3] == 2, "the last one is correct: %g",
	   (double)got[3]);
	yoke_free(y);
	yoke_free(x);
}

// Handles that nobody freed or evaluated go with the context; a plain free serves as free_fn.
static void shutdown_(void)
{
	yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	float *mine = numbers(N), *d = numbers(N);
	yoke_tensor *x = yoke_wrap(yoke_f32, 1, DIMS(N), mine, free_memory, NULL);
	yoke_free(x); // free_memory(NULL)
	x = yoke_wrap(yoke_f32, 1, DIMS(N), d, free_memory, d);
	yoke_keep(yoke_exp(x));
	yoke_scope_begin("open");
	x = yoke_wrap(yoke_f32, 1, DIMS(N), mine, note, &freed[7]);
	ok(x && freed[0] == 1 && !freed[7], "held: %d, %d", freed[0], freed[7]);
	yoke_context_free(ctx);
	yoke_use(former);
	ok(freed[0] == 2 && freed[7] == 1, "released with the context: %d, %d", freed[0], freed[7]);
	free(mine);
}

int main(void)
{
	const char *modules = getenv("YOKE_TEST_MODULES");
	tap_seed();
	if (modules)
		setenv("YOKE_PLUGIN_PATH", modules, 1);
	shared();
	dropped();
	shared();
	shared();
	dropped();
	scribble();
	zero_copy(true);
	never_written();
	pending();
	if (!tap_eager())
		failures();
	shutdown_();
	yoke_context *other = yoke_context_new("skeleton");
	if (other) { // has no segment_wrap
		yoke_context *former = yoke_use(other);
		freed[1] = 0;
		zero_copy(false);
		yoke_use(former);
		yoke_context_free(other);
	} else {
		skip("a device that copies", yoke_error());
		yoke_error_clear();
	}
	return done();
}
