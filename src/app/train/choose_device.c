// SPDX-License-Identifier: Apache-2.0
// Chooses a device by rules or by measurement.
#include "config.h"

#include "train/choose_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "device/device.h"

// ---- rules ----

struct yk_device_choice_advice yk_device_choice_rule(const struct yk_device_choice_facts *a)
{
	const bool image = a->channels > 0;
	if (!a->device)
		return (struct yk_device_choice_advice){ YK_WHICH_CPU, true,
							 "there is no other device", NULL };
	if (!a->trains)
		return (struct yk_device_choice_advice){ YK_WHICH_CPU, false,
						       "the workload does not train", NULL };
	if (a->samples < 200 || a->batch < 16)
		return (struct yk_device_choice_advice){
			YK_WHICH_CPU, a->samples < 100 || a->batch < 8,
			"fewer than 200 samples, or a batch of fewer than 16", NULL
		};
	if (image && a->channels < 20 && a->height < 128 && a->width < 128)
		return (struct yk_device_choice_advice){
			YK_WHICH_CPU, false,
			"images with fewer than 20 channels and smaller than 128 x 128", NULL
		};
	if (a->parameters < 1e4)
		return (struct yk_device_choice_advice){ YK_WHICH_CPU, false,
						       "fewer than 10,000 parameters", NULL };
	if (a->loader >= 0.5)
		return (struct yk_device_choice_advice){
			YK_WHICH_CPU, false, "loading data takes at least half of the time", NULL
		};
	if (a->samples > 500 && a->epochs >= 10 &&
	    ((a->channels >= 100 && a->height >= 256 && a->width >= 256) || a->parameters >= 1e6))
		return (struct yk_device_choice_advice){
			YK_WHICH_DEVICE, false, "a large model and a long training",
			a->batch < 32 ? "a batch of at least 32 would use the device better" : NULL
		};
	return (struct yk_device_choice_advice){ YK_WHICH_MEASURE, false, "no rule applies", NULL };
}

const struct yk_device_choice_tier *yk_device_choice_tier_of(double gb_s, double tflop_s)
{
	static const struct yk_device_choice_tier tier[] = {
		{ "entry", 1.2, 1.8, 16 },
		{ "mid", 1.8, 3, 16 },
		{ "high", 2.5, 4, 32 },
		{ "professional", 3, 8, 64 },
	};
	return &tier[gb_s < 230 || tflop_s < 2 ? 0 : gb_s < 420 ? 1 : gb_s < 1100 ? 2 : 3];
}

// ---- devices ----

static bool same_backend(const char *a, const char *b)
{
	size_t n = strcspn(a, ":");
	return n == strcspn(b, ":") && !memcmp(a, b, n);
}

int yk_device_choice_devices(bool one_a_backend, char id[YK_WHICH_DEVICES][48])
{
	const struct yk_device *cpu = yk_device_cpu();
	int n = 0;
	bool has_cpu = false;
	for (const struct yk_device *d = yk_devices(NULL); d && n < YK_WHICH_DEVICES; d = d->next) {
		bool known = d->alias || d->left;
		for (int i = 0; i < n && one_a_backend; i++)
			known |= same_backend(id[i], d->id);
		if (known)
			continue;
		has_cpu |= d == cpu;
		snprintf(id[n++], 48, "%s", d->id);
	}
	if (!has_cpu && cpu && n < YK_WHICH_DEVICES) // the CPU is always allowed
		snprintf(id[n++], 48, "%s", cpu->id);
	yoke_error_clear();
	return n;
}

// ---- measuring ----

// Large models get fewer groups, rounds and batches, so that measuring takes less than a minute.
enum { WARM = 2, GROUPS = 5, ENOUGH = 12, PATIENCE = 120 };
// ENOUGH: no further round begins after this many seconds of steps. PATIENCE: if the first round
// took longer, there is no second.

static int time_on(const struct yk_config *c, struct yk_device_choice_device *d, int round,
		   int64_t batch, double *seconds)
{
	static const struct yk_trial_options quick = {
		.warm = WARM, .groups = GROUPS, .each = 0.05, .enough = 1
	};
	struct yk_trial_options ask = quick;
	struct yk_trial trial;
	struct yk_config other;
	char text[48];
	snprintf(text, sizeof text, "batch=%lld", (long long)batch);
	int e = yk_config_with(c, batch > 0, (const char *[]){ text }, &other);
	if (e < 0)
		return e;
	ask.device = d->id;
	e = yk_trial_run(&other, &ask, &trial);
	yk_config_fini(&other);
	if (e == 0 && round >= 0)
		d->round[round] = trial.seconds;
	if (e == 0) {
		*seconds = trial.seconds;
		d->within = trial.spread;
		// without the one-time compilation of kernels
		d->spent = trial.seconds * (double)(WARM + trial.steps);
	} else if (!*d->why) {
		snprintf(d->why, sizeof d->why, "%.250s", yoke_error());
	}
	yoke_error_clear();
	return e;
}

// The batch between two timed ones at which both devices are equally fast, assuming that times are
// powers of the batch.
static double cross(const double batch[2], double a[2], double b[2])
{
	double first = log(a[0] / b[0]), second = log(a[1] / b[1]);
	return exp(log(batch[0]) + (log(batch[1]) - log(batch[0])) * first / (first - second));
}

