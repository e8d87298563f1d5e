// SPDX-License-Identifier: Apache-2.0
// Which samples a batch has: settings of a loader, and places in the order of epochs.
// A place is of this rank: its k-th sample of an epoch.  Index, of all ranks together, is base + k * world + rank,
// where only the epoch in which a run began may have a base, when it was begun by another number of ranks.
#ifndef YK_DATA_CURSOR_H
#define YK_DATA_CURSOR_H

#include <stdbool.h>

#include "yoke-data.h"

enum yk_last { YK_LAST_WRAP, YK_LAST_DROP, YK_LAST_KEEP, YK_LAST_PAD };
enum { YK_DATA_AUTO = -1, YK_ERROR_SKIP = -1, YK_ERROR_STOP = 0 };

struct yk_feed {
	int64_t batch, workers, prefetch, shuffle, last, seed, rank, world, on_error, epochs, split, part, parts, stride, held;
	int64_t count; // samples of the set
};

// Reads "key=value ..".  EINVAL names key and rule.
int yk_feed_parse(struct yk_feed *, const char *settings);

struct yk_cursor {
	int64_t epoch, base, at;
};

// Places of this rank in that epoch.
int64_t yk_places(const struct yk_feed *, const struct yk_cursor *);
// EINVAL: there is no such index.
int yk_cursor_from(const struct yk_feed *, const struct yoke_position *, struct yk_cursor *);
int64_t yk_cursor_index(const struct yk_feed *, const struct yk_cursor *);
// Where the next batch begins, past what last=drop leaves out, and how many samples it has; 0: the epochs are over.
int64_t yk_cursor_batch(const struct yk_feed *, struct yk_cursor *);
// n places on, over ends of epochs.
struct yk_cursor yk_cursor_on(const struct yk_feed *, const struct yk_cursor *, int64_t n);
// The next place of the same epoch, the first behind the last.
void yk_cursor_turn(const struct yk_feed *, struct yk_cursor *);
int64_t yk_cursor_sample(const struct yk_feed *, const struct yk_cursor *);

#endif
