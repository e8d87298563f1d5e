// SPDX-License-Identifier: Apache-2.0
// Fourier transforms in one precision. Each vector lane computes a transform of its own, so that no
// step exchanges lanes; a long single transform is made of short ones along columns and rows, which
// take the lanes. Included once per precision with REAL, VL lanes, FFT(name), FMA and SPLAT.
//
// Complex vectors are pairs: element k of a buffer is x[2 k] (re) and x[2 k + 1] (im). All transforms
// are forward, exp(-2 pi i jk / n); the others exchange re and im of operands and results.

typedef REAL FFT(v) __attribute__((vector_size(VL * sizeof(REAL))));
#define V FFT(v)

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
	int64_t fine,
		coarse; // twiddle factors exp(-2 pi i k l / m), l < b, for k = 0 .. fine - 1 and multiples of `fine`
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
	for (int64_t k = 0; k < n && w; k++)
		FFT(turn)
	(w + 2 * k, (int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n);
	return w;
}

// ---- one pass: m groups of radix r, each of s elements ----

#define RE(p, k) (p)[2 * (k)]
#define IM(p, k) (p)[2 * (k) + 1]
#define LOAD(k) const V r##k = RE(p, (k)*step), i##k = IM(p, (k)*step)
#define STORE(k, re, im) \
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
	LOAD(0);
	LOAD(1);
	RE(o, 0) = r0 + r1;
	IM(o, 0) = i0 + i1;
	STORE(1, r0 - r1, i0 - i1);
	END
}

PASS(3)
{
	const REAL c = (REAL)0.866025403784438646763723170752936183;
	EACH(3)
	LOAD(0);
	LOAD(1);
	LOAD(2);
	const V sr = r1 + r2, si = i1 + i2, dr = (r1 - r2) * c, di = (i1 - i2) * c;
	const V ar = r0 - sr * (REAL)0.5, ai = i0 - si * (REAL)0.5;
	RE(o, 0) = r0 + sr;
	IM(o, 0) = i0 + si;
	STORE(1, ar + di, ai - dr);
	STORE(2, ar - di, ai + dr);
	END
}

PASS(4)
{
	EACH(4)
	LOAD(0);
	LOAD(1);
	LOAD(2);
	LOAD(3);
	const V ar = r0 + r2, ai = i0 + i2, br = r0 - r2, bi = i0 - i2;
	const V cr = r1 + r3, ci = i1 + i3, dr = r1 - r3, di = i1 - i3;
	RE(o, 0) = ar + cr;
	IM(o, 0) = ai + ci;
	STORE(1, br + di, bi - dr);
	STORE(2, ar - cr, ai - ci);
	STORE(3, br - di, bi + dr);
	END
}

PASS(5)
{
	const V c1 = SPLAT((REAL)0.309016994374947424102293417182819059),
		c2 = SPLAT((REAL)-0.809016994374947424102293417182819059);
	const V s1 = SPLAT((REAL)0.951056516295153572116439333379382143),
		s2 = SPLAT((REAL)0.587785252292473129168705954639072769);
	EACH(5)
	LOAD(0);
	LOAD(1);
	LOAD(2);
	LOAD(3);
	LOAD(4);
	const V ar = r1 + r4, ai = i1 + i4, br = r2 + r3, bi = i2 + i3;
	const V cr = r1 - r4, ci = i1 - i4, dr = r2 - r3, di = i2 - i3;
	const V er = FMA(br, c2, FMA(ar, c1, r0)), ei = FMA(bi, c2, FMA(ai, c1, i0));
	const V fr = FMA(br, c1, FMA(ar, c2, r0)), fi = FMA(bi, c1, FMA(ai, c2, i0));
	const V gr = FMA(cr, s1, dr * s2), gi = FMA(ci, s1, di * s2);
	const V hr = FMA(cr, s2, -(dr * s1)), hi = FMA(ci, s2, -(di * s1));
	RE(o, 0) = r0 + ar + br;
	IM(o, 0) = i0 + ai + bi;
	STORE(1, er + gi, ei - gr);
	STORE(2, fr + hi, fi - hr);
	STORE(3, fr - hi, fi + hr);
	STORE(4, er - gi, ei + gr);
	END
}

