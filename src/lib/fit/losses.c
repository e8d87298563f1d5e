// SPDX-License-Identifier: Apache-2.0
// Losses: means over a batch's pixels, weighted, and losses of states.

#include "config.h"

#include "fit/losses.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "fit/parse.h"

struct yk_fit_batch yk_batch_of(const struct yk_set_fields *f, yoke_tensor *const *t, int64_t epoch,
				bool training)
{
	struct yk_fit_batch b = { .v = { .stream = yoke_cast(t[f->x], yoke_f32),
					 .epoch = epoch,
					 .training = training },
				  .weight = YOKE_NONE };
	if (f->label >= 0) {
		b.label_u8 = t[f->label];
		b.label = yoke_reshape(yoke_cast(b.label_u8, yoke_f32), 1, (int64_t[]){ -1 });
	}
	b.v.extent = f->extent < 0 ? NULL : t[f->extent];
	b.pixels = yoke_count(b.v.stream) / yoke_dim(b.v.stream, -1);
	if (f->weight < 0)
		return b;
	b.v.weight = yoke_cast(t[f->weight], yoke_f32);
	b.weight = yoke_reshape(b.v.weight, 1, (int64_t[]){ -1 });
	b.count = yoke_sum(yoke_select(yoke_ge(b.weight, yoke_const(0)), b.weight, yoke_const(NAN)),
			   YOKE_ALL);
	// a pixel without weight may hold any number; 0 times an infinite derivative would be NaN
	int64_t dims[YOKE_MAX_RANK] = { 0 };
	const int rank = yoke_rank(b.v.stream);
	for (int d = 0; d + 1 < rank; d++)
		dims[d] = yoke_dim(b.v.stream, d);
	dims[rank - 1] = 1;
	b.v.stream = yoke_select(yoke_eq(yoke_reshape(b.weight, rank, dims), yoke_const(0)),
				 yoke_const(0), b.v.stream);
	return b;
}

static yoke_tensor *state_of(const struct yk_fit_node *n, const char *name)
{
	return n->variable[yk_state_named(n, name)];
}

// Mean of x [pixels] over the pixels with weight.
static yoke_tensor *mean(const struct yk_fit_batch *b, yoke_tensor *x)
{
	if (b->weight == YOKE_NONE)
		return yoke_mean(x, YOKE_ALL);
	yoke_tensor *under = yoke_select(yoke_eq(b->count, yoke_const(0)), yoke_const(1), b->count);
	yoke_tensor *counts = yoke_select(yoke_eq(b->weight, yoke_const(0)), yoke_const(0),
					  yoke_mul(b->weight, x));
	return yoke_div(yoke_sum(counts, YOKE_ALL), under);
}

// (1 - y) x + (1 + (pos_weight - 1) y) (log(1 + exp(-|x|)) + max(-x, 0))
static yoke_tensor *bce(const struct yk_fit_batch *b, yoke_tensor *x, double pos_weight)
{
	yoke_tensor *y = b->label, *one = yoke_const(1);
	yoke_tensor *more = yoke_add(one, yoke_mul(yoke_const(pos_weight - 1), y));
	yoke_tensor *soft = yoke_log1p(yoke_exp(yoke_neg(yoke_abs(x))));
	yoke_tensor *each = yoke_add(yoke_mul(yoke_sub(one, y), x),
				     yoke_mul(more, yoke_add(soft, yoke_relu(yoke_neg(x)))));
	return mean(b, each);
}

// |w w' - 1|^2, in f32 even under mixed precision, since the result is a small difference.
static yoke_tensor *orthogonality(yoke_tensor *w)
{
	yoke_scope *s = yoke_scope_begin("orthogonality");
	const int64_t k = yoke_dim(w, 0);
	yoke_autocast(YOKE_DTYPE_NONE, NULL);
	yoke_tensor *i = yoke_iota(yoke_i64, 2, (int64_t[]){ k, k }, 0),
		    *j = yoke_iota(yoke_i64, 2, (int64_t[]){ k, k }, 1);
	yoke_tensor *off = yoke_sub(yoke_matmul(w, w, YOKE_TB), yoke_cast(yoke_eq(i, j), yoke_f32));
	yoke_tensor *sum = yoke_lift(yoke_sum(yoke_square(off), YOKE_ALL));
	yoke_scope_end(s);
	return sum;
}

