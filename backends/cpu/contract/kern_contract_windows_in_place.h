// SPDX-License-Identifier: Apache-2.0
// Work items of the mode WINDOWS_IN_PLACE: a convolution with few outputs, whose windows are read
// from the padded image instead of packed, which would cost nearly as much as their products.
// An item is some rows of positions in one plane of the result, or a part of a row, and all rows of
// a. It computes a vector of neighbouring positions at a time. If rows of windows lie close to each
// other, vectors run on over the ends of rows, and sums for what lies between are not used. Else
// each row has vectors of its own, the last of which may exceed it. Included by
// kern_contract_gemm.h.

enum {
	MAX_SUMS = 16 << 10, // sums of an item, which stay in L2
	MIN_POSITIONS = 512, // of an item, if its plane has as many
	MIN_PLANE = 8 * VL,  // positions of a plane; with fewer, packing a is a notable cost
	MAX_VECTORS = 6,     // of a tile: each needs a register for its address
};

// How the positions of a plane are divided.
struct grid {
	int64_t rows, columns;        // of positions, of an item
	int64_t pitch;                // sums from a row to the next
	int64_t down, across, planes; // items per plane in each direction; planes of the result
	bool joined;                  // vectors continue over the ends of rows
};

static struct grid grid_of(const struct yk_gemm *g)
{
	const struct yk_windows *w = g->win;
	const int64_t limit = yk_max(MIN_POSITIONS, yk_min(MAX_SUMS / g->m, g->n / (MANY / 2)));
	const int64_t apart = yk_ceil_div(w->width, VL) * VL;
	struct grid s = { .rows = 1, .planes = g->n / (w->width * w->height) };

	if (w->width <= limit) {
		s.joined = w->height > 1 && w->row_step <= apart;
		s.columns = w->width;
		s.pitch = s.joined ? w->row_step : apart;
		s.rows = yk_min(w->height, yk_max(1, limit / s.pitch));
		s.rows = yk_ceil_div(w->height, yk_ceil_div(w->height, s.rows));
	} else {
		s.columns = s.pitch = even(w->width, limit / VL * VL, VL);
	}
	s.down = yk_ceil_div(w->height, s.rows);
	s.across = yk_ceil_div(w->width, s.columns);
	return s;
}

static int64_t window_items(const struct yk_gemm *g)
{
	const struct grid s = grid_of(g);

	return s.planes * s.down * s.across;
}

// Vectors of an item with so many rows and columns.
static int64_t vectors_of(const struct grid *s, int64_t rows, int64_t columns)
{
	return s->joined ? yk_ceil_div((rows - 1) * s->pitch + columns, VL) :
			   rows * yk_ceil_div(columns, VL);
}

// True if few of the sums are computed in vain and packing would be a notable cost.
static bool prefers_windows_in_place(const struct yk_gemm *g)
{
	const struct yk_windows *w = g->win;

	if (LANES || w->along || !w->padded || g->m > WINDOW_ROWS ||
	    w->width * w->height < MIN_PLANE)
		return false;
	const struct grid s = grid_of(g);
	return 4 * vectors_of(&s, s.rows, s.columns) * VL <= 5 * s.rows * s.columns;
}

// c (rows, nv vectors) = or (add) += a [k][rows] times rows of b: vector j of row l is at
// b + at[l] + from[j].
FLAT void multiply_windows(const int rows, const int nv, int64_t k, const T *a, const T *b,
			   const int64_t *at, const int64_t *from, T *c, int64_t ldc, bool add)
{
	vec sum[MR * NV], x[MAX_VECTORS];

#pragma GCC unroll 32
	for (int i = 0; i < rows * nv; i++)
		sum[i] = (vec){ 0 };
	for (int64_t l = 0; l < k; l++, a += rows) {
		const T *row = b + at[l];
#pragma GCC unroll 8
		for (int j = 0; j < nv; j++)
			x[j] = *(const vec_u *)(row + from[j]);
#pragma GCC unroll 32
		for (int i = 0; i < rows; i++) {
			const vec y = a[i] - (vec){ 0 };
#pragma GCC unroll 8
			for (int j = 0; j < nv; j++)
				sum[i * nv + j] = FMA(y, x[j], sum[i * nv + j]);
		}
	}
#pragma GCC unroll 32
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
		for (int j = 0; j < nv; j++) {
			vec_u *to = (vec_u *)(c + i * ldc + j * VL);
			if (add)
				sum[i * nv + j] += *to;
			*to = sum[i * nv + j];
		}
}

