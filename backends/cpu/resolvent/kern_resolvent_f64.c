// SPDX-License-Identifier: Apache-2.0
// Lanes of f64.
#include "config.h"

#include "kern_resolvent.h"

#define REAL double
#define IS_F32 0
#define IS_BYTES 8
#define IS_DTYPE yoke_f64
#define NAME(x) x##_f64
#include "kern_resolvent_lanes.h"
