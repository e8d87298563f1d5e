// SPDX-License-Identifier: Apache-2.0
// Many Fourier transforms at a time, one per vector lane: elements are loaded into lanes,
// transformed by the passes of kern_fft_passes.h and stored. Included after it.

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
	const FOUR ab = YK_SHUFFLE(x[0], x[1], 0, 4, 1, 5),
		   cd = YK_SHUFFLE(x[2], x[3], 0, 4, 1, 5);
	const FOUR AB = YK_SHUFFLE(x[0], x[1], 2, 6, 3, 7),
		   CD = YK_SHUFFLE(x[2], x[3], 2, 6, 3, 7);
	y[0] = YK_SHUFFLE(ab, cd, 0, 1, 4, 5);
	y[1] = YK_SHUFFLE(ab, cd, 2, 3, 6, 7);
	y[2] = YK_SHUFFLE(AB, CD, 0, 1, 4, 5);
	y[3] = YK_SHUFFLE(AB, CD, 2, 3, 6, 7);
}
#endif

// The end of a cache line's worth of elements from j on, in pairs: all are moved for four rows
// before the next four, because rows that are a power of two apart compete for the same lines of
// L1.
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

// z [h], the transform of pairs of 2 h real numbers -> their spectrum [h + 1], times `weight` but
// at the ends
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

// The reverse: x [h + 1] -> z [h] with re and im exchanged, whose forward transform then gives
// pairs, exchanged
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

// The two buffers of a block, 2 FFT(buffer) vectors apart; NULL: no memory, which is noted.
static V *FFT(buffers)(const struct FFT(lanes) * p, atomic_bool *no_memory)
{
	V *x = yk_team_scratch((size_t)(4 * FFT(buffer)(p)) * sizeof *x);
	if (!x)
		atomic_store(no_memory, true);
	return x;
}

static void FFT(item)(void *arg, int64_t index)
{
	struct FFT(job) *j = arg;
	const int64_t size = FFT(buffer)(&j->plan->lanes), b0 = index * j->each;
	const int64_t b1 = b0 + j->each < j->blocks ? b0 + j->each : j->blocks;
	V *x = FFT(buffers)(&j->plan->lanes, &j->no_memory);
	int64_t at[YOKE_MAX_RANK], from[VL], to[VL];
	if (!x)
		return;
	rows_at(&j->rows, b0 * VL, at);
	for (int64_t b = b0; b < b1; b++) {
		const int lanes = (int)(j->rows.count - b * VL < VL ? j->rows.count - b * VL : VL);
		for (int l = 0; l < lanes; l++)
			rows_next(&j->rows, at, &from[l], &to[l]);
		FFT(block)(j, x, x + 2 * size, from, to, lanes);
	}
}
