// SPDX-License-Identifier: Apache-2.0
// Writes the records of a run of yoke_fit.
#include "config.h"

#include "train/fit_record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "data/loader.h"
#include "formats/checkpoint.h"
#include "optim/optim.h"
#include "parallel/ranks.h"

#define MAX_CONFIG ((size_t)1 << 20)
enum { DIGITS = 17 }; // the numbers are those that the callback receives, to the last bit

// ---- settings ----

static void put(json_t *to, const char *key, const char *value)
{
	json_t *text = json_string(value);
	if (text && !json_object_get(to, key))
		json_object_set(to, key, text);
	json_decref(text);
}

static void put_int(json_t *to, const char *key, int64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, value);
	put(to, key, text);
}

// The learning rate and the options of the optimizer that are not the defaults; parameters may have
// others.
static void put_optim(json_t *to, const struct yoke_optim *o)
{
	double defaults[YK_OPTIM_OPTION_COUNT];
	char text[64];
	yk_optim_defaults(o->kind, defaults);
	put(to, "optimizer", o->kind->name);
	for (int i = 0; i < YK_OPTIM_OPTION_COUNT; i++)
		if (yk_optim_has(o->kind, i) && i != YK_O_check && i != YK_O_steps &&
		    (i == YK_O_lr || o->option[i] != defaults[i]) &&
		    yk_optim_value_text(i, o->option[i], text, sizeof text))
			put(to, yk_optim_rows[i].name, text);
}

static int parse(const struct yoke_fit *o, json_t **to)
{
	*to = o->config ? yk_json_parse(o->config, strnlen(o->config, MAX_CONFIG), "fit: config") :
			  json_object();
	if (!*to)
		return o->config ? yk_error_last() : yk_fail(YOKE_ENOMEM, "fit: out of memory");
	if (json_is_object(*to))
		return 0;
	json_decref(*to);
	*to = NULL;
	return yk_fail(YOKE_EINVAL, "fit: config must be a JSON object");
}

int yk_fit_record_check(const struct yoke_fit *o)
{
	json_t *config;
	if (isnan(o->telemetry) ||
	    (o->telemetry > 0 && !(o->telemetry >= 0.001 && o->telemetry <= 1e6)))
		return yk_fail(YOKE_EINVAL,
			       "fit: telemetry=%g: must be from 0.001 to 1e6 seconds, 0 for 1 "
			       "second, or below 0 for none",
			       o->telemetry);
	const int err = parse(o, &config);
	if (!err)
		json_decref(config);
	return err;
}

// The program's settings, and under the names of the keys of `yoke train` those of the run.
static int config_of(const struct yoke_fit *o, const struct yk_trainer *t, json_t **to)
{
	const int err = parse(o, to);
	if (err)
		return err;
	if (o->data) {
		put(*to, "data", yoke_dataset_name(o->data->set));
		put_int(*to, "batch", o->data->feed.batch);
		put_int(*to, "workers", o->data->feed.workers);
		put_int(*to, "prefetch", o->data->feed.prefetch);
	}
	put_optim(*to, o->optim);
	put_int(*to, "steps", o->steps);
	put_int(*to, "accumulate", t->replica.batches.count);
	put(*to, "accumulate_order", o->accumulate_order ? o->accumulate_order : "tree");
	put(*to, "precision", o->precision ? o->precision : "fp32");
	put_int(*to, "log_every", o->log_every ? o->log_every : 10);
	put_int(*to, "eval_every", o->valid ? o->valid_every : 0);
	put_int(*to, "save_every", o->save_every);
	put_int(*to, "seed", (int64_t)o->seed);
	put_int(*to, "ranks", t->replica.grid.all ? yoke_group_size(t->replica.grid.all) : 1);
	put_int(*to, "zero", o->zero);
	return 0;
}

// ---- lines ----

// Records the memory once per step.
static int memory(struct yk_fit_record *r, const struct yk_trainer *t)
{
	struct yk_memory m;
	if (!r->run || r->seen == t->replica.step)
		return 0;
	const int err = yk_memory_read(&m);
	if (err < 0)
		return err;
	const double now = yk_seconds();
	yk_records_memory(r->run, t->replica.step, t->feed.position.epoch,
			  r->seen < 0 ? 0 : now - r->seen_at, &m);
	r->seen = t->replica.step;
	r->seen_at = now;
	r->epoch = t->feed.position.epoch;
	return 0;
}

