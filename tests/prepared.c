// SPDX-License-Identifier: Apache-2.0
// Tests prepared ops: a plan requests one handle per step, for all its launches, and returns them
// after the last one, also while the device is late.
#include "config.h"

#include "device/device.h"
#include "device/pool.h"
#include "fault/fault.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

static const struct fault_control *ctl;

// x = x * 2 + 1
static int step(yoke_tensor *x)
{
	yoke_assign(x, yoke_add(yoke_mul(x, yoke_const(2)), yoke_const(1)));
	return yoke_eval(0, NULL);
}

static void same_plan(void)
{
	enum { N = 37, STEPS = 20 };
	float start[N], got[N], want[N];
	int wrong = 0;

	for (int i = 0; i < N; i++)
		want[i] = start[i] = (float)rnd_int(-9, 9);
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, DIMS(N));
	yoke_put(x, start, sizeof start);
	step(x);
	long prepared = ctl->calls("prepare"), run = ctl->calls("run");
	for (int t = 1; t < STEPS; t++)
		wrong += step(x) != 0;
	ok(ctl->calls("prepare") == prepared && ctl->calls("run") >= run + STEPS - 1,
	   "%ld launches of a cached plan prepare nothing", ctl->calls("run") - run);
	for (int t = 0; t < STEPS; t++)
		for (int i = 0; i < N; i++)
			want[i] = want[i] * 2 + 1;
	wrong += yoke_read(x, got, sizeof got);
	for (int i = 0; i < N; i++)
		wrong += got[i] != want[i];
	ok(!wrong, "%d steps give the results of the first: %d wrong", STEPS, wrong);
	yoke_free(x);
}

// Each size is a plan, of which one is kept: a new one evicts the previous one, which may still
// run.
static void many_plans(void)
{
	enum { LIMIT = 40 };
	float from[LIMIT], got[LIMIT];
	int wrong = 0;

	for (int n = 1; n <= LIMIT; n++) {
		yoke_tensor *x = yoke_variable("x", yoke_f32, 1, DIMS(n));
		for (int i = 0; i < n; i++)
			from[i] = (float)rnd_int(-9, 9);
		wrong += yoke_put(x, from, (size_t)n * sizeof *from) != 0;
		wrong += step(x) != 0 || step(x) != 0;
		if (n % 7 == 0) {
			wrong += yoke_read(x, got, (size_t)n * sizeof *got) != 0;
			for (int i = 0; i < n; i++)
				wrong += got[i] != from[i] * 4 + 3;
		}
		yoke_free(x);
	}
	ok(!wrong, "plans that are made and dropped: %d wrong", wrong);
}

int main(void)
{
	const char *modules = getenv("YOKE_TEST_MODULES");

	setenv("YOKE_PLUGIN_PATH", modules ? modules : "", 1);
	setenv("YOKE_PLAN_MAX", "1", 1);
	struct yk_device *d = modules ? yk_device_choose("fault") : NULL;
	if (!(ctl = d ? d->ops->ext("fault") : NULL)) {
		ok(false, "the fault backend: %s", yoke_error());
		return done();
	}
	tap_seed();
	for (int lag = 0; lag < 2; lag++) {
		yk_pool_trim(d->pool);
		const long before = ctl->alive();
		yoke_context *ctx = yoke_context_new("fault");
		yoke_use(ctx);
		ctl->lag(lag ? 5000 : 0);
		same_plan();
		many_plans();
		yoke_use(NULL);
		yoke_context_free(ctx);
		ctl->lag(0);
		yk_pool_trim(d->pool);
		yk_pool_trim(d->pinned);
		ok(!ctl->early() && ctl->alive() <= before,
		   "%ld handles were released too early, %ld objects leak", ctl->early(),
		   ctl->alive() - before);
	}
	return done();
}
