// SPDX-License-Identifier: Apache-2.0
// The training loop.
#include "config.h"

#include "train/loop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/shared.h"
#include "conform/selftest.h"
#include "data/loader.h"
#include "graph/context.h"
#include "train/outname.h"
#include "train/run.h"
#include "train/which.h"
#include "yoke-observe.h"

enum { REPORT_STEPS = 10, READINGS = 100000, LOST_TEXT = 2048 };

static bool due(int64_t step, int64_t every)
{
	return every > 0 && step % every == 0;
}

// The signal that asks the run to end; of ranks, as all of them have heard of it behind the same step.
static int asked_to_end(const struct yk_run *r)
{
	const int signal = atomic_load(&r->stop.signal);
	if (!r->trainer->group)
		return signal;
	return !r->trainer->ends ? 0 : signal ? signal : SIGINT;
}

// ---- what happens between steps ----

// Passes over the training part, by all runs.
static int64_t epochs_done(const struct yk_trainer *t)
{
	return t->position.epoch + (t->position.index >= yk_data_train_windows(t->data));
}

// The clock of training stops here: the row's figures are those of this moment.
static void clock_stop(struct yk_run *r)
{
	const struct yk_trainer *t = r->trainer;
	double now = yk_seconds(), windows = (double)(t->step - r->first) *
					     (double)(t->batch * t->parts);
	r->busy += now - r->resumed;
	r->state.busy += now - r->resumed;
	r->state.epochs = windows / (double)yk_data_train_windows(t->data);
	r->resumed = now;
}

static int log_step(struct yk_run *r)
{
	struct yk_trainer *t = r->trainer;
	struct yk_record record;
	if (!r->leads)
		return 0;
	int e = yk_trainer_record(t, &record); // waits: the clock stops behind it
	if (e < 0)
		return e;
	clock_stop(r);
	struct yoke_stats stats = { .size = sizeof stats };
	e = yoke_stats(&stats);
	if (e < 0)
		return e;
	double per_step = (double)(t->batch * t->parts * t->context);
	struct yk_metrics m = {
		.step = t->step,
		.tokens = t->step * t->batch * t->parts * t->context,
		.loss = record.loss,
		.lr = t->lr,
		.grad_norm = record.grad_norm,
		.tokens_per_s =
			per_step * (double)(t->step - r->logged) / fmax(r->busy, 1e-9),
		.peak_bytes = stats.pool_allocated_peak,
		.data = yk_trainer_data(t),
		.leaks = yk_model_leaks(t->net->model, &t->net->shape),
		.layers = t->net->shape.layers,
		.experts = t->net->shape.experts,
	};
	float *shares = NULL;
	if (t->net->shares && (shares = malloc(yoke_bytes(t->net->shares))) &&
	    (e = yoke_read(t->net->shares, shares, yoke_bytes(t->net->shares))) < 0) {
		free(shares);
		return e;
	}
	m.shares = shares;
	if (t->scaler) {
		struct yoke_scaler_stats s = { .size = sizeof s };
		yoke_scaler_stats(t->scaler, &s);
		m.scale = s.scale;
		m.skipped = t->skipped;
		m.overflow = !t->overflowed ? NULL : *s.name ? s.name : "all together";
	}
	r->logged = t->step;
	r->busy = 0;
	if (isfinite(m.loss))
		r->state.loss = m.loss;
	r->state.peak_bytes = m.peak_bytes;
	r->state.tokens_per_s = per_step * (double)(t->step - r->first) / r->state.busy;
	yk_progress_logged(&r->progress, &m);
	r->progress.last.shares = NULL; // it is of this line alone
	free(shares);
	return 0;
}

// At ends of epochs, but no more often than steps are logged.
static int tell_epoch(struct yk_run *r, bool end)
{
	int64_t done = epochs_done(r->trainer), step = r->trainer->step;
	struct yk_memory memory;
	if (!r->leads || done == r->epochs || (!end && step - r->told < r->log_every))
		return 0;
	int e = yk_memory_read(&memory);
	if (e < 0)
		return e;
	double now = yk_seconds(),
	       seconds = (now - r->epoch_began) / (double)(done - r->epochs);
	r->epochs = done;
	r->told = step;
	r->epoch_began = now;
	yk_progress_memory(&r->progress, step, done, seconds, &memory);
	return 0;
}

