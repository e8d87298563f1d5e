// SPDX-License-Identifier: Apache-2.0
// Rows of a profile: the distinct kinds of work that were seen, each with what it took in
// all. A row copies what it says of a step, since plans go away.
#ifndef YK_ROWS_H
#define YK_ROWS_H

#include "base/arena.h"
#include "plan/plan.h"

struct yk_row {
	const char *op, *impl, *device;
	const char *scope; // of the last node, "" for none
	const char *nodes; // "layer0/mlp: mul add; layer0: add": all nodes, by scope
	uint64_t bytes;    // of one launch, read and written
	double flops;      // of one launch of a contraction, else 0
	uint64_t count, ns;
};

struct yk_rows {
	struct yk_row *row;
	size_t n, cap;
	uint32_t *table; // open addressing by hash: row + 1
	uint64_t *hash;  // by row
	size_t table_size, hash_cap;
	struct yk_arena text;
	struct yk_seen { // rows of the steps of the plans seen last, by serial
		uint64_t serial;
		uint32_t *row;
	} seen[256];
};

// The row of a step, or of work that is none ("put"); YK_NIL: no memory.
uint32_t yk_row_of_step(struct yk_rows *, const struct yoke_context *,
			const struct yk_plan *, uint64_t step);
uint32_t yk_row_of(struct yk_rows *, const char *op, const char *device);
void yk_rows_fini(struct yk_rows *);

// 2 M N K and leading axes; 0 for a step that is no contraction.
double yk_step_flops(const struct yk_plan *, uint64_t step);

#endif
