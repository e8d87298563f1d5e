// SPDX-License-Identifier: Apache-2.0
// The innermost loops of contractions, for one element type and one instruction set.
// A tile is MR rows by NR = NV vectors of c, held in registers while the sums run.
// Included by kern_contract_f32.c and _f64.c, which define T, VL (lanes), MR, NV and FMA.
// An array in registers needs a constant size and loops that unroll whole: hence the pragmas.

#define NR (NV * VL)
#define FLAT __attribute__((always_inline)) static inline

typedef T vec __attribute__((vector_size(VL * sizeof(T))));
typedef T vec_u
	__attribute__((vector_size(VL * sizeof(T)), aligned(sizeof(T)), may_alias));

// a (rows, k), strides am, ak; b (k, nv vectors), rows ldb apart; c (rows, nv vectors).
// add: c += instead of =.  ahead: rows of b to prefetch beyond the present one, 0 where the
// hardware sees the stream by itself.
FLAT void multiply(const int rows, const int nv, int64_t k, const T *a, int64_t am,
		   int64_t ak, const T *b, int64_t ldb, T *c, int64_t ldc, bool add,
		   const int ahead)
{
	vec sum[MR * NV];

#pragma GCC unroll 32
	for (int i = 0; i < rows * nv; i++)
		sum[i] = (vec){ 0 };
	for (int64_t l = 0; l < k; l++) {
		vec x[MR * NV];
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++) {
			x[j] = *(const vec_u *)(b + j * VL);
			if (ahead)
				__builtin_prefetch(b + ahead * ldb + j * VL);
		}
#pragma GCC unroll 32
		for (int i = 0; i < rows; i++) {
			vec y = a[i * am] - (vec){ 0 };
#pragma GCC unroll 32
			for (int j = 0; j < nv; j++)
				sum[i * nv + j] = FMA(y, x[j], sum[i * nv + j]);
		}
		a += ak;
		b += ldb;
	}
#pragma GCC unroll 32
	for (int i = 0; i < rows; i++) {
#pragma GCC unroll 32
		for (int j = 0; j < nv; j++) {
			vec_u *to = (vec_u *)(c + i * ldc + j * VL);
			if (add)
				sum[i * nv + j] += *to;
			*to = sum[i * nv + j];
		}
	}
}

FLAT void multiply_tile(const int rows, const int nv, int64_t k, const T *a, const T *b,
			T *c, int64_t ldc, bool add)
{
	multiply(rows, nv, k, a, 1, MR, b, NR, c, ldc, add, 0);
}

#include "kern_contract_tiles.h"

// ---- few rows of a, b in place: its rows are dense ----

// The fewer the rows, the more columns fit the registers, and the longer are the runs of b.
#define WIDE(rows) (MR * NV / (rows) < 16 ? MR * NV / (rows) : 16)
enum { AHEAD = 6 };

typedef void strip_fn(int64_t k, const T *a, int64_t am, int64_t ak, const T *b,
		      int64_t ldb, T *c, int64_t ldc);

#define STRIP(rows, name, nv) \
	static void name##_##rows(int64_t k, const T *a, int64_t am, int64_t ak, \
				  const T *b, int64_t ldb, T *c, int64_t ldc) \
	{ \
		multiply(rows, nv, k, a, am, ak, b, ldb, c, ldc, false, AHEAD); \
	}
#define STRIPS(rows) STRIP(rows, wide, WIDE(rows)) STRIP(rows, narrow, 1)
EACH_ROWS(STRIPS)

#define ENTRY(rows) { wide_##rows, narrow_##rows, WIDE(rows) * VL },
static const struct {
	strip_fn *wide, *narrow;
	int cols; // of wide
} strips[MR] = { EACH_ROWS(ENTRY) };
#undef ENTRY

// c (rows <= MR, n) = a b.  tail: room for k * VL elements, where the last columns of b
// are padded.
static void multiply_strip(int rows, int64_t n, int64_t k, const T *a, int64_t am,
			   int64_t ak, const T *b, int64_t ldb, T *c, int64_t ldc,
			   T *tail)
{
	const int wide = strips[rows - 1].cols;
	T edge[MR * VL];
	int64_t j = 0;

	for (; j + wide <= n; j += wide)
		strips[rows - 1].wide(k, a, am, ak, b + j, ldb, c + j, ldc);
	for (; j + VL <= n; j += VL)
		strips[rows - 1].narrow(k, a, am, ak, b + j, ldb, c + j, ldc);
	if (j == n)
		return;
	memset(tail, 0, (size_t)k * VL * sizeof(T));
	for (int64_t l = 0; l < k; l++)
		memcpy(tail + l * VL, b + l * ldb + j, (size_t)(n - j) * sizeof(T));
	strips[rows - 1].narrow(k, a, am, ak, tail, VL, edge, VL);
	for (int i = 0; i < rows; i++)
		memcpy(c + i * ldc + j, edge + i * VL, (size_t)(n - j) * sizeof(T));
}

// ---- few rows of a, columns of b dense: inner products ----

enum { DOT_ROWS = 4, DOT_COLS = 4 };

// The lanes in halves, so that the order is fixed and short.
FLAT T lanes(vec v)
{
	T part[VL];

	memcpy(part, &v, sizeof v);
	for (int w = VL / 2; w; w /= 2)
		for (int i = 0; i < w; i++)
			part[i] += part[i + w];
	return part[0];
}

FLAT void dots(const int rows, const int cols, int64_t k, const T *a, int64_t lda,
	       const T *b, int64_t ldb, T *to)
{
	vec sum[DOT_ROWS * DOT_COLS];
	T rest[DOT_ROWS * DOT_COLS] = { 0 };
	int64_t l = 0;

#pragma GCC unroll 16
	for (int i = 0; i < rows * cols; i++)
		sum[i] = (vec){ 0 };
	for (; l + VL <= k; l += VL) {
		vec y[DOT_COLS];
#pragma GCC unroll 4
		for (int j = 0; j < cols; j++)
			y[j] = *(const vec_u *)(b + j * ldb + l);
#pragma GCC unroll 4
		for (int i = 0; i < rows; i++) {
			vec x = *(const vec_u *)(a + i * lda + l);
#pragma GCC unroll 4
			for (int j = 0; j < cols; j++)
				sum[i * cols + j] = FMA(x, y[j], sum[i * cols + j]);
		}
	}
	for (; l < k; l++)
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < cols; j++)
				rest[i * cols + j] += a[i * lda + l] * b[j * ldb + l];
#pragma GCC unroll 16
	for (int i = 0; i < rows * cols; i++)
		to[i] = lanes(sum[i]) + rest[i];
}

typedef void dot_fn(int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb, T *to);

#define DOT(rows, cols) \
	static void dot_##rows##_##cols(int64_t k, const T *a, int64_t lda, const T *b, \
					int64_t ldb, T *to) \
	{ \
		dots(rows, cols, k, a, lda, b, ldb, to); \
	}
#define DOTS(rows) DOT(rows, 1) DOT(rows, 4)
DOTS(1)
DOTS(2) DOTS(3) DOTS(4)

#define ENTRY(rows) { dot_##rows##_1, dot_##rows##_4 },
	static dot_fn *const dot[DOT_ROWS][2] = { ENTRY(1) ENTRY(2) ENTRY(3) ENTRY(4) };
#undef ENTRY
