// SPDX-License-Identifier: Apache-2.0
// Internal functions of profiles that run in cycles.
#ifndef YK_OBSERVE_TABLE_H
#define YK_OBSERVE_TABLE_H

#include "yoke-observe.h"

// Index of a table column by name; EINVAL lists the valid names.
int yk_profile_column(const char *name);
// Ends a profile without reading its results: its device is lost, or its context is being freed.
// NULL is fine.
void yk_profile_drop(yoke_profile *);

#endif
