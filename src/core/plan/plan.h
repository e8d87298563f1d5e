// SPDX-License-Identifier: Apache-2.0
// Plans: what the scheduler makes of a graph.  A key describes the structure of the pending operations; equal keys share a
// plan.  Passes (passes.c has their order) make a plan; a launch binds it to memory and runs it.
// A plan owns no device memory.
#ifndef YK_PLAN_H
#define YK_PLAN_H

#include "graph/context.h"

// ---- strides ----

// Strides (elements) of a row-major tensor without gaps.
void yk_strides(int rank, const int64_t *dims, int64_t *stride);
// The same elements under other dims of the same count; false when no strides do it.
bool yk_restride(int rank, const int64_t *dims, const int64_t *stride, int to_rank,
		 const int64_t *to_dims, int64_t *to_stride);
// Strides of x over a space it broadcasts to: 0 on new and stretched axes.
void yk_broadcast_strides(const struct yk_value *x, const int64_t *stride, int rank,
			  const int64_t *dims, int64_t *to);
// Are they row major without gaps, axes of 1 element aside?
bool yk_is_dense(int rank, const int64_t *dims, const int64_t *stride);

// ---- keys ----

struct yk_key {
	uint32_t *word;
	size_t n, cap;
	uint64_t hash;
};

// What an evaluation is about: roots and all they need, numbered in creation order.
struct yk_mark { // of a node of the context's graph
	uint32_t need;  // which of its results are needed (yk_result_bit), while they are found; else 0
	uint32_t place; // YK_NIL: it is not needed
	uint32_t shift; // from the graph's numbers of its results to those of the evaluation
};
struct yk_marks {
	struct yk_mark *mark; // by node of the context's graph
	uint32_t *node;    // by place
	uint32_t *leaf;    // leaves by first use: index of the context's leaf
	uint32_t *place;   // by the context's leaf: its place among them
	uint32_t *made;    // by place: 0, or which results are wanted (yk_result_bit), all of which have bytes:
			   // they are leaves, and it is not computed
	size_t nodes, leaves, values;
	size_t numbers;         // leaves that are the host's numbers
	bool failed, uploads;   // a leaf's storage has failed; is still on its way up
	size_t repeated;   // nodes that an evaluation before computed
	uint32_t repeats;  // the last of them, in the context's graph
	size_t mark_cap, node_cap, leaf_cap, place_cap, made_cap;
};
// The number of a needed value among those of the evaluation.
static inline uint32_t yk_number_of(const struct yk_marks *m, const struct yk_graph *g, yk_id v)
{
	return v + m->mark[g->value[v].node].shift;
}

struct yk_root {
	yk_id id;             // in the context's graph
	struct yk_tensor *handle; // NULL: what stays pending reads it
	uint32_t donor;       // place among marks.leaf of the variable's old version, or YK_NIL
	bool idle;            // nothing else holds that version, which is read or packed: it may be overwritten
};

// Values whose bytes are there are leaves.  ERELEASED, where something is needed that was computed before,
// from the version of a variable that has been overwritten.
int yk_mark(struct yoke_context *, struct yk_marks *, const struct yk_root *, size_t roots);
int yk_key_make(struct yoke_context *, const struct yk_marks *, const struct yk_root *, size_t roots,
		uint32_t settings, struct yk_key *);
enum {
	YK_ROOT_WORDS = 4,    // words of each root, at the end of a key
	YK_KEY_MADE = 0xffff, // in the place of an op: results that have bytes; how many, which, how many of
			      // those, and a leaf's words for each
};

// ---- plans ----

enum yk_where { YK_AT_NONE, YK_AT_ARENA, YK_AT_LEAF, YK_AT_ROOT, YK_AT_SCALAR };

struct yk_ref { // where a view's bytes are
	uint8_t where, slot;   // slot: whose arena
	uint32_t index;        // chunk of the arena, leaf, or root block
	uint64_t offset;       // bytes
};

