// SPDX-License-Identifier: Apache-2.0
// Loads optimizer states, whatever their sharding, from checkpoints.
#ifndef YK_LOAD_STATES_H
#define YK_LOAD_STATES_H

#include "parallel/stages.h"

// Names and shapes of weights or states as stored in files: tensors of no parameter first, then
// `each` per parameter. Also the local index of each, -1: it belongs to another stage. Free with
// yk_stages_list_free.
int yk_file_list(const struct yk_replica *, const struct yk_parameters *, int each,
		 struct yk_stages_list *to);
// Loads the optimizer's states and, if present and used, the remainders of compress=topk. These are
// rescaled so that their sum over the ranks is as before.
int yk_load_states(const struct yk_replica *, const char *folder, const struct yk_checkpoint *);

#endif
