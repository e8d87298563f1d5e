// SPDX-License-Identifier: Apache-2.0
// Takes and restores snapshots of a trainer.
#include "config.h"

#include "train/snapshot.h"

#include "train/compress.h"

int yk_snapshot_take(struct yk_snapshot *to, struct yk_trainer *t)
{
	struct yk_snapshot s = { .taken = true,
				 .step = t->step,
				 .random_step = t->random_step,
				 .position = t->position };
	struct yk_record record;
	int e = t->step > 0 ? yk_trainer_record(t, &record) : 0;
	s.skipped = t->skipped;
	s.scaler.size = sizeof s.scaler;
	if (e == 0 && t->scaler)
		e = yoke_scaler_save(t->scaler, &s.scaler);
	if (e == 0)
		e = yk_host_list_read(t->kept, &s.model);
	if (e == 0)
		e = yk_host_list_read(yk_optim_states(t->optim), &s.states);
	if (e == 0 && t->compress)
		e = yk_host_list_read(yk_compress_errors(t->compress), &s.errors);
	yk_snapshot_fini(e == 0 ? to : &s);
	if (e == 0)
		*to = s;
	return e;
}

int yk_snapshot_put(const struct yk_snapshot *s, struct yk_trainer *t)
{
	int e = yk_host_list_put(&s->model, t->kept);
	if (e == 0)
		e = yk_host_list_put(&s->states, yk_optim_states(t->optim));
	if (e == 0 && t->compress)
		e = yk_host_list_put(&s->errors, yk_compress_errors(t->compress));
	if (e == 0 && t->scaler)
		e = yoke_scaler_load(t->scaler, &s->scaler);
	if (e < 0)
		return e;
	t->step = s->step;
	t->skipped = s->skipped;
	t->checked = false;
	t->random_step = s->random_step;
	yk_trainer_seek(t, &s->position);
	return 0;
}

void yk_snapshot_fini(struct yk_snapshot *s)
{
	yk_host_list_free(&s->model);
	yk_host_list_free(&s->states);
	yk_host_list_free(&s->errors);
	*s = (struct yk_snapshot){ 0 };
}
