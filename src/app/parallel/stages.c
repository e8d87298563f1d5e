// SPDX-License-Identifier: Apache-2.0
// Records the steps of a pipeline stage, and converts lists of tensors between stages and
// checkpoints.
#include "config.h"

#include "parallel/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/turns.h"
#include "nn/stage.h"
#include "parallel/shared_load.h"
#include "yoke-observe.h"

struct yk_stages {
	enum yk_pipeline how;
	// the parameter of which first and last stage both have a copy, -1: not on this stage
	int copy;
	struct yk_optim_tensor *tensor; // of all stages
};

int yk_stages_check(const struct yk_config *c, const struct yk_model *m,
		    const struct yk_model_shape *s)
{
	const int64_t stages = yk_config_int(c, YK_KEY_stages);
	const char *split = yk_config_str(c, YK_KEY_split);
	int64_t from, to;
	if (stages == 1 && strcmp(split, "auto"))
		return yk_fail(
			YOKE_EINVAL,
			"split=%s applies to pipeline stages, but there is only one: give stages=",
			split);
	if (stages == 1)
		return 0;
	if (yk_config_int(c, YK_KEY_zero) >= 2)
		return yk_fail(YOKE_EINVAL,
			       "zero=%lld with stages=%lld: a stage accumulates complete gradients "
			       "over its micro-batches; use zero=1 or 0",
			       (long long)yk_config_int(c, YK_KEY_zero), (long long)stages);
	if (strcmp(yk_config_str(c, YK_KEY_compress), "none"))
		return yk_fail(
			YOKE_EINVAL,
			"compress=topk keeps remainders of all parameters, but with stages=%lld a rank has only those of "
			"its stage: use stages=1 or compress=none",
			(long long)stages);
	if (*yk_config_str(c, YK_KEY_keep_f32))
		return yk_fail(YOKE_EINVAL,
			       "keep_f32=%s names scopes, but with stages=%lld a rank has only "
			       "those of its stage: use stages=1, or remove keep_f32",
			       yk_config_str(c, YK_KEY_keep_f32), (long long)stages);
	if (!strcmp(yk_config_str(c, YK_KEY_optimizer), "accelerated") &&
	    strcmp(yk_config_str(c, YK_KEY_restart), "none"))
		return yk_fail(
			YOKE_EINVAL,
			"optimizer=accelerated restarts by sums over all parameters, but with "
			"stages=%lld no rank has all of them: use restart=none or stages=1",
			(long long)stages);
	return yk_stage_split(m, s, split, stages, 0, &from, &to);
}

int yk_stages_assign(const struct yk_replica *t, const struct yk_model *m,
		     const struct yk_model_shape *s, struct yk_stage *to)
{
	*to = (struct yk_stage){ .group = t->grid.over_stages,
				 .at = t->grid.s,
				 .of = t->grid.stages };
	return yk_stage_split(m, s, yk_config_str(t->config, YK_KEY_split), to->of, to->at,
			      &to->from, &to->to);
}

int yk_stages_new(struct yk_replica *t)
{
	const struct yk_network *n = t->net;
	if (n->stage.of == 1)
		return 0;
	struct yk_stages *x = t->stages = calloc(1, sizeof *x);
	if (!x || !(x->tensor = calloc(n->alls + 1, sizeof *x->tensor)))
		return yk_fail(YOKE_ENOMEM, "stages: out of memory");
	x->how = strcmp(yk_config_str(t->config, YK_KEY_pipeline), "gpipe") ? YK_1F1B : YK_GPIPE;
	x->copy = -1;
	for (size_t i = 0; i < n->alls; i++) {
		const struct yk_network_parameter *p = &n->all[i];
		x->tensor[i] =
			(struct yk_optim_tensor){ p->name, p->elements, p->copied ? -1 : p->here,
						  p->sharded || t->grid.p == 0 };
		if (p->twice && p->here >= 0)
			x->copy = p->here;
	}
	return 0;
}

int yk_stages_copy(const struct yk_replica *t)
{
	return t->stages->copy;
}

void yk_stages_free(struct yk_stages *x)
{
	if (!x)
		return;
	free(x->tensor);
	free(x);
}

static yoke_tensor *join(void *arg, yoke_tensor *x)
{
	const struct yk_replica *t = arg;
	return yoke_all_reduce(t->grid.over_stages, YOKE_REDUCE_SUM, x);
}

void yk_stages_sharding(const struct yk_replica *t, struct yk_optim_sharding *to)
{
	to->tensor = t->stages->tensor;
	to->tensors = (int)t->net->alls;
	to->join = join;
	to->arg = (void *)(uintptr_t)t;
}

int yk_stages_start(const struct yk_replica *t)
{
	if (t->stages->copy < 0)
		return 0;
	yoke_tensor *var = t->net->params.var[t->stages->copy];
	yoke_scope *s = yoke_scope_begin("start");
	int e = yoke_assign(var, yoke_broadcast(t->grid.ends, 0, var));
	if (e == 0)
		e = yoke_eval(0, NULL);
	const int ended = yoke_scope_end(s);
	return e ? e : ended;
}

void yk_stages_text(const struct yk_replica *t, char *to, size_t cap)
{
	const char *split = yk_config_str(t->config, YK_KEY_split);
	const int64_t stages = t->grid.stages;
	int64_t from, end;
	FILE *f = fmemopen(to, cap, "w");
	if (!f)
		return;
	fprintf(f, "stages=%lld: blocks", (long long)stages);
	for (int64_t k = 0; k < stages; k++)
		if (yk_stage_split(t->net->model, &t->net->shape, split, stages, k, &from, &end) ==
		    0)
			fprintf(f, "%s %lld", k ? "," : "", (long long)(end - from));
	fprintf(f, "; %s", yk_config_str(t->config, YK_KEY_pipeline));
	fclose(f);
}

