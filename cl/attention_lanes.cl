// SPDX-License-Identifier: Apache-2.0
// Attention with one side, queries or keys, along the lanes of vectors, and head elements and the
// other side along the rows. What lies along the rows is staged in local memory as f32,
// [BLOCK][HEAD], padded with zeros. So sums over the other side need no reduction across lanes, and
// each lane is a row of the result. A group holds TILE lanes, an item LANES of them in NV vectors:
// 1 on GPUs, 32 on CPU-like devices (one item per group, vectors of 16).
#include "attention.cl"

#ifndef NV // vectors of lanes per item
#define NV 1
#endif
#ifndef ROWS // rows of a block of sums in registers; divides BLOCK and 16
#define ROWS 8
#endif
#ifndef PARTS
// items that share the head elements of a lane, a power of two: keeps the registers per item low
#define PARTS 1
#endif
#define SLICE (HEAD / PARTS) // head elements per item, a multiple of ROWS
#define LANES (NV * VEC_WIDTH)
#define TILE (ITEMS / PARTS * LANES)
// On GPUs an item's arrays are kept in registers, which requires fully unrolled loops of constant
// length.
#ifndef REGISTERS
#define REGISTERS 0
#endif
#if REGISTERS
#define UNROLL_ROWS UNROLL
#else
#define UNROLL_ROWS
#endif
#if REGISTERS || PARTS > 1
#define EXTENT(n, largest) (largest)
#else
#define EXTENT(n, largest) (n)
#endif
#if ITEMS > 1
#define SYNC() BARRIER()
#else
#define SYNC()
#endif

#if VEC_WIDTH == 16 && defined TURN
#define VEC_TURNS
TURN(float, 16)
#endif

// to [depth][LANES] = scale * rows of x, one per lane, `count` of them; other lanes are 0
FN void lanes_load(VEC *to, GLOBAL const stored *from, long step, long count, int D, int depth,
	float scale)
{
#ifdef VEC_TURNS
	for (int u = 0; u < NV; u++)
		for (int d = 0; d < depth; d += 16) {
			VEC v[16];
			UNROLL
			for (int l = 0; l < 16; l++) {
				GLOBAL const stored *row = from + (u * 16 + l) * step + d;
				v[l] = VEC_SPLAT(0.0f);
				if (u * 16 + l < count && d < D)
					v[l] = load(row, D - d, 0.0f) * VEC_SPLAT(scale);
			}
			turn_float(v);
			UNROLL
			for (int k = 0; k < 16; k++)
				to[(d + k) * NV + u] = v[k];
		}
#else
	float *f = (float *)to;
	for (int lane = 0; lane < LANES; lane++) {
		GLOBAL const stored *row = from + lane * step;
		bool there = lane < count;
		UNROLL_ROWS
		for (int d = 0; d < depth; d++)
			f[d * LANES + lane] = there && d < D ? load_one(row + d) * scale : 0.0f;
	}
#endif
}

FN void lanes_store(const VEC *from, GLOBAL stored *to, long step, long count, int D, int depth,
	float scale)
{
#ifdef VEC_TURNS
	for (int u = 0; u < NV; u++)
		for (int d = 0; d < D; d += 16) {
			VEC v[16];
			UNROLL
			for (int k = 0; k < 16; k++)
				v[k] = d + k < depth ? from[(d + k) * NV + u] * VEC_SPLAT(scale) :
						       VEC_SPLAT(0.0f);
			turn_float(v);
			UNROLL
			for (int l = 0; l < 16; l++)
				if (u * 16 + l < count)
					store(v[l], to + (u * 16 + l) * step + d, D - d, false);
		}
#else
	const float *f = (const float *)from;
	for (int lane = 0; lane < LANES && lane < count; lane++) {
		GLOBAL stored *row = to + lane * step;
		UNROLL_ROWS
		for (int d = 0; d < depth; d++)
			if (d < D)
				store_one(f[d * LANES + lane] * scale, row + d);
	}
#endif
}

// to [padded][HEAD] = scale * `rows` rows of x, the rest zero. Called by the whole group.
FN void stage(LOCAL_POINTER float *to, GLOBAL const stored *from, long step, int rows, int padded,
	int D, float scale, int item)
{
	VEC factor = VEC_SPLAT(scale);
	for (int i = item * VEC_WIDTH; i < padded * HEAD; i += STEP) {
		int r = i / HEAD, d = i % HEAD;
		VEC x = VEC_SPLAT(0.0f);
		if (r < rows && d < D)
			x = load(from + r * step + d, D - d, 0.0f) * factor;
		VEC_STORE(x, to + i);
	}
}

