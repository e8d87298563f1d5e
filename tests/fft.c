// SPDX-License-Identifier: Apache-2.0
// Fourier transforms against the sums of their definitions in float64, along each axis, with each
// norm, by the kernel and by the decomposition; short-time transforms and their inverse; errors.
#include "config.h"

#include "tap.h"
#include "yoke-math.h"

enum { MAX = 6000 };

// to [m] = sum of x [n] exp(sign 2 pi i jk / n)
static void dft(const double *x, int64_t n, double *to, int64_t m, int sign)
{
	for (int64_t k = 0; k < m; k++) {
		double re = 0, im = 0;
		for (int64_t j = 0; j < n; j++) {
			const double a = sign * 2 * M_PI * (double)(j * k % n) / (double)n,
				     c = cos(a), s = sin(a);
			re += x[2 * j] * c - x[2 * j + 1] * s;
			im += x[2 * j] * s + x[2 * j + 1] * c;
		}
		to[2 * k] = re;
		to[2 * k + 1] = im;
	}
}

static double factor(int norm, bool inverse, double n)
{
	return norm == YOKE_FFT_ORTHO                 ? 1 / sqrt(n) :
	       (norm == YOKE_FFT_BACKWARD) == inverse ? 1 / n :
							1;
}

static void draw(double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = rnd_real(-1, 1);
}

// [2,n,3] along axis 1: every kind
static void test_length(int64_t n, int dtype, const char *by)
{
	static double x[MAX], got[MAX], want[MAX], row[MAX], spectrum[MAX];
	const int64_t half = n / 2 + 1;
	const double tol = (dtype == yoke_f64 ? 1e-14 : 3e-6) * sqrt((double)n);
	const int norm = (int)(n % 3);
	char what[100];
	yoke_scope *s = yoke_scope_begin("test");
	for (int kind = 0; kind < 4; kind++) { // fft, ifft, rfft, irfft
		const int64_t in = kind == 3 ? half : n, out = kind == 2 ? half : n;
		const int64_t dims[4] = { 2, in, 3, 2 };
		const int pairs = kind != 2, parts = kind != 3;
		draw(x, 2 * in * 3 * (1 + pairs));
		yoke_tensor *t = yoke_cast(yoke_from(yoke_f64, 3 + pairs, dims, x), dtype),
			    *y = NULL;
		switch (kind) {
		case 0: y = yoke_fft(t, 0, 1, norm); break;
		case 1: y = yoke_ifft(t, n, -2, norm); break;
		case 2: y = yoke_rfft(t, 0, -2, norm); break;
		case 3: y = yoke_irfft(t, n, 1, norm); break;
		}
		const size_t count = (size_t)(2 * out * 3 * (1 + parts));
		memset(got, 0xff, sizeof got);
		yoke_read(yoke_cast(y, yoke_f64), got, count * sizeof *got);
		for (int64_t r = 0; r < 6; r++) {
			const int64_t b = r / 3, c = r % 3;
			memset(row, 0, sizeof row);
			for (int64_t j = 0; j < in; j++)
				for (int p = 0; p <= pairs; p++)
					row[2 * j + p] =
						x[((b * in + j) * 3 + c) * (1 + pairs) + p];
			if (kind ==
			    3) { // the other half; the imaginary parts of the ends have no effect
				row[1] = 0;
				if (n % 2 == 0)
					row[n + 1] = 0;
				for (int64_t j = half; j < n; j++) {
					row[2 * j] = row[2 * (n - j)];
					row[2 * j + 1] = -row[2 * (n - j) + 1];
				}
			}
			dft(row, n, spectrum, out, kind % 2 ? 1 : -1);
			for (int64_t k = 0; k < out; k++)
				for (int p = 0; p < 1 + parts; p++)
					want[((b * out + k) * 3 + c) * (1 + parts) + p] =
						spectrum[2 * k + p] *
						factor(norm, kind % 2, (double)n);
		}
		snprintf(what, sizeof what, "%s: kind %d of %d, %s, norm %d", by, kind, (int)n,
			 yoke_dtype_name(dtype), norm);
		near(got, want, count, tol * factor(norm, kind % 2, (double)n), 1e-300 + 1, what);
	}
	yoke_scope_end(s);
}

