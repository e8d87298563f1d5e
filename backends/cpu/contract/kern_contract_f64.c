// SPDX-License-Identifier: Apache-2.0
// Contractions of f64: parameters for the shared blocking and tile code.
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#if defined __SSE2__
#include <immintrin.h>
#endif

#include "../vector/fused.h"
#include "kern_contract.h"

#define T double
#define ENTRY_RUN ISA(yk_gemm_f64)
#define ENTRY_CUT ISA(yk_gemm_f64_block)
#define ENTRY_ROWS ISA(yk_gemm_f64_rows)
#define ENTRY_ACROSS ISA(yk_gemm_f64_across)

// The sums of a tile, a row of b and one factor fill the 32 or 16 registers.
#define NV 2
#if defined __AVX512F__
#define VL 8
#define MR 12
#define KC 256
#define FMA(a, b, c) ((vec)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined __AVX2__ && defined __FMA__
#define VL 4
#define MR 6
#define KC 256
#define FMA(a, b, c) ((vec)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#elif defined YK_SVE
#define VL (YK_SVE / 64)
#ifdef __OPTIMIZE__
#define LANES 2 // of 128 bits, in which a product takes a lane
#endif
#define FMA_LANE(c, x, y, lane) __asm__("fmla %0.d, %1.d, %2.d[" #lane "]" : "+w"(c) : "w"(x), "x"(y))
#define LANE_REGISTER(x) "+x"(x)
#define REPEATED(p) svld1rq_f64(svptrue_b64(), p)
#define MR 12
#define KC 256
#define FMA(a, b, c) VECTOR_FMA_F64(vec, a, b, c)
#elif defined __aarch64__
#define VL 2
#ifdef __OPTIMIZE__ // lanes are constants after unrolling
#define LANES 2
#endif
#define FMA_LANE(c, x, y, lane) __asm__("fmla %0.2d, %1.2d, %2.d[" #lane "]" : "+w"(c) : "w"(x), "w"(y))
#define MR 12
#define KC 256
#define FMA(a, b, c) \
	((vec)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#elif defined __riscv_vector // two registers each
#define VL (__riscv_v_min_vlen / 32)
#define MR 6
#define KC 256
#else
#define VL 2
#define MR 4
#define KC 256
#endif
#ifndef FMA
#ifdef VECTOR_FMA
#define FMA(a, b, c) VECTOR_FMA(vec, VL, __builtin_fma, a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#endif

#include "kern_contract_tile.h"
#include "kern_contract_pack.h"
#include "kern_contract_windows.h"
#include "kern_contract_gemm.h"
