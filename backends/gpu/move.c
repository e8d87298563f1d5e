// SPDX-License-Identifier: Apache-2.0
// MOVE, SLICE_AT and SLICE_UPDATE_AT: cl/move.cl, any dtype and layout. Start indices known to the
// host become part of the offset; those in device memory are added up there, in the workspace.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "axes.h"
#include "report.h"

#define ITEMS 256 // items per group that copies a tile
#define MIN_SIZE 8   // min elements of both axes for tiles

struct copy {
	struct yk_gpu_axes axes;
	size_t size; // bytes per element
	bool value, tiles, streams;
	int shift; // which operand the device-side starts shift: 0 none, 1 y, 2 x
	int64_t tile, tiles_a, tiles_b;
};

// ---- supported ops ----

static bool can_copy(const struct yoke_view *x, const struct yoke_view *y)
{
	if (y->kind != YOKE_VIEW_BUFFER || x->kind == YOKE_VIEW_NONE || x->dtype != y->dtype ||
	    y->dtype < yoke_f32 || y->dtype > yoke_bool)
		return false;
	return x->kind == YOKE_VIEW_SCALAR ||
	       (x->rank == y->rank &&
		!memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims));
}

// The subview of `whole` with the dims of v, at index 0, and with the alignment that holds for any
// start. False if it does not fit or no start is possible.
static bool part_of(const struct yoke_op *op, const struct yoke_view *whole,
		    const struct yoke_view *v, struct yoke_view *part)
{
	uint64_t align = whole->align;

	if (whole->kind != YOKE_VIEW_BUFFER || v->rank != whole->rank)
		return false;
	*part = *whole;
	for (int i = 0; i < whole->rank; i++) {
		const struct yoke_view *start = &op->in[1 + i];
		if (v->dims[i] > whole->dims[i] ||
		    (yk_gpu_present(start) &&
		     (start->dtype != yoke_i64 ||
		      (start->kind == YOKE_VIEW_BUFFER && yk_gpu_elements(start) != 1))))
			return false;
		part->dims[i] = v->dims[i];
		if (yk_gpu_present(start) && v->dims[i] < whole->dims[i])
			align |= (uint64_t)whole->strides[i] * yk_gpu_bytes(whole->dtype);
	}
	part->align = (uint32_t)(align & (0 - align)); // lowest set bit
	return true;
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0], *v = &op->in[op->nin - 1];
	struct yoke_view part;

	if (op->nout != 1 || op->nin < 1 ||
	    d->info.max_args < sizeof(struct yk_gpu_axes) + 12 * 8)
		return 0;
	if (op->code == YOKE_OP_MOVE)
		return op->nin == 1 && can_copy(x, y);
	if (op->code == YOKE_OP_SLICE_AT)
		return op->nin == 1u + x->rank && part_of(op, x, y, &part) && can_copy(&part, y);
	return op->nin == 2u + y->rank && part_of(op, y, v, &part) && can_copy(x, y) &&
	       can_copy(v, &part);
}

// ---- a copy ----

struct layout {
	int rank;
	int64_t dims[YOKE_MAX_RANK], to[YOKE_MAX_RANK], from[YOKE_MAX_RANK];
};

static void swap_axes(struct layout *l, int a, int b)
{
	int64_t *const list[] = { l->dims, l->to, l->from };
	for (int k = 0; k < 3; k++) {
		int64_t t = list[k][a];
		list[k][a] = list[k][b];
		list[k][b] = t;
	}
}

// Orders axes by decreasing stride of y.
static struct layout layout_of(const struct yoke_view *x, const struct yoke_view *y)
{
	struct layout l = { .rank = 0 };

	for (int d = 0; d < y->rank; d++) {
		if (y->dims[d] == 1)
			continue;
		l.dims[l.rank] = y->dims[d];
		l.to[l.rank] = y->strides[d];
		l.from[l.rank++] = x->kind == YOKE_VIEW_BUFFER ? x->strides[d] : 0;
	}
	for (int d = 1; d < l.rank; d++)
		for (int e = d; e > 0 && llabs(l.to[e - 1]) < llabs(l.to[e]); e--)
			swap_axes(&l, e - 1, e);
	return l;
}

