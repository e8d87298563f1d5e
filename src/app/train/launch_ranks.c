// SPDX-License-Identifier: Apache-2.0
// Starts ranks as threads or processes, and restarts the remaining ones after a failure.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/system.h"
#include "comm/process.h"
#include "train/check.h"
#include "train/launch_ranks.h"
#include "train/outname.h"
#include "parallel/ranks.h"
#include "train/resume.h"
#include "train/run.h"

enum { GRACE = 700000000 }; // nanoseconds between the first rank's failure and killing the others

bool yk_ranks_spawns(const struct yk_config *c)
{
	uint32_t rank, ranks;
	return !strcmp(yk_config_str(c, YK_KEY_spawn), "process") &&
	       !yk_process_rank(&rank, &ranks);
}

// The configuration as the ranks will see it; for a resumed run, with the checkpoint's values.
static int complete(const struct yk_config *c, struct yk_config *to)
{
	struct yk_checkpoint ck;
	char *out = NULL, *from = NULL;
	int e = yk_config_with(c, 0, NULL, to);
	if (e < 0)
		return e;
	e = yk_out_name(to, &out);
	if (e == 0)
		e = yk_resume_open(to, out, &ck, &from);
	if (from)
		yk_checkpoint_fini(&ck);
	free(from);
	if (e == 0)
		e = yk_config_check(to);
	if (e < 0)
		yk_config_fini(to);
	free(out);
	return e;
}

// The command's arguments for a rank, with another number of ranks after a restart.
struct words {
	char **word, name[8], ranks[32], parts[32], resume[16], stages[32], tensor[32], split[16];
};

// The number of ranks that continue, and their layout.
struct division {
	int64_t ranks, stages, tensor;
};

static bool is_key(const char *word, const char *key)
{
	const size_t n = strlen(key);
	return yk_same_words(word, key, n) && word[n] == '=';
}

static int words_make(struct words *w, int argc, char *const argv[])
{
	w->word = calloc((size_t)argc + 8, sizeof *w->word);
	if (!w->word)
		return yk_fail(YOKE_ENOMEM, "ranks: out of memory");
	snprintf(w->name, sizeof w->name, "yoke");
	w->word[0] = w->name;
	memcpy(w->word + 1, argv, (size_t)argc * sizeof *w->word);
	return 0;
}

// changed: stages or tensor differ from the arguments.
static void words_set(struct words *w, const struct division *to, int64_t parts, bool changed)
{
	static const char *const counts[] = { "ranks", "micro_batches", "resume" },
				 *const layout[] = { "stages", "tensor", "split" };
	size_t n = 0;
	for (size_t i = 0; w->word[i]; i++) {
		bool goes = false;
		for (int k = 0; k < 3; k++)
			goes |= is_key(w->word[i], counts[k]) ||
				(changed && is_key(w->word[i], layout[k]));
		if (!goes)
			w->word[n++] = w->word[i];
	}
	snprintf(w->ranks, sizeof w->ranks, "ranks=%lld", (long long)to->ranks);
	snprintf(w->parts, sizeof w->parts, "micro_batches=%lld", (long long)parts);
	snprintf(w->resume, sizeof w->resume, "resume=auto");
	snprintf(w->stages, sizeof w->stages, "stages=%lld", (long long)to->stages);
	snprintf(w->tensor, sizeof w->tensor, "tensor=%lld", (long long)to->tensor);
	snprintf(w->split, sizeof w->split, "split=auto");
	w->word[n++] = w->ranks;
	w->word[n++] = w->parts;
	w->word[n++] = w->resume;
	if (changed) {
		w->word[n++] = w->stages;
		w->word[n++] = w->tensor;
		w->word[n++] = w->split;
	}
	w->word[n] = NULL;
}

// The configured ranks.
static struct division division_of(const struct yk_config *c)
{
	return (struct division){ yk_config_int(c, YK_KEY_ranks), yk_config_int(c, YK_KEY_stages),
				  yk_config_int(c, YK_KEY_tensor) };
}

static bool is_other(const struct division *now, const struct yk_config *c)
{
	return now->stages != yk_config_int(c, YK_KEY_stages) ||
	       now->tensor != yk_config_int(c, YK_KEY_tensor);
}

// Whether `now` gives the same bits as the configured ranks.
static bool keeps_bits(const struct yk_config *c, const struct division *now, int64_t parts)
{
	const struct division was = division_of(c);
	const int64_t had = was.ranks / (was.stages * was.tensor),
		      data = now->ranks / (now->stages * now->tensor);
	// the first and last stage add their gradients of the tied matrix
	const bool tied = yk_config_int(c, YK_KEY_tied) && was.stages > 1;
	return now->tensor == was.tensor && !(tied && now->stages == 1) &&
	       (data == had || (yk_ranks_in_order(c, had, parts, NULL) &&
				yk_ranks_in_order(c, data, parts, NULL)));
}

