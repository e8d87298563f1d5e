// SPDX-License-Identifier: Apache-2.0
// Tests yoke-linalg.h by residuals in float64 loops, for sizes about those of blocks:
// factorizations, systems, inverses, determinants, singular values, exponentials; batches and
// views; matrices without inverse; gradients at equal singular values; refused operands.
#include "config.h"

#include <float.h>
#include <inttypes.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "slope.h"
#include "yoke-linalg.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { ELEMENTS = 200 * 200 };
static double a[ELEMENTS], b[ELEMENTS], x[ELEMENTS], y[ELEMENTS], z[ELEMENTS], s[ELEMENTS];

static double precision(int dtype)
{
	return dtype == yoke_f64 ? DBL_EPSILON : FLT_EPSILON;
}

// The largest |sum over l of p[i,l] q[l,j] - w[i,j]|, where p is [m,k], q [k,n], w [m,n] or NULL
// (1).
static double residual(int64_t m, int64_t n, int64_t k, const double *p, bool turned,
		       const double *q, const double *w)
{
	double worst = 0;
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = w ? -w[i * n + j] : -(double)(i == j);
			for (int64_t l = 0; l < k; l++)
				sum += (turned ? p[l * m + i] : p[i * k + l]) * q[l * n + j];
			worst = fmax(worst, fabs(sum)) + (sum != sum ? NAN : 0);
		}
	return worst;
}

static const int64_t sizes[] = { 1,  2,  3,  4,  5,  7,  8,  13,  15,  16, 17,
				 31, 32, 33, 47, 63, 64, 65, 100, 129, 150 };
enum { SIZES = sizeof sizes / sizeof *sizes };

// L U = the rows of a in the order perm; |L| is at most 1
static void factors(int dtype, int64_t m, int64_t n)
{
	const int64_t k = m < n ? m : n;
	int64_t perm[200];
	double large = 0;
	yoke_scope *scope = yoke_scope_begin("lu");
	draw(dtype, a, m * n, -1, 1);
	yoke_tensor *rows, *lu = yoke_lu(tensor(dtype, 2, DIMS(m, n), a), &rows);
	yoke_eval(2, (yoke_tensor *[]){ lu, rows });
	values(lu, b, m * n);
	yoke_read(rows, perm, (size_t)m * sizeof *perm);
	yoke_scope_end(scope);
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			z[i * n + j] = a[(perm[i] >= 0 && perm[i] < m ? perm[i] : 0) * n + j];
			if (j < k)
				x[i * k + j] = i == j ? 1 : i > j ? b[i * n + j] : 0;
			if (i < k)
				y[i * n + j] = i <= j ? b[i * n + j] : 0;
			large = i > j ? fmax(large, fabs(b[i * n + j])) : large;
		}
	const double worst = residual(m, n, k, x, false, y, z) / precision(dtype) / (double)k;
	ok(worst < 8 && large <= 1,
	   "lu of %s [%d,%d]: L U is off by %.2g k eps, L is at most %g %s", yoke_dtype_name(dtype),
	   (int)m, (int)n, worst, large, yoke_error());
	yoke_error_clear();
}

// A column whose remaining elements are all NaN has the next row as its pivot; rows before it stay.
static void nan_pivots(int dtype)
{
	const double from[] = { 1, 2, 0, NAN, 3, 0, NAN, 5, 6 };
	int64_t perm[3] = { -1, -1, -1 };
	yoke_scope *scope = yoke_scope_begin("nan");
	yoke_tensor *rows, *lu = yoke_lu(tensor(dtype, 2, DIMS(3, 3), from), &rows);
	yoke_eval(2, (yoke_tensor *[]){ lu, rows });
	values(lu, b, 9);
	yoke_read(rows, perm, sizeof perm);
	yoke_scope_end(scope);
	ok(perm[0] == 0 && perm[1] == 1 && perm[2] == 2 && b[0] == 1 && b[1] == 2 && b[2] == 0,
	   "lu of %s with NaN: rows %d %d %d, the first is %g %g %g", yoke_dtype_name(dtype),
	   (int)perm[0], (int)perm[1], (int)perm[2], b[0], b[1], b[2]);
}

