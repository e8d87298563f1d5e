// SPDX-License-Identifier: Apache-2.0
// Cursors: settings of a loader, and positions in the sample order, which decide the samples of
// each batch.  `at` counts this rank's samples of an epoch.  The index over all ranks is base + at
// * world + rank; base is nonzero only in the epoch in which a run was resumed with another number
// of ranks.
#ifndef YK_DATA_CURSOR_H
#define YK_DATA_CURSOR_H

#include <stdbool.h>

#include "yoke-data.h"

enum yk_last { YK_LAST_WRAP, YK_LAST_DROP, YK_LAST_KEEP, YK_LAST_PAD };
enum { YK_DATA_AUTO = -1, YK_ERROR_SKIP = -1, YK_ERROR_STOP = 0 };

struct yk_feed {
	int64_t batch, workers, prefetch, shuffle, last, seed, rank, world, on_error, epochs, split,
		part, parts, stride, held;
	int64_t count; // samples in the dataset
};

// Parses "key=value ..".  EINVAL names the key and the rule it breaks.
int yk_feed_parse(struct yk_feed *, const char *settings);

struct yk_cursor {
	int64_t epoch, base, at;
};

// Number of samples of this rank in the cursor's epoch.
int64_t yk_feed_samples(const struct yk_feed *, const struct yk_cursor *);
// Converts a saved position.  EINVAL: no such index.
int yk_cursor_from(const struct yk_feed *, const struct yoke_position *, struct yk_cursor *);
int64_t yk_cursor_index(const struct yk_feed *, const struct yk_cursor *);
// Moves the cursor to the next batch, past samples that last=drop omits; returns its number of
// samples, 0 after the last epoch.
int64_t yk_cursor_batch(const struct yk_feed *, struct yk_cursor *);
// The cursor n samples later, across ends of epochs.
struct yk_cursor yk_cursor_on(const struct yk_feed *, const struct yk_cursor *, int64_t n);
// Advances by one within the epoch; wraps to the first sample after the last.
void yk_cursor_turn(const struct yk_feed *, struct yk_cursor *);
int64_t yk_cursor_sample(const struct yk_feed *, const struct yk_cursor *);

#endif