PASS(8)
{
	const REAL c = (REAL)0.707106781186547524400844362104849039;
	EACH(8)
	LOAD(0);
	LOAD(1);
	LOAD(2);
	LOAD(3);
	LOAD(4);
	LOAD(5);
	LOAD(6);
	LOAD(7);
	const V ar = r0 + r4, ai = i0 + i4, br = r0 - r4, bi = i0 - i4;
	const V cr = r2 + r6, ci = i2 + i6, dr = r2 - r6, di = i2 - i6;
	const V er = r1 + r5, ei = i1 + i5, fr = r1 - r5, fi = i1 - i5;
	const V gr = r3 + r7, gi = i3 + i7, hr = r3 - r7, hi = i3 - i7;
	const V k0r = ar + cr, k0i = ai + ci, k2r = ar - cr, k2i = ai - ci;
	const V k1r = er + gr, k1i = ei + gi, k3r = er - gr, k3i = ei - gi;
	RE(o, 0) = k0r + k1r;
	IM(o, 0) = k0i + k1i;
	STORE(4, k0r - k1r, k0i - k1i);
	STORE(2, k2r + k3i, k2i - k3r);
	STORE(6, k2r - k3i, k2i + k3r);
	const V l0r = br + di, l0i = bi - dr, l2r = br - di, l2i = bi + dr;
	const V m0r = fr + hi, m0i = fi - hr, m2r = fr - hi, m2i = fi + hr;
	const V n0r = (m0r + m0i) * c, n0i = (m0i - m0r) * c, n2r = (m2i - m2r) * c,
		n2i = (m2r + m2i) * -c;
	STORE(1, l0r + n0r, l0i + n0i);
	STORE(5, l0r - n0r, l0i - n0i);
	STORE(3, l2r + n2r, l2i + n2i);
	STORE(7, l2r - n2r, l2i - n2i);
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
		STORE(k + 1, br - di, bi + dr);
		STORE(r - 1 - k, br + di, bi - dr);
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

// ---- loading and storing lanes ----

// Elements of a transform in memory: element j is at j * es and, its imaginary part, ps further;
// NO_IM: there is none.
struct FFT(side) {
	REAL *base;
	int64_t es, ps;
};

#if VL >= 4
typedef REAL FFT(four)
	__attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
#define FOUR FFT(four)
static inline __attribute__((always_inline)) void FFT(transpose)(const FOUR x[4], FOUR y[4])
{
	const FOUR ab = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5),
		   cd = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
	const FOUR AB = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7),
		   CD = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
	y[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
	y[1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
	y[2] = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
	y[3] = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}
#endif

// The end of a cache line's worth of elements from j on, in pairs: all are moved for four rows before
// the next four, because rows that are a power of two apart compete for the same lines of L1.
static inline int64_t FFT(line_end)(int64_t j, int64_t n)
{
	const int64_t end = j + 64 / (2 * (int64_t)sizeof(REAL));
	return end <= n ? end : n & ~(int64_t)1;
}

// Are the rows one element apart, so that the lanes of an element are adjacent in memory?
static bool FFT(adjacent)(const struct FFT(side) * a, const int64_t *row)
{
	if (a->ps != 1)
		return false;
	for (int l = 1; l < VL; l++)
		if (row[l] != row[0] + 2 * l)
			return false;
	return true;
}

// to [n] = elements of `lanes` rows times (sr, si); swapped: re and im are exchanged
static void FFT(load)(V *to, int64_t n, const struct FFT(side) * a, const int64_t *row, int lanes,
		      REAL sr, REAL si, bool swapped)
{
	int64_t j = 0;
	int l0 = lanes;
	if (lanes < VL)
		memset(to, 0, (size_t)(2 * n) * sizeof *to);
	if (lanes == VL && FFT(adjacent)(a, row)) {
		for (; j < n; j++) {
			const REAL *from = a->base + row[0] + j * a->es;
			REAL *x = (REAL *)&to[2 * j + swapped], *y = (REAL *)&to[2 * j + !swapped];
			for (int l = 0; l < VL; l++) {
				x[l] = from[2 * l] * sr;
				y[l] = from[2 * l + 1] * si;
			}
		}
		return;
	}
	if (a->ps == NO_IM) {
		for (; j < n; j++) {
			REAL *x = (REAL *)&to[2 * j + swapped];
			to[2 * j + !swapped] = (V){ 0 };
			for (int l = 0; l < lanes; l++)
				x[l] = a->base[row[l] + j * a->es] * sr;
		}
		return;
	}
#if VL >= 4
	const FOUR scale = { sr, si, sr, si };
	if (a->ps == 1 && a->es == 2) {
		l0 = lanes & ~3;
		for (; j + 2 <= n; j = FFT(line_end)(j, n))
			for (int l = 0; l < l0; l += 4)
				for (int64_t i = j; i < FFT(line_end)(j, n); i += 2) {
					FOUR x[4], y[4];
					for (int k = 0; k < 4; k++)
						x[k] = *(const FOUR *)(a->base + row[l + k] +
								       2 * i) *
						       scale;
					FFT(transpose)(x, y);
					for (int k = 0; k < 4; k++)
						*(FOUR *)((REAL *)&to[2 * i + (k ^ swapped)] + l) =
							y[k];
				}
	}
#endif
	for (int64_t k = 0; k < n; k++)
		for (int l = k < j ? l0 : 0; l < lanes; l++) {
			const REAL *from = a->base + row[l] + k * a->es;
			((REAL *)&to[2 * k + swapped])[l] = from[0] * sr;
			((REAL *)&to[2 * k + !swapped])[l] = from[a->ps] * si;
		}
}

// The reverse; si: the factor of imaginary parts, 1 or -1
static void FFT(store)(const V *from, int64_t n, const struct FFT(side) * a, const int64_t *row,
		       int lanes, REAL si, bool swapped)
{
	int64_t j = 0;
	int l0 = lanes;
	if (lanes == VL && FFT(adjacent)(a, row)) {
		for (; j < n; j++) {
			REAL *to = a->base + row[0] + j * a->es;
			const REAL *x = (const REAL *)&from[2 * j + swapped],
				   *y = (const REAL *)&from[2 * j + !swapped];
			for (int l = 0; l < VL; l++) {
				to[2 * l] = x[l];
				to[2 * l + 1] = y[l] * si;
			}
		}
		return;
	}
#if VL >= 4
	const FOUR scale = { 1, si, 1, si };
	if (a->ps == 1 && a->es == 2) {
		l0 = lanes & ~3;
		for (; j + 2 <= n; j = FFT(line_end)(j, n))
			for (int l = 0; l < l0; l += 4)
				for (int64_t i = j; i < FFT(line_end)(j, n); i += 2) {
					FOUR x[4], y[4];
					for (int k = 0; k < 4; k++)
						x[k] = *(const FOUR
								 *)((const REAL *)&from[2 * i +
											(k ^
											 swapped)] +
								    l);
					FFT(transpose)(x, y);
					for (int k = 0; k < 4; k++)
						*(FOUR *)(a->base + row[l + k] + 2 * i) =
							y[k] * scale;
				}
	}
#endif
	for (int64_t k = 0; k < n; k++)
		for (int l = k < j ? l0 : 0; l < lanes; l++) {
			REAL *to = a->base + row[l] + k * a->es;
			to[0] = ((const REAL *)&from[2 * k + swapped])[l];
			if (a->ps != NO_IM)
				to[a->ps] = ((const REAL *)&from[2 * k + !swapped])[l] * si;
		}
}

// ---- real numbers ----

// z [h], the transform of pairs of 2 h real numbers -> their spectrum [h + 1], times `weight` but at
// the ends
static void FFT(split)(const V *z, V *to, int64_t h, const REAL *turn, REAL weight)
{
	const REAL f = weight / 2;
	RE(to, 0) = RE(z, 0) + IM(z, 0);
	RE(to, h) = RE(z, 0) - IM(z, 0);
	IM(to, 0) = IM(to, h) = (V){ 0 };
	for (int64_t k = 1; k <= h / 2; k++) {
		const int64_t o = h - k;
		const V ar = RE(z, k) + RE(z, o), ai = IM(z, k) - IM(z, o),
			br = IM(z, k) + IM(z, o), bi = RE(z, o) - RE(z, k);
		const V wr = SPLAT(turn[2 * k]), wi = SPLAT(turn[2 * k + 1]);
		const V cr = FMA(br, wr, -(bi * wi)), ci = FMA(br, wi, bi * wr);
		RE(to, k) = (ar + cr) * f;
		IM(to, k) = (ai + ci) * f;
		RE(to, o) = (ar - cr) * f;
		IM(to, o) = (ci - ai) * f;
	}
}

// The reverse: x [h + 1] -> z [h] with re and im exchanged, whose forward transform then gives pairs,
// exchanged
static void FFT(join)(const V *x, V *z, int64_t h, const REAL *turn, REAL weight)
{
	const REAL f = weight / 2;
	IM(z, 0) = RE(x, 0) + RE(x, h);
	RE(z, 0) = RE(x, 0) - RE(x, h);
	for (int64_t k = 1; k <= h / 2; k++) {
		const int64_t o = h - k;
		const V ar = RE(x, k) + RE(x, o), ai = IM(x, k) - IM(x, o),
			br = RE(x, k) - RE(x, o), bi = IM(x, k) + IM(x, o);
		const V wr = SPLAT(turn[2 * k]), wi = SPLAT(turn[2 * k + 1]);
		const V cr = FMA(br, wi, -(bi * wr)), ci = FMA(br, wr, bi * wi); // i conj(turn) b
		IM(z, k) = (ar + cr) * f;
		RE(z, k) = (ai + ci) * f;
		IM(z, o) = (ar - cr) * f;
		RE(z, o) = (ci - ai) * f;
	}
}

// ---- many transforms: one per lane ----

struct FFT(job) {
	const struct yoke_op *op;
	const struct FFT(plan) * plan;
	struct FFT(side) in, out;
	struct rows rows;
	struct attrs f;
	int64_t blocks, each; // blocks of VL transforms, and of one item
	atomic_bool no_memory;
};

static void FFT(block)(struct FFT(job) * j, V *x, V *y, const int64_t *from, const int64_t *to,
		       int lanes)
{
	const struct attrs *f = &j->f;
	const struct FFT(plan) *p = j->plan;
	const REAL scale = (REAL)f->scale;
	const int64_t n = f->n, h = n / 2;
	const bool even = !(n & 1);
	V *z;
	if (f->kind == COMPLEX) {
		FFT(load)(x, n, &j->in, from, lanes, scale, scale, f->inverse);
		z = FFT(lanes_run)(&p->lanes, x, y);
		FFT(store)(z, n, &j->out, to, lanes, 1, f->inverse);
	} else if (f->kind == REAL_TO_HALF) {
		const struct FFT(side) pairs = { j->in.base, 2 * j->in.es, j->in.es };
		FFT(load)
		(x, even ? h : n, even ? &pairs : &j->in, from, lanes, scale, scale, false);
		z = FFT(lanes_run)(&p->lanes, x, y);
		if (even) {
			V *to_half = z == x ? y : x;
			FFT(split)(z, to_half, h, p->turn, (REAL)f->weight);
			z = to_half;
		} else {
			for (int64_t k = 2; k < 2 * (h + 1); k++)
				z[k] *= (REAL)f->weight;
		}
		FFT(store)(z, h + 1, &j->out, to, lanes, f->inverse ? -1 : 1, false);
	} else {
		FFT(load)(x, h + 1, &j->in, from, lanes, scale, f->inverse ? scale : -scale, !even);
		if (even) {
			FFT(join)(x, y, h, p->turn, (REAL)f->weight);
			z = FFT(lanes_run)(&p->lanes, y, x);
			const struct FFT(side) pairs = { j->out.base, 2 * j->out.es, j->out.es };
			FFT(store)(z, h, &pairs, to, lanes, 1, true);
		} else {
			for (int64_t k = 2; k < 2 * (h + 1); k++)
				x[k] *= (REAL)f->weight;
			x[0] = (V){
				0
			}; // the imaginary part of element 0, exchanged, has no effect
			memset(x + 2 * (h + 1), 0, (size_t)(2 * (n - h - 1)) * sizeof *x);
			z = FFT(lanes_run)(&p->lanes, x, y);
			FFT(store)(z, n, &j->out, to, lanes, 1, true);
		}
	}
}

static void FFT(item)(void *arg, int64_t index)
{
	struct FFT(job) *j = arg;
	const int64_t size = FFT(buffer)(&j->plan->lanes), b0 = index * j->each;
	const int64_t b1 = b0 + j->each < j->blocks ? b0 + j->each : j->blocks;
	V *x = yk_team_scratch((size_t)(4 * size) * sizeof *x);
	int64_t at[YOKE_MAX_RANK], from[VL], to[VL];
	if (!x) {
		atomic_store(&j->no_memory, true);
		return;
	}
	rows_at(&j->rows, b0 * VL, at);
	for (int64_t b = b0; b < b1; b++) {
		const int lanes = (int)(j->rows.count - b * VL < VL ? j->rows.count - b * VL : VL);
		for (int l = 0; l < lanes; l++)
			rows_next(&j->rows, at, &from[l], &to[l]);
		FFT(block)(j, x, x + 2 * size, from, to, lanes);
	}
}

// ---- one transform at a time ----

// A phase of a single transform; items are blocks of VL columns or rows.
struct FFT(phase) {
	const struct FFT(flat) * p;
	struct FFT(side) in, out;
	REAL *work; // [a][b] complex
	REAL scale, si;
	bool swap_in, swap_out;
	atomic_bool *no_memory;
};

// exp(-2 pi i k l / m) of VL adjacent l
static inline __attribute__((always_inline)) void FFT(twist)(const struct FFT(flat) * p, int64_t k,
							     int64_t l, V *re, V *im)
{
	const int64_t wide = padded(p->b.n, VL);
	const V *x = (const V *)(p->near + 2 * (k % p->fine) * wide + l),
		*y = (const V *)(p->far + 2 * (k / p->fine) * wide + l);
	const V xr = x[0], xi = *(const V *)((const REAL *)x + wide), yr = y[0],
		yi = *(const V *)((const REAL *)y + wide);
	*re = FMA(xr, yr, -(xi * yi));
	*im = FMA(xr, yi, xi * yr);
}

// Columns: a elements, b apart
static void FFT(columns)(void *arg, int64_t index)
{
	struct FFT(phase) *f = arg;
	const struct FFT(flat) *p = f->p;
	const int64_t a = p->a.n, b = p->b.n, l0 = index * VL, size = FFT(buffer)(&p->a);
	const int lanes = (int)(b - l0 < VL ? b - l0 : VL);
	const struct FFT(side) in = { f->in.base, b * f->in.es, f->in.ps },
			       to = { f->work, 2 * b, 1 };
	int64_t from[VL], row[VL];
	V *x = yk_team_scratch((size_t)(4 * size) * sizeof *x);
	if (!x) {
		atomic_store(f->no_memory, true);
		return;
	}
	for (int l = 0; l < VL; l++) {
		from[l] = (l0 + l) * f->in.es;
		row[l] = 2 * (l0 + l);
	}
	FFT(load)(x, a, &in, from, lanes, f->scale, f->scale, f->swap_in);
	V *z = FFT(lanes_run)(&p->a, x, x + 2 * size);
	for (int64_t k = 1; k < a; k++) {
		V wr, wi;
		FFT(twist)(p, k, l0, &wr, &wi);
		const V re = FMA(RE(z, k), wr, -(IM(z, k) * wi));
		IM(z, k) = FMA(RE(z, k), wi, IM(z, k) * wr);
		RE(z, k) = re;
	}
	FFT(store)(z, a, &to, row, lanes, 1, false);
}

// Rows: b elements; the result's elements are a apart
static void FFT(rows)(void *arg, int64_t index)
{
	struct FFT(phase) *f = arg;
	const struct FFT(flat) *p = f->p;
	const int64_t a = p->a.n, b = p->b.n, l0 = index * VL, size = FFT(buffer)(&p->b);
	const int lanes = (int)(a - l0 < VL ? a - l0 : VL);
	const struct FFT(side) in = { f->work, 2, 1 },
			       out = { f->out.base, a * f->out.es, f->out.ps };
	int64_t from[VL], to[VL];
	V *x = yk_team_scratch((size_t)(4 * size) * sizeof *x);
	if (!x) {
		atomic_store(f->no_memory, true);
		return;
	}
	for (int l = 0; l < VL; l++) {
		from[l] = 2 * b * (l0 + l);
		to[l] = (l0 + l) * f->out.es;
	}
	FFT(load)(x, b, &in, from, lanes, 1, 1, false);
	V *z = FFT(lanes_run)(&p->b, x, x + 2 * size);
	FFT(store)(z, b, &out, to, lanes, f->si, f->swap_out);
}

// Short transforms are not worth waking the team.
static void FFT(each)(int64_t n, void (*fn)(void *, int64_t), struct FFT(phase) * f)
{
	if (f->p->m >= ALONE)
		yk_team_run(n, fn, f);
	else
		for (int64_t i = 0; i < n; i++)
			fn(f, i);
}

static void FFT(steps)(struct FFT(phase) * f)
{
	FFT(each)((f->p->b.n + VL - 1) / VL, FFT(columns), f);
	FFT(each)((f->p->a.n + VL - 1) / VL, FFT(rows), f);
}

// Element-wise loops around a single transform.
struct FFT(around) {
	const struct FFT(plan) * plan;
	const struct attrs *f;
	struct FFT(side) in, out;
	REAL *z; // dense pairs
	const REAL *w;
	int64_t n, count;
	bool swap_in, swap_out;
	REAL scale, si;
};

// z [count] = in [n] w scale, then zeros; in may be z itself
static void FFT(chirp_in)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t k1 = (index + 1) * CHUNK < s->count ? (index + 1) * CHUNK : s->count;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		REAL x[2] = { 0, 0 };
		if (k < s->n) {
			x[s->swap_in] = s->in.base[k * s->in.es];
			x[!s->swap_in] =
				s->in.ps == NO_IM ? 0 : s->in.base[k * s->in.es + s->in.ps];
		}
		const REAL *w = s->w + 2 * (k < s->n ? k : 0);
		s->z[2 * k] = (x[0] * w[0] - x[1] * w[1]) * s->scale;
		s->z[2 * k + 1] = (x[0] * w[1] + x[1] * w[0]) * s->scale;
	}
}

