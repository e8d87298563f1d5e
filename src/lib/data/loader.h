// SPDX-License-Identifier: Apache-2.0
// Loaders: slots of host memory that threads fill with batches, in the order in which they are given out.
// A slot (struct yk_batch) is free, in the queue (being filled, or full), or out: given to the caller, whose tensors may hold it longer
// than the loader lives.  All of a loader is guarded by its lock, but the memory of the rows that a thread has taken.
// What is given out depends on cursors alone (cursor.h): a row's failures are kept with its slot, and count when the
// slot is given out.
// A context comes in only by calls of its own thread (send.c): batches on their way to its device are the first of the
// queue, and the memory of a slot is written again only once the copy from it is over.
#ifndef YK_DATA_LOADER_H
#define YK_DATA_LOADER_H

#include <pthread.h>

#include "data/cursor.h"
#include "data/set.h"

struct yk_item_failure {
	int64_t row, number, epoch;
	int code;
	bool ends; // nothing takes its place
	char why[256];
};

struct yk_batch {
	struct yoke_loader *loader;
	struct yk_cursor begin, end;
	int64_t rows, samples; // of its tensors; those that are samples
	int64_t next, left;    // row to be taken next; rows that are not done
	unsigned char *memory;
	struct yk_block *block;   // of a pool, that memory is; NULL: the heap's
	struct yoke_context *of;  // the context that it was made for
	struct yk_event *copied;  // behind the copy from it to the device; NULL: there is none, or it is over
	int64_t (*dims)[YOKE_MAX_RANK];          // [batch][fields], where fields vary
	int64_t (*shape)[YOKE_MAX_RANK];         // [fields] of the batch, without the rows
	struct yk_item_failure *failure;
	size_t failures, failure_cap;
	int held; // tensors that lie in it
	bool free, queued, current;
};

struct yk_worker {
	pthread_t thread;
	struct yoke_loader *loader;
	bool started, ended;
	double since; // when its read began; 0: none
	struct yk_cursor place; // of the first sample that it reads
};

// A batch in the device's memory: parts of fields, NULL where there is no room yet.
struct yk_sent {
	yoke_tensor **tensor; // [fields * split]
};

// A thread's reading of rows, for a trace; worker -1: the caller.
struct yk_reading {
	uint64_t begin, ns; // of yk_nanoseconds
	int worker;
};

// Of one thread: what a call of the set's function takes.
struct yk_reader {
	struct yoke_item *sample, **list;
	void **to;                       // [chunk][fields]
	int64_t (*dims)[YOKE_MAX_RANK];  // [chunk][fields]
	char (*why)[256];
	struct yk_cursor *place;
};

struct yoke_loader {
	pthread_mutex_t lock;
	pthread_cond_t work, done; // for threads, and for the caller
	int refs;                  // the handle, threads, slots that are held
	yoke_dataset *set;
	struct yk_feed feed;
	bool quit, paused, asking; // asking: the caller waits for a batch
	int64_t flight;   // takings of rows that are not done
	int workers;
	struct yk_worker *worker;
	struct yk_reader reader; // the caller's
	size_t *offset, *raw;    // of fields in a slot: the batch; samples before they are padded, where they vary (equal: not padded)
	size_t *stride;          // of fields: from a part of the batch to the next
	int64_t part;            // rows of a part at most
	int64_t before, rows;    // of a batch: rows in front that are not read, and those that are, of whole parts
	int64_t given, apart;    // parts of those in front that are not given out, and from one that is to the next
	size_t bytes;            // of a slot
	int slots;
	struct yk_batch *slot;
	int *queue;              // ring of `slots`: numbers of slots, head - tail of them
	int64_t head, tail;
	struct yk_cursor cursor; // of the batch to be begun next
	struct yoke_position position;
	struct {
		int64_t epoch, from, to;
	} bad; // places in a row whose samples fail, so that a long row of them is not searched for each
	struct yk_batch *current; // given out, until the next call
	struct yoke_context *ctx; // that slots are made for; NULL: there was none yet
	bool dry;                // it is: batches take their memory, and nothing is read
	bool heap;               // there was no pinned memory: no more is asked for
	struct yk_sent *ahead;   // ring of `aheads`, prefetch + 1; batch k of the queue lies at tail + k
	int aheads;
	bool lies;               // the batch that was taken last lies there
	int64_t sent;            // batches of the queue that are on the device, or on their way
	struct yk_reading *reading; // that are kept, ..
	size_t readings, max_readings; // .. at most so many
	int broken;              // YOKE_E*: a thread could not go on
	int failed;              // YOKE_E* that ended it, with; the caller's
	char why[600];
	void (*heard)(void *arg, const struct yoke_data_error *);
	void *heard_arg;
	struct yoke_loader_stats stats;
};

