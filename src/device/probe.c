// SPDX-License-Identifier: Apache-2.0
// First contact with a plugin, in a child process, and the memory of how it went. What is
// remembered counts for the same plugin file, helper, driver files, environment and boot;
// normally nothing has changed and no child is started.
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "kernel/cache.h"
#include "device/child.h"
#include "device/icd.h"
#include "device/plugin.h"
#include "device/probe.h"

// ---- what an outcome depends on ----

static void add_file(FILE *to, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		fprintf(to, "%s: %d\n", path, errno);
	else
		fprintf(to, "%s: %llu %llu %lld %lld.%09ld\n", path,
			(unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
			(long long)st.st_size, (long long)st.st_mtim.tv_sec,
			st.st_mtim.tv_nsec);
}

static void add_text(FILE *to, const char *path)
{
	char line[256] = "";
	FILE *f = fopen(path, "re");

	if (f && !fgets(line, sizeof line, f))
		line[0] = '\0';
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = '\0';
	fprintf(to, "%s: %s\n", path, line);
}

// The files that name the OpenCL drivers of a machine, and the libraries they name; those
// without a path come and go with the linker's cache.
static void add_drivers(FILE *to)
{
	struct yk_icds icds;

	yk_icds_find(&icds);
	add_file(to, icds.path);
	for (size_t i = 0; i < icds.n; i++) {
		fprintf(to, "%s\n", icds.at[i].library);
		if (*icds.at[i].file)
			add_file(to, icds.at[i].file);
		if (*icds.at[i].library == '/')
			add_file(to, icds.at[i].library);
	}
	yk_icds_free(&icds);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// Variables that drivers, the linker and plugins read.
static void add_environment(FILE *to)
{
	static const char *const prefixes[] = {
		"AMD_", "CL_",     "CUDA_", "GPU_",  "HIP_",  "HSA_",  "LD_", "NVIDIA_",
		"OCL_", "OPENCL_", "POCL_", "ROCR_", "ROCM_", "SYCL_", "ZE_", "YOKE_",
	};
	size_t kept = 0;

	char **list = yk_param_environment(); // as the child will have it
	for (size_t i = 0; list && list[i]; i++)
		for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
			// the core's own say nothing about a plugin
			if (!strncmp(list[i], prefixes[k], strlen(prefixes[k])) &&
			    strncmp(list[i], "YOKE_LOG", 8) &&
			    strncmp(list[i], "YOKE_TEST_", 10) &&
			    strncmp(list[i], "YOKE_BACKEND", 12) &&
			    strncmp(list[i], "YOKE_DEVICE", 11)) {
				list[kept++] = list[i];
				break;
			}
	if (list)
		qsort(list, kept, sizeof *list, by_text);
	for (size_t i = 0; i < kept; i++)
		fprintf(to, "%s\n", list[i]);
	free(list);
}

// The caller frees it; NULL: no memory.
static char *make_key(const char *file, const char *helper, size_t *bytes)
{
	char *key = NULL;
	FILE *to = open_memstream(&key, bytes);

	if (!to)
		return NULL;
	fprintf(to, "probe 2 of yoke %s, ABI %x\n", PACKAGE_VERSION, YOKE_ABI);
	add_file(to, file);
	add_file(to, helper);
	add_file(to, "/etc/ld.so.cache");
	add_drivers(to);
	// what a driver did to a device, or a kernel's module to a driver, ends with the
	// boot
	add_text(to, "/proc/sys/kernel/random/boot_id");
	add_environment(to);
	if (fclose(to) == 0)
		return key;
	free(key);
	return NULL;
}

int yk_probe(const char *file, char *why, size_t cap)
{
	char helper[PATH_MAX], outcome[256], answer[16];
	size_t bytes = 0;

	if (!yk_child_helper(helper, outcome, sizeof outcome)) {
		yk_log(YOKE_LOG_DEBUG, "plugin", "%s: tried in this process: %s", file,
		       outcome);
		return 0;
	}
	char *key = make_key(file, helper, &bytes);
	int64_t n = key ? yk_cache_get(key, bytes, outcome, sizeof outcome - 1) : -1;
	bool known = n >= 0 && n < (int64_t)sizeof outcome;
	if (known) {
		outcome[n] = '\0';
	} else {
		int told = yk_child_run(helper, file, NULL, answer, sizeof answer, outcome,
					sizeof outcome);
		yk_log(YOKE_LOG_DEBUG, "plugin", "%s: tried by %s: %s", file, helper,
		       *outcome ? outcome : "came through");
		if (told > 0 && key)
			yk_cache_put(key, bytes, outcome, strlen(outcome));
		if (told < 0)
			outcome[0] = '\0';
	}
	free(key);
	if (!*outcome)
		return 0;
	snprintf(why, cap,
		 "%s when it was tried%s; left alone until it or its driver changes "
		 "(YOKE_PLUGIN_PROBE=0 loads it all the same)",
		 outcome, known ? " before" : "");
	return YOKE_EPLUGIN;
}
