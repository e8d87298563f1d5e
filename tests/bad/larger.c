// SPDX-License-Identifier: Apache-2.0
// A plugin made for a later minor version: its table is larger than ours, which is fine.
#define SIZE (sizeof(struct yoke_backend) + 8 * sizeof(void *))
#define NAME "larger"
#include "bad.h"
