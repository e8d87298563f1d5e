// SPDX-License-Identifier: Apache-2.0
// The training loop: steps, log, validation, checkpoints and signals of one `yoke train`.
#ifndef YK_LOOP_H
#define YK_LOOP_H

#include "train/conf.h"

// Runs the configuration to its last step, or to the end of the step in which SIGINT or
// SIGTERM arrives; saves then, and returns 0.  The keys that were not given are taken
// from the checkpoint when resuming.
int yk_train(struct yk_config *);

#endif
