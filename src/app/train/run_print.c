// SPDX-License-Identifier: Apache-2.0
// Output of a run at its start and end.
#include "config.h"

#include "train/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "graph/context.h"
#include "config/advice.h"
#include "train/memory_estimate.h"
#include "parallel/ranks.h"
#include "parallel/stages.h"
#include "parallel/zero.h"

// Passes over the training data, as the key `epochs` counts them.
static double epochs_seen(const struct yk_trainer *t)
{
	return (double)t->replica.step * (double)t->batch * (double)t->replica.batches.count /
	       (double)yk_data_train_windows(t->feed.data);
}

static void print_resumed(struct yk_run *r, const struct yk_config *c,
			  const struct yk_checkpoint *from)
{
	const struct yk_trainer *t = r->trainer;
	bool epochs = yk_config_real(c, YK_KEY_epochs) > 0;
	struct yk_rise rise;
	char early[160];
	yk_progress_print(&r->progress, "resumed from %s at step %" PRId64, r->from,
			  t->replica.step);
	if (yk_run_stopped_early(r)) {
		yk_run_early_text(r, early, sizeof early);
		yk_progress_print(
			&r->progress,
			"%s is finished: %s; to train further, give a larger stop_after, or 0",
			r->out, early);
	} else if (t->replica.step >= t->steps)
		yk_progress_print(
			&r->progress,
			"%s is finished: it has %" PRId64 " of %" PRId64
			" steps; to train further, give a larger number, for example %s=%.*g",
			r->out, t->replica.step, t->steps, epochs ? "epochs" : "steps",
			epochs ? 2 : 10, (epochs ? epochs_seen(t) : (double)t->replica.step) * 2);
	if (yk_trainer_rises(t, from->schedule, &rise))
		yk_warn("train",
			"%s: the changed keys raise the learning rate from %.3g to %.3g:%s; to "
			"continue at %.3g give %s",
			r->out, rise.was, rise.next, rise.why, rise.was, rise.keep);
}

void yk_run_print_progress(struct yk_run *r, const struct yk_config *c)
{
	yk_progress_open(&r->progress, r->record, yk_config_str(c, YK_KEY_progress),
			 r->trainer->steps);
}

static bool ends_with(const char *name, size_t n, const char *end)
{
	const size_t m = strlen(end);
	return n > m && yk_same_words(name + n - m, end, m);
}

// Logs that a table is read as text, which is rarely what is meant.
static void warn_about_table(const struct yk_config *c)
{
	for (const char *at = yk_config_str(c, YK_KEY_data); *at;
	     at += strcspn(at, ","), at += *at == ',') {
		const size_t n = strcspn(at, ",");
		if (!ends_with(at, n, ".csv") && !ends_with(at, n, ".tsv"))
			continue;
		yk_warn("train",
			"data=%.*s: is a table, but is trained on as text, byte for byte; to train on its "
			"values, read it with yoke.dataset_open in Python or yoke_dataset_open in C; `yoke data info %.*s` shows its columns",
			(int)n, at, (int)n, at);
		return;
	}
}

// How the work is divided among ranks, and what each of them holds.
static void print_ranks(struct yk_run *r)
{
	const struct yk_replica *t = &r->trainer->replica;
	const uint64_t parameters = yk_parameters_bytes(&t->net->params);
	char stages[240], order[400], weights[32], gradients[32], max[32], all[32];
	if (t->grid.all)
		yk_progress_print(&r->progress,
				  "%d ranks, each computes %" PRId64 " of the %" PRId64
				  " micro-batches of a step",
				  yoke_group_size(t->grid.all), t->batches.accumulate,
				  t->batches.count);
	if (yk_ranks_order_text(t, order, sizeof order))
		yk_progress_print(&r->progress, "%s", order);
	if (t->tensor_parallel)
		yk_progress_print(
			&r->progress,
			"tensor=%" PRId64 ": %" PRId64
			" ranks compute each micro-batch together; each holds %s of weights",
			t->grid.tensor, t->grid.tensor, yk_bytes_text(weights, parameters));
	if (t->stages) {
		yk_stages_text(t, stages, sizeof stages);
		yk_progress_print(&r->progress, "%s", stages);
	}
	if (!t->zero)
		return;
	const uint64_t states = (uint64_t)yk_optim_states_each(t->config), shard = yk_zero_max(t);
	yk_progress_print(
		&r->progress,
		"zero=%d: a rank holds at most %s of weights, %s of gradients, and %s of "
		"the %s of optimizer state",
		t->stage, yk_bytes_text(weights, t->stage < 3 ? parameters : shard),
		yk_bytes_text(gradients, t->stage < 2 ? parameters : shard),
		yk_bytes_text(max, shard * states),
		yk_bytes_text(all, sizeof(float) * (uint64_t)t->net->params.elements * states));
}

