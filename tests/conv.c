// SPDX-License-Identifier: Apache-2.0
// Tests windows, convolutions, pools and resizing against float64 loops over their definitions,
// over combinations of stride, dilation, groups and padding: a random sample, or all with
// YOKE_TEST_LONG=1.
#include "config.h"

#include "../backends/cpu/host/frame.h"
#include "slope.h"

struct shape {
	int axes;
	int64_t batch, groups, channels, outputs; // per group: channels, outputs
	int64_t in[3], taps[3], out[3];
	struct yoke_conv_options o;
};

// ---- values ----

static double *random_values(int64_t n)
{
	double *v = malloc((size_t)n * sizeof *v + 1);
	draw(yoke_f32, v, n, -1, 1);
	return v;
}

static bool alike(yoke_tensor *t, const double *want, int rank, const int64_t *dims, double tol,
		  const char *what)
{
	bool good = yoke_rank(t) == rank;
	for (int i = 0; good && i < rank; i++)
		good = yoke_dim(t, i) == dims[i];
	if (!good)
		diag("%s: another shape, or %s", what, yoke_error());
	return good && agrees(t, want, product(rank, dims), tol, what);
}

// Errors are at most tol times the root of the mean square of `want`.
static bool normwise(yoke_tensor *t, const double *want, int rank, const int64_t *dims, double tol,
		     const char *what)
{
	const int64_t n = product(rank, dims);
	double *got = malloc((size_t)n * sizeof *got + 1), square = 0, error = 0, max = 0;

	for (int64_t i = 0; i < n; i++)
		got[i] = NAN;
	if (yoke_read(yoke_cast(t, yoke_f64), got, (size_t)n * sizeof *got) < 0)
		diag("%s: %s", what, yoke_error());
	for (int64_t i = 0; i < n; i++) {
		const double off = fabs(got[i] - want[i]);
		square += want[i] * want[i];
		error += off * off;
		max = off <= max ? max : off; // NaN, too
	}
	free(got);
	const double root = sqrt(square / (double)n);
	const bool good = max <= tol * root;
	if (!good)
		diag("%s: errors of %.2g on average and at most %.2g of the values' size", what,
		     sqrt(error / (double)n) / root, max / root);
	return good;
}

// ---- convolutions ----

static void dims_of(const struct shape *s, char which, int64_t *dims)
{
	const int64_t *spatial = which == 'w' ? s->taps : s->out;
	if (which == 'x')
		spatial = s->in;
	dims[0] = which == 'w' ? s->groups * s->outputs : s->batch;
	dims[1] =
		which == 'w' ? s->channels : s->groups * (which == 'x' ? s->channels : s->outputs);
	for (int i = 0; i < s->axes; i++)
		dims[2 + i] = spatial[i];
}

// Adds to the summed operand the terms that the definition computes from the other two: y from x
// and w, and so on.
static void reference(const struct shape *s, double *x, double *w, double *y, char which)
{
	enum { TAPS = 64 };
	const int64_t taps = product(s->axes, s->taps), out = product(s->axes, s->out),
		      plane = product(s->axes, s->in);
	int64_t size[3] = { 1, 1, 1 }, off[TAPS][3] = { 0 }; // the axes that are missing come first
	for (int d = 0; d < s->axes; d++)
		size[3 - s->axes + d] = s->in[d];
	for (int64_t t = 0; t < taps; t++)
		for (int64_t d = s->axes - 1, rest = t; d >= 0; rest /= s->taps[d--])
			off[t][3 - s->axes + d] = rest % s->taps[d] * s->o.dilation[d] - s->o.lo[d];
	for (int64_t n = 0; n < s->batch * s->groups * s->outputs * out; n++) {
		const int64_t b = n / out / s->outputs / s->groups,
			      o = n / out % (s->groups * s->outputs);
		int64_t at[3] = { 0 };
		for (int64_t d = s->axes - 1, rest = n % out; d >= 0; rest /= s->out[d--])
			at[3 - s->axes + d] = rest % s->out[d] * s->o.stride[d];
		for (int64_t k = 0; k < taps; k++) {
			const int64_t z = at[0] + off[k][0], i = at[1] + off[k][1],
				      j = at[2] + off[k][2];
			if (z < 0 || z >= size[0] || i < 0 || i >= size[1] || j < 0 || j >= size[2])
				continue;
			double *xp = x + (b * s->groups + o / s->outputs) * s->channels * plane +
				     (z * size[1] + i) * size[2] + j;
			double *wp = w + o * s->channels * taps + k;
			for (int64_t c = 0; c < s->channels; c++, xp += plane, wp += taps)
				if (which == 'y')
					y[n] += *xp * *wp;
				else if (which == 'x')
					*xp += y[n] * *wp;
				else
					*wp += *xp * y[n];
		}
	}
}

