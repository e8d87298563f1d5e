// SPDX-License-Identifier: Apache-2.0
// Phase 2: the states that training may change, by gradients of summed losses.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fit/auc.h"
#include "fit/node.h"
#include "yoke-optim.h"

enum { MOST_STATES = YK_NODES * YOKE_NODE_STATES, MOST_FIELDS = 64 };

struct run {
	yoke_pipeline *p;
	const struct yoke_training *o;
	struct yk_set_fields fields;
	int states;
	yoke_tensor *state[MOST_STATES], *sum[MOST_STATES]; // that are trained; sums of their gradients over batches
	char name[MOST_STATES][300];
	yoke_optim *optim;
	int64_t step, epoch;
};

// ---- losses ----

// A batch: values of nodes, labels and weights, f32 [pixels].
struct batch {
	struct yk_values v;
	yoke_tensor *label, *weight; // NULL, YOKE_NONE: the set has none
};

static yoke_tensor *state_of(const struct yk_fit_node *n, const char *name)
{
	for (int s = 0; s < n->type->states; s++)
		if (!strcmp(n->type->state[s], name))
			return n->variable[s];
	return NULL;
}

// The mean of x [pixels] over those with weight.
static yoke_tensor *mean(const struct batch *b, yoke_tensor *x)
{
	if (b->weight == YOKE_NONE)
		return yoke_mean(x, YOKE_ALL);
	yoke_tensor *sum = yoke_sum(b->weight, YOKE_ALL);
	yoke_tensor *under = yoke_select(yoke_eq(sum, yoke_const(0)), yoke_const(1), sum);
	yoke_tensor *counts = yoke_select(yoke_eq(b->weight, yoke_const(0)), yoke_const(0), yoke_mul(b->weight, x));
	return yoke_div(yoke_sum(counts, YOKE_ALL), under);
}

// (1 - y) x + (1 + (pos_weight - 1) y) (log(1 + exp(-|x|)) + max(-x, 0))
static yoke_tensor *bce(const struct batch *b, yoke_tensor *x, double pos_weight)
{
	yoke_tensor *y = b->label, *one = yoke_const(1);
	yoke_tensor *more = yoke_add(one, yoke_mul(yoke_const(pos_weight - 1), y));
	yoke_tensor *soft = yoke_log1p(yoke_exp(yoke_neg(yoke_abs(x))));
	yoke_tensor *each = yoke_add(yoke_mul(yoke_sub(one, y), x), yoke_mul(more, yoke_add(soft, yoke_relu(yoke_neg(x)))));
	return mean(b, each);
}

static yoke_tensor *loss_of(yoke_pipeline *p, const struct yk_loss *l, struct batch *b)
{
	const struct yk_fit_node *n = &p->node[l->of];
	if (l->kind == YK_LOSS_ORTHOGONALITY) {
		yoke_tensor *w = state_of(n, "w");
		const int64_t k = yoke_dim(w, 0);
		yoke_tensor *i = yoke_iota(yoke_i64, 2, (int64_t[]){ k, k }, 0), *j = yoke_iota(yoke_i64, 2, (int64_t[]){ k, k }, 1);
		yoke_tensor *off = yoke_sub(yoke_matmul(w, w, YOKE_TB), yoke_cast(yoke_eq(i, j), yoke_f32));
		return yoke_sum(yoke_square(off), YOKE_ALL);
	}
	if (l->kind == YK_LOSS_ENTROPY) {
		yoke_tensor *x = yoke_div(state_of(n, "l"), yoke_scalar(yk_select_temperature(b->v.epoch)));
		return yoke_neg(yoke_sum(yoke_mul(yoke_softmax(x, -1), yoke_log_softmax(x, -1)), YOKE_ALL));
	}
	yoke_tensor *x = yk_node_value(p, &b->v, l->of);
	if (l->kind == YK_LOSS_BCE)
		return bce(b, yoke_reshape(x, 1, (int64_t[]){ -1 }), l->pos_weight);
	yoke_tensor *y = l->node < 0 ? b->v.stream : yk_node_value(p, &b->v, l->node);
	yoke_tensor *each = yoke_mean(yoke_square(yoke_sub(x, y)), YOKE_AXIS(yoke_rank(x) - 1));
	return mean(b, yoke_reshape(each, 1, (int64_t[]){ -1 }));
}