// out [n] = z w scale, whose re and im are exchanged
static void FFT(chirp_out)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t k1 = (index + 1) * CHUNK < s->n ? (index + 1) * CHUNK : s->n;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		const REAL re = s->z[2 * k + 1], im = s->z[2 * k], *w = s->w + 2 * k;
		const REAL y[2] = { (re * w[0] - im * w[1]) * s->scale,
				    (re * w[1] + im * w[0]) * s->scale };
		s->out.base[k * s->out.es] = y[s->swap_out];
		if (s->out.ps != NO_IM)
			s->out.base[k * s->out.es + s->out.ps] = y[!s->swap_out] * s->si;
	}
}

// A single complex transform between two sides; work: [2 m] complex
static void FFT(single)(const struct FFT(plan) * plan, struct FFT(phase) * f, REAL *work)
{
	const struct FFT(flat) *p = &plan->flat;
	f->p = p;
	f->work = work;
	if (!p->chirp) {
		FFT(steps)(f);
		return;
	}
	REAL *z = work + 2 * p->m;
	struct FFT(around) s = { .plan = plan,
				 .in = f->in,
				 .out = f->out,
				 .z = z,
				 .w = p->chirp,
				 .n = p->n,
				 .count = p->m,
				 .swap_in = f->swap_in,
				 .swap_out = f->swap_out,
				 .scale = f->scale,
				 .si = f->si };
	struct FFT(phase)
		inner = { p, { z, 2, 1 }, { z, 2, 1 }, work, 1, 1, false, false, f->no_memory };
	yk_team_run(chunks_of(s.count), FFT(chirp_in), &s);
	FFT(steps)(&inner);
	struct FFT(around) t = {
		.in = { z, 2, 1 }, .z = z, .w = p->spectrum, .n = p->m, .count = p->m, .scale = 1
	};
	yk_team_run(chunks_of(t.count), FFT(chirp_in), &t);
	inner.swap_in = true;
	FFT(steps)(&inner);
	s.scale = 1 / (REAL)p->m;
	yk_team_run(chunks_of(s.n), FFT(chirp_out), &s);
}

