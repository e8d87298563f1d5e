// SPDX-License-Identifier: Apache-2.0
// The resolvent in lanes of f64: instantiates kern_resolvent_lanes.h.
#include "config.h"

#include "kern_resolvent.h"

#define REAL double
#define IS_F32 0
#define IS_BYTES 8
#define IS_DTYPE yoke_f64
#define NAME(x) x##_f64
#include "kern_resolvent_lanes.h"