int yk_fit_record_begin(struct yk_fit_record *r, const struct yoke_fit *o,
			const struct yk_trainer *t, bool leads)
{
	json_t *config;
	r->watch.telemetry = o->telemetry < 0 ? 0 : o->telemetry > 0 ? o->telemetry : 1;
	if (!o->out)
		return 0;
	if (!leads) {
		const struct yk_watch leader = r->watch;
		return yk_watch_follow(&r->watch, &leader, o->out, t->replica.grid.all);
	}
	int err = config_of(o, t, &config);
	if (err)
		return err;
	const struct yk_records_options records = {
		.config = config,
		.data = o->data ? yoke_dataset_fingerprint(o->data->set) : 0,
		.step = t->replica.step,
		.steps = o->steps ? o->steps : o->steps_expected,
		.parameters = t->replica.params->elements,
		.tensorboard = o->tensorboard,
	};
	r->out = o->out;
	r->seen = -1;
	r->run = yk_records_begin(o->out, &records);
	json_decref(config);
	if (!r->run || !(r->profile = yk_profile_new(false)))
		return yk_error_last();
	yk_runs_set(r->run, "program", json_string("yoke_fit"));
	r->saved = yk_checkpoint_exists(o->out);
	r->watch.group = t->replica.grid.all;
	err = yk_watch_begin(&r->watch, o->out, NULL);
	yk_profile_start(r->profile);
	return err ? err : memory(r, t);
}

int yk_fit_record_step(struct yk_fit_record *r, const struct yk_trainer *t)
{
	return yk_watch_step(&r->watch, t->replica.step, r->waited);
}

int yk_fit_record_logged(struct yk_fit_record *r, struct yk_trainer *t, const struct yoke_fit *o,
			 const struct yoke_fit_step *s)
{
	struct yoke_stats stats = { .size = sizeof stats };
	struct yk_step_metrics m = {
		.step = s->step,
		.loss = s->loss,
		.lr = s->lr,
		.grad_norm = s->grad_norm,
		.unread = !o->data,
		.samples_per_s = (double)r->rows / (r->busy > 1e-9 ? r->busy : 1e-9),
	};
	r->rows = 0;
	r->busy = 0;
	if (!r->run)
		return 0;
	const int err = yoke_stats(&stats);
	if (err < 0)
		return err;
	m.peak_bytes = stats.pool_allocated_peak;
	m.data.size = sizeof m.data;
	if (o->data)
		yoke_loader_stats(o->data, &m.data);
	m.data.waited = r->waited;
	if (t->replica.scaler) {
		m.scale = s->scale;
		m.skipped = s->skipped;
	}
	if (t->replica.grid.all) {
		m.ranks = yoke_group_size(t->replica.grid.all);
		yk_ranks_released(&t->replica, &m.waited, &m.sent, &m.slowest);
	}
	yk_records_train(r->run, DIGITS, &m);
	return t->feed.position.epoch > r->epoch ? memory(r, t) : 0;
}

int yk_fit_record_validated(struct yk_fit_record *r, const struct yk_trainer *t, double loss)
{
	yk_records_valid(r->run, DIGITS, t->replica.step, loss, NAN, 0);
	return memory(r, t);
}

void yk_fit_record_saving(struct yk_fit_record *r)
{
	r->saving = yk_seconds();
	r->worked = r->run ? yk_profile_busy(r->profile) : 0;
}

int yk_fit_record_saved(struct yk_fit_record *r, const struct yk_trainer *t)
{
	const double seconds = yk_seconds() - r->saving;
	r->saved = true;
	if (!r->run)
		return 0;
	r->files += seconds - (yk_profile_busy(r->profile) - r->worked);
	yk_records_saved(r->run, t->replica.step, seconds);
	return memory(r, t);
}

// ---- end ----

static int report(struct yk_fit_record *r, const struct yk_trainer *t, const struct yoke_fit *o)
{
	struct yk_report x;
	if (!r->run)
		return 0;
	const int err = yk_profile_report(r->profile, &x);
	if (err < 0)
		return err;
	x.files = r->files;
	x.idle -= r->files;
	x.data.size = sizeof x.data;
	if (o->data)
		yoke_loader_stats(o->data, &x.data);
	yk_records_report(r->run, t->replica.step, &x);
	return memory(r, t);
}

void yk_fit_record_end(struct yk_fit_record *r, const struct yk_trainer *t,
		       const struct yoke_fit *o, const char *ended, int code)
{
	yk_watch_fini(&r->watch);
	if (!code && report(r, t, o) < 0)
		yoke_error_clear();
	if (r->run && !o->steps && !strcmp(ended, "done"))
		yk_runs_set(r->run, "steps", json_integer((json_int_t)t->replica.step));
	yk_profile_free(r->profile);
	yk_records_end(r->run, r->out, t->replica.step, r->saved, ended, code);
	*r = (struct yk_fit_record){ 0 };
}
