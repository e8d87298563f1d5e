// SPDX-License-Identifier: Apache-2.0
// Plans: the scheduler's compiled form of the pending operations.  A key describes their structure;
// evaluations with equal keys share a plan.  Passes (listed in passes.c) make a plan; a launch
// binds it to memory and runs it.  A plan owns no device memory.
#ifndef YK_PLAN_H
#define YK_PLAN_H

#include "graph/context.h"

// ---- strides ----

// Strides (elements) of a contiguous row-major tensor.
void yk_strides(int rank, const int64_t *dims, int64_t *stride);
// Strides of the same elements under other dims with the same count; false if no strides express
// them.
bool yk_restride(int rank, const int64_t *dims, const int64_t *stride, int to_rank,
		 const int64_t *to_dims, int64_t *to_stride);
// Strides of x over a space it broadcasts to: 0 on new and stretched axes.
void yk_broadcast_strides(const struct yk_value *x, const int64_t *stride, int rank,
			  const int64_t *dims, int64_t *to);
// Are they row-major and contiguous, ignoring axes of 1 element?
bool yk_is_dense(int rank, const int64_t *dims, const int64_t *stride);

// ---- keys ----

struct yk_key {
	uint32_t *word;
	size_t n, cap;
	uint64_t hash;
};

// The scope of an evaluation: its roots and all nodes they depend on, numbered in creation order.
struct yk_mark { // of a node of the context's graph
	uint32_t need;  // while marking: which of its results are needed (yk_result_bit); else 0
	uint32_t place; // its number among the marked nodes; YK_NIL: not needed
	uint32_t shift; // added to the graph's number of a result gives the evaluation's
};
struct yk_marks {
	struct yk_mark *mark; // by node of the context's graph
	uint32_t *node;    // by place
	uint32_t *leaf;    // leaves by first use: indices of the context's leaves
	uint32_t *place;   // by the context's leaf: its index in `leaf`
	uint32_t *made;    // by place: 0, or its needed results (yk_result_bit) if all are
			   // computed: they are leaves, and the node is not computed again
	size_t nodes, leaves, values;
	size_t numbers;         // leaves that are host scalars
	bool failed, uploads;   // a leaf's storage has failed; is still being uploaded
	size_t repeated;   // nodes that an earlier evaluation computed
	uint32_t repeats;  // the last of them, in the context's graph
	size_t mark_cap, node_cap, leaf_cap, place_cap, made_cap;
};
// The number that the evaluation gives a needed value.
static inline uint32_t yk_number_of(const struct yk_marks *m, const struct yk_graph *g, yk_id v)
{
	return v + m->mark[g->value[v].node].shift;
}

struct yk_root {
	yk_id id;             // in the context's graph
	struct yk_tensor *handle; // NULL: a node that stays pending reads it
	uint32_t donor;       // index in marks.leaf of the variable's old version, or YK_NIL
	bool idle;            // only the variable holds the old version, read or packed: it may be
			      // overwritten
};

// Marks what the roots need; values that are already computed become leaves.  ERELEASED if a needed
// value was computed from a version of a variable that has since been overwritten.
int yk_mark(struct yoke_context *, struct yk_marks *, const struct yk_root *, size_t roots);
int yk_key_make(struct yoke_context *, const struct yk_marks *, const struct yk_root *, size_t roots,
		uint32_t settings, struct yk_key *);
enum {
	YK_ROOT_WORDS = 4,    // words per root, at the end of a key
	YK_KEY_MADE = 0xffff, // instead of an op: a node with computed results; number of results,
			      // mask of the needed ones, their number, a leaf's words for each
};

// ---- plans ----

enum yk_where { YK_AT_NONE, YK_AT_ARENA, YK_AT_LEAF, YK_AT_ROOT, YK_AT_SCALAR };

struct yk_ref { // location of a view's bytes
	uint8_t where, slot;   // slot: the stream that owns the arena
	uint32_t index;        // chunk of the arena, leaf, or root block
	uint64_t offset;       // bytes
};

// NUMBERS: writes plan->number; the first step of a plan that can be recorded.  RANKS: a collective
// operation, run by the ranks queue on host addresses unless on_device.
enum yk_step_kind { YK_STEP_RUN, YK_STEP_FILL, YK_STEP_DOWN, YK_STEP_UP, YK_STEP_NUMBERS, YK_STEP_RANKS };
enum { YK_STEP_RANKS_CODE = 0x8000 }; // plus the op's number: the op code of the step
extern const char *const yk_step_kind_name[]; // for all kinds but RUN