// a with n on its diagonal, so that its condition is small
static void firm(int64_t n, int dtype)
{
	draw(dtype, a, n * n, -1, 1);
	for (int64_t i = 0; i < n; i++)
		a[i * n + i] += (double)n;
}

static void systems(int dtype, int64_t n)
{
	const int64_t k = 1 + n % 5;
	yoke_scope *scope = yoke_scope_begin("solve");
	firm(n, dtype);
	draw(dtype, b, n * k, -1, 1);
	yoke_tensor *t = tensor(dtype, 2, DIMS(n, n), a), *inverse = yoke_inv(t);
	yoke_tensor *right = yoke_solve(t, tensor(dtype, 2, DIMS(n, k), b));
	yoke_eval(2, (yoke_tensor *[]){ right, inverse });
	values(right, x, n * k);
	values(inverse, y, n * n);
	yoke_scope_end(scope);
	const double solved = residual(n, k, n, a, false, x, b) / precision(dtype) / (double)n,
		     inverted = residual(n, n, n, a, false, y, NULL) / precision(dtype) / (double)n;
	ok(solved < 20 && inverted < 20,
	   "a system and an inverse of %s [%d,%d]: a x - b is %.2g n eps, a a^-1 - 1 is %.2g %s",
	   yoke_dtype_name(dtype), (int)n, (int)n, solved, inverted, yoke_error());
	yoke_error_clear();
}

static void orthogonal(int dtype, int64_t m, int64_t n, int complete)
{
	const int64_t k = complete || m < n ? m : n;
	double below = 0;
	yoke_scope *scope = yoke_scope_begin("qr");
	draw(dtype, a, m * n, -1, 1);
	yoke_tensor *r, *q = yoke_qr(tensor(dtype, 2, DIMS(m, n), a), complete, &r);
	yoke_eval(2, (yoke_tensor *[]){ q, r });
	values(q, x, m * k);
	values(r, y, k * n);
	yoke_scope_end(scope);
	for (int64_t i = 0; i < k; i++)
		for (int64_t j = 0; j < i && j < n; j++)
			below = fmax(below, fabs(y[i * n + j]));
	const double whole = residual(m, n, k, x, false, y, a) / precision(dtype) / (double)m,
		     unit = residual(k, k, m, x, true, x, NULL) / precision(dtype) / (double)m;
	ok(whole < 20 && unit < 20 && below == 0,
	   "qr of %s [%d,%d]%s: Q R - a is %.2g m eps, Q'Q - 1 %.2g, below R's diagonal %g %s",
	   yoke_dtype_name(dtype), (int)m, (int)n, complete ? ", complete" : "", whole, unit, below,
	   yoke_error());
	yoke_error_clear();
}

// The singular values and vectors of the matrix in `a`.
static void decomposed(const char *what, int dtype, int64_t m, int64_t n, int full)
{
	const int64_t k = m < n ? m : n, ku = full ? m : k, kv = full ? n : k;
	double largest = 0;
	bool falling = true;
	yoke_scope *scope = yoke_scope_begin("svd");
	yoke_tensor *t, *vh, *u = yoke_svd(tensor(dtype, 2, DIMS(m, n), a), full, &t, &vh);
	yoke_eval(3, (yoke_tensor *[]){ t, u, vh });
	values(u, x, m * ku);
	values(t, s, k);
	values(vh, y, kv * n);
	yoke_scope_end(scope);
	for (int64_t i = 0; i < m * n; i++)
		largest = fmax(largest, fabs(a[i]));
	largest = largest > 0 ? largest : 1;
	for (int64_t i = 0; i < k; i++)
		falling &= s[i] >= 0 && (!i || s[i] <= s[i - 1]);
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < k; j++)
			z[i * k + j] = x[i * ku + j] * s[j];
	double unit = residual(ku, ku, m, x, true, x, NULL);
	for (int64_t i = 0; i < kv; i++) // V V'
		for (int64_t j = 0; j < kv; j++) {
			double sum = -(double)(i == j);
			for (int64_t l = 0; l < n; l++)
				sum += y[i * n + l] * y[j * n + l];
			unit = fmax(unit, fabs(sum)) + (sum != sum ? NAN : 0);
		}
	const double eps = precision(dtype) * (double)(m + n),
		     whole = residual(m, n, k, z, false, y, a) / largest / eps;
	ok(whole < 20 && unit / eps < 20 && falling,
	   "svd of %s %s [%d,%d]%s: U S V' - a is %.2g (m + n) eps, U'U - 1, VV' - 1 %.2g %s", what,
	   yoke_dtype_name(dtype), (int)m, (int)n, full ? ", full" : "", whole, unit / eps,
	   yoke_error());
	yoke_error_clear();
}

