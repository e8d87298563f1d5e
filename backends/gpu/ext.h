// SPDX-License-Identifier: Apache-2.0
// Tables of ext that all drivers share.
#ifndef YK_GPU_EXT_H
#define YK_GPU_EXT_H

#include "launch.h"

const void *yk_gpu_ext(const char *name); // NULL: there is none
// The device that a call of such a table names; ENODEV: there is none, EFORK: not in this process.
int yk_gpu_ext_device(uint32_t device, struct yk_gpu_device **to);
// Of an answer, a struct that begins with its size, as much as the caller's has room for, whose size says how much.
void yk_gpu_ext_give(void *to, const void *answer);
// The op's row of the table; NULL: the layer has none.
const struct yk_gpu_op *yk_gpu_op_of(const struct yoke_op *);
// The kernel of the launch with most items, and the items of its groups, 0: as the driver likes; NULL: there is none.
void *yk_gpu_record_largest(const struct yk_gpu_record *, size_t *group);

#endif
