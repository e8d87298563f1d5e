// SPDX-License-Identifier: Apache-2.0
// Snapshots: all that a trainer's next step depends on, in host memory.
#ifndef YK_SNAPSHOT_H
#define YK_SNAPSHOT_H

#include "train/trainer.h"

struct yk_snapshot { // all zeros: none
	bool taken;
	int64_t step, random_step, skipped;
	struct yoke_scaler_state scaler; // where there is one
	struct yoke_position position;
	struct yk_host_list model, states, errors; // errors: of compress; named by the trainer they were taken of
};

// Of one that has no ranks.  Waits for its last step; ERANGE when that was not finite.  On failure the snapshot is as
// it was.
int yk_snapshot_take(struct yk_snapshot *, struct yk_trainer *);
// Into a trainer of the same configuration, on whatever device.
int yk_snapshot_put(const struct yk_snapshot *, struct yk_trainer *);
void yk_snapshot_fini(struct yk_snapshot *);

#endif
