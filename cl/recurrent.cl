// SPDX-License-Identifier: Apache-2.0
// RECURRENT and RECURRENT_BACKWARD: steps begin .. end - 1 of a layer. Reference: kern_recurrent.c
// of the CPU backend.
// A group computes the cells of a block of units for some rows of the batch: ACROSS items are along
// the units, an item has ROWS rows and LANES units at a time. An item multiplies the state with the
// weights of all gates of its units and applies the cell to the sums in registers. If one block has
// all units, a launch takes all steps, with a barrier between them; otherwise each step is a
// launch. States alternate between two copies in the workspace, so a step writes nothing that it
// reads. Parameters: CELL, DTYPE (f32 or f64), ITEMS of a group, ACROSS, ROWS; BACK: the backward
// kernel.
#include "number.cl"

#ifndef CELL // 0: tanh, 1: relu, 2: LSTM, 3: GRU
#define CELL 2
#endif
#ifndef ITEMS
#define ITEMS 128
#endif
#ifndef ACROSS
#define ACROSS 32
#endif
#ifndef ROWS
#define ROWS 4
#endif
#if CELL == 2
#define GATES 4
#elif CELL == 3
#define GATES 3
#else
#define GATES 1
#endif
#if ITEMS > 1
#define LANES 1
#define EACH_ROW UNROLL // keeps sums in registers
#define EACH_UNIT
#else
#define LANES 16
#define EACH_ROW
#define EACH_UNIT EACH
#endif

enum { Y, H, C, VALUES, MORE, X, W, B, H0, C0, LENGTHS, DX, DP, DH0, DC0, DY, DH, DC, OPERANDS };

struct recurrent {
	long steps, rows, units, reverse, given; // given: bit i: operand i is not none
	long begin, end, span, blocks, tiles;    // span: units of a block; tiles of rows
	long strides[OPERANDS][3];
};

struct layer {
	struct recurrent a;
	GLOBAL number *of[OPERANDS];
	// workspace: packed weights, states or what is carried, and [2][B,G H]
	GLOBAL number *w, *h, *c, *dp;
};

FN bool given(const struct layer *l, int k)
{
	return (l->a.given >> k & 1) != 0;
}

FN long place(const struct layer *l, int k, long i, long j, long n)
{
	return i * l->a.strides[k][0] + j * l->a.strides[k][1] + n * l->a.strides[k][2];
}

// An element of an operand; 0 if it is none.
FN number get(const struct layer *l, int k, long i, long j, long n)
{
	return given(l, k) ? l->of[k][place(l, k, i, j, n)] : (number)0;
}

FN void put(const struct layer *l, int k, long i, long j, long n, number x)
{
	if (given(l, k))
		l->of[k][place(l, k, i, j, n)] = x;
}

FN long length_of(const struct layer *l, long b)
{
	long n = l->a.steps, given_length = n;
	if (given(l, LENGTHS))
		given_length = ((GLOBAL const long *)l->of[LENGTHS])[b * l->a.strides[LENGTHS][0]];
	return given_length < n ? given_length : n;
}

FN number sigmoid(number x)
{
	return (number)1 / ((number)1 + exp(-x));
}

// Row r of an item, or the last one, whose result is not used.
FN long row_of(const struct layer *l, long first, int r)
{
	return first + r < l->a.rows ? first + r : l->a.rows - 1;
}

#ifndef BACK
// The states before step s.
FN GLOBAL const number *before_of(const struct layer *l, long s)
{
	return s ? l->h + ((s + 1) & 1) * l->a.rows * l->a.units : l->of[H0];
}

// Step s, at t, of unit u of row b: sum holds the products of its gates, without biases.
FN void cell(const struct layer *l, long s, long t, long b, long u, const number *sum)
{
	long n = l->a.units, at = b * n + u;
	number before = s ? before_of(l, s)[at] : get(l, H0, 0, b, u);
	number state = CELL != 2 || s ? (number)0 : get(l, C0, 0, b, u), h = before, extra = 0;
	number g[GATES], p[GATES];
	bool taken = t < length_of(l, b);
	if (CELL == 2 && s)
		state = l->c[at];
	UNROLL
	for (int k = 0; k < GATES; k++) {
		p[k] = sum[k] + get(l, B, 0, 0, k * n + u);
		g[k] = taken ? get(l, X, t, b, k * n + u) : (number)0;
		if (taken && (CELL != 3 || k < 2))
			g[k] += p[k];
	}
	if (taken) {
#if CELL == 2
		g[0] = sigmoid(g[0]);
		g[1] = sigmoid(g[1]);
		g[2] = tanh(g[2]);
		g[3] = sigmoid(g[3]);
		extra = state = FMA(g[1], state, g[0] * g[2]);
		h = g[3] * tanh(state);
#elif CELL == 3
		g[0] = sigmoid(g[0]);
		g[1] = sigmoid(g[1]);
		g[2] = tanh(FMA(g[0], p[2], g[2]));
		extra = p[2];
		h = FMA(g[1], before - g[2], g[2]);
#elif CELL == 1
		h = g[0] = g[0] < 0 ? (number)0 : g[0];
#else
		h = g[0] = tanh(g[0]);
#endif
	}
	UNROLL
	for (int k = 0; k < GATES; k++)
		put(l, VALUES, t, b, k * n + u, g[k]);
	put(l, MORE, t, b, u, extra);
	put(l, Y, t, b, u, taken ? h : (number)0);
	l->h[(s & 1) * l->a.rows * n + at] = h;
	if (CELL == 2)
		l->c[at] = state;
	if (s == l->a.steps - 1) {
		put(l, H, 0, b, u, h);
		put(l, C, 0, b, u, state);
	}
}

