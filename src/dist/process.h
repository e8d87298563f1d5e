// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of one machine: the memory that they share, and starting them.
#ifndef YK_PROCESS_H
#define YK_PROCESS_H

#include <signal.h>

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

// Is this process a rank of a world of processes, and which?  1, 0, or EINVAL: what says so is malformed.
int yk_process_place(uint32_t *rank, uint32_t *ranks);
// If it is: its hub, which the queue's bell is of from then on.  Once; *to stays NULL where it is none.
int yk_process_world(struct yk_ranks *, struct yk_hub **to, uint32_t *rank);
// The rank ends by the thread's error, which the process that started it hears of, and the other ranks.  False:
// nobody could be told.
bool yk_process_failed(void);
// As yoke_group_run in each process of a world: fn in a context on this rank's device.
int yk_process_run(const char *devices, int (*fn)(yoke_group *world, void *arg), void *arg);

struct yk_launch {
	const char *path;   // of the program; NULL: argv[0] is looked for
	uint64_t grace;     // nanoseconds that ranks have to end in once one has failed; then they are killed
	// Signals that the caller has blocked, which are handed to the ranks; these have a process group of their own
	// then, so that what a terminal sends comes once.  NULL: ranks get signals as any child does.
	const sigset_t *forward;
	int signals, signal; // handed on: how many, the last one
	int lost;            // where no rank failed by an error of its own: how many died or hung
};
int yk_spawn(int n, char *const argv[], struct yk_launch *); // as yoke_group_spawn

#endif