static struct batch batch_of(const struct run *r, yoke_tensor *const *t, bool training)
{
	struct batch b = { .v = { .stream = yoke_cast(t[r->fields.x], yoke_f32), .epoch = r->epoch, .training = training },
			   .weight = YOKE_NONE };
	if (r->fields.label >= 0)
		b.label = yoke_reshape(yoke_cast(t[r->fields.label], yoke_f32), 1, (int64_t[]){ -1 });
	if (r->fields.weight >= 0)
		b.weight = yoke_reshape(yoke_cast(t[r->fields.weight], yoke_f32), 1, (int64_t[]){ -1 });
	return b;
}

// Each loss, and behind them their weighted sum.
static int losses_of(struct run *r, struct batch *b, yoke_tensor **to)
{
	const struct yk_plan2 *t = &r->p->plan;
	yoke_tensor *total = NULL;
	for (int i = 0; i < t->losses; i++) {
		to[i] = loss_of(r->p, &t->loss[i], b);
		yoke_tensor *part = yoke_mul(to[i], yoke_const(t->loss[i].weight));
		total = i ? yoke_add(total, part) : part;
	}
	to[t->losses] = total;
	return total ? 0 : yk_error_last();
}

// ---- a step ----

static int log_losses(const struct run *r, const char *stage, const double *value, double auc)
{
	const struct yk_plan2 *t = &r->p->plan;
	const char *name[YK_LOSSES + 3];
	double v[YK_LOSSES + 3];
	int n = 0;
	for (int i = 0; i <= t->losses; i++, n++) {
		name[n] = i < t->losses ? t->loss[i].name : "loss";
		v[n] = value[i];
	}
	name[n] = "epoch";
	v[n++] = (double)r->epoch;
	if (!isnan(auc)) {
		name[n] = "roc_auc";
		v[n++] = auc;
	}
	return yoke_run_log(r->o->run, r->step, stage, n, name, v);
}

// Gradients of a micro-batch; with the last of a step the step.
static int micro(struct run *r, yoke_tensor *const *t, int64_t which, int64_t of)
{
	const int k = r->p->plan.losses;
	yoke_tensor *loss[YK_LOSSES + 1], *g[MOST_STATES];
	struct batch b = batch_of(r, t, true);
	const bool last = which + 1 == of;
	int err = losses_of(r, &b, loss);
	if (!err)
		err = yoke_grad(yoke_mul(loss[k], yoke_const(1 / (double)of)), r->states, r->state, g);
	for (int i = 0; i < r->states && !err && of > 1; i++) {
		if (which)
			g[i] = yoke_add(r->sum[i], g[i]);
		if (!last)
			err = yoke_assign(r->sum[i], g[i]);
	}
	if (!err && last)
		err = yoke_optim_step(r->optim, r->states, g, NULL);
	if (!err)
		err = yoke_eval(k + 1, loss);
	if (err || !last)
		return err;
	r->step++;
	double value[YK_LOSSES + 1];
	if (r->step % r->p->plan.log_every && r->step != 1)
		return 0;
	for (int i = 0; i <= k && !err; i++) {
		float f = NAN;
		err = yoke_read(loss[i], &f, sizeof f);
		value[i] = f;
	}
	if (!err && !isfinite(value[k]))
		return yk_fail(YOKE_ERANGE, "pipeline_train: the loss of step %lld is not finite; a smaller lr or gradient_clip_val may do",
			       (long long)r->step);
	return err ? err : log_losses(r, "train", value, NAN);
}

// ---- validation ----

static int score(struct run *r, struct batch *b, yoke_tensor *const *t, struct yk_auc *auc)
{
	yoke_tensor *y = yk_node_value(r->p, &b->v, r->p->last);
	const int64_t n = y ? yoke_count(y) : 0;
	float *x = malloc(((size_t)n + 1) * sizeof *x), *w = NULL;
	uint8_t *label = malloc((size_t)n + 1);
	int err = !y ? yk_error_last() : x && label ? 0 : yk_fail(YOKE_ENOMEM, "roc_auc: no memory");
	if (!err && yoke_count(t[r->fields.label]) != n)
		err = yk_fail(YOKE_ESHAPE, "roc_auc: the last node has %lld numbers for %lld labels", (long long)n,
			      (long long)yoke_count(t[r->fields.label]));
	if (!err && b->weight != YOKE_NONE && !(w = malloc(((size_t)n + 1) * sizeof *w)))
		err = yk_fail(YOKE_ENOMEM, "roc_auc: no memory");
	if (!err && (err = yoke_read(y, x, (size_t)n * sizeof *x)) == 0)
		err = yoke_read(t[r->fields.label], label, (size_t)n);
	if (!err && w)
		err = yoke_read(b->weight, w, (size_t)n * sizeof *w);
	if (!err)
		err = yk_auc_add(auc, (size_t)n, x, label, w);
	free(x);
	free(w);
	free(label);
	return err;
}