// One transform of many elements: its inverse, and the elements of a wave
static void test_long(int64_t n, int dtype)
{
	double *x = malloc((size_t)(2 * n) * sizeof *x),
	       *got = malloc((size_t)(2 * n) * sizeof *got);
	double *want = calloc((size_t)(2 * n), sizeof *want);
	char what[100];
	const int64_t dims[2] = { n, 2 }, k0 = n / 3;
	yoke_scope *s = yoke_scope_begin("test");
	for (int64_t j = 0; j < n; j++) {
		const double a = 2 * M_PI * (double)(j * k0 % n) / (double)n;
		x[2 * j] = cos(a);
		x[2 * j + 1] = sin(a);
	}
	want[2 * k0] = 1;
	yoke_tensor *t = yoke_cast(yoke_from(yoke_f64, 2, dims, x), dtype),
		    *y = yoke_fft(t, 0, -1, YOKE_FFT_FORWARD);
	yoke_read(yoke_cast(y, yoke_f64), got, (size_t)(2 * n) * sizeof *got);
	snprintf(what, sizeof what, "a wave of %d, %s", (int)n, yoke_dtype_name(dtype));
	near(got, want, (size_t)(2 * n), dtype == yoke_f64 ? 1e-14 : 1e-6, 1, what);
	draw(x, 2 * n);
	t = yoke_cast(yoke_from(yoke_f64, 2, dims, x), dtype);
	y = yoke_ifft(yoke_fft(t, 0, 0, YOKE_FFT_ORTHO), 0, 0, YOKE_FFT_ORTHO);
	yoke_read(yoke_cast(y, yoke_f64), got, (size_t)(2 * n) * sizeof *got);
	snprintf(what, sizeof what, "there and back, %d, %s", (int)n, yoke_dtype_name(dtype));
	near(got, x, (size_t)(2 * n), dtype == yoke_f64 ? 1e-14 : 4e-6, 1, what);
	t = yoke_cast(yoke_from(yoke_f64, 1, &n, x), dtype);
	y = yoke_irfft(yoke_rfft(t, 0, 0, YOKE_FFT_BACKWARD), n, 0, YOKE_FFT_BACKWARD);
	yoke_read(yoke_cast(y, yoke_f64), got, (size_t)n * sizeof *got);
	snprintf(what, sizeof what, "real numbers there and back, %d, %s", (int)n,
		 yoke_dtype_name(dtype));
	near(got, x, (size_t)n, dtype == yoke_f64 ? 1e-14 : 4e-6, 1, what);
	yoke_scope_end(s);
	free(x);
	free(got);
	free(want);
}

// Several axes are one after the other; sizes are cut or extended.
static void test_axes(void)
{
	static double x[5 * 6 * 7], got[MAX], want[MAX];
	yoke_scope *s = yoke_scope_begin("test");
	draw(x, 5 * 6 * 7);
	yoke_tensor *t = yoke_from(yoke_f64, 3, (int64_t[]){ 5, 6, 7 }, x);
	yoke_tensor *a = yoke_rfftn(t, YOKE_AXIS(0) | YOKE_AXIS(2), YOKE_FFT_ORTHO);
	yoke_tensor *b = yoke_fft(yoke_rfft(t, 0, 2, YOKE_FFT_ORTHO), 0, 0, YOKE_FFT_ORTHO);
	yoke_read(a, got, 5 * 6 * 4 * 2 * sizeof *got);
	yoke_read(b, want, 5 * 6 * 4 * 2 * sizeof *got);
	near(got, want, 5 * 6 * 4 * 2, 1e-14, 1, "rfftn is rfft, then fft");
	yoke_read(yoke_irfftn(a, 7, YOKE_AXIS(0) | YOKE_AXIS(2), YOKE_FFT_ORTHO), got, sizeof x);
	near(got, x, 5 * 6 * 7, 1e-14, 1, "irfftn is its inverse");
	yoke_tensor *c = yoke_reshape(yoke_slice(t, 2, 0, 6, 1), 3, (int64_t[]){ 5, 18, 2 });
	yoke_read(yoke_ifftn(yoke_fftn(c, YOKE_ALL, 0), YOKE_ALL, 0), got, 180 * sizeof *got);
	yoke_read(c, want, 180 * sizeof *got);
	near(got, want, 180, 1e-14, 1, "ifftn is the inverse of fftn");
	yoke_read(yoke_rfft(t, 4, 2, 0), got, 5 * 6 * 3 * 2 * sizeof *got);
	yoke_read(yoke_rfft(yoke_slice(t, 2, 0, 4, 1), 0, 2, 0), want, 5 * 6 * 3 * 2 * sizeof *got);
	near(got, want, 5 * 6 * 3 * 2, 1e-14, 1, "a transform is cut to n elements");
	int64_t none[3] = { 0 }, more[3] = { 0, 3, 0 };
	yoke_read(yoke_rfft(t, 9, 1, 0), got, 5 * 5 * 7 * 2 * sizeof *got);
	yoke_read(yoke_rfft(yoke_pad(t, none, more, 0), 0, 1, 0), want,
		  5 * 5 * 7 * 2 * sizeof *got);
	near(got, want, 5 * 5 * 7 * 2, 1e-14, 1, "and extended by zeros");
	yoke_scope_end(s);
}

