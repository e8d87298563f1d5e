// SPDX-License-Identifier: Apache-2.0
// A map program at one element, in float64 with a running bound of the error: each value is a number
// and how far a right implementation may be from it.
#ifndef YK_PROGRAM_H
#define YK_PROGRAM_H

#include "conform/case.h"

// regs: one for each instruction.  in: the program's inputs there, with what is known of them.
void yk_program_at(const struct yoke_map *, const struct yk_want *in, int64_t index,
		   bool flushes, struct yk_want *regs);
// Operands an instruction has.
int yk_program_operands(int op);
// Uniform number of the counter-based generator, and its 32 bits.
uint32_t yk_philox(uint64_t index, uint64_t key, uint64_t step);

// ---- reductions of what programs give ----

struct yk_fold {
	long double f; // for sums of f64
	double abs, tol, most;
	int64_t i, n, at;
	bool loose, set;
};
// Takes x in, behind what is there; of a product f and i are 1 before.
void yk_fold(struct yk_fold *, int kind, bool real, const struct yk_want *x);
// What it came to, as a result of a dtype.  Equal terms (repeated) are rounded alike each time, others here
// and there.
void yk_fold_want(struct yk_want *, const struct yk_fold *, int kind, int dtype, bool repeated);

#endif
