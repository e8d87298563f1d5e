// SPDX-License-Identifier: Apache-2.0
// Reduces the rank of an op before a backend sees it: merges axes where all operands allow it.
#ifndef YK_MERGE_H
#define YK_MERGE_H

#include "yoke-plugin.h"

// Drops axes of one element and merges neighbouring axes that are contiguous in all operands,
// wherever the op's definition does not fix the number of axes.  The order of elements stays.  out
// and in are the op's views.
void yk_merge_axes(struct yoke_op *, struct yoke_view *out, struct yoke_view *in);

#endif
