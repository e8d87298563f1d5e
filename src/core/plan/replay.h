// SPDX-License-Identifier: Apache-2.0
// Recorded graphs of a plan's launches: one for each set of block addresses that recurs.
#ifndef YK_REPLAY_H
#define YK_REPLAY_H

#include "device/device.h"

struct yk_spot { // location of a block
	void *segment;
	uint64_t offset;
};

enum { YK_GRAPHS = 24 }; // graphs kept per plan: two alternating versions for each of the
			 // prefetched batch buffers

struct yk_graph_of { // the recorded launches for blocks at these locations
	struct yk_spot *spot;
	size_t spots;
	uint64_t used, seen; // seen: number of repetitions
	const struct yoke_backend *ops;
	void *graph; // NULL: not recorded yet
};

struct yk_replay {
	struct yk_graph_of of[YK_GRAPHS];
	uint64_t launches;
	bool off; // recording failed and is not tried again
};

// The entry for these locations, created if necessary; NULL: no memory.
struct yk_graph_of *yk_replay_find(struct yk_replay *, const struct yk_spot *, size_t n);
// Records the work that `steps` enqueues.  After an error nothing was enqueued.
int yk_replay_record(struct yk_graph_of *, struct yk_queue *, int (*steps)(void *), void *arg);
void yk_replay_free(struct yk_replay *, bool over); // over: no launch of it is in progress

#endif
