// SPDX-License-Identifier: Apache-2.0
// The encoder of the BERT family, whose tokens see the whole text.
#ifndef YK_ENCODER_H
#define YK_ENCODER_H

#include "nn/model.h"

// ids [B,T] i32; mask bool [B,1,1,T], false for padding, or NULL -> [B,T,E]. All tokens have type
// 0.
yoke_tensor *yk_encoder_forward(const struct yk_network *, yoke_tensor *ids, yoke_tensor *mask);

#endif
