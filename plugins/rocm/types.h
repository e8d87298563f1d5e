// SPDX-License-Identifier: Apache-2.0
// AMD's types and constants that calls.h uses, redeclared so that no ROCm headers are needed. HIP,
// hiprtc, hipBLASLt and ROCm SMI have kept them from ROCm 5 to 7, except the device properties,
// which have two layouts. tests/native_headers.sh compares them with the original headers where
// these are installed.
#ifndef YK_ROCM_TYPES_H
#define YK_ROCM_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "facts.h"

// ---- the driver ----

typedef int hipError_t; // enums have the size of an int
typedef int hipDevice_t;
typedef int hipDeviceAttribute_t;
typedef int hipFunction_attribute;
typedef int hipStreamCaptureMode;
typedef void *hipDeviceptr_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;

// Only the architecture's name is read from the device properties. ROCm 5's layout, which later
// versions still fill for the unversioned symbol, and that of ROCm 6 and 7.
typedef struct {
	char before[396], gcnArchName[256], after[140];
} yk_hip_properties_5;
typedef struct {
	char before[1160], gcnArchName[256], after[56];
} yk_hip_properties_6;

// ---- hiprtc ----

typedef int hiprtcResult;
typedef struct _hiprtcProgram *hiprtcProgram;

// ---- hipBLASLt ----

typedef int hipblasStatus_t;
typedef int hipblasComputeType_t;
typedef int hipDataType;
typedef int hipblasLtMatmulDescAttributes_t;
typedef int hipblasLtMatrixLayoutAttribute_t;
typedef int hipblasLtMatmulPreferenceAttributes_t;
typedef void *hipblasLtHandle_t;
typedef struct hipblasLtMatmulDesc *hipblasLtMatmulDesc_t;
typedef struct hipblasLtMatrixLayout *hipblasLtMatrixLayout_t;
typedef struct hipblasLtMatmulPreference *hipblasLtMatmulPreference_t;
typedef struct {
	uint8_t data[16];
	size_t max_workspace_bytes;
} hipblasLtMatmulAlgo_t;
typedef struct {
	hipblasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	hipblasStatus_t state;
	float wavesCount;
	int reserved[4];
} hipblasLtMatmulHeuristicResult_t;

// ---- rocBLAS ----

typedef int rocblas_status;
typedef int rocblas_operation;
typedef int rocblas_datatype;
typedef int rocblas_atomics_mode;
typedef int rocblas_gemm_algo;
typedef int32_t rocblas_int;
typedef int64_t rocblas_stride;
typedef struct _rocblas_handle *rocblas_handle;

// ---- ROCm SMI ----

typedef int rsmi_status_t;
typedef int rsmi_memory_type_t;
typedef int rsmi_temperature_metric_t;

// ---- RCCL ----

YK_NCCL_DECLARATIONS;

_Static_assert(sizeof(yk_hip_properties_5) == 792 && sizeof(yk_hip_properties_6) == 1472 &&
		       offsetof(yk_hip_properties_5, gcnArchName) == 396 &&
		       offsetof(yk_hip_properties_6, gcnArchName) == 1160 &&
		       sizeof(hipblasLtMatmulAlgo_t) == 24 &&
		       sizeof(hipblasLtMatmulHeuristicResult_t) == 56 &&
		       offsetof(hipblasLtMatmulHeuristicResult_t, state) == 32,
	       "the ABI of AMD's libraries");

enum {
#define X(name, value) name = value,
	YK_ROCM_CONSTANTS_DRIVER(X) YK_ROCM_CONSTANTS_COMPILER(X) YK_ROCM_CONSTANTS_PRODUCTS(X)
	YK_ROCM_CONSTANTS_TELEMETRY(X) YK_ROCM_CONSTANTS_RANGES(X) YK_ROCM_CONSTANTS_BLAS(X)
	YK_ROCM_CONSTANTS_COLLECTIVES(X)
#undef X
};

#endif
