// SPDX-License-Identifier: Apache-2.0
// What a run finds in its folder: a lock, a checkpoint, and the keys that it began with.
#ifndef YK_RESUME_H
#define YK_RESUME_H

#include "formats/checkpoint.h"
#include "train/conf.h"

// Locks the folder if there is one, once: *lock is -1 when not.  EBUSY: another run has it.
int yk_resume_lock(const char *out, int *lock);
// YOKE_EPERM, the thread's error: a checkpoint is there, and nobody said that it is to go on.
int yk_resume_refused(const char *out);
// The folder's checkpoint, if this run goes on from one; keys that were not given are the checkpoint's, and ranks=auto
// becomes a number.
int yk_resume_open(struct yk_config *, const char *out, struct yk_checkpoint *, bool *resumes);
// backend=fastest is measured when a run begins, and is that from then on.  from: NULL when it begins.
int yk_resume_backend(struct yk_config *, const struct yk_checkpoint *from);

#endif
