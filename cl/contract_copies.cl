// SPDX-License-Identifier: Apache-2.0
// Shared by contractions whose tiles are loaded by asynchronous copies (contract_stages.cl,
// contract_wgmma.cl): STAGES tiles of each operand are in local memory, and both operands have
// whole quads (QUADS of contract_load.cl). BAND rows of tiles are computed together, so that groups
// that run at the same time share operands in the cache.
#ifndef MATRIX
#define MATRIX 4
#define DTYPE 4
#define A_FORM 3
#define B_FORM 2
#endif
#include "contract_load.cl"

#ifndef STAGES // at least 3
#define STAGES 3
#endif
#define BAND 8

// Like block_of, but groups go through BAND rows of blocks column by column.
FN bool block_of_band(struct block *b, contraction s, int lines_m, int lines_n)
{
	long line;
	bool there = line_of(s, &line, &b->index);
	uint columns = (uint)GROUPS(0), lines = (uint)s.lines;
	ulong at = (ulong)line * columns + GROUP_ID(0);
	uint first = (uint)line / BAND * BAND;
	uint height = lines - first < BAND ? lines - first : BAND;
	uint within = (uint)(at - (ulong)first * columns);
	b->m = (long)(first + within % height) * lines_m;
	b->n = (long)(within / height) * lines_n;
	block_part(b, s);
	return there;
}

// How many of lines or steps exist from a number on; copies count in 32 bits.
FN int left_from(long count, int from) { return (int)min_of(count, 0x7fffffff) - from; }

// The bytes of a quad of which `left` elements exist.
FN int quad_bytes(int left) { return (left < 0 ? 0 : left > PER ? PER : left) * (16 / PER); }
