// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels of QLINEAR.
#include "quant.cl"

struct qlinear {
	struct rows x, y;
	long m, n, k, step; // rows of x; rows of w, `step` bytes apart; elements of a row
};
