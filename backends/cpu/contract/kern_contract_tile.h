// SPDX-License-Identifier: Apache-2.0
// The innermost loops of contractions, for one element type and one instruction set. A tile is MR
// rows by NR = NV vectors of c, held in registers while the sums run. Included by
// kern_contract_f32.c and _f64.c, which define T, VL (lanes), MR, NV and FMA. Arrays stay in
// registers only if their size is constant and loops are fully unrolled: hence the pragmas.

#include "kern_contract_vec.h"

// With LANES, a product takes one factor from any lane of a register, or of each 128 bits of it
// (REPEATED): a is loaded by SEGMENT elements, and four steps are unrolled. FENCE keeps a compiler
// from loading for later steps before there are free registers.
#ifdef LANES
#define FENCE __asm__ volatile("" : : : "memory")
#else
#define LANES 0
#define FENCE (void)0
#endif
enum {
	SEGMENT = 16 / sizeof(T),
	STEPS = 64, // with lanes: steps between prefetches of the next rows of a
	LINE = 64,  // bytes
};

#ifdef HALVES
#define PLAIN yoke_f32
#else
#define PLAIN yoke_f64
#endif

// ---- elements in place: T itself, or (HALVES) f16 and bf16 converted when read ----

FLAT int bytes_of(const int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16 ? 2 : sizeof(T);
}

#ifdef HALVES
typedef uint16_t halves_u __attribute__((vector_size(VL * 2), aligned(2), may_alias));
typedef uint32_t words __attribute__((vector_size(VL * 4)));

FLAT T load_one(const int dtype, const char *p)
{
	uint16_t h;

	if (dtype == yoke_f32)
		return *(const T *)p;
	memcpy(&h, p, sizeof h);
	return dtype == yoke_bf16 ? yk_f32_of_bf16(h) : yk_f32_of_f16(h);
}

FLAT vec load_as(const int dtype, const char *p)
{
	if (dtype == yoke_f32)
		return *(const vec_u *)p;
	if (dtype == yoke_bf16)
		return (vec)(__builtin_convertvector(*(const halves_u *)p, words) << 16);
#if defined __AVX512F__
	return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#elif defined __AVX2__
	return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#else
	vec v;
	for (int i = 0; i < VL; i++)
		v[i] = load_one(dtype, p + 2 * i);
	return v;
#endif
}
#else
FLAT T load_one(const int dtype, const char *p)
{
	(void)dtype;
	return *(const T *)p;
}

FLAT vec load_as(const int dtype, const char *p)
{
	(void)dtype;
	return *(const vec_u *)p;
}
#endif

// ---- the loop ----

// Loads n consecutive vectors and advances the pointer. In assembler, because compilers would load
// the elements one by one, for products with lanes, and advance the pointer by an instruction of
// its own.
FLAT void load_vectors(const int n, const T **from, vec *to)
{
#ifdef REPEATED
#pragma GCC unroll 8
	for (int i = 0; i < n; i++)
		to[i] = ((const vec_u *)*from)[i];
	*from += n * VL;
#elif LANES
	int i = 0;
#pragma GCC unroll 8
	for (; i + 2 <= n; i += 2)
		__asm__ volatile("ldp %q0, %q1, [%2], #32"
				 : "=w"(to[i]), "=w"(to[i + 1]), "+r"(*from)
				 : "m"(*(const T(*)[2 * VL]) * from));
	if (i < n)
		__asm__ volatile("ldr %q0, [%1], #16"
				 : "=w"(to[i]), "+r"(*from)
				 : "m"(*(const T(*)[VL]) * from));
#else
	(void)n, (void)from, (void)to;
#endif
}

// The same for n segments, each of which is repeated to the length of a vector.
FLAT void load_segments(const int n, const T **from, vec *to)
{
#ifdef REPEATED
#pragma GCC unroll 8
	for (int i = 0; i < n; i++) {
		const __typeof__(REPEATED(*from)) one = REPEATED(*from + i * SEGMENT);
		memcpy(&to[i], &one, sizeof to[i]);
		// others would be copied before each product
		__asm__ volatile("" : LANE_REGISTER(to[i]));
	}
	*from += n * SEGMENT;
#else
	load_vectors(n, from, to);
#endif
}