// norm: errors are compared with the size of the result as a whole.
static bool one(const struct shape *s, int dtype, bool norm)
{
	int64_t dx[5], dw[5], dy[5];
	char what[200];
	const int rank = 2 + s->axes;
	dims_of(s, 'x', dx);
	dims_of(s, 'w', dw);
	dims_of(s, 'y', dy);
	int at = snprintf(
		what, sizeof what,
		"%s, B %lld, C %lld, O %lld, groups %lld, axes of elements:taps,stride,dilation,lo,hi",
		yoke_dtype_name(dtype), (long long)s->batch, (long long)s->channels,
		(long long)s->outputs, (long long)s->groups);
	for (int i = 0; i < s->axes && at < (int)sizeof what; i++)
		at += snprintf(
			what + at, sizeof what - (size_t)at, " %lld:%lld,%lld,%lld,%lld,%lld",
			(long long)s->in[i], (long long)s->taps[i], (long long)s->o.stride[i],
			(long long)s->o.dilation[i], (long long)s->o.lo[i], (long long)s->o.hi[i]);
	const int64_t nx = product(rank, dx), nw = product(rank, dw), ny = product(rank, dy);
	double *x = random_values(nx), *w = random_values(nw), *g = random_values(ny);
	double *y = calloc((size_t)ny + 1, sizeof *y), *gx = calloc((size_t)nx + 1, sizeof *gx),
	       *gw = calloc((size_t)nw + 1, sizeof *gw);
	reference(s, x, w, y, 'y');
	reference(s, gx, w, g, 'x');
	reference(s, x, gw, g, 'w');
	yoke_scope *scope = yoke_scope_begin("conv");
	yoke_tensor *p[2] = { tensor(dtype, rank, dx, x), tensor(dtype, rank, dw, w) }, *got[2];
	yoke_tensor *out = yoke_conv(p[0], p[1], &s->o), *cot = tensor(dtype, rank, dy, g);
	const double tol = dtype == yoke_f64 ? 1e-12 : 1e-5, more = norm ? 1 : 4;
	bool (*const compare)(yoke_tensor *, const double *, int, const int64_t *, double,
			      const char *) = norm ? normwise : alike;
	bool good = compare(out, y, rank, dy, tol, what);
	yoke_grad(yoke_sum(yoke_mul(out, cot), YOKE_ALL), 2, p, got);
	good = compare(got[0], gx, rank, dx, tol * more, what) && good;
	good = compare(got[1], gw, rank, dw, tol * more, what) && good;
	// the transposed convolution, with as many elements as the operand had
	struct yoke_conv_options t = s->o;
	for (int i = 0; i < s->axes; i++)
		t.more[i] = s->in[i] - ((s->out[i] - 1) * t.stride[i] +
					(s->taps[i] - 1) * t.dilation[i] + 1 - t.lo[i] - t.hi[i]);
	good = compare(yoke_conv_transposed(cot, p[1], &t), gx, rank, dx, tol * more, what) && good;
	yoke_scope_end(scope);
	free(x), free(w), free(g), free(y), free(gx), free(gw);
	return good;
}

static struct shape shape_of(int axes, const int64_t *stride, const int64_t *dilation,
			     int64_t groups, const int64_t *lo, const int64_t *hi,
			     const int64_t *taps)
{
	static const int longest[] = { 0, 40, 12, 5 };
	struct shape s = { .axes = axes,
			   .batch = rnd_int(1, 3),
			   .groups = groups,
			   .channels = rnd_int(1, 4),
			   .outputs = rnd_int(1, 7),
			   .in = { 1, 1, 1 },
			   .taps = { 1, 1, 1 },
			   .out = { 1, 1, 1 },
			   .o = { .size = sizeof s.o, .groups = groups } };
	for (int i = 0; i < axes; i++) {
		s.taps[i] = taps[i];
		s.o.stride[i] = stride[i];
		s.o.dilation[i] = dilation[i];
		s.o.lo[i] = lo[i];
		s.o.hi[i] = hi[i];
		const int64_t span = (taps[i] - 1) * dilation[i] + 1, min = span - lo[i] - hi[i];
		s.in[i] = (min < 1 ? 1 : min) + rnd_int(0, longest[axes]);
		s.out[i] = (s.in[i] + lo[i] + hi[i] - span) / stride[i] + 1;
	}
	return s;
}

