// SPDX-License-Identifier: Apache-2.0
// Opens a run's directory: lock, checkpoint, and the keys that a resumed run inherits.
#include "config.h"

#include "train/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/shared.h"
#include "parallel/grid.h"
#include "parallel/ranks.h"
#include "train/best.h"
#include "train/choose_device.h"
#include "train/start.h"

static int busy_folder(const char *out)
{
	yoke_error_clear();
	return yk_fail(
		YOKE_EBUSY,
		"%s: another run is writing to it; wait until that run ends, or choose another out",
		out);
}

int yk_resume_lock(const char *out, int *lock)
{
	struct stat st;
	if (*lock >= 0 || stat(out, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	int e = yk_dir_lock(out, lock);
	return e == YOKE_EBUSY ? busy_folder(out) : e;
}

int yk_resume_refused(const char *out, const char *resume)
{
	return yk_fail(YOKE_EPERM,
		       "%s: contains a checkpoint, which is not overwritten; continue from it with "
		       "resume=%s or choose another out",
		       out, resume);
}

// batch=auto keeps the value chosen when the run began.
static int batch_take(struct yk_config *c, const struct yk_config *was)
{
	if (yk_config_int(c, YK_KEY_batch) != YK_AUTO ||
	    yk_config_int(was, YK_KEY_batch) == YK_AUTO)
		return 0;
	return yk_config_settle(c, YK_KEY_batch, yk_config_int(was, YK_KEY_batch));
}

static int64_t parts_of(const struct yk_config *c)
{
	return yk_grid_data(c) * yk_config_int(c, YK_KEY_accumulate);
}

// Ranks and micro-batches: a resumed run keeps the number of micro-batches per step, and ranks=auto
// uses as many ranks as divide it. If accumulate is given anew, the number follows from it.
static int parts_take(struct yk_config *c, const struct yk_config *was, bool given)
{
	const int64_t parts = yk_config_int(was, YK_KEY_micro_batches);
	const bool anew = !given && yk_config_is_explicit(c, YK_KEY_accumulate);
	int e = given ? 0 :
		anew  ? yk_config_settle_text(c, YK_KEY_micro_batches, "auto") :
			yk_config_settle(c, YK_KEY_micro_batches,
                                        parts != YK_AUTO ? parts : parts_of(was));
	if (e == 0)
		e = yk_ranks_settle(c);
	return e == 0 && anew ? yk_config_settle(c, YK_KEY_micro_batches, parts_of(c)) : e;
}

int yk_resume_backend(struct yk_config *c, const struct yk_checkpoint *ck)
{
	const char *was = ck ? json_string_value(json_object_get(ck->config, "backend")) : NULL;
	char summary[256];
	if (strcmp(yk_config_str(c, YK_KEY_backend), "fastest"))
		return 0;
	if (was && strcmp(was, "fastest"))
		return yk_config_settle_text(c, YK_KEY_backend, was);
	int e = yk_device_choice_settle(c, summary);
	if (e == 0)
		fprintf(stderr, "backend=fastest: %s\n", summary);
	return e;
}

// init= may be repeated when resuming, but not changed.
static int same_start(const struct yk_config *c, const struct yk_checkpoint *ck, const char *out)
{
	const char *was = json_string_value(json_object_get(ck->config, "init"));
	if (!yk_config_is_explicit(c, YK_KEY_init) ||
	    !strcmp(yk_config_str(c, YK_KEY_init), was ? was : ""))
		return 0;
	// the frozen model of adapters may have been moved; its weights are compared
	if (ck->adapter)
		return json_object_set_new(ck->adapter, "base",
					   json_string(yk_config_str(c, YK_KEY_init))) < 0 ?
			       yk_fail(YOKE_ENOMEM, "%s: out of memory", out) :
			       0;
	return yk_fail(
		YOKE_EINVAL,
		"%s: was started from %s; remove init=, or train another model with another out",
		out, was && *was ? was : "no pretrained model");
}

// Keys of adapters may be repeated, but not changed.
static int same_adapters(const struct yk_config *c, const struct yk_config *was, const char *out)
{
	static const enum yk_config_key keys[] = { YK_KEY_lora,         YK_KEY_lora_alpha,
						   YK_KEY_lora_targets, YK_KEY_dtype,
						   YK_KEY_quant,        YK_KEY_adapter };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (yk_config_is_explicit(c, keys[i]) && !yk_config_same(c, was, keys[i]))
			return yk_fail(
				YOKE_EINVAL,
				"%s: was started with %s=%s; remove the key, or train another model with another out",
				out, yk_config_rows[keys[i]].name, yk_config_str(was, keys[i]));
	return 0;
}

// Finds the checkpoint to resume: *from is its directory, or NULL to begin a run.
static int find(const struct yk_config *c, const char *out, char **from)
{
	const char *resume = yk_config_str(c, YK_KEY_resume);
	char *best = yk_best_folder(out);
	if (!best)
		return yoke_error_code();
	const bool exists = yk_checkpoint_exists(out), kept = yk_checkpoint_exists(best);
	int e = 0;
	*from = NULL;
	if (!strcmp(resume, "0")) {
		if (exists || (kept && !strcmp(yk_config_str(c, YK_KEY_keep_best), "1")))
			e = yk_resume_refused(exists ? out : best, exists ? "1" : "best");
	} else if (!strcmp(resume, "best") ? !kept : !strcmp(resume, "1") && !exists) {
		e = yk_fail(
			YOKE_ENOENT,
			"%s: contains no checkpoint to resume; remove resume=%s, or %s",
			strcmp(resume, "best") ? out : best, resume,
			kept ? "give resume=best to continue from the one with the lowest validation loss" :
			       "name the checkpoint's directory with out=");
	} else if (!strcmp(resume, "best") ||
		   (kept && !exists)) { // ended before it saved any other
		*from = best;
		return 0;
	} else if (exists && !(*from = strdup(out))) {
		e = yk_fail(YOKE_ENOMEM, "%s: out of memory for a path", out);
	}
	free(best);
	return e;
}

int yk_resume_open(struct yk_config *c, const char *out, struct yk_checkpoint *ck, char **from)
{
	struct yk_config was;
	*from = NULL;
	int e = yk_start_settle(c, yk_checkpoint_exists(out));
	if (e == 0)
		e = find(c, out, from);
	if (e < 0 || !*from)
		return e < 0 ? e : yk_ranks_settle(c);
	e = yk_checkpoint_open(*from, ck);
	if (e < 0) {
		free(*from);
		*from = NULL;
		return e;
	}
	if ((e = same_start(c, ck, out)) < 0 || (e = yk_config_init(&was, YK_T)) < 0)
		return e;
	const bool given = yk_config_is_set(c, YK_KEY_micro_batches);
	e = yk_config_take(&was, ck->config, out);
	if (e == 0)
		e = same_adapters(c, &was, out);
	if (e == 0)
		e = yk_config_take(c, ck->config, out);
	if (e == 0)
		e = parts_take(c, &was, given);
	if (e == 0)
		e = batch_take(c, &was);
	yk_config_fini(&was);
	return e;
}
