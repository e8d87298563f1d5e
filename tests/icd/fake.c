// SPDX-License-Identifier: Apache-2.0
// A fake OpenCL driver whose defect is part of its file name, libfake_FLAW.so: it crashes, hangs,
// has no devices or reports a device twice; or it is PoCL with absurd device properties or
// failing calls.
#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl_icd.h>

#define EXPORT __attribute__((visibility("default")))

// The part of an object that loaders know: its first word.
struct _cl_platform_id {
	const cl_icd_dispatch *dispatch;
	const char *name;
};

struct _cl_device_id {
	const cl_icd_dispatch *dispatch;
	int kind;
	unsigned char uuid; // value of each of its 16 bytes, 0: none
	int bus;            // 0: none
};

static char flaw[64];

__attribute__((constructor)) static void find_flaw(void)
{
	Dl_info info;
	const char *name =
		dladdr((void *)(size_t)find_flaw, &info) ? strstr(info.dli_fname, "fake_") : NULL;
	if (name)
		snprintf(flaw, sizeof flaw, "%.*s", (int)strcspn(name + 5, "."), name + 5);
}

static int is(const char *name)
{
	return !strcmp(flaw, name);
}

static cl_int give(const void *value, size_t bytes, size_t cap, void *to, size_t *got)
{
	if (got)
		*got = bytes;
	if (to && cap < bytes)
		return CL_INVALID_VALUE;
	if (to)
		memcpy(to, value, bytes);
	return CL_SUCCESS;
}

static cl_int give_text(const char *text, size_t cap, void *to, size_t *got)
{
	return give(text, strlen(text) + 1, cap, to, got);
}

static cl_int give_number(cl_ulong n, size_t bytes, size_t cap, void *to, size_t *got)
{
	return give(&n, bytes, cap, to, got);
}

// ---- a driver of our own ----

static cl_icd_dispatch own; // filled when the driver is loaded
static struct _cl_platform_id platforms[2] = { { &own, "Fake A" }, { &own, "Fake B" } };
static struct _cl_device_id devices[2][2] = {
	{ { &own, CL_DEVICE_TYPE_GPU, 0x5a, 3 }, { &own, CL_DEVICE_TYPE_GPU, 0x5a, 4 } },
	{ { &own, CL_DEVICE_TYPE_GPU, 0, 4 }, { &own, CL_DEVICE_TYPE_GPU, 0x5a, 0 } },
};

static cl_int own_platform_info(cl_platform_id p, cl_platform_info what, size_t cap, void *to,
				size_t *got)
{
	switch (what) {
	case CL_PLATFORM_NAME: return give_text(p->name, cap, to, got);
	case CL_PLATFORM_VENDOR: return give_text("yoke", cap, to, got);
	case CL_PLATFORM_VERSION: return give_text("OpenCL 1.2 fake", cap, to, got);
	case CL_PLATFORM_PROFILE: return give_text("FULL_PROFILE", cap, to, got);
	case CL_PLATFORM_EXTENSIONS: return give_text("cl_khr_icd", cap, to, got);
	case CL_PLATFORM_ICD_SUFFIX_KHR: return give_text("FAKE", cap, to, got);
	}
	return CL_INVALID_VALUE;
}

