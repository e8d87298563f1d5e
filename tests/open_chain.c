// SPDX-License-Identifier: Apache-2.0
// Tests tridiagonal matrices with a complex diagonal: the diagonal of (H - z)^-1, its corner and
// log det, against dense elimination with pivots and scaled minors in long double, also on the
// real axis; zero pivots, closed forms, gradients against finite differences, the transmission of
// a chain between leads, refused arguments.
// With the argument "device" only the cases that run on the device of the environment.
#include "config.h"

#include "values.h"
#include "resolvent.h"
#include "yoke.h"

enum result { DIAGONAL, LEFT, CORNER, LOG_DET, RESULTS };
static const char *const result_name[] = { "diagonal", "left", "corner", "log det" };

// Rows of n sites, each with its z.
struct chain {
	int64_t rows, n;
	double *a, *a_im, *b, *c, *z; // a_im, b, c: or NULL
};

static double *numbers(int64_t n, double lo, double hi, int dtype)
{
	double *v = calloc((size_t)n + 1, sizeof *v);
	for (int64_t i = 0; i < n; i++)
		v[i] = round_real(dtype, (long double)rnd_real(lo, hi));
	return v;
}

static void chain_free(struct chain *h)
{
	free(h->a);
	free(h->a_im);
	free(h->b);
	free(h->c);
	free(h->z);
}

static yoke_tensor *tensor(int dtype, int rank, const int64_t *dims, const double *v)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	char *bytes = malloc((size_t)n * 8 + 1);
	for (int64_t i = 0; i < n; i++)
		store(dtype, (struct value){ v[i], 0 }, bytes + (size_t)i * yoke_dtype_size(dtype));
	yoke_tensor *t = yoke_from(dtype, rank, dims, bytes);
	free(bytes);
	return t;
}

static yoke_tensor *call(enum result what, yoke_tensor *const *x)
{
	switch (what) {
	case CORNER: return yoke_resolvent_corner(x[0], x[1], x[2], x[3], x[4]);
	case LOG_DET: return yoke_resolvent_log_det(x[0], x[1], x[2], x[3], x[4]);
	default: return yoke_resolvent_complex(x[0], x[1], x[2], x[3], x[4], what == LEFT);
	}
}

static void operands(const struct chain *h, int dtype, yoke_tensor **x)
{
	const int64_t all[2] = { h->rows, h->n }, bonds[2] = { h->rows, h->n ? h->n - 1 : 0 },
		      z[2] = { h->rows, 2 };
	x[0] = tensor(dtype, 2, all, h->a);
	x[1] = h->a_im ? tensor(dtype, 2, all, h->a_im) : YOKE_NONE;
	x[2] = h->b ? tensor(dtype, 2, bonds, h->b) : YOKE_NONE;
	x[3] = h->c ? tensor(dtype, 2, bonds, h->c) : YOKE_NONE;
	x[4] = tensor(dtype, 2, z, h->z);
}

static int64_t width(enum result what, int64_t n)
{
	return what <= LEFT ? n : 1;
}

// A result's pairs; NULL with the reason.
static double complex *values_of(yoke_tensor *t, int64_t n)
{
	double complex *to = calloc((size_t)n + 1, sizeof *to);
	char *bytes = malloc((size_t)n * 16 + 1);
	const int dtype = t ? yoke_dtype(t) : yoke_f64;
	const size_t size = yoke_dtype_size(dtype);
	memset(bytes, 0xff, (size_t)n * 16);
	if (!t || yoke_read(t, bytes, (size_t)n * 2 * size) < 0) {
		diag("%s", yoke_error());
		yoke_error_clear();
		free(to);
		to = NULL;
	}
	for (int64_t i = 0; i < n && to; i++)
		to[i] = CMPLX(load(dtype, bytes + (size_t)(2 * i) * size).r,
			      load(dtype, bytes + (size_t)(2 * i + 1) * size).r);
	free(bytes);
	return to;
}

// ---- references ----

// H - z of the first n sites of a row, as a dense matrix
static double complex *dense(const struct chain *h, int64_t row, int64_t n)
{
	double complex *m = calloc((size_t)(n * n), sizeof *m);
	const int64_t at = row * h->n, between = row * (h->n - 1);
	for (int64_t i = 0; i < n; i++) {
		m[i * n + i] = CMPLX(h->a[at + i] - h->z[2 * row],
				     (h->a_im ? h->a_im[at + i] : 0) - h->z[2 * row + 1]);
		if (i + 1 < n) {
			m[i * n + i + 1] = h->b ? h->b[between + i] : 1;
			m[(i + 1) * n + i] = h->c ? h->c[between + i] : 1;
		}
	}
	return m;
}

