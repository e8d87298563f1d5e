// SPDX-License-Identifier: Apache-2.0
// A plugin built for the previous plugin ABI (the value before 0 is 65535).
#include "yoke-plugin.h"
#define ABI ((uint32_t)(uint16_t)(YOKE_ABI_MAJOR - 1) << 16)
#define NAME "older"
#include "bad.h"