static void test_combinations(void)
{
	static const int64_t strides[][3] = { { 1, 1, 1 }, { 2, 2, 2 }, { 3, 1, 2 }, { 1, 4, 1 } };
	static const int64_t dilations[][3] = { { 1, 1, 1 }, { 2, 2, 1 }, { 1, 3, 2 } };
	static const int64_t los[][3] = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 0, 1 } };
	static const int64_t taps[][3] = { { 1, 1, 1 }, { 3, 3, 2 }, { 2, 5, 3 } };
	static const int64_t groups[] = { 1, 2, 3 };
	const bool all = getenv("YOKE_TEST_LONG") != NULL;
	const int dtypes[] = { yoke_f32, yoke_f64 };
	for (int d = 0; d < 2; d++)
		for (int axes = 1; axes <= 3; axes++) {
			bool good = true;
			int count = 0;
			for (int i = 0; i < 4 * 3 * 3 * 3 * 3 * 3; i++) {
				if (!all && rnd_int(0, 971) >= 20)
					continue;
				const struct shape s =
					shape_of(axes, strides[i % 4], dilations[i / 4 % 3],
						 groups[i / 12 % 3], los[i / 36 % 3],
						 los[i / 108 % 3], taps[i / 324]);
				// every second one by decomposition
				yoke_setting_set("plan.named", count % 2 ? "0" : "1");
				good = one(&s, dtypes[d], false) && good;
				count++;
			}
			yoke_setting_set("plan.named", "1");
			ok(good && count,
			   "%d convolutions of %d axes, gradients and transposed, %s", count, axes,
			   yoke_dtype_name(dtypes[d]));
		}
}

// Sizes beyond the point where products are split. Errors of such long sums are not those of their
// elements.
static void test_large(void)
{
	struct shape s = shape_of(2, (int64_t[]){ 1, 1 }, (int64_t[]){ 1, 1 }, 1,
				  (int64_t[]){ 1, 1 }, (int64_t[]){ 1, 1 }, (int64_t[]){ 3, 3 });
	s.batch = 2;
	s.channels = 43;
	s.outputs = 50;
	for (int i = 0; i < 2; i++)
		s.in[i] = s.out[i] = 17 + i;
	ok(one(&s, yoke_f32, true), "convolutions with many channels");
	struct shape t = shape_of(2, (int64_t[]){ 2, 2 }, (int64_t[]){ 1, 1 }, 1,
				  (int64_t[]){ 3, 3 }, (int64_t[]){ 3, 3 }, (int64_t[]){ 7, 7 });
	t.channels = 3;
	t.outputs = 20;
	for (int i = 0; i < 2; i++) {
		t.in[i] = 57 + i;
		t.out[i] = (t.in[i] + 6 - 7) / 2 + 1;
	}
	ok(one(&t, yoke_f32, true), "a large window with few channels");
	for (int stride = 1; stride <= 2; stride++) {
		const int64_t step[] = { stride, stride, stride }, unit[] = { 1, 1, 1 },
			      three[] = { 3, 3, 3 };
		struct shape v = shape_of(3, step, unit, 1, unit, unit, three);
		v.channels = 19;
		v.outputs = 33;
		for (int i = 0; i < 3; i++) {
			v.in[i] = 7 + 4 * i;
			v.out[i] = (v.in[i] - 1) / stride + 1;
		}
		ok(one(&v, yoke_f32, true), "volumes, stride %d", stride);
	}
}

// Few outputs, whose windows the CPU reads in place: rows that are divided, or that are close to
// each other, or far apart because of strides and dilations.
static void test_few_outputs(void)
{
	static const struct {
		int axes;
		int64_t in[2], step, dilation, groups;
	} shapes[] = {
		{ 1, { 512 }, 1, 1, 1 },    { 1, { 513 }, 1, 1, 2 },    { 1, { 600 }, 1, 3, 1 },
		{ 1, { 1025 }, 2, 1, 1 },   { 1, { 9001 }, 1, 1, 1 },   { 2, { 3, 601 }, 1, 1, 1 },
		{ 2, { 40, 41 }, 1, 1, 3 }, { 2, { 57, 58 }, 2, 1, 1 }, { 2, { 31, 33 }, 1, 2, 1 },
		{ 2, { 9, 130 }, 1, 1, 1 }, { 2, { 17, 96 }, 3, 1, 1 },
	};
	static const int64_t few[] = { 1, 2, 5, 7, 13, 16 };
	const int dtypes[] = { yoke_f32, yoke_f64 };
	for (int d = 0; d < 2; d++) {
		bool good = true;
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
			const int64_t step[] = { shapes[i].step, shapes[i].step },
				      dilation[] = { shapes[i].dilation, shapes[i].dilation },
				      one_[] = { 1, 1 }, taps[] = { 3, 3 };
			struct shape s = shape_of(shapes[i].axes, step, dilation, shapes[i].groups,
						  one_, one_, taps);
			s.batch = rnd_int(1, 2);
			s.outputs = few[rnd_int(0, 5)];
			s.channels = few[rnd_int(0, 5)];
			for (int k = 0; k < s.axes; k++) {
				const int64_t span = 2 * dilation[k] + 1;
				s.in[k] = shapes[i].in[k];
				s.out[k] = (s.in[k] + 2 - span) / step[k] + 1;
			}
			good = one(&s, dtypes[d], false) && good;
		}
		ok(good, "few outputs, %s", yoke_dtype_name(dtypes[d]));
	}
}

