// SPDX-License-Identifier: Apache-2.0
// What to do where memory does not suffice: the largest batch that would find its own.
#ifndef YK_ADVISE_H
#define YK_ADVISE_H

#include <stdint.h>

struct yk_device;

// Does, in a context that rehearses, what would be done with that batch; 0, or the error.
typedef int yk_rehearse_fn(void *arg, int64_t batch);
// The thread's error, ENOMEM of `batch`, with the largest batch that finds its memory on the device, or
// with what else to do (`smaller`) when none does; as it is, when `batch` itself finds it.
int yk_advise_batch(struct yk_device *, int64_t batch, const char *smaller, yk_rehearse_fn *, void *arg);

#endif
