// SPDX-License-Identifier: Apache-2.0
// Exports the rows of a profile as JSON, for a run's kernels.json.
#ifndef YK_KERNELS_H
#define YK_KERNELS_H

#include <jansson.h>

#include "observe/profile.h"

// { "format": 1, "rows": [ { op, implementation, device, scope, nodes, calls, seconds, bytes, flops
// } ] }, summed over all calls, longest first; flops only where they are counted.  NULL: out of
// memory.
json_t *yk_profile_kernels(const struct yk_profile *);

#endif
