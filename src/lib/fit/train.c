// SPDX-License-Identifier: Apache-2.0
// Phase 2: trains the states marked as trainable by the gradients of the summed losses.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sized.h"
#include "fit/losses.h"
#include "fit/metrics.h"
#include "fit/pipeline_context.h"
#include "fit/resume.h"
#include "fit/tune.h"
#include "yoke-observe.h"

enum { MAX_STATES = YK_NODES * YOKE_NODE_STATES, MAX_FIELDS = 64 };
#define SHOW 0.2 // seconds between reading losses for the progress bar alone

// Accumulators over the batches of one step. A batch counts by the weight of its pixels, as if all
// batches were one: its factor is that weight divided by the number of pixels of the epoch's first
// batch, which keeps numbers near 1.
struct group {
	int64_t pixels;              // of the epoch's first batch
	double shares;               // sum over batches without weights; else see `weighed`
	yoke_tensor *weighed;
	yoke_tensor *loss[YK_LOSSES]; // variables: sums of share * loss, for means over pixels
};

struct run {
	yoke_pipeline *p;
	const struct yoke_training *o;
	struct yk_set_fields fields;
	struct yoke_context *varied; // of yk_fit_varying_begin
	int states;
	// trained states; sums of their gradients over batches
	yoke_tensor *state[MAX_STATES], *sum[MAX_STATES];
	struct group sums;          // of the next step's batches, with accumulate_grad_batches
	char name[MAX_STATES][300];
	yoke_optim *optim;
	yoke_scaler *scaler; // NULL: the loss is not scaled
	int64_t step, epoch;
	int64_t batch, group;       // batches so far of this epoch, and of the next step
	int64_t batches, interval;  // of an epoch; between validations; 0: not known yet
	int64_t rows;               // of the epoch's first batch
	bool validated;             // since the last step
	bool stopped;               // by the caller: the run ends, with a checkpoint
	struct yoke_position at;    // position after the last batch
	bool logged_none;             // it was logged which metrics have no value
	double loss, looked;        // the last loss read, and the time of that
};

// ---- records ----

// Numbers of a line of the log, in their order.
struct line {
	int n;
	const char *name[YK_LOSSES + 4 + YK_METER_VALUES];
	double value[YK_LOSSES + 4 + YK_METER_VALUES];
};

static void add(struct line *l, const char *name, double value)
{
	l->name[l->n] = name;
	l->value[l->n++] = value;
}

static int log_line(const struct run *r, const char *stage, const double *loss,
		    const struct yk_meter_values *m)
{
	const struct yk_training *t = &r->p->plan;
	struct line l = { .n = 0 };
	for (int i = 0; i < yk_loss_count(r->p); i++)
		add(&l, i < t->losses ? t->loss[i].name : "loss", loss[i]);
	add(&l, "epoch", (double)r->epoch);
	for (int i = 0; m && i < m->n; i++)
		add(&l, m->name[i], m->value[i]);
	if (r->o->logged)
		r->o->logged(r->o->arg, stage, r->step, l.n, l.name, l.value);
	return yoke_run_log(r->o->run, r->step, stage, l.n, l.name, l.value);
}

static void report_progress(const struct run *r, const char *stage, int64_t done, int64_t all)
{
	if (!r->o->progress || !r->p->plan.keys.progress_bar)
		return;
	const struct yoke_fitting_progress x = { .size = sizeof x,
						 .stage = stage,
						 .round = r->epoch + 1,
						 .rounds = r->p->plan.keys.max_epochs,
						 .done = done,
						 .all = all,
						 .loss = r->loss };
	r->o->progress(r->o->arg, &x);
}

// ---- a step ----

// Checks the previous step, whose gradients were multiplied by the loss scale.
static int look_back(struct run *r)
{
	const int got = r->scaler ? yoke_scaler_update(r->scaler) : YOKE_STEPPED;
	return got == YOKE_SKIPPED ? yoke_optim_skipped(r->optim) : got;
}

