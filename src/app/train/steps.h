// SPDX-License-Identifier: Apache-2.0
// The training loop, shared by `yoke train` and yoke_fit: a trainer's steps, and callbacks between
// them.
#ifndef YK_STEPS_H
#define YK_STEPS_H

#include "train/trainer.h"

// Steps from one to the next; 0: never.
struct yk_intervals {
	int64_t log, eval, save, snapshot;
};

// Callbacks between steps. A NULL function is skipped; an error (not 0) ends the loop.
struct yk_between {
	void (*before)(void *arg);          // before each step
	bool (*over)(void *arg);            // whether the run ends before its last step
	int (*asked)(void *arg);            // the signal that requests a stop, 0: none
	// after the first and last step, and every every.log steps
	int (*log)(void *arg);
	void (*tick)(void *arg);            // after each step that is not logged
	int (*logged)(void *arg, bool end); // after each step and its log; end: it is the last one
	int (*validate)(void *arg);
	int (*save)(void *arg);
	int (*snapshot)(void *arg);
	int (*after)(void *arg, bool good); // after each step and all other callbacks
	struct yk_intervals every;
};

// Runs to the trainer's last step, or until `over`, or until the step during which a stop was
// requested; *signal is the signal. first: steps completed before.
int yk_steps(struct yk_trainer *, int64_t first, const struct yk_between *, void *arg, int *signal);

#endif
