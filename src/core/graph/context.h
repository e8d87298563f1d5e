// SPDX-License-Identifier: Apache-2.0
// Contexts: a device, a graph of what is pending, and the handles that look into it.
//
// What is recorded stays in the graph, also behind its evaluation, while handles have values there
// (history.c).  An evaluation leaves storages, counted, each with a block of the pool: one for each of its
// roots.
#ifndef YK_CONTEXT_H
#define YK_CONTEXT_H

#include "base/arena.h"
#include "device/device.h"
#include "device/pool.h"
#include "graph/autocast.h"
#include "graph/handle.h"
#include "graph/op.h"

// Where a context's work is enqueued.  A plan's steps name their slot, and the steps of others that they
// run behind.  What a slot's queue holds runs in order; memory is the device's or the CPU's.
// RANKS is what other ranks take part in, on the host's memory or the device's (device_ranks); the device's queue as
// long as it is in no group.
enum yk_slot_number { YK_SLOT_DEVICE, YK_SLOT_CPU, YK_SLOT_UP, YK_SLOT_DOWN, YK_SLOT_RANKS, YK_SLOTS };
struct yk_slot {
	struct yk_device *device;
	struct yk_queue *queue;
};

// A block that storages share, each with a part of its own; it goes back behind the queue when the last of
// them goes.
struct yk_buffer {
	uint32_t refs;
	bool host;                  // it is the CPU's: too large for the device, or placed there
	struct yk_block *block;     // compaction sets it anew
	struct yk_wrapped *wrapped; // the caller's memory, never written; NULL: the pool's
	struct yoke_context *ctx;
};

// The bytes of one materialised value, row major without gaps.
struct yk_storage {
	uint32_t refs, leaves; // references; those of them that leaves of the graph have
	int failed;        // 0, or the code of what should have written it
	uint32_t failure;  // number of that failure
	uint64_t written[YK_SLOTS]; // it is whole once these events of the slots' queues ended well; 0:
				    // has nothing to do with that queue
	struct yk_event *up; // the upload's, while the queue of the steps was not told to wait for it
	uint32_t leaf_place; // its first place among the leaves, while a key is made
	struct yk_buffer *buffer; // a reference; NULL once its bytes are another version's
	uint64_t offset, bytes;   // in the buffer
	const struct yk_tensor *home; // the variable that was packed here (pack.c), NULL: none
	struct yoke_context *ctx;
};

enum yk_leaf_kind { YK_LEAF_STORAGE, YK_LEAF_SCALAR, YK_LEAF_SEED, YK_LEAF_STEP };

// What a LEAF or SCALAR node stands for; its attr is the index.  The plan reads it at launch.
struct yk_leaf {
	uint8_t kind;
	uint8_t dtype;
	yk_id id;
	struct yk_storage *storage;   // a reference
	struct yk_tensor *variable;   // whose current version it is, or NULL
	struct yk_tensor *scalar;     // its number is read at launch; NULL: freed since, bits has it
	uint64_t ordinal;             // SEED: of the call
	uint64_t bits;                // of SEED the seed joined to that
	const yoke_tensor *handle;    // STORAGE: that it was made for, for comparison alone
	struct yk_past *past;         // STORAGE: a reference: tensors by which there is no gradient through it; NULL: none
	bool shared;                  // STORAGE: several variables have had this value, so that it is not overwritten
	bool frozen;                  // SCALAR, SEED, STEP: an evaluation read it, and so it stays: bits has it
	uint16_t op;                  // that made it
	uint32_t path;
	uint32_t former;              // index of the leaf before of the same variable or scalar, or YK_NIL
};

// Pinned host memory on its way to the device; written again once its event is done.
struct yk_staging {
	struct yk_block *block;
	struct yk_event *event;
	uint64_t marks; // events on the queue of the steps when it was sent
};

