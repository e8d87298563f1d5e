// SPDX-License-Identifier: Apache-2.0
// A process's rank among processes that were started together, as given by its launcher's
// environment variables.
#ifndef YK_LAUNCH_ENV_H
#define YK_LAUNCH_ENV_H

#include <sys/types.h>

#include "comm/started.h"

// holds "rank ranks socket"; set for processes that yoke itself starts
extern const char yk_world_variable[];

// Returns 1 for a rank among several, 0 for a single process, EINVAL if the variables are malformed
// or contradictory.
int yk_started_find(struct yk_started *);
// Returns the process that started rank `pid`: its nearest ancestor without the launcher's
// variable. 0 if not found.
pid_t yk_started_parent(const struct yk_started *, pid_t pid);

#endif
