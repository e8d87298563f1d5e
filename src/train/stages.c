// SPDX-License-Identifier: Apache-2.0
// Stages of a trainer.
#include "config.h"

#include "train/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dist/turns.h"
#include "train/tensor.h"
#include "train/zero.h"
#include "yoke-observe.h"

enum { CHUNK = 1 << 22 }; // bytes that a stage hands over at a time

// A list of this stage's as one of all stages': names and shapes, and in `own` which of the list each is, -1: another stage's.
// Those of other parameters are named as those of the first one here.
struct whole {
	struct yk_host_list l;
	int *own;
};

struct yk_stages {
	enum yk_pipeline how;
	int copy;                       // the parameter that first and last stage have both, -1: there is none here
	struct yk_optim_tensor *tensor; // of all stages
	struct whole weights, states;   // with their values, on rank 0, since yk_stages_collect
};

static void whole_free(struct whole *w)
{
	for (int k = 0; k < w->l.count; k++)
		if (w->own[k] < 0)
			free((char *)(uintptr_t)w->l.tensor[k].name);
	yk_host_list_free(&w->l);
	free(w->own);
	*w = (struct whole){ 0 };
}

int yk_stages_check(const struct yk_config *c, const struct yk_model *m, const struct yk_model_shape *s)
{
	const int64_t stages = yk_config_int(c, YK_KEY_stages);
	const char *split = yk_config_str(c, YK_KEY_split);
	int64_t from, to;
	if (stages == 1 && strcmp(split, "auto"))
		return yk_fail(YOKE_EINVAL, "split=%s is for stages, of which there is one: give stages=", split);
	if (stages == 1)
		return 0;
	if (yk_config_int(c, YK_KEY_zero) >= 2)
		return yk_fail(YOKE_EINVAL, "zero=%lld with stages=%lld: gradients of a stage are added over its micro-batches "
			       "where it has them; give zero=1 or 0", (long long)yk_config_int(c, YK_KEY_zero), (long long)stages);
	if (strcmp(yk_config_str(c, YK_KEY_compress), "none"))
		return yk_fail(YOKE_EINVAL, "compress=topk keeps what was not sent of all parameters, of which stages=%lld give a rank "
			       "some: give stages=1 or compress=none", (long long)stages);
	if (*yk_config_str(c, YK_KEY_keep_f32))
		return yk_fail(YOKE_EINVAL, "keep_f32=%s names scopes, of which stages=%lld give a rank some: give stages=1 or no keep_f32",
			       yk_config_str(c, YK_KEY_keep_f32), (long long)stages);
	if (!strcmp(yk_config_str(c, YK_KEY_optimizer), "accelerated") && strcmp(yk_config_str(c, YK_KEY_restart), "none"))
		return yk_fail(YOKE_EINVAL, "optimizer=accelerated restarts by sums over all parameters, of which with stages=%lld no "
			       "rank has all: give restart=none or stages=1", (long long)stages);
	return yk_stage_split(m, s, split, stages, 0, &from, &to);
}

int yk_stages_place(const struct yk_trainer *t, const struct yk_model *m, const struct yk_model_shape *s, struct yk_stage *to)
{
	*to = (struct yk_stage){ .group = t->grid.over_stages, .at = t->grid.s, .of = t->grid.stages };
	return yk_stage_split(m, s, yk_config_str(t->config, YK_KEY_split), to->of, to->at, &to->from, &to->to);
}

int yk_stages_new(struct yk_trainer *t)
{
	const struct yk_network *n = t->net;
	if (n->stage.of == 1)
		return 0;
	struct yk_stages *x = t->stages = calloc(1, sizeof *x);
	if (!x || !(x->tensor = calloc(n->alls + 1, sizeof *x->tensor)))
		return yk_fail(YOKE_ENOMEM, "stages: no memory");
	x->how = strcmp(yk_config_str(t->config, YK_KEY_pipeline), "gpipe") ? YK_1F1B : YK_GPIPE;
	x->copy = -1;
	for (size_t i = 0; i < n->alls; i++) {
		const struct yk_network_parameter *p = &n->all[i];
		x->tensor[i] = (struct yk_optim_tensor){ p->name, p->elements, p->copied ? -1 : p->here, p->cut || t->grid.p == 0 };
		if (p->twice && p->here >= 0)
			x->copy = p->here;
	}
	return 0;
}