// An upload ahead of its use, from memory of the caller's; the last few are remembered.
enum { YK_AHEAD = 4 };
struct yk_ahead {
	struct yk_event *event;
	uint64_t marks; // as above
};

// A run that may not be over yet.
struct yk_flight {
	struct yk_event *done[YK_SLOTS]; // behind it on each queue; NULL: none, or it could not be marked
	uint64_t serial, number; // of the event on the queue of the steps; of the evaluation
	size_t steps;
	uint16_t op[2];    // of the first and last step
	uint32_t scope[2];
};

// What was reported last; values lost with it hold its number.
struct yk_failure {
	uint32_t number;
	int code;
	bool told;      // some call has returned it
	bool variables; // are lost with it
	char text[1800];
};

// A value of the graph that was a variable's version.
struct yk_former {
	yk_id value;
	const yoke_tensor *variable; // for comparison alone
};

struct yk_scope {
	uintptr_t serial; // what the caller has of it
	struct yk_scope *parent;
	struct yk_tensor *handles;
	uint32_t path;
	uint32_t depth;            // 1: the outermost
	bool casts;                // it set how operands are cast ..
	struct yk_autocast former; // .. which was this before
};

// What a context does, told to whoever watches it.
enum yk_work_kind { YK_WORK_STEP, YK_WORK_UP, YK_WORK_DOWN, YK_WORK_WAIT, YK_WORK_PLAN };

// Called in pairs around each piece of work, on the thread that does it; pieces do not nest.  UP and
// DOWN are copies between the host's memory and the device, WAIT is for a launch before, PLAN makes one.
struct yk_plan;
struct yk_observer {
	struct yk_observer *next; // of the context
	void (*begin)(struct yk_observer *, struct yk_queue *);
	// STEP: that step of the plan was run or enqueued; UP, DOWN: so many bytes, and ctx->moved has them
	void (*end)(struct yk_observer *, struct yk_queue *, enum yk_work_kind,
		    const struct yk_plan *, uint64_t step_or_bytes);
	// A range of the application begins or ends; NULL: no matter.
	void (*range)(struct yk_observer *, uint32_t path, bool begins);
	bool times; // each step, so that they are launched one by one; else the ends of those that were launched as
		    // one follow each other
};

// What a context did since it was made, beside yoke_stats.
struct yk_counts {
	uint64_t copies_up, copies_down;
	uint64_t waits, wait_ns; // the host waited for a device
	uint64_t idle_ns;        // no piece of work was under way, as far as profiles that watched know ..
	bool idle_known;         // .. if one did
};

enum yk_sync { YK_SYNC_NO, YK_SYNC_STEPS, YK_SYNC_WARN }; // of YOKE_SYNC

