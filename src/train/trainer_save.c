// SPDX-License-Identifier: Apache-2.0
// A trainer's state as a checkpoint.
#include "config.h"

#include "train/snapshot.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static json_t *schedule_json(const struct yk_schedule *s)
{
	return json_pack("{s:s, s:f, s:f, s:I, s:I}",
			 "kind", s->kind == YK_SCHEDULE_COSINE ? "cosine" : "constant",
			 "peak", s->peak, "least", s->least,
			 "warmup", (json_int_t)s->warmup, "steps", (json_int_t)s->steps);
}

bool yk_trainer_rises(const struct yk_trainer *t, const json_t *o, double *was, double *next)
{
	const char *kind = json_string_value(json_object_get(o, "kind"));
	const struct yk_schedule old = {
		.kind = kind && !strcmp(kind, "cosine") ? YK_SCHEDULE_COSINE : YK_SCHEDULE_CONSTANT,
		.peak = json_number_value(json_object_get(o, "peak")),
		.least = json_number_value(json_object_get(o, "least")),
		.warmup = json_integer_value(json_object_get(o, "warmup")),
		.steps = json_integer_value(json_object_get(o, "steps")),
	};
	double planned = yk_schedule_lr(&old, t->step + 1); // more than before while it warms up
	*was = t->step > 0 ? yk_schedule_lr(&old, t->step) : planned;
	*next = yk_schedule_lr(&t->schedule, t->step + 1);
	return kind && t->step < t->steps && *next > 1.001 * fmax(*was, planned);
}

int yk_trainer_save(struct yk_trainer *t, const char *folder)
{
	struct yk_snapshot now = { 0 };
	int e = yk_snapshot_take(&now, t);
	if (e < 0)
		return e;
	struct yk_checkpoint ck = {
		.model = yk_model_describe(&t->gpt->shape),
		.tokenizer = yk_tokenizer_save(t->tokenizer),
		.config = yk_config_json(t->config),
		.schedule = schedule_json(&t->schedule),
		.step = t->step, .seed = t->seed, .random_step = t->random_step,
		.data = t->position, .text = yk_data_fingerprint(t->data),
	};
	if (!ck.model || !ck.tokenizer || !ck.config || !ck.schedule)
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for the manifest", folder);
	if (e == 0)
		e = yk_checkpoint_save(folder, &ck, now.model.count, now.model.tensor,
				       now.states.count, now.states.tensor);
	yk_snapshot_fini(&now);
	yk_checkpoint_fini(&ck);
	return e;
}
