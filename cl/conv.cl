// SPDX-License-Identifier: Apache-2.0
// CONV, CONV_X and CONV_W: products of a matrix and the windows of an operand, any strides; sums
// have the type ACC. Reference: kern_conv.c, with the same equations.
//
// A tap (channel, k0, k1, k2) and a position (image, p0, p1, p2) are one number each, row-major;
// with AXES 2 there are no k0 and p0. Along an axis, the element of b for (tap, position) is its
// operand's element position * step + off + tap * by, or 0 outside.
// y(i, position) = sum over taps of a(i, tap) b(tap, position), or with ALONG 1, y(i, tap) = sum
// over positions of a(i, position) b(tap, position). Blocks and sums as in tile.cl. Groups:
// (ceil(columns / BN), ceil(rows / BM), channel group).
#include "number.cl"
#include "tile.cl"

#ifndef ALONG
#define ALONG 0
#endif
#ifndef AXES
#define AXES 2
#endif

// Strides of a tensor: of a row, and of each component of a tap or position, in elements.
struct places {
	long start, group, row, at[4];
};

struct conv_args {
	long rows, columns, depth;
	uint tap[4], pos[4]; // size of each component
	struct places a, y;
	long b_group, b_image, b_channel, b_axis[3]; // strides of b's operand
	long size[3], step[3], off[3], by[3];
};

struct parts {
	uint part[4];
};

FN struct parts parts_of(uint i, uint n1, uint n2, uint n3)
{
	struct parts t;
	uint q = i / n3, r = q / n2;
	t.part[3] = i - q * n3;
	t.part[2] = q - r * n2;
#if AXES == 3
	t.part[0] = r / n1;
	t.part[1] = r - t.part[0] * n1;
#else
	t.part[0] = r;
	t.part[1] = 0;
#endif
	return t;
}

FN long place(const struct places *p, long row, struct parts t)
{
	long at = p->start + row * p->row + (long)t.part[0] * p->at[0];
	for (int i = 4 - AXES; i < 4; i++)
		at += (long)t.part[i] * p->at[i];
	return at;
}

FN ACC window_at(GLOBAL number *b, const struct conv_args *s, struct parts tap, struct parts pos)
{
	long at = (long)pos.part[0] * s->b_image + (long)tap.part[0] * s->b_channel;
	bool inside = true;
	for (int i = 3 - AXES; i < 3; i++) {
		long x = (long)pos.part[1 + i] * s->step[i] + s->off[i] +
			 (long)tap.part[1 + i] * s->by[i];
		inside = inside && x >= 0 && x < s->size[i];
		at += x * s->b_axis[i];
	}
	return inside ? ACC_OF(b[at]) : (ACC)0;
}

#define TAP(s, i) parts_of((uint)(i), (s).tap[1], (s).tap[2], (s).tap[3])
#define POSITION(s, i) parts_of((uint)(i), (s).pos[1], (s).pos[2], (s).pos[3])
#if ALONG
#define OF_DEPTH POSITION
#define OF_COLUMN TAP
#define WINDOW(b, s, depth, column) window_at(b, s, column, depth)
#else
#define OF_DEPTH TAP
#define OF_COLUMN POSITION
#define WINDOW(b, s, depth, column) window_at(b, s, depth, column)
#endif

KERNEL void WORK_GROUP_REGISTERS(WG_N, WG_M)
	conv(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *a_base, ulong a_at,
	     GLOBAL uchar *b_base, ulong b_at, struct conv_args s)
{
	LOCAL ACC a_block[BK * BM], b_block[BK * BN]; // [k][row], [k][column]
	ACC sum[TM][TN];
	long first_m = (long)GROUP_ID(1) * BM, first_n = (long)GROUP_ID(0) * BN,
	     group = (long)GROUP_ID(2);
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;
	GLOBAL number *a = NUMBERS(a_base, a_at) + group * s.a.group;
	GLOBAL number *b = NUMBERS(b_base, b_at) + group * s.b_group;
	GLOBAL number *y = NUMBERS(y_base, y_at) + group * s.y.group;

	clear_tile(sum);
	for (long first_k = 0; first_k < s.depth; first_k += BK) {
		for (int e = item; e < BK * BM; e += ITEMS) {
			int k = e % BK, r = e / BK;
			bool inside = first_k + k < s.depth && first_m + r < s.rows;
			a_block[k * BM + r] = inside ? ACC_OF(a[place(&s.a, first_m + r,
								      OF_DEPTH(s, first_k + k))]) :
						       (ACC)0;
		}
		for (int e = item; e < BK * BN; e += ITEMS) {
			int k = e / BN, r = e % BN;
			bool inside = first_k + k < s.depth && first_n + r < s.columns;
			b_block[k * BN + r] = inside ? WINDOW(b, &s, OF_DEPTH(s, first_k + k),
							      OF_COLUMN(s, first_n + r)) :
						       (ACC)0;
		}
		BARRIER();
		add_blocks(sum, a_block, b_block, item_m, item_n);
		BARRIER();
	}
	for (int i = 0; i < TM; i++)
		for (int j = 0; j < TN; j++) {
			long m = first_m + i * WG_M + item_m, n = first_n + j * WG_N + item_n;
			if (m < s.rows && n < s.columns)
				y[place(&s.y, m, OF_COLUMN(s, n))] = NUMBER_OF(sum[i][j]);
		}
}