struct yoke_context {
	atomic_int owner; // number of the thread inside a call, 0: none
	atomic_uint refs; // of the application, until it frees the context, and of profiles
	bool ended;       // it was freed, and only this struct is left
	struct yk_device *device, *cpu;
	struct yk_slot slot[YK_SLOTS]; // one queue when the device is the CPU; by their names they are ..
	struct yk_queue *queue, *cpu_queue, *up, *down; // .. of steps, and of copies to and from the device
	bool device_ranks; // what ranks do together takes the device's memory, but for sends
	uint64_t up_whole;       // what was launched up to this event of queue read good uploads, ..
	uint64_t flight_whole;   // .. and up to this one what the other slots made was good
	struct yk_event *joined; // the last upload that the queue of the steps is behind
	struct yk_graph graph;
	struct yk_paths paths;
	struct yk_sites sites; // where the application called, if that is traced
	uint32_t epoch, opening; // of the graph, since it was empty; outermost scopes opened, and seeds set
	uint32_t outermost;      // outermost scopes opened
	size_t holders;         // tensors that have an id
	size_t leftover;        // nodes that were pending and stayed so at the last evaluation
	size_t grown;           // nodes that were new to the last evaluation
	uint64_t loose, bound;  // bytes that came to be held by the graph alone; collected beyond so many
	size_t collected;       // nodes of the graph when it was collected last
	size_t run;             // eagerly: nodes of the graph that were launched
	struct yk_scope *scope; // innermost, NULL: none
	struct yk_scope *idle;  // memory of those that have ended
	uintptr_t serial;       // of the scope that was opened last
	struct yk_autocast autocast;
	struct yk_casts casts;
	struct yk_tensor *handles;    // that no scope owns
	struct yk_tensor *free_slots; // for new ones
	struct yk_arena names;        // of variables
	uint64_t live_handles;
	uint64_t unscoped, many_unscoped; // those in no scope, but for variables; how many are warned about, 0: none
	yoke_tensor **deferred; // handles to be freed by the next call: the lock of the table is theirs
	size_t deferred_cap;
	atomic_size_t deferrals;
	struct yk_leaf *leaf;
	size_t leaves, leaf_cap;
	yk_id step_leaf; // the step of random numbers, as it counts in step_epoch
	uint32_t step_epoch;
	uint32_t drawn; // parameters of modules with random first values since the seed was said, each drawn in a scope of its own
	struct yk_tensor **root; // handles whose pending values are roots; NULL where freed
	size_t roots, root_cap;
	yoke_tensor **assigned; // variables that were assigned in the outermost scope that is open
	size_t nassigned, assigned_cap;
	struct yk_former *former; // values that variables were assigned before the present ones
	size_t formers, former_cap;
	struct yk_staging staging[4]; // taken in turn
	uint32_t staged;
	struct yk_ahead ahead[YK_AHEAD]; // taken in turn
	uint32_t aheads;
	struct yk_flight flight[2]; // at most two runs are in flight, taken in turn
	uint64_t flights;
	struct yk_failure failure;
	uint64_t seed;
	int64_t step;
	uint64_t held_bytes; // of versions that only leaves hold
	size_t many_nodes;   // pending ones that are warned about
	bool warned;         // of too much that is pending
	bool piled_up;       // that handles do, or scopes, was warned about
	bool eager;          // operations are launched as they are recorded
	bool shapes_vary;    // by the nature of the data, so that new plans are no reason for a warning
	unsigned callbacks;  // functions of the application's ops that are at work: their thread enters, and records
	bool traced;         // their call sites are kept
	enum yk_sync sync;
	bool dry;            // its devices are: launches take their memory and run no step, all values are zeros
	bool stale;          // .. and a number they read on the host was set since
	struct yk_planner *planner; // of plan/, made at the first evaluation ..
	void (*planner_free)(struct yk_planner *); // .. which leaves this behind
	struct yoke_stats stats;
	struct yk_counts counts;
	struct yk_paths ranges;       // names of the profiler's ranges, as scopes have theirs
	struct yk_range_open *range;  // the innermost, NULL: none
	struct yk_waited *waited;     // places that YOKE_SYNC=warn has named
	struct yk_observer *observer; // the first, NULL: nobody watches
	const struct yoke_ranges_ext *profiler; // of the device's vendor, NULL: none wants to know
	const struct yk_node *making;   // whose result is given memory
	const struct yk_storage *moved; // what the upload that ends has brought
};

// Keeps the struct of a context that ends, for what has to know that it did; and gives it up.
struct yoke_context *yk_context_ref(struct yoke_context *);
void yk_context_unref(struct yoke_context *);

// ---- observe.c ----

void yk_observer_add(struct yoke_context *, struct yk_observer *);
void yk_observer_remove(struct yoke_context *, struct yk_observer *); // one that is not there is fine
void yk_observers_begin(struct yoke_context *, struct yk_queue *);
void yk_observers_end(struct yoke_context *, struct yk_queue *, enum yk_work_kind, const struct yk_plan *,
		      uint64_t step_or_bytes);
// Does one of them time each step?
bool yk_is_timed(const struct yoke_context *);

