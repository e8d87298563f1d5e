// SPDX-License-Identifier: Apache-2.0
// Fake libnvToolsExt and, compiled with FAKE_HIP, libroctx64, and an NVTX tool. Ranges are lines
// of the file YOKE_FAKE_RANGES, "push NAME" and "pop", indented by the number of ranges open in
// the thread.
#include "config.h"

#include <pthread.h>
#include <stdio.h>

#include "vendor.h"

#define FAKE_OF_RANGES ~, FAKE_YES
FAKE_CALLS(FAKE_DECLARE)

static _Thread_local int depth;

static void note(const char *what, const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *path = fake_setting("RANGES");

	pthread_mutex_lock(&lock);
	FILE *f = path ? fopen(path, "a") : NULL;
	if (f) {
		fprintf(f, "%*s%s%s\n", depth, "", what, name);
		fclose(f);
	}
	pthread_mutex_unlock(&lock);
}

int fake_code_of(const char *name)
{
	(void)name;
	return 0;
}

int TWIN(nvtxRangePushA, roctxRangePushA)(const char *name)
{
	note("push ", name);
	return depth++;
}

int TWIN(nvtxRangePop, roctxRangePop)(void)
{
	depth--; // a test must see a value below 0
	note("pop", "");
	return depth;
}

#ifndef FAKE_HIP
EXPORT int InitializeInjectionNvtx2(const void *(*table)(uint32_t));

int InitializeInjectionNvtx2(const void *(*table)(uint32_t))
{
	const NvtxExportTableCallbacks *c = table(NVTX_ETID_CALLBACKS);
	const NvtxExportTableVersionInfo *v = table(NVTX_ETID_VERSIONINFO);
	NvtxFunctionPointer **to = NULL;
	unsigned int n = 0;

	if (!c || c->struct_size < sizeof *c || !v || v->version != 3 ||
	    !c->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &to, &n) ||
	    n != NVTX_CBID_CORE2_SIZE || c->GetModuleFunctionTable(NVTX_CB_MODULE_SYNC, &to, &n) ||
	    !c->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &to, &n) || n != NVTX_CBID_CORE_SIZE)
		return 0;
	*to[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)nvtxRangePushA;
	*to[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)nvtxRangePop;
	note("injected", "");
	return 1;
}
#endif
