// SPDX-License-Identifier: Apache-2.0
// Vectors of f32 and the sizes of tiles, for kern_contract_f32.c and kern_winograd.c.
#ifndef YK_KERN_CONTRACT_F32_H
#define YK_KERN_CONTRACT_F32_H

#if defined __SSE2__
#include <immintrin.h>
#endif

#include "../vector/fused.h"

#define T float

// The sums of a tile, a row of b and one factor fill the 32 or 16 registers.
#define NV 2
#if defined __AVX512F__
#define VL 16
#define MR 12
#define KC 512
#define FMA(a, b, c) ((vec)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#elif defined __AVX2__ && defined __FMA__
#define VL 8
#define MR 6
#define KC 384
#define FMA(a, b, c) ((vec)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#elif defined YK_SVE
#define VL (YK_SVE / 32)
#ifdef __OPTIMIZE__
#define LANES 4 // of 128 bits, in which a product takes a lane
#endif
#define FMA_LANE(c, x, y, lane) __asm__("fmla %0.s, %1.s, %2.s[" #lane "]" : "+w"(c) : "w"(x), "y"(y))
#define LANE_REGISTER(x) "+y"(x)
#define REPEATED(p) svld1rq_f32(svptrue_b32(), p)
#define MR 12
#define KC 384
#define FMA(a, b, c) VECTOR_FMA(vec, VL, __builtin_fmaf, a, b, c)
#elif defined __aarch64__
#define VL 4
#ifdef __OPTIMIZE__ // lanes are constants after unrolling
#define LANES 4
#endif
#define FMA_LANE(c, x, y, lane) __asm__("fmla %0.4s, %1.4s, %2.s[" #lane "]" : "+w"(c) : "w"(x), "w"(y))
#define MR 12
#define KC 384
#define FMA(a, b, c) ((vec)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#elif defined __riscv_vector // two registers each: fewer instructions per product
#define VL (__riscv_v_min_vlen / 16)
#define MR 6
#define KC 384
#else
#define VL 4
#define MR 4
#define KC 384
#endif
#ifndef FMA
#ifdef VECTOR_FMA
#define FMA(a, b, c) VECTOR_FMA(vec, VL, __builtin_fmaf, a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#endif

#include "kern_contract_vec.h"

#endif