typedef void windows_fn(int64_t k, const T *a, const T *b, const int64_t *at, const int64_t *from,
			T *c, int64_t ldc, bool add);

#define VECTORS(rows) (MR * NV / (rows) < MAX_VECTORS ? MR * NV / (rows) : MAX_VECTORS)
#define WINDOWS(rows) \
	static void windows_##rows(int64_t k, const T *a, const T *b, const int64_t *at, \
				   const int64_t *from, T *c, int64_t ldc, bool add) \
	{ \
		multiply_windows(rows, VECTORS(rows), k, a, b, at, from, c, ldc, add); \
	}
EACH_ROWS(WINDOWS)

#define ENTRY(rows) windows_##rows,
static windows_fn *const windows_of[MR] = { EACH_ROWS(ENTRY) };
#undef ENTRY

// Rows of a that are multiplied together: as many as possible with few that exceed m.
static int64_t group_rows(int64_t m)
{
	int64_t best = yk_min(m, MR);

	for (int64_t rows = best - 1; rows >= MR / 2; rows--)
		if (yk_ceil_div(m, rows) * rows < yk_ceil_div(m, best) * best)
			best = rows;
	return best;
}

// a [m,k] as groups of `rows` rows, [k][rows]; what exceeds m is 0.
static void pack_groups(T *to, const struct yk_gemm *g, const T *a, int64_t rows)
{
	const int64_t *at = g->win->a_at;

	for (int64_t i = 0; i < g->m; i += rows)
		for (int64_t l = 0; l < g->k; l++)
			for (int64_t q = i; q < i + rows; q++)
				*to++ = q < g->m ? a[q * g->am + (at ? at[l] : l * g->ak)] : 0;
}

// Where the vectors of a tile begin, from vector v of an item on; the last one is repeated.
static void vector_offsets(const struct grid *s, int64_t row_step, int64_t v, int64_t vectors,
			   int nv, int64_t *from)
{
	const int64_t each = s->pitch / VL;

	for (int j = 0; j < nv; j++) {
		const int64_t i = yk_min(v + j, vectors - 1);
		from[j] = s->joined ? i * VL : i / each * row_step + i % each * VL;
	}
}

static void windows_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const struct yk_windows *w = g->win;
	const struct grid s = grid_of(g);
	const int64_t x = item % s.across * s.columns, row = item / s.across % s.down * s.rows;
	const int64_t plane = item / s.across / s.down % s.planes;
	const int64_t batch = item / s.across / s.down / s.planes;
	const int64_t rows = yk_min(s.rows, w->height - row);
	const int64_t columns = yk_min(s.columns, w->width - x);
	const int64_t each = group_rows(g->m), groups = yk_ceil_div(g->m, each);
	const int nv = (int)VECTORS(each);
	const int64_t vectors = vectors_of(&s, rows, columns);
	const int64_t ld = yk_ceil_div(vectors, nv) * nv * VL;
	struct scratch r;
	int64_t a, b, c, from[MAX_VECTORS];

	if (!take_scratch(job, groups * each * (g->k + ld), &r))
		return;
	yk_gemm_batch(g, batch, &a, &b, &c);
	pack_groups(r.at, g, (const T *)g->a + a, each);
	T *sums = r.at + groups * each * g->k;
	const T *image = (const T *)g->b + b + plane / w->depth * w->image_step +
			 plane % w->depth * w->plane_step + row * w->row_step + x;
	for (int64_t l = 0, k; l < g->k; l += k) {
		k = yk_min(g->blocking.kc, g->k - l);
		for (int64_t v = 0; v < vectors; v += nv) {
			vector_offsets(&s, w->row_step, v, vectors, nv, from);
			for (int64_t i = 0; i < groups; i++)
				windows_of[each - 1](k, r.at + (i * g->k + l) * each, image,
						     w->at + l, from, sums + i * each * ld + v * VL,
						     ld, l > 0);
		}
	}
	for (int64_t i = 0; i < rows; i++)
		finish(g, &r, sums + i * s.pitch, ld, c,
		       (plane * w->height + row + i) * w->width + x, g->m, columns);
}