// Adds a batch's gradients to the step's sums and, with the last batch, performs the step. under:
// divisor of the sums; NULL: none.
static int update(struct run *r, yoke_tensor **g, bool last, yoke_tensor *under)
{
	struct yoke_step how = { .size = sizeof how, .scale = YOKE_NONE, .skip = YOKE_NONE };
	yoke_tensor *norm;
	int err = r->group ? 0 : look_back(r);
	for (int i = 0; i < r->states && !err && (r->group || !last); i++) {
		if (r->group)
			g[i] = yoke_add(r->sum[i], g[i]);
		if (!last)
			err = yoke_assign(r->sum[i], g[i]);
	}
	if (err || !last)
		return err;
	if (r->scaler) {
		err = yoke_scaler_check(r->scaler, r->states, r->state, g, &norm, &how.skip);
		how.scale = yoke_scaler_inverse(r->scaler);
	}
	if (under)
		how.scale = r->scaler ? yoke_div(how.scale, under) : yoke_div(yoke_const(1), under);
	return err ? err : yoke_optim_step(r->optim, r->states, g, &how);
}

// The quantities that a batch's gradient is computed from.
struct part {
	yoke_tensor *loss;  // NULL: the batch has no gradient
	yoke_tensor *under; // step's last batch: divisor of the sums of gradients; NULL: 1
	yoke_tensor *counted; // weight of all pixels of the step so far; NULL: no weights
	yoke_tensor *value[YK_LOSSES]; // step's last batch: each loss, over all batches of the step
};

// One of several batches: factor * (the means over pixels); the last batch adds the sum of the
// factors times the losses of states.
static int weigh(struct run *r, const struct yk_fit_batch *b, yoke_tensor *const *loss, bool last,
		 struct part *to)
{
	const struct yk_training *t = &r->p->plan;
	struct group *g = &r->sums;
	yoke_tensor *share = NULL, *means = yk_losses_sum(r->p, loss, false),
		    *states = yk_losses_sum(r->p, loss, true), *all;
	int err = 0;
	g->pixels = g->pixels ? g->pixels : b->pixels;
	const double of_first = (double)b->pixels / (double)g->pixels;
	if (b->count) {
		share = yoke_div(b->count, yoke_const((double)g->pixels));
		all = r->group ? yoke_add(g->weighed, share) : share;
		to->counted = all;
		err = last ? 0 : yoke_assign(g->weighed, all);
	} else {
		share = of_first != 1 ? yoke_scalar(of_first) : NULL;
		g->shares = (r->group ? g->shares : 0) + of_first;
		all = yoke_scalar(g->shares);
	}
	to->under = yoke_select(yoke_eq(all, yoke_const(0)), yoke_const(1), all);
	to->loss = means && share ? yoke_mul(means, share) : means;
	if (last && states) {
		states = yoke_mul(states, to->under);
		to->loss = to->loss ? yoke_add(to->loss, states) : states;
	}
	for (int i = 0; i < t->losses && !err; i++) {
		to->value[i] = loss[i];
		if (yk_loss_of_state(&t->loss[i]))
			continue;
		yoke_tensor *sum = share ? yoke_mul(loss[i], share) : loss[i];
		sum = r->group ? yoke_add(g->loss[i], sum) : sum;
		to->value[i] = yoke_div(sum, to->under);
		if (!last)
			err = yoke_assign(g->loss[i], sum);
	}
	return err;
}

static int backward(struct run *r, struct part *b, bool last)
{
	yoke_tensor *g[MAX_STATES];
	yoke_range_push("backward");
	int err = yoke_grad(r->scaler ? yoke_scaler_scale(r->scaler, b->loss) : b->loss, r->states,
			    r->state, g);
	yoke_range_pop();
	yoke_range_push("optimizer");
	if (!err)
		err = update(r, g, last, b->under);
	yoke_range_pop();
	return err;
}