static inline void yk_work_begin(struct yoke_context *ctx, struct yk_queue *q)
{
	if (ctx->observer)
		yk_observers_begin(ctx, q);
}

static inline void yk_work_end(struct yoke_context *ctx, struct yk_queue *q,
			       enum yk_work_kind kind, const struct yk_plan *p,
			       uint64_t step_or_bytes)
{
	if (ctx->observer)
		yk_observers_end(ctx, q, kind, p, step_or_bytes);
}

// Ranges own nothing: neither paths of scopes nor plans nor random numbers know of them.  0, or the error,
// of `pop` EINVAL where none is open.
struct yk_range_open {
	struct yk_range_open *outer;
	uint32_t path;
};
int yk_range_push(struct yoke_context *, const char *name);
int yk_range_pop(struct yoke_context *);
void yk_ranges_fini(struct yoke_context *);
// The innermost path that two are in, or are (path.c).
uint32_t yk_path_common(const struct yk_paths *, uint32_t a, uint32_t b);

// ---- profiler.c ----

// Finds what the device's backend has for its vendor's profiler, if that is wanted.
void yk_profiler_open(struct yoke_context *);
// A range of this thread; nothing where nobody wants to know.
void yk_profiler_push(const struct yoke_context *, const char *name);
void yk_profiler_pop(const struct yoke_context *);
// From the ranges of one path of scopes to those of another, within `base`, whose own stay open; *at: base at first,
// and at the end.
void yk_profiler_go(const struct yoke_context *, uint32_t base, uint32_t *at, uint32_t to);

// ---- wait.c ----

// What YOKE_SYNC asks for; EINVAL: no such thing.
int yk_sync_wanted(enum yk_sync *);
// Around what has the host wait for a device: counted, and with YOKE_SYNC=warn named, once for each place.
// why: "read"; begin gives what end takes.
uint64_t yk_wait_begin(void);
void yk_wait_end(struct yoke_context *, uint64_t began, const char *why);
void yk_waited_free(struct yk_waited *);

// Launches what is recorded and not yet launched; 0, or the error of the first that fails.  Set by plan/
// before main begins, since graph/ does not know it.
extern int (*yk_eager_hook)(struct yoke_context *);
// Every recording call asks for it before it gives a handle or assigns, if operations are evaluated eagerly.
static inline int yk_recorded(struct yoke_context *ctx)
{
	return ctx->eager ? yk_eager_hook(ctx) : 0;
}

// Enters a call on ctx from this thread: EBUSY when another thread is inside, EFORK in a forked child.
// Always paired.
int yk_enter(struct yoke_context *);
void yk_leave(struct yoke_context *);
// The same without an error: the number of the thread that is inside, 0: this one is now.
int yk_try_enter(struct yoke_context *);
int yk_fork_check(void); // EFORK in a forked child
// The calling thread's context, made if there is none; NULL with an error.
struct yoke_context *yk_current(void);

// The thread's current context, if it has one.
struct yoke_context *yk_current_or_null(void);

// A context on the dry device of this one.
struct yoke_context *yk_context_dry(struct yk_device *);