static yoke_tensor *loss_of(yoke_pipeline *p, const struct yk_loss *l, struct yk_fit_batch *b)
{
	const struct yk_fit_node *n = &p->node[l->of];
	if (l->kind == YK_LOSS_ORTHOGONALITY)
		return orthogonality(state_of(n, "w"));
	if (l->kind == YK_LOSS_ENTROPY) {
		yoke_tensor *x =
			yoke_div(state_of(n, "l"), yoke_scalar(yk_select_temperature(b->v.epoch)));
		return yoke_neg(
			yoke_sum(yoke_mul(yoke_softmax(x, -1), yoke_log_softmax(x, -1)), YOKE_ALL));
	}
	yoke_tensor *x = yk_node_value(p, &b->v, l->of);
	if (l->kind == YK_LOSS_BCE)
		return bce(b, yoke_reshape(x, 1, (int64_t[]){ -1 }), l->pos_weight);
	yoke_tensor *y = l->node < 0 ? b->v.stream : yk_node_value(p, &b->v, l->node);
	yoke_tensor *each = yoke_mean(yoke_square(yoke_sub(x, y)), YOKE_AXIS(yoke_rank(x) - 1));
	return mean(b, yoke_reshape(each, 1, (int64_t[]){ -1 }));
}

int yk_losses_shape(const yoke_pipeline *p)
{
	for (int i = 0; i < p->plan.losses; i++) {
		const struct yk_loss *l = &p->plan.loss[i];
		const struct yk_fit_node *of = &p->node[l->of];
		const int64_t beside = l->node < 0 ? p->channels : p->node[l->node].channels;
		if (l->kind == YK_LOSS_BCE && of->channels != 1)
			return yk_fail(YOKE_EINVAL,
				       "pipeline: %s of %s: it has %lld channels, must be 1",
				       l->name, of->name, (long long)of->channels);
		if (l->kind == YK_LOSS_MSE && of->channels != beside)
			return yk_fail(YOKE_EINVAL,
				       "pipeline: %s of %s: it has %lld channels, %s has %lld",
				       l->name, of->name, (long long)of->channels,
				       l->node < 0 ? "the input" : p->node[l->node].name,
				       (long long)beside);
	}
	return 0;
}

bool yk_loss_of_state(const struct yk_loss *l)
{
	return l->kind == YK_LOSS_ORTHOGONALITY || l->kind == YK_LOSS_ENTROPY;
}

yoke_tensor *yk_losses_sum(const yoke_pipeline *p, yoke_tensor *const *loss, bool states)
{
	yoke_tensor *sum = NULL;
	for (int i = 0; i < p->plan.losses; i++) {
		if (yk_loss_of_state(&p->plan.loss[i]) != states)
			continue;
		yoke_tensor *part = yoke_mul(loss[i], yoke_const(p->plan.loss[i].weight));
		sum = sum ? yoke_add(sum, part) : part;
	}
	return sum;
}

int yk_loss_count(const yoke_pipeline *p)
{
	return p->plan.losses ? p->plan.losses + 1 : 0;
}

int yk_losses(yoke_pipeline *p, struct yk_fit_batch *b, yoke_tensor **to)
{
	const struct yk_training *t = &p->plan;
	yoke_tensor *total = NULL;
	for (int i = 0; i < t->losses; i++) {
		to[i] = yoke_cast(loss_of(p, &t->loss[i], b), yoke_f32);
		yoke_tensor *part = yoke_mul(to[i], yoke_const(t->loss[i].weight));
		total = i ? yoke_add(total, part) : part;
	}
	if (t->losses)
		to[t->losses] = total;
	return total || !t->losses ? 0 : yk_error_last();
}
