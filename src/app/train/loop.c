// SPDX-License-Identifier: Apache-2.0
// The callbacks of `yoke train` in the training loop: logging, validation, saving.
#include "config.h"

#include "train/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "parallel/compress.h"
#include "parallel/consistency.h"
#include "parallel/ranks.h"
#include "train/steps.h"
#include "parallel/gather_checkpoint.h"
#include "parallel/zero.h"
#include "yoke-observe.h"

// The signal that asks the run to stop. With ranks, the request counts once all of them have
// received it, after the same step.
static int asked_to_end(const struct yk_run *r)
{
	const int signal = atomic_load(&r->stop->signal);
	if (!r->trainer->replica.grid.all)
		return signal;
	return !r->trainer->replica.ends ? 0 : signal ? signal : SIGINT;
}

// ---- between steps ----

int64_t yk_run_epochs(const struct yk_trainer *t)
{
	return t->feed.position.epoch +
	       (t->feed.position.index >= yk_data_train_windows(t->feed.data));
}

// Adds the time since the training clock was started to the run's statistics, and restarts it.
static void clock_lap(struct yk_run *r)
{
	const struct yk_trainer *t = r->trainer;
	double now = yk_seconds(), windows = (double)(t->replica.step - r->done.first) *
					     (double)(t->batch * t->replica.batches.count);
	r->clock.busy += now - r->clock.resumed;
	r->state.busy += now - r->clock.resumed;
	r->state.epochs = windows / (double)yk_data_train_windows(t->feed.data);
	r->clock.resumed = now;
}

static int log_step(struct yk_run *r)
{
	struct yk_trainer *t = r->trainer;
	struct yk_record record;
	if (!r->leads)
		return 0;
	int e = yk_trainer_record(t, &record); // waits for the step, so the clock stops after it
	if (e < 0)
		return e;
	clock_lap(r);
	struct yoke_stats stats = { .size = sizeof stats };
	e = yoke_stats(&stats);
	if (e < 0)
		return e;
	double per_step = (double)(t->batch * t->replica.batches.count * t->context);
	struct yk_step_metrics m = {
		.step = t->replica.step,
		.tokens = t->replica.step * t->batch * t->replica.batches.count * t->context,
		.loss = record.loss,
		.lr = t->lr,
		.grad_norm = record.grad_norm,
		.tokens_per_s = per_step * (double)(t->replica.step - r->done.logged) /
				fmax(r->clock.busy, 1e-9),
		.peak_bytes = stats.pool_allocated_peak,
		.data = yk_trainer_data(t),
		.leaks = yk_model_leaks(t->replica.net->model, &t->replica.net->shape),
		.layers = t->replica.net->shape.layers,
		.experts = t->replica.net->shape.experts,
	};
	float *shares = NULL;
	if (t->replica.net->shares && (shares = malloc(yoke_bytes(t->replica.net->shares))) &&
	    (e = yoke_read(t->replica.net->shares, shares, yoke_bytes(t->replica.net->shares))) <
		    0) {
		free(shares);
		return e;
	}
	m.shares = shares;
	if (t->replica.grid.all) {
		m.ranks = yoke_group_size(t->replica.grid.all);
		yk_ranks_released(&t->replica, &m.waited, &m.sent, &m.slowest);
	}
	if (t->replica.scaler) {
		struct yoke_scaler_stats s = { .size = sizeof s };
		yoke_scaler_stats(t->replica.scaler, &s);
		m.scale = s.scale;
		m.skipped = t->skipped;
		m.overflow = !t->overflowed ? NULL : *s.name ? s.name : "all together";
	}
	r->done.logged = t->replica.step;
	r->clock.busy = 0;
	if (isfinite(m.loss))
		r->state.loss = m.loss;
	r->state.peak_bytes = m.peak_bytes;
	r->state.tokens_per_s =
		per_step * (double)(t->replica.step - r->done.first) / r->state.busy;
	yk_progress_logged(&r->progress, &m);
	r->progress.last.shares = NULL; // valid only during this call
	free(shares);
	return 0;
}