// Which row of the batch is row k of those that are read?
static inline int64_t yk_row_of(const struct yoke_loader *l, int64_t k)
{
	const int64_t stride = l->rows < l->feed.batch ? l->feed.stride : 1;
	return l->before + k / l->part * stride * l->part + k % l->part;
}

// Reads rows first .. first + n - 1 of a slot, n at most the set's chunk.  Without the lock.
void yk_rows_read(struct yoke_loader *, struct yk_reader *, struct yk_batch *, int64_t first, int64_t n);
// All rows are there: shapes, padding.  Without the lock.
void yk_batch_finish(struct yoke_loader *, struct yk_batch *);
int yk_reader_init(struct yk_reader *, const yoke_dataset *);
void yk_reader_fini(struct yk_reader *);

// Waits for the next batch, which stays in the queue; NULL: an error, or 0 in *end behind the last epoch.
struct yk_batch *yk_loader_wait(struct yoke_loader *, bool *end);
// Takes it out as the current slot; false: a sample of it failed, and that ends the loader.
bool yk_loader_take(struct yoke_loader *, struct yk_batch *);
// The caller is done with the current slot; it stays out while tensors hold it, or a copy reads it.
void yk_loader_release(struct yoke_loader *);
// Out and of no more use: free.  Under the lock.
void yk_batch_settle(struct yk_batch *);
// Where rows of part `part`, of those given out, of a field begin.
void *yk_batch_part(const struct yk_batch *, int field, int64_t part);
// Part of a field of the batch that was given out last, in the host's memory until the next call; NULL: there is none.
const void *yk_loader_current(const struct yoke_loader *, int field, int64_t part);
// How many samples, or rows, of a batch are given out.
int64_t yk_batch_given(const struct yk_batch *, int64_t rows);
// Elements of the rows of a part.
void yk_batch_dims(const struct yk_batch *, int field, int64_t dims[YOKE_MAX_RANK + 1]);
// A tensor lies in the slot from now on, until unhold, as yoke_wrap's free_fn.
void yk_batch_hold(struct yk_batch *);
void yk_batch_unhold(void *slot);
// How many slots are out beside the current one.
int yk_loader_out(struct yoke_loader *);
// Did a sample, or a read that does not return, end it?
bool yk_loader_failed(const struct yoke_loader *);
// Keeps when threads read, of so many readings.
int yk_loader_watch(struct yoke_loader *, size_t most);
// Those that were kept, until the next call; how many.
size_t yk_loader_readings(struct yoke_loader *, const struct yk_reading **);

// ---- send.c ----

// Memory of a new slot, as l->ctx wants it.
int yk_batch_memory(struct yoke_loader *, struct yk_batch *);
void yk_batch_memory_free(struct yk_batch *);
// Batches are given out in this context from now on.
int yk_loader_bind(struct yoke_loader *, struct yoke_context *);
// Slots whose copies are over are free.  wait: one of them is in the end.
void yk_loader_reclaim(struct yoke_loader *, bool wait);
// Brings batches of the queue that are full to the device; the first one has to be, and is when this returns 0.
int yk_loader_send(struct yoke_loader *);
// The tensors of the batch that was taken last, which stay the loader's; NULL: it was not sent.
yoke_tensor **yk_loader_sent(struct yoke_loader *);
// Nothing is on its way any more.
void yk_loader_recall(struct yoke_loader *);
void yk_loader_send_fini(struct yoke_loader *);

#endif
