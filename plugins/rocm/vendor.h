// SPDX-License-Identifier: Apache-2.0
// Maps the names used by the native driver (v_*, V_*) to AMD's.
#ifndef YK_VENDOR_H
#define YK_VENDOR_H

#include "calls.h"
#include "types.h"

#define V_NAME "rocm"
#define V_TITLE "ROCm"
#define V_VENDOR "AMD"
#define V_LIBRARIES YK_ROCM_LIBRARIES
#define V_CALLS YK_ROCM_CALLS
// Searched below the configured directory, and below the directories of Python packages.
#define V_FOLDERS "lib", "lib64"
#define V_SYSTEM_FOLDERS "/opt/rocm/lib"
#define V_PYTHON_FOLDERS "_rocm_sdk_core/lib", "_rocm_sdk_libraries/lib"
#define V_DRIVER_ADVICE "install ROCm's HIP runtime (libamdhip64-5 on Debian, hip-runtime-amd of AMD's packages)"
#define V_COLLECTIVES_ADVICE "ranks communicate through host memory; install RCCL"
#define V_PRODUCTS_ADVICE "matrix products use rocBLAS or yoke's own kernels"
#define V_COMPILER_ADVICE "install hiprtc of the same ROCm version"

typedef hipDevice_t v_device;
typedef int v_context;
typedef hipStream_t v_stream;
typedef hipEvent_t v_event;
typedef hipModule_t v_module;
typedef hipFunction_t v_function;
typedef hipGraph_t v_graph;
typedef hipGraphExec_t v_exec;
typedef hipDeviceptr_t v_address;
typedef hiprtcProgram v_program;
typedef hipblasLtHandle_t v_lt_handle;
typedef hipblasLtMatmulDesc_t v_lt_desc;
typedef hipblasLtMatrixLayout_t v_lt_layout;
typedef hipblasLtMatmulPreference_t v_lt_preference;
typedef hipblasLtMatmulAlgo_t v_lt_algo;
typedef hipblasLtMatmulHeuristicResult_t v_lt_result;

