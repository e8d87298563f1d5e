// SPDX-License-Identifier: Apache-2.0
// Elementary functions on vectors, with the error bounds of vmath.h and, unless stated otherwise,
// the same bits. Mostly plain loops over the lanes, which compilers turn into vector instructions.
#ifndef YK_VFUN_H
#define YK_VFUN_H

#include "vec.h"
#include "vmath.h"

// clang would unroll such a short loop before vectorizing it
#if defined __clang__
#define YK_LANES _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define YK_LANES _Pragma("GCC unroll 1") YK_SIMD
#endif

// The functions v_NAME process n vectors, n a constant up to 4, step by step together, because the
// processor does not look far enough ahead to overlap consecutive vectors.
#define YK_EACH(j, n) _Pragma("GCC unroll 4") for (int j = 0; j < n; j++)

// The steps of yk_exp_reduce: x = k ln 2 + r; x becomes e^r - 1, and the low bits of t hold k.
YK_INLINE void v_exp_reduce(vf *x, vf *t, const int n, const bool near)
{
	const float close[] = { 0x1.a1a16ap-13f, 0x1.6d7474p-10f, 0x1.111090p-7f,
				0x1.5554aep-5f, 0x1.555556p-3f };
	const float wide[] = { 0x1.6b6deep-10f, 0x1.12300ap-7f, 0x1.55568ap-5f,
			       0x1.5554a2p-3f };
	const float *q = near ? close : wide;
	const vf magic = vf_splat(0x1.8p23f);
	vf r[4], p[4];
	YK_EACH(j, n) t[j] = vf_fma(x[j], vf_splat(0x1.715476p+0f), magic);
	YK_EACH(j, n) p[j] = t[j] - magic;
	YK_EACH(j, n) r[j] = vf_fma(p[j], vf_splat(-0x1.63p-1f), x[j]);
	YK_EACH(j, n) r[j] = vf_fma(p[j], vf_splat(0x1.bd0106p-13f), r[j]);
	YK_EACH(j, n) p[j] = vf_fma(vf_splat(q[0]), r[j], vf_splat(q[1]));
	YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], vf_splat(q[2]));
	YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], vf_splat(q[3]));
	if (near) {
		YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], vf_splat(q[4]));
	}
	YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], vf_splat(0.5f));
	YK_EACH(j, n) x[j] = vf_fma(p[j], r[j] * r[j], r[j]);
}

// p 2^k, rounded once
static inline vf vf_scale(vf p, vf t)
{
#if defined __AVX512F__
	return (vf)_mm512_scalef_ps((__m512)p, (__m512)(t - vf_splat(0x1.8p23f)));
#else
	// two factors, since 2^k itself may overflow or be subnormal
	vi n = (vi)t - (vi)vf_splat(0x1.8p23f), half = n >> 1;
	return p * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
#endif
}

// -low <= x <= high, NaN stays
static inline vf vf_clamp(vf x, float low, float high)
{
	return vf_max(vf_splat(low), vf_min(vf_splat(high), x));
}

// Same bits as yk_exp_f32. Below -104 the result is 0; it is made from 0, because an instruction
// whose result is subnormal before it is rounded takes hundreds of cycles.
YK_INLINE void v_exp_any(vf *x, const int n)
{
	vf t[4], c[4];
	YK_EACH(j, n) c[j] = vf_clamp(x[j], -105.0f, 89.0f);
	v_exp_reduce(c, t, n, false);
	YK_EACH(j, n) c[j] = vf_select(x[j] < -104.0f, vf_splat(0), c[j] + 1.0f);
	YK_EACH(j, n) x[j] = vf_scale(c[j], t[j]);
}

// 2^k for k in the low bits of t, which are shifted into the exponent; the other bits of t drop
// out.
static inline vf vf_exp2_low(vf t)
{
	typedef uint32_t bits __attribute__((vector_size(VF * 4)));
	return (vf)(((bits)t << 23) + (127u << 23));
}

