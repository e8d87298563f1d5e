// SPDX-License-Identifier: Apache-2.0
// The optimizer of a run: the library's, over all parameters of a model, in two groups, with and without
// weight decay; its states are parameters as checkpoints take them.
#ifndef YK_OPTIM_H
#define YK_OPTIM_H

#include "nn/params.h"
#include "optim/optim.h"
#include "train/conf.h"
#include "yoke-optim.h"

struct yk_optim {
	yoke_optim *rule;
	yoke_tensor *const *p; // the parameters
	bool lent;             // `rule` is the caller's
	bool shared;           // others know of its parameters, too
	yoke_tensor *skip;     // of the step that was recorded last, with a scaler: not 0 if nothing is updated
	struct yk_parameters states; // of `rule`: "m.<parameter>", "momentum.<parameter>", ..
};

// Are the keys such as the configured optimizer has, and do they go together?  EINVAL; ENOENT: one that was
// given as an argument is another's, and which this one has is said.
int yk_optim_check(const struct yk_config *);
// States of each parameter.
int yk_optim_states_each(const struct yk_config *);
// The schedule of a run of so many steps.
struct yk_lr_schedule yk_optim_schedule_of(const struct yk_config *, int64_t steps);
// The keys of an optimizer that others may not have, with its defaults in `yoke train`: "lr=0.001 ..".
void yk_optim_text(const char *kind, char *to, size_t room);

// The parameters outlive the optimizer.  share: NULL, or which parts of them it updates.
int yk_optim_new(const struct yk_config *, const struct yk_parameters *, const struct yk_optim_share *,
		 struct yk_optim **);
// The same around an optimizer of the caller's, which has these parameters and outlives it.  What it shares it does so
// until yk_optim_free; of states that are shared nothing is left then.
int yk_optim_of(yoke_optim *, const struct yk_parameters *, const struct yk_optim_share *, struct yk_optim **);
// States of each parameter, which all have as many.
int yk_optim_each(const struct yk_optim *);
void yk_optim_free(struct yk_optim *); // NULL is fine
// Records real step t = 1, 2, ..: g[i] is the gradient of parameter i.  lr: NULL: its schedule's.  *norm gets the
// 2-norm of all gradients before clipping, f32 [], owned by the innermost scope.
// loss: for restart=function, as in struct yoke_step.
// scaler: g are of its scaled loss, and it decides whether the step is skipped; NULL: they are not.
int yk_optim_step(struct yk_optim *, yoke_scaler *scaler, int64_t t, const double *lr, yoke_tensor *const *g,
		  yoke_tensor *(*loss)(void *), void *arg, yoke_tensor **norm);
const struct yk_parameters *yk_optim_states(const struct yk_optim *);

#endif