// Reports completed epochs, at most once per log_every steps.
static int log_epoch(struct yk_run *r, bool end)
{
	int64_t done = yk_run_epochs(r->trainer), step = r->trainer->replica.step;
	struct yk_memory memory;
	if (!r->leads || done == r->epochs.done || (!end && step - r->epochs.logged < r->every.log))
		return 0;
	int e = yk_memory_read(&memory);
	if (e < 0)
		return e;
	double now = yk_seconds(),
	       seconds = (now - r->epochs.began) / (double)(done - r->epochs.done);
	r->epochs.done = done;
	r->epochs.logged = step;
	r->epochs.began = now;
	yk_progress_memory(&r->progress, step, done, seconds, &memory);
	return 0;
}

static int unsaved(const struct yk_run *r, int code)
{
	char advice[512];
	if (r->done.saved < 0)
		return yk_progress_gave_up(
			code, "no checkpoint was saved: free space or choose another out");
	snprintf(advice, sizeof advice,
		 "%s holds step %" PRId64 ": free space and continue with resume=1",
		 r->out, r->done.saved);
	return yk_progress_gave_up(code, advice);
}

// Saves a checkpoint in that directory; seconds of writing it to *took, 0 on ranks that do not
// write.
static int save_in(struct yk_run *r, const char *folder, double *took)
{
	*took = 0;
	int e = r->trainer->replica.grid.all ? yk_ranks_check_replicas(&r->trainer->replica, true) :
					       0;
	if (e == 0)
		e = yk_compress_mean(&r->trainer->replica);
	if (e == 0)
		e = yk_checkpoint_gather_begin(&r->trainer->replica);
	if (e == 0 && !r->leads)
		e = yk_checkpoint_gather_serve(&r->trainer->replica);
	if (e < 0 || !r->leads) {
		yk_checkpoint_gather_end(&r->trainer->replica);
		return e;
	}
	double busy = yk_profile_busy(r->profile), began = yk_seconds();
	yoke_range_push("save");
	e = yk_trainer_save(r->trainer, folder);
	if (e < 0 && yk_progress_again(&r->progress, e) &&
	    (e = yk_trainer_save(r->trainer, folder)) < 0)
		e = unsaved(r, e);
	yoke_range_pop();
	yk_checkpoint_gather_end(&r->trainer->replica);
	r->clock.files += yk_seconds() - began - (yk_profile_busy(r->profile) - busy);
	*took = yk_seconds() - began;
	return e;
}

static int save(struct yk_run *r)
{
	double took;
	if (!r->saves || r->done.saved == r->trainer->replica.step)
		return 0;
	const int e = save_in(r, r->out, &took);
	if (e < 0 && r->leads)
		return e;
	r->done.saved = r->trainer->replica.step;
	if (r->leads)
		yk_records_saved(r->record, r->trainer->replica.step, took);
	return e;
}

// ---- the lowest validation loss ----

int yk_run_best_begin(struct yk_run *r, const struct yk_config *c)
{
	struct yk_trainer *t = r->trainer;
	r->best.saves = !strcmp(yk_config_str(c, YK_KEY_keep_best), "1");
	r->best.stop_after = yk_config_int(c, YK_KEY_stop_after);
	r->best.saved = YK_BEST_NONE;
	if (!r->best.saves && !r->best.stop_after) {
		t->best = YK_BEST_NONE;
		return 0;
	}
	if (yk_data_valid_windows(t->feed.data) == 0)
		return yk_fail(
			YOKE_EINVAL, "%s=%s: there is nothing to validate on; give valid=FILE%s",
			r->best.saves ? "keep_best" : "stop_after",
			yk_config_str(c, r->best.saves ? YK_KEY_keep_best : YK_KEY_stop_after),
			yk_data_endless(t->feed.data) ? "" : ", or a fraction above 0");
	if (!r->best.saves || !r->from)
		return 0;
	const int e = yk_best_kept(r->out, &r->best.saved);
	if (e == 0 && r->best.saved.step < 0) // so that the lowest loss is that of a checkpoint
		t->best = YK_BEST_NONE;
	return e;
}

