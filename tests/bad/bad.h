// SPDX-License-Identifier: Apache-2.0
// The smallest valid plugin: an empty table, to which each file that includes this adds one
// defect.
#include <string.h>

#include "yoke-plugin.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef DEVICES
#define DEVICES 1
#endif

static int probe(uint32_t *n)
{
	*n = DEVICES;
	return 0;
}

#ifndef OWN_INFO
static int device_info(uint32_t device, struct yoke_device_info *i)
{
	(void)device;
	i->kind = YOKE_DEVICE_OTHER;
	i->memory = i->max_segment = 1 << 30;
	i->align = 64;
	strcpy(i->name, "nothing");
	return 0;
}
#else
static int device_info(uint32_t device, struct yoke_device_info *);
#endif

#ifndef ABI
#define ABI YOKE_ABI
#endif

#ifndef SIZE
#define SIZE sizeof(struct yoke_backend)
#endif

// Does not check core_abi: the core must detect the mismatch.
EXPORT int yoke_plugin_init(uint32_t core_abi, const struct yoke_host *host,
			    const struct yoke_backend **to)
{
	static const struct yoke_backend table = {
		.size = SIZE, .abi = ABI, .name = NAME, .probe = probe, .device_info = device_info,
	};
	(void)core_abi, (void)host;
#ifdef BEFORE
	BEFORE(host);
#endif
	*to = &table;
	return 0;
}
