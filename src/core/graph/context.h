// SPDX-License-Identifier: Apache-2.0
// Contexts: a device with its queues, the graph of recorded operations, and the handles that refer
// to its values.  Evaluated nodes stay in the graph while handles refer to them (history.c).  Each
// root of an evaluation leaves a reference-counted storage in a block of the pool.
#ifndef YK_CONTEXT_H
#define YK_CONTEXT_H

#include "base/arena.h"
#include "device/device.h"
#include "device/pool.h"
#include "graph/op.h"
#include "graph/slot.h"

// Streams of a context: the queues on which a plan's steps run.  A step names its stream and the
// steps of other streams that it waits for; a stream's steps run in order.  Memory belongs to the
// device or to the CPU.  RANKS runs collectives, on memory of the host or of the device
// (device_ranks); it uses the device's queue until the context joins a group.
enum yk_stream_id {
	YK_STREAM_DEVICE,
	YK_STREAM_CPU,
	YK_STREAM_UP,
	YK_STREAM_DOWN,
	YK_STREAM_RANKS,
	YK_STREAMS
};
struct yk_stream {
	struct yk_device *device;
	struct yk_queue *queue;
};

// A block shared by storages, each with its own range. When the last storage is freed, the block
// returns to the pool in the order of the queue.
struct yk_buffer {
	uint32_t refs;
	bool host;                  // in CPU memory: too large for the device, or by yoke_place
	struct yk_block *block;     // compaction replaces it
	struct yk_wrapped *wrapped; // caller's memory, never written; NULL: memory of the pool
	struct yoke_context *ctx;
};

// The bytes of one materialised value, row-major without gaps.
struct yk_storage {
	uint32_t refs, leaves; // references; how many of them leaves of the graph hold
	int failed;        // 0, or the error code of the operation that should have written it
	uint32_t failure;  // number of that failure
	uint64_t written[YK_STREAMS]; // by stream: number of the event that completes it; valid
				      // once all succeeded.  0: the stream does not write it
	struct yk_event *up; // of the upload, until the queue of the steps waits for it
	uint32_t leaf_index; // index of its first leaf, while a plan key is computed
	struct yk_buffer *buffer; // a reference; NULL once another version took its bytes
	uint64_t offset, bytes;   // in the buffer
	const struct yk_tensor *home; // the packed variable that owns this range (pack.c), or NULL
	struct yoke_context *ctx;
};

enum yk_leaf_kind { YK_LEAF_STORAGE, YK_LEAF_SCALAR, YK_LEAF_SEED, YK_LEAF_STEP };

// The value of a LEAF or SCALAR node, whose attribute is the index of this entry.  Plans read it at
// launch.
struct yk_leaf {
	uint8_t kind;
	uint8_t dtype;
	yk_id id;
	struct yk_storage *storage;   // a reference
	struct yk_tensor *variable;   // the variable whose current version it is, or NULL
	struct yk_tensor *scalar;     // read at launch; NULL: freed, bits has its number
	uint64_t ordinal;             // SEED: ordinal of the random call
	uint64_t bits;                // the fixed number; SEED: the key
	const yoke_tensor *handle;    // STORAGE: its handle; compared, never followed
	struct yk_past *past;         // STORAGE: gradients refused through it, or NULL
	struct yk_moved *moved;       // STORAGE: copied from another context, or NULL (move.c)
	bool shared;                  // STORAGE: of several variables: never overwritten
	bool frozen;                  // SCALAR, SEED, STEP: already read, so it keeps `bits`
	uint16_t op;                  // the op that made it
	uint32_t path;
	uint32_t former;              // previous leaf of the same tensor, or YK_NIL
};

// Pinned host memory for an upload to the device; reused once its event has completed.
struct yk_staging {
	struct yk_block *block;
	struct yk_event *event;
	uint64_t marks; // events on the queue of the steps when the upload was enqueued
};

// Prefetch: an asynchronous upload from the caller's memory.  The last YK_AHEAD are remembered.
enum { YK_AHEAD = 4 };
struct yk_prefetch {
	struct yk_event *event;
	uint64_t marks; // as above
};

