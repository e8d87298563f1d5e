// SPDX-License-Identifier: Apache-2.0
// Maximum and sum of exponentials of one row: what softmax and cross entropy share.
#ifndef YK_SOFTROW_H
#define YK_SOFTROW_H

#include "vfun.h"

// Lanes n.. of v replaced; n may exceed VF.
static inline vf vf_fill_tail(vf v, int64_t n, float with)
{
	return n >= VF ? v :
			 vf_select(vi_iota() < vi_splat((int32_t)n), v, vf_splat(with));
}

// NaN counts as small here; it comes back in the exponentials.
static inline float row_max(const float *x, int64_t n)
{
	vf m = vf_splat(-__builtin_inff()), m1 = m;
	int64_t i = 0;
	for (; i + 2 * VF <= n; i += 2 * VF) {
		m = vf_max(vf_load(x + i), m);
		m1 = vf_max(vf_load(x + i + VF), m1);
	}
	for (; i < n; i += VF)
		m = vf_max(vf_fill_tail(vf_get(x + i, n - i), n - i, -__builtin_inff()),
			   m);
	return vf_most(vf_max(m, m1));
}

// sum exp(x - m); the terms are kept in y unless it is NULL (y may be x)
static inline float row_exp(float *y, const float *x, int64_t n, float m)
{
	const vf mv = vf_splat(m);
	vf sum = { 0 };
	for (int64_t i = 0; i < n; i += VF) {
		vf e = vf_exp(vf_get(x + i, n - i) - mv);
		if (y)
			vf_put(y + i, e, n - i);
		sum += vf_fill_tail(e, n - i, 0);
	}
	return vf_sum(sum);
}

#endif
