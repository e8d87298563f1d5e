// SPDX-License-Identifier: Apache-2.0
// Pipes as datasets: each sample can be read once, in order.
#ifndef YK_DATA_STREAM_H
#define YK_DATA_STREAM_H

#include <stdbool.h>

#include "data/part.h"

// Is it standard input or a named pipe?
bool yk_is_stream(const char *path);
// The part describes the elements: the first sample begins at its offset, the others each `stride`
// bytes later.  `count` samples make an epoch; the next epoch continues the stream.  The last
// `keep` samples stay in memory; 0: as many as fit into 64 MiB.  EINVAL, EIO, ENOMEM.
yoke_dataset *yk_stream_open(const char *path, const struct yk_field_file *,
			     const struct yk_field_shape *, int64_t count, int64_t keep);

#endif
