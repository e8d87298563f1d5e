// SPDX-License-Identifier: Apache-2.0
// What a run needs to know about its output directory: lock, checkpoint, and the configuration it
// started with.
#ifndef YK_RESUME_H
#define YK_RESUME_H

#include "formats/checkpoint.h"
#include "config/conf.h"

// Locks the directory if it exists; *lock is -1 otherwise. Call once. EBUSY: another run has locked
// it.
int yk_resume_lock(const char *out, int *lock);
// Sets and returns YOKE_EPERM: there is a checkpoint, but resume= was not given. resume: its value
// that would continue.
int yk_resume_refused(const char *out, const char *resume);
// Opens the directory's checkpoint if this run resumes it; *from is then the checkpoint's
// directory, `out` or its `best`, for the caller to free, otherwise NULL. Keys that were not given
// take the checkpoint's values, and ranks=auto is resolved.
int yk_resume_open(struct yk_config *, const char *out, struct yk_checkpoint *, char **from);
// Resolves backend=fastest: measures when a run begins (from is NULL), and reuses that result when
// it resumes.
int yk_resume_backend(struct yk_config *, const struct yk_checkpoint *from);

#endif