// A launched evaluation that may still be running.
struct yk_flight {
	struct yk_event *done[YK_STREAMS]; // after it on each queue; NULL: none, or failed
	uint64_t serial, number; // of the event on the queue of the steps; of the evaluation
	size_t steps;
	uint16_t op[2];    // of the first and last step
	uint32_t scope[2];
};

// The latest failure; values lost with it hold its number.
struct yk_failure {
	uint32_t number;
	int code;
	bool reported;      // some call has returned it
	bool variables; // variables are lost with it
	char text[1800];
};

// A value of the graph that was a version of a variable.
struct yk_former {
	yk_id value;
	const yoke_tensor *variable; // compared, never followed
};

// The setting of yoke_autocast.
struct yk_autocast {
	uint8_t dtype;    // f16 or bf16; 0: off
	bool kept;        // the current scope, path, matches a pattern and stays in f32
	uint32_t path;
	uint32_t matched; // bit i: pattern i matched a scope
	char *keep;       // the patterns, on the heap; or NULL
};

struct yk_scope {
	uintptr_t serial; // the serial that the caller was given
	struct yk_scope *parent;
	struct yk_tensor *handles;
	uint32_t path;
	uint32_t depth;            // 1: the outermost
	bool casts;                // the scope changed the autocast setting
	struct yk_autocast former; // with `casts`: the setting before the scope
};

// Kinds of work that observers are notified of.
enum yk_work_kind { YK_WORK_STEP, YK_WORK_UP, YK_WORK_DOWN, YK_WORK_WAIT, YK_WORK_PLAN };

// Called in pairs around each unit of work, on the thread that does it; units do not nest.  UP and
// DOWN are copies between host and device, WAIT waits for an earlier launch, PLAN makes a plan.
struct yk_plan;
struct yk_observer {
	struct yk_observer *next; // the context's list
	void (*begin)(struct yk_observer *, struct yk_queue *);
	// STEP: this step of the plan was run or enqueued; UP, DOWN: this many bytes, of the
	// storage ctx->uploads.moved
	void (*end)(struct yk_observer *, struct yk_queue *, enum yk_work_kind,
		    const struct yk_plan *, uint64_t step_or_bytes);
	// A profiler range of the application begins or ends; may be NULL.
	void (*range)(struct yk_observer *, uint32_t path, bool begins);
	bool times; // needs the time of each step, so steps are launched one by one; else the end
		    // calls of steps launched together follow each other
};

// Counts since the context was made, beside yoke_stats.
struct yk_counts {
	uint64_t copies_up, copies_down;
	uint64_t waits, wait_ns; // the host's waits for a device
	uint64_t idle_ns;        // time without work, while a profile was active
	bool idle_known;         // a profile was active, so idle_ns is valid
};

enum yk_sync { YK_SYNC_NO, YK_SYNC_STEPS, YK_SYNC_WARN }; // YOKE_SYNC

// The threads that use the context, and its reference count (lifetime.c).
struct yk_access {
	atomic_int owner;   // number of the thread inside a call, 0: none
	unsigned callbacks; // running callbacks of custom ops; their thread may enter and record
	atomic_uint refs;   // held by the application, until it frees the context, and by profiles
	bool ended;         // freed by the application: only the struct remains
	// the following are protected by the lock of the list of contexts
	struct yoke_context *next;
	int user;           // number of the thread that made it or made it current last
	int maker;          // number of the thread whose end frees it, 0: none
	uint64_t used;      // rank in the order of such uses
};

// The queues of the streams (lifetime.c); all are the same queue when the device is the CPU.
struct yk_queues {
	struct yk_queue *steps, *cpu, *up, *down; // up, down: copies to and from the device
	bool device_ranks; // collectives use the device's memory, except sends
};

// Scopes, open and ended (scope.c).
struct yk_scopes {
	struct yk_scope *innermost; // NULL: none
	struct yk_scope *idle;      // ended scopes, for reuse
	struct yk_paths paths;
	uintptr_t serial;           // of the scope opened last
	uint32_t opening;           // incremented when an outermost scope opens or a seed is set
	uint32_t outermost;         // number of outermost scopes opened
};

