// SPDX-License-Identifier: Apache-2.0
// Devices of all OpenCL platforms that can serve: 64-bit, little-endian, full profile,
// with a compiler.  What drivers say of themselves is checked before it is passed on.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

#define MAX_PLATFORMS 16
#define MAX_DEVICES 64 // of one platform

static pthread_mutex_t probing = PTHREAD_MUTEX_INITIALIZER;
static bool probed;
static struct yk_cl_device **devices; // complete after probe, never changed then
static uint32_t ndevices;

// One fixed-size property, or `fallback` when the driver does not answer.
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

static void text_of(cl_device_id id, cl_device_info what, char *to, size_t cap)
{
	char *text = NULL;
	size_t bytes = 0;

	to[0] = 0;
	if (clGetDeviceInfo(id, what, 0, NULL, &bytes) != CL_SUCCESS || !bytes ||
	    bytes > 65536 || !(text = calloc(1, bytes + 1)))
		return;
	if (clGetDeviceInfo(id, what, bytes, text, NULL) == CL_SUCCESS)
		snprintf(to, cap, "%s", text + strspn(text, " "));
	free(text);
}

// Why a device cannot serve, or NULL.
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
		return "addresses of less than 64 bits";
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

// Bytes, a power of two; drivers give bits, some of them nonsense.
static uint32_t align_of(cl_device_id id)
{
	uint32_t bytes = uint_of(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, align = 64;
	while (align < bytes && align < 65536)
		align *= 2;
	return align;
}

static void fill_info(struct yk_cl_device *d)
{
	struct yoke_device_info *info = &d->info;
	bool unified = bool_of(d->id, CL_DEVICE_HOST_UNIFIED_MEMORY);
	cl_device_fp_config f32 =
		number(d->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof f32, 0);

	info->size = sizeof *info;
	info->kind = kind_of(d->id, unified);
	info->flags = unified ? YOKE_DEVICE_UNIFIED : 0;
	if (number(d->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_device_fp_config), 0))
		info->flags |= YOKE_DEVICE_F64;
	if (!(f32 & CL_FP_DENORM))
		info->flags |= YOKE_DEVICE_FLUSHES;
	info->units = uint_of(d->id, CL_DEVICE_MAX_COMPUTE_UNITS);
	if (info->units < 1)
		info->units = 1;
	info->memory = number(d->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong), 0);
	info->max_segment =
		number(d->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong), 0);
	if (info->max_segment < 1 << 20) // the least that the specification allows
		info->max_segment = 1 << 20;
	if (info->memory < info->max_segment)
		info->memory = info->max_segment;
	info->align = align_of(d->id);
	info->max_args = (uint32_t)number(d->id, CL_DEVICE_MAX_PARAMETER_SIZE,
					  sizeof(size_t), 1024);
	if (info->max_args < 256)
		info->max_args = 256;
	text_of(d->id, CL_DEVICE_NAME, info->name, sizeof info->name);
	text_of(d->id, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor);
	text_of(d->id, CL_DRIVER_VERSION, info->driver, sizeof info->driver);
	d->options = f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT ?
			     "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" :
			     "-cl-std=CL1.2";
}

static void fill_limits(struct yk_cl_device *d)
{
	size_t items[8] = { 1, 1 };

	if (uint_of(d->id, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS) <= 8)
		clGetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof items, items,
				NULL);
	for (int i = 0; i < 2; i++)
		d->max_items[i] = items[i] ? items[i] : 1;
	d->max_group = number(d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), 1);
	if (d->max_group < 1)
		d->max_group = 1;
	d->local_bytes = number(d->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong), 0);
}

