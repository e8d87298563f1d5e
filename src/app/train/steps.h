// SPDX-License-Identifier: Apache-2.0
// The loop of training: a trainer's steps, and what is done between them.
#ifndef YK_STEPS_H
#define YK_STEPS_H

#include "train/trainer.h"

// What is done between steps, each 0 or an error that ends the loop; a function that is NULL is not called.
struct yk_between {
	void (*before)(void *arg);          // each step
	int (*asked)(void *arg);            // the signal that asks for an end, 0: none
	int (*log)(void *arg);              // at the first and last step, and every log_every
	void (*tick)(void *arg);            // behind the others
	int (*told)(void *arg, bool end);   // behind each, when it is logged; end: it is the last one
	int (*validate)(void *arg);
	int (*save)(void *arg);
	int (*snapshot)(void *arg);
	int (*after)(void *arg, bool good); // each step, when all of that is done
	int64_t log_every, eval_every, save_every, snapshot_every; // 0: never
};

// To the trainer's last step, or behind the one in which an end was asked for, by *signal then.  first: the steps
// that were done before.
int yk_steps(struct yk_trainer *, int64_t first, const struct yk_between *, void *arg, int *signal);

#endif
