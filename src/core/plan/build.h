// SPDX-License-Identifier: Apache-2.0
// What build.c and program.c share.
#ifndef YK_BUILD_H
#define YK_BUILD_H

#include "plan/plan.h"

// Empties b for an op of so many views.
int yk_built_reset(struct yk_built *, uint16_t code, size_t views);
// offset: elements from the start of the value that owns the bytes
void yk_buffer_view(const struct yk_work *, struct yoke_view *, int dtype, int rank,
		    const int64_t *dims, const int64_t *stride, int64_t offset);
// A literal with its bits, or a host scalar, whose bits come at launch.
void yk_number_view(const struct yk_work *, struct yoke_view *, yk_id base, int rank,
		    const int64_t *dims);
// The two operands of a contraction as in[0] and in[1], behind the results that are there already.
void yk_build_factors(struct yk_work *, const struct yk_node *, bool dense, struct yk_built *);

// Room for a step of the plan, of a node, with so many views.
int yk_step_add(struct yk_work *, uint32_t node, size_t views, struct yk_step **to);
// Where a view of a value is, until layout: its base value.
void yk_ref_set(struct yk_work *, struct yk_ref *, const struct yoke_view *, yk_id value);

#endif