// Without a batch: the bits of a batch of one.
static void test_single(void)
{
	const int64_t dx[] = { 1, 3, 6, 7, 5 }, dw[] = { 3, 3, 2, 3, 2 };
	struct yoke_conv_options o = { .size = sizeof o, .stride = { 1, 2, 1 }, .lo = { 1, 1, 1 } };
	struct yoke_pool_options p = { .size = sizeof p, .window = { 2, 3, 2 }, .ceil_mode = 1 };
	bool good = true;
	for (int axes = 1; axes <= 3; axes++) {
		yoke_scope *s = yoke_scope_begin("single");
		double *vx = random_values(product(2 + axes, dx)),
		       *vw = random_values(product(2 + axes, dw)), *v[2];
		yoke_tensor *x = tensor(yoke_f32, 2 + axes, dx, vx),
			    *one_x = yoke_reshape(x, 1 + axes, dx + 1);
		yoke_tensor *w = tensor(yoke_f32, 2 + axes, dw, vw);
		p.axes = axes;
		yoke_tensor *y[][2] = { { yoke_conv(x, w, &o), yoke_conv(one_x, w, &o) },
					{ yoke_conv_transposed(x, w, &o),
					  yoke_conv_transposed(one_x, w, &o) },
					{ yoke_max_pool(x, &p), yoke_max_pool(one_x, &p) },
					{ yoke_mean_pool(x, &p), yoke_mean_pool(one_x, &p) } };
		for (int i = 0; i < 4; i++) {
			const int64_t n = yoke_count(y[i][0]);
			good = good && yoke_rank(y[i][1]) == 1 + axes && yoke_count(y[i][1]) == n;
			for (int k = 0; k < 2 && good; k++) {
				v[k] = malloc((size_t)n * sizeof(double));
				good = yoke_read(yoke_cast(y[i][k], yoke_f64), v[k],
						 (size_t)n * sizeof(double)) == 0;
			}
			if (!good) {
				diag("%d axes, op %d: %s", axes, i, yoke_error());
				break;
			}
			good = memcmp(v[0], v[1], (size_t)n * sizeof(double)) == 0;
			free(v[0]), free(v[1]);
		}
		yoke_scope_end(s);
		free(vx), free(vw);
	}
	ok(good, "operands without a batch");
}

// 3x3 taps without stride and many channels: on the CPU computed by Winograd's algorithm, in tiles
// of 4x4 outputs.
static void test_tiles(void)
{
	static const int64_t sizes[][2] = { { 7, 7 }, { 8, 12 }, { 13, 5 }, { 9, 31 }, { 99, 93 } };
	static const int64_t pads[][2] = { { 1, 1 }, { 0, 2 }, { 2, 0 }, { 0, 0 } };
	static const int64_t channels[][2] = {
		{ 48, 50 }, { 49, 79 }, { 65, 51 }, { 129, 192 }, { 64, 49 }
	};
	bool good = true;
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < (i < 3 ? 4 : 1); k++) {
			const int64_t unit[] = { 1, 1 }, *pad = pads[k], taps[] = { 3, 3 };
			struct shape s = shape_of(2, unit, unit, 1, pad,
						  (int64_t[]){ pad[1], pad[0] }, taps);
			s.batch = i < 3 ? 3 : 1;
			s.channels = channels[i][0];
			s.outputs = channels[i][1];
			for (int a = 0; a < 2; a++) {
				// the last is transformed in several chunks
				s.in[a] = sizes[i < 3 ? (i + k) % 4 : i][a];
				s.out[a] = s.in[a] + s.o.lo[a] + s.o.hi[a] - 2;
			}
			good = one(&s, yoke_f32, true) && good;
		}
	ok(good, "3x3 windows, gradients and transposed, odd sizes and many channels, f32");
}

