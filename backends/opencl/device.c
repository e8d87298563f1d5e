// SPDX-License-Identifier: Apache-2.0
// Enumerates the usable devices of all OpenCL platforms: 64-bit, little-endian, full profile, with
// a compiler. Values reported by drivers are checked before use.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

#define MAX_PLATFORMS 16
#define MAX_DEVICES 64 // per platform
#define MAX_TEXT 65536
#define PLATFORM_NOT_FOUND (-1001) // from the ICD loader: cl_khr_icd

// A fixed-size property, or `fallback` if the driver does not provide it.
static uint64_t number(cl_device_id id, cl_device_info what, size_t bytes,
		       uint64_t fallback)
{
	uint64_t value = 0;
	if (clGetDeviceInfo(id, what, bytes, &value, NULL) != CL_SUCCESS)
		return fallback;
	return value;
}

static cl_uint uint_of(cl_device_id id, cl_device_info what)
{
	return (cl_uint)number(id, what, sizeof(cl_uint), 0);
}

static bool bool_of(cl_device_id id, cl_device_info what)
{
	return number(id, what, sizeof(cl_bool), CL_FALSE) != CL_FALSE;
}

// A string of any length, truncated to `cap`; "" if the driver does not provide it.
static void text_of(cl_device_id id, cl_device_info what, char *to, size_t cap)
{
	char *text = NULL;
	size_t bytes = 0;

	to[0] = 0;
	if (clGetDeviceInfo(id, what, 0, NULL, &bytes) != CL_SUCCESS || !bytes ||
	    bytes > MAX_TEXT || !(text = calloc(1, bytes + 1)))
		return;
	if (clGetDeviceInfo(id, what, bytes, text, NULL) == CL_SUCCESS)
		snprintf(to, cap, "%s", text + strspn(text, " "));
	free(text);
}

static void platform_text(cl_platform_id id, cl_platform_info what, char *to, size_t cap)
{
	char *text = NULL;
	size_t bytes = 0;

	to[0] = 0;
	if (clGetPlatformInfo(id, what, 0, NULL, &bytes) != CL_SUCCESS || !bytes ||
	    bytes > MAX_TEXT || !(text = calloc(1, bytes + 1)))
		return;
	if (clGetPlatformInfo(id, what, bytes, text, NULL) == CL_SUCCESS)
		snprintf(to, cap, "%s", text);
	free(text);
}

// True if the device's extension list contains the word.
static bool has_extension(cl_device_id id, const char *word)
{
	static const size_t max = 16384;
	char *list = malloc(max);
	size_t n = strlen(word);
	bool found = false;

	if (list)
		text_of(id, CL_DEVICE_EXTENSIONS, list, max);
	for (const char *at = list; at && (at = strstr(at, word)) && !found; at += n)
		found = (at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ');
	free(list);
	return found;
}

// Why a device is unusable, or NULL.
static const char *refused(cl_device_id id)
{
	char profile[64];

	text_of(id, CL_DEVICE_PROFILE, profile, sizeof profile);
	if (strcmp(profile, "FULL_PROFILE"))
		return "embedded profile";
	if (!bool_of(id, CL_DEVICE_AVAILABLE))
		return "not available";
	if (!bool_of(id, CL_DEVICE_COMPILER_AVAILABLE))
		return "no compiler";
	if (!bool_of(id, CL_DEVICE_ENDIAN_LITTLE))
		return "big-endian";
	if (uint_of(id, CL_DEVICE_ADDRESS_BITS) != 64)
		return "its addresses have fewer than 64 bits";
	if (!number(id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong), 0))
		return "reports 0 bytes of memory";
	return NULL;
}

static uint32_t kind_of(cl_device_id id, bool unified)
{
	cl_device_type type = number(id, CL_DEVICE_TYPE, sizeof type, 0);
	if (type & CL_DEVICE_TYPE_GPU)
		return unified ? YOKE_DEVICE_IGPU : YOKE_DEVICE_GPU;
	if (type & CL_DEVICE_TYPE_CPU)
		return YOKE_DEVICE_CPU;
	return type & CL_DEVICE_TYPE_ACCELERATOR ? YOKE_DEVICE_ACCELERATOR :
						   YOKE_DEVICE_OTHER;
}

