// SPDX-License-Identifier: Apache-2.0
// SCATTER_SET: x [N,R..], idx [I..], v [I..,R..] -> y = x with the rows of v at idx; -1 is skipped, and of
// equal indices the last one counts.  Indices are checked before anything is written.
#include "config.h"

#include "../rows/operand.h"
#include "kern_gather.h"

static struct yoke_op copy_of(const struct yoke_op *op)
{
	return (struct yoke_op){ .size = sizeof *op, .code = YOKE_OP_MOVE, .nin = 1, .nout = 1, .in = &op->in[0], .out = &op->out[0] };
}

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 3 || op->nout != 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *idx = &op->in[1], *v = &op->in[2], *y = &op->out[0];
	const struct yoke_op copy = copy_of(op);
	return is_index(idx) && v->kind == YOKE_VIEW_BUFFER && y->kind == YOKE_VIEW_BUFFER && v->dtype == y->dtype &&
	       x->dtype == y->dtype && y->rank >= 1 && x->rank == y->rank && same_dims(x->dims, y->dims, y->rank) &&
	       v->rank == idx->rank + y->rank - 1 && same_dims(v->dims, idx->dims, idx->rank) &&
	       same_dims(v->dims + idx->rank, y->dims + 1, y->rank - 1) && dense_from(y, 1) && dense_from(v, idx->rank) &&
	       ISA(yk_move).can(&copy);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *idx = &op->in[1], *v = &op->in[2], *y = &op->out[0];
	const int64_t n = indices(idx), rows = y->dims[0];
	size_t bytes = yk_esize(y->dtype);
	(void)impl, (void)prepared;
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = index_at(idx, i);
		if (row < -1 || row >= rows)
			return out_of_range("scatter_set", idx, i, rows);
	}
	if (!(op->alias_mask & 1)) {
		const struct yoke_op copy = copy_of(op);
		const int e = ISA(yk_move).run(&copy, 0, NULL);
		if (e < 0)
			return e;
	}
	const int64_t to_step = y->strides[0] * (int64_t)bytes, size = (int64_t)bytes;
	for (int d = 1; d < y->rank; d++)
		bytes *= (size_t)y->dims[d];
	for (int64_t i = 0; i < n; i++) {
		const int64_t row = index_at(idx, i);
		if (row >= 0)
			memcpy((char *)yk_ptr(y) + row * to_step,
			       (const char *)yk_ptr(v) + offset_of(v->dims, v->strides, idx->rank, i) * size, bytes);
	}
	return 0;
}

YK_KERNEL(scatter_set, SCATTER_SET) = {
	.can = can, .run = run, .impl = { "rows" },
};