// sum += x times a lane of y. In assembler, because compilers would copy sums from register to
// register.
FLAT void fma_lane(vec *sum, vec x, vec y, const int lane)
{
#if LANES
	switch (lane) {
	case 0: FMA_LANE(*sum, x, y, 0); break;
	case 1: FMA_LANE(*sum, x, y, 1); break;
#if LANES == 4
	case 2: FMA_LANE(*sum, x, y, 2); break;
	default: FMA_LANE(*sum, x, y, 3);
#endif
	}
#else
	(void)sum, (void)x, (void)y, (void)lane;
#endif
}

// Adds the products of one column of a and one row of b, and advances to the next ones; copy and
// next belong to this row.
FLAT void multiply_step(const int rows, const int nv, int64_t last, const T **a, int64_t am,
			int64_t ak, const int dtype, const char **b, int64_t ldb, vec *sum,
			int64_t ahead, T **copy, const char **next, int64_t step)
{
	const bool lanes = LANES && am == 1 && rows % SEGMENT == 0,
		   plain = lanes && dtype == PLAIN && !ahead && last == (nv - 1) * VL;
	const int size = bytes_of(dtype);
	vec x[MR * NV], column[MR] = { { 0 } };

	if (*next) {
		__builtin_prefetch(*next, 0, 2);
		*next += step;
	}
	if (plain) {
		const T *at = (const T *)*b;
		load_vectors(nv, &at, x);
		*b = (const char *)(at - nv * VL);
	}
#pragma GCC unroll 32
	for (int j = 0; j < nv; j++) {
		const int64_t at = j == nv - 1 ? last : j * VL;
		if (!plain)
			x[j] = load_as(dtype, *b + at * size);
		if (ahead) // to L2: rows that are far apart compete for the same sets of L1
			__builtin_prefetch(*b + (ahead * ldb + at) * size, 0, 2);
		if (*copy)
			*(vec_u *)(*copy + j * VL) = x[j];
	}
	*copy += *copy ? nv * VL : 0;
	*b += ldb * size;
	if (lanes) {
		load_segments(rows / SEGMENT, a, column);
		*a += ak - rows;
		FENCE;
	}
#pragma GCC unroll 32
	for (int i = 0; i < rows; i++) {
		vec y = (lanes ? 0 : (*a)[i * am]) - (vec){ 0 };
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++)
			if (lanes)
				fma_lane(&sum[i * nv + j], x[j], column[i / SEGMENT], i % SEGMENT);
			else
				sum[i * nv + j] = FMA(y, x[j], sum[i * nv + j]);
	}
	if (!lanes)
		*a += ak;
}

// a (rows, k), strides am, ak; b (k, nv vectors) of dtype, rows ldb apart; c (rows, nv vectors).
// last: the column at which the last vector starts. It may overlap the vector before it; both then
// hold the same sums. add: c += instead of =. ahead: prefetch distance in rows of b; 0 where the
// hardware prefetches the stream. copy: receives b in packed form, or NULL. next: other memory of
// which `step` bytes are prefetched per row of b, or NULL.
FLAT void multiply(const int rows, const int nv, int64_t last, int64_t k, const T *a,
		   int64_t am, int64_t ak, const int dtype, const char *b, int64_t ldb, T *c,
		   int64_t ldc, bool add, int64_t ahead, T *copy, const char *next, int64_t step)
{
	vec sum[MR * NV];

#pragma GCC unroll 32
	for (int i = 0; i < rows * nv; i++)
		sum[i] = (vec){ 0 };
	int64_t rest = k;
#if LANES
	if (am == 1 && rows % SEGMENT == 0) {
		const char *none = NULL; // prefetches would be a tenth of the inner loop
		rest = k % 4;
		for (int64_t left = k - rest, steps; left; left -= steps) {
			steps = left < STEPS ? left : STEPS;
			if (next) {
				for (int64_t i = 0; i < steps * step; i += LINE)
					__builtin_prefetch(next + i, 0, 2);
				next += steps * step;
			}
			// an unrolled loop would have this one unrolled too
			for (const T *end = a + steps * ak; a != end;) {
				multiply_step(rows, nv, last, &a, am, ak, dtype, &b, ldb, sum,
					      ahead, &copy, &none, 0);
				multiply_step(rows, nv, last, &a, am, ak, dtype, &b, ldb, sum,
					      ahead, &copy, &none, 0);
				multiply_step(rows, nv, last, &a, am, ak, dtype, &b, ldb, sum,
					      ahead, &copy, &none, 0);
				multiply_step(rows, nv, last, &a, am, ak, dtype, &b, ldb, sum,
					      ahead, &copy, &none, 0);
			}
		}
	}
#endif
	for (int64_t l = 0; l < rest; l++)
		multiply_step(rows, nv, last, &a, am, ak, dtype, &b, ldb, sum, ahead, &copy, &next,
			      step);
#pragma GCC unroll 32
	for (int i = 0; i < rows; i++) {
		T *to = c + i * ldc;
		if (add) { // all vectors before the first is stored, because they may overlap
#pragma GCC unroll 32
			for (int j = 0; j < nv; j++)
				sum[i * nv + j] +=
					*(const vec_u *)(to + (j == nv - 1 ? last : j * VL));
		}
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++)
			*(vec_u *)(to + (j == nv - 1 ? last : j * VL)) = sum[i * nv + j];
	}
}

