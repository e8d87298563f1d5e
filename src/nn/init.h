// SPDX-License-Identifier: Apache-2.0
// First values of f32 parameters.
// Random ones depend on the seed of yoke_random_set and on the name given, on nothing
// else.
#ifndef YK_INIT_H
#define YK_INIT_H

#include "yoke.h"

// Normal with mean 0, recorded as an assignment.
int yk_init_normal(yoke_tensor *var, const char *name, double deviation);
int yk_init_fill(yoke_tensor *var, double value);

#endif
