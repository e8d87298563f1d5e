// SPDX-License-Identifier: Apache-2.0
// The profiler's hooks, called at the begin and end of each activity (profile.h defines one).
#ifndef YK_ACTIVITY_H
#define YK_ACTIVITY_H

#include "observe/flops.h"
#include "observe/profile_state.h"

enum { YK_MAX_PENDING = 4096 }; // activities that hold events at once

void yk_activity_init(struct yk_profile *); // initializes the observer
// Resolves the times of all activities so far; waits for their completion.
void yk_activity_resolve(struct yk_profile *);
// Determines the drift of the device's clock; call it once all activities are resolved.
void yk_activity_close(struct yk_profile *);
// Ranges that are open when watching begins or ends are clipped to the watched time.
void yk_activity_ranges_begin(struct yk_profile *);
void yk_activity_ranges_end(struct yk_profile *);

#endif
