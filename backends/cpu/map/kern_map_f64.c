// SPDX-License-Identifier: Apache-2.0
// Strip functions of f64.
#include "config.h"

#include "kern_map.h"
#include "../vector/philox.h"

#define T double
#define FN(name) yk_##name##_f64

static yk_strip_fn s_sin, s_cos;

#include "kern_map_float.h"

STRIP1(s_sin, yk_sin_f64)
STRIP1(s_cos, yk_cos_f64)

yk_strip_fn *ISA(yk_strip_f64)(int op)
{
	return op < (int)(sizeof table / sizeof *table) ? table[op] : NULL;
}