void yk_stages_free(struct yk_stages *x)
{
	if (!x)
		return;
	whole_free(&x->weights);
	whole_free(&x->states);
	free(x->tensor);
	free(x);
}

static yoke_tensor *join(void *arg, yoke_tensor *x)
{
	const struct yk_trainer *t = arg;
	return yoke_all_reduce(t->grid.over_stages, YOKE_REDUCE_SUM, x);
}

void yk_stages_share(const struct yk_trainer *t, struct yk_optim_share *to)
{
	to->tensor = t->stages->tensor;
	to->tensors = (int)t->net->alls;
	to->join = join;
	to->arg = (void *)(uintptr_t)t;
}

int yk_stages_start(const struct yk_trainer *t)
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

void yk_stages_text(const struct yk_trainer *t, char *to, size_t room)
{
	const char *split = yk_config_str(t->config, YK_KEY_split);
	const int64_t stages = t->grid.stages;
	int64_t from, end;
	FILE *f = fmemopen(to, room, "w");
	if (!f)
		return;
	fprintf(f, "stages=%lld: blocks", (long long)stages);
	for (int64_t k = 0; k < stages; k++)
		if (yk_stage_split(t->net->model, &t->net->shape, split, stages, k, &from, &end) == 0)
			fprintf(f, "%s %lld", k ? "," : "", (long long)(end - from));
	fprintf(f, "; %s", yk_config_str(t->config, YK_KEY_pipeline));
	fclose(f);
}

// ---- a step ----

static bool is_last(const struct yk_trainer *t)
{
	return t->grid.s == t->grid.stages - 1;
}

static int forward(struct yk_trainer *t, int64_t k, yoke_tensor *(*share)(const struct yk_trainer *, yoke_tensor *),
		   struct yk_passage *x)
{
	yoke_random_set(t->seed, t->random_step + t->first + k * t->stride);
	const int e = yk_stage_forward(t->net, t->ids[k], t->dropout, x);
	if (e == 0 && is_last(t))
		x->out = share(t, x->out);
	return e;
}

static int back(struct yk_trainer *t, const struct yk_passage *x)
{
	const struct yk_parameters *ps = t->params;
	yoke_tensor *by = is_last(t) && t->scaler ? yoke_scaler_scale(t->scaler, x->out) : x->out;
	return yk_stage_backward(t->net, x, by, ps->count, ps->var, t->grad);
}

int yk_stages_record(struct yk_trainer *t, yoke_tensor *(*share)(const struct yk_trainer *, yoke_tensor *), yoke_tensor **loss)
{
	const int64_t n = t->accumulate;
	struct yk_passage *x = calloc((size_t)n, sizeof *x);
	int e = x ? 0 : yk_fail(YOKE_ENOMEM, "stages: no memory");
	for (int64_t i = 0; i < 2 * n && e == 0; i++) {
		const struct yk_turn turn = yk_turn_of(t->stages->how, t->grid.stages, t->grid.s, n, i);
		struct yk_passage *part = &x[turn.part];
		e = turn.back ? back(t, part) : forward(t, turn.part, share, part);
		if (e < 0 || !turn.back)
			continue;
		*loss = is_last(t) ? part->out : yoke_full(yoke_f32, 0, NULL, 0);
		yk_sums_add(&t->sums, turn.part, n, t->grad, loss);
	}
	free(x);
	return e ? e : yoke_error_code();
}

int yk_stages_reduce(struct yk_trainer *t)
{
	const int copy = t->stages->copy;
	if (copy < 0)
		return 0;
	t->grad[copy] = yoke_all_reduce(t->grid.ends, YOKE_REDUCE_SUM, t->grad[copy]);
	return t->grad[copy] ? 0 : yoke_error_code();
}

