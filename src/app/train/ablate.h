// SPDX-License-Identifier: Apache-2.0
// Ablation: measures configuration options alone, all together, and with each left out, in
// interleaved rounds.
#ifndef YK_ABLATE_H
#define YK_ABLATE_H

#include "base/json.h"
#include "config/conf.h"

// toggles: "recompute=block,precision=bf16-mixed,fuse=0": keys of the configuration or settings,
// with their value when on; off is the configuration's own value. Each of `rounds` rounds runs
// every variant for the same number of steps. Returns NULL with the error set, or
//  { "device", "steps", "rounds", "toggles": [..],
//    "variants": [ { "name", "on": [..], "steps_per_s", "spread", "peak_bytes",
//                      "loss", "loss_spread", "ratio" } ] }
// ratio: steps per second relative to the variant with all options off.
json_t *yk_ablate(struct yk_config *, const char *toggles, int rounds);

#endif