// Elimination with row pivots: returns the logarithm of det, and column `column` of the inverse.
static double complex eliminate(double complex *m, int64_t n, int64_t column, double complex *x)
{
	double complex log_det = 0;
	for (int64_t i = 0; i < n; i++)
		x[i] = i == column;
	for (int64_t i = 0; i < n; i++) {
		int64_t p = i;
		for (int64_t r = i; r < n; r++)
			p = cabs(m[r * n + i]) > cabs(m[p * n + i]) ? r : p;
		for (int64_t k = 0; k < n && p != i; k++) {
			const double complex t = m[i * n + k];
			m[i * n + k] = m[p * n + k];
			m[p * n + k] = t;
		}
		const double complex t = x[i];
		x[i] = x[p];
		x[p] = t;
		log_det +=
			CMPLX(log(cabs(m[i * n + i])), carg(p == i ? m[i * n + i] : -m[i * n + i]));
		for (int64_t r = i + 1; r < n; r++) {
			const double complex f = m[r * n + i] / m[i * n + i];
			for (int64_t k = i; k < n && f != 0; k++)
				m[r * n + k] -= f * m[i * n + k];
			x[r] -= f * x[i];
		}
	}
	for (int64_t i = n - 1; i >= 0; i--) {
		for (int64_t k = i + 1; k < n; k++)
			x[i] -= m[i * n + k] * x[k];
		x[i] /= m[i * n + i];
	}
	return log_det;
}

// All results of a row: [n] and [n], then one and one. The phase is known modulo 2 pi.
static void by_elimination(const struct chain *h, int64_t row, double complex *diagonal,
			   double complex *left, double complex *corner, double complex *log_det)
{
	double complex *x = calloc((size_t)h->n, sizeof *x), *m;
	for (int64_t i = 0; i < h->n; i++) {
		m = dense(h, row, h->n);
		const double complex d = eliminate(m, h->n, i, x);
		diagonal[i] = x[i];
		*corner = x[0]; // of the last column
		*log_det = CMPLX(creal(d), cimag(d) + 3.14159265358979323846 * (double)(h->n % 2));
		free(m);
		m = dense(h, row, i + 1);
		eliminate(m, i + 1, i, x);
		left[i] = x[i];
		free(m);
	}
	free(x);
}

// The same from leading and trailing minors, for long rows.
static void by_long_minors(const struct chain *h, int64_t row, double complex *diagonal,
			   double complex *left, double complex *corner, double complex *log_det)
{
	const int64_t n = h->n, at = row * n, between = row * (n - 1);
	struct scaled *theta = calloc((size_t)n + 2, sizeof *theta),
		      *phi = calloc((size_t)n + 2, sizeof *phi);
	struct scaled prod = scaled(1, 0);
	theta[0] = phi[n] = scaled(1, 0); // phi[i + 1] is phi_i
	for (int64_t k = 0; k < 2 * n; k++) {
		const int64_t i = k < n ? k : 2 * n - 1 - k;
		const long double complex alpha =
			CMPLXL((long double)h->a[at + i] - (long double)h->z[2 * row],
			       (long double)(h->a_im ? h->a_im[at + i] : 0) -
				       (long double)h->z[2 * row + 1]);
		const int64_t bond = k < n ? i - 1 : i;
		const double b = bond < 0 || bond > n - 2 ? 0 :
				 h->b                     ? h->b[between + bond] :
							    1,
			     c = h->c && b != 0 ? h->c[between + bond] : 1;
		if (k < n)
			theta[i + 1] =
				next_minor(alpha, theta[i], b * c, i ? theta[i - 1] : scaled(0, 0));
		else
			phi[i] = next_minor(alpha, phi[i + 1], b * c,
					    i < n - 1 ? phi[i + 2] : scaled(0, 0));
		if (k < n && i)
			prod = scaled(prod.v * -(long double)b, prod.e);
	}
	for (int64_t i = 0; i < n; i++) {
		left[i] = shifted(theta[i].v / theta[i + 1].v, theta[i].e - theta[i + 1].e);
		diagonal[i] = shifted(theta[i].v * phi[i + 1].v / theta[n].v,
				      theta[i].e + phi[i + 1].e - theta[n].e);
	}
	*corner = shifted(prod.v / theta[n].v, prod.e - theta[n].e);
	const long double complex det = n % 2 ? -theta[n].v : theta[n].v;
	*log_det = CMPLX(logl(cabsl(det)) + (long double)theta[n].e * logl(2), cargl(det));
	free(theta);
	free(phi);
}

// ---- values ----

