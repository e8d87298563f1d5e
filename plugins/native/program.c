// SPDX-License-Identifier: Apache-2.0
// Programs: machine code made by the vendor's runtime compiler, loaded as a module of the driver.
// Kernel objects store their arguments, which a launch passes.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define MAX_LOG (64u << 20)
#define MAX_IMAGE (256u << 20)
#define MAX_OPTIONS 64
#define MAX_PARAMS 256
#define UNKNOWN UINT32_MAX

struct program {
	struct yk_native_device *device;
	v_module module;
	void *image;
	size_t bytes;
};

struct kernel {
	const struct program *program; // outlives the kernel
	v_function function;
	size_t sized;    // bytes of local memory that launches assign
	uint32_t params; // number of parameters, or UNKNOWN
	uint32_t set;    // number of arguments with memory assigned
	size_t used, cap;
	char *values; // argument values, each aligned to 16
	struct place {
		size_t at, bytes, wants; // wants: size of the parameter, 0: unknown
	} place[MAX_PARAMS];
	void *pointer[MAX_PARAMS];
};

// ---- programs ----

static int module_of(struct yk_gpu_device *device, void *image, size_t bytes, struct program **to,
		     int *code)
{
	struct program *p = calloc(1, sizeof *p);
	int err = p ? yk_native_use(device) :
		      yk_gpu_error(YOKE_ENOMEM, "no memory for a program's record");

	*code = 0;
	if (!err && (*code = yk_native_code(V_LOAD(&p->module, image))))
		err = YOKE_EDEVICE; // not reported here: the caller knows whether it matters
	if (err) {
		free(p);
		free(image);
		return err;
	}
	p->device = yk_native_of(device);
	p->image = image;
	p->bytes = bytes;
	*to = p;
	return 0;
}

// Splits the words of an option string in place; -1: too many.
static int cut(char *text, const char **words)
{
	int n = 0;

	for (char *rest = text, *word; (word = strsep(&rest, " "));) {
		if (!*word)
			continue;
		if (n == MAX_OPTIONS)
			return -1;
		words[n++] = word;
	}
	return n;
}

// The compiler failed without a message about the text: out of host memory, or another kernel may
// still work.
static int compiler_failed(const struct yk_gpu_device *d, const char *call, int code)
{
	return yk_native_library_failed(
		d, code == V_COMPILER_OUT_OF_MEMORY ? YOKE_ENOMEM : YOKE_EUNSUPPORTED, call,
		YK_COMPILER_CODE, code);
}

static int build_error(struct yk_gpu_device *d, v_program program, int code, const char *options,
		       const char *kernel)
{
	size_t bytes = 0;
	char *log = NULL;

	if (code != V_COMPILER_COMPLAINS && code != V_COMPILER_OPTION)
		return compiler_failed(d, V_COMPILE_CALL, code);
	if (!yk_native_code(V_LOG_BYTES(program, &bytes)) && bytes && bytes < MAX_LOG &&
	    (log = calloc(1, bytes + 1)) && yk_native_code(V_LOG(program, log)))
		*log = 0;
	char unknown[200];
	// clang's message in hiprtc; NVRTC is asked beforehand
	if (log && strstr(log, "invalid target ID")) {
		snprintf(unknown, sizeof unknown,
			 "%s does not compile for %s: update ROCm, or set HSA_OVERRIDE_GFX_VERSION "
			 "to a similar architecture that it supports",
			 yk_native_library(YK_COMPILER), yk_native_of(d)->arch);
		free(log);
		log = strdup(unknown);
	}
	int err = yk_gpu_build_failed(d, V_COMPILE_CALL, YK_COMPILER_CODE + code, kernel, options,
				      log && *log ? log : "no log");
	free(log);
	return err;
}

// Returns the machine code of a compiled program.
static int image_of(struct yk_gpu_device *device, v_program program, void **image, size_t *bytes)
{
	const char *call;
	int code;

	*bytes = 0;
	yk_native_split(&call, &code, V_CODE_BYTES(yk_native_of(device), program, bytes));
	if (code)
		return compiler_failed(device, call, code);
	if (!*bytes || *bytes > MAX_IMAGE)
		return yk_gpu_error(YOKE_EDEVICE, "%s: invalid program of %zu bytes", call, *bytes);
	if (!(*image = calloc(1, *bytes + 1)))
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a program of %zu bytes", *bytes);
	yk_native_split(&call, &code, V_CODE(yk_native_of(device), program, *image));
	if (!code)
		return 0;
	free(*image);
	return compiler_failed(device, call, code);
}

