// SPDX-License-Identifier: Apache-2.0
// Tests interpolation, grid_sample and affine_grid against float64 loops over their definitions,
// and their gradients against the loops' adjoints or differences, by kernels and by decompositions.
#include "config.h"

#include "slope.h"

enum { MAX = 8192, LINE = 64 };

// ---- interpolation ----

static double keys(double d, double a)
{
	d = fabs(d);
	if (d <= 1)
		return ((a + 2) * d - (a + 3)) * d * d + 1;
	return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0;
}

static double tent(double d)
{
	return fmax(1 - fabs(d), 0);
}

static int64_t clamped(int64_t i, int64_t n)
{
	if (i < 0)
		return 0;
	return i < n ? i : n - 1;
}

// The weights w[n] of output i of `to`.
static void weights_of(const struct yoke_interpolate *o, int axis, int64_t n, int64_t to, int64_t i,
		       double *w)
{
	const double tiny = 1e-11; // positions that are whole but for rounding
	const bool cubic = o->mode == YOKE_CUBIC;
	double step = o->scale[axis] > 0 ? 1 / o->scale[axis] : (double)n / (double)to;
	if (o->align_corners)
		step = to > 1 ? (double)(n - 1) / (double)(to - 1) : 0;
	memset(w, 0, (size_t)n * sizeof *w);
	if (n == to && (o->mode == YOKE_NEAREST || o->mode == YOKE_LINEAR || o->antialias)) {
		w[i] = 1;
		return;
	}
	if (o->mode == YOKE_NEAREST || o->mode == YOKE_NEAREST_EXACT) {
		w[clamped((int64_t)floor(((double)i + (o->mode == YOKE_NEAREST ? 0 : 0.5)) * step +
					 tiny),
			  n)] = 1;
		return;
	}
	if (o->antialias) {
		const double wide = fmax(step, 1), support = (cubic ? 2 : 1) * wide,
			     centre = ((double)i + 0.5) * step;
		const int64_t first = (int64_t)floor(fmax(centre - support + 0.5, 0)),
			      end = (int64_t)floor(fmin(centre + support + 0.5, (double)n));
		double sum = 0;
		for (int64_t j = first; j < end; j++) {
			const double d = ((double)j - centre + 0.5) / wide;
			sum += w[j] = cubic ? keys(d, -0.5) : tent(d);
		}
		for (int64_t j = first; j < end; j++)
			w[j] /= sum;
		return;
	}
	double p = o->align_corners ? (double)i * step : ((double)i + 0.5) * step - 0.5;
	if (!cubic)
		p = fmax(p, 0);
	const int64_t lo = (int64_t)floor(p + tiny);
	for (int64_t t = cubic ? -1 : 0; t <= (cubic ? 2 : 1); t++)
		w[clamped(lo + t, n)] +=
			cubic ? keys(p - (double)(lo + t), -0.75) : tent(p - (double)(lo + t));
}

