// SPDX-License-Identifier: Apache-2.0
// Collectives through the vendor's library (NCCL, RCCL; ext("collectives")), so that data stays in
// device memory. Used by groups on one machine in which each rank has its own device and all
// devices belong to one backend.
#ifndef YK_DIST_NATIVE_H
#define YK_DIST_NATIVE_H

#include "comm/ranks.h"

// YOKE_MAP_MAX_INPUTS: a sum is one map op with one input per rank
enum { YK_NATIVE_RANKS = YOKE_MAP_MAX_INPUTS };

struct yk_native { // state of one rank in a group
	const struct yoke_collectives_ext *ext;
	const struct yoke_backend *ops;
	uint32_t device;
	void *comm, *queue; // comm is NULL for a single rank and after an abort
	bool broken;
};

bool yk_native_fast(void); // dist.order=fast: the library itself reduces

// Ranks as threads: if all the named devices support it, stores a communicator id in the rendezvous
// and sets `native`.
void yk_native_offer(struct yk_rendezvous *, int ranks,
		     char (*device)[sizeof((struct yk_device *)NULL)->id]);
// Ranks as processes: called while joining the world. Each rank publishes its device and reads
// those of the others.
void yk_native_meet(struct yk_rendezvous *, uint32_t rank, struct yk_device *);
// For a group split: the first rank of each new group (`makes`) creates a communicator id, and all
// ranks exchange them; `part`, this rank's new group, receives the id that rank `from` created.
int yk_native_split(struct yoke_group *, bool makes, uint32_t from, struct yk_rendezvous *part);

// join: requires rendezvous->native. leave: allowed for any group.
int yk_native_join(struct yoke_group *);
void yk_native_leave(struct yoke_group *);

// Returns how the task is executed (enum yk_by); its group and `what` must be set. bytes: workspace
// in device memory.
int yk_native_takes(const struct yk_task *);
uint64_t yk_native_bytes(const struct yk_task *);
void yk_native_task_fini(struct yk_task *);

// Takes the next step of a job that all ranks have reached. Returns 1 if it made progress, 0 if it
// is waiting, 2 when done, or a negative error code with the error set.
int yk_native_advance(struct yk_job *);
// Aborts the job. Returns false while some of its work is still running on the device.
bool yk_native_stop(struct yk_job *);
void yk_native_job_fini(struct yk_job *);

#endif
