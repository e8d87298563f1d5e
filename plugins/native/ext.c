// SPDX-License-Identifier: Apache-2.0
// The tables beside the backend's own: telemetry, and notes for `yoke doctor`.
#include "config.h"

#include <string.h>

#include "native.h"

static int sample(uint32_t device, struct yoke_sample *to)
{
	struct yoke_sample full = { .size = sizeof full };
	const uint32_t size = to->size < sizeof full ? to->size : (uint32_t)sizeof full;
	struct yk_gpu_device *d;
	const char *why;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!(d = yk_gpu_device_at(device)))
		return YOKE_ENODEV;
	if (!yk_native_open(YK_TELEMETRY, &why))
		return yk_gpu_error(YOKE_EUNSUPPORTED, "%s", why);
	if ((err = yk_vendor_sample(yk_native_of(d), &full)))
		return err;
	memcpy(to, &full, size);
	to->size = size;
	return 0;
}

const void *yk_native_ext(const char *name)
{
	static const struct yoke_telemetry telemetry = { sizeof telemetry, sample };
	static const struct yoke_notes notes = { sizeof notes, yk_native_note };

	if (!strcmp(name, "telemetry"))
		return &telemetry;
	return strcmp(name, "notes") ? NULL : &notes;
}
