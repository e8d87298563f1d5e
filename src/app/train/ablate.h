// SPDX-License-Identifier: Apache-2.0
// What choices of a configuration do, alone, together, and each left out: measured, in turns.
#ifndef YK_ABLATE_H
#define YK_ABLATE_H

#include "base/json.h"
#include "train/conf.h"

// toggles: "recompute=block,precision=bf16-mixed,fuse=0": keys of the configuration, or settings, with what each is when it
// is on; off is what the configuration has without.  `rounds` rounds of all variants, each of so many steps.  NULL
// with an error, or
//   { "device", "steps", "rounds", "toggles": [..],
//     "variants": [ { "name", "on": [..], "steps_per_s", "spread", "peak_bytes", "loss", "loss_spread", "ratio" } ] }
// ratio: steps a second beside those of all off.
json_t *yk_ablate(struct yk_config *, const char *toggles, int rounds);

#endif