struct yk_part { // a node of the lowered graph, for profiles
	uint32_t node, scope;
	uint32_t recorded; // the recorded node it was lowered from, by its marked number
	uint16_t opcode;
	const char *gone; // why no step computes it; NULL in a step's list
};

struct yk_step {
	uint8_t kind, slot;
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
	uint64_t pattern;     // FILL
	const char *cause;    // why it runs on this device or in this form
	uint32_t fallback;    // its entry for fallbacks: planner->fallback[fallback - 1]; 0: none
	uint32_t event;       // event marked after it for steps of other slots; YK_NIL: none
	uint32_t wait, waits; // in plan->wait: events of other slots that it waits for
	const struct yk_part *part; // the nodes it computes; the steps of one move share them
	bool on_device;       // for RANKS: operands and workspace are in device memory
	const struct yoke_backend *ops; // for RUN: the backend that prepared the op ..
	void *handle;                   // .. and its handle
	int64_t growth;       // change in live bytes after it, in arenas and in roots that need
			      // memory
};

struct yk_live { // bytes of an arena, live from the beginning of step born to the end of step dies
	uint32_t born, dies;
	uint32_t writer; // the step that first writes them
	uint64_t bytes;
	uint8_t slot;    // the owner of the arena
	bool workspace;
};

struct yk_root_block {
	uint64_t bytes;
	uint32_t donor; // leaf whose bytes it reuses, or YK_NIL
	uint32_t home;  // root whose packed variable's old version, read by nothing, it reuses, or
			// YK_NIL
	uint32_t leaf;  // leaf that it is identical to, or YK_NIL
	bool host;      // in host memory
};

// Does it need a new allocation?
static inline bool yk_is_new(const struct yk_root_block *b)
{
	return b->leaf == YK_NIL && b->donor == YK_NIL && b->home == YK_NIL;
}

struct yk_plan {
	struct yk_key key;
	struct yk_plan *next; // in its bucket
	uint64_t made, used;  // numbers of evaluations: the one that made it, and the last that
			      // used it
	struct yk_step *step;
	size_t steps, step_cap;
	struct yoke_view *view;
	struct yk_ref *ref;
	size_t views, view_cap;
	struct yk_root_block *block; // by root, without duplicates
	size_t blocks, block_cap;
	uint32_t *root_block;        // by root: index of its block
	size_t roots;
	struct yk_arena_plan {       // by the slot that owns the memory
		uint64_t *chunk;     // bytes of each allocation
		size_t n, cap;
	} arena[YK_SLOTS];
	uint32_t *wait;              // numbers of events; YK_NIL: earlier work of the steps' queue
	size_t waits, wait_cap;
	uint32_t events;
	uint32_t last_event[YK_SLOTS]; // after all steps of a slot other than the device's; YK_NIL:
				       // none
	uint32_t loose;              // bit k: the device's last step does not imply that slot k's
				     // steps are done
	uint64_t *need;              // by leaf: minimum bytes of its block, 0: none
	size_t leaves;
	bool ranged;                 // a recorded node reads or writes at an index given by a
				     // number
	uint64_t copies, copy_bytes; // assignments that could not be done in place
	struct yk_live *live;        // the contents of arenas
	size_t lives;
	uint64_t activations, workspace; // peak bytes: of values kept for the backward pass; of one
					 // step's workspace
	struct yk_arena memory;      // for map programs and parts
	uint64_t serial;             // unique in the process
	struct yk_event *last;       // after its last launch
	size_t padded;               // number of products lowered with padded operands
	uint32_t *number, numbers;   // scalar leaves whose bits step 0 writes, 8 bytes each; 0: no
				     // such step
	struct yk_replay *replay;    // its recorded graphs; NULL: it cannot be recorded
	const struct yk_part *gone;  // nodes that no step computes
	size_t ngone, nodes;         // nodes: in the lowered graph
};

// The slot whose arena holds a step's workspace.
static inline int yk_work_slot(const struct yk_step *s)
{
	return s->kind == YK_STEP_RANKS ? YK_SLOT_DEVICE : s->slot;
}

