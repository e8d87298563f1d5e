// SPDX-License-Identifier: Apache-2.0
// QLINEAR with AMX: many rows of x times 16 rows of w, a group of 32 elements per product of
// tiles. 16-bit integers are split into bytes, v = 256 * high + low with high signed and low
// unsigned, so the integer sums of a group are exact and results have the bits of the other
// instruction sets.
// x is [16 rows][groups][row][parts][32 bytes] with fewer rows in the last block; panels of w are
// [groups][parts][8][16 columns][4 bytes].
#include "config.h"

#include "../vector/amx.h"
#include "kern_qlinear_job.h"

#define CELL uint32_t
#define CELL_ALIGN 1
#include "../vector/transpose.h"

enum { SIDE = 16, WORDS_OF_GROUP = GROUP / 4, PART = SIDE * GROUP }; // PART: bytes of a tile of b

// Parts of the integers of w: those of Q6_K are multiplied by the scales of their halves.
YK_INLINE int parts_of(const int f)
{
	return f == Q6_K ? 2 : 1;
}

// ---- x ----

static int parts_of_x(void)
{
	return yk_int8_activations ? 1 : 2;
}

static uint8_t *group_of_rows(const struct job *j, int64_t row, int64_t group)
{
	const int64_t block = row / SIDE * SIDE, left = j->x.count - block;
	return (uint8_t *)j->a.q8 +
	       (block * j->a.groups + group * (left < SIDE ? left : SIDE)) * GROUP * parts_of_x();
}

static void put_group(const struct job *j, int64_t row, int64_t group, const int32_t *q)
{
	uint8_t *to = group_of_rows(j, row, group) + row % SIDE * GROUP * parts_of_x();
	if (parts_of_x() == 2) {
		for (int i = 0; i < GROUP; i++)
			to[i] = (uint8_t)(q[i] >> 8);
		to += GROUP;
	}
	for (int i = 0; i < GROUP; i++)
		to[i] = (uint8_t)q[i];
}

// ---- w ----

YK_INLINE void put_low_bytes(uint8_t *to, vs v)
{
	const vb bytes = __builtin_convertvector((vus)v & 255, vb);
	memcpy(to, &bytes, sizeof bytes);
}

// Packs `groups` <= CHUNK_GROUPS groups, beginning with group `from`, of SIDE rows of w.
YK_INLINE void pack_columns(const int f, const uint8_t *const *row, int64_t from, const int groups,
			    uint8_t *panel, float *scale, float *min)
{
	uint8_t lines[CHUNK_GROUPS][2][SIDE][GROUP];
	const int bytes = block_bytes(f), parts = parts_of(f);
	const int64_t block = is_long(f) ? from / CHUNK_GROUPS : from;
	for (int i = 0; i < SIDE; i += VF)
		scales_of_rows(f, row + i, block, groups, scale + i, min + i, COLS);
	for (int r = 0; r < SIDE; r++)
#pragma GCC unroll 8
		for (int g = 0; g < groups; g++) {
			const struct group q = group_of(
				f, row[r] + (is_long(f) ? block : block + g) * bytes, g, true);
#pragma GCC unroll 4
			for (int p = 0; p < PARTS; p++) {
				const vs v = q.part[p] - (vs)us_splat(middle(f));
				put_low_bytes(lines[g][parts - 1][r] + p * LANES, v);
				if (parts == 2)
					put_low_bytes(lines[g][0][r] + p * LANES, v >> 8);
			}
		}
	for (int g = 0; g < groups; g++)
		for (int p = 0; p < parts; p++, panel += PART)
			pack_transposed((uint32_t *)(void *)panel, SIDE, (const char *)lines[g][p],
					GROUP, SIDE, WORDS_OF_GROUP);
}

typedef void pack_fn(const uint8_t *const *row, int64_t from, int groups, uint8_t *panel,
		     float *scale, float *min);

#define PACK(f) \
	static void pack_##f(const uint8_t *const *row, int64_t from, int groups, uint8_t *panel, \
			     float *scale, float *min) \
	{ \
		if (groups == CHUNK_GROUPS) \
			pack_columns(f, row, from, CHUNK_GROUPS, panel, scale, min); \
		else \
			for (int g = 0; g < groups; g++) \
				pack_columns(f, row, from + g, 1, panel + g * PART * parts_of(f), \
					     scale + g * COLS, min + g * COLS); \
	}