static int compile(struct yk_gpu_device *d, const char *text, const char *options,
		   const char *kernel, void **image, size_t *bytes)
{
	const char *words[MAX_OPTIONS];
	char *copy = strdup(options);
	const int n = copy ? cut(copy, words) : 0;
	v_program program;
	int code, err;

	if (!copy || n < 0) {
		free(copy);
		return yk_gpu_error(copy ? YOKE_EINVAL : YOKE_ENOMEM, "the options of %s: %s",
				    kernel, copy ? "too many" : "no memory");
	}
	if ((code = yk_native_code(V_PROGRAM_NEW(&program, text)))) {
		free(copy);
		return compiler_failed(d, V_PROGRAM_NEW_CALL, code);
	}
	code = yk_native_code(V_COMPILE(program, n, words));
	err = code ? build_error(d, program, code, options, kernel) :
		     image_of(d, program, image, bytes);
	yk_native_code(V_PROGRAM_FREE(&program));
	free(copy);
	return err;
}

int yk_native_build(struct yk_gpu_device *d, const char *text, const char *options,
		    const char *kernel, void **program)
{
	struct program *p;
	void *image;
	size_t bytes;
	int code, err = yk_native_use(d);

	if (err || (err = compile(d, text, options, kernel, &image, &bytes)))
		return err;
	if ((err = module_of(d, image, bytes, &p, &code)))
		return code ? yk_gpu_fail(d, V_LOAD_CALL, code) : err;
	*program = p;
	return 0;
}

int yk_native_load(struct yk_gpu_device *d, const void *binary, size_t bytes, const char *options,
		   void **program)
{
	struct program *p;
	char *image = bytes <= MAX_IMAGE ? malloc(bytes + 1) : NULL;
	int code;

	(void)options;
	if (!image)
		return YOKE_ENOMEM;
	memcpy(image, binary, bytes);
	image[bytes] = 0; // PTX is text
	if (module_of(d, image, bytes, &p, &code))
		return YOKE_EDEVICE;
	*program = p;
	return 0;
}

void *yk_native_binary(struct yk_gpu_device *d, void *program, size_t *bytes)
{
	const struct program *p = program;
	void *copy = malloc(p->bytes);

	(void)d;
	if (copy)
		memcpy(copy, p->image, p->bytes);
	*bytes = p->bytes;
	return copy;
}

void yk_native_program_free(void *program)
{
	struct program *p = program;

	if (!yk_native_code(V_USE(p->device)))
		yk_native_code(V_UNLOAD(p->module));
	free(p->image);
	free(p);
}

// ---- kernels ----

int yk_native_kernel_new(struct yk_gpu_device *d, void *program, const char *name, void **kernel)
{
	const struct program *p = program;
	struct kernel *k = calloc(1, sizeof *k);
	size_t wants[MAX_PARAMS];
	int err =
		k ? yk_native_use(d) : yk_gpu_error(YOKE_ENOMEM, "no memory for a kernel's record");
	int code = err ? 0 : yk_native_code(V_FUNCTION(&k->function, p->module, name));

	if (code)
		err = code == V_NOT_FOUND ?
			      yk_gpu_error(YOKE_EUNSUPPORTED, "the text has no kernel %s", name) :
			      yk_gpu_fail(d, V_FUNCTION_CALL, code);
	if (err) {
		free(k);
		return err;
	}
	const int n = yk_vendor_params(k->function, p->image, p->bytes, name, MAX_PARAMS, wants);
	k->program = p;
	k->params = n < 0 ? UNKNOWN : (uint32_t)n;
	for (int i = 0; i < n; i++)
		k->place[i].wants = wants[i];
	*kernel = k;
	return 0;
}

int yk_native_kernel_sized(struct yk_gpu_device *d, void *kernel, size_t bytes)
{
	struct kernel *k = kernel;
	int code = yk_native_code(V_USE(yk_native_of(d)));

	if (!code)
		code = yk_native_code(V_SIZED(k->function, bytes));
	if (!code)
		k->sized = bytes;
	return code;
}

void yk_native_kernel_free(void *kernel)
{
	struct kernel *k = kernel;

	free(k->values);
	free(k);
}

size_t yk_native_kernel_group(struct yk_gpu_device *d, void *kernel)
{
	const struct kernel *k = kernel;
	int items = 0;

	if (yk_native_use(d) || yk_native_code(V_FUNCTION_ITEMS(&items, k->function)) || items < 0)
		return 0;
	return (size_t)items;
}

