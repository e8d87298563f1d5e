// SPDX-License-Identifier: Apache-2.0
// Loaders: worker threads fill slots of host memory with batches, which are delivered in order.
//
// A slot (struct yk_batch) is free, in the queue (being filled, or full), or out: delivered to the
// caller, whose tensors may keep it alive after the loader is freed.  The loader's lock guards
// everything except the memory of rows that a thread is filling.
//
// Cursors alone determine the batches (cursor.h): failures of a row are stored in its slot and take
// effect when the slot is delivered.
//
// A context is used only by calls on its own thread (prefetch.c): batches that are being copied to
// its device are the first of the queue, and a slot's memory is reused only after the copy from it
// has completed.
#ifndef YK_DATA_LOADER_H
#define YK_DATA_LOADER_H

#include <pthread.h>

#include "data/cursor.h"
#include "data/set.h"

struct yk_item_failure {
	int64_t row, number, epoch;
	int code;
	bool ends; // no other sample replaces it
	char why[256];
};

struct yk_batch {
	struct yoke_loader *loader;
	struct yk_cursor begin, end;
	int64_t rows, samples; // rows of its tensors; how many of them are samples
	int64_t next, left;    // next row to be read; rows that are not finished
	unsigned char *memory;
	struct yk_block *block;   // the pool block that holds memory; NULL: memory is from the heap
	struct yoke_context *of;  // the context that it was made for
	struct yk_event *copied;  // recorded after the copy to the device; NULL: no copy is pending
	int64_t (*dims)[YOKE_MAX_RANK];          // [batch][fields], for fields that vary
	int64_t (*shape)[YOKE_MAX_RANK];         // [fields] of the batch, without the row axis
	struct yk_item_failure *failure;
	size_t failures, failure_cap;
	int held; // number of tensors that use its memory
	bool free, queued, current;
};

struct yk_worker {
	pthread_t thread;
	struct yoke_loader *loader;
	bool started, ended;
	double since; // when its read began; 0: not reading
	struct yk_cursor place; // position of the first sample that it reads
};

// A batch in device memory: one tensor per micro-batch of each field, NULL if not allocated yet.
struct yk_sent {
	yoke_tensor **tensor; // [fields * split]
};

// Time span in which a thread read rows, for a trace; worker -1: the caller.
struct yk_reading {
	uint64_t begin, ns; // yk_nanoseconds
	int worker;
};

// Buffers of one thread for the arguments of the dataset's read function.
struct yk_reader {
	struct yoke_item *sample, **list;
	void **to;                       // [chunk][fields]
	int64_t (*dims)[YOKE_MAX_RANK];  // [chunk][fields]
	char (*why)[256];
	struct yk_cursor *place;
};

// Where the fields of a batch lie in the memory of a slot, and which rows of a batch are read; set
// once.
struct yk_slot_layout {
	size_t *offset, *raw; // [fields]: offset of the batch; of samples before padding, for
			      // fields that vary (equal: not padded)
	size_t *stride;       // [fields]: bytes from a micro-batch to the next
	int64_t part;         // max rows of a micro-batch
	int64_t before, rows; // rows of a batch to skip at the beginning, and rows to read, whole
			      // micro-batches
	int64_t given, apart; // of the micro-batches that are read: the first to deliver, and the
			      // distance to the next
	size_t bytes;         // bytes of a slot
};

struct yk_batch_queue {
	int *slot;               // ring of as many slot numbers, head - tail of them in use
	int64_t head, tail;
	struct yk_cursor cursor; // of the next batch to begin
};

// Copies to a device; for the caller's thread, except `aheads`, which workers read.
struct yk_batch_uploads {
	struct yoke_context *ctx; // that slots are allocated for; NULL: none yet
	bool heap;                // pinned memory ran out: slots come from the heap from now on
	struct yk_sent *ahead;    // ring of `aheads`, prefetch + 1; batch k of the queue is at
				  // tail + k
	int aheads;
	bool taken;               // the batch that was taken last is in `ahead`
	int64_t sent;             // batches of the queue that are on the device or being copied
};

struct yk_loader_error {
	int worker; // YOKE_E*: a thread could not continue
	int code;   // the YOKE_E* that ended the loader; for the caller's thread
	char why[600];
	void (*report)(void *arg, const struct yoke_data_error *); // of samples that are skipped
	void *report_arg;
};

struct yoke_loader {
	pthread_mutex_t lock;
	pthread_cond_t work, done; // signal the workers, and the caller
	int refs;                  // the handle, threads, slots that tensors use
	yoke_dataset *set;
	struct yk_feed feed;
	bool dry;                  // a dry run: batches allocate memory, but nothing is read
	bool quit, paused, asking; // asking: the caller waits for a batch
	int64_t flight;            // groups of rows that are being read
	int workers;
	struct yk_worker *worker;
	struct yk_reader reader;   // the caller's
	struct yk_slot_layout layout;
	int slots;
	struct yk_batch *slot;
	struct yk_batch *current;  // delivered, valid until the next call
	struct yk_batch_queue queue;
	struct yoke_position position;
	struct {
		int64_t epoch, from, to;
	} bad; // a run of samples that fail, remembered so that it is searched only once
	struct yk_batch_uploads upload;
	struct {
		struct yk_reading *span;
		size_t n, max;
	} trace;
	struct yk_loader_error error;
	struct yoke_loader_stats stats;
};