// out [h + 1] of z [h], as `split`; odd n: of z [n]
static void FFT(split_flat)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t n = s->f->n, h = n / 2,
		      k1 = (index + 1) * CHUNK < h + 1 ? (index + 1) * CHUNK : h + 1;
	const REAL *z = s->z, *turn = s->plan->turn;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		const REAL weight = k && 2 * k != n ? (REAL)s->f->weight : 1;
		REAL re = z[2 * k], im = z[2 * k + 1];
		if (!(n & 1)) {
			const int64_t a = k == h ? 0 : k, o = k ? h - k : 0;
			const REAL ar = z[2 * a] + z[2 * o], ai = z[2 * a + 1] - z[2 * o + 1];
			const REAL br = z[2 * a + 1] + z[2 * o + 1], bi = z[2 * o] - z[2 * a];
			re = (ar + br * turn[2 * k] - bi * turn[2 * k + 1]) / 2;
			im = (ai + br * turn[2 * k + 1] + bi * turn[2 * k]) / 2;
		}
		s->out.base[k * s->out.es] = re * weight;
		s->out.base[k * s->out.es + s->out.ps] = im * weight * s->si;
	}
}

// z of in [h + 1], as `join`; odd n: in's elements, then zeros, exchanged
static void FFT(join_flat)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t n = s->f->n, h = n / 2,
		      k1 = (index + 1) * CHUNK < s->count ? (index + 1) * CHUNK : s->count;
	const REAL *turn = s->plan->turn, *in = s->in.base, f = (REAL)s->f->weight * s->scale;
	REAL *z = s->z;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		const REAL *a = in + k * s->in.es;
		if (n & 1) {
			const bool inside = k <= h;
			z[2 * k + 1] = inside ? a[0] * (k ? f : s->scale) : 0;
			z[2 * k] = inside && k ? a[s->in.ps] * f * s->si : 0;
			continue;
		}
		const REAL *o = in + (h - k) * s->in.es;
		const REAL xi = k ? a[s->in.ps] * s->si : 0, yi = k ? o[s->in.ps] * s->si : 0,
			   c = k ? f / 2 : s->scale;
		const REAL ar = a[0] + o[0], ai = xi - yi, br = a[0] - o[0], bi = xi + yi;
		z[2 * k + 1] = (ar + br * turn[2 * k + 1] - bi * turn[2 * k]) * c;
		z[2 * k] = (ai + br * turn[2 * k] + bi * turn[2 * k + 1]) * c;
	}
}

