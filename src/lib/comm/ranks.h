// SPDX-License-Identifier: Apache-2.0
// Ranks inside: groups, what they share, and the ranks queue of a context.
//
// A context that is in a group has a ranks queue (context.h, YK_SLOT_RANKS): a list of jobs, each of which is one
// collective, or one end of a send.  A thread of the queue's own, or whoever waits for an event of it, moves all
// jobs on together.  Jobs of a group are done in order, sends and receives in order for each peer and direction.
#ifndef YK_RANKS_H
#define YK_RANKS_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "comm/schedule.h"
#include "graph/context.h"
#include "yoke-dist.h"

enum { YK_TASK_TEXT = 96, YK_WHY = 400, YK_MAX_RANKS = 256 };

// Where operands are: in the host's memory; or the device's, where ranks add in order T, or their library does.
enum yk_by { YK_BY_HOST, YK_BY_DEVICE, YK_BY_LIBRARY };

// What a job does: the same at each launch of a plan's step.
struct yk_task {
	struct yoke_group *group;
	uint8_t what, kind, dtype, where; // enum yk_collective, yoke_reduce_kind, dtype, yk_by
	uint32_t root;             // or the peer of send and recv
	uint32_t tensors;
	uint32_t mine;             // of a gather of shares: the operand that is this rank's
	int64_t *count;            // elements of each operand (of recv: result)
	uint64_t hash;             // equal where ranks agree
	char text[YK_TASK_TEXT];   // "all_reduce sum f32 [1000]"
	struct yk_schedule *schedule; // by messages: made when it is begun first, and anew where ..
	uint8_t applied, how;          // .. its job's `applied` is another; the algorithm that came of it
	struct yk_native_sum *sums;   // by the devices' library: as they were prepared
};
void yk_task_fini(struct yk_task *);
uint64_t yk_task_bytes(const struct yk_task *); // of all operands

// ---- shares ----
// Tensors of a list one behind another, cut into one share for each rank, where pieces begin: at each tensor's start,
// and in it at every `unit`-th element; 0: tensors stay whole.  Share r begins with the first piece at or behind
// element r ceil(n / ranks); some are empty.

int64_t yk_share_at(uint32_t ranks, uint32_t r, int64_t unit, uint32_t tensors, const int64_t *count);
// The share of element range [*from, *to) of a tensor that begins at `start`, *from == *to: nothing of it.
void yk_share_of(int64_t first, int64_t end, int64_t start, int64_t count, int64_t *from, int64_t *to);
// to[i], which may be x[i]: x[i] with each rank's share as its `mine` says, flat and of at least one element.
int yk_gather_shares(struct yoke_group *, int64_t unit, int n, yoke_tensor *const *x, yoke_tensor *mine,
		     yoke_tensor **to);

// The same where nothing but shares is there: tensors of these shapes, at most so many.
enum { YK_GATHERED = 24 };
struct yk_shape {
	int rank;
	int64_t dims[YOKE_MAX_RANK];
};
int yk_gather_whole(struct yoke_group *, int64_t unit, int n, const struct yk_shape *, yoke_tensor *mine, yoke_tensor **to);
// This rank's share of the sums of x over all ranks, flat and of at least one element; the others' are theirs.
yoke_tensor *yk_reduce_shares(struct yoke_group *, int64_t unit, int n, yoke_tensor *const *x);

struct yk_course;

struct yk_result { // of a job that the host waits for itself
	int code;
	char why[YK_WHY]; // if there is a code
};

enum yk_phase { YK_COMING, YK_WORKING, YK_LEAVING, YK_OVER };

struct yk_address { // of an operand on a device
	void *segment;
	uint64_t offset;
};

struct yk_job {
	struct yk_job *next;
	struct yk_task *task;
	struct yk_result *result; // NULL: a failure is the queue's
	uint64_t number;   // of the queue, from 1 on
	uint64_t sequence; // among those of its group that go in one order, from 0 on
	uint64_t begun;    // nanoseconds, 0: not begun
	uint64_t asked;    // when it could have begun but for others, who had not left another; 0: it did
	bool (*way)(struct yk_job *, int *code, char why[YK_WHY]); // by which it began
	bool warned;
	uint8_t applied;    // yk_adapt_how when it was launched
	enum yk_phase phase;
	struct yk_course *course; // by messages: how far it is
	struct yk_native_course *native; // by the devices' library: the same
	char *const *in, *const *out; // host addresses, behind; or
	const struct yk_address *place; // by the devices' library: of nin operands, nout results, and what it works in
	uint32_t nin, nout;
};

// ---- waiting ----

static inline void yk_pause(void) // of who looks again and again
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

