// SPDX-License-Identifier: Apache-2.0
// Enumerates the usable devices of the vendor's driver. Values reported by the driver are checked
// before use.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backends/gpu/contract.h"
#include "native.h"

#define MAX_DEVICES 64 // number of bits in `peers`

static void leave_out_code(const char *what, const char *call, int code)
{
	const char *help = yk_native_help(code);

	// no device is not worth a warning; HIP returns either code
	const bool none = code == V_NO_DEVICE || code == V_INVALID_DEVICE;
	yk_gpu_leave_out(none ? YOKE_LOG_INFO : YOKE_LOG_WARN, "%s%s: %s (%d)%s%s", what, call,
			 yk_native_name(code), code, help ? ": " : "", help ? help : "");
}

// An attribute, at least 0; 0 if the driver does not provide it.
static uint32_t number(const struct yk_native_device *d, int what)
{
	int value = 0;

	if (yk_native_code(V_ATTRIBUTE(&value, what, d->id)) || value < 0)
		return 0;
	return (uint32_t)value;
}

// Vendors use upper-case hexadecimal digits.
static void lower(char *text)
{
	for (; *text; text++)
		*text = (char)(*text >= 'A' && *text <= 'F' ? *text - 'A' + 'a' : *text);
}

static void fill_info(struct yk_native_device *d)
{
	struct yoke_device_info *info = &d->gpu.info;
	const bool integrated = number(d, V_INTEGRATED);
	char version[64], compiler[64];
	size_t bytes = 0;

	info->size = sizeof *info;
	info->kind = integrated ? YOKE_DEVICE_IGPU : YOKE_DEVICE_GPU;
	info->flags = YOKE_DEVICE_F64 | YOKE_DEVICE_F16 |
		      (integrated && V_HAS_REGISTER ? YOKE_DEVICE_UNIFIED : 0);
	info->units = number(d, V_UNITS);
	if (!yk_native_code(V_MEMORY(&bytes, d->id)))
		info->memory = info->max_segment = bytes;
	info->align = 256;
	info->max_args = 4096;
	if (yk_native_code(V_DEVICE_NAME(info->name, sizeof info->name, d->id)))
		snprintf(info->name, sizeof info->name, "unnamed");
	info->name[sizeof info->name - 1] = 0;
	snprintf(info->vendor, sizeof info->vendor, V_VENDOR);
	yk_vendor_version(version, sizeof version);
	yk_vendor_compiler(compiler, sizeof compiler);
	snprintf(info->driver, sizeof info->driver, "%.60s, %.60s", version, compiler);
	if (yk_native_code(V_PCI(info->pci, sizeof info->pci, d->id)))
		info->pci[0] = 0;
	info->pci[sizeof info->pci - 1] = 0;
	lower(info->pci);
	info->warp = number(d, V_WARP);
	info->local_bytes = number(d, V_LOCAL_BYTES);
	info->cache_bytes = number(d, V_CACHE);
	info->clock_hz = (uint64_t)number(d, V_CLOCK) * 1000;
	info->memory_clock_hz = (uint64_t)number(d, V_MEMORY_CLOCK) * 1000;
	info->memory_bits = number(d, V_MEMORY_BITS);
	// 16-byte loads require rows that begin at multiples of 16 bytes
	for (int k = 0; k < 3; k++)
		info->multiple[yoke_f16][k] = info->multiple[yoke_bf16][k] = info->products ? 8 : 0;
	snprintf(info->generation, sizeof info->generation, "%.31s", d->arch);
}

static void fill_limits(struct yk_native_device *d)
{
	struct yk_gpu_device *g = &d->gpu;

	g->max_group = number(d, V_GROUP_ITEMS);
	g->max_items[0] = number(d, V_GROUP_X);
	g->max_items[1] = number(d, V_GROUP_Y);
	d->grid[0] = (int)number(d, V_GRID_X);
	d->grid[1] = (int)number(d, V_GRID_Y);
	d->grid[2] = (int)number(d, V_GRID_Z);
	const int64_t max = V_MAX_ITEMS / 1024, along = d->grid[0];
	g->max_groups = along < max ? along : max;
	g->local_bytes = g->info.local_bytes;
	g->vector = 1;
	g->warp = (int)g->info.warp;
	g->binaries = true;
}

// Everything that compiled kernels depend on, including yoke's version; never freed.
static char *identity_of(const struct yk_native_device *d)
{
	char version[64], compiler[64], *text;

	yk_vendor_version(version, sizeof version);
	yk_vendor_compiler(compiler, sizeof compiler);
	if (asprintf(&text, "yoke %s\n%s\n%s\n%s\n%s", PACKAGE_VERSION, V_NAME, version, compiler,
		     d->arch) < 0)
		return NULL;
	return text;
}

