// SPDX-License-Identifier: Apache-2.0
// Rows of a profile: the distinct kinds of work that were seen, each with what it took in
// all. A row copies what it says of a step, since plans go away.
#ifndef YK_ROWS_H
#define YK_ROWS_H

#include "base/arena.h"
#include "plan/plan.h"
#include "yoke-observe.h"

struct yk_row {
	// what tells it apart; "" where it is not asked for
	const char *op, *impl, *device;
	const char *shapes, *range, *site;
	const char *scope; // of the last node
	const char *nodes; // "layer0/mlp: mul add; layer0: add": all nodes, by scope
	int dtype;
	// over all calls
	uint64_t count, ns, host_ns, least, most;
	uint64_t cpu_ns, cpu_of_ns; // of all threads, in calls that took so long
	uint64_t bytes; // read and written
	double flops;   // NaN: not counted
	int64_t growth;
	double occupancy; // 0..1 of the last launch that was looked at; NaN: n/a
};

struct yk_step_row { // of a step of a plan, as it was launched last
	uint32_t row, range, site;
	uint64_t bytes;
	double flops;
};

struct yk_rows {
	unsigned flags; // YOKE_PROFILE_*
	struct yk_row *row;
	size_t n, cap;
	uint32_t *table; // open addressing by hash: row + 1
	uint64_t *hash;  // by row
	size_t table_size, hash_cap;
	struct yk_arena text;
	struct yk_seen { // the steps of the plans seen last, by serial
		uint64_t serial, launch;
		struct yk_step_row *step;
	} seen[256];
};

// What a step of the plan that is being launched is; NULL: no memory.  launch: another number for each launch.
const struct yk_step_row *yk_row_of_step(struct yk_rows *, const struct yoke_context *, const struct yk_plan *,
					 uint64_t step, uint64_t launch);
// The row of work that is none ("put"), in a range; YK_NIL: no memory.
uint32_t yk_row_of(struct yk_rows *, const struct yoke_context *, const char *op, const char *device);
// All counts start from zero.
void yk_rows_clear(struct yk_rows *);
void yk_rows_fini(struct yk_rows *);

#endif
