// SPDX-License-Identifier: Apache-2.0
// Dense matrices of f64: instantiates the factorizations of dense.h.
#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../contract/kern_contract.h"
#include "dense.h"

#define REAL double
#define INTEGER int64_t // of the same size
#define ABS fabs
#define SQRT sqrt
#define SMALLEST DBL_MIN
#define IS_WIDE 1
#define ACROSS ISA(yk_gemm_f64_across)
#define ACROSS_ROWS ISA(yk_gemm_f64_rows)

#include "dense_product.h"
#include "dense_lu.h"
#include "dense_qr.h"
#include "dense_exp.h"

const struct yk_dense ISA(yk_dense_f64) = {
	sizeof(REAL), load,	   store, lu,	     lu_elements, triangular,
	qr,	      qr_elements, q,	  q_columns, exponential
};
