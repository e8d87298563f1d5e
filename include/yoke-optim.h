// SPDX-License-Identifier: Apache-2.0
// Optimizers as objects: parameters in groups with settings of their own, states, schedules, clipping,
// files.  They are recorded like everything else (yoke.h): a step is a few list operations, one launch a
// pass for all tensors of a group, and changes no plan from step to step.
//
//	const char *names[] = { "w", "b" };
//	yoke_optim *o = yoke_optim_new("adamw", "lr=3e-4 weight_decay=0.1 clip=1");
//	yoke_optim_add(o, 2, p, names, NULL);
//	yoke_optim_set(o, "b*", "weight_decay=0");
//	for (..) {
//		yoke_scope *s = yoke_scope_begin("step");
//		yoke_grad(loss(p), 2, p, g);
//		yoke_optim_step(o, 2, g, NULL);
//		yoke_eval(0, NULL);
//		yoke_scope_end(s);
//	}
//	yoke_optim_free(o);
//
// Kinds, with g the gradient, scaled and clipped, L weight_decay and t the step from 1 on; numbers are the
// defaults.  State and arithmetic have the parameter's dtype, f32 or f64; what follows from t alone is
// computed in f64 on the host.
//
//   sgd          lr=1e-3 momentum=0 dampening=0 weight_decay=0 nesterov=0.  As PyTorch's: g += L p; b = g at
//                t = 1, then b = momentum b + (1 - dampening) g; p -= lr (g + momentum b), or lr b.
//   heavy_ball   lr=1e-3 momentum=0.9 weight_decay=0.  Polyak 1964: p' = p - lr (g + L p) +
//                momentum (p - prev).
//   accelerated  lr=1e-3 q=0 restart=gradient weight_decay=0.  O'Donoghue and Candes 2015: x' = p - lr g;
//                theta' = ((q - theta^2) + sqrt((theta^2 - q)^2 + 4 theta^2)) / 2; beta = theta (1 - theta) /
//                (theta^2 + theta'); p' = x' + beta (x' - x).  Over all parameters together, theta is 1 again
//                and p' is x' when g (x' - x) > 0 (restart=gradient), when the loss at x' is above that at x
//                (function), when |x' - x| is below the step before and that is 10 steps since (speed), or
//                never (none).
//   adam         lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0 amsgrad=0.  Kingma and Ba 2015;
//                g += L p.
//   adamw        the same with weight_decay=0.01.  Loshchilov and Hutter 2019: p *= 1 - lr L first.
//   lamb         lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-6 weight_decay=0.01 adapt=1 norm_min=0 norm_max=0.
//                You et al. 2020: Adam's step r with L p, times |p|/|r| of each tensor, 1 where a norm is 0,
//                |p| kept in norm_min .. norm_max (0: no bound).  adapt=0: the ratio is 1.
//   rmsprop      lr=0.01 alpha=0.99 eps=1e-8 weight_decay=0 momentum=0 nesterov=0 centered=0.  As PyTorch's;
//                centered: of v - mean^2, 0 at least.
//   adagrad      lr=0.01 lr_decay=0 weight_decay=0 initial=0 eps=1e-10 precondition=none window= window_by=sum.
//                h += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(h) + eps).  Duchi et al. 2011.
//                precondition=post: the step times P; pre: g times P first, for a P that changes.  window=W: h
//                is of the last W squares, their sum or, by mean, that divided by min(t, W); decayed:
//                h = (1 - 1/W) h + g^2.  sum and mean keep W states a parameter.
//   adadelta     lr=1 rho=0.9 eps=1e-6 weight_decay=0.  Zeiler 2012.
//
// All have clip=0, the largest 2-norm of the gradients of all parameters together (g times min(1, clip /
// (norm + 1e-6)), before weight_decay enters); clip_value=0, to which elements are clamped; check=0, below;
// and the schedule of lr: schedule=constant warmup=0 steps= lr_min= lr_every=1000 lr_factor=0.5 lr_cycle=
// lr_cycle_grow=1.  In steps, with k = t - max(warmup, 1): constant; cosine to lr_min at t = steps, or in
// cycles of lr_cycle steps, each lr_cycle_grow times as long as the one before; linear to lr_min; step, lr
// lr_factor^floor(k / lr_every); exponential, lr lr_factor^k; inverse_sqrt, lr sqrt(max(warmup, 1) / t);
// onecycle, half a cosine from lr/25 up in `warmup` (0.3 of all) steps and half a cosine down to lr_min.  The
// others rise as lr t / warmup.  lr_min is lr/10 when it is not given, onecycle's lr/250000.
//
// Errors name the value and the rule, and then nothing is changed.
#ifndef YOKE_OPTIM_H
#define YOKE_OPTIM_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_optim yoke_optim;

// ---- kinds ----