// Units u .. u + n - 1 of the item's rows in step s.
FN void step(const struct layer *l, long s, long first, long u, int n)
{
	long size = GATES * l->a.units, row[ROWS], by = s ? 1 : l->a.strides[H0][2];
	GLOBAL const number *h = before_of(l, s);
	number sum[ROWS][GATES][LANES], one[GATES];
	EACH_ROW
	for (int r = 0; r < ROWS; r++) {
		row[r] = row_of(l, first, r) * (s ? l->a.units : l->a.strides[H0][1]);
		for (int i = 0; i < GATES * LANES; i++)
			sum[r][i / LANES][i % LANES] = 0;
	}
	for (long k = 0; k < l->a.units && (s || given(l, H0)); k++) {
		GLOBAL const number *w = l->w + k * size + u;
		UNROLL
		for (int r = 0; r < ROWS; r++) {
			number x = h[row[r] + k * by];
			UNROLL
			for (int g = 0; g < GATES; g++)
				EACH_UNIT
				for (int i = 0; i < n; i++)
					sum[r][g][i] = FMA(x, w[g * l->a.units + i], sum[r][g][i]);
		}
	}
	EACH_ROW
	for (int r = 0; r < ROWS; r++)
		for (int i = 0; i < n && first + r < l->a.rows; i++) {
			UNROLL
			for (int g = 0; g < GATES; g++)
				one[g] = sum[r][g][i];
			cell(l, s, l->a.reverse ? l->a.steps - 1 - s : s, first + r, u + i, one);
		}
}

#else
// An operand's element before t in time, which is that of `first` before the first step.
FN number earlier(const struct layer *l, int k, int first, long t, long b, long u)
{
	bool begins = l->a.reverse ? t + 1 >= length_of(l, b) : t == 0;
	return begins ? get(l, first, 0, b, u) : get(l, k, l->a.reverse ? t + 1 : t - 1, b, u);
}

// Step s back from the last one, at t, of unit u of row b: sum is the derivative by its state
// through the products of the step after it in time. s = steps: only the states before the first
// step.
FN void cell_backward(const struct layer *l, long s, long t, long b, long u, number sum)
{
	long n = l->a.units, at = b * n + u;
	number dh = (s ? l->h[at] : get(l, DH, 0, b, u)) + sum, keep = dh;
	number dc = CELL != 2 || s ? (number)0 : get(l, DC, 0, b, u);
	number g[GATES], dx[GATES];
	if (CELL == 2 && s)
		dc = l->c[at];
	if (s == l->a.steps) {
		put(l, DH0, 0, b, u, dh);
		put(l, DC0, 0, b, u, CELL == 2 ? dc : get(l, DC, 0, b, u));
		return;
	}
	bool taken = t < length_of(l, b);
	UNROLL
	for (int k = 0; k < GATES; k++) {
		g[k] = taken ? get(l, VALUES, t, b, k * n + u) : (number)0;
		dx[k] = 0;
	}
	if (taken) {
		dh += get(l, DY, t, b, u);
		keep = 0;
#if CELL == 2
		number c = tanh(get(l, MORE, t, b, u));
		number before = earlier(l, MORE, C0, t, b, u);
		dc = FMA(dh * g[3], 1 - c * c, dc);
		dx[0] = dc * g[2] * g[0] * (1 - g[0]);
		dx[1] = dc * before * g[1] * (1 - g[1]);
		dx[2] = dc * g[0] * (1 - g[2] * g[2]);
		dx[3] = dh * c * g[3] * (1 - g[3]);
		dc *= g[1];
#elif CELL == 3
		number before = earlier(l, Y, H0, t, b, u);
		dx[2] = dh * (1 - g[1]) * (1 - g[2] * g[2]);
		dx[1] = dh * (before - g[2]) * g[1] * (1 - g[1]);
		dx[0] = dx[2] * get(l, MORE, t, b, u) * g[0] * (1 - g[0]);
		keep = dh * g[1];
#elif CELL == 1
		dx[0] = g[0] > 0 ? dh : (number)0;
#else
		dx[0] = dh * (1 - g[0] * g[0]);
#endif
	}
	UNROLL
	for (int k = 0; k < GATES; k++) {
		number p = CELL == 3 && k == 2 ? dx[k] * g[0] : dx[k];
		l->dp[(s & 1) * l->a.rows * GATES * n + b * GATES * n + k * n + u] = p;
		put(l, DX, t, b, k * n + u, dx[k]);
		put(l, DP, t, b, k * n + u, p);
	}
	l->h[at] = keep;
	if (CELL == 2)
		l->c[at] = dc;
}

