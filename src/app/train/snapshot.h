// SPDX-License-Identifier: Apache-2.0
// Snapshots: a trainer's complete state in host memory, from which another device can continue.
#ifndef YK_SNAPSHOT_H
#define YK_SNAPSHOT_H

#include "train/trainer.h"

struct yk_snapshot { // zero-initialized: none
	bool taken;
	int64_t step, random_step, skipped;
	struct yk_best best;
	struct yoke_scaler_state scaler; // if there is one
	struct yoke_position position;
	// errors: remainders of compress=topk. Names belong to the trainer of the snapshot
	struct yk_host_list model, states, errors;
};

// Takes a snapshot of a trainer without ranks. Waits for its last step; ERANGE if that was not
// finite. On failure the previous snapshot is kept.
int yk_snapshot_take(struct yk_snapshot *, struct yk_trainer *);
// Restores it into a trainer with the same configuration, on any device.
int yk_snapshot_put(const struct yk_snapshot *, struct yk_trainer *);
void yk_snapshot_fini(struct yk_snapshot *);

#endif
