// SPDX-License-Identifier: Apache-2.0
// Shared by build.c and program.c: construction of ops of the plugin ABI.
#ifndef YK_BUILD_H
#define YK_BUILD_H

#include "plan/plan.h"

// Empties b and makes room for so many views.
int yk_built_reset(struct yk_built *, uint16_t code, size_t views);
// offset: elements from the start of the value that owns the bytes
void yk_buffer_view(const struct yk_work *, struct yoke_view *, int dtype, int rank,
		    const int64_t *dims, const int64_t *stride, int64_t offset);
// A literal with its bits, or a host scalar, whose bits are filled in at launch.
void yk_number_view(const struct yk_work *, struct yoke_view *, yk_id base, int rank,
		    const int64_t *dims);
// Adds the operands of a contraction as in[0] and in[1], after the existing results.
void yk_build_factors(struct yk_work *, const struct yk_node *, bool dense, struct yk_built *);

// Adds a step for a node, with room for so many views.
int yk_step_add(struct yk_work *, uint32_t node, size_t views, struct yk_step **to);
// Sets a view's location, which until layout is its base value.
void yk_ref_set(struct yk_work *, struct yk_ref *, const struct yoke_view *, yk_id value);

#endif