// A window was passed over, of the step that is next.
static void data_failed(void *arg, const struct yoke_data_error *d)
{
	struct yk_run *r = arg;
	yk_data_errors_add(&r->data_errors, r->trainer->step + 1, d);
}

static bool can_validate(const struct yk_run *r)
{
	return yk_data_valid_windows(r->trainer->data) > 0 && r->validated != r->trainer->step;
}

// Between the batches of a validation.
static bool validate_on(void *arg, int64_t done, int64_t windows)
{
	struct yk_run *r = arg;
	if (!r->trainer->group && atomic_load(&r->stop.signal))
		return false;
	if (r->leads)
		yk_progress_validating(&r->progress, r->trainer->step, done, windows);
	return true;
}

// A signal gives it up, unless ranks share it: then there is no figure.
static int validate(struct yk_run *r)
{
	double loss;
	if (!can_validate(r))
		return 0;
	const struct yk_trainer *t = r->trainer;
	yoke_range_push("validate");
	int e = yk_model_validate(t->net, t->data, t->batch, t->valid_windows, validate_on, r, &loss);
	yoke_range_pop();
	r->trainer->starved |= e == YOKE_EIO || e == YOKE_EFORMAT;
	if (e < 0 || (!t->group && atomic_load(&r->stop.signal)))
		return e;
	r->validated = r->trainer->step;
	r->state.val_loss = loss;
	if (r->leads)
		yk_progress_validated(&r->progress, r->trainer->step, loss);
	return 0;
}

static int unsaved(const struct yk_run *r, int code)
{
	char advice[512];
	if (r->saved < 0)
		return yk_progress_gave_up(
			code, "nothing is saved: make room or choose another "
			      "out");
	snprintf(advice, sizeof advice,
		 "%s holds step %" PRId64 ": make room and go on with "
		 "resume=1",
		 r->out, r->saved);
	return yk_progress_gave_up(code, advice);
}

static int save(struct yk_run *r)
{
	if (!r->keeps || r->saved == r->trainer->step)
		return 0;
	double busy = yk_profile_busy(r->profile), began = yk_seconds();
	yoke_range_push("save");
	int e = yk_trainer_save(r->trainer, r->out);
	if (e < 0 && yk_progress_again(&r->progress, e) &&
	    (e = yk_trainer_save(r->trainer, r->out)) < 0)
		e = unsaved(r, e);
	yoke_range_pop();
	r->files += yk_seconds() - began - (yk_profile_busy(r->profile) - busy);
	if (e < 0)
		return e;
	r->saved = r->trainer->step;
	yk_run_record_saved(r, yk_seconds() - began);
	return 0;
}

static int snapshot(struct yk_run *r)
{
	return yk_snapshot_take(&r->snapshot, r->trainer);
}

// Work whose time does not count as training.
static int aside(struct yk_run *r, int (*fn)(struct yk_run *))
{
	struct yk_record record;
	int e = r->trainer->step > 0 ? yk_trainer_record(r->trainer, &record) : 0;
	if (e < 0)
		return e;
	clock_stop(r);
	e = fn(r);
	r->resumed = yk_seconds();
	return e;
}

// There is no more data to be had: what was trained is saved, and the error says so.
static int starved(struct yk_run *r, int code)
{
	char why[1024];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	int e = r->trainer->step > r->first ? aside(r, save) : 0;
	if (e < 0)
		return e;
	if (r->saved < 0)
		return yk_fail(code, "%s; nothing is saved", why);
	return yk_fail(code, "%s; %s holds step %" PRId64 ": go on with resume=1", why, r->out, r->saved);
}

