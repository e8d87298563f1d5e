// SPDX-License-Identifier: Apache-2.0
// yoke plan: predicts the device memory of a training run without running it.
#include "config.h"

#include "tool/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "graph/context.h"
#include "nn/stage.h"
#include "observe/memory.h"
#include "train/advise.h"
#include "train/check.h"
#include "train/memory_estimate.h"
#include "config/precision.h"

#define MIB ((uint64_t)1 << 20)

static void line(const char *what, uint64_t bytes)
{
	char text[32];
	printf("%-16s %16" PRIu64 "  %s\n", what, bytes, yk_bytes_text(text, bytes));
}

// Prints one line per stage of a pipeline.
static int print_stages(const struct yk_trainer *t, int64_t batch, uint64_t available)
{
	const int64_t stages = yk_config_int(t->replica.config, YK_KEY_stages);
	int e = 0;
	printf("\n%-8s %8s %14s %12s %12s\n", "stage", "blocks", "weights", "activations", "peak");
	for (int64_t s = 0; s < stages && e == 0; s++) {
		char blocks[48], weights[32], activations[32], peak[32];
		struct yk_memory_estimate n;
		int64_t from, to;
		e = yk_stage_split(t->model, &t->shape,
				   yk_config_str(t->replica.config, YK_KEY_split), stages, s, &from,
				   &to);
		if (e == 0)
			e = yk_memory_estimate_of_stage(t, s, batch, available, &n);
		if (e < 0)
			break;
		snprintf(blocks, sizeof blocks, to - from > 1 ? "%" PRId64 "-%" PRId64 : "%" PRId64,
			 from, to - 1);
		printf("%-8" PRId64 " %8s %14s %12s %12s\n", s, blocks,
		       yk_bytes_text(weights, n.weights), yk_bytes_text(activations, n.activations),
		       yk_bytes_text(peak, n.peak));
	}
	return e;
}

static void print(const struct yk_trainer *t, int64_t batch, const struct yk_memory_estimate *n,
		  int64_t stage, uint64_t available)
{
	const struct {
		const char *what;
		uint64_t bytes;
	} rows[] = {
		{ "parameters", n->weights },      { "gradients", n->gradients },
		{ "optimizer state", n->states },  { "gradient sums", n->sums },
		{ "activations", n->activations }, { "workspace", n->workspace },
		{ "peak, forward", n->forward },   { "peak, backward", n->backward },
		{ "peak, step", n->step },         { "peak, validation", n->validation },
		{ "peak of the run", n->peak },    { "room", available },
	};
	if (yk_config_int(t->replica.config, YK_KEY_ranks) > 1)
		printf("per rank, one of %" PRId64 " with tensor=%" PRId64 " zero=%" PRId64,
		       yk_config_int(t->replica.config, YK_KEY_ranks),
		       yk_config_int(t->replica.config, YK_KEY_tensor),
		       yk_config_int(t->replica.config, YK_KEY_zero));
	if (yk_config_int(t->replica.config, YK_KEY_stages) > 1)
		printf(" stages=%" PRId64 ", stage %" PRId64 ", the largest",
		       yk_config_int(t->replica.config, YK_KEY_stages), stage);
	if (yk_config_int(t->replica.config, YK_KEY_ranks) > 1)
		printf(": ");
	printf("%" PRId64 " parameters; batches of %" PRId64 " x %" PRId64
	       " tokens\n\n%-16s %16s\n",
	       n->parameters, batch, t->context, "", "bytes");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].bytes > 0)
			line(rows[i].what, rows[i].bytes);
	printf("\n%s\n", n->fits ? "it fits" : "it does not fit");
}

// ---- alternatives ----

// Prints one line: the memory of the run with these keys changed.
static int alternative(const struct yk_config *c, int n, const char *const *keys,
		       uint64_t available)
{
	struct yk_config other;
	struct yk_trainer *t = NULL;
	struct yk_memory_estimate need;
	char name[160] = "", peak[32], activations[32], recompute[16];
	for (int i = 0; i < n; i++)
		snprintf(name + strlen(name), sizeof name - strlen(name), "%s%s", i ? " " : "",
			 keys[i]);
	int e = yk_config_with(c, n, keys, &other);
	if (e < 0)
		return e;
	snprintf(recompute, sizeof recompute, "%s", yk_param_str(yk_param_find("recompute")));
	e = yk_config_apply(&other);
	if (e == 0)
		e = yk_trainer_plan(&other, &t);
	if (e == 0)
		e = yk_memory_estimate_of(t, yk_config_int(&other, YK_KEY_batch), available, &need,
					  NULL);
	if (e == 0)
		printf("%-32s %10s %12s  %s\n", name, yk_bytes_text(peak, need.peak),
		       yk_bytes_text(activations, need.activations), need.fits ? "yes" : "no");
	else // an unavailable alternative does not stop the others
		printf("%-32s %s\n", name, yoke_error());
	yoke_error_clear();
	yk_trainer_free(t);
	yk_config_fini(&other);
	// keys of the next alternative may leave it unset
	return yoke_setting_set("recompute", recompute);
}

// Keys that affect memory and take one of several words: each word other than the run's own is an
// alternative.
static const enum yk_config_key choices[] = { YK_KEY_recompute, YK_KEY_offload, YK_KEY_optimizer,
					      YK_KEY_precision, YK_KEY_accumulate_order };

