// SPDX-License-Identifier: Apache-2.0
// Gradient compression between ranks, compress=topk (Aji and Heafield 2017; Stich et al. 2018). For
// each tensor a rank adds the gradient to the remainder of earlier steps, sends the elements of
// largest modulus, and keeps the rest for the next step. A single rank does the same, sending to
// itself.
#ifndef YK_COMPRESS_H
#define YK_COMPRESS_H

#include "parallel/replica.h"

// EINVAL: keys that are incompatible with compress=topk.
int yk_compress_check(const struct yk_config *);
// Whether a tensor with so many elements is compressed.
bool yk_compress_selects(int64_t elements);
// For a trainer with a network, after yk_ranks_join. Does nothing without compress=topk.
int yk_compress_new(struct yk_replica *);
void yk_compress_free(struct yk_compress *); // NULL is allowed
// The remainders of all compressed parameters, named "error.NAME".
const struct yk_parameters *yk_compress_errors(const struct yk_compress *);
// Whether the step being recorded is compressed; the first compress_after steps are not.
bool yk_compress_now(const struct yk_replica *);
// Records the reduction of gradients first .. end - 1 over all ranks, as one message.
int yk_compress_reduce(struct yk_replica *, int first, int end);
// For a step with scaled gradients, after all of them: keeps the unscaled remainders, or the
// previous ones if `skip` is not 0.
void yk_compress_keep(const struct yk_replica *, yoke_tensor *skip);
// Called by all ranks: replaces each rank's remainders by the mean over the ranks.
int yk_compress_mean(struct yk_replica *);

#endif
