// SPDX-License-Identifier: Apache-2.0
// A run in f32 beside the same run in mixed precision: losses, first gradients by layer, memory, speed, overflows.
#ifndef YK_COMPARE_H
#define YK_COMPARE_H

#include "train/conf.h"

// Trains both, from the same parameters on the same text, saves nothing, and says what it found: NULL with an error,
// or
//   { "precision", "device", "steps",
//     "loss": { "f32", "mixed", "difference", "bound" },       of the last tenth of the steps, relative
//     "layers": [ { "layer", "norm", "error", "bound" } ],     of gradients at the first step, relative
//     "memory": { "f32", "mixed", "ratio" }, "speed": { .. },  peak bytes; tokens a second
//     "overflows", "scale", "good", "verdict" }
// Of a configuration that names no precision it is bf16-mixed; EINVAL for one that is not mixed.
json_t *yk_compare_precision(struct yk_config *);

#endif
