// SPDX-License-Identifier: Apache-2.0
// Extension tables (the backend's ext) that all GPU drivers share.
#ifndef YK_GPU_EXT_H
#define YK_GPU_EXT_H

#include "launch.h"

const void *yk_gpu_ext(const char *name); // NULL: unknown
// Looks up the device named in a call of such a table. ENODEV: no such device; EFORK: called in a
// forked child.
int yk_gpu_ext_device(uint32_t device, struct yk_gpu_device **to);
// Copies an answer, a struct that begins with its size, as far as the caller's struct has room, and
// sets the size copied.
void yk_gpu_ext_write(void *to, const void *answer);
// The op's definition in the layer; NULL: not supported.
const struct yk_gpu_op *yk_gpu_op_of(const struct yoke_op *);
// The kernel of the launch with the most items, and the size of its groups (0: driver's choice).
// NULL: no launch.
void *yk_gpu_record_largest(const struct yk_gpu_record *, size_t *group);

#endif
