// SPDX-License-Identifier: Apache-2.0
// Evaluates a map program at one element in float64 with a running error bound: each value is a
// number and the distance from it that a correct implementation may have.
#ifndef YK_PROGRAM_H
#define YK_PROGRAM_H

#include "conform/case.h"

// regs: one per instruction.  in: the program's inputs at this element, with their error bounds.
void yk_program_at(const struct yoke_map *, const struct yk_expected *in, int64_t index,
		   bool flushes, struct yk_expected *regs);

// ---- reductions over the results of programs ----

struct yk_fold {
	long double f; // for sums of f64
	double abs, tol, max;
	int64_t i, n, at;
	bool loose, set;
};
// Adds x to the accumulator; for a product the caller sets f and i to 1 first.
void yk_fold(struct yk_fold *, int kind, bool real, const struct yk_expected *x);
// The accumulated value as an expected result of the dtype.  repeated: all terms are equal, so that
// their rounding errors have the same sign; otherwise the errors partly cancel.
void yk_fold_expect(struct yk_expected *, const struct yk_fold *, int kind, int dtype,
		    bool repeated);

#endif
