// SPDX-License-Identifier: Apache-2.0
// Fused multiply-adds of processors other than x86: VECTOR_FMA of vectors of the type V with n
// lanes, with FUSED for one lane. Undefined where the processor has no such instruction.
// A file that defines YK_VECTORS_128 uses NEON in builds for SVE, too.
#ifndef YK_FUSED_H
#define YK_FUSED_H

#include <stdint.h>
#include <string.h>

#if defined __ARM_FEATURE_SVE_BITS && __ARM_FEATURE_SVE_BITS > 0 && !defined YK_VECTORS_128
#include <arm_sve.h>
#define YK_SVE __ARM_FEATURE_SVE_BITS // the length of vectors, which the compiler knows
typedef svfloat32_t yk_sv
	__attribute__((arm_sve_vector_bits(YK_SVE))); // to and from vectors by memcpy
typedef svfloat64_t yk_svd __attribute__((arm_sve_vector_bits(YK_SVE)));
typedef float yk_sv_floats __attribute__((vector_size(YK_SVE / 8)));
typedef double yk_sv_doubles __attribute__((vector_size(YK_SVE / 8)));
typedef int32_t yk_sv_words __attribute__((vector_size(YK_SVE / 8)));
typedef int64_t yk_sv_longs __attribute__((vector_size(YK_SVE / 8)));
#define SVE_FMA(name, V, S, intrinsic) \
	static inline V name(V a, V b, V c) \
	{ \
		S x, y, z; \
		memcpy(&x, &a, sizeof x); \
		memcpy(&y, &b, sizeof y); \
		memcpy(&z, &c, sizeof z); \
		z = intrinsic(svptrue_b8(), z, x, y); \
		memcpy(&c, &z, sizeof c); \
		return c; \
	}
SVE_FMA(yk_sve_fma, yk_sv_floats, yk_sv, svmla_f32_x)
SVE_FMA(yk_sve_fma_f64, yk_sv_doubles, yk_svd, svmla_f64_x)
#undef SVE_FMA
// mask ? a : b.  GCC 12 fails on some selections in bits of f64.
#define SVE_SELECT(name, V, S, M, M_BASE, compare, select) \
	static inline V name(M mask, V a, V b) \
	{ \
		typedef M_BASE fixed __attribute__((arm_sve_vector_bits(YK_SVE))); \
		fixed m; \
		S x, y; \
		memcpy(&m, &mask, sizeof m); \
		memcpy(&x, &a, sizeof x); \
		memcpy(&y, &b, sizeof y); \
		x = select(compare(svptrue_b8(), m, 0), x, y); \
		memcpy(&a, &x, sizeof a); \
		return a; \
	}
SVE_SELECT(yk_sve_select, yk_sv_floats, yk_sv, yk_sv_words, svint32_t, svcmpne_n_s32, svsel_f32)
SVE_SELECT(yk_sve_select_f64, yk_sv_doubles, yk_svd, yk_sv_longs, svint64_t, svcmpne_n_s64,
	   svsel_f64)
#undef SVE_SELECT
#define VECTOR_FMA(V, n, FUSED, a, b, c) \
	((V)yk_sve_fma((yk_sv_floats)(a), (yk_sv_floats)(b), (yk_sv_floats)(c)))
#define VECTOR_FMA_F64(V, a, b, c) \
	((V)yk_sve_fma_f64((yk_sv_doubles)(a), (yk_sv_doubles)(b), (yk_sv_doubles)(c)))
#elif defined __aarch64__
#include <arm_neon.h>
#define VECTOR_FMA(V, n, FUSED, a, b, c) \
	((V)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#elif defined __clang__ && defined __riscv_flen
#if __has_builtin(__builtin_elementwise_fma)
#define VECTOR_FMA(V, n, FUSED, a, b, c) __builtin_elementwise_fma(a, b, c)
#endif
#elif defined __FP_FAST_FMAF && defined __FP_FAST_FMA
// compilers make vector instructions of the loop
#define VECTOR_FMA(V, n, FUSED, a, b, c) \
	({ \
		const V a_ = (a), b_ = (b), c_ = (c); \
		V y_; \
		for (int i_ = 0; i_ < n; i_++) \
			y_[i_] = FUSED(a_[i_], b_[i_], c_[i_]); \
		y_; \
	})
#endif

#endif
