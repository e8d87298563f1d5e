// SPDX-License-Identifier: Apache-2.0
// Fake libcuda and, compiled with FAKE_HIP, libamdhip64: memory, copies and fills.
#include "config.h"

#include "driver.h"

// ---- memory ----

RESULT TWIN(cuMemGetInfo_v2, hipMemGetInfo)(size_t *free_bytes, size_t *total)
{
	ENTER_CURRENT(cuMemGetInfo_v2, hipMemGetInfo);
	fake_memory(fake_current, free_bytes, total);
	return OK;
}

static int alloc(enum fake_kind kind, size_t bytes, void **to)
{
	const int code = fake_capture_allows();

	return code ? code : fake_alloc(fake_current, kind, bytes, to);
}

// Both vendors wait for the device before they free.
static int release(void *at, enum fake_kind kind)
{
	const int code = fake_capture_allows();

	if (code || !at)
		return code;
	fake_device_wait(kind == DEVICE_MEMORY ? fake_current : -1);
	return fake_free(at, kind);
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

RESULT TWIN(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer)(TWIN(CUdeviceptr, void *) * to,
								   void *at, unsigned int flags)
{
	struct fake_block b;

	ENTER_CURRENT(cuMemHostGetDevicePointer_v2, hipHostGetDevicePointer);
	WANT(!flags && fake_block_of(at, 1, &b) && b.kind != DEVICE_MEMORY);
	*to = (TWIN(CUdeviceptr, void *))(uintptr_t)at;
	return OK;
}

RESULT TWIN(cuMemHostRegister_v2, hipHostRegister)(void *at, size_t bytes, unsigned int flags)
{
	ENTER_CURRENT(cuMemHostRegister_v2, hipHostRegister);
	(void)flags;
	return fake_register(fake_current, at, bytes);
}

RESULT TWIN(cuMemHostUnregister, hipHostUnregister)(void *at)
{
	ENTER_CURRENT(cuMemHostUnregister, hipHostUnregister);
	return release(at, REGISTERED_MEMORY);
}

// ---- copies ----

static bool is_device_memory(const void *at, size_t bytes, struct fake_block *b)
{
	return fake_block_of(at, bytes, b) &&
	       (b->kind == DEVICE_MEMORY || b->kind == PINNED_MEMORY);
}

RESULT TWIN(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(ADDRESS to,
	TWIN(const void, YK_ROCM_SINCE_7(const) void) *from, size_t bytes, STREAM stream)
{
	struct fake_block a, b;

	ENTER_STREAM(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync, stream, s);
	if (!bytes)
		return OK;
	WANT(is_device_memory(TO_POINTER(to), bytes, &a));
	// Pageable memory is staged through the driver's memory first.
	return fake_push_copy(s, TO_POINTER(to), from, bytes, !fake_block_of(from, bytes, &b),
			      false);
}

RESULT TWIN(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, ADDRESS from, size_t bytes,
						      STREAM stream)
{
	struct fake_block a, b;

	ENTER_STREAM(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, stream, s);
	if (!bytes)
		return OK;
	WANT(is_device_memory(TO_POINTER(from), bytes, &a));
	const int code = fake_push_copy(s, to, TO_POINTER(from), bytes, false, false);
	if (code || fake_block_of(to, bytes, &b))
		return code;
	return fake_stream_wait(s); // pageable
}

static int copy(struct fake_stream *s, void *to, const void *from, size_t bytes)
{
	struct fake_block a, b;

	if (!bytes)
		return OK;
	WANT(is_device_memory(to, bytes, &a) && is_device_memory(from, bytes, &b));
	const bool peers =
		a.kind == DEVICE_MEMORY && b.kind == DEVICE_MEMORY && a.device != b.device;
	return fake_push_copy(s, to, from, bytes, false, peers && fake_peer_is("lie"));
}

RESULT TWIN(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(ADDRESS to, ADDRESS from, size_t bytes,
						      STREAM stream)
{
	ENTER_STREAM(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, stream, s);
	return copy(s, TO_POINTER(to), TO_POINTER(from), bytes);
}

#ifdef FAKE_HIP
hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
			      size_t bytes, hipStream_t stream)
{
	ENTER_STREAM(, hipMemcpyPeerAsync, stream, s);
	if (!fake_is_device(to_device) || !fake_is_device(from_device))
		return INVALID_DEVICE;
	return copy(s, to, from, bytes);
}
#else
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			   CUcontext from_context, size_t bytes, CUstream stream)
{
	ENTER_STREAM(cuMemcpyPeerAsync, , stream, s);
	if (fake_device_of(to_context) < 0 || fake_device_of(from_context) < 0)
		return INVALID_CONTEXT;
	return copy(s, TO_POINTER(to), TO_POINTER(from), bytes);
}
#endif

static int fill(struct fake_stream *s, void *at, size_t count, const void *pattern, size_t bytes)
{
	struct fake_block b;
	size_t all;

	if (!count)
		return OK;
	WANT(!((uintptr_t)at % bytes) && !__builtin_mul_overflow(count, bytes, &all) &&
	     is_device_memory(at, all, &b));
	return fake_push_fill(s, at, count, pattern, bytes);
}

RESULT TWIN(cuMemsetD8Async, hipMemsetD8Async)(ADDRESS at, unsigned char value, size_t count,
					       STREAM stream)
{
	ENTER_STREAM(cuMemsetD8Async, hipMemsetD8Async, stream, s);
	return fill(s, TO_POINTER(at), count, &value, sizeof value);
}

RESULT TWIN(cuMemsetD16Async, hipMemsetD16Async)(ADDRESS at, unsigned short value, size_t count,
						 STREAM stream)
{
	ENTER_STREAM(cuMemsetD16Async, hipMemsetD16Async, stream, s);
	return fill(s, TO_POINTER(at), count, &value, sizeof value);
}

RESULT TWIN(cuMemsetD32Async, hipMemsetD32Async)(ADDRESS at, TWIN(unsigned int, int) value,
						 size_t count, STREAM stream)
{
	ENTER_STREAM(cuMemsetD32Async, hipMemsetD32Async, stream, s);
	return fill(s, TO_POINTER(at), count, &value, sizeof value);
}
