// SPDX-License-Identifier: Apache-2.0
// A change of algorithm amid a run (dist.adapt): the first rank of a group times its all_reduces by messages, by size, and
// tries those ways that give the same bits and should take less than twice as long; one that in the median of 32 is 1.2
// times as fast as the best one so far takes its place, and where that gets slower than it was all are tried anew.  Ranks
// hear of a change together and apply it from the same step on, at least 50 behind the one before.
#ifndef YK_ADAPT_H
#define YK_ADAPT_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/ranks.h"

struct yk_adapt;

// Is it asked for, and does no other setting say how?
bool yk_adapt_asked(void);
// Of a group, on each of its ranks.  NULL: no memory.
struct yk_adapt *yk_adapt_new(uint32_t ranks, uint32_t node);
void yk_adapt_free(struct yk_adapt *); // NULL is fine
// An all_reduce of so many bytes took so long by that algorithm; once: sums are rounded once.
void yk_adapt_took(struct yk_adapt *, uint64_t bytes, bool once, int how, double seconds);
// On the first rank, before a step: what all are to apply, as yk_adapt_apply takes it; 0: nothing new.  said: "", or that
// another algorithm is the best by now.
uint32_t yk_adapt_wish(struct yk_adapt *, int64_t step, char *said, size_t room);
void yk_adapt_apply(struct yk_adapt *, uint32_t wish); // from the next job on
// 1 + the algorithm for so many bytes; 0: the usual one.
int yk_adapt_how(const struct yk_adapt *, uint64_t bytes);

#endif
