// SPDX-License-Identifier: Apache-2.0
// Errors of OpenCL by their symbolic names.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "../gpu/gpu.h"

const char *yk_cl_name(cl_int code)
{
	switch (code) {
#define X(name) case name: return #name;
	X(CL_SUCCESS)
	X(CL_DEVICE_NOT_FOUND)
	X(CL_DEVICE_NOT_AVAILABLE)
	X(CL_COMPILER_NOT_AVAILABLE)
	X(CL_MEM_OBJECT_ALLOCATION_FAILURE)
	X(CL_OUT_OF_RESOURCES)
	X(CL_OUT_OF_HOST_MEMORY)
	X(CL_PROFILING_INFO_NOT_AVAILABLE)
	X(CL_MEM_COPY_OVERLAP)
	X(CL_IMAGE_FORMAT_MISMATCH)
	X(CL_IMAGE_FORMAT_NOT_SUPPORTED)
	X(CL_BUILD_PROGRAM_FAILURE)
	X(CL_MAP_FAILURE)
	X(CL_MISALIGNED_SUB_BUFFER_OFFSET)
	X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
	X(CL_COMPILE_PROGRAM_FAILURE)
	X(CL_LINKER_NOT_AVAILABLE)
	X(CL_LINK_PROGRAM_FAILURE)
	X(CL_DEVICE_PARTITION_FAILED)
	X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
	X(CL_INVALID_VALUE)
	X(CL_INVALID_DEVICE_TYPE)
	X(CL_INVALID_PLATFORM)
	X(CL_INVALID_DEVICE)
	X(CL_INVALID_CONTEXT)
	X(CL_INVALID_QUEUE_PROPERTIES)
	X(CL_INVALID_COMMAND_QUEUE)
	X(CL_INVALID_HOST_PTR)
	X(CL_INVALID_MEM_OBJECT)
	X(CL_INVALID_BINARY)
	X(CL_INVALID_BUILD_OPTIONS)
	X(CL_INVALID_PROGRAM)
	X(CL_INVALID_PROGRAM_EXECUTABLE)
	X(CL_INVALID_KERNEL_NAME)
	X(CL_INVALID_KERNEL_DEFINITION)
	X(CL_INVALID_KERNEL)
	X(CL_INVALID_ARG_INDEX)
	X(CL_INVALID_ARG_VALUE)
	X(CL_INVALID_ARG_SIZE)
	X(CL_INVALID_KERNEL_ARGS)
	X(CL_INVALID_WORK_DIMENSION)
	X(CL_INVALID_WORK_GROUP_SIZE)
	X(CL_INVALID_WORK_ITEM_SIZE)
	X(CL_INVALID_GLOBAL_OFFSET)
	X(CL_INVALID_EVENT_WAIT_LIST)
	X(CL_INVALID_EVENT)
	X(CL_INVALID_OPERATION)
	X(CL_INVALID_BUFFER_SIZE)
	X(CL_INVALID_GLOBAL_WORK_SIZE)
	X(CL_INVALID_PROPERTY)
	X(CL_INVALID_COMPILER_OPTIONS)
	X(CL_INVALID_LINKER_OPTIONS)
	X(CL_INVALID_DEVICE_PARTITION_COUNT)
#undef X
	case -1001: return "CL_PLATFORM_NOT_FOUND_KHR"; // of the loader: cl_khr_icd
	default: return "unknown OpenCL error";
	}
}

static void to_host(int code, const char *fmt, va_list ap)
{
	char line[900];
	vsnprintf(line, sizeof line, fmt, ap);
	yk_cl_host->error(code, line);
}

int yk_cl_error(int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	to_host(code, fmt, ap);
	va_end(ap);
	return code;
}

int yk_cl_fail(const struct yk_cl_device *d, const char *call, cl_int code)
{
	bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
		      code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY ||
		      code == CL_INVALID_BUFFER_SIZE;
	int error = memory ? YOKE_ENOMEM : YOKE_EDEVICE;

	if (!d)
		return yk_cl_error(error, "%s: %s (%d)", call, yk_cl_name(code),
				   (int)code);
	return yk_cl_error(error, "%s: %s (%d) on opencl:%u (%s, %s)", call, yk_cl_name(code),
			   (int)code, d->index, d->info.name, d->info.driver);
}

int yk_cl_check(const struct yk_cl_device *d, const char *call, cl_int code)
{
	return code == CL_SUCCESS ? 0 : yk_cl_fail(d, call, code);
}

void yk_cl_log(int level, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	yk_cl_host->log(level, "opencl", line);
}
