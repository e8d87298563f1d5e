// SPDX-License-Identifier: Apache-2.0
// Tests eigh, Cholesky factors and triangular solves: residuals of random and special matrices,
// gradients for equal eigenvalues, refused operands. On other devices the ops fall back to the
// CPU's kernels, which is counted.
#include "config.h"

#include <float.h>

#include "tap.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { LIMIT = 260 };
static double a[LIMIT * LIMIT], v[LIMIT * LIMIT], w[LIMIT];

// Fills a symmetric matrix; its upper half is overwritten, because eigh does not read it.
static void put(int64_t n, int64_t i, int64_t j, double x)
{
	a[i * n + j] = i >= j ? x : NAN;
	a[j * n + i] = j >= i ? x : NAN;
}

static double at(int64_t n, int64_t i, int64_t j)
{
	return a[i >= j ? i * n + j : j * n + i];
}

// ||A V - V L|| / ||A|| and ||V'V - 1|| in the Frobenius norm, in units of n 2^-53; order and
// signs.
static void check(const char *what, int64_t n)
{
	double max = 0, all = 0, rest = 0, square = 0;
	bool ordered = true, positive = true;
	yoke_scope *s = yoke_scope_begin("eigh");
	memset(w, 0xff, sizeof w);
	memset(v, 0xff, sizeof v);
	yoke_tensor *vectors, *values = yoke_eigh(yoke_from(yoke_f64, 2, DIMS(n, n), a), &vectors);
	yoke_eval(2, (yoke_tensor *[]){ values, vectors });
	yoke_read(values, w, (size_t)n * sizeof *w);
	yoke_read(vectors, v, (size_t)(n * n) * sizeof *v);
	yoke_scope_end(s);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			max = fmax(max, fabs(at(n, i, j)));
	const double scale = max > 0 ? max : 1;
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < n; k++) {
			double x = 0, y = 0;
			for (int64_t j = 0; j < n; j++) {
				x += at(n, i, j) / scale * v[j * n + k];
				y += v[j * n + i] * v[j * n + k];
			}
			x -= w[k] / scale * v[i * n + k];
			rest += x * x;
			square += (y - (i == k)) * (y - (i == k));
			all += at(n, i, k) / scale * (at(n, i, k) / scale);
		}
	for (int64_t k = 0; k < n; k++) {
		double high = 0, sign = 1;
		ordered &= !k || w[k - 1] <= w[k];
		for (int64_t i = 0; i < n; i++)
			if (fabs(v[i * n + k]) > high)
				high = fabs(v[i * n + k]), sign = v[i * n + k];
		positive &= sign > 0;
	}
	const double unit = (double)n * 0x1p-53;
	rest = sqrt(rest) / unit / (all > 0 ? sqrt(all) : 1);
	square = sqrt(square) / unit;
	ok(rest <= 50 && square <= 50, "%s of %d: |AV - VL| is %.2g, |V'V - 1| %.2g n 2^-53 %s",
	   what, (int)n, rest, square, yoke_error());
	ok(ordered && positive,
	   "%s of %d: eigenvalues ascend, the largest element of each vector is positive", what,
	   (int)n);
	yoke_error_clear();
}

static void spectrum(const char *what, int64_t n, double (*value)(int64_t k, int64_t n))
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j <= i; j++)
			put(n, i, j, i == j ? value(i, n) : 0);
	for (int turn = 0; turn < 3; turn++) { // reflected by random vectors: 1 - 2 u u' / u'u
		static double u[LIMIT], p[LIMIT];
		double uu = 0, pu = 0;
		for (int64_t i = 0; i < n; i++)
			u[i] = rnd_real(-1, 1), uu += u[i] * u[i];
		for (int64_t i = 0; i < n; i++) {
			p[i] = 0;
			for (int64_t j = 0; j < n; j++)
				p[i] += at(n, i, j) * u[j] * 2 / uu;
			pu += p[i] * u[i];
		}
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j <= i; j++)
				put(n, i, j,
				    at(n, i, j) - u[i] * p[j] - p[i] * u[j] +
					    2 * pu / uu * u[i] * u[j]);
	}
	check(what, n);
}

static double clustered(int64_t k, int64_t n)
{
	return k < n / 2 ? 1 : k % 3 ? 2 + 1e-14 * (double)k : -5;
}
static double graded(int64_t k, int64_t n)
{
	return pow(10, -30 * (double)k / (double)n);
}
static double one(int64_t k, int64_t n) { return k - k + n - n + 1; }
static double none(int64_t k, int64_t n) { return k - k + n - n; }
static double huge(int64_t k, int64_t n) { return 1e150 * (1 + (double)(k % n)); }
static double tiny(int64_t k, int64_t n) { return 1e-300 * (1 + (double)(k % n)); }
static double single(int64_t k, int64_t n) { return k == n / 2 ? -7 : 0; }

