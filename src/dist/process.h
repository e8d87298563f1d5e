// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of one machine: the memory that they share, and starting them.
#ifndef YK_PROCESS_H
#define YK_PROCESS_H

#include "dist/ranks.h"

// Memory of all ranks of a world: a sealed memfd, so that nobody can make it smaller under the others, and nothing
// of it is left when the last process has gone.
struct yk_segment;
struct yk_segment *yk_segment_ref(struct yk_segment *);
void yk_segment_unref(struct yk_segment *);
// Room for the area of one more group; where it is, or 0: there is none left.
uint64_t yk_segment_take(struct yk_segment *, uint32_t ranks);
// The area at a place that another process has taken; NULL: no such thing can be there.
struct yk_area *yk_segment_area(struct yk_segment *, uint64_t at, uint32_t ranks);

// If this process is a rank of a world of processes: its hub, which the queue's bell is of from then on.  Once;
// *to stays NULL where it is none.
int yk_process_world(struct yk_ranks *, struct yk_hub **to, uint32_t *rank);

#endif
