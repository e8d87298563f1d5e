// SPDX-License-Identifier: Apache-2.0
// Pipes as sets: samples that come once, in their order.
#ifndef YK_DATA_STREAM_H
#define YK_DATA_STREAM_H

#include <stdbool.h>

#include "data/part.h"

// Standard input, or a pipe of that name.
bool yk_is_stream(const char *path);
// Elements as the part says them, from its offset on: each sample begins `stride` bytes behind the last one.  `count`
// samples make an epoch, the next of which goes on in the stream; `keep` samples are kept, 0: as many as 64 MiB hold.
// EINVAL, EIO, ENOMEM.
yoke_dataset *yk_stream_open(const char *path, const struct yk_part *, const struct yk_parts_shape *, int64_t count,
			     int64_t keep);

#endif
