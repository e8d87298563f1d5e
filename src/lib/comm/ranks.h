// SPDX-License-Identifier: Apache-2.0
// Internal interface of ranks: groups, the state that their ranks share, and the ranks queue of a
// context.
//
// A context that is in a group has a ranks queue (context.h, YK_STREAM_RANKS). Each job in it is
// one collective or one side of a point-to-point transfer. The queue's thread, or any thread that
// waits for one of its events, advances all jobs together. Collectives of a group run in order;
// sends and receives run in order per peer and direction.
#ifndef YK_RANKS_H
#define YK_RANKS_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "comm/schedule.h"
#include "graph/context.h"
#include "yoke-dist.h"

enum { YK_TASK_TEXT = 96, YK_WHY = 400, YK_MAX_RANKS = 256 };

// Location of a job's operands and the way they are reduced: in host memory; in device memory,
// added in order T; in device memory, by the vendor library.
enum yk_by { YK_BY_HOST, YK_BY_DEVICE, YK_BY_LIBRARY };

// What a job does; shared by all launches of the same step of a plan.
struct yk_task {
	struct yoke_group *group;
	uint8_t what, kind, dtype, where; // enum yk_collective, yoke_reduce_kind, dtype, yk_by
	// or the peer of send and recv; for gather and reduce of shards: the shard alignment
	uint32_t root;
	uint32_t tensors;
	uint32_t mine; // for GATHER_SHARDS: index of the operand that is this rank's shard
	int64_t *count;            // elements of each operand (for recv: of the result)
	uint64_t hash;             // equal on ranks that run the same operation
	char text[YK_TASK_TEXT];   // "all_reduce sum f32 [1000]"
	// message-based only: created by the first job, and again for a job with another `applied`
	struct yk_schedule *schedule;
	uint8_t applied, how; // how: the algorithm of the schedule
	struct yk_native_sum *sums;   // vendor library only: the prepared sums
};
void yk_task_fini(struct yk_task *);
uint64_t yk_task_bytes(const struct yk_task *); // of all operands together

// Shard offsets: the tensors of a list, concatenated, are divided into one shard per rank. A shard
// can begin at a tensor's start and, within a tensor, at every `unit`-th element (0: only at
// starts). Shard r begins at the first such position at or after element r ceil(n / ranks). Shards
// can be empty.

int64_t yk_shard_at(uint32_t ranks, uint32_t r, int64_t unit, uint32_t tensors,
		    const int64_t *count);
// The range of elements [first, end) of the list that lies in a tensor of `count` elements
// beginning at `start`, relative to the tensor; *from == *to if there is none.
void yk_shard_overlap(int64_t first, int64_t end, int64_t start, int64_t count, int64_t *from,
		      int64_t *to);
// to[i] is x[i] with every rank's shard as in that rank's `mine`, a flat tensor of at least one
// element. to[i] may be x[i].
int yk_gather_shards(struct yoke_group *, int64_t unit, int n, yoke_tensor *const *x,
		     yoke_tensor *mine, yoke_tensor **to);

// The same if no full tensors exist yet, only shards: gathers into new tensors of these shapes, at
// most YK_GATHERED.
enum { YK_GATHERED = 24 };
struct yk_shape {
	int rank;
	int64_t dims[YOKE_MAX_RANK];
};
int yk_gather_tensors(struct yoke_group *, int64_t unit, int n, const struct yk_shape *,
		      yoke_tensor *mine, yoke_tensor **to);
// This rank's shard of the sums of x over all ranks, as a flat tensor of at least one element.
yoke_tensor *yk_reduce_shards(struct yoke_group *, int64_t unit, int n, yoke_tensor *const *x);

struct yk_course;

struct yk_result { // outcome of a job that the host waits for
	int code;
	char why[YK_WHY]; // set if code is not 0
};

enum yk_phase { YK_COMING, YK_WORKING, YK_LEAVING, YK_OVER };

struct yk_address { // a location in device memory
	void *segment;
	uint64_t offset;
};