static bool interpolation(int axes, const int64_t *n, const int64_t *given,
			  const struct yoke_interpolate *o, int dtype)
{
	static double x[MAX], y[MAX], cot[MAX], back[MAX], w[3][LINE][LINE];
	int64_t dims[5] = { 2, 3 }, to[5] = { 2, 3 };
	char what[200];
	for (int i = 0; i < axes; i++) {
		dims[2 + i] = n[i];
		to[2 + i] = given ? given[i] : (int64_t)floor((double)n[i] * o->scale[i]);
		for (int64_t k = 0; k < to[2 + i]; k++)
			weights_of(o, i, n[i], to[2 + i], k, w[i][k]);
	}
	const int64_t in = product(axes, dims + 2), out = product(axes, to + 2), all = 6 * in,
		      many = 6 * out;
	draw(yoke_f32, x, all, -1, 1);
	draw(yoke_f32, cot, many, -1, 1);
	memset(y, 0, sizeof y);
	memset(back, 0, sizeof back);
	for (int64_t i = 0; i < many; i++)
		for (int64_t j = 0; j < in; j++) {
			int64_t a = i % out, b = j;
			double by = 1;
			for (int d = axes - 1; d >= 0; a /= to[2 + d], b /= dims[2 + d], d--)
				by *= w[d][a % to[2 + d]][b % dims[2 + d]];
			y[i] += by * x[i / out * in + j];
			back[i / out * in + j] += by * cot[i];
		}
	snprintf(what, sizeof what, "mode %d, %d axes, align %d, antialias %d, scale %g, %s",
		 o->mode, axes, o->align_corners, o->antialias, o->scale[0],
		 yoke_dtype_name(dtype));
	yoke_scope *s = yoke_scope_begin("interpolate");
	const double tol = dtype == yoke_f64 ? 1e-9 : 3e-6;
	yoke_tensor *t = tensor(dtype, 2 + axes, dims, x), *g, *got = yoke_interpolate(t, given, o);
	bool good = agrees(got, y, many, tol, what);
	for (int i = 0; i < axes; i++)
		good = good && yoke_dim(got, 2 + i) == to[2 + i];
	yoke_grad(yoke_sum(yoke_mul(got, tensor(dtype, 2 + axes, to, cot)), YOKE_ALL), 1, &t, &g);
	good = agrees(g, back, all, tol, what) && good;
	yoke_scope_end(s);
	return good;
}

static void test_interpolation(const char *how)
{
	static const int64_t sizes[][6] = { { 4, 5, 3, 8, 15, 5 },
					    { 7, 6, 4, 5, 9, 2 },
					    { 5, 1, 2, 5, 4, 1 },
					    { 9, 8, 5, 3, 2, 3 },
					    { 2, 7, 3, 1, 7, 6 } };
	bool good = true;
	for (int k = 0; k < 5; k++)
		for (int mode = YOKE_NEAREST; mode <= YOKE_CUBIC; mode++)
			for (int axes = 1; axes <= 3; axes++)
				for (int align = 0; align < 2; align++) {
					const bool even = mode >= YOKE_LINEAR;
					struct yoke_interpolate o = { .size = sizeof o,
								      .mode = mode,
								      .align_corners = align };
					if ((align && !even) || (mode == YOKE_CUBIC && axes != 2))
						continue;
					good = interpolation(axes, sizes[k], sizes[k] + 3, &o,
							     k % 2 ? yoke_f32 : yoke_f64) &&
					       good;
					o.antialias = 1;
					if (even && axes == 2)
						good = interpolation(axes, sizes[k], sizes[k] + 3,
								     &o, yoke_f64) &&
						       good;
				}
	ok(good, "interpolation to sizes, and its gradient, %s", how);
	static const double scales[][3] = {
		{ 2, 3, 1.5 }, { 1.7, 0.6, 2.3 }, { 0.37, 1.1, 1.9 }, { 2.7182818, 1.414213, 0.9 }
	};
	good = true;
	for (int k = 0; k < 4; k++)
		for (int mode = YOKE_NEAREST; mode <= YOKE_CUBIC; mode++)
			for (int aa = 0; aa < (mode >= YOKE_LINEAR ? 2 : 1); aa++) {
				struct yoke_interpolate o = { .size = sizeof o,
							      .mode = mode,
							      .antialias = aa };
				const int axes = mode == YOKE_CUBIC || aa ? 2 : 1 + k % 3;
				for (int i = 0; i < axes; i++)
					o.scale[i] = scales[k][i];
				good = interpolation(axes, (int64_t[]){ 6, 7, 4 }, NULL, &o,
						     yoke_f64) &&
				       good;
			}
	ok(good, "interpolation by scales, %s", how);
}

// ---- samples at positions ----

struct grid {
	int axes, mode, padding, align;
	int64_t image[3], to[3];
	int64_t channels;
};

