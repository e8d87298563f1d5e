// SPDX-License-Identifier: Apache-2.0
// NVTX ranges without the NVTX library: a profiler names its injection library in
// NVTX_INJECTION64_PATH, receives function tables (NVTX protocol version 3), and stores its
// functions in them.
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../native/native.h"

enum {
	SLOTS = NVTX_CBID_CORE_SIZE > NVTX_CBID_CORE2_SIZE ? NVTX_CBID_CORE_SIZE :
							     NVTX_CBID_CORE2_SIZE
};

static NvtxFunctionPointer core[SLOTS], core2[SLOTS], *core_table[SLOTS + 1],
	*core2_table[SLOTS + 1];

static int table_of(int module, NvtxFunctionPointer ***table, unsigned int *entries)
{
	const bool is_core = module == NVTX_CB_MODULE_CORE;

	if (!is_core && module != NVTX_CB_MODULE_CORE2)
		return 0; // no table for unused modules
	for (int i = 0; i < SLOTS; i++) {
		core_table[i] = &core[i];
		core2_table[i] = &core2[i];
	}
	if (table)
		*table = is_core ? core_table : core2_table;
	if (entries)
		*entries = is_core ? NVTX_CBID_CORE_SIZE : NVTX_CBID_CORE2_SIZE;
	return 1;
}

static void tool_version(uint32_t version)
{
	(void)version;
}

static const void *export_table(uint32_t id)
{
	static const NvtxExportTableCallbacks callbacks = { sizeof callbacks, table_of };
	static const NvtxExportTableVersionInfo version = { sizeof version, 3, 0, tool_version };

	return id == NVTX_ETID_CALLBACKS   ? (const void *)&callbacks :
	       id == NVTX_ETID_VERSIONINFO ? &version :
					     NULL;
}

const char *yk_vendor_injected(enum yk_native_lib part)
{
	const char *path = part == YK_RANGES ? secure_getenv("NVTX_INJECTION64_PATH") : NULL;
	void *tool = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*init)(const void *(*)(uint32_t)) = NULL;

	if (!tool)
		return NULL;
	*(void **)&init = dlsym(tool, "InitializeInjectionNvtx2");
	if (!init || !init(export_table) || !core[NVTX_CBID_CORE_RangePushA] ||
	    !core[NVTX_CBID_CORE_RangePop])
		return NULL; // stays loaded, since its threads may be running
	memcpy(&yk_native.nvtxRangePushA, &core[NVTX_CBID_CORE_RangePushA], sizeof(void *));
	memcpy(&yk_native.nvtxRangePop, &core[NVTX_CBID_CORE_RangePop], sizeof(void *));
	return "the tool of NVTX_INJECTION64_PATH";
}
