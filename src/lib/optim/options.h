// SPDX-License-Identifier: Apache-2.0
// The options of all optimizers and schedules, declared once: settings of yoke-optim.h, and keys of
// `yoke train`.
#ifndef YK_OPTIM_OPTIONS_H
#define YK_OPTIM_OPTIONS_H

// O(key, type, least, most, words, help).  Types: INT and REAL in [least, most]; CHOICE, the number of
// one of the words, each with a blank before it.  Which of them an optimizer has, and their defaults, is
// in its row of table.c.
#define YK_BELOW_1 0.9999999999999999
#define YK_OPTIM_OPTIONS(O) \
	O(lr, REAL, 0, 1e3, "", "learning rate after warm-up") \
	O(weight_decay, REAL, 0, 1e3, "", \
	  "decay of matrices, decoupled in adamw and lamb, else added to the gradient") \
	O(clip, REAL, 0, 1e9, "", "largest norm of all gradients together; 0: none") \
	O(momentum, REAL, 0, YK_BELOW_1, "", "share of the last step in this one") \
	O(dampening, REAL, 0, 1, "", "of sgd: share of the gradient that momentum leaves out") \
	O(nesterov, CHOICE, 0, 0, " 0 1", "momentum looks one step ahead") \
	O(beta1, REAL, 0, YK_BELOW_1, "", "decay of the first moment") \
	O(beta2, REAL, 0, YK_BELOW_1, "", "decay of the second moment") \
	O(eps, REAL, 0, 1e3, "", "added to what a step is divided by") \
	O(amsgrad, CHOICE, 0, 0, " 0 1", "the second moment is the largest there was") \
	O(alpha, REAL, 0, YK_BELOW_1, "", "of rmsprop: decay of the mean square") \
	O(centered, CHOICE, 0, 0, " 0 1", "of rmsprop: the mean is taken off the mean square") \
	O(rho, REAL, 0, YK_BELOW_1, "", "of adadelta: decay of both mean squares") \
	O(lr_decay, REAL, 0, 1e9, "", "of adagrad: step t has lr / (1 + (t - 1) lr_decay)") \
	O(initial, REAL, 0, 1e9, "", "of adagrad: the sum of squares before the first step") \
	O(window, INT, 1, 10000, "", "of adagrad: squared gradients in the sum; auto: all") \
	O(window_by, CHOICE, 0, 0, " sum mean decayed", \
	  "of adagrad: what the window's squares come to; decayed keeps one state for all of them") \
	O(q, REAL, 0, 1, "", "of accelerated: the inverse condition number that it counts on") \
	O(restart, CHOICE, 0, 0, " none function gradient speed", "of accelerated: what ends its momentum") \
	O(adapt, CHOICE, 0, 0, " 0 1", "of lamb: a step is as long as its tensor's norm says") \
	O(norm_min, REAL, 0, 1e9, "", "of lamb: tensors of a smaller norm count as of this one") \
	O(norm_max, REAL, 0, 1e9, "", "of lamb: tensors of a larger norm count as of this one; 0: no bound") \
	O(clip_value, REAL, 0, 1e9, "", "largest absolute value of a gradient's elements; 0: any") \
	O(lr_min, REAL, 0, 1e3, "", \
	  "learning rate at the end; auto: lr/10, for onecycle lr/250000") \
	O(lr_every, INT, 1, 1e12, "", "of schedule=step: steps after which the learning rate falls; auto: 1000") \
	O(lr_factor, REAL, 0, 1, "", \
	  "of schedule=step and exponential: what the learning rate is multiplied by each time; auto: 0.5") \
	O(lr_cycle, INT, 1, 1e12, "", "of schedule=cosine: steps to the first restart; auto: none") \
	O(lr_cycle_grow, REAL, 1, 100, "", "of schedule=cosine: each cycle is so many times the one before; auto: 1")

// What the library has and `yoke train` another way: kinds of schedule and their lengths are keys of its
// own, and there are no tensors to precondition with.
#define YK_OPTIM_OWN_OPTIONS(O) \
	O(schedule, CHOICE, 0, 0, " constant cosine linear step exponential inverse_sqrt onecycle", \
	  "how the learning rate falls after warm-up") \
	O(warmup, INT, 0, 1e12, "", "steps of linear rise of the learning rate") \
	O(steps, INT, 1, 1e12, "", "steps in all") \
	O(precondition, CHOICE, 0, 0, " none pre post", \
	  "of adagrad: tensors multiply gradients (pre) or steps (post)") \
	O(check, CHOICE, 0, 0, " 0 1", "steps behind a gradient that is not finite change nothing")

enum yk_optim_option {
#define O(key, ...) YK_O_##key,
	YK_OPTIM_OPTIONS(O) YK_OPTIM_OWN_OPTIONS(O)
#undef O
	YK_OPTIM_OPTION_COUNT
};

#endif
