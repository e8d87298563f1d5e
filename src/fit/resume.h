// SPDX-License-Identifier: Apache-2.0
// Checkpoints of phase 2, behind epochs: two files, and a third one that is replaced last and names them.
#ifndef YK_FIT_RESUME_H
#define YK_FIT_RESUME_H

#include "fit/node.h"
#include "yoke-optim.h"

int yk_fit_checkpoint(const yoke_pipeline *, yoke_optim *, const char *folder, int64_t epoch, int64_t step);
// Epochs and steps done, of the folder's checkpoint; the optimizer takes its states.
int yk_fit_resume(yoke_optim *, const char *folder, int64_t *epoch, int64_t *step);

#endif
