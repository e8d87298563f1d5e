// SPDX-License-Identifier: Apache-2.0
// hwloc, where it is available.
#ifndef YK_CPU_TOPOLOGY_H
#define YK_CPU_TOPOLOGY_H

#ifdef HAVE_HWLOC
#include <hwloc.h>
#include <stdbool.h>

// A topology to configure and load, without hwloc's plugins.  False: none can be made.
bool yk_topology_new(hwloc_topology_t *);
#endif

#endif
