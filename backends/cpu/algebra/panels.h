// SPDX-License-Identifier: Apache-2.0
// Vectors of EIGH and SVD as panels: WIDTH components of all n vectors lie together, z [n][WIDTH],
// so that reflections and recorded rotations of the vectors are applied to each panel
// independently, in a cache. The work on a panel depends only on n. Included once per precision,
// after vec_f32.h or vec_f64.h, with PANELS(name) and DOT(a, b, n).

#ifndef YK_PANELS_H
#define YK_PANELS_H

enum {
	GROUP = 4,
	PAIRS = GROUP * (GROUP - 1) / 2
}; // reflections that are applied in one pass; pairs of them

// Rotations of neighbouring vectors, from vector `from` in steps of 1 or -1 to `to`; their
// coefficients c - 1 and s are stored from index `at` on. c itself would be rounded to 1 for small
// angles, and the vectors would grow.
struct sweep {
	int64_t from, to, at;
};

// c f + s g = r, c g - s f = 0; f f + g g does not overflow
static double rotation(double f, double g, double *c, double *s)
{
	if (g == 0) {
		*c = 1;
		*s = 0;
		return f;
	}
	const double square = f * f + g * g;
	if (square < DBL_MIN / DBL_EPSILON) { // rare
		const double max = fmax(fabs(f), fabs(g)), x = f / max, y = g / max,
			     length = sqrt(x * x + y * y);
		*c = x / length;
		*s = y / length;
		return max * length;
	}
	const double r = sqrt(square);
	*c = f / r;
	*s = g / r;
	return r;
}

// True if the second sweep follows the first in its direction and within its vectors, so that
// both are applied in one pass.
static inline bool sweeps_nest(const struct sweep *a, const struct sweep *b)
{
	return a->to > a->from ? a->from <= b->from && b->from < b->to && b->to <= a->to :
				 a->from >= b->from && b->from > b->to && b->to >= a->to;
}

#endif

enum {
	PANELS(width) = 128 / sizeof(REAL),
	PANELS(count) = PANELS(width) / VL
}; // components; vectors of them

static inline int64_t PANELS(of)(int64_t n)
{
	return (n + PANELS(width) - 1) / PANELS(width);
}

static inline REAL PANELS(component)(const REAL *z, int64_t n, int64_t vector, int64_t i)
{
	return z[(i / PANELS(width) * n + vector) * PANELS(width) + i % PANELS(width)];
}

// Reflection k is 1 - tau[k] u u' with u in row k from column k + shift on. dots: u_j' u_i for the
// pairs j > i of each group of reflections, [groups][PAIRS].
static void PANELS(dots)(int64_t n, const REAL *u, int64_t ld, int64_t shift, REAL *dots)
{
	for (int64_t k = 0; k < n; k += GROUP)
		for (int64_t j = 1; j < GROUP; j++)
			for (int64_t i = 0; i < j; i++, dots++) {
				const int64_t from = k + j + shift;
				*dots = from < n ? DOT(u + (k + j) * ld + from,
						       u + (k + i) * ld + from, n - from) :
						   0;
			}
}

// Sets a panel to rows of the identity and applies all reflections, from the first to the last: the
// panel of their product.
static void PANELS(begin)(int64_t n, const REAL *u, int64_t ld, const REAL *tau, int64_t shift,
			  const REAL *dots, int64_t panel, REAL *z)
{
	enum { N = PANELS(count), W = PANELS(width) };
	memset(z, 0, (size_t)(n * W) * sizeof *z);
	for (int64_t j = 0; j < W && panel * W + j < n; j++)
		z[(panel * W + j) * W + j] = 1;
	for (int64_t k = 0; k < n; k += GROUP, dots += PAIRS) {
		const REAL *row[GROUP];
		V s[GROUP][N] = { { { 0 } } };
		bool any = false;
		for (int j = 0; j < GROUP; j++) {
			row[j] = u + (k + j < n ? k + j : k) * ld;
			any |= k + j < n && tau[k + j] != 0;
		}
		if (!any)
			continue;
		for (int64_t i = k + shift; i < n; i++) {
			const int64_t begun =
				i - k - shift + 1; // reflections that have a component i
			for (int j = 0; j < GROUP; j++) {
				const V f = SPLAT(j < begun ? row[j][i] : 0);
				for (int p = 0; p < N; p++)
					s[j][p] = FMA(f, LOAD(z + i * W + p * VL), s[j][p]);
			}
		}
		for (int j = 0; j < GROUP; j++)
			for (int p = 0; p < N; p++) {
				for (int i = 0; i < j; i++)
					s[j][p] = FMA(SPLAT(-dots[j * (j - 1) / 2 + i]), s[i][p],
						      s[j][p]);
				s[j][p] *= k + j < n ? tau[k + j] : 0;
			}
		for (int64_t i = k + shift; i < n; i++) {
			const int64_t begun = i - k - shift + 1;
			for (int p = 0; p < N; p++) {
				V x = LOAD(z + i * W + p * VL);
				for (int j = 0; j < GROUP; j++)
					x = FMA(SPLAT(j < begun ? -row[j][i] : 0), s[j][p], x);
				STORE(z + i * W + p * VL, x);
			}
		}
	}
}