// Active warps with groups of `group` items, relative to the device's maximum; negative: unknown.
static double occupancy(const struct yk_native_device *d, const struct kernel *k, size_t group)
{
	const size_t warp = d->gpu.warp > 0 ? (size_t)d->gpu.warp : 32,
		     whole = (group + warp - 1) / warp * warp;
	int groups = 0, max = 0;

	if (!V_HAS_OCCUPANCY ||
	    yk_native_code(V_OCCUPANCY(&groups, k->function, (int)group, k->sized)) ||
	    yk_native_code(V_ATTRIBUTE(&max, V_UNIT_ITEMS, d->id)) || max <= 0)
		return -1;
	return (double)groups * (double)whole / (double)max;
}

void yk_native_kernel_use(struct yk_gpu_device *d, void *kernel, size_t group,
			  struct yoke_occupancy *to)
{
	const struct kernel *k = kernel;
	int registers = 0, local = 0;

	if (yk_native_use(d) || yk_native_code(V_FUNCTION_REGISTERS(&registers, k->function)) ||
	    yk_native_code(V_FUNCTION_LOCAL(&local, k->function)))
		return;
	to->registers = registers > 0 ? (uint32_t)registers : 0;
	to->local_bytes = (local > 0 ? (uint64_t)local : 0) + k->sized;
	to->share = group ? occupancy(yk_native_of(d), k, group) : -1;
}

uint32_t yk_native_kernel_params(void *kernel)
{
	return ((const struct kernel *)kernel)->params;
}

// Allocates memory for an argument that has none, or too little.
static bool allocate_place(struct kernel *k, struct place *p, size_t bytes)
{
	const size_t rounded = (bytes + 15) / 16 * 16;

	if (k->used + rounded > k->cap) {
		const size_t cap = 2 * (k->used + rounded);
		char *more = realloc(k->values, cap);
		if (!more)
			return false;
		k->values = more;
		k->cap = cap;
		for (uint32_t i = 0; i < k->set; i++)
			k->pointer[i] = more + k->place[i].at;
	}
	p->at = k->used;
	k->used += rounded;
	return true;
}

int yk_native_arg(void *kernel, uint32_t index, size_t bytes, const void *value)
{
	struct kernel *k = kernel;
	struct place *p = &k->place[index];

	if (index >= MAX_PARAMS || index >= k->params || (p->wants && p->wants != bytes))
		return V_INVALID_VALUE;
	if (p->bytes < bytes) {
		if (!allocate_place(k, p, bytes))
			return V_OUT_OF_MEMORY;
		p->bytes = bytes;
		k->pointer[index] = k->values + p->at;
		k->set = k->set > index ? k->set : index + 1;
	}
	memcpy(k->values + p->at, value, bytes);
	return 0;
}

// Group size for launches without one: the largest divisor of `items` up to 256.
static size_t group_of(size_t items, size_t max)
{
	size_t n = max < 256 ? max : 256;

	while (items % n)
		n--;
	return n;
}

// If a grid's second axis is too large, continues it along the third, possibly with a few excess
// groups; see GLOBAL_ID and GROUP_LINE of the CUDA prologue.
static bool fold(const struct yk_native_device *d, uint32_t dims, size_t groups[3], unsigned one)
{
	if (groups[0] > (size_t)d->grid[0] || groups[0] > (uint64_t)V_MAX_ITEMS / one)
		return false;
	if (dims < 3 && groups[1] > (size_t)d->grid[1]) {
		groups[2] = (groups[1] + (size_t)d->grid[1] - 1) / (size_t)d->grid[1];
		groups[1] = (groups[1] + groups[2] - 1) / groups[2];
	}
	return groups[1] <= (size_t)d->grid[1] && groups[2] <= (size_t)d->grid[2];
}

int yk_native_launch(struct yk_gpu_queue *q, void *kernel, uint32_t dims, const size_t *items,
		     const size_t *group)
{
	const struct yk_native_device *d = yk_native_of(q->device);
	struct kernel *k = kernel;
	size_t groups[3] = { 1, 1, 1 };
	unsigned grid[3], block[3] = { 1, 1, 1 };

	if (k->params != UNKNOWN && k->set != k->params)
		return V_INVALID_VALUE;
	for (uint32_t i = 0; i < dims; i++) {
		const size_t one = group ? group[i] :
				   i     ? 1 :
					   group_of(items[0], q->device->max_group);
		if (!one || items[i] % one)
			return V_INVALID_VALUE;
		block[i] = (unsigned)one;
		groups[i] = items[i] / one;
	}
	if (!fold(d, dims, groups, block[0]))
		return V_INVALID_VALUE;
	for (int i = 0; i < 3; i++)
		grid[i] = (unsigned)groups[i];
	const int code = yk_native_code(V_USE(d));
	return code ? code :
		      yk_native_code(V_LAUNCH(k->function, grid, block, k->sized,
					      yk_native_stream(q), k->pointer));
}
