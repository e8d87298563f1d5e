// SPDX-License-Identifier: Apache-2.0
// Resource use of the processes of runs, read from /proc.
#ifndef YK_LIVE_PROCESS_H
#define YK_LIVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runs/read.h"

struct yk_process {
	pid_t pid;      // 0: no process, or it cannot be inspected
	int threads, children;
	int checkpoints;    // number of checkpoint files that these processes have open
	uint64_t rss;       // bytes
	double cpu;         // seconds of processor time so far
	double since;       // time of that measurement, by yk_seconds
	double share;       // average processors in use since the previous call; NaN: first call
};

// Inspects the process of a run on this machine (since its last boot); on entry, `to` holds the
// previous measurement.
void yk_process_inspect(const struct yk_view *, struct yk_process *to);

// Calls fn with the target of each open file of a process.
void yk_process_files(pid_t, void (*fn)(void *arg, const char *target), void *arg);
// The name of a process, its seconds of processor time, and its resident bytes (NaN: unknown).
// False: it is gone.
bool yk_process_read(pid_t, char name[32], double *cpu, double *rss);

// Directories of the runs whose lock files are held by processes of this user, in the order of the
// processes. The caller frees each. Returns their number.
int yk_process_runs(int max, char **folder);

#endif