// Evaluated nodes that stay in the graph, and when they are dropped (history.c).
struct yk_graph_history {
	uint32_t epoch;        // incremented when the graph is emptied
	size_t holders;        // tensors that have an id
	size_t leftover;       // nodes that the last evaluation left pending
	size_t grown;          // nodes that were new to the last evaluation
	size_t collected;      // nodes in the graph after the last collection
	// nodes that a step adds before the graph is emptied: a maximum that decays
	size_t emptied;
	uint64_t loose, bound; // bytes newly held by the graph alone; limit for a collection
	struct yk_former *former; // earlier values of variables
	size_t formers, former_cap;
};

// The context's tensors (handle.c).
struct yk_handles {
	struct yk_tensor *list;  // tensors that no scope owns
	struct yk_tensor *free;  // free slots for new tensors
	uint64_t live;
	yoke_tensor **deferred;  // handles that the next call frees; protected by the table's lock
	size_t deferred_cap;
	atomic_size_t deferrals;
	struct yk_arena names;   // names of variables
};

// Counts that are warned about once, and their limits (tensor.c).
struct yk_pileup {
	uint64_t unscoped, max_unscoped; // tensors in no scope, except variables; 0: no limit
	size_t max_nodes;                // pending nodes
	uint64_t held_bytes;             // of versions that only leaves hold
	bool nodes_logged;
	bool handles_logged;             // handles or scopes accumulate
};

struct yk_leaves { // leaf.c
	struct yk_leaf *at;
	size_t n, cap;
	size_t copies; // leaves that were copied from other contexts
};

// State of random numbers (leaf.c).
struct yk_random {
	uint64_t seed;
	int64_t step;
	uint32_t setting;    // incremented when the seed and step are set
	yk_id step_leaf;     // leaf of `step`, valid while step_epoch equals history.epoch
	uint32_t step_epoch;
	uint32_t drawn;      // randomly initialized parameters since the seed was set; each is
			     // drawn in its own scope
};

// The roots of the next evaluation, and the variables that it assigns.
struct yk_pending_roots {
	struct yk_tensor **root; // handles whose pending values are roots; NULL: freed (tensor.c)
	size_t roots, root_cap;
	yoke_tensor **assigned;  // variables assigned in the open outermost scope (version.c)
	size_t nassigned, assigned_cap;
};

// Uploads that may still be running (leaf.c, ahead.c).
struct yk_uploads {
	struct yk_staging staging[4];     // used in turn
	uint32_t staged;
	struct yk_prefetch ahead[YK_AHEAD];  // used in turn
	uint32_t aheads;
	struct yk_event *joined;          // the last upload that the queue of the steps waits for
	const struct yk_storage *moved;   // the storage filled by the upload that just ended
};

// Launched evaluations, at most two in flight (failure.c).
struct yk_flights {
	struct yk_flight last[2]; // used in turn
	uint64_t n;
	uint64_t good_uploads;    // launches up to this event read only good uploads
	uint64_t good_others;     // launches up to this event: other streams' results are good
};

// How the context evaluates.
struct yk_mode {
	bool eager;       // operations are launched as they are recorded
	size_t launched;  // eager: number of nodes launched so far (plan/eager.c)
	bool dry;         // on dry devices: launches allocate memory but run no step; all values
			  // are zeros
	bool stale;       // eager: a number that launched steps read was changed on the host
	bool shapes_vary; // shapes vary with the data: no warnings about new plans
};

// Call sites, observers and profiler ranges (observe.c, wait.c, profiler.c).
struct yk_observation {
	struct yk_sites sites;        // call sites in the application, if traced
	bool traced;
	enum yk_sync sync;
	struct yk_waited *waited;     // call sites that YOKE_SYNC=warn has reported
	struct yk_observer *first;    // list of observers, NULL: none
	struct yk_paths ranges;       // paths of profiler ranges, like those of scopes
	struct yk_range_open *range;  // innermost open range, or NULL
	const struct yoke_ranges_ext *profiler; // the vendor's profiler interface, NULL: not used
	const struct yk_node *making; // the node whose result is being allocated
};