enum {
	V_SUCCESS = hipSuccess,
	V_INVALID_VALUE = hipErrorInvalidValue,
	V_OUT_OF_MEMORY = hipErrorOutOfMemory,
	V_NO_DEVICE = hipErrorNoDevice,
	V_INVALID_DEVICE = hipErrorInvalidDevice,
	V_NOT_FOUND = hipErrorNotFound,
	V_NOT_READY = hipErrorNotReady,
	V_PEER_ALREADY = hipErrorPeerAccessAlreadyEnabled,
	V_COMPILER_OUT_OF_MEMORY = HIPRTC_ERROR_OUT_OF_MEMORY,
	V_PRODUCTS_OUT_OF_MEMORY = HIPBLAS_STATUS_ALLOC_FAILED,
	V_PRODUCTS_UNSUPPORTED = HIPBLAS_STATUS_NOT_SUPPORTED,
	V_COMPUTE_32F = HIPBLAS_COMPUTE_32F,
	V_COMPUTE_TF32 = HIPBLAS_COMPUTE_32F_FAST_TF32,
	V_COMPUTE_64F = HIPBLAS_COMPUTE_64F,
	V_R_32F = HIP_R_32F,
	V_R_64F = HIP_R_64F,
	V_R_16F = HIP_R_16F,
	V_R_16BF = HIP_R_16BF,
	V_OP_N = HIPBLAS_OP_N,
	V_OP_T = HIPBLAS_OP_T,
	V_DESC_TRANSA = HIPBLASLT_MATMUL_DESC_TRANSA,
	V_DESC_TRANSB = HIPBLASLT_MATMUL_DESC_TRANSB,
	V_DESC_EPILOGUE = HIPBLASLT_MATMUL_DESC_EPILOGUE,
	V_DESC_BIAS = HIPBLASLT_MATMUL_DESC_BIAS_POINTER,
	V_EPILOGUE_BIAS = HIPBLASLT_EPILOGUE_BIAS,
	V_EPILOGUE_RELU = HIPBLASLT_EPILOGUE_RELU,
	V_EPILOGUE_GELU = HIPBLASLT_EPILOGUE_GELU,
	V_LAYOUT_BATCH = HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
	V_LAYOUT_STEP = HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
	V_PREFERENCE_WORKSPACE = HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
	V_COMPILER_COMPLAINS = HIPRTC_ERROR_COMPILATION,
	V_COMPILER_OPTION = HIPRTC_ERROR_INVALID_OPTION,
	V_GROUP_ITEMS = hipDeviceAttributeMaxThreadsPerBlock,
	V_GROUP_X = hipDeviceAttributeMaxBlockDimX,
	V_GROUP_Y = hipDeviceAttributeMaxBlockDimY,
	V_GRID_X = hipDeviceAttributeMaxGridDimX,
	V_GRID_Y = hipDeviceAttributeMaxGridDimY,
	V_GRID_Z = hipDeviceAttributeMaxGridDimZ,
	V_LOCAL_BYTES = hipDeviceAttributeMaxSharedMemoryPerBlock,
	V_WARP = hipDeviceAttributeWarpSize,
	V_CLOCK = hipDeviceAttributeClockRate,
	V_MEMORY_CLOCK = hipDeviceAttributeMemoryClockRate,
	V_MEMORY_BITS = hipDeviceAttributeMemoryBusWidth,
	V_UNIT_ITEMS = hipDeviceAttributeMaxThreadsPerMultiProcessor,
	V_UNITS = hipDeviceAttributeMultiprocessorCount,
	V_CACHE = hipDeviceAttributeL2CacheSize,
	V_INTEGRATED = hipDeviceAttributeIntegrated,
	V_MODE = hipDeviceAttributeComputeMode,
	V_MODE_PROHIBITED = hipComputeModeProhibited
};

// Each expands to the call's name and its result code.
#define V_INIT() V(hipInit, 0)
#define V_COUNT(n) V(hipGetDeviceCount, n)
#define V_INIT_CALL "hipInit"
#define V_COUNT_CALL "hipGetDeviceCount"
#define V_DEVICE_CALL "hipGetDeviceCount"
#define V_DEVICE(to, i) "hipDeviceGet", (*(to) = (i), 0)
#define V_DEVICE_NAME(to, cap, id) V(hipDeviceGetName, to, cap, id)
#define V_PCI(to, cap, id) V(hipDeviceGetPCIBusId, to, cap, id)
#define V_ATTRIBUTE(to, what, id) V(hipDeviceGetAttribute, to, what, id)
#define V_MEMORY(to, id) V(hipDeviceTotalMem, to, id)
#define V_FREE_MEMORY(to, all) V(hipMemGetInfo, to, all)
#define V_OPEN(d) V(hipSetDevice, (d)->id)
#define V_CLOSE(d) "hipSetDevice", 0
#define V_USE(d) V(hipSetDevice, (d)->id)
#define V_CAN_PEER(to, d, peer) V(hipDeviceCanAccessPeer, to, (d)->id, (peer)->id)
#define V_ENABLE_PEER(peer) V(hipDeviceEnablePeerAccess, (peer)->id, 0)
#define V_ALLOC(to, bytes) V(hipMalloc, to, bytes)
#define V_FREE(at) V(hipFree, at)
#define V_HOST_ALLOC(to, bytes) \
	V(hipHostMalloc, to, bytes, hipHostMallocPortable | hipHostMallocMapped)
#define V_HOST_FREE(at) V(hipHostFree, at)
#define V_HOST_ADDRESS(to, at) V(hipHostGetDevicePointer, to, at, 0)
#define V_REGISTER(at, bytes) \
	V(hipHostRegister, at, bytes, hipHostRegisterPortable | hipHostRegisterMapped)
