// SPDX-License-Identifier: Apache-2.0
// Shared by the attention kernels with matrix units (matrix.cl). A warp has STACK tiles of 16 rows
// of one side, queries or keys, and processes the other side in blocks of BLOCK rows. Rows of both
// sides are in local memory in their stored dtype, LD elements apart. The weights between two
// products are rounded to the same dtype: in registers if the prologue has matrix_a_of_sums, else
// through local memory, rows LW apart.
// MATRIX is the dtype. SIZED: the launch assigns that many bytes of local memory. QUADS: all rows
// read are aligned to 16 bytes and a multiple of that long; QUADS_OUT: likewise all rows written.
// MASKED, DROPOUT: compile in the mask or dropout, which take registers.
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
#ifndef STACK
#define STACK 1
#endif
// Of how many tensors a warp holds its rows in registers, in a quarter of them: 0, 1, 2.
#if !defined MATRIX_A_OF_SUMS || STACK * HEAD > 128
#define HELD 0
#elif STACK * HEAD > 64
#define HELD 1
#else
#define HELD 2
#endif
#define LINES (16 * STACK)             // rows of a warp
#define TILE (ITEMS / WARP * LINES) // rows of a group
#define LN_2 0.69314718055994530942f
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
#define WARPS_DIVERGE 1 // a warp may skip a block
#else
#define PEER_ROOM ITEMS
#define TEAM_SYNC() BARRIER()
#define WARPS_DIVERGE 0
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

#ifdef MATRIX_A_OF_SUMS
#define WEIGHTS_APART 0
#else
#define WEIGHTS_APART 1 // weights go through local memory between two products
#endif

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
		uint low = 2 * i < left ? from[2 * i] : 0u,
		     high = 2 * i + 1 < left ? from[2 * i + 1] : 0u;
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

#if QUADS && defined ASYNC_COPIES // an item does not wait for a copy, and addresses take registers
#define STAGE_LOOP ROLLED
#else
#define STAGE_LOOP UNROLL
#endif

// to [lines][LD] = `count` rows of x, the rest zero. Called by the whole group. The rows are there
// after COPIES_COMMIT, COPIES_WAIT and BARRIER.
FN void copy_rows(LOCAL_POINTER matrix_element *to, GLOBAL const stored *from, long step, int count,
		  int lines, int D, int item)
{
	const int quads = HEAD / PER, all = lines * quads;
	STAGE_LOOP
	for (int n = 0; n < (all + ITEMS - 1) / ITEMS; n++) {
		int i = item + n * ITEMS, line = i / quads, d = i % quads * PER;
		if (all % ITEMS && i >= all)
			break;
#if QUADS
		bool there = line < count && d < D;
		quad_copy(from + (there ? line * step + d : 0), to + line * LD + d, there ? 16 : 0);
#else
		uint quad[4];
		row_quad(quad, from + line * step + d, line < count ? D - d : 0);
		quad_store(quad, to + line * LD + d);
#endif
	}
}

// The same, as a group of copies of its own.
FN void stage_rows(LOCAL_POINTER matrix_element *to, GLOBAL const stored *from, long step,
		   int count, int lines, int D, int item)
{
	copy_rows(to, from, step, count, lines, D, item);
	COPIES_COMMIT();
}

// A warp's own rows of a tensor as the first operand. `held`, a constant: they are in registers.
struct own_rows {
	LOCAL_POINTER const matrix_element *from;
#if HELD
	struct matrix_part x[STACK * (HEAD / MATRIX_K)];
#endif
};

FN void hold_rows(struct own_rows *rows, bool held, LOCAL_POINTER const matrix_element *from,
		  int lane)
{
	rows->from = from;
#if HELD
	if (held) {
		UNROLL
		for (int s = 0; s < STACK; s++)
			UNROLL
			for (int d = 0; d < HEAD; d += MATRIX_K)
				rows->x[s * (HEAD / MATRIX_K) + d / MATRIX_K] =
					matrix_a(from + s * 16 * LD + d, LD, lane);
	}
#endif
}

FN struct matrix_part part_of(const struct own_rows *rows, bool held, int s, int d, int lane)
{
#if HELD
	if (held)
		return rows->x[s * (HEAD / MATRIX_K) + d / MATRIX_K];
#endif
	return matrix_a(rows->from + s * 16 * LD + d, LD, lane);
}

// sums [STACK][BLOCK / 16] = rows times the transpose of BLOCK rows of b
FN void rows_by_rows(struct matrix_sums *sums, const struct own_rows *rows, bool held,
	LOCAL_POINTER const matrix_element *b, int lane)
{
	UNROLL
	for (int c = 0; c < STACK * (BLOCK / 16); c++)
		sums[c] = matrix_zero();
	UNROLL_READS
	for (int d = 0; d < HEAD; d += MATRIX_K) {
		struct matrix_part x[STACK];
		UNROLL
		for (int s = 0; s < STACK; s++)
			x[s] = part_of(rows, held, s, d, lane);
		UNROLL
		for (int c = 0; c < BLOCK / 16; c++) {
			struct matrix_part y = matrix_b(b + c * 16 * LD + d, LD, lane);
			UNROLL
			for (int s = 0; s < STACK; s++)
				matrix_multiply(&sums[s * (BLOCK / 16) + c], &x[s], &y, lane);
		}
	}
}