// Base alignment in bytes, a power of two; drivers report bits, and some report nonsense.
static uint32_t align_of(cl_device_id id)
{
	uint32_t bytes = uint_of(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, align = 64;
	while (align < bytes && align < 65536)
		align *= 2;
	return align;
}

static void fill_info(struct yk_cl_device *d)
{
	struct yoke_device_info *info = &d->gpu.info;
	bool unified = bool_of(d->id, CL_DEVICE_HOST_UNIFIED_MEMORY);
	cl_device_fp_config f32 =
		number(d->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof f32, 0);

	info->size = sizeof *info;
	info->kind = kind_of(d->id, unified);
	info->flags = unified ? YOKE_DEVICE_UNIFIED : 0;
	if (number(d->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_device_fp_config), 0))
		info->flags |= YOKE_DEVICE_F64;
	if (has_extension(d->id, "cl_khr_fp16"))
		info->flags |= YOKE_DEVICE_F16;
	if (!(f32 & CL_FP_DENORM))
		info->flags |= YOKE_DEVICE_FLUSHES;
	info->units = uint_of(d->id, CL_DEVICE_MAX_COMPUTE_UNITS);
	if (info->units < 1)
		info->units = 1;
	info->memory = number(d->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong), 0);
	info->max_segment =
		number(d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong), 0);
	// OpenCL 1.2 requires a quarter of the memory or 128 MiB; a smaller value is a driver bug
	if (info->max_segment < 1 << 20)
		info->max_segment = info->memory / 4 ? info->memory / 4 : info->memory;
	if (info->max_segment > info->memory)
		info->max_segment = info->memory;
	info->align = align_of(d->id);
	info->max_args = (uint32_t)number(d->id, CL_DEVICE_MAX_PARAMETER_SIZE,
					  sizeof(size_t), 1024);
	if (info->max_args < 256)
		info->max_args = 256;
	text_of(d->id, CL_DEVICE_NAME, info->name, sizeof info->name);
	text_of(d->id, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
	text_of(d->id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
	platform_text(d->platform, CL_PLATFORM_NAME, info->platform, sizeof info->platform);
	// -w: some drivers' compilers print warnings about our kernels on the user's terminal
	d->gpu.options = f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT ?
			     "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" :
			     "-w -cl-std=CL1.2";
}

// For the preset "matrix".
enum { MATRIX_UNITS = 64, MATRIX_WARP = 32 };

static void fill_limits(struct yk_cl_device *d)
{
	struct yk_gpu_device *g = &d->gpu;
	static const struct yoke_setting preset = {
		sizeof preset,
		"opencl.preset",
		"string",
		"",
		"kernel tuning: \"cpu\" or \"gpu\"; \"matrix\": as for a large GPU with emulated matrix units, "
		"for tests; empty: by device type",
	};
	static const struct yoke_setting stream = {
		sizeof stream, "opencl.stream", "int 0..9223372036854775807", "104857600",
		"CPU devices write results of at least this many bytes with non-temporal stores",
	};
	const char *value = yk_gpu_host->setting(&preset);
	const char *bytes = yk_gpu_host->setting(&stream);
	size_t items[8] = { 1, 1 };

	g->cpu_like = value && *value ? !strcmp(value, "cpu") :
				     g->info.kind == YOKE_DEVICE_CPU;
	if (value && !strcmp(value, "matrix")) {
		g->info.units = MATRIX_UNITS;
		g->info.products = 1u << yoke_f16 | 1u << yoke_bf16;
		g->tf32 = true;
		g->warp = MATRIX_WARP;
	}
	g->stream_bytes = strtoull(bytes ? bytes : stream.def, NULL, 10);

	if (uint_of(d->id, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS) <= 8)
		clGetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof items, items,
				NULL);
	for (int i = 0; i < 2; i++)
		g->max_items[i] = items[i] ? items[i] : 1;
	g->max_group = number(d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), 1);
	if (g->max_group < 1)
		g->max_group = 1;
	cl_uint lanes = uint_of(d->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
	for (g->vector = 16; g->vector > 1 && (cl_uint)g->vector > lanes;)
		g->vector /= 2;
	g->local_bytes = number(d->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong), 0);
}