// The error relative to the larger of 1 and the reference; phases modulo 2 pi.
static double off(enum result what, double complex got, double complex want, double scale)
{
	if (what == LOG_DET) {
		const double turn = remainder(cimag(got) - cimag(want), 6.283185307179586);
		return fmax(fabs(creal(got) - creal(want)) / fmax(1, fabs(creal(want))),
			    fabs(turn) / fmax(1, fabs(cimag(got))));
	}
	return cabs(got - want) / scale;
}

static bool matches(const struct chain *h, int dtype, bool by_minors_, double tolerance,
		    const char *text)
{
	const int64_t n = h->n;
	double complex *want[RESULTS], *got[RESULTS];
	yoke_scope *scope = yoke_scope_begin("values");
	yoke_tensor *x[5];
	bool good = true;
	operands(h, dtype, x);
	for (int what = 0; what < RESULTS; what++) {
		want[what] = calloc((size_t)n + 1, sizeof **want);
		got[what] = values_of(call(what, x), h->rows * width(what, n));
	}
	for (int64_t row = 0; row < h->rows; row++) {
		(by_minors_ ? by_long_minors : by_elimination)(h, row, want[0], want[1], want[2],
							       want[3]);
		for (int what = 0; what < RESULTS; what++) {
			double worst = 0,
			       size = dtype == yoke_f64 ? 1e-290 : 1e-30; // less underflows
			const int64_t w = width(what, n);
			for (int64_t i = 0; i < w; i++)
				size = fmax(size, cabs(want[what][i]));
			for (int64_t i = 0; i < w; i++) {
				const double e = got[what] ? off(what, got[what][row * w + i],
								 want[what][i], size) :
							     INFINITY;
				worst = isnan(e) ? INFINITY : fmax(worst, e);
			}
			// a pole near z amplifies roundings of H by as much
			const double grown =
				fmax(1, what == LEFT ? size * size : cabs(want[0][0])) *
				fmax(1, size);
			if (worst > tolerance * (what == LEFT ? grown : 1)) {
				diag("%s, %s of %lld sites, z %g%+gi: off by %.3g of %.3g", text,
				     result_name[what], (long long)n, h->z[2 * row],
				     h->z[2 * row + 1], worst, size);
				good = false;
			}
		}
	}
	for (int what = 0; what < RESULTS; what++) {
		free(want[what]);
		free(got[what]);
	}
	yoke_scope_end(scope);
	return good;
}

enum axis { OFF, BESIDE, ABOVE, BELOW, AXES }; // where z is
static const char *const axis_name[] = { "z beyond the spectrum", "real z", "Im z > 0",
					 "Im z < 0" };

static struct chain random_chain(int64_t rows, int64_t n, enum axis where, int how, int dtype)
{
	struct chain h = { .rows = rows,
			   .n = n,
			   .a = numbers(rows * n, -2, 2, dtype),
			   .z = numbers(rows * 2, -1, 1, dtype) };
	const int64_t bonds = rows * (n ? n - 1 : 0);
	if (how & 1)
		h.b = numbers(bonds, 0.3, 1.5, dtype);
	if (how & 2)
		h.c = numbers(bonds, how & 4 ? -1.5 : 0.3, 1.5, dtype);
	if (how & 8)
		h.a_im = numbers(rows * n, -1, how & 4 ? 1 : 0, dtype);
	for (int64_t r = 0; r < rows; r++) {
		const double beyond = r % 2 ? 7 : -7;
		h.z[2 * r] =
			round_real(dtype, (long double)h.z[2 * r] + (where == OFF ? beyond : 0));
		h.z[2 * r + 1] = where == ABOVE ? 0.25 : where == BELOW ? -0.5 : 0;
	}
	return h;
}

static void values(void)
{
	static const int64_t sizes[] = { 1, 2, 3, 4, 7, 16, 31, 64, 65, 67 };
	for (int where = 0; where < AXES; where++) {
		bool good = true;
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
			for (int how = 0; how < 16; how += 1 + (sizes[k] > 31) * 4) {
				const int dtype = rnd_int(0, 3) ? yoke_f64 : yoke_f32;
				struct chain h = random_chain(sizes[k] > 31 ? 1 : 3, sizes[k],
							      where, how, dtype);
				good &= matches(&h, dtype, false, dtype == yoke_f64 ? 1e-9 : 1e-6,
						axis_name[where]);
				chain_free(&h);
			}
		ok(good, "%s: equals elimination with pivots", axis_name[where]);
	}
}

static void long_rows(void)
{
	static const int64_t sizes[] = { 509, 1021, 4099 };
	for (int where = 0; where < AXES; where++) {
		bool good = true;
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			struct chain h =
				random_chain(2, sizes[k], where, k == 1 ? 11 : 8, yoke_f64);
			good &= matches(&h, yoke_f64, true, 1e-8, axis_name[where]);
			chain_free(&h);
		}
		ok(good, "%s: long rows equal minors in long double", axis_name[where]);
	}
}