// e^x for x <= 0, in fewer instructions. 0 below -87, where e^x < 2^-125, so that no instruction
// has a subnormal result, which would take hundreds of cycles: attention gives hidden keys -inf.
YK_INLINE void v_exp(vf *x, const int n)
{
	vf t[4], c[4];
	YK_EACH(j, n) c[j] = vf_max(vf_splat(-87.0f), x[j]);
	v_exp_reduce(c, t, n, false);
	YK_EACH(j, n) c[j] = (c[j] + 1.0f) * vf_exp2_low(t[j]);
	YK_EACH(j, n) x[j] = vf_select(x[j] < -87.0f, vf_splat(0), c[j]);
}

static inline vf vf_exp(vf x)
{
	v_exp(&x, 1);
	return x;
}

// Same bits as yk_tanh_f32.
YK_INLINE void v_tanh(vf *x, const int n)
{
	vf t[4], e[4], s[4];
	YK_EACH(j, n) e[j] = vf_min(vf_splat(10.0f), (vf)((vi)x[j] & INT32_MAX));
	YK_EACH(j, n) e[j] = e[j] + e[j];
	v_exp_reduce(e, t, n, true);
	YK_EACH(j, n) s[j] = vf_exp2_low(t[j]);
	YK_EACH(j, n) e[j] = vf_fma(s[j], e[j], s[j] - 1.0f);
	YK_EACH(j, n) e[j] = e[j] / (e[j] + 2.0f);
	YK_EACH(j, n) x[j] = (vf)((vi)e[j] | ((vi)x[j] & INT32_MIN));
}

// Same bits as yk_sigmoid_f32.
YK_INLINE void v_sigmoid(vf *x, const int n)
{
	vf t[4], e[4];
	YK_EACH(j, n) e[j] = vf_max(vf_splat(-105.0f), (vf)((vi)x[j] | INT32_MIN));
	v_exp_reduce(e, t, n, false);
	YK_EACH(j, n) e[j] = vf_scale(e[j] + 1.0f, t[j]);
	YK_EACH(j, n) x[j] = vf_select(x[j] >= 0, vf_splat(1), e[j]) / (e[j] + 1.0f);
}

#if defined __AVX512F__

// Tables of 16 intervals in registers: one instruction looks up 16 floats by the low 4 bits of the
// indices.
YK_INLINE vf v_lookup(const float table[16], __m512i index)
{
	return (vf)_mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}

// log: the upper 4 bits of the mantissa select the interval of the fraction m in [0.75,1.5). Table
// rows: 1/m' for a point m' in the interval, in 9 bits; log m' as a multiple of 2^-16; the rest of
// log m'. The two intervals next to 1 use 1, 0 and 0.
static const float yk_log_table[3][16] = {
	{ 0x1p+0f, 0x1.d4p-1f, 0x1.bap-1f, 0x1.a4p-1f, 0x1.9p-1f, 0x1.7ep-1f, 0x1.6cp-1f,
	  0x1.5cp-1f, 0x1.4ep+0f, 0x1.41p+0f, 0x1.35p+0f, 0x1.2ap+0f, 0x1.1fp+0f,
	  0x1.16p+0f, 0x1.0dp+0f, 0x1p+0f },
	{ 0, 0x1.701p-4f, 0x1.2d18p-3f, 0x1.95a8p-3f, 0x1.f99p-3f, 0x1.2bfp-2f,
	  0x1.5d5cp-2f, 0x1.8b64p-2f, -0x1.1058p-2f, -0x1.cf6p-3f, -0x1.816p-3f,
	  -0x1.372p-3f, -0x1.d43p-4f, -0x1.51bp-4f, -0x1.95cp-5f, 0 },
	{ 0, -0x1.67a8aap-19f, -0x1.ef3798p-19f, -0x1.291848p-18f, 0x1.c6cb3cp-19f,
	  -0x1.f0646ep-19f, -0x1.10535p-21f, -0x1.95dd34p-20f, -0x1.7f35cap-19f,
	  -0x1.aa704ep-18f, 0x1.faf5e6p-18f, 0x1.eff0b8p-22f, -0x1.3d66ccp-20f,
	  -0x1.cfc186p-22f, -0x1.061d92p-18f, 0 },
};

