// SPDX-License-Identifier: Apache-2.0
// The source generator: turns the map program of an op into source text, and lists the arguments of
// a kernel that contains it.  Backends reach it through kernel_source and map_call, documented in
// yoke-plugin.h.
#ifndef YK_MAPSRC_H
#define YK_MAPSRC_H

#include "yoke-plugin.h"

// Same conventions as kernel_source; the text has #include lines.
int64_t yk_map_source(const struct yoke_op *, char *to, size_t cap);
int yk_map_call(const struct yoke_op *, struct yoke_map_call *);

#endif
