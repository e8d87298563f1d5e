// SPDX-License-Identifier: Apache-2.0
// Records and launches a trainer's steps, each of one or more micro-batches.
#include "config.h"

#include "graph/autocast.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "graph/context.h"
#include "nn/windows.h"
#include "optim/optim.h"
#include "parallel/compress.h"
#include "parallel/ranks.h"
#include "parallel/stages.h"
#include "parallel/zero.h"
#include "yoke-observe.h"

// Checks whether the last launched step overflowed: scale, learning rate and bias corrections of
// the next one depend on it.
static int look_back(struct yk_trainer *t)
{
	const struct yoke_context *ctx = yk_current();
	if (!t->checked || (ctx && ctx->mode.dry)) // dry: there are no values
		return 0;
	int got = yoke_scaler_update(t->replica.scaler);
	if (got >= 0) {
		t->checked = false;
		t->overflowed = got == YOKE_SKIPPED;
		t->skipped += t->overflowed;
	}
	return got < 0 ? got : 0;
}

// A micro-batch of the step: t->micro windows of a batch, or the rest of it.
struct micro {
	int64_t number;
	int64_t first, rows; // range within the rank's windows of the step
};

static int64_t parts_of(const struct yk_trainer *t)
{
	return (t->batch + t->micro - 1) / t->micro;
}

static int64_t micro_count(const struct yk_trainer *t)
{
	return parts_of(t) * t->replica.batches.accumulate;
}

static struct micro micro_of(const struct yk_trainer *t, int64_t number)
{
	const int64_t parts = parts_of(t), at = number % parts * t->micro, left = t->batch - at;
	return (struct micro){ number, number / parts * t->batch + at,
			       left < t->micro ? left : t->micro };
}

// The micro-batch's windows: a complete batch as loaded, otherwise a copy.
static yoke_tensor *micro_ids(const struct yk_trainer *t, const struct micro *m)
{
	const int64_t part = m->first / t->batch;
	if (m->rows == t->batch)
		return t->feed.ids[part];
	return yoke_from(yoke_i32, 2, (int64_t[]){ m->rows, t->feed.width },
			 yk_trainer_windows(t, part) + m->first % t->batch * t->feed.width);
}

// The micro-batch's share of the targets of all ranks' windows.
static double packed_share(const struct yk_trainer *t, const struct micro *m)
{
	if (!t->feed.data) // rehearsal
		return 1;
	const int32_t *windows =
		yk_trainer_windows(t, m->first / t->batch) + m->first % t->batch * t->feed.width;
	return (double)yk_data_targets(t->feed.data, windows, m->rows) / (double)t->feed.targets;
}

// Scales a micro-batch's mean loss to its share of the mean over the step's targets. Packed windows
// differ in their number of targets.
static yoke_tensor *micro_share(const struct yk_trainer *t, const struct micro *m,
				yoke_tensor *loss)
{
	if (parts_of(t) * t->replica.batches.count == 1)
		return loss;
	if (t->feed.packed)
		return yoke_mul(loss, yoke_scalar(packed_share(t, m)));
	return yoke_mul(loss, yoke_const((double)m->rows /
					 ((double)t->batch * (double)t->replica.batches.count)));
}

// The same for a complete batch.
static yoke_tensor *batch_share(const void *trainer, yoke_tensor *loss)
{
	const struct yk_trainer *t = trainer;
	return micro_share(t, &(struct micro){ .rows = t->batch }, loss);
}

// Index of a micro-batch among those of all ranks.
static int64_t random_step_of(const struct yk_trainer *t, const struct micro *m)
{
	const int64_t parts = parts_of(t);
	return (t->replica.batches.first + m->number / parts * t->replica.batches.stride) * parts +
	       m->number % parts;
}

yoke_tensor *yk_trainer_loss(struct yk_trainer *t, yoke_tensor *windows)
{
	t->replica.net->trains = true;
	yoke_tensor *loss = yk_windows_loss(t->replica.net, windows, t->dropout);
	t->replica.net->trains = false;
	return loss;
}

