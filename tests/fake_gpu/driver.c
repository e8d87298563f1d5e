// SPDX-License-Identifier: Apache-2.0
// Fake libcuda and, compiled with FAKE_HIP, libamdhip64: error codes, devices, contexts and
// peers.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "errors.h"

static bool initialised;
_Thread_local int fake_current = TWIN(-1, 0); // device

static int devices(void)
{
	const long n = fake_number("DEVICES", 1);

	return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : (int)n;
}

// "sm_80" -> 80; 0 for HIP
static int capability(void)
{
	const char *arch = fake_setting("ARCH");

	return TWIN(arch && !strncmp(arch, "sm_", 3) ? (int)strtol(arch + 3, NULL, 10) : 80,
		    0 * (arch != NULL));
}

static const char *architecture(void)
{
	const char *arch = fake_setting("ARCH");

	return arch ? arch : TWIN("sm_80", "gfx90a");
}

// Items of a warp: 64 only up to gfx9.
unsigned fake_warp(void)
{
	return TWIN(32, !strncmp(architecture(), "gfx1", 4) ? 32 : 64);
}

int fake_sized(void)
{
	const int c = capability();

	return (c == 86 || c == 89 || c >= 120 ? 99 : c >= 90 ? 227 : 163) << 10;
}

static bool is_sticky(int code)
{
	return code == 214 ||
	       (code >= 700 && code < 720 && code != 701 && code != PEER_ALREADY &&
		code != PEER_NOT_ENABLED && code != 708 && code != 712 && code != 713);
}

int fake_enter(const char *call, int device)
{
	const int code = fake_fault(call);

	if (!__atomic_load_n(&initialised, __ATOMIC_ACQUIRE) && TWIN(true, false))
		return code ? code : NOT_INITIALIZED;
	if (code) {
		if (is_sticky(code) && device >= 0)
			fake_lose(device, code);
		return code;
	}
	return device < 0 ? OK : fake_lost(device);
}

// ---- errors ----

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
#define X(code, cuda, hip) { code, TWIN(#cuda, #hip), "the fake driver's text of code " #code },
	FAKE_ERRORS(X)
#undef X
};

static const char *name_of(int code)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code && strcmp(errors[i].name, "none"))
			return errors[i].name;
	return NULL;
}

static const char *text_of(int code)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			return errors[i].text;
	return NULL;
}

int fake_code_of(const char *name)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].code;
	return 0; // another library's
}

#ifdef FAKE_HIP
const char *hipGetErrorName(hipError_t code)
{
	const char *name = name_of(code);

	return name ? name : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t code)
{
	const char *text = text_of(code);

	return text ? text : "unknown error";
}
#else
CUresult cuGetErrorName(CUresult code, const char **name)
{
	*name = name_of(code);
	return *name ? OK : INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **text)
{
	*text = text_of(code);
	return *text ? OK : INVALID_VALUE;
}
#endif

// ---- devices and contexts ----

#ifndef FAKE_HIP
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id);

// NVIDIA's NVRTC looks for tables in a loaded driver. Each begins with its size in bytes: these
// have no entries.
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	static const size_t empty[1] = { sizeof *empty };

	(void)id;
	*table = empty;
	return OK;
}
#endif

RESULT TWIN(cuInit, hipInit)(unsigned int flags)
{
	const int code = fake_fault(TWIN("cuInit", "hipInit"));

	if (code)
		return code;
	WANT(!flags);
	if (!devices())
		return NO_DEVICE;
	__atomic_store_n(&initialised, true, __ATOMIC_RELEASE);
	return OK;
}

RESULT TWIN(cuDriverGetVersion, hipRuntimeGetVersion)(int *version)
{
	const int code = fake_fault(TWIN("cuDriverGetVersion", "hipRuntimeGetVersion"));

	if (!code)
		*version = (int)fake_number("VERSION", TWIN(13000, 60400000));
	return code;
}

RESULT TWIN(cuDeviceGetCount, hipGetDeviceCount)(int *count)
{
	ENTER(cuDeviceGetCount, hipGetDeviceCount, -1);
	*count = devices();
	return *count || TWIN(true, false) ? OK : NO_DEVICE;
}

bool fake_is_device(int device)
{
	return device >= 0 && device < devices();
}

static int name_device(char *name, int bytes)
{
	snprintf(name, (size_t)bytes, "Fake driver %s", architecture());
	return OK;
}

static int name_bus(char *id, int bytes, int device)
{
	snprintf(id, (size_t)bytes, "0000:%02X:00.0", TWIN(0x3b, 0x83) + device);
	return OK;
}