// Numbers of large or small magnitude in each row: results scale with it, and log det moves by its
// logarithm.
static void scales(void)
{
	static const double scale[] = { 1e-150, 1e-60, 1e-30, 1e30, 1e60, 1e140 };
	enum { N = 41 };
	for (size_t k = 0; k < sizeof scale / sizeof *scale; k++) {
		double worst = 0;
		struct chain h = random_chain(1, N, BESIDE, 11, yoke_f64);
		double complex *got[2][RESULTS];
		yoke_scope *scope = yoke_scope_begin("scales");
		h.a[0] = h.z[0]; // a first pivot of 0
		for (int time = 0; time < 2; time++) {
			yoke_tensor *x[5];
			memset(h.a_im, 0, N * sizeof *h.a_im);
			for (int i = 0; i < N && time; i++) {
				h.a[i] *= scale[k];
				h.b[i] *= scale[k]; // one element more than there is
				h.c[i] *= scale[k];
			}
			h.z[0] *= time ? scale[k] : 1;
			operands(&h, yoke_f64, x);
			for (int what = 0; what < RESULTS; what++)
				got[time][what] = what == LEFT ?
							  NULL :
							  values_of(call(what, x), width(what, N));
		}
		for (int what = 0; what < RESULTS; what++)
			for (int64_t i = 0; i < width(what, N) && what != LEFT; i++) {
				double complex one = got[0][what] ? got[0][what][i] : NAN,
					       two = got[1][what] ? got[1][what][i] : NAN;
				two = what == LOG_DET ? two - N * log(scale[k]) : two * scale[k];
				const double e = cabs(one - two) /
						 fmax(what == LOG_DET ? fabs(N * log(scale[k])) : 0,
						      cabs(one) + 1);
				worst = isnan(e) ? INFINITY : fmax(worst, e);
			}
		ok(worst < 1e-11, "all numbers scaled by %g: %.2g", scale[k], worst);
		for (int what = 0; what < RESULTS; what++) {
			free(got[0][what]);
			free(got[1][what]);
		}
		yoke_scope_end(scope);
		chain_free(&h);
	}
}

// A chain of n equal sites at its middle, z = a: every second pivot is 0. For even n, G is 0 on the
// diagonal, and the corner and det are +-1; for odd n, z is an eigenvalue.
static void zero_pivots(void)
{
	for (int64_t n = 2; n <= 1000; n = n * 5 / 2 / 2 * 2) {
		struct chain h = { .rows = 1,
				   .n = n,
				   .a = calloc((size_t)n, sizeof(double)),
				   .z = calloc(2, sizeof(double)) };
		yoke_scope *scope = yoke_scope_begin("zero pivots");
		yoke_tensor *x[5];
		double worst = 0;
		operands(&h, yoke_f64, x);
		double complex *g = values_of(call(DIAGONAL, x), n),
			       *corner = values_of(call(CORNER, x), 1),
			       *det = values_of(call(LOG_DET, x), 1);
		for (int64_t i = 0; i < n; i++)
			worst = fmax(worst, g ? cabs(g[i]) : INFINITY);
		// det(-H) = (-1)^(n / 2), and half of the eigenvalues are above 0
		const double sign = n / 2 % 2 ? -1 : 1;
		ok(g && corner && det && worst < 1e-12 && cabs(*corner + sign) < 1e-11 &&
			   fabs(creal(*det)) < 1e-11 &&
			   fabs(cimag(*det) - 3.14159265358979 * (double)(n / 2)) < 1e-9,
		   "%lld equal sites at their middle: diagonal %.2g, corner %.15g, log det %.2g, "
		   "phase / pi %.15g",
		   (long long)n, worst, corner ? creal(*corner) : NAN, det ? creal(*det) : NAN,
		   det ? cimag(*det) / 3.14159265358979 : NAN);
		free(g);
		free(corner);
		free(det);
		yoke_scope_end(scope);
		chain_free(&h);
	}
}

