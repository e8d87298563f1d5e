// SPDX-License-Identifier: Apache-2.0
// Tests embedding bags, maximum pools with places and their inverse, running maxima with places,
// and windows as columns, against float64 loops; by kernels and by decompositions.
#include "config.h"

#include "slope.h"

enum { MAX = 4096 };

// ---- bags ----

enum { ROWS = 9, WIDTH = 5, BAGS = 6, IDS = 18 };

static bool bag(int mode, bool ragged, bool weighted, int64_t padding, bool last, int dtype,
		const char *what)
{
	static const int64_t begins[BAGS + 1] = { 0, 4, 4, 9, 10, 17, 18 };
	double w[ROWS * WIDTH], by[IDS], y[BAGS * WIDTH], cot[BAGS * WIDTH],
		dw[ROWS * WIDTH] = { 0 }, dby[IDS] = { 0 };
	int64_t ids[IDS];
	draw(yoke_f32, w, ROWS * WIDTH, -1, 1);
	draw(yoke_f32, by, IDS, -1, 1);
	draw(yoke_f32, cot, BAGS * WIDTH, -1, 1);
	for (int i = 0; i < IDS; i++)
		ids[i] = rnd_int(0, ROWS - 1);
	for (int b = 0; b < BAGS; b++)
		for (int c = 0; c < WIDTH; c++) {
			const int64_t begin = ragged ? begins[b] : b * (IDS / BAGS),
				      end = ragged ? begins[b + 1] : begin + IDS / BAGS;
			double sum = 0, max = -INFINITY, count = 0, ties = 0;
			for (int pass = 0; pass < 2; pass++)
				for (int64_t m = begin; m < end; m++) {
					const double v = w[ids[m] * WIDTH + c],
						     g = cot[b * WIDTH + c],
						     f = weighted ? by[m] : 1;
					if (ids[m] == padding)
						continue;
					if (!pass) {
						sum += f * v;
						count++;
						ties = v > max ? 1 : ties + (v == max);
						max = fmax(max, v);
						continue;
					}
					if (mode == YOKE_BAG_MAX)
						dw[ids[m] * WIDTH + c] += v == max ? g / ties : 0;
					else
						dw[ids[m] * WIDTH + c] +=
							mode == YOKE_BAG_MEAN ? g / count : g * f;
					dby[m] += g * v;
				}
			y[b * WIDTH + c] = mode == YOKE_BAG_MEAN && count ? sum / count : sum;
			if (mode == YOKE_BAG_MAX)
				y[b * WIDTH + c] = count ? max : 0;
		}
	yoke_scope *s = yoke_scope_begin("bag");
	const int64_t flat = IDS, offsets = BAGS + (last ? 1 : 0), square[] = { BAGS, IDS / BAGS };
	struct yoke_embedding_bag o = YOKE_EMBEDDING_BAG_INIT;
	yoke_tensor *p[2] = { tensor(dtype, 2, (int64_t[]){ ROWS, WIDTH }, w),
			      tensor(dtype, ragged ? 1 : 2, ragged ? &flat : square, by) };
	yoke_tensor *g[2];
	o.mode = mode;
	o.padding = padding;
	o.offsets = ragged ? yoke_from(yoke_i64, 1, &offsets, begins) : YOKE_NONE;
	o.weights = weighted ? p[1] : YOKE_NONE;
	o.include_last = last;
	const double tol = dtype == yoke_f64 ? 1e-13 : 2e-6;
	yoke_tensor *t = yoke_embedding_bag(
		p[0], yoke_from(yoke_i64, ragged ? 1 : 2, ragged ? &flat : square, ids), &o);
	bool good = agrees(t, y, BAGS * WIDTH, tol, what);
	yoke_grad(
		yoke_sum(yoke_mul(t, tensor(dtype, 2, (int64_t[]){ BAGS, WIDTH }, cot)), YOKE_ALL),
		weighted ? 2 : 1, p, g);
	good = agrees(g[0], dw, ROWS * WIDTH, tol, what) && good;
	if (weighted)
		good = agrees(g[1], dby, IDS, tol, what) && good;
	yoke_scope_end(s);
	return good;
}

