// SPDX-License-Identifier: Apache-2.0
// The list of devices found by the driver: complete after probe and immutable from then on.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "gpu.h"

static pthread_mutex_t probing = PTHREAD_MUTEX_INITIALIZER;
static bool probed;
static struct yk_gpu_device **devices;
static uint32_t ndevices;

int yk_gpu_device_add(struct yk_gpu_device *d)
{
	struct yk_gpu_device **more = realloc(devices, (ndevices + 1) * sizeof *devices);

	if (more)
		devices = more;
	if (!more || pthread_mutex_init(&d->lock, NULL))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for the list of %s devices",
				    yk_gpu_driver.title);
	d->index = ndevices;
	devices[ndevices++] = d;
	return 0;
}

int yk_gpu_probe(uint32_t *n)
{
	const char *why = "";
	int err = yk_gpu_forked();

	if (err)
		return err;
	pthread_mutex_lock(&probing);
	if (!probed) {
		err = yk_gpu_driver.probe(&why);
		if (!err && !ndevices)
			yk_gpu_error(YOKE_ENODEV, "%s", why);
	}
	probed = true;
	pthread_mutex_unlock(&probing);
	if (err)
		return err;
	*n = ndevices;
	return 0;
}

struct yk_gpu_device *yk_gpu_device_at(uint32_t index)
{
	if (index < ndevices)
		return devices[index];
	yk_gpu_error(YOKE_ENODEV, "there is no device %s:%u", yk_gpu_driver.name, index);
	return NULL;
}

int yk_gpu_device_open(struct yk_gpu_device *d)
{
	pthread_mutex_lock(&d->lock);
	int err = yk_gpu_driver.open(d);
	pthread_mutex_unlock(&d->lock);
	return err;
}

int yk_gpu_device_info(uint32_t device, struct yoke_device_info *info)
{
	struct yk_gpu_device *d;
	int err = yk_gpu_forked();

	if (err)
		return err;
	if (!(d = yk_gpu_device_at(device)))
		return YOKE_ENODEV;
	uint32_t size = info->size < sizeof *info ? info->size : (uint32_t)sizeof *info;
	struct yoke_device_info full = d->info;
	if (yk_gpu_driver.refresh)
		yk_gpu_driver.refresh(d, &full);
	memcpy(info, &full, size);
	info->size = size;
	return 0;
}
