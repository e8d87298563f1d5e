// SPDX-License-Identifier: Apache-2.0
// The plugin's extension tables: telemetry, profiler ranges, collectives, and notes for `yoke
// doctor`.
#include "config.h"

#include <string.h>

#include "../../backends/gpu/ext.h"
#include "native.h"

static int sample(uint32_t device, struct yoke_sample *to)
{
	struct yoke_sample full = { .size = sizeof full };
	struct yk_gpu_device *d;
	const char *why;
	int err = yk_gpu_ext_device(device, &d);

	if (err)
		return err;
	if (!yk_native_open(YK_TELEMETRY, &why))
		return yk_gpu_error(YOKE_EUNSUPPORTED, "%s", why);
	if (!(err = yk_vendor_sample(yk_native_of(d), &full)))
		yk_gpu_ext_write(to, &full);
	return err;
}

static void push(const char *name)
{
	V_RANGE_PUSH(name);
}

static void pop(void)
{
	V_RANGE_POP();
}

const void *yk_native_ext(const char *name)
{
	static const struct yoke_telemetry telemetry = { sizeof telemetry, sample };
	static const struct yoke_notes notes = { sizeof notes, yk_native_note };
	static const struct yoke_ranges_ext ranges = { sizeof ranges, push, pop };

	if (!strcmp(name, "telemetry"))
		return &telemetry;
	if (!strcmp(name, "ranges"))
		return yk_native_open(YK_RANGES, NULL) ? &ranges : NULL;
	if (!strcmp(name, "collectives"))
		return yk_native_open(YK_COLLECTIVES, NULL) ? &yk_native_collectives : NULL;
	return strcmp(name, "notes") ? NULL : &notes;
}
