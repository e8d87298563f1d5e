// SPDX-License-Identifier: Apache-2.0
// Optimizers as objects, with parameter groups, states, learning-rate schedules, gradient clipping
// and checkpoint files.  A step is recorded like any operation (yoke.h) as a few list operations,
// with one launch per pass for all tensors of a group, and reuses the same plan in every step.
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
// Kinds and their settings with defaults.  g is the gradient after scaling and clipping, L is
// weight_decay, and t is the step number from 1.  State and arithmetic have the parameter's dtype,
// f32 or f64; values that depend only on t are computed in f64 on the host.
//
//   sgd          lr=1e-3 momentum=0 dampening=0 weight_decay=0 nesterov=0.  As in PyTorch: g += L
//                p; b = g at t = 1, then b = momentum b + (1 - dampening) g; p -= lr b, or with
//                nesterov=1 p -= lr (g + momentum b).
//   heavy_ball   lr=1e-3 momentum=0.9 weight_decay=0.  Polyak 1964: p' = p - lr (g + L p) +
//                momentum (p - prev).
//   accelerated  lr=1e-3 q=0 restart=gradient weight_decay=0.  O'Donoghue and Candes 2015: x' = p -
//                lr g; theta' = ((q - theta^2) + sqrt((theta^2 - q)^2 + 4 theta^2)) / 2; beta =
//                theta (1 - theta) / (theta^2 + theta'); p' = x' + beta (x' - x).  A restart,
//                decided over all parameters together, sets theta = 1 and p' = x'.  It happens when
//                g (x' - x) > 0 (restart=gradient), when the loss at x' exceeds the loss at x
//                (function), when |x' - x| is smaller than in the previous step and the last
//                restart was at least 10 steps ago (speed), or never (none).
//   adam         lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0 amsgrad=0.  Kingma and Ba
//                2015; g += L p.
//   adamw        As adam, with weight_decay=0.01.  Loshchilov and Hutter 2019: p *= 1 - lr L first.
//   lamb         lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-6 weight_decay=0.01 adapt=1 norm_min=0
//                norm_max=0.  You et al. 2020: Adam's step r with L p, times |p|/|r| of each
//                tensor, or 1 if a norm is 0; |p| is clamped to norm_min .. norm_max (0: no bound).
//                adapt=0: the ratio is 1.
//   rmsprop      lr=0.01 alpha=0.99 eps=1e-8 weight_decay=0 momentum=0 nesterov=0 centered=0.  As
//                in PyTorch; centered=1 uses max(v - mean^2, 0) in place of v.
//   adagrad      lr=0.01 lr_decay=0 weight_decay=0 initial=0 eps=1e-10 precondition=none window=
//                window_by=sum.  h += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(h) + eps).
//                Duchi et al. 2011.  precondition=post multiplies the step by P; pre multiplies g
//                by P first, for a P that changes.  window=W: h covers the last W squares, as their
//                sum or, with window_by=mean, as the sum divided by min(t, W); with
//                window_by=decayed h = (1 - 1/W) h + g^2.  sum and mean keep W states per
//                parameter.
//   adadelta     lr=1 rho=0.9 eps=1e-6 weight_decay=0.  Zeiler 2012.
//   nadam        lr=2e-3 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0 momentum_decay=4e-3
//                decoupled_weight_decay=0.  Dozat 2016, as in PyTorch: the momentum of step t is
//                beta1 (1 - 0.96^(t momentum_decay) / 2).  decoupled_weight_decay=1: as adamw.
//   radam        lr=1e-3 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0 decoupled_weight_decay=0.
//                Liu et al. 2020, as in PyTorch.
//   adamax       lr=2e-3 beta1=0.9 beta2=0.999 eps=1e-8 weight_decay=0.  Kingma and Ba 2015,
//                algorithm 2: p -= lr / (1 - beta1^t) m / u with u = max(beta2 u, |g| + eps).
//   rprop        lr=0.01 etaminus=0.5 etaplus=1.2 step_size_min=1e-6 step_size_max=50.  Riedmiller
//                and Braun 1993, as in PyTorch: lr is the first step of each element; schedules
//                have no effect.  For gradients of all data.
//   asgd         lr=0.01 lambd=1e-4 alpha=0.75 t0=1e6 weight_decay=0.  Polyak and Juditsky 1992, as
//                in PyTorch: p = (1 - lambd r) p - r g with r = lr / (1 + lambd lr (t - 1))^alpha;
//                the state `average` is the mean of p over the steps after t0, before that p.
//   muon         lr=1e-3 momentum=0.95 nesterov=1 weight_decay=0.1 ns_steps=5 ns_dtype=bf16
//                eps=1e-7 adjust_lr_fn=original orthogonalize=1 adamw_lr= beta1=0.9 beta2=0.999.
//                Jordan et al. 2024, as in PyTorch.  Parameters of two axes [r,c]: b = momentum b +
//                (1 - momentum) g; u = b, or with nesterov=1 momentum b + (1 - momentum) g; o is u
//                with its singular values moved to about 1 by ns_steps steps of Newton-Schulz in
//                ns_dtype, bf16 or f32, or in f64 if the parameter has that dtype; p = (1 - lr L) p
//                - lr s o with s = sqrt(max(1, r/c)), or with adjust_lr_fn=match_rms_adamw 0.2
//                sqrt(max(r, c)), or with spectral_unclamped sqrt(r/c).  Other parameters, and
//                those with orthogonalize=0 (set it for embeddings and the last layer): adamw with
//                the learning rate adamw_lr (default: lr), which follows the schedule too.
//   adafactor    lr=0.01 beta2_decay=-0.8 eps1= eps2=1e-3 clip_threshold=1 weight_decay=0.  Shazeer
//                and Stern 2018, as in PyTorch, whose d is clip_threshold: the states of a
//                parameter of two or more axes are a number per row and column, and lr is relative
//                to the root mean square of the parameter.
//
// All kinds have these settings.  clip=0: the largest 2-norm over the gradients of all parameters;
// g is multiplied by min(1, clip / (norm + 1e-6)) before weight decay is added.  clip_value=0:
// clamps the elements of g.  check=0: see yoke_optim_check.  The learning-rate schedule has the
// settings schedule=constant warmup=0 steps= lr_min= lr_every=1000 lr_factor=0.5 lr_cycle=
// lr_cycle_grow=1, in steps.  With k = t - max(warmup, 1), the schedules are: constant; cosine, to
// lr_min at t = steps, or in cycles of lr_cycle steps, each lr_cycle_grow times as long as the
// previous one; linear, to lr_min at t = steps; step, lr lr_factor^floor(k / lr_every);
// exponential, lr lr_factor^k; inverse_sqrt, lr sqrt(max(warmup, 1) / t); onecycle, half a cosine
// up from lr/25 in `warmup` steps (default: 0.3 of all) and half a cosine down to lr_min.  All
// except onecycle warm up as lr t / warmup.  lr_min defaults to lr/10, for onecycle to lr/250000.
//
// Errors name the value and the rule; a failed call changes nothing.
#ifndef YOKE_OPTIM_H
#define YOKE_OPTIM_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_optim yoke_optim;