// NUMBERS: writes plan->number, the first of a plan that can be recorded.  RANKS: other ranks take part; handed
// to the ranks queue, with the host's addresses for segments unless on_device
enum yk_step_kind { YK_STEP_RUN, YK_STEP_FILL, YK_STEP_DOWN, YK_STEP_UP, YK_STEP_NUMBERS, YK_STEP_RANKS };
enum { YK_STEP_RANKS_CODE = 0x8000 }; // and the op's number: the code of its op
extern const char *const yk_step_kind_name[]; // of all that are no RUN

struct yk_part { // a node of the lowered graph, for profiles
	uint32_t node, scope;
	uint32_t recorded; // the recorded node it came of, by its number among the marked ones
	uint16_t opcode;
	const char *gone; // no step does it: why; NULL in the parts of a step
};

struct yk_step {
	uint8_t kind, slot;
	uint16_t impl;
	uint32_t view, views; // its views in plan->view and plan->ref, results first
	uint32_t node;        // of the plan's graph
	uint32_t nodes;       // in part
	uint32_t scope;       // the last one's
	uint16_t opcode;      // of the op table
	struct yoke_op op;
	struct yoke_map *map;
	struct yk_ref work;
	uint64_t work_bytes;
	uint64_t bytes;       // read and written
	uint64_t pattern;     // FILL
	const char *cause;    // why here and so
	uint32_t fallback;    // what it counts for: planner->fallback[fallback - 1]; 0: nothing
	uint32_t event;       // number of the event behind it, for steps of other slots; YK_NIL: none
	uint32_t wait, waits; // in plan->wait: events of other slots that it runs behind
	const struct yk_part *part; // the nodes it does; steps of one move share them
	bool on_device;       // of RANKS: operands and workspace are the device's
	const struct yoke_backend *ops; // of RUN: who prepared ..
	void *handle;                   // .. this for it
	int64_t growth;       // live bytes behind it less those before: of arenas, and of roots that need memory
};

struct yk_live { // bytes of an arena, from the beginning of step born to the end of step dies
	uint32_t born, dies;
	uint32_t writer; // the step that writes them first
	uint64_t bytes;
	uint8_t slot;    // whose arena
	bool workspace;
};

struct yk_root_block {
	uint64_t bytes;
	uint32_t donor; // leaf whose bytes it takes over, or YK_NIL
	uint32_t home;  // root whose packed variable's old version, which nothing reads, it takes over, or YK_NIL
	uint32_t leaf;  // leaf it simply is, or YK_NIL
	bool host;      // in the host's memory
};

// Does it need memory?
static inline bool yk_is_new(const struct yk_root_block *b)
{
	return b->leaf == YK_NIL && b->donor == YK_NIL && b->home == YK_NIL;
}

struct yk_plan {
	struct yk_key key;
	struct yk_plan *next; // in its bucket
	uint64_t made, used;  // evaluations: the first, and the one that used it last
	struct yk_step *step;
	size_t steps, step_cap;
	struct yoke_view *view;
	struct yk_ref *ref;
	size_t views, view_cap, ref_cap;
	struct yk_root_block *block; // of distinct roots
	size_t blocks, block_cap;
	uint32_t *root_block;        // by root: its block
	size_t roots;
	struct yk_arena_plan {       // of the slots that memory is of
		uint64_t *chunk;     // bytes of each allocation
		size_t n, cap;
	} arena[YK_SLOTS];
	uint32_t *wait;              // numbers of events; YK_NIL: what the queue of the steps did before
	size_t waits, wait_cap;
	uint32_t events;
	uint32_t last_event[YK_SLOTS]; // behind all steps of a slot, not of the device's; YK_NIL: it has none
	uint32_t loose;              // bit k: the device's last step does not know those of slot k to be over
	uint64_t *need;              // by leaf: bytes it must have, 0: none
	size_t leaves;
	bool ranged;                 // a recorded node reads or writes where a number says
	uint64_t copies, copy_bytes; // assignments that could not be in place
	struct yk_live *live;        // what lies in arenas
	size_t lives;
	uint64_t activations, workspace; // bytes at their most: what waits for the way back; for one step
	struct yk_arena memory;      // map programs and parts
	uint64_t serial;             // no two plans of a process share one
	struct yk_event *last;       // behind its last launch
	size_t padded;               // products that were lowered with padded operands
	uint32_t *number, numbers;   // leaves whose bits the first step writes, 8 bytes each; 0: there is no such step
	struct yk_replay *replay;    // what is recorded of it; NULL: it cannot be
	const struct yk_part *gone;  // nodes that no step does
	size_t ngone, nodes;         // nodes: of the lowered graph
};

