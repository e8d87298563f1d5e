// SPDX-License-Identifier: Apache-2.0
// Checkpoints of both phases: numbered data files, and an index file that names them and is
// replaced last.
#ifndef YK_FIT_RESUME_H
#define YK_FIT_RESUME_H

#include "fit/node.h"
#include "yoke-optim.h"

// Position of phase 2 after a step.
struct yk_fit_position {
	int64_t epoch, step;   // completed
	int64_t batch;         // within the current epoch; 0: not begun, and the members below are
			       // unused
	int64_t index, failed; // of yoke_position
	int64_t rows, pixels;  // of the epoch's first batch
};
// scaler: the loss scaler, or NULL.
int yk_fit_checkpoint(const yoke_pipeline *, yoke_optim *, const yoke_scaler *, const char *folder,
		      const struct yk_fit_position *);
// Reads the position from the directory's checkpoint, and restores optimizer and scaler.
int yk_fit_resume(yoke_optim *, yoke_scaler *, const char *folder, struct yk_fit_position *);

// Progress of phase 1.
struct yk_collected {
	uint64_t of;          // hash of the fitted nodes and their data
	int n;                // number of statistics
	int *base;            // [n]: the base of each
	bool *open;           // [n]: it belongs to the current pass
	yoke_statistic **statistic;
	int passes;           // completed
	int64_t samples;      // seen in the current pass
};
// Writes to the directory, replacing an earlier state.
int yk_collected_save(const struct yk_collected *, const char *folder);
// Loads up to `max` statistics from the directory; n 0: none, or of another pipeline or other data
// (logs a warning).
int yk_collected_load(struct yk_collected *, int max, const char *folder);
void yk_collected_forget(const char *folder);

#endif