static void decompositions(void)
{
	nan_pivots(yoke_f32);
	nan_pivots(yoke_f64);
	for (int k = 0; k < SIZES; k++) {
		const int64_t n = sizes[k], other = sizes[(k * 7 + 3) % SIZES];
		const int dtype = k % 2 ? yoke_f32 : yoke_f64, second = k % 2 ? yoke_f64 : yoke_f32;
		factors(dtype, n, n);
		factors(second, n, other);
		systems(dtype, n);
		systems(second, n);
		orthogonal(dtype, n, n, 0);
		orthogonal(second, n, other, 0);
		orthogonal(second, other, n, 0);
		orthogonal(dtype, n, other, 1);
		draw(dtype, a, n * other, -1, 1);
		decomposed("random", dtype, n, other, k % 3 == 0);
		decomposed("random", dtype, other, n, k % 3 == 1);
		draw(second, a, n * n, -1, 1);
		decomposed("random", second, n, n, 0);
	}
}

static void special(void)
{
	static const int64_t wide[] = { 1, 2, 5, 33, 90 };
	for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) {
		const int64_t n = wide[k];
		for (int64_t i = 0; i < n * n; i++)
			a[i] = i % (n + 1) == 0;
		decomposed("units", yoke_f64, n, n, 0);
		memset(a, 0, sizeof a);
		decomposed("zeros", yoke_f64, n, n, 1);
		decomposed("zeros", yoke_f32, n, 2 * n, 1);
		for (int64_t i = 0; i < n * n; i++)
			a[i] = 0.3;
		decomposed("equal elements", yoke_f64, n, n, 0);
		for (int64_t i = 0; i < n * n; i++) // of rank one, graded in both directions
			a[i] = pow(10, -20 * (double)(i / n) / (double)n) *
			       pow(10, 15 * (double)(i % n) / (double)n);
		decomposed("graded", yoke_f64, n, n, 0);
		for (int64_t i = 0; i < n * n; i++)
			a[i] = i / n == i % n     ? pow(10, -30 * (double)(i / n) / (double)n) :
			       i / n + 1 == i % n ? 1e-5 :
						    0;
		decomposed("graded bidiagonal", yoke_f64, n, n, 0);
		// singular: an upper triangle with zeros on its diagonal
		for (int64_t i = 0; i < n * n; i++)
			a[i] = i / n < i % n ? 1 : 0;
		decomposed("nilpotent", yoke_f64, n, n, 0);
		draw(yoke_f64, a, n * n, -1, 1);
		for (int64_t i = 0; i < n * n; i++)
			a[i] *= 1e200;
		decomposed("huge", yoke_f64, n, n, 0);
		for (int64_t i = 0; i < n * n; i++)
			a[i] *= 1e-300;
		decomposed("small", yoke_f64, n, n, 0);
	}
}

