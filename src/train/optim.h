// SPDX-License-Identifier: Apache-2.0
// Optimizers: one step over all parameters of a model, in two groups, with and without
// weight decay.  What changes from step to step is a host scalar, so that every step has
// the same plan.
#ifndef YK_OPTIM_H
#define YK_OPTIM_H

#include "nn/params.h"

enum yk_optim_kind { YK_ADAMW, YK_SGD };

struct yk_optim_spec {
	enum yk_optim_kind kind;
	double beta1, beta2, eps; // ADAMW
	double momentum;          // SGD; 0: none, and no states
	double weight_decay;      // of parameters with .decay; coupled in SGD
	double clip;              // largest norm of all gradients together; 0: no limit
	yoke_scaler *scaler;      // gradients are of its scaled loss; NULL: they are not
};

struct yk_optim;

// States start as zeros.  The parameters outlive the optimizer.
int yk_optim_new(const struct yk_optim_spec *, const struct yk_parameters *, struct yk_optim **);
void yk_optim_free(struct yk_optim *); // NULL is fine
// Records step t = 1, 2, ..: g[i] is the gradient of parameter i.  *norm gets the
// 2-norm of all gradients before clipping, f32 [], owned by the innermost scope.
int yk_optim_step(struct yk_optim *, int64_t t, double lr, yoke_tensor *const *g,
		  yoke_tensor **norm);
// Its states, named "m.<parameter>", "v.<parameter>" or "momentum.<parameter>".
const struct yk_parameters *yk_optim_states(const struct yk_optim *);

#endif