#define V_UNREGISTER(at) V(hipHostUnregister, at)
#define V_PUT(to, from, bytes, stream) \
	V(hipMemcpyHtoDAsync, to, (void *)(uintptr_t)(from), bytes, stream)
#define V_GET(to, from, bytes, stream) V(hipMemcpyDtoHAsync, to, from, bytes, stream)
#define V_COPY(to, from, bytes, stream) V(hipMemcpyDtoDAsync, to, from, bytes, stream)
#define V_COPY_PEER(to, t, from, f, bytes, stream) \
	V(hipMemcpyPeerAsync, to, (t)->id, from, (f)->id, bytes, stream)
#define V_SET8(at, value, n, stream) V(hipMemsetD8Async, at, value, n, stream)
#define V_SET16(at, value, n, stream) V(hipMemsetD16Async, at, value, n, stream)
#define V_SET32(at, value, n, stream) V(hipMemsetD32Async, at, (int)(value), n, stream)
#define V_LOAD_CALL "hipModuleLoadData"
#define V_LOAD(to, image) V(hipModuleLoadData, to, image)
#define V_UNLOAD(module) V(hipModuleUnload, module)
#define V_FUNCTION_CALL "hipModuleGetFunction"
#define V_FUNCTION(to, module, name) V(hipModuleGetFunction, to, module, name)
#define V_FUNCTION_ITEMS(to, f) \
	V(hipFuncGetAttribute, to, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f)
#define V_FUNCTION_REGISTERS(to, f) V(hipFuncGetAttribute, to, HIP_FUNC_ATTRIBUTE_NUM_REGS, f)
#define V_FUNCTION_LOCAL(to, f) V(hipFuncGetAttribute, to, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f)
#define V_HAS_OCCUPANCY (yk_native.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)
#define V_OCCUPANCY(to, f, items, sized) \
	V(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, to, f, items, sized)
#define V_SIZED_CALL "local memory of a launch"
#define V_SIZED(f, bytes) V_SIZED_CALL, hipErrorInvalidValue // kernels declare all their arrays
// max work-items of a launch along an axis ("HIP Runtime API", hipModuleLaunchKernel)
#define V_MAX_ITEMS (int64_t)UINT32_MAX
#define V_LAUNCH_CALL "hipModuleLaunchKernel"
#define V_LAUNCH(f, g, b, sized, stream, params) \
	V(hipModuleLaunchKernel, f, (g)[0], (g)[1], (g)[2], (b)[0], (b)[1], (b)[2], \
	  (unsigned)(sized), stream, params, NULL)
#define V_STREAM_NEW(to) V(hipStreamCreateWithFlags, to, hipStreamNonBlocking)
#define V_STREAM_FREE(stream) V(hipStreamDestroy, stream)
#define V_STREAM_WAIT(stream) V(hipStreamSynchronize, stream)
#define V_STREAM_AFTER(stream, event) V(hipStreamWaitEvent, stream, event, 0)
#define V_EVENT_NEW(to, timed) \
	V(hipEventCreateWithFlags, to, (timed) ? hipEventDefault : hipEventDisableTiming)
#define V_EVENT_FREE(event) V(hipEventDestroy, event)
#define V_EVENT_MARK(event, stream) V(hipEventRecord, event, stream)
#define V_EVENT_ASK_CALL "hipEventQuery"
#define V_EVENT_ASK(event) V(hipEventQuery, event)
#define V_EVENT_WAIT(event) V(hipEventSynchronize, event)
#define V_EVENT_TIME(to, from, end) V(hipEventElapsedTime, to, from, end)
#define V_HAS_GRAPHS \
	(yk_native.hipStreamBeginCapture && yk_native.hipStreamEndCapture && \
	 yk_native.hipGraphInstantiateWithFlags && yk_native.hipGraphLaunch && \
	 yk_native.hipGraphExecDestroy && yk_native.hipGraphDestroy)
