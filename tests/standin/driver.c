// SPDX-License-Identifier: Apache-2.0
// The calls of libcuda and, compiled with STANDIN_HIP, of libamdhip64, by their own names, over stream.c and memory.c.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "vendor.h"

#define STANDIN_DECLARE_DRIVER STANDIN_YES
#define STANDIN_DECLARE_COMPILER STANDIN_NO
#define STANDIN_DECLARE_PRODUCTS STANDIN_NO
#define STANDIN_DECLARE_TELEMETRY STANDIN_NO
STANDIN_CALLS(STANDIN_DECLARE)
// For the stand-ins of products: what runs in a stream of this library, and whether its devices have these bytes.
EXPORT int standin_enqueue(void *stream, void (*call)(void *), void *arg);
EXPORT bool standin_within(const void *at, size_t bytes);

#define RESULT TWIN(CUresult, hipError_t)
#define ADDRESS TWIN(CUdeviceptr, hipDeviceptr_t)
#define STREAM TWIN(CUstream, hipStream_t)
#define EVENT TWIN(CUevent, hipEvent_t)
#define MODULE TWIN(CUmodule, hipModule_t)
#define FUNCTION TWIN(CUfunction, hipFunction_t)
#define GRAPH TWIN(CUgraph, hipGraph_t)
#define EXEC TWIN(CUgraphExec, hipGraphExec_t)

#define MODULE_MAGIC 0x4d4f4455u

struct function {
	struct module *module;
	const struct standin_kernel *kernel;
};

struct module {
	unsigned magic;
	int device;
	struct standin_module *code;
	struct function *functions; // one for each kernel
};

static bool initialised;
static _Thread_local int current = TWIN(-1, 0); // device

static int devices(void)
{
	const long n = standin_number("DEVICES", 1);

	return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : (int)n;
}

// "sm_80" -> 80; 0 for HIP
static int capability(void)
{
	const char *arch = standin_setting("ARCH");

	return TWIN(arch && !strncmp(arch, "sm_", 3) ? (int)strtol(arch + 3, NULL, 10) : 80, 0 * (arch != NULL));
}

static const char *architecture(void)
{
	const char *arch = standin_setting("ARCH");

	return arch ? arch : TWIN("sm_80", "gfx90a");
}

// Items of a warp: 64 up to gfx9 alone.
static unsigned warp(void)
{
	return TWIN(32, !strncmp(architecture(), "gfx1", 4) ? 32 : 64);
}

static bool is_sticky(int code)
{
	return code == 214 || (code >= 700 && code < 720 && code != 701 && code != PEER_ALREADY &&
			       code != PEER_NOT_ENABLED && code != 708 && code != 712 && code != 713);
}

// What a call of this name gives instead; device -1: it is none's.
static int enter(const char *call, int device)
{
	const int code = standin_fault(call);

	if (!__atomic_load_n(&initialised, __ATOMIC_ACQUIRE) && TWIN(true, false))
		return code ? code : NOT_INITIALIZED;
	if (code) {
		if (is_sticky(code) && device >= 0)
			standin_lose(device, code);
		return code;
	}
	return device < 0 ? OK : standin_lost(device);
}

#define ENTER(cuda, hip, device) \
	do { \
		const int entered = enter(TWIN(#cuda, #hip), device); \
		if (entered) \
			return entered; \
	} while (0)
// Of a call that wants a context.
#define ENTER_CURRENT(cuda, hip) \
	do { \
		if (current < 0) \
			return INVALID_CONTEXT; \
		ENTER(cuda, hip, current); \
	} while (0)
#define WANT(what) \
	do { \
		if (!(what)) \
			return INVALID_VALUE; \
	} while (0)

// ---- errors ----

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
#define X(code, cuda, hip) { code, TWIN(#cuda, #hip), "the stand-in's text of code " #code },
	STANDIN_ERRORS(X)
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

int standin_code_of(const char *name)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].code;
	return 0; // another library's
}

#ifdef STANDIN_HIP
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

RESULT TWIN(cuInit, hipInit)(unsigned int flags)
{
	const int code = standin_fault(TWIN("cuInit", "hipInit"));

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
	const int code = standin_fault(TWIN("cuDriverGetVersion", "hipRuntimeGetVersion"));

	if (!code)
		*version = (int)standin_number("VERSION", TWIN(13000, 60400000));
	return code;
}