// y, and the gradients by x and w, of x [2,C,H,W] and w [O,C,K,K], one after the other.
static float *results(const int64_t *dx, const int64_t *dw, const struct yoke_conv_options *o,
		      const float *values, int64_t *n)
{
	yoke_scope *scope = yoke_scope_begin("threads");
	yoke_tensor *p[2] = { yoke_from(yoke_f32, 4, dx, values),
			      yoke_from(yoke_f32, 4, dw, values) },
		    *t[3];
	t[0] = yoke_conv(p[0], p[1], o);
	yoke_grad(yoke_sum(yoke_square(t[0]), YOKE_ALL), 2, p, t + 1);
	const int64_t sizes[3] = { yoke_count(t[0]), product(4, dx), product(4, dw) };
	float *to = malloc((size_t)(sizes[0] + sizes[1] + sizes[2]) * sizeof *to + 1);
	*n = 0;
	for (int i = 0; i < 3; *n += sizes[i++])
		if (yoke_read(t[i], to + *n, (size_t)sizes[i] * sizeof *to) < 0)
			diag("%s", yoke_error());
	yoke_scope_end(scope);
	return to;
}

static void test_threads(void)
{
	static const int64_t dw[][4] = { { 64, 64, 3, 3 },
					 { 160, 192, 3, 3 },
					 { 40, 8, 1, 1 },
					 { 64, 3, 7, 7 },
					 { 24, 40, 3, 3 } };
	static const int64_t side[] = { 53, 9, 31, 40, 27 }, stride[] = { 1, 1, 1, 2, 2 };
	bool same = true;
	for (int i = 0; i < 5; i++) {
		const int64_t dx[] = { 2, dw[i][1], side[i], side[i] },
			      values = product(4, dx) + product(4, dw[i]);
		const struct yoke_conv_options o = { .size = sizeof o,
						     .stride = { stride[i], stride[i] },
						     .lo = { 1, 1 },
						     .hi = { 1, 1 } };
		float *v = malloc((size_t)values * sizeof *v), *got[2];
		int64_t n;
		for (int64_t k = 0; k < values; k++)
			v[k] = (float)rnd_real(-1, 1);
		for (int limit = 0; limit < 2; limit++) {
			yk_team_limit(!limit); // 1, then all
			got[limit] = results(dx, dw[i], &o, v, &n);
		}
		if (memcmp(got[0], got[1], (size_t)n * sizeof **got)) {
			diag("convolution %d differs", i);
			same = false;
		}
		free(v), free(got[0]), free(got[1]);
	}
	ok(same, "one thread gives the bits of several: convolutions and gradients");
}

// ---- windows, pools ----

static void test_window(void)
{
	enum { N = 3 * 11 * 2 };
	double x[N], want[256], cot[256], back[N] = { 0 };
	const int64_t dims[] = { 3, 11, 2 }, size = 3, stride = 2, dilation = 2,
		      n = (11 - 4 - 1) / 2 + 1;
	const int64_t to[] = { 3, n, 2, size };
	for (int i = 0; i < N; i++)
		x[i] = rnd_real(-1, 1);
	for (int i = 0; i < 3 * n * 2 * size; i++) {
		const int64_t k = i % size, c = i / size % 2, q = i / size / 2 % n,
			      b = i / size / 2 / n;
		cot[i] = rnd_real(-1, 1);
		want[i] = x[(b * 11 + q * stride + k * dilation) * 2 + c];
		back[(b * 11 + q * stride + k * dilation) * 2 + c] += cot[i];
	}
	yoke_scope *s = yoke_scope_begin("window");
	yoke_tensor *t = tensor(yoke_f64, 3, dims, x), *g;
	yoke_tensor *w = yoke_window(t, 1, size, stride, dilation);
	ok(alike(w, want, 4, to, 0, "window"), "extracted windows equal the loop");
	yoke_grad(yoke_sum(yoke_mul(w, tensor(yoke_f64, 4, to, cot)), YOKE_ALL), 1, &t, &g);
	ok(alike(g, back, 3, dims, 1e-14, "its gradient"), "overlapping windows add up");
	yoke_scope_end(s);
}

// Windows along an axis of n elements; to: adaptive, number of outputs; counted: the elements of
// the axis and its padding that the mean counts, 0: those of the axis.
struct cut {
	int64_t n, out, lo, size, stride, dilation, to, counted;
};

// Element k of window i; -1: outside the axis.
static int64_t element(const struct cut *c, int64_t i, int64_t k)
{
	if (c->to) {
		const int64_t start = i * c->n / c->to, end = ((i + 1) * c->n + c->to - 1) / c->to;
		return start + k < end ? start + k : -1;
	}
	const int64_t at = i * c->stride + k * c->dilation - c->lo;
	return k < c->size && at >= 0 && at < c->n ? at : -1;
}

