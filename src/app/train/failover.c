// SPDX-License-Identifier: Apache-2.0
// Creates a run's trainer, and replaces it by one on another device when a device fails.
#include "config.h"

#include "train/run.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "device/usable.h"
#include "graph/context.h"
#include "train/trainer_open.h"

enum { READINGS = 100000, LOST_TEXT = 2048 };

// Records a window that was skipped in the next step.
static void data_failed(void *arg, const struct yoke_data_error *d)
{
	struct yk_run *r = arg;
	yk_data_errors_add(&r->data_errors, r->trainer->replica.step + 1, d);
}

static int make(struct yk_run *r, struct yk_config *c, const char *folder,
		const struct yk_checkpoint *ck)
{
	int e = yk_trainer_share(r->corpus, c, folder, ck, &r->trainer);
	if (e < 0)
		return e;
	r->trainer->feed.on_error = data_failed;
	r->trainer->feed.on_error_arg = r;
	r->trainer->feed.watched = r->watch.whole ? READINGS : 0;
	return 0;
}

// Continues the run on the next chosen device: from the last snapshot or checkpoint, or from the
// beginning.
static int rebuild(struct yk_run *r, struct yk_config *c)
{
	struct yk_checkpoint ck;
	// with resume=best, `out` has another step until the run saves there
	const bool elsewhere = r->from && r->done.saved < 0;
	const char *folder = elsewhere ? r->from : r->out;
	bool exists = yk_checkpoint_exists(folder);
	int e = exists ? yk_checkpoint_open(folder, &ck) : 0;
	if (e < 0)
		return e;
	r->done.saved = exists && !elsewhere ? ck.step : -1;
	e = make(r, c, folder, exists ? &ck : NULL);
	if (exists)
		yk_checkpoint_fini(&ck);
	if (e == 0 && r->snapshot.taken && r->snapshot.step > r->trainer->replica.step)
		e = yk_snapshot_put(&r->snapshot, r->trainer);
	if (e == 0 && !(r->profile = yk_profile_new(r->watch.whole)))
		e = yoke_error_code();
	return e == 0 ? yk_watch_begin(&r->watch, r->out, &r->progress) : e;
}

bool yk_run_device_failed(int code)
{
	const struct yoke_context *ctx = yk_current();
	return ctx && code < 0 && (code == YOKE_EDEVICE || ctx->failure.code == YOKE_EDEVICE);
}

// Whether the error was a device failure. If so, `what` describes it, without advice that is meant
// for programs. after: the last step known to be complete, -1: none was started. begun: the last
// one launched; the failure is between them.
static bool device_lost(int code, int64_t after, int64_t begun, char what[LOST_TEXT])
{
	const struct yoke_context *ctx = yk_current();
	bool late = ctx && ctx->failure.code == YOKE_EDEVICE;
	const char *why = late ? ctx->failure.text : yoke_error();
	char when[80] = "before the first step";
	if (!ctx || (code != YOKE_EDEVICE && !(code == YOKE_EFAILED && late)))
		return false;
	if (after >= 0)
		snprintf(when, sizeof when, "after step %" PRId64, after);
	if (after >= 0 && begun > after + 1)
		yk_snprintf(when, sizeof when,
			    "after step %" PRId64 " and before the end of step %" PRId64, after,
			    begun + 1);
	if (yk_device_verdict(ctx->device) < 0) // not lost, but its results are not trusted
		snprintf(what, LOST_TEXT, "%s", why);
	else
		snprintf(what, LOST_TEXT, "%s was lost %s: %s", ctx->device->id, when, why);
	return true;
}

// Abandons a lost device with everything on it. False: it was the last device.
static bool leave_device(struct yk_run *r)
{
	struct yoke_context *ctx = yk_current();
	yoke_error_clear();
	if (yk_device_leave(ctx->device) < 0)
		return false;
	yk_profile_free(r->profile);
	yk_watch_drop(&r->watch);
	yk_trainer_free(r->trainer);
	r->profile = NULL;
	r->trainer = NULL;
	yoke_context_free(ctx);
	yoke_error_clear(); // further errors of the failed device
	return true;
}

int yk_run_ended(const struct yk_run *r, int code, const char *what)
{
	yoke_error_clear();
	if (r->done.saved < 0)
		return yk_fail(code, "%s; no checkpoint was saved", what);
	return yk_fail(code, "%s; %s holds step %" PRId64 ": continue with resume=1", what, r->out,
		       r->done.saved);
}

int yk_run_make(struct yk_run *r, struct yk_config *c, const struct yk_checkpoint *ck)
{
	char what[LOST_TEXT];
	int e;
	while ((e = make(r, c, r->from ? r->from : r->out, ck)) < 0 &&
	       device_lost(e, -1, -1, what)) {
		if (!leave_device(r)) {
			yoke_error_clear();
			return yk_fail(e, "%s", what);
		}
		yk_warn("train", "%s; trying the next device", what);
	}
	return e;
}

int yk_run_rescue(struct yk_run *r, struct yk_config *c, int code)
{
	char what[LOST_TEXT];
	if (!device_lost(code, r->done.logged,
			 r->trainer ? r->trainer->replica.step : r->done.logged, what))
		return code;
	// a pipe cannot be read again
	const bool passed = r->trainer && yk_data_endless(r->trainer->feed.data);
	if (!leave_device(r) || passed)
		return yk_run_ended(r, code, what);
	int e = rebuild(r, c);
	if (e < 0)
		return e;
	const struct yk_trainer *t = r->trainer;
	yk_progress_close(&r->progress);
	yk_warn("train", "%s; training continues on %s from step %" PRId64, what,
		yk_current()->device->id, t->replica.step);
	yk_runlog_device(&r->log, yk_current()->device->id);
	yk_run_record_device(r, what);
	r->done.logged = r->epochs.logged = t->replica.step;
	r->done.validated = r->done.saved;
	r->epochs.done = yk_run_epochs(t);
	r->clock.busy = r->clock.files = 0; // in step with the new profile
	yk_run_print_progress(r, c);
	return 0;
}
