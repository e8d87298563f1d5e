// SPDX-License-Identifier: Apache-2.0
// Few rows of a times columns of b that are dense along k: inner products of bf16 pairs in place,
// so that b, the larger operand, is read once and never copied. Included by kern_contract_gemm.h
// for a level that defines PAIR_DOTS and, like kern_contract_tile.h, DOT_MAX and DOT_FAR.

// Rows and columns per step, limited by the registers for sums. STRETCH of k and DOT_WIDE columns
// are chosen so that the block of a and the sums, one vector each, stay in L1.
enum { DOT_ROWS = 8, DOT_COLS = 3, DOT_K = 32, STRETCH = 512, DOT_WIDE = 4 * DOT_COLS };

FLAT __m512bh load_pairs(const uint16_t *p, __mmask32 some, const bool all)
{
	return (__m512bh)(all ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16(some, p));
}

// Adds up to DOT_K products to each sum.
FLAT void dot_step(const int rows, const int cols, const uint16_t *a, const uint16_t *b,
		   int64_t ldb, __m512 *sum, __mmask32 some, const bool all)
{
	__m512bh y[DOT_COLS];

#pragma GCC unroll 4
	for (int j = 0; j < cols; j++) {
		y[j] = load_pairs(b + j * ldb, some, all);
		__builtin_prefetch(b + j * ldb + STRETCH, 0, 2);
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		__m512bh x = (__m512bh)_mm512_load_si512(a + i * DOT_K);
#pragma GCC unroll 4
		for (int j = 0; j < cols; j++)
			sum[i * cols + j] = _mm512_dpbf16_ps(sum[i * cols + j], x, y[j]);
	}
}

// sums (rows, DOT_WIDE vectors) = or += a (rows, k), stored as blocks of DOT_K `step` apart, times
// columns of b, ldb apart.
FLAT void dots(const int rows, const int cols, int64_t k, const uint16_t *a, int64_t step,
	       const uint16_t *b, int64_t ldb, T *sums, bool add)
{
	__m512 sum[DOT_ROWS * DOT_COLS];
	int64_t l = 0;

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
		for (int j = 0; j < cols; j++)
			sum[i * cols + j] =
				add ? _mm512_load_ps(sums + (i * DOT_WIDE + j) * VL) :
				      _mm512_setzero_ps();
	}
	for (; l + DOT_K <= k; l += DOT_K, a += step)
		dot_step(rows, cols, a, b + l, ldb, sum, 0, true);
	if (l < k)
		dot_step(rows, cols, a, b + l, ldb, sum, ((__mmask32)1 << (k - l)) - 1,
			 false);
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
		for (int j = 0; j < cols; j++)
			_mm512_store_ps(sums + (i * DOT_WIDE + j) * VL, sum[i * cols + j]);
	}
}

typedef void dot_fn(int64_t k, const uint16_t *a, int64_t step, const uint16_t *b,
		    int64_t ldb, T *sums, bool add);

#define DOT(rows, cols) \
	static void dot_##rows##_##cols(int64_t k, const uint16_t *a, int64_t step, \
					const uint16_t *b, int64_t ldb, T *sums, \
					bool add) \
	{ \
		dots(rows, cols, k, a, step, b, ldb, sums, add); \
	}
#define EACH_DOT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define DOTS(rows) DOT(rows, 1) DOT(rows, 3)
EACH_DOT(DOTS)

#define ENTRY(rows) { dot_##rows##_1, dot_##rows##_3 },
static dot_fn *const dot_of[DOT_ROWS][2] = { EACH_DOT(ENTRY) };
#undef ENTRY

// c (m, n), rows ldc apart, n <= DOT_WIDE, = a (m, k) in the layout of pack_rows times columns of
// b.
static void dots_wide(int64_t m, int64_t n, int64_t k, const uint16_t *a,
		      const uint16_t *b, int64_t ldb, T *c, int64_t ldc)
{
	_Alignas(64) T sums[DOT_FAR * DOT_WIDE * VL];
	int64_t step = yk_ceil_div(m, yk_ceil_div(m, DOT_ROWS)), cols;

	for (int64_t l = 0; l < k; l += STRETCH)
		for (int64_t j = 0; j < n; j += cols) {
			cols = n - j >= DOT_COLS ? DOT_COLS : 1;
			for (int64_t i = 0; i < m; i += step)
				dot_of[yk_min(step, m - i) - 1][cols > 1](
					yk_min(STRETCH, k - l), a + l * m + i * DOT_K,
					m * DOT_K, b + j * ldb + l, ldb,
					sums + (i * DOT_WIDE + j) * VL, l > 0);
		}
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			c[i * ldc + j] = _mm512_reduce_add_ps(
				_mm512_load_ps(sums + (i * DOT_WIDE + j) * VL));
}

static void block_dots(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t unit = DOT_WIDE, cols = yk_ceil_div(2 * SMALL, g->m * g->k);

	c->mb = g->m;
	if (cols < g->n / MANY)
		cols = g->n / MANY;
	c->nb = yk_ceil_div(yk_min(cols, g->n), unit) * unit;
}

// a (m, k) as [k / DOT_K][m][DOT_K], zero beyond k. Without packing, rows a power of two apart
// would map to the same few sets of the L1 cache.
static void pack_rows(uint16_t *to, const struct yk_gemm *g, const char *a)
{
	for (int64_t l = 0; l < g->k; l += DOT_K)
		for (int64_t i = 0; i < g->m; i++, to += DOT_K) {
			const uint16_t *from = half_at(a, i * g->am + l * g->ak);
			int64_t n = yk_min(DOT_K, g->k - l);
			if (n < DOT_K)
				memset(to, 0, DOT_K * sizeof *to);
			if (g->ak == 1)
				memcpy(to, from, (size_t)n * sizeof *to);
			else
				for (int64_t q = 0; q < n; q++)
					to[q] = from[q * g->ak];
		}
}

static void dots_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	struct work p = work_of(job, item);
	int64_t a_size = yk_ceil_div(g->k, DOT_K) * g->m * DOT_K / 2; // in units of T
	struct scratch r;
	T *c;

	if (!take_scratch(job, a_size + g->m * p.n, &r))
		return;
	c = r.at + a_size;
	pack_rows((uint16_t *)r.at, g, p.a);
	for (int64_t j = 0; j < p.n; j += DOT_WIDE)
		dots_wide(g->m, yk_min(DOT_WIDE, p.n - j), g->k, (uint16_t *)r.at,
			  half_at(p.b, j * g->bn), g->bn, c + j, p.n);
	finish(g, &r, c, p.n, p.c, p.j, g->m, p.n);
}