// A tensor of the innermost scope, zeroed but for ctx, scope, kind, op; NULL: no memory.
struct yk_tensor *yk_tensor_new(struct yoke_context *, int kind, int op);
void yk_tensor_free(struct yk_tensor *, enum yk_end);
// yoke_scope_begin and yoke_scope_end with the context entered: the scope's serial, 0 with an error; the innermost ends.
uintptr_t yk_scope_open(struct yoke_context *, const char *name);
int yk_scope_close(struct yoke_context *, uintptr_t serial);
// The same, and its tensors among these go to the scope around, as by yoke_lift.
int yk_scope_close_lifting(struct yoke_context *, uintptr_t serial, int n, yoke_tensor *const *);
void yk_tensors_free(struct yk_tensor **list, enum yk_end); // all of a list, which is empty then
// A handle for a pending value.
yoke_tensor *yk_handle_of(struct yoke_context *, yk_id);
// Enters the context of a handle, which is neither NULL nor YOKE_NONE: its tensor, or NULL with the error.
struct yk_tensor *yk_enter_of(const yoke_tensor *, const char *call);
// The value to use for a tensor as an operand; literals and scalars take dtype.  YK_BAD: another context,
// released, failed.
yk_id yk_value_of_any(struct yoke_context *, struct yk_tensor *, int dtype);
static inline yk_id yk_value_of(struct yoke_context *ctx, struct yk_tensor *t, int dtype)
{
	const bool pending = t->ctx == ctx && t->kind == YK_VALUE && t->id != YK_NIL && !t->storage;
	return pending ? t->id : yk_value_of_any(ctx, t, dtype);
}
// The same for a handle, which may be NULL (YK_BAD) or YOKE_NONE (YK_NIL).
yk_id yk_operand(struct yoke_context *, const yoke_tensor *, int dtype);
size_t yk_bytes_of(const struct yk_tensor *);
// The value of the seed joined with the next ordinal of the scope, and of the step, as i64 scalars.
int yk_random_key(struct yoke_context *, yk_id *key, yk_id *step);
// Copies few bytes from memory that is the caller's again at once, on the queue of the steps.
int yk_upload_to(struct yoke_context *, void *segment, uint64_t offset, const void *from, uint64_t bytes);
// Makes the tensor's pending value a root of the next evaluation.
int yk_root(struct yk_tensor *);
int yk_roots_reserve(struct yoke_context *, size_t more); // room, so that so many do not fail

// ---- history ----

enum { YK_SHORT = 256 }; // nodes that are not worth a collection

// The tensor's value is that one of the graph; YK_NIL: none.
static inline void yk_take_id(struct yk_tensor *t, yk_id id)
{
	t->ctx->holders += (id != YK_NIL) - (size_t)(t->id != YK_NIL);
	t->id = id;
}
// Is the tensor's value still to be computed?  A variable's id is the value that it was assigned, before and
// after its evaluation; once its bytes are there, `leaf` is the same value.
static inline bool yk_is_pending(const struct yk_tensor *t)
{
	if (t->kind != YK_VARIABLE)
		return t->id != YK_NIL && !t->storage;
	return t->id != YK_NIL && !(t->leaf == t->id && t->leaf_epoch == t->ctx->epoch);
}
// The value of the graph that a tensor means, or that has its bytes; YK_NIL: none.
static inline yk_id yk_version_of(const struct yk_tensor *t)
{
	return t->id == YK_NIL && t->leaf_epoch == t->ctx->epoch ? t->leaf : t->id;
}
static inline struct yk_origin yk_origin_of(const struct yk_tensor *t)
{
	return t->origin.handle ? t->origin : (struct yk_origin){ (uintptr_t)yk_handle(t), t->version };
}
// Which of its node's results a value is, as a bit; those behind the 31st share one.
static inline uint32_t yk_result_bit(const struct yk_graph *g, yk_id v)
{
	return 1u << g->value[v].nth;
}
// Are the bytes of those results there, so that none need be computed?
static inline bool yk_is_made(const struct yk_graph *g, const struct yk_node *n, uint32_t need)
{
	if (!n->done)
		return false;
	for (uint32_t i = 0; i < n->nout; i++)
		if (need & yk_result_bit(g, n->out + i) && g->value[n->out + i].made == YK_NIL)
			return false;
	return true;
}
// Empties the graph, in which no tensor has a value any more.
void yk_history_drop(struct yoke_context *);
// Drops what no tensor leads back to.
void yk_history_collect(struct yoke_context *);
static inline bool yk_history_is_long(const struct yoke_context *ctx)
{
	return ctx->graph.nodes >= 2 * ctx->collected + YK_SHORT;
}
// Notes with the leaves of the results of n nodes, ascending, the tensors that they were computed from.
int yk_past_note(struct yoke_context *, size_t n, const uint32_t *node);
void yk_past_unref(struct yk_past *); // NULL is fine
// ERELEASED where the gradient of y with respect to one of p, whose values are in, would go on behind a value
// whose history is gone, or is 0 because p has a new version.
int yk_past_check(const struct yoke_context *, yk_id y, uint32_t n, yoke_tensor *const *p, const yk_id *in);