yoke_tensor *yk_stages_tell(const struct yk_trainer *t, yoke_tensor *loss)
{
	return yoke_broadcast(t->grid.over_stages, (int)t->grid.stages - 1, loss);
}

// ---- lists of all stages ----

static char *name_like(const char *name, const char *of, const char *now)
{
	const size_t kind = strlen(name) - strlen(of);
	char *to = malloc(kind + strlen(now) + 1);
	if (to) {
		memcpy(to, name, kind);
		strcpy(to + kind, now);
	}
	return to;
}

static int whole_of(const struct yk_network *n, const struct yk_host_list *l, int each, struct whole *to)
{
	const int numbers = l->count - each * n->params.count, all = numbers + each * (int)n->alls;
	struct whole w = { .l.tensor = calloc((size_t)all + 1, sizeof *w.l.tensor), .own = calloc((size_t)all + 1, sizeof *w.own) };
	bool good = w.l.tensor && w.own;
	for (int k = 0; k < all && good; k++) {
		const struct yk_network_parameter *p = k < numbers ? NULL : &n->all[(k - numbers) / each];
		struct yk_host_tensor *h = &w.l.tensor[k];
		const int like = k < numbers ? k : numbers + (k - numbers) % each;
		w.own[k] = !p ? k : p->here < 0 ? -1 : numbers + p->here * each + (k - numbers) % each;
		*h = l->tensor[w.own[k] < 0 ? like : w.own[k]];
		h->data = NULL;
		w.l.count++;
		if (w.own[k] >= 0)
			continue;
		h->name = name_like(h->name, n->params.row[0].name, p->name);
		h->rank = p->rank;
		for (int d = 0; d < p->rank; d++)
			h->dims[d] = p->dims[d];
		good = h->name;
	}
	if (good) {
		*to = w;
		return 0;
	}
	whole_free(&w);
	return yk_fail(YOKE_ENOMEM, "checkpoint: no host memory for %d arrays", all);
}

struct load {
	const struct whole *w;
	yk_checkpoint_take_fn *take;
	void *arg;
};

static int take(void *arg, int i, const void *data, uint64_t bytes)
{
	const struct load *l = arg;
	return l->w->own[i] < 0 ? 0 : l->take(l->arg, l->w->own[i], data, bytes);
}

int yk_stages_load(const struct yk_network *n, const char *folder, const struct yk_checkpoint *ck, int part, int each,
		   const struct yk_host_list *l, yk_checkpoint_take_fn *fn, void *arg)
{
	struct whole w = { 0 };
	if (n->stage.of == 1)
		return yk_checkpoint_load(folder, ck, part, l->count, l->tensor, fn, arg);
	int e = whole_of(n, l, each, &w);
	if (e == 0)
		e = yk_checkpoint_load(folder, ck, part, w.l.count, w.l.tensor, take, &(struct load){ &w, fn, arg });
	whole_free(&w);
	return e;
}

static size_t bytes_of(const struct yk_host_tensor *h)
{
	size_t bytes = yoke_dtype_size(h->dtype);
	for (int d = 0; d < h->rank; d++)
		bytes *= (size_t)h->dims[d];
	return bytes;
}

// All tensors of a stage's parameters one behind another, of what two have the first one's; k-th of a whole list, from
// its bytes on.
struct stream {
	int from, to; // of a whole list
	int k;
	size_t at;    // in tensor k
	size_t bytes; // of all
};

static struct stream stream_of(const struct yk_host_list *l, int from, int to)
{
	struct stream s = { .from = from, .to = to, .k = from };
	for (int k = from; k < to; k++)
		s.bytes += bytes_of(&l->tensor[k]);
	return s;
}

// The next n bytes between a list and `room`.
static void move(struct stream *s, const struct yk_host_list *l, char *room, size_t n, bool out)
{
	while (n && s->k < s->to) {
		char *data = l->tensor[s->k].data;
		const size_t left = bytes_of(&l->tensor[s->k]) - s->at, some = left < n ? left : n;
		memcpy(out ? room : data + s->at, out ? data + s->at : room, some);
		room += some;
		n -= some;
		s->at += some;
		if (some == left) {
			s->k++;
			s->at = 0;
		}
	}
}

