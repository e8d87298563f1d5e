// SPDX-License-Identifier: Apache-2.0
// SLICE_AT and SLICE_UPDATE_AT: strided copies from or to a slice that begins at run-time indices.
// Indices out of range are an error before anything is written.
#include "config.h"

#include "../rows/operand.h"

// The slice of `whole` with the dims of `like` that begins at operands 1, 2, ...
static int part_of(const struct yoke_op *op, const char *name,
		   const struct yoke_view *whole, const struct yoke_view *like,
		   struct yoke_view *to)
{
	*to = *whole;
	for (int i = 0; i < whole->rank; i++) {
		const int64_t start = value_int(&op->in[1 + i], 0),
			      last = whole->dims[i] - like->dims[i];
		if (start < 0 || start > last)
			return yk_cpu_fail(
				YOKE_ERANGE,
				"%s (step %llu): start %lld of axis %d is not in 0..%lld: "
				"%lld of %lld elements",
				name, (unsigned long long)op->id, (long long)start, i,
				(long long)last, (long long)like->dims[i],
				(long long)whole->dims[i]);
		to->offset += (uint64_t)(start * whole->strides[i]) * yk_esize(to->dtype);
		to->dims[i] = like->dims[i];
	}
	return 0;
}

static struct yoke_op move_of(const struct yoke_view *from, const struct yoke_view *to)
{
	return (struct yoke_op){ .size = sizeof(struct yoke_op),
				 .code = YOKE_OP_MOVE,
				 .nin = 1,
				 .nout = 1,
				 .in = from,
				 .out = to };
}

static bool can_move(const struct yoke_view *from, const struct yoke_view *to)
{
	struct yoke_op op = move_of(from, to);
	return ISA(yk_move).can(&op) != 0;
}

static int move(const struct yoke_view *from, const struct yoke_view *to)
{
	struct yoke_op op = move_of(from, to);
	return ISA(yk_move).run(&op, 0, NULL);
}

// True if the slice fits inside `whole` and there are starts for it.
static bool fits(const struct yoke_op *op, const struct yoke_view *whole,
		 const struct yoke_view *v, struct yoke_view *part)
{
	if (whole->kind != YOKE_VIEW_BUFFER || v->rank != whole->rank)
		return false;
	*part = *whole;
	for (int i = 0; i < whole->rank; i++) {
		const struct yoke_view *start = &op->in[1 + i];
		if (v->dims[i] > whole->dims[i] ||
		    (present(start) && (!is_value(start) || start->dtype != yoke_i64)))
			return false;
		part->dims[i] = v->dims[i];
	}
	return true;
}

static uint64_t can_slice(const struct yoke_op *op)
{
	struct yoke_view part;
	return op->nout == 1 && op->nin == 1u + op->in[0].rank &&
	       fits(op, &op->in[0], &op->out[0], &part) && can_move(&part, &op->out[0]);
}

static int run_slice(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	struct yoke_view part;
	int err = part_of(op, "slice_at", &op->in[0], &op->out[0], &part);
	return err ? err : move(&part, &op->out[0]);
}

static uint64_t can_update(const struct yoke_op *op)
{
	struct yoke_view part;
	const struct yoke_view *y = &op->out[0], *v = &op->in[op->nin - 1];
	return op->nout == 1 && op->nin == 2u + y->rank && fits(op, y, v, &part) &&
	       can_move(&op->in[0], y) && can_move(v, &part);
}

static int run_update(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl, (void)prepared;
	const struct yoke_view *y = &op->out[0], *v = &op->in[op->nin - 1];
	struct yoke_view part;
	int err = part_of(op, "slice_update_at", y, v, &part);
	if (!err && !(op->alias_mask & 1))
		err = move(&op->in[0], y);
	return err ? err : move(v, &part);
}

YK_KERNEL(slice_at, SLICE_AT) = {
	.can = can_slice, .run = run_slice, .impl = { "planes" },
};
YK_KERNEL(slice_update_at, SLICE_UPDATE_AT) = {
	.can = can_update, .run = run_update, .impl = { "planes" },
};
