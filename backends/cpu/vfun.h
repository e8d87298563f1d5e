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

// The steps of yk_exp_reduce: x = n ln 2 + r; returns e^r - 1 and t, whose low bits hold n.
static inline vf vf_exp_reduce(vf x, vf *t)
{
	const vf magic = vf_splat(0x1.8p23f);
	*t = vf_fma(x, vf_splat(0x1.715476p+0f), magic);
	vf n = *t - magic;
	vf r = vf_fma(n, vf_splat(-0x1.63p-1f), x);
	r = vf_fma(n, vf_splat(0x1.bd0106p-13f), r);
	vf p = vf_splat(0x1.a1a16ap-13f);
	p = vf_fma(p, r, vf_splat(0x1.6d7474p-10f));
	p = vf_fma(p, r, vf_splat(0x1.111090p-7f));
	p = vf_fma(p, r, vf_splat(0x1.5554aep-5f));
	p = vf_fma(p, r, vf_splat(0x1.555556p-3f));
	p = vf_fma(p, r, vf_splat(0.5f));
	return vf_fma(p, r * r, r);
}

// p 2^n, rounded once
static inline vf vf_scale(vf p, vf t)
{
#if VF == 16
	return (vf)_mm512_scalef_ps((__m512)p, (__m512)(t - vf_splat(0x1.8p23f)));
#else
	// two factors, since 2^n itself may overflow or be subnormal
	vi n = (vi)t - (vi)vf_splat(0x1.8p23f), half = n >> 1;
	return p * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
#endif
}

// -low <= x <= high, NaN stays
static inline vf vf_clamp(vf x, float low, float high)
{
	return vf_max(vf_splat(low), vf_min(vf_splat(high), x));
}

// The bits of yk_exp_f32.
static inline vf vf_exp_any(vf x)
{
	vf t, p = vf_exp_reduce(vf_clamp(x, -105.0f, 89.0f), &t);
	return vf_scale(p + 1.0f, t);
}

// 2^n for n in the low bits of t, which are shifted to the exponent's place: what else t holds
// falls off.
static inline vf vf_exp2_low(vf t)
{
	typedef uint32_t bits __attribute__((vector_size(VF * 4)));
	return (vf)(((bits)t << 23) + (127u << 23));
}

// e^x for x <= 0, in fewer instructions; it may be 0 below -87, where it is under 2^-125.
static inline vf vf_exp(vf x)
{
#if VF == 16
	vf t, p = vf_exp_reduce(vf_max(vf_splat(-105.0f), x), &t);
	return vf_scale(p + 1.0f, t);
#else
	vf t, p = vf_exp_reduce(vf_max(vf_splat(-87.0f), x), &t);
	p = (p + 1.0f) * vf_exp2_low(t);
	return vf_select(x < -87.0f, vf_splat(0), p);
#endif
}

// The bits of yk_tanh_f32.
static inline vf vf_tanh(vf x)
{
	vf c = vf_min(vf_splat(10.0f), (vf)((vi)x & INT32_MAX));
	vf t, p = vf_exp_reduce(c + c, &t);
	vf s = vf_exp2_low(t);
	vf e = vf_fma(s, p, s - 1.0f);
	return (vf)((vi)(e / (e + 2.0f)) | ((vi)x & INT32_MIN));
}

// The bits of yk_sigmoid_f32.
static inline vf vf_sigmoid(vf x)
{
	vf t, a = (vf)((vi)x | INT32_MIN);
	vf p = vf_exp_reduce(vf_max(vf_splat(-105.0f), a), &t);
	vf e = vf_scale(p + 1.0f, t);
	return vf_select(x >= 0, vf_splat(1), e) / (e + 1.0f);
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
