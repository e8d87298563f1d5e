// SPDX-License-Identifier: Apache-2.0
// In which order a stage of a pipeline takes the parts of a step: forward and back, each once.  GPipe (Huang et al. 2019):
// all forward, then all back.  1F1B (Narayanan et al. 2019): as few forward as fill the pipeline, then one back for one
// forward, so that stage s of S has S - s parts at most that wait for the way back.  Either takes (M + S - 1) turns' time
// for M parts where stages are alike, of which a stage is idle for S - 1.
#ifndef YK_TURNS_H
#define YK_TURNS_H

#include <stdbool.h>
#include <stdint.h>

enum yk_pipeline { YK_1F1B, YK_GPIPE }; // as the key `pipeline` has them

struct yk_turn {
	bool back;
	int64_t part;
};
// Turn i, of 2 parts, of a stage.
struct yk_turn yk_turn_of(enum yk_pipeline, int64_t stages, int64_t stage, int64_t parts, int64_t i);

#endif
