// SPDX-License-Identifier: Apache-2.0
// Cases of EIGH, CHOLESKY and SOLVE_TRIANGULAR.  References are float64 loops over the rounded
// operands; eigenvectors use Jacobi's method, which is independent of the kernels' algorithms.
#include "config.h"

#include <math.h>

#include "conform/case.h"
#include "yoke.h"

int yk_draw_matrices(struct yk_case *c, int64_t *dims, int64_t n, int64_t columns)
{
	int rank = (int)yk_draw_int(c, 2, 4);
	for (int d = 0; d < rank - 2; d++)
		dims[d] = yk_draw_int(c, 1, n > 20 ? 2 : 4);
	if (rank > 2 && !yk_case_plain(c) && yk_draw_one_in(c, 24))
		dims[0] = 0;
	dims[rank - 2] = n;
	dims[rank - 1] = columns;
	return rank;
}

static struct yk_num rounded(double x, int dtype)
{
	return (struct yk_num){ .f = yk_num_round(x, dtype) };
}

// ---- eigenvectors ----

void yk_jacobi(double *a, double *v, int64_t n)
{
	for (int64_t i = 0; i < n * n; i++)
		v[i] = i / n == i % n;
	for (int round = 0; round < 60; round++) {
		double rest = 0, all = 0;
		for (int64_t p = 0; p < n; p++)
			for (int64_t q = 0; q < n; q++)
				*(p == q ? &all : &rest) += a[p * n + q] * a[p * n + q];
		if (rest <= 1e-34 * all)
			return;
		for (int64_t p = 0; p < n; p++)
			for (int64_t q = p + 1; q < n; q++) {
				if (a[p * n + q] == 0)
					continue;
				const double theta =
					(a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
				const double t = copysign(1, theta) /
						 (fabs(theta) + sqrt(theta * theta + 1));
				const double cs = 1 / sqrt(t * t + 1), sn = t * cs;
				for (int64_t k = 0; k < n; k++) {
					const double x = a[k * n + p], y = a[k * n + q];
					a[k * n + p] = cs * x - sn * y;
					a[k * n + q] = sn * x + cs * y;
				}
				for (int64_t k = 0; k < n; k++) {
					const double x = a[p * n + k], y = a[q * n + k];
					a[p * n + k] = cs * x - sn * y;
					a[q * n + k] = sn * x + cs * y;
				}
				for (int64_t k = 0; k < n; k++) {
					const double x = v[k * n + p], y = v[k * n + q];
					v[k * n + p] = cs * x - sn * y;
					v[k * n + q] = sn * x + cs * y;
				}
			}
	}
}

// Sorted eigenvalues of one matrix and their vectors, whose tolerance grows with a small gap to the
// next value.
static void want_eigen(struct yk_case *c, const struct yk_num *num, int64_t n, int dtype,
		       struct yk_expected *values, struct yk_expected *vectors)
{
	double *a = yk_case_alloc(c, (uint64_t)(n * n) * sizeof *a),
	       *v = yk_case_alloc(c, (uint64_t)(n * n) * sizeof *v);
	int64_t *order = yk_case_alloc(c, (uint64_t)n * sizeof *order);
	double max = 0;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			a[i * n + j] = num[i >= j ? i * n + j : j * n + i].f;
	yk_jacobi(a, v, n);
	for (int64_t k = 0; k < n; k++) {
		int64_t at = k;
		for (; at > 0 && a[order[at - 1] * (n + 1)] > a[k * (n + 1)]; at--)
			order[at] = order[at - 1];
		order[at] = k;
		max = fmax(max, fabs(a[k * (n + 1)]));
	}
	const double loss = 100 * (double)n * 0x1p-53 * max;
	for (int64_t k = 0; k < n; k++) {
		const double x = a[order[k] * (n + 1)];
		double gap = INFINITY, high = 0, next = 0, sign = 1;
		if (k)
			gap = x - a[order[k - 1] * (n + 1)];
		if (k + 1 < n)
			gap = fmin(gap, a[order[k + 1] * (n + 1)] - x);
		yk_expect_real(&values[k], dtype, x, loss);
		for (int64_t i = 0; i < n; i++) {
			const double e = v[i * n + order[k]];
			if (fabs(e) > high) {
				next = high;
				high = fabs(e);
				sign = copysign(1, e);
			} else {
				next = fmax(next, fabs(e));
			}
		}
		for (int64_t i = 0; i < n; i++) {
			struct yk_expected *w = &vectors[i * n + k];
			yk_expect_real(w, dtype, sign * v[i * n + order[k]], 4 * loss / gap);
			// the vector or its sign is ambiguous
			w->loose = gap < 1e6 * loss || high - next < 1e-6;
		}
	}
}

bool yk_make_eigh(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_EIGH);
	const int64_t n = yk_draw_size(c, yk_case_large(c) ? 65 : 17);
	const int rank = yk_draw_matrices(c, dims, n, n);
	const double scale = yk_draw_one_in(c, 6) ? (dtype == yoke_f64 ? 1e150 : 1e15) :
			     yk_draw_one_in(c, 6) ? 1e-15 :
						    1;
	const uint32_t w = yk_case_out(c, dtype, rank - 1, dims, YK_ANY),
		       v = yk_case_out(c, dtype, rank, dims, YK_ANY);
	const uint32_t a = yk_case_in(c, dtype, rank, dims, YK_ANY | YK_REPEATED, -scale, scale);
	for (int64_t i = 0; i < c->array[w].n / n; i++)
		want_eigen(c, c->array[a].num + i * n * n, n, dtype, c->array[w].want + i * n,
			   c->array[v].want + i * n * n);
	if (!yk_case_plain(c) && yk_draw_one_in(c, 4)) // one result is not requested
		c->view[yk_draw_int(c, 0, 1)] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	yk_case_note(c, "n %lld, numbers about %g", (long long)n, scale);
	return true;
}

