// SPDX-License-Identifier: Apache-2.0
// The order in which a pipeline stage runs the forward and backward passes of a step's
// micro-batches. GPipe (Huang et al. 2019): all forward, then all backward. 1F1B (Narayanan et al.
// 2019): only enough forward passes to fill the pipeline, then alternately one backward and one
// forward, so that stage s of S holds the activations of at most S - s micro-batches. With
// identical stages and M micro-batches either takes the time of M + S - 1 turns, of which a stage
// is idle for S - 1.
#ifndef YK_TURNS_H
#define YK_TURNS_H

#include <stdbool.h>
#include <stdint.h>

enum yk_pipeline { YK_1F1B, YK_GPIPE }; // values of the setting `pipeline`

struct yk_turn {
	bool back;
	int64_t part;
};
// Turn i of a stage, out of 2 * parts.
struct yk_turn yk_turn_of(enum yk_pipeline, int64_t stages, int64_t stage, int64_t parts,
			  int64_t i);

#endif