static void test_bags(const char *how)
{
	static const char *const names[] = { "sums", "means", "maxima" };
	for (int mode = YOKE_BAG_SUM; mode <= YOKE_BAG_MAX; mode++) {
		bool good = true;
		for (int k = 0; k < 16; k++)
			if (!(k & 2) || mode == YOKE_BAG_SUM)
				good = bag(mode, k & 1, k & 2, k & 4 ? 3 : -1, (k & 1) && (k & 8),
					   k & 8 ? yoke_f32 : yoke_f64, names[mode]) &&
				       good;
		ok(good, "%s of bags, their gradients, %s", names[mode], how);
	}
	yoke_scope *s = yoke_scope_begin("bad");
	float got[2];
	const int64_t one = 1, bad = -1;
	yoke_tensor *w = yoke_full(yoke_f32, 2, (int64_t[]){ 3, 2 }, 1);
	yoke_tensor *t =
		yoke_embedding_bag(w, yoke_from(yoke_i64, 2, (int64_t[]){ 1, 1 }, &bad), NULL);
	const int err = yoke_read(t, got, sizeof got);
	ok(err == YOKE_ERANGE, "an id below 0 is refused, %s: %s", how, yoke_error());
	yoke_error_clear();
	t = yoke_embedding_bag(w, yoke_from(yoke_i64, 1, &one, &one), NULL);
	ok(!t && yoke_error_code() == YOKE_ESHAPE, "ids without offsets: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

// ---- pools ----

static bool pooled(int axes, const struct yoke_pool_options *o, int dtype)
{
	static double x[MAX], y[MAX], at[MAX], cot[MAX], back[MAX], up[MAX], dup[MAX];
	const int64_t n[] = { 7, 6, 5 };
	int64_t dims[5] = { 2, 2 }, to[5] = { 2, 2 }, plane = 1, outs = 1, taps = 1;
	for (int d = 0; d < axes; d++) {
		dims[2 + d] = n[d];
		to[2 + d] = (n[d] + o->lo[d] + o->hi[d] - o->window[d]) / o->stride[d] + 1;
		plane *= n[d];
		outs *= to[2 + d];
		taps *= o->window[d];
	}
	for (int64_t i = 0; i < 4 * plane; i++)
		x[i] = rnd_int(0, 30) ? (double)rnd_int(0, 9) : NAN;
	draw(yoke_f32, cot, 4 * outs, -1, 1);
	memset(back, 0, sizeof back);
	memset(up, 0, sizeof up);
	for (int64_t i = 0; i < 4 * outs; i++) {
		double max = -INFINITY, place = -1;
		for (int64_t k = 0; k < taps; k++) {
			int64_t p = i % outs, t = k, e = 0, stride = 1;
			bool in = true;
			for (int d = axes - 1; d >= 0; d--) {
				const int64_t c =
					p % to[2 + d] * o->stride[d] + t % o->window[d] - o->lo[d];
				in &= c >= 0 && c < n[d];
				e += c * stride;
				stride *= n[d];
				p /= to[2 + d];
				t /= o->window[d];
			}
			const double v = in ? x[i / outs * plane + e] : 0;
			if (in && (place < 0 || v > max || isnan(v))) {
				max = v;
				place = (double)e;
			}
		}
		y[i] = max;
		at[i] = place;
		back[i / outs * plane + (int64_t)place] += cot[i];
		up[i / outs * plane + (int64_t)place] = cot[i];
		dup[i] = x[i / outs * plane + (int64_t)place];
	}
	yoke_scope *s = yoke_scope_begin("pool");
	const double tol = dtype == yoke_f64 ? 1e-13 : 1e-6;
	yoke_tensor *t = tensor(dtype, 2 + axes, dims, x), *g, *places,
		    *got = yoke_max_pool_indices(t, o, &places);
	bool good =
		agrees(got, y, 4 * outs, 0, "maxima") && agrees(places, at, 4 * outs, 0, "places");
	yoke_tensor *c = tensor(dtype, 2 + axes, to, cot);
	yoke_grad(yoke_sum(yoke_mul(got, c), YOKE_ALL), 1, &t, &g);
	good = agrees(g, back, 4 * plane, tol, "gradient") && good;
	if (o->stride[0] == o->window[0] && !o->lo[0]) { // windows do not overlap
		yoke_tensor *u = yoke_max_unpool(c, places, dims + 2);
		good = agrees(u, up, 4 * plane, tol, "unpool") && good;
		yoke_grad(yoke_sum(yoke_mul(u, t), YOKE_ALL), 1, &c, &g);
		good = agrees(g, dup, 4 * outs, tol, "gradient of unpool") && good;
	}
	yoke_scope_end(s);
	return good;
}

static void test_pools(const char *how)
{
	bool good = true;
	for (int axes = 1; axes <= 3; axes++) {
		struct yoke_pool_options o = { .size = sizeof o,
					       .window = { 2, 3, 2 },
					       .stride = { 2, 3, 2 } };
		good = pooled(axes, &o, yoke_f64) && pooled(axes, &o, yoke_f32) && good;
		o = (struct yoke_pool_options){ .size = sizeof o,
						.window = { 3, 3, 3 },
						.stride = { 2, 1, 2 },
						.lo = { 1, 1, 1 },
						.hi = { 1, 0, 1 } };
		good = pooled(axes, &o, yoke_f64) && pooled(axes, &o, yoke_f32) && good;
	}
	ok(good, "maximum pools with places, their gradient and inverse, %s", how);
}

// ---- running maxima ----

static void test_running(const char *how)
{
	enum { A = 3, N = 37, B = 4 };
	static double x[A * N * B], y[A * N * B], at[A * N * B], cot[A * N * B], back[A * N * B];
	const int64_t dims[] = { A, N, B };
	bool good = true;
	for (int max = 0; max < 2; max++)
		for (int axis = 1; axis < 3; axis++) {
			const int64_t n = dims[axis], step = axis == 1 ? B : 1;
			for (int i = 0; i < A * N * B; i++)
				x[i] = rnd_int(0, 99) ? (double)rnd_int(0, 30) : NAN;
			draw(yoke_f32, cot, A * N * B, -1, 1);
			memset(back, 0, sizeof back);
			for (int64_t line = 0; line < A * N * B / n; line++) {
				const int64_t first =
					axis == 1 ? line / B * N * B + line % B : line * B;
				double best = x[first];
				int64_t place = 0;
				for (int64_t i = 0; i < n; i++) {
					const double v = x[first + i * step];
					if (isnan(v) || (max ? v >= best : v <= best)) {
						best = v;
						place = i;
					}
					y[first + i * step] = best;
					at[first + i * step] = (double)place;
					back[first + place * step] += cot[first + i * step];
				}
			}
			yoke_scope *s = yoke_scope_begin("running");
			yoke_tensor *t = tensor(yoke_f64, 3, dims, x), *g, *places;
			yoke_tensor *got = max ? yoke_cummax_indices(t, axis, &places) :
						 yoke_cummin_indices(t, axis, &places);
			good = agrees(got, y, A * N * B, 0, "running") &&
			       agrees(places, at, A * N * B, 0, "places") && good;
			yoke_grad(yoke_sum(yoke_mul(got, tensor(yoke_f64, 3, dims, cot)), YOKE_ALL),
				  1, &t, &g);
			good = agrees(g, back, A * N * B, 1e-13, "gradient") && good;
			yoke_scope_end(s);
		}
	ok(good, "running maxima and minima with places, and their gradients, %s", how);
}

// ---- columns ----

static void test_columns(const char *how)
{
	static double x[MAX], want[MAX], cot[MAX], back[MAX];
	bool good = true;
	for (int axes = 1; axes <= 3; axes++) {
		const struct yoke_pool_options o = { .size = sizeof o,
						     .window = { 3, 2, 2 },
						     .stride = { 1, 2, 1 },
						     .dilation = { 2, 1, 1 },
						     .lo = { 1, 0, 1 },
						     .hi = { 0, 1, 0 },
						     .axes = axes };
		const int64_t n[] = { 7, 5, 3 }, dilation[] = { 2, 1, 1 };
		int64_t dims[5] = { 2, 3 }, q[3], plane = 1, taps = 1, columns = 1;
		for (int d = 0; d < axes; d++) {
			dims[2 + d] = n[d];
			q[d] = (n[d] + o.lo[d] + o.hi[d] - (o.window[d] - 1) * dilation[d] - 1) /
				       o.stride[d] +
			       1;
			plane *= n[d];
			taps *= o.window[d];
			columns *= q[d];
		}
		const int64_t all = 6 * taps * columns;
		draw(yoke_f32, x, 6 * plane, -1, 1);
		draw(yoke_f32, cot, all, -1, 1);
		memset(back, 0, sizeof back);
		for (int64_t i = 0; i < all; i++) {
			int64_t p = i % columns, k = i / columns % taps, at = 0, stride = 1;
			bool in = true;
			for (int d = axes - 1; d >= 0; d--) {
				const int64_t c = p % q[d] * o.stride[d] +
						  k % o.window[d] * dilation[d] - o.lo[d];
				in &= c >= 0 && c < n[d];
				at += c * stride;
				stride *= n[d];
				p /= q[d];
				k /= o.window[d];
			}
			at += i / columns / taps * plane;
			want[i] = in ? x[at] : 0;
			if (in)
				back[at] += cot[i];
		}
		yoke_scope *s = yoke_scope_begin("columns");
		yoke_tensor *t = tensor(yoke_f64, 2 + axes, dims, x), *g,
			    *c = tensor(yoke_f64, 3, (int64_t[]){ 2, 3 * taps, columns }, cot);
		yoke_tensor *u = yoke_unfold(t, &o);
		good = agrees(u, want, all, 0, "unfold") && good;
		yoke_grad(yoke_sum(yoke_mul(u, c), YOKE_ALL), 1, &t, &g);
		good = agrees(g, back, 6 * plane, 1e-13, "gradient of unfold") && good;
		yoke_tensor *f = yoke_fold(c, n, &o);
		good = agrees(f, back, 6 * plane, 1e-13, "fold") && good;
		yoke_grad(yoke_sum(yoke_mul(f, t), YOKE_ALL), 1, &c, &g);
		good = agrees(g, want, all, 1e-13, "gradient of fold") && good;
		yoke_scope_end(s);
	}
	ok(good, "windows as columns, their sums, and the gradients, %s", how);
	yoke_scope *s = yoke_scope_begin("bad");
	const struct yoke_pool_options o = { .size = sizeof o, .window = { 2, 2 }, .axes = 2 };
	yoke_tensor *t = yoke_fold(yoke_full(yoke_f32, 3, (int64_t[]){ 1, 8, 5 }, 0),
				   (int64_t[]){ 4, 4 }, &o);
	ok(!t && yoke_error_code() == YOKE_ESHAPE, "another number of windows: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

static void test_many_axes(void)
{
	const int64_t dims[YOKE_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	const struct yoke_pool_options o = { .size = sizeof o,
					     .window = { 1, 1, 1 },
					     .axes = YOKE_MAX_RANK - 1 };
	yoke_scope *s = yoke_scope_begin("axes");
	const yoke_tensor *y = yoke_max_pool(yoke_full(yoke_f32, YOKE_MAX_RANK, dims, 1), &o);
	ok(!y && yoke_error_code() == YOKE_ESHAPE, "seven axes: %s", yoke_error());
	yoke_error_clear();
	yoke_scope_end(s);
}

int main(void)
{
	tap_seed();
	test_many_axes();
	for (int named = 1; named >= 0; named--) {
		const char *how = named ? "by kernels" : "by decompositions";
		yoke_setting_set("plan.named", named ? "1" : "0");
		test_bags(how);
		test_pools(how);
		test_running(how);
		test_columns(how);
	}
	return done();
}
