// SPDX-License-Identifier: Apache-2.0
// REDUCE: cl/reduce.cl, with the map of the input fused. The division of work depends only on shape
// and kind of device.
#include "config.h"

#include <stdlib.h>

#include "rows.h"

#define ITEMS 256 // items per group on GPUs
#define LANES 128 // along j, and at least along c; as in cl/reduce.cl
#define TILE 2048 // columns per item on CPU-like devices
#define SEGMENT ((int64_t)1 << 16) // elements
#define ENOUGH 256                 // work units that keep a device busy
#define JOIN 1024                  // outputs per item of the second pass on CPU-like devices

// Matches struct reduction of cl/reduce.cl.
struct reduction {
	int64_t r, c, q, j, segment, segments, tile, tiles, each, join;
};

struct job {
	struct yoke_map_call call;
	struct reduction s;
	int64_t outputs, elements; // number of outputs; elements per output
	bool columns;
	size_t items; // items per group
};

// Product of the kept axes after the last reduced one; 1: the innermost axis is reduced.
static int64_t columns_of(const struct yoke_op *op)
{
	int64_t columns = 1;

	for (int i = op->rank - 1; i >= 0; i--) {
		if (op->dims[i] == 1)
			continue;
		if (op->attr[1].i >> i & 1)
			break;
		columns *= op->dims[i];
	}
	return columns;
}

// The division along the reduced axes must not depend on how axes were merged.
static void cut_columns(const struct yk_gpu_device *d, struct job *j, int64_t columns)
{
	struct reduction *s = &j->s;
	const int64_t tile = d->cpu_like ? yk_gpu_min(columns, TILE) : 1;
	const int64_t tiles = j->outputs / columns * yk_gpu_ceil_div(columns, tile);
	const int64_t busy = d->cpu_like ? ENOUGH : ENOUGH * ITEMS;
	const int64_t min = d->cpu_like ? SEGMENT / tile : 64;

	s->tile = d->cpu_like ? yk_gpu_min(s->c, TILE) : 1;
	s->tiles = yk_gpu_ceil_div(s->c, s->tile);
	s->segment = yk_gpu_ceil_div(j->elements, busy / tiles > 1 ? busy / tiles : 1);
	if (s->segment < min)
		s->segment = min;
}

static void cut(const struct yk_gpu_device *d, struct job *j, int64_t columns)
{
	struct reduction *s = &j->s;

	s->tile = s->tiles = 1;
	s->segment = j->outputs < ENOUGH ? SEGMENT : INT64_MAX;
	j->items = d->cpu_like ? 1 : ITEMS;
	if (j->columns)
		cut_columns(d, j, columns);
	else
		while (j->items > 32 && (int64_t)j->items / 2 >= j->elements)
			j->items /= 2;
	while (j->items > d->max_group || j->items > d->max_items[0])
		j->items /= 2;
	if (s->segment > j->elements)
		s->segment = j->elements > 0 ? j->elements : 1;
	s->segments = j->elements ? yk_gpu_ceil_div(j->elements, s->segment) : 1;
	int64_t unit = s->segment * s->tile;
	s->each = !d->cpu_like || unit >= SEGMENT ? 1 : SEGMENT / unit;
	s->join = d->cpu_like ? JOIN : 1;
}

static bool job_of(const struct yk_gpu_device *d, const struct yoke_op *op, struct job *j)
{
	struct reduction *s = &j->s;

	if (yk_gpu_map_call(op, &j->call) < 0)
		return false;
	s->r = (int64_t)j->call.count[0], s->c = (int64_t)j->call.count[1];
	s->q = (int64_t)j->call.count[2], s->j = (int64_t)j->call.count[3];
	j->outputs = s->r * s->c;
	j->elements = s->q * s->j;
	if (!j->outputs)
		return true;
	if (!j->elements)
		s->q = 0, s->j = 1; // elements are divided by these
	const int64_t columns = columns_of(op);
	j->columns = columns > 1;
	cut(d, j, columns);
	return true;
}