// Number of elements of window i that the mean counts.
static double counted(const struct cut *c, int64_t i)
{
	int64_t n = 0;
	for (int64_t k = 0; k < c->n || k < c->size; k++)
		n += c->counted ? k < c->size && i * c->stride + k * c->dilation < c->counted :
				  element(c, i, k) >= 0;
	return (double)n;
}

static bool pool(yoke_tensor *(*pooled)(yoke_tensor *, const void *), const void *arg,
		 const struct cut *cut, int axes, bool mean, const char *what)
{
	int64_t dims[5] = { 2, 3 }, to[5] = { 2, 3 }, span[3];
	for (int d = 0; d < axes; d++) {
		dims[2 + d] = cut[d].n;
		to[2 + d] = cut[d].out;
		span[d] = cut[d].to ? cut[d].n : cut[d].size;
	}
	const int64_t n = product(2 + axes, dims), m = product(2 + axes, to),
		      plane = product(axes, dims + 2);
	const int64_t taps = product(axes, span), outs = product(axes, to + 2);
	double *x = random_values(n), *cot = random_values(m), *y = calloc((size_t)m, sizeof *y),
	       *back = calloc((size_t)n, sizeof *back);
	for (int64_t i = 0; i < m; i++) {
		double sum = 0, max = -INFINITY, count = 1, ties = 0;
		for (int pass = 0; pass < 2; pass++)
			for (int64_t k = 0; k < taps; k++) {
				int64_t p = i % outs, tap = k, at = 0, stride = 1;
				bool inside = true;
				for (int d = axes - 1; d >= 0; d--) {
					const int64_t e =
						element(&cut[d], p % to[2 + d], tap % span[d]);
					inside &= e >= 0;
					count *= pass || k ? 1 : counted(&cut[d], p % to[2 + d]);
					at += e * stride;
					stride *= dims[2 + d];
					p /= to[2 + d];
					tap /= span[d];
				}
				if (!inside)
					continue;
				at += i / outs * plane;
				if (pass && mean)
					back[at] += cot[i] / count;
				else if (pass)
					back[at] += x[at] == max ? cot[i] / ties : 0;
				if (pass)
					continue;
				sum += x[at];
				ties = x[at] > max ? 1 : ties + (x[at] == max);
				max = fmax(max, x[at]);
			}
		y[i] = mean ? sum / count : max;
	}
	yoke_scope *s = yoke_scope_begin("pool");
	yoke_tensor *t = tensor(yoke_f64, 2 + axes, dims, x), *g, *out = pooled(t, arg);
	bool good = alike(out, y, 2 + axes, to, 1e-13, what);
	yoke_grad(yoke_sum(yoke_mul(out, tensor(yoke_f64, 2 + axes, to, cot)), YOKE_ALL), 1, &t,
		  &g);
	good = alike(g, back, 2 + axes, dims, 1e-13, what) && good;
	yoke_scope_end(s);
	free(x), free(cot), free(y), free(back);
	return good;
}

static yoke_tensor *max_pool(yoke_tensor *x, const void *o) { return yoke_max_pool(x, o); }
static yoke_tensor *mean_pool(yoke_tensor *x, const void *o) { return yoke_mean_pool(x, o); }
static yoke_tensor *adaptive_max(yoke_tensor *x, const void *to)
{
	return yoke_adaptive_max_pool(x, to);
}
static yoke_tensor *adaptive_mean(yoke_tensor *x, const void *to)
{
	return yoke_adaptive_mean_pool(x, to);
}

