// SPDX-License-Identifier: Apache-2.0
// GROUPED and GROUPED_BACKWARD: products of groups of rows with one matrix each; sums have the type
// ACC. Reference: kern_grouped.c of the CPU backend.
//
// y(m, n) = sum over k of a(m, k) b(k, n). GROUPED: m are rows first[e] .. first[e + 1] - 1 of x,
// for matrix e; rows in no group are 0. BACK 1: k are those rows and m the columns of x, for matrix
// e of y. Only the kernel knows the group sizes: the launch has as many work groups as any `first`
// could need, and superfluous ones return. Blocks and sums as in tile.cl. Groups: (ceil(columns /
// BN), blocks of rows) or, with BACK, (ceil(columns / BN), ceil(rows / BM), matrix).
#include "number.cl"
#include "report.cl"
#include "tile.cl"

#ifndef BACK
#define BACK 0
#endif

struct grouped_args {
	long rows, columns, depth, groups; // rows: of x
	long a_m, a_k, b_k, b_n, b_e, y_m, y_n, y_e, first; // strides
};

// The beginning of group e, clamped so that it is not before the previous group or after the last
// row.
FN long begin_of(GLOBAL const long *first, const struct grouped_args *s, long e, long low)
{
	long at = first[e * s->first];
	return at < low ? low : at > s->rows ? s->rows : at;
}

// Reports the first invalid offset; called by one item.
FN void check_groups(GLOBAL const long *first, const struct grouped_args *s REPORT_PARAMS)
{
	long last = 0;
	for (long e = 0; e <= s->groups; e++) {
		long at = first[e * s->first];
		if (at < last || at > s->rows) {
			REPORT_AT->value = at;
			REPORT_AT->limit = last;
			report_bad(REPORT_AT, (ulong)e);
			return;
		}
		last = at;
	}
}

KERNEL void WORK_GROUP_REGISTERS(WG_N, WG_M)
	grouped(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *a_base, ulong a_at,
		GLOBAL uchar *b_base, ulong b_at, GLOBAL uchar *first_base, ulong first_at,
		struct grouped_args s REPORT_PARAMS)
{
	LOCAL ACC a_block[BK * BM], b_block[BK * BN]; // [k][row], [k][column]
	ACC sum[TM][TN];
	GLOBAL const long *first = (GLOBAL const long *)(first_base + first_at);
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;
	long first_m, first_n = (long)GROUP_ID(0) * BN, end_m = s.rows, depth = s.depth, e = 0;
	GLOBAL number *a = NUMBERS(a_base, a_at), *b = NUMBERS(b_base, b_at),
		      *y = NUMBERS(y_base, y_at);

	if (GROUP_ID(0) + GROUP_LINE() == 0 && item == 0)
		check_groups(first, &s, reports, report_slot);
#if BACK
	{
		uint lines = (uint)((s.depth + BM - 1) / BM);
		long last = 0, begin = 0;
		e = (long)(GROUP_LINE() / lines);
		if (e >= s.groups)
			return;
		first_m = (long)(GROUP_LINE() % lines) * BM;
		for (long i = 0; i <= e + 1; i++) {
			begin = last;
			last = begin_of(first, &s, i, last);
		}
		end_m = s.depth;
		depth = last - begin;
		a += begin * s.a_k;
		b += begin * s.b_k;
		y += e * s.y_e;
	}
#else
	// finds the owner of this block: rows before the first group, a group, or rows after the
	// last
	{
		long block = (long)GROUP_LINE(), begin = 0, end = 0;
		for (e = -1; e <= s.groups; e++) {
			long blocks;
			begin = end;
			end = e == s.groups ? s.rows : begin_of(first, &s, e + 1, begin);
			blocks = (end - begin + BM - 1) / BM;
			if (block < blocks)
				break;
			block -= blocks;
		}
		if (e > s.groups)
			return;
		first_m = begin + block * BM;
		end_m = end;
		if (e < 0 || e == s.groups)
			depth = 0;
		else
			b += e * s.b_e;
	}
#endif
	clear_tile(sum);
	for (long first_k = 0; first_k < depth; first_k += BK) {
		for (int i = item; i < BK * BM; i += ITEMS) {
			int k = i % BK, r = i / BK;
			bool inside = first_k + k < depth && first_m + r < end_m;
			a_block[k * BM + r] =
				inside ? ACC_OF(a[(first_m + r) * s.a_m + (first_k + k) * s.a_k]) :
					 (ACC)0;
		}
		for (int i = item; i < BK * BN; i += ITEMS) {
			int k = i / BN, r = i % BN;
			bool inside = first_k + k < depth && first_n + r < s.columns;
			b_block[k * BN + r] =
				inside ? ACC_OF(b[(first_k + k) * s.b_k + (first_n + r) * s.b_n]) :
					 (ACC)0;
		}
		BARRIER();
		add_blocks(sum, a_block, b_block, item_m, item_n);
		BARRIER();
	}
	for (int i = 0; i < TM; i++)
		for (int j = 0; j < TN; j++) {
			long m = first_m + i * WG_M + item_m, n = first_n + j * WG_N + item_n;
			if (m < end_m && n < s.columns)
				y[m * s.y_m + n * s.y_n] = NUMBER_OF(sum[i][j]);
		}
}
