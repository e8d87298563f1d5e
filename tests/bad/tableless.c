// SPDX-License-Identifier: Apache-2.0
// A plugin that reports success but returns no table.
#include "yoke-plugin.h"

__attribute__((visibility("default"))) int
yoke_plugin_init(uint32_t core_abi, const struct yoke_host *host, const struct yoke_backend **to)
{
	(void)core_abi, (void)host, (void)to;
	return 0;
}