static void print_data(struct yk_run *r)
{
	const struct yk_trainer *t = r->trainer;
	const struct yk_data *data = t->feed.data;
	const int64_t parameters = t->replica.net->params.elements,
		      valid = yk_data_valid_windows(data);
	char each[48] = "", n[4][64];
	if (t->valid_windows < valid)
		snprintf(each, sizeof each, ", %" PRId64 " of them per validation",
			 t->valid_windows);
	if (yk_data_endless(data))
		yk_progress_print(&r->progress,
				  "%" PRId64 " parameters; training windows are read from a pipe",
				  parameters);
	else if (yk_data_chats(data))
		yk_progress_print(
			&r->progress, "%s; %s of %s: %s for training, %" PRId64 " for validation%s",
			yk_counted(n[0], parameters, "parameter"),
			yk_counted(n[1], yk_data_chats(data), "conversation"),
			yk_counted(n[2], yk_data_tokens(data), "token"),
			yk_counted(n[3], yk_data_train_windows(data), "window"), valid, each);
	else
		yk_progress_print(
			&r->progress, "%s; %s in %s: %s for training, %" PRId64 " for validation%s",
			yk_counted(n[0], parameters, "parameter"),
			yk_counted(n[1], yk_data_tokens(data), "token"),
			yk_counted(n[2], yk_data_files(data), "file"),
			yk_counted(n[3], yk_data_train_windows(data), "window"), valid, each);
}

static void warn_about_settings(const struct yk_run *r, const struct yk_config *c)
{
	const struct yk_replica *t = &r->trainer->replica;
	const double ratio = yk_config_real(c, YK_KEY_compress_ratio);
	if (t->compress && t->group && ratio * yoke_group_size(t->group) >= 1)
		yk_warn("train",
			"compress=topk: with %d ranks and compress_ratio=%g, compression sends no "
			"less data; a ratio below %g does",
			yoke_group_size(t->group), ratio, 1.0 / yoke_group_size(t->group));
	if (yk_model_leaks(t->net->model, &t->net->shape))
		yk_warn("train", "bk_side=both lets a position see later tokens, including the one "
				 "to predict: its loss does not measure prediction, and generate "
				 "refuses the model; use bk_side=left");
}

// The memory that the run is predicted to use, before it starts.
static void print_prediction(struct yk_run *r, const struct yk_config *c)
{
	const struct yk_trainer *t = r->trainer;
	const char *limit = yk_config_str(c, YK_KEY_memory), *what = "the run";
	if (t->replica.grid.all)
		what = "a rank";
	if (t->predicted)
		yk_progress_print(&r->progress, "%s%s%s%s is predicted to use at most %.4g MiB",
				*limit ? "memory=" : "", limit, *limit ? ": " : "", what,
				(double)t->predicted / (1 << 20));
}

int yk_run_print_start(struct yk_run *r, const struct yk_config *c,
		       const struct yk_checkpoint *from)
{
	const struct yk_trainer *t = r->trainer;
	const struct yk_device *d = yk_current()->device;
	struct yk_memory memory;
	yk_progress_print(&r->progress, "on %s: %s%s%s", d->id, d->info.name,
			  *d->info.driver ? "; " : "", d->info.driver);
	print_ranks(r);
	print_data(r);
	warn_about_settings(r, c);
	if (!*yk_config_str(c, YK_KEY_format) && !from)
		warn_about_table(c);
	if (*t->batch_why)
		yk_progress_print(&r->progress, "%s", t->batch_why);
	print_prediction(r, c);
	if (from)
		print_resumed(r, c, from);
	if (!strcmp(yk_config_str(c, YK_KEY_plot), "1"))
		yk_run_plot(&t->schedule, t->steps, &r->progress);
	int e = yk_memory_read(&memory);
	if (e < 0 || t->replica.step >= t->steps)
		return e;
	yk_progress_memory(&r->progress, t->replica.step, r->epochs.done, 0, &memory);
	return 0;
}

#define WAITED_MUCH 0.05 // fraction of the time, above which waiting for data is reported

