// SPDX-License-Identifier: Apache-2.0
// Networks whose blocks several ranks have, one behind another (pipelines; Huang et al. 2019).  The first stage has what
// stands before the blocks, the last what stands behind them; what a stage computed of windows goes on to the next one, and its
// cotangent comes back.  That is [B,T,W] f32, which holds whatever halves the blocks computed in.
#ifndef YK_STAGE_H
#define YK_STAGE_H

#include "yoke-dist.h"

struct yk_model;
struct yk_model_shape;
struct yk_network;

// What of a network one rank has.
struct yk_stage {
	yoke_group *group; // of all stages in their order; NULL: there is one
	int64_t at, of;    // this one's number, and of how many
	int64_t from, to;  // its blocks, from .. to - 1
};

// EINVAL: its blocks cannot be shared out among so many stages, or not like that: "4,4", or "auto", by the work of
// each, so that the longest takes least.  The blocks of stage `at` go to *from and *to.
int yk_stage_split(const struct yk_model *, const struct yk_model_shape *, const char *split, int64_t stages, int64_t at,
		   int64_t *from, int64_t *to);

// The sizes of what a stage has, as of a network.
struct yk_model_shape yk_stage_shape(const struct yk_model_shape *, const struct yk_stage *);

// A pass of one stage over windows.
struct yk_passage {
	yoke_tensor *in;  // what came; NULL: it is the first
	yoke_tensor *out; // what goes on; of the last the loss
};
// Records that windows [B,T+1] i32 pass forward, between neighbours where there are any.
int yk_stage_forward(const struct yk_network *, yoke_tensor *windows, double dropout, struct yk_passage *);
// The same of anything in place of what would come, and nobody gets the result.
yoke_tensor *yk_stage_alone(const struct yk_network *, yoke_tensor *windows, double dropout);
// Records the way back of a pass: gradients by n variables.  by: of the last stage the number to be made small, which follows
// from `out`; of others it is not read.
int yk_stage_backward(const struct yk_network *, const struct yk_passage *, yoke_tensor *by, int n, yoke_tensor *const *p,
		      yoke_tensor **g);

#endif
