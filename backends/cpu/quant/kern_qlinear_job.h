// SPDX-License-Identifier: Apache-2.0
// A product with quantized weights, and how an instruction set multiplies many rows of x: items of
// ROWS rows of x by COLS rows of w, for which DEPTH elements of w at a time are packed.
#ifndef YK_KERN_QLINEAR_JOB_H
#define YK_KERN_QLINEAR_JOB_H

#include <stdatomic.h>

#include "../rows/operand.h"
#include "kern_qlinear.h"

enum { COLS = 64, ROWS = 256, DEPTH = 16 * GROUP };

struct job {
	const struct yoke_op *op;
	struct rows x, y;
	const uint8_t *w;
	int64_t n, k, step; // rows of w, `step` bytes apart
	int format;
	int64_t cols, col_items; // rows of w per work item; items for a block of x
	enum way way;            // of the loop for few rows
	bool few;
	const struct qlinear_many *many;
	struct activations a;
	float *f32; // x in f32, for F16 and BF16
	_Atomic bool no_memory;
};

// Memory of an item: COLS * DEPTH packed integers of up to 16 bits; scales and minima
// [DEPTH / GROUP,COLS]; sums [ROWS,COLS].
struct panels {
	int16_t *q;
	float *scale, *min, *acc;
};

struct qlinear_many {
	// stores the integers of a group of x where `multiply` expects them, in 2 bytes each
	void (*put_group)(const struct job *, int64_t row, int64_t group, const int32_t *q);
	// packs `groups` groups, beginning with group `from`, of the rows n .. of w
	void (*fill)(const struct job *, int64_t n, int64_t from, int64_t groups,
		     const struct panels *);
	// acc += rows first .. of x times the panels; `first` is a multiple of ROWS
	void (*multiply)(const struct job *, int64_t first, int64_t rows, int64_t cols,
			 int64_t from, int64_t groups, const struct panels *);
};

// Pointers to `count` rows of w from n on; past the end, the last row is repeated.
static inline void rows_of_w(const struct job *j, int64_t n, int count, const uint8_t **row)
{
	for (int i = 0; i < count; i++)
		row[i] = j->w + (n + i < j->n ? n + i : j->n - 1) * j->step;
}

extern const struct yk_kernel ISA(yk_qlinear);
// Runs the op with these loops for many rows.
int ISA(yk_qlinear_run)(const struct yoke_op *, const struct qlinear_many *);
// AArch64: the same kernel for processors with sdot.
extern const struct yk_kernel yk_qlinear_dot;
int yk_qlinear_run_dot(const struct yoke_op *, const struct qlinear_many *);

#endif
