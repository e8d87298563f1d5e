// SPDX-License-Identifier: Apache-2.0
// A plugin that writes into the host table, which is read-only for plugins.
#define NAME "vandal"
#define BEFORE(host) (((struct yoke_host *)(uintptr_t)(host))->log = NULL)
#include "bad.h"
