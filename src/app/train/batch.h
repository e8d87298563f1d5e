// SPDX-License-Identifier: Apache-2.0
// batch=auto: finds the batch size with the highest throughput among those that fit in memory.
#ifndef YK_BATCH_H
#define YK_BATCH_H

#include "train/trainer.h"

enum { YK_BATCH_TIMED = 10 }; // max number of timed steps

// Measures the seconds of one step with that batch. Returns 0 or an error.
typedef int yk_batch_time_fn(void *arg, int64_t batch, double *seconds);
struct yk_batch_pick {
	int64_t batch;
	int timed;   // number of timed steps
	double rate; // windows per second
};
// Searches 1 .. max for the batch with the most windows per second, within YK_BATCH_TIMED timed
// steps: grows it by factors of 4 or more while throughput improves, then bisects between the best
// and its neighbours. A batch that did not improve is timed again, in case other load slowed it
// down.
int yk_batch_pick(int64_t max, yk_batch_time_fn *, void *arg, struct yk_batch_pick *to);

// For a trainer without a model: sets the configuration's batch and stores the reason in the
// trainer. Only sizes that fit in a dry context are tried. ENOMEM: not even batch 1 fits.
int yk_batch_choose(struct yk_trainer *, struct yk_config *);

#endif