// Everything that binaries depend on, including yoke's version; the caller frees it.
static char *identity_of(const struct yk_cl_device *d)
{
	static const cl_platform_info platform[] = { CL_PLATFORM_NAME, CL_PLATFORM_VENDOR,
						     CL_PLATFORM_VERSION };
	static const cl_device_info device[] = { CL_DEVICE_NAME, CL_DRIVER_VERSION,
						 CL_DEVICE_VERSION };
	char *text = NULL, part[1024];
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return NULL;
	fprintf(to, "yoke %s\n", PACKAGE_VERSION);
	for (int i = 0; i < 3; i++) {
		platform_text(d->platform, platform[i], part, sizeof part);
		fprintf(to, "%s\n", part);
	}
	for (int i = 0; i < 3; i++) {
		text_of(d->id, device[i], part, sizeof part);
		fprintf(to, "%s\n", part);
	}
	if (!fclose(to))
		return text;
	free(text);
	return NULL;
}

// Applies to all platforms. PoCL also has its own cache, which is slow at lookups; and it
// recompiles all kernels of a program to return its binary. Measured with PoCL 3.1 on 2 cores, 34
// programs of a small training: first start 36 s with binaries, 16 s without; each later start 0.15
// s with, 1.5 s without (40 ms per program). Intel's CPU runtime: 20 s, later 0.2 s.
static bool keeps_binaries(void)
{
	static const struct yoke_setting binaries = {
		sizeof binaries, "opencl.binaries", "bool", "1",
		"keep compiled programs in yoke's cache; 0: rely on the driver's cache",
	};
	const char *value = yk_gpu_host->setting(&binaries);
	return !value || strcmp(value, "0");
}

// parts: number of sub-devices that the hardware device was divided into; this is one of them.
static int add_device(cl_platform_id platform, cl_device_id id, uint32_t parts)
{
	struct yk_cl_device *d = calloc(1, sizeof *d);
	int err;

	if (d) {
		d->platform = platform;
		d->id = id;
		d->gpu.identity = identity_of(d);
	}
	if (!d || !d->gpu.identity) {
		free(d);
		return yk_gpu_error(YOKE_ENOMEM, "no memory for the list of OpenCL devices");
	}
	fill_info(d);
	d->gpu.info.memory /= parts; // shared by the sub-devices
	if (d->gpu.info.max_segment > d->gpu.info.memory)
		d->gpu.info.max_segment = d->gpu.info.memory;
	fill_limits(d);
	d->gpu.binaries = keeps_binaries();
	if ((err = yk_gpu_device_add(&d->gpu))) {
		free((void *)(uintptr_t)d->gpu.identity);
		free(d);
		return err;
	}
	yk_cl_identify(d);
	return 0;
}

// Adds the device, or the sub-devices given by opencl.split. Like devices, they are released only
// at process exit.
static int add_devices(cl_platform_id platform, const char *name, cl_device_id id)
{
	static const struct yoke_setting split = {
		sizeof split, "opencl.split", "int 1..64", "1",
		"sub-devices that each device is divided into, with equal numbers of compute units",
	};
	const char *value = yk_gpu_host->setting(&split);
	const uint32_t parts = value ? (uint32_t)strtoul(value, NULL, 10) : 1,
		       units = uint_of(id, CL_DEVICE_MAX_COMPUTE_UNITS);
	cl_device_id part[MAX_DEVICES] = { NULL };
	const cl_device_partition_property how[] = { CL_DEVICE_PARTITION_EQUALLY,
						     parts ? units / parts : 0, 0 };
	cl_uint n = 0;
	int err = 0;

	if (parts <= 1)
		return add_device(platform, id, 1);
	if (units < parts) {
		yk_gpu_leave_out(
			YOKE_LOG_WARN,
			"platform %s: opencl.split=%u: a device has %u units and is not divided",
			name, (unsigned)parts, (unsigned)units);
		return add_device(platform, id, 1);
	}
	const cl_int code = clCreateSubDevices(id, how, MAX_DEVICES, part, &n);
	if (code != CL_SUCCESS || n < parts) {
		yk_gpu_leave_out(
			YOKE_LOG_WARN,
			"platform %s: opencl.split=%u: clCreateSubDevices: %s (%d); the device is not divided",
			name, (unsigned)parts, yk_cl_name(code), (int)code);
		return add_device(platform, id, 1);
	}
	for (uint32_t i = 0; i < n && !err; i++)
		if (i < parts)
			err = add_device(platform, part[i], parts);
		else
			clReleaseDevice(part[i]);
	return err;
}

