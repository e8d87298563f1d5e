// SPDX-License-Identifier: Apache-2.0
// The working state of the planner while it makes one plan: the lowered graph with facts about its
// nodes and values, and data that passes leave for later passes. The passes are listed in passes.h.
#ifndef YK_WORK_H
#define YK_WORK_H

#include "plan/plan.h"

struct yk_location { // location of a value's elements within the base value that owns the bytes;
		  // dtypes may differ
	yk_id base;
	uint32_t gate;  // the last barrier on its path: node + 1, 0: none
	int64_t offset; // bytes, a multiple of the element size
	int64_t stride[YOKE_MAX_RANK]; // elements
};

struct yk_group { // nodes computed by one launch
	uint32_t *member; // in creation order
	uint32_t n, cap;
	uint32_t at;      // its position in time: that of its last member
	bool dead;        // merged into another group
};

struct yk_joined { // a value that also exists as slices of `step` along an axis
	yk_id whole, *slice;
	int axis;
	int64_t step;
};

struct yk_clock { // which steps are known to be done when a step begins: of stream k those before
		  // over[k]
	uint32_t over[YK_STREAMS];
};

// Facts that passes keep about a node of the plan's graph.
struct yk_node_facts {
	const char *cause; // why it is on its device, or NULL
	uint32_t from;     // the recorded node it was lowered from, by its marked number
	uint32_t time;     // its position in creation order; a clone has the original's
	uint32_t of;       // the node it is a clone of, or itself
	uint32_t group;    // the group that computes it; YK_NIL: none
	bool live;
};
struct yk_value_facts { // facts about a value
	struct yk_location place;
	uint32_t use; // for a base value: the first operand that reads it, in work.use; YK_NIL:
		      // none
	// 1 + the last view of a step that reads it, while steps are emitted; 0: none
	uint32_t viewed;
	bool rooted;  // for a base value: it has a root block
};
struct yk_use { // an operand, by its number among the graph's arguments
	uint32_t node, base; // base: the value that owns the bytes, or YK_NIL
	uint32_t next;       // the next operand that reads the same base
};

// Ways to save memory, wanted or available: forward segments whose activations are recomputed, and
// values that are spilled to host memory.
struct yk_savings {
	uint32_t segments, spills;
	bool plain; // do not pad products
};

struct yk_edit { // the edit in progress (edit.c)
	size_t node_cap, value_cap, use_cap; // of the facts in struct yk_work
	struct yk_edited {   // sizes of the graph when the edit began
		size_t nodes, values, args, nattrs;
	} began;
	struct yk_replaced { // operands that the edit replaced
		uint32_t arg;
		yk_id was;
	} *replaced;
	size_t nreplaced, replaced_cap;
};

struct yk_lowering { // lower.c and oversized.c
	uint32_t recorded;        // the recorded node being lowered
	uint32_t *table;          // hash table of nodes, to find equal ones
	size_t table_size;
	struct yk_joined *joined; // values that were computed in slices
	size_t njoined, joined_cap;
	bool in_slice;            // a slice of such a value is being lowered
};

struct yk_launch_order {
	struct yk_group *group;  // by number (fuse.c)
	uint32_t groups;
	uint32_t *order;         // groups in launch order (order.c)
	size_t norder;
	struct yk_clock *clock;  // by step (waits.c)
};

struct yk_scalar_buffer { // host scalars in device memory, for plans that are recorded (scalars.c)
	yk_id buffer;    // YK_NIL: views hold the bits of scalars
	uint32_t *index; // by leaf: 1 + its index in the buffer, 0: none
};

struct yk_work {
	// the evaluation that the plan is made for
	struct yoke_context *ctx;
	const struct yk_marks *marks;
	const struct yk_root *root;
	size_t roots;
	uint32_t align;            // alignment in bytes of every value's first byte, guaranteed by
				   // both devices
	struct yk_savings wanted;
	// results
	struct yk_plan *plan;
	struct yk_savings available; // counted by recompute.c and spill.c; 0 until first requested
	bool replan;               // plan again: a kernel did not build and was refused, or a value
				   // is too large and must be computed in slices
	// the lowered graph and facts about it
	struct yk_graph g;
	struct yk_node_facts *node;
	struct yk_value_facts *value;
	struct yk_use *use;        // NULL until yk_uses_list
	yk_id *root_value;         // by root
	// state of passes
	struct yk_edit edit;
	struct yk_lowering lowering;
	struct yk_launch_order schedule;
	struct yk_scalar_buffer scalars;
};

struct yk_device *yk_work_device(const struct yk_work *, int stream);
// Appends a node; out receives its first result.
int yk_node_add(struct yk_work *, const struct yk_call *, uint32_t nout,
		const struct yk_value *outs, int stream, const char *cause, yk_id *out);
// Is it live and neither view nor leaf?
static inline bool yk_computes(const struct yk_work *w, size_t node)
{
	return w->node[node].live &&
	       !(yk_op_def(w->g.node[node].op)->flags & (YK_F_VIEW | YK_F_LEAF));
}
static inline bool yk_is_among(const uint32_t *list, uint32_t n, uint32_t x)
{
	bool found = false;
	for (uint32_t i = 0; i < n && !found; i++)
		found = list[i] == x;
	return found;
}
// Does node a come before b in creation order?
static inline bool yk_is_before(const struct yk_work *w, uint32_t a, uint32_t b)
{
	uint32_t x = w->node[a].time, y = w->node[b].time;
	return x != y ? x < y : a < b;
}

#endif
