// SPDX-License-Identifier: Apache-2.0
// Construction of ops of the plugin ABI from nodes of the lowered graph.
#ifndef YK_BUILD_H
#define YK_BUILD_H

#include "plan/work.h"

// One op with storage for its views and program, and the values that the views show.
struct yk_built {
	struct yoke_op op;
	struct yoke_map map;
	struct yoke_source source;
	struct yoke_view *view; // results, then operands
	yk_id *value;           // by view, YK_NIL for none
	size_t cap;
};

// Builds the op of a node that is neither map nor reduction.  dense: treats all operands as
// contiguous buffers.
int yk_build_node(struct yk_work *, uint32_t node, bool dense, struct yk_built *);
// Builds one op from maps, optionally after a contraction or before a reduction; EUNSUPPORTED,
// without a message, if they do not fit one program.
int yk_build_group(struct yk_work *, const uint32_t *member, uint32_t n, struct yk_built *);
// Copies elements of x's shape from one location to another, as MOVE or, with map, as a map
// program.
int yk_build_copy(struct yk_work *, const struct yk_value *x, const struct yk_location *to,
		  const struct yk_location *from, bool map, struct yk_built *);
void yk_built_fini(struct yk_built *);
// Lowers a collective op, with contiguous operands in the memory that it uses; and emits its step.
int yk_lower_ranks(struct yk_work *, const struct yk_call *, uint32_t nout,
		   const struct yk_value *outs, yk_id *out);
int yk_emit_ranks(struct yk_work *, uint32_t node, struct yk_built *);
// The region of the result that operand k of a pad, concat or slice_update is copied to.
struct yk_location yk_operand_region(const struct yk_work *, uint32_t node, uint32_t k);
// Is a base value without bytes: a literal or a host scalar?
static inline bool yk_is_number(const struct yk_work *w, yk_id base)
{
	uint16_t op = yk_maker(&w->g, base)->op;
	return op == YK_CONST || op == YK_SCALAR;
}

// ---- helpers of build.c, program.c and emit.c ----

// Empties b and reserves space for this many views.
int yk_built_reset(struct yk_built *, uint16_t code, size_t views);
// offset: elements from the start of the value that owns the bytes
void yk_buffer_view(const struct yk_work *, struct yoke_view *, int dtype, int rank,
		    const int64_t *dims, const int64_t *stride, int64_t offset);
// A literal with its bits, or a host scalar, whose bits are filled in at launch.
void yk_number_view(const struct yk_work *, struct yoke_view *, yk_id base, int rank,
		    const int64_t *dims);
// Adds the operands of a contraction as in[0] and in[1], after the existing results.
void yk_build_factors(struct yk_work *, const struct yk_node *, bool dense, struct yk_built *);

// Adds a step for a node, with space for this many views.
int yk_step_add(struct yk_work *, uint32_t node, size_t views, struct yk_step **to);
// Sets a view's location, which until layout is its base value.
void yk_ref_set(struct yk_work *, struct yk_ref *, const struct yoke_view *, yk_id value);

#endif
