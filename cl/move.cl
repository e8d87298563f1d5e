// SPDX-License-Identifier: Apache-2.0
// MOVE, and the copies of SLICE_AT and SLICE_UPDATE_AT: y = x, element by element, as bits.
// Reference: kern_move.c and kern_slice_at.c of the CPU backend.
//
// Tensors of the axes: 0 y, 1 x. With SHIFT, the slice of y (1) or of x (2) begins at the element
// offset that move_start computed; nothing is copied if that reported an error.
//   move        an item copies a block of block_rows x block_cols: one element on GPUs
//   move_tiles  y is contiguous along the last axis, x along the one before; a group copies a
//               tile of TILE x TILE: through local memory, or in register squares if it has one
//               item
// With STREAMS, y is large and its rows start on cache lines, and it is written with non-temporal
// stores; x is dense along the last axis or the one before.
#include "axes.cl"
#include "report.cl"

#ifndef SHIFT
#define SHIFT 0
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef ITEMS // items per group of move_tiles
#define ITEMS 1
#endif

#if SHIFT
#define SHIFT_PARAMS , GLOBAL const uchar *shift, ulong shift_at REPORT_PARAMS
#define SHIFTED(which) (SHIFT == (which) ? *(GLOBAL const long *)(shift + shift_at) : 0)
#define REFUSED has_report(REPORT_AT)
#else
#define SHIFT_PARAMS
#define SHIFTED(which) 0
#define REFUSED false
#endif

// For groups of one item: a vector of SQUARE elements; squares are transposed in registers.
#if ITEMS == 1 && defined TURN
#if UNIT == 8
#define SQUARE 8
#define VECTOR ulong8
#define VECTOR_LOAD(from) vload8(0, from)
#define VECTOR_STORE(v, to) vstore8(v, 0, to)
TURN(ulong, 8)
#define VECTORS_TURN turn_ulong
#else
#define SQUARE 16
#define VECTOR_LOAD(from) vload16(0, from)
#define VECTOR_STORE(v, to) vstore16(v, 0, to)
#if UNIT == 4
#define VECTOR uint16
TURN(uint, 16)
#define VECTORS_TURN turn_uint
#elif UNIT == 2
#define VECTOR ushort16
TURN(ushort, 16)
#define VECTORS_TURN turn_ushort
#else
#define VECTOR uchar16
TURN(uchar, 16)
#define VECTORS_TURN turn_uchar
#endif
#endif
#endif

KERNEL void move(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from, ulong from_at,
	struct axes a, ulong block_cols, ulong block_rows SHIFT_PARAMS)
{
	long ys = step_of(&a, 0), xs = step_of(&a, 1);
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)a.cols, rows = (ulong)a.rows;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;

	if (REFUSED)
		return;
	for (ulong r = r0; r < r1; r++) {
		GLOBAL unit *y = UNITS(to, to_at) + SHIFTED(1) + row_of(&a, 0, r);
		GLOBAL unit *x = UNITS(from, from_at) + SHIFTED(2) + row_of(&a, 1, r);
		if (ys == 1 && xs == 1) {
			ulong done = c0;
#if defined STREAMS && defined SQUARE
			for (; done + SQUARE <= c1; done += SQUARE)
				VECTOR_STREAM(VECTOR, VECTOR_LOAD(x + done), y + done);
#endif
			EACH
			for (ulong c = done; c < c1; c++)
				y[c] = x[c];
		} else if (ys == 1 && xs == 0) {
			unit v = *x;
			EACH
			for (ulong c = c0; c < c1; c++)
				y[c] = v;
		} else {
			EACH
			for (ulong c = c0; c < c1; c++)
				y[(long)c * ys] = x[(long)c * xs];
		}
	}
}

// Fills with one value.
KERNEL void move_value(GLOBAL uchar *to, ulong to_at, ulong bits, struct axes a, ulong block_cols,
	ulong block_rows SHIFT_PARAMS)
{
	long ys = step_of(&a, 0);
	ulong c0 = GLOBAL_ID(0) * block_cols, r0 = GLOBAL_ID(1) * block_rows;
	ulong cols = (ulong)a.cols, rows = (ulong)a.rows;
	ulong c1 = c0 + block_cols < cols ? c0 + block_cols : cols;
	ulong r1 = r0 + block_rows < rows ? r0 + block_rows : rows;

	if (REFUSED)
		return;
	for (ulong r = r0; r < r1; r++) {
		GLOBAL unit *y = UNITS(to, to_at) + SHIFTED(1) + row_of(&a, 0, r);
		EACH
		for (ulong c = c0; c < c1; c++)
			y[(long)c * ys] = (unit)bits;
	}
}

