// SPDX-License-Identifier: Apache-2.0
// Tests whether the device computes in f64. One item: results that need all 53 bits, subnormals and
// the full range of the exponent, which the host compares bit by bit. Inputs x[0..3], results
// x[4..13].
#include "prologue.h"

KERNEL void f64_results(GLOBAL double *x)
{
	double a = x[0], b = x[1], tiny = x[2], big = x[3];

	if (GLOBAL_ID(0))
		return;
	x[4] = a + b;
	x[5] = a - b;
	x[6] = a * b;
	x[7] = a / b;
	x[8] = sqrt(a);
	x[9] = a * b - a; // must not be contracted
	x[10] = tiny * 0.5;
	x[11] = big * a;
	x[12] = (double)(long)(a * 1e15);
	x[13] = (double)(float)a;
}