// Behind the last step, unless somebody wants it to end.
static int last_validation(struct yk_run *r)
{
	const struct yk_trainer *t = r->trainer;
	int e = asked_to_end(r) ? 0 : aside(r, validate);
	if (e == 0 && t->step == t->steps && r->leads && can_validate(r))
		yk_progress_say(&r->progress, "%s: no validation behind the last step", strsignal(asked_to_end(r)));
	return e;
}

static int steps_run(struct yk_run *r, int *signal)
{
	struct yk_trainer *t = r->trainer;
	int e = 0;
	*signal = asked_to_end(r); // one may have come while the text was read
	r->resumed = r->epoch_began = yk_seconds();
	while (t->step < t->steps && e == 0 && !*signal) {
		if (t->group)
			yoke_scalar_set(t->wish, atomic_load(&r->stop.signal) != 0);
		e = yk_trainer_step(t);
		*signal = asked_to_end(r);
		bool end = t->step == t->steps || *signal;
		if (e == 0 &&
		    (t->step == r->first + 1 || end || due(t->step, r->log_every)))
			e = log_step(r);
		else if (e == 0 && r->leads)
			yk_progress_tick(&r->progress, t->step);
		if (e == 0)
			e = tell_epoch(r, end);
		if (e == 0 && due(t->step, r->eval_every) && !*signal)
			e = aside(r, validate);
		if (e == 0 && due(t->step, r->save_every))
			e = aside(r, save);
		if (e == 0 && due(t->step, r->snapshot_every))
			e = aside(r, snapshot);
		r->state.step = t->step;
		if (r->leads)
			yk_runlog_set(&r->log, &r->state);
		if (e == 0 && r->leads)
			e = yk_watch_step(&r->watch, t->step, yk_trainer_data(t).waited);
		*signal = asked_to_end(r); // one may have ended the validation
	}
	if (e == 0 && *signal && r->logged < t->step)
		e = log_step(r);
	if (e == 0)
		e = last_validation(r);
	if (e < 0 && t->starved && !t->group) // ranks save together, and this one alone is here
		return starved(r, e);
	if (t->step == t->steps)
		*signal = 0; // it came too late to matter
	if (e == 0)
		e = aside(r, save);
	if (r->leads)
		yk_runlog_set(&r->log, &r->state);
	return e;
}

static void watch_data(struct yk_run *r)
{
	r->trainer->heard = data_failed;
	r->trainer->heard_arg = r;
	r->trainer->watched = r->watch.whole ? READINGS : 0;
}

// ---- when the device fails ----

// The same run on whatever device is chosen now, from the last snapshot or checkpoint, or anew.
static int rebuild(struct yk_run *r, struct yk_config *c)
{
	struct yk_checkpoint ck;
	bool exists = yk_checkpoint_exists(r->out);
	int e = exists ? yk_checkpoint_open(r->out, &ck) : 0;
	if (e < 0)
		return e;
	r->saved = exists ? ck.step : -1;
	e = yk_trainer_new(c, r->out, exists ? &ck : NULL, &r->trainer);
	if (e == 0)
		watch_data(r);
	if (exists)
		yk_checkpoint_fini(&ck);
	if (e == 0 && r->snapshot.taken && r->snapshot.step > r->trainer->step)
		e = yk_snapshot_put(&r->snapshot, r->trainer);
	if (e == 0 && !(r->profile = yk_profile_new(r->watch.whole)))
		e = yoke_error_code();
	return e == 0 ? yk_watch_begin(&r->watch, r->out, &r->progress) : e;
}

// Was it the device?  Then says what became of it, without what the engine would have a program do.
// after: the last step that was heard of, -1: none was begun.  begun: the last that was launched; what
// is lost may have been any between them.
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
		snprintf(when, sizeof when,
			 "after step %" PRId64 ", in step %" PRId64 " at the latest", after, begun + 1);
	if (yk_selftest_verdict(ctx->device) < 0) // it was not lost, but is not trusted
		snprintf(what, LOST_TEXT, "%s", why);
	else
		snprintf(what, LOST_TEXT, "%s was lost %s: %s", ctx->device->id, when, why);
	return true;
}