// c (m, NV vectors) = or += a (m, k) b (k, NV vectors); a's element (i,p) is a[i * ai + p * ap]
FN void product(VEC *c, LOCAL_POINTER const float *a, int ai, int ap, const VEC *b, int m, int k,
	bool add)
{
	UNROLL_ROWS
	for (int i = 0; i < m; i += ROWS) {
		VEC sum[ROWS * NV];
		UNROLL
		for (int r = 0; r < ROWS * NV; r++)
			sum[r] = add ? c[i * NV + r] : VEC_SPLAT(0.0f);
		UNROLL_ROWS
		for (int p = 0; p < k; p++) {
			UNROLL
			for (int r = 0; r < ROWS; r++) {
				VEC x = VEC_SPLAT(a[(i + r) * ai + p * ap]);
				UNROLL
				for (int v = 0; v < NV; v++)
					sum[r * NV + v] = VEC_FMA(x, b[p * NV + v],
						sum[r * NV + v]);
			}
			if (p % 4 == 3)
				READS_END();
		}
		UNROLL
		for (int r = 0; r < ROWS * NV; r++)
			c[i * NV + r] = sum[r];
	}
}

// The same with add, but skips elements of b that are 0 whatever a holds, because 0 * NaN would be
// NaN.
FN void product_seen(VEC *c, LOCAL_POINTER const float *a, int ai, int ap, const VEC *b, int m,
		     int k)
{
	VEC none = VEC_SPLAT(0.0f);
	UNROLL_ROWS
	for (int p = 0; p < k; p++)
		UNROLL_ROWS
		for (int i = 0; i < m; i++) {
			VEC x = VEC_SPLAT(a[i * ai + p * ap]);
			UNROLL
			for (int v = 0; v < NV; v++)
				c[i * NV + v] = b[p * NV + v] == none ? c[i * NV + v] :
					VEC_FMA(x, b[p * NV + v], c[i * NV + v]);
		}
}

// True if an element of n vectors is NaN.
FN bool any_nan(const VEC *x, int n)
{
	VEC sum = VEC_SPLAT(0.0f);
	UNROLL_ROWS
	for (int i = 0; i < n; i++)
		sum += x[i] == x[i] ? VEC_SPLAT(0.0f) : VEC_SPLAT(1.0f);
	return VEC_SUM(sum) != 0.0f;
}

// p [BLOCK][NV] = sums over the items that share a lane; `room` has TEAM_ROOM elements.
#ifdef WARP
#define TEAM_ROOM (BLOCK * TILE)
#elif PARTS > 1
#define TEAM_AT_ONCE 4 // rows
#define TEAM_ROOM (TEAM_AT_ONCE * ITEMS)
#else
#define TEAM_ROOM 1
#endif
FN void team_add(VEC *p, LOCAL_POINTER float *room, int item)
{
#if PARTS > 1 && defined WARP
	UNROLL
	for (int i = 0; i < BLOCK; i++)
		UNROLL
		for (int k = PARTS / 2; k; k /= 2)
			p[i] += SHUFFLE_XOR(p[i], k);
#elif PARTS > 1
	UNROLL_ROWS
	for (int i = 0; i < BLOCK; i += TEAM_AT_ONCE) {
		BARRIER();
		UNROLL
		for (int k = 0; k < TEAM_AT_ONCE; k++)
			room[k * ITEMS + item] = p[i + k];
		BARRIER();
		UNROLL
		for (int k = 0; k < TEAM_AT_ONCE; k++) {
			p[i + k] = 0.0f;
			for (int q = 0; q < PARTS; q++)
				p[i + k] += room[k * ITEMS + item / PARTS * PARTS + q];
		}
	}
#endif
}

// p [rows][LANES] of scores += mask[i * by_row + l * by_lane] for row i and lane l; rows and lanes
// that do not exist are unchanged.
FN void add_mask(VEC *p, GLOBAL const beside *mask, long by_row, long by_lane, int rows, long lanes)
{
	float *f = (float *)p;
	UNROLL_ROWS
	for (int i = 0; i < EXTENT(rows, BLOCK); i++)
		for (int l = 0; l < LANES; l++)
			if (i < rows && l < lanes)
				f[i * LANES + l] = masked_score(f[i * LANES + l],
					load_beside_one(mask + i * by_row + l * by_lane));
}

// keep [rows][LANES] = dropout factors, 0 or 1 / (1 - dropout). The element at row i and lane l has
// the random number first + i * by_row + l * by_lane.
FN void keep_any(VEC *keep, long first, long by_row, long by_lane, int rows, long key, long step,
	float dropout)
{
	float *f = (float *)keep;
	UNROLL_ROWS
	for (int i = 0; i < rows; i++)
		EACH
		for (int l = 0; l < LANES; l++)
			f[i * LANES + l] = kept_of(
				rand_bits(first + i * by_row + l * by_lane, key, step), dropout);
}

