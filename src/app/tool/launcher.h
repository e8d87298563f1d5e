// SPDX-License-Identifier: Apache-2.0
// How this process was launched as a rank, and the installed MPI modules (`yoke info`, `yoke
// doctor`).
#ifndef YK_LAUNCHER_H
#define YK_LAUNCHER_H

#include "base/json.h"

// An object with "launcher", "rank", "ranks", "here" (ranks on this machine), "why" (reason for an
// invalid launch), and "modules", a list of { "name", "path" }.
json_t *yk_launcher_facts(void);
void yk_launcher_print(const json_t *);

#endif