RESULT TWIN(cuDeviceGetName, hipDeviceGetName)(char *name, int bytes,
					       TWIN(CUdevice, hipDevice_t) device)
{
	ENTER(cuDeviceGetName, hipDeviceGetName, -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	WANT(name && bytes > 0);
	return name_device(name, bytes);
}

RESULT TWIN(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char *id, int bytes, int device)
{
	ENTER(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	WANT(id && bytes > 0);
	return name_bus(id, bytes, device);
}

RESULT TWIN(cuDeviceTotalMem_v2, hipDeviceTotalMem)(size_t *bytes,
						    TWIN(CUdevice, hipDevice_t) device)
{
	size_t free_bytes;

	ENTER(cuDeviceTotalMem_v2, hipDeviceTotalMem, -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	fake_memory(device, &free_bytes, bytes);
	return OK;
}

static const int grid_limits[] = {
	TWIN(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, hipDeviceAttributeMaxGridDimX),
	TWIN(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, hipDeviceAttributeMaxGridDimY),
	TWIN(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, hipDeviceAttributeMaxGridDimZ),
};

unsigned fake_grid(int axis)
{
	const long small = fake_number("GRID", 0);

	return small ? (unsigned)(axis ? small : 30 * small) : axis ? 65535 : 2147483647;
}

static const struct {
	int what, value;
} attributes[] = {
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, hipDeviceAttributeMaxThreadsPerBlock),
	  1024 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, hipDeviceAttributeMaxBlockDimX), 1024 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, hipDeviceAttributeMaxBlockDimY), 1024 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
	       hipDeviceAttributeMaxSharedMemoryPerBlock),
	  TWIN(49152, 65536) },
	{ TWIN(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, hipDeviceAttributeClockRate), 1410000 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, hipDeviceAttributeMultiprocessorCount),
	  4 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_INTEGRATED, hipDeviceAttributeIntegrated), 0 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, hipDeviceAttributeComputeMode), 0 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, hipDeviceAttributeMemoryClockRate), 1215000 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, hipDeviceAttributeMemoryBusWidth),
	  5120 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, hipDeviceAttributeL2CacheSize), 4 << 20 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
	       hipDeviceAttributeMaxSharedMemoryPerMultiprocessor),
	  TWIN(167936, 65536) },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
	       hipDeviceAttributeMaxRegistersPerBlock),
	  65536 },
#ifndef FAKE_HIP
	{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
#endif
};

RESULT TWIN(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value,
	TWIN(CUdevice_attribute, hipDeviceAttribute_t) what, int device)
{
	ENTER(cuDeviceGetAttribute, hipDeviceGetAttribute, -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	if (what == TWIN(CU_DEVICE_ATTRIBUTE_WARP_SIZE, hipDeviceAttributeWarpSize)) {
		*value = (int)fake_warp();
		return OK;
	}
	if (what == TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, -1) ||
	    what == TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, -1)) {
		*value = what == TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, -1) ?
				 capability() / 10 :
				 capability() % 10;
		return OK;
	}
#ifndef FAKE_HIP
	if (what == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) {
		*value = fake_sized();
		return OK;
	}
#endif
	for (int i = 0; i < 3; i++)
		if (what == grid_limits[i]) {
			*value = (int)fake_grid(i);
			return OK;
		}
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
		if (attributes[i].what == what) {
			*value = attributes[i].value;
			return OK;
		}
	return INVALID_VALUE;
}

#ifdef FAKE_HIP
hipError_t hipGetDevicePropertiesR0600(yk_hip_properties_6 *to, int device)
{
	ENTER(, hipGetDevicePropertiesR0600, -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	memset(to, 0, sizeof *to);
	snprintf(to->gcnArchName, sizeof to->gcnArchName, "%s", architecture());
	return OK;
}

hipError_t hipGetDeviceProperties(yk_hip_properties_5 *to, int device)
{
	ENTER(, hipGetDeviceProperties, -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	memset(to, 0, sizeof *to);
	snprintf(to->gcnArchName, sizeof to->gcnArchName, "%s", architecture());
	return OK;
}

hipError_t hipSetDevice(int device)
{
	ENTER(, hipSetDevice, -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	fake_current = device;
	return OK;
}
#else
// A context is one of these.
static struct primary {
	int refs;
} primaries[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER(cuDeviceGet, , -1);
	if (!fake_is_device(ordinal))
		return INVALID_DEVICE;
	*device = ordinal;
	return OK;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	ENTER(cuDeviceGetUuid_v2, , -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	memset(uuid->bytes, 0x5d, sizeof uuid->bytes);
	uuid->bytes[15] = (char)device;
	return OK;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	ENTER(cuDevicePrimaryCtxRetain, , -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	primaries[device].refs++;
	pthread_mutex_unlock(&lock);
	*context = TO_POINTER(&primaries[device]);
	return OK;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	int code = OK;

	ENTER(cuDevicePrimaryCtxRelease_v2, , -1);
	if (!fake_is_device(device))
		return INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[device].refs)
		code = INVALID_CONTEXT;
	else if (!--primaries[device].refs)
		fake_recover(device);
	pthread_mutex_unlock(&lock);
	return code;
}

int fake_device_of(CUcontext context)
{
	int found = -1;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_DEVICES; i++)
		if (TO_POINTER(context) == &primaries[i] && primaries[i].refs)
			found = i;
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	const int device = context ? fake_device_of(context) : -1;

	ENTER(cuCtxSetCurrent, , -1);
	if (context && device < 0)
		return INVALID_CONTEXT;
	fake_current = device;
	return OK;
}
#endif

// ---- peers ----

bool fake_peer_is(const char *what)
{
	const char *set = fake_setting("PEER");

	return set && !strcmp(set, what);
}

RESULT TWIN(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(int *can, int device, int peer)
{
	ENTER(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer, -1);
	if (!fake_is_device(device) || !fake_is_device(peer))
		return INVALID_DEVICE;
	*can = device != peer && !fake_peer_is("none");
	return OK;
}

static int enable_peer(int peer)
{
	if (peer == fake_current || fake_peer_is("none"))
		return PEER_UNSUPPORTED;
	if (fake_peer_enabled(fake_current, peer))
		return PEER_ALREADY;
	fake_peer_enable(fake_current, peer);
	return OK;
}

#ifdef FAKE_HIP
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	ENTER_CURRENT(, hipDeviceEnablePeerAccess);
	WANT(!flags);
	return fake_is_device(peer) ? enable_peer(peer) : INVALID_DEVICE;
}
#else
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	const int device = fake_device_of(peer);

	ENTER_CURRENT(cuCtxEnablePeerAccess, );
	WANT(!flags);
	return device < 0 ? INVALID_CONTEXT : enable_peer(device);
}
#endif
