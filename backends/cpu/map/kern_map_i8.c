// SPDX-License-Identifier: Apache-2.0
// Strip functions of i8.
#include "config.h"

#define T int8_t
#define U uint8_t
#define INT_TABLE yk_strip_i8

#include "kern_map_int.h"