// The same for sums that are not in a near cache. They are prefetched to L2: L1 would not keep them
// until the end of the loop.
FLAT void multiply_far(const int rows, const int nv, int64_t last, int64_t k, const T *a,
		       int64_t am, int64_t ak, const int dtype, const char *b, int64_t ldb, T *c,
		       int64_t ldc, bool add, int64_t ahead, T *copy, const char *next,
		       int64_t step)
{
#pragma GCC unroll 32
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++)
			__builtin_prefetch(c + i * ldc + (j == nv - 1 ? last : j * VL), 0, 2);
	multiply(rows, nv, last, k, a, am, ak, dtype, b, ldb, c, ldc, add, ahead, copy, next, step);
}

// Rows of packed b to prefetch ahead, into the next panel; 0 where that would need other loads.
enum { AHEAD = LANES ? 0 : 4096 / (NR * sizeof(T)) };

FLAT void multiply_tile(const int rows, const int nv, int64_t k, const T *a, const T *b, T *c,
			int64_t ldc, bool add, const bool far, const char *next, int64_t step)
{
	multiply_far(rows, nv, (nv - 1) * VL, k, a, 1, MR, PLAIN, (const char *)b, NR, c, ldc, add,
		     far ? AHEAD : 0, NULL, next, step);
}

#include "kern_contract_tiles.h"

// ---- few rows of a; b in place with dense rows ----

// With fewer rows, more columns fit in the registers, and b is read in longer runs.
#define WIDE(rows) (MR * NV / (rows) < 16 ? MR * NV / (rows) : 16)

// last: of a tile of two vectors. next, step: as for multiply.
typedef void strip_fn(int64_t last, int64_t k, const T *a, int64_t am, int64_t ak, const char *b,
		      int64_t ldb, T *c, int64_t ldc, bool add, int64_t ahead, const char *next,
		      int64_t step);

#define STRIP(rows, name, nv, at, dtype) \
	static void name##_##rows(int64_t last, int64_t k, const T *a, int64_t am, int64_t ak, \
				  const char *b, int64_t ldb, T *c, int64_t ldc, bool add, \
				  int64_t ahead, const char *next, int64_t step) \
	{ \
		(void)last; \
		multiply_far(rows, nv, at, k, a, am, ak, dtype, b, ldb, c, ldc, add, ahead, NULL, \
			     next, step); \
	}