void yk_plan_free(struct yk_plan *);
// The bytes that a launch allocates from the pool of the context's device.
uint64_t yk_plan_bytes(const struct yoke_context *, const struct yk_plan *);

// ---- making a plan ----

struct yk_place { // location of a value's elements within the base value that owns the bytes;
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
	yk_id whole, *piece;
	int axis;
	int64_t step;
};

struct yk_clock { // which steps are known to be done when a step begins: of slot k those before
		  // over[k]
	uint32_t over[YK_SLOTS];
};

// Facts that passes keep about a node of the plan's graph ..
struct yk_node_facts {
	const char *cause; // why it is on its device, or NULL
	uint32_t from;     // the recorded node it was lowered from, by its marked number
	uint32_t time;     // its position in creation order; a clone has the original's
	uint32_t of;       // the node it is a clone of, or itself
	uint32_t group;    // the group that computes it; YK_NIL: none
	bool live;
};
struct yk_value_facts { // .. and of a value
	struct yk_place place;
	uint32_t use; // for a base value: the first operand that reads it, in work.use; YK_NIL:
		      // none
	bool rooted;  // for a base value: it has a root block
};
struct yk_use { // an operand, by its number among the graph's arguments
	uint32_t node, base; // base: the value that owns the bytes, or YK_NIL
	uint32_t next;       // the next operand that reads the same base
};

struct yk_work {
	struct yoke_context *ctx;
	const struct yk_marks *marks;
	const struct yk_root *root;
	size_t roots;
	uint32_t align;          // alignment in bytes of every value's first byte, guaranteed by
				 // both devices
	struct yk_graph g;       // the lowered graph
	struct yk_node_facts *node;
	struct yk_value_facts *value;
	struct yk_use *use;      // NULL until yk_uses_list
	size_t node_cap, value_cap, use_cap;
	struct yk_edited {       // sizes of the graph when the edit began
		size_t nodes, values, args, nattrs;
	} edited;
	struct yk_replaced {     // operands that the edit replaced
		uint32_t arg;
		yk_id was;
	} *replaced;
	size_t nreplaced, replaced_cap;
	uint32_t recorded;       // the recorded node being lowered
	uint32_t *table;         // hash table of nodes, to find equal ones
	size_t table_size;
	yk_id *root_value;       // by root
	struct yk_group *group;  // by number
	uint32_t groups;
	uint32_t *order;         // groups in launch order
	size_t norder;
	struct yk_clock *clock;  // by step
	struct yk_plan *plan;
	bool replan;      // plan again: a kernel did not build and was refused, or a value is
			  // too large and must be computed in slices
	struct yk_joined *joined; // values that were computed in slices
	size_t njoined, joined_cap;
	bool in_piece;           // a slice of such a value is being lowered
	bool plain;              // do not pad products
	uint32_t recompute;      // number of forward segments whose activations are recomputed
	uint32_t segments;       // segments available; 0 until first requested
	uint32_t spill, spillable; // the same for values spilled to host memory
	yk_id numbers;       // the device buffer of host scalars; YK_NIL: views hold their bits
	uint32_t *number_of; // by leaf: 1 + its index in that buffer, 0: none
};

struct yk_device *yk_work_device(const struct yk_work *, int slot);
// Appends a node; out receives its first result.
int yk_node_add(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs, int slot,
		const char *cause, yk_id *out);