FN void step(const struct layer *l, long s, long first, long u, int n)
{
	long size = GATES * l->a.units;
	GLOBAL const number *dp = l->dp + ((s + 1) & 1) * l->a.rows * size, *row[ROWS];
	number sum[ROWS][LANES];
	EACH_ROW
	for (int r = 0; r < ROWS; r++) {
		row[r] = dp + row_of(l, first, r) * size;
		for (int i = 0; i < LANES; i++)
			sum[r][i] = 0;
	}
	for (long k = 0; k < size && s; k++) {
		GLOBAL const number *w = l->of[W] + k * l->a.strides[W][1] + u * l->a.strides[W][2];
		UNROLL
		for (int r = 0; r < ROWS; r++) {
			number x = row[r][k];
			EACH_UNIT
			for (int i = 0; i < n; i++)
				sum[r][i] = FMA(x, w[i * l->a.strides[W][2]], sum[r][i]);
		}
	}
	EACH_ROW
	for (int r = 0; r < ROWS; r++)
		for (int i = 0; i < n && first + r < l->a.rows; i++)
			cell_backward(l, s, l->a.reverse ? s : l->a.steps - 1 - s, first + r, u + i,
				      sum[r][i]);
}
#endif

FN void layer_steps(const struct layer *l)
{
	long all = l->a.blocks * l->a.tiles, each = ITEMS / ACROSS * ROWS;
	int item = LOCAL_ID(0);
	for (long group = (long)GROUP_ID(0); group < all; group += (long)GROUPS(0)) {
		long from = group % l->a.blocks * l->a.span,
		     first = group / l->a.blocks * each + item / ACROSS * ROWS;
		long to = from + l->a.span < l->a.units ? from + l->a.span : l->a.units;
		for (long s = l->a.begin; s < l->a.end; s++) {
			for (long u = from + item % ACROSS * LANES; u < to && first < l->a.rows;
			     u += ACROSS * LANES) {
				int n = LANES == 1 || to - u >= LANES ? LANES : (int)(to - u);
				step(l, s, first, u, n);
			}
			BARRIER_ALL();
		}
	}
}

#ifndef BACK
KERNEL void WORK_GROUP(ITEMS, 1)
	recurrent(OPERAND(y), OPERAND(h), OPERAND(c), OPERAND(values), OPERAND(more), OPERAND(x),
		  OPERAND(b), OPERAND(h0), OPERAND(c0), OPERAND(lengths), OPERAND(work),
		  struct recurrent a)
{
	struct layer l;
	long state = a.rows * a.units;
	l.a = a;
	l.of[Y] = NUMBERS(y, y_at);
	l.of[H] = NUMBERS(h, h_at);
	l.of[C] = NUMBERS(c, c_at);
	l.of[VALUES] = NUMBERS(values, values_at);
	l.of[MORE] = NUMBERS(more, more_at);
	l.of[X] = NUMBERS(x, x_at);
	l.of[B] = NUMBERS(b, b_at);
	l.of[H0] = NUMBERS(h0, h0_at);
	l.of[C0] = NUMBERS(c0, c0_at);
	l.of[LENGTHS] = NUMBERS(lengths, lengths_at);
	l.w = NUMBERS(work, work_at);
	l.h = l.w + GATES * a.units * a.units;
	l.c = l.h + 2 * state;
	layer_steps(&l);
}
#else
KERNEL void WORK_GROUP(ITEMS, 1)
	recurrent_backward(OPERAND(dx), OPERAND(dp), OPERAND(dh0), OPERAND(dc0), OPERAND(w),
			   OPERAND(h0), OPERAND(c0), OPERAND(lengths), OPERAND(y), OPERAND(values),
			   OPERAND(more), OPERAND(dy), OPERAND(dh), OPERAND(dc), OPERAND(work),
			   struct recurrent a)
{
	struct layer l;
	long state = a.rows * a.units;
	l.a = a;
	l.of[DX] = NUMBERS(dx, dx_at);
	l.of[DP] = NUMBERS(dp, dp_at);
	l.of[DH0] = NUMBERS(dh0, dh0_at);
	l.of[DC0] = NUMBERS(dc0, dc0_at);
	l.of[W] = NUMBERS(w, w_at);
	l.of[H0] = NUMBERS(h0, h0_at);
	l.of[C0] = NUMBERS(c0, c0_at);
	l.of[LENGTHS] = NUMBERS(lengths, lengths_at);
	l.of[Y] = NUMBERS(y, y_at);
	l.of[VALUES] = NUMBERS(values, values_at);
	l.of[MORE] = NUMBERS(more, more_at);
	l.of[DY] = NUMBERS(dy, dy_at);
	l.of[DH] = NUMBERS(dh, dh_at);
	l.of[DC] = NUMBERS(dc, dc_at);
	l.h = NUMBERS(work, work_at);
	l.c = l.h + state;
	l.dp = l.c + state;
	layer_steps(&l);
}
#endif