// If x is contiguous along another axis than y, moves that axis before the last one and returns
// true.
static bool take_tiles(struct yk_gpu_axes *a)
{
	const int last = (int)a->rank - 1;
	int other = -1;

	if (a->strides[0][last] != 1 || a->strides[1][last] == 1 || a->dims[last] < MIN_SIZE)
		return false;
	for (int d = 0; d < last; d++)
		if (a->strides[1][d] == 1 && a->dims[d] >= MIN_SIZE)
			other = d;
	if (other < 0)
		return false;
	int64_t *const list[] = { a->dims, a->strides[0], a->strides[1] };
	for (int k = 0; k < 3; k++) {
		int64_t t = list[k][other];
		list[k][other] = list[k][last - 1];
		list[k][last - 1] = t;
	}
	return true;
}

// True if y is large, each of its rows starts on a cache line, and x is read in runs.
static bool streams(const struct yk_gpu_device *d, const struct copy *c,
		    const struct yoke_view *y)
{
	const int64_t line = 64 / (int64_t)c->size;
	const int last = (int)c->axes.rank - 1;

	if (c->value || y->align < 64 ||
	    (!c->tiles && (c->axes.strides[0][last] != 1 || c->axes.strides[1][last] != 1)) ||
	    (uint64_t)c->axes.rows * (uint64_t)c->axes.cols < d->stream_bytes / c->size)
		return false;
	for (int i = 0; i < last; i++)
		if (c->axes.strides[0][i] % line)
			return false;
	return true;
}

static struct copy copy_of(const struct yk_gpu_device *d, const struct yoke_view *x,
			   const struct yoke_view *y, int shift)
{
	struct layout l = layout_of(x, y);
	struct copy c = { .size = yk_gpu_bytes(y->dtype),
			  .value = x->kind == YOKE_VIEW_SCALAR,
			  .shift = shift,
			  .tile = d->cpu_like ? 64 : 32 };
	const bool fits =
		d->cpu_like || (yk_gpu_fits_group(d, ITEMS) && d->local_bytes >= 33 * 32 * 8);

	yk_gpu_axes_of(&c.axes, l.rank, l.dims, 2, (const int64_t *const[]){ l.to, l.from });
	c.tiles = fits && take_tiles(&c.axes);
	if (c.tiles) {
		c.tiles_a = yk_gpu_ceil_div(c.axes.cols, c.tile);
		c.tiles_b = yk_gpu_ceil_div(c.axes.dims[c.axes.rank - 2], c.tile);
	}
	c.streams = d->cpu_like && streams(d, &c, y);
	return c;
}

static int kernel_of(struct yk_gpu_device *d, const struct copy *c, struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = "move.cl", .name = "move" };

	if (c->value || c->tiles)
		b.name = c->value ? "move_value" : "move_tiles";
	yk_gpu_define(&b, "UNIT", (int64_t)c->size);
	yk_gpu_define(&b, "SHIFT", c->shift);
	yk_gpu_define(&b, "TILE", c->tile);
	yk_gpu_define(&b, "ITEMS", d->cpu_like ? 1 : ITEMS);
	yk_gpu_flag(&b, "WIDE_INDEX", c->axes.rows > INT32_MAX);
	yk_gpu_flag(&b, "STREAMS", c->streams);
	return yk_gpu_kernel_file(d, &b, to);
}

static int start_kernel(struct yk_gpu_device *d, struct yk_gpu_entry **to)
{
	const struct yk_gpu_build b = { .file = "move.cl", .name = "move_start" };

	return yk_gpu_kernel_file(d, &b, to);
}

static int copy(struct yk_gpu_record *r, const struct yoke_op *op, const struct yoke_view *x,
		const struct yoke_view *y, int shift)
{
	struct copy c = copy_of(r->device, x, y, shift);
	struct yk_gpu_entry *kernel;

	if (!yk_gpu_elements(y))
		return 0;
	int err = kernel_of(r->device, &c, &kernel);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	struct yk_gpu_division cut = yk_gpu_division_of(r->device, kernel, (uint64_t)c.axes.cols,
					      (uint64_t)c.axes.rows, 1);
	yk_gpu_arg_view(r, y);
	if (c.value)
		yk_gpu_arg_offset(r, x);
	else
		yk_gpu_arg_view(r, x);
	yk_gpu_arg_struct(r, &c.axes, sizeof c.axes);
	if (c.tiles) {
		yk_gpu_arg_word(r, (uint64_t)c.tiles_a);
		yk_gpu_arg_word(r, (uint64_t)c.tiles_b);
	} else {
		yk_gpu_arg_division(r, &cut);
	}
	if (shift) {
		yk_gpu_arg_view(r, &op->workspace);
		yk_gpu_arg_slot(r);
	}
	if (!c.tiles)
		return yk_gpu_launch(r, 2, cut.items, cut.group, "a copy");
	int64_t groups = c.axes.rows / c.axes.dims[c.axes.rank - 2] * c.tiles_a * c.tiles_b;
	return yk_gpu_launch_groups(r, groups, r->device->cpu_like ? 1 : ITEMS, "a copy");
}

