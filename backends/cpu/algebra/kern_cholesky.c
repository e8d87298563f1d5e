// SPDX-License-Identifier: Apache-2.0
// CHOLESKY, row by row, and SOLVE_TRIANGULAR, by panels of right-hand sides, both in f64. A work
// item is a matrix, or a panel of one, so results do not depend on the number of threads.
#include "config.h"

#include <math.h>
#include <stdatomic.h>

#include "../move/walk.h"
#include "lapack.h"
#include "matrix.h"

// ---- cholesky ----

struct factor {
	const struct yoke_op *op;
	int64_t n;
	_Atomic int64_t bad; // the smallest matrix * n + row whose pivot is not positive
	atomic_int err;
};

// Overwrites the lower triangle of a [n,n] with L. Returns 0, or the 1-based row whose pivot is not
// positive.
static int64_t factor(double *a, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j <= i; j++) {
			const double x = a[i * n + j] - vd_dot(a + i * n, a + j * n, j);
			if (j < i)
				a[i * n + j] = x / a[j * n + j];
			else if (x > 0)
				a[i * n + i] = sqrt(x);
			else
				return i + 1;
		}
	return 0;
}

static void factor_item(void *arg, int64_t index)
{
	struct factor *f = arg;
	const int64_t n = f->n;
	const struct matrix from = matrix_of(&f->op->in[0], 2, index),
			    to = matrix_of(&f->op->out[0], 2, index);
	double *a = yk_team_scratch((size_t)(n * n) * sizeof *a);
	if (!a) {
		atomic_store(&f->err, YOKE_ENOMEM);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			a[i * n + j] = j <= i ? matrix_get(&from, i, j) : 0;
	const int64_t row = yk_lapack_requested() ? yk_lapack_cholesky(n, a) : factor(a, n);
	if (row < 0)
		atomic_store(&f->err, (int)row);
	else if (row)
		record_first(&f->bad, index * n + row - 1);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			matrix_put(&to, i, j, a[i * n + j]);
}

static uint64_t can_factor(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->out[0]);
}

static int run_factor(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *x = &op->in[0];
	struct factor f = { .op = op, .n = x->dims[x->rank - 1] };
	const int64_t count = matrices(x, 2);
	(void)impl, (void)prepared;
	atomic_init(&f.bad, INT64_MAX);
	atomic_init(&f.err, 0);
	if (!f.n || !count)
		return 0;
	yk_team_run(count, factor_item, &f);
	const int64_t bad = atomic_load(&f.bad);
	if (atomic_load(&f.err) == YOKE_ENOMEM)
		return yk_cpu_fail(YOKE_ENOMEM, "cholesky: no memory for %lld rows",
				   (long long)f.n);
	if (bad < INT64_MAX)
		return yk_cpu_fail(
			YOKE_ERANGE,
			"cholesky: matrix %lld is not positive definite: the pivot of row %lld is not positive",
			(long long)(bad / f.n), (long long)(bad % f.n));
	return atomic_load(&f.err);
}

YK_KERNEL(cholesky, CHOLESKY) = { .can = can_factor, .run = run_factor, .impl = { "rows" } };

// ---- triangular systems ----

enum { PANEL = 32 }; // right-hand sides solved together; a multiple of VD

struct solve {
	const struct yoke_op *op;
	int64_t n, k, panels;
	bool transposed, upper, unit;
	atomic_bool no_memory;
};

// x [n][PANEL] holds columns of b and receives those of the solution.
static void solve_panel(const struct solve *s, const struct matrix *t, double *x)
{
	enum { N = PANEL / VD };
	const int64_t n = s->n;
	const bool down = s->upper == s->transposed; // solve from the first row on
	for (int64_t step = 0; step < n; step++) {
		const int64_t i = down ? step : n - 1 - step;
		vd sum[N];
		double *row = x + i * PANEL;
		for (int q = 0; q < N; q++)
			sum[q] = vd_load(row + q * VD);
		for (int64_t before = 0; before < step; before++) {
			const int64_t j = down ? before : n - 1 - before;
			const double c = s->transposed ? matrix_get(t, j, i) : matrix_get(t, i, j);
			for (int q = 0; q < N; q++)
				sum[q] = vd_fma(vd_splat(-c), vd_load(x + j * PANEL + q * VD),
						sum[q]);
		}
		const double pivot = s->unit ? 1 : matrix_get(t, i, i);
		for (int q = 0; q < N; q++)
			vd_store(row + q * VD, sum[q] / pivot);
	}
}

static void solve_item(void *arg, int64_t index)
{
	struct solve *s = arg;
	const struct yoke_op *op = s->op;
	const int64_t first = index % s->panels * PANEL,
		      cols = s->k - first < PANEL ? s->k - first : PANEL;
	const struct matrix t = matrix_of(&op->in[0], 2, index / s->panels),
			    b = matrix_of(&op->in[1], 2, index / s->panels),
			    to = matrix_of(&op->out[0], 2, index / s->panels);
	double *x = yk_team_scratch((size_t)(s->n * PANEL) * sizeof *x);
	if (!x) {
		atomic_store(&s->no_memory, true);
		return;
	}
	for (int64_t i = 0; i < s->n; i++)
		for (int64_t j = 0; j < PANEL; j++)
			x[i * PANEL + j] = j < cols ? matrix_get(&b, i, first + j) : 0;
	solve_panel(s, &t, x);
	for (int64_t i = 0; i < s->n; i++)
		for (int64_t j = 0; j < cols; j++)
			matrix_put(&to, i, first + j, x[i * PANEL + j]);
}

static uint64_t can_solve(const struct yoke_op *op)
{
	return is_matrix(&op->in[0]) && is_matrix(&op->in[1]) && is_matrix(&op->out[0]);
}

static int run_solve(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	const struct yoke_view *b = &op->in[1];
	struct solve s = { .op = op, .n = b->dims[b->rank - 2], .k = b->dims[b->rank - 1] };
	(void)impl, (void)prepared;
	s.panels = (s.k + PANEL - 1) / PANEL;
	s.transposed = op->attr[0].i;
	s.upper = op->attr[1].i;
	s.unit = op->attr[2].i;
	atomic_init(&s.no_memory, false);
	if (!s.n || !s.k || !matrices(b, 2))
		return 0;
	yk_team_run(matrices(b, 2) * s.panels, solve_item, &s);
	if (atomic_load(&s.no_memory))
		return yk_cpu_fail(YOKE_ENOMEM, "solve_triangular: no memory for %lld rows",
				   (long long)s.n);
	return 0;
}

YK_KERNEL(solve_triangular,
	  SOLVE_TRIANGULAR) = { .can = can_solve, .run = run_solve, .impl = { "panels" } };
