// SPDX-License-Identifier: Apache-2.0
// A plugin built for a later minor version: its table is larger than the core's, which is valid.
#define SIZE (sizeof(struct yoke_backend) + 8 * sizeof(void *))
#define NAME "larger"
#include "bad.h"
