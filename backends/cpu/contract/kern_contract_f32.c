// SPDX-License-Identifier: Apache-2.0
// Contractions of f32, and of f16 and bf16 converted to f32.
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "../vector/half.h"
#include "kern_contract.h"

#include "kern_contract_f32.h"
#define HALVES
#define ENTRY_RUN ISA(yk_gemm_f32)
#define ENTRY_CUT ISA(yk_gemm_f32_block)
#define ENTRY_ROWS ISA(yk_gemm_f32_rows)
#define ENTRY_ACROSS ISA(yk_gemm_f32_across)

#include "kern_contract_tile.h"
#include "kern_contract_pack.h"
#include "kern_contract_windows.h"
#include "kern_contract_gemm.h"

void ISA(yk_gemm_f32_panels)(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
			     float *c, int64_t ldc, bool add)
{
	multiply_with(&tiles_of_rows, a, b, c, ldc, m, n, k, add, false);
}