// Casts of variables that are kept beyond the evaluation that computed them.
struct yk_casts {
	yoke_tensor **held;
	size_t n, cap, next; // next: index after the last one used
};

struct yk_autocasting { // autocast.c
	struct yk_autocast setting;
	struct yk_casts casts;
};

struct yoke_context {
	struct yk_access access;
	struct yk_device *device, *cpu;
	struct yk_stream stream[YK_STREAMS];
	struct yk_queues queues;
	struct yk_graph graph;
	struct yk_graph_history history;
	struct yk_scopes scopes;
	struct yk_handles handles;
	struct yk_pileup warn;
	struct yk_leaves leaves;
	struct yk_random random;
	struct yk_autocasting autocast;
	struct yk_pending_roots pending;
	struct yk_uploads uploads;
	struct yk_flights flights;
	struct yk_failure failure;
	struct yk_mode mode;
	struct yk_observation observe;
	struct yk_planner *planner; // plan/'s state, made at the first evaluation
	void (*planner_free)(struct yk_planner *); // frees it; set together with it
	struct yoke_stats stats;
	struct yk_counts counts;
};

// A reference keeps the struct after the context is freed, so that its holder can see that it
// ended.
struct yoke_context *yk_context_ref(struct yoke_context *);
void yk_context_unref(struct yoke_context *);

// ---- observe.c ----

void yk_observer_add(struct yoke_context *, struct yk_observer *);
// an observer that is not in the list is ignored
void yk_observer_remove(struct yoke_context *, struct yk_observer *);
void yk_observers_begin(struct yoke_context *, struct yk_queue *);
void yk_observers_end(struct yoke_context *, struct yk_queue *, enum yk_work_kind,
		      const struct yk_plan *, uint64_t step_or_bytes);
// Does an observer time each step?
bool yk_is_timed(const struct yoke_context *);

static inline void yk_work_begin(struct yoke_context *ctx, struct yk_queue *q)
{
	if (ctx->observe.first)
		yk_observers_begin(ctx, q);
}

static inline void yk_work_end(struct yoke_context *ctx, struct yk_queue *q,
			       enum yk_work_kind kind, const struct yk_plan *p,
			       uint64_t step_or_bytes)
{
	if (ctx->observe.first)
		yk_observers_end(ctx, q, kind, p, step_or_bytes);
}

// Profiler ranges affect nothing else: neither scope paths nor plans nor random numbers.  0 or the
// error; `pop` without an open range is EINVAL.
struct yk_range_open {
	struct yk_range_open *outer;
	uint32_t path;
};
int yk_range_push(struct yoke_context *, const char *name);
int yk_range_pop(struct yoke_context *);
void yk_ranges_fini(struct yoke_context *);
// The deepest path that contains both, or is one of them (path.c).
uint32_t yk_path_common(const struct yk_paths *, uint32_t a, uint32_t b);

// ---- profiler.c ----

// Looks up the backend's interface to its vendor's profiler, if profiling is enabled.
void yk_profiler_open(struct yoke_context *);
// A range of this thread; does nothing without a profiler.
void yk_profiler_push(const struct yoke_context *, const char *name);
void yk_profiler_pop(const struct yoke_context *);
// Pops and pushes ranges to go from one scope path to another, within `base`, whose own ranges stay
// open.  *at is the current path: base at the start and at the end.
void yk_profiler_go(const struct yoke_context *, uint32_t base, uint32_t *at, uint32_t to);

// ---- wait.c ----

// The setting YOKE_SYNC; EINVAL: an unknown value.
int yk_sync_setting(enum yk_sync *);
// Around each wait of the host for a device: counted, and with YOKE_SYNC=warn logged once per call
// site.  why: a word such as "read".  begin returns the value that end takes.
uint64_t yk_wait_begin(void);
void yk_wait_end(struct yoke_context *, uint64_t began, const char *why);
void yk_waited_free(struct yk_waited *);

