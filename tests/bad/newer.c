// SPDX-License-Identifier: Apache-2.0
// A plugin built for the next plugin ABI.
#include "yoke-plugin.h"
#define ABI ((uint32_t)(YOKE_ABI_MAJOR + 1) << 16)
#define NAME "newer"
#include "bad.h"