static int other_words(const struct yk_config *c, enum yk_config_key key, uint64_t available)
{
	const struct yk_config_row *row = &yk_config_rows[key];
	char words[256], argument[320], *rest = words, *word;
	int e = 0;
	snprintf(words, sizeof words, "%s", row->choices);
	while (e == 0 && (word = strsep(&rest, " "))) {
		if (!strcmp(word, yk_precision_word(yk_config_str(c, key))) ||
		    strcmp(word, yk_precision_word(word)))
			continue; // the run's own word, or a synonym of another one
		snprintf(argument, sizeof argument, "%s=%s", row->name, word);
		e = alternative(c, 1, (const char *[]){ argument }, available);
	}
	return e;
}

// The next smaller batch to list: at most a third, and a divisor of the step's batch.
static int64_t smaller(int64_t whole, int64_t batch)
{
	int64_t next = batch == 1 ? 0 : batch < 3 ? 1 : batch / 3;
	while (next > 1 && whole % next)
		next--;
	return next;
}

// Lists the same step in more micro-batches, and other words of the keys above.
static int alternatives(const struct yk_config *c, int64_t batch, uint64_t available)
{
	int64_t passes = yk_config_int(c, YK_KEY_accumulate);
	char b[40], a[40];
	int e = 0;
	printf("\n%-32s %10s %12s  %s\n", "with", "peak", "activations", "fits");
	for (int64_t part = batch; part > 0 && e == 0; part = smaller(batch, part)) {
		int64_t each = batch / part * passes;
		if (each > (int64_t)yk_config_rows[YK_KEY_accumulate].max)
			break;
		snprintf(b, sizeof b, "batch=%" PRId64, part);
		snprintf(a, sizeof a, "accumulate=%" PRId64, each);
		e = alternative(c, 2, (const char *[]){ b, a }, available);
	}
	for (size_t i = 0; i < sizeof choices / sizeof *choices && e == 0; i++)
		e = other_words(c, choices[i], available);
	return e;
}

// ---- required memory ----

static bool fits_in(const struct yk_trainer *t, int64_t batch, uint64_t available)
{
	struct yk_memory_estimate need;
	const bool fits = yk_memory_estimate_of(t, batch, available, &need, NULL) == 0 && need.fits;

	yoke_error_clear();
	return fits;
}

// The smallest memory limit within which the batch fits, in bytes, a multiple of 1 MiB, to about 1
// %; 0: unknown.
static uint64_t room_for(const struct yk_trainer *t, int64_t batch, uint64_t peak)
{
	uint64_t bad = 0, good = (peak / MIB + 1) * MIB;
	const uint64_t max = 16 * good; // far more than the waste by segments

	while (!fits_in(t, batch, good)) {
		bad = good;
		good *= 2;
		if (good > max)
			return 0;
	}
	while (bad && good - bad > good / 64 + MIB) {
		const uint64_t middle = bad + (good - bad) / 2;
		if (fits_in(t, batch, middle))
			good = middle;
		else
			bad = middle;
	}
	return (good + MIB - 1) / MIB * MIB;
}

static void print_required_memory(const struct yk_trainer *t, int64_t batch, uint64_t peak)
{
	const uint64_t available = room_for(t, batch, peak);
	char text[32];

	if (available)
		printf("memory=%" PRIu64 "M, %s, would be enough for batch=%" PRId64 "\n",
		       available / MIB, yk_bytes_text(text, available), batch);
}

// Prints the largest batch that fits, and the memory that larger ones need.
static void print_fits(const struct yk_trainer *t, int64_t batch,
		       const struct yk_memory_estimate *need, int64_t fits)
{
	struct yk_memory_estimate one;

	if (fits > 0)
		printf("batch=%" PRId64 " is the largest that fits\n", fits);
	else
		printf("not even batch=1 fits\n");
	if (!need->fits)
		print_required_memory(t, batch, need->peak);
	if (fits < 1 && batch > 1 && yk_memory_estimate_of(t, 1, 0, &one, NULL) == 0)
		print_required_memory(t, 1, one.peak);
	yoke_error_clear();
}

// ---- the command ----

static int plan(const struct yk_config *c)
{
	struct yk_trainer *t = NULL;
	struct yk_memory_estimate need;
	int64_t stage = 0;
	int e = yk_config_check_model(c);
	if (e == 0)
		e = yk_config_apply(c);
	if (e == 0)
		e = yk_trainer_plan(c, &t);
	uint64_t available = e == 0 ? yk_dry_capacity() : 0;
	const struct yk_device *d = e == 0 ? yk_device_choose(NULL) : NULL;
	int64_t batch = yk_config_int(c, YK_KEY_batch),
		max = (int64_t)yk_config_rows[YK_KEY_batch].max;
	int64_t fits = e == 0 && d ? yk_dry_batch(max, available, yk_trainer_dry_run, t) : 0;
	if (batch == YK_AUTO) // only measurements can tell which batch is the fastest
		batch = fits > 0 ? fits : 1;
	if (e == 0)
		e = d ? yk_memory_estimate_of(t, batch, available, &need, &stage) :
			yoke_error_code();
	if (e == 0) {
		printf("%s: %s\n", d->id, d->info.name);
		print(t, batch, &need, stage, available);
		if (yk_config_int(c, YK_KEY_stages) > 1)
			e = print_stages(t, batch, available);
	}
	if (e == 0) {
		print_fits(t, batch, &need, fits);
		e = alternatives(c, batch, available);
	}
	yk_trainer_free(t);
	return e;
}

int yk_cmd_plan(int argc, char **argv)
{
	struct yk_config c;
	if (yk_config_init(&c, YK_T) < 0)
		return yk_failed("plan");
	int status = YK_DONE;
	if (yk_config_arguments(&c, argc - 1, argv + 1) < 0) {
		yk_failed("plan");
		status = YK_USAGE;
	} else if (plan(&c) < 0) {
		status = yk_failed("plan");
	}
	yk_config_fini(&c);
	return status;
}
