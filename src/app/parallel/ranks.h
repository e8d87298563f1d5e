// SPDX-License-Identifier: Apache-2.0
// A trainer as one of several ranks, each of which computes some micro-batches of every step. For
// the layout see grid.h.
#ifndef YK_TRAIN_RANKS_H
#define YK_TRAIN_RANKS_H

#include "observe/profile.h"
#include "parallel/replica.h"

// Joins the ranks of the current context and sets the trainer's coordinates. Does nothing if there
// is one rank.
int yk_ranks_join(struct yk_replica *);
// Copies rank 0's parameters first .. end - 1 to all ranks.
int yk_ranks_start(const struct yk_replica *, const struct yk_parameters *, int first, int end);
// Called after each micro-batch: the gradients to accumulate, which are t->grad or, for zero >= 2,
// this rank's shards of the sums over all ranks; then *loss too is the sum over all ranks.
yoke_tensor **yk_ranks_part(struct yk_replica *, yoke_tensor **loss);
// Records, after the last micro-batch, the reduction of gradients and loss over all ranks, in
// buckets in the order in which the backward pass produces them, so that communication overlaps
// with computation.
int yk_ranks_reduce(struct yk_replica *, yoke_tensor **loss);
// Before a step: sets what this rank reports to the others: its stop request, and its waiting time
// so far.
void yk_ranks_set_status(struct yk_replica *, bool ends);
// After a step: reads what all ranks reported in the previous one, waiting for it if necessary;
// sets t->ends.
int yk_ranks_read_status(struct yk_replica *);
// Since the run began: seconds that this rank waited in collectives, and bytes of tensors that it
// sent. slowest: the rank that waited least since the last call, that is, the one the others waited
// for.
void yk_ranks_released(struct yk_replica *, double *seconds, uint64_t *sent, int *slowest);
// For a rank that fails outside yoke's calls: makes the calls in which the others wait return its
// error.
void yk_ranks_failed(const struct yk_replica *);
void yk_ranks_leave(struct yk_replica *); // frees what the functions above allocated
// Whether `data` data ranks add the micro-batches of a step in the order of a single rank, and so
// give the same bits. If not, `why` receives the reason.
enum { YK_ORDER_WHY = 200 };
// why may be NULL
bool yk_ranks_in_order(const struct yk_config *, int64_t data, int64_t parts,
		       char why[YK_ORDER_WHY]);
// The same for a trainer, as a line of text; false if a step has one micro-batch.
bool yk_ranks_order_text(const struct yk_replica *, char *to, size_t cap);

// Called by all ranks at the end: merges their profiles into one trace, which rank 0 writes to
// `path` (only used there).
int yk_ranks_trace(const struct yk_replica *, struct yk_profile *, const char *path);

// Resolves ranks=auto: the number of devices equivalent to the best one, or the next smaller number
// that divides a given micro_batches. Applies the configuration's settings in that case.
int yk_ranks_settle(struct yk_config *);

// ---- as threads or processes ----

// Divides the CPU into one device per rank of this process or, if a launcher started the ranks, per
// rank on this machine.  YOKE_CPU_DEVICES takes precedence.  Call it before devices are listed; a
// later call, e.g. of a run that continues with fewer ranks, has no effect.
int yk_ranks_divide_cpu(int64_t ranks);
// Whether this process is rank 0, or contains all ranks.
bool yk_ranks_leads(void);
// Calls fn on each rank: on threads, or as the rank that this process is.
int yk_ranks_run(int64_t ranks, int (*fn)(yoke_group *, void *), void *arg);

#endif