// left: remaining seconds of steps.
static void find_crossing(const struct yk_config *c, struct yk_device_choice_times *t, int next,
			  double left)
{
	struct yk_device_choice_device *a = &t->device[t->best], *b = &t->device[next];
	const bool best_is_cpu = same_backend(a->id, "cpu:0");
	double batch[2] = { (double)t->batch, 0 }, x[2] = { a->seconds, 0 },
	       y[2] = { b->seconds, 0 };
	for (int i = 0; i < YK_WHICH_CROSSINGS; i++) {
		// the CPU is better at small batches
		int64_t at = best_is_cpu ? (int64_t)batch[0] * 4 : (int64_t)batch[0] / 4;
		left -= fmax(1, (double)at / batch[0]) * (a->spent + b->spent);
		if (at < 1 || at > 4096 || left < 0 || time_on(c, a, -1, at, &x[1]) < 0 ||
		    time_on(c, b, -1, at, &y[1]) < 0)
			return;
		batch[1] = (double)at;
		if (x[1] > y[1]) {
			t->crosses = cross(batch, x, y);
			return;
		}
		batch[0] = batch[1];
		x[0] = x[1];
		y[0] = y[1];
	}
}

bool yk_device_choice_another(int done, int wanted, double last, double left)
{
	return done < wanted && (left >= last || (done == 1 && last < PATIENCE));
}

int yk_device_choice_measure(const struct yk_config *c, int n, const char *const *id, int rounds,
			     bool crossing, struct yk_device_choice_times *t)
{
	double seconds, left = ENOUGH;
	int next = -1, rounds_done = 0;
	*t = (struct yk_device_choice_times){
		.best = -1,
		.ratio = NAN,
		.crosses = NAN,
		.devices = n < YK_WHICH_DEVICES ? n : YK_WHICH_DEVICES,
		.rounds = rounds < YK_WHICH_ROUNDS ? rounds : YK_WHICH_ROUNDS
	};
	const int64_t given = yk_config_int(c, YK_KEY_batch);
	t->batch = given == YK_AUTO ? 16 : given;
	for (int i = 0; i < t->devices; i++)
		snprintf(t->device[i].id, sizeof t->device[i].id, "%.47s", id[i]);
	for (double last = 0; yk_device_choice_another(rounds_done, t->rounds, last, left);
	     rounds_done++, left -= last) {
		last = 0;
		for (int i = 0; i < t->devices; i++) {
			struct yk_device_choice_device *d =
				&t->device[(i + rounds_done) % t->devices];
			if (!*d->why && time_on(c, d, rounds_done, t->batch, &seconds) == 0)
				last += d->spent;
		}
	}
	t->rounds = rounds_done;
	for (int i = 0; i < t->devices; i++) {
		struct yk_device_choice_device *d = &t->device[i];
		double copy[YK_WHICH_ROUNDS];
		memcpy(copy, d->round, sizeof copy);
		d->seconds = *d->why ? INFINITY : yk_median(t->rounds, copy, &d->spread);
		d->spread = fmax(d->spread, t->rounds == 1 ? d->within : 0);
		if (!*d->why && (t->best < 0 || d->seconds < t->device[t->best].seconds)) {
			next = t->best;
			t->best = i;
		} else if (!*d->why && (next < 0 || d->seconds < t->device[next].seconds)) {
			next = i;
		}
	}
	t->undecided = t->best >= 0 && next >= 0 && rounds > 1 && t->rounds < 2;
	if (t->best >= 0 && next >= 0 && !t->undecided) {
		double quotient[YK_WHICH_ROUNDS];
		for (int r = 0; r < t->rounds; r++)
			quotient[r] = t->device[next].round[r] / t->device[t->best].round[r];
		t->ratio = yk_median(t->rounds, quotient, &t->ratio_spread);
		if (t->rounds == 1)
			t->ratio_spread =
				t->ratio * (t->device[next].within / t->device[next].seconds +
					    t->device[t->best].within / t->device[t->best].seconds);
		if (crossing)
			find_crossing(c, t, next, left);
	}
	return 0;
}

int yk_device_choice_settle(struct yk_config *c, char summary[256])
{
	char id[YK_WHICH_DEVICES][48], argument[80];
	const char *list[YK_WHICH_DEVICES];
	struct yk_device_choice_times t = { .best = 0, .ratio = NAN };
	const int e = yk_config_apply_threads(c);
	if (e < 0)
		return e;
	const int n = yk_device_choice_devices(true, id);
	for (int i = 0; i < n; i++)
		list[i] = id[i];
	if (n > 1)
		yk_device_choice_measure(c, n, list, 1, false, &t);
	if (n < 1 || t.best < 0)
		return yk_fail(YOKE_ENODEV, "backend=fastest: %s",
			       n > 0 ? t.device[0].why : "no device found");
	snprintf(argument, sizeof argument, "backend=%.*s", (int)strcspn(id[t.best], ":"),
		 id[t.best]);
	if (isnan(t.ratio))
		snprintf(summary, 256, "%s, the only device", argument);
	else
		yk_snprintf(summary, 256, "%s, %.2f times as fast as the next best", argument,
			    t.ratio);
	return yk_config_settle_text(c, YK_KEY_backend, strchr(argument, '=') + 1);
}
