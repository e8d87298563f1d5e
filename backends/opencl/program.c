// SPDX-License-Identifier: Apache-2.0
// Compiles, loads and releases programs and their kernels.
#include "config.h"

#include <stdlib.h>

#include "opencl.h"

#define MAX_LOG (64u << 20)

static int build_failed(struct yk_cl_device *d, cl_program program, const char *options,
			const char *kernel, cl_int code)
{
	size_t bytes = 0;
	char *text = NULL;

	if (code != CL_BUILD_PROGRAM_FAILURE && code != CL_INVALID_BUILD_OPTIONS)
		return yk_gpu_fail(&d->gpu, "clBuildProgram", code);
	if (clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL,
				  &bytes) == CL_SUCCESS &&
	    bytes && bytes < MAX_LOG && (text = calloc(1, bytes + 1)))
		clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, bytes, text,
				      NULL);
	int err = yk_gpu_build_failed(&d->gpu, "clBuildProgram", code, kernel, options,
				      text && *text ? text : "no log");
	free(text);
	return err;
}

int yk_cl_build(struct yk_gpu_device *device, const char *text, const char *options,
		const char *kernel, void **program)
{
	struct yk_cl_device *d = yk_cl_of(device);
	cl_int code;
	cl_program p = clCreateProgramWithSource(d->context, 1, &text, NULL, &code);

	if (code != CL_SUCCESS)
		return yk_gpu_fail(device, "clCreateProgramWithSource", code);
	code = clBuildProgram(p, 1, &d->id, options, NULL, NULL);
	if (code != CL_SUCCESS) {
		int err = build_failed(d, p, options, kernel, code);
		clReleaseProgram(p);
		return err;
	}
	*program = p;
	return 0;
}

int yk_cl_load(struct yk_gpu_device *device, const void *binary, size_t bytes,
	       const char *options, void **program)
{
	struct yk_cl_device *d = yk_cl_of(device);
	const unsigned char *data = binary;
	cl_int status, code;
	cl_program p = clCreateProgramWithBinary(d->context, 1, &d->id, &bytes, &data,
						 &status, &code);

	if (code != CL_SUCCESS)
		return YOKE_EDEVICE;
	if (clBuildProgram(p, 1, &d->id, options, NULL, NULL) != CL_SUCCESS) {
		clReleaseProgram(p);
		return YOKE_EDEVICE;
	}
	*program = p;
	return 0;
}

void *yk_cl_binary(struct yk_gpu_device *device, void *program, size_t *bytes)
{
	unsigned char *data;

	(void)device;
	if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes,
			     NULL) != CL_SUCCESS ||
	    !*bytes || !(data = malloc(*bytes)))
		return NULL;
	if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL) ==
	    CL_SUCCESS)
		return data;
	free(data);
	return NULL;
}

void yk_cl_program_free(void *program)
{
	clReleaseProgram(program);
}

int yk_cl_kernel_new(struct yk_gpu_device *device, void *program, const char *name,
		     void **kernel)
{
	cl_int code;
	cl_kernel k = clCreateKernel(program, name, &code);

	if (code == CL_INVALID_KERNEL_NAME)
		return yk_gpu_error(YOKE_EUNSUPPORTED, "the text has no kernel %s", name);
	if (code != CL_SUCCESS)
		return yk_gpu_fail(device, "clCreateKernel", code);
	*kernel = k;
	return 0;
}

void yk_cl_kernel_free(void *kernel)
{
	clReleaseKernel(kernel);
}

size_t yk_cl_kernel_group(struct yk_gpu_device *device, void *kernel)
{
	size_t group = 0;

	clGetKernelWorkGroupInfo(kernel, yk_cl_of(device)->id, CL_KERNEL_WORK_GROUP_SIZE,
				 sizeof group, &group, NULL);
	return group;
}

// From cl_nv_device_attribute_query, cl_amd_device_attribute_query.
enum { WARP_SIZE_NV = 0x4003, WAVEFRONT_WIDTH_AMD = 0x4043 };

// OpenCL has no query for registers; NVIDIA's and AMD's extensions report the warp size.
void yk_cl_kernel_use(struct yk_gpu_device *device, void *kernel, size_t group,
		      struct yoke_occupancy *to)
{
	const cl_device_id id = yk_cl_of(device)->id;
	cl_ulong local = 0;
	cl_uint warp = 0;
	size_t multiple = 0;

	(void)group;
	if (clGetKernelWorkGroupInfo(kernel, id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local,
				     NULL) == CL_SUCCESS)
		to->local_bytes = local;
	if (clGetDeviceInfo(id, WARP_SIZE_NV, sizeof warp, &warp, NULL) != CL_SUCCESS &&
	    clGetDeviceInfo(id, WAVEFRONT_WIDTH_AMD, sizeof warp, &warp, NULL) != CL_SUCCESS &&
	    clGetKernelWorkGroupInfo(kernel, id, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
				     sizeof multiple, &multiple, NULL) == CL_SUCCESS)
		warp = (cl_uint)multiple;
	if (warp)
		to->warp = warp;
}

uint32_t yk_cl_kernel_params(void *kernel)
{
	cl_uint n = 0;

	clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, NULL);
	return n;
}

int yk_cl_arg(void *kernel, uint32_t index, size_t bytes, const void *value)
{
	return clSetKernelArg(kernel, index, bytes, value);
}

int yk_cl_launch(struct yk_gpu_queue *q, void *kernel, uint32_t dims, const size_t *items,
		 const size_t *group)
{
	return clEnqueueNDRangeKernel(q->queue, kernel, dims, NULL, items, group, 0, NULL,
				      NULL);
}