// ---- a step ----

static bool is_last(const struct yk_replica *t)
{
	return t->grid.s == t->grid.stages - 1;
}

static int forward(struct yk_replica *t, int64_t k, const struct yk_stages_step *step,
		   struct yk_passage *x)
{
	yoke_random_set(t->seed, step->random_step + t->batches.first + k * t->batches.stride);
	const int e = yk_stage_forward(t->net, step->ids[k], step->dropout, x);
	if (e == 0 && is_last(t))
		x->out = step->share(step->arg, x->out);
	return e;
}

static int back(struct yk_replica *t, const struct yk_passage *x)
{
	const struct yk_parameters *ps = t->params;
	yoke_tensor *by = is_last(t) && t->scaler ? yoke_scaler_scale(t->scaler, x->out) : x->out;
	return yk_stage_backward(t->net, x, by, ps->count, ps->var, t->grad);
}

int yk_stages_record(struct yk_replica *t, const struct yk_stages_step *step, yoke_tensor **loss)
{
	const int64_t n = t->batches.accumulate;
	struct yk_passage *x = calloc((size_t)n, sizeof *x);
	int e = x ? 0 : yk_fail(YOKE_ENOMEM, "stages: out of memory");
	for (int64_t i = 0; i < 2 * n && e == 0; i++) {
		const struct yk_turn turn =
			yk_turn_of(t->stages->how, t->grid.stages, t->grid.s, n, i);
		struct yk_passage *part = &x[turn.part];
		e = turn.back ? back(t, part) : forward(t, turn.part, step, part);
		if (e < 0 || !turn.back)
			continue;
		*loss = is_last(t) ? part->out : yoke_full(yoke_f32, 0, NULL, 0);
		yk_sums_add(&t->sums, turn.part, n, t->grad, loss);
	}
	free(x);
	return e ? e : yoke_error_code();
}

int yk_stages_reduce(struct yk_replica *t)
{
	const int copy = t->stages->copy;
	if (copy < 0)
		return 0;
	t->grad[copy] = yoke_all_reduce(t->grid.ends, YOKE_REDUCE_SUM, t->grad[copy]);
	return t->grad[copy] ? 0 : yoke_error_code();
}

yoke_tensor *yk_stages_broadcast_loss(const struct yk_replica *t, yoke_tensor *loss)
{
	return yoke_broadcast(t->grid.over_stages, (int)t->grid.stages - 1, loss);
}

// ---- lists over all stages ----

static char *renamed(const char *name, const char *of, const char *now)
{
	const size_t kind = strlen(name) - strlen(of);
	char *to = malloc(kind + strlen(now) + 1);
	if (to) {
		memcpy(to, name, kind);
		strcpy(to + kind, now);
	}
	return to;
}

void yk_stages_list_free(struct yk_stages_list *w)
{
	for (int k = 0; k < w->l.count; k++)
		if (w->own[k] < 0)
			free((char *)(uintptr_t)w->l.tensor[k].name);
	yk_host_list_free(&w->l);
	free(w->own);
	*w = (struct yk_stages_list){ 0 };
}

int yk_stages_list(const struct yk_network *n, const struct yk_host_list *l, int each,
		   struct yk_stages_list *to)
{
	const int numbers = l->count - each * n->params.count, all = numbers + each * (int)n->alls;
	struct yk_stages_list w = { .l.tensor = calloc((size_t)all + 1, sizeof *w.l.tensor),
				    .own = calloc((size_t)all + 1, sizeof *w.own) };
	bool good = w.l.tensor && w.own;
	for (int k = 0; k < all && good; k++) {
		const struct yk_network_parameter *p =
			k < numbers ? NULL : &n->all[(k - numbers) / each];
		struct yk_host_tensor *h = &w.l.tensor[k];
		const int like = k < numbers ? k : numbers + (k - numbers) % each;
		w.own[k] = !p          ? k :
			   p->here < 0 ? -1 :
					 numbers + p->here * each + (k - numbers) % each;
		*h = l->tensor[w.own[k] < 0 ? like : w.own[k]];
		h->data = NULL;
		w.l.count++;
		if (w.own[k] >= 0)
			continue;
		h->name = renamed(h->name, n->params.row[0].name, p->name);
		h->rank = p->rank;
		for (int d = 0; d < p->rank; d++)
			h->dims[d] = p->dims[d];
		good = h->name;
	}
	if (good) {
		*to = w;
		return 0;
	}
	yk_stages_list_free(&w);
	return yk_fail(YOKE_ENOMEM, "checkpoint: out of host memory for %d arrays", all);
}

struct load {
	const struct yk_stages_list *w;
	yk_checkpoint_sink_fn *take;
	void *arg;
};

static int take(void *arg, int i, const void *data, uint64_t bytes)
{
	const struct load *l = arg;
	return l->w->own[i] < 0 ? 0 : l->take(l->arg, l->w->own[i], data, bytes);
}

int yk_stages_load(const struct yk_grid *g, const struct yk_network *n, const char *folder,
		   const struct yk_checkpoint *ck, int part, int each, const struct yk_host_list *l,
		   yk_checkpoint_sink_fn *fn, void *arg)
{
	struct yk_stages_list w = { 0 };
	if (!n || n->stage.of == 1)
		return yk_shared_load(g, folder, ck, part, l->count, l->tensor, fn, arg);
	int e = yk_stages_list(n, l, each, &w);
	if (e == 0)
		e = yk_shared_load(g, folder, ck, part, w.l.count, w.l.tensor, take,
				   &(struct load){ &w, fn, arg });
	yk_stages_list_free(&w);
	return e;
}