// The same if the numbers increase by 1 along the rows, and rows, first and by_lane are multiples
// of 4: one Philox evaluation serves four rows.
FN void keep_rows(VEC *keep, long first, long by_lane, int rows, long key, long step, float dropout)
{
	float *f = (float *)keep;
	UNROLL_ROWS
	for (int i = 0; i < rows; i += 4)
		EACH
		for (int l = 0; l < LANES; l++) {
			uint w[4];
			rand_four((ulong)(first + i + l * by_lane) >> 2, key, step, w);
			f[i * LANES + l] = kept_of((int)w[0], dropout);
			f[(i + 1) * LANES + l] = kept_of((int)w[1], dropout);
			f[(i + 2) * LANES + l] = kept_of((int)w[2], dropout);
			f[(i + 3) * LANES + l] = kept_of((int)w[3], dropout);
		}
}

#if LANES % 4 == 0
// The same if the numbers increase by 1 along the lanes.
FN void keep_lanes(VEC *keep, long first, long by_row, int rows, long key, long step, float dropout)
{
	float *f = (float *)keep;
	for (int i = 0; i < rows; i++)
		EACH
		for (int l = 0; l < LANES / 4; l++) {
			uint w[4];
			rand_four((ulong)(first + i * by_row + l * 4) >> 2, key, step, w);
			f[i * LANES + l * 4] = kept_of((int)w[0], dropout);
			f[i * LANES + l * 4 + 1] = kept_of((int)w[1], dropout);
			f[i * LANES + l * 4 + 2] = kept_of((int)w[2], dropout);
			f[i * LANES + l * 4 + 3] = kept_of((int)w[3], dropout);
		}
}
#endif

#ifdef WARP
// The same, computed by the items of a warp: items that share a lane draw some of the numbers each,
// in a rolled loop, because an unrolled one would need registers for every row. fours: as for
// keep_rows.
FN void keep_team(VEC *keep, LOCAL_POINTER float *room, long first, long by_row, bool fours,
		  long key, long step, float dropout, int item)
{
	LOCAL_POINTER float *to = room + item / PARTS; // [BLOCK][TILE]
	if (fours) {
		ROLLED
		for (int i = item % PARTS * 4; i < BLOCK; i += PARTS * 4) {
			uint w[4];
			rand_four((ulong)(first + i) >> 2, key, step, w);
			UNROLL
			for (int k = 0; k < 4; k++)
				to[(i + k) * TILE] = kept_of((int)w[k], dropout);
		}
	} else {
		ROLLED
		for (int i = item % PARTS; i < BLOCK; i += PARTS)
			to[i * TILE] = kept_of(rand_bits(first + i * by_row, key, step), dropout);
	}
	WARP_SYNC();
	UNROLL
	for (int i = 0; i < BLOCK; i++)
		keep[i] = to[i * TILE];
}
#endif

// 0, 1, ... by lane
FN void lane_numbers(VEC *to)
{
	float *f = (float *)to;
	for (int l = 0; l < LANES; l++)
		f[l] = (float)l;
}

// limits[l] = number of rows from key j on that query first + l sees; lanes without a query get the
// last query's.
FN void lane_limits(VEC *to, const struct attention_args *a, long seen, long first, long j)
{
	float *f = (float *)to;
	for (int l = 0; l < LANES; l++) {
		long n = limit_of(a, seen, min_of(first + l, a->T - 1)) - j;
		f[l] = (float)(int)(n < 0 ? 0 : min_of(n, BLOCK));
	}
}

// Scores p [rows][NV] of keys from j on become -inf where the lane's query, first + lane, does not
// see the key.
FN void hide_keys(VEC *p, const struct attention_args *a, long seen, long first, long j, int rows)
{
	VEC limits[NV];
	lane_limits(limits, a, seen, first, j);
	UNROLL_ROWS
	for (int i = 0; i < rows; i++)
		UNROLL
		for (int v = 0; v < NV; v++)
			p[i * NV + v] = VEC_SPLAT((float)i) < limits[v] ? p[i * NV + v] :
									  VEC_SPLAT(-INFINITY);
}

// Dropout factors of keys along the rows and queries along the lanes; `first` numbers the first.
FN void keep_keys(VEC *keep, LOCAL_POINTER float *room, const struct attention_args *a, long first,
		  int rows, long key, long step, int item)
{
#ifdef WARP
	keep_team(keep, room, first, 1, a->S % 4 == 0, key, step, a->dropout, item);
#else
	if (a->S % 4)
		keep_any(keep, first, 1, a->S, rows, key, step, a->dropout);
	else
		keep_rows(keep, first, a->S, rows, key, step, a->dropout);
#endif
}