// The largest layout of at most `left` ranks that gives the same bits, with no more stages and
// tensor ranks than before; among equal numbers the one with most stages. If there is none, one
// that gives nearly the same bits. ranks 0: too few.
static struct division go_on_with(const struct yk_config *c, int64_t left, int64_t parts)
{
	const struct division was = division_of(c);
	struct division to = { 0 };
	for (int near = 0; near < 2 && !to.ranks; near++)
		for (struct division try = was; try.stages > 0; try.stages--)
			for (try.tensor = was.tensor; try.tensor > 0; try.tensor--)
				for (int64_t unit = try.stages * try.tensor, data = left / unit;
				     data > 0; data--) {
					try.ranks = data * unit;
					if (was.tensor % try.tensor == 0 && parts % data == 0 &&
					    try.ranks > to.ranks &&
					    try.ranks >= yk_config_int(c, YK_KEY_min_ranks) &&
					    (near || keeps_bits(c, &try, parts)))
						to = try;
				}
	return to;
}

// After `lost` ranks failed: whether others continue, which it logs, and their layout in *to.
static bool others(const struct yk_config *c, int64_t lost, int64_t parts, int64_t again,
		   struct division *to)
{
	const int64_t restarts = yk_config_int(c, YK_KEY_restarts);
	char how[80] = "";
	if (!lost || again > restarts)
		return false;
	*to = go_on_with(c, to->ranks - lost, parts);
	const bool nearly = to->ranks && !keeps_bits(c, to, parts);
	if (is_other(to, c))
		snprintf(how, sizeof how, ", with stages=%lld tensor=%lld", (long long)to->stages,
			 (long long)to->tensor);
	if (to->ranks)
		yk_warn("train",
			"%s; %lld rank%s continue%s from the last checkpoint, restart %lld of "
			"%lld%s%s",
			yoke_error(), (long long)to->ranks, to->ranks == 1 ? "" : "s",
			to->ranks == 1 ? "s" : "", (long long)again, (long long)restarts, how,
			nearly ? ": the results are close to those of all ranks, but not "
				 "bit-identical" :
				 "");
	return to->ranks > 0;
}

static int64_t parts_of(const struct yk_config *c)
{
	const int64_t parts = yk_config_int(c, YK_KEY_micro_batches);
	return parts == YK_AUTO ? yk_grid_data(c) * yk_config_int(c, YK_KEY_accumulate) : parts;
}

static int spawn_all(const struct yk_config *c, struct words *w, const sigset_t *set)
{
	const int64_t parts = parts_of(c);
	struct division now = division_of(c);
	for (int64_t again = 1;; again++) {
		struct yk_launch launch = { .path = yk_program(), .grace = GRACE, .forward = set };
		const int e = yk_spawn((int)now.ranks, w->word, &launch);
		yk_stop_swallow(&launch.window, set);
		if (e < 0 && launch.signals > 1)
			_exit(128 + launch.signal);
		if (e == 0 || launch.signals || !others(c, launch.lost, parts, again, &now))
			return e;
		yoke_error_clear();
		words_set(w, &now, parts, is_other(&now, c));
	}
}

// Prepares the arguments and the complete configuration of the child processes; the caller frees
// both.
static int prepare(const struct yk_config *c, int argc, char *const argv[], struct yk_config *all,
		   struct words *w)
{
	int e = words_make(w, argc, argv);
	if (e < 0)
		return e;
	e = complete(c, all);
	if (e < 0)
		free(w->word);
	return e;
}

int yk_ranks_spawn(const struct yk_config *c, int argc, char *const argv[])
{
	sigset_t set, old;
	struct yk_config all;
	struct words w;
	int e = prepare(c, argc, argv, &all, &w);
	if (e < 0)
		return e;
	yk_stop_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	e = spawn_all(&all, &w, &set);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	yk_config_fini(&all);
	free(w.word);
	return e;
}

int yk_ranks_train(struct yk_config *c, int argc, char *const argv[])
{
	struct yk_config all, again;
	struct words w;
	int lost = 0;
	if (!yk_config_int(c, YK_KEY_restarts) ||
	    yk_process_rank(&(uint32_t){ 0 }, &(uint32_t){ 0 }))
		return yk_train(c, NULL);
	int e = prepare(c, argc, argv, &all, &w);
	if (e < 0)
		return e;
	const int64_t parts = parts_of(&all);
	struct division now = division_of(&all);
	e = yk_train(c, &lost);
	for (int64_t n = 1; e < 0 && others(&all, lost, parts, n, &now); n++) {
		yoke_error_clear();
		words_set(&w, &now, parts, is_other(&now, &all));
		int count = 2;
		while (w.word[count])
			count++;
		e = yk_config_init(&again, YK_T);
		if (e == 0)
			e = yk_config_arguments(&again, count - 2, w.word + 2);
		lost = 0;
		if (e == 0)
			e = yk_train(&again, &lost);
		yk_config_fini(&again);
	}
	yk_config_fini(&all);
	free(w.word);
	return e;
}