static void test_frames(void)
{
	enum { N = 200, SIZE = 32, HOP = 8 };
	static double x[3 * N], window[SIZE], got[MAX], want[MAX], row[2 * SIZE], y[2 * SIZE];
	const int64_t frames = 1 + N / HOP, half = SIZE / 2 + 1;
	yoke_scope *s = yoke_scope_begin("test");
	draw(x, 3 * N);
	for (int i = 0; i < SIZE; i++)
		window[i] = 0.5 - 0.5 * cos(2 * M_PI * i / SIZE);
	const struct yoke_stft_options o = { .size = sizeof o, .hop = HOP };
	yoke_tensor *t = yoke_from(yoke_f64, 2, (int64_t[]){ 3, N }, x),
		    *w = yoke_from(yoke_f64, 1, (int64_t[]){ SIZE }, window);
	yoke_tensor *z = yoke_stft(t, w, SIZE, &o);
	ok(yoke_rank(z) == 4 && yoke_dim(z, 1) == half && yoke_dim(z, 2) == frames,
	   "stft gives [3,%d,%d,2]", (int)half, (int)frames);
	yoke_read(yoke_slice(z, 0, 1, 2, 1), got, (size_t)(half * frames * 2) * sizeof *got);
	for (int64_t f = 0; f < frames; f++) {
		memset(row, 0, sizeof row);
		for (int64_t j = 0; j < SIZE; j++) {
			int64_t at = f * HOP + j - SIZE / 2;
			at = at < 0 ? -at : at >= N ? 2 * (N - 1) - at : at;
			row[2 * j] = x[N + at] * window[j];
		}
		dft(row, SIZE, y, half, -1);
		for (int64_t k = 0; k < half; k++)
			for (int p = 0; p < 2; p++)
				want[(k * frames + f) * 2 + p] = y[2 * k + p];
	}
	near(got, want, (size_t)(half * frames * 2), 1e-13, 1,
	     "stft is the transform of mirrored, windowed frames");
	yoke_read(yoke_istft(z, w, SIZE, N, &o), got, sizeof x);
	near(got, x, 3 * N, 1e-13, 1, "istft is its inverse");
	const struct yoke_stft_options plain = {
		.size = sizeof plain, .hop = HOP, .uncentered = 1, .normalized = 1
	};
	z = yoke_istft(yoke_stft(t, YOKE_NONE, SIZE, &plain), YOKE_NONE, SIZE, 0, &plain);
	yoke_read(z, got, sizeof x);
	ok(yoke_dim(z, 1) == N, "without centres the frames cover all");
	near(got, x, 3 * N, 1e-13, 1, "without centres and windows, too");
	yoke_scope_end(s);
}

static void fails(yoke_tensor *t, int code, const char *what)
{
	ok(!t && yoke_error_code() == code, "%s: %s", what, yoke_error());
	yoke_error_clear();
}

static void test_errors(void)
{
	yoke_scope *s = yoke_scope_begin("test");
	yoke_tensor *x = yoke_full(yoke_f32, 2, (int64_t[]){ 3, 4 }, 1),
		    *z = yoke_full(yoke_f32, 2, (int64_t[]){ 3, 2 }, 1);
	fails(yoke_fft(x, 0, 0, 0), YOKE_ESHAPE, "numbers that are no pairs");
	fails(yoke_fft(z, 0, 1, 0), YOKE_ESHAPE, "the axis of pairs");
	fails(yoke_fft(z, 0, 0, 3), YOKE_EINVAL, "no such norm");
	fails(yoke_rfft(x, -1, 0, 0), YOKE_ERANGE, "a size below 0");
	fails(yoke_rfft(yoke_cast(x, yoke_f16), 0, 0, 0), YOKE_EDTYPE, "f16");
	fails(yoke_irfft(yoke_slice(z, 0, 0, 1, 1), 0, 0, 0), YOKE_ERANGE,
	      "an inverse of no elements");
	fails(yoke_stft(x, z, 4, NULL), YOKE_ESHAPE, "a window that is no vector");
	fails(yoke_stft(x, YOKE_NONE, 64, NULL), YOKE_ESHAPE, "a frame longer than x");
	fails(yoke_istft(z, YOKE_NONE, 4, 0, NULL), YOKE_ESHAPE, "no frames");
	yoke_scope_end(s);
}

int main(void)
{
	static const int64_t lengths[] = {
		1,  2,  3,   4,   5,   7,   8,   11,  16,  17,  30,  31,
		64, 97, 100, 128, 143, 150, 169, 210, 243, 256, 257, 289
	};
	tap_seed();
	for (int k = 0; k < 2; k++) {
		yoke_setting_set("plan.named", k ? "0" : "1");
		yoke_use(NULL);
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
			if (!k || i % 3 == 2)
				test_length(lengths[i], i % 2 ? yoke_f64 : yoke_f32,
					    k ? "decomposition" : "kernel");
	}
	yoke_setting_set("plan.named", "1");
	yoke_use(NULL);
	static const int64_t single[] = { 360, 1009, 4096, 10000, 10007, 30030, 65536, 100003 };
	for (size_t i = 0; i < sizeof single / sizeof *single; i++)
		for (int wide = 0; wide < 2; wide++)
			test_long(single[i], wide ? yoke_f64 : yoke_f32);
	test_axes();
	test_frames();
	test_errors();
	return done();
}