EACH_FORMAT(PACK)
#undef PACK

static void fill(const struct job *j, int64_t n, int64_t from, int64_t groups,
		 const struct panels *p)
{
	static pack_fn *const packs[] = {
#define ENTRY(f) [f] = pack_##f,
		EACH_FORMAT(ENTRY)
#undef ENTRY
	};
	const int64_t bytes = PART * parts_of(j->format);
	for (int c = 0; c < COLS && n + c < j->n; c += SIDE) {
		const uint8_t *row[SIDE];
		uint8_t *panel = (uint8_t *)(p->q + (int64_t)c * DEPTH);
		rows_of_w(j, n + c, SIDE, row);
		for (int64_t g = 0; g < groups; g += CHUNK_GROUPS)
			packs[j->format](
				row, from + g,
				(int)(groups - g < CHUNK_GROUPS ? groups - g : CHUNK_GROUPS),
				panel + g * bytes, p->scale + g * COLS + c, p->min + g * COLS + c);
	}
}

// ---- products ----

// The integer products of a group by pairs of parts, added by significance: sums[i] contributes
// with a factor that is 256 times smaller than that of sums[i - 1]. Returns their number.
YK_INLINE int products_of_parts(const int xparts, const int parts, const uint8_t *x,
				const uint8_t *w, int32_t (*sums)[SIDE][SIDE])
{
	const int64_t line = GROUP * xparts;
	const int count = xparts + parts - 1;

	yk_tile_zero(0);
	yk_tile_load(4, x, line);
	yk_tile_load(6, w, 64);
	yk_tile_multiply_ss(0, 4, 6);
	yk_tile_store(0, sums[0], 64);
	if (xparts == 2) {
		yk_tile_zero(1);
		yk_tile_load(5, x + GROUP, line);
		yk_tile_multiply_us(1, 5, 6);
	}
	if (parts == 2) {
		if (xparts == 1)
			yk_tile_zero(1);
		yk_tile_load(7, w + PART, 64);
		yk_tile_multiply_su(1, 4, 7);
	}
	if (count > 1)
		yk_tile_store(1, sums[1], 64);
	if (count > 2) {
		yk_tile_zero(2);
		yk_tile_multiply_uu(2, 5, 7);
		yk_tile_store(2, sums[2], 64);
	}
	return count;
}

// acc (rows, 16), rows COLS apart, += rows m .. of x times a panel.
YK_INLINE void tile_product(const int f, const int xparts, const int rows,
			    const struct activations *x, int64_t m, const uint8_t *from_x,
			    int64_t from, int64_t groups, const uint8_t *panel, const float *scale,
			    const float *min, float *acc)
{
	enum { VECTORS = SIDE / VF };
	const int parts = parts_of(f);
	int32_t sums[3][SIDE][SIDE] __attribute__((aligned(64)));
	vf total[SIDE][VECTORS] = { { { 0 } } }; // in registers if `rows` is SIDE

#pragma GCC unroll 16
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int i = 0; i < VECTORS; i++)
			total[r][i] = vf_load(acc + r * COLS + i * VF);
	for (int64_t g = 0; g < groups; g++, panel += PART * parts, scale += COLS, min += COLS) {
		const uint8_t *xg = from_x + g * rows * GROUP * xparts;
		const int64_t at = m * x->groups + from + g;
		const int count = products_of_parts(xparts, parts, xg, panel, sums);
#pragma GCC unroll 16
		for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
			for (int i = 0; i < VECTORS; i++) {
				vu sum = { 0 };
#pragma GCC unroll 3
				for (int s = 0; s < count; s++) {
					vu next;
					memcpy(&next, sums[s][r] + i * VF, sizeof next);
					sum = s ? (sum << 8) + next : next;
				}
				total[r][i] = add_scaled(f, (vi)sum, vf_load(scale + i * VF),
							 min + i * VF, x->scale[at + r * x->groups],
							 x->sum[at + r * x->groups], total[r][i]);
			}
	}
