// SPDX-License-Identifier: Apache-2.0
// Fused multiply-adds of processors other than x86: VECTOR_FMA of vectors of the type V with n lanes, with FUSED for
// one lane. Undefined where the processor has no such instruction.
#ifndef YK_FUSED_H
#define YK_FUSED_H

#ifdef __aarch64__
#include <arm_neon.h>
#define VECTOR_FMA(V, n, FUSED, a, b, c) \
	((V)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#elif defined __clang__ && defined __riscv_flen
#if __has_builtin(__builtin_elementwise_fma)
#define VECTOR_FMA(V, n, FUSED, a, b, c) __builtin_elementwise_fma(a, b, c)
#endif
#elif defined __FP_FAST_FMAF && defined __FP_FAST_FMA // compilers make vector instructions of the loop
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
