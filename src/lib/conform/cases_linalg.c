// SPDX-License-Identifier: Apache-2.0
// Cases of LU, LU_SOLVE, QR, SVD and MATRIX_EXP.  References are float64 loops over the rounded
// operands by the textbook algorithms; singular values are the eigenvalues of [[0, a], [a', 0]].
#include "config.h"

#include <math.h>

#include "conform/case.h"
#include "yoke.h"

static double eps_of(int dtype)
{
	return dtype == yoke_f64 ? 0x1p-52 : 0x1p-23;
}

static double *copy(struct yk_case *c, const struct yk_num *num, int64_t n)
{
	double *to = yk_case_alloc(c, (uint64_t)(n + 1) * sizeof *to);
	for (int64_t i = 0; i < n; i++)
		to[i] = num[i].f;
	return to;
}

// Matrices [m,n] whose row at[j] has an element in column j that no other modulus of the column
// comes near, so that pivots and signs are unambiguous.
static struct yk_num *draw_dominant(struct yk_case *c, int64_t count, int64_t m, int64_t n,
				    int dtype)
{
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(count * m * n + 1) * sizeof *num);
	int64_t *at = yk_case_alloc(c, (uint64_t)(m + 1) * sizeof *at);
	for (int64_t q = 0; q < count; q++) {
		for (int64_t i = 0; i < m; i++) {
			const int64_t other = yk_draw_int(c, 0, i);
			at[i] = at[other];
			at[other] = i;
		}
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				double x = yk_draw_real(c, -1, 1);
				if (at[i] == j)
					x = copysign((double)(m + n) + fabs(x), x);
				num[(q * m + i) * n + j].f = yk_num_round(x, dtype);
			}
	}
	return num;
}

static void omit_one(struct yk_case *c, int64_t results)
{
	if (!yk_case_plain(c) && yk_draw_one_in(c, 4))
		c->view[yk_draw_int(c, 0, results - 1)] =
			(struct yoke_view){ .kind = YOKE_VIEW_NONE };
}

bool yk_make_lu(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];
	yk_case_op(c, YOKE_OP_LU);
	const int64_t m = yk_draw_size(c, yk_case_large(c) ? 70 : 19),
		      n = yk_draw_size(c, yk_case_large(c) ? 70 : 19);
	const int rank = yk_draw_matrices(c, dims, m, n);
	const int64_t count = yk_count_of(rank, dims) / (m * n);
	struct yk_num *num = draw_dominant(c, count, m, n, dtype);
	const uint32_t lu = yk_case_out(c, dtype, rank, dims, YK_ANY),
		       perm = yk_case_out(c, yoke_i64, rank - 1, dims, YK_ANY),
		       sign = yk_case_out(c, dtype, rank - 2, dims, YK_ANY);
	yk_case_in_of(c, dtype, rank, dims, YK_ANY, num);
	for (int64_t q = 0; q < count; q++) {
		double *a = copy(c, num + q * m * n, m * n), of = 1;
		struct yk_expected *rows = c->array[perm].want + q * m;
		for (int64_t i = 0; i < m; i++)
			rows[i].i = i;
		for (int64_t j = 0; j < n && j < m; j++) {
			int64_t pivot = j;
			for (int64_t i = j; i < m; i++)
				pivot = fabs(a[i * n + j]) > fabs(a[pivot * n + j]) ? i : pivot;
			of = pivot == j ? of : -of;
			const int64_t row = rows[j].i;
			rows[j].i = rows[pivot].i;
			rows[pivot].i = row;
			for (int64_t l = 0; l < n; l++) {
				const double x = a[j * n + l];
				a[j * n + l] = a[pivot * n + l];
				a[pivot * n + l] = x;
			}
			for (int64_t i = j + 1; i < m; i++) {
				a[i * n + j] /= a[j * n + j];
				for (int64_t l = j + 1; l < n; l++)
					a[i * n + l] -= a[i * n + j] * a[j * n + l];
			}
		}
		yk_expect_real(&c->array[sign].want[q], dtype, of, 0);
		for (int64_t i = 0; i < m * n; i++)
			yk_expect_real(&c->array[lu].want[q * m * n + i], dtype, a[i],
				       16 * eps_of(dtype) * (double)(m + n));
	}
	omit_one(c, 3);
	yk_case_note(c, "m %lld, n %lld", (long long)m, (long long)n);
	return true;
}

