// SPDX-License-Identifier: Apache-2.0
// Finds out what fits in device memory by rehearsing a run in dry contexts, and suggests what to do
// if it does not fit.
#ifndef YK_ADVISE_H
#define YK_ADVISE_H

#include <stdint.h>

// Bytes that the device of the current context (or of the default device) could provide now. Memory
// used by other processes is excluded, because a host can promise more memory than it has.
uint64_t yk_dry_capacity(void);
// Calls fn in a new dry context on the default device, with an empty pool that may reserve at most
// `limit` bytes. Returns fn's result.
int yk_dry_try(uint64_t limit, int (*fn)(void *arg), void *arg);

// Performs, in the current dry context, everything a run with that batch size does. Returns 0 or an
// error.
typedef int yk_dry_run_fn(void *arg, int64_t batch);
// The largest batch in 1 .. max that fits; 0: none. Does not set an error.
int64_t yk_dry_batch(int64_t max, uint64_t limit, yk_dry_run_fn *, void *arg);
// Replaces the thread's error, an ENOMEM of `batch`, by one that names the largest batch that fits
// the device or, if none does, other advice (`smaller`). Keeps the error if `batch` itself fits.
int yk_advise_batch(int64_t batch, const char *smaller, yk_dry_run_fn *, void *arg);

#endif
