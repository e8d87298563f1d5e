// SPDX-License-Identifier: Apache-2.0
// Rows of a profile: one for each distinct kind of work, with its totals.
// A row copies its description of a step, because plans may be freed.
#ifndef YK_ROWS_H
#define YK_ROWS_H

#include "base/arena.h"
#include "plan/plan.h"
#include "yoke-observe.h"

struct yk_row {
// identity of the row; "" for a field that is not requested
	const char *op, *impl, *device;
	const char *shapes, *range, *site;
	const char *scope; // of the last node
	const char *nodes; // "layer0/mlp: mul add; layer0: add": all nodes, by scope
	int dtype;
// totals over all calls
	uint64_t count, ns, host_ns, min, max;
	uint64_t cpu_ns, cpu_of_ns; // of all threads, in calls that took cpu_of_ns in total
	uint64_t bytes; // read and written
	double flops;   // NaN: not counted
	int64_t growth;
	double occupancy; // 0..1, at the last launch that was sampled; NaN: not available
};

struct yk_step_row { // a step of a plan, as of its last launch
	uint32_t row, range, site;
	uint64_t bytes;
	double flops;
};

struct yk_rows {
	unsigned flags; // YOKE_PROFILE_*
	struct yk_row *row;
	size_t n, cap;
	uint32_t *table; // open addressing by hash; holds row + 1
	uint64_t *hash;  // by row
	size_t table_size, hash_cap;
	struct yk_arena text;
	struct yk_seen { // steps of the most recent plans, by serial number
		uint64_t serial, launch;
		struct yk_step_row *step;
	} seen[256];
};

// The row of a step of the plan being launched; NULL: out of memory.  launch: differs for each
// launch.
const struct yk_step_row *yk_row_of_step(struct yk_rows *, const struct yoke_context *,
					 const struct yk_plan *, uint64_t step, uint64_t launch);
// The row of work that is not a step of a plan ("put"), in a range; YK_NIL: out of memory.
uint32_t yk_row_of(struct yk_rows *, const struct yoke_context *, const char *op,
		   const char *device);
// Resets all totals to zero.
void yk_rows_clear(struct yk_rows *);
void yk_rows_fini(struct yk_rows *);

#endif
