// SPDX-License-Identifier: Apache-2.0
// The columns of a profile's table.
#ifndef YK_OBSERVE_TABLE_H
#define YK_OBSERVE_TABLE_H

#include "yoke-observe.h"

// Index of a table column by name; EINVAL lists the valid names.
int yk_profile_column(const char *name);

#endif
