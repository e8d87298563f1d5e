// SPDX-License-Identifier: Apache-2.0
// Strip functions of u8 and comparisons of bool.
#include "config.h"

#define T uint8_t
#define U uint8_t
#define INT_TABLE yk_strip_u8

#include "kern_map_int.h"