#define STRIPS_OF(rows, kind, dtype) \
	STRIP(rows, wide##kind, WIDE(rows), (WIDE(rows) - 1) * VL, dtype) \
	STRIP(rows, two##kind, 2, last, dtype) \
	STRIP(rows, one##kind, 1, 0, dtype)
#define STRIPS(rows) STRIPS_OF(rows, , PLAIN)
EACH_ROWS(STRIPS)

// Tiles of one vector, of two, and of as many as fit.
struct strip {
	strip_fn *one, *two, *wide;
	int cols; // columns of wide
};

#define ENTRY(rows) { one_##rows, two_##rows, wide_##rows, WIDE(rows) * VL },
static const struct strip strips[MR] = { EACH_ROWS(ENTRY) };
#undef ENTRY

enum { HALF_ROWS = 4 }; // max rows of a for which halves are converted again for each group of rows

#ifdef HALVES
#define STRIPS_HALF(rows) \
	STRIPS_OF(rows, _bf16, yoke_bf16) \
	STRIPS_OF(rows, _f16, yoke_f16)
STRIPS_HALF(1)
STRIPS_HALF(2)
STRIPS_HALF(3)
STRIPS_HALF(4)

#define ENTRY(rows, kind) { one##kind##_##rows, two##kind##_##rows, wide##kind##_##rows, \
			    WIDE(rows) * VL }
static const struct strip strips_half[2][HALF_ROWS] = {
	{ ENTRY(1, _bf16), ENTRY(2, _bf16), ENTRY(3, _bf16), ENTRY(4, _bf16) },
	{ ENTRY(1, _f16), ENTRY(2, _f16), ENTRY(3, _f16), ENTRY(4, _f16) },
};
#undef ENTRY
#endif

static const struct strip *strip_of(int rows, int dtype)
{
#ifdef HALVES
	if (dtype != PLAIN)
		return &strips_half[dtype == yoke_f16][rows - 1];
#else
	(void)dtype;
#endif
	return &strips[rows - 1];
}

// Pads the n columns of b, fewer than a vector: k rows of VL elements.
static void pad_columns(int64_t n, int64_t k, int dtype, const char *b, int64_t ldb, T *to)
{
	const int size = bytes_of(dtype);

	memset(to, 0, (size_t)k * VL * sizeof(T));
	for (int64_t l = 0; l < k; l++)
		for (int64_t q = 0; q < n; q++)
			to[l * VL + q] = load_one(dtype, b + (l * ldb + q) * size);
}

// c (rows, n) = or += a b, with rows as in strip_of and b of dtype. padded: b by pad_columns, if
// n < VL. If n is no multiple of VL, the last vector of columns overlaps the one before it.
// Meanwhile prefetches `bytes` bytes from `next` on.
static void multiply_strip(int rows, int64_t n, int64_t k, const T *a, int64_t am,
			   int64_t ak, int dtype, const char *b, int64_t ldb, T *c,
			   int64_t ldc, bool add, int64_t ahead, const T *padded, const char *next,
			   int64_t bytes)
{
	const struct strip *s = strip_of(rows, dtype);
	const int size = bytes_of(dtype);
	T edge[MR * VL];

	if (n < VL) {
		strips[rows - 1].one(0, k, a, am, ak, (const char *)padded, VL, edge, VL, false, 0,
				     next, yk_ceil_div(bytes, k));
		for (int i = 0; i < rows; i++)
			for (int64_t q = 0; q < n; q++)
				c[i * ldc + q] = add ? c[i * ldc + q] + edge[i * VL + q] :
						       edge[i * VL + q];
		return;
	}
	const int64_t step = yk_ceil_div(bytes * VL, k * n); // per vector
	for (int64_t j = 0, cols; j < n; j += cols) {
		const int64_t left = n - j, at = yk_min(j, n - VL);
		const bool adds_twice = add && at < j; // to columns of the vector before
		strip_fn *tile = s->one;
		cols = left;
		if (left >= s->cols) {
			tile = s->wide;
			cols = s->cols;
		} else if (left > VL) {
			tile = s->two;
			cols = yk_min(left, 2 * VL);
		}
		tile((cols > VL ? cols : VL) - VL, k, a, am, ak, b + at * size, ldb,
		     adds_twice ? edge : c + at, adds_twice ? VL : ldc, add && !adds_twice, ahead,
		     next ? next + bytes * j / n : NULL, step * yk_ceil_div(cols, VL));
		for (int i = 0; i < rows && adds_twice; i++)
			for (int64_t q = j; q < n; q++)
				c[i * ldc + q] += edge[i * VL + q - at];
	}
}

// ---- rows of a contiguous as well ----

// Max rows: with enough registers, three vectors of columns; two and one vector are for the
// remainder.
#define ACROSS (MR == 12 ? 8 : MR)

#define STRIP_ACROSS(rows, nv) \
	static void across_##rows##_##nv(int64_t k, const T *a, int64_t lda, const T *b, \
					 int64_t ldb, T *c, int64_t ldc, bool add, \
					 const char *next, int64_t step) \
	{ \
		multiply(rows, FITTING(rows, nv), (FITTING(rows, nv) - 1) * VL, k, a, 1, lda, \
			 PLAIN, (const char *)b, ldb, c, ldc, add, 0, NULL, next, step); \
	}
#define FITTING(rows, nv) ((rows) * (nv) <= MR * NV ? (nv) : 1)
#define STRIPS_ACROSS(rows) STRIP_ACROSS(rows, 1) STRIP_ACROSS(rows, 2) STRIP_ACROSS(rows, 3)
EACH_ROWS(STRIPS_ACROSS)

#define ENTRY(rows) { across_##rows##_1, across_##rows##_2, across_##rows##_3 },
static void (*const strips_across[MR][3])(int64_t k, const T *a, int64_t lda, const T *b,
					  int64_t ldb, T *c, int64_t ldc, bool add,
					  const char *next, int64_t step) = { EACH_ROWS(ENTRY) };
#undef ENTRY

const int ENTRY_ROWS = ACROSS;

// Where a vector is two registers, the last columns may fill only one.
#ifdef __riscv_vector
#ifdef HALVES
#define FUSED __builtin_fmaf
#else
#define FUSED __builtin_fma
#endif
typedef T one_register
	__attribute__((vector_size(VL * sizeof(T) / 2), aligned(sizeof(T)), may_alias));

static void across_last(int rows, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb, T *c,
			int64_t ldc, bool add)
{
	for (int i = 0; i < rows; i++) {
		one_register *to = (one_register *)(c + i * ldc), sum = { 0 };
		for (int64_t l = 0; l < k; l++)
			sum = VECTOR_FMA(one_register, VL / 2, FUSED,
					 a[l * lda + i] - (one_register){ 0 },
					 *(const one_register *)(b + l * ldb), sum);
		*to = add ? sum + *to : sum;
	}
}
#endif

void ENTRY_ACROSS(int rows, int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb,
		  T *c, int64_t ldc, bool add, const char *next, int64_t bytes)
{
	const int max = MR * NV / rows < 3 ? MR * NV / rows : 3;
	int64_t j = 0;
	for (int64_t cols; j + VL <= n; j += cols) {
		const int64_t left = (n - j) / VL, nv = left == 4 ? 2 : left < max ? left : max;
		cols = nv * VL;
		strips_across[rows - 1][nv - 1](k, a, lda, b + j, ldb, c + j, ldc, add,
						next ? next + bytes * j / n : NULL,
						bytes * cols / n / k);
	}
#ifdef __riscv_vector
	if (j < n)
		across_last(rows, k, a, lda, b + j, ldb, c + j, ldc, add);
#endif
}

// ---- few rows of a, dense columns of b: inner products ----

// At most DOT_ROWS x DOT_COLS sums at a time, which fit in the registers, for up to DOT_MAX rows of
// a, or DOT_FAR if b is large, because it is read only once. One row of a is multiplied with one
// column of b at a time: memory delivers one long run faster than several short ones, and DOT_STEPS
// sums hide the latency of additions.
#if MR == 12
#define EACH_DOT_ROW(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
enum { DOT_ROWS = 8 };
#else
#define EACH_DOT_ROW(X) X(1) X(2) X(3) X(4)
enum { DOT_ROWS = 4 };
#endif
enum { DOT_COLS = 3, DOT_STEPS = 4, DOT_MAX = 16, DOT_FAR = 48 };

// Sum of the lanes by halving, which is a fixed and short order.
FLAT T lanes(vec v)
{
	T part[VL];

	memcpy(part, &v, sizeof v);
	for (int w = VL / 2; w; w /= 2)
		for (int i = 0; i < w; i++)
			part[i] += part[i + w];
	return part[0];
}

// Adds VL products to each sum; a (rows, VL). ahead: bytes from b to the columns that are
// multiplied next, which are prefetched to L2; 0: the hardware's prefetch suffices.
FLAT void dot_step(const int rows, const int cols, const T *a, const int dtype, const char *b,
		   int64_t ldb, vec *sum, int64_t ahead)
{
	const int size = bytes_of(dtype);
	vec y[DOT_COLS];

#pragma GCC unroll 4
	for (int j = 0; j < cols; j++) {
		y[j] = load_as(dtype, b + j * ldb * size);
		if (ahead)
			__builtin_prefetch(b + j * ldb * size + ahead, 0, 2);
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		vec x = *(const vec_u *)(a + i * VL);
#pragma GCC unroll 4
		for (int j = 0; j < cols; j++)
			sum[i * cols + j] = FMA(x, y[j], sum[i * cols + j]);
	}
}

// to (rows, cols) = a [k / VL][rows][VL] times columns of b, of dtype, ldb apart.
FLAT void dots(const int rows, const int cols, int64_t k, const T *a, const int dtype,
	       const char *b, int64_t ldb, T *to)
{
	const int size = bytes_of(dtype), steps = rows == 1 ? DOT_STEPS : 1;
	const int64_t ahead = rows == 1 ? 0 : cols * ldb * size;
	vec sum[DOT_ROWS * DOT_COLS];
	T rest[DOT_ROWS * DOT_COLS] = { 0 };
	int64_t l = 0;

#pragma GCC unroll 32
	for (int i = 0; i < steps * rows * cols; i++)
		sum[i] = (vec){ 0 };
	for (; l + steps * VL <= k; l += steps * VL, a += steps * rows * VL) {
#pragma GCC unroll 4
		for (int q = 0; q < steps; q++)
			dot_step(rows, cols, a + q * rows * VL, dtype, b + (l + q * VL) * size, ldb,
				 sum + q * rows * cols, ahead);
	}
	for (; steps > 1 && l + VL <= k; l += VL, a += rows * VL)
		dot_step(rows, cols, a, dtype, b + l * size, ldb, sum, ahead);
	for (int q = 0; l + q < k; q++)
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < cols; j++)
				rest[i * cols + j] += a[i * VL + q] *
						      load_one(dtype, b + (j * ldb + l + q) * size);
#pragma GCC unroll 32
	for (int i = 0; i < rows * cols; i++) {
#pragma GCC unroll 4
		for (int q = 1; q < steps; q++)
			sum[i] += sum[q * rows * cols + i];
		to[i] = lanes(sum[i]) + rest[i];
	}
}

