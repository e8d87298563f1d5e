// SPDX-License-Identifier: Apache-2.0
// Tests replay: repeated plans are recorded as graphs and have the bits of plain launches,
// whatever numbers the host sets, wherever blocks are, and whichever call fails.
#include "config.h"

#include "device/device.h"
#include "device/pool.h"
#include "fault/fault.h"
#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { N = 11, STEPS = 12 };

static const struct fault_control *ctl;
static struct yk_device *device;

struct trained {
	float w[N], loss[STEPS];
	uint64_t replays, launches;
	int err;
};

// The input of a step.
static void draw(int step, float *x)
{
	for (int i = 0; i < N; i++)
		x[i] = (float)((step * 7 + i * 5) % 13 - 6) / 8;
}

static double rate(int step)
{
	return .5 / (1 + step);
}

// w -= lr * gradient of the mean of (x * w - 1)^2, with dropout.
static int step(yoke_tensor *w, yoke_tensor *x, yoke_tensor *lr, int t, double drop, float *loss)
{
	float in[N];
	draw(t, in);
	yoke_scope *s = yoke_scope_begin("step");
	yoke_random_set(77, t);
	yoke_put(x, in, sizeof in);
	yoke_scalar_set(lr, rate(t));
	yoke_tensor *y = yoke_sub(yoke_mul(x, w), yoke_const(1)), *g;
	if (drop > 0)
		y = yoke_dropout(y, drop);
	yoke_tensor *l = yoke_mean(yoke_square(y), YOKE_ALL);
	yoke_grad(l, 1, &w, &g);
	yoke_assign(w, yoke_sub(w, yoke_mul(g, lr)));
	yoke_read(l, loss, sizeof *loss);
	return yoke_scope_end(s);
}

// Trains in a new context; `before` is called before each step.
static struct trained train(const char *replay, double drop, void (*before)(int step))
{
	struct trained r = { 0 };
	struct yoke_stats s = { .size = sizeof s };
	float start[N];
	yoke_setting_set("replay", replay);
	yoke_context *ctx = yoke_context_new("fault");
	yoke_use(ctx);
	for (int i = 0; i < N; i++)
		start[i] = (float)rnd_int(-9, 9) / 4;
	yoke_tensor *w = yoke_variable("w", yoke_f32, 1, DIMS(N)),
		    *x = yoke_variable("x", yoke_f32, 1, DIMS(N));
	yoke_tensor *lr = yoke_scalar(0);
	yoke_put(w, start, sizeof start);
	for (int t = 0; t < STEPS && !r.err; t++) {
		if (before)
			before(t);
		r.err = step(w, x, lr, t, drop, &r.loss[t]);
	}
	if (!r.err)
		yoke_read(w, r.w, sizeof r.w);
	yoke_stats(&s);
	r.replays = s.replays;
	r.launches = s.launches;
	yoke_free(lr);
	yoke_free(x);
	yoke_free(w);
	yoke_use(NULL);
	yoke_context_free(ctx);
	return r;
}

static bool same(const struct trained *a, const struct trained *b)
{
	return !a->err && !b->err && !memcmp(a->w, b->w, sizeof a->w) &&
	       !memcmp(a->loss, b->loss, sizeof a->loss);
}

// Both modes from the same numbers.
static struct trained compare(const char *what, double drop, void (*before)(int))
{
	const uint64_t was = tap_state;
	struct trained plain = train("0", drop, before);
	tap_state = was;
	struct trained replayed = train("1", drop, before);
	ok(same(&plain, &replayed) && !plain.replays,
	   "%s: the bits of plain launches, %llu of %d replayed", what,
	   (unsigned long long)replayed.replays, STEPS);
	return replayed;
}