bool yk_run_stopped_early(const struct yk_run *r)
{
	return r->best.stop_after && r->trainer->best.since >= r->best.stop_after &&
	       r->trainer->replica.step < r->trainer->steps;
}

static int save_best(struct yk_run *r)
{
	double took;
	char *folder = yk_best_folder(r->out);
	const int e = folder ? save_in(r, folder, &took) : yoke_error_code();
	free(folder);
	if (e == 0 && r->leads)
		yk_run_record_best(r, took);
	return e;
}

// All ranks have the same loss, and so decide alike.
static int validated(struct yk_run *r, double loss)
{
	struct yk_trainer *t = r->trainer;
	if (!r->best.saves && !r->best.stop_after)
		return 0;
	const uint64_t data = yk_data_fingerprint_all(t->feed.data);
	yk_best_count(&t->best, t->replica.step, loss, data);
	return r->best.saves && yk_best_count(&r->best.saved, t->replica.step, loss, data) ?
		       save_best(r) :
		       0;
}

// ---- validation ----

static bool can_validate(const struct yk_run *r)
{
	return yk_data_valid_windows(r->trainer->feed.data) > 0 &&
	       r->done.validated != r->trainer->replica.step;
}

// Called between the batches of a validation.
static bool validate_on(void *arg, int64_t done, int64_t windows)
{
	struct yk_run *r = arg;
	if (!r->trainer->replica.grid.all && atomic_load(&r->stop->signal))
		return false;
	if (r->leads)
		yk_progress_validating(&r->progress, r->trainer->replica.step, done, windows);
	return true;
}

// Records a validation window that was skipped after this step.
static void window_failed(void *arg, const struct yoke_data_error *x)
{
	struct yk_run *r = arg;
	struct yoke_data_error here = *x;
	here.epoch = r->trainer->feed.position.epoch;
	yk_data_errors_add(&r->data_errors, r->trainer->replica.step, &here);
}

// Validates. A signal interrupts it, without a result, unless several ranks take part.
static int validate(struct yk_run *r)
{
	double loss;
	if (!can_validate(r))
		return 0;
	const struct yk_trainer *t = r->trainer;
	struct yk_skips skips;
	const bool skip = yk_skips_of(yk_config_str(t->replica.config, YK_KEY_on_error), &skips);
	skips.report = r->leads ? window_failed : NULL;
	skips.arg = r;
	yoke_range_push("validate");
	const int e = yk_model_validate(t->replica.net, t->feed.data, t->replica.group,
					yk_zero_gathered(&t->replica), t->batch, t->valid_windows,
					skip ? &skips : NULL, validate_on, r, &loss);
	yoke_range_pop();
	r->trainer->feed.starved |= e == YOKE_EIO || e == YOKE_EFORMAT;
	if (e < 0 || (!t->replica.grid.all && atomic_load(&r->stop->signal)))
		return e;
	r->done.validated = r->trainer->replica.step;
	r->state.val_loss = loss;
	if (r->leads)
		yk_progress_validated(&r->progress, r->trainer->replica.step, loss, skips.count);
	return validated(r, loss);
}

static int snapshot(struct yk_run *r)
{
	return yk_snapshot_take(&r->snapshot, r->trainer);
}

// Runs fn without counting its time as training.
static int aside(struct yk_run *r, int (*fn)(struct yk_run *))
{
	struct yk_record record;
	int e = r->trainer->replica.step > 0 ? yk_trainer_record(r->trainer, &record) : 0;
	if (e < 0)
		return e;
	clock_lap(r);
	e = fn(r);
	r->clock.resumed = yk_seconds();
	return e;
}

// The data cannot be read further: saves what was trained and returns the error.
static int starved(struct yk_run *r, int code)
{
	char why[1024];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	int e = r->trainer->replica.step > r->done.first ? aside(r, save) : 0;
	if (e < 0)
		return e;
	return yk_run_ended(r, code, why);
}

