// SPDX-License-Identifier: Apache-2.0
// Elementary functions of vmath.h on one vector.
// A loop over the lanes is all it takes: compilers turn it into instructions on the whole
// register.
#ifndef YK_VFUN_H
#define YK_VFUN_H

#include "vec.h"
#include "vmath.h"

// clang would unroll such a short loop before it can be vectorised
#if defined __clang__
#define YK_LANES _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define YK_LANES _Pragma("GCC unroll 1") YK_SIMD
#endif

// e^x for x <= 0, in fewer instructions than yk_exp_f32; 0 below -87, where it is under
// 2^-125.
static inline vf vf_exp(vf x)
{
	float a[VF];
	vf_store(a, x);
	YK_LANES
	for (int i = 0; i < VF; i++) {
		int32_t n;
		float p = yk_exp_reduce(a[i] < -87.0f ? -87.0f : a[i], &n) + 1.0f;
		a[i] = a[i] < -87.0f ? 0.0f : p * yk_exp2i_f32(n);
	}
	return vf_load(a);
}

static inline vf vf_log(vf x)
{
	float a[VF];
	vf_store(a, x);
	YK_LANES
	for (int i = 0; i < VF; i++)
		a[i] = yk_log_f32(a[i]);
	return vf_load(a);
}

#endif
