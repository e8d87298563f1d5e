// SPDX-License-Identifier: Apache-2.0
// Mixed precision while operations are recorded: the setting of yoke_autocast, and the casts of
// operands.
#ifndef YK_AUTOCAST_H
#define YK_AUTOCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

struct yk_autocast;
struct yoke_context;

// The innermost scope, which changed the setting, ends: restores the former one.  EINVAL: a pattern
// matched no scope.
int yk_autocast_end(struct yoke_context *, const struct yk_autocast *former);
// With autocast on: replaces the dtypes of n operands (0: no tensor) by those that the op's policy
// casts them to.  Returns the dtype for literals among them, 0: the usual rule.
int yk_autocast_dtypes(struct yoke_context *, int op, int n, uint8_t *dtype);
// x as dtype: a held cast, or a new one.
yk_id yk_autocast_cast(struct yoke_context *, yk_id x, int dtype);
// Holds the recorded casts of variables to half precision that have one reader each, so that later
// recordings use them until they are released or the variable changes.  A variable with several
// readers keeps one cast per reader: then the gradients of all are added in f32.
int yk_autocast_hold(struct yoke_context *);
void yk_autocast_release(struct yoke_context *);

#endif