// Launches the recorded operations that are not yet launched; 0, or the first error.  plan/ sets it
// before main begins, since graph/ does not depend on plan/.
extern int (*yk_eager_hook)(struct yoke_context *);
// Every recording call runs this before it returns a handle or assigns; it launches in eager mode.
static inline int yk_recorded(struct yoke_context *ctx)
{
	return ctx->mode.eager ? yk_eager_hook(ctx) : 0;
}

// Enters a call on ctx from this thread: EBUSY when another thread is inside, EFORK in a forked
// child.  Each successful enter needs one leave.
int yk_enter(struct yoke_context *);
void yk_leave(struct yoke_context *);
// The same without an error: 0, or the number of the thread that is inside.
int yk_try_enter(struct yoke_context *);
int yk_fork_check(void); // EFORK in a forked child
// The calling thread's context, created on first use; NULL with an error.
struct yoke_context *yk_current(void);

// The thread's current context, if it has one.
struct yoke_context *yk_current_or_null(void);

// Is it a context, dry or not, on this device?
bool yk_context_has(const struct yoke_context *, const struct yk_device *);
// The thread's context on a device: its current one, else the one it used last there, else a new
// one that ends with the thread.  NULL with the error.
struct yoke_context *yk_context_on(struct yk_device *, bool dry);
// A context on the dry counterpart of this device.
struct yoke_context *yk_context_dry(struct yk_device *);

// A tensor of the innermost scope, zeroed except ctx, scope, kind, op; NULL: no memory.
struct yk_tensor *yk_tensor_new(struct yoke_context *, int kind, int op);
void yk_tensor_free(struct yk_tensor *, enum yk_end);
// yoke_scope_begin and yoke_scope_end inside the context: open returns the serial, 0 with an error;
// close ends the innermost.
uintptr_t yk_scope_open(struct yoke_context *, const char *name);
int yk_scope_close(struct yoke_context *, uintptr_t serial);
// The same, but moves these tensors, where the scope owns them, to the parent scope, like
// yoke_lift.
int yk_scope_close_lifting(struct yoke_context *, uintptr_t serial, int n, yoke_tensor *const *);
// all of a list, which is empty afterwards
void yk_tensors_free(struct yk_tensor **list, enum yk_end);
// A handle for a pending value.
yoke_tensor *yk_handle_of(struct yoke_context *, yk_id);
// Enters the context of a handle, which is neither NULL nor YOKE_NONE.  Returns its tensor, or NULL
// with the error.
struct yk_tensor *yk_enter_of(const yoke_tensor *, const char *call);
// The value that stands for a tensor as an operand; literals and scalars take `dtype`.  YK_BAD: the
// tensor is of another context, released or failed.
yk_id yk_value_of_any(struct yoke_context *, struct yk_tensor *, int dtype);
static inline yk_id yk_value_of(struct yoke_context *ctx, struct yk_tensor *t, int dtype)
{
	const bool pending = t->ctx == ctx && t->kind == YK_VALUE && t->id != YK_NIL && !t->storage;
	return pending ? t->id : yk_value_of_any(ctx, t, dtype);
}
// The same for a handle, which may be NULL (YK_BAD) or YOKE_NONE (YK_NIL).
yk_id yk_operand(struct yoke_context *, const yoke_tensor *, int dtype);
size_t yk_bytes_of(const struct yk_tensor *);
// As i64 scalars: the seed combined with the scope's next ordinal, and the step.
int yk_random_key(struct yoke_context *, yk_id *key, yk_id *step);
// Copies a few bytes on the queue of the steps; the caller may reuse `from` at once.
int yk_upload_to(struct yoke_context *, void *segment, uint64_t offset, const void *from,
		 uint64_t bytes);
// Makes the tensor's pending value a root of the next evaluation.
int yk_root(struct yk_tensor *);
// reserves space, so that the next `more` roots cannot fail
int yk_roots_reserve(struct yoke_context *, size_t more);

// A value of the current context, in its innermost scope, from host memory; data NULL: zeros.
yoke_tensor *yk_value_from(int dtype, int rank, const int64_t *dims, const void *data);

// ---- move.c: values copied from one context to another ----