// ---- wakeups ----

// Whoever waits for others sleeps at a wakeup of its own, which they ring behind what they change.  Nobody but sleepers pays
// for it: a sleeper lies down, looks once more at what it waits for, and then sleeps or gets up.  So what is changed before a
// ring, and looked at then, is sequentially consistent.
struct yk_wakeup {
	_Atomic uint32_t rings, sleepers;
	atomic_int refs; // others may ring when its owner has gone
};
struct yk_wakeup *yk_wakeup_new(void); // a reference; NULL: no memory
void yk_wakeup_unref(struct yk_wakeup *); // NULL is fine
void yk_wakeup_ring(struct yk_wakeup *); // NULL is fine
uint32_t yk_wakeup_lie(struct yk_wakeup *); // how often it was rung
// Until it has been rung more often than that, or a time is over.
void yk_wakeup_sleep(struct yk_wakeup *, uint32_t rings, uint64_t nanoseconds);
void yk_wakeup_rise(struct yk_wakeup *);

// ---- rendezvous: what the ranks of a group share ----

enum { YK_TEXTS = 16 }; // a rank may be so many jobs ahead of one that looks what it did

// What a rank has for all others to read, in a collective of few bytes.
enum { YK_POST = 32768, YK_POST_FEW = 48 };
struct yk_post {
	_Alignas(64) _Atomic uint64_t number; // 1 + the job's sequence; behind the others
	uint64_t hash;
	char few[YK_POST_FEW]; // operands, one behind another, in the same line of a cache; or
	_Alignas(64) char data[YK_POST];
};

struct yk_rank_slot { // of one rank
	_Alignas(128) _Atomic uint64_t came; // jobs that the rank has come to
	_Atomic uint64_t left;     // .. and is done with others' memory of
	_Atomic int busy;          // at work in others' memory
	_Atomic int gone;          // it is in the group no more
	_Atomic int erred;         // a process that ends by an error of its own, not one that it heard of
	_Atomic uint64_t since;    // nanoseconds, of its last change
	_Atomic uint64_t beat;     // .. when it last came, or looked at what it waits for
	struct yk_job *_Atomic job; // in one memory
	_Alignas(128) struct yk_wakeup wakeup; // between processes; others read it whenever they change something
	_Alignas(128) uint64_t hash; // of the job; like text there before `came` counts it
	char text[YK_TEXTS][YK_TASK_TEXT]; // of the last jobs
	int process, thread;       // the system's numbers of it
	_Atomic uint64_t cpus;     // hash of the processors that the process was started on; 0: it has not come
	_Atomic uint64_t sees;     // hash of the only device that it sees, 1: there are more; 0: it has not said
	_Atomic uint64_t offer;    // native.c: what it has; 0: it has not said
	uint64_t card;             // .. on which device
	struct yk_post post[2];    // of jobs of even and odd numbers
};

struct yk_box { // of what one rank sends another in one memory
	struct yk_job *_Atomic job;
	_Atomic uint64_t taken;
};

// Messages from one rank to another, as bytes in a ring: a head, and what it announces up to a multiple of 8.
struct yk_link {
	_Alignas(64) _Atomic uint64_t head; // bytes written
	_Alignas(64) _Atomic uint64_t tail; // bytes read
	_Alignas(64) char data[];
};

struct yk_head {
	uint64_t hash, bytes, sequence;
	uint32_t group, from;
};

// In memory that all ranks of the group see: with it slots, then links.
enum { YK_TUNED_SIZES = 11 }; // 256 bytes to 256 MiB, by 4
enum yk_id_state { YK_ID_NONE, YK_ID_MADE, YK_ID_FAILED };
struct yk_area {
	atomic_int broken; // 1: somebody is writing why, 2: it is written
	int code;
	char why[YK_WHY];
	uint32_t ranks, ring; // bytes of a link's ring
	_Atomic uint32_t id_state;    // of the world's id for the devices' library, enum yk_id_state
	char id[YOKE_COLLECTIVES_ID];
	uint8_t best[YK_TUNED_SIZES]; // of all_reduce, by size: 1 + the algorithm that `yoke tune ranks` found; 0: none
	_Alignas(128) struct yk_rank_slot slot[];
};
size_t yk_area_bytes(uint32_t ranks, uint32_t ring);
void yk_area_init(struct yk_area *, uint32_t ranks, uint32_t ring); // of zeroed memory

