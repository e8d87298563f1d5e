// SPDX-License-Identifier: Apache-2.0
// Loads checkpoints on several ranks: one rank per machine reads the files and passes everything to
// the others there.
#ifndef YK_SHARED_LOAD_H
#define YK_SHARED_LOAD_H

#include "formats/checkpoint.h"
#include "parallel/grid.h"

// As yk_checkpoint_load; called by all ranks with the same tensors. grid NULL: a single rank.
int yk_shared_load(const struct yk_grid *, const char *folder, const struct yk_checkpoint *,
		   int part, int n, const struct yk_host_tensor *, yk_checkpoint_sink_fn *,
		   void *arg);

#endif