// The losses of a step, followed by their weighted sum. Losses that are means over pixels are NaN
// if no pixel of the step has weight.
static int read_losses(struct run *r, yoke_tensor *const *loss, yoke_tensor *counted,
		       double value[YK_LOSSES + 1])
{
	const struct yk_training *t = &r->p->plan;
	float f = 1;
	int err = counted ? yoke_read(counted, &f, sizeof f) : 0;
	const bool none = f == 0, wrong = isnan(f);
	value[t->losses] = 0;
	for (int i = 0; i < t->losses && !err; i++) {
		err = yoke_read(loss[i], &f, sizeof f);
		value[i] = none && !yk_loss_of_state(&t->loss[i]) ? NAN : (double)f;
		value[t->losses] += isnan(value[i]) && none ? 0 : t->loss[i].weight * value[i];
	}
	if (err)
		return err;
	if (wrong)
		return yk_fail(
			YOKE_ERANGE,
			"pipeline_train: the batch of step %lld has a weight that is negative or NaN",
			(long long)r->step);
	r->loss = value[t->losses];
	return isfinite(r->loss) ?
		       0 :
		       yk_fail(YOKE_ERANGE,
			       "pipeline_train: the loss of step %lld is not finite; a smaller lr or gradient_clip_val may do",
			       (long long)r->step);
}

// last: this batch completes the step.
static int train_batch(struct run *r, yoke_tensor *const *t, bool last)
{
	const int k = r->p->plan.losses;
	yoke_tensor *loss[YK_LOSSES + 1];
	yoke_range_push("forward");
	struct yk_fit_batch b = yk_batch_of(&r->fields, t, r->epoch, true);
	int err = yk_losses(r->p, &b, loss);
	struct part part = { .loss = err ? NULL : loss[k], .counted = b.count };
	memcpy(part.value, loss, sizeof part.value);
	if (!err && r->p->plan.keys.accumulate > 1)
		err = weigh(r, &b, loss, last, &part);
	yoke_range_pop();
	if (!err && part.loss)
		err = backward(r, &part, last);
	if (!err) {
		yoke_tensor *all[YK_LOSSES + 1];
		memcpy(all, part.value, sizeof part.value);
		all[k] = part.counted;
		err = yoke_eval(k + (part.counted != NULL), all);
	}
	r->group = last ? 0 : r->group + 1;
	if (err || !last)
		return err;
	r->step++;
	r->validated = false;
	double value[YK_LOSSES + 1];
	const bool logs = r->step % r->p->plan.keys.log_every == 0 || r->step == 1,
		   shows = r->o->progress && r->p->plan.keys.progress_bar &&
			   yk_seconds() - r->looked >= SHOW;
	if (!logs && !shows)
		return 0;
	err = read_losses(r, part.value, part.counted, value);
	r->looked = yk_seconds();
	return err || !logs ? err : log_line(r, "train", value, NULL);
}

// ---- validation ----

// Losses of a split: sums over its pixels by their weights; for losses of states, the latest value.
struct split_losses {
	double weight, sum[YK_LOSSES];
};

static int validate_batch(struct run *r, yoke_tensor *const *t, struct yk_meter *m,
			  struct split_losses *s)
{
	const struct yk_training *plan = &r->p->plan;
	yoke_tensor *loss[YK_LOSSES + 1];
	struct yk_fit_batch b = yk_batch_of(&r->fields, t, r->epoch, false);
	float f = 0;
	int err = yk_losses(r->p, &b, loss);
	if (!err)
		err = yk_meter_add(m, &b.v, b.label_u8, b.weight);
	loss[plan->losses] = b.count; // in place of the sum: the weight of the whole split
	if (!err)
		err = yoke_eval(plan->losses + (b.count != NULL), loss);
	if (!err && b.count)
		err = yoke_read(b.count, &f, sizeof f);
	if (!err && isnan(f))
		err = yk_fail(YOKE_ERANGE, "pipeline_train: a weight is negative or NaN");
	const double weight = b.count ? (double)f : (double)b.pixels;
	s->weight += err ? 0 : weight;
	for (int i = 0; i < plan->losses && !err; i++) {
		const bool state = yk_loss_of_state(&plan->loss[i]);
		err = yoke_read(loss[i], &f, sizeof f);
		if (state)
			s->sum[i] = f;
		else if (weight > 0)
			s->sum[i] += weight * (double)f;
	}
	return err;
}

