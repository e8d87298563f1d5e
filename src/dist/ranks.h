// SPDX-License-Identifier: Apache-2.0
// Ranks inside: groups, what they share, and the ranks queue of a context.
//
// A context that is in a group has a ranks queue (context.h, YK_SLOT_RANKS): a list of jobs, each of which is one
// collective, or one end of a send.  A thread of the queue's own, or whoever waits for an event of it, moves all
// jobs on together.  Jobs of a group are done in order, sends and receives in order for each peer and direction.
#ifndef YK_RANKS_H
#define YK_RANKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "dist/schedule.h"
#include "graph/context.h"
#include "yoke-dist.h"

enum { YK_TASK_TEXT = 96, YK_WHY = 400, YK_MOST_RANKS = 256 };

// What a job does: the same at each launch of a plan's step.
struct yk_task {
	struct yoke_group *group;
	uint8_t what, kind, dtype; // enum yk_collective, yoke_reduce_kind
	uint32_t root;             // or the peer of send and recv
	uint32_t tensors;
	int64_t *count;            // elements of each operand (of recv: result)
	uint64_t hash;             // equal where ranks agree
	char text[YK_TASK_TEXT];   // "all_reduce sum f32 [1000]"
};

struct yk_result { // of a job that the host waits for itself
	int code;
	char why[YK_WHY];
};

enum yk_phase { YK_COMING, YK_WORKING, YK_LEAVING, YK_OVER };

struct yk_job {
	struct yk_job *next;
	const struct yk_task *task;
	struct yk_result *result; // NULL: a failure is the queue's
	uint64_t number;   // of the queue, from 1 on
	uint64_t sequence; // among those of its group that go in one order, from 0 on
	uint64_t begun;    // nanoseconds, 0: not begun
	bool warned;
	enum yk_phase phase;
	char *const *in, *const *out; // host addresses, behind
};

// ---- bells ----

// Whoever waits for others sleeps at a bell of its own, which they ring.
struct yk_bell {
	_Atomic uint32_t rings, sleepers;
	atomic_int refs; // others may ring when its owner has gone
};
struct yk_bell *yk_bell_new(void); // a reference; NULL: no memory
void yk_bell_unref(struct yk_bell *); // NULL is fine
void yk_bell_ring(struct yk_bell *);
// Until it has been rung more often than `rings`, or a time is over.
void yk_bell_sleep(struct yk_bell *, uint32_t rings, uint64_t nanoseconds);

// ---- hubs: what the ranks of a group share ----

struct yk_seat { // of one rank
	_Alignas(128) _Atomic uint64_t came; // jobs that the rank has come to
	_Atomic uint64_t left;     // .. and is done with others' memory of
	_Atomic int busy;          // at work in others' memory
	_Atomic int gone;          // it is in the group no more
	_Atomic uint64_t since;    // nanoseconds, of its last change
	struct yk_job *_Atomic job;
	struct yk_bell *_Atomic bell; // a reference; NULL: it has not joined
	uint64_t hash;             // of the job; like text there before `came` counts it
	char text[2][YK_TASK_TEXT]; // in turn: that of the job before stays
	int thread;                // the system's number of it
};

struct yk_box { // of what one rank sends another
	struct yk_job *_Atomic job;
	_Atomic uint64_t taken;
};

struct yk_hub {
	atomic_int refs;
	uint32_t ranks;
	atomic_int broken; // 1: somebody is writing why, 2: it is written
	int code;
	char why[YK_WHY];
	struct yk_seat *seat;
	struct yk_box *box; // from * ranks + to
};
struct yk_hub *yk_hub_new(uint32_t ranks); // a reference for each; NULL: no memory
void yk_hub_unref(struct yk_hub *);
// No job of the group will end well any more; the first reason stays, and all ranks are rung.
void yk_hub_break(struct yk_hub *, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// ---- groups ----

struct yoke_group { // as one rank has it
	struct yoke_group *next; // of the queue
	uint64_t number; // in this process
	atomic_int refs; // the queue's, and those of tasks
	uint32_t rank, ranks;
	struct yk_hub *hub;
	struct yk_ranks *queue;
	struct yoke_context *ctx;
	uint64_t jobs;            // collectives so far
	uint64_t *sent, *received; // to and from each peer
	uint64_t pass;            // of the queue, in which a collective is held up
	uint64_t *send_pass, *recv_pass;
	char name[32];
	uint32_t splits;          // of it
};
// A member of the group in the context, whose ranks queue is made if it has none.
int yk_group_join(struct yoke_context *, struct yk_hub *, uint32_t rank, const char *name, struct yoke_group **);
struct yoke_group *yk_group_ref(uint64_t number); // NULL: there is none
void yk_group_unref(struct yoke_group *);
void yk_group_leave(struct yoke_group *); // it is used no more
// The calling thread's world is that group.
void yk_world_set(struct yoke_group *);

// ---- the queue ----

struct yk_ranks {
	pthread_t thread;
	pthread_mutex_t drive;   // whoever holds it moves the jobs on
	pthread_mutex_t lock;    // over those that came and were not begun
	struct yk_job *incoming, **incoming_end;
	struct yk_job *active;   // in order; under drive, as pass
	uint64_t pass;
	_Atomic uint64_t enqueued, over; // jobs; over: all up to that one
	atomic_int helpers;      // threads that wait and move jobs on themselves
	struct yk_bell *bell, duty; // duty: of the thread, where there is nothing to do
	atomic_bool quit;
	// the first failure that no event has told, under lock
	uint64_t failed, told; // number of the job; events marked behind `told` jobs say nothing of those
	int code;
	char why[YK_WHY];
	struct yoke_group *groups, *world;
};
extern const struct yoke_backend yk_ranks_table;
struct yk_queue *yk_ranks_of(struct yoke_context *); // the context's queue, made if there is none; or NULL
static inline struct yk_ranks *yk_ranks_in(const struct yoke_context *ctx)
{
	const struct yk_queue *q = ctx->slot[YK_SLOT_RANKS].queue;
	return q == ctx->queue ? NULL : q->handle;
}
// Hands a job of the task over; in and out: addresses, as many as it has.  result: NULL, or where the host waits
// for it by yk_ranks_wait.
int yk_ranks_add(struct yk_ranks *, const struct yk_task *, uint32_t nin, char *const *in, uint32_t nout,
		 char *const *out, struct yk_result *result);
void yk_ranks_wait(struct yk_ranks *, uint64_t job);
// None of the context's groups goes on.
void yk_ranks_break(struct yk_ranks *, int code, const char *why);
// Jobs of what the host itself wants of a group; ends with its error, if it has one.
int yk_group_do(struct yoke_group *, int what, int dtype, uint32_t root, int64_t count, void *in, void *out);

// The hash and the text of a task, whose other members are set.
void yk_task_name(struct yk_task *, const struct yoke_view *first);

// ---- one memory ----

// Moves a job on; true: something changed.  phase is OVER at its end, *code then what became of it, said in why.
bool yk_shared_advance(struct yk_job *, int *code, char why[YK_WHY]);
// Says who is late, or breaks the group for it.
void yk_shared_watch(struct yk_job *);

#endif
