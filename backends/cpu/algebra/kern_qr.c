// SPDX-License-Identifier: Apache-2.0
// QR by Householder reflections, in blocks (dense_qr.h).
#include "config.h"

#include "dense.h"

// Columns of Q and rows of R.
static int64_t middle(const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
	return op->attr[0].i ? m : yk_min(m, n);
}

static size_t bytes(const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
	return (size_t)(m * (dense_ld(n) + dense_ld(middle(op))) +
			dense_of(a->dtype)->qr_elements(m, n)) *
	       yk_esize(a->dtype);
}

static void one(struct dense_batch *b, int64_t index, void *memory)
{
	const struct yoke_op *op = b->op;
	const struct yk_dense *d = b->dense;
	const struct yoke_view *in = &op->in[0];
	const int64_t m = in->dims[in->rank - 2], n = in->dims[in->rank - 1], k = middle(op),
		      ld = dense_ld(n), ldq = dense_ld(k);
	const struct matrix from = matrix_of(in, 2, index);
	char *a = memory, *x = a + (size_t)(m * ld) * d->element,
	     *rest = x + (size_t)(m * ldq) * d->element;
	d->load(&from, m, n, a, ld);
	d->qr(m, n, a, ld, rest);
	if (op->out[1].kind != YOKE_VIEW_NONE) {
		const struct matrix to = matrix_of(&op->out[1], 2, index);
		for (int64_t i = 0; i < k; i++) // below the diagonal it is undefined
			memset(a + (size_t)(i * ld) * d->element, 0,
			       (size_t)yk_min(i, n) * d->element);
		d->store(&to, k, n, a, ld);
	}
	if (op->out[0].kind != YOKE_VIEW_NONE) {
		const struct matrix to = matrix_of(&op->out[0], 2, index);
		d->q_columns(m, n, k, rest, x, ldq);
		d->store(&to, m, k, x, ldq);
	}
}

static uint64_t can(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->out[0]) && is_matrix(&op->out[1]);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return dense_workspace(matrices(&op->in[0], 2), bytes(op));
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *a = &op->in[0];
	const double m = (double)a->dims[a->rank - 2], n = (double)a->dims[a->rank - 1];
	struct dense_batch b = { .op = op,
				 .dense = dense_of(a->dtype),
				 .count = matrices(a, 2),
				 .bytes = bytes(op),
				 .one = one };
	(void)impl, (void)prepared;
	if (dense_run(&b, 2 * m * n * fmin(m, n) + 100 * m))
		return yk_cpu_fail(YOKE_ENOMEM, "qr: no memory for %.0f rows", m);
	return 0;
}

YK_KERNEL(qr, QR) = { .can = can, .workspace = workspace, .run = run, .impl = { "blocks" } };
