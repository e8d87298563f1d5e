// SPDX-License-Identifier: Apache-2.0
// Checkpoints of both phases: numbered data files, and an index file that names them and is
// replaced last.
#ifndef YK_FIT_RESUME_H
#define YK_FIT_RESUME_H

#include "fit/node.h"
#include "yoke-optim.h"

// Position of phase 2 after a step.
struct yk_fit_place {
	int64_t epoch, step;   // done
	int64_t batch;         // of the epoch that goes on; 0: it has not begun, and neither has what follows
	int64_t index, failed; // of yoke_position
	int64_t rows, pixels;  // of the epoch's first batch
};
// scaler: NULL, or the loss's.
int yk_fit_checkpoint(const yoke_pipeline *, yoke_optim *, const yoke_scaler *, const char *folder, const struct yk_fit_place *);
// The place of the folder's checkpoint; optimizer and scaler take their states.
int yk_fit_resume(yoke_optim *, yoke_scaler *, const char *folder, struct yk_fit_place *);

// Where phase 1 is.
struct yk_collected {
	uint64_t of;          // what is fitted, by what
	int n;                // statistics
	int *base;            // [n]: of which base each is
	bool *open;           // [n]: it belongs to the pass that goes on
	yoke_statistic **statistic;
	int passes;           // that are done
	int64_t samples;      // of the pass that goes on
};
// Into the folder, in place of what is there.
int yk_collected_save(const struct yk_collected *, const char *folder);
// What the folder has into room for `most` statistics; n 0: nothing, or of another pipeline or other data, which a warning says.
int yk_collected_load(struct yk_collected *, int most, const char *folder);
void yk_collected_forget(const char *folder);

#endif
