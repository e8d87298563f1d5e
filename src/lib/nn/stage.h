// SPDX-License-Identifier: Apache-2.0
// Pipeline parallelism (Huang et al. 2019): the blocks of a network are divided among stages, one
// rank each.  The first stage also has the layers before the blocks, the last those after them.  A
// stage sends its activations to the next one and receives their gradient.  Both are [B,T,W] f32,
// which represents f16 and bf16 activations exactly.
#ifndef YK_STAGE_H
#define YK_STAGE_H

#include "nn/model.h"

// Divides the blocks among stages, as listed ("4,4") or by work ("auto": minimizes the slowest
// stage's).  EINVAL: that is impossible.  *from and *to receive the blocks of stage `at`.
int yk_stage_split(const struct yk_model *, const struct yk_model_shape *, const char *split,
		   int64_t stages, int64_t at, int64_t *from, int64_t *to);

// The sizes of a stage, as if it were a network.
struct yk_model_shape yk_stage_shape(const struct yk_model_shape *, const struct yk_stage *);

// A forward pass of one stage over windows.
struct yk_passage {
	yoke_tensor *in;  // the received activations; NULL: first stage
	yoke_tensor *out; // the activations to send; on the last stage, the loss
};
// Records a forward pass of windows [B,T+1] i32, with communication between neighbours.
int yk_stage_forward(const struct yk_network *, yoke_tensor *windows, double dropout,
		     struct yk_passage *);
// The same with arbitrary input instead of received activations, and without sending the result.
yoke_tensor *yk_stage_alone(const struct yk_network *, yoke_tensor *windows, double dropout);
// Records the backward pass: gradients with respect to n variables.  by: on the last stage the
// scalar to differentiate, which depends on `out`; ignored on others.
int yk_stage_backward(const struct yk_network *, const struct yk_passage *, yoke_tensor *by, int n,
		      yoke_tensor *const *p, yoke_tensor **g);

#endif