// Blocks begin at multiples of this, in bytes; where the segment itself begins is the device's to say.
#define YK_ALIGN 256
// The largest value that the context's device can hold.
static inline uint64_t yk_largest(const struct yoke_context *ctx)
{
	return ctx->device->info.max_segment / YK_ALIGN * YK_ALIGN;
}
// Is a value of so many bytes kept in the host's memory, since the device has no allocation so large?
static inline bool yk_is_hosts(const struct yoke_context *ctx, uint64_t bytes)
{
	return ctx->device != ctx->cpu && bytes > yk_largest(ctx);
}
// A buffer for use on a queue of the context's; the CPU's, for its queue, when it is too large, or if `host`.
int yk_buffer_new(struct yoke_context *, uint64_t bytes, bool host, struct yk_queue *, struct yk_buffer **);
void yk_buffer_unref(struct yk_buffer *); // NULL is fine
// A storage with a buffer of its own.
int yk_storage_new(struct yoke_context *, uint64_t bytes, bool host, struct yk_queue *, struct yk_storage **);
static inline bool yk_lies_on_host(const struct yk_storage *s)
{
	return s->buffer && s->buffer->host;
}
// A part of a buffer, which gets a reference more.
int yk_storage_in(struct yk_buffer *, uint64_t offset, uint64_t bytes, struct yk_storage **);
// A storage without bytes gets those of an old version, which has none from then on.
void yk_storage_take(struct yk_storage *, struct yk_storage *old);
// Where its bytes are, in its block's segment.
static inline uint64_t yk_storage_at(const struct yk_storage *s)
{
	return s->buffer->block->offset + s->offset;
}
// Use of the storage on the queue of the steps is from now on behind its upload.
int yk_storage_join(struct yk_storage *);
static inline struct yk_movable yk_movable(const struct yoke_context *ctx)
{
	return (struct yk_movable){ .group = ctx, .queue = ctx->queue, .up = ctx->up };
}
void yk_storage_unref(struct yk_storage *);
static inline bool yk_is_wrapped(const struct yk_storage *s)
{
	return s->buffer && s->buffer->wrapped;
}
// Is it memory of the application's that lies anywhere, as far as a plan is to know?  On the CPU, so that one plan serves
// all addresses; other devices use what is aligned.
static inline bool yk_is_skewed(const struct yk_leaf *l)
{
	return l->kind == YK_LEAF_STORAGE && yk_is_wrapped(l->storage) && l->storage->ctx->device == l->storage->ctx->cpu;
}
// Counts what the graph alone holds by now.
static inline void yk_storage_loose(const struct yk_storage *s)
{
	if (s->refs == s->leaves) // the application wants its memory back at once
		s->ctx->loose += yk_is_wrapped(s) ? UINT32_MAX : s->bytes;
}
// A storage of the caller's memory; EUNSUPPORTED, unrecorded: the device cannot use it as it is, and
// free_fn was not called.
int yk_wrap(struct yoke_context *, int dtype, void *memory, uint64_t bytes, void (*free_fn)(void *), void *arg,
	    struct yk_storage **);
void yk_wrapped_free(struct yoke_context *, struct yk_wrapped *);

// ---- version.c: what variables mean ----