// The link from a copy to its source, which gradients follow.  Tensors and leaves of the copy's
// context hold references to it.
struct yk_moved {
	atomic_uint refs;
	bool own;            // the link owns the source's handle
	uint32_t version;    // of a source that is a variable
	uint64_t serial;     // ascending in time: a source's own moves have lower numbers
	// the application's handle of a value without history, or one of its own
	yoke_tensor *source;
};
struct yk_moved *yk_moved_ref(struct yk_moved *); // NULL is fine
void yk_moved_unref(struct yk_moved *);
// Can a gradient continue from the copy to its source?
bool yk_moved_lives(const struct yk_moved *);
// A copy of an evaluated or pending value in another context, of its innermost scope; evaluates and
// waits.
yoke_tensor *yk_move(yoke_tensor *, struct yoke_context *to);

// ---- gradients (record_list.c, across.c) ----

// The gradients of m values, given their cotangents (NULL: 1), by n values: p are the handles of
// `in`, for checks; NULL: stands for all values moved from other contexts.  An entry without a
// gradient becomes YK_NIL.
int yk_gradients(struct yoke_context *, int m, const yk_id *y, const yk_id *cot, int n,
		 yoke_tensor *const *p, const yk_id *in, yk_id *out);
// Does the gradient of y by p go through yoke_to?
bool yk_crosses(int m, yoke_tensor *const *y, int n, yoke_tensor *const *p);
// yoke_grad_from for that case; cot NULL: 1.
int yk_grad_across(int m, yoke_tensor *const *y, yoke_tensor *const *cot, int n,
		   yoke_tensor *const *p, yoke_tensor **g);

// ---- history ----

enum { YK_SHORT = 256 }; // a growth by fewer nodes is not worth a collection

// Sets the value of the graph that the tensor refers to; YK_NIL: none.
static inline void yk_take_id(struct yk_tensor *t, yk_id id)
{
	t->ctx->history.holders += (id != YK_NIL) - (size_t)(t->id != YK_NIL);
	t->id = id;
}
// Is the tensor's value still to be computed?  A variable's id is the value that it was assigned,
// before and after its evaluation; once the bytes exist, `leaf` is the same value.
static inline bool yk_is_pending(const struct yk_tensor *t)
{
	if (t->kind != YK_VARIABLE)
		return t->id != YK_NIL && !t->storage;
	return t->id != YK_NIL && !(t->leaf == t->id && t->leaf_epoch == t->ctx->history.epoch);
}
// The value of the graph that a tensor refers to, or whose bytes it has; YK_NIL: none.
static inline yk_id yk_version_of(const struct yk_tensor *t)
{
	return t->id == YK_NIL && t->leaf_epoch == t->ctx->history.epoch ? t->leaf : t->id;
}
// The bit of a value among its node's results; results after the 31st share one.
static inline uint32_t yk_result_bit(const struct yk_graph *g, yk_id v)
{
	return 1u << g->value[v].nth;
}
// Do the bytes of those results exist already?
static inline bool yk_is_made(const struct yk_graph *g, const struct yk_node *n, uint32_t need)
{
	if (!n->done)
		return false;
	for (uint32_t i = 0; i < n->nout; i++)
		if (need & yk_result_bit(g, n->out + i) && g->value[n->out + i].made == YK_NIL)
			return false;
	return true;
}
// Empties the graph; no tensor may have a value in it.
void yk_history_drop(struct yoke_context *);
// Drops nodes that no tensor reaches.
void yk_history_collect(struct yoke_context *);
// Does no tensor refer to the graph, and no collective wait in it?  Then yk_leave empties it.
static inline bool yk_history_is_unused(const struct yoke_context *ctx)
{
	return !ctx->history.holders && !ctx->graph.owed;
}
static inline bool yk_history_is_long(const struct yoke_context *ctx)
{
	const struct yk_graph_history *h = &ctx->history;
	return ctx->graph.nodes >=
	       2 * (h->collected > h->emptied ? h->collected : h->emptied) + YK_SHORT;
}
// Records, in the leaves of the results of n nodes (ascending), the tensors from which they were
// computed.
int yk_past_note(struct yoke_context *, size_t n, const uint32_t *node);
void yk_past_unref(struct yk_past *); // NULL is fine
// The nodes, up to this one, that its gradient reaches, one byte each; the caller frees it.  NULL:
// no memory.
uint8_t *yk_reached(const struct yk_graph *, uint32_t node);
// ERELEASED where the gradient of y by one of p (values `in`) would pass through a value whose
// history was dropped, or would be 0 only because p has a new version.
int yk_past_check(const struct yoke_context *, yk_id y, uint32_t n, yoke_tensor *const *p,
		  const yk_id *in);

