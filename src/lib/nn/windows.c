// SPDX-License-Identifier: Apache-2.0
// Splits windows into ids, targets and positions, and records the model's loss of them.
#include "config.h"

#include "nn/windows.h"

#include "data/chats.h"
#include "nn/shard_layers.h"

// Field i of packed windows [B,3T]: [B,T].
static yoke_tensor *field(yoke_tensor *windows, int64_t i)
{
	const int64_t t = yoke_dim(windows, 1) / YK_PACKED_FIELDS;
	return yoke_slice(windows, 1, i * t, (i + 1) * t, 1);
}

static yoke_tensor *loss(const struct yk_network *n, yoke_tensor *windows, double dropout,
			 yoke_tensor *(*of)(const struct yk_network *, yoke_tensor *, yoke_tensor *,
					    double))
{
	const bool fields = yoke_rank(windows) == 3;
	if (fields)
		windows = yoke_reshape(windows, 2,
				       (int64_t[]){ yoke_dim(windows, 0),
						    YK_PACKED_FIELDS * yoke_dim(windows, 2) });
	const int64_t width = yoke_dim(windows, 1);
	if (fields || width == YK_PACKED_FIELDS * n->shape.context)
		return yk_network_packed_loss(n, field(windows, 0), field(windows, 1),
					      field(windows, 2), dropout);
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
