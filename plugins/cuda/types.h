// SPDX-License-Identifier: Apache-2.0
// NVIDIA's types and constants that calls.h uses, redeclared so that no CUDA headers are needed.
// The driver API, NVRTC, cuBLASLt and NVML have kept them from CUDA 11.4 to 13.
// tests/native_headers.sh compares them with the original headers where these are installed.
#ifndef YK_CUDA_TYPES_H
#define YK_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "facts.h"

// ---- the driver ----

typedef int CUresult; // enums have the size of an int
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef int CUstreamCaptureMode;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct {
	char bytes[16];
} CUuuid;

// ---- NVRTC ----

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

// ---- cuBLASLt ----

typedef int cublasStatus_t;
typedef int cublasComputeType_t;
typedef int cudaDataType_t;
typedef int cublasLtMatmulDescAttributes_t;
typedef int cublasLtMatrixLayoutAttribute_t;
typedef int cublasLtMatmulPreferenceAttributes_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDesc *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreference *cublasLtMatmulPreference_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct {
	uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;

// ---- NVTX: the interface to an injected tool ----

typedef void (*NvtxFunctionPointer)(void);
typedef struct {
	size_t struct_size;
	int (*GetModuleFunctionTable)(int module, NvtxFunctionPointer ***table,
				      unsigned int *entries);
} NvtxExportTableCallbacks;
typedef struct {
	size_t struct_size;
	uint32_t version, reserved0;
	void (*SetInjectionNvtxVersion)(uint32_t version);
} NvtxExportTableVersionInfo;

// ---- NVML ----

typedef int nvmlReturn_t;
typedef int nvmlTemperatureSensors_t;
typedef int nvmlClockType_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlUtilization_st {
	unsigned int gpu, memory; // percent
} nvmlUtilization_t;
typedef struct nvmlMemory_st {
	unsigned long long total, free, used;
} nvmlMemory_t;

// ---- NCCL ----

YK_NCCL_DECLARATIONS;

_Static_assert(sizeof(CUdeviceptr) == 8 && sizeof(CUuuid) == 16 &&
		       sizeof(cublasLtMatmulAlgo_t) == 64 &&
		       sizeof(cublasLtMatmulHeuristicResult_t) == 96 &&
		       offsetof(cublasLtMatmulHeuristicResult_t, state) == 72 &&
		       sizeof(nvmlUtilization_t) == 8 && sizeof(nvmlMemory_t) == 24 &&
		       offsetof(nvmlMemory_t, used) == 16,
	       "the ABI of NVIDIA's libraries");

enum {
#define X(name, value) name = value,
	YK_CUDA_CONSTANTS_DRIVER(X) YK_CUDA_CONSTANTS_COMPILER(X) YK_CUDA_CONSTANTS_PRODUCTS(X)
	YK_CUDA_CONSTANTS_TELEMETRY(X) YK_CUDA_CONSTANTS_RANGES(X) YK_CUDA_CONSTANTS_COLLECTIVES(X)
#undef X
};

#endif
