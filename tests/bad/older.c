// SPDX-License-Identifier: Apache-2.0
// A plugin made for the plugin ABI before ours; before 0 comes 65535.
#include "yoke-plugin.h"
#define ABI ((uint32_t)(uint16_t)(YOKE_ABI_MAJOR - 1) << 16)
#define NAME "older"
#include "bad.h"
