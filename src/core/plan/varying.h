// SPDX-License-Identifier: Apache-2.0
// Contexts whose shapes vary by design.
#ifndef YK_VARYING_H
#define YK_VARYING_H

#include <stdbool.h>

#include "yoke.h"

// Sets whether shapes vary, so that new plans are no reason for a warning; returns the value
// before.
bool yk_shapes_vary(yoke_context *, bool);

#endif
