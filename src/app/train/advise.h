// SPDX-License-Identifier: Apache-2.0
// What fits in memory, found out in dry contexts; and what to do where it does not suffice.
#ifndef YK_ADVISE_H
#define YK_ADVISE_H

#include <stdint.h>

// What the device of the current context, or the one that would be chosen, could hold now, in
// bytes: what others use is not to be had, since a host gives out more memory than it has.
uint64_t yk_dry_room(void);
// Calls fn in a dry context of its own on the chosen device, whose pool is empty and may reserve
// so many bytes; returns what fn returns.
int yk_dry_try(uint64_t limit, int (*fn)(void *arg), void *arg);

// Does, in the current context, which is dry, all that would be done with that batch; 0, or the error.
typedef int yk_rehearse_fn(void *arg, int64_t batch);
// The largest batch of 1 .. most that finds its memory; 0: none does.  Without an error.
int64_t yk_dry_batch(int64_t most, uint64_t limit, yk_rehearse_fn *, void *arg);
// The thread's error, ENOMEM of `batch`, with the largest batch that finds its memory on the device, or
// with what else to do (`smaller`) when none does; as it is, when `batch` itself finds it.
int yk_advise_batch(int64_t batch, const char *smaller, yk_rehearse_fn *, void *arg);

#endif