static double mirror(double x, double lo, double hi)
{
	const double min = lo / 2, span = (hi - lo) / 2;
	if (span <= 0)
		return 0;
	x = fabs(x - min);
	const double flips = floor(x / span), rest = x - flips * span;
	return fmod(flips, 2) ? span - rest + min : rest + min;
}

static double padded(const struct grid *g, double x, int64_t n)
{
	if (g->padding == YOKE_PADDING_ZEROS)
		return x;
	if (g->padding == YOKE_PADDING_REFLECTION)
		x = g->align ? mirror(x, 0, 2 * (double)(n - 1)) : mirror(x, -1, 2 * (double)n - 1);
	return fmin(fmax(x, 0), (double)(n - 1));
}

// The weights w[n] of an axis at position p.
static void at_axis(const struct grid *g, double p, int64_t n, double *w)
{
	memset(w, 0, (size_t)n * sizeof *w);
	double x = g->align ? (p + 1) / 2 * (double)(n - 1) : ((p + 1) * (double)n - 1) / 2;
	if (g->mode != YOKE_CUBIC)
		x = padded(g, x, n);
	if (g->mode == YOKE_NEAREST) {
		const double at = nearbyint(x);
		if (at >= 0 && at < (double)n)
			w[(int64_t)at] = 1;
		return;
	}
	const bool cubic = g->mode == YOKE_CUBIC;
	const double lo = floor(x);
	for (int t = cubic ? -1 : 0; t <= (cubic ? 2 : 1); t++) {
		const double at = cubic ? nearbyint(padded(g, lo + t, n)) : lo + t;
		if (at >= 0 && at < (double)n)
			w[(int64_t)at] += cubic ? keys(x - lo - t, -0.75) : tent(x - lo - t);
	}
}

// Two images at the positions.  back: NULL, or the gradient by x of the products
// with cot.
static void samples(const struct grid *g, const double *x, const double *at, double *y,
		    const double *cot, double *back)
{
	const int64_t in = product(g->axes, g->image), out = product(g->axes, g->to);
	double w[3][LINE];
	for (int64_t i = 0; i < 2 * out; i++) {
		for (int d = 0; d < g->axes; d++) // the first component belongs to the last axis
			at_axis(g, at[i * g->axes + g->axes - 1 - d], g->image[d], w[d]);
		for (int64_t c = 0; c < g->channels; c++) {
			const int64_t at_channel = i / out * g->channels + c,
				      plane = at_channel * in, to = at_channel * out + i % out;
			y[to] = 0;
			for (int64_t j = 0; j < in; j++) {
				double by = 1;
				for (int64_t d = g->axes - 1, k = j; d >= 0; k /= g->image[d--])
					by *= w[d][k % g->image[d]];
				y[to] += by * x[plane + j];
				if (back)
					back[plane + j] += by * cot[to];
			}
		}
	}
}