static int validate(struct run *r)
{
	const int k = r->p->plan.losses;
	char words[600];
	double value[YK_LOSSES + 1] = { 0 }, area = NAN, bound;
	int64_t samples = 0;
	struct yk_auc auc;
	if (!r->o->valid)
		return 0;
	yk_auc_init(&auc, YK_AUC_EXACT);
	snprintf(words, sizeof words, "%.500s shuffle=0 last=keep epochs=1", r->o->loader ? r->o->loader : "");
	yoke_loader *l = yoke_loader_new(r->o->valid, words);
	int err = l ? 0 : yk_error_last();
	for (int64_t rows = 1; !err && rows > 0;) {
		yoke_tensor *t[MOST_FIELDS], *loss[YK_LOSSES + 1];
		yoke_scope *s = yoke_scope_begin("valid");
		rows = yoke_loader_next(l, r->fields.count, t, NULL);
		err = rows < 0 ? (int)rows : 0;
		if (rows > 0) {
			struct batch b = batch_of(r, t, false);
			err = losses_of(r, &b, loss);
			if (!err && r->p->plan.roc_auc)
				err = score(r, &b, t, &auc);
			for (int i = 0; i <= k && !err; i++) {
				float f = NAN;
				err = yoke_read(loss[i], &f, sizeof f);
				value[i] += (double)rows * f;
			}
			samples += rows;
		}
		yoke_scope_end(s);
	}
	yoke_loader_free(l);
	for (int i = 0; i <= k; i++)
		value[i] /= (double)(samples ? samples : 1);
	if (!err && r->p->plan.roc_auc)
		area = yk_auc_value(&auc, &bound);
	yk_auc_fini(&auc);
	return err ? err : log_losses(r, "valid", value, area);
}

// ---- all of it ----

static int train_epoch(struct run *r, yoke_loader *l, bool *more)
{
	const int64_t of = r->p->plan.accumulate;
	int err = 0;
	int64_t which = 0, epoch = r->epoch;
	struct yoke_position at = { .size = sizeof at };
	while (*more && !err && epoch == r->epoch) {
		yoke_tensor *t[MOST_FIELDS];
		yoke_scope *s = yoke_scope_begin("fit");
		const int64_t rows = yoke_loader_next(l, r->fields.count, t, NULL);
		*more = rows > 0;
		err = rows < 0 ? (int)rows : rows ? micro(r, t, which, of) : 0;
		which = (which + 1) % of;
		yoke_scope_end(s);
		if (!err && *more && !yoke_loader_position(l, &at))
			epoch = at.epoch;
	}
	return err;
}

static int begin(struct run *r)
{
	yoke_pipeline *p = r->p;
	const char *names[MOST_STATES];
	int err = 0;
	for (int i = 0; i < p->nodes; i++)
		for (int s = 0; s < p->node[i].type->states && p->node[i].train; s++) {
			if (!(p->node[i].type->trained >> s & 1))
				continue;
			snprintf(r->name[r->states], sizeof *r->name, "%.150s.%.100s", p->node[i].name, p->node[i].type->state[s]);
			names[r->states] = r->name[r->states];
			r->state[r->states++] = p->node[i].variable[s];
		}
	if (!r->states)
		return yk_fail(YOKE_EINVAL, "pipeline_train: nothing is to be trained; give a node \"train\": true");
	for (int i = 0; i < r->states && p->plan.accumulate > 1; i++) {
		int64_t dims[YOKE_MAX_RANK];
		for (int d = 0; d < yoke_rank(r->state[i]); d++)
			dims[d] = yoke_dim(r->state[i], d);
		if (!(r->sum[i] = yoke_variable(r->name[i], yoke_f32, yoke_rank(r->state[i]), dims)))
			return yk_error_last();
	}
	r->optim = yoke_optim_new(p->plan.optimizer, p->plan.settings);
	err = r->optim ? yoke_optim_add(r->optim, r->states, r->state, names, NULL) : yk_error_last();
	return err;
}

