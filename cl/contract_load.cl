// SPDX-License-Identifier: Apache-2.0
// Loads a and b for contract_blocks.cl, contract_matrix.cl and contract_copies.cl: tiles of LINES
// rows of a, or columns of b, and DEPTH steps of k are copied to local memory in quads, which are
// 16 bytes of neighbouring elements. Groups: (tiles along n, tiles along m, batch index; with SPLIT
// times s.cut[3], the number of splits of k, innermost).
#include "contract_op.cl"

// Form of an operand: bit 0: neighbours are steps of k, otherwise lines; bit 1: whole quads are
// aligned to 16 bytes.
#ifndef A_FORM
#define A_FORM 0
#endif
#ifndef B_FORM
#define B_FORM 0
#endif
#define ALONG_K 1
#define QUADS 2

#if DTYPE == 1
#define PER 4 // elements per quad
typedef float element;
#define WORD_OF(at) AS_UINT(*(at))
#elif DTYPE == 5 || DTYPE == 6
#define PER 16
typedef uchar element;
#define WORD_OF(at) ((uint)*(at))
#else
#define PER 8
typedef ushort element;
#define WORD_OF(at) ((uint)*(at))
#endif
#define EACH_WORD (PER / 4) // elements per word of a quad
#if PER == 16
#define EACH_OF_WORD ROLLED // unrolled, the addresses of all its bytes would spill
#else
#define EACH_OF_WORD UNROLL
#endif

// One operand, from a line and a step on.
struct side {
	GLOBAL const element *from;
	long line, step;   // strides
	long lines, steps; // their numbers
};

// First line and step of quad number e of a tile. Neighbouring items take quads that are adjacent
// in local memory: lines of a step if `by_step`, otherwise steps of a line.
FN void quad_place(int e, int form, bool by_step, int lines, int depth, int *line, int *step)
{
	if (form & ALONG_K) {
		*line = e / (depth / PER);
		*step = e % (depth / PER) * PER;
	} else if (by_step) {
		*line = e % (lines / PER) * PER;
		*step = e / (lines / PER);
	} else {
		*line = e / depth * PER;
		*step = e % depth;
	}
}

FN uint word_at(const struct side *s, long line, long step)
{
	GLOBAL const element *at = s->from + line * s->line + step * s->step;
	return line < s->lines && step < s->steps ? WORD_OF(at) : 0u;
}

// Loads a quad that begins at a line and a step; elements outside the operand are 0.
FN void quad_fetch(uint *to, const struct side *s, int form, long line, long step)
{
	bool along_k = form & ALONG_K;
	bool whole = along_k ? line < s->lines && step + PER <= s->steps :
		line + PER <= s->lines && step < s->steps;
	if ((form & QUADS) && whole) {
		quad_load(s->from + line * s->line + step * s->step, to);
		return;
	}
	UNROLL
	for (int i = 0; i < 4; i++)
		to[i] = 0u;
	EACH_OF_WORD
	for (int e = 0; e < EACH_WORD; e++)
		UNROLL
		for (int i = 0; i < 4; i++) {
			int on = EACH_WORD * i + e;
			to[i] |= word_at(s, line + (along_k ? 0 : on), step + (along_k ? on : 0))
				 << 32 / EACH_WORD * e;
		}
}

// Loads the tile's quads from step `first` on, n per item.
FN void tile_fetch(uint quads[][4], int n, const struct side *s, int form, bool by_step, int lines,
		   int depth, long first, int items, int item)
{
	UNROLL
	for (int e = 0; e < n; e++) {
		int line, step;
		quad_place(e * items + item, form, by_step, lines, depth, &line, &step);
		quad_fetch(quads[e], s, form, line, first + step);
	}
}

// The part of the result that a group computes.
struct block {
	ulong index;         // batch index
	long m, n, k, end;   // first row, column and step; end of the steps
	ulong part;          // number of the split of k
};

// Sets the block's batch index and steps from the index of a group along the second axis.
FN void block_part(struct block *b, contraction s)
{
#ifdef SPLIT
	uint z = (uint)b->index, parts = (uint)s.cut[3];
	b->index = z / parts;
	b->part = z % parts;
	b->k = (long)b->part * s.cut[2];
	b->end = min_of(b->k + s.cut[2], s.k);
#else
	b->part = 0;
	b->k = 0;
	b->end = s.k;
#endif
}

// False: past the last block.
FN bool block_of(struct block *b, contraction s, int lines_m, int lines_n)
{
	long line;
	bool there = line_of(s, &line, &b->index);
	b->m = line * lines_m;
	b->n = (long)GROUP_ID(0) * lines_n;
	block_part(b, s);
	return there;
}

FN struct side side_a(GLOBAL uchar *base, ulong at, contraction s, const struct block *b)
{
	struct side a;
	a.from = (GLOBAL const element *)(base + at) +
		 (matrix_at(s, b->index, 1) + b->m * s.a_m + b->k * s.a_k);
	a.line = s.a_m;
	a.step = s.a_k;
	a.lines = s.m - b->m;
	a.steps = b->end - b->k;
	return a;
}

FN struct side side_b(GLOBAL uchar *base, ulong at, contraction s, const struct block *b)
{
	struct side c;
	c.from = (GLOBAL const element *)(base + at) +
		 (matrix_at(s, b->index, 2) + b->n * s.b_n + b->k * s.b_k);
	c.line = s.b_n;
	c.step = s.b_k;
	c.lines = s.n - b->n;
	c.steps = b->end - b->k;
	return c;
}

// Stores a finished sum; with SPLIT, to [split][batch index][m][n] of the workspace, where
// contract_join reads it.
FN void finish_sum(PART sum, contraction s, const struct block *b, long y_matrix, long m,
		   long n Y_PARAMS)
{
	if (m >= s.m || n >= s.n)
		return;
#ifdef SPLIT
	ulong all = (ulong)s.all / (ulong)s.cut[3];
	((GLOBAL PART *)(y_base +
			 y_at))[((b->part * all + b->index) * (ulong)s.m + (ulong)m) * (ulong)s.n +
				(ulong)n] = sum;
#else
	put_sum(sum, s, b->index, y_matrix, m, n Y_ARGS);
#endif
}

// True if finish_pair may store neighbouring columns, from an even one on, as one word.
FN bool pairs_of(contraction s, long y_matrix Y_PARAMS)
{
#if !defined SPLIT && !defined MAP_PARAMS && (RESULT == 3 || RESULT == 4)
	return s.y_n == 1 && s.y_m % 2 == 0 &&
	       ((ulong)(y_base + y_at) + (ulong)y_matrix * 2) % 4 == 0;
#else
	return false;
#endif
}

// Stores two finished sums of a row in 16 bits.
FN void finish_pair(PART first, PART second, contraction s, const struct block *b, long y_matrix,
		    long m, long n Y_PARAMS)
{
#if !defined SPLIT && !defined MAP_PARAMS && (RESULT == 3 || RESULT == 4)
	GLOBAL ushort *y = (GLOBAL ushort *)(y_base + y_at) + (y_matrix + m * s.y_m + n);
	if (m < s.m && n + 1 < s.n)
		*(GLOBAL uint *)y = (uint)TO_PRODUCT(first) | (uint)TO_PRODUCT(second) << 16;
	else
		finish_sum(first, s, b, y_matrix, m, n Y_ARGS);
#endif
}
