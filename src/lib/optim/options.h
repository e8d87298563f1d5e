// SPDX-License-Identifier: Apache-2.0
// The options of all optimizers and schedules, declared once: they are settings of yoke-optim.h and
// keys of `yoke train`.
#ifndef YK_OPTIM_OPTIONS_H
#define YK_OPTIM_OPTIONS_H

// O(key, group, level, type, least, most, words, help).  Group and level place the key in
// `yoke help train` (train/conf.h).  Types: INT and REAL in [min, max]; CHOICE, the index of one
// of the words, each preceded by a blank.  An optimizer's entry in table.c lists its options with
// their defaults.
#define YK_BELOW_1 0.9999999999999999
#define YK_OPTIM_OPTIONS(O) \
	O(lr, OPTIMIZER, BASIC, REAL, 0, 1e3, "", "learning rate after warm-up") \
	O(weight_decay, OPTIMIZER, ADVANCED, REAL, 0, 1e3, "", \
	  "decay of matrices; decoupled in adamw, lamb, muon and adafactor, otherwise added to the gradient") \
	O(clip, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", \
	  "maximum norm of all gradients together; 0: no limit") \
	O(momentum, OPTIMIZER, ADVANCED, REAL, 0, YK_BELOW_1, "", \
	  "share of the previous step in this one") \
	O(dampening, OPTIMIZER, ADVANCED, REAL, 0, 1, "", \
	  "for sgd: share of the gradient that momentum leaves out") \
	O(nesterov, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", "1: Nesterov momentum") \
	O(beta1, OPTIMIZER, ADVANCED, REAL, 0, YK_BELOW_1, "", "decay of the first moment") \
	O(beta2, OPTIMIZER, ADVANCED, REAL, 0, YK_BELOW_1, "", "decay of the second moment") \
	O(eps, OPTIMIZER, ADVANCED, REAL, 0, 1e3, "", "added to the divisor of a step") \
	O(amsgrad, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", \
	  "1: use the maximum of all past second moments") \
	O(alpha, OPTIMIZER, ADVANCED, REAL, 0, YK_BELOW_1, "", \
	  "for rmsprop: decay of the mean square; for asgd: power with which lr falls") \
	O(centered, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", \
	  "1: for rmsprop: subtract the squared mean from the mean square") \
	O(rho, OPTIMIZER, ADVANCED, REAL, 0, YK_BELOW_1, "", \
	  "for adadelta: decay of both mean squares") \
	O(lr_decay, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", \
	  "for adagrad: step t has lr / (1 + (t - 1) lr_decay)") \
	O(initial, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", \
	  "for adagrad: sum of squares before the first step") \
	O(window, OPTIMIZER, ADVANCED, INT, 1, 10000, "", \
	  "for adagrad: number of squared gradients in the sum; auto: all") \
	O(window_by, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " sum mean decayed", \
	  "for adagrad: how the window's squares are combined; decayed keeps one state for all of them") \
	O(q, OPTIMIZER, ADVANCED, REAL, 0, 1, "", \
	  "for accelerated: assumed inverse condition number") \
	O(restart, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " none function gradient speed", \
	  "for accelerated: what restarts its momentum") \
	O(adapt, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", \
	  "1: for lamb: scale each step by its tensor's norm") \
	O(norm_min, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", \
	  "for lamb: minimum norm of a tensor in the ratio") \
	O(norm_max, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", \
	  "for lamb: maximum norm of a tensor in the ratio; 0: no limit") \
	O(momentum_decay, OPTIMIZER, ADVANCED, REAL, 0, 1e3, "", \
	  "for nadam: how fast the momentum rises from beta1/2 to beta1") \
	O(decoupled_weight_decay, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", \
	  "1: for nadam and radam: weight decay as in adamw") \
	O(etaminus, OPTIMIZER, ADVANCED, REAL, 0, YK_BELOW_1, "", \
	  "for rprop: factor of an element's step after its gradient changes sign") \
	O(etaplus, OPTIMIZER, ADVANCED, REAL, 1, 1e3, "", \
	  "for rprop: factor of an element's step while its gradient keeps its sign") \
	O(step_size_min, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", "for rprop: smallest step") \
	O(step_size_max, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", "for rprop: largest step") \
	O(lambd, OPTIMIZER, ADVANCED, REAL, 0, 1e3, "", \
	  "for asgd: decay of the parameters; step t has lr / (1 + lambd lr (t - 1))^alpha") \
	O(t0, OPTIMIZER, ADVANCED, REAL, 0, 1e18, "", \
	  "for asgd: steps before the average of the parameters begins") \
	O(ns_steps, OPTIMIZER, ADVANCED, INT, 1, 99, "", "for muon: Newton-Schulz steps") \
	O(ns_dtype, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " bf16 f32", \
	  "for muon: dtype of these steps' matrices; with f32 they take twice as long") \
	O(adjust_lr_fn, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " original match_rms_adamw spectral_unclamped", \
	  "for muon: lr of a matrix of r rows and c columns: original: lr sqrt(max(1, r/c)); match_rms_adamw: " \
	  "0.2 lr sqrt(max(r, c)), for which an lr for adamw fits; spectral_unclamped: lr sqrt(r/c)") \
	O(orthogonalize, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", \
	  "0: muon updates matrices with adamw, like all other parameters") \
	O(adamw_lr, OPTIMIZER, ADVANCED, REAL, 0, 1e3, "", \
	  "for muon: learning rate of the parameters that adamw updates; auto: lr") \
	O(beta2_decay, OPTIMIZER, ADVANCED, REAL, -100, 0, "", \
	  "for adafactor: step t has the weight t^beta2_decay in the second moments") \
	O(eps1, OPTIMIZER, ADVANCED, REAL, 0, 1e3, "", \
	  "for adafactor: smallest root of a second moment; auto: the dtype's epsilon") \
	O(eps2, OPTIMIZER, ADVANCED, REAL, 0, 1e3, "", \
	  "for adafactor: smallest root mean square of a parameter, of which lr is the fraction in a step") \
	O(clip_threshold, OPTIMIZER, ADVANCED, REAL, 1, 1e9, "", \
	  "for adafactor: largest root mean square of a parameter's step before lr; d in PyTorch") \
	O(clip_value, OPTIMIZER, ADVANCED, REAL, 0, 1e9, "", \
	  "maximum absolute value of a gradient's elements; 0: no limit") \
	O(lr_min, SCHEDULE, ADVANCED, REAL, 0, 1e3, "", \
	  "learning rate at the end; auto: lr/10, for onecycle lr/250000") \
	O(lr_every, SCHEDULE, ADVANCED, INT, 1, 1e12, "", \
	  "for schedule=step: steps after which the learning rate falls; auto: 1000") \
	O(lr_factor, SCHEDULE, ADVANCED, REAL, 0, 1, "", \
	  "for schedule=step and exponential: factor of the learning rate each time; auto: 0.5") \
	O(lr_cycle, SCHEDULE, ADVANCED, INT, 1, 1e12, "", \
	  "for schedule=cosine: steps to the first restart; auto: none") \
	O(lr_cycle_grow, SCHEDULE, ADVANCED, REAL, 1, 100, "", \
	  "for schedule=cosine: factor by which each cycle is longer than the one before; auto: 1")

// Options of the library only: `yoke train` has other keys for the kind and length of a schedule,
// and no preconditioning.
#define YK_OPTIM_OWN_OPTIONS(O) \
	O(schedule, SCHEDULE, ADVANCED, CHOICE, 0, 0, \
	  " constant cosine linear step exponential inverse_sqrt onecycle", \
	  "how the learning rate falls after warm-up") \
	O(warmup, SCHEDULE, ADVANCED, INT, 0, 1e12, "", \
	  "steps in which the learning rate rises linearly") \
	O(steps, SCHEDULE, ADVANCED, INT, 1, 1e12, "", "total number of steps") \
	O(precondition, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " none pre post", \
	  "for adagrad: tensors multiply gradients (pre) or steps (post)") \
	O(matrix, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", \
	  "no setting: follows from the parameter's shape, see yk_optim_kind") \
	O(check, OPTIMIZER, ADVANCED, CHOICE, 0, 0, " 0 1", \
	  "1: a step whose gradient is not finite, and all later ones, change nothing")

enum yk_optim_option {
#define O(key, ...) YK_O_##key,
	YK_OPTIM_OPTIONS(O) YK_OPTIM_OWN_OPTIONS(O)
#undef O
	YK_OPTIM_OPTION_COUNT
};

#endif
