// SPDX-License-Identifier: Apache-2.0
// Multiplies two blocks of packed panels tile by tile: a [DEPTH(k)][MR], b [DEPTH(k)][NR]. The
// including file defines multiply_tile for constant numbers of rows and vectors, the packed type P,
// and DEPTH(k), the number of P along k. Without PAIRS, P is T.

#ifndef PAIRS
typedef T P;
#define DEPTH(k) (k)
#define K_UNIT 1 // unit of a panel's length, except for the last panel
#endif

// All row counts that a tile may have.
#if MR == 12
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif MR == 6
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif MR == 4
#define EACH_ROWS(X) X(1) X(2) X(3) X(4)
#endif

// far: b is in a shared cache, from where it is prefetched. next: memory of which `step` bytes are
// prefetched per unit of depth.
typedef void tile_fn(int64_t depth, const P *a, const P *b, T *c, int64_t ldc, bool add,
		     const char *next, int64_t step);

// Tiles of all sizes, and full ones whose b is far.
struct tiles {
	tile_fn *near[MR][NV], *far[NV];
};

#define TILE(name, rows, nv, far) \
	static void name##_##rows##_##nv(int64_t depth, const P *a, const P *b, T *c, int64_t ldc, \
					 bool add, const char *next, int64_t step) \
	{ \
		multiply_tile(rows, nv, depth, a, b, c, ldc, add, far, next, step); \
	}
#define TILES(rows) TILE(tile, rows, 1, false) TILE(tile, rows, 2, false)
EACH_ROWS(TILES)
TILE(far, MR, 1, true)
TILE(far, MR, 2, true)

#define ENTRY(rows) { tile_##rows##_1, tile_##rows##_2 },
static const struct tiles packed_tiles = { { EACH_ROWS(ENTRY) }, { far_MR_1, far_MR_2 } };
#undef ENTRY

// c (m,n) = or += a (m,k) times packed b (k,n). `far` as above. While it computes a row of tiles,
// it prefetches the rows of a of the next one.
static void multiply_with(const struct tiles *with, const P *a, const P *b, T *c, int64_t ldc,
			  int64_t m, int64_t n, int64_t k, bool add, bool far)
{
	const int64_t depth = DEPTH(k), across = (n + NR - 1) / NR;
	const int64_t step = (MR * (int64_t)sizeof(P) + across - 1) / across;

	for (int64_t i = 0; i < m; i += MR) {
		int rows = m - i < MR ? (int)(m - i) : MR;
		const char *next = (const char *)(a + (i + rows) * depth);
		for (int64_t j = 0; j < n; j += NR, next += step * depth) {
			int cols = n - j < NR ? (int)(n - j) : NR;
			int nv = (cols + VL - 1) / VL;
			tile_fn *tile = far && !i && rows == MR ? with->far[nv - 1] :
								  with->near[rows - 1][nv - 1];
			const P *pa = a + i * depth, *pb = b + j * depth;
			T *to = c + i * ldc + j, edge[MR * NR];

			if (cols == nv * VL) {
				tile(depth, pa, pb, to, ldc, add, next, step);
				continue;
			}
			tile(depth, pa, pb, edge, NR, false, next, step);
			for (int p = 0; p < rows; p++)
				for (int q = 0; q < cols; q++)
					to[p * ldc + q] =
						add ? to[p * ldc + q] + edge[p * NR + q] :
						      edge[p * NR + q];
		}
	}
}

// c (m,n) = or += packed a (m,k) times packed b (k,n), which is far.
static void multiply_panels(const P *a, const P *b, T *c, int64_t ldc, int64_t m,
			    int64_t n, int64_t k, bool add)
{
	multiply_with(&packed_tiles, a, b, c, ldc, m, n, k, add, true);
}

#ifndef PAIRS
// Tiles that read rows of a in place: contiguous rows are as dense as a panel.
#define TILE_ROWS(name, rows, nv, ahead) \
	static void name##_##rows##_##nv(int64_t k, const T *a, const T *b, T *c, int64_t ldc, \
					 bool add, const char *next, int64_t step) \
	{ \
		multiply_far(rows, nv, (nv - 1) * VL, k, a, k, 1, PLAIN, (const char *)b, NR, c, \
			     ldc, add, ahead, NULL, next, step); \
	}
#define TILES_ROWS(n) TILE_ROWS(rows, n, 1, 0) TILE_ROWS(rows, n, 2, 0)
EACH_ROWS(TILES_ROWS)
TILE_ROWS(rows_far, MR, 1, AHEAD)
TILE_ROWS(rows_far, MR, 2, AHEAD)

#define ENTRY(rows) { rows_##rows##_1, rows_##rows##_2 },
static const struct tiles tiles_of_rows = { { EACH_ROWS(ENTRY) },
					    { rows_far_MR_1, rows_far_MR_2 } };
#undef ENTRY

// Tiles that read b in place, rows ldb apart, with prefetch FAR rows ahead, and pack it at the same
// time. a is packed, or has contiguous rows as for tiles_of_rows.
enum { FAR = 16 };

#define TILE_COPYING(rows) \
	static void copying_##rows(int64_t k, const T *a, const char *b, int64_t ldb, T *c, \
				   int64_t ldc, bool add, T *to) \
	{ \
		multiply_far(rows, NV, NR - VL, k, a, 1, MR, PLAIN, b, ldb, c, ldc, add, FAR, to, \
			     NULL, 0); \
	} \
	static void copying_rows_##rows(int64_t k, const T *a, const char *b, int64_t ldb, T *c, \
					int64_t ldc, bool add, T *to) \
	{ \
		multiply_far(rows, NV, NR - VL, k, a, k, 1, PLAIN, b, ldb, c, ldc, add, FAR, to, \
			     NULL, 0); \
	}
EACH_ROWS(TILE_COPYING)

#define ENTRY(rows) { copying_##rows, copying_rows_##rows },
static void (*const tiles_copying[MR][2])(int64_t k, const T *a, const char *b, int64_t ldb, T *c,
					  int64_t ldc, bool add, T *to) = { EACH_ROWS(ENTRY) };
#undef ENTRY
#endif
