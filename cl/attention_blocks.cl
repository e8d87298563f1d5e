// SPDX-License-Identifier: Apache-2.0
// Shared by the attention kernels with matrix units (matrix.cl). A warp has 16 rows of one side,
// queries or keys, and processes the other side in blocks of BLOCK rows. Rows of both sides are in
// local memory in their stored dtype, LD elements apart; the weights between two products are
// rounded to the same dtype, rows LW apart.
// MATRIX is the dtype. QUADS: all rows read are aligned to 16 bytes and a multiple of that long;
// QUADS_OUT: likewise all rows written. MASKED, DROPOUT: compile in the mask or dropout, which take
// registers.
#ifndef MATRIX
#define MATRIX 3
#define STORE 1
#endif
#include "attention.cl"
#include "matrix.cl"

#ifndef QUADS
#define QUADS 0
#endif
#ifndef QUADS_OUT
#define QUADS_OUT 0
#endif
#ifndef MASKED
#define MASKED 0
#endif
#ifndef DROPOUT
#define DROPOUT 0
#endif
#define TILE (ITEMS / WARP * 16) // rows of a group
#if STORE == 0
#define PER 4 // elements per 16 bytes
#else
#define PER 8
#endif
#define LD (HEAD + PER) // padded so that rows read at the same time are in different banks
#define LW (BLOCK + PER)

// ---- items that hold elements of the same rows ----

#ifdef SHUFFLE_XOR
#define PEER_ROOM 1
#define TEAM_SYNC() WARP_SYNC()
#else
#define PEER_ROOM ITEMS
#define TEAM_SYNC() BARRIER()
#endif

// x of the item whose number differs in the bits of `mask`; all items of the group must call it.
FN float peer_of(float x, int mask, LOCAL_POINTER float *room, int item)
{
#ifdef SHUFFLE_XOR
	return SHUFFLE_XOR(x, mask);
#else
	BARRIER();
	room[item] = x;
	BARRIER();
	return room[item ^ mask];
#endif
}

// Sum or maximum over all items that hold elements of a row; each gets the same bits.
FN float row_join(float x, bool largest, LOCAL_POINTER float *room, int item)
{
	UNROLL
	for (int k = 1; k <= MATRIX_PEERS; k *= 2)
		if (MATRIX_PEERS & k) {
			float y = peer_of(x, k, room, item);
			x = largest ? fmax(x, y) : x + y;
		}
	return x;
}

// ---- tiles ----

// Loads 16 bytes of a row, of which `left` elements exist; the others are 0.
FN void row_quad(uint *to, GLOBAL const stored *from, int left)
{
#if QUADS
	if (left > 0) {
		quad_load(from, to);
		return;
	}
#endif
	UNROLL
	for (int i = 0; i < 4; i++) {
#if STORE == 0
		to[i] = i < left ? AS_UINT(from[i]) : 0u;
#else
		uint low = 2 * i < left ? from[2 * i] : 0u, high = 2 * i + 1 < left ? from[2 * i + 1] : 0u;
		to[i] = low | high << 16;
#endif
	}
}

// Element i of 16 bytes.
FN float quad_value(const uint *quad, int i)
{
#if STORE == 0
	return AS_FLOAT(quad[i]);
#else
	return f32_of_bits((ushort)(quad[i / 2] >> i % 2 * 16), STORE);
#endif
}

// to [lines][LD] = `count` rows of x, the rest zero. Called by the whole group.
FN void stage_rows(LOCAL_POINTER matrix_element *to, GLOBAL const stored *from, long step, long count, int lines,
	int D, int item)
{
	for (int i = item; i < lines * (HEAD / PER); i += ITEMS) {
		int line = i / (HEAD / PER), d = i % (HEAD / PER) * PER;
		uint quad[4];
		row_quad(quad, from + line * step + d, line < count ? D - d : 0);
		quad_store(quad, to + line * LD + d);
	}
}

// sums [BLOCK / 16] = 16 rows of a times the transpose of BLOCK rows of b
FN void rows_by_rows(struct matrix_sums *sums, LOCAL_POINTER const matrix_element *a,
	LOCAL_POINTER const matrix_element *b, int lane)
{
	UNROLL
	for (int c = 0; c < BLOCK / 16; c++)
		sums[c] = matrix_zero();
	UNROLL_READS
	for (int d = 0; d < HEAD; d += MATRIX_K) {
		struct matrix_part x = matrix_a(a + d, LD, lane);
		UNROLL
		for (int c = 0; c < BLOCK / 16; c++) {
			struct matrix_part y = matrix_b(b + c * 16 * LD + d, LD, lane);
			matrix_multiply(&sums[c], &x, &y, lane);
		}
	}
}