// The states are in the nodes again.
static int settle(yoke_pipeline *p)
{
	for (int i = 0; i < p->nodes; i++)
		for (int s = 0; s < p->node[i].type->states && p->node[i].train; s++) {
			int64_t dims[YOKE_MAX_RANK];
			int rank;
			const int64_t count = yk_state_count(&p->node[i], s, &rank, dims);
			float *x = malloc(((size_t)count + 1) * sizeof *x);
			int err = x ? yoke_read(p->node[i].variable[s], x, (size_t)count * sizeof *x) :
				      yk_fail(YOKE_ENOMEM, "pipeline_train: no memory");
			for (int64_t k = 0; k < count && !err; k++)
				p->node[i].state[s][k] = x[k];
			free(x);
			if (err)
				return err;
		}
	return 0;
}

static int check(struct run *r)
{
	const yoke_pipeline *p = r->p;
	int64_t channels;
	for (int i = 0; i < p->nodes; i++)
		if (!p->node[i].fitted)
			return yk_fail(YOKE_EINVAL, "pipeline_train: %s is not fitted", p->node[i].name);
	int err = yk_set_fields(r->o->train, "pipeline_train", &r->fields, &channels);
	if (err)
		return err;
	if (channels != p->channels)
		return yk_fail(YOKE_ESHAPE, "pipeline_train: is of %lld channels, the set has %lld", (long long)p->channels,
			       (long long)channels);
	for (int i = 0; i < p->plan.losses; i++)
		if (p->plan.loss[i].kind == YK_LOSS_BCE && r->fields.label < 0)
			return yk_fail(YOKE_EINVAL, "pipeline_train: bce wants a field label u8 in the set %s",
				       yoke_dataset_name(r->o->train));
		else if (p->plan.loss[i].kind == YK_LOSS_BCE && p->node[p->plan.loss[i].of].channels != 1)
			return yk_fail(YOKE_EINVAL, "pipeline_train: bce of %s: it has %lld channels, must be 1",
				       p->node[p->plan.loss[i].of].name, (long long)p->node[p->plan.loss[i].of].channels);
	if (p->plan.roc_auc && r->o->valid && r->fields.label < 0)
		return yk_fail(YOKE_EINVAL, "pipeline_train: roc_auc wants a field label u8 in the set %s", yoke_dataset_name(r->o->train));
	return 0;
}

int yoke_pipeline_train(yoke_pipeline *p, const struct yoke_training *options)
{
	struct yoke_training o = { .size = sizeof o };
	struct run *r = calloc(1, sizeof *r);
	yoke_loader *l = NULL;
	char words[600];
	if (!options || !options->size || !r) {
		free(r);
		return options && options->size ? yk_fail(YOKE_ENOMEM, "pipeline_train: no memory") :
						  yk_fail(YOKE_EINVAL, "pipeline_train: set size to sizeof(struct yoke_training)");
	}
	memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
	r->p = p;
	r->o = &o;
	int err = o.train ? check(r) : yk_fail(YOKE_EINVAL, "pipeline_train: there is no set to train by");
	if (!err && p->plan.losses && p->plan.max_epochs)
		err = begin(r);
	if (!err && r->states) {
		snprintf(words, sizeof words, "seed=%llu %.400s shuffle=1 last=keep epochs=%lld",
			 (unsigned long long)p->seed >> 1, o.loader ? o.loader : "", (long long)p->plan.max_epochs);
		l = yoke_loader_new(o.train, words);
		err = l ? 0 : yk_error_last();
	}
	for (bool more = r->states > 0; more && !err; r->epoch++) {
		err = train_epoch(r, l, &more);
		if (!err && ((r->epoch + 1) % p->plan.valid_every == 0 || r->epoch + 1 >= p->plan.max_epochs))
			err = validate(r);
		more = more && r->epoch + 1 < p->plan.max_epochs;
	}
	if (!err && !r->states)
		err = validate(r);
	if (!err)
		err = settle(p);
	yoke_loader_free(l);
	yoke_optim_free(r->optim);
	for (int i = 0; i < r->states; i++)
		yoke_free(r->sum[i]);
	free(r);
	return err;
}
