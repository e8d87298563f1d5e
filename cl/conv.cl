// SPDX-License-Identifier: Apache-2.0
// CONV, CONV_X and CONV_W: products of a matrix and the windows of an operand, any strides; sums
// have the type ACC. Reference: kern_conv.c, with the same equations.
//
// A tap (channel, k0, k1) and a position (image, p0, p1) are one number each, row-major. Along an
// axis, the element of b for (tap, position) is its operand's element position * step + off + tap *
// by, or 0 outside.
// y(i, position) = sum over taps of a(i, tap) b(tap, position), or with ALONG 1, y(i, tap) = sum
// over positions of a(i, position) b(tap, position). Blocks and sums as in tile.cl. Groups:
// (ceil(columns / BN), ceil(rows / BM), channel group).
#include "number.cl"
#include "tile.cl"

#ifndef ALONG
#define ALONG 0
#endif

// Strides of a tensor: of a row, and of each component of a tap or position, in elements.
struct places {
	long start, group, row, at[3];
};

struct conv_args {
	long rows, columns, depth;
	uint tap[3], pos[3]; // size of each component
	struct places a, y;
	long b_group, b_image, b_channel, b_axis[2]; // strides of b's operand
	long size[2], step[2], off[2], by[2];
};

struct triple {
	uint part[3];
};

FN struct triple parts_of(uint i, uint n1, uint n2)
{
	struct triple t;
	uint q = i / n2;
	t.part[2] = i - q * n2;
	t.part[0] = q / n1;
	t.part[1] = q - t.part[0] * n1;
	return t;
}

FN long place(const struct places *p, long row, struct triple t)
{
	return p->start + row * p->row + (long)t.part[0] * p->at[0] + (long)t.part[1] * p->at[1] + (long)t.part[2] * p->at[2];
}

FN ACC window_at(GLOBAL number *b, const struct conv_args *s, struct triple tap, struct triple pos)
{
	long x0 = (long)pos.part[1] * s->step[0] + s->off[0] + (long)tap.part[1] * s->by[0];
	long x1 = (long)pos.part[2] * s->step[1] + s->off[1] + (long)tap.part[2] * s->by[1];
	if (x0 < 0 || x0 >= s->size[0] || x1 < 0 || x1 >= s->size[1])
		return (ACC)0;
	return ACC_OF(b[(long)pos.part[0] * s->b_image + (long)tap.part[0] * s->b_channel + x0 * s->b_axis[0] +
			x1 * s->b_axis[1]]);
}

#define TAP(s, i) parts_of((uint)(i), (s).tap[1], (s).tap[2])
#define POSITION(s, i) parts_of((uint)(i), (s).pos[1], (s).pos[2])
#if ALONG
#define OF_DEPTH POSITION
#define OF_COLUMN TAP
#define WINDOW(b, s, depth, column) window_at(b, s, column, depth)
#else
#define OF_DEPTH TAP
#define OF_COLUMN POSITION
#define WINDOW(b, s, depth, column) window_at(b, s, depth, column)
#endif

KERNEL void WORK_GROUP_REGISTERS(WG_N, WG_M) conv(GLOBAL uchar *y_base, ulong y_at, GLOBAL uchar *a_base, ulong a_at,
	GLOBAL uchar *b_base, ulong b_at, struct conv_args s)
{
	LOCAL ACC a_block[BK * BM], b_block[BK * BN]; // [k][row], [k][column]
	ACC sum[TM][TN];
	long first_m = (long)GROUP_ID(1) * BM, first_n = (long)GROUP_ID(0) * BN, group = (long)GROUP_ID(2);
	int item_m = LOCAL_ID(1), item_n = LOCAL_ID(0), item = item_m * WG_N + item_n;
	GLOBAL number *a = NUMBERS(a_base, a_at) + group * s.a.group;
	GLOBAL number *b = NUMBERS(b_base, b_at) + group * s.b_group;
	GLOBAL number *y = NUMBERS(y_base, y_at) + group * s.y.group;

	clear_tile(sum);
	for (long first_k = 0; first_k < s.depth; first_k += BK) {
		for (int e = item; e < BK * BM; e += ITEMS) {
			int k = e % BK, r = e / BK;
			bool inside = first_k + k < s.depth && first_m + r < s.rows;
			a_block[k * BM + r] = inside ? ACC_OF(a[place(&s.a, first_m + r, OF_DEPTH(s, first_k + k))]) : (ACC)0;
		}
		for (int e = item; e < BK * BN; e += ITEMS) {
			int k = e / BN, r = e % BN;
			bool inside = first_k + k < s.depth && first_n + r < s.columns;
			b_block[k * BN + r] = inside ? WINDOW(b, &s, OF_DEPTH(s, first_k + k), OF_COLUMN(s, first_n + r)) :
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
