// SPDX-License-Identifier: Apache-2.0
// Passes of Fourier transforms in one precision, with their tables. Each vector lane computes a
// transform of its own, so that no step exchanges lanes. Included first by kern_fft.c, once per
// precision, after vec_f32.h or vec_f64.h, with FFT(name).
//
// Complex vectors are pairs: element k of a buffer is x[2 k] (re) and x[2 k + 1] (im). All
// transforms are forward, exp(-2 pi i jk / n); the others exchange re and im of operands and
// results.

enum { FFT(max_factors) = 32 };
#define MAX_FACTORS FFT(max_factors)

// A transform of n elements per lane: by factors or, if chirp is set, as a convolution of length m.
struct FFT(lanes) {
	int64_t n, m;
	int factors, factor[MAX_FACTORS];
	const REAL *twiddle;          // of all passes
	const REAL *chirp, *spectrum; // [n], [m] complex
};

// A single transform of n = a b elements, or of any n as a convolution of length a b.
struct FFT(flat) {
	struct FFT(lanes) a, b;
	int64_t n, m;
	// twiddle factors exp(-2 pi i k l / m), l < b, for k = 0 .. fine - 1 and multiples of
	// `fine`
	int64_t fine, coarse;
	const REAL *near, *far; // [fine][2][b padded to lanes], [coarse][2][b]
	const REAL *chirp, *spectrum;
};

struct FFT(plan) {
	struct table table;
	bool is_flat;
	struct FFT(lanes) lanes;
	struct FFT(flat) flat;
	const REAL *turn; // [n/2 + 1] complex: exp(-2 pi i k / n), for real numbers of even n
};

// ---- tables ----

static void FFT(turn)(REAL *to, int64_t k, int64_t n)
{
	double c, s;
	turn_of(k, n, &c, &s);
	to[0] = (REAL)c;
	to[1] = (REAL)s;
}

static REAL *FFT(take)(struct table *t, int64_t n)
{
	return take(t, n * (int64_t)sizeof(REAL));
}

static void FFT(lanes_smooth)(struct table *t, struct FFT(lanes) * p, int64_t n)
{
	int64_t total = 0, m = n;
	*p = (struct FFT(lanes)){ .n = n };
	p->factors = factors_of(n, p->factor);
	for (int i = 0; i < p->factors; i++) {
		m /= p->factor[i];
		total += m * (p->factor[i] - 1);
	}
	REAL *w = FFT(take)(t, 2 * total);
	p->twiddle = w;
	m = n;
	for (int i = 0; i < p->factors && w; i++) {
		const int64_t whole = m;
		m /= p->factor[i];
		for (int64_t j = 0; j < m; j++)
			for (int k = 1; k < p->factor[i]; k++, w += 2)
				FFT(turn)(w, j * k, whole);
	}
}

// exp(-pi i k^2 / n), k < n
static const REAL *FFT(chirps)(struct table *t, int64_t n)
{
	REAL *w = FFT(take)(t, 2 * n);
	for (int64_t k = 0, square = 0; k < n && w; k++) { // k k modulo 2 n
		FFT(turn)(w + 2 * k, square, 2 * n);
		square = (square + 2 * k + 1) % (2 * n);
	}
	return w;
}

// ---- one pass: m groups of radix r, each of s elements ----

#define RE(p, k) (p)[2 * (k)]
#define IM(p, k) (p)[2 * (k) + 1]
#define LOAD_PAIR(k) const V r##k = RE(p, (k)*step), i##k = IM(p, (k)*step)
#define STORE_PAIR(k, re, im) \
	do { \
		const V x_ = re, y_ = im; \
		if (twiddled) { \
			const V c_ = SPLAT(w[2 * (k)-2]), s_ = SPLAT(w[2 * (k)-1]); \
			RE(o, (k)*s) = FMA(x_, c_, -(y_ * s_)); \
			IM(o, (k)*s) = FMA(x_, s_, y_ * c_); \
		} else { \
			RE(o, (k)*s) = x_; \
			IM(o, (k)*s) = y_; \
		} \
	} while (0)