// sums [STACK][columns / 16] += weights times BLOCK rows of b, from b's first column. The weights
// are p [STACK][BLOCK / 16], or [LINES][LW] in local memory where that is not possible.
FN void add_weighted(struct matrix_sums *sums, int columns, const struct matrix_sums *p,
		     LOCAL_POINTER const matrix_element *weights,
		     LOCAL_POINTER const matrix_element *b, int lane)
{
	UNROLL_READS
	for (int k = 0; k < BLOCK; k += MATRIX_K) {
		struct matrix_part x[STACK];
		UNROLL
		for (int s = 0; s < STACK; s++)
#ifdef MATRIX_A_OF_SUMS
			x[s] = matrix_a_of_sums(&p[s * (BLOCK / 16) + k / 16]);
#else
			x[s] = matrix_a(weights + s * 16 * LW + k, LW, lane);
#endif
		UNROLL
		for (int c = 0; c < columns / 16; c++) {
			struct matrix_part y = matrix_b_turned(b + k * LD + c * 16, LD, lane);
			UNROLL
			for (int s = 0; s < STACK; s++)
				matrix_multiply(&sums[s * (columns / 16) + c], &x[s], &y, lane);
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

// Like add_weighted with weights in local memory, but skips weights of 0 whatever b holds, because
// 0 * NaN would be NaN. Does not use matrix units.
FN void add_seen(struct matrix_sums *sums, int columns, LOCAL_POINTER const matrix_element *weights,
	LOCAL_POINTER const matrix_element *b, int lane)
{
	UNROLL
	for (int c = 0; c < STACK * (columns / 16); c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int row = (c / (columns / 16) * 16 + matrix_row(e, lane)) * LW;
			int column = c % (columns / 16) * 16 + matrix_column(e, lane);
			float sum = sums[c].x[e];
			ROLLED
			for (int k = 0; k < BLOCK; k++) {
				float w = value_of(weights[row + k]);
				sum = w == 0.0f ? sum : FMA(w, value_of(b[k * LD + column]), sum);
			}
			sums[c].x[e] = sum;
		}
}

// True if one of an item's n x MATRIX_SUMS sums is NaN.
FN bool sums_nan(const struct matrix_sums *sums, int n)
{
	bool found = false;
	UNROLL
	for (int c = 0; c < n; c++)
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

// to [LINES][LW] = the item's elements of sums [STACK][BLOCK / 16]
FN void put_weights(LOCAL_POINTER matrix_element *to, const struct matrix_sums *sums, int lane)
{
	UNROLL
	for (int c = 0; c < STACK * (BLOCK / 16); c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int row = c / (BLOCK / 16) * 16 + matrix_row(e, lane);
			to[row * LW + c % (BLOCK / 16) * 16 + matrix_column(e, lane)] =
				element_of(sums[c].x[e]);
		}
}

// to [LINES][columns] = factor [STACK][MATRIX_ROWS] * sums [STACK][columns / 16], of which `rows`
// and D exist; transposed through a tile of LINES rows in local memory
FN void put_rows(GLOBAL stored *to, long step, LOCAL_POINTER matrix_element *tile,
		 const struct matrix_sums *sums, int columns, int rows, int D, const float *factor,
		 int lane)
{
	UNROLL
	for (int c = 0; c < STACK * (columns / 16); c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int s = c / (columns / 16), row = s * 16 + matrix_row(e, lane);
			tile[row * LD + c % (columns / 16) * 16 + matrix_column(e, lane)] =
				element_of(sums[c].x[e] * factor[s * MATRIX_ROWS + matrix_slot(e)]);
		}
	TEAM_SYNC();
	ROLLED
	for (int i = lane; i < LINES * (columns / PER); i += WARP) {
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

// to [LINES][LW] = 0 where dropout drops a weight; called by a warp. The weight at (row, column)
// has the random number first + row * by_row + column * by_column, where one of the factors is 1;
// fours: the other one and `first` are multiples of 4.
FN void keep_tile(LOCAL_POINTER matrix_element *to, long first, long by_row, long by_column,
		  bool fours, long key, long step, float dropout, int lane)
{
	if (fours) {
		bool along = by_column == 1;
		ROLLED
		for (int i = lane; i < LINES * BLOCK / 4; i += WARP) {
			int row = along ? i / (BLOCK / 4) : i % (LINES / 4) * 4;
			int column = along ? i % (BLOCK / 4) * 4 : i / (LINES / 4);
			uint w[4];
			rand_four((ulong)(first + row * by_row + column * by_column) >> 2, key,
				  step, w);
			UNROLL
			for (int k = 0; k < 4; k++)
				to[row * LW + column + k * (along ? 1 : LW)] =
					kept_of((int)w[k], dropout) > 0.0f;
		}
		return;
	}
	ROLLED
	for (int i = lane; i < LINES * BLOCK; i += WARP) {
		int row = i / BLOCK, column = i % BLOCK;
		int bits = rand_bits(first + row * by_row + column * by_column, key, step);
		to[row * LW + column] = kept_of(bits, dropout) > 0.0f;
	}
}

// p [STACK][BLOCK / 16] = 0 where the tile of keep_tile is 0
FN void drop_weights(struct matrix_sums *p, LOCAL_POINTER const matrix_element *keep, int lane)
{
	UNROLL
	for (int c = 0; c < STACK * (BLOCK / 16); c++)
		UNROLL
		for (int e = 0; e < MATRIX_SUMS; e++) {
			int row = c / (BLOCK / 16) * 16 + matrix_row(e, lane);
			if (keep[row * LW + c % (BLOCK / 16) * 16 + matrix_column(e, lane)] == 0)
				p[c].x[e] = 0.0f;
		}
}
