// SPDX-License-Identifier: Apache-2.0
// yoke-probe for OpenCL, used by `yoke doctor`: finds the loader that would be used, and queries
// one driver directly, as a loader does. Declares the few entries of the ICD interface (cl_khr_icd)
// that it needs, so that it can be built without OpenCL headers.
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/probe.h"

// Start of the dispatch table to which each object of a driver points.
struct dispatch {
	int32_t (*platforms)(uint32_t, void **, uint32_t *);
	int32_t (*platform_info)(void *, uint32_t, size_t, void *, size_t *);
	int32_t (*device_ids)(void *, uint64_t, uint32_t, void **, uint32_t *);
};

enum { PLATFORM_VERSION = 0x0901, PLATFORM_NAME = 0x0902, PLATFORM_EXTENSIONS = 0x0904 };
enum { MAX_PLATFORMS = 16 };
static const uint64_t all_types = 0xffffffff;

// Prints the reason from dlopen without the library's name, which the reader already knows.
static void print_error(FILE *to, const char *library)
{
	const char *text = dlerror();
	size_t n = strlen(library);

	if (text && !strncmp(text, library, n) && !strncmp(text + n, ": ", 2))
		text += n + 2;
	fprintf(to, "error\t%s\n", text ? text : "unknown reason");
}

void yk_probe_loader(FILE *to)
{
	static const char name[] = "libOpenCL.so.1";
	enum { LOADER_VERSION = 2, LOADER_NAME = 3 };
	char text[256] = "", version[128] = "";
	struct link_map *map = NULL;
	void *(*address)(const char *);
	int32_t (*info)(uint32_t, size_t, void *, size_t *) = NULL;

	// the first call would make the loader load all drivers
	setenv("OCL_ICD_VENDORS", "/dev/null", 1);
	unsetenv("OCL_ICD_FILENAMES");
	void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!so) {
		print_error(to, name);
		return;
	}
	dlinfo(so, RTLD_DI_LINKMAP, &map);
	*(void **)&address = dlsym(so, "clGetExtensionFunctionAddress");
	if (address)
		*(void **)&info = address("clGetICDLoaderInfoOCLICD");
	if (!info || info(LOADER_NAME, sizeof text - 1, text, NULL))
		snprintf(text, sizeof text, "of unknown make");
	if (!info || info(LOADER_VERSION, sizeof version - 1, version, NULL))
		version[0] = '\0';
	fprintf(to, "loader\t%s\t%s%s%s\n", map ? map->l_name : name, text, *version ? " " : "",
		version);
}

// Reads a text of any length, truncated to the buffer, without tabs and line breaks.
static void info_text(const struct dispatch *d, void *platform, uint32_t what, char *to, size_t cap)
{
	static char whole[65536];

	memset(whole, 0, sizeof whole);
	if (d->platform_info(platform, what, sizeof whole - 1, whole, NULL))
		whole[0] = '\0';
	for (char *c = whole; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	snprintf(to, cap, "%s", whole);
}

static void print_platform(FILE *to, void *platform)
{
	const struct dispatch *d = *(const struct dispatch **)platform;
	char name[128], version[128], extensions[65536];
	void *ids[64];
	uint32_t n = 0;

	if (!d || !d->platform_info || !d->device_ids) {
		fprintf(to, "error\tits platform has no dispatch table\n");
		return;
	}
	info_text(d, platform, PLATFORM_NAME, name, sizeof name);
	info_text(d, platform, PLATFORM_VERSION, version, sizeof version);
	info_text(d, platform, PLATFORM_EXTENSIONS, extensions, sizeof extensions);
	int32_t err = d->device_ids(platform, all_types, 64, ids, &n);
	fprintf(to, "platform\t%s\t%s\t%u\t%s\n", name, version, err ? 0 : n,
		strstr(extensions, "cl_khr_icd") ? "" : "lacks cl_khr_icd, so loaders ignore it");
	if (err && err != -1 /* no device */)
		fprintf(to, "error\tclGetDeviceIDs: %d\n", err);
}

void yk_probe_icd(FILE *to, const char *library)
{
	void *(*address)(const char *);
	int32_t (*get)(uint32_t, void **, uint32_t *) = NULL;
	void *platform[MAX_PLATFORMS] = { NULL };
	uint32_t n = 0;

	void *so = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!so) {
		print_error(to, library);
		return;
	}
	*(void **)&address = dlsym(so, "clGetExtensionFunctionAddress");
	if (address)
		*(void **)&get = address("clIcdGetPlatformIDsKHR");
	if (!get)
		*(void **)&get = dlsym(so, "clIcdGetPlatformIDsKHR");
	if (!get) {
		fprintf(to, "error\tis not an OpenCL driver: it lacks clIcdGetPlatformIDsKHR\n");
		return;
	}
	int32_t err = get(MAX_PLATFORMS, platform, &n);
	if (err && err != -1001 /* no platform */)
		fprintf(to, "error\tclIcdGetPlatformIDsKHR: %d\n", err);
	for (uint32_t i = 0; !err && i < n && i < MAX_PLATFORMS; i++)
		if (platform[i])
			print_platform(to, platform[i]);
}