static bool sampled(const struct grid *g, int dtype, bool differentiate)
{
	static double x[MAX], at[MAX], y[MAX], cot[MAX], back[MAX], dgrid[MAX], hi[MAX], lo[MAX];
	int64_t dx[5] = { 2, g->channels }, dg[5] = { 2 }, dy[5] = { 2, g->channels };
	char what[160];
	for (int i = 0; i < g->axes; i++) {
		dx[2 + i] = g->image[i];
		dg[1 + i] = dy[2 + i] = g->to[i];
	}
	dg[1 + g->axes] = g->axes;
	const int rank = 2 + g->axes;
	const int64_t nx = product(rank, dx), ng = product(rank, dg), ny = product(rank, dy);
	draw(yoke_f32, x, nx, -1, 1);
	draw(yoke_f32, at, ng, -1.6, 1.6);
	draw(yoke_f32, cot, ny, -1, 1);
	memset(back, 0, sizeof back);
	samples(g, x, at, y, cot, back);
	for (int64_t i = 0; i < ng && differentiate; i++) {
		const double h = 1e-7, was = at[i];
		dgrid[i] = 0;
		at[i] = was + h;
		samples(g, x, at, hi, NULL, NULL);
		at[i] = was - h;
		samples(g, x, at, lo, NULL, NULL);
		at[i] = was;
		for (int64_t k = 0; k < ny; k++)
			dgrid[i] += cot[k] * (hi[k] - lo[k]) / (2 * h);
	}
	snprintf(what, sizeof what, "%d axes, mode %d, padding %d, align %d, %s", g->axes, g->mode,
		 g->padding, g->align, yoke_dtype_name(dtype));
	yoke_scope *s = yoke_scope_begin("grid");
	const double tol = dtype == yoke_f64 ? 1e-12 : 2e-5;
	yoke_tensor *p[2] = { tensor(dtype, rank, dx, x), tensor(dtype, rank, dg, at) }, *d[2];
	yoke_tensor *t = yoke_grid_sample(p[0], p[1], g->mode, g->padding, g->align);
	bool good = agrees(t, y, ny, tol, what);
	yoke_grad(yoke_sum(yoke_mul(t, tensor(dtype, rank, dy, cot)), YOKE_ALL),
		  differentiate ? 2 : 1, p, d);
	good = agrees(d[0], back, nx, tol, what) && good;
	if (differentiate)
		good = agrees(d[1], dgrid, ng, 1e-5, what) && good;
	yoke_scope_end(s);
	return good;
}

static void test_samples(const char *how)
{
	bool good = true;
	for (int axes = 2; axes <= 3; axes++)
		for (int mode = YOKE_NEAREST; mode <= YOKE_CUBIC; mode++)
			for (int padding = 0; padding < 3; padding++)
				for (int align = 0; align < 2; align++) {
					if (mode == YOKE_NEAREST_EXACT ||
					    (mode == YOKE_CUBIC && axes == 3))
						continue;
					struct grid g = { axes,  mode,        padding,
							  align, { 5, 4, 3 }, { 3, 5, 2 }, 2 };
					good = sampled(&g, yoke_f64, mode != YOKE_NEAREST) && good;
					g.image[0] = 1;
					good = sampled(&g, yoke_f32, false) && good;
				}
	// so many channels and positions that kernels may transpose the image
	for (int mode = YOKE_NEAREST; mode <= YOKE_CUBIC; mode++)
		for (int channels = 19; channels <= 32; channels += 13) {
			const struct grid g = { 2, mode, YOKE_PADDING_ZEROS, 0, { 9, 7 }, { 13, 6 },
						channels };
			good = (mode == YOKE_NEAREST_EXACT || sampled(&g, yoke_f32, false)) && good;
		}
	ok(good, "grid_sample and its gradients by the image and the grid, %s", how);
	const double nan[] = { NAN, 0, 0, 0 }, x[] = { 1, 2, 3, 4 }, want[] = { 0, 2.5 };
	yoke_scope *s = yoke_scope_begin("NaN");
	ok(agrees(yoke_grid_sample(tensor(yoke_f64, 4, (int64_t[]){ 1, 1, 2, 2 }, x),
				   tensor(yoke_f64, 4, (int64_t[]){ 1, 1, 2, 2 }, nan), YOKE_LINEAR,
				   YOKE_PADDING_ZEROS, 0),
		  want, 2, 0, "NaN"),
	   "a position that is NaN is outside, %s", how);
	yoke_scope_end(s);
}

