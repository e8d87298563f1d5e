// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: groups, host scalars and clipping around yoke's list ops.
#include "config.h"

#include "train/optim.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

struct group {
	int n;
	int *index;           // of each tensor in the list of parameters
	yoke_tensor **p, **g; // parameters, gradients
	yoke_tensor **s1, **s2; // m and v, or momentum and nothing
	double weight_decay;
};

struct yk_optim {
	struct yk_optim_spec spec;
	int n; // parameters
	yoke_tensor *const *p; // the list's
	struct group group[2]; // with decay, without
	struct yk_parameters states;
	yoke_tensor *lr, *c1, *c2, *first;
};

static int states_of(const struct yk_optim_spec *spec)
{
	return spec->kind == YK_ADAMW ? 2 : spec->momentum > 0;
}

static int group_init(struct yk_optim *o, struct group *gr, const struct yk_parameters *ps,
		      bool decay)
{
	size_t cap = (size_t)ps->count;
	gr->weight_decay = decay ? o->spec.weight_decay : 0;
	gr->index = calloc(cap, sizeof *gr->index);
	gr->p = calloc(cap, sizeof *gr->p);
	gr->g = calloc(cap, sizeof *gr->g);
	gr->s1 = calloc(cap, sizeof *gr->s1);
	gr->s2 = calloc(cap, sizeof *gr->s2);
	if (!gr->index || !gr->p || !gr->g || !gr->s1 || !gr->s2)
		return yk_fail(YOKE_ENOMEM, "optimizer: no memory for %d parameters", ps->count);
	int states = states_of(&o->spec);
	for (int i = 0; i < ps->count; i++) {
		if (ps->row[i].decay != decay)
			continue;
		int k = gr->n++;
		gr->index[k] = i;
		gr->p[k] = ps->var[i];
		if (states > 0)
			gr->s1[k] = yk_parameters_like(&o->states, ps, i, states == 2 ? "m" : "momentum");
		if (states > 1)
			gr->s2[k] = yk_parameters_like(&o->states, ps, i, "v");
	}
	return o->states.error;
}

int yk_optim_new(const struct yk_optim_spec *spec, const struct yk_parameters *ps,
		 struct yk_optim **to)
{
	struct yk_optim *o = calloc(1, sizeof *o);
	if (!o)
		return yk_fail(YOKE_ENOMEM, "optimizer: no memory");
	o->spec = *spec;
	o->n = ps->count;
	o->p = ps->var;
	o->lr = yoke_keep(yoke_scalar(0));
	o->c1 = yoke_keep(yoke_scalar(1));
	o->c2 = yoke_keep(yoke_scalar(1));
	o->first = yoke_keep(yoke_scalar(1));
	if (!o->lr || !o->c1 || !o->c2 || !o->first ||
	    group_init(o, &o->group[0], ps, true) < 0 ||
	    group_init(o, &o->group[1], ps, false) < 0) {
		yk_optim_free(o);
		return yoke_error_code();
	}
	*to = o;
	return 0;
}

void yk_optim_free(struct yk_optim *o)
{
	if (!o)
		return;
	for (int i = 0; i < 2; i++) {
		struct group *gr = &o->group[i];
		free(gr->index);
		free(gr->p);
		free(gr->g);
		free(gr->s1);
		free(gr->s2);
	}
	yk_parameters_fini(&o->states);
	yoke_free(o->lr);
	yoke_free(o->c1);
	yoke_free(o->c2);
	yoke_free(o->first);
	free(o);
}

static int group_step(struct yk_optim *o, const struct group *gr, yoke_tensor *scale, yoke_tensor *skip)
{
	const struct yk_optim_spec *spec = &o->spec;
	if (gr->n == 0)
		return 0;
	if (spec->kind == YK_ADAMW)
		return yoke_adamw_step(gr->n, gr->p, gr->g, gr->s1, gr->s2, &(struct yoke_adamw){
			.size = sizeof(struct yoke_adamw),
			.lr = o->lr, .c1 = o->c1, .c2 = o->c2, .scale = scale,
			.beta1 = spec->beta1, .beta2 = spec->beta2, .eps = spec->eps,
			.weight_decay = gr->weight_decay, .skip = skip });
	bool momentum = spec->momentum > 0;
	return yoke_sgd_step(gr->n, gr->p, gr->g, momentum ? gr->s1 : NULL, &(struct yoke_sgd){
		.size = sizeof(struct yoke_sgd),
		.lr = o->lr, .first = momentum ? o->first : YOKE_NONE, .scale = scale,
		.momentum = spec->momentum, .weight_decay = gr->weight_decay, .skip = skip });
}

// The norm of all gradients as they are without a scaled loss, and whether it makes the step one to be skipped.
static int look(struct yk_optim *o, yoke_tensor *const *g, yoke_tensor **norm, yoke_tensor **skip)
{
	*skip = YOKE_NONE;
	if (o->spec.scaler)
		return yoke_scaler_check(o->spec.scaler, o->n, o->p, g, norm, skip);
	*norm = yoke_global_norm(o->n, g);
	return *norm ? 0 : yoke_error_code();
}

int yk_optim_step(struct yk_optim *o, int64_t t, double lr, yoke_tensor *const *g,
		  yoke_tensor **norm)
{
	const struct yk_optim_spec *spec = &o->spec;
	// Kingma and Ba 2015, algorithm 1; bias corrections in double precision
	yoke_scalar_set(o->lr, lr);
	yoke_scalar_set(o->c1, 1 - pow(spec->beta1, (double)t));
	yoke_scalar_set(o->c2, 1 - pow(spec->beta2, (double)t));
	yoke_scalar_set(o->first, t == 1);

	yoke_tensor *total, *skip, *scale = spec->scaler ? yoke_scaler_inverse(spec->scaler) : YOKE_NONE;
	int e = look(o, g, &total, &skip);
	if (e < 0)
		return e;
	if (spec->clip > 0) {
		yoke_tensor *clip = yoke_min(yoke_div(yoke_const(spec->clip),
					  yoke_add(total, yoke_const(1e-6))), yoke_const(1));
		scale = scale == YOKE_NONE ? clip : yoke_mul(clip, scale);
	}
	if (!scale)
		return yoke_error_code();
	for (int i = 0; i < 2; i++) {
		struct group *gr = &o->group[i];
		for (int k = 0; k < gr->n; k++)
			gr->g[k] = g[gr->index[k]];
		e = group_step(o, gr, scale, skip);
		if (e < 0)
			return e;
	}
	*norm = total;
	return 0;
}

const struct yk_parameters *yk_optim_states(const struct yk_optim *o)
{
	return &o->states;
}
