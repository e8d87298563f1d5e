// SPDX-License-Identifier: Apache-2.0
// A trainer's state as a checkpoint.
#include "config.h"

#include "train/trainer.h"

#include "base/error.h"

static json_t *schedule_json(const struct yk_schedule *s)
{
	return json_pack("{s:s, s:f, s:f, s:I, s:I}",
			 "kind", s->kind == YK_SCHEDULE_COSINE ? "cosine" : "constant",
			 "peak", s->peak, "least", s->least,
			 "warmup", (json_int_t)s->warmup, "steps", (json_int_t)s->steps);
}

int yk_trainer_save(struct yk_trainer *t, const char *folder)
{
	struct yk_record record;
	if (t->step > 0) {
		int e = yk_trainer_record(t, &record);
		if (e < 0)
			return e;
	}
	const struct yk_parameters *states = yk_optim_states(t->optim);
	struct yk_host_list model = { 0 }, optim = { 0 };
	struct yk_checkpoint ck = {
		.model = yk_model_describe(&t->gpt->shape),
		.tokenizer = yk_tokenizer_save(t->tokenizer),
		.config = yk_config_json(t->config),
		.schedule = schedule_json(&t->schedule),
		.step = t->step, .seed = t->seed, .random_step = t->random_step,
		.data = t->position, .text = yk_data_fingerprint(t->data),
	};
	int e = 0;
	if (!ck.model || !ck.tokenizer || !ck.config || !ck.schedule)
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for the manifest", folder);
	if (e == 0)
		e = yk_host_list_new(&t->gpt->params, &model);
	if (e == 0)
		e = yk_host_list_new(states, &optim);
	if (e == 0)
		e = yk_host_list_read(&model, &t->gpt->params);
	if (e == 0)
		e = yk_host_list_read(&optim, states);
	if (e == 0)
		e = yk_checkpoint_save(folder, &ck, model.count, model.tensor, optim.count,
				       optim.tensor);
	yk_host_list_free(&model);
	yk_host_list_free(&optim);
	yk_checkpoint_fini(&ck);
	return e;
}
