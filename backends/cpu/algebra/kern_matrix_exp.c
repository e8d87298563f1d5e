// SPDX-License-Identifier: Apache-2.0
// MATRIX_EXP by scaling and squaring (dense_exp.h).
#include "config.h"

#include "dense.h"

enum { MATRICES = 8 }; // of workspace: the operand, the result, and six; a panel follows them

static size_t bytes(const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	const struct yk_dense *d = dense_of(a->dtype);
	const int64_t n = a->dims[a->rank - 1];
	return (size_t)(MATRICES * n * dense_ld(n) + d->lu_elements(n)) * d->element +
	       (size_t)n * sizeof(int64_t);
}

static void one(struct dense_batch *b, int64_t index, void *memory)
{
	const struct yoke_view *in = &b->op->in[0];
	const int64_t n = in->dims[in->rank - 1], ld = dense_ld(n);
	const struct matrix from = matrix_of(in, 2, index),
			    to = matrix_of(&b->op->out[0], 2, index);
	const size_t size = (size_t)(n * ld) * b->dense->element,
		     panel = (size_t)b->dense->lu_elements(n) * b->dense->element;
	char *a = memory;
	b->dense->load(&from, n, n, a, ld);
	b->dense->exponential(n, a, a + size, ld, a + 2 * size,
			      (int64_t *)(void *)(a + MATRICES * size + panel));
	b->dense->store(&to, n, n, a + size, ld);
}

static uint64_t can(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->out[0]);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return dense_workspace(matrices(&op->in[0], 2), bytes(op));
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *a = &op->in[0];
	const double n = (double)a->dims[a->rank - 1];
	struct dense_batch b = { .op = op,
				 .dense = dense_of(a->dtype),
				 .count = matrices(a, 2),
				 .bytes = bytes(op),
				 .one = one };
	(void)impl, (void)prepared;
	if (dense_run(&b, 20 * n * n * n))
		return yk_cpu_fail(YOKE_ENOMEM, "matrix_exp: no memory for %.0f rows", n);
	return 0;
}

YK_KERNEL(matrix_exp,
	  MATRIX_EXP) = { .can = can, .workspace = workspace, .run = run, .impl = { "pade" } };
