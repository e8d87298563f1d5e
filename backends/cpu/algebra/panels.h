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

// Applies the rotations of a sweep to a panel: of vectors x and y, in the sweep's order, c x + s y
// remains, and c y - s x goes on.
static void PANELS(turn)(const struct sweep *w, const REAL *c, const REAL *s, REAL *z)
{
	enum { N = PANELS(count), W = PANELS(width) };
	const int64_t step = w->to > w->from ? W : -W;
	REAL *row = z + w->from * W, *const end = z + w->to * W;
	V carried[N];
	c += w->at;
	s += w->at;
	for (int p = 0; p < N; p++)
		carried[p] = LOAD(row + p * VL);
	for (; row != end; row += step, c++, s++)
		for (int p = 0; p < N; p++) {
			const V next = LOAD(row + step + p * VL);
			STORE(row + p * VL,
			      FMA(SPLAT(*s), next, FMA(SPLAT(*c), carried[p], carried[p])));
			carried[p] = FMA(SPLAT(-*s), carried[p], FMA(SPLAT(*c), next, next));
		}
	for (int p = 0; p < N; p++)
		STORE(row + p * VL, carried[p]);
}