struct yk_rendezvous { // as a process has it
	atomic_int refs;
	uint32_t ranks;
	bool apart;               // ranks are processes
	struct yk_area *area;
	struct yk_rank_slot *slot;
	struct yk_wakeup *_Atomic *wakeup; // by rank; NULL: it has not joined.  References, unless apart
	struct yk_box *box;       // from * ranks + to
	struct yk_segment *segment; // of processes' memory, a reference
	struct yk_route *route;   // to ranks on other machines; NULL: there are none
	uint32_t node;            // then: ranks that each machine has, one behind another; 0: it is not so
	bool native;              // by the devices' library, with this id
	char id[YOKE_COLLECTIVES_ID];
};
struct yk_rendezvous *yk_rendezvous_new(uint32_t ranks); // a reference for each; NULL: no memory
// Of a group of processes, whose area is there.
struct yk_rendezvous *yk_rendezvous_apart(struct yk_segment *, struct yk_area *, struct yk_wakeup *const *wakeup);
void yk_rendezvous_unref(struct yk_rendezvous *);
// The link of collectives, or of sends, from one rank to another.
struct yk_link *yk_rendezvous_link(const struct yk_rendezvous *, bool sends, uint32_t from, uint32_t to);
// No job of the group will end well any more; the first reason stays, and all ranks are rung.
void yk_rendezvous_break(struct yk_rendezvous *, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void yk_area_break(struct yk_area *, int code, const char *fmt, va_list);

// ---- groups ----

struct yoke_group { // as one rank has it
	struct yoke_group *next; // of the queue
	uint64_t number; // in this process
	atomic_int refs; // the queue's, and those of tasks
	uint32_t rank, ranks;
	struct yk_rendezvous *rendezvous;
	struct yk_ranks *queue;
	struct yoke_context *ctx;
	uint64_t jobs;            // collectives so far
	uint64_t others;          // that all others are known to be done with
	_Atomic uint64_t bytes;   // of tensors, that it has sent: see yoke_group_state
	uint64_t *sent, *received; // to and from each peer
	uint64_t port;            // nanoseconds until which dist.link has it sending
	uint64_t pass;            // of the queue, in which a collective is held up
	uint64_t *send_pass, *recv_pass;
	struct yk_native *native; // how it works by the devices' library; NULL: it does not
	struct yk_adapt *adapt;   // NULL: algorithms stay what they are
	char name[32];
	uint32_t splits;          // of it
};
// A member of the group in the context, whose ranks queue is made if it has none.
int yk_group_join(struct yoke_context *, struct yk_rendezvous *, uint32_t rank, const char *name, struct yoke_group **);
struct yoke_group *yk_group_ref(uint64_t number); // NULL: there is none
void yk_group_unref(struct yoke_group *);
void yk_group_leave(struct yoke_group *); // it is used no more
// A rank of a group whose others are not there, for the current context, which is dry: what is recorded with it is
// planned, and takes memory.  world: it is the context's, made once for that rank.
struct yoke_group *yk_group_dry(uint32_t ranks, uint32_t rank, bool world);
// The calling thread's world is that group.
void yk_world_set(struct yoke_group *);

// ---- the queue ----

enum { YK_PAST = 256 }; // operations that a queue remembers
struct yk_past {
	uint64_t sequence, begun;
	int code;
	char group[32], text[YK_TASK_TEXT];
};

struct yk_ranks {
	pthread_t thread;
	pthread_mutex_t drive;   // whoever holds it moves the jobs on
	pthread_mutex_t lock;    // over those that came and were not begun
	struct yk_job *incoming, **incoming_end;
	struct yk_job *active;   // in order; under drive, as pass, taken and waits
	uint64_t pass, taken;    // taken: the last job that is not in `incoming`
	bool waits;              // active is one job, which only others have something to do for
	_Atomic uint64_t enqueued, over; // jobs; over: all up to that one
	atomic_int helpers;      // threads that wait and move jobs on themselves
	atomic_int away;         // jobs at work on a device, which rings no wakeup
	struct yk_wakeup *_Atomic wakeup; // its own, or that of the process's slot in the world
	struct yk_wakeup *own;
	struct yk_wakeup duty; // duty: of the thread, where there is nothing to do
	struct yk_carrier *_Atomic carrier; // to ranks on other machines; NULL: there are none
	_Atomic uint64_t due;     // when the first message goes that dist.link holds back; 0: there is none
	uint64_t next_due;        // .. of this pass
	_Atomic uint64_t watched; // when it was last looked who is late
	_Atomic uint64_t waited;  // nanoseconds that somebody waited for jobs
	atomic_bool quit;
	// the first failure that no event has told, under lock
	uint64_t failed, told; // number of the job; events marked behind `told` jobs say nothing of those
	int code;
	char why[YK_WHY];
	struct yoke_group *groups, *world;
	uint64_t pasts; // operations that are over, the last of them in past[..], under drive
	struct yk_past past[YK_PAST];
};
// The context's last operations, over and open, oldest first, as a file of a JSON object a line.  EIO.
int yk_ranks_record(struct yk_ranks *, const char *path);
void yk_past_add(struct yk_ranks *, const struct yk_job *, int code); // one is over
extern const struct yoke_backend yk_ranks_table;
struct yk_queue *yk_ranks_of(struct yoke_context *); // the context's queue, made if there is none; or NULL
static inline struct yk_ranks *yk_ranks_in(const struct yoke_context *ctx)
{
	const struct yk_queue *q = ctx->slot[YK_SLOT_RANKS].queue;
	return q == ctx->queue ? NULL : q->handle;
}
// Hands a job of the task over; in and out: addresses, as many as it has.
int yk_ranks_add(struct yk_ranks *, struct yk_task *, uint32_t nin, char *const *in, uint32_t nout, char *const *out);
// The same, and waits for it: what became of it is in *result then, not of the queue.
int yk_ranks_do(struct yk_ranks *, struct yk_task *, uint32_t nin, char *const *in, uint32_t nout, char *const *out,
		struct yk_result *result);
// The same of operands on the device, place[0 .. nin + nout], the last of what it works in.
int yk_ranks_add_places(struct yk_ranks *, struct yk_task *, uint32_t nin, uint32_t nout, const struct yk_address *);
void yk_ranks_wait(struct yk_ranks *, uint64_t job);
void *yk_ranks_serve(void *queue); // what its thread does, until yk_ranks_quit
bool yk_ranks_is_open(const struct yk_ranks *); // may threads that wait for jobs move them on?
bool yk_ranks_help(struct yk_ranks *); // does what the caller can for the jobs; false: nothing now
void yk_ranks_quit(struct yk_ranks *); // its thread ends
// None of the context's groups goes on.
void yk_ranks_break(struct yk_ranks *, int code, const char *why);
// Jobs of what the host itself wants of a group; ends with its error, if it has one.
int yk_task_do(struct yk_task *, void *in, void *out); // of one tensor at most; `t` has its name
int yk_group_do(struct yoke_group *, int what, int dtype, uint32_t root, int64_t count, void *in, void *out);
// Bytes of the host's memory from one rank to another, who wants as many; and of `root` to all.
int yk_group_send(struct yoke_group *, uint32_t to, const void *data, size_t bytes);
int yk_group_recv(struct yoke_group *, uint32_t from, void *data, size_t bytes);
int yk_group_tell(struct yoke_group *, uint32_t root, void *data, size_t bytes);

int yk_ranks_devices(void); // how many there are like the best one, or an error
uint64_t yk_ranks_timeout(void); // dist.timeout, in nanoseconds
uint64_t yk_ranks_warn(void);    // dist.warn

// The hash and the text of a task, whose other members are set.
void yk_task_name(struct yk_task *, const struct yoke_view *first);

// ---- one memory ----

// Moves a job on; true: something changed.  phase is OVER at its end, *code then what became of it, said in why.
bool yk_shared_advance(struct yk_job *, int *code, char why[YK_WHY]);
// The job's group is broken: true, and when nobody is at work in its memory any more it is over.
bool yk_job_broken(struct yk_job *, int *code, char why[YK_WHY]);
void yk_job_come(struct yk_job *, uint64_t now); // its rank has, at so many nanoseconds
void yk_job_ring(const struct yk_job *); // all other ranks of its group
void yk_job_sent(const struct yk_job *); // counts the bytes that others read of the rank's
void yk_job_alone(const struct yk_job *, uint32_t other); // that rank has left: the group is broken
// Ranks `other` and its own do different things.
void yk_job_disagrees(const struct yk_job *, uint32_t other, const char *text);
// Says who is late, or breaks the group for it.
void yk_job_watch(struct yk_job *);

// ---- few bytes ----

// Is a task one that is done so, if no setting says how?
bool yk_post_takes(const struct yk_task *);
// As yk_shared_advance.
bool yk_post_advance(struct yk_job *, int *code, char why[YK_WHY]);

// ---- messages ----

// The setting dist.algorithm, "" by default.
const char *yk_ranks_algorithm(void);
// The setting dist.link, in seconds and seconds a byte; false: messages are not delayed.  EINVAL goes to the group that
// is joined under a malformed one.
bool yk_ranks_link(double *alpha, double *beta);
// As yk_shared_advance, by a schedule.
bool yk_message_advance(struct yk_job *, int *code, char why[YK_WHY]);
void yk_course_free(struct yk_course *); // NULL is fine

#endif
