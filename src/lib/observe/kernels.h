// SPDX-License-Identifier: Apache-2.0
// The rows of a profile as an object, for kernels.json of a run.
#ifndef YK_KERNELS_H
#define YK_KERNELS_H

#include <jansson.h>

#include "observe/profile.h"

// { "format": 1, "rows": [ { op, implementation, device, scope, nodes, calls, seconds, bytes, flops } ] }: of all
// calls together, the longest first; flops only where they are counted.  NULL: no memory.
json_t *yk_profile_kernels(const struct yk_profile *);

#endif
