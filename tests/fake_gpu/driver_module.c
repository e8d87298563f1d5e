// SPDX-License-Identifier: Apache-2.0
// Fake libcuda and, compiled with FAKE_HIP, libamdhip64: modules, kernels and launches.
#include "config.h"

#include <stdlib.h>

#include "driver.h"

#define MODULE_MAGIC 0x4d4f4455u

struct function {
	struct module *module;
	const struct fake_kernel *kernel;
	unsigned sized; // max bytes of shared memory of a launch
};

struct module {
	unsigned magic;
	int device;
	struct fake_module *code;
	struct function *functions; // one for each kernel
};

RESULT TWIN(cuModuleLoadData, hipModuleLoadData)(MODULE *module, const void *image)
{
	ENTER_CURRENT(cuModuleLoadData, hipModuleLoadData);
	struct fake_module *code = fake_module_new(image);
	if (!code)
		return INVALID_IMAGE;
	const struct fake_object *o = fake_module_object(code);
	struct module *m = calloc(1, sizeof *m);
	struct function *functions = calloc(o->count + 1, sizeof *functions);
	if (!m || !functions) {
		free(m);
		free(functions);
		fake_module_free(code);
		return OUT_OF_MEMORY;
	}
	*m = (struct module){ MODULE_MAGIC, fake_current, code, functions };
	for (unsigned i = 0; i < o->count; i++)
		functions[i] = (struct function){ .module = m, .kernel = &o->kernels[i] };
	*module = TO_POINTER(m);
	return OK;
}

RESULT TWIN(cuModuleUnload, hipModuleUnload)(MODULE module)
{
	struct module *m = TO_POINTER(module);

	if (!m || m->magic != MODULE_MAGIC)
		return INVALID_HANDLE;
	const int code = fake_fault(TWIN("cuModuleUnload", "hipModuleUnload"));
	fake_device_wait(m->device);
	fake_module_free(m->code);
	m->magic = 0;
	free(m->functions);
	free(m);
	return code;
}

RESULT TWIN(cuModuleGetFunction, hipModuleGetFunction)(FUNCTION *function, MODULE module,
						       const char *name)
{
	struct module *m = TO_POINTER(module);

	ENTER_CURRENT(cuModuleGetFunction, hipModuleGetFunction);
	if (!m || m->magic != MODULE_MAGIC)
		return INVALID_HANDLE;
	const struct fake_kernel *k = fake_module_kernel(m->code, name);
	if (!k)
		return NOT_FOUND;
	*function = TO_POINTER(&m->functions[k - fake_module_object(m->code)->kernels]);
	return OK;
}

static unsigned max_threads(const struct fake_kernel *k)
{
	return k->threads ? k->threads : 1024;
}

RESULT TWIN(cuFuncGetAttribute,
	    hipFuncGetAttribute)(int *value, TWIN(CUfunction_attribute, hipFunction_attribute) what,
				 FUNCTION function)
{
	const struct function *f = TO_POINTER(function);

	ENTER_CURRENT(cuFuncGetAttribute, hipFuncGetAttribute);
	if (!f || f->module->magic != MODULE_MAGIC)
		return INVALID_HANDLE;
	const struct fake_object *o = fake_module_object(f->module->code);
	switch (what) {
	case 0: *value = (int)max_threads(f->kernel); return OK;
	// of all kernels of the module
	case 1: *value = (int)(o->shared_end - o->shared); return OK;
	case 2: // constant memory
	case 3: *value = 0; return OK; // local memory
	case 4: *value = 32; return OK; // registers
	}
	return INVALID_VALUE;
}

#ifndef FAKE_HIP
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute what, int value)
{
	struct function *f = TO_POINTER(function);

	ENTER_CURRENT(cuFuncSetAttribute, );
	WANT(f && f->module->magic == MODULE_MAGIC &&
	     what == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
	     value <= fake_sized());
	f->sized = (unsigned)value;
	return OK;
}

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

RESULT TWIN(cuLaunchKernel, hipModuleLaunchKernel)(FUNCTION function, unsigned int grid_x,
						   unsigned int grid_y, unsigned int grid_z,
						   unsigned int block_x, unsigned int block_y,
						   unsigned int block_z, unsigned int local_bytes,
						   STREAM stream, void **params, void **extra)
{
	const struct function *f = TO_POINTER(function);
	const struct fake_dim blocks = { grid_x, grid_y, grid_z },
			      threads = { block_x, block_y, block_z };

	ENTER_STREAM(cuLaunchKernel, hipModuleLaunchKernel, stream, s);
	if (!f || f->module->magic != MODULE_MAGIC || f->module->device != fake_stream_device(s))
		return INVALID_HANDLE;
	if (extra)
		return NOT_SUPPORTED;
	// the host's compiler allocates such arrays itself
	WANT(local_bytes <= f->sized);
	const uint64_t items = (uint64_t)block_x * block_y;
	WANT(grid_x && grid_y && grid_z && block_x && block_y && block_z &&
	     grid_x <= fake_grid(0) && grid_y <= fake_grid(1) && grid_z <= fake_grid(1) &&
	     (uint64_t)grid_x * block_x <= TWIN(UINT64_MAX, UINT32_MAX) && block_x <= 1024 &&
	     block_y <= 1024 && block_z <= TWIN(64, 1024) &&
	     items * block_z <= max_threads(f->kernel) && (params || !f->kernel->params));
	fake_tape_note(function, f->kernel, blocks, threads, stream, params);
	return fake_push_launch(s, &(struct fake_launch){ .module = f->module->code,
							  .kernel = f->kernel,
							  .blocks = blocks,
							  .threads = threads,
							  .params = params,
							  .warp = fake_warp(),
							  .device = f->module->device,
							  .check = fake_number("CHECK", 0) != 0 });
}

// For a multiprocessor of 2048 threads.
RESULT TWIN(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(int *groups, FUNCTION function,
								int items, size_t local_bytes)
{
	ENTER_CURRENT(cuOccupancyMaxActiveBlocksPerMultiprocessor,
		      hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
	(void)local_bytes;
	WANT(groups && function && items > 0);
	*groups = 2048 / items;
	return OK;
}