RESULT TWIN(cuDeviceGetCount, hipGetDeviceCount)(int *count)
{
	ENTER(cuDeviceGetCount, hipGetDeviceCount, -1);
	*count = devices();
	return *count || TWIN(true, false) ? OK : NO_DEVICE;
}

static int is_device(int device)
{
	return device >= 0 && device < devices();
}

static int name_device(char *name, int bytes)
{
	snprintf(name, (size_t)bytes, "Stand-in %s", architecture());
	return OK;
}

static int name_bus(char *id, int bytes, int device)
{
	snprintf(id, (size_t)bytes, "0000:%02X:00.0", TWIN(0x3b, 0x83) + device);
	return OK;
}

RESULT TWIN(cuDeviceGetName, hipDeviceGetName)(char *name, int bytes, TWIN(CUdevice, hipDevice_t) device)
{
	ENTER(cuDeviceGetName, hipDeviceGetName, -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	WANT(name && bytes > 0);
	return name_device(name, bytes);
}

RESULT TWIN(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char *id, int bytes, int device)
{
	ENTER(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	WANT(id && bytes > 0);
	return name_bus(id, bytes, device);
}

RESULT TWIN(cuDeviceTotalMem_v2, hipDeviceTotalMem)(size_t *bytes, TWIN(CUdevice, hipDevice_t) device)
{
	size_t free_bytes;

	ENTER(cuDeviceTotalMem_v2, hipDeviceTotalMem, -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	standin_memory(device, &free_bytes, bytes);
	return OK;
}

static const struct {
	int what, value;
} attributes[] = {
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, hipDeviceAttributeMaxThreadsPerBlock), 1024 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, hipDeviceAttributeMaxBlockDimX), 1024 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, hipDeviceAttributeMaxBlockDimY), 1024 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, hipDeviceAttributeMaxGridDimX), 2147483647 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, hipDeviceAttributeMaxGridDimY), 65535 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, hipDeviceAttributeMaxGridDimZ), 65535 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, hipDeviceAttributeMaxSharedMemoryPerBlock),
	  TWIN(49152, 65536) },
	{ TWIN(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, hipDeviceAttributeClockRate), 1410000 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, hipDeviceAttributeMultiprocessorCount), 4 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_INTEGRATED, hipDeviceAttributeIntegrated), 0 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, hipDeviceAttributeComputeMode), 0 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, hipDeviceAttributeMemoryClockRate), 1215000 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, hipDeviceAttributeMemoryBusWidth), 5120 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, hipDeviceAttributeL2CacheSize), 4 << 20 },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
	       hipDeviceAttributeMaxSharedMemoryPerMultiprocessor), TWIN(167936, 65536) },
	{ TWIN(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, hipDeviceAttributeMaxRegistersPerBlock), 65536 },
#ifndef STANDIN_HIP
	{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
#endif
};

RESULT TWIN(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value,
	TWIN(CUdevice_attribute, hipDeviceAttribute_t) what, int device)
{
	ENTER(cuDeviceGetAttribute, hipDeviceGetAttribute, -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	if (what == TWIN(CU_DEVICE_ATTRIBUTE_WARP_SIZE, hipDeviceAttributeWarpSize)) {
		*value = (int)warp();
		return OK;
	}
	if (what == TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, -1) ||
	    what == TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, -1)) {
		*value = what == TWIN(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, -1) ? capability() / 10 :
											  capability() % 10;
		return OK;
	}
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
		if (attributes[i].what == what) {
			*value = attributes[i].value;
			return OK;
		}
	return INVALID_VALUE;
}

