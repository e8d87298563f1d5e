// SPDX-License-Identifier: Apache-2.0
// Tests the resolvent of tridiagonal matrices: values of both triangles against a dense inverse
// and float64 minors, the closed form of a constant chain, every way of splitting rows, broadcast
// or strided operands, dtypes, precision tiers with their bounds, gradients against finite
// differences and against those of the decomposition, refused arguments.
// With the argument "values" only the cases that depend on splitting: the test runs itself so
// under each setting. With "bits" it prints a hash of results and gradients, which must not
// depend on the number of threads.
#include "config.h"

#include <dlfcn.h>
#include <inttypes.h>

#include "../backends/cpu/host/frame.h"
#include "base/hash.h"
#include "values.h"
#include "resolvent.h"
#include "yoke.h"

enum kind { RANDOM, CONSTANT, FLAT, DEEP, NARROW, FEW, KINDS };
static const char *const kind_name[] = {
	"random", "constant", "0", "-2 +- 3", "narrow", "N(0, 4)"
};

struct chain {
	int64_t rows, n;
	double *a, *b, *c; // b, c: NULL, ones
	double x, y;
	bool left;
	double complex *want;
};

static double normal(void)
{
	return sqrt(-2 * log(1 - rnd_real(0, 1))) * cos(6.283185307179586 * rnd_real(0, 1));
}

// Numbers that f32 represents exactly; signs: products b c of both signs
static struct chain chain_new(int64_t rows, int64_t n, enum kind kind, bool bonds, bool signs,
			      double x, double y, bool left)
{
	struct chain h = { .rows = rows, .n = n, .x = (float)x, .y = (float)y, .left = left };
	const size_t all = (size_t)(rows * n), between = (size_t)(rows * (n ? n - 1 : 0));
	h.a = calloc(all + 1, sizeof *h.a);
	h.want = calloc(all + 1, sizeof *h.want);
	for (size_t i = 0; i < all; i++)
		h.a[i] = (float)(kind == RANDOM	  ? rnd_real(-4, 4) :
				 kind == CONSTANT ? 0.7 :
				 kind == FLAT	  ? 0 :
				 kind == DEEP	  ? -2 + rnd_real(-3, 3) :
				 kind == NARROW	  ? 0.1 * normal() :
						    2 * normal());
	if (bonds) {
		h.b = calloc(between + 1, sizeof *h.b);
		h.c = calloc(between + 1, sizeof *h.c);
		for (size_t i = 0; i < between; i++) {
			h.b[i] = (float)(rnd_real(0.3, 1.7) * (signs && rnd_int(0, 1) ? -1 : 1));
			h.c[i] = (float)rnd_real(0.3, 1.7);
		}
	}
	return h;
}

static void chain_free(struct chain *h)
{
	free(h->a);
	free(h->b);
	free(h->c);
	free(h->want);
}

static void reference(const struct chain *h)
{
	for (int64_t r = 0; r < h->rows; r++) {
		const double *b = h->b ? h->b + r * (h->n - 1) : NULL,
			     *c = h->c ? h->c + r * (h->n - 1) : NULL;
		by_minors(h->n, h->a + r * h->n, b, c, CMPLX(h->x, h->y), h->left,
			  h->want + r * h->n);
	}
}

static yoke_tensor *tensor(int dtype, int rank, const int64_t *dims, const double *v)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	void *bytes = malloc((size_t)n * 8 + 1);
	for (int64_t i = 0; i < n; i++)
		store(dtype, (struct value){ v[i], 0 },
		      (char *)bytes + (size_t)i * yoke_dtype_size(dtype));
	yoke_tensor *t = yoke_from(dtype, rank, dims, bytes);
	free(bytes);
	return t;
}

static yoke_tensor *chain_of(const struct chain *h, int dtype, struct yoke_resolvent *how)
{
	const int64_t all[2] = { h->rows, h->n }, between[2] = { h->rows, h->n ? h->n - 1 : 0 };
	how->side = h->left ? YOKE_SIDE_LEFT : YOKE_SIDE_BOTH;
	return yoke_resolvent(tensor(dtype, 2, all, h->a),
			      h->b ? tensor(dtype, 2, between, h->b) : YOKE_NONE,
			      h->c ? tensor(dtype, 2, between, h->c) : YOKE_NONE,
			      tensor(dtype, 1, (int64_t[]){ 2 }, (double[]){ h->x, h->y }), how);
}

