// SPDX-License-Identifier: Apache-2.0
// A training run from its configuration to its last line of output.
#include "config.h"

#include "train/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/shared.h"
#include "data/loader.h"
#include "comm/process.h"
#include "comm/ranks.h"
#include "graph/context.h"
#include "train/check.h"
#include "train/outname.h"
#include "parallel/ranks.h"
#include "train/resume.h"
#include "train/trainer_open.h"
#include "yoke-observe.h"

enum { REPORT_STEPS = 10 };

// Runs on its own thread. A second signal abandons the current step.
static void on_signal(void *arg, int signal, bool again)
{
	struct yk_run *r = arg;
	char ended[32];
	if (!r->leads)
		return;
	if (!again) { // start a new line in case a bar is drawn
		fprintf(stderr, "%s%s: finishing the step%s; a second signal exits at once\n",
			isatty(STDERR_FILENO) ? "\n" : "", yk_stop_name(signal),
			r->saves ? " and saving" : "");
		return;
	}
	bool saved = yk_checkpoint_exists(r->out);
	snprintf(ended, sizeof ended, "%s twice", yk_stop_name(signal));
	yk_runlog_end(&r->log, ended, NULL);
	fprintf(stderr, "\nyoke train: %s again: exits now; %s%s\n", yk_stop_name(signal),
		saved ? r->out : "no checkpoint was saved",
		saved ? " has the last checkpoint" : "");
}

// Creates the final report; runs of fewer than REPORT_STEPS steps show it only on request.
static int report(struct yk_run *r, bool stopped)
{
	struct yk_report x;
	char path[4096];
	int e = yk_profile_report(r->profile, &x);
	if (e < 0)
		return e;
	x.files = r->clock.files;
	x.idle -= r->clock.files;
	x.data = yk_trainer_data(r->trainer);
	bool show = !strcmp(r->report, "1") || r->watch.whole ||
		    r->trainer->replica.step - r->done.first >= REPORT_STEPS;
	show = show && strcmp(r->report, "0");
	if (!strcmp(r->report, "1") && !stopped) // takes time, so only on request
		yk_layers_measure(yk_current(), &x.layers);
	yk_progress_report(&r->progress, r->trainer->replica.step, show, &x);
	if (!r->watch.whole)
		return 0;
	if (show)
		yk_profile_top(r->profile, r->watch.rows, yk_progress_line, &r->progress);
	const struct yk_reading *list;
	for (size_t n = yk_loader_readings(r->trainer->feed.loader, &list), i = 0; i < n; i++)
		yk_profile_reading(r->profile, list[i].worker, list[i].begin, list[i].ns);
	snprintf(path, sizeof path, "%s/trace.json", r->out);
	e = r->trainer->replica.grid.all ? yk_ranks_trace(&r->trainer->replica, r->profile, path) :
					   yk_profile_trace(r->profile, path);
	if (e == 0)
		yk_run_record_profile(r, path);
	return e;
}

// The step in `out`.  With resume=best it may be a later one, which the loop replaces at once.
static int64_t saved_at_start(const struct yk_run *r)
{
	return r->from && !strcmp(r->from, r->out) ? r->trainer->replica.step : -1;
}