// det, slogdet of batches, beside the product of the diagonal of a triangular factor
static void determinants(void)
{
	enum { B = 5, N = 6 };
	double got[B], want[B], sign[B], logs[B], signs[B], want_logs[B];
	for (int q = 0; q < B; q++) {
		double *m = a + q * N * N;
		want[q] = 1;
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				m[i * N + j] =
					j < i ? 0 :
						rnd_real(0.5, 2) *
							(i == j && (q + i) % 3 == 0 ? -1 : 1);
		for (int i = 0; i < N; i++)
			want[q] *= m[i * N + i];
		for (int i = 1; i < N; i++) // adds multiples of rows, and exchanges two
			for (int j = 0; j < N; j++)
				m[i * N + j] += 0.7 * m[(i - 1) * N + j];
		if (q == 3)
			for (int j = 0; j < N; j++) {
				const double t = m[j];
				m[j] = m[4 * N + j];
				m[4 * N + j] = t;
			}
		if (q == 4)
			memset(m + 2 * N, 0, N * sizeof *m);
	}
	want[3] = -want[3];
	want[4] = 0;
	for (int q = 0; q < B; q++) {
		signs[q] = want[q] > 0 ? 1 : want[q] < 0 ? -1 : 0;
		want_logs[q] = log(fabs(want[q]));
	}
	yoke_scope *scope = yoke_scope_begin("det");
	yoke_tensor *t = yoke_from(yoke_f64, 3, DIMS(B, N, N), a), *l, *g = yoke_slogdet(t, &l);
	values(yoke_det(t), got, B);
	near(got, want, B, 1e-12, 1, "determinants of a batch, one without inverse");
	yoke_eval(2, (yoke_tensor *[]){ g, l });
	values(g, sign, B);
	values(l, logs, B);
	near(sign, signs, B, 0, 1, "their signs");
	near(logs, want_logs, B, 1e-12, 1, "the logarithms of their moduli");
	values(yoke_det(yoke_full(yoke_f64, 3, DIMS(2, 0, 0), 0)), got, 2);
	near(got, (double[]){ 1, 1 }, 2, 0, 1, "the determinant of empty matrices is 1");
	yoke_scope_end(scope);
	ok(!yoke_error_code(), "without error %s", yoke_error());
	yoke_error_clear();
}

// The gradient of det is the matrix of cofactors, at any rank.
static void cofactors(void)
{
	static const double singular[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 },
			    cof[] = { -3, 6, -3, 6, -12, 6, -3, 6, -3 },
			    thin[] = { 1, 2, 3, 2, 4, 6, 3, 6, 9 }, none[9] = { 0 },
			    full[] = { 2, 0, 1, 0, 3, 0, 1, 0, 4 },
			    of_full[] = { 12, 0, -3, 0, 7, 0, -3, 0, 6 };
	const double *const m[] = { singular, thin, none, full },
		     *const want[] = { cof, none, none, of_full };
	static const char *const what[] = { "rank 2", "rank 1", "rank 0", "rank 3" };
	for (int k = 0; k < 4; k++) {
		double got[9];
		yoke_scope *scope = yoke_scope_begin("cofactor");
		yoke_tensor *t = yoke_from(yoke_f64, 2, DIMS(3, 3), m[k]), *g;
		yoke_grad(yoke_det(t), 1, &t, &g);
		values(g, got, 9);
		near(got, want[k], 9, 1e-12, 1, what[k]);
		yoke_scope_end(scope);
	}
	yoke_error_clear();
}

static yoke_tensor *singular_values(yoke_tensor *t)
{
	yoke_tensor *to;
	yoke_svd(t, 0, &to, NULL);
	return to;
}

static void equal_values(void)
{
	enum { N = 4 };
	for (int tall = 0; tall < 2; tall++) {
		const int64_t m = N + tall, count = m * N;
		double got[20], want[20], turn[20];
		for (int64_t i = 0; i < count; i++)
			turn[i] = i / N == i % N ? 2 : 0;
		yoke_scope *scope = yoke_scope_begin("equal");
		yoke_tensor *t = yoke_from(yoke_f64, 2, DIMS(m, N), turn), *of, *vh, *g,
			    *u = yoke_svd(t, 0, &of, &vh);
		yoke_tensor *power = yoke_matmul(yoke_mul(u, yoke_square(of)), vh, 0);
		yoke_tensor *f = yoke_add(yoke_sum(power, YOKE_ALL), yoke_sum(of, YOKE_ALL));
		yoke_grad(f, 1, &t, &g);
		values(g, got, count);
		bool finite = true;
		for (int64_t i = 0; i < count; i++)
			finite &= isfinite(got[i]);
		ok(finite,
		   "gradients by singular vectors at equal singular values are finite, [%d,4] %s",
		   (int)m, yoke_error());
		yoke_grad(yoke_sum(yoke_square(singular_values(t)), YOKE_ALL), 1, &t, &g);
		values(g, got, count);
		for (int64_t i = 0; i < count; i++)
			want[i] = 2 * turn[i];
		near(got, want, (size_t)count, 1e-13, 1,
		     "the gradient of the sum of squared singular values is 2 a where they are equal");
		yoke_grad(yoke_sum(yoke_pinv(t, -1), YOKE_ALL), 1, &t, &g);
		values(g, got, count);
		// pinv is a' / 4 to first order but for the rows below
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < N; j++)
				want[i * N + j] = i < N ? -0.25 : 0.25;
		near(got, want, (size_t)count, 1e-13, 1,
		     "the gradient of the pseudoinverse where they are equal");
		yoke_scope_end(scope);
	}
	yoke_error_clear();
}

