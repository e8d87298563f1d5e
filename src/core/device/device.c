// SPDX-License-Identifier: Apache-2.0
// Queries that a device's backend answers anew each time.
#include "config.h"

#include "device/device.h"
#include "yoke.h"

uint64_t yk_device_free(const struct yk_device *d)
{
	struct yoke_device_info now = { .size = sizeof now };
	bool had = yoke_error_code() != 0;
	char why[400];

	int code = d->ops->device_info(d->index, &now);
	if (code < 0)
		yk_backend_detail(had, code, why, sizeof why);
	return code < 0 ? 0 : now.memory_free;
}