// The phase counts eigenvalues above z, and is continuous in the upper half-plane.
static void phases(void)
{
	enum { N = 60, M = 400 };
	double a[N] = { 0 }, z[M][2];
	bool counts = true, continuous = true;
	yoke_scope *scope = yoke_scope_begin("phases");
	const int64_t dims[2] = { M, 2 }, n = N;
	for (int above = 0; above < 2; above++) {
		for (int i = 0; i < M; i++) {
			z[i][0] = -2.5 + 5.0 * i / (M - 1);
			z[i][1] = above ? 0.05 : 0;
		}
		double complex *got = values_of(
			yoke_resolvent_log_det(tensor(yoke_f64, 1, &n, a), YOKE_NONE, YOKE_NONE,
					       YOKE_NONE, tensor(yoke_f64, 2, dims, &z[0][0])),
			M);
		for (int i = 0; i < M; i++) {
			int higher = 0;
			for (int k = 1; k <= N; k++)
				higher += 2 * cos(3.14159265358979323846 * k / (N + 1)) > z[i][0];
			if (!above)
				counts &= got && fabs(cimag(got[i]) / 3.14159265358979323846 -
						      higher) < 1e-9;
			else if (i)
				continuous &= got && cimag(got[i]) < cimag(got[i - 1]) &&
					      cimag(got[i - 1]) - cimag(got[i]) < 2;
		}
		free(got);
	}
	ok(counts, "on the real axis the phase is pi times the eigenvalues above z");
	ok(continuous, "above the axis the phase decreases continuously");
	yoke_scope_end(scope);
}

// With negative b c, the phase is an argument of det modulo 2 pi: exp(i phase) |det| is det of the
// dense matrix, for real and complex z.
static void negative_products(void)
{
	double worst = 0;
	int negative = 0;
	for (int64_t n = 2; n <= 9; n++)
		for (int above = 0; above < 2; above++) {
			struct chain h = random_chain(8, n, above ? ABOVE : BESIDE, 3, yoke_f64);
			yoke_scope *scope = yoke_scope_begin("negative products");
			yoke_tensor *x[5];
			for (int64_t i = 0; i < h.rows * (n - 1); i += 1 + i % 2)
				h.c[i] = -h.c[i];
			operands(&h, yoke_f64, x);
			double complex *got = values_of(call(LOG_DET, x), h.rows),
				       *column = calloc((size_t)n, sizeof *column);
			for (int64_t row = 0; row < h.rows; row++) {
				double complex *m = dense(&h, row, n);
				const double complex opposite = cexp(eliminate(m, n, 0, column)),
						     det = n % 2 ? -opposite : opposite;
				const double e =
					got ? cabs(cexp(got[row]) - det) / fmax(1, cabs(det)) :
					      INFINITY;
				worst = isnan(e) ? INFINITY : fmax(worst, e);
				negative += creal(det) < 0;
				free(m);
			}
			free(column);
			free(got);
			yoke_scope_end(scope);
			chain_free(&h);
		}
	ok(worst < 1e-10 && negative > 16,
	   "negative b c: exp(i phase) |det| is the dense determinant: %.2g", worst);
}

// ---- transmission ----

// A chain of hoppings 1 between leads of hoppings 1: S = (E - i sqrt(4 - E^2)) / 2 at both ends, G
// = sqrt(4 - E^2). T = 1 at all energies, and with one site higher by u in it 1 / (1 + u^2 / (4 -
// E^2)).
static void transmission(void)
{
	enum { N = 1001, M = 39 };
	static double a[M][N], a_im[M][N], z[M][2];
	for (int barrier = 0; barrier < 2; barrier++) {
		const double u = barrier ? 0.8 : 0;
		double worst = 0;
		yoke_scope *scope = yoke_scope_begin("transmission");
		memset(a, 0, sizeof a);
		for (int i = 0; i < M; i++) {
			const double e = -1.9 + 0.1 * i;
			z[i][0] = e;
			a[i][0] = a[i][N - 1] = e / 2;
			a_im[i][0] = a_im[i][N - 1] = -sqrt(4 - e * e) / 2;
			a[i][N / 3] = u;
		}
		const int64_t sites[2] = { M, N }, points[2] = { M, 2 };
		double complex *g = values_of(
			yoke_resolvent_corner(tensor(yoke_f64, 2, sites, &a[0][0]),
					      tensor(yoke_f64, 2, sites, &a_im[0][0]), YOKE_NONE,
					      YOKE_NONE, tensor(yoke_f64, 2, points, &z[0][0])),
			M);
		for (int i = 0; i < M; i++) {
			const double e = z[i][0], gamma = sqrt(4 - e * e),
				     want = 1 / (1 + u * u / (4 - e * e));
			const double t = g ? gamma * gamma *
							 (creal(g[i]) * creal(g[i]) +
							  cimag(g[i]) * cimag(g[i])) :
					     NAN;
			worst = fabs(t - want) <= worst ? worst :
				isnan(t)                ? INFINITY :
							  fabs(t - want);
		}
		ok(worst < 1e-10, "transmission of %d sites, %s: %.2g off", N,
		   barrier ? "one of them higher" : "all equal", worst);
		free(g);
		yoke_scope_end(scope);
	}
}

// ---- gradients ----

enum { GN = 13, GROWS = 2, GIN = 5 };
static const int64_t grad_dims[GIN][2] = {
	{ GROWS, GN }, { 1, GN }, { GROWS, GN - 1 }, { 1, GN - 1 }, { GROWS, 2 }
};

