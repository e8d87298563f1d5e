// SPDX-License-Identifier: Apache-2.0
// The profiler's hooks, called at the begin and end of each piece of work (profile.h defines one).
#ifndef YK_PIECES_H
#define YK_PIECES_H

#include "observe/flops.h"
#include "observe/profile_priv.h"

enum { YK_MAX_PENDING = 4096 }; // pieces that hold events at once

void yk_pieces_init(struct yk_profile *); // initializes the observer
// Resolves the times of all pieces so far; waits for their completion.
void yk_pieces_resolve(struct yk_profile *);
// Determines the drift of the device's clock; call it once all pieces are resolved.
void yk_pieces_close(struct yk_profile *);
// Ranges that are open when watching begins or ends are clipped to the watched time.
void yk_pieces_ranges_begin(struct yk_profile *);
void yk_pieces_ranges_end(struct yk_profile *);

#endif