// ---- cholesky ----

// m m' + 1; the upper triangle, which is not read, holds arbitrary values.  broken: one pivot is
// negative.
static void draw_positive(struct yk_case *c, struct yk_num *num, int64_t n, int dtype, bool broken)
{
	double *m = yk_case_alloc(c, (uint64_t)(n * n) * sizeof *m);
	for (int64_t i = 0; i < n * n; i++)
		m[i] = yk_draw_real(c, -1, 1);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++) {
			double s = i == j;
			for (int64_t k = 0; k < n; k++)
				s += m[i * n + k] * m[j * n + k];
			num[i * n + j] = rounded(i < j ? NAN : s, dtype);
		}
	if (broken) {
		const int64_t i = yk_draw_int(c, 0, n - 1);
		num[i * n + i].f = -num[i * n + i].f;
	}
}

bool yk_make_cholesky(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_CHOLESKY);
	const int64_t n = yk_draw_size(c, yk_case_large(c) ? 65 : 17);
	const int rank = yk_draw_matrices(c, dims, n, n);
	const int64_t count = yk_count_of(rank, dims) / (n * n);
	const bool broken = count > 0 && yk_draw_one_in(c, 9);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(count * n * n + 1) * sizeof *num);
	const int64_t which = broken ? yk_draw_int(c, 0, count - 1) : -1;
	for (int64_t i = 0; i < count; i++)
		draw_positive(c, num + i * n * n, n, dtype, i == which);
	c->rejects = broken;
	const uint32_t l = yk_case_out(c, dtype, rank, dims, YK_ANY);
	yk_case_in_of(c, dtype, rank, dims, YK_ANY, num);
	for (int64_t at = 0; at < count; at++) {
		const struct yk_num *a = num + at * n * n;
		struct yk_expected *want = c->array[l].want + at * n * n;
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j < n; j++) {
				double s = a[i * n + j].f;
				for (int64_t k = 0; k < j && j <= i; k++)
					s -= want[i * n + k].f * want[j * n + k].f;
				s = j > i ? 0 : j == i ? sqrt(s) : s / want[j * n + j].f;
				want[i * n + j] = (struct yk_expected){ .f = s };
			}
		for (int64_t i = 0; i < n * n; i++) {
			if (at == which)
				want[i].loose = true;
			else
				yk_expect_real(&want[i], dtype, want[i].f,
					     i % n > i / n ? 0 : 1e3 * (double)(n * n) * 0x1p-53);
		}
	}
	yk_case_note(c, "n %lld%s", (long long)n, broken ? ", one not positive definite" : "");
	return true;
}

// ---- triangular systems ----

bool yk_make_solve_triangular(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK], right[YOKE_MAX_RANK];

	yk_case_op(c, YOKE_OP_SOLVE_TRIANGULAR);
	const int64_t n = yk_draw_size(c, yk_case_large(c) ? 129 : 33), k = yk_draw_size(c, 65);
	const int rank = yk_draw_matrices(c, dims, n, n);
	for (int d = 0; d < rank; d++)
		right[d] = d == rank - 1 ? k : dims[d];
	const bool transposed = yk_draw_one_in(c, 2), upper = yk_draw_one_in(c, 2),
		   one = yk_draw_one_in(c, 3);
	const int64_t count = yk_count_of(rank, dims) / (n * n);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(count * n * n + 1) * sizeof *num);
	for (int64_t i = 0; i < count * n * n; i++) {
		const int64_t row = i / n % n, column = i % n;
		const bool read = row == column ? !one : (row < column) == upper;
		num[i] = !read ? (struct yk_num){ .f = NAN } :
				 rounded(yk_draw_real(c, -1, 1) / sqrt((double)n), dtype);
		if (read && row == column)
			num[i] = rounded(yk_draw_real(c, 1, 2), dtype);
	}
	const uint32_t x = yk_case_out(c, dtype, rank, right, YK_ANY);
	yk_case_in_of(c, dtype, rank, dims, YK_ANY, num);
	const uint32_t b = yk_case_in(c, dtype, rank, right, YK_ANY | YK_REPEATED, -1, 1);
	c->op.nattr = 3;
	c->op.attr[0].i = transposed;
	c->op.attr[1].i = upper;
	c->op.attr[2].i = one;
	for (int64_t at = 0; at < count * k; at++) { // a column of x
		const struct yk_num *t = num + at / k * n * n;
		const int64_t first = at / k * n * k + at % k;
		double max = 0;
		for (int64_t step = 0; step < n; step++) {
			const bool down = upper == transposed;
			const int64_t i = down ? step : n - 1 - step;
			double s = c->array[b].num[first + i * k].f;
			for (int64_t before = 0; before < step; before++) {
				const int64_t j = down ? before : n - 1 - before;
				s -= t[transposed ? j * n + i : i * n + j].f *
				     c->array[x].want[first + j * k].f;
			}
			s /= one ? 1 : t[i * n + i].f;
			max = fmax(max, fabs(s));
			c->array[x].want[first + i * k] = (struct yk_expected){ .f = s };
		}
		for (int64_t i = 0; i < n; i++)
			yk_expect_real(&c->array[x].want[first + i * k], dtype,
				       c->array[x].want[first + i * k].f,
				       64 * (double)n * 0x1p-53 * exp2(sqrt((double)n)) * max);
	}
	yk_case_note(c, "n %lld%s%s%s", (long long)n, transposed ? ", transposed" : "",
		     upper ? ", upper" : "", one ? ", unit" : "");
	return true;
}
