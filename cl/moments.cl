// SPDX-License-Identifier: Apache-2.0
// MOMENTS: weight, means, products of deviations and extremes of rows, in f64. Reference:
// kern_moments.c; here x is read twice, since the rows' sums must first be combined across groups.
//   moments_sums      items (channel, chunk of rows): weight, sum, minimum, maximum
//   moments_join      items (channel): combines all chunks; computes the mean, also for the next
//   moments_products  groups (tile j, tile i, chunk of rows): products of deviations; with DIAGONAL
//                     items (channel, chunk)
//   moments_square    items (column, row): adds the chunks; mirrors the upper triangle
// USE_F64 and WIDE_ACC are set. With WEIGHED 1, rows of weight 0 are not read.
#include "number.cl"

#ifndef WEIGHED
#define WEIGHED 0
#endif
#ifndef DIAGONAL
#define DIAGONAL 0
#endif
#ifndef TM
#define TM 2
#define TN 2
#endif
#ifndef BK // rows of x in local memory
#define BK 32
#endif
#include "tile.cl"

struct moments {
	long rows, channels, rs, cs, ws; // strides of x and of the weights, in elements
	long chunk, chunks, piece, pieces; // rows per chunk and piece, and their numbers
	long mean, square_row, square_column, low, high; // strides of the results
	long wanted; // bit k: result k is an output
};

#define DOUBLES(base, at) ((GLOBAL double *)((base) + (at)))

FN number weight_at(GLOBAL number *w, const struct moments *s, long row)
{
#if WEIGHED
	return w[row * s->ws];
#else
	return (number)1;
#endif
}

KERNEL void moments_sums(GLOBAL uchar *space_base, ulong space_at, GLOBAL uchar *x_base, ulong x_at,
			 GLOBAL uchar *w_base, ulong w_at, struct moments s)
{
	long c = (long)GLOBAL_ID(0), k = (long)GLOBAL_ID(1);
	GLOBAL number *x = NUMBERS(x_base, x_at) + c * s.cs, *w = NUMBERS(w_base, w_at);
	GLOBAL double *to = DOUBLES(space_base, space_at) + k * 4 * s.channels + c;
	long last = (k + 1) * s.chunk < s.rows ? (k + 1) * s.chunk : s.rows;
	double n = 0, sum = 0;
	number low = (number)AS_FLOAT(0x7f800000), high = (number)AS_FLOAT(0xff800000);

	if (c >= s.channels || k >= s.chunks)
		return;
	for (long r = k * s.chunk; r < last; r++) {
		number weight = weight_at(w, &s, r);
		if (weight == (number)0)
			continue;
		number v = x[r * s.rs];
		n += (double)weight;
		sum += (double)weight * (double)v;
		low = v < low || v != v ? v : low;
		high = v > high || v != v ? v : high;
	}
	to[0] = n;
	to[s.channels] = sum;
	to[2 * s.channels] = (double)low;
	to[3 * s.channels] = (double)high;
}

KERNEL void moments_join(GLOBAL uchar *space_base, ulong space_at, GLOBAL uchar *n_base, ulong n_at,
			 GLOBAL uchar *mean_base, ulong mean_at, GLOBAL uchar *low_base,
			 ulong low_at, GLOBAL uchar *high_base, ulong high_at, struct moments s)
{
	long c = (long)GLOBAL_ID(0);
	GLOBAL double *space = DOUBLES(space_base, space_at);
	double n = 0, sum = 0;
	double low = AS_DOUBLE(0x7ff0000000000000ul), high = AS_DOUBLE(0xfff0000000000000ul);

	if (c >= s.channels)
		return;
	for (long k = 0; k < s.chunks; k++) {
		GLOBAL double *from = space + k * 4 * s.channels + c;
		double l = from[2 * s.channels], h = from[3 * s.channels];
		n += from[0];
		sum += from[s.channels];
		low = l < low || l != l ? l : low;
		high = h > high || h != h ? h : high;
	}
	double mean = n > 0 ? sum / n : 0;
	space[s.chunks * 4 * s.channels + c] = mean;
	if (c == 0 && (s.wanted & 1))
		DOUBLES(n_base, n_at)[0] = n;
	if (s.wanted & 2)
		DOUBLES(mean_base, mean_at)[c * s.mean] = mean;
	if (s.wanted & 8)
		NUMBERS(low_base, low_at)[c * s.low] = (number)low;
	if (s.wanted & 16)
		NUMBERS(high_base, high_at)[c * s.high] = (number)high;
}

