// SPDX-License-Identifier: Apache-2.0
// Run-time choice of the all_reduce algorithm (setting dist.adapt). For each size class the first
// rank of a group times its message-based all_reduces. It tries every algorithm that gives the same
// bits and is predicted to take at most twice as long as the best one so far. It replaces the best
// one if it is at least 1.2 times as fast, by the median of 32 times. If the best one becomes 1.2
// times slower than it was, all are tried again. All ranks apply a change from the same training
// step on, at least 50 steps after the previous change.
#ifndef YK_ADAPT_H
#define YK_ADAPT_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/ranks.h"

struct yk_adapt;

// Whether dist.adapt is set and dist.algorithm does not name an algorithm.
bool yk_adapt_enabled(void);
// Every rank of a group has one. Returns NULL if out of memory.
struct yk_adapt *yk_adapt_new(uint32_t ranks, uint32_t node);
void yk_adapt_free(struct yk_adapt *); // NULL is allowed
// Records the duration of an all_reduce of `bytes` by algorithm `how`. once: half precision must be
// rounded only once.
void yk_adapt_took(struct yk_adapt *, uint64_t bytes, bool once, int how, double seconds);
// Called on the first rank before a step. Returns the change that all ranks must pass to
// yk_adapt_apply, or 0 for none. `message` receives a log line if another algorithm has become the
// best, else "".
uint32_t yk_adapt_propose(struct yk_adapt *, int64_t step, char *message, size_t room);
void yk_adapt_apply(struct yk_adapt *, uint32_t change); // takes effect with the next job
// Returns 1 + the algorithm for this size, or 0 for the default.
int yk_adapt_how(const struct yk_adapt *, uint64_t bytes);

#endif
