// SPDX-License-Identifier: Apache-2.0
// Datasets as the room sees them.  A set is fixed once it is made, so that any thread may read it.
#ifndef YK_DATA_SET_H
#define YK_DATA_SET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "yoke-data.h"

struct yk_field {
	char *name;
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK], multiple[YOKE_MAX_RANK];
	double pad;
	size_t bytes; // of one sample at its largest
	bool varies;
};

struct yoke_dataset {
	atomic_int refs;
	char *name;
	int64_t count, chunk;
	int fields;
	struct yk_field *field;
	yoke_read_fn *read;
	void *arg;
	void (*free_fn)(void *);
	uint64_t fingerprint;
	const char *(*label)(const void *arg, int field, int64_t i); // NULL: no field has labels
	bool stream; // of a pipe: a sample that is EIO is its end, and a read may wait for whoever writes
	bool serial;
	pthread_mutex_t lock; // of a serial one, while it reads
};

yoke_dataset *yk_dataset_ref(yoke_dataset *);
// A set with the fields of another one, which is not kept by this.  NULL: an error; arg is the caller's still.
yoke_dataset *yk_dataset_like(const yoke_dataset *, const struct yoke_dataset_options *);
// Of a set that nobody else has yet: dims that may vary become no less than those of a set with the same fields.
void yk_dataset_widen(yoke_dataset *, const yoke_dataset *);
// Reads n samples.  What failed has its code and a reason; the number of those.  Sets dims.
int64_t yk_dataset_read(const yoke_dataset *, int64_t n, struct yoke_item *const *);
// The thread's error, with this code, as the sample's.
void yk_sample_failed(struct yoke_item *, int code);

#endif