static void values_and_vectors(void)
{
	static const int64_t sizes[] = { 1, 2, 3, 4, 7, 15, 16, 17, 33, 64 };
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		const int64_t n = sizes[k];
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j <= i; j++)
				put(n, i, j, rnd_real(-1, 1));
		check("random", n);
	}
	// more rotations than the buffer holds at once
	const int64_t n = tap_turn("many rotations", 3) ? 257 : 190;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j <= i; j++)
			put(n, i, j, rnd_real(-1, 1));
	check("random", n);
	for (int64_t size = 5; size <= 36; size += 31) {
		spectrum("clustered", size, clustered);
		spectrum("graded", size, graded);
		spectrum("equal", size, one);
		spectrum("zero", size, none);
		spectrum("huge", size, huge);
		spectrum("tiny", size, tiny);
		spectrum("of rank one", size, single);
	}
	static const int64_t wide[] = { 31, 64, 65, 130 };
	// of low rank: the rounding residues have all magnitudes
	for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) {
		const int64_t size = wide[k];
		const double x = rnd_real(-1, 1);
		double line[LIMIT];
		for (int64_t i = 0; i < size; i++)
			line[i] = i % 4 ? line[i - 1] : rnd_real(-1, 1);
		for (int64_t i = 0; i < size; i++)
			for (int64_t j = 0; j <= i; j++)
				put(size, i, j, x);
		check("all alike", size);
		for (int64_t i = 0; i < size; i++)
			for (int64_t j = 0; j <= i; j++)
				put(size, i, j, line[i] * line[j]);
		check("each row four times", size);
	}
	for (int64_t i = 0; i < 9; i++) // zero diagonal, and independent blocks
		for (int64_t j = 0; j <= i; j++)
			put(9, i, j, i == j + 1 && i % 3 ? 1 : 0);
	check("in blocks", 9);
}

// One matrix of three is not finite: only its results are NaN.
static void not_finite(void)
{
	double x[3][4] = { { 2, NAN, 1, 2 }, { INFINITY, 0, 0, 1 }, { 1, 0, 0, 3 } }, got[6];
	const double want[6] = { 1, 3, NAN, NAN, 1, 3 };
	yoke_scope *s = yoke_scope_begin("eigh");
	yoke_read(yoke_eigh(yoke_from(yoke_f64, 3, DIMS(3, 2, 2), x), NULL), got, sizeof got);
	near(got, want, 6, 1e-15, 1,
	     "eigh of a batch with one non-finite matrix: only its results are NaN");
	yoke_scope_end(s);
}

// The sum of squares of the eigenvalues equals the sum of squares of all elements.
static void gradient(const char *what, int64_t n, const double *x)
{
	double got[64], want[64];
	yoke_scope *s = yoke_scope_begin("gradient");
	yoke_tensor *t = yoke_from(yoke_f64, 2, DIMS(n, n), x), *g, *vectors;
	yoke_tensor *y = yoke_sum(yoke_square(yoke_eigh(t, &vectors)), YOKE_ALL);
	// V V' is 1: the gradient is zero, but its terms go through the eigenvectors
	y = yoke_add(y, yoke_sum(yoke_matmul(vectors, vectors, YOKE_TB), YOKE_ALL));
	yoke_grad(y, 1, &t, &g);
	memset(got, 0xff, sizeof got);
	yoke_read(g, got, (size_t)(n * n) * sizeof *got);
	for (int64_t i = 0; i < n * n; i++)
		want[i] = 2 * x[i];
	near(got, want, (size_t)(n * n), 1e-13, 1, what);
	yoke_scope_end(s);
}

static void gradients(void)
{
	static const double identity[16] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 },
			    zero[16] = { 0 }, pair[9] = { 2, 1, 0, 1, 2, 0, 0, 0, 3 }; // 1, 3, 3
	gradient("the gradient of the identity's eigenvalues", 4, identity);
	gradient("of zeros", 4, zero);
	gradient("of two that are equal", 3, pair);
}