#define PASS(r) \
	static inline __attribute__((always_inline)) void FFT(pass##r)( \
		const V *restrict x, V *restrict y, int64_t m, int64_t s, const REAL *w, \
		const bool twiddled)
#define EACH(r) \
	const int64_t step = s * m; \
	for (int64_t j = 0; j < m; j++, w += 2 * ((r)-1)) \
		for (int64_t q = 0; q < s; q++) { \
			const V *p = x + 2 * (q + s * j); \
			V *o = y + 2 * (q + s * (r)*j);
#define END }

PASS(2)
{
	EACH(2)
	LOAD_PAIR(0);
	LOAD_PAIR(1);
	RE(o, 0) = r0 + r1;
	IM(o, 0) = i0 + i1;
	STORE_PAIR(1, r0 - r1, i0 - i1);
	END
}

PASS(3)
{
	const REAL c = (REAL)0.866025403784438646763723170752936183;
	EACH(3)
	LOAD_PAIR(0);
	LOAD_PAIR(1);
	LOAD_PAIR(2);
	const V sr = r1 + r2, si = i1 + i2, dr = (r1 - r2) * c, di = (i1 - i2) * c;
	const V ar = r0 - sr * (REAL)0.5, ai = i0 - si * (REAL)0.5;
	RE(o, 0) = r0 + sr;
	IM(o, 0) = i0 + si;
	STORE_PAIR(1, ar + di, ai - dr);
	STORE_PAIR(2, ar - di, ai + dr);
	END
}

PASS(4)
{
	EACH(4)
	LOAD_PAIR(0);
	LOAD_PAIR(1);
	LOAD_PAIR(2);
	LOAD_PAIR(3);
	const V ar = r0 + r2, ai = i0 + i2, br = r0 - r2, bi = i0 - i2;
	const V cr = r1 + r3, ci = i1 + i3, dr = r1 - r3, di = i1 - i3;
	RE(o, 0) = ar + cr;
	IM(o, 0) = ai + ci;
	STORE_PAIR(1, br + di, bi - dr);
	STORE_PAIR(2, ar - cr, ai - ci);
	STORE_PAIR(3, br - di, bi + dr);
	END
}

PASS(5)
{
	const V c1 = SPLAT((REAL)0.309016994374947424102293417182819059),
		c2 = SPLAT((REAL)-0.809016994374947424102293417182819059);
	const V s1 = SPLAT((REAL)0.951056516295153572116439333379382143),
		s2 = SPLAT((REAL)0.587785252292473129168705954639072769);
	EACH(5)
	LOAD_PAIR(0);
	LOAD_PAIR(1);
	LOAD_PAIR(2);
	LOAD_PAIR(3);
	LOAD_PAIR(4);
	const V ar = r1 + r4, ai = i1 + i4, br = r2 + r3, bi = i2 + i3;
	const V cr = r1 - r4, ci = i1 - i4, dr = r2 - r3, di = i2 - i3;
	const V er = FMA(br, c2, FMA(ar, c1, r0)), ei = FMA(bi, c2, FMA(ai, c1, i0));
	const V fr = FMA(br, c1, FMA(ar, c2, r0)), fi = FMA(bi, c1, FMA(ai, c2, i0));
	const V gr = FMA(cr, s1, dr * s2), gi = FMA(ci, s1, di * s2);
	const V hr = FMA(cr, s2, -(dr * s1)), hi = FMA(ci, s2, -(di * s1));
	RE(o, 0) = r0 + ar + br;
	IM(o, 0) = i0 + ai + bi;
	STORE_PAIR(1, er + gi, ei - gr);
	STORE_PAIR(2, fr + hi, fi - hr);
	STORE_PAIR(3, fr - hi, fi + hr);
	STORE_PAIR(4, er - gi, ei + gr);
	END
}

PASS(8)
{
	const REAL c = (REAL)0.707106781186547524400844362104849039;
	EACH(8)
	LOAD_PAIR(0);
	LOAD_PAIR(1);
	LOAD_PAIR(2);
	LOAD_PAIR(3);
	LOAD_PAIR(4);
	LOAD_PAIR(5);
	LOAD_PAIR(6);
	LOAD_PAIR(7);
	const V ar = r0 + r4, ai = i0 + i4, br = r0 - r4, bi = i0 - i4;
	const V cr = r2 + r6, ci = i2 + i6, dr = r2 - r6, di = i2 - i6;
	const V er = r1 + r5, ei = i1 + i5, fr = r1 - r5, fi = i1 - i5;
	const V gr = r3 + r7, gi = i3 + i7, hr = r3 - r7, hi = i3 - i7;
	const V k0r = ar + cr, k0i = ai + ci, k2r = ar - cr, k2i = ai - ci;
	const V k1r = er + gr, k1i = ei + gi, k3r = er - gr, k3i = ei - gi;
	RE(o, 0) = k0r + k1r;
	IM(o, 0) = k0i + k1i;
	STORE_PAIR(4, k0r - k1r, k0i - k1i);
	STORE_PAIR(2, k2r + k3i, k2i - k3r);
	STORE_PAIR(6, k2r - k3i, k2i + k3r);
	const V l0r = br + di, l0i = bi - dr, l2r = br - di, l2i = bi + dr;
	const V m0r = fr + hi, m0i = fi - hr, m2r = fr - hi, m2i = fi + hr;
	const V n0r = (m0r + m0i) * c, n0i = (m0i - m0r) * c, n2r = (m2i - m2r) * c,
		n2i = (m2r + m2i) * -c;
	STORE_PAIR(1, l0r + n0r, l0i + n0i);
	STORE_PAIR(5, l0r - n0r, l0i - n0i);
	STORE_PAIR(3, l2r + n2r, l2i + n2i);
	STORE_PAIR(7, l2r - n2r, l2i - n2i);
	END
}

// Any odd radix up to MAX_RADIX
static void FFT(pass_odd)(const V *restrict x, V *restrict y, int r, int64_t m, int64_t s,
			  const REAL *w)
{
	enum { HALVES = MAX_RADIX / 2 };
	const bool twiddled = true;
	const int half = r / 2;
	REAL c[HALVES][HALVES][2];
	for (int k = 0; k < half; k++)
		for (int l = 0; l < half; l++)
			FFT(turn)(c[k][l], (int64_t)(k + 1) * (l + 1), r);
	EACH(r)
	V sum[HALVES][2], apart[HALVES][2];
	V ar = RE(p, 0), ai = IM(p, 0);
	for (int k = 0; k < half; k++) {
		const V r1 = RE(p, (k + 1) * step), i1 = IM(p, (k + 1) * step);
		const V r2 = RE(p, (r - 1 - k) * step), i2 = IM(p, (r - 1 - k) * step);
		sum[k][0] = r1 + r2;
		sum[k][1] = i1 + i2;
		apart[k][0] = r1 - r2;
		apart[k][1] = i1 - i2;
		ar += sum[k][0];
		ai += sum[k][1];
	}
	RE(o, 0) = ar;
	IM(o, 0) = ai;
	for (int k = 0; k < half; k++) {
		V br = RE(p, 0), bi = IM(p, 0), dr = { 0 }, di = { 0 };
		for (int l = 0; l < half; l++) {
			const V cs = SPLAT(c[k][l][0]), sn = SPLAT(c[k][l][1]);
			br = FMA(sum[l][0], cs, br);
			bi = FMA(sum[l][1], cs, bi);
			dr = FMA(apart[l][0], sn, dr);
			di = FMA(apart[l][1], sn, di);
		}
		STORE_PAIR(k + 1, br - di, bi + dr);
		STORE_PAIR(r - 1 - k, br + di, bi - dr);
	}
	END
}

#define RUN(r) \
	case r: \
		if (m > 1) \
			FFT(pass##r)(x, y, m, s, w, true); \
		else \
			FFT(pass##r)(x, y, m, s, w, false); \
		break

// Transforms x; both buffers hold n elements. Returns the one with the result.
static V *FFT(smooth)(const struct FFT(lanes) * p, int64_t n, V *x, V *y)
{
	const REAL *w = p->twiddle;
	int64_t m = n, s = 1;
	for (int i = 0; i < p->factors; i++) {
		const int r = p->factor[i];
		m /= r;
		switch (r) {
			RUN(2);
			RUN(3);
			RUN(4);
			RUN(5);
			RUN(8);
		default: FFT(pass_odd)(x, y, r, m, s, w);
		}
		w += 2 * m * (r - 1);
		s *= r;
		V *t = x;
		x = y;
		y = t;
	}
	return x;
}

// x [count] times w, times scale; swapped: exchanges re and im of the result
static void FFT(times)(V *x, const REAL *w, int64_t count, REAL scale, bool swapped)
{
	for (int64_t k = 0; k < count; k++) {
		const V c = SPLAT(w[2 * k]), s = SPLAT(w[2 * k + 1]);
		const V re = FMA(RE(x, k), c, -(IM(x, k) * s)) * scale,
			im = FMA(RE(x, k), s, IM(x, k) * c) * scale;
		x[2 * k + swapped] = re;
		x[2 * k + !swapped] = im;
	}
}

// As above; the buffers hold m elements if m is not 0.
static V *FFT(lanes_run)(const struct FFT(lanes) * p, V *x, V *y)
{
	if (!p->m)
		return FFT(smooth)(p, p->n, x, y);
	FFT(times)(x, p->chirp, p->n, 1, false);
	memset(x + 2 * p->n, 0, (size_t)(2 * (p->m - p->n)) * sizeof *x);
	V *z = FFT(smooth)(p, p->m, x, y);
	FFT(times)(z, p->spectrum, p->m, 1, true);
	z = FFT(smooth)(p, p->m, z, z == x ? y : x);
	for (int64_t k = 0; k < p->n; k++) { // exchanged by the inverse transform
		const V t = RE(z, k);
		RE(z, k) = IM(z, k);
		IM(z, k) = t;
	}
	FFT(times)(z, p->chirp, p->n, 1 / (REAL)p->m, false);
	return z;
}

static int64_t FFT(buffer)(const struct FFT(lanes) * p) // elements
{
	return (p->m ? p->m : p->n) + 1;
}

// The spectrum of the convolution with conj(chirp), by the transform itself in lane 0
static void FFT(lanes_chirp)(struct table *t, struct FFT(lanes) * p, int64_t n)
{
	const int64_t m = smooth_above(2 * n - 1);
	FFT(lanes_smooth)(t, p, m);
	const struct FFT(lanes) inner = *p;
	p->n = n;
	p->m = m;
	p->chirp = FFT(chirps)(t, n);
	REAL *h = FFT(take)(t, 2 * m);
	p->spectrum = h;
	if (!h)
		return;
	V *x = yk_team_scratch((size_t)(4 * m) * sizeof *x);
	if (!x) {
		t->failed = true;
		return;
	}
	memset(x, 0, (size_t)(2 * m) * sizeof *x);
	for (int64_t k = 0; k < n; k++) {
		const int64_t o = k ? m - k : 0;
		x[2 * k][0] = x[2 * o][0] = p->chirp[2 * k];
		x[2 * k + 1][0] = x[2 * o + 1][0] = -p->chirp[2 * k + 1];
	}
	const V *z = FFT(smooth)(&inner, m, x, x + 2 * m);
	for (int64_t k = 0; k < 2 * m; k++)
		h[k] = z[k][0];
}
