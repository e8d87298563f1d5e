// SPDX-License-Identifier: Apache-2.0
// The generator: turns the map program of an op into source, and says with which arguments
// a kernel around it is called; lent to backends in kernel_source and as map_call, which yoke-plugin.h explains.
#ifndef YK_MAPSRC_H
#define YK_MAPSRC_H

#include "yoke-plugin.h"

// In the manner of kernel_source; with #include lines.
int64_t yk_map_source(const struct yoke_op *, char *to, size_t cap);
int yk_map_call(const struct yoke_op *, struct yoke_map_call *);

#endif
