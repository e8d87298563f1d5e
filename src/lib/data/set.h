// SPDX-License-Identifier: Apache-2.0
// The struct behind yoke_dataset.  A dataset is immutable once made, so any thread may read it.
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
	size_t bytes; // max bytes of one sample
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
	bool stream; // reads a pipe: EIO means its end, and a read may block until data is written
	bool serial;
	pthread_mutex_t lock; // held by a serial set while it reads
};

yoke_dataset *yk_dataset_ref(yoke_dataset *);
// Makes a set with the fields of another one, which it does not keep alive.  NULL: an error; the
// caller then keeps arg.
yoke_dataset *yk_dataset_like(const yoke_dataset *, const struct yoke_dataset_options *);
// Raises dims that may vary to at least those of another set with the same fields.  The first set
// must not be shared yet.
void yk_dataset_widen(yoke_dataset *, const yoke_dataset *);
// Reads n samples and sets their dims.  Samples that failed get an error code and a reason; returns
// their number.
int64_t yk_dataset_read(const yoke_dataset *, int64_t n, struct yoke_item *const *);
// Stores the thread's error message, with this code, in the sample.
void yk_sample_failed(struct yoke_item *, int code);

#endif