// Leaves a device that was lost, with all that is on it.  False: it is the last one.
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
	yoke_error_clear(); // what else a failed device says
	return true;
}

// The trainer, on the first device on which it can be made.
static int begin(struct yk_run *r, struct yk_config *c, const struct yk_checkpoint *ck)
{
	char what[LOST_TEXT];
	int e;
	while ((e = yk_trainer_new(c, r->out, ck, &r->trainer)) < 0 && device_lost(e, -1, -1, what)) {
		if (!leave_device(r)) {
			yoke_error_clear();
			return yk_fail(e, "%s", what);
		}
		yk_warn("train", "%s; the next device is tried", what);
	}
	return e;
}

// No device is left to go on with.
static int end_lost(const struct yk_run *r, int code, const char *what)
{
	yoke_error_clear();
	if (r->saved < 0)
		return yk_fail(code, "%s; nothing is saved", what);
	return yk_fail(code, "%s; %s holds step %" PRId64 ": go on with resume=1", what, r->out,
		       r->saved);
}

static void progress_open(struct yk_run *r, const struct yk_config *c)
{
	yk_progress_open(&r->progress, r->record, yk_config_str(c, YK_KEY_progress), r->trainer->steps);
}

// Goes on with the next device when one failed, or returns the error it failed with.
static int next_device(struct yk_run *r, struct yk_config *c, int code)
{
	char what[LOST_TEXT];
	if (!device_lost(code, r->logged, r->trainer ? r->trainer->step : r->logged, what))
		return code;
	if (r->trainer && yk_data_endless(r->trainer->data)) // what it has read of the pipe does not come again
		return end_lost(r, code, what);
	if (!leave_device(r))
		return end_lost(r, code, what);
	int e = rebuild(r, c);
	if (e < 0)
		return e;
	const struct yk_trainer *t = r->trainer;
	yk_progress_close(&r->progress);
	yk_warn("train", "%s; training goes on on %s from step %" PRId64, what,
		yk_current()->device->id, t->step);
	yk_runlog_device(&r->log, yk_current()->device->id);
	yk_run_record_device(r, what);
	r->logged = r->told = t->step;
	r->validated = r->saved;
	r->epochs = epochs_done(t);
	r->busy = r->files = 0; // as the new profile counts them
	progress_open(r, c);
	return 0;
}

// Of a run that is too short to say much the report is not shown.
static int report(struct yk_run *r, bool stopped)
{
	struct yk_report x;
	char path[4096];
	int e = yk_profile_report(r->profile, &x);
	if (e < 0)
		return e;
	x.files = r->files;
	x.idle -= r->files;
	x.data = yk_trainer_data(r->trainer);
	bool show = !strcmp(r->report, "1") || r->watch.whole ||
		    r->trainer->step - r->first >= REPORT_STEPS;
	show = show && strcmp(r->report, "0");
	if (!strcmp(r->report, "1") && !stopped) // nobody who did not ask waits for that
		yk_layers_measure(yk_current(), &x.layers);
	yk_progress_report(&r->progress, r->trainer->step, show, &x);
	if (!r->watch.whole)
		return 0;
	if (show)
		yk_profile_top(r->profile, r->watch.rows, yk_progress_line, &r->progress);
	const struct yk_reading *list;
	for (size_t n = yk_loader_readings(r->trainer->loader, &list), i = 0; i < n; i++)
		yk_profile_reading(r->profile, list[i].worker, list[i].begin, list[i].ns);
	snprintf(path, sizeof path, "%s/trace.json", r->out);
	e = yk_profile_trace(r->profile, path);
	if (e == 0)
		yk_run_record_profile(r, path);
	return e;
}

// ---- the run ----

