// SPDX-License-Identifier: Apache-2.0
// Strip functions of i64.
#include "config.h"

#define T int64_t
#define U uint64_t
#define INT_TABLE yk_strip_i64

#include "kern_map_int.h"
