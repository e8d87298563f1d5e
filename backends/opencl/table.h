// SPDX-License-Identifier: Apache-2.0
// Tables that kernels read: constant buffers kept by their content, since the same come again at
// each step and a new one costs no wait.
#ifndef YK_OPENCL_TABLE_H
#define YK_OPENCL_TABLE_H

#include "opencl.h"

// A buffer that holds these words; stays the cache's.  Called with the device's lock held.
int yk_cl_table_of(struct yk_cl_device *, const uint64_t *words, size_t n, cl_mem *to);

#endif