static const char *name_of(int signal)
{
	return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

// On a thread of its own.  At a second signal the step that is running is given up.
static void on_signal(void *arg, int signal, bool again)
{
	struct yk_run *r = arg;
	char ended[32];
	if (!again) { // behind the bar, if one is drawn
		fprintf(stderr, "%s%s: finishes the step%s; once more ends at once\n",
			isatty(STDERR_FILENO) ? "\n" : "", name_of(signal), r->keeps ? " and saves" : "");
		return;
	}
	bool saved = yk_checkpoint_exists(r->out);
	snprintf(ended, sizeof ended, "%s twice", name_of(signal));
	yk_runlog_end(&r->log, ended, NULL);
	fprintf(stderr, "\nyoke train: %s again: ended at once; %s%s\n", name_of(signal),
		saved ? r->out : "nothing was saved", saved ? " has its last checkpoint" : "");
}

static int busy_folder(const char *out)
{
	yoke_error_clear();
	return yk_fail(YOKE_EBUSY,
		       "%s: another run trains into it; wait until it ends, or choose "
		       "another out",
		       out);
}

// Locks the folder if there is one; *lock is -1 when not.
static int lock_folder(const char *out, int *lock)
{
	struct stat st;
	if (*lock >= 0 || stat(out, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	int e = yk_dir_lock(out, lock);
	return e == YOKE_EBUSY ? busy_folder(out) : e;
}

static int not_over(const char *out)
{
	return yk_fail(YOKE_EPERM,
		       "%s: holds a checkpoint, which is not written over; go on from it "
		       "with resume=1 or choose another out",
		       out);
}

// batch=auto is what it came to when the run began.
static int batch_take(struct yk_config *c, const struct yk_config *was)
{
	if (yk_config_int(c, YK_KEY_batch) != YK_AUTO || yk_config_int(was, YK_KEY_batch) == YK_AUTO)
		return 0;
	return yk_config_settle(c, YK_KEY_batch, yk_config_int(was, YK_KEY_batch));
}

// Parts of a step: as many as when the run began, on however many ranks; or by accumulate, where that is given anew.
static int parts_take(struct yk_config *c, const struct yk_config *was, bool anew)
{
	const struct yk_config *by = anew ? c : was;
	const int64_t parts = yk_config_int(was, YK_KEY_parts);
	return yk_config_settle(c, YK_KEY_parts, parts != YK_AUTO && !anew ? parts :
				yk_config_int(by, YK_KEY_ranks) * yk_config_int(by, YK_KEY_accumulate));
}

// backend=fastest is measured when a run begins, and is that from then on.
static int fastest(struct yk_config *c, const struct yk_checkpoint *ck)
{
	const char *was = ck ? json_string_value(json_object_get(ck->config, "backend")) : NULL;
	char said[256];
	if (strcmp(yk_config_str(c, YK_KEY_backend), "fastest"))
		return 0;
	if (was && strcmp(was, "fastest"))
		return yk_config_settle_text(c, YK_KEY_backend, was);
	int e = yk_which_settle(c, said);
	if (e == 0)
		fprintf(stderr, "backend=fastest: %s\n", said);
	return e;
}

// The folder's checkpoint, if this run goes on from one.
static int resume_open(struct yk_config *c, const char *out, struct yk_checkpoint *ck,
		       bool *resumes)
{
	const char *resume = yk_config_str(c, YK_KEY_resume);
	bool exists = yk_checkpoint_exists(out);
	struct yk_config was;
	*resumes = false;
	if (exists && !strcmp(resume, "0"))
		return not_over(out);
	if (!exists && !strcmp(resume, "1"))
		return yk_fail(YOKE_ENOENT,
			       "%s: holds no checkpoint to resume; drop resume=1 or "
			       "give its folder as out",
			       out);
	if (!exists)
		return 0;
	int e = yk_checkpoint_open(out, ck);
	if (e < 0)
		return e;
	*resumes = true;
	if ((e = yk_config_init(&was, YK_T)) < 0)
		return e;
	const bool given = yk_config_given(c, YK_KEY_parts), anew = yk_config_given(c, YK_KEY_accumulate);
	e = yk_config_take(&was, ck->config, out);
	if (e == 0)
		e = yk_config_take(c, ck->config, out);
	if (e == 0 && !given)
		e = parts_take(c, &was, anew);
	if (e == 0)
		e = batch_take(c, &was);
	yk_config_fini(&was);
	return e;
}

// From a trainer that is ready to the row in the log.
static int run_steps(struct yk_run *r, struct yk_config *c, const struct yk_checkpoint *from)
{
	struct yk_trainer *t = r->trainer;
	int signal = 0;
	r->first = r->logged = r->told = t->step;
	r->saved = r->validated = from ? t->step : -1;
	r->epochs = epochs_done(t);
	r->state = (struct yk_run_state){
		.step = t->step,
		.steps = t->steps,
		.loss = NAN,
		.val_loss = NAN,
		.tokens_per_s = NAN,
		.parameters = t->net->params.elements,
	};
	int e = yk_runlog_open(&r->log, yk_config_str(c, YK_KEY_training_log), r->out,
			       yk_current()->device->id, yk_config_str(c, YK_KEY_data),
			       yk_tokenizer_name(t->tokenizer));
	if (e < 0)
		return e;
	yk_runlog_set(&r->log, &r->state);
	if (!(r->profile = yk_profile_new(r->watch.whole)))
		e = yoke_error_code();
	if (e == 0)
		e = yk_watch_begin(&r->watch, r->out, &r->progress);
	if (e == 0)
		yk_profile_start(r->profile); // what watching takes to begin is not the run's
	if (e == 0)
		e = yk_run_say_start(r, c, from);
	if (e == 0)
		e = steps_run(r, &signal);
	while (e < 0 && !t->group && (e = next_device(r, c, e)) == 0)
		e = steps_run(r, &signal);
	if (e == 0)
		e = yk_watch_end(&r->watch);
	else
		yk_watch_drop(&r->watch);
	if (e == YOKE_ENOMEM && r->trainer && !r->trainer->group) {
		yk_profile_free(r->profile);
		r->profile = NULL;
		e = yk_trainer_advise(r->trainer);
	}
	t = r->trainer;
	if (e == 0 && t->step > r->first)
		e = report(r, signal != 0);
	if (e == 0 && signal)
		yk_progress_say(&r->progress, "%s at step %" PRId64, strsignal(signal), t->step);
	if (e == 0 && (t->step > r->first || !from))
		yk_run_say_end(r);
	const char *ended = e < 0 ? "failed" : signal ? name_of(signal) : "done";
	yk_runlog_end(&r->log, ended, e < 0 ? yoke_error() : NULL);
	yk_run_record_end(r, ended, e);
	yk_profile_free(r->profile);
	return e;
}

// What is due by parts of an epoch.
static void intervals(struct yk_run *r, const struct yk_config *c)
{
	r->eval_every = yk_config_every(c, YK_KEY_eval_every, yk_trainer_pass(r->trainer));
	r->save_every = yk_config_every(c, YK_KEY_save_every, yk_trainer_pass(r->trainer));
}

// From a configuration that is complete to the end, on the thread of whose context the run is.
static int work(struct yk_run *r, struct yk_config *c, const struct yk_checkpoint *from, int *lock)
{
	int e = begin(r, c, from);
	if (e == 0)
		intervals(r, c);
	// Only now is the folder touched: a mistake in the keys leaves nothing behind.
	if (e == 0)
		e = yk_dir_make(r->out);
	if (e == 0)
		e = lock_folder(r->out, lock);
	if (e == 0 && !from && yk_checkpoint_exists(r->out))
		e = not_over(r->out); // another run was faster
	if (e == 0)
		e = yk_run_record_begin(r, c);
	if (e == 0 && yk_config_int(c, YK_KEY_dashboard) != YK_AUTO)
		yk_watcher_start(&r->watcher, r->out, yk_config_int(c, YK_KEY_dashboard));
	if (e == 0)
		progress_open(r, c);
	if (e == 0)
		e = yk_data_errors_open(&r->data_errors, r->out, r->trainer->step);
	if (e == 0)
		watch_data(r);
	if (e == 0)
		e = run_steps(r, c, from);
	yk_data_errors_close(&r->data_errors);
	yk_progress_close(&r->progress);
	yk_run_record_end(r, "failed", e);
	yk_watcher_end(&r->watcher);
	yk_snapshot_fini(&r->snapshot);
	yk_watch_drop(&r->watch);
	yk_trainer_free(r->trainer);
	r->trainer = NULL;
	return e;
}

// What all ranks begin with.  The configuration is read only: a trainer settles keys in a copy of its own.
struct crew {
	struct yk_run *lead;
	const struct yk_config *config;
	const struct yk_checkpoint *from;
	int *lock;
};

// Of a rank that does not lead: it trains, and says nothing.
static int follow(const struct crew *all, struct yk_config *c)
{
	const struct yk_run *lead = all->lead;
	struct yk_run r = {
		.out = lead->out, .log = YK_RUNLOG_INIT, .log_every = lead->log_every, .validated = -1, .saved = -1,
	};
	int signal, e = yk_trainer_new(c, r.out, all->from, &r.trainer);
	if (e == 0) {
		r.first = r.trainer->step;
		intervals(&r, c);
		e = steps_run(&r, &signal);
	}
	yk_trainer_free(r.trainer);
	return e;
}

static int member(yoke_group *world, void *arg)
{
	const struct crew *all = arg;
	struct yk_config own;
	int e = yk_config_with(all->config, 0, NULL, &own);
	if (e < 0)
		return e;
	e = yoke_group_rank(world) == 0 ? work(all->lead, &own, all->from, all->lock) : follow(all, &own);
	yk_config_fini(&own);
	return e;
}

// Before anything looks at the devices: a processor for each rank.
static int divide(int64_t ranks)
{
	char n[24];
	snprintf(n, sizeof n, "%lld", (long long)ranks);
	return ranks == 1 || getenv("YOKE_CPU_DEVICES") ? 0 : yoke_setting_set("cpu.devices", n);
}

static int run(struct yk_run *r, struct yk_config *c)
{
	const char *out = r->out;
	struct yk_checkpoint ck;
	bool resumes = false;
	int lock = -1;
	int e = lock_folder(out, &lock);
	if (e == 0)
		e = resume_open(c, out, &ck, &resumes);
	if (e == 0)
		e = yk_config_check(c);
	if (e == 0)
		e = fastest(c, resumes ? &ck : NULL);
	if (e == 0)
		e = yk_config_apply(c);
	r->log_every = yk_config_int(c, YK_KEY_log_every);
	r->snapshot_every = yk_config_int(c, YK_KEY_snapshot_every);
	r->report = yk_config_str(c, YK_KEY_report);
	const int64_t ranks = yk_config_int(c, YK_KEY_ranks);
	const struct yk_checkpoint *from = resumes ? &ck : NULL;
	if (e == 0)
		e = divide(ranks);
	if (e == 0)
		e = yk_watch_init(&r->watch, c);
	if (e == 0)
		e = ranks > 1 ? yoke_group_run((int)ranks, NULL, member, &(struct crew){ r, c, from, &lock }) :
				work(r, c, from, &lock);
	yk_watch_fini(&r->watch);
	if (resumes)
		yk_checkpoint_fini(&ck);
	if (lock >= 0)
		close(lock);
	return e;
}

int yk_train(struct yk_config *c)
{
	struct yk_run r = { .out = yk_config_str(c, YK_KEY_out), .leads = true,
			 .keeps = !strcmp(yk_config_str(c, YK_KEY_checkpoints), "1"),
			 .log = YK_RUNLOG_INIT };
	char *out = NULL;
	// Before any thread is made: one that did not block the signals would die.
	int e = yk_stop_begin(&r.stop, on_signal, &r);
	if (e < 0)
		return e;
	// Not the checkpoint's: one that was moved remembers the folder it was trained in.
	e = yk_out_name(c, &out);
	if (e == 0) {
		r.out = out;
		e = run(&r, c);
	}
	yk_stop_end(&r.stop);
	yk_runlog_close(&r.log);
	free(out);
	return e;
}
