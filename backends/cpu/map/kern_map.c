// SPDX-License-Identifier: Apache-2.0
// MAP: runs a fused elementwise program over the iteration space, strip by strip. The number of
// strips per work item depends only on the shape and the program.
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "kern_map.h"
#include "../vector/vec.h"

// Shorter rows share a strip. Longer ones are divided, and a strip stays within a row, so that
// operands that are dense in the row are used in place.
enum { LONG_ROW = 128 };

enum { ITEM_COST = 1 << 18 }; // additions per work item

struct job {
	struct yk_prog prog;
	int64_t per_row, strip; // strips per row, or 0: several rows per strip; elements per strip
	int64_t strips, each; // each: strips per work item
	atomic_bool no_memory;
};

static uint64_t can(const struct yoke_op *op)
{
	if (!op->map || op->nout != op->map->nout || !ISA(yk_map_check)(op))
		return 0;
	for (uint32_t k = 0; k < op->nout; k++) {
		const struct yoke_view *o = &op->out[k];
		if (o->kind != YOKE_VIEW_BUFFER || o->rank != op->rank ||
		    o->dtype != op->map->insn[op->map->out[k]].dtype)
			return 0;
	}
	return 1;
}

static void cut(struct job *j)
{
	const struct yk_prog *p = &j->prog;
	int64_t row = p->row;
	if (row >= LONG_ROW || p->rank == 1) {
		// strips of equal length, in whole blocks except the last
		j->per_row = (row + YK_STRIP - 1) / YK_STRIP;
		j->strip = (row + j->per_row - 1) / j->per_row;
		j->strip = (j->strip + YK_BLOCK - 1) / YK_BLOCK * YK_BLOCK;
		j->per_row = (row + j->strip - 1) / j->strip;
		j->strips = p->n / row * j->per_row;
	} else {
		const int64_t unit = p->tile ? p->tile : row;
		j->per_row = 0;
		j->strip = YK_STRIP / unit * unit;
		j->strips = (p->n + j->strip - 1) / j->strip;
	}
	j->each = ITEM_COST / ((p->cost + 3) * j->strip) + 1;
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct yk_prog *p = &j->prog;
	struct yk_frame frame;
	void *memory = yk_team_scratch(p->frame);

	if (!memory) {
		atomic_store(&j->no_memory, true);
		return;
	}
	ISA(yk_frame_init)(&frame, p, memory);
	int64_t begin = index * j->each, end = begin + j->each;
	end = end < j->strips ? end : j->strips;
	for (int64_t s = begin; s < end; s++) {
		int64_t first = s * j->strip, limit = p->n;
		if (j->per_row) {
			int64_t row = s / j->per_row;
			first = row * p->row + (s - row * j->per_row) * j->strip;
			limit = (row + 1) * p->row;
		}
		int64_t n = limit - first < j->strip ? limit - first : j->strip;
		if (p->rank == 1 || j->per_row == 1)
			ISA(yk_frame_next)
			(&frame, n == j->strip || j->per_row == 1 ? s - begin : 0, first, n);
		else
			ISA(yk_frame_run)(&frame, first, n);
	}
	vf_fence();
}

static void derive(struct job *j, const struct yoke_op *op)
{
	ISA(yk_prog_init)(&j->prog, j + 1, op, NULL, (int)op->nout);
	if (j->prog.n == 0)
		return;
	ISA(yk_prog_stream)(&j->prog);
	cut(j);
}

static void *prepare(const struct yoke_op *op, uint32_t impl)
{
	struct job *j = calloc(1, sizeof *j + ISA(yk_prog_bytes)(op->map));

	(void)impl;
	if (j)
		derive(j, op);
	return j;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job *j = prepared;

	(void)impl;
	if (j->prog.n == 0)
		return 0;
	if (!ISA(yk_prog_bind)(&j->prog, op->map, op->out, op->in, 0)) {
		derive(j, op);
		ISA(yk_prog_bind)(&j->prog, op->map, op->out, op->in, 0);
	}
	atomic_init(&j->no_memory, false);
	yk_team_run((j->strips + j->each - 1) / j->each, item, j);
	return atomic_load(&j->no_memory) ?
		       yk_cpu_fail(YOKE_ENOMEM, "map: no memory for registers") :
		       0;
}

YK_KERNEL(map, MAP) = {
	.can = can, .prepare = prepare, .run = run, .impl = { "strips" }
};