static void FFT(one)(struct FFT(job) * j, REAL *work, int64_t from, int64_t to)
{
	const struct attrs *f = &j->f;
	const struct FFT(plan) *p = j->plan;
	const REAL scale = (REAL)f->scale;
	const int64_t n = f->n, h = n / 2;
	const bool even = !(n & 1);
	REAL *z = work + 4 * p->flat.m; // [n or n/2] complex
	struct FFT(side) in = j->in, out = j->out;
	in.base += from;
	out.base += to;
	struct FFT(phase) ph = { .in = in,
				 .out = out,
				 .scale = scale,
				 .si = 1,
				 .swap_in = f->inverse,
				 .swap_out = f->inverse,
				 .no_memory = &j->no_memory };
	struct FFT(around) s = { .plan = p, .f = f, .in = in, .out = out, .z = z, .scale = scale };
	if (f->kind == REAL_TO_HALF) {
		if (even)
			ph.in = (struct FFT(side)){ in.base, 2 * in.es, in.es };
		ph.out = (struct FFT(side)){ z, 2, 1 };
		ph.swap_in = ph.swap_out = false;
		s.si = f->inverse ? -1 : 1;
	} else if (f->kind == HALF_TO_REAL) {
		s.count = even ? h : n;
		s.si = f->inverse ? 1 : -1;
		yk_team_run(chunks_of(s.count), FFT(join_flat), &s);
		ph.in = (struct FFT(side)){ z, 2, 1 };
		if (even)
			ph.out = (struct FFT(side)){ out.base, 2 * out.es, out.es };
		ph.scale = 1;
		ph.swap_in = false;
		ph.swap_out = true;
	}
	FFT(single)(p, &ph, work);
	if (f->kind == REAL_TO_HALF)
		yk_team_run(chunks_of(h + 1), FFT(split_flat), &s);
}

