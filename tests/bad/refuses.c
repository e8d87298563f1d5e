// SPDX-License-Identifier: Apache-2.0
// A plugin that refuses to work with this core.
#include "yoke-plugin.h"

__attribute__((visibility("default"))) int
yoke_plugin_init(uint32_t core_abi, const struct yoke_host *host, const struct yoke_backend **to)
{
	(void)core_abi, (void)to;
	host->error(YOKE_ENODEV, "the driver\nis too old");
	return YOKE_ENODEV;
}
