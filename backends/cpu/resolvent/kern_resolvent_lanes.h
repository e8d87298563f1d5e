// SPDX-License-Identifier: Apache-2.0
// The resolvent in lanes of REAL; the including file defines REAL, IS_F32 and NAME(x). A vector has
// W lanes; a pack has one or two vectors, so that the divisions of several chains overlap. A plane
// is an array [element][lane] of a pack; the planes of a chunk stay in the caches.

#define W (VF * 4 / (int)sizeof(REAL))
#define PACK (2 * W) // lanes per pack
typedef REAL rv __attribute__((vector_size(VF * 4)));
#if IS_F32
typedef int32_t ri __attribute__((vector_size(VF * 4)));
#define EXPONENT 0x7f800000
#define CLOSE 0x1p-24 // half a unit in the last place of 1, in f32
#define TWICE_BIAS 0x7f000000
#define ALL_BUT_SIGN 0x7fffffff
#else
typedef int64_t ri __attribute__((vector_size(VF * 4)));
#define EXPONENT 0x7ff0000000000000
#define CLOSE 0x1p-53
#define TWICE_BIAS 0x7fe0000000000000
#define ALL_BUT_SIGN 0x7fffffffffffffff
#endif

static inline rv NAME(get)(const REAL *p)
{
	rv v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline void NAME(put)(REAL *p, rv v)
{
	memcpy(p, &v, sizeof v);
}

static inline rv NAME(splat)(REAL x)
{
	return (rv){ 0 } + x;
}

// a b + c
static inline rv NAME(fma)(rv a, rv b, rv c)
{
#if IS_F32
	return vf_fma(a, b, c);
#elif defined __AVX512F__
	return (rv)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined __AVX2__
	return (rv)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
	return a * b + c;
#endif
}

static inline rv NAME(pick)(ri mask, rv a, rv b)
{
#if defined YK_SVE && IS_F32
	return yk_sve_select(mask, a, b);
#elif defined YK_SVE
	return yk_sve_select_f64(mask, a, b);
#else
	return (rv)((mask & (ri)a) | (~mask & (ri)b));
#endif
}

static inline rv NAME(larger)(rv a, rv b)
{
	return NAME(pick)(a > b, a, b);
}

static inline rv NAME(size)(rv a)
{
	return (rv)((ri)a & ((ri){ 0 } + ALL_BUT_SIGN));
}

// Transposes: lane k of W vectors becomes vector k; log2 W steps exchange vector bits and lane
// bits.
static inline void NAME(turn)(rv *v)
{
	rv t[W];
#pragma GCC unroll 4
	for (int step = 1; step < W; step *= 2) {
#pragma GCC unroll 16
		for (int k = 0; k < W / 2; k++) {
#if VF * 4 / IS_BYTES == 16
			t[2 * k] = YK_SHUFFLE(v[k], v[k + W / 2], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
					      5, 21, 6, 22, 7, 23);
			t[2 * k + 1] = YK_SHUFFLE(v[k], v[k + W / 2], 8, 24, 9, 25, 10, 26, 11, 27,
						  12, 28, 13, 29, 14, 30, 15, 31);
#elif VF * 4 / IS_BYTES == 8
			t[2 * k] = YK_SHUFFLE(v[k], v[k + W / 2], 0, 8, 1, 9, 2, 10, 3, 11);
			t[2 * k + 1] = YK_SHUFFLE(v[k], v[k + W / 2], 4, 12, 5, 13, 6, 14, 7, 15);
#elif VF * 4 / IS_BYTES == 4
			t[2 * k] = YK_SHUFFLE(v[k], v[k + W / 2], 0, 4, 1, 5);
			t[2 * k + 1] = YK_SHUFFLE(v[k], v[k + W / 2], 2, 6, 3, 7);
#else
			t[2 * k] = YK_SHUFFLE(v[k], v[k + W / 2], 0, 2);
			t[2 * k + 1] = YK_SHUFFLE(v[k], v[k + W / 2], 1, 3);
#endif
		}
#pragma GCC unroll 16
		for (int k = 0; k < W; k++)
			v[k] = t[k];
	}
}

// Interleaves real and imaginary parts, as they are stored in memory.
static inline void NAME(join)(rv re, rv im, rv *two)
{
#if VF * 4 / IS_BYTES == 16
	two[0] = YK_SHUFFLE(re, im, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
	two[1] = YK_SHUFFLE(re, im, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif VF * 4 / IS_BYTES == 8
	two[0] = YK_SHUFFLE(re, im, 0, 8, 1, 9, 2, 10, 3, 11);
	two[1] = YK_SHUFFLE(re, im, 4, 12, 5, 13, 6, 14, 7, 15);
#elif VF * 4 / IS_BYTES == 4
	two[0] = YK_SHUFFLE(re, im, 0, 4, 1, 5);
	two[1] = YK_SHUFFLE(re, im, 2, 6, 3, 7);
#else
	two[0] = YK_SHUFFLE(re, im, 0, 2);
	two[1] = YK_SHUFFLE(re, im, 1, 3);
#endif
}

static inline void NAME(part)(const REAL *from, rv *re, rv *im)
{
	rv a, b;
	memcpy(&a, from, sizeof a);
	memcpy(&b, from + W, sizeof b);
#if VF * 4 / IS_BYTES == 16
	*re = YK_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
	*im = YK_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif VF * 4 / IS_BYTES == 8
	*re = YK_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
	*im = YK_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#elif VF * 4 / IS_BYTES == 4
	*re = YK_SHUFFLE(a, b, 0, 2, 4, 6);
	*im = YK_SHUFFLE(a, b, 1, 3, 5, 7);
#else
	*re = YK_SHUFFLE(a, b, 0, 2);
	*im = YK_SHUFFLE(a, b, 1, 3);
#endif
}

// ---- planes ----

enum { NAME(BLOCK) = 64 }; // elements of a row that are processed at a time

// Loads elements from + 0 .. n - 1 of a row as REAL; elements outside 0 .. limit - 1 are `fill`.
static void NAME(line)(const struct chain_view *v, const char *row, int64_t from, int64_t n,
		       int64_t limit, REAL fill, REAL *to)
{
	const int64_t begin = from < 0 ? -from : 0, end = limit - from < n ? limit - from : n;
	for (int64_t i = 0; i < n; i++)
		if (i < begin || i >= end)
			to[i] = fill;
	if (begin >= end)
		return;
	const char *at = row + (from + begin) * v->along * v->size;
	if (yk_reg(v->dtype) == IS_DTYPE) {
		v->load(to + begin, at, v->along, end - begin);
		return;
	}
#if IS_F32 // from f64
	for (int64_t i = begin; i < end; i++, at += v->along * v->size) {
		double wide;
		memcpy(&wide, at, sizeof wide);
		to[i] = (REAL)wide;
	}
#else
	float narrow[NAME(BLOCK)];
	v->load(narrow, at, v->along, end - begin);
	for (int64_t i = begin; i < end; i++)
		to[i] = narrow[i - begin];
#endif
}

// Loads a plane: elements first + shift + 0 .. n - 1 of each lane, from rows of `limit` elements;
// with `times`, multiplies the plane by them.
static void NAME(stage)(const struct chain_pack *p, REAL *plane, const struct chain_view *v,
			int64_t shift, int64_t n, int64_t limit, bool times)
{
	enum { BLOCK = NAME(BLOCK) };
	const int groups = p->count > W ? 2 : 1, wide = groups * W;
	const bool plain = v->dtype == IS_DTYPE && v->along == 1;
	const char *row[PACK];
	int64_t first[PACK];
	REAL lines[PACK][BLOCK];

	for (int l = 0; l < wide; l++) {
		const struct chain_lane *lane = &p->lane[l < p->count ? l : 0];
		row[l] = row_of(v, lane->row);
		first[l] = lane->first + shift;
	}
	for (int64_t t = 0; t < n; t += BLOCK) {
		const int64_t some = n - t < BLOCK ? n - t : BLOCK;
		const REAL *at[PACK];
		for (int l = 0; l < wide; l++) {
			const int64_t i = first[l] + t;
			at[l] = lines[l];
			if (plain && i >= 0 && i + BLOCK <= limit)
				at[l] = (const REAL *)(const void *)row[l] + i;
			else
				NAME(line)(v, row[l], i, some, limit, 0, lines[l]);
		}
		for (int64_t k = 0; k < some; k += W)
			for (int q = 0; q < groups; q++) {
				REAL *to = plane + (t + k) * wide + q * W;
				rv x[W];
#pragma GCC unroll 16
				for (int l = 0; l < W; l++)
					x[l] = NAME(get)(at[q * W + l] + k);
				NAME(turn)(x);
				for (int i = 0; i < W && k + i < some; i++)
					NAME(put)
					(to + i * wide,
					 times ? x[i] * NAME(get)(to + i * wide) : x[i]);
			}
	}
}

// Loads the real and imaginary planes of complex elements first + shift + 0 .. n - 1 of each lane;
// 0 outside the row.
static void NAME(stage_pairs)(const struct chain_pack *p, REAL *re, REAL *im,
			      const struct chain_view *v, int64_t shift, int64_t n)
{
	struct chain_view second = *v;
	const int64_t limit = p->job->n;
	const int groups = p->count > W ? 2 : 1, wide = groups * W;
	second.base += v->pair * v->size;
	if (v->dtype != IS_DTYPE || v->along != 2 || v->pair != 1) {
		NAME(stage)(p, re, v, shift, n, limit, false);
		NAME(stage)(p, im, &second, shift, n, limit, false);
		return;
	}
	for (int q = 0; q < groups; q++) {
		const char *row[W];
		int64_t first[W];
		for (int l = 0; l < W; l++) {
			const struct chain_lane *lane =
				&p->lane[q * W + l < p->count ? q * W + l : 0];
			row[l] = row_of(v, lane->row);
			first[l] = lane->first + shift;
		}
		for (int64_t t = 0; t < n; t += W) {
			rv x[W], y[W];
			for (int l = 0; l < W; l++) {
				const int64_t i = first[l] + t;
				REAL line[2][W];
				if (i >= 0 && i + W <= limit) {
					NAME(part)
					((const REAL *)(const void *)row[l] + 2 * i, &x[l], &y[l]);
					continue;
				}
				NAME(line)(v, row[l], i, W, limit, 0, line[0]);
				NAME(line)(&second, row[l] + v->size, i, W, limit, 0, line[1]);
				x[l] = NAME(get)(line[0]);
				y[l] = NAME(get)(line[1]);
			}
			NAME(turn)(x);
			NAME(turn)(y);
			for (int i = 0; i < W && t + i < n; i++) {
				NAME(put)(re + (t + i) * wide + q * W, x[i]);
				NAME(put)(im + (t + i) * wide + q * W, y[i]);
			}
		}
	}
}

// Loads the plane of k between elements: position t holds the bond between elements first + shift +
// t - 1 and the next; 0 beyond the ends.
static void NAME(stage_bonds)(const struct chain_pack *p, REAL *plane, int64_t shift, int64_t n)
{
	const struct chain_job *j = p->job;
	const int wide = p->count > W ? PACK : W;
	if (j->b.base)
		NAME(stage)(p, plane, &j->b, shift - 1, n, j->n - 1, false);
	if (j->c.base)
		NAME(stage)(p, plane, &j->c, shift - 1, n, j->n - 1, j->b.base);
	if (j->b.base || j->c.base)
		return;
	for (int64_t i = 0; i < n * wide; i++)
		plane[i] = 1;
	for (int l = 0; l < wide; l++) {
		const int64_t first = p->lane[l < p->count ? l : 0].first + shift - 1;
		for (int64_t t = 0; t < n && first + t < 0; t++)
			plane[t * wide + l] = 0;
		for (int64_t t = n; t-- > 0 && first + t >= j->n - 1;)
			plane[t * wide + l] = 0;
	}
}

// Loads x and y of z = x + iy for the lanes.
static void NAME(stage_z)(const struct chain_pack *p, REAL *x, REAL *y)
{
	double re = 0, im = 0;
	for (int l = 0; l < PACK; l++) {
		if (!l || (!p->job->one_z && l < p->count))
			z_of(p->job, p->lane[l].row, &re, &im);
		x[l] = (REAL)re;
		y[l] = (REAL)im;
	}
}

// The number of elements that a lane's row has from first + shift on.
static inline int64_t NAME(end)(const struct chain_pack *p, int l, int64_t shift)
{
	const int64_t n = p->job->n - p->lane[l].first - shift;
	return n > 0 ? n : 0;
}

// Loads planes of a - x and of k, elements first + shift + 0 .. n - 1 of each lane. Returns true if
// in all lanes squares neither overflow nor underflow and no k is negative; sets `odd` for the
// others.
static bool NAME(stage_chain)(const struct chain_pack *p, REAL *a, REAL *k, int64_t shift,
			      int64_t n, const REAL *x, const REAL *y, bool *odd)
{
	const struct chain_job *j = p->job;
	const int wide = p->count > W ? PACK : W;
	rv min[2], max[2];
	bool even = true;

	NAME(stage)(p, a, &j->a, shift, n, j->n, false);
	NAME(stage_bonds)(p, k, shift, n + 1);
	for (int q = 0; q < wide / W; q++) {
		const rv xv = NAME(get)(x + q * W);
		rv lo = NAME(get)(k + n * wide + q * W), hi = NAME(size)(lo), none = lo * 0;
		for (int64_t t = 0; t < n; t++) {
			REAL *at = a + t * wide + q * W;
			const rv kv = NAME(get)(k + t * wide + q * W), av = NAME(get)(at) - xv;
			NAME(put)(at, av);
			lo = -NAME(larger)(-lo, -kv);
			hi = NAME(larger)(NAME(larger)(NAME(size)(av), kv), hi);
			// becomes NaN if a value is not finite
			none = NAME(fma)(av + kv, (rv){ 0 }, none);
		}
		min[q] = lo;
		max[q] = hi + none;
	}
	// elements after the row's end must not look like an eigenvalue at a real z
	for (int l = 0; l < p->count; l++)
		for (int64_t t = y[l] == 0 ? NAME(end)(p, l, shift) : n; t < n; t++)
			a[t * wide + l] = 1;
	for (int l = 0; l < p->count; l++) {
		const REAL high = max[l / W][l % W], im = (REAL)fabs((double)y[l]);
		const bool fine = min[l / W][l % W] >= 0 && high < (IS_F32 ? 1e8 : 1e70) &&
				  im > (IS_F32 ? 1e-8 : 1e-70) && im < (IS_F32 ? 1e8 : 1e70);
		if (odd)
			odd[l] = !fine;
		even &= fine;
		if (!IS_F32 && !isfinite((double)high))
			record_first(&p->job->bad, p->lane[l].row);
	}
	return even;
}

// ---- steps ----

struct NAME(complex) {
	rv re, im;
};
#define CX struct NAME(complex)

// 1 / (re + i im). wild: the value may be too small or too large to be squared; 0 counts as `tiny`.
static inline __attribute__((always_inline)) CX NAME(inverse)(rv re, rv im, const bool wild,
							      REAL tiny)
{
	if (wild) {
		const rv max = NAME(larger)(NAME(size)(re), NAME(size)(im));
		const ri small = max < NAME(splat)((REAL)(IS_F32 ? 1e-30 : 1e-290));
		re = NAME(pick)(small, NAME(splat)(tiny), re);
		im = NAME(pick)(small, (rv){ 0 }, im);
		const rv up = NAME(splat)((REAL)(IS_F32 ? 0x1p60 : 0x1p480)), one = NAME(splat)(1);
		rv scale = NAME(pick)(max < one / up, up, one);
		scale = NAME(pick)(max > up, one / up, scale);
		re *= scale;
		im *= scale;
		const rv r = one / NAME(fma)(re, re, im * im);
		return (CX){ re * r * scale, -im * r * scale };
	}
	const rv r = NAME(splat)(1) / NAME(fma)(re, re, im * im);
	return (CX){ re * r, -im * r };
}

static inline CX NAME(product)(CX a, CX b)
{
	return (CX){ NAME(fma)(a.re, b.re, -(a.im * b.im)), NAME(fma)(a.re, b.im, a.im * b.re) };
}

static inline CX NAME(of)(const REAL *re, const REAL *im, int64_t at)
{
	return (CX){ NAME(get)(re + at), NAME(get)(im + at) };
}

static inline void NAME(to)(REAL *re, REAL *im, int64_t at, CX v)
{
	NAME(put)(re + at, v.re);
	NAME(put)(im + at, v.im);
}

// The value of `tiny` for wild lanes, whose inverse can be squared; lanes in f32 are never wild.
#define TINY ((REAL)(IS_F32 ? 1e-30 : 1e-140))

struct NAME(planes) {
	REAL *a, *k, *x, *y;       // a - x; y of z, per lane, like x
	REAL *re, *im;             // result
	REAL before[2][PACK], after[2][PACK]; // 1/L and 1/R at the chunk's borders
};

// The smaller of `nearest` and |d| relative to a and b, whose difference d is; where z is an
// eigenvalue, that is a rounding error. A d as small as a division by TINY gives counts as 0.
static inline rv NAME(nearer)(rv nearest, CX d, CX a, CX b)
{
	const rv size = NAME(larger)(NAME(size)(d.re), NAME(size)(d.im));
	const rv of = NAME(larger)(NAME(larger)(NAME(size)(a.re), NAME(size)(a.im)),
				   NAME(larger)(NAME(size)(b.re), NAME(size)(b.im)));
	const rv ratio = NAME(pick)(size <= NAME(splat)(TINY * (REAL)1e20), (rv){ 0 }, size / of);
	return NAME(pick)(ratio < nearest, ratio, nearest);
}

// Computes L upwards and R downwards at the same time, each storing its values in the result's
// planes. After they have passed each other both are known: G = 1 / (L + R - alpha), where R - k/L
// and L - k/R save a subtraction.
static inline __attribute__((always_inline)) void NAME(both)(const struct NAME(planes) * p,
							     int64_t n, const int groups,
							     const bool wild, const bool divide,
							     REAL tiny, rv *nearest)
{
	const int wide = groups * W;
	const int64_t half = n / 2;
	CX l[2], r[2];
	rv im[2];

	for (int q = 0; q < groups; q++) {
		l[q] = NAME(of)(p->before[0], p->before[1], q * W);
		r[q] = NAME(of)(p->after[0], p->after[1], q * W);
		im[q] = -NAME(get)(p->y + q * W);
	}
#define GO(q, at, bond, from, u, v) \
	const rv kv##u = NAME(get)(p->k + (bond) * wide + q * W); \
	const CX u = { kv##u * from[q].re, kv##u * from[q].im }; \
	const CX v = { NAME(get)(p->a + (at) * wide + q * W) - u.re, im[q] - u.im };
	for (int64_t t = 0; t < half; t++)
		for (int q = 0; q < groups; q++) {
			const int64_t s = n - 1 - t;
			GO(q, t, t, l, ul, vl)
			GO(q, s, s + 1, r, ur, vr)
			NAME(to)(p->re, p->im, t * wide + q * W, vl);
			NAME(to)(p->re, p->im, s * wide + q * W, vr);
			l[q] = NAME(inverse)(vl.re, vl.im, wild, tiny);
			r[q] = NAME(inverse)(vr.re, vr.im, wild, tiny);
		}
#define MEET(q, at, u) \
	{ \
		const CX v = NAME(of)(p->re, p->im, (at) * wide + q * W); \
		CX d = { v.re - u.re, v.im - u.im }; \
		if (wild) \
			nearest[q] = NAME(nearer)(nearest[q], d, v, u); \
		if (divide) \
			d = NAME(inverse)(d.re, d.im, wild, tiny); \
		NAME(to)(p->re, p->im, (at) * wide + q * W, d); \
	}
	if (n % 2)
		for (int q = 0; q < groups; q++) {
			GO(q, half, half, l, ul, vl)
			GO(q, half, half + 1, r, ur, vr)
			NAME(to)(p->re, p->im, half * wide + q * W, vr);
			MEET(q, half, ul)
			l[q] = NAME(inverse)(vl.re, vl.im, wild, tiny);
			r[q] = NAME(inverse)(vr.re, vr.im, wild, tiny);
		}
	for (int64_t t = n - half; t < n; t++)
		for (int q = 0; q < groups; q++) {
			const int64_t s = n - 1 - t;
			GO(q, t, t, l, ul, vl)
			GO(q, s, s + 1, r, ur, vr)
			l[q] = NAME(inverse)(vl.re, vl.im, wild, tiny);
			r[q] = NAME(inverse)(vr.re, vr.im, wild, tiny);
			MEET(q, t, ul)
			MEET(q, s, ur)
		}
}

// L only.
static inline __attribute__((always_inline)) void NAME(left)(const struct NAME(planes) * p,
							     int64_t n, const int groups,
							     const bool wild, const bool divide,
							     REAL tiny, rv *nearest)
{
	const int wide = groups * W;
	CX l[2];
	rv im[2];

	for (int q = 0; q < groups; q++) {
		l[q] = NAME(of)(p->before[0], p->before[1], q * W);
		im[q] = -NAME(get)(p->y + q * W);
	}
	for (int64_t t = 0; t < n; t++)
		for (int q = 0; q < groups; q++) {
			GO(q, t, t, l, u, v)
			const CX alpha = { NAME(get)(p->a + t * wide + q * W), im[q] };
			if (wild)
				nearest[q] = NAME(nearer)(nearest[q], v, alpha, u);
			l[q] = NAME(inverse)(v.re, v.im, wild, tiny);
			NAME(to)(p->re, p->im, t * wide + q * W, divide ? l[q] : v);
		}
}

// Clamps in f32: rows that are computed in f64 may have elements beyond the range of f32.
static inline REAL NAME(entry)(double x)
{
	return (REAL)(IS_F32 ? fmin(fmax(x, -1e30), 1e30) : x);
}

static void NAME(entries_of)(const struct chain_pack *p, struct NAME(planes) *to)
{
	for (int l = 0; l < PACK; l++) {
		const struct chain_entry *e =
			p->job->entry ? &p->job->entry[p->lane[l < p->count ? l : 0].index] : NULL;
		for (int i = 0; i < 2; i++) {
			to->before[i][l] = e ? NAME(entry)(e->before[i]) : 0;
			to->after[i][l] = e ? NAME(entry)(e->after[i]) : 0;
		}
	}
}

// Per-thread memory for `planes` planes of a chunk and one more element; records a failure if NULL.
static REAL *NAME(memory)(const struct chain_pack *p, int planes)
{
	REAL *m = yk_team_scratch((size_t)planes * (size_t)(p->job->length + 1) * PACK * sizeof *m);
	if (!m)
		atomic_store(&p->job->no_memory, true);
	return m;
}

// ---- results ----

// Stores n complex elements of a lane's row from `first` on, from lines of real and imaginary
// parts.
static void NAME(store_line)(const struct chain_view *v, char *row, int64_t first, int64_t n,
			     const REAL *re, const REAL *im, bool divide)
{
	char *at = row + first * v->along * v->size;
	const bool plain = v->dtype == IS_DTYPE && v->along == 2 && v->pair == 1 && !divide;
	if (plain) {
		REAL *to = (REAL *)(void *)at;
		for (int64_t i = 0; i < n; i++) {
			to[2 * i] = re[i];
			to[2 * i + 1] = im[i];
		}
		return;
	}
	for (int64_t i = 0; i < n; i++, at += v->along * v->size) {
		double x = (double)re[i], y = (double)im[i], square = x * x + y * y;
		const double part[2] = { divide ? x / square : x, divide ? -y / square : y };
		for (int k = 0; k < 2; k++) {
			float narrow = (float)part[k];
			if (v->dtype == yoke_f64)
				memcpy(at + k * v->pair * 8, &part[k], 8);
			else
				v->store(at + k * v->pair * v->size, &narrow, 1, 1);
		}
	}
}

// Stores the planes of the result, except lanes marked in `skip`.
static void NAME(store)(const struct chain_pack *p, const struct NAME(planes) * planes,
			const bool *skip, bool divide)
{
	const struct chain_job *j = p->job;
	const struct chain_view *v = &j->out[0];
	const int wide = p->count > W ? PACK : W;
	const bool plain = v->dtype == IS_DTYPE && v->along == 2 && v->pair == 1 && !divide;
	char *row[PACK];
	for (int l = 0; l < p->count; l++)
		row[l] = row_of(v, p->lane[l].row);
	for (int64_t t = 0; t < j->length; t += W)
		for (int q = 0; q < wide / W; q++) {
			rv re[W], im[W];
#pragma GCC unroll 16
			for (int i = 0; i < W; i++) {
				const int64_t at = (t + i < j->length ? t + i : t) * wide + q * W;
				re[i] = NAME(get)(planes->re + at);
				im[i] = NAME(get)(planes->im + at);
			}
			NAME(turn)(re);
			NAME(turn)(im);
			for (int l = 0; l < W && q * W + l < p->count; l++) {
				const struct chain_lane *lane = &p->lane[q * W + l];
				const int64_t first = lane->first + t, left = lane->length - t;
				if (left <= 0 || (skip && skip[q * W + l]))
					continue;
				if (left >= W && plain) {
					rv two[2];
					NAME(join)(re[l], im[l], two);
					memcpy(row[q * W + l] + first * 2 * (int64_t)sizeof(REAL),
					       two, sizeof two);
					continue;
				}
				REAL line[2][W];
				NAME(put)(line[0], re[l]);
				NAME(put)(line[1], im[l]);
				NAME(store_line)
				(v, row[q * W + l], first, left < W ? left : W, line[0], line[1],
				 divide);
			}
		}
}

// ---- the forward pass ----

// Records rows whose z is an eigenvalue: z is real, or a k is negative. In other rows no eigenvalue
// is nearer than |Im z|.
static void NAME(note_singular)(const struct chain_pack *p, const struct NAME(planes) * planes,
				const rv *nearest)
{
	// a few rounding errors; an eigenvector has about 1 / n of its norm in each element
	const double few = 0x1p-49 * fmax(8, (double)p->job->n);
	const int wide = p->count > W ? PACK : W;
	for (int l = 0; l < p->count; l++) {
		bool negative = planes->y[l] == 0;
		for (int64_t t = 0; t <= p->job->length; t++)
			negative |= planes->k[t * wide + l] < 0;
		if (negative && (double)nearest[l / W][l % W] < few)
			record_first(&p->job->singular, p->lane[l].row);
	}
}

static void NAME(run)(const struct chain_pack *p, const struct NAME(planes) * planes, bool wild,
		      bool divide)
{
	rv nearest[2] = { NAME(splat)(1), NAME(splat)(1) };
	const int64_t n = p->job->length;
	const REAL tiny = TINY;
	const bool left = p->job->side, two = p->count > W;
#define CASE(fn, groups) \
	if (wild) \
		NAME(fn)(planes, n, groups, true, true, tiny, nearest); \
	else if (divide) \
		NAME(fn)(planes, n, groups, false, true, tiny, nearest); \
	else \
		NAME(fn)(planes, n, groups, false, false, tiny, nearest);
	if (left && two) {
		CASE(left, 2)
	} else if (left) {
		CASE(left, 1)
	} else if (two) {
		CASE(both, 2)
	} else {
		CASE(both, 1)
	}
#undef CASE
	if (wild)
		NAME(note_singular)(p, planes, nearest);
}

static bool NAME(prepare)(const struct chain_pack *p, struct NAME(planes) * to, REAL *m, REAL *z,
			  bool *odd)
{
	const int64_t each = (p->job->length + 1) * PACK;
	to->a = m;
	to->k = m + each;
	to->re = m + 2 * each;
	to->im = m + 3 * each;
	to->x = z;
	to->y = z + PACK;
	NAME(stage_z)(p, to->x, to->y);
	NAME(entries_of)(p, to);
	return NAME(stage_chain)(p, to->a, to->k, 0, p->job->length, to->x, to->y, odd);
}

static void NAME(forward)(const struct chain_pack *p, bool *odd)
{
	struct NAME(planes) planes;
	REAL z[2 * PACK], *m = NAME(memory)(p, 4);
	if (!m)
		return;
	const bool even = NAME(prepare)(p, &planes, m, z, odd);
	NAME(run)(p, &planes, !even && !IS_F32, !p->divide);
	const bool wide_result = p->job->out[0].dtype == yoke_f64;
	for (int64_t i = 0;
	     p->divide && !wide_result && i < p->job->length * (p->count > W ? PACK : W); i++) {
		const double x = (double)planes.re[i], y = (double)planes.im[i],
			     r = 1 / (x * x + y * y);
		planes.re[i] = (REAL)(x * r);
		planes.im[i] = (REAL)(-y * r);
	}
	NAME(store)(p, &planes, odd, p->divide && wide_result);
}

// ---- entries ----

// Discs that contain L (from the left) or R after w elements: returns 1 over their centres; sets
// `failed` for lanes where a disc is larger than the rounding of its centre.
static void NAME(disc_of)(const struct chain_pack *p, const REAL *a, const REAL *k, int64_t w,
			  bool from_end, const REAL *x, const REAL *y, REAL to[2][PACK],
			  bool *failed)
{
	const int wide = p->count > W ? PACK : W;
	for (int q = 0; q < wide / W; q++) {
		const rv xv = NAME(get)(x + q * W), yv = NAME(get)(y + q * W),
			 half = NAME(splat)((REAL)0.5) / yv;
		int64_t t = from_end ? w - 1 : 0;
		rv kv = NAME(get)(k + t * wide + q * W), r = kv * NAME(size)(half), re, im;
		rv worst = kv, lane[2];
		re = NAME(get)(a + t * wide + q * W) - xv;
		im = -yv - kv * half;
		for (int64_t i = 1; i < w; i++) {
			t += from_end ? -1 : 1;
			kv = NAME(get)(k + t * wide + q * W);
			const rv s = kv / (NAME(fma)(re, re, im * im) - r * r);
			re = NAME(get)(a + t * wide + q * W) - xv - s * re;
			im = s * im - yv;
			r *= s;
			worst = -NAME(larger)(-worst, -kv);
		}
		const rv size = NAME(fma)(re, re, im * im);
		lane[0] = r;
		lane[1] = size;
		const CX in = NAME(inverse)(re, im, false, 0);
		NAME(put)(to[0] + q * W, in.re);
		NAME(put)(to[1] + q * W, in.im);
		for (int l = 0; l < W && q * W + l < p->count; l++) {
			const double radius = (double)lane[0][l],
				     modulus = sqrt((double)lane[1][l]);
			// k < 0: the disc is not valid
			failed[q * W + l] |=
				!(worst[l] >= 0 && radius <= CLOSE * modulus &&
				  isfinite((double)in.re[l]) && isfinite((double)in.im[l]));
		}
	}
}

static void NAME(disc)(const struct chain_pack *p, int64_t w, bool *failed)
{
	const int64_t each = w * PACK;
	REAL z[2 * PACK], in[2][PACK], *m = yk_team_scratch((size_t)each * 2 * sizeof *m);
	if (!m) {
		atomic_store(&p->job->no_memory, true);
		return;
	}
	NAME(stage_z)(p, z, z + PACK);
	for (int end = 0; end < (p->job->side ? 1 : 2); end++) {
		NAME(stage)(p, m, &p->job->a, end ? p->job->length : -w, w, p->job->n, false);
		NAME(stage_bonds)(p, m + each, end ? p->job->length + 1 : -w, w);
		NAME(disc_of)(p, m, m + each, w, end, z, z + PACK, in, failed);
		for (int l = 0; l < p->count; l++) {
			struct chain_entry *e = &p->job->entry[p->lane[l].index];
			double *to = end ? e->after : e->before;
			to[0] = failed[l] ? 0 : (double)in[0][l]; // NaN for real z
			to[1] = failed[l] ? 0 : (double)in[1][l];
		}
	}
}

// Powers of two: 1 over the power of two below the largest component.
static inline rv NAME(scale_of)(CX a, CX b, CX c, CX d)
{
	rv max = NAME(larger)(NAME(larger)(NAME(size)(a.re), NAME(size)(a.im)),
			       NAME(larger)(NAME(size)(b.re), NAME(size)(b.im)));
	max = NAME(larger)(max, NAME(larger)(NAME(size)(c.re), NAME(size)(c.im)));
	max = NAME(larger)(max, NAME(larger)(NAME(size)(d.re), NAME(size)(d.im)));
	const ri power = (ri)max & EXPONENT;
	return (rv)((ri){ 0 } + TWICE_BIAS - power);
}

static void NAME(matrices)(const struct chain_pack *p, bool *odd)
{
	const int wide = p->count > W ? PACK : W;
	struct NAME(planes) planes;
	REAL z[2 * PACK], *m = NAME(memory)(p, 4);
	if (!m)
		return;
	const bool even = NAME(prepare)(p, &planes, m, z, odd);
	for (int q = 0; q < wide / W; q++) {
		const rv im = -NAME(get)(planes.y + q * W), one = NAME(splat)(1), zero = { 0 };
		CX u[2] = { { one, zero }, { zero, zero } },
		   v[2] = { { zero, zero }, { one, zero } };
		for (int64_t t = 0; t < p->job->length; t++) {
			const rv re = NAME(get)(planes.a + t * wide + q * W);
			// no bond before the chunk's first element: v begins after it
			const rv kv = t ? NAME(get)(planes.k + t * wide + q * W) : zero;
			const CX alpha = { re, im }, nu = NAME(product)(alpha, u[0]),
				 nv = NAME(product)(alpha, v[0]);
			const CX un = { nu.re - kv * u[1].re, nu.im - kv * u[1].im };
			const CX vn = { nv.re - kv * v[1].re, nv.im - kv * v[1].im };
			u[1] = u[0];
			v[1] = v[0];
			u[0] = un;
			v[0] = t ? vn : (CX){ one, zero };
			v[1] = t ? v[1] : (CX){ zero, zero };
			if (t % 4 == 3 || !even) {
				const rv scale = NAME(scale_of)(u[0], u[1], v[0], v[1]);
				for (int i = 0; i < 2; i++) {
					u[i] = (CX){ u[i].re * scale, u[i].im * scale };
					v[i] = (CX){ v[i].re * scale, v[i].im * scale };
				}
			}
		}
		for (int l = 0; l < W && q * W + l < p->count; l++) {
			struct chain_link *to = &p->job->link[p->lane[q * W + l].index];
			for (int i = 0; i < 2; i++) {
				to->of[i][0] = (double)u[i].re[l];
				to->of[i][1] = (double)u[i].im[l];
				to->of[2 + i][0] = (double)v[i].re[l];
				to->of[2 + i][1] = (double)v[i].im[l];
			}
		}
	}
}

#include "kern_resolvent_backward.h"

const struct chain_lanes ISA(NAME(yk_chain)) = {
	.width = PACK,
	.disc = NAME(disc),
	.matrices = NAME(matrices),
	.forward = NAME(forward),
	.back = NAME(back),
	.near = NAME(near),
};
