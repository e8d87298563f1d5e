// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a training run as threads or processes, and restarts the remaining ones after
// a failure.
#ifndef YK_LAUNCH_RANKS_H
#define YK_LAUNCH_RANKS_H

#include "config/conf.h"

// Whether this command only starts rank processes (spawn=process) and does not train itself. The
// processes it starts are ranks, and train.
bool yk_ranks_spawns(const struct yk_config *);
// Starts the processes with the command's own arguments, forwards signals and waits. With
// restarts=, restarts from the last checkpoint with as many of the remaining ranks as give the same
// bits. ERANK: how the first rank failed. A second signal ends the calling process.
int yk_ranks_spawn(const struct yk_config *, int argc, char *const argv[]);
// Trains on one rank or on ranks that are threads. With restarts=, continues without ranks whose
// devices failed.
int yk_ranks_train(struct yk_config *, int argc, char *const argv[]);

#endif
