// SPDX-License-Identifier: Apache-2.0
// Loaders: slots of host memory that threads fill with batches, in the order in which they are given out.
// A slot is free, in the queue (being filled, or full), or out: given to the caller, whose tensors may hold it longer
// than the loader lives.  All of a loader is guarded by its lock, but the memory of the rows that a thread has taken.
// What is given out depends on cursors alone (cursor.h): a row's failures are kept with its slot, and count when the
// slot is given out.
#ifndef YK_DATA_LOADER_H
#define YK_DATA_LOADER_H

#include <pthread.h>

#include "data/cursor.h"
#include "data/set.h"

enum { YK_LOADER_HELD = 2 }; // slots that tensors may hold beside those that are read ahead

struct yk_failure {
	int64_t row, number, epoch;
	int code;
	bool ends; // nothing takes its place
	char why[256];
};

struct yk_slot {
	struct yoke_loader *loader;
	struct yk_cursor begin, end;
	int64_t rows, samples; // of its tensors; those that are samples
	int64_t next, left;    // row to be taken next; rows that are not done
	unsigned char *memory;
	int64_t (*dims)[YOKE_MAX_RANK];          // [batch][fields], where fields vary
	int64_t (*shape)[YOKE_MAX_RANK];         // [fields] of the batch, without the rows
	struct yk_failure *failure;
	size_t failures, failure_cap;
	int held; // tensors that lie in it
	bool free, current;
};

struct yk_worker {
	pthread_t thread;
	struct yoke_loader *loader;
	bool started, ended;
	double since; // when its read began; 0: none
	struct yk_cursor place; // of the first sample that it reads
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
	size_t *offset, *raw;    // of fields in a slot: the batch; samples before they are padded, where they vary
	size_t bytes;            // of a slot
	int slots;
	struct yk_slot *slot;
	int *queue;              // ring of `slots`: numbers of slots, head - tail of them
	int64_t head, tail;
	struct yk_cursor cursor; // of the batch to be begun next
	struct yoke_position position;
	struct {
		int64_t epoch, from, to;
	} bad; // places in a row whose samples fail, so that a long row of them is not searched for each
	struct yk_slot *current; // given out, until the next call
	int broken;              // YOKE_E*: a thread could not go on
	int failed;              // YOKE_E* that ended it, with; the caller's
	char why[600];
	void (*heard)(void *arg, const struct yoke_data_error *);
	void *heard_arg;
	struct yoke_loader_stats stats;
};

// Reads rows first .. first + n - 1 of a slot, n at most the set's chunk.  Without the lock.
void yk_rows_read(struct yoke_loader *, struct yk_reader *, struct yk_slot *, int64_t first, int64_t n);
// All rows are there: shapes, padding.  Without the lock.
void yk_slot_finish(struct yoke_loader *, struct yk_slot *);
int yk_reader_init(struct yk_reader *, const yoke_dataset *);
void yk_reader_fini(struct yk_reader *);

// The next batch, full, as the current slot; NULL: an error, or 0 in *end behind the last epoch.
struct yk_slot *yk_loader_take(struct yoke_loader *, bool *end);
// The caller is done with the current slot; it stays out while tensors hold it.
void yk_loader_release(struct yoke_loader *);
void *yk_slot_field(const struct yk_slot *, int field);
// A tensor lies in the slot from now on, until unhold, as yoke_wrap's free_fn.
void yk_slot_hold(struct yk_slot *);
void yk_slot_unhold(void *slot);
// How many slots are out beside the current one.
int yk_loader_out(struct yoke_loader *);

#endif
