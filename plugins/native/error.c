// SPDX-License-Identifier: Apache-2.0
// Symbolic names of error codes, and advice. Both vendors' drivers use the same numbers.
#include "config.h"

#include <string.h>

#include "native.h"

const char *yk_native_name(int code)
{
	return code >= YK_COLLECTIVES_CODE ? yk_native_collectives_name(code - YK_COLLECTIVES_CODE) : yk_vendor_code_name(code);
}

// Advice for some codes.
static const struct {
	int code;
	const char *help;
} helps[] = {
	{ 2, "the device's memory is full: make the batch smaller, or end what else uses the device" },
	{ 3, "the driver is not initialised: is the kernel's module loaded? reboot after an update" },
	{ 4, "the driver is shutting down" },
	{ 34, "a stub stands in for the driver: it is for linking; install the driver itself" },
	{ 35, "the driver is older than the libraries: update it" },
	{ 46, "the devices are busy or may not be used now: end what else uses them, or ask who set them so" },
	{ 98, "the kernel is not for this device: clear yoke's cache" },
	{ 100, "no device is there, or it may not be seen: see CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES and the "
	       "rights of the nodes under /dev" },
	{ 101, "there is no device of that number" },
	{ 200, "the compiled kernel is damaged: clear yoke's cache" },
	{ 201, "the device's context is gone: start anew" },
	{ 209, "the compiled kernel is for another architecture: clear yoke's cache, or update the compiler" },
	{ 214, "the device's memory had an error that cannot be corrected: reset or replace it" },
	{ 218, "the driver does not take the compiler's text: update the driver" },
	{ 221, "the driver lacks its own compiler: install all of the driver's libraries" },
	{ 222, "the driver is older than the compiler: update it, or install the compiler of its version" },
	{ 500, "the program has nothing of that name" },
	{ 700, "a kernel touched memory that is not its own: the device has to be opened anew; report it" },
	{ 701, "a kernel wants more registers or threads than the device has: report it" },
	{ 702, "a kernel ran for longer than the system allows on a device that also draws: use another device" },
	{ 710, "a kernel stopped by an assertion: report it" },
	{ 715, "a kernel met an instruction that the device does not have: report it" },
	{ 716, "a kernel touched memory at a wrong alignment: report it" },
	{ 719, "a kernel failed: the device has to be opened anew; report it" },
	{ 801, "the driver does not offer that here: update it" },
	{ 802, "the devices are not ready: is the vendor's fabric manager running?" },
	{ 803, "the driver's library and the kernel's module are of different versions: reboot after the update" },
	{ 804, "the device is not one that the compatibility package serves: update the driver itself" },
	{ 999, "the driver does not know what went wrong: see the kernel's log (dmesg)" },
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

int yk_native_library_failed(const struct yk_gpu_device *d, int error, const char *call, int part, int code)
{
	return yk_gpu_error(error, "%s: %s (%d) on %s:%u (%s, %s)", call, yk_native_name(part + code), code, V_NAME,
			    d->index, d->info.name, d->info.driver);
}
