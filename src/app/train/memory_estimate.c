// SPDX-License-Identifier: Apache-2.0
// Predicts memory by rehearsing a run in dry contexts, whose pools only count.
#include "config.h"

#include "train/memory_estimate.h"

#include "base/error.h"
#include "nn/stage.h"
#include "train/advise.h"
#include "parallel/compress.h"
#include "parallel/zero.h"

struct asked {
	const struct yk_trainer *like;
	int64_t stage, batch;
	struct yk_memory_estimate *to;
};

static int peak_of(uint64_t *to)
{
	struct yoke_stats s = { .size = sizeof s };
	int e = yoke_stats(&s);
	*to = s.pool_allocated_peak;
	return e;
}

static int rehearse(void *arg)
{
	const struct asked *a = arg;
	const int e = yk_trainer_dry_run_stage(a->like, a->stage, a->batch);
	return e < 0 ? e : peak_of(&a->to->peak);
}

// Records a pass over one micro-batch; *to receives its peak.
static int pass(struct yk_trainer *t, bool back, uint64_t *to)
{
	yoke_stats_reset_peaks();
	yoke_scope *s = yoke_scope_begin("step");
	yk_precision_begin(&t->precision);
	yk_zero_enter(&t->replica);
	struct yk_passage x;
	yk_stage_forward(t->replica.net, yk_trainer_zeros(t, t->batch), t->dropout, &x);
	int n = t->replica.net->params.count;
	const int64_t *elements;
	yoke_tensor **g = t->replica.grad;
	if (back)
		yk_stage_backward(t->replica.net, &x, x.out, n, t->replica.net->params.var, g);
	// with zero >= 2 only a few buckets of complete gradients exist at a time
	if (back && t->replica.stage > 1 && !yoke_error_code()) {
		g = yk_zero_reduce(&t->replica);
		n = yk_zero_buckets(t->replica.zero, &elements);
	}
	if (!yoke_error_code())
		yoke_eval(back ? n : 1, back ? g : &x.out);
	int e = yoke_scope_end(s);
	yk_zero_leave(&t->replica);
	return e < 0 ? e : peak_of(to);
}

// Measures each component separately.
static int parts(void *arg)
{
	const struct asked *a = arg;
	struct yk_memory_estimate *to = a->to;
	struct yk_trainer t = *a->like;
	struct yoke_stats s = { .size = sizeof s };
	t.replica.grid.s = a->stage;
	int e = yk_trainer_make(&t, a->batch, NULL, NULL);
	t.feed.data = NULL; // any tokens
	if (e == 0)
		e = pass(&t, false, &to->forward);
	if (e == 0)
		e = pass(&t, true, &to->backward);
	for (int i = 0; i < 2 && e == 0; i++) // the first step has its own plan
		e = yk_trainer_step(&t);
	if (e == 0)
		e = yoke_stats_reset_peaks();
	if (e == 0)
		e = yk_trainer_step(&t);
	if (e == 0)
		e = yoke_stats(&s);
	to->step = s.pool_allocated_peak;
	to->activations = s.activations;
	to->workspace = s.workspace;
	if (e == 0)
		e = yoke_stats_reset_peaks();
	if (e == 0)
		e = yk_trainer_validate_any(&t);
	if (e == 0)
		e = peak_of(&to->validation);
	if (e == 0) {
		to->parameters = t.replica.net->params.elements;
		to->weights = to->gradients = t.replica.stage < 3 ?
						      yk_parameters_bytes(&t.replica.net->params) :
						      yk_zero_max(&t.replica);
		to->states = yk_parameters_bytes(yk_optim_states(t.replica.optim));
		if (t.replica.compress)
			to->states += yk_parameters_bytes(yk_compress_errors(t.replica.compress));
		to->sums = yk_sums_bytes(&t.replica.sums);
		if (t.replica.stage > 1)
			to->gradients = yk_zero_max(&t.replica);
	}
	yk_trainer_unmake(&t);
	return e;
}

uint64_t yk_parameters_bytes(const struct yk_parameters *p)
{
	uint64_t bytes = 0;
	for (int i = 0; i < p->count; i++)
		bytes += p->var[i] ? yoke_bytes(p->var[i]) : 0; // NULL: on another rank
	return bytes;
}

// Repeats a rehearsal without a limit, to find out how much a run that does not fit would need.
static int try_all(int (*fn)(void *arg), struct asked *a)
{
	yoke_error_clear();
	return yk_dry_try(UINT64_MAX, fn, a);
}

uint64_t yk_memory_estimate_peak(const struct yk_trainer *t, int64_t batch)
{
	uint64_t max = 0;
	for (int64_t s = 0; s < yk_config_int(t->replica.config, YK_KEY_stages); s++) {
		struct yk_memory_estimate need = { 0 };
		struct asked a = { t, s, batch, &need };
		int e = yk_dry_try(yk_dry_capacity(), rehearse, &a);
		if (e == YOKE_ENOMEM)
			e = try_all(rehearse, &a);
		if (e < 0) {
			yoke_error_clear(); // the run itself will report the error
			return 0;
		}
		max = need.peak > max ? need.peak : max;
	}
	return max;
}

int yk_memory_estimate_of(const struct yk_trainer *t, int64_t batch, uint64_t room,
			  struct yk_memory_estimate *to, int64_t *stage)
{
	struct yk_memory_estimate n;
	bool fits = true;
	int e = 0;
	for (int64_t s = 0; s < yk_config_int(t->replica.config, YK_KEY_stages) && e == 0; s++) {
		e = yk_memory_estimate_of_stage(t, s, batch, room, &n);
		fits &= e == 0 && n.fits;
		if (e == 0 && (s == 0 || n.peak > to->peak)) {
			*to = n;
			if (stage)
				*stage = s;
		}
	}
	to->fits = fits;
	return e;
}

int yk_memory_estimate_of_stage(const struct yk_trainer *t, int64_t stage, int64_t batch,
				uint64_t room, struct yk_memory_estimate *to)
{
	struct asked a = { t, stage, batch, to };
	*to = (struct yk_memory_estimate){ 0 };
	int e = yk_dry_try(room, rehearse, &a);
	to->fits = e == 0;
	if (e == YOKE_ENOMEM)
		e = try_all(rehearse, &a);
	if (e < 0)
		return e;
	e = to->fits ? yk_dry_try(room, parts, &a) : YOKE_ENOMEM;
	return e == YOKE_ENOMEM ? try_all(parts, &a) : e;
}