// x = m 2^e, log x = e ln 2 + log m' + log(1 + r), r = m / m' - 1
YK_INLINE void v_log(vf *x, const int n)
{
	// quiet NaN for NaN and negative values, -inf for zeros, inf for inf
	const __m512i special = _mm512_set1_epi32(0x03530422);
	vf m[4], e[4], r[4], high[4], low[4], p[4];
	__m512i k[4];
	YK_EACH(j, n)
	m[j] = (vf)_mm512_getmant_ps((__m512)x[j], _MM_MANT_NORM_p75_1p5,
				     _MM_MANT_SIGN_src);
	YK_EACH(j, n) e[j] = (vf)_mm512_getexp_ps((__m512)x[j]);
	YK_EACH(j, n) e[j] -= (vf)_mm512_getexp_ps((__m512)m[j]);
	YK_EACH(j, n) k[j] = _mm512_srli_epi32((__m512i)m[j], 19);
	YK_EACH(j, n) r[j] = vf_fma(m[j], v_lookup(yk_log_table[0], k[j]), vf_splat(-1));
	// ln 2 in two parts; the upper is a multiple of 2^-9, so this sum is exact
	YK_EACH(j, n)
	high[j] = vf_fma(e[j], vf_splat(0x1.63p-1f), v_lookup(yk_log_table[1], k[j]));
	YK_EACH(j, n)
	low[j] = vf_fma(e[j], vf_splat(-0x1.bd0106p-13f),
			v_lookup(yk_log_table[2], k[j]));
	// (log(1 + r) - r) / r^2; error of the logarithm 2^-34 of r
	YK_EACH(j, n)
	p[j] = vf_fma(vf_splat(-0x1.3cc462p-3f), r[j], vf_splat(0x1.999526p-3f));
	YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], vf_splat(-0x1.00044ap-2f));
	YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], vf_splat(0x1.55555cp-2f));
	YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], vf_splat(-0x1p-1f));
	YK_EACH(j, n) p[j] = vf_fma(p[j], r[j] * r[j], low[j]);
	YK_EACH(j, n) high[j] += r[j] + p[j];
	YK_EACH(j, n)
	x[j] = (vf)_mm512_fixupimm_ps((__m512)high[j], (__m512)x[j], special, 0);
}

// erf: the interval of c = |x| <= 4.5 follows from the low 2 bits of the exponent and the top 2
// bits of the mantissa of c + 1, so intervals are 1/4 wide below 1, 1/2 below 3, 1 below 7. Table
// rows: coefficients of powers of r, c minus the interval's midpoint; the first interval holds
// erf(c) / c - 1, from the second row on.
static const float yk_erf_table[7][16] = {
	{ 0x1.d8865ep-1f, 0x1.f92d08p-1f, 0x1.ff4048p-1f, 0x1.fff2dp-1f, 0x1.ffffe8p-1f,
	  0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0,
	  0x1.9dd0d2p-2f, 0x1.3f196ep-1f, 0x1.91724ap-1f },
	{ 0x1.e4653ep-3f, 0x1.b054dap-5f, 0x1.d413eap-8f, 0x1.336316p-11f,
	  0x1.71cc5ep-18f, 0x1.d03c2ep-30f, 0, 0, 0, 0, 0, 0, 0x1.f5e1a2p-4f,
	  0x1.f5f0cep-1f, 0x1.86e96ap-1f, 0x1.0cab62p-1f },
	{ -0x1.2ebf48p-2f, -0x1.7a4a86p-4f, -0x1.074b44p-6f, -0x1.a6a54p-10f,
	  -0x1.3e182ap-16f, -0x1.9c1e62p-27f, 0, 0, 0, 0, 0, 0, -0x1.7d900cp-4f,
	  -0x1.78749ap-2f, -0x1.e8a3c4p-2f, -0x1.d62becp-2f },
	{ 0x1.57165ap-3f, 0x1.715e28p-4f, 0x1.63f986p-6f, 0x1.698606p-9f, 0x1.453a0ep-15f,
	  -0x1.60e29p-26f, 0, 0, 0, 0, 0, 0, -0x1.766afp-2f, -0x1.e10628p-3f,
	  -0x1.c8168p-5f, 0x1.7c995p-4f },
	{ -0x1.926786p-8f, -0x1.8a129p-5f, -0x1.38b7d2p-6f, -0x1.ab0296p-9f,
	  -0x1.13c068p-14f, -0x1.355edap-22f, 0, 0, 0, 0, 0, 0, 0x1.c5a77p-5f,
	  0x1.55286ap-3f, 0x1.69630ap-3f, 0x1.cc60cp-4f },
	{ -0x1.7f32c2p-5f, 0x1.87349cp-8f, 0x1.5ab9cap-7f, 0x1.7263d6p-9f,
	  0x1.cc0dcap-14f, -0x1.1d645ep-21f, 0, 0, 0, 0, 0, 0, 0x1.b2663cp-4f,
	  0x1.734fd4p-5f, -0x1.baf0fcp-6f, -0x1.113d9ap-4f },
	{ 0x1.52e68p-6f, 0x1.2831e6p-7f, -0x1.6e5dap-9f, -0x1.b4e336p-10f,
	  -0x1.87895cp-14f, -0x1.af2496p-21f, 0, 0, 0, 0, 0, 0, -0x1.3ef42ap-6f,
	  -0x1.97f676p-5f, -0x1.5133dp-5f, -0x1.555ebep-7f },
};

