// SPDX-License-Identifier: Apache-2.0
// The accumulators for f32, f16 and bf16: instantiates kern_reduce_acc.h.
#include "config.h"

#include <string.h>

#include "kern_reduce.h"
#include "../vector/vec.h"
#include "../vector/vmath.h"

#define T float
#define W double
#define V f
#define PART f32
#define TOTAL f64
#define ADD(t, a, b) ((t)((a) + (b)))
#define MUL(t, a, b) ((t)((a) * (b)))
#define V_ADD(a, b) ((a) + (b))
#define V_MUL(a, b) ((a) * (b))
#define V_MIN vf_min_nan
#define V_MAX vf_max_nan
#define IS_NAN(a) ((a) != (a))
#define LOWEST -INFINITY
#define HIGHEST INFINITY

#include "kern_reduce_acc.h"

const struct yk_reducer ISA(yk_reduce_f32) = REDUCER;