static yoke_tensor *loss_of(enum result what, yoke_tensor *const *x, const double *w)
{
	const bool rows = what > LEFT;
	yoke_tensor *weight =
		tensor(yoke_f64, rows ? 2 : 3,
		       rows ? (int64_t[]){ GROWS, 2 } : (int64_t[]){ GROWS, GN, 2 }, w);
	return yoke_sum(yoke_mul(call(what, x), weight), YOKE_ALL);
}

static void at(double *const *v, yoke_tensor **x)
{
	for (int k = 0; k < GIN; k++)
		x[k] = tensor(yoke_f64, 2, grad_dims[k], v[k]);
}

static double loss_at(enum result what, double *const *v, const double *w)
{
	yoke_scope *scope = yoke_scope_begin("loss");
	yoke_tensor *x[GIN];
	double y = NAN;
	at(v, x);
	yoke_read(loss_of(what, x, w), &y, sizeof y);
	yoke_scope_end(scope);
	return y;
}

// The sum of squares of all gradients.
static yoke_tensor *squares(yoke_tensor *const *g)
{
	yoke_tensor *s = NULL;
	for (int k = 0; k < GIN; k++) {
		yoke_tensor *t = yoke_sum(yoke_square(g[k]), YOKE_ALL);
		s = s ? yoke_add(s, t) : t;
	}
	return s;
}

static double squares_at(enum result what, double *const *v, const double *w)
{
	yoke_scope *scope = yoke_scope_begin("squares");
	yoke_tensor *x[GIN], *g[GIN];
	double y = NAN;
	at(v, x);
	yoke_grad(loss_of(what, x, w), GIN, x, g);
	yoke_read(squares(g), &y, sizeof y);
	yoke_scope_end(scope);
	return y;
}

// special: 1 a b and another row's c are 0; 2 the first pivots are 0, on the real axis
static void gradients(enum result what, int special)
{
	double *v[GIN], *got[GIN], *second[GIN], w[GROWS * GN * 2], worst = 0, twice = 0;
	yoke_scope *scope = yoke_scope_begin("gradients");
	yoke_tensor *x[GIN], *g[GIN], *gg[GIN];
	for (int i = 0; i < GROWS * GN * 2; i++)
		w[i] = rnd_real(-1, 1);
	for (int k = 0; k < GIN; k++) {
		v[k] = numbers(grad_dims[k][0] * grad_dims[k][1],
			       k == 1           ? -0.8 :
			       k == 2 || k == 3 ? 0.5 :
						  -1,
			       k == 1 ? 0.2 : 1, yoke_f64);
		got[k] = calloc((size_t)(GROWS * GN), sizeof **got);
		second[k] = calloc((size_t)(GROWS * GN), sizeof **second);
	}
	if (what == LOG_DET &&
	    special == 2) // a phase jumps from one side of the real axis to the other
		w[1] = w[3] = 0;
	// second gradients by the diagonal lose their digits there
	const bool second_too = what > LEFT || special < 2;
	v[3][3] = -0.7;
	v[4][1] = special == 2 ? 0 : 0.4;
	v[4][3] = special == 2 ? 0 : -0.6;
	if (special == 1)
		v[2][4] = v[3][9] = 0;
	if (special == 2) { // alpha_0 = 0, and a block of pivots with it
		memset(v[1], 0, GN * sizeof *v[1]);
		v[0][0] = v[4][0];
		v[0][GN] = v[4][2];
		v[0][2 * GN - 1] = v[4][2];
		v[1][GN - 1] = -0.5;
	}
	at(v, x);
	int err = yoke_grad(loss_of(what, x, w), GIN, x, g);
	if (!err && second_too)
		err = yoke_grad(squares(g), GIN, x, gg);
	for (int k = 0; k < GIN && !err; k++) {
		err = yoke_read(g[k], got[k], yoke_bytes(g[k]));
		err = err || !second_too ? err : yoke_read(gg[k], second[k], yoke_bytes(gg[k]));
	}
	for (int k = 0; k < GIN && !err; k++)
		for (int64_t i = 0; i < grad_dims[k][0] * grad_dims[k][1]; i++) {
			const double value = v[k][i], h = 3e-6;
			v[k][i] = value + h;
			double d = loss_at(what, v, w),
			       dd = i % 4 || !second_too ? 0 : squares_at(what, v, w);
			v[k][i] = value - h;
			d = (d - loss_at(what, v, w)) / (2 * h);
			dd = i % 4 || !second_too ? second[k][i] :
						    (dd - squares_at(what, v, w)) / (2 * h);
			v[k][i] = value;
			const double e = fabs(d - got[k][i]) / fmax(1, fabs(d)),
				     ee = fabs(dd - second[k][i]) / fmax(1, fabs(dd));
			if (!(e < 1e-6))
				diag("operand %d [%lld]: %.9g, differences %.9g", k, (long long)i,
				     got[k][i], d);
			if (!(ee < 1e-4))
				diag("operand %d [%lld]: second %.9g, differences %.9g", k,
				     (long long)i, second[k][i], dd);
			worst = isnan(e) ? INFINITY : fmax(worst, e);
			twice = isnan(ee) ? INFINITY : fmax(twice, ee);
		}
	ok(!err && worst < 1e-6 && twice < 1e-4,
	   "%s%s: gradients by a, a_im, b, c, z equal differences: %.2g, second %.2g %s",
	   result_name[what],
	   special == 1 ? ", bonds of 0" :
	   special == 2 ? ", pivots of 0" :
			  "",
	   worst, twice, yoke_error());
	yoke_error_clear();
	for (int k = 0; k < GIN; k++) {
		free(v[k]);
		free(got[k]);
		free(second[k]);
	}
	yoke_scope_end(scope);
}