static void test_pools(void)
{
	bool good = true;
	for (int i = 0; i < 12; i++) {
		struct yoke_pool_options o = { .size = sizeof o,
					       .ceil_mode = i % 4 == 1,
					       .count_include_pad = i % 4 == 2 };
		const int axes = 1 + i % 3;
		struct cut c[3];
		for (int k = 0; k < axes; k++) {
			const int64_t n = axes == 3 ? rnd_int(5, 8) : rnd_int(7, 12);
			o.window[k] = rnd_int(2, 3);
			o.stride[k] = rnd_int(0, 3);
			o.dilation[k] = i > 8 ? 2 : 0;
			o.lo[k] = rnd_int(0, 1);
			o.hi[k] = rnd_int(0, 1);
			c[k] = (struct cut){ n,
					     0,
					     o.lo[k],
					     o.window[k],
					     o.stride[k] ? o.stride[k] : o.window[k],
					     o.dilation[k] ? 2 : 1,
					     0,
					     o.count_include_pad ? n + o.lo[k] + o.hi[k] : 0 };
			const int64_t all =
				n + o.lo[k] + o.hi[k] - (c[k].size - 1) * c[k].dilation - 1;
			c[k].out = all / c[k].stride + 1;
			if (o.ceil_mode && all % c[k].stride &&
			    c[k].out * c[k].stride < n + o.lo[k])
				c[k].out++;
		}
		good = pool(max_pool, &o, c, axes, false, "max pool") &&
		       pool(mean_pool, &o, c, axes, true, "mean pool") && good;
	}
	ok(good, "pools and their gradients");
	good = true;
	static const int64_t sizes[][6] = { { 8, 6, 4, 4, 3, 2 },
					    { 7, 9, 3, 3, 4, 2 },
					    { 5, 10, 4, 7, 1, 3 },
					    { 6, 11, 7, 3, 5, 4 } };
	for (int i = 0; i < 12; i++) {
		const int64_t *z = sizes[i / 3];
		struct cut c[3];
		for (int k = 0; k < 3; k++)
			c[k] = (struct cut){ .n = z[k], .out = z[3 + k], .to = z[3 + k] };
		good = pool(adaptive_max, z + 3, c, 1 + i % 3, false, "adaptive max pool") &&
		       pool(adaptive_mean, z + 3, c, 1 + i % 3, true, "adaptive mean pool") && good;
	}
	ok(good, "adaptive pools and their gradients");
	double x[] = { 1, 3, 3, 2, 3, 0 }, want[6] = { 0, 0.5, 0.5, 0, 1, 0 };
	yoke_scope *s = yoke_scope_begin("ties");
	yoke_tensor *t = tensor(yoke_f64, 3, (int64_t[]){ 1, 1, 6 }, x), *g;
	yoke_grad(yoke_sum(yoke_max_pool(t,
					 &(struct yoke_pool_options){
						 .size = sizeof(struct yoke_pool_options),
						 .window = { 3 } }),
			   YOKE_ALL),
		  1, &t, &g);
	ok(alike(g, want, 3, (int64_t[]){ 1, 1, 6 }, 0, "ties"), "equal maxima share the gradient");
	yoke_scope_end(s);
}

// ---- resizing ----

static void weights_of(int64_t n, int64_t to, int64_t i, bool smooth, int64_t *at, double *share)
{
	if (!smooth) {
		at[0] = at[1] = i * n / to;
		share[0] = 1, share[1] = 0;
		return;
	}
	double p = ((double)i + 0.5) * (double)n / (double)to - 0.5;
	p = p < 0 ? 0 : p;
	at[0] = (int64_t)p;
	at[1] = at[0] + 1 < n ? at[0] + 1 : n - 1;
	share[1] = p - (double)at[0];
	share[0] = 1 - share[1];
}

static void test_resize(void)
{
	static const int64_t sizes[][4] = {
		{ 4, 5, 8, 15 }, { 7, 6, 5, 9 }, { 5, 1, 5, 4 }, { 9, 8, 3, 2 }
	};
	for (int smooth = 0; smooth < 2; smooth++) {
		bool good = true;
		for (int i = 0; i < 4; i++) {
			const int64_t *z = sizes[i], dims[] = { 2, 2, z[0], z[1] },
				      to[] = { 2, 2, z[2], z[3] };
			double *x = random_values(4 * z[0] * z[1]),
			       *cot = random_values(4 * z[2] * z[3]);
			double *y = calloc((size_t)(4 * z[2] * z[3]), sizeof *y),
			       *back = calloc((size_t)(4 * z[0] * z[1]), sizeof *back);
			for (int64_t k = 0; k < 4 * z[2] * z[3]; k++)
				for (int q = 0; q < 4; q++) {
					int64_t r[2], c[2];
					double rs[2], cs[2];
					weights_of(z[0], z[2], k / z[3] % z[2], smooth, r, rs);
					weights_of(z[1], z[3], k % z[3], smooth, c, cs);
					const int64_t from =
						(k / z[3] / z[2] * z[0] + r[q / 2]) * z[1] +
						c[q % 2];
					y[k] += x[from] * rs[q / 2] * cs[q % 2];
					back[from] += cot[k] * rs[q / 2] * cs[q % 2];
				}
			yoke_scope *s = yoke_scope_begin("resize");
			yoke_tensor *t = tensor(yoke_f64, 4, dims, x), *g,
				    *out = yoke_resize(t, z + 2, smooth);
			good = alike(out, y, 4, to, 1e-13, "resize") && good;
			yoke_grad(yoke_sum(yoke_mul(out, tensor(yoke_f64, 4, to, cot)), YOKE_ALL),
				  1, &t, &g);
			good = alike(g, back, 4, dims, 1e-13, "gradient of resize") && good;
			yoke_scope_end(s);
			free(x), free(cot), free(y), free(back);
		}
		ok(good, "%s resizing and its gradient", smooth ? "bilinear" : "nearest");
	}
}

