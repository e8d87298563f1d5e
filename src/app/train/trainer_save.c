// SPDX-License-Identifier: Apache-2.0
// Saves and restores a trainer's state as a checkpoint.
#include "config.h"

#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "models/adapter.h"
#include "parallel/gather_checkpoint.h"
#include "train/start.h"
#include "models/tokenizer_files.h"

static json_t *schedule_json(const struct yk_lr_schedule *s)
{
	return json_pack("{s:s, s:f, s:f, s:I, s:I, s:f, s:f, s:I, s:I}",
			 "kind", yk_schedule_names[s->kind],
			 "peak", s->peak, "min", s->min,
			 "warmup", (json_int_t)s->warmup, "steps", (json_int_t)s->steps,
			 "factor", s->factor, "grow", s->grow,
			 "every", (json_int_t)s->every, "cycle", (json_int_t)s->cycle);
}

// Parses the result of schedule_json; older manifests have only cosine or constant.
static struct yk_lr_schedule schedule_from(const json_t *o)
{
	const char *kind = json_string_value(json_object_get(o, "kind"));
	struct yk_lr_schedule s = {
		.peak = json_number_value(json_object_get(o, "peak")),
		.min = json_number_value(json_object_get(o, "min")),
		.warmup = json_integer_value(json_object_get(o, "warmup")),
		.steps = json_integer_value(json_object_get(o, "steps")),
		.factor = json_number_value(json_object_get(o, "factor")),
		.grow = json_number_value(json_object_get(o, "grow")),
		.every = json_integer_value(json_object_get(o, "every")),
		.cycle = json_integer_value(json_object_get(o, "cycle")),
	};
	for (int k = 0; k < YK_SCHEDULES; k++)
		if (kind && !strcmp(kind, yk_schedule_names[k]))
			s.kind = (enum yk_schedule_kind)k;
	return s;
}

// Lists the keys by which `now` differs from `old`, as "lr=0.1 steps=120".
static void name_changes(const struct yk_lr_schedule *now, const struct yk_lr_schedule *old,
			 char *to, size_t room)
{
	FILE *f = fmemopen(to, room, "w");
	if (!f)
		return;
	if (now->peak != old->peak)
		yk_fprintf(f, " lr=%.5g", now->peak);
	if (now->kind != old->kind)
		fprintf(f, " schedule=%s", yk_schedule_names[now->kind]);
	if (now->steps != old->steps && yk_schedule_ends(now->kind))
		fprintf(f, " steps=%lld", (long long)now->steps);
	if (now->warmup != old->warmup)
		fprintf(f, " warmup=%lld", (long long)now->warmup);
	fclose(f);
}

bool yk_trainer_rises(const struct yk_trainer *t, const json_t *o, struct yk_rise *to)
{
	const char *kind = json_string_value(json_object_get(o, "kind"));
	const struct yk_lr_schedule old = schedule_from(o);
	int64_t done = yk_trainer_stepped(t);
	double planned = yk_schedule_lr(&old, done + 1); // rises during warm-up
	*to = (struct yk_rise){
		.was = done > 0 ? yk_schedule_lr(&old, done) : planned,
		.next = yk_schedule_lr(&t->schedule, done + 1),
	};
	name_changes(&t->schedule, &old, to->why, sizeof to->why);
	yk_snprintf(to->keep, sizeof to->keep, "lr=%.5g schedule=constant%s", to->was,
		 done + 1 < t->schedule.warmup ? " warmup=0" : "");
	return kind && t->replica.step < t->steps && to->next > 1.001 * fmax(to->was, planned);
}

int yk_trainer_save_with(struct yk_trainer *t, const char *folder, struct yk_checkpoint *ck)
{
	struct yk_checkpoint_arrays arrays[YK_CHECKPOINT_PARTS];
	struct yk_record record;
	const bool alone = !t->replica.whole;
	int e = t->replica.step > 0 ? yk_trainer_record(t, &record) : 0;
	if (e == 0 && alone)
		e = yk_checkpoint_gather_begin(&t->replica);
	ck->step = t->replica.step;
	ck->skipped = t->skipped;
	ck->scaler = yk_scaler_describe(t->replica.scaler);
	ck->seed = t->replica.seed;
	ck->random_step = t->random_step;
	ck->data.epoch = t->feed.position.epoch;
	ck->data.index = t->feed.position.index;
	ck->data.failed = t->feed.position.failed;
	if (e == 0 && (!ck->model || !ck->tokenizer || !ck->config || !ck->schedule ||
		       !ck->scaler != !t->replica.scaler))
		e = yk_fail(YOKE_ENOMEM, "%s: out of memory for the manifest", folder);
	if (e == 0) {
		yk_checkpoint_gather_arrays(t->replica.whole, arrays);
		e = yk_checkpoint_save_by(folder, ck, arrays, yk_checkpoint_gather_source,
					  t->replica.whole);
	}
	if (alone)
		yk_checkpoint_gather_end(&t->replica);
	yk_checkpoint_fini(ck);
	return e;
}

// The adapters as a folder of PEFT, beside the checkpoint.  The checkpoint is complete without it,
// so files that cannot be written are only logged.
static int write_adapter(const struct yk_trainer *t, const char *folder)
{
	const struct yk_network *net = t->replica.net;
	const struct yk_family *f = yk_family_named(net->shape.decoder.family);
	struct yk_adapter x;
	int e = f ? yk_adapter_copy(net, &x) :
		    yk_fail(YOKE_EINVAL, "%s: of an unknown family '%s'", folder,
			    net->shape.decoder.family);
	if (e < 0)
		return e;
	if (yk_adapter_write(&x, f, &net->shape,
			     json_string_value(json_object_get(t->adapter, "base")), folder) < 0) {
		yk_warn("train",
			"%s: the checkpoint of step %lld is saved, but not its copy in PEFT's format: %s; write it with "
			"`yoke export %s DIR format=peft`",
			folder, (long long)t->replica.step, yoke_error(), folder);
		yoke_error_clear();
	}
	yk_adapter_close(&x);
	return 0;
}

int yk_trainer_save(struct yk_trainer *t, const char *folder)
{
	struct yk_checkpoint ck = {
		.model = yk_model_describe(t->replica.net->model, &t->replica.net->shape),
		.tokenizer = yk_tokenizer_save(t->feed.tokenizer),
		.config = yk_config_json(t->replica.config),
		.schedule = schedule_json(&t->schedule),
		.adapter = json_incref(t->adapter),
		.best = yk_best_json(&t->best),
		.text = yk_data_fingerprint(t->feed.data),
		.sources = yk_sources_json(yk_data_sources(t->feed.data)),
	};
	int e = ck.sources && ck.tokenizer ?
			0 :
			yk_fail(YOKE_ENOMEM, "%s: out of memory for the manifest", folder);
	if (e == 0 && yk_tokenizer_has_files(t->feed.tokenizer))
		e = yk_tokenizer_files_save(yk_start_source(t->replica.config), t->feed.tokenizer,
					    folder, ck.tokenizer);
	if (e < 0) {
		yk_checkpoint_fini(&ck);
		return e;
	}
	e = yk_trainer_save_with(t, folder, &ck);
	return e == 0 && t->adapter ? write_adapter(t, folder) : e;
}
