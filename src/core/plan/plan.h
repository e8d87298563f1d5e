// SPDX-License-Identifier: Apache-2.0
// The plan as launches execute it: steps in order, the views of their operands, and where each view
// lies.  Nothing changes it after the passes made it, except the members that launches own.  A plan
// owns no device memory.
#ifndef YK_PLAN_H
#define YK_PLAN_H

#include "plan/key.h"

enum yk_where { YK_AT_NONE, YK_AT_ARENA, YK_AT_LEAF, YK_AT_ROOT, YK_AT_SCALAR };

struct yk_ref { // location of a view's bytes
	uint8_t where, stream;   // stream: the stream that owns the arena
	uint32_t index;        // chunk of the arena, leaf, or root block
	uint64_t offset;       // bytes
};

// NUMBERS: writes plan->number; the first step of a plan that can be recorded.  RANKS: a collective
// operation, run by the ranks queue on host addresses unless on_device.
enum yk_step_kind {
	YK_STEP_RUN,
	YK_STEP_FILL,
	YK_STEP_DOWN,
	YK_STEP_UP,
	YK_STEP_NUMBERS,
	YK_STEP_RANKS
};
enum { YK_STEP_RANKS_CODE = 0x8000 }; // plus the op's number: the op code of the step
extern const char *const yk_step_kind_name[]; // for all kinds but RUN

struct yk_step_node { // a node of the lowered graph, for profiles
	uint32_t node, scope;
	uint32_t recorded; // the recorded node it was lowered from, by its marked number
	uint16_t opcode;
	const char *gone; // why no step computes it; NULL in a step's list
};

struct yk_step {
	uint8_t kind, stream;
	uint16_t impl;
	uint32_t view, views; // its views in plan->view and plan->ref, results first
	uint32_t node;        // of the plan's graph
	uint32_t nodes;       // number of entries in part
	uint32_t scope;       // of the last node
	uint16_t opcode;      // in the op table
	struct yoke_op op;
	struct yoke_map *map;
	struct yk_ref work;
	uint64_t work_bytes;
	uint64_t bytes;       // read and written
	uint64_t pattern;     // FILL: begins with the element's bytes
	const char *cause;    // why it runs on this device or in this form
	uint32_t fallback;    // its entry for fallbacks: planner->fallback[fallback - 1]; 0: none
	uint32_t event;       // event marked after it for steps of other streams; YK_NIL: none
	uint32_t wait, waits; // in plan->wait: events of other streams that it waits for
	const struct yk_step_node *part; // the nodes it computes; the steps of one move share them
	bool on_device;       // for RANKS: operands and workspace are in device memory
	const struct yoke_backend *ops; // for RUN: the backend that prepared the op
	void *handle;                   // for RUN: the backend's handle of the op
	int64_t growth;       // change in live bytes after it, in arenas and in roots that need
			      // memory
};

struct yk_live { // bytes of an arena, live from the beginning of step born to the end of step dies
	uint32_t born, dies;
	uint32_t writer; // the step that first writes them
	uint64_t bytes;
	uint8_t stream;    // the owner of the arena
	bool workspace;
};

struct yk_root_block {
	uint64_t bytes;
	uint32_t donor; // leaf whose bytes it reuses, or YK_NIL
	uint32_t home;  // root whose packed variable's unread old version it reuses, or
			// YK_NIL
	uint32_t leaf;  // leaf that it is identical to, or YK_NIL
	bool host;      // in host memory
};

// Does it need a new allocation?
static inline bool yk_is_new(const struct yk_root_block *b)
{
	return b->leaf == YK_NIL && b->donor == YK_NIL && b->home == YK_NIL;
}

struct yk_cached { // a plan in the cache (cache.c)
	struct yk_plan *next; // in its bucket
	uint64_t made, used;  // numbers of evaluations: the one that made it, and the last that
			      // used it
};

struct yk_layout { // where values lie (layout.c); launches allocate it
	struct yk_arena_plan {       // by the stream that owns the memory
		uint64_t *chunk;     // bytes of each allocation
		size_t n, cap;
	} arena[YK_STREAMS];
	struct yk_root_block *block; // by root, without duplicates
	size_t blocks, block_cap;
	uint32_t *root_block;        // by root: index of its block
	uint64_t *leaf_bytes;        // by leaf: minimum bytes of its block, 0: none
	size_t leaves;
	struct yk_live *live;        // the contents of arenas
	size_t lives;
	uint64_t activations, workspace; // peak bytes: of values kept for the backward pass; of one
					 // step's workspace
	uint64_t copies, copy_bytes; // assignments that could not be done in place
};

struct yk_sync_plan { // waits between streams (waits.c)
	uint32_t *wait;          // numbers of events; YK_NIL: earlier work of the steps' queue
	size_t waits, wait_cap;
	uint32_t events;
	uint32_t last[YK_STREAMS]; // the event after all steps of a stream other than the device's;
				 // YK_NIL: none
	uint32_t unjoined;       // bit k: the device's last step does not imply that stream
				 // k's steps are done
};

struct yk_replay_plan { // for recording and replaying launches (scalars.c)
	uint32_t *scalar, scalars; // scalar leaves whose bits step 0 writes, 8 bytes each; 0: no
				   // such step
	struct yk_replay *graphs;  // recorded graphs; NULL: the plan cannot be recorded
};

struct yk_plan_nodes { // for printed plans and profiles (parts.c)
	const struct yk_step_node *absent; // nodes that no step computes
	size_t absents, lowered;      // lowered: nodes in the lowered graph
};

struct yk_plan {
	struct yk_key key;
	uint64_t serial;         // unique in the process
	struct yk_cached cached;
	struct yk_step *step;    // made by emit.c, as are the views
	size_t steps, step_cap;
	struct yoke_view *view;
	struct yk_ref *ref;
	size_t views, view_cap;
	struct yk_layout layout;
	struct yk_sync_plan sync;
	struct yk_replay_plan replay;
	struct yk_plan_nodes nodes;
	struct yk_arena memory;  // for map programs and parts
	struct yk_event *last;   // after its last launch
	size_t padded;           // number of products lowered with padded operands
	bool ranged;             // a recorded node reads or writes at an index given by a number
	bool brief;              // yk_plan_is_brief
};

// The stream whose arena holds a step's workspace.
static inline int yk_work_stream(const struct yk_step *s)
{
	return s->kind == YK_STEP_RANKS ? YK_STREAM_DEVICE : s->stream;
}

void yk_plan_free(struct yk_plan *);
// The bytes that a launch allocates from the pool of the context's device.
uint64_t yk_plan_bytes(const struct yoke_context *, const struct yk_plan *);

#endif