// Row of the batch that row k of the rows to read stands for.
static inline int64_t yk_row_of(const struct yoke_loader *l, int64_t k)
{
	const int64_t stride = l->layout.rows < l->feed.batch ? l->feed.stride : 1;
	return l->layout.before + k / l->layout.part * stride * l->layout.part + k % l->layout.part;
}

// Batch k of the queue, the oldest first; NULL: it has fewer.
static inline struct yk_batch *yk_queued(const struct yoke_loader *l, int64_t k)
{
	const struct yk_batch_queue *q = &l->queue;
	return q->tail + k < q->head ? &l->slot[q->slot[(q->tail + k) % l->slots]] : NULL;
}

// Number of tensors of a batch: those of the fields' micro-batches.
static inline int yk_loader_tensors(const struct yoke_loader *l)
{
	return l->set->fields * (int)l->feed.parts;
}

// Reads rows first .. first + n - 1 of a slot, n at most the dataset's chunk.  Called without the
// lock.
void yk_rows_read(struct yoke_loader *, struct yk_reader *, struct yk_batch *, int64_t first,
		  int64_t n);
// Sets shapes and pads, once all rows are read.  Called without the lock.
void yk_batch_finish(struct yoke_loader *, struct yk_batch *);
int yk_reader_init(struct yk_reader *, const yoke_dataset *);
void yk_reader_fini(struct yk_reader *);

// Creates a loader whose first batch begins at a position.
yoke_loader *yk_loader_new_at(yoke_dataset *, const char *settings, const struct yoke_position *);
// Waits for the next batch, which stays in the queue; NULL: an error, or 0 and *end set after the
// last epoch.
struct yk_batch *yk_loader_wait(struct yoke_loader *, bool *end);
// Makes it the current slot; false: one of its samples failed, which ends the loader.
bool yk_loader_take(struct yoke_loader *, struct yk_batch *);
// The caller has finished with the current slot. The slot stays out while tensors use it or a copy
// reads it.
void yk_loader_release(struct yoke_loader *);
// Frees a slot that is out and no longer used.  Called under the lock.
void yk_batch_settle(struct yk_batch *);
// A micro-batch of a field of the current batch, in host memory, valid until the next call; NULL:
// none.
const void *yk_loader_current(const struct yoke_loader *, int field, int64_t part);
// A tensor uses the slot from now on, until unhold, which is the free_fn of yoke_wrap.
void yk_batch_hold(struct yk_batch *);
void yk_batch_unhold(void *slot);
// Number of slots that are out, without the current one.
int yk_loader_out(struct yoke_loader *);
// Sums `of` over the samples of the batch that begins at a position, over all micro-batches.
int yk_loader_sum(const struct yoke_loader *, const struct yoke_position *,
		  int64_t (*of)(void *arg, int64_t number), void *arg, int64_t *to);
// Did a failed sample, or a read that does not return, end the loader?
bool yk_loader_failed(const struct yoke_loader *);
// Records the time spans in which threads read, at most `max`.
int yk_loader_watch(struct yoke_loader *, size_t max);
// Returns the number of recorded spans, which stay valid until the next call.
size_t yk_loader_readings(struct yoke_loader *, const struct yk_reading **);

// ---- slots.c ----

// Allocates the slots and the queue, for l->feed and l->workers.
int yk_slots_make(struct yoke_loader *);
void yk_slots_free(struct yoke_loader *);
// Address of micro-batch `part`, of those delivered, of a field.
void *yk_batch_part(const struct yk_batch *, int field, int64_t part);
// Number of samples, or rows, of a batch that this loader delivers.
int64_t yk_batch_delivered(const struct yk_batch *, int64_t rows);
// Shape of a field's micro-batch, with the row axis.
void yk_batch_dims(const struct yk_batch *, int field, int64_t dims[YOKE_MAX_RANK + 1]);

// ---- prefetch.c ----

// Allocates memory of a new slot, of the kind that suits l->upload.ctx.
int yk_batch_memory(struct yoke_loader *, struct yk_batch *);
void yk_batch_memory_free(struct yk_batch *);
// Batches are delivered in this context from now on.
int yk_loader_bind(struct yoke_loader *, struct yoke_context *);
// Frees slots whose copies have completed.  wait: blocks until there is one.
void yk_loader_reclaim(struct yoke_loader *, bool wait);
// Starts copies to the device of full batches of the queue; the first one must be full, and is on
// its way when this returns 0.
int yk_loader_send(struct yoke_loader *);
// The device tensors of the batch that was taken last, owned by the loader; NULL: it was not
// copied.
yoke_tensor **yk_loader_sent(struct yoke_loader *);
// Waits for all copies and forgets the batches that were copied ahead.
void yk_loader_recall(struct yoke_loader *);
void yk_loader_send_fini(struct yoke_loader *);

#endif
