// SPDX-License-Identifier: Apache-2.0
// What calls.h needs of AMD's types and constants, declared anew: HIP, hiprtc, hipBLASLt and ROCm SMI have kept all
// of it from ROCm 5 to 7, but for the struct of a device, of which there are two.  tests/native_headers.sh compares
// it with their headers where those are.
#ifndef YK_ROCM_TYPES_H
#define YK_ROCM_TYPES_H

#include <stddef.h>
#include <stdint.h>

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

// Of the struct that the call fills only the name of the architecture is read.  That of ROCm 5, which later
// ones give by the same symbol, and that of 6 and 7.
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

// ---- ROCm SMI ----

typedef int rsmi_status_t;
typedef int rsmi_memory_type_t;
typedef int rsmi_temperature_metric_t;

// X(name, value): all constants that the driver uses, with HIP's headers, then those of the others.
#define YK_ROCM_CONSTANTS(X) \
	X(hipSuccess, 0) \
	X(hipErrorInvalidValue, 1) \
	X(hipErrorOutOfMemory, 2) \
	X(hipErrorNoDevice, 100) \
	X(hipErrorInvalidDevice, 101) \
	X(hipErrorNotFound, 500) \
	X(hipErrorNotReady, 600) \
	X(hipErrorPeerAccessAlreadyEnabled, 704) \
	X(hipDeviceAttributeClockRate, 5) \
	X(hipDeviceAttributeComputeMode, 6) \
	X(hipDeviceAttributeIntegrated, 16) \
	X(hipDeviceAttributeL2CacheSize, 19) \
	X(hipDeviceAttributeMaxBlockDimX, 26) \
	X(hipDeviceAttributeMaxBlockDimY, 27) \
	X(hipDeviceAttributeMaxGridDimX, 29) \
	X(hipDeviceAttributeMaxGridDimY, 30) \
	X(hipDeviceAttributeMaxGridDimZ, 31) \
	X(hipDeviceAttributeMaxThreadsPerBlock, 56) \
	X(hipDeviceAttributeMemoryBusWidth, 59) \
	X(hipDeviceAttributeMemoryClockRate, 60) \
	X(hipDeviceAttributeMultiprocessorCount, 63) \
	X(hipDeviceAttributeMaxRegistersPerBlock, 71) \
	X(hipDeviceAttributeMaxSharedMemoryPerBlock, 74) \
	X(hipDeviceAttributeWarpSize, 87) \
	X(hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 10002) \
	X(hipComputeModeProhibited, 2) \
	X(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
	X(hipStreamNonBlocking, 1) \
	X(hipEventDefault, 0) \
	X(hipEventDisableTiming, 2) \
	X(hipHostMallocPortable, 1) \
	X(hipHostMallocMapped, 2) \
	X(hipHostRegisterPortable, 1) \
	X(hipHostRegisterMapped, 2) \
	X(hipStreamCaptureModeRelaxed, 2) \
	X(HIPRTC_SUCCESS, 0) \
	X(HIPRTC_ERROR_OUT_OF_MEMORY, 1) \
	X(HIPRTC_ERROR_INVALID_OPTION, 5) \
	X(HIPRTC_ERROR_COMPILATION, 6)
#define YK_ROCM_PRODUCT_CONSTANTS(X) \
	X(HIPBLAS_STATUS_SUCCESS, 0) \
	X(HIPBLAS_STATUS_ALLOC_FAILED, 2) \
	X(HIPBLAS_STATUS_NOT_SUPPORTED, 7) \
	X(HIPBLAS_COMPUTE_32F, 2) \
	X(HIPBLAS_COMPUTE_32F_FAST_TF32, 6) \
	X(HIPBLAS_COMPUTE_64F, 7) \
	X(HIPBLAS_OP_N, 111) \
	X(HIPBLAS_OP_T, 112) \
	X(HIP_R_32F, 0) \
	X(HIP_R_64F, 1) \
	X(HIP_R_16F, 2) \
	X(HIP_R_16BF, 14) \
	X(HIPBLASLT_MATMUL_DESC_TRANSA, 0) \
	X(HIPBLASLT_MATMUL_DESC_TRANSB, 1) \
	X(HIPBLASLT_MATMUL_DESC_EPILOGUE, 2) \
	X(HIPBLASLT_MATMUL_DESC_BIAS_POINTER, 3) \
	X(HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 0) \
	X(HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 1) \
	X(HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
	X(HIPBLASLT_EPILOGUE_DEFAULT, 1) \
	X(HIPBLASLT_EPILOGUE_RELU, 2) \
	X(HIPBLASLT_EPILOGUE_BIAS, 4) \
	X(HIPBLASLT_EPILOGUE_RELU_BIAS, 6)
#define YK_ROCM_TELEMETRY_CONSTANTS(X) \
	X(RSMI_STATUS_SUCCESS, 0) \
	X(RSMI_MEM_TYPE_VRAM, 0) \
	X(RSMI_TEMP_TYPE_EDGE, 0) \
	X(RSMI_TEMP_TYPE_JUNCTION, 1) \
	X(RSMI_TEMP_TYPE_MEMORY, 2) \
	X(RSMI_TEMP_CURRENT, 0)

// X(type): all that calls pass or that a pointer of theirs is to, in the same three parts.
#define YK_ROCM_TYPES(X) \
	X(hipError_t) X(hipDevice_t) X(hipDeviceAttribute_t) X(hipFunction_attribute) X(hipStreamCaptureMode) \
	X(hipDeviceptr_t) X(hipModule_t) X(hipFunction_t) X(hipStream_t) X(hipEvent_t) X(hipGraph_t) \
	X(hipGraphExec_t) X(hiprtcResult) X(hiprtcProgram)
#define YK_ROCM_PRODUCT_TYPES(X) \
	X(hipblasStatus_t) X(hipblasComputeType_t) X(hipDataType) X(hipblasLtMatmulDescAttributes_t) \
	X(hipblasLtMatrixLayoutAttribute_t) X(hipblasLtMatmulPreferenceAttributes_t) X(hipblasLtHandle_t) \
	X(hipblasLtMatmulDesc_t) X(hipblasLtMatrixLayout_t) X(hipblasLtMatmulPreference_t) \
	X(hipblasLtMatmulAlgo_t) X(hipblasLtMatmulHeuristicResult_t)
#define YK_ROCM_TELEMETRY_TYPES(X) X(rsmi_status_t) X(rsmi_memory_type_t) X(rsmi_temperature_metric_t)

_Static_assert(sizeof(yk_hip_properties_5) == 792 && sizeof(yk_hip_properties_6) == 1472 &&
	       offsetof(yk_hip_properties_5, gcnArchName) == 396 &&
	       offsetof(yk_hip_properties_6, gcnArchName) == 1160 && sizeof(hipblasLtMatmulAlgo_t) == 24 &&
	       sizeof(hipblasLtMatmulHeuristicResult_t) == 56 &&
	       offsetof(hipblasLtMatmulHeuristicResult_t, state) == 32,
	       "the ABI of AMD's libraries");

enum {
#define X(name, value) name = value,
	YK_ROCM_CONSTANTS(X) YK_ROCM_PRODUCT_CONSTANTS(X) YK_ROCM_TELEMETRY_CONSTANTS(X)
#undef X
};

#endif
