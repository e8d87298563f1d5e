// SPDX-License-Identifier: Apache-2.0
// The processes of runs, as /proc shows them.
#ifndef YK_LIVE_PROCESS_H
#define YK_LIVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runs/read.h"

struct yk_process {
	pid_t pid;      // 0: there is none, or it cannot be looked at
	int threads, children;
	int checkpoints;    // of them, files that it has open
	uint64_t rss;       // bytes
	double cpu;         // seconds that it computed so far
	double since;       // when that was, by yk_seconds
	double share;       // of one processor since the last look; NaN: this is the first
};

// The process of a run that lives on this machine since it was started; `to` holds what was seen before.
void yk_process_look(const struct yk_view *, struct yk_process *to);

// Folders of runs whose locks the caller's processes hold, in the order of the processes; each is the caller's to
// free.  How many there are.
int yk_process_runs(int most, char **folder);

#endif
