// SPDX-License-Identifier: Apache-2.0
// LU and LU_SOLVE by the blocked factorizations of dense.h.
#include "config.h"

#include "../move/walk.h"
#include "dense.h"

// ---- factorization ----

static int64_t rows_of(const struct yoke_view *v)
{
	return v->dims[v->rank - 2];
}

static int64_t columns_of(const struct yoke_view *v)
{
	return v->dims[v->rank - 1];
}

static int64_t *vector_of(const struct yoke_view *v, int64_t index, int64_t *stride)
{
	const struct matrix m = matrix_of(v, 1, index);
	*stride = m.cs;
	return (int64_t *)(void *)m.base;
}

static size_t lu_bytes(const struct yoke_op *op)
{
	const struct yoke_view *a = &op->in[0];
	const struct yk_dense *d = dense_of(a->dtype);
	const int64_t m = rows_of(a);
	return dense_align((size_t)m * sizeof(int64_t)) +
	       (size_t)(m * dense_ld(columns_of(a)) + d->lu_elements(m)) * d->element;
}

static void lu_one(struct dense_batch *b, int64_t index, void *memory)
{
	const struct yoke_op *op = b->op;
	const int64_t m = rows_of(&op->in[0]), n = columns_of(&op->in[0]), ld = dense_ld(n);
	const struct matrix from = matrix_of(&op->in[0], 2, index);
	int64_t *perm = memory;
	char *a = (char *)memory + dense_align((size_t)m * sizeof *perm);
	b->dense->load(&from, m, n, a, ld);
	const int sign =
		b->dense->lu(m, n, a, ld, a + (size_t)(m * ld) * b->dense->element, perm);
	if (op->out[0].kind != YOKE_VIEW_NONE) {
		const struct matrix to = matrix_of(&op->out[0], 2, index);
		b->dense->store(&to, m, n, a, ld);
	}
	if (op->out[1].kind != YOKE_VIEW_NONE) {
		int64_t stride, *to = vector_of(&op->out[1], index, &stride);
		for (int64_t i = 0; i < m; i++)
			to[i * stride] = perm[i];
	}
	if (op->out[2].kind != YOKE_VIEW_NONE) {
		const struct matrix to = matrix_of(&op->out[2], 0, index);
		matrix_put(&to, 0, 0, sign);
	}
}

static bool is_vector(const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_NONE || (v->kind == YOKE_VIEW_BUFFER && v->dtype == yoke_i64);
}

static uint64_t can_factor(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->out[0]) && is_vector(&op->out[1]) &&
	       is_matrix(&op->out[2]);
}

static uint64_t workspace_factor(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return dense_workspace(matrices(&op->in[0], 2), lu_bytes(op));
}

static int run_factor(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *a = &op->in[0];
	const double m = (double)rows_of(a), n = (double)columns_of(a);
	struct dense_batch b = { .op = op,
				 .dense = dense_of(a->dtype),
				 .count = matrices(a, 2),
				 .bytes = lu_bytes(op),
				 .one = lu_one };
	(void)impl, (void)prepared;
	if (dense_run(&b, m * n * fmin(m, n) / 2 + 20 * m * n))
		return yk_cpu_fail(YOKE_ENOMEM, "lu: no memory for %.0f rows", m);
	return 0;
}

YK_KERNEL(lu, LU) = {
	.can = can_factor, .workspace = workspace_factor, .run = run_factor, .impl = { "blocks" }
};

// ---- systems ----

static size_t solve_bytes(const struct yoke_op *op)
{
	const int64_t n = rows_of(&op->out[0]), k = columns_of(&op->out[0]);
	return dense_align((size_t)n * sizeof(int64_t)) +
	       (size_t)(n * (dense_ld(n) + 2 * dense_ld(k))) * yk_esize(op->out[0].dtype);
}