// Is it live and neither view nor leaf?
static inline bool yk_computes(const struct yk_work *w, size_t node)
{
	return w->node[node].live && !(yk_op_def(w->g.node[node].op)->flags & (YK_F_VIEW | YK_F_LEAF));
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

// ---- edits ----

// Builds the lists of readers of each base value, for operands of nodes that compute; edits keep
// them up to date.
int yk_uses_list(struct yk_work *);
// Begins an edit: yk_edit_undo can revert all changes since, until the next edit begins.
void yk_edit_begin(struct yk_work *);
void yk_edit_undo(struct yk_work *);
// The nodes in creation order, clones after their originals; the caller frees the array.  NULL: no
// memory.
uint32_t *yk_in_time(const struct yk_work *);
// Replaces an operand, given by its number among the graph's arguments, by another value.
int yk_edit_replace(struct yk_work *, uint32_t arg, yk_id v);
// Clones a node with these operands, at the same position in time.  Random numbers are equal,
// because their seeds are operands.
int yk_edit_clone(struct yk_work *, uint32_t node, const yk_id *in, yk_id *out);
// Adds a node of one result, at the position in time of node `like`.
int yk_edit_add(struct yk_work *, const struct yk_call *, const struct yk_value *, int slot, const char *cause,
		uint32_t like, yk_id *out);
// Marks a node as dead.
void yk_edit_drop(struct yk_work *, uint32_t node);
// Drops all nodes without readers.
int yk_edit_sweep(struct yk_work *);
// Applies the view that v is of its base to another base; gives `base` if v is its own base.
int yk_edit_view(struct yk_work *, yk_id v, yk_id base, yk_id *out);
// ---- the passes, in the order in which passes.c runs them ----

// Builds work.g from the recorded nodes that the roots need.  Each is placed on a device,
// decomposed if the device has no kernel for it, padded if matrix units gain from it (align.c),
// split if a value is too large, and merged with an equal node.
int yk_lower(struct yk_work *);
// Marks the nodes that the roots need as live and builds the lists of readers.
int yk_live(struct yk_work *);
// Duplicates random nodes (setting plan.clones), to test the passes below.
int yk_clones(struct yk_work *);
// Recomputes the activations of work.recompute segments in the backward pass instead of keeping
// them.
int yk_recompute(struct yk_work *);
// Gathers sharded parameters where they are read, and again for the backward pass (ZeRO stage 3).
int yk_regather(struct yk_work *);
// Computes operands of a concatenation directly at their position in its result.
int yk_concat_in_place(struct yk_work *);
// Groups nodes into launches.
int yk_fuse(struct yk_work *);
bool yk_fuse_wanted(void); // the setting "fuse"
// Recomputes a value in each launch that reads it, if that saves memory traffic.
int yk_remat(struct yk_work *);
// Copies work.spill values to host memory until they are read.
int yk_spill(struct yk_work *);
// Chooses the order of launches.
int yk_order(struct yk_work *);
// Moves the bits of host scalars into device memory, if the plan can be recorded and replayed.
int yk_replay_prepare(struct yk_work *);
// Turns each group into ops of the plugin ABI: the steps of the plan.
int yk_emit(struct yk_work *);
// Assigns each step the fallback statistics it counts for.
int yk_fallbacks_note(struct yk_work *);
// Determines which steps of other slots each step waits for.
int yk_waits(struct yk_work *);
// Assigns memory: an arena, a root block, or the block of an old version that is no longer needed.
int yk_layout(struct yk_work *);
// Lists the nodes that no step computes, with reasons.
int yk_parts_gone(struct yk_work *);

// ---- what passes share ----

enum yk_recompute { YK_RECOMPUTE_NONE, YK_RECOMPUTE_BLOCK, YK_RECOMPUTE_AUTO };
// EINVAL: the setting "recompute" has no such value.
int yk_recompute_wanted(enum yk_recompute *);
extern const char yk_spilled[]; // the cause of copies that yk_spill makes
// Records the nodes of a group as computed by the steps from `first` on.
int yk_parts(struct yk_work *, const struct yk_group *, size_t first);
// For two steps of the ranks queue, which keeps the order within a process group and within one
// direction to one peer: may the second begin before the first is done?
bool yk_may_overtake(const struct yk_step *first, const struct yk_step *second);
// If a value is too large for the device, requests that the recorded node behind it be lowered in
// slices next time; false: it already is.
bool yk_note_large(struct yk_work *, yk_id);
struct yk_span { // bytes of an arena, used from step born to step dies
	uint32_t born, dies;
	uint64_t bytes;   // not 0
	uint64_t *offset; // receives its offset
};
// Assigns offsets to n spans (and sorts them) such that none crosses a multiple of `largest`; *top
// grows to the end of the last span.
int yk_spans_place(struct yk_span *, size_t n, uint32_t steps, uint64_t largest, uint64_t *top);
void yk_work_fini(struct yk_work *);

// ---- ops of the ABI ----

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
int yk_build_copy(struct yk_work *, const struct yk_value *x, const struct yk_place *to,
		  const struct yk_place *from, bool map, struct yk_built *);
void yk_built_fini(struct yk_built *);
// Lowers a collective op, with contiguous operands in the memory that it uses; and emits its step.
int yk_lower_ranks(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs, yk_id *out);
int yk_emit_ranks(struct yk_work *, uint32_t node, struct yk_built *);
// The region of the result that operand k of a pad, concat or slice_update is copied to.
struct yk_place yk_part_place(const struct yk_work *, uint32_t node, uint32_t k);
// Is a base value without bytes: a literal or a host scalar?
static inline bool yk_is_number(const struct yk_work *w, yk_id base)
{
	uint16_t op = yk_maker(&w->g, base)->op;
	return op == YK_CONST || op == YK_SCALAR;
}

// ---- replay ----

struct yk_spot { // location of a block
	void *segment;
	uint64_t offset;
};

enum { YK_GRAPHS = 24 }; // graphs kept per plan: two alternating versions for each of the
			 // prefetched batch buffers

struct yk_graph_of { // the recorded launches for blocks at these locations
	struct yk_spot *spot;
	size_t spots;
	uint64_t used, seen; // seen: number of repetitions
	const struct yoke_backend *ops;
	void *graph; // NULL: not recorded yet
};

struct yk_replay {
	struct yk_graph_of of[YK_GRAPHS];
	uint64_t launches;
	bool off; // recording failed and is not tried again
};

// The entry for these locations, created if necessary; NULL: no memory.
struct yk_graph_of *yk_replay_find(struct yk_replay *, const struct yk_spot *, size_t n);
// Records what `steps` enqueues.  After an error nothing was enqueued.
int yk_replay_record(struct yk_graph_of *, struct yk_queue *, int (*steps)(void *), void *arg);
void yk_replay_free(struct yk_replay *, bool over); // over: no launch of it is in progress

// ---- running ----

struct yk_planner;
// Binds leaves and blocks, runs every step and gives the roots' handles their storages.  An error
// before the first step has no effect (*started false); a later error becomes the context's
// failure, and the results are lost.
int yk_launch(struct yk_planner *, struct yk_plan *, bool *started);
// Can the pool provide the plan's memory now?  Tries to allocate all of it and frees it again.
bool yk_launch_fits(struct yk_planner *, struct yk_plan *);
// Checks that host scalars used as indices by marked nodes are in range.  ERANGE names the op and
// the value.
int yk_check_scalars(const struct yk_planner *, const struct yk_plan *);
// Does a marked node use a number as an index?
bool yk_is_ranged(const struct yk_planner *);
// Describes a step of the plan being launched: "matmul f32 [5,3] from f32 [5,7], f32 [7,3] in
// "step/layer", recorded at ..".
void yk_step_text(const struct yk_planner *, const struct yk_step *, char *to, size_t cap);
// The recorded node from which the step's last node was lowered; NULL: none.
const struct yk_node *yk_step_recorded(const struct yk_planner *, const struct yk_step *);
// EINVAL: YOKE_CHECK has an unknown value.
int yk_check_wanted(bool *nan);
// Checks a finished step: ERANGE if its results have NaN although its operands have none, or
// infinities although its operands are finite.
int yk_check_step(struct yk_planner *, const struct yk_plan *, const struct yk_step *,
		  struct yk_queue *);
// Is each leaf's block large enough for the plan's accesses?
int yk_check_leaves(const struct yk_planner *, const struct yk_plan *);
// The bits of a scalar leaf, given by its number among the marked leaves.
uint64_t yk_scalar_bits(const struct yk_planner *, uint32_t place);
// The context's planner, created if necessary; NULL: no memory.
struct yk_planner *yk_planner_of(struct yoke_context *);
// The plan for the planner's key, cached or new; NULL with the error.
struct yk_plan *yk_plan_for(struct yk_planner *);
struct yk_plan *yk_plan_make(struct yk_planner *);
// Adds a root; tensor NULL: it has no handle.
int yk_root_add(struct yk_planner *, struct yk_tensor *, yk_id);
// Finds which roots may take over the bytes of their variables' old versions (donors.c).
int yk_find_donors(struct yk_planner *);
// Plans and launches the computation of planner->root; *started: the first step was reached.
int yk_run_roots(struct yk_planner *, bool *started);
// Computes all roots and the given tensors; for use inside the context.
int yk_evaluate(struct yoke_context *, int n, yoke_tensor *const *t);
// Like yoke_read, for the bytes of the value from `from` on.  ERANGE: it has fewer.
int yk_read_part(yoke_tensor *, uint64_t from, void *to, size_t bytes);
// Launches operations that are recorded but not launched; 0, or the first error.
int yk_eager_run(struct yoke_context *);
// Fallbacks since the context was made, minus the launches and bytes in before[0 .. nbefore-1] (by
// kind, in order of first occurrence); sorted by bytes, largest first.  Needs room for
// yk_fallback_kinds entries; returns their number.
size_t yk_fallback_list(const struct yoke_context *, const uint64_t (*before)[2], size_t nbefore,
			struct yoke_fallback *);
size_t yk_fallback_kinds(const struct yoke_context *);
// Launches and bytes of each kind, in order of first occurrence.
void yk_fallback_counts(const struct yoke_context *, uint64_t (*to)[2]);
// YOKE_LOG=plan: logs one line per step.
void yk_plan_print(const struct yk_work *, const struct yk_plan *);

enum { YK_BUCKETS = 256 }; // of plans, by hash

#define YK_ANY_RANK 255
struct yk_fallback { // launches on the CPU of one op, by dtype and shape of the result
	uint16_t op;
	uint8_t dtype, rank; // YK_ANY_RANK: several shapes
	int64_t dims[YOKE_MAX_RANK];
	uint64_t count, bytes;
};

struct yk_misaligned { // a product whose sizes are not the multiples that its device prefers
	uint32_t scope;
	uint8_t dtype, to, flags; // dtypes of factors and product; YOKE_TA and the like
	bool padded;
	int64_t matrices[3];       // numbers of matrices in a, b and the product
	int64_t size[3], wants[3]; // m, n, k
};

// The state in which an evaluation leaves a node: not concerned; still pending; computed, and read
// by a node that is still pending.
enum yk_left { YK_LEFT_NOT, YK_LEFT_LATER, YK_LEFT_READ };

// The scheduler's state of a context.
struct yk_planner {
	struct yoke_context *ctx;
	struct yk_marks marks;
	struct yk_key key;
	struct yk_root *root;
	size_t roots, root_cap;
	uint8_t *left; // by node of the context's graph, if some stay pending: enum yk_left
	size_t left_cap;
	struct yk_plan **bucket;
	size_t plans;
	uint64_t evaluations;
	uint32_t vain;    // bit k: the k-th evaluation before this one missed although the cache
			  // had a plan of the same operations that was never reused
	bool warned;
	char miss[300];   // why the last cache miss happened
	struct yk_block **chunk[YK_SLOTS]; // scratch of launches: arenas, ..
	struct yk_storage **storage;   // .. storages of root blocks ..
	struct yk_storage **given;     // .. and of roots ..
	struct yk_event **event;       // .. and events for other slots
	size_t chunk_cap[YK_SLOTS], storage_cap, given_cap, event_cap;
	struct yk_fallback *fallback;  // kinds, in order of first occurrence
	size_t fallbacks, fallback_cap;
	bool fell_back;                // the first fallback was logged
	bool *large;                   // for the plan being made, by recorded node: lower it in
				       // slices
	size_t large_cap;
	bool large_told;               // logged that some of them run on the CPU
	bool by_value;                 // for the plan being made: some op cannot read its scalars
				       // from memory
	bool unfused;                  // for the plan being made: a fused kernel did not build, and
				       // its form could not be refused earlier
	struct yk_spot *spot;          // scratch of launches: locations of blocks
	size_t spot_cap;
	uint64_t *number;              // scratch of launches: bits of scalars
	size_t number_cap;
	bool check_nan, nan_told;      // results are checked; a leaf with NaN was reported
	bool plain;                    // never pad products, whatever the setting is
	struct yk_misaligned *misaligned; // products of its plans, in order of first occurrence
	size_t nmisaligned, misaligned_cap;
};

// Describes the first difference between planner->key and an earlier key: "node 812 matmul in step:
// flags: 0 -> 1".
void yk_key_difference(const struct yk_planner *, const struct yk_key *was, char *to, size_t cap);
// Logs, and stores in planner->miss, why planner->key has no plan; frequent misses cause one
// warning.
void yk_miss_report(struct yk_planner *);

#endif