// pinv and lstsq fulfil their equations.
static void squares(void)
{
	static const int64_t shapes[][2] = { { 7, 4 }, { 4, 7 }, { 5, 5 }, { 40, 3 } };
	for (int k = 0; k < 4; k++)
		for (int low = 0; low < 2; low++) {
			const int64_t m = shapes[k][0], n = shapes[k][1], c = 2;
			draw(yoke_f64, a, m * n, -1, 1);
			for (int64_t i = 0; low && i < m; i++) // dependent columns
				a[i * n + n - 1] = 2 * a[i * n] - a[i * n + 1];
			for (int64_t j = 0; low && j < n; j++) // and rows
				a[(m - 1) * n + j] = a[j];
			draw(yoke_f64, b, m * c, -1, 1);
			yoke_scope *scope = yoke_scope_begin("pinv");
			yoke_tensor *t = yoke_from(yoke_f64, 2, DIMS(m, n), a),
				    *right = yoke_from(yoke_f64, 2, DIMS(m, c), b);
			yoke_tensor *p = yoke_pinv(t, -1), *l = yoke_lstsq(t, right, 0, -1),
				    *q = low ? l : yoke_lstsq(t, right, 1, -1);
			yoke_eval(3, (yoke_tensor *[]){ p, l, q });
			values(p, x, n * m);
			values(l, y, n * c);
			values(q, z, n * c);
			yoke_scope_end(scope);
			double worst = 0, apart = 0;
			static double ap[ELEMENTS], back[ELEMENTS];
			for (int64_t i = 0; i < m; i++)
				for (int64_t j = 0; j < m; j++) {
					ap[i * m + j] = 0;
					for (int64_t r = 0; r < n; r++)
						ap[i * m + j] += a[i * n + r] * x[r * m + j];
				}
			memset(back, 0, sizeof back);
			for (int64_t i = 0; i < m; i++)
				for (int64_t j = 0; j < n; j++)
					for (int64_t r = 0; r < m; r++)
						back[i * n + j] += ap[i * m + r] * a[r * n + j];
			for (int64_t i = 0; i < m * n; i++)
				worst = fmax(worst, fabs(back[i] - a[i]));
			for (int64_t i = 0; i < n * c; i++) {
				double sum = -y[i];
				for (int64_t r = 0; r < m; r++)
					sum += x[i / c * m + r] * b[r * c + i % c];
				apart = fmax(apart, fmax(fabs(sum), fabs(z[i] - y[i])));
			}
			ok(worst < 1e-12 && apart < 1e-11,
			   "pinv [%d,%d]%s: a p a - a is %.2g, lstsq is off by %.2g %s", (int)m,
			   (int)n, low ? " of lower rank" : "", worst, apart, yoke_error());
			yoke_error_clear();
		}
}