// ---- plans ----

static void FFT(flat_plan)(struct table *t, struct FFT(flat) * p, int64_t n)
{
	int64_t m = n;
	if (!is_smooth(n))
		m = smooth_above(2 * n - 1);
	const int64_t a = balanced(m), b = m / a, wide = padded(b, VL);
	p->n = n;
	p->m = m;
	FFT(lanes_smooth)(t, &p->a, a);
	FFT(lanes_smooth)(t, &p->b, b);
	for (p->fine = 1; p->fine * p->fine < a;)
		p->fine *= 2;
	p->coarse = (a + p->fine - 1) / p->fine;
	REAL *near = FFT(take)(t, 2 * p->fine * wide), *far = FFT(take)(t, 2 * p->coarse * wide);
	p->near = near;
	p->far = far;
	for (int64_t k = 0; near && k < p->fine + p->coarse; k++)
		for (int64_t l = 0; l < wide; l++) {
			REAL *to = k < p->fine ? near + 2 * k * wide :
						 far + 2 * (k - p->fine) * wide,
			     w[2];
			FFT(turn)
			(w, (k < p->fine ? k : (k - p->fine) * p->fine) * (l < b ? l : 0) % m, m);
			to[l] = w[0];
			to[wide + l] = w[1];
		}
	if (m == n)
		return;
	p->chirp = FFT(chirps)(t, n);
	REAL *h = FFT(take)(t, 2 * m), *work = FFT(take)(t, 2 * m);
	p->spectrum = h;
	if (!h)
		return;
	memset(h, 0, (size_t)(2 * m) * sizeof *h);
	for (int64_t k = 0; k < n; k++) {
		const int64_t o = k ? m - k : 0;
		h[2 * k] = h[2 * o] = p->chirp[2 * k];
		h[2 * k + 1] = h[2 * o + 1] = -p->chirp[2 * k + 1];
	}
	atomic_bool failed;
	atomic_init(&failed, false);
	FFT(steps)
	(&(struct FFT(phase)){ p, { h, 2, 1 }, { h, 2, 1 }, work, 1, 1, false, false, &failed });
	t->failed |= atomic_load(&failed);
}