static void test_affine(void)
{
	double theta[2 * 3 * 4], want[MAX];
	bool good = true;
	for (int n = 2; n <= 3; n++)
		for (int align = 0; align < 2; align++) {
			const int64_t to[] = { 3, n == 2 ? 1 : 4, 5 }, dt[] = { 2, n, n + 1 },
				      all = product(n, to);
			draw(yoke_f32, theta, 2 * n * (n + 1), -1, 1);
			for (int64_t i = 0; i < 2 * all; i++) {
				double at[4] = { 0 };
				for (int64_t d = n - 1, k = i; d >= 0; k /= to[d--]) {
					const double c = (double)(k % to[d]), size = (double)to[d];
					if (!align)
						at[n - 1 - d] = (2 * c + 1) / size - 1;
					else if (to[d] > 1)
						at[n - 1 - d] = 2 * c / (size - 1) - 1;
				}
				at[n] = 1;
				for (int64_t r = 0; r < n; r++) {
					want[i * n + r] = 0;
					for (int64_t k = 0; k <= n; k++)
						want[i * n + r] +=
							theta[(i / all * n + r) * (n + 1) + k] *
							at[k];
				}
			}
			yoke_scope *s = yoke_scope_begin("affine");
			good = agrees(yoke_affine_grid(tensor(yoke_f64, 3, dt, theta), n, to,
						       align),
				      want, 2 * all * n, 1e-13, "affine") &&
			       good;
			yoke_scope_end(s);
		}
	ok(good, "affine grids of two and three axes");
}

static void refused(int code, const yoke_tensor *got, const char *word)
{
	ok(!got && yoke_error_code() == code && strstr(yoke_error(), word), "'%s': %s", word,
	   yoke_error());
	yoke_error_clear();
}

static void test_refusals(void)
{
	yoke_scope *s = yoke_scope_begin("bad");
	yoke_tensor *x = yoke_full(yoke_f32, 4, (int64_t[]){ 2, 3, 4, 5 }, 1),
		    *grid = yoke_full(yoke_f32, 4, (int64_t[]){ 2, 2, 2, 2 }, 0);
	struct yoke_interpolate o = { .size = sizeof o, .mode = 9 };
	refused(YOKE_EINVAL, yoke_interpolate(x, (int64_t[]){ 2, 2 }, &o), "mode");
	o.mode = YOKE_NEAREST, o.align_corners = 1;
	refused(YOKE_EINVAL, yoke_interpolate(x, (int64_t[]){ 2, 2 }, &o), "align_corners");
	o.align_corners = 0;
	refused(YOKE_ERANGE, yoke_interpolate(x, NULL, &o), "axis 2");
	refused(YOKE_ERANGE, yoke_interpolate(x, (int64_t[]){ 2, -1 }, &o), "axis 3");
	o.mode = YOKE_CUBIC;
	refused(YOKE_EINVAL,
		yoke_interpolate(yoke_reshape(x, 3, (int64_t[]){ 2, 3, 20 }), (int64_t[]){ 2 }, &o),
		"two axes");
	refused(YOKE_EDTYPE, yoke_interpolate(yoke_cast(x, yoke_i32), (int64_t[]){ 2, 2 }, &o),
		"i32");
	refused(YOKE_ESHAPE,
		yoke_grid_sample(x, yoke_reshape(grid, 3, (int64_t[]){ 2, 4, 2 }), YOKE_LINEAR, 0,
				 0),
		"[2,4,2]");
	refused(YOKE_EDTYPE, yoke_grid_sample(x, yoke_cast(grid, yoke_f64), YOKE_LINEAR, 0, 0),
		"f64");
	refused(YOKE_EINVAL, yoke_grid_sample(x, grid, YOKE_LINEAR, 3, 0), "padding 3");
	refused(YOKE_ESHAPE, yoke_affine_grid(x, 2, (int64_t[]){ 2, 2 }, 0), "[B,2,3]");
	yoke_scope_end(s);
}

int main(void)
{
	tap_seed();
	for (int named = 1; named >= 0; named--) {
		yoke_setting_set("plan.named", named ? "1" : "0");
		test_interpolation(named ? "by kernels" : "by decompositions");
		test_samples(named ? "by kernels" : "by decompositions");
	}
	yoke_setting_set("plan.named", "1");
	test_affine();
	test_refusals();
	return done();
}
