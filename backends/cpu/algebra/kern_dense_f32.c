// SPDX-License-Identifier: Apache-2.0
// Dense matrices of f32: instantiates the factorizations of dense.h.
#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../contract/kern_contract.h"
#include "dense.h"

#define REAL float
#define INTEGER int32_t // of the same size
#define ABS fabsf
#define SQRT sqrtf
#define SMALLEST FLT_MIN
#define IS_WIDE 0
#define ACROSS ISA(yk_gemm_f32_across)
#define ACROSS_ROWS ISA(yk_gemm_f32_rows)

#include "dense_product.h"
#include "dense_lu.h"
#include "dense_qr.h"
#include "dense_exp.h"

const struct yk_dense ISA(yk_dense_f32) = {
	sizeof(REAL), load,	   store, lu,	     lu_elements, triangular,
	qr,	      qr_elements, q,	  q_columns, exponential
};
