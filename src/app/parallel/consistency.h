// SPDX-License-Identifier: Apache-2.0
// Checks that ranks are consistent: the same version, configuration and data at the start, equal
// parameters after steps.
#ifndef YK_CONSISTENCY_H
#define YK_CONSISTENCY_H

#include "data/text.h"
#include "parallel/replica.h"

// EINVAL, ERANK: ranks differ in version, configuration or data. All ranks call it.
// data: NULL: the application has its own.
int yk_ranks_check_setup(const struct yk_replica *, const struct yk_data *data);
// EINVAL: since then some kernels were disabled on one rank only. EMISMATCH: replicated parameters
// have different bits. All ranks call it after a step.
int yk_ranks_check_replicas(const struct yk_replica *, bool parameters);

#endif
