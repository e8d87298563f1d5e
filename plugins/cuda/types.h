// SPDX-License-Identifier: Apache-2.0
// What calls.h needs of NVIDIA's types and constants, declared anew: the driver API, NVRTC, cuBLASLt and NVML have
// kept all of it from CUDA 11.4 to 13.  tests/native_headers.sh compares it with their headers where those are.
#ifndef YK_CUDA_TYPES_H
#define YK_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

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

// X(name, value): all constants that the driver uses.
#define YK_CUDA_CONSTANTS(X) \
	X(CUDA_SUCCESS, 0) \
	X(CUDA_ERROR_INVALID_VALUE, 1) \
	X(CUDA_ERROR_OUT_OF_MEMORY, 2) \
	X(CUDA_ERROR_NO_DEVICE, 100) \
	X(CUDA_ERROR_INVALID_DEVICE, 101) \
	X(CUDA_ERROR_NOT_FOUND, 500) \
	X(CUDA_ERROR_NOT_READY, 600) \
	X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) \
	X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1) \
	X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2) \
	X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3) \
	X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5) \
	X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6) \
	X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7) \
	X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) \
	X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10) \
	X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13) \
	X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
	X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20) \
	X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36) \
	X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37) \
	X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
	X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) \
	X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82) \
	X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99) \
	X(CU_COMPUTEMODE_PROHIBITED, 2) \
	X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
	X(CU_STREAM_NON_BLOCKING, 1) \
	X(CU_EVENT_DEFAULT, 0) \
	X(CU_EVENT_DISABLE_TIMING, 2) \
	X(CU_MEMHOSTALLOC_PORTABLE, 1) \
	X(CU_MEMHOSTALLOC_DEVICEMAP, 2) \
	X(CU_MEMHOSTREGISTER_PORTABLE, 1) \
	X(CU_MEMHOSTREGISTER_DEVICEMAP, 2) \
	X(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
	X(NVRTC_SUCCESS, 0) \
	X(NVRTC_ERROR_OUT_OF_MEMORY, 1) \
	X(NVRTC_ERROR_INVALID_OPTION, 5) \
	X(NVRTC_ERROR_COMPILATION, 6) \
	X(CUBLAS_STATUS_SUCCESS, 0) \
	X(CUBLAS_STATUS_ALLOC_FAILED, 3) \
	X(CUBLAS_STATUS_NOT_SUPPORTED, 15) \
	X(CUBLAS_COMPUTE_32F, 68) \
	X(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
	X(CUBLAS_COMPUTE_64F, 70) \
	X(CUBLAS_OP_N, 0) \
	X(CUBLAS_OP_T, 1) \
	X(CUDA_R_32F, 0) \
	X(CUDA_R_64F, 1) \
	X(CUDA_R_16F, 2) \
	X(CUDA_R_16BF, 14) \
	X(CUBLASLT_MATMUL_DESC_TRANSA, 3) \
	X(CUBLASLT_MATMUL_DESC_TRANSB, 4) \
	X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7) \
	X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8) \
	X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5) \
	X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6) \
	X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7) \
	X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8) \
	X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3) \
	X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2) \
	X(CUBLASLT_EPILOGUE_DEFAULT, 1) \
	X(CUBLASLT_EPILOGUE_RELU, 2) \
	X(CUBLASLT_EPILOGUE_BIAS, 4) \
	X(CUBLASLT_EPILOGUE_RELU_BIAS, 6) \
	X(NVML_SUCCESS, 0) \
	X(NVML_TEMPERATURE_GPU, 0) \
	X(NVML_CLOCK_SM, 1) \
	X(NVML_CLOCK_MEM, 2)

// X(type): all that calls pass or that a pointer of theirs is to.
#define YK_CUDA_TYPES(X) \
	X(CUresult) X(CUdevice) X(CUdevice_attribute) X(CUfunction_attribute) X(CUstreamCaptureMode) \
	X(CUdeviceptr) X(CUcontext) X(CUmodule) X(CUfunction) X(CUstream) X(CUevent) X(CUgraph) \
	X(CUgraphExec) X(CUuuid) X(nvrtcResult) X(nvrtcProgram) X(cublasStatus_t) X(cublasComputeType_t) \
	X(cudaDataType_t) X(cublasLtMatmulDescAttributes_t) X(cublasLtMatrixLayoutAttribute_t) \
	X(cublasLtMatmulPreferenceAttributes_t) X(cublasLtHandle_t) X(cublasLtMatmulDesc_t) \
	X(cublasLtMatrixLayout_t) X(cublasLtMatmulPreference_t) X(cudaStream_t) X(cublasLtMatmulAlgo_t) \
	X(cublasLtMatmulHeuristicResult_t) X(nvmlReturn_t) X(nvmlTemperatureSensors_t) X(nvmlClockType_t) \
	X(nvmlDevice_t) X(nvmlUtilization_t) X(nvmlMemory_t)

// X(struct, field): where the fields are.
#define YK_CUDA_FIELDS(X) \
	X(CUuuid, bytes) X(cublasLtMatmulAlgo_t, data) X(cublasLtMatmulHeuristicResult_t, algo) \
	X(cublasLtMatmulHeuristicResult_t, workspaceSize) X(cublasLtMatmulHeuristicResult_t, state) \
	X(cublasLtMatmulHeuristicResult_t, wavesCount) X(nvmlUtilization_t, gpu) X(nvmlUtilization_t, memory) \
	X(nvmlMemory_t, total) X(nvmlMemory_t, free) X(nvmlMemory_t, used)

_Static_assert(sizeof(CUdeviceptr) == 8 && sizeof(CUuuid) == 16 && sizeof(cublasLtMatmulAlgo_t) == 64 &&
	       sizeof(cublasLtMatmulHeuristicResult_t) == 96 &&
	       offsetof(cublasLtMatmulHeuristicResult_t, state) == 72 && sizeof(nvmlUtilization_t) == 8 &&
	       sizeof(nvmlMemory_t) == 24 && offsetof(nvmlMemory_t, used) == 16,
	       "the ABI of NVIDIA's libraries");

enum {
#define X(name, value) name = value,
	YK_CUDA_CONSTANTS(X)
#undef X
};

#endif