// exp(a) by the Taylor series of a / 2^20, squared 20 times, in long double
static void exponentials(void)
{
	enum { N = 6 };
	static const double scales[] = { 0, 1e-3, 0.1, 0.4, 1, 3, 12 };
	for (int dtype = 0; dtype < 2; dtype++)
		for (size_t q = 0; q < sizeof scales / sizeof *scales; q++) {
			long double p[N][N], t[N][N], w[N][N];
			double want[N * N], got[N * N], max = 0;
			draw(yoke_f32, a, N * N, -1, 1);
			for (int i = 0; i < N * N; i++)
				a[i] = (float)(a[i] * scales[q]);
			for (int i = 0; i < N; i++)
				for (int j = 0; j < N; j++)
					w[i][j] = t[i][j] = i == j;
			for (int term = 1; term < 12; term++) {
				for (int i = 0; i < N; i++)
					for (int j = 0; j < N; j++) {
						p[i][j] = 0;
						for (int l = 0; l < N; l++)
							p[i][j] += t[i][l] *
								   (long double)a[l * N + j] /
								   0x1p10L / term;
					}
				memcpy(t, p, sizeof t);
				for (int i = 0; i < N; i++)
					for (int j = 0; j < N; j++)
						w[i][j] += t[i][j];
			}
			for (int turn = 0; turn < 10; turn++) {
				for (int i = 0; i < N; i++)
					for (int j = 0; j < N; j++) {
						p[i][j] = 0;
						for (int l = 0; l < N; l++)
							p[i][j] += w[i][l] * w[l][j];
					}
				memcpy(w, p, sizeof w);
			}
			for (int i = 0; i < N * N; i++) {
				want[i] = (double)w[i / N][i % N];
				max = fmax(max, fabs(want[i]));
			}
			yoke_scope *scope = yoke_scope_begin("exp");
			values(yoke_matrix_exp(
				       tensor(dtype ? yoke_f64 : yoke_f32, 2, DIMS(N, N), a)),
			       got, N * N);
			yoke_scope_end(scope);
			near(got, want, N * N, 300 * precision(dtype ? yoke_f64 : yoke_f32), max,
			     "an exponential");
		}
	const int64_t n = 150; // exp(a) exp(-a) = 1
	draw(yoke_f64, a, n * n, -1, 1);
	for (int64_t i = 0; i < n * n; i++)
		a[i] *= 0.05;
	yoke_scope *scope = yoke_scope_begin("exp");
	yoke_tensor *t = yoke_from(yoke_f64, 2, DIMS(n, n), a), *e = yoke_matrix_exp(t),
		    *f = yoke_matrix_exp(yoke_neg(t));
	yoke_eval(2, (yoke_tensor *[]){ e, f });
	values(e, x, n * n);
	values(f, y, n * n);
	yoke_scope_end(scope);
	const double worst = residual(n, n, n, x, false, y, NULL);
	ok(worst < 1e-10, "exp(a) exp(-a) - 1 of [150,150] is %.2g %s", worst, yoke_error());
	yoke_error_clear();
}

// Many small matrices, in transposed views and with a common right-hand side.
static void batches(void)
{
	enum { B = 37, N = 5 };
	double worst = 0;
	for (int q = 0; q < B; q++)
		for (int i = 0; i < N * N; i++)
			a[q * N * N + i] = rnd_real(-1, 1) + (i % (N + 1) == 0 ? 4 : 0);
	draw(yoke_f64, b, N * 2, -1, 1);
	yoke_scope *scope = yoke_scope_begin("batches");
	yoke_tensor *t = yoke_permute(yoke_from(yoke_f64, 3, DIMS(B, N, N), a), (int[]){ 0, 2, 1 });
	yoke_tensor *right = yoke_from(yoke_f64, 2, DIMS(N, 2), b), *p = yoke_matrix_power(t, -3),
		    *q = yoke_matrix_power(t, 3);
	values(yoke_solve(t, right), x, B * N * 2);
	for (int k = 0; k < B; k++)
		for (int i = 0; i < N * 2; i++) {
			double sum = -b[i];
			for (int l = 0; l < N; l++)
				sum += a[k * N * N + l * N + i / 2] * x[k * N * 2 + l * 2 + i % 2];
			worst = fmax(worst, fabs(sum)) + (sum != sum ? NAN : 0);
		}
	ok(worst < 1e-13, "transposed matrices, one right-hand side for all: a x - b is %.2g %s",
	   worst, yoke_error());
	values(yoke_matmul(p, q, 0), y, B * N * N);
	values(yoke_matrix_power(t, 0), z, B * N * N);
	double power = 0, unit = 0;
	for (int i = 0; i < B * N * N; i++) {
		const double one = i % (N * N) % (N + 1) == 0;
		power = fmax(power, fabs(y[i] - one)) + (y[i] != y[i] ? NAN : 0);
		unit = fmax(unit, fabs(z[i] - one)) + (z[i] != z[i] ? NAN : 0);
	}
	ok(power < 1e-12 && unit == 0, "a^-3 a^3 - 1 is %.2g, a^0 - 1 %g %s", power, unit,
	   yoke_error());
	yoke_scope_end(scope);
	yoke_error_clear();
}