// Each loss, and their weighted sum; NaN: no pixel has weight.
static void mean_losses(const struct run *r, const struct split_losses *s,
			double value[YK_LOSSES + 1])
{
	const struct yk_training *t = &r->p->plan;
	value[t->losses] = 0;
	for (int i = 0; i < t->losses; i++) {
		value[i] = yk_loss_of_state(&t->loss[i]) ? s->sum[i] :
			   s->weight > 0                 ? s->sum[i] / s->weight :
							   NAN;
		value[t->losses] += t->loss[i].weight * value[i];
	}
}

// Logs once which metrics are undefined for such a split.
static void log_none(struct run *r, const struct yk_meter_values *v)
{
	for (int i = 0; i < v->n && !r->logged_none; i++)
		if (isnan(v->value[i])) {
			yk_warn("fit", "%s: n/a: the split lacks pixels with an anomaly, or "
				"pixels without one", v->name[i]);
			r->logged_none = true;
		}
}

static int validate(struct run *r, yoke_dataset *set, const char *stage)
{
	struct split_losses sums = { 0 };
	double value[YK_LOSSES + 1];
	int64_t samples = 0;
	struct yk_meter m;
	struct yk_meter_values values = { .n = 0 };
	if (!set || (!yk_loss_count(r->p) && !r->p->plan.metrics))
		return 0;
	const double began = yk_seconds();
	yoke_range_push("validate");
	int err = yk_meter_init(&m, r->p);
	yoke_loader *l = err ? NULL : yk_fit_loader(set, "", r->o->loader, "shuffle=0 epochs=1");
	if (!err && !l)
		err = yk_error_last();
	for (int64_t rows = 1; !err && rows > 0;) {
		yoke_tensor *t[MAX_FIELDS];
		yoke_scope *s = yoke_scope_begin(stage);
		yk_fit_cast(r->p);
		rows = yoke_loader_next(l, r->fields.count, t, NULL);
		err = rows < 0 ? (int)rows : rows ? validate_batch(r, t, &m, &sums) : 0;
		samples += rows > 0 ? rows : 0;
		yoke_scope_end(s);
		report_progress(r, stage, samples, yoke_dataset_count(set));
	}
	yoke_loader_free(l);
	mean_losses(r, &sums, value);
	if (!err && (err = yk_meter_read(&m, &values)) == 0)
		log_none(r, &values);
	yk_meter_fini(&m);
	yoke_range_pop();
	r->p->stats.validating += yk_seconds() - began;
	return err ? err : log_line(r, stage, value, &values);
}

// ---- an epoch ----

// Number of batches in an epoch, estimated from the first one, and of batches between validations.
static int count_batches(struct run *r, int64_t rows)
{
	const struct yk_trainer_keys *k = &r->p->plan.keys;
	const int64_t all = yoke_dataset_count(r->o->train);
	r->rows = rows;
	r->batches = (all + rows - 1) / rows;
	r->interval = k->valid_batches ?
			      k->valid_batches :
			      (int64_t)fmax(1, floor(k->valid_share * (double)r->batches));
	return r->interval <= r->batches || !r->o->valid ?
		       0 :
		       yk_fail(YOKE_EINVAL,
			       "pipeline_train: val_check_interval=%lld, but an epoch has %lld batches",
			       (long long)r->interval, (long long)r->batches);
}

static bool validates(const struct run *r)
{
	return (r->epoch + 1) % r->p->plan.keys.valid_every == 0 && r->batch % r->interval == 0;
}