#pragma GCC unroll 16
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int i = 0; i < VECTORS; i++)
			vf_store(acc + r * COLS + i * VF, total[r][i]);
}

typedef void tile_fn(int rows, const struct activations *x, int64_t m, const uint8_t *from_x,
		     int64_t from, int64_t groups, const uint8_t *panel, const float *scale,
		     const float *min, float *acc);

#define TILE(f, xparts) \
	static void tile_##f##_##xparts(int rows, const struct activations *x, int64_t m, \
					const uint8_t *from_x, int64_t from, int64_t groups, \
					const uint8_t *panel, const float *scale, \
					const float *min, float *acc) \
	{ \
		if (rows == SIDE) \
			tile_product(f, xparts, SIDE, x, m, from_x, from, groups, panel, scale, \
				     min, acc); \
		else \
			tile_product(f, xparts, rows, x, m, from_x, from, groups, panel, scale, \
				     min, acc); \
	}
TILE(Q8_0, 1)
TILE(Q8_0, 2)
TILE(Q4_1, 1)
TILE(Q4_1, 2)
TILE(Q6_K, 1)
TILE(Q6_K, 2)

// Tiles depend on the format only by the minimum and the parts.
static tile_fn *tile_of(int format)
{
	static tile_fn *const none[] = { tile_Q8_0_1, tile_Q8_0_2 },
			      *const min[] = { tile_Q4_1_1, tile_Q4_1_2 },
			      *const two[] = { tile_Q6_K_1, tile_Q6_K_2 };
	const int at = parts_of_x() - 1;
	if (has_min(format))
		return min[at];
	return parts_of(format) == 2 ? two[at] : none[at];
}

static void multiply(const struct job *j, int64_t first, int64_t rows, int64_t cols, int64_t from,
		     int64_t groups, const struct panels *p)
{
	tile_fn *product = tile_of(j->format);
	for (int64_t m = 0; m < rows; m += SIDE) {
		const int count = (int)(rows - m < SIDE ? rows - m : SIDE);
		if (m == 0 || count < SIDE)
			yk_tiles_begin(count, GROUP);
		for (int64_t c = 0; c < cols; c += SIDE)
			product(count, &j->a, first + m, group_of_rows(j, first + m, from), from,
				groups, (const uint8_t *)(p->q + c * DEPTH), p->scale + c,
				p->min + c, p->acc + m * COLS + c);
	}
	yk_tiles_end();
}

// ---- the kernel ----

static uint64_t can(const struct yoke_op *op)
{
	return ISA(yk_qlinear).can(op);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	return ISA(yk_qlinear).workspace(op, impl);
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	static const struct qlinear_many tiles = { put_group, fill, multiply };
	(void)impl, (void)prepared;
	return ISA(yk_qlinear_run)(op, &tiles);
}

const struct yk_kernel LEVEL(yk_qlinear) = {
	.can = can, .workspace = workspace, .run = run, .impl = { "blocks", "int8" }
};

// Tests products of bytes of each kind.
bool LEVEL(yk_amx_bytes_work)(void)
{
	uint8_t x[2 * PART], w[2 * PART];
	int32_t sums[3][SIDE][SIDE], differ = 0;

	for (int i = 0; i < 2 * PART; i++) {
		x[i] = (uint8_t)(i * 37 + i / 7);
		w[i] = (uint8_t)(i * 101 + i / 5);
	}
	yk_tiles_begin(SIDE, GROUP);
	products_of_parts(2, 2, x, w, sums);
	yk_tiles_end();
	for (int r = 0; r < SIDE; r++)
		for (int c = 0; c < SIDE; c++) {
			int32_t want[3] = { 0, 0, 0 };
			for (int i = 0; i < GROUP; i++) {
				const uint8_t *a = x + r * 2 * GROUP + i,
					      *b = w + i / 4 * 64 + c * 4 + i % 4;
				want[0] += (int8_t)a[0] * (int8_t)b[0];
				want[1] += a[GROUP] * (int8_t)b[0] + (int8_t)a[0] * b[PART];
				want[2] += a[GROUP] * b[PART];
			}
			for (int s = 0; s < 3; s++)
				differ += sums[s][r][c] != want[s];
		}
	return !differ;
}