// Whose arena a step's workspace lies in.
static inline int yk_work_slot(const struct yk_step *s)
{
	return s->kind == YK_STEP_RANKS ? YK_SLOT_DEVICE : s->slot;
}

void yk_plan_free(struct yk_plan *);
// What a launch of it takes of the pool of the context's device, beside what is there.
uint64_t yk_plan_bytes(const struct yoke_context *, const struct yk_plan *);

// ---- making one ----

struct yk_place { // of a value: its elements in the value that owns the bytes, whose dtype may be another
	yk_id base;
	uint32_t gate;  // barrier that it came through last: node + 1, 0: none
	int64_t offset; // bytes, a multiple of the element's
	int64_t stride[YOKE_MAX_RANK]; // elements
};

struct yk_group { // nodes that become one launch
	uint32_t *member; // in creation order
	uint32_t n, cap;
	uint32_t at;      // its place in time: the last member
	bool dead;        // joined another
};

struct yk_joined { // a value whose pieces, of `step` along an axis, are values too
	yk_id whole, *piece;
	int axis;
	int64_t step;
};

struct yk_clock { // what is known to be over when a step begins: the steps before over[k], of slot k
	uint32_t over[YK_SLOTS];
};

// What passes know of a node of the plan's graph ..
struct yk_node_facts {
	const char *cause; // why it is where it is, or NULL
	uint32_t from;     // the recorded node it came of, by its number among the marked
	uint32_t time;     // its place in creation order: of a clone, the original's
	uint32_t of;       // the node it is a clone of; itself: of none
	uint32_t group;    // that computes it; YK_NIL: none
	bool live;
};
struct yk_value_facts { // .. and of a value
	struct yk_place place;
	uint32_t use; // of a base value: the first operand that reads it, in work.use; YK_NIL: none
	bool rooted;  // of a base value: it has a root block
};
struct yk_use { // of an operand, by its number among the graph's arguments
	uint32_t node, base; // base: the value that owns the bytes, YK_NIL: none
	uint32_t next;       // the next operand that reads it
};

struct yk_work {
	struct yoke_context *ctx;
	const struct yk_marks *marks;
	const struct yk_root *root;
	size_t roots;
	uint32_t align;          // of the first byte of any value, as both devices guarantee it
	struct yk_graph g;       // after lowering
	struct yk_node_facts *node;
	struct yk_value_facts *value;
	struct yk_use *use;      // NULL until the values' readers are listed
	size_t node_cap, value_cap, use_cap;
	struct yk_edited {       // where the graph ended when the edit began
		size_t nodes, values, args, nattrs;
	} edited;
	struct yk_replaced {     // operands that were others
		uint32_t arg;
		yk_id was;
	} *replaced;
	size_t nreplaced, replaced_cap;
	uint32_t recorded;       // the one being lowered
	uint32_t *table;         // of equal nodes
	size_t table_size;
	yk_id *root_value;       // by root
	struct yk_group *group;  // by number
	uint32_t groups;
	uint32_t *order;         // groups as they are launched
	size_t norder;
	struct yk_clock *clock;  // by step
	struct yk_plan *plan;
	bool replan;      // a kernel does not build, and its device is not asked for it again; or
				 // a value is too large, and is not to be made whole
	struct yk_joined *joined; // values that were made by pieces
	size_t njoined, joined_cap;
	bool in_piece;           // a piece of such a value is being lowered
	bool plain;              // no product is padded
	uint32_t recompute;      // of how many segments of the forward pass activations are made again
	uint32_t segments;       // how many there are to choose from; 0 as long as none was asked for
	uint32_t spill, spillable; // the same of values that wait in the host's memory
	yk_id numbers;       // what has the bits of the host's numbers, on the device; YK_NIL: views have them
	uint32_t *number_of; // by leaf: 1 + its place there, 0: none
};