// The numbers without dropout, in float64.
static void against_float64(void)
{
	double w[N], worst = 0;
	const uint64_t was = tap_state;
	for (int i = 0; i < N; i++)
		w[i] = (float)rnd_int(-9, 9) / 4;
	tap_state = was;
	struct trained r = train("1", 0, NULL);
	for (int t = 0; t < STEPS; t++) {
		float x[N];
		double loss = 0;
		draw(t, x);
		for (int i = 0; i < N; i++) {
			double y = x[i] * w[i] - 1;
			loss += y * y / N;
			w[i] -= (float)rate(t) * 2 * y * x[i] / N;
		}
		worst = fmax(worst, fabs(loss - r.loss[t]));
	}
	for (int i = 0; i < N; i++)
		worst = fmax(worst, fabs(w[i] - r.w[i]));
	ok(!r.err && worst < 1e-5, "12 steps against float64: %g", worst);
	// put alternates between two blocks: two steps of each are launched, then all are replayed
	ok(r.replays >= STEPS - 5 && r.replays < STEPS, "%llu of %d steps are replayed",
	   (unsigned long long)r.replays, STEPS);
}

// The device frees a segment.
static void trim(int step)
{
	if (step != 6)
		return;
	yoke_free(yoke_variable("large", yoke_u8, 1, DIMS(64 << 20)));
	yk_pool_trim(device->pool);
}

static yoke_tensor *extra[STEPS];

// Other allocations come between: a launch's arguments keep their offsets.
static void fill_gaps(int step)
{
	extra[step] = yoke_keep(yoke_variable("extra", yoke_f32, 1, DIMS((step + 1) * 700)));
}

// Other allocations take the input's block, so that it has a new block each time.
static void crowd(int step)
{
	extra[step] = yoke_keep(yoke_variable("extra", yoke_f32, 1, DIMS(N)));
}

static void no_record(int step)
{
	if (step == 0)
		ctl->arm("record", 1);
}

static void not_recorded(int step)
{
	if (step == 0)
		ctl->arm("recorded", 1);
}

static void fails(void)
{
	struct trained r = compare("graph_begin fails", 0, no_record);
	ok(!r.replays, "and is not tried again");
	r = compare("graph_end fails", 0, not_recorded);
	ok(!r.replays, "and is not tried again");
	ctl->arm("record", 0);
	ctl->arm("recorded", 0);
	ctl->arm("replay", 3);
	r = train("1", 0, NULL);
	ctl->arm("replay", 0);
	ok(r.err == YOKE_EDEVICE && strstr(yoke_error(), "replay from step 1 of ") &&
		   strstr(yoke_error(), "call 3"),
	   "graph_run fails: %s", yoke_error());
	yoke_error_clear();
}

int main(void)
{
	const char *modules = getenv("YOKE_TEST_MODULES");
	setenv("YOKE_PLUGIN_PATH", modules ? modules : "", 1);
	device = modules ? yk_device_choose("fault") : NULL;
	if (!(ctl = device ? device->ops->ext("fault") : NULL)) {
		ok(false, "the fault backend: %s", yoke_error());
		return done();
	}
	tap_seed();
	yk_pool_trim(device->pool);
	const long alive = ctl->alive();
	for (int lag = 0; lag < 2; lag++) {
		ctl->lag(lag ? 3 : 0);
		against_float64();
		compare("numbers, and dropout", .4, NULL);
		struct trained r = compare("memory given back", 0, trim);
		ok(r.replays > 0 && r.replays <= STEPS - 4, "a changed plan is recorded anew: %llu",
		   (unsigned long long)r.replays);
		r = compare("values that stay come between", 0, fill_gaps);
		ok(r.replays >= STEPS - 5, "a moved block does not matter: %llu",
		   (unsigned long long)r.replays);
		r = compare("blocks that never come again", 0, crowd);
		ok(!r.replays, "plans with varying blocks are not recorded: %llu",
		   (unsigned long long)r.replays);
		fails();
	}
	ctl->lag(0);
	yk_pool_trim(device->pool);
	yk_pool_trim(device->pinned);
	ok(ctl->alive() <= alive && !ctl->early(), "%ld objects leak", ctl->alive() - alive);
	return done();
}
