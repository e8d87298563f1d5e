// SPDX-License-Identifier: Apache-2.0
// Opens a trainer: resolves batch=auto, predicts its memory, then creates its model.
#ifndef YK_TRAINER_OPEN_H
#define YK_TRAINER_OPEN_H

#include "train/trainer.h"

// Creates a trainer from a checked configuration. Parameters are drawn or, if `from` is not NULL,
// loaded from that checkpoint in `folder`. batch=auto is resolved. ENOMEM: the error names the
// largest batch that fits.
int yk_trainer_new(struct yk_config *, const char *folder, const struct yk_checkpoint *from,
		   struct yk_trainer **);
// The same with data shared with other trainers; NULL: not shared.
int yk_trainer_share(struct yk_corpus *, struct yk_config *, const char *folder,
		     const struct yk_checkpoint *from, struct yk_trainer **);
// Extends the thread's ENOMEM error by the largest batch that fits, if the device's memory was
// insufficient. Frees the trainer's device memory and the current context.
int yk_trainer_advise(struct yk_trainer *);
// Makes `former` current again and frees the context ctx of a trainer, unless it was freed by
// yk_trainer_advise, which a trainer that could not be made has called, too.
void yk_trainer_leave(struct yoke_context *ctx, struct yoke_context *former);

#endif