// Opens the loader for the epochs from a position on.
static int open_loader(struct run *r, const struct yoke_position *at, yoke_loader **to)
{
	char seed[40], epochs[60];
	snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)r->p->seed >> 1);
	snprintf(epochs, sizeof epochs, "shuffle=1 epochs=%lld",
		 (long long)r->p->plan.keys.max_epochs);
	*to = yk_fit_loader(r->o->train, seed, r->o->loader, epochs);
	return !*to ? yk_error_last() : at->epoch || at->index ? yoke_loader_seek(*to, at) : 0;
}

// Validation needs the loader's memory: the loader is freed before it and reopened at its position.
static int train_epoch(struct run *r, yoke_loader **loader)
{
	bool last = false;
	int err = 0;
	while (*loader && !err && !last && !r->stopped) {
		yoke_loader *l = *loader;
		yoke_tensor *t[MAX_FIELDS];
		yoke_scope *s = yoke_scope_begin("fit");
		yk_fit_cast(r->p);
		const double began = yk_seconds();
		const int64_t rows = yoke_loader_next(l, r->fields.count, t, NULL);
		r->p->stats.loading += yk_seconds() - began;
		err = rows < 0 ? (int)rows :
		      rows     ? yoke_loader_position(l, &r->at) :
				 yk_fail(YOKE_EIO, "pipeline_train: the set has ended");
		last = r->at.epoch != r->epoch;
		if (!err && !r->batches)
			err = count_batches(r, rows);
		if (!err)
			err = train_batch(r, t, last || r->group + 1 == r->p->plan.keys.accumulate);
		r->batch++;
		yoke_scope_end(s);
		report_progress(r, "train", r->batch, r->batches);
		const bool pause = !err && r->o->valid && validates(r),
			   ended = err || r->at.epoch >= r->p->plan.keys.max_epochs;
		if (ended || pause) {
			yoke_loader_free(l);
			*loader = NULL;
		}
		if (pause) {
			err = validate(r, r->o->valid, "valid");
			r->validated = true;
		}
		// only together with the step's last batch, so that sums of gradients need not be
		// saved
		r->stopped = !err && !ended && !r->group && r->o->stop && r->o->stop(r->o->arg);
		if (pause && !ended && !err && !r->stopped)
			err = open_loader(r, &r->at, loader);
	}
	return err;
}

// ---- training ----

static int begin(struct run *r)
{
	yoke_pipeline *p = r->p;
	const char *names[MAX_STATES];
	for (int i = 0; i < p->nodes; i++)
		for (int s = 0; s < p->node[i].type->states; s++) {
			if (!(p->node[i].train >> s & 1))
				continue;
			snprintf(r->name[r->states], sizeof *r->name, "%.150s.%.100s",
				 p->node[i].name, p->node[i].type->state[s]);
			names[r->states] = r->name[r->states];
			r->state[r->states++] = p->node[i].variable[s];
		}
	if (!r->states)
		return yk_fail(
			YOKE_EINVAL,
			"pipeline_train: nothing is to be trained; give a node \"train\": true");
	if (p->plan.keys.accumulate > 1 &&
	    !(r->sums.weighed = yoke_variable("weight", yoke_f32, 0, NULL)))
		return yk_error_last();
	for (int i = 0; i < p->plan.losses && p->plan.keys.accumulate > 1; i++)
		if (!(r->sums.loss[i] = yoke_variable(p->plan.loss[i].name, yoke_f32, 0, NULL)))
			return yk_error_last();
	for (int i = 0; i < r->states && p->plan.keys.accumulate > 1; i++) {
		int64_t dims[YOKE_MAX_RANK];
		for (int d = 0; d < yoke_rank(r->state[i]); d++)
			dims[d] = yoke_dim(r->state[i], d);
		if (!(r->sum[i] =
			      yoke_variable(r->name[i], yoke_f32, yoke_rank(r->state[i]), dims)))
			return yk_error_last();
	}
	if (p->plan.keys.precision == YK_FIT_F16 && !(r->scaler = yoke_scaler_new(NULL)))
		return yk_error_last();
	r->optim = yoke_optim_new(p->plan.optimizer, p->plan.settings);
	return r->optim ? yoke_optim_add(r->optim, r->states, r->state, names, NULL) :
			  yk_error_last();
}

