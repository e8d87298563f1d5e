// SPDX-License-Identifier: Apache-2.0
// What to do where memory does not suffice: the largest batch that would find its own.
#ifndef YK_ADVISE_H
#define YK_ADVISE_H

#include <stdbool.h>
#include <stdint.h>

// Does, in the current context, which rehearses, what would be done with that batch; 0, or the error.
typedef int yk_rehearse_fn(void *arg, int64_t batch);
// The thread's error, ENOMEM of `batch`, with the largest batch that finds its memory on the device, or
// with what else to do (`smaller`) when none does; as it is, when `batch` itself finds it.
// alone: each try has a context of its own, so that it is planned and gets its memory as a run would;
// the current one was freed.
int yk_advise_batch(int64_t batch, bool alone, const char *smaller, yk_rehearse_fn *, void *arg);

#endif
