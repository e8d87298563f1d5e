// SPDX-License-Identifier: Apache-2.0
// The optimizer of a training run: one library optimizer over all parameters of a model, in two
// groups, with and without weight decay. Its states are exposed as parameters for checkpoints.
#ifndef YK_OPTIM_H
#define YK_OPTIM_H

#include "nn/params.h"
#include "optim/optim.h"
#include "config/conf.h"
#include "yoke-optim.h"

struct yk_optim {
	yoke_optim *rule;
	yoke_tensor *const *p; // the parameters
	bool borrowed;             // `rule` belongs to the caller
	bool shared;           // parameters are sharded or replicated among ranks
	// of the step recorded last, with a scaler: not 0 if the update is skipped
	yoke_tensor *skip;
	// states of `rule`: "m.<parameter>", "momentum.<parameter>", ...
	struct yk_parameters states;
};

// Checks that the configured optimizer has the given keys and that they are compatible. EINVAL.
// ENOENT: an argument belongs to another optimizer; the error lists the keys of this one.
int yk_optim_check(const struct yk_config *);
// Number of states per parameter.
int yk_optim_states_each(const struct yk_config *);
// Writes the value in effect of an option of the optimizer whose key is auto; false: it is another
// key, or was set.
bool yk_optim_option(const struct yk_config *, enum yk_config_key, char *to, size_t cap);
// The learning-rate schedule of a run of `steps` steps.
struct yk_lr_schedule yk_optim_schedule_of(const struct yk_config *, int64_t steps);
// The keys specific to an optimizer, with their defaults in `yoke train`: "lr=0.001 ..".
void yk_optim_text(const char *kind, char *to, size_t cap);

// The parameters must outlive the optimizer. sharding: NULL, or the shards of the parameters it
// updates.
int yk_optim_new(const struct yk_config *, const struct yk_parameters *,
		 const struct yk_optim_sharding *, struct yk_optim **);
// Wraps a caller's optimizer, which has these parameters and outlives the wrapper. It is sharded
// until yk_optim_free; sharded states are lost then.
int yk_optim_of(yoke_optim *, const struct yk_parameters *, const struct yk_optim_sharding *,
		struct yk_optim **);
// Number of states per parameter, which is the same for all.
int yk_optim_each(const struct yk_optim *);
void yk_optim_free(struct yk_optim *); // NULL is allowed
// Records update t = 1, 2, ... (skipped steps do not count): g[i] is the gradient of parameter i.
// lr: NULL: from the schedule. *norm receives the 2-norm of all gradients before clipping, f32 [],
// owned by the innermost scope. loss: for restart=function, as in struct yoke_step. scaler: if not
// NULL, g are gradients of its scaled loss, and it decides whether the update is skipped.
int yk_optim_step(struct yk_optim *, yoke_scaler *scaler, int64_t t, const double *lr,
		  yoke_tensor *const *g, yoke_tensor *(*loss)(void *), void *arg,
		  yoke_tensor **norm);
const struct yk_parameters *yk_optim_states(const struct yk_optim *);

#endif