// Blocks begin at multiples of this, in bytes, within a segment; the device aligns the segment
// itself.
#define YK_ALIGN 256
// The largest value, in bytes, that the context's device can hold.
static inline uint64_t yk_largest(const struct yoke_context *ctx)
{
	return ctx->device->info.max_segment / YK_ALIGN * YK_ALIGN;
}
// Is a value of this size kept in host memory because it exceeds the device's largest allocation?
static inline bool yk_is_hosts(const struct yoke_context *ctx, uint64_t bytes)
{
	return ctx->device != ctx->cpu && bytes > yk_largest(ctx);
}
// A buffer for use on a queue of the context; in CPU memory, for the CPU's queue, if too large or
// if `host`.
int yk_buffer_new(struct yoke_context *, uint64_t bytes, bool host, struct yk_queue *,
		  struct yk_buffer **);
void yk_buffer_unref(struct yk_buffer *); // NULL is fine
// A storage with its own buffer.
int yk_storage_new(struct yoke_context *, uint64_t bytes, bool host, struct yk_queue *,
		   struct yk_storage **);
static inline bool yk_lies_on_host(const struct yk_storage *s)
{
	return s->buffer && s->buffer->host;
}
// A storage in a range of a buffer, of which it takes a reference.
int yk_storage_in(struct yk_buffer *, uint64_t offset, uint64_t bytes, struct yk_storage **);
// Moves the bytes of an old version to a storage without bytes; the old one has none afterwards.
void yk_storage_take(struct yk_storage *, struct yk_storage *old);
// The offset of its bytes in its block's segment.
static inline uint64_t yk_storage_at(const struct yk_storage *s)
{
	return s->buffer->block->offset + s->offset;
}
// Makes later work on the queue of the steps wait for the storage's upload.
int yk_storage_join(struct yk_storage *);
static inline struct yk_movable yk_movable(const struct yoke_context *ctx)
{
	return (struct yk_movable){ .group = ctx,
				    .queue = ctx->queues.steps,
				    .up = ctx->queues.up };
}
void yk_storage_unref(struct yk_storage *);
static inline bool yk_is_wrapped(const struct yk_storage *s)
{
	return s->buffer && s->buffer->wrapped;
}
// May it be application memory of any alignment?  True for wrapped memory on the CPU, so that one
// plan serves all addresses; other devices use only aligned memory.
static inline bool yk_is_skewed(const struct yk_leaf *l)
{
	return l->kind == YK_LEAF_STORAGE && yk_is_wrapped(l->storage) &&
	       l->storage->ctx->device == l->storage->ctx->cpu;
}
// Counts bytes that only the graph still holds.
static inline void yk_storage_loose(const struct yk_storage *s)
{
	if (s->refs == s->leaves) // the application wants its memory back at once
		s->ctx->history.loose += yk_is_wrapped(s) ? UINT32_MAX : s->bytes;
}
// A storage on the caller's memory.  EUNSUPPORTED, not recorded as an error: the device cannot use
// the memory directly; free_fn was not called.
int yk_wrap(struct yoke_context *, int dtype, void *memory, uint64_t bytes, void (*free_fn)(void *),
	    void *arg, struct yk_storage **);
void yk_wrapped_free(struct yoke_context *, struct yk_wrapped *);

// ---- version.c: versions of variables ----