// Why a device is unusable, or NULL.
static const char *refused(struct yk_native_device *d, char *why, size_t cap)
{
	if (number(d, V_MODE) == V_MODE_PROHIBITED)
		return "its compute mode prohibits its use";
	if (!yk_vendor_describe(d, why, cap))
		return why;
	fill_info(d);
	fill_limits(d);
	if (!d->gpu.info.memory)
		return "the driver reports 0 bytes of memory";
	if (!d->gpu.info.units || !d->gpu.max_group || !d->gpu.max_items[0] ||
	    !d->gpu.max_items[1] || d->grid[0] < 1 || d->grid[1] < 1 || d->grid[2] < 1 ||
	    !d->gpu.info.local_bytes)
		return "the driver does not report limits of the kernel size";
	return NULL;
}

// notice: the last that was logged; devices that are alike have one
static int add_device(int ordinal, char *notice, size_t cap)
{
	struct yk_native_device *d = calloc(1, sizeof *d);
	char why[300], what[60];
	int code;

	if (!d || pthread_mutex_init(&d->wrap_lock, NULL)) {
		free(d);
		return yk_gpu_error(YOKE_ENOMEM, "no memory for the list of " V_TITLE " devices");
	}
	if ((code = yk_native_code(V_DEVICE(&d->id, ordinal)))) {
		snprintf(what, sizeof what, "device %d is not used: ", ordinal);
		leave_out_code(what, V_DEVICE_CALL, code);
		free(d);
		return 0;
	}
	const char *refusal = refused(d, why, sizeof why);
	if (refusal) {
		yk_gpu_leave_out(YOKE_LOG_INFO, "device %d%s%s is not used: %s", ordinal,
				 *d->arch ? ", " : "", d->arch, refusal);
		free(d);
		return 0;
	}
	int err = (d->gpu.identity = identity_of(d)) ?
			  yk_gpu_device_add(&d->gpu) :
			  yk_gpu_error(YOKE_ENOMEM, "no memory for a device's record");
	if (err) {
		free((void *)(uintptr_t)d->gpu.identity);
		free(d);
		return err;
	}
	if (*d->notice && strcmp(d->notice, notice)) {
		yk_gpu_log(YOKE_LOG_WARN, "device %d: %s", ordinal, d->notice);
		snprintf(notice, cap, "%s", d->notice);
	}
	return 0;
}

int yk_native_probe(const char **why)
{
	const char *missing;
	char notice[sizeof ((struct yk_native_device *)0)->notice] = "";
	int count = 0, code, err = 0;

	*why = yk_gpu_reason;
	if (!yk_native_open(YK_DRIVER, &missing)) {
		yk_gpu_leave_out(YOKE_LOG_DEBUG, "%s", missing);
		return 0;
	}
	if (*missing) // a library was found but is unusable
		yk_gpu_leave_out(YOKE_LOG_DEBUG, "%s", missing);
	if ((code = yk_native_code(V_INIT()))) {
		leave_out_code("", V_INIT_CALL, code);
		return 0;
	}
	if ((code = yk_native_code(V_COUNT(&count)))) {
		leave_out_code("", V_COUNT_CALL, code);
		return 0;
	}
	if (count < 1) {
		yk_gpu_leave_out(YOKE_LOG_INFO, "the driver has no devices");
		return 0;
	}
	yk_gpu_reason[0] = 0;
	if (!yk_native_open(YK_COMPILER, &missing)) {
		yk_gpu_leave_out(YOKE_LOG_WARN, "no kernel can be compiled: %s", missing);
		return 0;
	}
	for (int i = 0; i < count && i < MAX_DEVICES && !err; i++)
		err = add_device(i, notice, sizeof notice);
	return err;
}

int yk_native_open_device(struct yk_gpu_device *device)
{
	struct yk_native_device *d = yk_native_of(device);
	int err = d->open ? 0 : yk_gpu_check(device, V_OPEN(d));

	if (d->open || err)
		return err;
	if ((err = yk_native_use(device)) ||
	    (err = yk_gpu_check(device, V_STREAM_NEW(&d->helper)))) {
		yk_native_code(V_CLOSE(d));
		return err;
	}
	__atomic_store_n(&d->open, true, __ATOMIC_RELEASE);
	return 0;
}

void yk_native_refresh(struct yk_gpu_device *device, struct yoke_device_info *info)
{
	struct yk_native_device *d = yk_native_of(device);
	size_t unused = 0, all = 0;

	// here rather than in probe, which would fix the setting `matmul`
	if (device->tf32 && yk_gpu_tf32_enabled())
		info->flags |= YOKE_DEVICE_TF32;
	// only if already open: opening the device would cost more than the information is worth
	if (__atomic_load_n(&d->open, __ATOMIC_ACQUIRE) && !yk_native_code(V_USE(d)) &&
	    !yk_native_code(V_FREE_MEMORY(&unused, &all)))
		info->memory_free = unused ? unused : 1; // 0 is unknown
}
