// SPDX-License-Identifier: Apache-2.0
// Few rows of a times dense rows of b: b is read once, in place; its bf16 values are joined to
// pairs in registers. Included by kern_contract_gemm.h next to kern_contract_dots.h.

// Columns joined at a time: one vector of bf16, two vectors of sums.
enum { UNIT = 32 };

// As many units as there are registers for sums.
#define UNITS(rows) ((rows) <= MR / 2 ? 2 : 1)

static const uint16_t join_first[UNIT] = { 0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
					   37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
					   11, 43, 12, 44, 13, 45, 14, 46, 15, 47 };

// c (rows, units * UNIT; `some` masks the last unit) = or += a [k / 2][MR], in pairs, times b, rows
// ldb apart; prefetches the row of b that is `ahead` rows further.
FLAT void join(const int rows, const int units, int64_t k, const P *a, const uint16_t *b,
	       int64_t ldb, T *c, int64_t ldc, bool add, int64_t ahead, __mmask32 some)
{
	const __m512i first = _mm512_loadu_si512(join_first);
	const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(UNIT / 2));
	__m512 sum[2 * MR];

#pragma GCC unroll 32
	for (int i = 0; i < rows * units * 2; i++)
		sum[i] = _mm512_setzero_ps();
	for (int64_t l = 0; l < k; l += 2, a += MR, b += 2 * ldb) {
		__m512bh x[4];
#pragma GCC unroll 2
		for (int u = 0; u < units; u++) {
			const uint16_t *p = b + u * UNIT;
			__m512i lo = _mm512_maskz_loadu_epi16(some, p), hi;
			hi = _mm512_maskz_loadu_epi16(l + 1 < k ? some : 0, p + ldb);
			if (ahead) {
				__builtin_prefetch(p + ahead * ldb, 0, 2);
				__builtin_prefetch(p + (ahead + 1) * ldb, 0, 2);
			}
			x[2 * u] = (__m512bh)_mm512_permutex2var_epi16(lo, first, hi);
			x[2 * u + 1] =
				(__m512bh)_mm512_permutex2var_epi16(lo, second, hi);
		}
#pragma GCC unroll 12
		for (int i = 0; i < rows; i++) {
			const __m512bh y = yk_pair_in_all(a[i]);
#pragma GCC unroll 4
			for (int j = 0; j < 2 * units; j++)
				sum[i * units * 2 + j] = _mm512_dpbf16_ps(
					sum[i * units * 2 + j], y, x[j]);
		}
	}
#pragma GCC unroll 12
	for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
		for (int j = 0; j < 2 * units; j++) {
			const __mmask16 mine = (__mmask16)(j % 2 ? some >> VL : some);
			T *to = c + i * ldc + j * VL;
			__m512 s = sum[i * units * 2 + j];
			if (add)
				s = _mm512_add_ps(s, _mm512_maskz_loadu_ps(mine, to));
			_mm512_mask_storeu_ps(to, mine, s);
		}
	}
}

typedef void join_fn(int64_t k, const P *a, const uint16_t *b, int64_t ldb, T *c,
		     int64_t ldc, bool add, int64_t ahead, __mmask32 some);

#define JOIN(rows) \
	static void wide_##rows(int64_t k, const P *a, const uint16_t *b, int64_t ldb, \
				T *c, int64_t ldc, bool add, int64_t ahead, \
				__mmask32 some) \
	{ \
		(void)some; \
		join(rows, UNITS(rows), k, a, b, ldb, c, ldc, add, ahead, \
		     (__mmask32)-1); \
	} \
	static void edge_##rows(int64_t k, const P *a, const uint16_t *b, int64_t ldb, \
				T *c, int64_t ldc, bool add, int64_t ahead, \
				__mmask32 some) \
	{ \
		join(rows, 1, k, a, b, ldb, c, ldc, add, ahead, some); \
	}
EACH_ROWS(JOIN)

#define ENTRY(rows) { wide_##rows, edge_##rows, UNITS(rows) *UNIT },
static const struct {
	join_fn *wide, *edge;
	int cols; // columns of wide
} joins[MR] = { EACH_ROWS(ENTRY) };
#undef ENTRY

// c (rows, n) = or += a b.
static void join_strip(int rows, int64_t n, int64_t k, const P *a, const uint16_t *b,
		       int64_t ldb, T *c, int64_t ldc, bool add, int64_t ahead)
{
	const int cols = joins[rows - 1].cols;
	int64_t j = 0;

	for (; j + cols <= n; j += cols)
		joins[rows - 1].wide(k, a, b + j, ldb, c + j, ldc, add, ahead, 0);
	for (; j < n; j += UNIT)
		joins[rows - 1].edge(k, a, b + j, ldb, c + j, ldc, add, ahead,
				     n - j < UNIT ? ((__mmask32)1 << (n - j)) - 1 :
						    (__mmask32)-1);
}

static void strips_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	struct work p = work_of(job, item);
	int64_t a_size = yk_ceil_div(p.m, MR) * MR * DEPTH(g->k);
	int64_t depth = strip_depth(g, p.n);
	struct scratch r;
	const P *a;
	T *c;

	if (!take_scratch(job, a_size + p.m * p.n, &r))
		return;
	c = r.at + a_size;
	a = (const P *)r.at;
	pack_a((P *)r.at, g, p.a, p.m, g->k, 0, g->k);
	for (int64_t l = 0; l < g->k; l += depth) {
		int64_t k = yk_min(depth, g->k - l), ahead = l + depth < g->k ? depth : 0;
		for (int64_t i = 0; i < p.m; i += MR)
			join_strip((int)yk_min(MR, p.m - i), p.n, k,
				   a + i * DEPTH(g->k) + DEPTH(l) * MR,
				   half_at(p.b, l * g->bk), g->bk, c + i * p.n, p.n,
				   l > 0, ahead);
	}
	finish(g, &r, c, p.n, p.c, p.j, p.m, p.n);
}