int yk_gpu_move_record(struct yk_gpu_record *r, const struct yoke_op *op,
		       const struct yoke_view *from, const struct yoke_view *to)
{
	return copy(r, op, from, to, 0);
}

// ---- starts ----

static int starts_on_device(const struct yoke_op *op, int rank)
{
	int n = 0;

	for (int i = 0; i < rank; i++)
		n += op->in[1 + i].kind == YOKE_VIEW_BUFFER;
	return n;
}

static const char *name_of(const struct yoke_op *op)
{
	return op->code == YOKE_OP_SLICE_AT ? "slice_at" : "slice_update_at";
}

// The tensor that the starts index.
static const struct yoke_view *whole_of(const struct yoke_op *op)
{
	return op->code == YOKE_OP_SLICE_AT ? &op->in[0] : &op->out[0];
}

// The dims of the slice.
static const int64_t *part_dims(const struct yoke_op *op)
{
	return op->code == YOKE_OP_SLICE_AT ? op->out[0].dims : op->in[op->nin - 1].dims;
}

// Host-side starts shift the slice; device-side starts are added up in the workspace.
static int take_starts(const struct yoke_op *op, struct yoke_view *part)
{
	const struct yoke_view *whole = whole_of(op);
	const int64_t *dims = part_dims(op);

	*part = *whole;
	for (int i = 0; i < whole->rank; i++) {
		const struct yoke_view *start = &op->in[1 + i];
		const int64_t max = whole->dims[i] - dims[i];
		int64_t value;
		if (start->kind != YOKE_VIEW_SCALAR)
			continue;
		memcpy(&value, &start->offset, sizeof value);
		if (value < 0 || value > max)
			return yk_gpu_error(
				YOKE_ERANGE,
				"%s (step %llu): start %lld of axis %d is not in 0..%lld: "
				"%lld of %lld elements",
				name_of(op), (unsigned long long)op->id, (long long)value, i,
				(long long)max, (long long)dims[i], (long long)whole->dims[i]);
		part->offset += (uint64_t)(value * whole->strides[i]) * yk_gpu_bytes(part->dtype);
	}
	return 0;
}

static int add_starts(struct yk_gpu_record *r, const struct yoke_op *op)
{
	const struct yoke_view *whole = whole_of(op);
	const int64_t *dims = part_dims(op);
	struct yk_gpu_entry *kernel;
	int err = start_kernel(r->device, &kernel), begun = 0;

	yk_gpu_workspace(r, sizeof(int64_t));
	yk_gpu_reports(r, YK_GPU_START, name_of(op), 0);
	for (int i = 0; i < whole->rank && !err; i++) {
		if (op->in[1 + i].kind != YOKE_VIEW_BUFFER)
			continue;
		yk_gpu_begin(r, kernel);
		yk_gpu_arg_view(r, &op->workspace);
		yk_gpu_arg_view(r, &op->in[1 + i]);
		yk_gpu_arg_word(r, (uint64_t)(whole->dims[i] - dims[i]));
		yk_gpu_arg_word(r, (uint64_t)whole->strides[i]);
		yk_gpu_arg_word(r, (uint64_t)i);
		yk_gpu_arg_word(r, begun++ == 0);
		yk_gpu_arg_slot(r);
		err = yk_gpu_launch_groups(r, 1, 1, "a start");
	}
	return err;
}

// ---- the ops ----

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const struct yoke_view *v = &op->in[op->nin - 1];
	const bool slice = op->code == YOKE_OP_SLICE_AT, in_place = op->alias_mask & 1;
	struct yoke_view part;

	(void)impl;
	if (op->code == YOKE_OP_MOVE)
		return in_place ? 0 : copy(r, op, x, y, 0);
	part_of(op, slice ? x : y, slice ? y : v, &part);
	part = yk_gpu_part(r, &part);
	r->bind = take_starts;
	const bool shifts = starts_on_device(op, y->rank) > 0;
	int err = shifts ? add_starts(r, op) : 0;
	if (err)
		return err;
	if (slice)
		return copy(r, op, &part, y, shifts ? 2 : 0);
	if (!in_place && (err = copy(r, op, x, y, 0)))
		return err;
	return copy(r, op, v, &part, shifts ? 1 : 0);
}

static const char *const names[] = { "planes" };
YK_GPU_OP(move, MOVE, SLICE_AT,
	  SLICE_UPDATE_AT) = { .names = names, .nimpl = 1, .can = can, .record = record };
