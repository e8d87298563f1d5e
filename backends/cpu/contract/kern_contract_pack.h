// SPDX-License-Identifier: Apache-2.0
// Packing: copies a block of a matrix into the order in which tiles read it, converting to T. A
// panel is [depth][width], where width is MR for a and NR for b. Included after
// kern_contract_tile.h.

enum { PACK_ROWS = 16 };

#define CELL T
#define CELL_ALIGN sizeof(T)
#include "../vector/transpose.h"

#ifdef HALVES
// Loads n elements of f16 or bf16, `stride` apart, as floats.
static void fetch(int dtype, const char *p, int64_t stride, int64_t n, T *to)
{
	const uint16_t *from = (const uint16_t *)p;

	if (dtype == yoke_bf16)
		for (int64_t i = 0; i < n; i++)
			to[i] = yk_f32_of_bf16(from[i * stride]);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = yk_f32_of_f16(from[i * stride]);
}

static void put_half(int dtype, char *p, T v)
{
	uint16_t h = dtype == yoke_bf16 ? yk_bf16_of_f32(v) : yk_f16_of_f32(v);

	memcpy(p, &h, sizeof h);
}

FLAT void pack_half(T *to, const int width, int dtype, const char *from, int64_t across,
		    int wide, int64_t along, int64_t depth)
{
	enum { RUN = 64, WIDEST = MR > NR ? MR : NR };
	T part[WIDEST * RUN];

	if (across == 1) {
		for (int64_t l = 0; l < depth; l++)
			fetch(dtype, from + l * along * 2, 1, wide, to + l * width);
		return;
	}
	for (int64_t l = 0; l < depth; l += RUN) {
		int64_t n = depth - l < RUN ? depth - l : RUN;
		for (int i = 0; i < wide; i++)
			fetch(dtype, from + (i * across + l * along) * 2, along, n,
			      part + i * RUN);
		pack_transposed(to + l * width, width, (const char *)part,
				RUN * sizeof(T), wide, n);
	}
}
#endif

// to[l][i] = from[i * across + l * along] for i < wide <= width, 0 for other i.
FLAT void pack_panel(T *to, const int width, const struct yk_gemm *g, const char *from,
		     int64_t across, int wide, int64_t along, int64_t depth)
{
	const T *p = (const T *)from;

	if (wide < width)
		memset(to, 0, (size_t)depth * width * sizeof(T));
#ifdef HALVES
	if (g->dtype != yoke_f32) {
		pack_half(to, width, g->dtype, from, across, wide, along, depth);
		return;
	}
#else
	(void)g;
#endif
	if (across == 1 && wide == width)
		for (int64_t l = 0; l < depth; l++)
			memcpy(to + l * width, p + l * along, width * sizeof(T));
	else if (across == 1 && wide % 4 == 0)
		for (int64_t l = 0; l < depth; l++)
			for (int i = 0; i < wide; i += 4)
				*(four_u *)(to + l * width + i) =
					*(const four_u *)(p + l * along + i);
	else if (along == 1)
		pack_transposed(to, width, from, across * (int64_t)sizeof(T), wide,
				depth);
	else
		for (int64_t l = 0; l < depth; l++)
			for (int i = 0; i < wide; i++)
				to[l * width + i] = p[i * across + l * along];
}

// Fills rows l .. l + rows - 1 of all panels, which are k deep. Elements of `from`, the block's
// first element, are `across` and `along` apart; `many` is the block's size across.
FLAT void pack(P *to, const int width, const struct yk_gemm *g, const char *from,
	       int64_t across, int64_t many, int64_t along, int64_t k, int64_t l,
	       int64_t rows)
{
	// dense across: a cache line feeds several panels, so process few rows at a time
	int64_t end = l + rows, step = across == 1 && along != 1 ? PACK_ROWS : rows;

	for (; l < end; l += step)
		for (int64_t i = 0; i < many; i += width)
			pack_panel(to + i * k + l * width, width, g,
				   from + (i * across + l * along) * (int64_t)g->esize,
				   across, many - i < width ? (int)(many - i) : width,
				   along, end - l < step ? end - l : step);
}

// Pack a block of a (m,k), and one of b (k,n).
static void pack_a(P *to, const struct yk_gemm *g, const char *a, int64_t m, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(to, MR, g, a, g->am, m, g->ak, k, l, rows);
}

static void pack_b(P *to, const struct yk_gemm *g, const char *b, int64_t n, int64_t k,
		   int64_t l, int64_t rows)
{
	pack(to, NR, g, b, g->bn, n, g->bk, k, l, rows);
}

// Stores finished sums (m,n), rows ld apart, to c.
static void put_sums(const struct yk_gemm *g, const T *sums, int64_t ld, char *c,
		     int64_t m, int64_t n)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			char *to = c + (i * g->cm + j * g->cn) * (int64_t)g->csize;
#ifdef HALVES
			if (g->to != yoke_f32) {
				put_half(g->to, to, sums[i * ld + j]);
				continue;
			}
#endif
			*(T *)to = sums[i * ld + j];
		}
}