static void FFT(plan_at)(struct FFT(plan) * p, const struct attrs *f, int64_t count)
{
	const int64_t n = length_of(f);
	p->is_flat = flat_is_better(n, count, VL);
	if (p->is_flat)
		FFT(flat_plan)(&p->table, &p->flat, n);
	else if (is_smooth(n))
		FFT(lanes_smooth)(&p->table, &p->lanes, n);
	else
		FFT(lanes_chirp)(&p->table, &p->lanes, n);
	if (f->kind == COMPLEX || f->n & 1)
		return;
	REAL *w = FFT(take)(&p->table, 2 * (n + 1));
	p->turn = w;
	for (int64_t k = 0; k <= n && w; k++)
		FFT(turn)(w + 2 * k, k, f->n);
}

static void *FFT(prepare)(const struct attrs *f, int64_t count)
{
	struct FFT(plan) size = { .table = { NULL, 0, false } };
	FFT(plan_at)(&size, f, count);
	const size_t head = (sizeof size + 63) & ~(size_t)63,
		     bytes = head + (size_t)size.table.used;
	struct FFT(plan) *p = aligned_alloc(64, bytes);
	if (!p)
		return NULL;
	*p = (struct FFT(plan)){ .table = { (char *)p + head, 0, false } };
	FFT(plan_at)(p, f, count);
	if (p->table.failed) {
		free(p);
		return NULL;
	}
	return p;
}

