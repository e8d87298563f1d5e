// SPDX-License-Identifier: Apache-2.0
// Takes and restores snapshots of a trainer.
#include "config.h"

#include "train/snapshot.h"

#include "parallel/compress.h"

int yk_snapshot_take(struct yk_snapshot *to, struct yk_trainer *t)
{
	struct yk_snapshot s = { .taken = true,
				 .step = t->replica.step,
				 .random_step = t->random_step,
				 .position = t->feed.position };
	struct yk_record record;
	int e = t->replica.step > 0 ? yk_trainer_record(t, &record) : 0;
	s.skipped = t->skipped;
	s.best = t->best;
	s.scaler.size = sizeof s.scaler;
	if (e == 0 && t->replica.scaler)
		e = yoke_scaler_save(t->replica.scaler, &s.scaler);
	if (e == 0)
		e = yk_host_list_read(t->replica.kept, &s.model);
	if (e == 0)
		e = yk_host_list_read(yk_optim_states(t->replica.optim), &s.states);
	if (e == 0 && t->replica.compress)
		e = yk_host_list_read(yk_compress_errors(t->replica.compress), &s.errors);
	yk_snapshot_fini(e == 0 ? to : &s);
	if (e == 0)
		*to = s;
	return e;
}

int yk_snapshot_put(const struct yk_snapshot *s, struct yk_trainer *t)
{
	int e = yk_host_list_put(&s->model, t->replica.kept);
	if (e == 0)
		e = yk_host_list_put(&s->states, yk_optim_states(t->replica.optim));
	if (e == 0 && t->replica.compress)
		e = yk_host_list_put(&s->errors, yk_compress_errors(t->replica.compress));
	if (e == 0 && t->replica.scaler)
		e = yoke_scaler_load(t->replica.scaler, &s->scaler);
	if (e < 0)
		return e;
	t->replica.step = s->step;
	t->skipped = s->skipped;
	t->best = s->best;
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