// The loss of the step's windows for the current parameters, recorded together with the step's last
// micro-batch.
static yoke_tensor *loss_now(void *arg)
{
	struct yk_trainer *t = arg;
	const int64_t n = micro_count(t);
	yoke_tensor *sum[YK_SUMS_MAX];
	if (t->own && n > 1) {
		yk_fail(YOKE_EINVAL, "fit: restart=function evaluates the loss of one batch again: "
				     "accumulate must be 1");
		return NULL;
	}
	if (t->own)
		return t->own->loss(t->own->arg, 0, true);
	if (parts_of(t) * t->replica.batches.count == 1)
		return yk_trainer_loss(t, t->part);
	if (t->replica.stage > 2 && yk_zero_enter(&t->replica) < 0)
		return NULL;
	yoke_random_set(t->replica.seed, t->random_step);
	for (int64_t k = 0; k < n; k++) {
		const struct micro m = micro_of(t, k);
		char name[32];
		int held, joined = yk_sums_joined(t->replica.sums.fast, k, n, &held);
		// random numbers depend on the micro-batch
		snprintf(name, sizeof name, "part%lld", (long long)random_step_of(t, &m));
		yoke_scope *s = yoke_scope_begin(name);
		yoke_tensor *loss = yk_trainer_loss(t, micro_ids(t, &m));
		loss = micro_share(t, &m, loss);
		if (t->replica.stage > 1)
			loss = yoke_all_reduce(t->replica.group, YOKE_REDUCE_SUM, loss);
		loss = yoke_lift(loss);
		if (yoke_scope_end(s) < 0)
			return NULL;
		for (; joined > 0; joined--)
			loss = yoke_add(sum[--held], loss);
		sum[held] = loss;
	}
	return t->replica.group && t->replica.stage < 2 ?
		       yoke_all_reduce(t->replica.group, YOKE_REDUCE_SUM, sum[0]) :
		       sum[0];
}

static yoke_tensor *micro_loss(struct yk_trainer *t, const struct micro *m)
{
	if (t->own)
		return micro_share(t, m, t->own->loss(t->own->arg, m->number, false));
	t->part = micro_ids(t, m);
	return micro_share(t, m, yk_trainer_loss(t, t->part));
}

// Records what follows the last micro-batch: reduction over ranks, and the update.
static void update(struct yk_trainer *t, yoke_tensor *loss)
{
	const struct yk_parameters *ps = t->replica.params;
	if (t->replica.grid.all ? yk_ranks_reduce(&t->replica, &loss) < 0 :
				  yk_compress_now(&t->replica) &&
					  yk_compress_reduce(&t->replica, 0, ps->count) < 0)
		return;
	yoke_tensor *norm;
	int64_t now = yk_trainer_stepped(t) + 1;
	t->lr = t->own ? yoke_optim_lr(t->replica.optim->rule, ps->row[0].name, now) :
			 yk_schedule_lr(&t->schedule, now);
	yoke_range_push("optimizer");
	const int e = yk_optim_step(t->replica.optim, t->replica.scaler, now,
				    t->own ? NULL : &t->lr, t->replica.grad, loss_now, t, &norm);
	yoke_range_pop();
	if (e < 0)
		return;
	if (t->replica.scaler && yk_compress_now(&t->replica))
		yk_compress_keep(&t->replica, t->replica.optim->skip);
	const int64_t one = 1;
	yoke_tensor *both[] = { yoke_reshape(loss, 1, &one),
				yoke_cast(yoke_reshape(norm, 1, &one), yoke_f32) };
	yoke_assign(t->record, yoke_concat(2, both, 0));
}

// Records a micro-batch and accumulates its share of the mean loss and of the gradients. The last
// one updates the parameters.
static void micro_record(struct yk_trainer *t, const struct micro *m)
{
	const struct yk_parameters *ps = t->replica.params;
	const int64_t k = m->number, n = micro_count(t);
	yk_precision_begin(&t->precision);
	if (t->replica.stage > 2 && yk_zero_enter(&t->replica) < 0)
		return;
	yoke_tensor *loss = micro_loss(t, m);
	yoke_tensor *scaled = t->replica.scaler ? yoke_scaler_scale(t->replica.scaler, loss) : loss;
	yoke_range_push("backward");
	int e = yoke_grad(scaled, ps->count, ps->var, t->replica.grad);
	yoke_range_pop();
	if (e < 0 || (k == 0 && look_back(t) < 0))
		return;
	yk_sums_add(&t->replica.sums, k, n, yk_ranks_part(&t->replica, &loss), &loss);
	if (k == n - 1)
		update(t, loss);
}

// Records all micro-batches of a step for a pipeline stage.
static void stages_record(struct yk_trainer *t)
{
	const struct yk_stages_step step = { t->random_step, t->dropout, t->feed.ids, batch_share,
					     t };
	yoke_tensor *loss = NULL;
	yk_precision_begin(&t->precision);
	if (yk_stages_record(&t->replica, &step, &loss) == 0 && look_back(t) == 0)
		update(t, loss);
}

// Reuses the first micro-batch's cast weights in all micro-batches of the step.
static void hold_casts(const struct yk_trainer *t, const struct micro *m)
{
	struct yoke_context *ctx = yk_current();
	// gathered weights exist for one micro-batch only
	if (!ctx || !t->precision.half || t->replica.stage > 2)
		return;
	if (m->number == micro_count(t) - 1)
		yk_autocast_release(ctx);
	else if (m->number == 0 && !yoke_error_code())
		yk_autocast_hold(ctx);
}

