// SPDX-License-Identifier: Apache-2.0
// Opens a trainer, and determines the largest batch when memory was insufficient.
#include "config.h"

#include "train/trainer_open.h"

#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "graph/context.h"
#include "train/advise.h"
#include "train/batch.h"
#include "train/memory_estimate.h"
#include "models/tokenizer_files.h"

// Sets keys to the values that the data files themselves specify.
static int take_words(struct yk_config *c, const struct yk_trainer *t)
{
	const double share = yk_data_val_fraction(t->feed.data);
	char text[32];
	int e = yk_tokenizer_has_files(t->feed.tokenizer) ?
			0 :
			yk_config_settle_text(c, YK_KEY_tokenizer,
					      yk_tokenizer_name(t->feed.tokenizer));
	if (e < 0 || share == yk_config_real(c, YK_KEY_valid))
		return e;
	// the fewest digits that reproduce the number
	for (int digits = 15; digits < 18; digits++) {
		yk_snprintf(text, sizeof text, "%.*g", digits, share);
		if (yk_strtod(text, NULL) == share)
			break;
	}
	return yk_config_settle_text(c, YK_KEY_valid, text);
}

// Whether to predict memory: alone, if memory= limits it. With ranks, on rank 0, which reports it;
// on devices that compile kernels for the prediction, on all ranks, since the others would wait for
// rank 0 otherwise.
static bool predicts(const struct yk_config *c)
{
	const bool ranks = yk_config_int(c, YK_KEY_ranks) > 1;
	const yoke_group *world = ranks ? yoke_group_world() : NULL;
	if (!ranks)
		return *yk_config_str(c, YK_KEY_memory);
	return world &&
	       (yoke_group_rank(world) == 0 || yk_current()->device->info.kind != YOKE_DEVICE_CPU);
}

int yk_trainer_share(struct yk_corpus *corpus, struct yk_config *c, const char *folder,
		     const struct yk_checkpoint *from, struct yk_trainer **to)
{
	struct yk_trainer *t;
	int e = yk_trainer_alloc(c, corpus, folder, from, &t);
	if (e < 0)
		return e;
	e = take_words(c, t);
	if (e == 0 && yk_config_int(c, YK_KEY_batch) == YK_AUTO)
		e = yk_batch_choose(t, c);
	if (e == 0 && predicts(c))
		t->predicted = yk_memory_estimate_peak(t, yk_config_int(c, YK_KEY_batch));
	if (e == 0)
		e = yk_trainer_make(t, yk_config_int(c, YK_KEY_batch), from, folder);
	if (e < 0) {
		if (e == YOKE_ENOMEM && t->batch)
			e = yk_trainer_advise(t);
		yk_trainer_free(t);
		return e;
	}
	*to = t;
	return 0;
}

int yk_trainer_new(struct yk_config *c, const char *folder, const struct yk_checkpoint *from,
		   struct yk_trainer **to)
{
	return yk_trainer_share(NULL, c, folder, from, to);
}

int yk_trainer_advise(struct yk_trainer *t)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx)
		return YOKE_ENOMEM;
	yk_trainer_unmake(t);
	yoke_context_free(ctx); // including pending or failed work
	return yk_advise_batch(
		t->batch,
		strcmp(yk_config_str(t->replica.config, YK_KEY_recompute), "none") ?
			"use a smaller context or embed, or fewer layers" :
			"use recompute=auto, a smaller context or embed, or fewer layers",
		yk_trainer_dry_run, t);
}

void yk_trainer_leave(struct yoke_context *ctx, struct yoke_context *former)
{
	if (yoke_use(former) == ctx)
		yoke_context_free(ctx);
}