// The derivative of log det by z is the trace of (z - H)^-1, of long rows too.
static void trace(void)
{
	enum { N = 2003 };
	struct chain h = random_chain(1, N, ABOVE, 11, yoke_f64);
	yoke_scope *scope = yoke_scope_begin("trace");
	yoke_tensor *x[5], *g = NULL;
	double got[2] = { NAN, NAN };
	operands(&h, yoke_f64, x);
	double complex sum = 0, *diagonal = values_of(call(DIAGONAL, x), N);
	yoke_grad(yoke_sum(yoke_slice(call(LOG_DET, x), 1, 0, 1, 1), YOKE_ALL), 1, &x[4], &g);
	yoke_read(g, got, sizeof got);
	for (int i = 0; i < N && diagonal; i++)
		sum -= diagonal[i];
	// of log |det|: by x Re tr, by y -Im tr
	ok(fabs(got[0] - creal(sum)) < 1e-9 * cabs(sum) &&
		   fabs(got[1] + cimag(sum)) < 1e-9 * cabs(sum),
	   "d log det / dz is the trace: %.12g%+.12gi, want %.12g%+.12gi", got[0], -got[1],
	   creal(sum), cimag(sum));
	free(diagonal);
	yoke_scope_end(scope);
	chain_free(&h);
}

// ---- shapes, and what is refused ----

static void shapes(void)
{
	const int64_t three = 3, two = 2, zero = 0;
	const double v[16] = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8 };
	yoke_scope *scope = yoke_scope_begin("shapes");
	yoke_tensor *a = tensor(yoke_f32, 1, &three, v),
		    *z = tensor(yoke_f32, 3, (int64_t[]){ 4, 1, 2 }, v);
	yoke_tensor *b = tensor(yoke_f32, 2, (int64_t[]){ 2, 2 }, v),
		    *none = tensor(yoke_f64, 1, &zero, v);
	yoke_tensor *g = yoke_resolvent_complex(a, a, b, YOKE_NONE, z, 0),
		    *det = yoke_resolvent_log_det(a, YOKE_NONE, YOKE_NONE, b, z);
	ok(g && yoke_rank(g) == 4 && yoke_dim(g, 0) == 4 && yoke_dim(g, 1) == 2 &&
		   yoke_dim(g, 2) == 3 && yoke_dim(g, 3) == 2 && yoke_dtype(g) == yoke_f32,
	   "leading axes broadcast");
	ok(det && yoke_rank(det) == 3 && yoke_dim(det, 0) == 4 && yoke_dim(det, 1) == 2 &&
		   yoke_dim(det, 2) == 2,
	   "rows of log det");
	double pair[2] = { NAN, NAN };
	det = yoke_resolvent_log_det(none, YOKE_NONE, YOKE_NONE, YOKE_NONE,
				     tensor(yoke_f64, 1, &two, v));
	ok(!yoke_read(det, pair, sizeof pair) && pair[0] == 0 && pair[1] == 0,
	   "log det of no elements: %g %g", pair[0], pair[1]);
	g = yoke_resolvent_complex(none, YOKE_NONE, YOKE_NONE, YOKE_NONE,
				   tensor(yoke_f64, 1, &two, v), 0);
	ok(g && yoke_count(g) == 0 && !yoke_read(g, NULL, 0), "a diagonal of no elements");
	yoke_scope_end(scope);
}