// The contribution of row r to channel c: its deviation, or 0 if it does not count.
FN ACC deviation(GLOBAL number *x, GLOBAL number *w, GLOBAL double *mean, const struct moments *s,
		 long r, long c, long last)
{
	if (c >= s->channels || r >= last || weight_at(w, s, r) == (number)0)
		return (ACC)0;
	return (ACC)((double)x[r * s->rs + c * s->cs] - mean[c]);
}

#if DIAGONAL
KERNEL void moments_products(GLOBAL uchar *space_base, ulong space_at, GLOBAL uchar *x_base,
			     ulong x_at, GLOBAL uchar *w_base, ulong w_at, struct moments s)
{
	long c = (long)GLOBAL_ID(0), k = (long)GLOBAL_ID(1);
	GLOBAL number *x = NUMBERS(x_base, x_at), *w = NUMBERS(w_base, w_at);
	GLOBAL double *mean = DOUBLES(space_base, space_at) + s.chunks * 4 * s.channels,
		      *to = mean + s.channels;
	long last = (k + 1) * s.piece < s.rows ? (k + 1) * s.piece : s.rows;
	double sum = 0;

	if (c >= s.channels || k >= s.pieces)
		return;
	for (long r = k * s.piece; r < last; r++) {
		double d = (double)deviation(x, w, mean, &s, r, c, last);
		sum += (double)weight_at(w, &s, r) * d * d;
	}
	to[k * s.channels + c] = sum;
}
#else
KERNEL void WORK_GROUP_REGISTERS(WG_N, WG_M)
	moments_products(GLOBAL uchar *space_base, ulong space_at, GLOBAL uchar *x_base, ulong x_at,
			 GLOBAL uchar *w_base, ulong w_at, struct moments s)
{
	LOCAL ACC a_block[BK * BM], b_block[BK * BN]; // [row][channel]
	ACC sum[TM][TN];
	long first_m = (long)GROUP_ID(1) * BM, first_n = (long)GROUP_ID(0) * BN,
	     k = (long)GROUP_ID(2);
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;
	GLOBAL number *x = NUMBERS(x_base, x_at), *w = NUMBERS(w_base, w_at);
	GLOBAL double *mean = DOUBLES(space_base, space_at) + s.chunks * 4 * s.channels,
		      *to = mean + s.channels;
	long first = k * s.piece, last = first + s.piece < s.rows ? first + s.piece : s.rows;

	if (first_n + BN <= first_m) // below the diagonal
		return;
	clear_tile(sum);
	for (long r0 = first; r0 < last; r0 += BK) {
		for (int e = item; e < BK * BM; e += ITEMS)
			a_block[e] = deviation(x, w, mean, &s, r0 + e / BM, first_m + e % BM, last);
		for (int e = item; e < BK * BN; e += ITEMS) {
			long r = r0 + e / BN;
			ACC d = deviation(x, w, mean, &s, r, first_n + e % BN, last);
#if WEIGHED
			if (r < last)
				d *= (ACC)weight_at(w, &s, r);
#endif
			b_block[e] = d;
		}
		BARRIER();
		add_blocks(sum, a_block, b_block, item_m, item_n);
		BARRIER();
	}
	UNROLL
	for (int i = 0; i < TM; i++)
		UNROLL
		for (int j = 0; j < TN; j++) {
			long m = first_m + i * WG_M + item_m, n = first_n + j * WG_N + item_n;
			if (m <= n && n < s.channels)
				to[(k * s.channels + m) * s.channels + n] = sum[i][j];
		}
}
#endif

KERNEL void moments_square(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *space_base,
			   ulong space_at, struct moments s)
{
	long column = (long)GLOBAL_ID(0), row = (long)GLOBAL_ID(1);
	GLOBAL double *from = DOUBLES(space_base, space_at) + (s.chunks * 4 + 1) * s.channels;
	double sum = 0;

	if (column >= s.channels || row >= s.channels)
		return;
#if DIAGONAL
	for (long k = 0; k < s.pieces; k++)
		sum += from[k * s.channels + column];
#else
	long m = row < column ? row : column, n = row < column ? column : row;
	for (long k = 0; k < s.pieces; k++)
		sum += from[(k * s.channels + m) * s.channels + n];
#endif
	DOUBLES(y_base, y_at)[row * s.square_row + column * s.square_column] = sum;
}
