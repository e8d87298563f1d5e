// SPDX-License-Identifier: Apache-2.0
// The accumulators for integers and bool: instantiates kern_reduce_acc.h.
#include "config.h"

#include <string.h>

#include "kern_reduce.h"
#include "../vector/vec.h"
#include "../vector/vmath.h"

#define T int64_t
#define W int64_t
#define V i
#define PART i64
#define TOTAL i64
#define MASK int64_t
#define ADD(t, a, b) ((t)((uint64_t)(a) + (uint64_t)(b)))
#define MUL(t, a, b) ((t)((uint64_t)(a) * (uint64_t)(b)))
#define V_ADD(a, b) ((vt)((vu)(a) + (vu)(b)))
#define V_MUL(a, b) ((vt)((vu)(a) * (vu)(b)))
#define V_NAN(a) ((vm){ 0 })
#define IS_NAN(a) ((void)(a), false)
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX

#include "kern_reduce_acc.h"

const struct yk_reducer ISA(yk_reduce_i64) = REDUCER;
