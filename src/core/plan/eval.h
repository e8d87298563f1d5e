// SPDX-License-Identifier: Apache-2.0
// Evaluates and reads values inside the library, and counts the operations that ran on the CPU
// instead of the device.
#ifndef YK_EVAL_H
#define YK_EVAL_H

#include "graph/context.h"

// Computes all roots and the given tensors; for use inside the context.
int yk_evaluate(struct yoke_context *, int n, yoke_tensor *const *t);
// Launches operations that are recorded but not launched; 0, or the first error.
int yk_eager_run(struct yoke_context *);
// Like yoke_read, for the bytes of the value from `from` on.  ERANGE: it has fewer.
int yk_read_part(yoke_tensor *, uint64_t from, void *to, size_t bytes);

// Fallbacks since the context was made, minus the launches and bytes in before[0 .. nbefore-1] (by
// kind, in order of first occurrence); sorted by bytes, largest first.  Needs space for
// yk_fallback_kinds entries; returns their number.
size_t yk_fallback_list(const struct yoke_context *, const uint64_t (*before)[2], size_t nbefore,
			struct yoke_fallback *);
size_t yk_fallback_kinds(const struct yoke_context *);
// Launches and bytes of each kind, in order of first occurrence.
void yk_fallback_counts(const struct yoke_context *, uint64_t (*to)[2]);

#endif
