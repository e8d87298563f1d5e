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

enum { TOP_ROWS = 20, REPORT_STEPS = 10, LOST_TEXT = 2048 };

static bool due(int64_t step, int64_t every)
{
	return every > 0 && step % every == 0;
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
					     (double)(t->batch * t->accumulate);
	r->busy += now - r->resumed;
	r->state.busy += now - r->resumed;
	r->state.epochs = windows / (double)yk_data_train_windows(t->data);
	r->resumed = now;
}

static int log_step(struct yk_run *r)
{
	struct yk_trainer *t = r->trainer;
	struct yk_record record;
	int e = yk_trainer_record(t, &record); // waits: the clock stops behind it
	if (e < 0)
		return e;
	clock_stop(r);
	struct yoke_stats stats = { .size = sizeof stats };
	e = yoke_stats(&stats);
	if (e < 0)
		return e;
	double per_step = (double)(t->batch * t->accumulate * t->context);
	struct yk_metrics m = {
		.step = t->step,
		.tokens = t->step * t->batch * t->accumulate * t->context,
		.loss = record.loss,
		.lr = t->lr,
		.grad_norm = record.grad_norm,
		.tokens_per_s =
			per_step * (double)(t->step - r->logged) / fmax(r->busy, 1e-9),
		.peak_bytes = stats.pool_allocated_peak,
		.data = yk_trainer_data(t),
	};
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
	return yk_progress_logged(&r->progress, &m);
}

// At ends of epochs, but no more often than steps are logged.
static int tell_epoch(struct yk_run *r, bool end)
{
	int64_t done = epochs_done(r->trainer), step = r->trainer->step;
	struct yk_memory memory;
	if (done == r->epochs || (!end && step - r->told < r->log_every))
		return 0;
	int e = yk_memory_read(&memory);
	if (e < 0)
		return e;
	double now = yk_seconds(),
	       seconds = (now - r->epoch_began) / (double)(done - r->epochs);
	r->epochs = done;
	r->told = step;
	r->epoch_began = now;
	return yk_progress_memory(&r->progress, step, done, seconds, &memory);
}

// A window was passed over, of the step that is next.
static void data_failed(void *arg, const struct yoke_data_error *d)
{
	struct yk_run *r = arg;
	if (r->listed == 0)
		r->listed = yk_progress_data_error(&r->progress, r->trainer->step + 1, d);
}

static bool can_validate(const struct yk_run *r)
{
	return yk_data_valid_windows(r->trainer->data) > 0 && r->validated != r->trainer->step;
}

// Between the batches of a validation.
static bool validate_on(void *arg, int64_t done, int64_t windows)
{
	struct yk_run *r = arg;
	if (atomic_load(&r->stop.signal))
		return false;
	yk_progress_validating(&r->progress, r->trainer->step, done, windows);
	return true;
}

// A signal gives it up: then there is no figure.
static int validate(struct yk_run *r)
{
	double loss;
	if (!can_validate(r))
		return 0;
	const struct yk_trainer *t = r->trainer;
	int e = yk_model_validate(t->net, t->data, t->batch, t->valid_windows, validate_on, r, &loss);
	r->trainer->starved |= e == YOKE_EIO || e == YOKE_EFORMAT;
	if (e < 0 || atomic_load(&r->stop.signal))
		return e;
	r->validated = r->trainer->step;
	r->state.val_loss = loss;
	return yk_progress_validated(&r->progress, r->trainer->step, loss);
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
	int e = yk_trainer_save(r->trainer, r->out);
	if (e < 0 && yk_progress_again(&r->progress, e) &&
	    (e = yk_trainer_save(r->trainer, r->out)) < 0)
		e = unsaved(r, e);
	r->files += yk_seconds() - began - (yk_profile_busy(r->profile) - busy);
	if (e == 0)
		r->saved = r->trainer->step;
	return e;
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
	int e = atomic_load(&r->stop.signal) ? 0 : aside(r, validate);
	if (e == 0 && t->step == t->steps && can_validate(r))
		yk_progress_say(&r->progress, "%s: no validation behind the last step",
				strsignal(atomic_load(&r->stop.signal)));
	return e;
}

static int steps_run(struct yk_run *r, int *signal)
{
	struct yk_trainer *t = r->trainer;
	int e = 0;
	*signal = atomic_load(&r->stop.signal); // one may have come while the text was read
	r->resumed = r->epoch_began = yk_seconds();
	while (t->step < t->steps && e == 0 && !*signal) {
		e = yk_trainer_step(t);
		e = e == 0 ? r->listed : e;
		*signal = atomic_load(&r->stop.signal);
		bool end = t->step == t->steps || *signal;
		if (e == 0 &&
		    (t->step == r->first + 1 || end || due(t->step, r->log_every)))
			e = log_step(r);
		else if (e == 0)
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
		yk_runlog_set(&r->log, &r->state);
		*signal = atomic_load(&r->stop.signal); // one may have ended the validation
	}
	if (e == 0 && *signal && r->logged < t->step)
		e = log_step(r);
	if (e == 0)
		e = last_validation(r);
	if (e < 0 && t->starved)
		return starved(r, e);
	if (t->step == t->steps)
		*signal = 0; // it came too late to matter
	if (e == 0)
		e = aside(r, save);
	yk_runlog_set(&r->log, &r->state);
	return e;
}