struct yk_job {
	struct yk_job *next;
	struct yk_task *task;
	struct yk_result *result; // NULL: a failure is reported through the queue
	uint64_t number;   // in the queue, from 1
	uint64_t sequence; // among the jobs of its group that run in the same order, from 0
	uint64_t begun;    // time in nanoseconds; 0: not begun
	// when it became ready but another rank had not left an earlier job; 0: it did not wait
	uint64_t ready;
	// the transport chosen when it began
	bool (*way)(struct yk_job *, int *code, char why[YK_WHY]);
	bool warned;
	uint8_t applied;    // value of yk_adapt_how at launch
	enum yk_phase phase;
	struct yk_course *course; // message-based: its progress
	struct yk_native_course *native; // vendor library: its progress
	char *const *in, *const *out; // host addresses, stored after the job; or
	// vendor library: device locations of nin inputs, nout results and the workspace
	const struct yk_address *place;
	uint32_t nin, nout;
};

// ---- waiting ----

static inline void yk_pause(void) // for spinning threads
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

// ---- wakeups ----

// A waiting thread sleeps on its own wakeup; other ranks ring it after they change something.
// Ringing is cheap while no thread sleeps: before it sleeps, a thread registers, checks its
// condition once more, and then sleeps or deregisters. The writes before a ring and the
// reads in that check must therefore be sequentially consistent.
struct yk_wakeup {
	_Atomic uint32_t rings, sleepers;
	atomic_int refs; // others may ring after the owner has released it
};
struct yk_wakeup *yk_wakeup_new(void); // returns a reference; NULL: out of memory
void yk_wakeup_unref(struct yk_wakeup *); // NULL is allowed
void yk_wakeup_ring(struct yk_wakeup *); // NULL is allowed
// registers a sleeper; returns the number of rings so far
uint32_t yk_wakeup_register(struct yk_wakeup *);
// Sleeps until the number of rings exceeds `rings`, or until the time is over.
void yk_wakeup_sleep(struct yk_wakeup *, uint32_t rings, uint64_t nanoseconds);
void yk_wakeup_deregister(struct yk_wakeup *);

// ---- rendezvous: the state that the ranks of a group share ----

enum { YK_TEXTS = 16 }; // a rank can be this many jobs ahead of a rank that still reads its text

// Operands that a rank publishes for all others to read, in a collective of few bytes.
enum { YK_POST = 32768, YK_POST_FEW = 48 };
struct yk_post {
	_Alignas(64) _Atomic uint64_t number; // 1 + the job's sequence; written last
	uint64_t hash;
	// concatenated operands, if they fit into the number's cache line; otherwise in data
	char few[YK_POST_FEW];
	_Alignas(64) char data[YK_POST];
};

struct yk_rank_slot { // shared state of one rank
	_Alignas(128) _Atomic uint64_t arrived; // number of jobs the rank has reached
	_Atomic uint64_t left; // number of jobs after which it no longer reads other ranks' memory
	_Atomic int busy;          // reading or writing other ranks' memory
	_Atomic int gone;          // it has left the group
	_Atomic int erred; // the process fails with its own error, not one caused by another rank
	_Atomic uint64_t since;    // time of its last change, nanoseconds
	// time when it last reached a job or checked the condition it waits for, nanoseconds
	_Atomic uint64_t beat;
	struct yk_job *_Atomic job; // the current job; valid if the ranks are threads
	// for processes; on its own cache line because others read it at every change
	_Alignas(128) struct yk_wakeup wakeup;
	// of the job; written, like text, before `arrived` is incremented
	_Alignas(128) uint64_t hash;
	char text[YK_TEXTS][YK_TASK_TEXT]; // names of the last jobs
	int process, thread;       // process and thread ids of the operating system
	_Atomic uint64_t cpus; // hash of the CPU set at process start; 0: the rank has not come yet
	// hash of the only visible device; 1: several are visible; 0: not yet known
	_Atomic uint64_t sees;
	_Atomic uint64_t offer;    // native.c: hash of the library it supports; 0: not yet known
	uint64_t card;             // hash of the device it uses
	struct yk_post post[2];    // for even- and odd-numbered jobs
};