// One rotation of a panel: of vectors x and y, c x + s y remains, and c y - s x goes on. x is
// carried, and `next` is y; *out is what remains.
static inline __attribute__((always_inline)) void PANELS(rotate)(const REAL *c, const REAL *s,
								 V *carried, const V *next, V *out)
{
	for (int p = 0; p < PANELS(count); p++) {
		const V y = next[p], x = carried[p];
		out[p] = FMA(SPLAT(*s), y, FMA(SPLAT(*c), x, x));
		carried[p] = FMA(SPLAT(-*s), x, FMA(SPLAT(*c), y, y));
	}
}

static inline __attribute__((always_inline)) void PANELS(load)(V *to, const REAL *row)
{
	for (int p = 0; p < PANELS(count); p++)
		to[p] = LOAD(row + p * VL);
}

static inline __attribute__((always_inline)) void PANELS(store)(REAL *row, const V *from)
{
	for (int p = 0; p < PANELS(count); p++)
		STORE(row + p * VL, from[p]);
}

// The rotations of one sweep from vector `row` on, whose content is carried, to vector `end`.
static void PANELS(turn_from)(REAL *row, const REAL *end, int64_t step, const REAL *c,
			      const REAL *s, V *carried)
{
	V next[PANELS(count)], out[PANELS(count)];
	for (; row != end; row += step) {
		PANELS(load)(next, row + step);
		PANELS(rotate)(c++, s++, carried, next, out);
		PANELS(store)(row, out);
	}
	PANELS(store)(row, carried);
}

static void PANELS(turn_one)(const struct sweep *w, const REAL *c, const REAL *s, REAL *z)
{
	enum { W = PANELS(width) };
	V carried[PANELS(count)];
	PANELS(load)(carried, z + w->from * W);
	PANELS(turn_from)(z + w->from * W, z + w->to * W, w->to > w->from ? W : -W, c + w->at,
			  s + w->at, carried);
}

// Applies two sweeps that nest in one pass. The second sweep lags the first by one vector: each
// vector that the first sweep has finished is the next operand of the second.
static void PANELS(turn_two)(const struct sweep *w, const REAL *c, const REAL *s, REAL *z)
{
	enum { N = PANELS(count), W = PANELS(width) };
	const int64_t step = w->to > w->from ? W : -W;
	const REAL *ca = c + w[0].at, *sa = s + w[0].at, *cb = c + w[1].at, *sb = s + w[1].at;
	REAL *row = z + w[0].from * W, *const end = z + w[0].to * W;
	const REAL *const first = z + w[1].from * W, *const last = z + w[1].to * W;
	V a[N], b[N], next[N], left[N], out[N];

	PANELS(load)(a, row);
	for (; row != first; row += step) {
		PANELS(load)(next, row + step);
		PANELS(rotate)(ca++, sa++, a, next, out);
		PANELS(store)(row, out);
	}
	PANELS(load)(next, row + step);
	PANELS(rotate)(ca++, sa++, a, next, b);
	for (row += step; row != last; row += step) {
		PANELS(load)(next, row + step);
		PANELS(rotate)(ca++, sa++, a, next, left);
		PANELS(rotate)(cb++, sb++, b, left, out);
		PANELS(store)(row - step, out);
	}
	if (row == end) {
		PANELS(rotate)(cb, sb, b, a, out);
		PANELS(store)(row - step, out);
		PANELS(store)(row, b);
		return;
	}
	PANELS(load)(next, row + step);
	PANELS(rotate)(ca++, sa++, a, next, left);
	PANELS(rotate)(cb, sb, b, left, out);
	PANELS(store)(row - step, out);
	PANELS(store)(row, b);
	PANELS(turn_from)(row + step, end, step, ca, sa, a);
}

// Applies the rotations of sweeps, in their order, to a panel.
static void PANELS(turn)(const struct sweep *w, int64_t sweeps, const REAL *c, const REAL *s,
			 REAL *z)
{
	for (int64_t k = 0; k < sweeps; k++)
		if (k + 1 < sweeps && sweeps_nest(&w[k], &w[k + 1]))
			PANELS(turn_two)(&w[k++], c, s, z);
		else
			PANELS(turn_one)(&w[k], c, s, z);
}