// ---- what is refused ----

static void refused(int code, const yoke_tensor *got, const char *word)
{
	ok(!got && yoke_error_code() == code && strstr(yoke_error(), word), "'%s': %s", word,
	   yoke_error());
	yoke_error_clear();
}

static void test_refusals(void)
{
	yoke_scope *s = yoke_scope_begin("bad");
	const int64_t dx[] = { 2, 4, 5, 5 }, dw[] = { 6, 4, 3, 3 };
	yoke_tensor *x = yoke_full(yoke_f32, 4, dx, 1), *w = yoke_full(yoke_f32, 4, dw, 1);
	struct yoke_conv_options o = { .size = sizeof o };
	struct yoke_pool_options p = { .size = sizeof p };
	o.groups = 3;
	refused(YOKE_ESHAPE, yoke_conv(x, w, &o), "groups");
	o.groups = -1;
	refused(YOKE_ESHAPE, yoke_conv(x, w, &o), "groups");
	o.groups = 0, o.stride[1] = -1;
	refused(YOKE_ERANGE, yoke_conv(x, w, &o), "stride -1");
	o.stride[1] = 0, o.lo[0] = 65536;
	refused(YOKE_ERANGE, yoke_conv(x, w, &o), "lo 65536");
	o.lo[0] = 0, o.dilation[0] = 3;
	refused(YOKE_ESHAPE, yoke_conv(x, w, &o), "axis 2");
	o.dilation[0] = 0, o.more[1] = 1;
	refused(YOKE_ERANGE,
		yoke_conv_transposed(x, yoke_full(yoke_f32, 4, (int64_t[]){ 4, 3, 3, 3 }, 1), &o),
		"more 1");
	refused(YOKE_EDTYPE, yoke_conv(x, yoke_cast(w, yoke_f64), NULL), "f64");
	refused(YOKE_ESHAPE, yoke_conv(yoke_reshape(x, 2, (int64_t[]){ 8, 25 }), w, NULL),
		"takes [B,C,S..]");
	refused(YOKE_ERANGE, yoke_max_pool(x, &p), "window 0");
	p.window[0] = 2, p.window[1] = 6;
	refused(YOKE_ERANGE, yoke_mean_pool(x, &p), "windows of 6");
	refused(YOKE_ERANGE, yoke_window(x, 1, 5, 1, 1), "windows of 5");
	refused(YOKE_ERANGE, yoke_window(x, 1, 2, INT64_MAX, INT64_MAX), "windows of 2");
	refused(YOKE_ERANGE, yoke_adaptive_max_pool(x, (int64_t[]){ 2, 0 }), "axis 3");
	refused(YOKE_ERANGE, yoke_resize(x, (int64_t[]){ -1, 3 }, 1), "axis 2");
	refused(YOKE_EDTYPE, yoke_resize(yoke_cast(x, yoke_i32), dx, 1), "floating point");
	yoke_scope_end(s);
}

// Empty sums.
static void test_empty(void)
{
	yoke_scope *s = yoke_scope_begin("empty");
	float y[2 * 3 * 4];
	const int64_t dx[] = { 2, 0, 4 }, dw[] = { 3, 0, 1 };
	yoke_tensor *t =
		yoke_conv(yoke_full(yoke_f32, 3, dx, 0), yoke_full(yoke_f32, 3, dw, 0), NULL);
	bool good = yoke_read(t, y, sizeof y) == 0;
	for (int i = 0; i < 24; i++)
		good &= y[i] == 0;
	ok(good, "a sum over no channels is 0: %s", yoke_error());
	t = yoke_conv(yoke_full(yoke_f32, 3, (int64_t[]){ 0, 2, 4 }, 0),
		      yoke_full(yoke_f32, 3, (int64_t[]){ 3, 2, 2 }, 0), NULL);
	ok(yoke_count(t) == 0 && yoke_eval(1, &t) == 0, "a batch of none: %s", yoke_error());
	yoke_scope_end(s);
}

int main(void)
{
	tap_seed();
	test_window();
	yoke_setting_set("plan.named", "0"); // by decomposition
	test_window();
	test_pools();
	yoke_setting_set("plan.named", "1");
	test_combinations();
	test_large();
	test_few_outputs();
	test_tiles();
	test_threads();
	test_pools();
	test_single();
	test_resize();
	test_empty();
	test_refusals();
	return done();
}
