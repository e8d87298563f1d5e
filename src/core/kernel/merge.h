// SPDX-License-Identifier: Apache-2.0
// The axes of an op as backends see them: merged where all operands allow it.
#ifndef YK_MERGE_H
#define YK_MERGE_H

#include "yoke-plugin.h"

// Leaves out axes of one element, and makes one of neighbours that all operands run through as one, where the
// op's definition leaves it open how many axes there are.  The order of elements stays.  out and in are the
// op's views.
void yk_merge_axes(struct yoke_op *, struct yoke_view *out, struct yoke_view *in);

#endif