// ---- kinds ----

// The name of kind i, from 0 ("sgd"); NULL after the last one.
YOKE_API const char *yoke_optim_kind(int i);
// The settings of a kind with their defaults: "lr=0.001 momentum=0 ..".  NULL for an unknown kind.
YOKE_API const char *yoke_optim_options(const char *kind);

// ---- creation ----

// Creates an optimizer without parameters.  settings: "key=value" words, or NULL; numbers have a
// decimal point in every locale.  Returns NULL with ENOENT for an unknown kind or key, and with
// EINVAL for a value out of range and for incompatible settings.
YOKE_API yoke_optim *yoke_optim_new(const char *kind, const char *settings);
// Frees an optimizer and its states, but not the parameters.  NULL is fine.
YOKE_API void yoke_optim_free(yoke_optim *);
// Adds a group of n parameters: variables of f32 or f64, which the caller owns and keeps until the
// optimizer is freed, and their names, which are copied.  settings override the optimizer's for
// this group, or NULL.  The context of the first group becomes the optimizer's.  EINVAL: a name or
// a variable was added already (the error gives both names of the variable; add tied parameters
// once, as yoke_module_parameters lists them), a tensor is not a variable, or a step was made
// already; ECONTEXT, EDTYPE.
YOKE_API int yoke_optim_add(yoke_optim *, int n, yoke_tensor *const *p, const char *const *name,
			    const char *settings);