struct yk_device *yk_work_device(const struct yk_work *, int slot);
// Adds a node at the end; out gets the first of its results.
int yk_node_add(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs, int slot,
		const char *cause, yk_id *out);
// Is it live and no view or leaf?
static inline bool yk_computes(const struct yk_work *w, size_t node)
{
	return w->node[node].live && !(yk_op_row(w->g.node[node].op)->flags & (YK_F_VIEW | YK_F_LEAF));
}
static inline bool yk_is_among(const uint32_t *list, uint32_t n, uint32_t x)
{
	bool found = false;
	for (uint32_t i = 0; i < n && !found; i++)
		found = list[i] == x;
	return found;
}
// Does node a stand before b in creation order?
static inline bool yk_is_before(const struct yk_work *w, uint32_t a, uint32_t b)
{
	uint32_t x = w->node[a].time, y = w->node[b].time;
	return x != y ? x < y : a < b;
}

// ---- edits ----

// Lists who reads each base value, by operands of nodes that compute; edits keep that up.
int yk_uses_list(struct yk_work *);
// What follows can be taken back from here on, until the next edit begins.
void yk_edit_begin(struct yk_work *);
void yk_edit_undo(struct yk_work *);
// The nodes in creation order, clones behind what they are clones of; freed by the caller.  NULL: no memory.
uint32_t *yk_in_time(const struct yk_work *);
// An operand, by its number among the graph's arguments, is another value from now on.
int yk_edit_replace(struct yk_work *, uint32_t arg, yk_id v);
// A node as another one, with these operands, at the same place in time; random numbers are the same, since
// what they are drawn from are operands.
int yk_edit_clone(struct yk_work *, uint32_t node, const yk_id *in, yk_id *out);
// A node of one result beside another one, in its place in time.
int yk_edit_add(struct yk_work *, const struct yk_call *, const struct yk_value *, int slot, const char *cause,
		uint32_t like, yk_id *out);
// Nobody needs the node any more.
void yk_edit_drop(struct yk_work *, uint32_t node);
// Drops what nobody reads any more.
int yk_edit_sweep(struct yk_work *);
// What view v is of its base, of another base: that itself, where v is its base.
int yk_edit_view(struct yk_work *, yk_id v, yk_id base, yk_id *out);
// ---- the passes, in the order in which passes.c runs them ----

