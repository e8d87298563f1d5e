// SPDX-License-Identifier: Apache-2.0
// Splits windows into ids, targets and positions, and records the model's loss of them.
#include "config.h"

#include "nn/windows.h"

#include "data/chats.h"
#include "nn/shard_layers.h"

// Field i of packed windows: [B,T].
static yoke_tensor *field(const struct yk_network *n, yoke_tensor *windows, int64_t i)
{
	const int64_t t = n->shape.context;
	return yoke_slice(windows, 1, i * t, (i + 1) * t, 1);
}

static yoke_tensor *loss(const struct yk_network *n, yoke_tensor *windows, double dropout,
			 yoke_tensor *(*of)(const struct yk_network *, yoke_tensor *, yoke_tensor *,
					    double))
{
	const int64_t width = yoke_dim(windows, 1);
	if (width == YK_PACKED_FIELDS * n->shape.context)
		return yk_network_packed_loss(n, field(n, windows, 0), field(n, windows, 1),
					      field(n, windows, 2), dropout);
	return of(n, yoke_slice(windows, 1, 0, width - 1, 1), yoke_slice(windows, 1, 1, width, 1),
		  dropout);
}

yoke_tensor *yk_windows_loss(const struct yk_network *n, yoke_tensor *windows, double dropout)
{
	return loss(n, windows, dropout, n->model->loss);
}

yoke_tensor *yk_windows_likelihood(const struct yk_network *n, yoke_tensor *windows)
{
	return loss(n, windows, 0, yk_network_loss);
}
