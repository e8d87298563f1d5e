// SPDX-License-Identifier: Apache-2.0
// Where the values of one plan are placed, while layout.c and overwrite.c decide it.
#ifndef YK_LAYOUT_H
#define YK_LAYOUT_H

#include "plan/plan.h"
#include "plan/work.h"

// Lifetime of a base value's bytes, in steps of the stream that owns the memory: a value born after
// another's death may reuse its memory.  A copy on another stream counts from the first step that
// may run at the same time as its beginning, to the first step that knows it to be done.
struct yk_life {
	uint32_t born, dies;
	uint32_t writer; // the first step that writes it, YK_NIL: none
	uint32_t in;     // the value in whose bytes it lies, or itself
	uint32_t block;  // root block, or YK_NIL
	uint32_t leaf;   // plan's leaf, or YK_NIL
	uint64_t bytes;
	uint64_t offset; // virtual offset in the arena: chunk = offset / largest
	bool used;
};

struct yk_placement {
	struct yk_work *w;
	struct yk_plan *p;
	struct yk_life *life; // by base value
	uint32_t *leaf_value; // by leaf: its value, or YK_NIL
	uint32_t *donated;    // by leaf: the root block that reuses it, or YK_NIL
	// the views of one step by the value that owns their bytes: first[v], then next[view],
	// ascending
	uint32_t linked, links;        // that step + 1, and a count of such steps
	uint32_t *first, *link, *next; // link[v]: equals links if first[v] is valid
	uint64_t largest[YK_STREAMS];  // maximum allocation of each device
	uint64_t top[YK_STREAMS];
};

// The value that owns these bytes, at the end of the chain `in`.
static inline uint32_t yk_owner(const struct yk_placement *l, uint32_t v)
{
	while (l->life[v].in != v)
		v = l->life[v].in;
	return v;
}

static inline bool yk_made_on_cpu(const struct yk_work *w, yk_id v)
{
	return yk_maker(&w->g, v)->stream == YK_STREAM_CPU;
}

// overwrite.c

// Lets roots reuse the blocks of their variables' old versions.
void yk_donate_leaves(struct yk_placement *l);
// Lets results overwrite operands in the arena that die with the step.
void yk_share_arena(struct yk_placement *l);

#endif