YK_INLINE void v_erf(vf *x, const int n)
{
	const __m512i kept = _mm512_set1_epi32(-(1 << 21)),
		      half = _mm512_set1_epi32(1 << 20);
	vf c[4], r[4], p[4], min[4];
	__m512i k[4];
	__mmask16 first[4];
	YK_EACH(j, n) c[j] = vf_min(vf_splat(4.5f), (vf)((vi)x[j] & INT32_MAX));
	YK_EACH(j, n) k[j] = (__m512i)(c[j] + 1.0f);
	YK_EACH(j, n) r[j] = (vf)_mm512_ternarylogic_epi32(k[j], kept, half, 0xea) - 1.0f;
	YK_EACH(j, n) r[j] = c[j] - r[j];
	YK_EACH(j, n)
	first[j] = _mm512_cmp_ps_mask((__m512)k[j], _mm512_set1_ps(1.25f), _CMP_LT_OQ);
	YK_EACH(j, n) k[j] = _mm512_srli_epi32(k[j], 21);
	YK_EACH(j, n) p[j] = v_lookup(yk_erf_table[6], k[j]);
	for (int i = 5; i > 0; i--)
		YK_EACH(j, n) p[j] = vf_fma(p[j], r[j], v_lookup(yk_erf_table[i], k[j]));
	YK_EACH(j, n) min[j] = v_lookup(yk_erf_table[0], k[j]);
	YK_EACH(j, n)
	min[j] = (vf)_mm512_mask_mov_ps((__m512)min[j], first[j], (__m512)c[j]);
	YK_EACH(j, n) r[j] = (vf)_mm512_mask_mov_ps((__m512)r[j], first[j], (__m512)c[j]);
	YK_EACH(j, n) p[j] = vf_fma(r[j], p[j], min[j]);
	YK_EACH(j, n) x[j] = (vf)((vi)p[j] | ((vi)x[j] & INT32_MIN));
}

#else

YK_INLINE void v_log(vf *x, const int n)
{
	float a[4 * VF];
	memcpy(a, x, (size_t)n * sizeof *x);
	YK_LANES
	for (int i = 0; i < n * VF; i++)
		a[i] = yk_log_f32(a[i]);
	memcpy(x, a, (size_t)n * sizeof *x);
}

YK_INLINE void v_erf(vf *x, const int n)
{
	float a[4 * VF];
	memcpy(a, x, (size_t)n * sizeof *x);
	YK_LANES
	for (int i = 0; i < n * VF; i++)
		a[i] = yk_erf_f32(a[i]);
	memcpy(x, a, (size_t)n * sizeof *x);
}

#endif

static inline vf vf_log(vf x)
{
	v_log(&x, 1);
	return x;
}

#endif