struct yk_box { // a point-to-point transfer between ranks that are threads
	struct yk_job *_Atomic job;
	_Atomic uint64_t taken;
};

// A ring buffer of messages from one rank to another: a header, then its payload padded to a
// multiple of 8 bytes.
struct yk_rank_link {
	_Alignas(64) _Atomic uint64_t head; // bytes written
	_Alignas(64) _Atomic uint64_t tail; // bytes read
	_Alignas(64) char data[];
};

struct yk_head {
	uint64_t hash, bytes, sequence;
	uint32_t group, from;
};

// Memory shared by all ranks of a group: this struct with its slots, followed by the links.
enum { YK_TUNED_SIZES = 11 }; // 256 bytes to 256 MiB, by factors of 4
enum yk_id_state { YK_ID_NONE, YK_ID_MADE, YK_ID_FAILED };
struct yk_area {
	atomic_int broken; // 1: a rank is writing the reason, 2: the reason is complete
	int code;
	char why[YK_WHY];
	uint32_t ranks, ring; // ring: bytes of a link's ring buffer
	// state of the world's id for the vendor library, enum yk_id_state
	_Atomic uint32_t id_state;
	char id[YOKE_COLLECTIVES_ID];
	// all_reduce by size: 1 + the best algorithm found by `yoke tune ranks`; 0: unknown
	uint8_t best[YK_TUNED_SIZES];
	_Alignas(128) struct yk_rank_slot slot[];
};
size_t yk_area_bytes(uint32_t ranks, uint32_t ring);
void yk_area_init(struct yk_area *, uint32_t ranks, uint32_t ring); // the memory must be zeroed

struct yk_rendezvous { // a process's view of the state that the ranks of a group share
	atomic_int refs;
	uint32_t ranks;
	bool apart;               // ranks are processes
	struct yk_area *area;
	struct yk_rank_slot *slot;
	// by rank; NULL: the rank has not joined. Counted references if ranks are threads
	struct yk_wakeup *_Atomic *wakeup;
	struct yk_box *box;       // index: from * ranks + to
	struct yk_segment *segment; // memory shared between processes; a reference
	struct yk_carrier_route *route;   // to ranks on other machines; NULL: all are on this one
	uint32_t node; // with a route: ranks per machine, if they are consecutive; else 0
	bool native;              // uses the vendor library, with this id
	char id[YOKE_COLLECTIVES_ID];
};
// returns one reference per rank; NULL: out of memory
struct yk_rendezvous *yk_rendezvous_new(uint32_t ranks);
// For a group of processes whose area exists in the segment.
struct yk_rendezvous *yk_rendezvous_apart(struct yk_segment *, struct yk_area *,
					  struct yk_wakeup *const *wakeup);
void yk_rendezvous_unref(struct yk_rendezvous *);
// The link from one rank to another, for collectives or (`sends`) point-to-point transfers.
struct yk_rank_link *yk_rendezvous_link(const struct yk_rendezvous *, bool sends, uint32_t from,
					uint32_t to);
