// SPDX-License-Identifier: Apache-2.0
// batch=auto: the batch that trains fastest, of those that fit.
#ifndef YK_BATCH_H
#define YK_BATCH_H

#include "train/trainer.h"

enum { YK_BATCH_TIMED = 10 }; // steps that are timed at most

// Seconds of a step with that batch; 0, or an error.
typedef int yk_batch_time_fn(void *arg, int64_t batch, double *seconds);
struct yk_batch_pick {
	int64_t batch;
	int timed;   // steps
	double rate; // windows a second
};
// Of 1 .. most the batch with the most windows a second, as far as YK_BATCH_TIMED steps can tell:
// four times as many, or more, as long as that pays, then between the best and its neighbours.  One that
// did not pay is timed again, for what else the machine may have done.
int yk_batch_pick(int64_t most, yk_batch_time_fn *, void *arg, struct yk_batch_pick *to);

// For a trainer without a model: sets the configuration's batch and says in the trainer
// why.  Only sizes that find their memory in a dry context are tried.  ENOMEM: not even a batch
// of 1 does.
int yk_batch_choose(struct yk_trainer *, struct yk_config *);

#endif
