// SPDX-License-Identifier: Apache-2.0
// Tests whether a device's native f16 conversions can be used: an advertised capability counts only
// if the kernel of cl/f16.cl finds the same bits as cl/half.cl computes for every f16 value.
// Arithmetic is always f32 (f16 is only a storage format), so native conversions never change
// results.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "gpu.h"

enum { HALVES = 1 << 16 };
enum { UNKNOWN, GOOD, BAD };

static int test(struct yk_gpu_device *d)
{
	static const unsigned char unset = 0xff, same = 1;
	struct yk_gpu_build b = { .file = "f16.cl", .name = "f16_same" };
	unsigned char *got = malloc(HALVES);
	int bad = -1;

	if (!got)
		return BAD;
	memset(got, unset, HALVES);
	yk_gpu_define(&b, "NATIVE_F16", 0);
	int err = yk_gpu_try(d, &b, HALVES, 1, got, HALVES);
	for (int i = 0; i < HALVES && bad < 0; i++)
		bad = got[i] == same ? -1 : i;
	free(got);
	if (!err && bad < 0)
		return GOOD;
	yk_gpu_log(YOKE_LOG_INFO,
		   "%s:%u (%s) reports f16 support, but %s (first 0x%04x): converted in software",
		   yk_gpu_driver.name, d->index, d->info.name,
		   err ? "the test kernel failed" : "rounds differently", bad < 0 ? 0 : bad);
	return BAD;
}

bool yk_gpu_f16(struct yk_gpu_device *d)
{
	// drivers for CPUs with a conversion instruction are detected by __F16C__ (cl/half.cl)
	if (d->f16 == UNKNOWN && (d->cpu_like || !(d->info.flags & YOKE_DEVICE_F16)))
		d->f16 = BAD;
	if (d->f16 == UNKNOWN) {
		d->f16 = BAD; // while its own test program is compiled
		d->f16 = test(d);
	}
	return d->f16 == GOOD;
}
