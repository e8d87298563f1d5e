// SPDX-License-Identifier: Apache-2.0
// Rejects invalid combinations of keys.
#include "config.h"

#include "train/check.h"

#include <string.h>

#include "base/error.h"
#include "config/optim.h"
#include "parallel/check.h"
#include "tokenizer/train.h"
#include "train/adapted.h"
#include "train/start.h"
#include "train/watch.h"

// Rejects an argument for a size that the model does not have. Files are exempt because they may
// serve several models.
static int foreign_size(const struct yk_config *c, const struct yk_model *m)
{
	for (int k = 0; k < YK_SIZE_COUNT; k++) {
		enum yk_config_key key = yk_config_sizes[k];
		const char *name = yk_config_rows[key].name;
		if (!(m->sizes >> k & 1) && c->value[key].origin == YK_BY_ARGUMENT)
			return yk_fail(YOKE_EINVAL,
				       "argument '%s=%s': model=%s has no %s; remove it", name,
				       yk_config_str(c, key), m->name, name);
	}
	for (int k = 0; k < YK_TRAIT_COUNT; k++) {
		const char *name = yk_config_rows[yk_config_traits[k]].name;
		if (!(m->traits >> k & 1) && c->value[yk_config_traits[k]].origin == YK_BY_ARGUMENT)
			return yk_fail(YOKE_EINVAL,
				       "argument '%s=%s': model=%s has no %s; remove it", name,
				       yk_config_str(c, yk_config_traits[k]), m->name, name);
	}
	return 0;
}

// Rejects an argument for what the files of init= have.
static int has_own(const struct yk_config *c, enum yk_config_key key)
{
	if (c->value[key].origin != YK_BY_ARGUMENT)
		return 0;
	return yk_fail(YOKE_EINVAL, "argument '%s=%s': the model of init= fixes it; remove it",
		       yk_config_rows[key].name, yk_config_str(c, key));
}

// With init=, the files have the model and its tokenizer.
static int check_start(const struct yk_config *c)
{
	static const enum yk_config_key keys[] = { YK_KEY_model, YK_KEY_tokenizer, YK_KEY_vocab };
	int e = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys && e == 0; i++)
		e = has_own(c, keys[i]);
	for (int k = 0; k < YK_SIZE_COUNT && e == 0; k++)
		e = has_own(c, yk_config_sizes[k]);
	for (int k = 0; k < YK_TRAIT_COUNT && e == 0; k++)
		e = has_own(c, yk_config_traits[k]);
	if (e == 0 && yk_config_int(c, YK_KEY_stages) > 1)
		e = yk_fail(YOKE_EINVAL,
			    "stages=%s: the model of init= does not support pipeline stages; use "
			    "stages=1",
			    yk_config_str(c, YK_KEY_stages));
	if (e == 0 && yk_config_int(c, YK_KEY_zero) > 2)
		e = yk_fail(YOKE_EINVAL,
			    "zero=3: each rank loads all weights of init=; use zero=2 or less");
	return e;
}

// Keys that need validations during the run.
static int check_validation(const struct yk_config *c)
{
	const struct yk_config_value *every = &c->value[YK_KEY_eval_every];
	const bool keeps = !strcmp(yk_config_str(c, YK_KEY_keep_best), "1"),
		   stops = yk_config_int(c, YK_KEY_stop_after) > 0;
	if (stops && every->i == 0 && every->r == 0)
		return yk_fail(
			YOKE_EINVAL,
			"stop_after=%s counts validations, but eval_every=0 validates only at the end; give eval_every=",
			yk_config_str(c, YK_KEY_stop_after));
	if (keeps && !strcmp(yk_config_str(c, YK_KEY_checkpoints), "0"))
		return yk_fail(
			YOKE_EINVAL,
			"keep_best=1 keeps a checkpoint, but checkpoints=0 saves none; drop one of them");
	return 0;
}

int yk_config_check(const struct yk_config *c)
{
	if (c->command != YK_T)
		return 0;
	if (!*yk_config_str(c, YK_KEY_data))
		return yk_fail(YOKE_EINVAL,
			       "data is missing; name the text to read, for example data=FILE");
	const int e = check_validation(c);
	return e < 0 ? e : yk_config_check_model(c);
}

int yk_config_check_model(const struct yk_config *c)
{
	struct yk_model_shape shape;

	const struct yk_model *m = yk_config_model(c, 1, &shape);
	int e = yk_starts_from_model(c) ? check_start(c) : yk_model_check(m, &shape);
	if (e == 0 && !yk_starts_from_model(c))
		e = foreign_size(c, m);
	if (e == 0 && c->command == YK_T)
		e = yk_adapted_check(c);
	if (e == 0 && !strcmp(yk_config_str(c, YK_KEY_tokenizer), "word") &&
	    yk_config_int(c, YK_KEY_vocab) > 0 && yk_config_int(c, YK_KEY_vocab) < 3)
		e = yk_fail(YOKE_EINVAL,
			    "vocab=%s: must be at least 3, because two ids are <pad> and <unk>",
			    yk_config_str(c, YK_KEY_vocab));
	if (e == 0 && !strcmp(yk_config_str(c, YK_KEY_tokenizer), "bpe") &&
	    yk_config_int(c, YK_KEY_vocab) > 0 && yk_config_int(c, YK_KEY_vocab) < YK_BPE_MIN)
		e = yk_fail(YOKE_EINVAL,
			    "vocab=%s: 256 ids are bytes and one is " YK_END_OF_TEXT
			    "; %d or more are possible",
			    yk_config_str(c, YK_KEY_vocab), YK_BPE_MIN);
	if (e == 0)
		e = yk_optim_check(c);
	if (e == 0)
		e = yk_ranks_check(c);
	struct yk_watch watch = { 0 };
	if (e == 0)
		e = yk_watch_check(&watch, c);
	if (e == 0 && !*yk_config_str(c, YK_KEY_out))
		return yk_fail(YOKE_EINVAL, "out is empty; name a directory for the model");
	return e;
}