// Elements of a result as complex numbers; NULL with the reason.
static double complex *values_of(yoke_tensor *t, int64_t n)
{
	double complex *to = calloc((size_t)n + 1, sizeof *to);
	const int dtype = t ? yoke_dtype(t) : 0;
	const size_t size = dtype ? yoke_dtype_size(dtype) : 0;
	char *bytes = malloc((size_t)n * 16 + 1);
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

// Largest |difference|; *most: the largest reference value.
static double difference(const double complex *got, const double complex *want, int64_t n,
			 double *max)
{
	double worst = 0;
	*max = 0;
	for (int64_t i = 0; i < n; i++) {
		const double e = cabs(got[i] - want[i]);
		*max = fmax(*max, cabs(want[i]));
		worst = isfinite(e) ? fmax(worst, e) : INFINITY;
	}
	return worst;
}

// First-order rounding of the recursions: for each element j the sum over all i of |dG_j / d
// alpha_i|, which is |G_j|^2 times |k / L^2| of those between them, times the rounded terms of L_i
// and R_i; returns the largest.
// |G_j|^2 times |k / L^2| of those between them, times the terms of L_i and R_i that are rounded;
// the largest.
static double rounded(const struct chain *h, double unit)
{
	double complex *l = calloc((size_t)h->n + 1, sizeof *l),
		       *r = calloc((size_t)h->n + 1, sizeof *r);
	double *k = calloc((size_t)h->n + 1, sizeof *k),
	       *own = calloc((size_t)h->n + 1, sizeof *own),
	       *behind = calloc((size_t)h->n + 1, sizeof *behind), max = 0;
	for (int64_t row = 0; row < h->rows; row++) {
		const double *a = h->a + row * h->n;
		const double complex z = CMPLX(h->x, h->y), *g = h->want + row * h->n;
		for (int64_t i = 1; i < h->n; i++) // before i
			k[i] = h->b ? h->b[row * (h->n - 1) + i - 1] *
					       h->c[row * (h->n - 1) + i - 1] :
				      1;
		for (int64_t i = 0; i < h->n; i++)
			l[i] = a[i] - z - (i ? k[i] / l[i - 1] : 0);
		// a reciprocal and its product are five roundings
		for (int64_t i = h->n - 1; i >= 0 && !h->left; i--) {
			const double term = i < h->n - 1 ? cabs(k[i + 1] / r[i + 1]) : 0;
			behind[i] = i < h->n - 1 ?
					    term / cabs(r[i + 1]) * (own[i + 1] + behind[i + 1]) :
					    0;
			r[i] = a[i] - z - (i < h->n - 1 ? k[i + 1] / r[i + 1] : 0);
			own[i] = cabs(a[i] - z) + cabs(r[i]) + 5 * term;
		}
		double front = 0, before = 0;
		for (int64_t i = 0; i < h->n; i++) {
			const double term = i ? cabs(k[i] / l[i - 1]) : 0;
			front = i ? term / cabs(l[i - 1]) * (before + front) : 0;
			before = cabs(a[i] - z) + cabs(l[i]) + 5 * term;
			max = fmax(max, pow(cabs(g[i]), 2) * (front + before +
							      (h->left ? 0 : behind[i] + own[i])) +
						3 * cabs(g[i]));
		}
	}
	free(l);
	free(r);
	free(k);
	free(own);
	free(behind);
	return unit * max;
}

// Where all b c are above 0, |F| is at least |eta|: three roundings of |a| + |b c / L| + |b c / R|,
// about 11, times 1 / eta^2. Where some are below, only the matrix's own condition bounds the
// rounding: a recursion stays within it, products of chunks, and the decomposition's products of
// prefixes, within a small multiple (at most 4.5 in 9,000 cases).
static double tolerance(int dtype, const struct chain *h, bool signs)
{
	const double eta = fmin(fabs(h->y), 1), unit = dtype == yoke_f64 ? 0x1p-53 : 0x1p-24;
	return signs ? 64 * rounded(h, unit) : 33 * unit / (eta * eta);
}

// ---- values ----

static bool value_case(int dtype, int64_t rows, int64_t n, enum kind kind, bool bonds, bool signs,
		       double x, double y, bool left, struct yoke_resolvent *how)
{
	struct chain h = chain_new(rows, n, kind, bonds, signs, x, y, left);
	yoke_scope *scope = yoke_scope_begin("case");
	reference(&h);
	double complex *got = values_of(chain_of(&h, dtype, how), rows * n);
	double max = 0, worst = got ? difference(got, h.want, rows * n, &max) : INFINITY;
	const double tol = tolerance(dtype, &h, signs);
	bool good = worst <= tol && (max > 1e-3 || rows == 0 || n == 0);
	if (!good)
		diag("%s [%lld,%lld] %s%s%s z %g%+gi %s: error %.3g of %.3g, largest %.3g",
		     yoke_dtype_name(dtype), (long long)rows, (long long)n, kind_name[kind],
		     bonds ? " b c" : "", signs ? " of both signs" : "", x, y,
		     left ? "left" : "both", worst, tol, max);
	free(got);
	yoke_scope_end(scope);
	chain_free(&h);
	return good;
}

static void values(int some, int all)
{
	static const int64_t sizes[] = { 1, 2, 3, 16, 127, 128, 129, 257, 1000, 4096 },
			     batches[] = { 1, 8, 16, 17 };
	static const double etas[] = { 1, 0.1, 0.01 };
	static const int dtypes[] = { yoke_f32, yoke_f64 };
	const int cases = tap_cases(some, all);
	bool good = true;
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	for (int i = 0; i < cases; i++) {
		const bool signs = rnd_int(0, 5) == 0, bonds = signs || rnd_int(0, 1);
		good &= value_case(dtypes[rnd_int(0, 1)], batches[rnd_int(0, 3)],
				   sizes[rnd_int(0, 9)], (enum kind)rnd_int(0, KINDS - 1), bonds,
				   signs, rnd_int(0, 1) ? 0 : rnd_real(-1, 1),
				   etas[rnd_int(0, 2)] * (rnd_int(0, 1) ? 1 : -1), rnd_int(0, 1),
				   &how);
	}
	ok(good, "%d random chains equal minors in float64", cases);
}

// Chunks must start correctly where nothing is damped.
static void long_rows(void)
{
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	bool good = true;
	for (int left = 0; left < 2; left++) {
		good &= value_case(yoke_f32, 1, 20000, FLAT, false, false, 0, 0.01, left, &how);
		good &= value_case(yoke_f32, 2, 9000, RANDOM, true, false, 0.3, -1, left, &how);
		good &= value_case(yoke_f32, 1, 5000, CONSTANT, false, false, 0, 0.1, left, &how);
		good &= value_case(yoke_f64, 1, 5000, FLAT, true, true, 0, 0.3, left, &how);
		good &= value_case(yoke_f32, 1, 5000, RANDOM, true, true, 0, 0.5, left, &how);
	}
	ok(good, "long rows");
}

static void dense(void)
{
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	bool good = true;
	for (int i = 0; i < tap_cases(12, 200); i++) {
		const bool left = rnd_int(0, 3) == 0;
		struct chain h = chain_new(1, left ? rnd_int(1, 16) : rnd_int(1, 64),
					   (enum kind)rnd_int(0, KINDS - 1), rnd_int(0, 1),
					   rnd_int(0, 1), rnd_real(-1, 1), rnd_real(0.1, 1), left);
		yoke_scope *scope = yoke_scope_begin("case");
		by_inverse(h.n, h.a, h.b, h.c, CMPLX(h.x, h.y), left, h.want);
		double complex *got = values_of(chain_of(&h, yoke_f64, &how), h.n);
		double max = 0, worst = got ? difference(got, h.want, h.n, &max) : INFINITY;
		const bool fine = worst <= tolerance(yoke_f64, &h, true) && max > 1e-3;
		if (!fine)
			diag("N %lld: error %.3g, largest %.3g", (long long)h.n, worst, max);
		good &= fine;
		free(got);
		yoke_scope_end(scope);
		chain_free(&h);
	}
	ok(good, "equal a dense inverse with pivots");
}

// G_i is the i-th element of the solution for the i-th unit vector, which LAPACK finds with pivots.
static void lapack(void)
{
	typedef void factor_fn(const int *n, double complex *dl, double complex *d,
			       double complex *du, double complex *du2, int *pivot, int *info);
	typedef void solve_fn(const char *trans, const int *n, const int *nrhs,
			      const double complex *dl, const double complex *d,
			      const double complex *du, const double complex *du2, const int *pivot,
			      double complex *b, const int *ldb, int *info, size_t trans_length);
	enum { N = 1200, SOLVED = 25 };
	void *library = dlopen("liblapack.so.3", RTLD_NOW);
	library = library ? library : dlopen("libopenblas.so.0", RTLD_NOW);
	factor_fn *factor = NULL;
	solve_fn *solve = NULL;
	if (library) {
		*(void **)&factor = dlsym(library, "zgttrf_");
		*(void **)&solve = dlsym(library, "zgttrs_");
	}
	if (!factor || !solve) {
		skip("equal LAPACK", "there is none");
		return;
	}
	struct chain h = chain_new(1, N, RANDOM, true, true, 0.4, 0.2, false);
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	yoke_scope *scope = yoke_scope_begin("case");
	double complex *got = values_of(chain_of(&h, yoke_f64, &how), N), dl[N], d[N], du[N],
		       du2[N], r[N];
	const int n = N, one = 1;
	int pivot[N], info;
	double worst = 0, max = 0;
	for (int i = 0; i < N; i++) {
		d[i] = h.a[i] - CMPLX(h.x, h.y);
		du[i] = i < N - 1 ? h.b[i] : 0;
		dl[i] = i < N - 1 ? h.c[i] : 0;
	}
	factor(&n, dl, d, du, du2, pivot, &info);
	for (int k = 0; k < SOLVED && !info && got; k++) {
		const int i = k < 2 ? k * (N - 1) : (int)rnd_int(0, N - 1);
		memset(r, 0, sizeof r);
		r[i] = 1;
		solve("N", &n, &one, dl, d, du, du2, pivot, r, &n, &info, 1);
		worst = fmax(worst, cabs(r[i] - got[i]));
		max = fmax(max, cabs(r[i]));
	}
	reference(&h);
	ok(got && !info && worst <= tolerance(yoke_f64, &h, true) && max > 1e-3,
	   "within %.2g of LAPACK's zgttrf and zgttrs, of %.3g",
	   worst, max);
	free(got);
	yoke_scope_end(scope);
	chain_free(&h);
}

// G_i of a = 0, b = c = 1: with z = 2 cos t, H - z has minors (-1)^n sin((n + 1) t) / sin t.
static void closed(void)
{
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	bool good = true;
	for (int64_t n = 1; n < 40; n += 7) {
		struct chain h = chain_new(1, n, FLAT, false, false, 0.4, 0.3, false);
		yoke_scope *scope = yoke_scope_begin("case");
		const double complex t = cacos(CMPLX(h.x, h.y) / 2);
		for (int64_t i = 0; i < n; i++)
			h.want[i] = -csin((double)(i + 1) * t) * csin((double)(n - i) * t) /
				    (csin(t) * csin((double)(n + 1) * t));
		double complex *got = values_of(chain_of(&h, yoke_f64, &how), n);
		double max, worst = got ? difference(got, h.want, n, &max) : INFINITY;
		if (!(worst < 1e-13))
			diag("N %lld: error %.3g", (long long)n, worst);
		good &= worst < 1e-13;
		free(got);
		yoke_scope_end(scope);
		chain_free(&h);
	}
	ok(good, "the closed form of a constant chain");
}

// ---- operands ----

static void operands(void)
{
	enum { E = 5, N = 37 };
	double a[N], z[2 * E], b[N - 1];
	double complex want[E * N];
	bool good = true;
	for (int i = 0; i < N; i++)
		a[i] = (float)rnd_real(-2, 2);
	for (int i = 0; i < N - 1; i++)
		b[i] = (float)rnd_real(-1.5, 1.5);
	for (int e = 0; e < E; e++) {
		z[2 * e] = (float)rnd_real(-2, 2);
		z[2 * e + 1] = (float)rnd_real(0.2, 0.7);
		by_minors(N, a, b, b, CMPLX(z[2 * e], z[2 * e + 1]), false, want + e * N);
	}
	for (int kind = 0; kind < 3; kind++) {
		yoke_scope *scope = yoke_scope_begin("case");
		// one matrix at many z; the same backwards in memory; with axes of one element
		yoke_tensor *at = tensor(yoke_f32, 1, (int64_t[]){ N }, a),
			    *bt = tensor(yoke_f32, 1, (int64_t[]){ N - 1 }, b);
		yoke_tensor *zt = tensor(yoke_f32, 2, (int64_t[]){ E, 2 }, z);
		if (kind == 1) {
			double turned[N];
			for (int i = 0; i < N; i++)
				turned[i] = a[N - 1 - i];
			at = yoke_flip(tensor(yoke_f32, 1, (int64_t[]){ N }, turned), YOKE_AXIS(0));
			zt = yoke_permute(yoke_contiguous(yoke_permute(zt, (int[]){ 1, 0 })),
					  (int[]){ 1, 0 });
		} else if (kind == 2) {
			at = yoke_reshape(at, 3, (int64_t[]){ 1, 1, N });
		}
		yoke_tensor *y = yoke_resolvent(at, bt, bt, zt, NULL);
		double complex *got = values_of(y, E * N);
		double max, worst = got ? difference(got, want, E * N, &max) : INFINITY;
		if (!(worst < 1e-4))
			diag("kind %d: error %.3g", kind, worst);
		good &= worst < 1e-4 && yoke_rank(y) == (kind == 2 ? 4 : 3);
		free(got);
		yoke_scope_end(scope);
	}
	ok(good, "one matrix at many z, operands in other layouts");
	for (int k = 0; k < 2; k++) { // of half precision, and of none
		const int dtype = k ? yoke_bf16 : yoke_f16;
		yoke_scope *scope = yoke_scope_begin("case");
		struct chain h = chain_new(3, 50, RANDOM, false, false, 0, 1, false);
		struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
		for (int64_t i = 0; i < 150; i++)
			h.a[i] = round_real(dtype, h.a[i]);
		reference(&h);
		double complex *got = values_of(chain_of(&h, dtype, &how), 150);
		double max, worst = got ? difference(got, h.want, 150, &max) : INFINITY;
		ok(worst < (k ? 5e-3 : 6e-4), "%s: error %.2g", yoke_dtype_name(dtype), worst);
		free(got);
		chain_free(&h);
		yoke_scope_end(scope);
	}
	const int64_t none[2] = { 3, 0 };
	yoke_tensor *empty = yoke_resolvent(tensor(yoke_f32, 2, none, a), YOKE_NONE, YOKE_NONE,
					    tensor(yoke_f32, 1, (int64_t[]){ 2 }, z), NULL);
	ok(empty && yoke_count(empty) == 0 && yoke_read(empty, NULL, 0) == 0, "no elements");
}

// ---- tiers ----

// Half precision: bounds hold, and recomputed rows have the bits of f32.
static void tiers(void)
{
	const int64_t rows = tap_cases(60, 1700), n = 130;
	static float f32[1700 * 130 * 2], got[1700 * 130 * 2], bound[1700];
	bool held = true, same = true;
	uint64_t promoted = 0;
	for (int kind = 0; kind < KINDS; kind++)
		for (int half = yoke_f16; half <= yoke_bf16; half++) {
			yoke_scope *scope = yoke_scope_begin("tier");
			const bool signs = kind == RANDOM && half == yoke_f16;
			struct chain h = chain_new(rows, n, (enum kind)kind, kind % 2 || signs,
						   signs, 0, kind == FEW ? 0.3 : 1, kind == DEEP);
			struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
			struct yoke_stats before = { .size = sizeof before }, after = before;
			yoke_tensor *bounds = NULL;
			reference(&h);
			yoke_read(chain_of(&h, yoke_f32, &how), f32, (size_t)(rows * n) * 8);
			how.tier = YOKE_TIER_HALF;
			how.half = half;
			how.sweeps = kind == CONSTANT ? 3 : YOKE_SWEEPS;
			how.bound = &bounds;
			yoke_stats(&before);
			yoke_tensor *y = chain_of(&h, yoke_f32, &how);
			yoke_eval(2, (yoke_tensor *[]){ y, bounds });
			yoke_read(y, got, (size_t)(rows * n) * 8);
			yoke_read(bounds, bound, (size_t)rows * 4);
			yoke_stats(&after);
			uint64_t above = 0;
			for (int64_t r = 0; r < rows; r++) {
				const bool again = !(bound[r] <= 1e-4f);
				above += again;
				if (again &&
				    memcmp(&f32[r * n * 2], &got[r * n * 2], (size_t)n * 8)) {
					diag("%s: row %lld, computed again, has not the bits of f32",
					     kind_name[kind], (long long)r);
					same = false;
				}
				double error = 0;
				for (int64_t i = r * n; i < (r + 1) * n; i++)
					error = fmax(error, cabs(CMPLX(got[2 * i], got[2 * i + 1]) -
								 h.want[i]));
				// beyond f32's own rounding
				if (!again &&
				    !(error <= (double)bound[r] + tolerance(yoke_f32, &h, false))) {
					diag("%s: row %lld: error %.3g, bound %.3g",
					     kind_name[kind], (long long)r, error,
					     (double)bound[r]);
					held = false;
				}
			}
			promoted += above;
			same &= after.promoted_rows - before.promoted_rows == above &&
				(!signs || above == (uint64_t)rows);
			chain_free(&h);
			yoke_scope_end(scope);
		}
	ok(held, "half precision: errors are within their bounds");
	ok(same && promoted, "half precision: %llu of %lld rows recomputed in f32, and counted",
	   (unsigned long long)promoted, (long long)(2 * KINDS * rows));

	struct chain h = chain_new(4, 300, FEW, false, false, 0, 1, false);
	yoke_scope *scope = yoke_scope_begin("tier");
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	double worst[5], max;
	reference(&h);
	for (int k = 0; k < 5; k++) {
		how.tier = k < 3 ? k + YOKE_TIER_F64 : YOKE_TIER_HALF;
		how.sweeps = k == 3 ? 0 : YOKE_SWEEPS;
		how.tolerance = INFINITY;
		double complex *y =
			values_of(chain_of(&h, k == 2 || !k ? yoke_f64 : yoke_f32, &how), 1200);
		worst[k] = y ? difference(y, h.want, 1200, &max) : INFINITY;
		free(y);
	}
	ok(worst[0] < 2e-15 && worst[1] < 1e-6 && worst[2] < 1e-6 && worst[3] > 1e-4 &&
		   worst[3] < 5e-3 && worst[4] < 2e-5,
	   "errors of f64 %.1g, f32 %.1g, mixed %.1g, half without sweeps %.1g, with %.1g",
	   worst[0], worst[1], worst[2], worst[3], worst[4]);
	yoke_scope_end(scope);
	chain_free(&h);
}

// ---- gradients ----

enum { GN = 19, GROWS = 2, GIN = 4 };
static const int64_t grad_dims[GIN][2] = {
	{ GROWS, GN }, { GROWS, GN - 1 }, { 1, GN - 1 }, { GROWS, 2 }
};

// A number that depends on all of G.
static yoke_tensor *loss_of(yoke_tensor *const *x, const double *w, struct yoke_resolvent *how)
{
	yoke_tensor *y = yoke_resolvent(x[0], x[1], x[2], x[3], how);
	return yoke_sum(yoke_mul(y, tensor(yoke_dtype(x[0]), 3, (int64_t[]){ GROWS, GN, 2 }, w)),
			YOKE_ALL);
}

static double loss_at(double *const *v, const double *w, struct yoke_resolvent *how)
{
	yoke_scope *scope = yoke_scope_begin("loss");
	yoke_tensor *x[GIN];
	double y = NAN;
	for (int k = 0; k < GIN; k++)
		x[k] = tensor(yoke_f64, 2, grad_dims[k], v[k]);
	yoke_read(loss_of(x, w, how), &y, sizeof y);
	yoke_scope_end(scope);
	return y;
}

static void gradients(int side)
{
	double *v[GIN], w[GROWS * GN * 2], *g[GIN], *parts[GIN];
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	yoke_scope *scope = yoke_scope_begin("grad");
	double worst = 0, apart = 0, twice = 0;
	yoke_tensor *x[GIN], *to[GIN];
	how.side = side;
	for (int i = 0; i < GROWS * GN * 2; i++)
		w[i] = rnd_real(-1, 1);
	for (int k = 0; k < GIN; k++) {
		const int64_t n = grad_dims[k][0] * grad_dims[k][1];
		v[k] = calloc((size_t)n, sizeof **v);
		g[k] = calloc((size_t)n, sizeof **g);
		parts[k] = calloc((size_t)n, sizeof **parts);
		for (int64_t i = 0; i < n; i++)
			v[k][i] = rnd_real(k ? 0.4 : -2, 2);
		x[k] = tensor(yoke_f64, 2, grad_dims[k], v[k]);
	}
	v[3][0] = -0.3; // z
	v[3][1] = -0.6;
	x[3] = tensor(yoke_f64, 2, grad_dims[3], v[3]);
	yoke_grad(loss_of(x, w, &how), GIN, x, to);
	for (int k = 0; k < GIN; k++)
		yoke_read(to[k], g[k], yoke_bytes(to[k]));
	for (int k = 0; k < GIN; k++)
		for (int64_t i = 0; i < grad_dims[k][0] * grad_dims[k][1]; i++) {
			const double at = v[k][i], h = 1e-5;
			v[k][i] = at + h;
			double d = loss_at(v, w, &how);
			v[k][i] = at - h;
			d = (d - loss_at(v, w, &how)) / (2 * h);
			v[k][i] = at;
			if (fabs(d - g[k][i]) > 1e-6 * fmax(1, fabs(d)))
				diag("operand %d [%lld]: %.9g, differences %.9g", k, (long long)i,
				     g[k][i], d);
			worst = fmax(worst, fabs(d - g[k][i]) / fmax(1, fabs(d)));
		}
	ok(worst < 1e-6, "%s: gradients by a, b, c and z equal differences: %.2g",
	   side ? "left" : "both", worst);
	// the second: of the sum of weighted gradients, along one direction
	yoke_tensor *s = NULL, *second[GIN];
	for (int k = 0; k < GIN; k++) {
		yoke_tensor *t = yoke_sum(yoke_square(to[k]), YOKE_ALL);
		s = s ? yoke_add(s, t) : t;
	}
	yoke_grad(s, GIN, x, second);
	for (int k = 0; k < GIN; k++)
		yoke_read(second[k], parts[k], yoke_bytes(second[k]));
	for (int k = 0; k < GIN; k++) {
		double change[2];
		const int64_t i = rnd_int(0, grad_dims[k][0] * grad_dims[k][1] - 1);
		const double at = v[k][i];
		for (int sign = 0; sign < 2; sign++) {
			yoke_scope *inner = yoke_scope_begin("differences");
			yoke_tensor *y[GIN], *d[GIN];
			double sum = 0;
			v[k][i] = at + (sign ? -1e-5 : 1e-5);
			for (int m = 0; m < GIN; m++)
				y[m] = tensor(yoke_f64, 2, grad_dims[m], v[m]);
			yoke_grad(loss_of(y, w, &how), GIN, y, d);
			for (int m = 0; m < GIN; m++) {
				double part = NAN;
				yoke_read(yoke_sum(yoke_square(d[m]), YOKE_ALL), &part,
					  sizeof part);
				sum += part;
			}
			change[sign] = sum;
			yoke_scope_end(inner);
		}
		v[k][i] = at;
		const double d = (change[0] - change[1]) / 2e-5;
		if (!(fabs(d - parts[k][i]) <= 1e-5 * fmax(1, fabs(d))))
			diag("operand %d [%lld]: second %.9g, differences %.9g", k, (long long)i,
			     parts[k][i], d);
		twice = fmax(twice, fabs(d - parts[k][i]) / fmax(1, fabs(d)));
	}
	ok(twice <= 1e-5, "%s: second gradients: %.2g", side ? "left" : "both", twice);
	// in f32, against f64
	yoke_tensor *narrow[GIN], *gn[GIN];
	double largest = 0;
	for (int k = 0; k < GIN; k++)
		narrow[k] = tensor(yoke_f32, 2, grad_dims[k], v[k]);
	yoke_grad(loss_of(narrow, w, &how), GIN, narrow, gn);
	for (int k = 0; k < GIN; k++) {
		float got[GROWS * GN];
		yoke_read(gn[k], got, yoke_bytes(gn[k]));
		for (int64_t i = 0; i < grad_dims[k][0] * grad_dims[k][1]; i++) {
			apart = fmax(apart, fabs((double)got[i] - g[k][i]));
			largest = fmax(largest, fabs(g[k][i]));
		}
	}
	ok(apart <= 2e-5 * largest, "%s: gradients of f32: %.2g of the largest",
	   side ? "left" : "both", apart / largest);
	for (int k = 0; k < GIN; k++) {
		free(v[k]);
		free(g[k]);
		free(parts[k]);
	}
	yoke_scope_end(scope);
}

// Long rows, whose chunks depend on each other: against float64 loops.
static void long_gradients(int side, int64_t rows, int64_t n, enum kind kind, bool signs,
			   double eta)
{
	struct chain h = chain_new(rows, n, kind, true, signs, 0.2, eta, side);
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	double complex *cot = calloc((size_t)(rows * n), sizeof *cot);
	double *w = (double *)cot, *want[3], worst = 0, largest = 0;
	const int64_t all[2] = { rows, n }, between[2] = { rows, n - 1 }, out[3] = { rows, n, 2 };
	how.side = side;
	for (int64_t i = 0; i < 2 * rows * n; i++)
		w[i] = (float)rnd_real(-1, 1);
	// by a loop over the definition of the adjoint, from the loop's own values
	for (int k = 0; k < 3; k++)
		want[k] = calloc((size_t)(rows * n), sizeof **want);
	double complex zbar = 0;
	for (int64_t r = 0; r < rows; r++) {
		double complex *l = calloc((size_t)n, sizeof *l),
			       *rr = calloc((size_t)n, sizeof *rr),
			       *lb = calloc((size_t)n, sizeof *lb),
			       *rb = calloc((size_t)n, sizeof *rb),
			       *d = calloc((size_t)n, sizeof *d),
			       *kb = calloc((size_t)n, sizeof *kb);
		const double *a = h.a + r * n, *b = h.b + r * (n - 1), *c = h.c + r * (n - 1);
		const double complex z = CMPLX(h.x, h.y);
		for (int64_t i = 0; i < n; i++)
			l[i] = a[i] - z - (i ? b[i - 1] * c[i - 1] / l[i - 1] : 0);
		for (int64_t i = n - 1; i >= 0; i--)
			rr[i] = a[i] - z - (i < n - 1 ? b[i] * c[i] / rr[i + 1] : 0);
		for (int64_t i = 0; i < n; i++) {
			const double complex g = side ? 1 / l[i] : 1 / (l[i] + rr[i] - (a[i] - z));
			lb[i] = rb[i] = d[i] = -g * g * conj(cot[r * n + i]);
		}
		for (int64_t i = n - 1; i > 0; i--) {
			kb[i - 1] -= lb[i] / l[i - 1];
			lb[i - 1] += lb[i] * (b[i - 1] * c[i - 1]) / (l[i - 1] * l[i - 1]);
		}
		for (int64_t i = 0; i < n - 1 && !side; i++) {
			kb[i] -= rb[i] / rr[i + 1];
			rb[i + 1] += rb[i] * (b[i] * c[i]) / (rr[i + 1] * rr[i + 1]);
		}
		for (int64_t i = 0; i < n; i++) {
			const double complex total = side ? lb[i] : lb[i] + rb[i] - d[i];
			want[0][r * n + i] = creal(total);
			zbar += CMPLX(-creal(total), cimag(total));
			if (i < n - 1) {
				want[1][r * (n - 1) + i] = c[i] * creal(kb[i]);
				want[2][r * (n - 1) + i] = b[i] * creal(kb[i]);
			}
		}
		free(l), free(rr), free(lb), free(rb), free(d), free(kb);
	}
	double max = 0;
	reference(&h);
	for (int64_t i = 0; i < rows * n; i++)
		max = fmax(max, cabs(h.want[i]));
	for (int dtype = yoke_f32; dtype <= yoke_f64; dtype++) {
		yoke_scope *scope = yoke_scope_begin("grad");
		yoke_tensor *x[4] = { tensor(dtype, 2, all, h.a), tensor(dtype, 2, between, h.b),
				      tensor(dtype, 2, between, h.c),
				      tensor(dtype, 1, (int64_t[]){ 2 }, (double[]){ h.x, h.y }) },
			    *g[4];
		yoke_tensor *y = yoke_resolvent(x[0], x[1], x[2], x[3], &how);
		yoke_grad(yoke_sum(yoke_mul(y, tensor(dtype, 3, out, w)), YOKE_ALL), 4, x, g);
		worst = largest = 0;
		// a gradient is a product of two values, so its relative error is twice theirs
		const double values_off =
			2 * tolerance(dtype, &h, signs) / (signs ? max : 1 / fabs(eta));
		const double tol = fmax(dtype == yoke_f64 ? 1e-13 : 2e-5,
					signs || fabs(eta) < 0.1 ? values_off : 0);
		for (int k = 0; k < 4; k++) {
			const int64_t count = k == 3 ? 2 : yoke_count(g[k]);
			char *bytes = malloc((size_t)count * 8);
			const double dz[2] = { creal(zbar), cimag(zbar) };
			yoke_read(g[k], bytes, (size_t)count * yoke_dtype_size(dtype));
			for (int64_t i = 0; i < count; i++) {
				const double it = k == 3 ? dz[i] : want[k][i];
				const double e = fabs(
					load(dtype, bytes + (size_t)i * yoke_dtype_size(dtype)).r -
					it);
				// by z it is a sum over all elements, whose error grows with the
				// root of their number
				worst = isfinite(e) ?
						fmax(worst,
						     k == 3 ? e / sqrt((double)(rows * n)) : e) :
						INFINITY;
				largest = k == 3 ? largest : fmax(largest, fabs(it));
			}
			free(bytes);
		}
		ok(worst <= tol * largest,
		   "%s: adjoint of [%lld,%lld], %s, eta %g%s, %s: %.2g of %.3g",
		   side ? "left" : "both", (long long)rows, (long long)n, kind_name[kind], eta,
		   signs ? ", k of both signs" : "", yoke_dtype_name(dtype), worst, largest);
		yoke_scope_end(scope);
	}
	for (int k = 0; k < 3; k++)
		free(want[k]);
	free(cot);
	chain_free(&h);
}

// A derivative that has overflowed, as a loss scale may cause, is no error: the gradient is not
// finite either, or 0 where a surrogate says so.
static void overflowed(void)
{
	const double a[] = { 1, 2, 3 }, eta[] = { 0, 1 }, w[] = { INFINITY, 1, 1, 1, 1, 1 };
	for (int mode = YOKE_GRADIENT_EXACT; mode <= YOKE_GRADIENT_DIAG; mode++) {
		struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
		yoke_scope *scope = yoke_scope_begin("overflowed");
		yoke_tensor *x = tensor(yoke_f32, 1, (int64_t[]){ 3 }, a), *g;
		float got[3] = { 1, 1, 1 };
		how.gradient = mode;
		yoke_tensor *y = yoke_resolvent(x, YOKE_NONE, YOKE_NONE,
						tensor(yoke_f32, 1, (int64_t[]){ 2 }, eta), &how);
		y = yoke_mul(y, tensor(yoke_f32, 2, (int64_t[]){ 3, 2 }, w));
		const bool good = !yoke_grad(yoke_sum(y, YOKE_ALL), 1, &x, &g) &&
				  !yoke_read(g, got, sizeof got);
		ok(good && (mode == YOKE_GRADIENT_EXACT ? !isfinite(got[0]) : got[0] == 0),
		   "gradient %d from an infinite derivative: %g %s", mode, (double)got[0],
		   yoke_error());
		yoke_scope_end(scope);
	}
}

static void surrogates(void)
{
	enum { N = 40 };
	struct chain h = chain_new(1, N, DEEP, false, false, 0, 1, false);
	double w[2 * N];
	bool good = true;
	for (int i = 0; i < 2 * N; i++)
		w[i] = (float)rnd_real(-1, 1);
	h.a[3] = 60; // |F| below 1e-3
	h.a[4] = -70;
	reference(&h);
	for (int mode = YOKE_GRADIENT_DIAG; mode <= YOKE_GRADIENT_STEP5; mode++)
		for (int dtype = yoke_f32; dtype <= yoke_f64; dtype++) {
			struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
			yoke_scope *scope = yoke_scope_begin("grad");
			yoke_tensor *x = tensor(dtype, 2, (int64_t[]){ 1, N }, h.a), *g;
			double got[N];
			float narrow[N];
			how.gradient = mode;
			how.blend = 0.3;
			yoke_tensor *y = yoke_resolvent(
				x, YOKE_NONE, YOKE_NONE,
				tensor(dtype, 1, (int64_t[]){ 2 }, (double[]){ 0, 1 }), &how);
			yoke_grad(yoke_sum(yoke_mul(y, tensor(dtype, 3, (int64_t[]){ 1, N, 2 }, w)),
					   YOKE_ALL),
				  1, &x, &g);
			yoke_read(g, dtype == yoke_f64 ? (void *)got : narrow, yoke_bytes(g));
			for (int i = 0; i < N; i++) {
				const double complex c = CMPLX(w[2 * i], w[2 * i + 1]),
						     f = h.want[i] * h.want[i];
				double complex safe =
					cabs(f) < 1e-3 ? 1e-3 * f / (cabs(f) + 1e-9) : f;
				const double diag_ =
					-creal((mode == YOKE_GRADIENT_STEP5 ? c : conj(c)) * f);
				const double inverse = -creal(c / (safe + 1e-6));
				double want = mode == YOKE_GRADIENT_DIAG ? diag_ :
					      mode == YOKE_GRADIENT_INVERSE ? inverse :
					      0.7 * diag_ + 0.3 * inverse;
				want = fmin(1000, fmax(-1000, want));
				const double is = dtype == yoke_f64 ? got[i] : (double)narrow[i];
				if (!(fabs(is - want) <=
				      (dtype == yoke_f64 ? 1e-9 : 1e-3) * fmax(1, fabs(want)))) {
					diag("mode %d %s [%d]: %.9g, want %.9g", mode,
					     yoke_dtype_name(dtype), i, is, want);
					good = false;
				}
			}
			yoke_scope_end(scope);
		}
	ok(good, "surrogates equal their definitions");
	chain_free(&h);
}

// ---- extremes ----

// Numbers whose products exceed the range of f32: each result within 1e-5 relative, and errors as
// elsewhere.
static void extremes(void)
{
	static const struct {
		const char *what;
		double a, bonds, every; // every n-th element of a is `a`, bonds are `bonds`
		double x, y;
	} cases[] = {
		{ "b = c = 1e30", 1, 1e30, 1e9, 0.25, 1 },
		{ "all a = 1e30", 1e30, 1, 1, 0.25, 1 },
		{ "each fifth a = 1e30", 1e30, 1, 5, 0.25, 1 },
		{ "a = 1e30, b = c = 3e29", 1e30, 3e29, 1, 0.25, 1 },
		{ "z = 1e30", 1, 1, 1e9, 1e30, 1 },
		{ "each third a = -1e20", -1e20, 3e9, 3, 0.25, 0.5 },
		{ "Im z = 1e25", 1, 1, 1e9, 0.25, 1e25 },
	};
	enum { N = 70 };
	double a[2 * N], b[2 * N], z[4];
	double complex want[2 * N];
	float got[4 * N];
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		for (int left = 0; left < 2; left++) {
			double worst = 0;
			for (int i = 0; i < 2 * N; i++) { // the second row is a plain one
				a[i] = (double)(float)rnd_real(-2, 2);
				b[i] = i < N - 1 ? (double)(float)cases[k].bonds : 1;
				if (i < N && fmod(i, cases[k].every) == 0 && cases[k].every < 1e9)
					a[i] = (double)(float)cases[k].a;
			}
			z[0] = (double)(float)cases[k].x;
			z[1] = (double)(float)cases[k].y;
			z[2] = 0.25;
			z[3] = 1;
			by_minors(N, a, b, b, CMPLX(z[0], z[1]), left, want);
			by_minors(N, a + N, b + N - 1, b + N - 1, CMPLX(z[2], z[3]), left,
				  want + N);
			memset(got, 0xff, sizeof got);
			yoke_scope *scope = yoke_scope_begin("extremes");
			struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
			how.side = left;
			yoke_tensor *bonds = tensor(yoke_f32, 2, (int64_t[]){ 2, N - 1 }, b);
			const int err = yoke_read(
				yoke_resolvent(tensor(yoke_f32, 2, (int64_t[]){ 2, N }, a), bonds,
					       bonds, tensor(yoke_f32, 2, (int64_t[]){ 2, 2 }, z),
					       &how),
				got, sizeof got);
			for (int i = 0; i < 2 * N; i++) {
				const double e = cabs(CMPLX(got[2 * i], got[2 * i + 1]) - want[i]) /
						 (cabs(want[i]) + 1e-33);
				worst = isnan(e) ? INFINITY : fmax(worst, e);
			}
			ok(!err && worst < 1e-5, "%s%s: relative error %.2g %s", cases[k].what,
			   left ? ", left" : "", worst, yoke_error());
			yoke_error_clear();
			yoke_scope_end(scope);
		}
}

// Chains of alternating bonds have an edge state of energy 0 except for rounding: near it a bound
// must cover the rounding of f32.
// the rounding of f32 does.
static void end_states(void)
{
	enum { N = 130 };
	static const double etas[] = { 1.2e-3, 1e-2, 0.1, 1 };
	static float got[2 * N];
	double a[N] = { 0 }, b[N], z[2] = { 0 };
	double complex want[N];
	for (int half = yoke_f16; half <= yoke_bf16; half++)
		for (size_t k = 0; k < sizeof etas / sizeof *etas; k++) {
			struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
			yoke_tensor *bounds = NULL;
			double error = 0;
			float bound = NAN;
			for (int i = 0; i < N; i++)
				b[i] = (double)(i % 2 ? 1.0f : 0.6f);
			z[1] = (double)(float)etas[k];
			by_minors(N, a, b, b, CMPLX(0, z[1]), false, want);
			how.tier = YOKE_TIER_HALF;
			how.half = half;
			how.sweeps = 64;
			how.bound = &bounds;
			yoke_scope *scope = yoke_scope_begin("end states");
			yoke_tensor *bonds = tensor(yoke_f32, 1, (int64_t[]){ N - 1 }, b);
			yoke_tensor *y = yoke_resolvent(
				tensor(yoke_f32, 1, (int64_t[]){ N }, a), bonds, bonds,
				tensor(yoke_f32, 1, (int64_t[]){ 2 }, z), &how);
			yoke_eval(2, (yoke_tensor *[]){ y, bounds });
			yoke_read(y, got, sizeof got);
			yoke_read(bounds, &bound, sizeof bound);
			yoke_scope_end(scope);
			for (int i = 0; i < N; i++)
				error = fmax(error,
					     cabs(CMPLX(got[2 * i], got[2 * i + 1]) - want[i]));
			ok(error <= (double)bound,
			   "%s at %g from an end state: error %.3g, bound %.3g %s",
			   yoke_dtype_name(half), etas[k], error, (double)bound, yoke_error());
		}
}

// ---- the real axis ----

// Rows of real z beside one that is complex, outside the spectrum and between its eigenvalues; with
// `equal`, at the middle of an even number of equal sites, where every second pivot is 0 and so is
// G.
static void real_case(int dtype, int64_t n, bool left, bool equal, double x)
{
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	struct chain h = chain_new(3, n, equal ? FLAT : RANDOM, !equal, false, x, 0, left);
	const int64_t all[2] = { 3, n }, between[2] = { 3, n - 1 }, points[2] = { 3, 2 };
	const double z[6] = { h.x, 0, h.x, 0.5, h.x, 0 };
	yoke_scope *scope = yoke_scope_begin("real z");
	how.side = left;
	double complex *got;
	double max, worst = INFINITY, tol;
	for (int64_t r = 0; r < 3; r++)
		by_minors(n, h.a + r * n, h.b ? h.b + r * (n - 1) : NULL,
			  h.c ? h.c + r * (n - 1) : NULL, CMPLX(z[2 * r], z[2 * r + 1]), left,
			  h.want + r * n);
	got = values_of(yoke_resolvent(tensor(dtype, 2, all, h.a),
				       h.b ? tensor(dtype, 2, between, h.b) : YOKE_NONE,
				       h.c ? tensor(dtype, 2, between, h.c) : YOKE_NONE,
				       tensor(dtype, 2, points, z), &how),
			3 * n);
	if (got)
		worst = difference(got, h.want, 3 * n, &max);
	tol = (dtype == yoke_f64 ? 1e-12 : 2e-6) * fmax(1, got ? max * max : 0);
	ok(worst <= tol, "%s, [3,%lld], real z = %g%s, %s: error %.2g of %.3g",
	   left ? "left" : "both", (long long)n, h.x, equal ? ", equal sites" : "",
	   yoke_dtype_name(dtype), worst, got ? max : 0);
	free(got);
	yoke_scope_end(scope);
	chain_free(&h);
}

// Energies within the band of a long random chain do not hit eigenvalues exactly, in f32 either.
static void in_band(void)
{
	enum { N = 4096, ROWS = 10, BATCHES = 20 };
	struct chain h = chain_new(1, N, RANDOM, false, false, 0, 0, false);
	const int64_t n = N, points[2] = { ROWS, 2 };
	float *got = calloc((size_t)ROWS * N * 2, sizeof *got);
	int bad = 0;
	for (int k = 0; k < BATCHES; k++) {
		double z[2 * ROWS] = { 0 };
		yoke_scope *scope = yoke_scope_begin("in band");
		for (int i = 0; i < ROWS; i++)
			z[2 * i] = rnd_real(-3, 3);
		bad += yoke_read(yoke_resolvent(tensor(yoke_f32, 1, &n, h.a), YOKE_NONE, YOKE_NONE,
						tensor(yoke_f32, 2, points, z), NULL),
				 got, (size_t)ROWS * N * 2 * sizeof *got) < 0;
		yoke_error_clear();
		yoke_scope_end(scope);
	}
	ok(bad <= 2, "a chain of %d sites: of %d times %d energies in its band %d are refused", N,
	   BATCHES, ROWS, bad);
	free(got);
	chain_free(&h);
}

static void real_axis(void)
{
	for (int dtype = yoke_f32; dtype <= yoke_f64; dtype++)
		for (int64_t n = 1; n < 3000; n = n * 4 + 1)
			for (int left = 0; left < 2; left++) {
				real_case(dtype, n, left, false, 9.25);
				real_case(dtype, n, left, false, -0.3);
				if (!left)
					real_case(dtype, n + 1, left, true, 0);
			}
}

// Gradients on the axis against those of yoke_resolvent_complex, which uses another method; also
// for equal sites.
static void real_gradients(int side, bool equal, int64_t n)
{
	struct chain h =
		chain_new(1, n, equal ? FLAT : RANDOM, true, false, equal ? 0 : -0.3, 0, side);
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	yoke_scope *scope = yoke_scope_begin("real gradients");
	const int64_t bonds = n - 1, two = 2, all[2] = { n, 2 };
	double *w = calloc((size_t)(2 * n), sizeof *w), worst = 0, max = 0, z[2] = { h.x, 0 };
	for (int64_t i = 0; i < 2 * n; i++)
		w[i] = rnd_real(-1, 1);
	yoke_tensor *x[4] = { tensor(yoke_f64, 1, &n, h.a), tensor(yoke_f64, 1, &bonds, h.b),
			      tensor(yoke_f64, 1, &bonds, h.c), tensor(yoke_f64, 1, &two, z) },
		    *g[2][4];
	how.side = side;
	yoke_grad(yoke_sum(yoke_mul(yoke_resolvent(x[0], x[1], x[2], x[3], &how),
				    tensor(yoke_f64, 2, all, w)),
			   YOKE_ALL),
		  4, x, g[0]);
	yoke_grad(yoke_sum(yoke_mul(yoke_resolvent_complex(x[0], YOKE_NONE, x[1], x[2], x[3], side),
				    tensor(yoke_f64, 2, all, w)),
			   YOKE_ALL),
		  4, x, g[1]);
	for (int k = 0; k < 4; k++) {
		double got[2][512];
		for (int i = 0; i < 2; i++) {
			memset(got[i], 0xff, sizeof got[i]);
			yoke_read(g[i][k], got[i], yoke_bytes(g[i][k]));
		}
		for (int64_t i = 0; i < yoke_count(g[0][k]); i++) {
			const double e = fabs(got[0][i] - got[1][i]);
			max = fmax(max, fabs(got[1][i]));
			worst = isnan(e) ? INFINITY : fmax(worst, e);
		}
	}
	ok(worst <= 1e-9 * fmax(1, max),
	   "%s, %lld sites, real z%s: gradients as the other way's: %.2g of %.3g %s",
	   side ? "left" : "both", (long long)n, equal ? " at pivots of 0" : "", worst, max,
	   yoke_error());
	yoke_error_clear();
	free(w);
	yoke_scope_end(scope);
	chain_free(&h);
}

// ---- what is refused ----

static void refused(yoke_tensor *y, int code, const char *what)
{
	static double to[4096];
	int err = y ? yoke_read(y, to, yoke_bytes(y)) : yoke_error_code();
	// a device may report late: then the value is lost, and the reason is named
	const bool good =
		err == code || (err == YOKE_EFAILED && strstr(yoke_error(), yoke_error_name(code)));
	ok(good, "%s: %s", what, yoke_error());
	if (!good)
		diag("%s, want %s", yoke_error_name(err), yoke_error_name(code));
	yoke_error_clear();
}

static void refusals(void)
{
	const double nine[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, nan_[] = { 1, NAN, 3 },
		     on_axis[] = { 0.5, 0 }, far[] = { INFINITY, 1 };
	yoke_scope *scope = yoke_scope_begin("refused");
	yoke_tensor *a = tensor(yoke_f32, 1, (int64_t[]){ 3 }, nine),
		    *z = tensor(yoke_f32, 1, (int64_t[]){ 2 }, nine);
	yoke_tensor *wide = tensor(yoke_f64, 1, (int64_t[]){ 3 }, nine),
		    *zw = tensor(yoke_f64, 1, (int64_t[]){ 2 }, nine);
	// an odd number of equal sites has an eigenvalue in the middle
	for (int64_t n = 1; n < 1500; n = n * 5 + 2) {
		double *equal = calloc((size_t)n, sizeof *equal);
		for (int dtype = yoke_f32; dtype <= yoke_f64; dtype++)
			for (int left = 0; left < 2; left++) {
				struct yoke_resolvent side = YOKE_RESOLVENT_INIT;
				side.side = left;
				for (int64_t i = 0; i < n; i++)
					equal[i] = on_axis[0];
				refused(yoke_resolvent(
						tensor(dtype, 1, &n, equal), YOKE_NONE, YOKE_NONE,
						tensor(dtype, 1, (int64_t[]){ 2 }, on_axis), &side),
					YOKE_ERANGE, "a real z is an eigenvalue");
			}
		free(equal);
	}
	refused(yoke_resolvent(a, YOKE_NONE, YOKE_NONE, tensor(yoke_f32, 1, (int64_t[]){ 2 }, far),
			       NULL),
		YOKE_ERANGE, "z far off");
	refused(yoke_resolvent(tensor(yoke_f32, 1, (int64_t[]){ 3 }, nan_), YOKE_NONE, YOKE_NONE, z,
			       NULL),
		YOKE_ERANGE, "NaN in a");
	refused(yoke_resolvent(a, tensor(yoke_f32, 1, (int64_t[]){ 2 }, nan_), YOKE_NONE, z, NULL),
		YOKE_ERANGE, "NaN in b");
	// H = [[0, 1], [-1, 0]] has the eigenvalues +-i; with others beside it on the diagonal
	const double zero[] = { 0, 0, 0, 0 }, plus[] = { 1, 1, 1 }, minus[] = { -1, 0, -1 },
		     unit[] = { 0, 1 };
	for (int dtype = yoke_f32; dtype <= yoke_f64; dtype++)
		for (int64_t n = 2; n <= 4; n += 2)
			for (int left = 0; left < 2; left++) {
				struct yoke_resolvent side = YOKE_RESOLVENT_INIT;
				side.side = left;
				refused(yoke_resolvent(
						tensor(dtype, 1, &n, zero),
						tensor(dtype, 1, (int64_t[]){ n - 1 }, plus),
						tensor(dtype, 1, (int64_t[]){ n - 1 }, minus),
						tensor(dtype, 1, (int64_t[]){ 2 }, unit), &side),
					YOKE_ERANGE, "z is an eigenvalue");
			}
	refused(yoke_resolvent(a, a, YOKE_NONE, z, NULL), YOKE_ESHAPE, "b too long");
	refused(yoke_resolvent(a, YOKE_NONE, tensor(yoke_f32, 1, (int64_t[]){ 1 }, nine), z, NULL),
		YOKE_ESHAPE, "c too short");
	refused(yoke_resolvent(a, YOKE_NONE, YOKE_NONE, a, NULL), YOKE_ESHAPE,
		"z of three numbers");
	refused(yoke_resolvent(a, YOKE_NONE, YOKE_NONE, zw, NULL), YOKE_EDTYPE, "dtypes");
	static const struct {
		const char *what;
		struct yoke_resolvent how;
		int code;
	} bad[] = {
#define BAD(code, ...) \
	{ #__VA_ARGS__, \
	  { .size = sizeof(struct yoke_resolvent), .half = yoke_f16, .tolerance = 1, \
	    __VA_ARGS__ }, \
	  code }
		BAD(YOKE_EINVAL, .tier = 5),
		BAD(YOKE_EINVAL, .gradient = 5),
		BAD(YOKE_EINVAL, .gradient = -1),
		BAD(YOKE_EINVAL, .side = 2),
		BAD(YOKE_ERANGE, .sweeps = 65),
		BAD(YOKE_ERANGE, .sweeps = -2),
		BAD(YOKE_ERANGE, .blend = 1.5),
		BAD(YOKE_ERANGE, .adaptive = -1),
		{ "tolerance 0",
		  { .size = sizeof(struct yoke_resolvent), .half = yoke_f16 },
		  YOKE_ERANGE },
		{ "half of f32",
		  { .size = sizeof(struct yoke_resolvent),
		    .half = yoke_f32,
		    .tolerance = 1,
		    .tier = YOKE_TIER_HALF },
		  YOKE_EDTYPE },
		{ "no size", { .half = yoke_f16, .tolerance = 1 }, YOKE_EINVAL },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		refused(yoke_resolvent(a, YOKE_NONE, YOKE_NONE, z, &bad[i].how), bad[i].code,
			bad[i].what);
	struct yoke_resolvent half = YOKE_RESOLVENT_INIT;
	half.tier = YOKE_TIER_HALF;
	refused(yoke_resolvent(wide, YOKE_NONE, YOKE_NONE, zw, &half), YOKE_EDTYPE, "half of f64");
	yoke_scope_end(scope);
}

// ---- threads ----

// Rows that fill vectors and one that is split, for both triangles.
static uint64_t bits(void)
{
	static const int64_t shapes[][2] = { { 16, 4096 }, { 1, 70001 }, { 40, 1700 } };
	uint64_t hash = 0;
	for (int i = 0; i < 6; i++) {
		const int64_t rows = shapes[i / 2][0], n = shapes[i / 2][1];
		const size_t bytes = (size_t)(rows * n) * 8;
		struct chain h = chain_new(rows, n, i % 2 ? FLAT : RANDOM, true, false, 0.1,
					   i % 2 ? 0.05 : 1, i & 1);
		struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
		char *to = calloc(2, bytes);
		yoke_scope *scope = yoke_scope_begin("bits");
		yoke_tensor *a = tensor(yoke_f32, 2, shapes[i / 2], h.a), *y, *g;
		how.side = i & 1;
		y = yoke_resolvent(a, YOKE_NONE, YOKE_NONE,
				   tensor(yoke_f32, 1, (int64_t[]){ 2 }, (double[]){ h.x, h.y }),
				   &how);
		if (yoke_grad(yoke_sum(yoke_square(y), YOKE_ALL), 1, &a, &g) < 0 ||
		    yoke_read(y, to, bytes) < 0 || yoke_read(g, to + bytes, bytes / 2) < 0)
			return 0;
		hash = yk_hash(to, bytes + bytes / 2, hash);
		yoke_scope_end(scope);
		free(to);
		chain_free(&h);
	}
	return hash;
}

static uint64_t bits_of(const char *self, int threads)
{
	char line[4600];
	uint64_t n = 0;
	snprintf(line, sizeof line, "YOKE_THREADS=%d %s bits", threads, self);
	FILE *from = popen(line, "r");
	if (from && fscanf(from, "%" SCNu64, &n) != 1)
		n = 0;
	if (from)
		pclose(from);
	return n;
}

int main(int argc, char **argv)
{
	static const char *const isas[] = { "base", "avx2", "avx512" };
	static const char *const ways[] = {
		"",
		"YOKE_CPU_RESOLVENT_ENTRY=disc",
		"YOKE_CPU_RESOLVENT_ENTRY=matrices",
		"YOKE_CPU_RESOLVENT_ENTRY=matrices YOKE_CPU_RESOLVENT_CHUNK=7",
		"YOKE_CPU_RESOLVENT_CHUNK=333",
		"YOKE_PLAN_NAMED=0",
		"YOKE_CPU_ISA=base YOKE_CPU_RESOLVENT_ENTRY=matrices YOKE_CPU_RESOLVENT_CHUNK=130",
	};
	char line[4600];
	if (argc > 1 && !strcmp(argv[1], "bits")) {
		tap_state = 1;
		return printf("%" PRIu64 "\n", bits()) < 0;
	}
	tap_seed();
	if (argc > 1 && !strcmp(argv[1], "extremes")) { // as a device has them
		extremes();
		real_axis();
		end_states();
		refusals();
		in_band();
		return done();
	}
	if (argc > 1) {
		values(40, 600);
		long_rows();
		real_axis();
		for (int side = 0; side < 2; side++) {
			long_gradients(side, 3, 1500, RANDOM, false, 0.5);
			long_gradients(side, 1, 9000, DEEP, false, -1);
			// for which no elements beside a chunk suffice
			long_gradients(side, 2, 1300, NARROW, false, 0.02);
			long_gradients(side, 1, 2000, RANDOM, true, 0.5);
		}
		overflowed();
		return done();
	}
	dense();
	lapack();
	closed();
	operands();
	extremes();
	end_states();
	tiers();
	for (int side = 0; side < 2; side++) {
		gradients(side);
		real_gradients(side, false, 37);
		real_gradients(side, false, 400);
	}
	real_gradients(0, true, 38);
	real_gradients(0, true, 400);
	surrogates();
	refusals();
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		snprintf(line, sizeof line, "%s %s values", ways[i], argv[0]);
		ok(tap_run(line), "values%s%s", *ways[i] ? " under " : "", ways[i]);
	}
	for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
		if (!yk_isa_choose(isas[i]))
			continue; // not of this processor
		snprintf(line, sizeof line, "YOKE_CPU_ISA=%s %s values", isas[i], argv[0]);
		ok(tap_run(line), "values with %s", isas[i]);
	}
	in_band();
	const uint64_t one = bits_of(argv[0], 1);
	for (int threads = 2; threads < 4; threads++) {
		const uint64_t n = bits_of(argv[0], threads);
		ok(one && n == one, "%d threads: the same bits as one thread, %016" PRIx64, threads,
		   n);
	}
	return done();
}
