// SPDX-License-Identifier: Apache-2.0
// Runs and times a few steps of a configuration.
#include "config.h"

#include "train/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/param.h"
#include "graph/context.h"
#include "train/check.h"
#include "train/trainer.h"
#include "train/trainer_open.h"

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

double yk_median(int n, double *x, double *spread)
{
	qsort(x, (size_t)n, sizeof *x, by_value);
	if (spread)
		*spread = (x[n * 3 / 4] - x[n / 4]) / 2;
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static int some_steps(struct yk_trainer *t, int64_t n)
{
	int e = 0;
	for (int64_t i = 0; i < n && e == 0; i++)
		e = yk_trainer_step(t);
	return e;
}

static int timed(struct yk_trainer *t, const struct yk_trial_options *ask, struct yk_trial *to)
{
	double group[YK_TRIAL_GROUPS];
	struct yk_record record = { .loss = NAN };
	int64_t each = 1, left = ask->max ? ask->max - ask->warm : INT64_MAX;
	int n = 0, e = some_steps(t, ask->warm);
	if (e == 0)
		e = yk_trainer_record(t, &record);
	const double first = yk_seconds();
	while (e == 0 && n < ask->groups && n < YK_TRIAL_GROUPS && left >= each) {
		double began = yk_seconds();
		if (n && ask->enough && began - first > ask->enough)
			break;
		e = some_steps(t, each);
		if (e == 0)
			e = yk_trainer_record(t, &record);
		double took = yk_seconds() - began;
		left -= each;
		// too short for a reliable time
		if (e == 0 && took < ask->each && n == 0 && left > each) {
			each = (int64_t)fmin(
				fmin(1 + (double)each * 1.2 * ask->each / fmax(took, 1e-6),
				     4. * (double)each),
				(double)left);
			continue;
		}
		group[n++] = took / (double)each;
		to->steps += each;
	}
	if (e == 0 && n == 0)
		e = yk_fail(YOKE_EINVAL, "a trial of %lld steps has no step to time",
			    (long long)ask->max);
	if (e == 0)
		to->seconds = yk_median(n, group, &to->spread);
	to->loss = (double)record.loss;
	return e;
}

static int run(struct yk_config *c, const struct yk_trial_options *ask, struct yk_trial *to)
{
	struct yoke_context *ctx, *former;
	struct yk_trainer *t = NULL;
	struct yoke_stats stats = { .size = sizeof stats };
	char backend[64];
	if (ask->device) {
		snprintf(backend, sizeof backend, "%.*s", (int)strcspn(ask->device, ":"),
			 ask->device);
		if (strchr(ask->device, ':'))
			yk_param_set("device", ask->device, YK_ARGUMENT);
	}
	if (!(ctx = yoke_context_new(ask->device ? backend : NULL)))
		return yoke_error_code();
	former = yoke_use(ctx);
	snprintf(to->device, sizeof to->device, "%.47s", ctx->device->id);
	int e = yk_trainer_new(c, "trial", NULL, &t);
	if (e == 0)
		e = yoke_stats_reset_peaks();
	if (e == 0)
		e = timed(t, ask, to);
	if (e == 0)
		e = yoke_stats(&stats);
	to->peak = stats.pool_allocated_peak;
	to->batch = t ? t->batch * t->replica.batches.accumulate : 0;
	yk_trainer_free(t);
	yk_trainer_leave(ctx, former);
	return e;
}

// Settings that a configuration or a trial changes.
static const char *const settings[] = { "backend", "device",    "memory",
					"threads", "recompute", "spill" };
enum { SETTINGS = sizeof settings / sizeof *settings };

int yk_trial_run(const struct yk_config *c, const struct yk_trial_options *ask, struct yk_trial *to)
{
	struct yk_config own;
	char *was[SETTINGS];
	char backend[80];
	*to = (struct yk_trial){ .loss = NAN };
	snprintf(backend, sizeof backend, "backend=%.*s",
		 ask->device ? (int)strcspn(ask->device, ":") : 0, ask->device ? ask->device : "");
	int e = yk_config_with(c, ask->device != NULL, (const char *[]){ backend }, &own);
	if (e < 0)
		return e;
	for (int i = 0; i < SETTINGS; i++) {
		// settings of backends exist once the backend is loaded
		struct yk_param *p = yk_param_find(settings[i]);
		was[i] = p ? strdup(yk_param_str(p)) : NULL;
	}
	e = yk_config_check(&own);
	if (e == 0)
		e = yk_config_apply(&own);
	if (e == 0)
		e = run(&own, ask, to);
	struct yk_error_aside *aside = yk_error_aside();
	for (int i = 0; i < SETTINGS; i++) {
		if (was[i])
			yk_param_set(settings[i], was[i], YK_ARGUMENT);
		free(was[i]);
	}
	yoke_error_clear();
	yk_error_restore(aside);
	yk_config_fini(&own);
	return e;
}