bool yk_make_lu_solve(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK], right[YOKE_MAX_RANK];
	yk_case_op(c, YOKE_OP_LU_SOLVE);
	const bool inverse = yk_draw_one_in(c, 4), transposed = !inverse && yk_draw_one_in(c, 2);
	const int64_t n = yk_draw_size(c, yk_case_large(c) ? 70 : 19),
		      k = inverse ? n : yk_draw_size(c, 33);
	const int rank = yk_draw_matrices(c, dims, n, n);
	const int64_t count = yk_count_of(rank, dims) / (n * n);
	const bool broken = count > 0 && yk_draw_one_in(c, 9);
	struct yk_num *num = yk_case_alloc(c, (uint64_t)(count * n * n + 1) * sizeof *num),
		      *perm = yk_case_alloc(c, (uint64_t)(count * n + 1) * sizeof *perm);
	for (int64_t i = 0; i < count * n * n; i++) {
		const double x = yk_draw_real(c, -1, 1) / (double)n;
		num[i].f = yk_num_round(i / n % n == i % n ? copysign(1 + fabs(x), x) : x, dtype);
	}
	for (int64_t i = 0; i < count * n; i++) {
		const int64_t other = i / n * n + yk_draw_int(c, 0, i % n);
		perm[i].i = perm[other].i;
		perm[other].i = i % n;
	}
	if (broken)
		num[yk_draw_int(c, 0, n - 1) * (n + 1)].f = 0;
	c->rejects = broken;
	for (int d = 0; d < rank; d++)
		right[d] = d == rank - 1 ? k : dims[d];
	const uint32_t x = yk_case_out(c, dtype, rank, right, YK_ANY);
	yk_case_in_of(c, dtype, rank, dims, YK_ANY, num);
	yk_case_in_of(c, yoke_i64, rank - 1, dims, YK_ANY, perm);
	uint32_t b = 0;
	if (inverse)
		yk_case_none(c);
	else
		b = yk_case_in(c, dtype, rank, right, YK_ANY | YK_REPEATED, -1, 1);
	c->op.nattr = 1;
	c->op.attr[0].i = transposed;
	double *y = yk_case_alloc(c, (uint64_t)(n + 1) * sizeof *y);
	for (int64_t at = 0; at < count * k; at++) { // a column of x
		const struct yk_num *lu = num + at / k * n * n, *rows = perm + at / k * n;
		const int64_t first = at / k * n * k + at % k;
		for (int64_t i = 0; i < n; i++) {
			const int64_t row = transposed ? i : rows[i].i;
			y[i] = inverse ? row == at % k : c->array[b].num[first + row * k].f;
		}
		for (int64_t i = 0; i < n; i++) { // L, or U'
			for (int64_t j = 0; j < i; j++)
				y[i] -= (transposed ? lu[j * n + i].f : lu[i * n + j].f) * y[j];
			if (transposed)
				y[i] /= lu[i * n + i].f;
		}
		for (int64_t i = n - 1; i >= 0; i--) { // U, or L'
			for (int64_t j = i + 1; j < n; j++)
				y[i] -= (transposed ? lu[j * n + i].f : lu[i * n + j].f) * y[j];
			if (!transposed)
				y[i] /= lu[i * n + i].f;
		}
		for (int64_t i = 0; i < n; i++) {
			struct yk_expected *want =
				&c->array[x].want[first + (transposed ? rows[i].i : i) * k];
			yk_expect_real(want, dtype, y[i], 100 * eps_of(dtype) * (double)n);
			want->loose = broken;
		}
	}
	yk_case_note(c, "n %lld%s%s%s", (long long)n, transposed ? ", transposed" : "",
		     inverse ? ", the inverse" : "", broken ? ", a pivot is 0" : "");
	return true;
}