typedef void dot_fn(int64_t k, const T *a, const char *b, int64_t ldb, T *to);

#define DOT(rows, cols, name, dtype) \
	static void name##_##rows##_##cols(int64_t k, const T *a, const char *b, int64_t ldb, \
					   T *to) \
	{ \
		dots(rows, cols, k, a, dtype, b, ldb, to); \
	}
#define DOTS(rows, name, dtype) DOT(rows, 1, name, dtype) DOT(rows, 3, name, dtype)
#define DOTS_PLAIN(rows) DOTS(rows, dot, PLAIN)
EACH_DOT_ROW(DOTS_PLAIN)

#define ENTRY(rows) { dot_##rows##_1, dot_##rows##_3 },
static dot_fn *const dot_plain[DOT_ROWS][2] = { EACH_DOT_ROW(ENTRY) };
#undef ENTRY

#ifdef HALVES
#define DOTS_HALF(rows) DOTS(rows, dot_bf16, yoke_bf16) DOTS(rows, dot_f16, yoke_f16)
DOTS_HALF(1) DOTS_HALF(2) DOTS_HALF(3) DOTS_HALF(4)

#define ENTRY(name, rows) \
	{ \
		name##_##rows##_1, name##_##rows##_3 \
	}
#define ENTRIES(name) \
	{ \
		ENTRY(name, 1), ENTRY(name, 2), ENTRY(name, 3), ENTRY(name, 4) \
	}
static dot_fn *const dot_half[2][HALF_ROWS][2] = { ENTRIES(dot_bf16), ENTRIES(dot_f16) };
#undef ENTRY
#undef ENTRIES
#endif

static dot_fn *dot_of(int rows, bool together, int dtype)
{
#ifdef HALVES
	if (dtype != PLAIN)
		return dot_half[dtype == yoke_f16][rows - 1][together];
#else
	(void)dtype;
#endif
	return dot_plain[rows - 1][together];
}
