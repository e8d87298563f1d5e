// SPDX-License-Identifier: Apache-2.0
// e^x of vectors, x <= 0: the driver's function for single floats and, with VEC_EXP, on GPUs; for
// wider vectors a formula within 1 ulp that may return 0 below -87, where e^x < 2^-125. Reference:
// v_exp of vfun.h of the CPU backend.
#include "prologue.h"

// Processes n <= 4 vectors, n a constant, step by step together: a processor does not look far
// enough ahead to overlap consecutive vectors.
FN void exp_each(VEC *x, int n)
{
#ifdef VEC_EXP
	UNROLL
	for (int j = 0; j < n; j++)
		x[j] = VEC_EXP(x[j]);
#else
	// x = k ln 2 + r.  Adding 1.5 * 2^23 leaves k in the low bits of t.
	const VEC magic = VEC_SPLAT(0x1.8p23f);
	// (e^r - 1 - r) / r^2
	const float q[5] = { 0x1.6b6deep-10f, 0x1.12300ap-7f, 0x1.55568ap-5f, 0x1.5554a2p-3f,
			     0.5f };
	VEC t[4], r[4], p[4];

#ifdef VEC_SCALE
	UNROLL
	for (int j = 0; j < n; j++)
		x[j] = x[j] < VEC_SPLAT(-105.0f) ? VEC_SPLAT(-105.0f) : x[j];
#endif
	UNROLL
	for (int j = 0; j < n; j++)
		t[j] = VEC_FMA(x[j], VEC_SPLAT(0x1.715476p+0f), magic);
	UNROLL
	for (int j = 0; j < n; j++)
		r[j] = VEC_FMA(t[j] - magic, VEC_SPLAT(-0x1.63p-1f), x[j]);
	UNROLL
	for (int j = 0; j < n; j++) {
		r[j] = VEC_FMA(t[j] - magic, VEC_SPLAT(0x1.bd0106p-13f), r[j]);
		p[j] = VEC_SPLAT(q[0]);
	}
	UNROLL
	for (int c = 1; c < 5; c++) {
		UNROLL
		for (int j = 0; j < n; j++)
			p[j] = VEC_FMA(p[j], r[j], VEC_SPLAT(q[c]));
	}
	UNROLL
	for (int j = 0; j < n; j++)
		p[j] = VEC_FMA(p[j], r[j] * r[j], r[j]) + VEC_SPLAT(1.0f);
#ifdef VEC_SCALE
	UNROLL
	for (int j = 0; j < n; j++)
		x[j] = VEC_SCALE(p[j], t[j] - magic);
#else
	UNROLL
	for (int j = 0; j < n; j++) // times 2^k; the other bits of t drop out
		p[j] *= VEC_OF_BITS((VEC_AS_BITS(t[j]) << 23) + (127u << 23));
	UNROLL
	for (int j = 0; j < n; j++)
		x[j] = x[j] < VEC_SPLAT(-87.0f) ? VEC_SPLAT(0.0f) : p[j];
#endif
#endif
}

FN VEC exp_one(VEC x)
{
	VEC e[1];
	e[0] = x;
	exp_each(e, 1);
	return e[0];
}