// Changes settings of the parameters whose names match a pattern with * and ? (fnmatch), or of all
// (NULL).  ENOENT: none matches.  After the first step, settings that determine which states exist
// cannot be changed (EINVAL).  Changing a learning rate needs no new plan, changing other settings
// needs one.
YOKE_API int yoke_optim_set(yoke_optim *, const char *pattern, const char *settings);

// ---- steps ----

struct yoke_step {
	size_t size;         // sizeof, set by the caller
	yoke_tensor *scale;  // multiplies the gradients first (1 over the loss scale), one number,
			     // or YOKE_NONE
	yoke_tensor *skip;   // one number or bool on the host or device: if it is not 0, the step
			     // changes nothing, bit for bit; or YOKE_NONE
	yoke_tensor *const *precondition; // n tensors shaped as the gradients, for precondition=pre
					  // and post; or NULL
	const double *lr;    // learning rate of all parameters in this step, overrides the
			     // schedule; or NULL
	yoke_tensor *(*loss)(void *arg); // for restart=function: records the loss while the
					 // parameters are x';
	void *arg;                       // called once, inside yoke_optim_step; NULL: not used
	yoke_tensor **norm;  // gets the 2-norm of all gradients after scaling, before clipping, [],
			     // in the innermost scope; or NULL
};
// Records a step as assignments to parameters and states.  g[i] is the gradient of the i-th
// parameter in the order of adding; n is the number of all parameters.  The struct may be NULL.
// EINVAL: no parameters, or another n; EDTYPE, ESHAPE, ECONTEXT: a gradient does not match its
// parameter.
YOKE_API int yoke_optim_step(yoke_optim *, int n, yoke_tensor *const *g, const struct yoke_step *);
// Reports that the last step was skipped: the next step reuses its number in schedules and bias
// corrections.
YOKE_API int yoke_optim_skipped(yoke_optim *);
// The number of steps, without skipped steps and steps that yoke_optim_check found to have changed
// nothing.
YOKE_API int64_t yoke_optim_steps(const yoke_optim *);
// A parameter's learning rate in step t = 1, 2, ... by the schedule; NaN, with an error, for an
// unknown name.
YOKE_API double yoke_optim_lr(const yoke_optim *, const char *parameter, int64_t t);
// With check=1, a step whose gradient norm is not finite changes nothing, and neither do the steps
// after it.  This call waits for the evaluated steps.  If there was such a step, it returns ERANGE,
// naming the first parameter whose gradient was not finite, and re-enables steps.  Step numbers,
// for schedules and bias corrections, continue from the last step that changed something.
YOKE_API int yoke_optim_check(yoke_optim *);

// ---- states ----

// A state variable, which the optimizer owns.  States of a parameter: "momentum", "prev", "x", "m",
// "v", "vmax", "mean", "sum", "window0", ..., "square", "delta", "norm", "step_size", "average",
// "row_var", "col_var", "variance"; before the first step all are 0, but "sum" is `initial` and
// "step_size" is lr.  With parameter NULL, the states of the kind accelerated: "theta", "last",
// "since" and "restarts", numbers of f32, or f64 if any parameter is f64.  NULL with ENOENT.
YOKE_API yoke_tensor *yoke_optim_state(const yoke_optim *, const char *parameter,
				       const char *state);
// Saves states and step number to a safetensors file, and loads them into an optimizer of the same
// kind with the same states and with parameters of the same names, shapes and dtypes; EFORMAT or
// ESHAPE if the file does not match.
YOKE_API int yoke_optim_save(yoke_optim *, const char *path);
YOKE_API int yoke_optim_load(yoke_optim *, const char *path);
// Moves the states to another context, bit for bit.  p replaces the parameters, in the order in
// which they were added.  The caller moves the parameters' values (yoke_module_move), before or
// after this call.
YOKE_API int yoke_optim_move(yoke_optim *, yoke_context *to, yoke_tensor *const *p);

#ifdef __cplusplus
}
#endif
#endif