// Makes all current and later jobs of the group fail. The first reason is kept; all ranks are
// woken.
void yk_rendezvous_break(struct yk_rendezvous *, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void yk_area_break(struct yk_area *, int code, const char *fmt, va_list);

// ---- groups ----

struct yoke_group { // a group as seen by one rank
	struct yoke_group *next; // in the queue's list
	uint64_t number; // unique in this process
	atomic_int refs; // held by the queue and by tasks
	uint32_t rank, ranks;
	struct yk_rendezvous *rendezvous;
	struct yk_ranks *queue;
	struct yoke_context *ctx;
	uint64_t jobs;            // number of collectives so far
	uint64_t others;          // number of jobs that all other ranks are known to have finished
	_Atomic uint64_t bytes;   // of tensors sent; see yoke_group_state
	uint64_t *sent, *received; // number of transfers to and from each peer
	uint64_t port; // with dist.link: until when the simulated port is busy, nanoseconds
	uint64_t pass;            // the queue's pass in which a collective blocks later ones
	uint64_t *send_pass, *recv_pass;
	struct yk_native *native; // state for the vendor library; NULL: not used
	struct yk_adapt *adapt;   // NULL: algorithms are fixed
	char name[32];
	uint32_t splits;          // number of groups split off it
};
// Joins the group in the context. Creates the context's ranks queue if it has none.
int yk_group_join(struct yoke_context *, struct yk_rendezvous *, uint32_t rank, const char *name,
		  struct yoke_group **);
struct yoke_group *yk_group_ref(uint64_t number); // NULL: no such group
void yk_group_unref(struct yoke_group *);
void yk_group_leave(struct yoke_group *); // the group is no longer used
// A rank of a group without its other ranks, for the current context, which must be dry (plans but
// does not run). Recorded ops are planned and their memory is counted. world: it becomes the
// context's world; once per rank.
struct yoke_group *yk_group_dry(uint32_t ranks, uint32_t rank, bool world);
// Sets the calling thread's world.
void yk_world_set(struct yoke_group *);

// ---- the queue ----

enum { YK_PAST = 256 }; // finished operations that a queue remembers
struct yk_past_job {
	uint64_t sequence, begun;
	int code;
	char group[32], text[YK_TASK_TEXT];
};

// Jobs that the queue's thread has not seen yet.
struct yk_ranks_inbox {
	struct yk_job *first, **end;
};

// The first failure that no event has reported.
struct yk_ranks_failure {
	uint64_t job;      // its number; 0: none
	uint64_t reported; // failures up to this job have been reported
	int code;
	char why[YK_WHY];
};

struct yk_ranks_history {
	uint64_t count; // of finished operations; the last ones are in job[]
	struct yk_past_job job[YK_PAST];
};

// Times in nanoseconds.
struct yk_ranks_timer {
	_Atomic uint64_t due;     // when the first message delayed by dist.link is due; 0: none
	uint64_t next;            // the same, as collected during the current pass
	_Atomic uint64_t watched; // when late ranks were last checked
};

struct yk_ranks {
	pthread_t thread;
	struct yoke_group *groups, *world;
	pthread_mutex_t lock; // protects inbox and failure
	struct yk_ranks_inbox inbox;
	struct yk_ranks_failure failure;
	// held by the thread that advances jobs; protects the next five members
	pthread_mutex_t drive;
	struct yk_job *active; // in order
	uint64_t pass, taken;  // taken: number of the last job moved out of the inbox
	bool waits;            // the only active job is waiting for other ranks
	struct yk_ranks_history history;
	_Atomic uint64_t enqueued, over; // job counts; all jobs up to number `over` are finished
	atomic_int helpers;      // waiting threads that advance jobs themselves
	atomic_int away;         // jobs running on a device, which rings no wakeup
	struct yk_wakeup *_Atomic wakeup; // its own, or that of the process's slot in the world
	struct yk_wakeup *own;
	struct yk_wakeup duty; // wakes the queue's thread when there is work
	struct yk_carrier *_Atomic carrier; // to ranks on other machines; NULL: all are on this one
	struct yk_ranks_timer timer;
	_Atomic uint64_t waited; // total nanoseconds that threads waited for jobs
	atomic_bool quit;
};
// Writes the context's last operations, finished and pending, oldest first, one JSON object per
// line. EIO.
int yk_ranks_record(struct yk_ranks *, const char *path);
// records a finished job
void yk_ranks_history_add(struct yk_ranks_history *, const struct yk_job *, int code);
extern const struct yoke_backend yk_ranks_table;
static inline struct yk_ranks *yk_ranks_in(const struct yoke_context *ctx)
{
	const struct yk_queue *q = ctx->stream[YK_STREAM_RANKS].queue;
	return q == ctx->queues.steps ? NULL : q->handle;
}
// Enqueues a job of the task. in and out are host addresses.
int yk_ranks_add(struct yk_ranks *, struct yk_task *, uint32_t nin, char *const *in, uint32_t nout,
		 char *const *out);
// The same, and waits for it. The outcome goes to *result and does not count as a failure of the
// queue.
int yk_ranks_do(struct yk_ranks *, struct yk_task *, uint32_t nin, char *const *in, uint32_t nout,
		char *const *out, struct yk_result *result);
// The same for operands on the device: place[0 .. nin + nout] are inputs, results and the
// workspace.
int yk_ranks_add_device(struct yk_ranks *, struct yk_task *, uint32_t nin, uint32_t nout,
			const struct yk_address *);
void yk_ranks_wait(struct yk_ranks *, uint64_t job);
void *yk_ranks_serve(void *queue); // the queue thread's function; returns after yk_ranks_quit
// whether waiting threads may advance jobs themselves
bool yk_ranks_is_open(const struct yk_ranks *);
bool yk_ranks_help(struct yk_ranks *); // advances jobs as far as possible; false: nothing to do now
void yk_ranks_quit(struct yk_ranks *); // ends the queue's thread
// Breaks all groups of the context.
void yk_ranks_break(struct yk_ranks *, int code, const char *why);
// Collectives that host code runs itself; returns the job's error.
int yk_task_do(struct yk_task *, void *in, void *out); // at most one tensor; sets the task's name
// Sends host memory to one rank, which must receive the same number of bytes; broadcasts it from
// `root`.
int yk_group_send(struct yoke_group *, uint32_t to, const void *data, size_t bytes);
int yk_group_recv(struct yoke_group *, uint32_t from, void *data, size_t bytes);
int yk_group_broadcast(struct yoke_group *, uint32_t root, void *data, size_t bytes);

int yk_ranks_devices(void); // number of devices equivalent to the best one, or an error
uint64_t yk_ranks_timeout(void); // dist.timeout, in nanoseconds
uint64_t yk_ranks_warn(void);    // dist.warn

// Sets the task's hash and text; all other members must be set.
void yk_task_name(struct yk_task *, const struct yoke_view *first);

// ---- shared memory ----

// Advances a job; returns true if anything changed. At the end phase is OVER, and *code and why
// hold the outcome.
bool yk_shared_advance(struct yk_job *, int *code, char why[YK_WHY]);
// Returns true if the job's group is broken; the job is over once no rank accesses its memory any
// more.
bool yk_job_broken(struct yk_job *, int *code, char why[YK_WHY]);
void yk_job_arrive(struct yk_job *, uint64_t now); // marks that its rank has reached the job
void yk_job_sent(const struct yk_job *); // counts the bytes that other ranks read from this one
// breaks the group because that rank has left
void yk_job_peer_left(const struct yk_job *, uint32_t other);
// Breaks the group because rank `other` runs a different operation.
void yk_job_disagrees(const struct yk_job *, uint32_t other, const char *text);
// Logs which ranks are late, or breaks the group after dist.timeout.
void yk_job_watch(struct yk_job *);

// ---- small operands ----

// Whether a task is executed by posting its operands, unless a setting selects another way.
bool yk_post_takes(const struct yk_task *);
// See yk_shared_advance.
bool yk_post_advance(struct yk_job *, int *code, char why[YK_WHY]);

// ---- messages ----

// The setting dist.algorithm; "" by default.
const char *yk_ranks_algorithm(void);
// The setting dist.link: latency in seconds and seconds per byte. False: messages are not delayed.
// A malformed setting makes joining a group fail with EINVAL.
bool yk_ranks_link(double *alpha, double *beta);
// See yk_shared_advance; executes the schedule over the links.
bool yk_message_advance(struct yk_job *, int *code, char why[YK_WHY]);
void yk_course_free(struct yk_course *); // NULL is allowed

#endif