static int add_device(cl_platform_id platform, const char *version, cl_device_id id)
{
	struct yk_cl_device **more = realloc(devices, (ndevices + 1) * sizeof *devices);
	struct yk_cl_device *d = calloc(1, sizeof *d);
	char device_version[128];

	if (more)
		devices = more;
	if (!more || !d) {
		free(d);
		return yk_cl_error(YOKE_ENOMEM,
				   "no memory for the list of OpenCL devices");
	}
	d->platform = platform;
	d->id = id;
	d->index = ndevices;
	pthread_mutex_init(&d->lock, NULL);
	fill_info(d);
	fill_limits(d);
	text_of(id, CL_DEVICE_VERSION, device_version, sizeof device_version);
	snprintf(d->identity, sizeof d->identity, "%s|%s|%s|%s", version, d->info.name,
		 d->info.driver, device_version);
	devices[ndevices++] = d;
	return 0;
}

static int probe_platform(cl_platform_id platform)
{
	static const struct yoke_setting only = {
		sizeof only, "opencl.platform", "string", "",
		"use only OpenCL platforms whose name contains this",
	};
	cl_device_id ids[MAX_DEVICES];
	char name[128] = "", version[128] = "";
	const char *wanted = yk_cl_host->setting(&only);
	cl_uint n = 0;

	clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
	clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL);
	name[sizeof name - 1] = version[sizeof version - 1] = 0;
	if (wanted && *wanted && !strstr(name, wanted))
		return 0;
	cl_int err = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &n);
	if (err != CL_SUCCESS) {
		yk_cl_log(YOKE_LOG_INFO, "platform %s: clGetDeviceIDs: %s", name,
			  yk_cl_name(err));
		return 0;
	}
	for (cl_uint i = 0; i < n && i < MAX_DEVICES; i++) {
		const char *why = refused(ids[i]);
		if (why)
			yk_cl_log(YOKE_LOG_INFO, "platform %s: device %u left out: %s",
				  name, i, why);
		else if (add_device(platform, version, ids[i]) < 0)
			return YOKE_ENOMEM;
	}
	return 0;
}

static int probe_all(void)
{
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_uint n = 0;
	cl_int err = clGetPlatformIDs(MAX_PLATFORMS, platforms, &n);

	if (err != CL_SUCCESS || !n)
		yk_cl_log(YOKE_LOG_INFO, "no OpenCL platform (%s)", yk_cl_name(err));
	if (err != CL_SUCCESS)
		return 0;
	for (cl_uint i = 0; i < n && i < MAX_PLATFORMS; i++)
		if (probe_platform(platforms[i]) < 0)
			return YOKE_ENOMEM;
	return 0;
}

int yk_cl_probe(uint32_t *n)
{
	int err = yk_cl_forked();
	if (err)
		return err;
	pthread_mutex_lock(&probing);
	if (!probed)
		err = probe_all();
	probed = true;
	pthread_mutex_unlock(&probing);
	if (err)
		return err;
	*n = ndevices;
	return 0;
}

struct yk_cl_device *yk_cl_device_at(uint32_t index)
{
	if (index < ndevices)
		return devices[index];
	yk_cl_error(YOKE_ENODEV, "there is no device opencl:%u", index);
	return NULL;
}

int yk_cl_device_open(struct yk_cl_device *d)
{
	cl_context_properties properties[] = {
		CL_CONTEXT_PLATFORM, (cl_context_properties)d->platform, 0
	};
	cl_int err = CL_SUCCESS;
	const char *call = "clCreateContext";

	pthread_mutex_lock(&d->lock);
	if (!d->context)
		d->context = clCreateContext(properties, 1, &d->id, NULL, NULL, &err);
	if (err == CL_SUCCESS && !d->helper) {
		call = "clCreateCommandQueue";
		d->helper = clCreateCommandQueue(d->context, d->id, 0, &err);
	}
	pthread_mutex_unlock(&d->lock);
	return err == CL_SUCCESS ? 0 : yk_cl_fail(d, call, err);
}

int yk_cl_device_info_of(uint32_t device, struct yoke_device_info *info)
{
	struct yk_cl_device *d;
	int err = yk_cl_forked();

	if (err)
		return err;
	if (!(d = yk_cl_device_at(device)))
		return YOKE_ENODEV;
	uint32_t size = info->size < sizeof *info ? info->size : (uint32_t)sizeof *info;
	memcpy(info, &d->info, size);
	info->size = size;
	return 0;
}