// Copies the trained states back to the nodes.
static int settle(yoke_pipeline *p)
{
	for (int i = 0; i < p->nodes; i++)
		for (int s = 0; s < p->node[i].type->states && p->node[i].train; s++) {
			int64_t dims[YOKE_MAX_RANK];
			int rank;
			const int64_t count = yk_state_count(&p->node[i], s, &rank, dims);
			float *x = malloc(((size_t)count + 1) * sizeof *x);
			int err = x ? yoke_read(p->node[i].variable[s], x,
						(size_t)count * sizeof *x) :
				      yk_fail(YOKE_ENOMEM, "pipeline_train: no memory");
			for (int64_t k = 0; k < count && !err; k++)
				p->node[i].state[s][k] = x[k];
			free(x);
			if (err)
				return err;
		}
	return 0;
}

int yk_training_check(yoke_pipeline *p, const struct yoke_training *o)
{
	struct yk_set_fields fields;
	int64_t channels;
	int err = yk_set_fields(o->train, "pipeline_train", &fields, &channels);
	if (err || (err = yk_fit_deterministic(p, "pipeline_train")) < 0 ||
	    (err = yk_scenes_check(p, "pipeline_train", fields.rank)) < 0 ||
	    (err = yk_pipeline_shape(p, channels)) < 0)
		return err;
	for (int i = 0; i < p->plan.losses; i++)
		if (p->plan.loss[i].kind == YK_LOSS_BCE && fields.label < 0)
			return yk_fail(YOKE_EINVAL,
				       "pipeline_train: bce wants a field label u8 in the set %s",
				       yoke_dataset_name(o->train));
	return o->valid || o->test ?
		       yk_metrics_check(p, fields.label >= 0, yoke_dataset_name(o->train)) :
		       0;
}

static int check(struct run *r)
{
	const yoke_pipeline *p = r->p;
	int64_t channels;
	for (int i = 0; i < p->nodes; i++)
		if (!p->node[i].fitted)
			return yk_fail(YOKE_EINVAL, "pipeline_train: %s is not fitted",
				       p->node[i].name);
	int err = yk_training_check(r->p, r->o);
	if (!err)
		err = yk_set_fields(r->o->train, "pipeline_train", &r->fields, &channels);
	if (!err)
		r->varied = yk_fit_varying_begin(&r->fields);
	return err;
}

// Computes one batch's gradients without keeping results, to find out which products are worth
// timing.
static int try_batch(void *arg)
{
	struct run *r = arg;
	yoke_tensor *t[MAX_FIELDS], *loss[YK_LOSSES + 1], *g[MAX_STATES];
	yoke_loader *l =
		yk_fit_loader(r->o->train, "", r->o->loader, "workers=0 shuffle=0 epochs=1");
	yoke_scope *s = yoke_scope_begin("benchmark");
	yk_fit_cast(r->p);
	const int64_t rows = l ? yoke_loader_next(l, r->fields.count, t, NULL) : yk_error_last();
	int err = rows < 0 ? (int)rows : 0;
	if (!err) {
		struct yk_fit_batch b = yk_batch_of(&r->fields, t, 0, true);
		err = yk_losses(r->p, &b, loss);
	}
	if (!err)
		err = yoke_grad(loss[r->p->plan.losses], r->states, r->state, g);
	if (!err)
		err = yoke_eval(r->states, g);
	yoke_scope_end(s);
	yoke_loader_free(l);
	return err;
}