static void refuses(const char *what, int want, const char *word)
{
	ok(yoke_error_code() == want && strstr(yoke_error(), word), "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static void errors(void)
{
	double got[18];
	yoke_scope *scope = yoke_scope_begin("errors");
	yoke_tensor *wide = yoke_full(yoke_f32, 2, DIMS(2, 3), 1),
		    *line = yoke_full(yoke_f32, 1, DIMS(3), 1);
	yoke_tensor *whole = yoke_full(yoke_i32, 2, DIMS(3, 3), 1),
		    *square = yoke_full(yoke_f32, 3, DIMS(2, 3, 3), 1);
	yoke_tensor *other = yoke_full(yoke_f64, 2, DIMS(3, 3), 1), *rest = square;
	yoke_inv(wide);
	refuses("inv of a matrix that is not square", YOKE_ESHAPE, "[2,3]");
	yoke_det(line);
	refuses("det of a vector", YOKE_ESHAPE, "[3]");
	yoke_svd(whole, 0, &rest, NULL);
	refuses("svd of integers", YOKE_EDTYPE, "i32");
	ok(!rest, "a failed svd returns no vectors");
	yoke_solve(square, wide);
	refuses("right-hand sides that do not fit", YOKE_ESHAPE, "[2,3,3]");
	yoke_solve(square, other);
	refuses("right-hand sides of another dtype", YOKE_EDTYPE, "f64");
	yoke_lstsq(square, wide, 0, -1);
	refuses("least squares that do not fit", YOKE_ESHAPE, "[2,3]");
	yoke_pinv(square, INFINITY);
	refuses("an infinite rcond", YOKE_ERANGE, "inf");
	yoke_matrix_power(wide, 2);
	refuses("a power of a matrix that is not square", YOKE_ESHAPE, "[2,3]");
	yoke_matrix_exp(line);
	refuses("exp of a vector", YOKE_ESHAPE, "matrix_exp");
	if (!tap_late()) { // matrices of ones have no inverse
		yoke_read(yoke_cast(yoke_inv(square), yoke_f64), got, sizeof got);
		refuses("a matrix without inverse", YOKE_ERANGE, "matrix 0");
		yoke_read(yoke_cast(yoke_solve(square, square), yoke_f64), got, sizeof got);
		refuses("a system without solution", YOKE_ERANGE, "row 1");
	}
	double bad[4] = { 1, NAN, 0, 1 };
	values(singular_values(yoke_from(yoke_f64, 2, DIMS(2, 2), bad)), got, 2);
	ok(isnan(got[0]) && isnan(got[1]),
	   "the singular values of a matrix with a NaN are NaN: %g %g", got[0], got[1]);
	yoke_scope_end(scope);
	yoke_error_clear();
}

// A device without these kernels falls back to the CPU.
static void elsewhere(void)
{
	double got[4];
	yoke_context *ctx = yoke_context_new("skeleton"), *before = ctx ? yoke_use(ctx) : NULL;
	if (!ctx) {
		skip("another device", yoke_error());
		yoke_error_clear();
		return;
	}
	yoke_scope *scope = yoke_scope_begin("elsewhere");
	yoke_tensor *t = yoke_from(yoke_f64, 2, DIMS(2, 2), (double[]){ 2, 1, 1, 2 });
	values(yoke_add(yoke_inv(t), yoke_mul(singular_values(t), yoke_det(t))), got, 4);
	near(got, (double[]){ 29. / 3, 8. / 3, 26. / 3, 11. / 3 }, 4, 1e-14, 1,
	     "on a device without the kernels");
	ok(!yoke_error_code(), "without error %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(scope);
	yoke_use(before);
	yoke_context_free(ctx);
}

// The same numbers in every process: decompositions whose passes and panels are divided among
// threads
static uint64_t bits(void)
{
	static const int64_t shapes[][2] = { { 300, 300 }, { 410, 230 }, { 210, 260 }, { 97, 97 } };
	uint64_t hash = 1;
	for (int i = 0; i < 8; i++) {
		const int64_t m = shapes[i / 2][0], n = shapes[i / 2][1], k = m < n ? m : n,
			      small[2] = { k, k };
		const size_t bytes = (size_t)(m * n) * sizeof(double);
		yoke_scope *scope = yoke_scope_begin("bits");
		yoke_tensor *of = yoke_uniform(i % 2 ? yoke_f64 : yoke_f32, 2, shapes[i / 2]),
			    *all[5];
		all[0] = yoke_svd(of, 0, &all[1], &all[2]);
		of = yoke_uniform(yoke_f64, 2, small);
		all[3] = yoke_eigh(yoke_add(of, yoke_permute(of, (int[]){ 1, 0 })), &all[4]);
		char *to = malloc(bytes);
		yoke_eval(5, all);
		for (int j = 0; j < 5; j++) {
			const size_t size = yoke_bytes(all[j]);
			hash = to && size <= bytes && !yoke_read(all[j], to, size) ?
				       yk_hash(to, size, hash) :
				       0;
		}
		free(to);
		yoke_scope_end(scope);
	}
	return hash;
}

enum { NO_LAPACK = 2 };

// Matrices so large that a LAPACK, if requested, is called. Returns whether U S V' differs, or
// NO_LAPACK.
static int by_lapack(void)
{
	const int64_t n = 515, dims[2] = { n, n };
	int wrong = 0;
	yoke_scope *scope = yoke_scope_begin("lapack");
	yoke_tensor *of = yoke_uniform(yoke_f64, 2, dims);
	for (int i = 0; i < 2 && !wrong; i++) {
		const int dtype = i ? yoke_f32 : yoke_f64;
		yoke_tensor *values, *vh, *t = yoke_cast(of, dtype),
					  *u = yoke_svd(t, 0, &values, &vh);
		yoke_tensor *back = yoke_matmul(yoke_mul(u, values), vh, 0);
		double worst = NAN;
		if (yoke_read(yoke_cast(yoke_reduce_max(yoke_abs(yoke_sub(back, t)), YOKE_ALL),
					yoke_f64),
			      &worst, sizeof worst) < 0 &&
		    yoke_error_code() == YOKE_ENOENT)
			wrong = NO_LAPACK;
		else
			wrong = !(worst < 60 * (double)n * precision(dtype));
	}
	yoke_scope_end(scope);
	return wrong;
}

static void processes(const char *self)
{
	char line[4600];
	const uint64_t here = bits();
	for (int threads = 1; threads <= 3; threads++) {
		uint64_t n = 0;
		snprintf(line, sizeof line, "YOKE_THREADS=%d %s bits", threads, self);
		FILE *from = popen(line, "r");
		const bool got = from && fscanf(from, "%" SCNu64, &n) == 1;
		if (from)
			pclose(from);
		ok(got && n && n == here,
		   "%d threads: the same bits of singular values and eigenvectors (%" PRIx64
		   ", here %" PRIx64 ")",
		   threads, n, here);
	}
	snprintf(line, sizeof line, "YOKE_BACKEND=cpu YOKE_CPU_LAPACK=1 %s lapack >/dev/null 2>&1",
		 self);
	const int status = system(line);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_LAPACK)
		skip("large matrices by LAPACK", "there is no LAPACK");
	else
		ok(status == 0, "large matrices by LAPACK: U S V' is the matrix");
}

int main(int argc, char **argv)
{
	tap_plugin_path(); // before backends are loaded
	if (argc > 1 && !strcmp(argv[1], "lapack"))
		return by_lapack();
	if (argc > 1) {
		printf("%" PRIu64 "\n", bits());
		return 0;
	}
	tap_seed();
	processes(argv[0]);
	decompositions();
	special();
	determinants();
	cofactors();
	equal_values();
	squares();
	exponentials();
	batches();
	errors();
	elsewhere();
	return done();
}