// Runs from a complete trainer to the row in the training log.
static int run_steps(struct yk_run *r, struct yk_config *c, const struct yk_checkpoint *from)
{
	struct yk_trainer *t = r->trainer;
	int signal = 0;
	r->done.first = r->done.logged = r->epochs.logged = t->replica.step;
	r->done.validated = from ? t->replica.step : -1;
	r->done.saved = saved_at_start(r);
	r->epochs.done = yk_run_epochs(t);
	r->state = (struct yk_run_state){
		.step = t->replica.step,
		.steps = t->steps,
		.loss = NAN,
		.val_loss = NAN,
		.tokens_per_s = NAN,
		.parameters = t->replica.net->params.elements,
	};
	int e = yk_runlog_open(&r->log, yk_config_str(c, YK_KEY_training_log), r->out,
			       yk_current()->device->id, yk_config_str(c, YK_KEY_data),
			       yk_tokenizer_name(t->feed.tokenizer));
	if (e < 0)
		return e;
	yk_runlog_set(&r->log, &r->state);
	if (!(r->profile = yk_profile_new(r->watch.whole)))
		e = yoke_error_code();
	r->watch.group = t->replica.grid.all;
	if (e == 0)
		e = yk_watch_begin(&r->watch, r->out, &r->progress);
	if (e == 0)
		yk_profile_start(r->profile); // the time to start observation does not count
	if (e == 0)
		e = yk_run_print_start(r, c, from);
	if (e == 0)
		e = yk_run_steps(r, &signal);
	while (e < 0 && !t->replica.grid.all && (e = yk_run_rescue(r, c, e)) == 0)
		e = yk_run_steps(r, &signal);
	if (e == 0)
		e = yk_watch_end(&r->watch);
	else
		yk_watch_drop(&r->watch);
	if (e == YOKE_ENOMEM && r->trainer && !r->trainer->replica.grid.all) {
		yk_profile_free(r->profile);
		r->profile = NULL;
		e = yk_trainer_advise(r->trainer);
	}
	t = r->trainer;
	if (e == 0 && t->replica.step > r->done.first)
		e = report(r, signal != 0);
	if (e == 0 && signal)
		yk_progress_print(&r->progress, "%s at step %" PRId64, strsignal(signal),
				  t->replica.step);
	if (e == 0 && !signal && t->replica.step < t->steps)
		yk_run_record_early(r);
	if (e == 0 && (t->replica.step > r->done.first || !from))
		yk_run_print_end(r);
	const char *ended = e < 0 ? "failed" : signal ? yk_stop_name(signal) : "done";
	yk_runlog_end(&r->log, ended, e < 0 ? yoke_error() : NULL);
	yk_run_record_end(r, ended, e);
	yk_profile_free(r->profile);
	return e;
}

// Converts intervals that may be given in epochs to steps.
static void intervals(struct yk_run *r, const struct yk_config *c)
{
	r->every.eval = yk_config_every(c, YK_KEY_eval_every, yk_trainer_pass(r->trainer));
	r->every.save = yk_config_every(c, YK_KEY_save_every, yk_trainer_pass(r->trainer));
}