static int probe_platform(cl_platform_id platform)
{
	static const struct yoke_setting only = {
		sizeof only, "opencl.platform", "string", "",
		"use only OpenCL platforms whose name contains this",
	};
	cl_device_id ids[MAX_DEVICES] = { NULL };
	char name[128];
	const char *wanted = yk_gpu_host->setting(&only);
	cl_uint n = 0;

	platform_text(platform, CL_PLATFORM_NAME, name, sizeof name);
	if (wanted && *wanted && !strstr(name, wanted)) {
		yk_gpu_leave_out(YOKE_LOG_INFO, "platform %s is excluded by opencl.platform=%s",
				 name, wanted);
		return 0;
	}
	cl_int err = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &n);
	if (err == CL_DEVICE_NOT_FOUND || (err == CL_SUCCESS && !n)) {
		yk_gpu_leave_out(YOKE_LOG_INFO, "platform %s has no devices", name);
		return 0;
	}
	if (err != CL_SUCCESS) {
		yk_gpu_leave_out(YOKE_LOG_WARN, "platform %s: clGetDeviceIDs: %s (%d)", name,
				 yk_cl_name(err), (int)err);
		return 0;
	}
	for (cl_uint i = 0; i < n && i < MAX_DEVICES; i++) {
		const char *why = ids[i] ? refused(ids[i]) : "the driver returned no device";
		if (why)
			yk_gpu_leave_out(YOKE_LOG_INFO, "platform %s: device %u is not used: %s",
					 name, i, why);
		else if (add_devices(platform, name, ids[i]) < 0)
			return YOKE_ENOMEM;
	}
	return 0;
}

int yk_cl_probe(const char **why)
{
	cl_platform_id platforms[MAX_PLATFORMS] = { NULL };
	cl_uint n = 0;
	cl_int err = clGetPlatformIDs(MAX_PLATFORMS, platforms, &n);

	if (err == PLATFORM_NOT_FOUND || (err == CL_SUCCESS && !n))
		yk_gpu_leave_out(
			YOKE_LOG_INFO,
			"the OpenCL loader found no driver; `yoke doctor` lists where it looked");
	else if (err != CL_SUCCESS)
		yk_gpu_leave_out(YOKE_LOG_WARN, "clGetPlatformIDs: %s (%d)", yk_cl_name(err),
				 (int)err);
	for (cl_uint i = 0; err == CL_SUCCESS && i < n && i < MAX_PLATFORMS; i++)
		if (platforms[i] && probe_platform(platforms[i]) < 0)
			return YOKE_ENOMEM;
	*why = yk_gpu_reason;
	return 0;
}

int yk_cl_open(struct yk_gpu_device *device)
{
	struct yk_cl_device *d = yk_cl_of(device);
	cl_context_properties properties[] = {
		CL_CONTEXT_PLATFORM, (cl_context_properties)d->platform, 0
	};
	cl_int err = CL_SUCCESS;
	const char *call = "clCreateContext";

	if (!d->context)
		d->context = clCreateContext(properties, 1, &d->id, NULL, NULL, &err);
	if (err == CL_SUCCESS && !d->helper) {
		call = "clCreateCommandQueue";
		d->helper = clCreateCommandQueue(d->context, d->id, 0, &err);
	}
	return yk_gpu_check(device, call, err);
}