#define V_HAS_PEERS \
	(yk_native.hipDeviceCanAccessPeer && yk_native.hipDeviceEnablePeerAccess && \
	 yk_native.hipMemcpyPeerAsync)
#define V_HAS_REGISTER (yk_native.hipHostRegister && yk_native.hipHostUnregister)
#define V_CAPTURE(stream) V(hipStreamBeginCapture, stream, hipStreamCaptureModeRelaxed)
#define V_CAPTURE_END(stream, to) V(hipStreamEndCapture, stream, to)
#define V_INSTANTIATE(to, graph) V(hipGraphInstantiateWithFlags, to, graph, 0)
#define V_GRAPH_LAUNCH(exec, stream) V(hipGraphLaunch, exec, stream)
#define V_EXEC_FREE(exec) V(hipGraphExecDestroy, exec)
#define V_GRAPH_FREE(graph) V(hipGraphDestroy, graph)
#define V_PROGRAM_NEW_CALL "hiprtcCreateProgram"
#define V_PROGRAM_NEW(to, text) V(hiprtcCreateProgram, to, text, "yoke.hip", 0, NULL, NULL)
#define V_PROGRAM_FREE(program) V(hiprtcDestroyProgram, program)
#define V_COMPILE_CALL "hiprtcCompileProgram"
#define V_COMPILE(program, n, options) V(hiprtcCompileProgram, program, n, options)
#define V_LOG_BYTES(program, to) V(hiprtcGetProgramLogSize, program, to)
#define V_LOG(program, to) V(hiprtcGetProgramLog, program, to)
#define V_CODE_BYTES(d, program, to) V(hiprtcGetCodeSize, program, to)
#define V_CODE(d, program, to) V(hiprtcGetCode, program, to)
#define V_RANGE_PUSH(name) yk_native.roctxRangePushA(name)
#define V_RANGE_POP() yk_native.roctxRangePop()
#define V_PRODUCTS_NAME "hipblaslt"
#define V_MORE_PRODUCTS &yk_rocm_blas
struct yk_gpu_library;
extern const struct yk_gpu_library yk_rocm_blas; // blas.c
#define V_LT_NEW(to) V(hipblasLtCreate, to)
#define V_LT_DESC_NEW(to, compute, scale) V(hipblasLtMatmulDescCreate, to, compute, scale)
#define V_LT_DESC_FREE(desc) V(hipblasLtMatmulDescDestroy, desc)
#define V_LT_DESC_SET(desc, what, from, bytes) \
	V(hipblasLtMatmulDescSetAttribute, desc, what, from, bytes)
#define V_LT_LAYOUT_NEW(to, type, rows, cols, ld) \
	V(hipblasLtMatrixLayoutCreate, to, type, rows, cols, ld)
#define V_LT_LAYOUT_FREE(layout) V(hipblasLtMatrixLayoutDestroy, layout)
#define V_LT_LAYOUT_SET(layout, what, from, bytes) \
	V(hipblasLtMatrixLayoutSetAttribute, layout, what, from, bytes)
#define V_LT_PREFERENCE_NEW(to) V(hipblasLtMatmulPreferenceCreate, to)
#define V_LT_PREFERENCE_FREE(preference) V(hipblasLtMatmulPreferenceDestroy, preference)
#define V_LT_PREFERENCE_SET(preference, what, from, bytes) \
	V(hipblasLtMatmulPreferenceSetAttribute, preference, what, from, bytes)
#define V_LT_CHOOSE_CALL "hipblasLtMatmulAlgoGetHeuristic"
#define V_LT_CHOOSE(...) V(hipblasLtMatmulAlgoGetHeuristic, __VA_ARGS__)
#define V_LT_MULTIPLY(...) V(hipblasLtMatmul, __VA_ARGS__)

static inline v_address v_address_of(const void *buffer, uint64_t offset)
{
	return (char *)(uintptr_t)buffer + offset;
}

static inline void *v_buffer_of(v_address at)
{
	return at;
}

#endif
