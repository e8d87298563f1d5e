// SPDX-License-Identifier: Apache-2.0
// Tables of ext that all drivers share.
#ifndef YK_GPU_EXT_H
#define YK_GPU_EXT_H

#include "launch.h"

const void *yk_gpu_ext(const char *name); // NULL: there is none
// The op's row of the table; NULL: the layer has none.
const struct yk_gpu_op *yk_gpu_op_of(const struct yoke_op *);
// The kernel of the launch with most items, and the items of its groups, 0: as the driver likes; NULL: there is none.
void *yk_gpu_record_largest(const struct yk_gpu_record *, size_t *group);

#endif