void yk_run_early_text(const struct yk_run *r, char *to, size_t cap)
{
	const struct yk_best *b = &r->trainer->best;
	char n[64];
	yk_counted(n, b->since, "validation");
	if (b->step < 0)
		yk_snprintf(to, cap, "%s without a finite loss (stop_after=%" PRId64 ")", n,
			    r->best.stop_after);
	else
		yk_snprintf(to, cap,
			    "%s without a loss below %.6g, that of step %" PRId64
			    " (stop_after=%" PRId64 ")",
			    n, b->loss, b->step, r->best.stop_after);
}

// Prints commands that use the finished model.
static void print_next(struct yk_run *r, const char *folder)
{
	const struct yk_trainer *t = r->trainer;
	const char *format = yk_config_str(t->replica.config, YK_KEY_format);
	// only text and files of tokens can be read again
	const bool incomplete = !yk_config_is_path(t->replica.config, YK_KEY_valid) &&
			  (yk_data_piped(yk_config_str(t->replica.config, YK_KEY_data)) ||
			   yk_data_valid_windows(t->feed.data) == 0);
	// a token, not text
	const char *prompt = strcmp(yk_tokenizer_name(t->feed.tokenizer), "ids") ? "" : " prompt=0";
	char *name = yk_shell_word(folder);
	if (name)
		yk_progress_print(&r->progress, "next: yoke generate %s%s, yoke eval %s%s%s%s",
				  name, prompt, name, incomplete ? " data=FILE" : "",
				  incomplete && *format ? " format=" : "",
				  incomplete ? format : "");
	free(name);
}

void yk_run_print_end(struct yk_run *r)
{
	const struct yk_trainer *t = r->trainer;
	struct yk_progress *p = &r->progress;
	const char *data = yk_config_str(t->replica.config, YK_KEY_data);
	bool piped = yk_data_piped(data);
	char losses[160], early[160], *name = yk_shell_word(r->out), *from = yk_shell_word(data);
	char *best = r->best.saves && r->best.saved.step >= 0 ? yk_best_folder(r->out) : NULL;
	int n = snprintf(losses, sizeof losses, "step %" PRId64 "/%" PRId64, t->replica.step,
			 t->steps);
	if (isfinite(r->state.loss)) // at least one step was made
		n += yk_snprintf(losses + n, sizeof losses - (size_t)n, ", loss %.4f",
				 r->state.loss);
	if (isfinite(r->state.val_loss))
		n += yk_snprintf(losses + n, sizeof losses - (size_t)n,
			      ", val_loss %.4f, perplexity %.4g", r->state.val_loss,
			      exp(r->state.val_loss));
	if (isfinite(r->state.val_loss) && r->done.validated >= 0 &&
	    r->done.validated < t->replica.step)
		snprintf(losses + n, sizeof losses - (size_t)n, " (of step %" PRId64 ")",
			 r->done.validated);
	const struct yoke_loader_stats data_stats = yk_trainer_data(t);
	const double waited = r->state.busy > 0 ? data_stats.waited / r->state.busy : 0;
	if (waited > WAITED_MUCH) {
		char line[80];
		yk_snprintf(line, sizeof line, "waiting for data %.0f %% of the time: workers=%d",
			    100 * waited, data_stats.workers);
		yk_progress_line(p, line);
	}
	const uint64_t failed = yk_data_errors_count(&r->data_errors);
	if (failed) {
		char kinds[256];
		yk_data_errors_text(&r->data_errors, kinds, sizeof kinds);
		char samples[64];
		yk_progress_print(
			p, "%s could not be read and %s skipped: %s; %s/data_errors.jsonl lists %s",
			yk_counted(samples, (long long)failed, "sample"),
			failed == 1 ? "was" : "were", kinds, r->out,
			failed == 1 ? "it" : "them");
	}
	if (yk_run_stopped_early(r)) {
		yk_run_early_text(r, early, sizeof early);
		yk_progress_print(p, "ended early: %s", early);
	}
	if (r->done.saved != t->replica.step) {
		yk_progress_print(p, "%s; no model was saved (checkpoints=0)", losses);
	} else {
		yk_progress_print(p, "model in %s: %s", r->out, losses);
		if (best)
			yk_progress_print(p, "lowest val_loss %.4f, of step %" PRId64 ", in %s",
					  r->best.saved.loss, r->best.saved.step, best);
		// the same text must be piped again
		const bool ended = t->replica.step == t->steps || yk_run_stopped_early(r);
		if (name && from && !ended && piped)
			yk_progress_print(p, "next: .. | yoke train data=%s out=%s resume=1", from,
					  name);
		else if (name && !ended)
			yk_progress_print(p, "next: yoke train out=%s resume=1", name);
		else
			print_next(r, best ? best : r->out);
	}
	free(best);
	free(name);
	free(from);
}