// Validates after the last step unless a stop was requested.
static int last_validation(struct yk_run *r)
{
	const struct yk_trainer *t = r->trainer;
	int e = asked_to_end(r) ? 0 : aside(r, validate);
	if (e == 0 && t->replica.step == t->steps && r->leads && can_validate(r))
		yk_progress_print(&r->progress, "%s: no validation after the last step",
				strsignal(asked_to_end(r)));
	return e;
}

// ---- the steps ----

static void on_before(void *run)
{
	const struct yk_run *r = run;
	if (r->trainer->replica.grid.all)
		yk_ranks_set_status(&r->trainer->replica, atomic_load(&r->stop->signal) != 0);
}

static bool on_over(void *run)
{
	return yk_run_stopped_early(run);
}

static int on_asked(void *run)
{
	return asked_to_end(run);
}

static int on_log(void *run)
{
	return log_step(run);
}

static void on_tick(void *run)
{
	struct yk_run *r = run;
	if (r->leads)
		yk_progress_tick(&r->progress, r->trainer->replica.step);
}

static int on_logged(void *run, bool end)
{
	return log_epoch(run, end);
}

static int on_validate(void *run)
{
	return aside(run, validate);
}

static int on_save(void *run)
{
	return aside(run, save);
}

static int on_snapshot(void *run)
{
	return aside(run, snapshot);
}

static int on_after(void *run, bool good)
{
	struct yk_run *r = run;
	r->state.step = r->trainer->replica.step;
	if (r->leads)
		yk_runlog_set(&r->log, &r->state);
	// all plans exist after the first step
	if (good && r->trainer->replica.grid.all && r->trainer->replica.step == r->done.first + 1) {
		const int e = yk_ranks_check_replicas(&r->trainer->replica, false);
		if (e < 0)
			return e;
	}
	return good ? yk_watch_step(&r->watch, r->trainer->replica.step,
				    yk_trainer_data(r->trainer).waited) :
		      0;
}

// Makes up for the validation that was due after the checkpoint's step, but which a signal
// prevented.
static int missed_validation(struct yk_run *r)
{
	const int64_t step = r->trainer->replica.step, last = r->trainer->best.last;
	const bool due = r->every.eval > 0 && step % r->every.eval == 0;
	if (!(r->best.saves || r->best.stop_after) || last < 0 || last >= step || !due)
		return 0;
	r->done.validated = -1;
	return aside(r, validate);
}

int yk_run_steps(struct yk_run *r, int *signal)
{
	struct yk_trainer *t = r->trainer;
	const struct yk_between between = {
		.before = on_before,
		.over = on_over,
		.asked = on_asked,
		.log = on_log,
		.tick = on_tick,
		.logged = on_logged,
		.validate = on_validate,
		.save = on_save,
		.snapshot = on_snapshot,
		.after = on_after,
		.every = r->every,
	};
	r->clock.resumed = r->epochs.began = yk_seconds();
	int e = r->from && r->done.saved < 0 ? aside(r, save) : 0; // resume=best
	if (e == 0)
		e = missed_validation(r);
	if (e == 0)
		e = yk_steps(t, r->done.first, &between, r, signal);
	if (e == 0 && (*signal || yk_run_stopped_early(r)) && r->done.logged < t->replica.step)
		e = log_step(r);
	if (e == 0)
		e = last_validation(r);
	// ranks save together, but this one failed alone
	if (e < 0 && t->feed.starved && !t->replica.grid.all)
		return starved(r, e);
	if (t->replica.step == t->steps)
		*signal = 0; // too late to have an effect
	if (e == 0)
		e = aside(r, save);
	if (e == 0 && t->replica.grid.all) // so that the telemetry covers the complete run
		e = yoke_group_barrier(t->replica.grid.all);
	if (r->leads)
		yk_runlog_set(&r->log, &r->state);
	return e;
}
