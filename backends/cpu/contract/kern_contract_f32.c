// SPDX-License-Identifier: Apache-2.0
// Contractions of f32, and of f16 and bf16 converted to f32.
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#if defined __SSE2__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

#include "../vector/half.h"
#include "kern_contract.h"

#define T float
#define HALVES
#define ENTRY_RUN ISA(yk_gemm_f32)
#define ENTRY_CUT ISA(yk_gemm_f32_block)
#define ENTRY_ROWS ISA(yk_gemm_f32_rows)
#define ENTRY_ACROSS ISA(yk_gemm_f32_across)

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
#elif defined __aarch64__
#define VL 4
#define MR 12
#define KC 384
#define FMA(a, b, c) \
	((vec)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#else
#define VL 4
#define MR 4
#define KC 384
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

#include "kern_contract_tile.h"
#include "kern_contract_pack.h"
#include "kern_contract_windows.h"
#include "kern_contract_gemm.h"
