// SPDX-License-Identifier: Apache-2.0
// GROUPED and GROUPED_BACKWARD: one product per group of rows, with the kernels of CONTRACT. A
// group's rows are read in place. Group sizes are known only when the op runs, so nothing else
// depends on them.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "../move/walk.h"

// View of rows from .. from + n - 1 along axis 0.
static struct yoke_view rows_of(const struct yoke_view *v, int64_t from, int64_t n)
{
	struct yoke_view r = *v;
	r.offset += (uint64_t)(from * v->strides[0]) * yk_esize(v->dtype);
	r.dims[0] = n;
	r.align = (uint32_t)yk_esize(v->dtype);
	return r;
}

// Matrix e of a stack [E,..].
static struct yoke_view matrix_of(const struct yoke_view *v, int64_t e)
{
	struct yoke_view r = rows_of(v, e, 1);
	r.rank = 2;
	for (int d = 0; d < 2; d++) {
		r.dims[d] = v->dims[d + 1];
		r.strides[d] = v->strides[d + 1];
	}
	return r;
}

static struct yoke_view transposed_view(const struct yoke_view *v)
{
	struct yoke_view r = *v;
	for (int d = 0; d < 2; d++) {
		r.dims[d] = v->dims[1 - d];
		r.strides[d] = v->strides[1 - d];
	}
	return r;
}

static struct yoke_op product_of(const struct yoke_view *in, const struct yoke_view *out)
{
	return (struct yoke_op){ .size = sizeof(struct yoke_op),
				 .code = YOKE_OP_CONTRACT,
				 .nattr = 2,
				 .nout = 1,
				 .nin = 2,
				 .out = out,
				 .in = in,
				 .attr = { { .i = out->dtype }, { .i = 1 } } };
}

// Sets the operands of group e's product.
static void group(const struct yoke_op *op, int64_t e, int64_t from, int64_t n,
		  struct yoke_view *in, struct yoke_view *out)
{
	in[0] = rows_of(&op->in[0], from, n);
	if (op->code == YOKE_OP_GROUPED) {
		in[1] = matrix_of(&op->in[1], e);
		if (op->attr[0].i)
			in[1] = transposed_view(&in[1]);
		*out = rows_of(&op->out[0], from, n);
	} else {
		in[0] = transposed_view(&in[0]);
		in[1] = rows_of(&op->in[1], from, n);
		*out = matrix_of(&op->out[0], e);
	}
}

static uint64_t can(const struct yoke_op *op)
{
	const bool back = op->code == YOKE_OP_GROUPED_BACKWARD;
	struct yoke_view in[2], out;
	if (op->nin != 3 || op->nout != 1 || (!back && op->nattr < 1))
		return 0;
	const struct yoke_view *x = &op->in[0], *w = &op->in[1], *first = &op->in[2],
			       *y = &op->out[0];
	if (x->kind != YOKE_VIEW_BUFFER || w->kind != YOKE_VIEW_BUFFER ||
	    first->kind != YOKE_VIEW_BUFFER || y->kind != YOKE_VIEW_BUFFER || x->rank != 2 ||
	    w->rank != (back ? 2 : 3) || y->rank != (back ? 3 : 2) || first->rank != 1 ||
	    first->dtype != yoke_i64 || first->dims[0] < 1)
		return 0;
	group(op, 0, 0, x->dims[0], in, &out);
	const struct yoke_op p = product_of(in, &out);
	return ISA(yk_contract).can(&p) & 1;
}

// The largest workspace a group may need: that of one group with all rows.
static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	struct yoke_view in[2], out;
	uint64_t max = 0;
	for (int64_t n = op->in[0].dims[0]; n > 0; n /= 2) {
		group(op, 0, 0, n, in, &out);
		const struct yoke_op p = product_of(in, &out);
		const uint64_t bytes =
			ISA(yk_contract).workspace ? ISA(yk_contract).workspace(&p, impl) : 0;
		max = bytes > max ? bytes : max;
	}
	return max;
}

static void clear(const struct yoke_view *v)
{
	const size_t size = yk_esize(v->dtype);
	for (int64_t i = 0; i < v->dims[0]; i++)
		for (int64_t k = 0; k < v->dims[1]; k++)
			memset((char *)yk_ptr(v) +
				       (i * v->strides[0] + k * v->strides[1]) * (int64_t)size,
			       0, size);
}

static int one(const struct yoke_op *op, int64_t e, int64_t from, int64_t n)
{
	struct yoke_view in[2], out;
	group(op, e, from, n, in, &out);
	if (!n) {
		clear(&out);
		return 0;
	}
	struct yoke_op p = product_of(in, &out);
	const uint64_t bytes = ISA(yk_contract).workspace ? ISA(yk_contract).workspace(&p, 0) : 0;
	const bool own =
		bytes && (op->workspace.kind != YOKE_VIEW_BUFFER || bytes > workspace(op, 0));
	struct yk_segment extra = { .base = own ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL,
				    .bytes = bytes };
	void *prepared = own && !extra.base ? NULL : ISA(yk_contract).prepare(&p, 0);
	int err = prepared ? 0 : yk_cpu_fail(YOKE_ENOMEM, "grouped_matmul: no memory for a group");
	p.workspace = op->workspace;
	if (own)
		p.workspace = (struct yoke_view){ .segment = &extra,
						  .kind = YOKE_VIEW_BUFFER,
						  .dtype = yoke_u8,
						  .rank = 1,
						  .dims = { (int64_t)bytes },
						  .strides = { 1 } };
	if (!err)
		err = ISA(yk_contract).run(&p, 0, prepared);
	free(prepared);
	free(extra.base);
	return err;
}

static int64_t begin_of(const struct yoke_view *first, int64_t e)
{
	int64_t row;
	memcpy(&row, (const char *)yk_ptr(first) + e * first->strides[0] * (int64_t)sizeof row,
	       sizeof row);
	return row;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *first = &op->in[2];
	const int64_t groups = first->dims[0] - 1, rows = op->in[0].dims[0];
	const bool back = op->code == YOKE_OP_GROUPED_BACKWARD;
	int64_t last = 0;
	int err = 0;

	(void)impl, (void)prepared;
	for (int64_t e = 0; e <= groups; e++) {
		const int64_t from = begin_of(first, e);
		if (from < last || from > rows)
			return yk_cpu_fail(
				YOKE_ERANGE,
				"grouped_matmul: group %lld begins at row %lld, which is not in %lld..%lld",
				(long long)e, (long long)from, (long long)last, (long long)rows);
		last = from;
	}
	if (!back) { // rows in no group
		const int64_t from = begin_of(first, 0);
		const struct yoke_view before = rows_of(&op->out[0], 0, from),
				       after = rows_of(&op->out[0], last, rows - last);
		clear(&before);
		clear(&after);
	}
	for (int64_t e = 0; e < groups && !err; e++) {
		const int64_t from = begin_of(first, e), n = begin_of(first, e + 1) - from;
		if (n || back)
			err = one(op, e, from, n);
	}
	return err;
}

YK_KERNEL(grouped,
	  GROUPED) = { .can = can, .workspace = workspace, .run = run, .impl = { "products" } };
YK_KERNEL(grouped_backward, GROUPED_BACKWARD) = {
	.can = can, .workspace = workspace, .run = run, .impl = { "products" }
};