// Copies rows a0 .. a1 - 1 of elements b0 .. b1 - 1 of x to columns of y; one item.
FN void turn(GLOBAL unit *y, long ys, GLOBAL const unit *x, long xs, int a0, int a1, int b0, int b1)
{
	for (int b = b0; b < b1; b++) {
		EACH
		for (int i = a0; i < a1; i++)
			y[b * ys + i] = x[i * xs + b];
	}
}

#ifdef SQUARE
FN void turn_square(GLOBAL unit *y, long ys, GLOBAL const unit *x, long xs)
{
	VECTOR v[SQUARE];
	UNROLL
	for (int k = 0; k < SQUARE; k++)
		v[k] = VECTOR_LOAD(x + k * xs);
	VECTORS_TURN(v);
	UNROLL
	for (int k = 0; k < SQUARE; k++)
#ifdef STREAMS
		VECTOR_STREAM(VECTOR, v[k], y + k * ys);
#else
		VECTOR_STORE(v[k], y + k * ys);
#endif
}
#endif

// Groups: tiles of the last axis, times tiles of the one before, times the rows of the others.
KERNEL void WORK_GROUP(ITEMS, 1) move_tiles(GLOBAL uchar *to, ulong to_at, GLOBAL uchar *from,
	ulong from_at, struct axes a, long tiles_a, long tiles_b SHIFT_PARAMS)
{
	long g = (long)GROUP_ID(0);
	long na = a.cols, nb = a.dims[a.rank - 2];
	long a0 = g % tiles_a * TILE, b0 = g / tiles_a % tiles_b * TILE;
	ulong row = (ulong)(g / tiles_a / tiles_b);
	struct axes outer = a;
	outer.rank--;
	long ys = a.strides[0][a.rank - 2], xs = step_of(&a, 1);
	GLOBAL unit *y = UNITS(to, to_at) + SHIFTED(1) + row_of(&outer, 0, row) + b0 * ys + a0;
	GLOBAL unit *x = UNITS(from, from_at) + SHIFTED(2) + row_of(&outer, 1, row) + a0 * xs + b0;
	int ma = (int)(na - a0 < TILE ? na - a0 : TILE);
	int mb = (int)(nb - b0 < TILE ? nb - b0 : TILE);
#if ITEMS > 1
	LOCAL unit tile[TILE][TILE + 1];
	int item = LOCAL_ID(0);
#endif

	if (REFUSED)
		return;
#if ITEMS > 1
	for (int k = item; k < TILE * TILE; k += ITEMS)
		if (k / TILE < ma && k % TILE < mb)
			tile[k / TILE][k % TILE] = x[k / TILE * xs + k % TILE];
	BARRIER();
	for (int k = item; k < TILE * TILE; k += ITEMS)
		if (k / TILE < mb && k % TILE < ma)
			y[k / TILE * ys + k % TILE] = tile[k % TILE][k / TILE];
#else
#ifdef STREAMS // prefetch the next group's part of x: its runs are too short for the hardware
	for (int i = ma; i < 2 * ma; i++)
		for (int b = 0; b < mb; b += 64 / UNIT)
			FETCH(x + i * xs + b);
#endif
#ifdef SQUARE
	int sa = ma / SQUARE * SQUARE, sb = mb / SQUARE * SQUARE;
	for (int i = 0; i < sa; i += SQUARE)
		for (int b = 0; b < sb; b += SQUARE)
			turn_square(y + b * ys + i, ys, x + i * xs + b, xs);
	turn(y, ys, x, xs, 0, sa, sb, mb);
	turn(y, ys, x, xs, sa, ma, 0, mb);
#else
	turn(y, ys, x, xs, 0, ma, 0, mb);
#endif
#endif
}

// Adds a device-side start's contribution to the shift; `begin` resets it first. One item.
KERNEL void move_start(GLOBAL uchar *shift, ulong shift_at, GLOBAL uchar *start, ulong start_at,
	long limit, long stride, ulong axis, ulong begin REPORT_PARAMS)
{
	GLOBAL long *to = (GLOBAL long *)(shift + shift_at);
	long value = *(GLOBAL const long *)(start + start_at);

	if (GLOBAL_ID(0))
		return;
	if (value < 0 || value > limit) {
		if (!has_report(REPORT_AT)) {
			REPORT_AT->value = value;
			REPORT_AT->limit = limit;
		}
		report_bad(REPORT_AT, axis);
		value = 0;
	}
	*to = (begin ? 0 : *to) + value * stride;
}
