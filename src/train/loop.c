// SPDX-License-Identifier: Apache-2.0
// The training loop.
#include "config.h"

#include "train/loop.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "train/progress.h"
#include "train/trainer.h"

struct run {
	const char *out;
	struct yk_trainer *trainer;
	struct yk_progress progress;
	int64_t log_every, eval_every, save_every;
	int64_t logged, saved, validated; // steps at which it was last done
	double busy;    // seconds of steps since the last log, without validation and saving
	double resumed; // when the clock of `busy` was last started
	sigset_t stop;
};

static bool due(int64_t step, int64_t every)
{
	return every > 0 && step % every == 0;
}

// ---- signals ----

// SIGINT and SIGTERM stay blocked in every thread and are asked for between steps: no
// handler runs.
static void signals_block(sigset_t *stop, sigset_t *old)
{
	sigemptyset(stop);
	sigaddset(stop, SIGINT);
	sigaddset(stop, SIGTERM);
	pthread_sigmask(SIG_BLOCK, stop, old);
}

static int signal_taken(const sigset_t *stop)
{
	int number = sigtimedwait(stop, NULL, &(struct timespec){ 0 });
	return number > 0 ? number : 0;
}

// ---- what happens between steps ----

static int log_step(struct run *r)
{
	struct yk_trainer *t = r->trainer;
	struct yk_record record;
	int e = yk_trainer_record(t, &record); // waits: the clock stops behind it
	if (e < 0)
		return e;
	double now = yk_seconds();
	r->busy += now - r->resumed;
	r->resumed = now;
	struct yoke_stats stats = { .size = sizeof stats };
	e = yoke_stats(&stats);
	if (e < 0)
		return e;
	double per_step = (double)(t->batch * t->accumulate * t->context);
	struct yk_metrics m = {
		.step = t->step, .tokens = t->step * t->batch * t->accumulate * t->context,
		.loss = record.loss, .lr = yk_trainer_lr(t), .grad_norm = record.grad_norm,
		.tokens_per_s = per_step * (double)(t->step - r->logged) / fmax(r->busy, 1e-9),
		.peak_bytes = stats.pool_allocated_peak,
	};
	r->logged = t->step;
	r->busy = 0;
	return yk_progress_logged(&r->progress, &m);
}

static int validate(struct run *r)
{
	if (yk_data_valid_windows(r->trainer->data) == 0 || r->validated == r->trainer->step)
		return 0;
	double loss;
	int e = yk_trainer_validate(r->trainer, &loss);
	if (e < 0)
		return e;
	r->validated = r->trainer->step;
	return yk_progress_validated(&r->progress, r->trainer->step, loss);
}

static int save(struct run *r)
{
	if (r->saved == r->trainer->step)
		return 0;
	int e = yk_trainer_save(r->trainer, r->out);
	if (e == 0)
		r->saved = r->trainer->step;
	return e;
}

// Work whose time does not count as training.
static int aside(struct run *r, int (*fn)(struct run *))
{
	struct yk_record record;
	int e = r->trainer->step > 0 ? yk_trainer_record(r->trainer, &record) : 0;
	if (e < 0)
		return e;
	r->busy += yk_seconds() - r->resumed;
	e = fn(r);
	r->resumed = yk_seconds();
	return e;
}

static int steps_run(struct run *r)
{
	struct yk_trainer *t = r->trainer;
	int e = 0, signal = 0;
	r->resumed = yk_seconds();
	while (t->step < t->steps && e == 0 && !signal) {
		e = yk_trainer_step(t);
		signal = signal_taken(&r->stop);
		bool end = t->step == t->steps || signal;
		if (e == 0 && (t->step == 1 || end || due(t->step, r->log_every)))
			e = log_step(r);
		else if (e == 0)
			yk_progress_tick(&r->progress, t->step);
		if (e == 0 && due(t->step, r->eval_every) && !signal)
			e = aside(r, validate);
		if (e == 0 && due(t->step, r->save_every))
			e = aside(r, save);
	}
	if (t->step == t->steps)
		signal = 0; // it came too late to matter
	if (e == 0 && !signal)
		e = aside(r, validate);
	if (e == 0)
		e = aside(r, save);
	if (e == 0 && signal)
		yk_progress_say(&r->progress, "%s at step %" PRId64 ": saved in %s; go on with "
				"resume=1", strsignal(signal), t->step, r->out);
	return e;
}

// ---- the run ----

// The folder's checkpoint, if this run goes on from one.
static int resume_open(struct yk_config *c, const char *out, struct yk_checkpoint *ck,
		       bool *resumes)
{
	const char *resume = yk_config_str(c, YK_KEY_resume);
	bool exists = yk_checkpoint_exists(out);
	*resumes = false;
	if (exists && !strcmp(resume, "0"))
		return yk_fail(YOKE_EPERM, "%s: holds a checkpoint, which is not written over; "
			       "go on from it with resume=1 or choose another out", out);
	if (!exists && !strcmp(resume, "1"))
		return yk_fail(YOKE_ENOENT, "%s: holds no checkpoint to resume; drop resume=1 or "
			       "give its folder as out", out);
	if (!exists)
		return 0;
	int e = yk_checkpoint_open(out, ck);
	if (e < 0)
		return e;
	*resumes = true;
	return yk_config_take(c, ck->config, out);
}

static void say_start(struct run *r, bool resumes)
{
	const struct yk_trainer *t = r->trainer;
	yk_progress_say(&r->progress, "%" PRId64 " parameters; %" PRId64 " tokens in %" PRId64
			" files: %" PRId64 " windows to train, %" PRId64 " to validate",
			yk_parameters_elements(&t->gpt->params), yk_data_tokens(t->data),
			yk_data_files(t->data), yk_data_train_windows(t->data),
			yk_data_valid_windows(t->data));
	if (resumes)
		yk_progress_say(&r->progress, "resumed from %s at step %" PRId64, r->out, t->step);
}

static int run(struct yk_config *c, const char *out, sigset_t stop)
{
	struct yk_checkpoint ck;
	bool resumes;
	int e = resume_open(c, out, &ck, &resumes);
	if (e == 0)
		e = yk_config_check(c);
	if (e == 0)
		e = yk_config_apply(c);
	struct run r = {
		.out = out, .stop = stop,
		.log_every = yk_config_int(c, YK_KEY_log_every),
		.eval_every = yk_config_int(c, YK_KEY_eval_every),
		.save_every = yk_config_int(c, YK_KEY_save_every),
	};
	if (e == 0)
		e = yk_trainer_new(c, out, resumes ? &ck : NULL, &r.trainer);
	// Only now is the folder touched: a mistake in the keys leaves nothing behind.
	if (e == 0)
		e = yk_dir_make(out);
	if (e == 0)
		e = yk_progress_open(&r.progress, out, r.trainer->step, r.trainer->steps);
	if (e == 0) {
		r.logged = r.trainer->step;
		r.saved = r.validated = resumes ? r.trainer->step : -1;
		say_start(&r, resumes);
		e = steps_run(&r);
	}
	yk_progress_close(&r.progress);
	yk_trainer_free(r.trainer);
	if (resumes)
		yk_checkpoint_fini(&ck);
	return e;
}

int yk_train(struct yk_config *c)
{
	// A copy: a checkpoint that was moved remembers the folder it was trained in.
	char *out = strdup(yk_config_str(c, YK_KEY_out));
	if (!out)
		return yk_fail(YOKE_ENOMEM, "train: no memory");
	sigset_t stop, old;
	signals_block(&stop, &old);
	int e = run(c, out, stop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	free(out);
	return e;
}