// Builds work.g from the recorded nodes that the roots need: each is placed on a device, decomposed where the device
// has no kernel for it, padded where its matrix units gain from it (align.c), cut where a value is too large, and merged
// with an equal node.
int yk_lower(struct yk_work *);
// Marks the nodes that the roots need, and lists who reads each base value.
int yk_live(struct yk_work *);
// Duplicates nodes at random (setting plan.clones), for tests of the passes below.
int yk_clones(struct yk_work *);
// Computes the activations of work.recompute segments again for the backward pass, instead of keeping them.
int yk_recompute(struct yk_work *);
// Gathers sharded parameters where they are read, and again for the backward pass.
int yk_regather(struct yk_work *);
// Computes operands of a concatenation at their position in its result.
int yk_concat_in_place(struct yk_work *);
// Groups nodes that become one launch.
int yk_fuse(struct yk_work *);
bool yk_fuse_wanted(void); // the setting "fuse"
// Computes a value again in each launch that reads it, where that saves memory traffic.
int yk_remat(struct yk_work *);
// Copies work.spill values to the host's memory until they are read.
int yk_spill(struct yk_work *);
// Chooses the order of launches.
int yk_order(struct yk_work *);
// Moves the bits of host numbers into device memory, where the plan can be recorded and replayed.
int yk_replay_prepare(struct yk_work *);
// Makes each group an op of the plugin ABI: a step of the plan.
int yk_emit(struct yk_work *);
// Notes which kind of fallback each step counts for.
int yk_fallbacks_note(struct yk_work *);
// Finds which steps of other slots each step waits for.
int yk_waits(struct yk_work *);
// Assigns memory: arena, root block, or the block of an old version that is no longer needed.
int yk_layout(struct yk_work *);
// Lists the nodes that no step computes, and why.
int yk_parts_gone(struct yk_work *);

// ---- what passes share ----

enum yk_recompute { YK_RECOMPUTE_NONE, YK_RECOMPUTE_BLOCK, YK_RECOMPUTE_AUTO };
// EINVAL: the setting "recompute" is none of those.
int yk_recompute_wanted(enum yk_recompute *);
extern const char yk_spilled[]; // the cause of copies that yk_spill makes
// Which nodes the steps from `first` on do: those of the group.
int yk_parts(struct yk_work *, const struct yk_group *, size_t first);
// Two steps of the ranks queue, which does in order what is of one group, or goes one way to one peer: may the second
// begin before the first is over?
bool yk_may_overtake(const struct yk_step *first, const struct yk_step *second);
// Is a value too large for the device?  Then the recorded node it came of is lowered by pieces next time,
// unless it was: false.
bool yk_note_large(struct yk_work *, yk_id);
struct yk_span { // of bytes in an arena, from step born to step dies
	uint32_t born, dies;
	uint64_t bytes;   // not 0
	uint64_t *offset; // where it goes
};
// Places n spans, which are sorted for it, so that none crosses a multiple of `largest`; *top grows to the
// end of the last.
int yk_spans_place(struct yk_span *, size_t n, uint32_t steps, uint64_t largest, uint64_t *top);
void yk_work_fini(struct yk_work *);

// ---- ops of the ABI ----

// One op with room for its views and program, and which values the views are.
struct yk_built {
	struct yoke_op op;
	struct yoke_map map;
	struct yoke_source source;
	struct yoke_view *view; // results, then operands
	yk_id *value;           // of each view, YK_NIL for none
	size_t cap;
};

// A node that is neither map nor reduction as an op by itself.  dense: as if all operands were
// contiguous buffers.
int yk_build_node(struct yk_work *, uint32_t node, bool dense, struct yk_built *);
// Maps as one op, with or without a contraction before or a reduction behind them; EUNSUPPORTED, unrecorded, when they do not
// fit one program.
int yk_build_group(struct yk_work *, const uint32_t *member, uint32_t n, struct yk_built *);
// What has x's shape copied from one place to another, as MOVE or, with map, as a map program.
int yk_build_copy(struct yk_work *, const struct yk_value *x, const struct yk_place *to,
		  const struct yk_place *from, bool map, struct yk_built *);
void yk_built_fini(struct yk_built *);
// A node that other ranks take part in, with operands without gaps in the host's memory; and its step.
int yk_lower_ranks(struct yk_work *, const struct yk_call *, uint32_t nout, const struct yk_value *outs, yk_id *out);
int yk_emit_ranks(struct yk_work *, uint32_t node, struct yk_built *);
// The part of the result that operand k of a pad, concat or slice_update is copied to.
struct yk_place yk_part_place(const struct yk_work *, uint32_t node, uint32_t k);
// Is a base value one that has no bytes: a literal or a host scalar?
static inline bool yk_is_number(const struct yk_work *w, yk_id base)
{
	uint16_t op = yk_maker(&w->g, base)->op;
	return op == YK_CONST || op == YK_SCALAR;
}

