// SPDX-License-Identifier: Apache-2.0
// The resolvent in lanes of f32: instantiates kern_resolvent_lanes.h.
#include "config.h"

#include "kern_resolvent.h"

#define REAL float
#define IS_F32 1
#define IS_BYTES 4
#define IS_DTYPE yoke_f32
#define NAME(x) x##_f32
#include "kern_resolvent_lanes.h"
#include "kern_resolvent_half.h"
