// SPDX-License-Identifier: Apache-2.0
// Strip functions of i32.
#include "config.h"

#define T int32_t
#define U uint32_t
#define INT_TABLE yk_strip_i32

#include "kern_map_int.h"