static cl_int own_device_ids(cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *to,
			     cl_uint *got)
{
	cl_uint all = !is("aliases") ? 0 : 2;

	if (is("noids"))
		return CL_OUT_OF_HOST_MEMORY;
	if (!(type & CL_DEVICE_TYPE_GPU))
		all = 0;
	for (cl_uint i = 0; to && i < n && i < all; i++)
		to[i] = &devices[p - platforms][i];
	if (got)
		*got = all;
	return all ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

static cl_int own_device_info(cl_device_id d, cl_device_info what, size_t cap, void *to,
			      size_t *got)
{
	unsigned char uuid[16];
	cl_uint pci[4] = { 0, (cl_uint)d->bus, 1, 2 };

	switch (what) {
	case CL_DEVICE_TYPE: return give_number((cl_ulong)d->kind, 8, cap, to, got);
	case CL_DEVICE_NAME: return give_text("Fake GPU", cap, to, got);
	case CL_DEVICE_PROFILE: return give_text("FULL_PROFILE", cap, to, got);
	case CL_DEVICE_VENDOR: return give_text("yoke", cap, to, got);
	case CL_DRIVER_VERSION: return give_text("1", cap, to, got);
	case CL_DEVICE_VERSION: return give_text("OpenCL 1.2 fake", cap, to, got);
	case CL_DEVICE_AVAILABLE:
	case CL_DEVICE_COMPILER_AVAILABLE:
	case CL_DEVICE_ENDIAN_LITTLE: return give_number(CL_TRUE, 4, cap, to, got);
	case CL_DEVICE_ADDRESS_BITS: return give_number(64, 4, cap, to, got);
	case CL_DEVICE_GLOBAL_MEM_SIZE:
	case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return give_number((cl_ulong)1 << 30, 8, cap, to, got);
	case 0x106a: // CL_DEVICE_UUID_KHR
		memset(uuid, d->uuid, sizeof uuid);
		return d->uuid ? give(uuid, sizeof uuid, cap, to, got) : CL_INVALID_VALUE;
	case 0x410f: // CL_DEVICE_PCI_BUS_INFO_KHR, of the first platform
		return d->bus && d < devices[1] ? give(pci, sizeof pci, cap, to, got) :
						  CL_INVALID_VALUE;
	case 0x4008: // CL_DEVICE_PCI_BUS_ID_NV, of the second
		return d->bus && d >= devices[1] ? give_number((cl_ulong)d->bus, 4, cap, to, got) :
						   CL_INVALID_VALUE;
	case 0x4009: // CL_DEVICE_PCI_SLOT_ID_NV: device 1, function 2
		return d->bus && d >= devices[1] ? give_number(1 << 3 | 2, 4, cap, to, got) :
						   CL_INVALID_VALUE;
	}
	return CL_INVALID_VALUE;
}

static void misbehave(void)
{
	if (is("crash"))
		raise(SIGSEGV);
	if (is("abort"))
		abort();
	if (is("moody") && getenv("YOKE_TEST_MOOD")) // not part of the key of remembered verdicts
		abort();
	while (is("hang"))
		pause();
}

static cl_int own_platforms(cl_uint n, cl_platform_id *to, cl_uint *got)
{
	cl_uint all = is("aliases") ? 2 : is("empty") ? 0 : 1;

	own.clGetPlatformInfo = own_platform_info;
	own.clGetDeviceIDs = own_device_ids;
	own.clGetDeviceInfo = own_device_info;
	for (cl_uint i = 0; to && i < n && i < all; i++)
		to[i] = &platforms[i];
	if (got)
		*got = all;
	return all ? CL_SUCCESS : -1001;
}

// ---- PoCL, distorted ----

enum { SMALL = 2 << 20 }; // bytes: the largest buffer of libfake_small

static cl_icd_dispatch pocl, changed;

static cl_int changed_device_info(cl_device_id d, cl_device_info what, size_t cap, void *to,
				  size_t *got)
{
	static const size_t none[3];
	static char name[4097];

	if (is("name"))
		switch (what) {
		case CL_DEVICE_NAME:
		case CL_DEVICE_VENDOR:
		case CL_DRIVER_VERSION: // each byte of one that is not UTF-8, and a line end
			memset(name, 'n', sizeof name - 1);
			memcpy(name + 3, "\xc3\n\xff\xe2\x82", 5);
			memcpy(name + 126, "\xc3\xa9", 2); // cut in its middle
			return give_text(name, cap, to, got);
		}
	if (is("memory") && what == CL_DEVICE_GLOBAL_MEM_SIZE)
		return give_number(0, 8, cap, to, got);
	if (is("small") && what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
		return give_number(SMALL, 8, cap, to, got);
	if (is("zeros"))
		switch (what) {
		case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
		case CL_DEVICE_MAX_COMPUTE_UNITS: return give_number(0, 4, cap, to, got);
		case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
		case CL_DEVICE_MAX_PARAMETER_SIZE:
		case CL_DEVICE_MAX_WORK_GROUP_SIZE:
		case CL_DEVICE_LOCAL_MEM_SIZE: return give_number(0, 8, cap, to, got);
		case CL_DEVICE_MAX_WORK_ITEM_SIZES: return give(none, sizeof none, cap, to, got);
		}
	return pocl.clGetDeviceInfo(d, what, cap, to, got);
}

static cl_int changed_device_ids(cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *to,
				 cl_uint *got)
{
	cl_uint all = 0;
	cl_int err = pocl.clGetDeviceIDs(p, type, n, to, &all);

	for (cl_uint i = 0; to && err == CL_SUCCESS && i < n && i < all; i++)
		to[i]->dispatch = &changed;
	if (got)
		*got = all;
	return err;
}

static cl_context
changed_context(const cl_context_properties *properties, cl_uint n, const cl_device_id *d,
		void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
		cl_int *err)
{
	cl_context c = pocl.clCreateContext(properties, n, d, notify, user, err);
	if (c)
		*(cl_icd_dispatch **)c = &changed;
	return c;
}

static cl_command_queue changed_queue(cl_context c, cl_device_id d, cl_command_queue_properties p,
				      cl_int *err)
{
	cl_command_queue q = pocl.clCreateCommandQueue(c, d, p, err);
	if (q)
		*(cl_icd_dispatch **)q = &changed;
	return q;
}

// libfake_nobuild: neither small products nor norms compile.
static cl_program changed_program(cl_context c, cl_uint n, const char **text, const size_t *bytes,
				  cl_int *err)
{
	const char *bad[] = { *text, "\n#error this driver does not like it\n" };
	if (is("nobuild") && n == 1 && !bytes &&
	    (strstr(*text, "contract_direct(") || strstr(*text, "norm_backward(")))
		return pocl.clCreateProgramWithSource(c, 2, bad, NULL, err);
	return pocl.clCreateProgramWithSource(c, n, text, bytes, err);
}

static cl_mem changed_buffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host,
			     cl_int *err)
{
	if (!is("small") || bytes <= SMALL)
		return pocl.clCreateBuffer(c, flags, bytes, host, err);
	if (err)
		*err = CL_INVALID_BUFFER_SIZE;
	return NULL;
}

// libfake_full: the 40th launch fails with no memory, and succeeds when repeated; libfake_fuller:
// all launches from there on fail. libfake_lost is lost from its 300th launch on.
static cl_int changed_launch(cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset,
			     const size_t *items, const size_t *group, cl_uint n,
			     const cl_event *after, cl_event *done)
{
	static int launches;
	int now = __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
	if (is("full") && now == 40)
		return CL_MEM_OBJECT_ALLOCATION_FAILURE;
	if (is("fuller") && now >= 40)
		return CL_OUT_OF_RESOURCES;
	if (is("lost") && now >= 300)
		return CL_DEVICE_NOT_AVAILABLE;
	return pocl.clEnqueueNDRangeKernel(q, k, dims, offset, items, group, n, after, done);
}

static cl_int pocl_platforms(cl_uint n, cl_platform_id *to, cl_uint *got)
{
	char library[256] = "";
	cl_platform_id platform;
	cl_uint all = 0;
	void *(*address)(const char *);
	cl_int (*ids)(cl_uint, cl_platform_id *, cl_uint *);

	FILE *f = fopen("/etc/OpenCL/vendors/pocl.icd", "r");
	if (!f || !fgets(library, sizeof library, f))
		return -1001;
	fclose(f);
	library[strcspn(library, "\n")] = '\0';
	void *so = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!so || !(*(void **)&address = dlsym(so, "clGetExtensionFunctionAddress")) ||
	    !(*(void **)&ids = address("clIcdGetPlatformIDsKHR")) ||
	    ids(1, &platform, &all) != CL_SUCCESS || !all)
		return -1001;
	if (platform->dispatch != &changed) {
		pocl = changed = *platform->dispatch;
		changed.clGetDeviceIDs = changed_device_ids;
		changed.clGetDeviceInfo = changed_device_info;
		changed.clCreateContext = changed_context;
		changed.clCreateCommandQueue = changed_queue;
		changed.clCreateProgramWithSource = changed_program;
		changed.clCreateBuffer = changed_buffer;
		changed.clEnqueueNDRangeKernel = changed_launch;
		platform->dispatch = &changed;
	}
	if (to && n)
		to[0] = platform;
	if (got)
		*got = 1;
	return CL_SUCCESS;
}

// ---- what loaders look for ----

EXPORT cl_int clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *to, cl_uint *got)
{
	static const char *const of_pocl[] = { "zeros",   "name", "memory", "small",
					       "nobuild", "full", "fuller", "lost" };

	misbehave();
	for (size_t i = 0; i < sizeof of_pocl / sizeof *of_pocl; i++)
		if (is(of_pocl[i]))
			return pocl_platforms(n, to, got);
	return own_platforms(n, to, got);
}

EXPORT cl_int clGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t cap, void *to,
				size_t *got)
{
	return p->dispatch->clGetPlatformInfo(p, what, cap, to, got);
}

EXPORT void *clGetExtensionFunctionAddress(const char *name)
{
	if (!strcmp(name, "clIcdGetPlatformIDsKHR"))
		return (void *)(size_t)clIcdGetPlatformIDsKHR;
	if (!strcmp(name, "clGetPlatformInfo"))
		return (void *)(size_t)clGetPlatformInfo;
	return NULL;
}
