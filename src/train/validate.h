// SPDX-License-Identifier: Apache-2.0
// Loss of a model over windows of text.
#ifndef YK_VALIDATE_H
#define YK_VALIDATE_H

#include "nn/gpt.h"
#include "train/data.h"

// Mean loss of windows [B, T+1] i32: each token is predicted from those before it in
// its row.
yoke_tensor *yk_windows_loss(const struct yk_gpt *, yoke_tensor *windows, double dropout);
// Mean loss over the validation windows of some data, `batch` at a time; NaN when there
// are none.
int yk_model_validate(const struct yk_gpt *, const struct yk_data *, int64_t batch, double *loss);

#endif