int yk_trainer_sums(struct yk_trainer *t, int64_t n)
{
	const struct yk_parameters *ps = t->replica.params;
	const int64_t *elements;
	t->replica.sums.fast =
		t->replica.config &&
		!strcmp(yk_config_str(t->replica.config, YK_KEY_accumulate_order), "fast");
	if (t->replica.stages)
		return yk_sums_init(&t->replica.sums, n, ps->count, NULL, NULL);
	if (t->replica.stage < 2)
		return yk_sums_init(&t->replica.sums, n, ps->count, ps->var, NULL);
	const int buckets = yk_zero_buckets(t->replica.zero, &elements);
	return yk_sums_init(&t->replica.sums, n, buckets, NULL, elements);
}

static int stages_step(struct yk_trainer *t)
{
	yoke_scope *s = yoke_scope_begin("step");
	stages_record(t);
	if (!yoke_error_code())
		yoke_eval(0, NULL);
	return yoke_scope_end(s);
}

static int micro_step(struct yk_trainer *t, const struct micro *m)
{
	yoke_scope *s = yoke_scope_begin("step");
	yoke_random_set(t->replica.seed, t->random_step + random_step_of(t, m));
	micro_record(t, m);
	hold_casts(t, m);
	if (!yoke_error_code())
		yoke_eval(0, NULL);
	int e = yoke_scope_end(s);
	if (t->replica.stage > 2)
		yk_zero_leave(&t->replica);
	struct yoke_context *ctx = yk_current();
	// held casts keep the graph alive, and with it old versions of assigned variables
	if (ctx && ctx->autocast.casts.n)
		yk_history_collect(ctx);
	return e;
}

// Runs all micro-batches of the next step.
static int try_step(struct yk_trainer *t)
{
	const int64_t n = micro_count(t);
	int e = yk_trainer_sums(t, n);
	yoke_range_push("data");
	if (e == 0 && !t->own)
		e = yk_trainer_feed(t);
	yoke_range_pop();
	if (e == 0 && t->replica.stages)
		e = stages_step(t);
	for (int64_t k = 0; k < n && e == 0 && !t->replica.stages; k++) {
		const struct micro m = micro_of(t, k);
		e = micro_step(t, &m);
	}
	if (e < 0) {
		if (yk_current())
			yk_autocast_release(yk_current());
		return e;
	}
	if (!t->own) {
		yoke_loader_position(t->feed.loader, &t->feed.position);
		yk_trainer_fed(t);
	}
	t->random_step += t->replica.batches.count * parts_of(t);
	t->replica.step++;
	t->checked = t->replica.scaler;
	if (t->own && t->own->stepped && (e = t->own->stepped(t->own->arg)) < 0)
		return e;
	return t->replica.grid.all ? yk_ranks_read_status(&t->replica) : 0;
}

// Whether a step that ran out of memory may be repeated in smaller micro-batches. Not if nothing
// has fitted yet: then the user should know.
static bool may_halve(const struct yk_trainer *t)
{
	const struct yoke_context *ctx = yk_current();
	return t->micro > 1 && ctx && !ctx->mode.dry && !t->replica.grid.all &&
	       (t->stepped || *t->batch_why);
}

int yk_trainer_step(struct yk_trainer *t)
{
	int e;
	while ((e = try_step(t)) == YOKE_ENOMEM && may_halve(t)) {
		t->micro = (t->micro + 1) / 2;
		yk_warn("train",
			"step %lld: %s; repeating it, and running later steps, in micro-batches of %lld windows",
			(long long)t->replica.step + 1, yoke_error(), (long long)t->micro);
		yoke_error_clear();
		yk_assign_undo(yk_current());
	}
	t->stepped |= e == 0;
	return e;
}

int yk_trainer_record(struct yk_trainer *t, struct yk_record *to)
{
	float v[2];
	int e = look_back(t);
	if (e == 0)
		e = yoke_read(t->record, v, sizeof v);
	if (e < 0)
		return e;
	if ((!isfinite(v[0]) || !isfinite(v[1])) && !t->overflowed) {
		const char *bad = yk_optim_bad(t->replica.optim->rule);
		return yk_fail(YOKE_ERANGE,
			       "step %lld: loss %g, gradient norm %g%s%s; use a smaller "
			       "lr, more warmup, or clip",
			       (long long)t->replica.step, v[0], v[1],
			       bad ? ", the first non-finite gradient is that of " : "",
			       bad ? bad : "");
	}
	*to = (struct yk_record){ .loss = v[0], .grad_norm = v[1] };
	return 0;
}
