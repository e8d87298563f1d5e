// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: joining a world that a launcher or yoke started, and starting ranks.
#ifndef YK_DIST_PROCESS_H
#define YK_DIST_PROCESS_H

#include <signal.h>

#include "base/stop.h"
#include "comm/ranks.h"

// Whether this process is a rank of a world of processes, and which one: 1, 0, or EINVAL if its
// environment is malformed.
int yk_process_rank(uint32_t *rank, uint32_t *ranks);
bool yk_process_launched(void); // started by another program than yoke: mpirun, srun, torchrun
// For a launched rank: how many ranks of this machine have the same CPU set, and this rank's index
// among them; otherwise 1 and 0. The first call waits for all ranks of the machine.
int yk_process_cpu(uint32_t *index, uint32_t *share);
// Whether each rank of this machine sees exactly one device that no other rank sees: 1 or 0.
// `devices` is the number that this rank sees, `uuid` the UUID or PCI address of the first. *other
// receives a rank that sees the same device, or this rank's own number.
int yk_process_unlike(int devices, const char *uuid, uint32_t *other);
// Joins the world if this process is a rank of one. The queue then uses the rank slot's wakeup.
// Call once; *to stays NULL if there is no world.
int yk_process_world(struct yk_ranks *, struct yk_rendezvous **to, uint32_t *rank);
// Ends the rank with the thread's error, and reports it to the other ranks and the parent process.
// Returns false if no other process prints the error, so the caller must.
bool yk_process_failed(void);
void yk_world_forget(struct yk_ranks *); // the queue is being freed
// Breaks the queue's groups that have a member on this machine whose process ended without leaving.
void yk_world_check(struct yk_ranks *);
// As yoke_group_run, in each process of a world: calls fn in a context on this rank's device.
int yk_process_run(const char *devices, int (*fn)(yoke_group *world, void *arg), void *arg);

struct yk_launch {
	const char *path;   // of the program; NULL: argv[0] is searched in PATH
	uint64_t grace;     // nanoseconds between the first rank's failure and killing the others
	// Signals that the caller has blocked and that are forwarded to the ranks. The ranks then
	// have their own process group, so that a signal from the terminal arrives only once. NULL:
	// ranks receive signals like any child process.
	const sigset_t *forward;
	int signals, signal; // forwarded so far: the number of those that count, and the last one
	struct yk_stop_window window; // of the last signal
	int lost;            // ranks that died or hung, if no rank failed with an error of its own
};
int yk_spawn(int n, char *const argv[], struct yk_launch *); // see yoke_group_spawn

#endif
