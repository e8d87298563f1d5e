// SPDX-License-Identifier: Apache-2.0
// Networks that several ranks compute together (tensor parallelism; Shoeybi et al. 2019): each has a cut of the large
// parameters, and all hold the one loss.  Of two matrices one behind another the first is cut by its outputs, so that a
// rank has some of the heads or of the width, the second by its inputs, and what ranks get of it is summed.  The vocabulary
// is cut by tokens, evenly or nearly so: nothing as long as it goes between ranks.  Which parameter is cut how is a table
// of the model's; its layers are made of the calls below, which are plain operations where nothing is cut.
#ifndef YK_SHARD_H
#define YK_SHARD_H

#include "yoke-dist.h"

struct yk_network;

enum yk_cutting {
	YK_COLUMN, // W [O,K] and its bias [O] by outputs
	YK_ROW,    // W [O,K] by inputs
	YK_VOCAB,  // W [V,K] and its bias [V] by tokens, of which ranks may have one more than others
};

// Parameters whose names are like this (fnmatch).
struct yk_shard_rule {
	const char *pattern; // NULL: the table ends
	enum yk_cutting by;
	int blocks; // that lie one behind another along the axis, each of which is cut; 0: 1
};

// One rank's place among those that compute a network.
struct yk_shard {
	yoke_group *group; // NULL: it computes all alone
	int64_t rank, ranks;
	const struct yk_shard_rule *rule;
};

// What a rank has of a parameter: elements from .. to - 1 of each of `blocks` equal blocks along an axis.
struct yk_cut {
	int axis, blocks; // blocks 0: all of it
	int64_t all;      // elements of the axis, of the whole
	int64_t from, to;
};

// The cut of a parameter of that name, whose first `rank` dims become those of the cut.  EINVAL: it has no equal parts.
int yk_shard_cut(const struct yk_shard *, const char *name, int rank, int64_t *dims, struct yk_cut *);
// The same of a tensor that is whole: owned by the innermost scope.
yoke_tensor *yk_cut_of(const struct yk_cut *, yoke_tensor *whole);
// In host memory, elements of so many bytes; dims are those of the whole.
void yk_cut_take(const struct yk_cut *, int rank, const int64_t *dims, size_t each, const void *whole, void *cut);
void yk_cut_put(const struct yk_cut *, int rank, const int64_t *dims, size_t each, const void *cut, void *whole);

// ---- layers ----

// x w' + b by a matrix that is cut by its outputs: of x on all ranks, a cut of y.
yoke_tensor *yk_shard_column(const struct yk_network *, yoke_tensor *x, yoke_tensor *w, yoke_tensor *b);
// By one that is cut by its inputs: of a cut of x, y on all ranks.
yoke_tensor *yk_shard_row(const struct yk_network *, yoke_tensor *x, yoke_tensor *w, yoke_tensor *b);
// A cut of x along its last axis, of one that all ranks have.
yoke_tensor *yk_shard_part(const struct yk_network *, yoke_tensor *x);
// Rows of an embedding that is cut by tokens, on all ranks.
yoke_tensor *yk_shard_embedding(const struct yk_network *, yoke_tensor *w, yoke_tensor *ids);
// As yoke_cross_entropy, of logits that are cut by tokens; ids are all of the vocabulary.
yoke_tensor *yk_shard_cross_entropy(const struct yk_network *, yoke_tensor *logits, yoke_tensor *ids);
// What is random between the two is the rank's own; NULL where nothing is cut.
yoke_scope *yk_shard_begin(const struct yk_network *);
// Its end; what was computed there outlives it.
yoke_tensor *yk_shard_end(yoke_scope *, yoke_tensor *);

#endif