#ifdef STANDIN_HIP
hipError_t hipGetDevicePropertiesR0600(yk_hip_properties_6 *to, int device)
{
	ENTER(, hipGetDevicePropertiesR0600, -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	memset(to, 0, sizeof *to);
	snprintf(to->gcnArchName, sizeof to->gcnArchName, "%s", architecture());
	return OK;
}

hipError_t hipGetDeviceProperties(yk_hip_properties_5 *to, int device)
{
	ENTER(, hipGetDeviceProperties, -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	memset(to, 0, sizeof *to);
	snprintf(to->gcnArchName, sizeof to->gcnArchName, "%s", architecture());
	return OK;
}

hipError_t hipSetDevice(int device)
{
	ENTER(, hipSetDevice, -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	current = device;
	return OK;
}
#else
// A context is one of these.
static struct primary {
	int device, refs;
} primaries[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER(cuDeviceGet, , -1);
	if (!is_device(ordinal))
		return INVALID_DEVICE;
	*device = ordinal;
	return OK;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	ENTER(cuDeviceGetUuid_v2, , -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	memset(uuid->bytes, 0x5d, sizeof uuid->bytes);
	uuid->bytes[15] = (char)device;
	return OK;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	ENTER(cuDevicePrimaryCtxRetain, , -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	primaries[device].device = device;
	primaries[device].refs++;
	pthread_mutex_unlock(&lock);
	*context = TO_POINTER(&primaries[device]);
	return OK;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	int code = OK;

	ENTER(cuDevicePrimaryCtxRelease_v2, , -1);
	if (!is_device(device))
		return INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[device].refs)
		code = INVALID_CONTEXT;
	else if (!--primaries[device].refs)
		standin_recover(device);
	pthread_mutex_unlock(&lock);
	return code;
}

static const struct primary *primary_of(CUcontext context)
{
	const struct primary *found = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_DEVICES; i++)
		if (TO_POINTER(context) == &primaries[i] && primaries[i].refs)
			found = &primaries[i];
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	const struct primary *p = context ? primary_of(context) : NULL;

	ENTER(cuCtxSetCurrent, , -1);
	if (context && !p)
		return INVALID_CONTEXT;
	current = p ? p->device : -1;
	return OK;
}
#endif

// ---- peers ----

static bool peer_is(const char *what)
{
	const char *set = standin_setting("PEER");

	return set && !strcmp(set, what);
}

RESULT TWIN(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(int *can, int device, int peer)
{
	ENTER(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer, -1);
	if (!is_device(device) || !is_device(peer))
		return INVALID_DEVICE;
	*can = device != peer && !peer_is("none");
	return OK;
}

static int enable_peer(int peer)
{
	if (peer == current || peer_is("none"))
		return PEER_UNSUPPORTED;
	if (standin_peer_enabled(current, peer))
		return PEER_ALREADY;
	standin_peer_enable(current, peer);
	return OK;
}

#ifdef STANDIN_HIP
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	ENTER_CURRENT(, hipDeviceEnablePeerAccess);
	WANT(!flags);
	return is_device(peer) ? enable_peer(peer) : INVALID_DEVICE;
}
#else
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	const struct primary *p = primary_of(peer);

	ENTER_CURRENT(cuCtxEnablePeerAccess, );
	WANT(!flags);
	return p ? enable_peer(p->device) : INVALID_CONTEXT;
}
#endif

// ---- memory ----

RESULT TWIN(cuMemGetInfo_v2, hipMemGetInfo)(size_t *free_bytes, size_t *total)
{
	ENTER_CURRENT(cuMemGetInfo_v2, hipMemGetInfo);
	standin_memory(current, free_bytes, total);
	return OK;
}

static int alloc(enum standin_kind kind, size_t bytes, void **to)
{
	const int code = standin_capture_allows();

	return code ? code : standin_alloc(current, kind, bytes, to);
}

// Both vendors' wait for the device before they free.
static int release(void *at, enum standin_kind kind)
{
	const int code = standin_capture_allows();

	if (code || !at)
		return code;
	standin_device_wait(kind == DEVICE_MEMORY ? current : -1);
	return standin_free(at, kind);
}

RESULT TWIN(cuMemAlloc_v2, hipMalloc)(TWIN(CUdeviceptr, void *) *at, size_t bytes)
{
	void *to = NULL;

	ENTER_CURRENT(cuMemAlloc_v2, hipMalloc);
	const int code = alloc(DEVICE_MEMORY, bytes, &to);
	if (!code)
		*at = (TWIN(CUdeviceptr, void *))(uintptr_t)to;
	return code;
}

RESULT TWIN(cuMemFree_v2, hipFree)(TWIN(CUdeviceptr, void *) at)
{
	ENTER_CURRENT(cuMemFree_v2, hipFree);
	return release(TO_POINTER(at), DEVICE_MEMORY);
}

RESULT TWIN(cuMemHostAlloc, hipHostMalloc)(void **at, size_t bytes, unsigned int flags)
{
	ENTER_CURRENT(cuMemHostAlloc, hipHostMalloc);
	(void)flags;
	return alloc(PINNED_MEMORY, bytes, at);
}

RESULT TWIN(cuMemFreeHost, hipHostFree)(void *at)
{
	ENTER_CURRENT(cuMemFreeHost, hipHostFree);
	return release(at, PINNED_MEMORY);
}

RESULT TWIN(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer)(TWIN(CUdeviceptr, void *) *to, void *at,
	unsigned int flags)
{
	struct standin_block b;

	ENTER_CURRENT(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer);
	WANT(!flags && standin_block_of(at, 1, &b) && b.kind != DEVICE_MEMORY);
	*to = (TWIN(CUdeviceptr, void *))(uintptr_t)at;
	return OK;
}

RESULT TWIN(cuMemHostRegister_v2, hipHostRegister)(void *at, size_t bytes, unsigned int flags)
{
	ENTER_CURRENT(cuMemHostRegister_v2, hipHostRegister);
	(void)flags;
	return standin_register(current, at, bytes);
}

RESULT TWIN(cuMemHostUnregister, hipHostUnregister)(void *at)
{
	ENTER_CURRENT(cuMemHostUnregister, hipHostUnregister);
	return release(at, REGISTERED_MEMORY);
}

// ---- streams ----

// A handle's; stream 0 waits for all others, as the legacy one does.
static int stream_of(STREAM stream, struct standin_stream **to)
{
	if (!stream) {
		if (current < 0)
			return INVALID_CONTEXT;
		standin_device_wait(current);
		*to = standin_default_stream(current);
		return *to ? OK : OUT_OF_MEMORY;
	}
	if (!standin_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	*to = TO_POINTER(stream);
	return OK;
}

#define ENTER_STREAM(cuda, hip, stream, to) \
	struct standin_stream *to; \
	do { \
		const int found = stream_of(stream, &to); \
		if (found) \
			return found; \
		ENTER(cuda, hip, standin_stream_device(to)); \
	} while (0)

RESULT TWIN(cuStreamCreate, hipStreamCreateWithFlags)(STREAM *stream, unsigned int flags)
{
	ENTER_CURRENT(cuStreamCreate, hipStreamCreateWithFlags);
	WANT(flags <= 1);
	struct standin_stream *s = standin_stream_new(current);
	if (!s)
		return OUT_OF_MEMORY;
	*stream = TO_POINTER(s);
	return OK;
}

RESULT TWIN(cuStreamDestroy_v2, hipStreamDestroy)(STREAM stream)
{
	if (!standin_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	const int code = standin_fault(TWIN("cuStreamDestroy_v2", "hipStreamDestroy"));
	standin_stream_free(TO_POINTER(stream));
	return code;
}

RESULT TWIN(cuStreamSynchronize, hipStreamSynchronize)(STREAM stream)
{
	ENTER_STREAM(cuStreamSynchronize, hipStreamSynchronize, stream, s);
	return standin_stream_wait(s);
}

EXPORT int standin_enqueue(void *stream, void (*call)(void *), void *arg)
{
	struct standin_stream *s;
	const int code = stream_of(stream, &s);

	if (code) {
		free(arg);
		return code;
	}
	return standin_push_call(s, call, arg);
}

EXPORT bool standin_within(const void *at, size_t bytes)
{
	struct standin_block b;

	return standin_block_of(at, bytes, &b);
}

// ---- copies ----

static bool is_device_memory(const void *at, size_t bytes, struct standin_block *b)
{
	return standin_block_of(at, bytes, b) && (b->kind == DEVICE_MEMORY || b->kind == PINNED_MEMORY);
}

RESULT TWIN(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(ADDRESS to,
	TWIN(const void, YK_ROCM_SINCE_7(const) void) *from, size_t bytes, STREAM stream)
{
	struct standin_block a, b;

	ENTER_STREAM(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, stream, s);
	if (!bytes)
		return OK;
	WANT(is_device_memory(TO_POINTER(to), bytes, &a));
	// What is pageable goes through the driver's own memory first.
	return standin_push_copy(s, TO_POINTER(to), from, bytes, !standin_block_of(from, bytes, &b), false);
}

RESULT TWIN(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, ADDRESS from, size_t bytes, STREAM stream)
{
	struct standin_block a, b;

	ENTER_STREAM(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, stream, s);
	if (!bytes)
		return OK;
	WANT(is_device_memory(TO_POINTER(from), bytes, &a));
	const int code = standin_push_copy(s, to, TO_POINTER(from), bytes, false, false);
	if (code || standin_block_of(to, bytes, &b))
		return code;
	return standin_stream_wait(s); // pageable
}

static int copy(struct standin_stream *s, void *to, const void *from, size_t bytes)
{
	struct standin_block a, b;

	if (!bytes)
		return OK;
	WANT(is_device_memory(to, bytes, &a) && is_device_memory(from, bytes, &b));
	const bool peers = a.kind == DEVICE_MEMORY && b.kind == DEVICE_MEMORY && a.device != b.device;
	return standin_push_copy(s, to, from, bytes, false, peers && peer_is("lie"));
}

RESULT TWIN(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(ADDRESS to, ADDRESS from, size_t bytes, STREAM stream)
{
	ENTER_STREAM(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, stream, s);
	return copy(s, TO_POINTER(to), TO_POINTER(from), bytes);
}

#ifdef STANDIN_HIP
hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
			      hipStream_t stream)
{
	ENTER_STREAM(, hipMemcpyPeerAsync, stream, s);
	if (!is_device(to_device) || !is_device(from_device))
		return INVALID_DEVICE;
	return copy(s, to, from, bytes);
}
#else
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
			   size_t bytes, CUstream stream)
{
	ENTER_STREAM(cuMemcpyPeerAsync, , stream, s);
	if (!primary_of(to_context) || !primary_of(from_context))
		return INVALID_CONTEXT;
	return copy(s, TO_POINTER(to), TO_POINTER(from), bytes);
}
#endif

static int fill(struct standin_stream *s, void *at, size_t count, const void *pattern, size_t bytes)
{
	struct standin_block b;
	size_t all;

	if (!count)
		return OK;
	WANT(!((uintptr_t)at % bytes) && !__builtin_mul_overflow(count, bytes, &all) &&
	     is_device_memory(at, all, &b));
	return standin_push_fill(s, at, count, pattern, bytes);
}

RESULT TWIN(cuMemsetD8Async, hipMemsetD8Async)(ADDRESS at, unsigned char value, size_t count, STREAM stream)
{
	ENTER_STREAM(cuMemsetD8Async, hipMemsetD8Async, stream, s);
	return fill(s, TO_POINTER(at), count, &value, sizeof value);
}

RESULT TWIN(cuMemsetD16Async, hipMemsetD16Async)(ADDRESS at, unsigned short value, size_t count, STREAM stream)
{
	ENTER_STREAM(cuMemsetD16Async, hipMemsetD16Async, stream, s);
	return fill(s, TO_POINTER(at), count, &value, sizeof value);
}

RESULT TWIN(cuMemsetD32Async, hipMemsetD32Async)(ADDRESS at, TWIN(unsigned int, int) value, size_t count,
	STREAM stream)
{
	ENTER_STREAM(cuMemsetD32Async, hipMemsetD32Async, stream, s);
	return fill(s, TO_POINTER(at), count, &value, sizeof value);
}

// ---- modules ----

RESULT TWIN(cuModuleLoadData, hipModuleLoadData)(MODULE *module, const void *image)
{
	ENTER_CURRENT(cuModuleLoadData, hipModuleLoadData);
	struct standin_module *code = standin_module_new(image);
	if (!code)
		return INVALID_IMAGE;
	const struct standin_object *o = standin_module_object(code);
	struct module *m = calloc(1, sizeof *m);
	struct function *functions = calloc(o->count + 1, sizeof *functions);
	if (!m || !functions) {
		free(m);
		free(functions);
		standin_module_free(code);
		return OUT_OF_MEMORY;
	}
	*m = (struct module){ MODULE_MAGIC, current, code, functions };
	for (unsigned i = 0; i < o->count; i++)
		functions[i] = (struct function){ m, &o->kernels[i] };
	*module = TO_POINTER(m);
	return OK;
}

RESULT TWIN(cuModuleUnload, hipModuleUnload)(MODULE module)
{
	struct module *m = TO_POINTER(module);

	if (!m || m->magic != MODULE_MAGIC)
		return INVALID_HANDLE;
	const int code = standin_fault(TWIN("cuModuleUnload", "hipModuleUnload"));
	standin_device_wait(m->device);
	standin_module_free(m->code);
	m->magic = 0;
	free(m->functions);
	free(m);
	return code;
}

RESULT TWIN(cuModuleGetFunction, hipModuleGetFunction)(FUNCTION *function, MODULE module, const char *name)
{
	struct module *m = TO_POINTER(module);

	ENTER_CURRENT(cuModuleGetFunction, hipModuleGetFunction);
	if (!m || m->magic != MODULE_MAGIC)
		return INVALID_HANDLE;
	const struct standin_kernel *k = standin_module_kernel(m->code, name);
	if (!k)
		return NOT_FOUND;
	*function = TO_POINTER(&m->functions[k - standin_module_object(m->code)->kernels]);
	return OK;
}

static unsigned most_threads(const struct standin_kernel *k)
{
	return k->threads ? k->threads : 1024;
}

RESULT TWIN(cuFuncGetAttribute, hipFuncGetAttribute)(int *value, TWIN(CUfunction_attribute, hipFunction_attribute) what,
	FUNCTION function)
{
	const struct function *f = TO_POINTER(function);

	ENTER_CURRENT(cuFuncGetAttribute, hipFuncGetAttribute);
	if (!f || f->module->magic != MODULE_MAGIC)
		return INVALID_HANDLE;
	const struct standin_object *o = standin_module_object(f->module->code);
	switch (what) {
	case 0: *value = (int)most_threads(f->kernel); return OK;
	case 1: *value = (int)(o->shared_end - o->shared); return OK; // of all kernels of the module
	case 2: // constant memory
	case 3: *value = 0; return OK; // local memory
	case 4: *value = 32; return OK; // registers
	}
	return INVALID_VALUE;
}

#ifndef STANDIN_HIP
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
	const struct function *f = TO_POINTER(function);
	size_t at = 0;

	ENTER_CURRENT(cuFuncGetParamInfo, );
	WANT(f && f->module->magic == MODULE_MAGIC && index < f->kernel->params);
	for (size_t i = 0; i <= index; i++) {
		const size_t n = f->kernel->bytes[i], align = n >= 8 ? 8 : n ? n : 1;
		at = (at + align - 1) / align * align;
		*offset = at;
		*bytes = n;
		at += n;
	}
	return OK;
}
#endif

RESULT TWIN(cuLaunchKernel, hipModuleLaunchKernel)(FUNCTION function, unsigned int grid_x, unsigned int grid_y,
	unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
	unsigned int local_bytes, STREAM stream, void **params, void **extra)
{
	const struct function *f = TO_POINTER(function);
	const struct standin_dim blocks = { grid_x, grid_y, grid_z }, threads = { block_x, block_y, block_z };

	ENTER_STREAM(cuLaunchKernel, hipModuleLaunchKernel, stream, s);
	if (!f || f->module->magic != MODULE_MAGIC || f->module->device != standin_stream_device(s))
		return INVALID_HANDLE;
	if (extra || local_bytes)
		return NOT_SUPPORTED;
	const uint64_t items = (uint64_t)block_x * block_y;
	WANT(grid_x && grid_y && grid_z && block_x && block_y && block_z && grid_x <= 2147483647u &&
	     grid_y <= 65535 && grid_z <= 65535 && block_x <= 1024 && block_y <= 1024 && block_z <= TWIN(64, 1024) &&
	     items * block_z <= most_threads(f->kernel) && (params || !f->kernel->params));
	return standin_push_launch(s, &(struct standin_launch){
		.module = f->module->code, .kernel = f->kernel, .blocks = blocks, .threads = threads,
		.params = params, .warp = warp(), .device = f->module->device,
		.check = standin_number("CHECK", 0) != 0 });
}

// ---- events ----

RESULT TWIN(cuEventCreate, hipEventCreateWithFlags)(EVENT *event, unsigned int flags)
{
	ENTER_CURRENT(cuEventCreate, hipEventCreateWithFlags);
	struct standin_event *e = standin_event_new(!(flags & 2));
	if (!e)
		return OUT_OF_MEMORY;
	*event = TO_POINTER(e);
	return OK;
}

#define ENTER_EVENT(cuda, hip, event, to) \
	struct standin_event *to = TO_POINTER(event); \
	do { \
		if (!standin_is_event(to)) \
			return INVALID_HANDLE; \
		ENTER(cuda, hip, standin_event_device(to)); \
	} while (0)

RESULT TWIN(cuEventDestroy_v2, hipEventDestroy)(EVENT event)
{
	if (!standin_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	const int code = standin_fault(TWIN("cuEventDestroy_v2", "hipEventDestroy"));
	standin_event_free(TO_POINTER(event));
	return code;
}

RESULT TWIN(cuEventRecord, hipEventRecord)(EVENT event, STREAM stream)
{
	if (!standin_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	ENTER_STREAM(cuEventRecord, hipEventRecord, stream, s);
	return standin_event_record(TO_POINTER(event), s);
}

// An event that is over says whether its device is well.
static int said(int code, struct standin_event *e)
{
	const int device = standin_event_device(e);

	return code || device < 0 ? code : standin_lost(device);
}

RESULT TWIN(cuEventQuery, hipEventQuery)(EVENT event)
{
	ENTER_EVENT(cuEventQuery, hipEventQuery, event, e);
	const int code = standin_capture_allows();
	return code ? code : said(standin_event_query(e), e);
}

RESULT TWIN(cuEventSynchronize, hipEventSynchronize)(EVENT event)
{
	ENTER_EVENT(cuEventSynchronize, hipEventSynchronize, event, e);
	return said(standin_event_wait(e), e);
}

RESULT TWIN(cuEventElapsedTime, hipEventElapsedTime)(float *milliseconds, EVENT from, EVENT to)
{
	ENTER_EVENT(cuEventElapsedTime, hipEventElapsedTime, from, a);
	if (!standin_is_event(TO_POINTER(to)))
		return INVALID_HANDLE;
	return standin_event_elapsed(a, TO_POINTER(to), milliseconds);
}

RESULT TWIN(cuStreamWaitEvent, hipStreamWaitEvent)(STREAM stream, EVENT event, unsigned int flags)
{
	if (!standin_is_event(TO_POINTER(event)))
		return INVALID_HANDLE;
	ENTER_STREAM(cuStreamWaitEvent, hipStreamWaitEvent, stream, s);
	WANT(!flags);
	return standin_stream_after(s, TO_POINTER(event));
}

// As of a multiprocessor of 2048 threads.
RESULT TWIN(cuOccupancyMaxActiveBlocksPerMultiprocessor, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(
	int *groups, FUNCTION function, int items, size_t local_bytes)
{
	ENTER_CURRENT(cuOccupancyMaxActiveBlocksPerMultiprocessor,
		      hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
	(void)local_bytes;
	WANT(groups && function && items > 0);
	*groups = 2048 / items;
	return OK;
}

// ---- graphs: an instance is the graph itself, which nothing changes ----

RESULT TWIN(cuStreamBeginCapture_v2, hipStreamBeginCapture)(STREAM stream,
	TWIN(CUstreamCaptureMode, hipStreamCaptureMode) mode)
{
	if (!stream)
		return CAPTURE_IMPLICIT;
	ENTER_STREAM(cuStreamBeginCapture_v2, hipStreamBeginCapture, stream, s);
	WANT(mode >= 0 && mode <= 2);
	return standin_capture_begin(s, mode);
}

RESULT TWIN(cuStreamEndCapture, hipStreamEndCapture)(STREAM stream, GRAPH *graph)
{
	struct standin_graph *g;

	// a capture ends in any case
	if (!standin_is_stream(TO_POINTER(stream)))
		return INVALID_HANDLE;
	int code = standin_capture_end(TO_POINTER(stream), &g);
	if (code)
		return code;
	if ((code = enter(TWIN("cuStreamEndCapture", "hipStreamEndCapture"),
			  standin_stream_device(TO_POINTER(stream))))) {
		standin_graph_free(g);
		return code;
	}
	*graph = TO_POINTER(g);
	return OK;
}

RESULT TWIN(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(EXEC *exec, GRAPH graph,
	unsigned long long flags)
{
	ENTER_CURRENT(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags);
	(void)flags;
	WANT(graph);
	*exec = TO_POINTER(standin_graph_ref(TO_POINTER(graph)));
	return OK;
}

RESULT TWIN(cuGraphLaunch, hipGraphLaunch)(EXEC exec, STREAM stream)
{
	WANT(exec);
	ENTER_STREAM(cuGraphLaunch, hipGraphLaunch, stream, s);
	return standin_graph_launch(TO_POINTER(exec), s);
}

RESULT TWIN(cuGraphExecDestroy, hipGraphExecDestroy)(EXEC exec)
{
	WANT(exec);
	standin_graph_free(TO_POINTER(exec));
	return standin_fault(TWIN("cuGraphExecDestroy", "hipGraphExecDestroy"));
}

RESULT TWIN(cuGraphDestroy, hipGraphDestroy)(GRAPH graph)
{
	WANT(graph);
	standin_graph_free(TO_POINTER(graph));
	return standin_fault(TWIN("cuGraphDestroy", "hipGraphDestroy"));
}
