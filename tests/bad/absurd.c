// SPDX-License-Identifier: Apache-2.0
// A plugin that reports absurd device properties; its last device is normal.
#define DEVICES 8
#define NAME "absurd"
#define OWN_INFO
#include "bad.h"

static int device_info(uint32_t device, struct yoke_device_info *i)
{
	memset(i->name, 'x', sizeof i->name); // no NUL
	memset(i->uuid, '\n', sizeof i->uuid);
	i->kind = 99;
	i->memory = 1 << 20;
	i->max_segment = UINT64_MAX; // more than there is
	i->align = 64;
	switch (device) {
	case 0: i->align = 0; break;
	case 1: i->align = 48; break;
	case 2: i->memory = 0; break;
	case 3: i->max_segment = 0; break;
	case 4: return YOKE_EDEVICE;
	case 5: i->align = 1 << 30; break;
	case 6: i->multiple[yoke_bf16][2] = 4097; break;
	}
	return 0;
}
