// SPDX-License-Identifier: Apache-2.0
// Checks the keys of a run on several ranks before it starts.
#ifndef YK_PARALLEL_CHECK_H
#define YK_PARALLEL_CHECK_H

#include "config/conf.h"

// EINVAL: the ranks do not divide the micro-batches, or keys are incompatible with several ranks.
int yk_ranks_check(const struct yk_config *);

#endif