// Runs a complete configuration to its end, on the thread that has the run's context.
static int work(struct yk_run *r, struct yk_config *c, const struct yk_checkpoint *from, int *lock)
{
	int e = yk_run_make(r, c, from);
	if (e == 0)
		intervals(r, c);
	if (e == 0)
		e = yk_run_best_begin(r, c);
	// The directory is created only now, so that an invalid configuration leaves nothing
	// behind.
	if (e == 0)
		e = yk_dir_make(r->out);
	if (e == 0)
		e = yk_resume_lock(r->out, lock);
	if (e == 0 && !from && yk_checkpoint_exists(r->out))
		e = yk_resume_refused(r->out, "1"); // another run was faster
	if (e == 0)
		e = yk_run_record_begin(r, c);
	if (e == 0 && yk_config_int(c, YK_KEY_dashboard) != YK_AUTO)
		yk_watcher_start(&r->watcher, r->out, yk_config_int(c, YK_KEY_dashboard));
	if (e == 0)
		yk_run_print_progress(r, c);
	if (e == 0)
		e = yk_data_errors_open(&r->data_errors, r->out, r->trainer->replica.step);
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

// Whether profile=1.
static bool watches_all(const struct yk_config *c)
{
	struct yk_watch w = { 0 };
	return yk_watch_check(&w, c) == 0 && w.whole;
}

// Shared by all ranks (threads). The configuration is read-only; each trainer resolves keys in its
// own copy.
struct rank_shared {
	struct yk_run *lead;
	const struct yk_config *config;
	const struct yk_checkpoint *from;
	int *lock;
	atomic_int *lost; // number of lost devices
};

// A rank other than rank 0: trains without output.
static int follow(const struct rank_shared *all, struct yk_config *c)
{
	const struct yk_run *lead = all->lead;
	struct yk_run r = {
		.out = lead->out,
		.from = lead->from,
		.stop = lead->stop,
		.log = YK_RUNLOG_INIT,
		.every.log = lead->every.log,
		.saves = lead->saves,
		.done = { .saved = -1, .validated = -1 },
	};
	int signal, e = yk_trainer_share(lead->corpus, c, r.from ? r.from : r.out, all->from,
					 &r.trainer);
	if (e == 0) {
		r.done.first = r.trainer->replica.step;
		r.done.validated = all->from ? r.done.first : -1;
		r.done.saved = saved_at_start(&r);
		intervals(&r, c);
		e = yk_run_best_begin(&r, c);
	}
	if (e == 0) {
		e = yk_watch_follow(&r.watch, &lead->watch, r.out, r.trainer->replica.grid.all);
	}
	if (e == 0 && watches_all(c) && !(r.profile = yk_profile_new(true)))
		e = yoke_error_code();
	if (e == 0)
		e = yk_run_steps(&r, &signal);
	// rank 0 does so in report()
	if (e == 0 && r.profile && r.trainer->replica.step > r.done.first)
		e = yk_ranks_trace(&r.trainer->replica, r.profile, NULL);
	yk_profile_free(r.profile);
	yk_watch_fini(&r.watch);
	yk_trainer_free(r.trainer);
	return e;
}

// Writes the rank's last operations to the run's directory, if it exists.
static void record(const yoke_group *world, const char *out)
{
	char path[4096];
	struct yk_error_aside *aside = yk_error_aside();
	snprintf(path, sizeof path, "%s/ranks-%d.jsonl", out, yoke_group_rank(world));
	if (access(out, W_OK) == 0)
		yk_ranks_record(world->queue, path);
	yoke_error_clear();
	yk_error_restore(aside);
}

static int member(yoke_group *world, void *arg)
{
	const struct rank_shared *all = arg;
	struct yk_config own;
	int e = yk_config_with(all->config, 0, NULL, &own);
	if (e < 0)
		return e;
	e = yoke_group_rank(world) == 0 ? work(all->lead, &own, all->from, all->lock) :
					  follow(all, &own);
	yk_config_fini(&own);
	if (e < 0)
		record(world, all->lead->out);
	if (yk_run_device_failed(e)) {
		yk_device_lose(yk_current()->device);
		atomic_fetch_add(all->lost, 1);
	}
	return e;
}

static int run(struct yk_run *r, struct yk_config *c, atomic_int *lost)
{
	const char *out = r->out;
	struct yk_checkpoint ck;
	int lock = -1;
	int e = r->leads ? yk_resume_lock(out, &lock) : 0;
	if (e == 0)
		e = yk_resume_open(c, out, &ck, &r->from);
	if (e == 0)
		e = yk_config_check(c);
	if (e == 0)
		e = yk_resume_backend(c, r->from ? &ck : NULL);
	if (e == 0)
		e = yk_config_apply(c);
	r->every.log = yk_config_int(c, YK_KEY_log_every);
	r->every.snapshot = yk_config_int(c, YK_KEY_snapshot_every);
	r->report = yk_config_str(c, YK_KEY_report);
	const int64_t ranks = yk_config_int(c, YK_KEY_ranks);
	const struct yk_checkpoint *from = r->from ? &ck : NULL;
	if (e == 0)
		e = yk_ranks_divide_cpu(ranks);
	if (e == 0 && r->leads)
		e = yk_watch_init(&r->watch, c);
	else if (e == 0 && watches_all(c))
		yk_profile_prepare();
	if (e == 0 && ranks > 1 && !(r->corpus = yk_corpus_new()))
		e = yoke_error_code();
	if (e == 0)
		e = ranks > 1 || !strcmp(yk_config_str(c, YK_KEY_spawn), "process") ?
			    yk_ranks_run(ranks, member,
					 &(struct rank_shared){ r, c, from, &lock, lost }) :
			    work(r, c, from, &lock);
	yk_corpus_free(r->corpus);
	r->corpus = NULL;
	yk_watch_fini(&r->watch);
	if (r->from)
		yk_checkpoint_fini(&ck);
	free(r->from);
	r->from = NULL;
	yk_dir_unlock(lock);
	return e;
}

int yk_train(struct yk_config *c, int *lost)
{
	atomic_int devices = 0;
	struct yk_stop stop;
	struct yk_run r = { .out = yk_config_str(c, YK_KEY_out),
			    .stop = &stop,
			    .leads = yk_ranks_leads(),
			    .saves = !strcmp(yk_config_str(c, YK_KEY_checkpoints), "1"),
			    .log = YK_RUNLOG_INIT };
	char *out = NULL;
	// Before any thread is created, so that all inherit the signal mask; a signal would end the
	// process otherwise.
	int e = yk_stop_begin(r.stop, on_signal, &r);
	if (e < 0)
		return e;
	// Not the checkpoint's value, which is the original directory even if the model was moved.
	e = yk_out_name(c, &out);
	if (e == 0) {
		r.out = out;
		e = run(&r, c, &devices);
	}
	if (lost)
		*lost = stop.signal ? 0 : atomic_load(&devices);
	yk_stop_end(r.stop);
	yk_runlog_close(&r.log);
	free(out);
	return e;
}