// Makes this value, of the variable's shape and dtype, its new version.
int yk_assign(struct yk_tensor *, yk_id);
// The same for a tensor's value; value NULL: a number.
int yk_assign_of(struct yk_tensor *, yk_id, const struct yk_tensor *value);
// Restores the versions of variables: assignments since the last evaluation are dropped.
void yk_assign_undo(struct yoke_context *);
// The variable's version was computed: its storage is now the assigned value.
void yk_version_made(struct yk_tensor *);
// The variable gets another version: gradients by it are refused for values that depend on the old
// one.
void yk_version_end(struct yk_tensor *);
// The outermost scope closes: later gradients do not pass through assignments made in it.
void yk_versions_close(struct yoke_context *);
// The index of the leaf with a variable's bytes, of a LEAF node or of a computed value; YK_NIL:
// none.
uint32_t yk_leaf_at(const struct yk_tensor *);
// The index of the leaf with a value's bytes; YK_NIL: none.
uint32_t yk_leaf_of_value(const struct yoke_context *, yk_id);
// The storage's bytes now belong to another version: values that had them would have to be
// recomputed.  at: one of its leaves, or YK_NIL.
void yk_leaves_forget(const struct yk_storage *, uint32_t at);
// Can a gradient be requested for this leaf?  Not once its handle is freed, or is a variable with a
// newer version.
bool yk_leaf_is_named(const struct yoke_context *, const struct yk_leaf *);

// ---- packs: variables that lie in one buffer ----

static inline bool yk_is_packed(const struct yk_tensor *t)
{
	return t->storage && t->storage->home == t;
}
// The next version of a packed variable, a reference, was made elsewhere: copies it to the
// variable's range of the pack and replaces *version by a storage there.  The current version is
// overwritten if only the variable holds it, or only leaves that nothing reads any more (idle);
// otherwise it is moved out first.  If that fails *version stays.
void yk_pack_keep(struct yk_tensor *, bool idle, struct yk_storage **version);
// Sets the tensor's storage and takes the reference.  Counts variables that leave a pack.
void yk_version_set(struct yk_tensor *, struct yk_storage *);

// Makes this storage the variable's new version, takes the reference, and cancels its pending
// assignment.
void yk_materialised(struct yk_tensor *variable, struct yk_storage *);

// ---- prefetched values (ahead.c) ----

// A value that the caller owns, in no scope: memory is allocated, the contents are not yet defined.
// NULL with the error.
yoke_tensor *yk_prefetch_new(struct yoke_context *, int dtype, int rank, const int64_t *dims);
// May it be refilled?  False while a handle or a variable shares its bytes; else later uploads wait
// for possible readers.
bool yk_prefetch_free(yoke_tensor *ahead);
// Starts the upload from memory that must stay unchanged until *done, a reference (NULL: finished
// already).
int yk_prefetch_fill(yoke_tensor *ahead, const void *from, struct yk_event **done);
// Its bytes as a value of the innermost scope.
yoke_tensor *yk_prefetch_share(yoke_tensor *ahead);
// Its bytes as the new version of a variable of the same shape and dtype.
int yk_prefetch_put(yoke_tensor *variable, yoke_tensor *ahead);

// A value that the caller owns, in no scope, on the bytes of a materialised tensor.  While it
// exists, these stay unchanged in host memory at *at.  NULL with the error.  (ahead.c)
yoke_tensor *yk_share_bytes(struct yk_tensor *, const void **at);

// ---- failures ----

// Collects failures from the queues: values not known to be good become failed.  Returns the code
// of a failure found now, or 0; does not touch the thread's error.
int yk_settle(struct yoke_context *);
// named in the message unless a run caused it
int yk_settle_at(struct yoke_context *, const char *where);
// Notes, for the next yk_settle, the outcome of finished uploads, staged and prefetched.
void yk_upload_poll(struct yoke_context *);
// Waits for the evaluation before the last, so that at most two are in flight with the next one;
// settles.
void yk_flight_wait(struct yoke_context *);
// Records a failure, for the log and for calls that later use lost values.
void yk_failure_set(struct yoke_context *, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int yk_failure_report(struct yoke_context *); // sets this thread's error; returns its code
// EFAILED, with the reason, if the handle's storage has failed.
int yk_failure_of(const struct yk_tensor *);

#endif