// The variable's new version is this value, of its shape and dtype.
int yk_assign(struct yk_tensor *, yk_id);
// .. that a tensor has; value NULL: a number.
int yk_assign_of(struct yk_tensor *, yk_id, const struct yk_tensor *value);
// Variables mean the versions they had: what was assigned since the last evaluation is not computed.
void yk_assign_undo(struct yoke_context *);
// The variable's version was computed: it and the value that the variable was assigned are one.
void yk_version_made(struct yk_tensor *);
// The variable is given another version: gradients by it are refused for what depends on the value it had.
void yk_version_end(struct yk_tensor *);
// The outermost scope closes: gradients taken later do not go through what was assigned in it.
void yk_versions_close(struct yoke_context *);
// The index of the leaf that has a variable's bytes, of a LEAF node or of a value that was computed; YK_NIL: none.
uint32_t yk_leaf_at(const struct yk_tensor *);
// The index of the leaf that has the bytes of a value, YK_NIL: none has.
uint32_t yk_leaf_of_value(const struct yoke_context *, yk_id);
// The storage's bytes are another version's now: values that had them would have to be computed again.
// at: one of its leaves, or YK_NIL.
void yk_leaves_forget(const struct yk_storage *, uint32_t at);
// Can a gradient be asked for this leaf?  Not once its handle is gone, or is a variable with a newer version.
bool yk_leaf_is_named(const struct yoke_context *, const struct yk_leaf *);

// ---- packs: variables that lie in one buffer ----

static inline bool yk_is_packed(const struct yk_tensor *t)
{
	return t->storage && t->storage->home == t;
}
// The version of a packed variable that is to follow, a reference, was made elsewhere: it is copied to the
// variable's place, and *version becomes a storage there.  The version that is there is overwritten if only the
// variable has it, or leaves which nothing reads any more (idle); else it is moved out.  Where that fails *version stays
// as it is.
void yk_pack_keep(struct yk_tensor *, bool idle, struct yk_storage **version);
// The tensor's bytes are this storage's, whose reference it takes.  Counts variables that leave a pack.
void yk_version_set(struct yk_tensor *, struct yk_storage *);

// The variable's new version is this storage, whose reference it takes: what was pending for it no longer is.
void yk_materialised(struct yk_tensor *variable, struct yk_storage *);

// ---- values brought up ahead of their use (ahead.c) ----

// A value of the caller's, in no scope, with room for its bytes, which are not there yet.  NULL with the error.
yoke_tensor *yk_ahead_new(struct yoke_context *, int dtype, int rank, const int64_t *dims);
// May it be filled?  False while a handle or a variable shares its bytes; else copies up go on behind what may read them.
bool yk_ahead_free(yoke_tensor *ahead);
// Begins to bring its bytes up, from memory that stays as it is until *done, a reference (NULL: it is over).
int yk_ahead_fill(yoke_tensor *ahead, const void *from, struct yk_event **done);
// Its bytes as a value of the innermost scope.
yoke_tensor *yk_ahead_share(yoke_tensor *ahead);
// .. as the new version of a variable of its shape and dtype.
int yk_ahead_put(yoke_tensor *variable, yoke_tensor *ahead);

// A value of the caller's, in no scope, of the bytes of a tensor that has such, which stay as they are and where they are
// while it is there: in the host's memory at *at.  NULL with the error.  (ahead.c)
yoke_tensor *yk_share(struct yk_tensor *, const void **at);

// ---- failures ----

// Takes what the queues keep of failures: values not known to be whole become failed.  Returns the code
// of a failure found now, or 0; leaves the thread's error alone.
int yk_settle(struct yoke_context *);
int yk_settle_at(struct yoke_context *, const char *where); // where we stand, unless a run is to blame
// Notes, for the next settling, how the uploads ended that are over, staged ones and those ahead of their use.
void yk_upload_look(struct yoke_context *);
// Waits for the run before the last, so that with the next one two are in flight; settles.
void yk_flight_wait(struct yoke_context *);
// Records a failure, for the log and for those who touch what is lost.
void yk_failure_set(struct yoke_context *, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int yk_failure_tell(struct yoke_context *); // as this thread's error; returns its code
// EFAILED: the handle's storage has failed, and why.
int yk_failure_of(const struct yk_tensor *);

#endif
