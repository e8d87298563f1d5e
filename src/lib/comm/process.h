// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: those that others started, and starting them.
#ifndef YK_DIST_PROCESS_H
#define YK_DIST_PROCESS_H

#include <signal.h>

#include "base/stop.h"
#include "comm/ranks.h"

// Is this process a rank of a world of processes, and which?  1, 0, or EINVAL: what says so is malformed.
int yk_process_place(uint32_t *rank, uint32_t *ranks);
bool yk_process_launched(void); // .. started by another program than yoke: mpirun, srun, torchrun
// Of a launched one: how many of its machine have the processors that it may use, and which of them it is; else 1, 0.
// The first call waits until all of the machine are there.
int yk_process_cpu(uint32_t *index, uint32_t *share);
// The same of ranks that have devices of which they see `devices`, the first of which has this UUID or PCI address: does each
// rank of the machine see one alone, that no other sees?  1, 0; *other is a rank of the machine that sees the same one, or
// the rank's own number.
int yk_process_unlike(int devices, const char *uuid, uint32_t *other);
// If it is: its rendezvous, which the queue's wakeup is of from then on.  Once; *to stays NULL where it is none.
int yk_process_world(struct yk_ranks *, struct yk_rendezvous **to, uint32_t *rank);
// The rank ends by the thread's error, which the process that started it hears of, and the other ranks.  False:
// nobody tells people of it but the caller.
bool yk_process_failed(void);
void yk_world_forget(struct yk_ranks *); // the queue is freed
// Breaks the queue's groups that have a member, of this machine, that has ended without a word.
void yk_world_look(struct yk_ranks *);
// As yoke_group_run in each process of a world: fn in a context on this rank's device.
int yk_process_run(const char *devices, int (*fn)(yoke_group *world, void *arg), void *arg);

struct yk_launch {
	const char *path;   // of the program; NULL: argv[0] is looked for
	uint64_t grace;     // nanoseconds that ranks have to end in once one has failed; then they are killed
	// Signals that the caller has blocked, which are handed to the ranks; these have a process group of their own
	// then, so that what a terminal sends comes once.  NULL: ranks get signals as any child does.
	const sigset_t *forward;
	int signals, signal; // passed on: how many that count, the last one
	struct yk_stop_window window; // of the last one
	int lost;            // where no rank failed by an error of its own: how many died or hung
};
int yk_spawn(int n, char *const argv[], struct yk_launch *); // as yoke_group_spawn

#endif
