// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the tests of the OpenCL backend: load the module (its path is in
// YOKE_TEST_OPENCL) with a host table that remembers errors and keeps binaries in memory.
#ifndef YK_TEST_OPENCL_HOST_H
#define YK_TEST_OPENCL_HOST_H

#include <dlfcn.h>

#include "kernel/kerneltext.h"
#include "kernel/mapsrc.h"
#include "tap.h"

static char last_error[1024];
static int last_code;
static const char *profile = "0"; // value of opencl.profile
static const char *clblast = "";  // of opencl.clblast, which bench/ sets
// value of opencl.binaries: with PoCL, making them takes longer than the kernels
static const char *keeps = "0";

struct kept {
	void *key, *data;
	size_t key_bytes, bytes;
};
static struct kept binaries[512];
static unsigned nbinaries, cache_hits, compiled;
static bool spoilt; // the cache returns garbage

static void test_log(int level, const char *topic, const char *text)
{
	if (level <= YOKE_LOG_INFO)
		diag("%s: %.300s", topic, text);
}

static void test_error(int code, const char *text)
{
	last_code = code;
	snprintf(last_error, sizeof last_error, "%s", text);
}

static const char *test_setting(const struct yoke_setting *s)
{
	const char *preset = getenv("YOKE_TEST_PRESET"); // "gpu": preset of a GPU

	if (!strcmp(s->name, "opencl.profile"))
		return profile;
	if (!strcmp(s->name, "opencl.clblast"))
		return clblast;
	if (!strcmp(s->name, "opencl.binaries"))
		return keeps;
	return preset && !strcmp(s->name, "opencl.preset") ? preset : s->def;
}

static struct kept *test_find(const void *key, size_t key_bytes)
{
	for (unsigned i = 0; i < nbinaries; i++)
		if (binaries[i].key_bytes == key_bytes &&
		    !memcmp(binaries[i].key, key, key_bytes))
			return &binaries[i];
	return NULL;
}

static int64_t test_get(const void *key, size_t key_bytes, void *to, size_t cap)
{
	struct kept *k = test_find(key, key_bytes);
	if (spoilt && cap)
		memset(to, 0x5a, cap);
	if (spoilt)
		return 333;
	if (!k)
		return YOKE_ENOENT;
	if (cap)
		memcpy(to, k->data, k->bytes < cap ? k->bytes : cap);
	cache_hits += cap >= k->bytes;
	return (int64_t)k->bytes;
}

static int test_put(const void *key, size_t key_bytes, const void *data, size_t bytes)
{
	struct kept *k = test_find(key, key_bytes);
	if (!k && nbinaries == sizeof binaries / sizeof *binaries)
		return YOKE_ENOMEM;
	if (!k) {
		k = &binaries[nbinaries++];
		k->key = memcpy(malloc(key_bytes), key, key_bytes);
		k->key_bytes = key_bytes;
	} else {
		free(k->data);
	}
	k->data = memcpy(malloc(bytes), data, bytes);
	k->bytes = bytes;
	return 0;
}

static inline void test_forget(void)
{
	for (unsigned i = 0; i < nbinaries; i++) {
		free(binaries[i].key);
		free(binaries[i].data);
	}
	nbinaries = 0;
}

static yk_text_fn *kernel_text = yk_kernel_text; // the source of the module's programs

static int64_t test_program(int dialect, const struct yoke_op *op, const char *text, char *to,
			    size_t cap)
{
	return yk_kernel_source_of(kernel_text, dialect, op, text, to, cap);
}

static void test_programs(uint32_t built, uint32_t found)
{
	(void)found;
	compiled += built;
}

static const struct yoke_host test_host = {
	.size = sizeof test_host,
	.abi = YOKE_ABI,
	.log = test_log,
	.error = test_error,
	.setting = test_setting,
	.kernel_source = test_program,
	.cache_get = test_get,
	.cache_put = test_put,
	.map_call = yk_map_call,
	.programs = test_programs,
};

static const struct yoke_backend *cl;
static uint32_t device; // YOKE_TEST_DEVICE, or the first

// The reason why the test cannot run, or NULL.
static inline const char *test_load(const char *path, uint32_t *ndevices)
{
	// Intel's libimf uses libm without linking to it: a driver that loads it crashes in a
	// program without libm. Programs linked to yoke have it.
	dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
	void *module = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	yoke_plugin_init_fn *init;

	if (!path)
		return "YOKE_TEST_OPENCL does not name the module";
	if (!module)
		return dlerror();
	*(void **)&init = dlsym(module, "yoke_plugin_init");
	if (!init || init(YOKE_ABI, &test_host, &cl) || cl->probe(ndevices))
		return "the module does not start";
	const char *number = getenv("YOKE_TEST_DEVICE");
	device = number ? (uint32_t)atoi(number) : 0;
	return !*ndevices ? "no OpenCL device" : device < *ndevices ? NULL :
	       "not as many OpenCL devices as YOKE_TEST_DEVICE says";
}

static inline void must(int err, const char *what)
{
	if (!err)
		return;
	printf("Bail out! %s: %d %s\n", what, err, last_error);
	exit(1);
}

// Prepares an op without a workspace, runs it to completion, and releases it.
static inline int run_op(void *queue, const struct yoke_op *op, uint32_t impl)
{
	void *handle = NULL, *e;
	uint64_t bytes = 0;
	int err = cl->prepare(device, op, impl, 0, &handle, &bytes);

	if (err || bytes)
		return err ? err : YOKE_EFAILED;
	err = cl->run(queue, handle, op);
	must(cl->event_mark(queue, &e), "mark");
	must(cl->event_wait(e), "wait");
	cl->event_free(e);
	cl->release(handle);
	return err;
}

// A view of a whole dense tensor at `offset`; row-major strides.
static inline struct yoke_view dense_view(void *segment, uint64_t offset, int dtype,
					  int rank, const int64_t *dims)
{
	struct yoke_view v = { .segment = segment,
			       .offset = offset,
			       .kind = YOKE_VIEW_BUFFER,
			       .dtype = (uint8_t)dtype,
			       .rank = (uint8_t)rank,
			       .align = 1 };
	int64_t n = 1;
	for (int i = rank - 1; i >= 0; i--) {
		v.dims[i] = dims[i];
		v.strides[i] = n;
		n *= dims[i];
	}
	return v;
}

#endif
