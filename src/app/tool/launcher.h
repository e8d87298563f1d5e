// SPDX-License-Identifier: Apache-2.0
// How this process was started as a rank, and which modules there are for MPI: for `yoke info` and `yoke doctor`.
#ifndef YK_LAUNCHER_H
#define YK_LAUNCHER_H

#include "base/json.h"

// An object: "launcher", "rank", "ranks", "here" (of this machine), "why" (it cannot be so), "modules", a list of "name"
// and "path".
json_t *yk_launcher_facts(void);
void yk_launcher_print(const json_t *);

#endif