// Kind number i from 0 on, "sgd"; NULL when there are no more.
YOKE_API const char *yoke_optim_kind(int i);
// The settings that a kind has, with their defaults: "lr=0.001 momentum=0 ..".  NULL for an unknown kind.
YOKE_API const char *yoke_optim_options(const char *kind);

// ---- making ----

// An optimizer without parameters.  settings: "key=value" words, or NULL; numbers have a decimal point in
// every locale.  NULL with ENOENT for an unknown kind or key, EINVAL for a value out of its range and for
// keys that do not go together.
YOKE_API yoke_optim *yoke_optim_new(const char *kind, const char *settings);
// Frees it with its states, not the parameters.  NULL is fine.
YOKE_API void yoke_optim_free(yoke_optim *);
// Adds n parameters, variables of f32 or f64 that stay the caller's and outlive the optimizer, with their
// names, which are copied; settings of their own over the optimizer's, or NULL.  The first ones' context is
// the optimizer's.  EINVAL: a name or a variable was added already (the error gives both names of the variable; add tied
// parameters once, as yoke_module_parameters lists them), a tensor is no variable, or a step was made already; ECONTEXT,
// EDTYPE.
YOKE_API int yoke_optim_add(yoke_optim *, int n, yoke_tensor *const *p, const char *const *name,
			    const char *settings);
// New settings of the parameters whose names match, with * and ? as in a shell (fnmatch), or of all (NULL).
// ENOENT: none does.  Behind the first step all but what would change which states there are (EINVAL): a
// learning rate makes no new plan, other settings one.
YOKE_API int yoke_optim_set(yoke_optim *, const char *pattern, const char *settings);

// ---- steps ----

struct yoke_step {
	size_t size;         // sizeof, set by the caller
	yoke_tensor *scale;  // multiplies the gradients first (1 over a loss scale), one number, or YOKE_NONE
	yoke_tensor *skip;   // one number or bool on the host or the device: when it is not 0 the step changes
			     // nothing, bit for bit; or YOKE_NONE
	yoke_tensor *const *precondition; // n tensors as the gradients, for precondition=pre and post; or NULL
	const double *lr;    // learning rate of all parameters in this step in place of the schedule's, or NULL
	yoke_tensor *(*loss)(void *arg); // for restart=function: records the loss while the parameters are x';
	void *arg;                       // called once, inside yoke_optim_step; NULL: not
	yoke_tensor **norm;  // gets the 2-norm of all gradients, scaled and not clipped, []; in the innermost
			     // scope; NULL: not
};
// Records a step, as assignments to parameters and states: g[i] is the gradient of the i-th parameter that
// was added, n all of them.  NULL for a step without more.  EINVAL: nothing was added, or another n; EDTYPE,
// ESHAPE, ECONTEXT: a gradient is not as its parameter.
YOKE_API int yoke_optim_step(yoke_optim *, int n, yoke_tensor *const *g, const struct yoke_step *);
// The last step was skipped: its number, for schedules and bias corrections, is the next one's as well.
YOKE_API int yoke_optim_skipped(yoke_optim *);
// Steps so far, except skipped steps and steps that changed nothing according to yoke_optim_check.
YOKE_API int64_t yoke_optim_steps(const yoke_optim *);
// The schedule's learning rate of step t = 1, 2, .. of a parameter; NaN, with an error, for an unknown name.
YOKE_API double yoke_optim_lr(const yoke_optim *, const char *parameter, int64_t t);
// With check=1 a step whose gradients' norm is not finite changes nothing, and no step behind it does.
// This waits for what is evaluated: ERANGE names the first parameter whose gradient was not finite, and lets
// steps go on.  Their numbers, for schedules and bias corrections, continue from the last step that changed something.
YOKE_API int yoke_optim_check(yoke_optim *);

// ---- states ----

// A state, a variable of the optimizer's: of a parameter ("momentum", "prev", "x", "m", "v", "vmax", "mean",
// "sum", "window0" .., "square", "delta"; before the first step all are 0, or `initial`), or with NULL for the
// parameter ("theta", "last", "since" and "restarts" of accelerated, numbers of f32, or f64 when a parameter
// is).  NULL with ENOENT.
YOKE_API yoke_tensor *yoke_optim_state(const yoke_optim *, const char *parameter, const char *state);
// States and step into a safetensors file, and back into an optimizer of the same kind with parameters of
// the same names, shapes and dtypes and with the same states; a file that has others is EFORMAT or ESHAPE.
YOKE_API int yoke_optim_save(yoke_optim *, const char *path);
YOKE_API int yoke_optim_load(yoke_optim *, const char *path);
// Moves the states to another context, bit for bit, where p are the parameters from now on, in the order in
// which they were added.  The caller moves their values, before (yoke_module_move) or behind.
YOKE_API int yoke_optim_move(yoke_optim *, yoke_context *to, yoke_tensor *const *p);

#ifdef __cplusplus
}
#endif
#endif
