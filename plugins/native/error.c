// SPDX-License-Identifier: Apache-2.0
// Symbolic names of error codes, and advice. Both vendors' drivers use the same numbers.
#include "config.h"

#include <string.h>

#include "native.h"

const char *yk_native_name(int code)
{
	return code >= YK_COLLECTIVES_CODE ?
		       yk_native_collectives_name(code - YK_COLLECTIVES_CODE) :
		       yk_vendor_code_name(code);
}

// Advice for some codes.
static const struct {
	int code;
	const char *help;
} helps[] = {
	{ 2,
	  "the device's memory is full: use a smaller batch, or stop other processes that use the device" },
	{ 3, "the driver is not initialised: is the kernel module loaded? reboot after an update" },
	{ 4, "the driver is shutting down" },
	{ 34,
	  "a stub library, meant for linking, was loaded instead of the driver: install the driver" },
	{ 35, "the driver is older than the libraries: update it" },
	{ 46,
	  "the devices are busy or unavailable: stop other processes that use them, or ask the administrator" },
	{ 98, "the kernel was compiled for another device: clear yoke's cache" },
	{ 100,
	  "no device is present or visible: check CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES and the "
	  "permissions of the device files under /dev" },
	{ 101, "there is no device with that number" },
	{ 200, "the compiled kernel is damaged: clear yoke's cache" },
	{ 201, "the device's context is gone: restart the process" },
	{ 209,
	  "the compiled kernel is for another architecture: clear yoke's cache, or update the compiler" },
	{ 214, "the device's memory had an error that cannot be corrected: reset or replace it" },
	{ 218, "the driver does not accept the compiler's PTX: update the driver" },
	{ 221, "the driver lacks its own compiler: install all of the driver's libraries" },
	{ 222,
	  "the driver is older than the compiler: update it, or install the compiler of the driver's version" },
	{ 500, "the program has no symbol of that name" },
	{ 700, "a kernel accessed memory out of bounds: restart the process; report it" },
	{ 701, "a kernel needs more registers or threads than the device has: report it" },
	{ 702,
	  "a kernel exceeded the time limit of a device that drives a display: use another device" },
	{ 710, "a kernel failed an assertion: report it" },
	{ 715, "a kernel used an instruction that the device does not have: report it" },
	{ 716, "a kernel made a misaligned memory access: report it" },
	{ 719, "a kernel failed: restart the process; report it" },
	{ 801, "the driver does not support this operation here: update it" },
	{ 802, "the devices are not ready: is the vendor's fabric manager running?" },
	{ 803,
	  "the driver's library and the kernel module have different versions: reboot after the update" },
	{ 804, "the compatibility package does not support the device: update the driver itself" },
	{ 999, "the driver reports an unknown error: see the kernel log (dmesg)" },
};

const char *yk_native_help(int code)
{
	for (size_t i = 0; i < sizeof helps / sizeof *helps; i++)
		if (helps[i].code == code)
			return helps[i].help;
	return yk_vendor_code_text(code);
}

bool yk_native_is_memory(int code)
{
	return code == V_OUT_OF_MEMORY;
}

int yk_native_library_failed(const struct yk_gpu_device *d, int error, const char *call, int part,
			     int code)
{
	return yk_gpu_error(error, "%s: %s (%d) on %s:%u (%s, %s)", call,
			    yk_native_name(part + code), code, V_NAME, d->index, d->info.name,
			    d->info.driver);
}
