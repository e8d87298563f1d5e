// SPDX-License-Identifier: Apache-2.0
// Losses of windows: [B,T+1] ids, or packed texts (data/chats.h), as [B,3 context] or as [B,3,T]
// with any T up to the context.
#ifndef YK_WINDOWS_H
#define YK_WINDOWS_H

#include "nn/model.h"

// The training loss of windows i32: each token is predicted from the preceding tokens of its text.
// For packed windows, the mean over their targets.
yoke_tensor *yk_windows_loss(const struct yk_network *, yoke_tensor *windows, double dropout);
// The loss without dropout and without terms that a model adds to it for training only.
yoke_tensor *yk_windows_likelihood(const struct yk_network *, yoke_tensor *windows);

#endif
