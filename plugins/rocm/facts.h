// SPDX-License-Identifier: Apache-2.0
// Lists of the constants, types and fields of AMD's headers that types.h redeclares, by library.
// Used by types.h and by the test that compares them with the original headers.
#ifndef YK_ROCM_FACTS_H
#define YK_ROCM_FACTS_H

#include "../native/nccl.h"

// X(name, value): the constants used.
#define YK_ROCM_CONSTANTS_DRIVER(X) \
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
	X(hipDeviceAttributeMaxThreadsPerMultiProcessor, 57) \
	X(hipDeviceAttributeMemoryBusWidth, 59) \
	X(hipDeviceAttributeMemoryClockRate, 60) \
	X(hipDeviceAttributeMultiprocessorCount, 63) \
	X(hipDeviceAttributeMaxRegistersPerBlock, 71) \
	X(hipDeviceAttributeMaxSharedMemoryPerBlock, 74) \
	X(hipDeviceAttributeWarpSize, 87) \
	X(hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 10002) \
	X(hipComputeModeProhibited, 2) \
	X(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
	X(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
	X(HIP_FUNC_ATTRIBUTE_NUM_REGS, 4) \
	X(hipStreamNonBlocking, 1) \
	X(hipEventDefault, 0) \
	X(hipEventDisableTiming, 2) \
	X(hipHostMallocPortable, 1) \
	X(hipHostMallocMapped, 2) \
	X(hipHostRegisterPortable, 1) \
	X(hipHostRegisterMapped, 2) \
	X(hipStreamCaptureModeRelaxed, 2)
#define YK_ROCM_CONSTANTS_COMPILER(X) \
	X(HIPRTC_SUCCESS, 0) \
	X(HIPRTC_ERROR_OUT_OF_MEMORY, 1) \
	X(HIPRTC_ERROR_INVALID_OPTION, 5) \
	X(HIPRTC_ERROR_COMPILATION, 6)
#define YK_ROCM_CONSTANTS_PRODUCTS(X) \
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
	X(HIPBLASLT_EPILOGUE_RELU_BIAS, 6) \
	X(HIPBLASLT_EPILOGUE_GELU, 32) \
	X(HIPBLASLT_EPILOGUE_GELU_BIAS, 36)
#define YK_ROCM_CONSTANTS_RANGES(X)
#define YK_ROCM_CONSTANTS_BLAS(X) \
	X(rocblas_status_success, 0) \
	X(rocblas_status_memory_error, 5) \
	X(rocblas_operation_none, 111) \
	X(rocblas_operation_transpose, 112) \
	X(rocblas_datatype_f16_r, 150) \
	X(rocblas_datatype_f32_r, 151) \
	X(rocblas_datatype_f64_r, 152) \
	X(rocblas_datatype_bf16_r, 168) \
	X(rocblas_atomics_not_allowed, 0) \
	X(rocblas_gemm_algo_standard, 0)
#define YK_ROCM_CONSTANTS_COLLECTIVES YK_NCCL_CONSTANTS
#define YK_ROCM_CONSTANTS_TELEMETRY(X) \
	X(RSMI_STATUS_SUCCESS, 0) \
	X(RSMI_MEM_TYPE_VRAM, 0) \
	X(RSMI_TEMP_TYPE_EDGE, 0) \
	X(RSMI_TEMP_TYPE_JUNCTION, 1) \
	X(RSMI_TEMP_TYPE_MEMORY, 2) \
	X(RSMI_TEMP_CURRENT, 0)

// X(type): the types of all arguments, and the types that they point to.
#define YK_ROCM_TYPES_DRIVER(X) \
	X(hipError_t) X(hipDevice_t) X(hipDeviceAttribute_t) X(hipFunction_attribute) \
	X(hipStreamCaptureMode) X(hipDeviceptr_t) X(hipModule_t) X(hipFunction_t) \
	X(hipStream_t) X(hipEvent_t) X(hipGraph_t) X(hipGraphExec_t)
#define YK_ROCM_TYPES_COMPILER(X) \
	X(hiprtcResult) X(hiprtcProgram)
#define YK_ROCM_TYPES_PRODUCTS(X) \
	X(hipblasStatus_t) X(hipblasComputeType_t) X(hipDataType) \
	X(hipblasLtMatmulDescAttributes_t) X(hipblasLtMatrixLayoutAttribute_t) \
	X(hipblasLtMatmulPreferenceAttributes_t) X(hipblasLtHandle_t) X(hipblasLtMatmulDesc_t) \
	X(hipblasLtMatrixLayout_t) X(hipblasLtMatmulPreference_t) X(hipblasLtMatmulAlgo_t) \
	X(hipblasLtMatmulHeuristicResult_t)
#define YK_ROCM_TYPES_RANGES(X)
#define YK_ROCM_TYPES_BLAS(X) \
	X(rocblas_status) X(rocblas_handle) X(rocblas_int) X(rocblas_stride) X(rocblas_operation) \
	X(rocblas_datatype) X(rocblas_atomics_mode) X(rocblas_gemm_algo)
#define YK_ROCM_TYPES_COLLECTIVES YK_NCCL_TYPES
#define YK_ROCM_TYPES_TELEMETRY(X) \
	X(rsmi_status_t) X(rsmi_memory_type_t) X(rsmi_temperature_metric_t)

// X(struct, field): the fields whose offsets must match.
#define YK_ROCM_FIELDS_DRIVER(X)
#define YK_ROCM_FIELDS_COMPILER(X)
#define YK_ROCM_FIELDS_PRODUCTS(X) \
	X(hipblasLtMatmulAlgo_t, data) \
	X(hipblasLtMatmulAlgo_t, max_workspace_bytes) \
	X(hipblasLtMatmulHeuristicResult_t, algo) \
	X(hipblasLtMatmulHeuristicResult_t, workspaceSize) \
	X(hipblasLtMatmulHeuristicResult_t, state)
#define YK_ROCM_FIELDS_RANGES(X)
#define YK_ROCM_FIELDS_BLAS(X)
#define YK_ROCM_FIELDS_COLLECTIVES YK_NCCL_FIELDS
#define YK_ROCM_FIELDS_TELEMETRY(X)

#endif