// The position at which the run continues: epochs, steps, and position within the epoch.
static struct yk_fit_position position_of(const struct run *r, bool within)
{
	struct yk_fit_position position = { .epoch = r->epoch, .step = r->step };
	if (!within)
		return position;
	position.index = r->at.index;
	position.failed = r->at.failed;
	position.batch = r->batch;
	position.rows = r->rows;
	position.pixels = r->sums.pixels;
	return position;
}

static int keep(struct run *r, bool within)
{
	const struct yk_fit_position position = position_of(r, within);
	int err = look_back(r);
	return err ? err : yk_fit_checkpoint(r->p, r->optim, r->scaler, r->o->folder, &position);
}

// Continues from the directory's checkpoint, whose states are already in the pipeline.
static int resume(struct run *r)
{
	struct yk_fit_position position;
	int err = yk_fit_resume(r->optim, r->scaler, r->o->folder, &position);
	if (err)
		return err;
	r->epoch = position.epoch;
	r->step = position.step;
	r->batch = position.batch;
	r->sums.pixels = position.pixels;
	r->at = (struct yoke_position){ .size = sizeof r->at,
					.epoch = position.epoch,
					.index = position.index,
					.failed = position.failed };
	return position.batch ? count_batches(r, position.rows) : 0;
}

static int epochs(struct run *r)
{
	const struct yk_trainer_keys *k = &r->p->plan.keys;
	yoke_loader *l = NULL;
	int err = k->benchmark ? yk_fit_tune(try_batch, r) : 0;
	r->at.size = sizeof r->at;
	if (!err && r->o->folder && r->o->resume)
		err = resume(r);
	if (!err && r->epoch < k->max_epochs)
		err = open_loader(r, &r->at, &l);
	while (!err && !r->stopped && r->epoch < k->max_epochs) {
		err = train_epoch(r, &l);
		const bool within = r->stopped && r->at.epoch == r->epoch;
		if (!err && !within && !r->validated && r->epoch + 1 >= k->max_epochs)
			err = validate(r, r->o->valid, "valid");
		r->epoch += !within;
		if (!within)
			r->batch = r->sums.pixels = 0;
		if (!err && r->o->folder && (k->checkpoints || r->stopped))
			err = keep(r, within);
		else if (!err)
			err = look_back(r);
	}
	yoke_loader_free(l);
	return err;
}

int yoke_pipeline_train(yoke_pipeline *p, const struct yoke_training *options)
{
	struct yoke_training o = { .size = sizeof o };
	int err = yk_require(p, "pipeline");
	if (!err)
		err = yk_sized_read(&o, sizeof o, options, "pipeline_train", "yoke_training");
	if (err)
		return err;
	struct run *r = calloc(1, sizeof *r);
	if (!r)
		return yk_fail(YOKE_ENOMEM, "pipeline_train: no memory");
	r->p = p;
	r->o = &o;
	r->loss = NAN;
	const double began = yk_seconds(), validating = p->stats.validating;
	err = o.train ? check(r) :
			yk_fail(YOKE_EINVAL, "pipeline_train: there is no set to train by");
	const bool trains = !err && p->plan.losses && p->plan.keys.max_epochs;
	if (trains && (err = begin(r)) == 0)
		err = epochs(r);
	else if (!err)
		err = validate(r, o.valid, "valid");
	if (!err && !r->stopped)
		err = validate(r, o.test, "test");
	if (!err)
		err = settle(p);
	if (!err)
		err = r->stopped;
	p->stats.training += yk_seconds() - began - (p->stats.validating - validating);
	yoke_optim_free(r->optim);
	yoke_scaler_free(r->scaler);
	for (int i = 0; i < r->states; i++)
		yoke_free(r->sum[i]);
	for (int i = 0; i < p->plan.losses; i++)
		yoke_free(r->sums.loss[i]);
	yoke_free(r->sums.weighed);
	yk_fit_varying_end(r->varied);
	free(r);
	return err;
}