static int value_dtype(const struct yoke_op *op)
{
	return op->map->insn[op->map->out[0]].dtype;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	struct job j;

	if (op->nattr < 2 || op->nout != 1 || !op->map || !job_of(d, op, &j))
		return 0;
	const int out = op->out[0].dtype, value = value_dtype(op);
	const int64_t kind = op->attr[0].i, mask = op->attr[1].i;
	if (kind < YOKE_REDUCE_SUM || kind > YOKE_REDUCE_ARGMIN)
		return 0;
	if (kind >= YOKE_REDUCE_ARGMAX && (out != yoke_i64 || !mask || mask & (mask - 1)))
		return 0;
	if (kind < YOKE_REDUCE_ARGMAX && (yk_gpu_real(out) != yk_gpu_real(value) ||
					  (out == yoke_f64) != (value == yoke_f64)))
		return 0;
	if (j.call.dtypes & 1u << yoke_f64 && !yk_gpu_f64(d))
		return 0;
	if (!d->cpu_like && d->local_bytes < ITEMS * 16)
		return 0;
	return 8 * (j.call.narg + 2) + sizeof(struct reduction) <= d->info.max_args;
}

static int kernel_of(struct yk_gpu_device *d, const struct yoke_op *op, const struct job *j,
		     const char *name, struct yk_gpu_entry **to)
{
	const int value = value_dtype(op);
	struct yk_gpu_build b = { .file = "reduce.cl", .name = name };

	yk_gpu_define(&b, "KIND", op->attr[0].i);
	yk_gpu_define(&b, "OUT", op->out[0].dtype);
	yk_gpu_define(&b, "ITEMS", (int64_t)j->items);
	yk_gpu_define_warp(&b, d);
	yk_gpu_define(&b, "LANES", j->columns ? TILE : LANES);
	yk_gpu_flag(&b, "WIDE_ACC", value == yoke_f64);
	yk_gpu_flag(&b, "INTEGER", !yk_gpu_real(value));
	yk_gpu_flag(&b, "COLUMNS", j->columns);
	yk_gpu_flag(&b, "OWN_MATH", d->cpu_like);
	return yk_gpu_kernel_map(d, op, &j->call, &b, to);
}

static int launch(struct yk_gpu_record *r, const struct yoke_op *op, const struct job *j,
		  const char *name, const size_t items[2], size_t group)
{
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, op, j, name, &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_view(r, j->s.segments > 1 ? &op->workspace : &op->out[0]);
	yk_gpu_arg_struct(r, &j->s, sizeof j->s);
	yk_gpu_arg_map(r, op, &j->call);
	return yk_gpu_launch(r, 2, items, (const size_t[]){ group, 1 }, name);
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	struct job j;
	size_t items[2] = { 1, 1 };

	(void)impl;
	if (!job_of(r->device, op, &j))
		return yk_gpu_error(YOKE_EUNSUPPORTED, "unsupported reduction");
	if (!j.outputs)
		return 0;
	const struct reduction *s = &j.s;
	uint64_t bytes = 0;
	if (s->segments > 1 &&
	    (__builtin_mul_overflow((uint64_t)s->segments, (uint64_t)j.outputs, &bytes) ||
	     __builtin_mul_overflow(bytes, (uint64_t)16, &bytes)))
		bytes = UINT64_MAX;
	yk_gpu_workspace(r, bytes);
	const int64_t units = s->r * s->segments * (j.columns ? s->tiles : s->c);
	if (r->device->cpu_like) {
		items[0] = (size_t)yk_gpu_ceil_div(units, s->each);
	} else if (j.columns) {
		items[0] = (size_t)yk_gpu_max_groups(r->device,
						     yk_gpu_ceil_div(s->c, (int64_t)j.items)) *
			   j.items;
		items[1] = (size_t)(s->r * s->segments);
	} else {
		items[0] = (size_t)yk_gpu_max_groups(r->device, units) * j.items;
	}
	int err = launch(r, op, &j, "reduce", items, j.items);
	if (err || s->segments == 1)
		return err;
	const size_t group = r->device->cpu_like ? 1 : j.items;
	const int64_t groups = yk_gpu_ceil_div(yk_gpu_ceil_div(j.outputs, s->join), (int64_t)group);
	return launch(r, op, &j, "reduce_join", (const size_t[]){ (size_t)groups * group, 1 },
		      group);
}

static const char *const names[] = { "two-pass" };
YK_GPU_OP(reduce, REDUCE) = { .names = names, .nimpl = 1, .can = can, .record = record };