static void refused(yoke_tensor *y, int code, const char *what)
{
	double to[64];
	const int err = y ? yoke_read(y, to, yoke_bytes(y)) : yoke_error_code();
	const bool good =
		err == code || (err == YOKE_EFAILED && strstr(yoke_error(), yoke_error_name(code)));
	ok(good && !strchr(yoke_error(), '\n'), "%s: %s", what, yoke_error());
	if (!good)
		diag("%s, want %s", yoke_error_name(err), yoke_error_name(code));
	yoke_error_clear();
}

static void refusals(void)
{
	const double nine[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, nan_[] = { 1, NAN, 3 },
		     inf[] = { 0.5, INFINITY, 1 }, zero[9] = { 0 };
	const int64_t one = 1, two = 2, three = 3;
	yoke_scope *scope = yoke_scope_begin("refused");
	yoke_tensor *a = tensor(yoke_f64, 1, &three, nine), *z = tensor(yoke_f64, 1, &two, nine),
		    *b = tensor(yoke_f64, 1, &two, nine);
	yoke_tensor *narrow = tensor(yoke_f32, 1, &three, nine),
		    *on_axis = tensor(yoke_f64, 1, &two, zero);
	yoke_tensor *at_site = tensor(yoke_f64, 1, &two, (double[]){ 2, 0 });
	for (int what = 0; what < RESULTS; what++) {
		const struct {
			yoke_tensor *x[5];
			int code;
			const char *text;
		} bad[] = {
			{ { a, YOKE_NONE, YOKE_NONE, a, z }, YOKE_ESHAPE, "c too long" },
			{ { a, b, YOKE_NONE, YOKE_NONE, z }, YOKE_ESHAPE, "a_im too short" },
			{ { a, YOKE_NONE, YOKE_NONE, YOKE_NONE, a },
			  YOKE_ESHAPE,
			  "z of three numbers" },
			{ { a, narrow, YOKE_NONE, YOKE_NONE, z }, YOKE_EDTYPE, "dtypes" },
			{ { a, tensor(yoke_f64, 1, &three, nan_), b, YOKE_NONE, z },
			  YOKE_ERANGE,
			  "NaN in a_im" },
			{ { a, YOKE_NONE, tensor(yoke_f64, 1, &two, inf), YOKE_NONE, z },
			  YOKE_ERANGE,
			  "infinite b" },
			{ { a, YOKE_NONE, b, b, tensor(yoke_f64, 1, &two, inf) },
			  YOKE_ERANGE,
			  "infinite z" },
			{ { tensor(yoke_f64, 1, &one, zero), YOKE_NONE, YOKE_NONE, YOKE_NONE,
			    on_axis },
			  YOKE_ERANGE,
			  "z is the one site" },
			{ { tensor(yoke_f64, 1, &three, zero), YOKE_NONE, YOKE_NONE, YOKE_NONE,
			    on_axis },
			  YOKE_ERANGE,
			  "z is an eigenvalue" },
			{ { a, YOKE_NONE, tensor(yoke_f64, 1, &two, zero), b, at_site },
			  YOKE_ERANGE,
			  "z is a site's, which has no bonds" },
		};
		for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
			char text[100];
			snprintf(text, sizeof text, "%s, %s", result_name[what], bad[k].text);
			refused(call(what, bad[k].x), bad[k].code, text);
		}
	}
	refused(yoke_resolvent_complex(a, YOKE_NONE, YOKE_NONE, YOKE_NONE, z, 2), YOKE_EINVAL,
		"side 2");
	refused(yoke_resolvent_corner(tensor(yoke_f64, 1, (int64_t[]){ 0 }, nine), YOKE_NONE,
				      YOKE_NONE, YOKE_NONE, z),
		YOKE_ESHAPE, "a corner of no elements");
	// eigenvalues to rounding: of a chain of equal sites 2 cos(pi k / (n + 1))
	for (int64_t n = 5; n < 900; n = n * 5 + 1) {
		double *all = calloc((size_t)n, sizeof *all),
		       at_one[2] = { 2 * cos(3.14159265358979323846 * 2 / (double)(n + 1)), 0 };
		refused(yoke_resolvent_log_det(tensor(yoke_f64, 1, &n, all), YOKE_NONE, YOKE_NONE,
					       YOKE_NONE, tensor(yoke_f64, 1, &two, at_one)),
			YOKE_ERANGE, "z is an eigenvalue to rounding");
		free(all);
	}
	yoke_scope_end(scope);
}

int main(int argc, char **argv)
{
	(void)argv;
	tap_seed();
	values();
	zero_pivots();
	transmission();
	trace();
	refusals();
	if (argc > 1)
		return done();
	long_rows();
	scales();
	phases();
	negative_products();
	shapes();
	for (int what = 0; what < RESULTS; what++)
		for (int special = 0; special < 3; special++)
			if (special < 2 ||
			    what != LEFT) // where 1 over a first pivot of 0 is refused
				gradients(what, special);
	return done();
}