bool yk_make_qr(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK], left[YOKE_MAX_RANK], right[YOKE_MAX_RANK];
	yk_case_op(c, YOKE_OP_QR);
	const int64_t m = yk_draw_size(c, yk_case_large(c) ? 70 : 19),
		      n = yk_draw_size(c, yk_case_large(c) ? 70 : 19);
	const bool complete = yk_draw_one_in(c, 2);
	const int64_t small = m < n ? m : n, k = complete ? m : small;
	const int rank = yk_draw_matrices(c, dims, m, n);
	for (int d = 0; d < rank; d++) {
		left[d] = d == rank - 1 ? k : dims[d];
		right[d] = d == rank - 2 ? k : dims[d];
	}
	const int64_t count = yk_count_of(rank, dims) / (m * n);
	struct yk_num *num = draw_dominant(c, count, m, n, dtype);
	const uint32_t qs = yk_case_out(c, dtype, rank, left, YK_ANY),
		       rs = yk_case_out(c, dtype, rank, right, YK_ANY);
	yk_case_in_of(c, dtype, rank, dims, YK_ANY, num);
	c->op.nattr = 1;
	c->op.attr[0].i = complete;
	double *v = yk_case_alloc(c, (uint64_t)(m + 1) * sizeof *v);
	for (int64_t at = 0; at < count; at++) {
		double *a = copy(c, num + at * m * n, m * n),
		       *q = yk_case_alloc(c, (uint64_t)(m * m + 1) * sizeof *q);
		bool unsure = false; // the reflected element is near 0, and so its sign
		for (int64_t i = 0; i < m * m; i++)
			q[i] = i / m == i % m;
		for (int64_t j = 0; j < small && j + 1 < m; j++) {
			double norm = 0, square = 0;
			for (int64_t i = j; i < m; i++)
				norm += a[i * n + j] * a[i * n + j];
			norm = sqrt(norm);
			unsure |= fabs(a[j * n + j]) < 1e3 * eps_of(dtype) * norm;
			for (int64_t i = j; i < m; i++) {
				v[i] = a[i * n + j] + (i == j ? copysign(norm, a[j * n + j]) : 0);
				square += v[i] * v[i];
			}
			// the columns of a, then the rows of q
			for (int64_t l = 0; l < n + m; l++) {
				double s = 0;
				for (int64_t i = j; i < m; i++)
					s += v[i] * (l < n ? a[i * n + l] : q[(l - n) * m + i]);
				for (int64_t i = j; i < m; i++)
					*(l < n ? &a[i * n + l] : &q[(l - n) * m + i]) -=
						2 * s / square * v[i];
			}
		}
		for (int64_t i = 0; i < m * k; i++) {
			struct yk_expected *want = &c->array[qs].want[at * m * k + i];
			yk_expect_real(want, dtype, q[i / k * m + i % k],
				       64 * eps_of(dtype) * (double)m);
			want->loose = unsure;
		}
		for (int64_t i = 0; i < k * n; i++) {
			struct yk_expected *want = &c->array[rs].want[at * k * n + i];
			yk_expect_real(want, dtype, i / n > i % n ? 0 : a[i],
				       i / n > i % n ? 0 :
						       64 * eps_of(dtype) * (double)(m * (m + n)));
			want->loose = unsure;
		}
	}
	omit_one(c, 2);
	yk_case_note(c, "m %lld, n %lld%s", (long long)m, (long long)n,
		     complete ? ", complete" : "");
	return true;
}