// The first stage's list, which gives up its values, becomes one of all; the others hand theirs over.
static int collect(const struct yk_trainer *t, int each, struct yk_host_list *own, struct whole *to)
{
	const int stages = (int)t->grid.stages, at = (int)t->grid.s, numbers = own->count - each * t->net->params.count;
	struct stream *s = calloc((size_t)stages, sizeof *s);
	int64_t counted = 0, *count = calloc((size_t)stages, sizeof *count);
	char *room = malloc((size_t)(stages + 1) * CHUNK), *got = room + CHUNK;
	size_t most = 0;
	int e = s && count && room ? whole_of(t->net, own, each, to) : yk_fail(YOKE_ENOMEM, "checkpoint: no host memory");
	for (size_t i = 0; i < t->net->alls; i++)
		counted += t->net->all[i].here >= 0 && !t->net->all[i].copied;
	if (e == 0)
		e = yoke_group_exchange(t->grid.over_stages, &counted, sizeof counted, count);
	for (int k = 0; k < to->l.count && e == 0; k++) {
		struct yk_host_tensor *h = &to->l.tensor[k];
		if (to->own[k] >= 0) {
			h->data = own->tensor[to->own[k]].data;
			own->tensor[to->own[k]].data = NULL;
		} else if (at == 0 && !(h->data = malloc(bytes_of(h) + 1))) {
			e = yk_fail(YOKE_ENOMEM, "no host memory for %s", h->name);
		}
	}
	for (int i = 0, from = numbers; i < stages && e == 0; i++) {
		s[i] = stream_of(&to->l, from, from + each * (int)count[i]);
		from = s[i].to;
		most = i && s[i].bytes > most ? s[i].bytes : most;
	}
	for (size_t done = 0; done < most && e == 0; done += CHUNK) {
		const size_t n = most - done < CHUNK ? most - done : CHUNK;
		if (at)
			move(&s[at], &to->l, room, n, true);
		e = yoke_group_exchange(t->grid.over_stages, room, n, got);
		for (int i = 1; i < stages && e == 0 && at == 0; i++)
			move(&s[i], &to->l, got + (size_t)i * n, n, false);
	}
	free(s);
	free(count);
	free(room);
	return e;
}

int yk_stages_collect(struct yk_trainer *t)
{
	struct yk_stages *x = t->stages;
	struct yk_host_list weights = { 0 }, states = { 0 };
	yk_stages_drop(t);
	if (t->grid.d > 0 || t->grid.p > 0) // what these have is the first ones', too
		return 0;
	int e = t->cuts ? yk_cuts_weights(t->cuts, &weights) : yk_host_list_read(t->kept, &weights);
	if (e == 0)
		e = t->cuts ? yk_cuts_states(t->cuts, &states) :
		    t->zero ? yk_zero_states(t->zero, &states) :
			      yk_host_list_read(yk_optim_states(t->optim), &states);
	if (t->cuts && t->grid.s > 0)
		yk_cuts_drop(t);
	if (e == 0)
		e = collect(t, 1, &weights, &x->weights);
	if (e == 0)
		e = collect(t, yk_optim_states_each(t->config), &states, &x->states);
	if (e < 0 || t->grid.s > 0)
		yk_stages_drop(t);
	yk_host_list_free(&weights);
	yk_host_list_free(&states);
	return e;
}

void yk_stages_drop(struct yk_trainer *t)
{
	whole_free(&t->stages->weights);
	whole_free(&t->stages->states);
}

int yk_stages_weights(const struct yk_stages *x, struct yk_host_list *to)
{
	return yk_host_list_copy(&x->weights.l, to);
}

int yk_stages_states(const struct yk_stages *x, struct yk_host_list *to)
{
	return yk_host_list_copy(&x->states.l, to);
}
