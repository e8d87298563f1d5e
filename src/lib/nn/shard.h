// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism (Shoeybi et al. 2019): several ranks compute a network together.  Each has a
// shard of the large parameters, and all have the same loss.  Of two consecutive matrices the first
// is sharded by outputs, so that a rank has some of the heads or of the width, the second by
// inputs, and the ranks' products are summed.  The vocabulary is sharded by tokens, as evenly as
// possible; nothing of its size is communicated.  A table of the model lists how each parameter is
// sharded; its layers use shard_layers.h.
#ifndef YK_SHARD_H
#define YK_SHARD_H

#include "yoke-dist.h"

enum yk_shard_kind {
	YK_COLUMN, // W [O,K] and its bias [O] by outputs
	YK_ROW,    // W [O,K] by inputs
	YK_VOCAB,  // W [V,K] and its bias [V] by tokens; shards may differ by one token
};

// Parameters whose names match a pattern (fnmatch).
struct yk_shard_rule {
	const char *pattern; // NULL: end of the table
	enum yk_shard_kind by;
	int blocks; // consecutive blocks along the axis, each of which is sharded; 0: 1
};

// A rank's position among those that compute a network.
struct yk_shard {
	yoke_group *group; // NULL: it is not sharded
	int64_t rank, ranks;
	const struct yk_shard_rule *rule;
};

// A rank's shard of a parameter: elements from .. to - 1 of each of `blocks` equal blocks along an
// axis.
struct yk_shard_range {
	int axis, blocks; // blocks 0: the whole parameter
	int64_t all;      // length of the axis in the whole parameter
	int64_t from, to;
};

// The shard of a parameter of that name; changes the first `rank` dims to the shard's.  EINVAL: not
// evenly divisible.
int yk_shard_range_of(const struct yk_shard *, const char *name, int rank, int64_t *dims,
		      struct yk_shard_range *);
// The shard of a whole tensor; owned by the innermost scope.
yoke_tensor *yk_shard_slice(const struct yk_shard_range *, yoke_tensor *whole);
// Copies between whole and shard in host memory, elements of `each` bytes; dims are those of the
// whole.
void yk_shard_extract(const struct yk_shard_range *, int rank, const int64_t *dims, size_t each,
		      const void *whole, void *shard);
void yk_shard_insert(const struct yk_shard_range *, int rank, const int64_t *dims, size_t each,
		     const void *shard, void *whole);

#endif