// The vectors are not unique: only the values are compared.
bool yk_make_svd(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK], left[YOKE_MAX_RANK], right[YOKE_MAX_RANK],
		middle[YOKE_MAX_RANK];
	yk_case_op(c, YOKE_OP_SVD);
	const int64_t m = yk_draw_size(c, yk_case_large(c) ? 40 : 13),
		      n = yk_draw_size(c, yk_case_large(c) ? 40 : 13);
	const bool full = yk_draw_one_in(c, 2);
	const int64_t k = m < n ? m : n, both = m + n;
	const double scale = yk_draw_one_in(c, 6) ? (dtype == yoke_f64 ? 1e150 : 1e15) :
			     yk_draw_one_in(c, 6) ? 1e-15 :
						    1;
	const int rank = yk_draw_matrices(c, dims, m, n);
	for (int d = 0; d < rank; d++) {
		left[d] = d == rank - 1 ? (full ? m : k) : dims[d];
		right[d] = d == rank - 2 ? (full ? n : k) : dims[d];
		middle[d] = d == rank - 2 ? k : dims[d];
	}
	const int64_t count = yk_count_of(rank, dims) / (m * n);
	const uint32_t u = yk_case_out(c, dtype, rank, left, YK_ANY),
		       s = yk_case_out(c, dtype, rank - 1, middle, YK_ANY),
		       v = yk_case_out(c, dtype, rank, right, YK_ANY);
	const uint32_t a = yk_case_in(c, dtype, rank, dims, YK_ANY | YK_REPEATED, -scale, scale);
	c->op.nattr = 1;
	c->op.attr[0].i = full;
	double *w = yk_case_alloc(c, (uint64_t)(both * both) * sizeof *w),
	       *vectors = yk_case_alloc(c, (uint64_t)(both * both) * sizeof *w);
	for (int64_t at = 0; at < count; at++) {
		double max = 0;
		for (int64_t i = 0; i < both * both; i++)
			w[i] = 0;
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++)
				w[i * both + m + j] = w[(m + j) * both + i] =
					c->array[a].num[(at * m + i) * n + j].f / scale;
		yk_jacobi(w, vectors, both);
		for (int64_t i = 0; i < both; i++) {
			vectors[i] = w[i * (both + 1)];
			max = fmax(max, vectors[i]);
		}
		for (int64_t i = 0; i < k; i++) { // the k largest eigenvalues
			int64_t top = 0;
			for (int64_t j = 0; j < both; j++)
				top = vectors[j] > vectors[top] ? j : top;
			yk_expect_real(&c->array[s].want[at * k + i], dtype,
				       fmax(vectors[top], 0) * scale,
				       100 * (double)both * 0x1p-52 * max * scale);
			vectors[top] = -INFINITY;
		}
	}
	for (int64_t i = 0; i < c->array[u].n; i++)
		c->array[u].want[i].loose = true;
	for (int64_t i = 0; i < c->array[v].n; i++)
		c->array[v].want[i].loose = true;
	omit_one(c, 3);
	yk_case_note(c, "m %lld, n %lld%s, numbers about %g", (long long)m, (long long)n,
		     full ? ", full" : "", scale);
	return true;
}

// The Taylor series of a / 2^s, squared s times, in float64; the norm of a is small enough for it.
bool yk_make_matrix_exp(struct yk_case *c, int dtype)
{
	int64_t dims[YOKE_MAX_RANK];
	yk_case_op(c, YOKE_OP_MATRIX_EXP);
	static const double norms[] = { 1e-3, 0.1, 0.5, 1.5, 4, 9 };
	const int64_t n = yk_draw_size(c, yk_case_large(c) ? 40 : 13);
	const double norm = norms[yk_draw_int(c, 0, 5)], bound = norm / (double)n;
	const int rank = yk_draw_matrices(c, dims, n, n);
	const int64_t count = yk_count_of(rank, dims) / (n * n), size = n * n;
	const uint32_t y = yk_case_out(c, dtype, rank, dims, YK_ANY),
		       a = yk_case_in(c, dtype, rank, dims, YK_ANY | YK_REPEATED, -bound, bound);
	double *term = yk_case_alloc(c, (uint64_t)size * sizeof *term),
	       *sum = yk_case_alloc(c, (uint64_t)size * sizeof *sum),
	       *next = yk_case_alloc(c, (uint64_t)size * sizeof *next);
	for (int64_t q = 0; q < count; q++) {
		for (int64_t i = 0; i < size; i++)
			sum[i] = term[i] = i / n == i % n;
		for (int step = 1; step < 22 + 6; step++) { // 22 terms of a / 64, and 6 squarings
			const bool series = step < 22;
			for (int64_t i = 0; i < size; i++) {
				double s = 0;
				for (int64_t l = 0; l < n; l++)
					s += series ? term[i / n * n + l] *
							      c->array[a]
								      .num[q * size + l * n + i % n]
								      .f /
							      64 / step :
						      sum[i / n * n + l] * sum[l * n + i % n];
				next[i] = s;
			}
			for (int64_t i = 0; i < size; i++) {
				term[i] = next[i];
				sum[i] = series ? sum[i] + next[i] : next[i];
			}
		}
		for (int64_t i = 0; i < size; i++)
			yk_expect_real(&c->array[y].want[q * size + i], dtype, sum[i],
				       100 * (double)n * eps_of(dtype) * exp(norm));
	}
	yk_case_note(c, "n %lld, norm %g", (long long)n, norm);
	return true;
}