static uint64_t FFT(work)(const struct attrs *f, int64_t count) // bytes
{
	const int64_t n = length_of(f);
	if (!flat_is_better(n, count, VL))
		return 0;
	return (uint64_t)(2 * (2 * (is_smooth(n) ? n : smooth_above(2 * n - 1)) + n)) *
	       sizeof(REAL);
}

static int FFT(run)(const struct yoke_op *op, const struct attrs *f, const struct FFT(plan) * p)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const int px = f->kind != REAL_TO_HALF, py = f->kind != HALF_TO_REAL;
	struct FFT(job) j = { .op = op, .plan = p, .f = *f };
	j.in = (struct FFT(side)){ yk_ptr(x), x->strides[x->rank - 1 - px],
				   px ? x->strides[x->rank - 1] : NO_IM };
	j.out = (struct FFT(side)){ yk_ptr(y), y->strides[y->rank - 1 - py],
				    py ? y->strides[y->rank - 1] : NO_IM };
	rows_of(&j.rows, x, y, x->rank - 1 - px);
	atomic_init(&j.no_memory, false);
	if (!j.rows.count)
		return 0;
	if (p->is_flat) {
		int64_t at[YOKE_MAX_RANK], from, to;
		rows_at(&j.rows, 0, at);
		for (int64_t i = 0; i < j.rows.count; i++) {
			rows_next(&j.rows, at, &from, &to);
			FFT(one)(&j, yk_ptr(&op->workspace), from, to);
		}
	} else {
		j.blocks = (j.rows.count + VL - 1) / VL;
		j.each = 1 + ALONE / (FFT(buffer)(&p->lanes) * VL);
		yk_team_run((j.blocks + j.each - 1) / j.each, FFT(item), &j);
	}
	return atomic_load(&j.no_memory) ? YOKE_ENOMEM : 0;
}

#undef V
#undef FOUR
#undef MAX_FACTORS
#undef RE
#undef IM
#undef LOAD
#undef STORE
#undef PASS
#undef EACH
#undef END
#undef RUN