// ---- replay ----

struct yk_spot { // where a block lies
	void *segment;
	uint64_t offset;
};

enum { YK_GRAPHS = 24 }; // kept of a plan: two ways of what takes turns, for each of the places of batches that come ahead

struct yk_graph_of { // the launches with the blocks at these places
	struct yk_spot *spot;
	size_t spots;
	uint64_t used, seen; // seen: how often again
	const struct yoke_backend *ops;
	void *graph; // NULL: it is not recorded yet
};

struct yk_replay {
	struct yk_graph_of of[YK_GRAPHS];
	uint64_t launches;
	bool off; // it did not go well, and is not tried again
};

// That of these places, which may be new; NULL: there is no memory for one.
struct yk_graph_of *yk_replay_find(struct yk_replay *, const struct yk_spot *, size_t n);
// Records what `steps` enqueues.  After an error nothing was.
int yk_replay_record(struct yk_graph_of *, struct yk_queue *, int (*steps)(void *), void *arg);
void yk_replay_free(struct yk_replay *, bool over); // over: nothing of it is under way

// ---- running ----

struct yk_planner;
// Binds leaves and blocks, runs every step, gives the roots' handles their storages.  An error before
// the first step leaves everything as it was (*started false); a later one is the context's failure,
// and what was to be written is lost.
int yk_launch(struct yk_planner *, struct yk_plan *, bool *started);
// Does the pool have the memory for it now?  It is asked for it all, and given it back.
bool yk_launch_fits(struct yk_planner *, struct yk_plan *);
// Are numbers on the host that say where a marked node reads or writes in range?  ERANGE names the op and
// the value.
int yk_check_scalars(const struct yk_planner *, const struct yk_plan *);
// Does a marked node read or write where a number says?
bool yk_is_ranged(const struct yk_planner *);
// Words for a step of the plan that is being launched: "matmul f32 [5,3] from f32 [5,7], f32 [7,3] in
// "step/layer", recorded at ..".
void yk_step_text(const struct yk_planner *, const struct yk_step *, char *to, size_t cap);
// The recorded node that its last part came of; NULL: none.
const struct yk_node *yk_step_recorded(const struct yk_planner *, const struct yk_step *);
// EINVAL: YOKE_CHECK asks for what there is not.
int yk_check_wanted(bool *nan);
// After a step that is done: ERANGE when it made NaN of operands without, or infinities of finite ones.
int yk_check_step(struct yk_planner *, const struct yk_plan *, const struct yk_step *,
		  struct yk_queue *);
// Is the block of each leaf large enough for what the plan does with it?
int yk_check_leaves(const struct yk_planner *, const struct yk_plan *);
// The bits of the scalar leaf at a place among the marked leaves.
uint64_t yk_scalar_bits(const struct yk_planner *, uint32_t place);
// The context's planner, made if there is none; NULL: no memory.
struct yk_planner *yk_planner_of(struct yoke_context *);
// The plan for the planner's key: found, or made; NULL with the error.
struct yk_plan *yk_plan_for(struct yk_planner *);
struct yk_plan *yk_plan_make(struct yk_planner *);
// One more root; of no tensor: NULL.
int yk_root_add(struct yk_planner *, struct yk_tensor *, yk_id);
// Finds which roots may take over the bytes of their variables' old versions (donors.c).
int yk_find_donors(struct yk_planner *);
// Plans and launches what planner->root needs; *started: it got to the first step.
int yk_run_roots(struct yk_planner *, bool *started);
// Computes all roots and what is given; from inside the context.
int yk_evaluate(struct yoke_context *, int n, yoke_tensor *const *t);
// As yoke_read, of some of the value's bytes, from one on.  ERANGE: it has fewer.
int yk_read_part(yoke_tensor *, uint64_t from, void *to, size_t bytes);
// Launches what is recorded and not yet launched; 0, or the error of the first that fails.
int yk_eager_run(struct yoke_context *);
// What fell back since the context was made, without the launches and bytes in before[0 .. nbefore-1]
// (of kinds in the order they were met); most bytes first.  Room for yk_fallback_kinds entries; returns
// how many there are.
size_t yk_fallback_list(const struct yoke_context *, const uint64_t (*before)[2], size_t nbefore,
			struct yoke_fallback *);