static void watch_data(struct yk_run *r)
{
	r->trainer->heard = data_failed;
	r->trainer->heard_arg = r;
	r->trainer->watched = r->details ? yk_profile_most() : 0;
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
	if (e == 0 && !(r->profile = yk_profile_new(r->details)))
		e = yoke_error_code();
	return e;
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

static int progress_open(struct yk_run *r, const struct yk_config *c)
{
	return yk_progress_open(&r->progress, r->out, yk_config_str(c, YK_KEY_progress),
				r->trainer->step, r->trainer->steps);
}

// Goes on with the next device when one failed, or returns the error it failed with.
static int next_device(struct yk_run *r, struct yk_config *c, int code)
{
	char what[LOST_TEXT];
	if (!device_lost(code, r->logged, r->trainer ? r->trainer->step : r->logged, what))
		return code;
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
	r->logged = r->told = t->step;
	r->validated = r->saved;
	r->epochs = epochs_done(t);
	r->busy = r->files = 0; // as the new profile counts them
	return progress_open(r, c); // cuts what is done again
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
	bool show = !strcmp(r->report, "1") || r->details ||
		    r->trainer->step - r->first >= REPORT_STEPS;
	show = show && strcmp(r->report, "0");
	if (!strcmp(r->report, "1") && !stopped) // nobody who did not ask waits for that
		yk_layers_measure(yk_current(), &x.layers);
	e = yk_progress_report(&r->progress, r->trainer->step, show, &x);
	if (e < 0 || !r->details)
		return e;
	if (show)
		yk_profile_top(r->profile, TOP_ROWS, yk_progress_line, &r->progress);
	const struct yk_reading *list;
	for (size_t n = yk_loader_readings(r->trainer->loader, &list), i = 0; i < n; i++)
		yk_profile_reading(r->profile, list[i].worker, list[i].begin, list[i].ns);
	snprintf(path, sizeof path, "%s/trace.json", r->out);
	return yk_profile_trace(r->profile, path);
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
static int batch_take(struct yk_config *c, const struct yk_checkpoint *ck, const char *out)
{
	struct yk_config was;
	if (yk_config_int(c, YK_KEY_batch) != YK_AUTO)
		return 0;
	int e = yk_config_init(&was, YK_T);
	if (e < 0)
		return e;
	e = yk_config_take(&was, ck->config, out);
	if (e == 0 && yk_config_int(&was, YK_KEY_batch) != YK_AUTO)
		e = yk_config_settle(c, YK_KEY_batch, yk_config_int(&was, YK_KEY_batch));
	yk_config_fini(&was);
	return e;
}

// The folder's checkpoint, if this run goes on from one.
static int resume_open(struct yk_config *c, const char *out, struct yk_checkpoint *ck,
		       bool *resumes)
{
	const char *resume = yk_config_str(c, YK_KEY_resume);
	bool exists = yk_checkpoint_exists(out);
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
	e = yk_config_take(c, ck->config, out);
	return e == 0 ? batch_take(c, ck, out) : e;
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
	if (!(r->profile = yk_profile_new(r->details)))
		e = yoke_error_code();
	if (e == 0)
		e = yk_run_say_start(r, c, from);
	if (e == 0)
		e = steps_run(r, &signal);
	while (e < 0 && (e = next_device(r, c, e)) == 0)
		e = steps_run(r, &signal);
	if (e == YOKE_ENOMEM && r->trainer) {
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
	yk_runlog_end(&r->log,
		      e < 0  ? "failed" :
		      signal ? name_of(signal) :
			       "done",
		      e < 0 ? yoke_error() : NULL);
	yk_profile_free(r->profile);
	return e;
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
		e = yk_config_apply(c);
	r->log_every = yk_config_int(c, YK_KEY_log_every);
	r->eval_every = yk_config_int(c, YK_KEY_eval_every);
	r->save_every = yk_config_int(c, YK_KEY_save_every);
	r->snapshot_every = yk_config_int(c, YK_KEY_snapshot_every);
	r->report = yk_config_str(c, YK_KEY_report);
	r->details = !strcmp(yk_config_str(c, YK_KEY_profile), "1");
	if (e == 0 && r->details)
		yk_profile_prepare();
	if (e == 0)
		e = begin(r, c, resumes ? &ck : NULL);
	if (e == 0)
		watch_data(r);
	// Only now is the folder touched: a mistake in the keys leaves nothing behind.
	if (e == 0)
		e = yk_dir_make(out);
	if (e == 0)
		e = lock_folder(out, &lock);
	if (e == 0 && !resumes && yk_checkpoint_exists(out))
		e = not_over(out); // another run was faster
	if (e == 0)
		e = progress_open(r, c);
	if (e == 0)
		e = run_steps(r, c, resumes ? &ck : NULL);
	yk_progress_close(&r->progress);
	yk_snapshot_fini(&r->snapshot);
	yk_trainer_free(r->trainer);
	if (resumes)
		yk_checkpoint_fini(&ck);
	if (lock >= 0)
		close(lock);
	return e;
}

int yk_train(struct yk_config *c)
{
	struct yk_run r = { .out = yk_config_str(c, YK_KEY_out),
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
