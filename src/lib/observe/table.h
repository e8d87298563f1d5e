// SPDX-License-Identifier: Apache-2.0
// Of profiles by cycles, what is not public.
#ifndef YK_OBSERVE_TABLE_H
#define YK_OBSERVE_TABLE_H

#include "yoke-observe.h"

// Number of a column of a table; EINVAL names those there are.
int yk_profile_column(const char *name);
// Ends it without a look at what it saw: its device is lost, or the context goes.  NULL is fine.
void yk_profile_drop(yoke_profile *);

#endif