size_t yk_fallback_kinds(const struct yoke_context *);
// Launches and bytes of each kind, in the order they were met.
void yk_fallback_counts(const struct yoke_context *, uint64_t (*to)[2]);
// YOKE_LOG=plan: a line a step.
void yk_plan_print(const struct yk_work *, const struct yk_plan *);

enum { YK_BUCKETS = 256 }; // of plans, by hash

#define YK_ANY_RANK 255
struct yk_fallback { // launches on the CPU of one op with results of one dtype and shape
	uint16_t op;
	uint8_t dtype, rank; // YK_ANY_RANK: of several shapes
	int64_t dims[YOKE_MAX_RANK];
	uint64_t count, bytes;
};

struct yk_misaligned { // a product with sizes of which its device would like multiples
	uint32_t scope;
	uint8_t dtype, to, flags; // of the factors, of the product; YOKE_TA and the like
	bool padded;
	int64_t matrices[3];       // in a, b and the product
	int64_t size[3], wants[3]; // m, n, k
};

// Of a node that an evaluation does not reach: it stays pending; its results are there for what does.
enum yk_left { YK_LEFT_NOT, YK_LEFT_LATER, YK_LEFT_READ };

// The scheduler's own state, one a context.
struct yk_planner {
	struct yoke_context *ctx;
	struct yk_marks marks;
	struct yk_key key;
	struct yk_root *root;
	size_t roots, root_cap;
	uint8_t *left; // by node of the context's graph, where some stay pending: enum yk_left
	size_t left_cap;
	struct yk_plan **bucket;
	size_t plans;
	uint64_t evaluations;
	uint32_t vain;    // bit k: the k-th evaluation before this one missed, beside a plan that nothing has used again
	bool warned;
	char miss[300];   // why the last one that missed did
	struct yk_block **chunk[YK_SLOTS]; // scratch of launches: arenas, ..
	struct yk_storage **storage;   // .. storages of root blocks ..
	struct yk_storage **given;     // .. and of roots ..
	struct yk_event **event;       // .. and events for other slots
	size_t chunk_cap[YK_SLOTS], storage_cap, given_cap, event_cap;
	struct yk_fallback *fallback;  // kinds, as they were met
	size_t fallbacks, fallback_cap;
	bool fell_back;                // and said so
	bool *large;                   // by recorded node of the plan at hand: it is lowered by pieces
	size_t large_cap;
	bool large_told;               // that some are the CPU's
	bool by_value;                 // of the plan at hand: an op does not take its numbers from memory
	bool unfused;                  // .. and: a text of fused ops does not build, of a form that is found only in the end
	struct yk_spot *spot;          // scratch of launches: where the blocks lie
	size_t spot_cap;
	uint64_t *number;              // .. and bits of numbers
	size_t number_cap;
	bool check_nan, nan_told;      // results are checked; a leaf with NaN was named
	bool plain;                    // no product is padded, whatever the setting says
	struct yk_misaligned *misaligned; // products of its plans, as they were met
	size_t nmisaligned, misaligned_cap;
};

// Where planner->key differs first from an earlier one, in words: "node 812 matmul in step: flags: 0 -> 1".
void yk_key_difference(const struct yk_planner *, const struct yk_key *was, char *to, size_t cap);
// Says, and keeps in planner->miss, why planner->key has no plan; when that happens often, warns once.
void yk_miss_report(struct yk_planner *);

#endif
