// SPDX-License-Identifier: Apache-2.0
// Collectives by the library of the devices' vendor, through ext("collectives"): what ranks do together stays in their
// devices' memory.  It serves groups on one machine whose ranks have a device each, all of one backend.
#ifndef YK_DIST_NATIVE_H
#define YK_DIST_NATIVE_H

#include "comm/ranks.h"

enum { YK_NATIVE_RANKS = YOKE_MAP_MAX_INPUTS }; // at most: a sum is one map

struct yk_native { // of a rank in a group
	const struct yoke_collectives_ext *ext;
	const struct yoke_backend *ops;
	uint32_t device;
	void *comm, *queue; // comm NULL: of one rank, or given up
	bool broken;
};

bool yk_native_fast(void); // dist.order=fast: the library reduces

// Of threads: if these devices, by name, can do it, the rendezvous says so from now on, with an id.
void yk_native_offer(struct yk_rendezvous *, int ranks, char (*device)[sizeof ((struct yk_device *)NULL)->id]);
// Of processes, as the world is joined: all say what they have, and see what the others said.
void yk_native_meet(struct yk_rendezvous *, uint32_t rank, struct yk_device *);
// Of a group that is split: the id of the part whose first rank is number `from`, of those that all give.
int yk_native_split(struct yoke_group *, bool makes, uint32_t from, struct yk_rendezvous *part);

// A member of a rendezvous that says so; leave: of any group.
int yk_native_join(struct yoke_group *);
void yk_native_leave(struct yoke_group *);

// How the task, whose group and `what` are set, is done, enum yk_by; and bytes of the device's memory that it works in.
int yk_native_takes(const struct yk_task *);
uint64_t yk_native_bytes(const struct yk_task *);
void yk_native_task_fini(struct yk_task *);

// All ranks have come to the job: what it does next.  1: something, 0: it waits, 2: it is done, or an error, by what
// is said.
int yk_native_advance(struct yk_job *);
// It is given up.  False: something of it is still at work on the device.
bool yk_native_stop(struct yk_job *);
void yk_native_job_fini(struct yk_job *);

#endif