// L L' = A and t x = b for f32, batched and broadcast.
static void factors(void)
{
	enum { B = 3, N = 37, K = 5 };
	static float m[B][N][N], l[B][N][N], b[N][K], x[B][N][K];
	double worst = 0, above = 0, solved = 0;
	for (int q = 0; q < B; q++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j <= i; j++)
				m[q][i][j] = (float)(i == j ? N + rnd_real(0, 1) : rnd_real(-1, 1)),
				m[q][j][i] = m[q][i][j];
	for (int i = 0; i < N; i++)
		for (int j = 0; j < K; j++)
			b[i][j] = (float)rnd_real(-1, 1);
	yoke_scope *s = yoke_scope_begin("factors");
	yoke_tensor *chol = yoke_cholesky(yoke_from(yoke_f32, 3, DIMS(B, N, N), m));
	yoke_tensor *right = yoke_from(yoke_f32, 2, DIMS(N, K), b);
	// A x = b: L' x = L^-1 b
	yoke_tensor *y =
		yoke_solve_triangular(chol, yoke_solve_triangular(chol, right, 0), YOKE_TRANSPOSED);
	yoke_eval(2, (yoke_tensor *[]){ chol, y });
	memset(l, 0xff, sizeof l);
	memset(x, 0xff, sizeof x);
	yoke_read(chol, l, sizeof l);
	yoke_read(y, x, sizeof x);
	yoke_scope_end(s);
	for (int q = 0; q < B; q++)
		for (int i = 0; i < N; i++) {
			for (int j = 0; j < N; j++) {
				double sum = 0;
				for (int k = 0; k < N; k++)
					sum += (double)l[q][i][k] * l[q][j][k];
				worst = fmax(worst, fabs(sum - m[q][i][j]));
				above = j > i ? fmax(above, fabs(l[q][i][j])) : above;
			}
			for (int j = 0; j < K; j++) {
				double sum = -b[i][j];
				for (int k = 0; k < N; k++)
					sum += (double)m[q][i][k] * x[q][k][j];
				solved = fmax(solved, fabs(sum));
			}
		}
	ok(worst < 2e-5 && above == 0,
	   "cholesky: L L' - A is %.2g, above the diagonal %g %s", worst, above, yoke_error());
	ok(solved < 1e-5, "triangular solve with one right-hand side for all: A x - b is %.2g",
	   solved);
	yoke_error_clear();
}

static void says(const char *what, int code, int want, const char *word)
{
	ok(code == want && strstr(yoke_error(), word), "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static void errors(void)
{
	float x[2][3][3] = { { { 2, 0, 0 }, { 0, 2, 0 }, { 0, 0, 2 } },
			     { { 2, 0, 0 }, { 0, 2, 0 }, { 0, 2, 1 } } };
	yoke_scope *s = yoke_scope_begin("errors");
	yoke_tensor *t = yoke_from(yoke_f32, 3, DIMS(2, 3, 3), x),
		    *long_one = yoke_full(yoke_f32, 2, DIMS(2, 3), 1);
	yoke_tensor *whole = yoke_full(yoke_i32, 2, DIMS(3, 3), 1), *vectors = t;
	if (!tap_late()) {
		yoke_read(yoke_cholesky(t), x, sizeof x);
		says("not positive definite", yoke_error_code(), YOKE_ERANGE, "matrix 1");
		yoke_read(yoke_cholesky(t), x, sizeof x);
		says("and its row", yoke_error_code(), YOKE_ERANGE, "row 2");
	}
	yoke_eigh(long_one, &vectors);
	ok(!vectors, "a failed eigh returns no vectors");
	says("not square", yoke_error_code(), YOKE_ESHAPE, "[2,3]");
	yoke_cholesky(whole);
	says("of integers", yoke_error_code(), YOKE_EDTYPE, "i32");
	yoke_solve_triangular(t, long_one, 0);
	says("sides that do not fit", yoke_error_code(), YOKE_ESHAPE, "[2,2,3]");
	yoke_solve_triangular(t, t, 64);
	says("an unknown flag", yoke_error_code(), YOKE_EINVAL, "0x40");
	yoke_scope_end(s);
	yoke_error_clear();
}

// A device without these kernels falls back to the CPU.
static void elsewhere(void)
{
	double got[2];
	struct yoke_fallback f[4] = { { .size = sizeof *f } };
	yoke_context *ctx = yoke_context_new("skeleton"), *before = ctx ? yoke_use(ctx) : NULL;
	if (!ctx) {
		skip("another device", yoke_error());
		yoke_error_clear();
		return;
	}
	yoke_scope *s = yoke_scope_begin("elsewhere");
	yoke_tensor *t = yoke_from(yoke_f64, 2, DIMS(2, 2), (double[]){ 2, 1, 1, 2 });
	yoke_read(yoke_eigh(t, NULL), got, sizeof got);
	near(got, (double[]){ 1, 3 }, 2, 1e-15, 1, "eigenvalues on a device without the kernel");
	bool counted = false;
	const int n = yoke_fallbacks(4, f);
	for (int i = 0; i < n && i < 4; i++)
		counted |= !strcmp(f[i].op, "eigh") && f[i].count == 1;
	ok(counted, "the fallback is counted %s", yoke_error());
	yoke_scope_end(s);
	yoke_use(before);
	yoke_context_free(ctx);
}

int main(void)
{
	tap_seed();
	tap_plugin_path(); // before backends are loaded
	values_and_vectors();
	not_finite();
	gradients();
	factors();
	errors();
	elsewhere();
	return done();
}
