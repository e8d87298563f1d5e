// SPDX-License-Identifier: Apache-2.0
// The part of a profile that is called for each piece of work.
#ifndef YK_PIECES_H
#define YK_PIECES_H

#include "observe/flops.h"
#include "observe/profile_priv.h"

enum { YK_MAX_PENDING = 4096 }; // pieces whose events are kept

void yk_pieces_init(struct yk_profile *); // its observer
// Times of the pieces so far; waits for them.
void yk_pieces_resolve(struct yk_profile *);
// How the device's clock ran, once all pieces are resolved.
void yk_pieces_close(struct yk_profile *);
// Ranges that are open where watching begins, or where it ends, are taken from there, or to there.
void yk_pieces_ranges_begin(struct yk_profile *);
void yk_pieces_ranges_end(struct yk_profile *);

#endif