// sums [columns / 16] += weights [16][LW] times BLOCK rows of b, from b's first column
FN void add_weighted(struct matrix_sums *sums, int columns, LOCAL_POINTER const matrix_element *weights,
	LOCAL_POINTER const matrix_element *b, int lane)
{
	UNROLL_READS
	for (int k = 0; k < BLOCK; k += MATRIX_K) {
		struct matrix_part x = matrix_a(weights + k, LW, lane);
		UNROLL
		for (int c = 0; c < columns / 16; c++) {
			struct matrix_part y = matrix_b_turned(b + k * LD + c * 16, LD, lane);
			matrix_multiply(&sums[c], &x, &y, lane);
			READS_END();
		}
	}
}

FN float value_of(matrix_element x)
{
#if STORE == 0
	return x;
#else
	return f32_of_bits((ushort)x, STORE);
#endif
}

// Like add_weighted, but skips weights of 0 whatever b holds, because 0 * NaN would be NaN. Does
// not use matrix units.
FN void add_seen(struct matrix_sums *sums, int columns, LOCAL_POINTER const matrix_element *weights,
	LOCAL_POINTER const matrix_element *b, int lane)
{
	UNROLL
	for (int c = 0; c < columns / 16; c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int row = matrix_row(e, lane) * LW, column = c * 16 + matrix_column(e, lane);
			float sum = sums[c].x[e];
			ROLLED
			for (int k = 0; k < BLOCK; k++) {
				float w = value_of(weights[row + k]);
				sum = w == 0.0f ? sum : FMA(w, value_of(b[k * LD + column]), sum);
			}
			sums[c].x[e] = sum;
		}
}

// True if one of an item's sums is NaN.
FN bool sums_nan(const struct matrix_sums *sums, int columns)
{
	bool found = false;
	UNROLL
	for (int c = 0; c < columns / 16; c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++)
			found = found || sums[c].x[e] != sums[c].x[e];
	return found;
}

FN matrix_element element_of(float x)
{
#if STORE == 0
	return x;
#else
	return bits_of_f32(x, STORE);
#endif
}

// to [16][LW] = the item's elements of sums [BLOCK / 16]
FN void put_weights(LOCAL_POINTER matrix_element *to, const struct matrix_sums *sums, int lane)
{
	UNROLL
	for (int c = 0; c < BLOCK / 16; c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++)
			to[matrix_row(e, lane) * LW + c * 16 + matrix_column(e, lane)] = element_of(sums[c].x[e]);
}

// to [16][columns] = factor * sums [columns / 16], of which `rows` and D exist; transposed through
// a tile of 16 rows in local memory
FN void put_rows(GLOBAL stored *to, long step, LOCAL_POINTER matrix_element *tile, const struct matrix_sums *sums,
	int columns, long rows, int D, const float *factor, int lane)
{
	UNROLL
	for (int c = 0; c < columns / 16; c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++)
			tile[matrix_row(e, lane) * LD + c * 16 + matrix_column(e, lane)] =
				element_of(sums[c].x[e] * factor[matrix_slot(e)]);
	TEAM_SYNC();
	ROLLED
	for (int i = lane; i < 16 * (columns / PER); i += WARP) {
		int row = i / (columns / PER), d = i % (columns / PER) * PER;
		if (row >= rows)
			continue;
#if QUADS_OUT
		if (d < D)
			quad_move(tile + row * LD + d, to + row * step + d);
#else
		for (int k = 0; k < PER; k++)
			if (d + k < D)
				to[row * step + d + k] = tile[row * LD + d + k];
#endif
	}
}

// to [16][LW] = 0 where dropout drops a weight; called by a warp. The weight at (row, column) has
// the random number first + row * by_row + column * by_column, where one of the factors is 1;
// fours: the other one and `first` are multiples of 4.
FN void keep_tile(LOCAL_POINTER matrix_element *to, long first, long by_row, long by_column, bool fours, long key,
	long step, float dropout, int lane)
{
	if (fours) {
		bool along = by_column == 1;
		ROLLED
		for (int i = lane; i < 16 * BLOCK / 4; i += WARP) {
			int row = along ? i / (BLOCK / 4) : i % 4 * 4;
			int column = along ? i % (BLOCK / 4) * 4 : i / 4;
			uint w[4];
			rand_four((ulong)(first + row * by_row + column * by_column) >> 2, key, step, w);
			UNROLL
			for (int k = 0; k < 4; k++)
				to[row * LW + column + k * (along ? 1 : LW)] = kept_of((int)w[k], dropout) > 0.0f;
		}
		return;
	}
	ROLLED
	for (int i = lane; i < 16 * BLOCK; i += WARP) {
		int row = i / BLOCK, column = i % BLOCK;
		int bits = rand_bits(first + row * by_row + column * by_column, key, step);
		to[row * LW + column] = kept_of(bits, dropout) > 0.0f;
	}
}
