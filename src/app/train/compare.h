// SPDX-License-Identifier: Apache-2.0
// Compares a run in f32 with the same run in mixed precision: losses, first gradients by layer,
// memory, speed, overflows.
#ifndef YK_COMPARE_H
#define YK_COMPARE_H

#include "config/conf.h"

// Trains both from the same parameters on the same text without saving. Returns NULL with the error
// set, or
//   { "precision", "device", "steps",
//     "loss": { "f32", "mixed", "difference", "bound" },       last tenth of the steps, relative
//     "layers": [ { "layer", "norm", "error", "bound" } ],     first step's gradients, relative
//     "memory": { "f32", "mixed", "ratio" }, "speed": { .. },  peak bytes; tokens per second
//     "overflows", "scale", "good", "verdict" }
// A configuration without a precision uses bf16-mixed; EINVAL for one that is not mixed.
json_t *yk_compare_precision(struct yk_config *);

#endif