static void solve_one(struct dense_batch *b, int64_t index, void *memory)
{
	const struct yoke_op *op = b->op;
	const struct yk_dense *d = b->dense;
	const bool transposed = op->attr[0].i, inverse = op->in[2].kind == YOKE_VIEW_NONE;
	const int64_t n = rows_of(&op->out[0]), k = columns_of(&op->out[0]), ld = dense_ld(n),
		      ldx = dense_ld(k);
	const struct matrix from = matrix_of(&op->in[0], 2, index),
			    to = matrix_of(&op->out[0], 2, index);
	int64_t stride, *perm = memory;
	const int64_t *read = vector_of(&op->in[1], index, &stride);
	char *a = (char *)memory + dense_align((size_t)n * sizeof *perm),
	     *x = a + (size_t)(n * ld) * d->element, *y = x + (size_t)(n * ldx) * d->element;
	const size_t row = (size_t)ldx * d->element;
	for (int64_t i = 0; i < n; i++) {
		if (matrix_get(&from, i, i) == 0) {
			record_first(&b->bad, index * n + i);
			return;
		}
		perm[i] = read[i * stride];
		if (perm[i] < 0 || perm[i] >= n) {
			record_first(&b->bad, INT64_MAX - 1);
			return;
		}
	}
	d->load(&from, n, n, a, ld);
	if (inverse) {
		// attr 0 is 0; L^-1 is lower triangular; its columns are permuted as they are
		// stored
		memset(y, 0, (size_t)n * row);
		for (int64_t i = 0; i < n; i++) {
			const struct matrix unit = { y, ldx, 1, to.wide };
			matrix_put(&unit, i, i, 1);
		}
		d->triangular(n, ldx, a, ld, false, false, true, true, y, ldx);
		d->triangular(n, ldx, a, ld, true, false, false, false, y, ldx);
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j < n; j++) {
				const char *at = y + (size_t)i * row + (size_t)j * d->element;
				matrix_put(&to, i, perm[j],
					   to.wide ? *(const double *)(const void *)at :
						     *(const float *)(const void *)at);
			}
		return;
	}
	const struct matrix right = matrix_of(&op->in[2], 2, index);
	d->load(&right, n, k, x, ldx);
	for (int64_t i = 0; i < n; i++)
		memcpy(y + (size_t)i * row, x + (size_t)(transposed ? i : perm[i]) * row, row);
	d->triangular(n, ldx, a, ld, transposed, transposed, !transposed, false, y, ldx);
	d->triangular(n, ldx, a, ld, !transposed, transposed, transposed, false, y, ldx);
	if (transposed) {
		for (int64_t i = 0; i < n; i++)
			memcpy(x + (size_t)perm[i] * row, y + (size_t)i * row, row);
	}
	d->store(&to, n, k, transposed ? x : y, ldx);
}

static uint64_t can_solve(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && op->in[1].kind == YOKE_VIEW_BUFFER &&
	       is_vector(&op->in[1]) && is_matrix(&op->in[2]) && is_matrix(&op->out[0]);
}

static uint64_t workspace_solve(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return dense_workspace(matrices(&op->out[0], 2), solve_bytes(op));
}

static int run_solve(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *x = &op->out[0];
	const double n = (double)rows_of(x), k = (double)columns_of(x);
	struct dense_batch b = { .op = op,
				 .dense = dense_of(x->dtype),
				 .count = matrices(x, 2),
				 .bytes = solve_bytes(op),
				 .one = solve_one };
	(void)impl, (void)prepared;
	if (dense_run(&b, n * n * k + 20 * n * (n + k)))
		return yk_cpu_fail(YOKE_ENOMEM, "solve: no memory for %.0f rows", n);
	const int64_t bad = atomic_load(&b.bad);
	if (bad == INT64_MAX)
		return 0;
	if (bad == INT64_MAX - 1)
		return yk_cpu_fail(YOKE_ERANGE,
				   "solve: the permutation has an index outside of 0 .. %.0f",
				   n - 1);
	return yk_cpu_fail(YOKE_ERANGE,
			   "solve: matrix %lld is singular: the pivot of row %lld is 0",
			   (long long)(bad / rows_of(x)), (long long)(bad % rows_of(x)));
}

YK_KERNEL(lu_solve, LU_SOLVE) = {
	.can = can_solve, .workspace = workspace_solve, .run = run_solve, .impl = { "blocks" }
};
